"""A linear-chain conditional random field over the labels of a sentence's words (Lafferty, McCallum & Pereira 2001)."""

import torch
from torch import nn

IMPOSSIBLE = -1e9  # the score of a label that a word cannot have


class Crf(nn.Module):
    """A CRF: a label sequence scores the sum of its words' scores, transitions, and first and last label.

    `layers` label sequences are scored independently, each with its own weights, because overlapping elements have one
    each.
    """

    def __init__(self, layers: int, labels: int):
        super().__init__()
        self.first = nn.Parameter(torch.zeros(layers, labels))
        self.last = nn.Parameter(torch.zeros(layers, labels))
        self.steps = nn.Parameter(torch.zeros(layers, labels, labels))  # from, to

    def loss(self, scores: torch.Tensor, labels: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """Return the negative log-likelihood of `labels`, averaged over the labels of all words in all layers.

        `scores`: (sequences, length, layers, labels); `labels`: (sequences, length, layers), any values at padding;
        `words`: (sequences, length), true at words. Each sequence has at least one word, and words come before padding.
        """
        is_word = words[:, :, None]
        labels = labels.where(is_word, 0)
        sequence = torch.arange(scores.shape[0], device=scores.device)
        layer = torch.arange(scores.shape[2], device=scores.device)

        word_scores = scores.gather(-1, labels[..., None])[..., 0] * is_word
        before, after = labels[:, :-1], labels[:, 1:]
        step_scores = self.steps[layer, before, after] * is_word[:, 1:]
        first_label = labels[:, 0]
        last_word = words.sum(1) - 1
        last_label = labels[sequence, last_word]

        path_scores = word_scores.sum(1) + step_scores.sum(1)
        path_scores = path_scores + self.first[layer, first_label]
        path_scores = path_scores + self.last[layer, last_label]
        losses = self.log_total(scores, words) - path_scores
        return losses.sum() / (words.sum() * scores.shape[2])

    def loss_of_any(self, scores: torch.Tensor, possible: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """Return the same loss for all possible label sequences together.

        As in Greenberg et al. 2018, "Marginal likelihood training of BiLSTM-CRF for biomedical named entity recognition
        from disjoint label sets". `possible`: shaped like `scores`, true at the labels that a word may have.
        """
        possible_total = self.log_total(scores.masked_fill(~possible, IMPOSSIBLE), words)
        return (self.log_total(scores, words) - possible_total).sum() / (words.sum() * scores.shape[2])

    def log_total(self, scores: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """Return the log of the sum of exp(score) over all label sequences, (sequences, layers)."""
        total = self.first + scores[:, 0]
        for position in range(1, scores.shape[1]):
            longer_total = (total[..., None] + self.steps).logsumexp(-2) + scores[:, position]
            total = longer_total.where(words[:, position, None, None], total)
        return (total + self.last).logsumexp(-1)

    def marginals(self, scores: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """Return each label's marginal probability at each word, (sequences, length, layers, labels).

        It is the gradient of log_total with respect to the word's scores; 0 at padding.
        """
        with torch.inference_mode(False), torch.enable_grad():
            # Clones, because tensors of inference mode take no gradient.
            scores, words = scores.detach().clone().requires_grad_(), words.clone()
            return torch.autograd.grad(self.log_total(scores, words).sum(), scores)[0]

    def decode(self, scores: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """Return the best label sequence (Viterbi), (sequences, length, layers); 0 at padding."""
        best = self.first + scores[:, 0]
        unchanged = torch.arange(best.shape[-1], device=best.device)
        backpointers = []
        for position in range(1, scores.shape[1]):
            best_before, pointers = (best[..., None] + self.steps).max(-2)
            is_word = words[:, position, None, None]
            backpointers.append(pointers.where(is_word, unchanged))
            best = (best_before + scores[:, position]).where(is_word, best)
        label = (best + self.last).argmax(-1)
        labels = [label]
        for pointers in reversed(backpointers):
            label = pointers.gather(-1, label[..., None])[..., 0]
            labels.append(label)
        label_sequences = torch.stack(labels[::-1], 1)
        return label_sequences.where(words[:, :, None], 0)
