"""What is put on an encoder for a task: a tagger of words, a classifier of texts, a finder of spans.

Each has `loss(batch)`, a number to minimise, and `forward(batch)`, what predictions are made of. Batches come from
lib/finetuning/examples.py, with what the head needs besides.
"""

import re

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import PreTrainedModel

from lib.errors import StudyError
from lib.modeling import bodies
from lib.modeling.crf import IMPOSSIBLE, Crf

IGNORED = -100  # the label that cross-entropy ignores
LAYER = re.compile(r"layer\w*\.(\d+)\.")  # in the name of a parameter: layer.0., layers.0., albert_layer_groups.0.
DEVIATION = 0.02  # of the first weights of a linear layer, as BERT's own are drawn
LETTERS = 20  # of a word that its encoding takes
KINDS = 383  # of letters: Latin by Unicode's numbers, 0 for none and the last for all others

Batch = dict[str, torch.Tensor]


def encode(encoder: PreTrainedModel, batch: Batch, positions: torch.Tensor | None = None) -> torch.Tensor:
    """The last hidden states at `positions` (sequences, m), or at all positions: (sequences, m, hidden).

    Of the architectures that the study pretrains, the last layer sees only those positions (lib/modeling/bodies.py).
    """
    inputs = select_inputs(encoder, batch)
    if bodies.knows(encoder):
        return bodies.encode_body(encoder, positions=positions, **inputs)
    if "attention_mask" in inputs:
        inputs["attention_mask"] = inputs["attention_mask"].long()
    hidden = encoder(**inputs).last_hidden_state
    return hidden if positions is None else bodies.gather_states(hidden, positions)


def select_inputs(encoder: PreTrainedModel, batch: Batch) -> Batch:
    """What an encoder reads of a batch; of one without types of tokens not these."""
    names = ["input_ids", "attention_mask"]
    if getattr(encoder.config, "type_vocab_size", 0) > 1:
        names.append("token_type_ids")
    return {name: batch[name] for name in names if name in batch}


def mark_tokens(batch: Batch) -> torch.Tensor:
    """True at tokens, false at padding, (sequences, length)."""
    return batch.get("attention_mask", torch.ones_like(batch["input_ids"], dtype=torch.bool))


def share_rates(model: nn.Module, head: float, crf: float, layer_decay: float) -> dict[str, float]:
    """Of each parameter of a head with its encoder, by name, what it takes times the learning rate.

    `head`: of all that stands on the encoder but a CRF, which takes `crf`. Below, the rate falls by `layer_decay` with
    each step of depth, as in ELECTRA's code (`_get_layer_lrs`): the head is at n + 2, a pooler at n + 1, the layers at
    n to 1, embeddings at 0. StudyError for a decay over layers that are not found by their names.
    """
    layers, depths = 0, {}
    for name, _ in model.encoder.named_parameters():
        if found := LAYER.search(name):
            layers = depths[name] = int(found[1]) + 1
        else:
            depths[name] = layers and layers + 1  # embeddings come before the layers, a pooler after them
    if layer_decay < 1 and not layers:
        raise StudyError(
            f"{type(model.encoder).__name__} names no layers over which the rate could fall: take layer_decay 1.0"
        )
    below = {f"encoder.{name}": layer_decay ** (layers + 2 - depth) for name, depth in depths.items()}
    above = {name: crf if name.startswith("crf.") else head for name, _ in model.named_parameters()}
    return above | below


class Recurrent(nn.Module):
    """A bidirectional LSTM of one layer over the positions that are true in `mask` (sequences, length).

    Each direction is `each` wide.
    """

    def __init__(self, width: int, each: int):
        super().__init__()
        self.lstm = nn.LSTM(width, each, batch_first=True, bidirectional=True)

    def forward(self, states: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """States of every position, (sequences, length, 2 each), and the last of each direction side by side,
        (sequences, 2 each)."""
        packed = pack_padded_sequence(states, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
        outputs, (last, _) = self.lstm(packed)
        return pad_packed_sequence(outputs, batch_first=True, total_length=states.shape[1])[0], torch.cat([*last], -1)


def linear(width: int, outputs: int) -> nn.Linear:
    """A linear layer with BERT's first weights."""
    layer = nn.Linear(width, outputs)
    nn.init.normal_(layer.weight, std=DEVIATION)
    nn.init.zeros_(layer.bias)
    return layer


class Spelling(nn.Module):
    """Words by their letters: 64 filters over 2, 3 and 4 letters each, of each filter its highest value.

    As the convolution of Ma and Hovy (2016, section 2.1), which has filters over 3 letters alone.
    """

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(KINDS + 1, 32, padding_idx=0)
        self.filters = nn.ModuleList(nn.Conv1d(32, 64, n, padding=n - 1) for n in (2, 3, 4))
        self.width = sum(each.out_channels for each in self.filters)

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        """(sequences, words, LETTERS) to (sequences, words, width)."""
        of_words = self.table(letters.flatten(0, 1)).transpose(1, 2)
        highest = [functional.relu(each(of_words)).amax(2) for each in self.filters]
        return torch.cat(highest, 1).unflatten(0, letters.shape[:2])


class Tagger(nn.Module):
    """One label for each word in each of `layers`, from the state of the word's first token (Gu et al. 2021, 2.4.2).

    `kind`: linear, biLSTM (over a sentence's words, then linear) or CRF (linear, then a CRF). `characters`: a word's
    letters are read beside its state. A batch has `positions` (sequences, words), `words`, true where there is one, for
    characters `letters`, and for the loss `labels` (sequences, words, layers).
    """

    def __init__(
        self, encoder: PreTrainedModel, layers: int, labels: int, kind: str, dropout: float, characters: bool = False
    ):
        super().__init__()
        self.encoder, self.config, self.shape = encoder, encoder.config, (layers, labels)
        self.spelling, width = None, encoder.config.hidden_size
        if characters:
            self.spelling = Spelling()
            width += self.spelling.width
        each = encoder.config.hidden_size // 2
        self.dropout, self.score = nn.Dropout(dropout), linear(2 * each if kind == "biLSTM" else width, layers * labels)
        self.recurrent = Recurrent(width, each) if kind == "biLSTM" else None
        self.crf = Crf(layers, labels) if kind == "CRF" else None

    def scores(self, batch: Batch) -> torch.Tensor:
        """Of every label, (sequences, words, layers, labels).

        With a linear layer alone the last layer computes every token: most begin a word, and gathering those costs more
        than it saves.
        """
        positions = batch["positions"]
        if self.recurrent or self.spelling:
            states = encode(self.encoder, batch, positions)
            if self.spelling:
                states = torch.cat([states, self.spelling(batch["letters"]).to(states.dtype)], -1)
            states = self.dropout(states)
            if self.recurrent:
                states = self.dropout(self.recurrent(states, batch["words"])[0])
            scores = self.score(states)
        else:
            scores = bodies.gather_states(self.score(self.dropout(encode(self.encoder, batch))), positions)
        return scores.unflatten(-1, self.shape).float()

    def loss(self, batch: Batch) -> torch.Tensor:
        """Mean over the labels of all words: cross-entropy, or the CRF's negative log-likelihood.

        With `possible` (sequences, words, layers, labels) in the batch, of any of these labels.
        """
        scores = self.scores(batch)
        if "possible" in batch:
            return self.loss_of_any(scores, batch["possible"], batch["words"])
        if self.crf:
            return self.crf.loss(scores, batch["labels"], batch["words"])
        labels = batch["labels"].where(batch["words"][:, :, None], IGNORED)
        return functional.cross_entropy(scores.flatten(0, 2), labels.flatten(), ignore_index=IGNORED)

    def loss_of_any(self, scores: torch.Tensor, possible: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """The loss where each word has one of several labels, and nobody says which."""
        if self.crf:
            return self.crf.loss_of_any(scores, possible, words)
        among = scores.masked_fill(~possible, IMPOSSIBLE)
        return (scores.logsumexp(-1) - among.logsumexp(-1))[words].mean()

    def forward(self, batch: Batch) -> torch.Tensor:
        """The numbers of the labels, (sequences, words, layers)."""
        scores = self.scores(batch)
        return self.crf.decode(scores, batch["words"]) if self.crf else scores.argmax(-1)


class Classifier(nn.Module):
    """A class, any of several labels, or a number for a whole text.

    Of each of a text's `spans`, the highest value of every dimension of the states at its positions is taken, and the
    spans side by side are the text's encoding: [CLS] is a span of one position. A state of [CLS] goes through the
    encoder's pooler where it has one, as in BERT. With biLSTM an LSTM reads all tokens, and the last states of both its
    directions are the encoding (Gu et al. 2021, 2.4.2 and Table 12, which does not say how).

    `target`: class, labels or number; the loss is cross-entropy times `weights` of the classes, cross-entropy of each
    label, or the squared error. A batch has `positions` (sequences, spans, m), `absent`, true where there is none, and
    for the loss `target`.
    """

    def __init__(
        self,
        encoder: PreTrainedModel,
        outputs: int,
        target: str,
        spans: int,
        pooled: bool,
        kind: str,
        dropout: float,
        weights: torch.Tensor | None = None,
    ):
        super().__init__()
        width = encoder.config.hidden_size
        self.encoder, self.config, self.target = encoder, encoder.config, target
        self.pooled = pooled and kind == "linear"
        self.recurrent = Recurrent(width, width // 2) if kind == "biLSTM" else None
        self.dropout = nn.Dropout(dropout)
        self.score = linear(width * (1 if self.recurrent else spans), outputs)
        self.register_buffer("weights", weights)

    def encoding(self, batch: Batch) -> torch.Tensor:
        """The encoding of each text, (sequences, width)."""
        if self.recurrent:
            states = self.dropout(encode(self.encoder, batch))
            return self.recurrent(states, mark_tokens(batch))[1]
        positions = batch["positions"]
        states = encode(self.encoder, batch, positions.flatten(1)).unflatten(1, positions.shape[1:])
        if "absent" in batch:
            states = states.masked_fill(batch["absent"][..., None], torch.finfo(states.dtype).min)
        highest = states.amax(2).flatten(1)
        return bodies.pool(self.encoder, highest) if self.pooled else highest

    def forward(self, batch: Batch) -> torch.Tensor:
        """Scores of the classes or labels, (sequences, outputs), or the numbers, (sequences,)."""
        outputs = self.score(self.dropout(self.encoding(batch))).float()
        return outputs[:, 0] if self.target == "number" else outputs

    def loss(self, batch: Batch) -> torch.Tensor:
        outputs = self(batch)
        match self.target:
            case "class":
                each = functional.cross_entropy(outputs, batch["labels"], reduction="none")
                # Not over the sum of the batch's weights, as the library has it: the rare class would then weigh most
                # where it comes with few others.
                return (each if self.weights is None else each * self.weights[batch["labels"]]).mean()
            case "labels":
                return functional.binary_cross_entropy_with_logits(outputs, batch["labels"])
            case _:
                return functional.mse_loss(outputs, batch["labels"])


class SpanFinder(nn.Module):
    """Where an answer begins and ends in a sequence, from the state of each token (Devlin et al. 2019, section 4.2).

    A batch has `readable`, true at the positions where an answer may stand and at [CLS], which stands for none, and for
    the loss `labels` (sequences, 2).
    """

    def __init__(self, encoder: PreTrainedModel):
        super().__init__()
        self.encoder, self.config = encoder, encoder.config
        self.score = linear(encoder.config.hidden_size, 2)

    def forward(self, batch: Batch) -> torch.Tensor:
        """Scores of each position as the first and the last of the answer, (sequences, length, 2)."""
        scores = self.score(encode(self.encoder, batch)).float()
        return scores.masked_fill(~batch["readable"][..., None], -1e9)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Mean of the negative log-probabilities of first and last position."""
        return -self(batch).log_softmax(1).gather(1, batch["labels"][:, None]).mean()
