"""Task heads on an encoder: a tagger of words, a classifier of texts, a finder of answer spans.

Each has `loss(batch)`, the number to minimize, and `forward(batch)`, from which predictions are made. Batches come from
lib/finetuning/examples.py, with further tensors that the head needs.
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
# In the name of a parameter: layer.0., layers.0., albert_layer_groups.0., T5's block.0., in which are sublayers, XLM's
# attentions.0. and ffns.0., and Funnel's blocks.0.1., the second layer of the first block.
LAYER = re.compile(r"(?:layer\w*|block|attentions|ffns)\.(\d+)\.|blocks\.(\d+)\.(\d+)\.")
DEVIATION = 0.02  # standard deviation of a linear layer's first weights, as in BERT
LETTERS = 20  # maximum letters of a word that are encoded
KINDS = 383  # highest letter number: Unicode code points of Latin, 0 for none and the last for all others

Batch = dict[str, torch.Tensor]


def encode(encoder: PreTrainedModel, batch: Batch, positions: torch.Tensor | None = None) -> torch.Tensor:
    """Return the last hidden states at `positions` (sequences, m), or at all positions: (sequences, m, hidden).

    For the architectures that the study pretrains, the last layer is computed only there (lib/modeling/bodies.py).
    """
    inputs = select_inputs(encoder, batch)
    if bodies.knows(encoder):
        return bodies.encode_body(encoder, positions=positions, **inputs)
    if "attention_mask" in inputs:
        inputs["attention_mask"] = inputs["attention_mask"].long()
    hidden = encoder(**inputs).last_hidden_state
    return hidden if positions is None else bodies.gather_states(hidden, positions)


def select_inputs(encoder: PreTrainedModel, batch: Batch) -> Batch:
    """Return the tensors of a batch that an encoder takes, without token types if it has none."""
    names = ["input_ids", "attention_mask"]
    if getattr(encoder.config, "type_vocab_size", 0) > 1:
        names.append("token_type_ids")
    return {name: batch[name] for name in names if name in batch}


def mark_tokens(batch: Batch) -> torch.Tensor:
    """Return a mask that is true at tokens and false at padding, (sequences, length)."""
    return batch.get("attention_mask", torch.ones_like(batch["input_ids"], dtype=torch.bool))


def share_rates(model: nn.Module, head: float, crf: float, layer_decay: float) -> dict[str, float]:
    """Return each parameter's factor on the learning rate, by name, for a head with its encoder.

    `head`: the factor of all parameters above the encoder but a CRF's, which have `crf`. In the encoder the rate falls
    by `layer_decay` with each step of depth, as in ELECTRA's code (`_get_layer_lrs`): the head is at n + 2, a pooler at
    n + 1, the layers at n to 1, embeddings at 0. Raises StudyError if there is a decay and no layer can be recognized
    by name.
    """
    layer_depths, depths = {}, {}  # layers are counted in order, because Funnel's decoder begins again at 0
    for name, _ in model.encoder.named_parameters():
        if match := LAYER.search(name):
            depths[name] = layer_depths.setdefault(match.groups(), len(layer_depths) + 1)
        else:  # embeddings come before the layers, and a pooler after them
            depths[name] = len(layer_depths) + 1 if layer_depths else 0
    layers = len(layer_depths)
    if layer_decay < 1 and not layers:
        raise StudyError(
            f"{type(model.encoder).__name__} names no layers over which the rate could fall: take layer_decay 1.0"
        )
    encoder_shares = {f"encoder.{name}": layer_decay ** (layers + 2 - depth) for name, depth in depths.items()}
    head_shares = {name: crf if name.startswith("crf.") else head for name, _ in model.named_parameters()}
    return head_shares | encoder_shares


class Recurrent(nn.Module):
    """A one-layer bidirectional LSTM over the positions that are true in `mask` (sequences, length).

    `each`: the width of each direction.
    """

    def __init__(self, width: int, each: int):
        super().__init__()
        self.lstm = nn.LSTM(width, each, batch_first=True, bidirectional=True)

    def forward(self, states: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the states at all positions, and the last states of both directions concatenated.

        Shapes: (sequences, length, 2 each) and (sequences, 2 each).
        """
        packed = pack_padded_sequence(states, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
        outputs, (last, _) = self.lstm(packed)
        return pad_packed_sequence(outputs, batch_first=True, total_length=states.shape[1])[0], torch.cat([*last], -1)


def linear(width: int, outputs: int) -> nn.Linear:
    """Create a linear layer initialized as in BERT."""
    layer = nn.Linear(width, outputs)
    nn.init.normal_(layer.weight, std=DEVIATION)
    nn.init.zeros_(layer.bias)
    return layer


class Spelling(nn.Module):
    """A convolution over the letters of words: 64 filters each over 2, 3 and 4 letters, with max-pooling.

    Like that of Ma and Hovy (2016, section 2.1), which has filters over 3 letters only.
    """

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(KINDS + 1, 32, padding_idx=0)
        self.filters = nn.ModuleList(nn.Conv1d(32, 64, n, padding=n - 1) for n in (2, 3, 4))
        self.width = sum(convolution.out_channels for convolution in self.filters)

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        """Map letters (sequences, words, LETTERS) to encodings (sequences, words, width)."""
        letter_vectors = self.table(letters.flatten(0, 1)).transpose(1, 2)
        highest = [functional.relu(convolution(letter_vectors)).amax(2) for convolution in self.filters]
        return torch.cat(highest, 1).unflatten(0, letters.shape[:2])


class Tagger(nn.Module):
    """A tagger: one label per word in each of `layers`, from the word's first token (Gu et al. 2021, 2.4.2).

    `kind`: linear, biLSTM (over a sentence's words, then linear) or CRF (linear, then a CRF). `characters`: also encode
    a word's letters. A batch has `positions` (sequences, words), `words` (true at words, false at padding), with
    `characters` also `letters`, and for the loss `labels` (sequences, words, layers).
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
        half = encoder.config.hidden_size // 2
        self.dropout, self.score = nn.Dropout(dropout), linear(2 * half if kind == "biLSTM" else width, layers * labels)
        self.recurrent = Recurrent(width, half) if kind == "biLSTM" else None
        self.crf = Crf(layers, labels) if kind == "CRF" else None

    def scores(self, batch: Batch) -> torch.Tensor:
        """Return the score of every label, (sequences, words, layers, labels).

        With a linear head alone the encoder's last layer computes all tokens, because most begin a word, and gathering
        those costs more than it saves.
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
        """Return cross-entropy, or the CRF's negative log-likelihood, averaged over the labels of all words.

        With `possible` (sequences, words, layers, labels) in the batch, any of these labels counts as right.
        """
        scores = self.scores(batch)
        if "possible" in batch:
            return self.loss_of_any(scores, batch["possible"], batch["words"])
        if self.crf:
            return self.crf.loss(scores, batch["labels"], batch["words"])
        labels = batch["labels"].where(batch["words"][:, :, None], IGNORED)
        return functional.cross_entropy(scores.flatten(0, 2), labels.flatten(), ignore_index=IGNORED)

    def loss_of_any(self, scores: torch.Tensor, possible: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """Return the loss for words whose label is known only to be one of several."""
        if self.crf:
            return self.crf.loss_of_any(scores, possible, words)
        possible_scores = scores.masked_fill(~possible, IMPOSSIBLE)
        return (scores.logsumexp(-1) - possible_scores.logsumexp(-1))[words].mean()

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return the numbers of the predicted labels, (sequences, words, layers)."""
        scores = self.scores(batch)
        return self.crf.decode(scores, batch["words"]) if self.crf else scores.argmax(-1)


class Classifier(nn.Module):
    """A classifier of whole texts: predicts a class, any of several labels, or a number.

    The states in each of a text's `spans` are max-pooled over positions, and the results concatenated to the text's
    encoding. A single span is [CLS]'s, whose state goes through the encoder's pooler if it has one, as in BERT. With
    `kind` biLSTM an LSTM reads all tokens, and the last states of both directions are the encoding (Gu et al. 2021,
    2.4.2 and Table 12, which does not say how); any other kind is linear, because a CRF is of words.

    `target`: class, labels or number. The loss is cross-entropy times the `weights` of the classes, cross-entropy of
    each label, or squared error. A batch has `positions` (sequences, spans, m), `absent` if some are padding (true
    there), and for the loss `labels`.
    """

    def __init__(
        self,
        encoder: PreTrainedModel,
        outputs: int,
        target: str,
        spans: int,
        kind: str,
        dropout: float,
        weights: torch.Tensor | None = None,
    ):
        super().__init__()
        width = encoder.config.hidden_size
        self.encoder, self.config, self.target = encoder, encoder.config, target
        self.pooled = spans == 1
        self.recurrent = Recurrent(width, width // 2) if kind == "biLSTM" else None
        self.dropout = nn.Dropout(dropout)
        self.score = linear(width * (1 if self.recurrent else spans), outputs)
        self.register_buffer("weights", weights, persistent=False)  # of the training set, not of the model

    def encoding(self, batch: Batch) -> torch.Tensor:
        """Return the encoding of each text, (sequences, width)."""
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
        """Return the scores of classes or labels, (sequences, outputs), or the numbers, (sequences,)."""
        outputs = self.score(self.dropout(self.encoding(batch))).float()
        return outputs[:, 0] if self.target == "number" else outputs

    def loss(self, batch: Batch) -> torch.Tensor:
        outputs = self(batch)
        match self.target:
            case "class":
                losses = functional.cross_entropy(outputs, batch["labels"], reduction="none")
                # Not divided by the sum of the batch's weights, as in the library, because the weight of a rare class
                # would then depend on the other classes in its batch.
                return (losses if self.weights is None else losses * self.weights[batch["labels"]]).mean()
            case "labels":
                return functional.binary_cross_entropy_with_logits(outputs, batch["labels"])
            case _:
                return functional.mse_loss(outputs, batch["labels"])


class SpanFinder(nn.Module):
    """A finder of an answer's first and last token in a sequence (Devlin et al. 2019, section 4.2).

    A batch has `readable`, true at positions where an answer may be and at [CLS], which means no answer, and for the
    loss `labels` (sequences, 2).
    """

    def __init__(self, encoder: PreTrainedModel):
        super().__init__()
        self.encoder, self.config = encoder, encoder.config
        self.score = linear(encoder.config.hidden_size, 2)

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return each position's scores as the first and as the last of the answer, (sequences, length, 2)."""
        scores = self.score(encode(self.encoder, batch)).float()
        return scores.masked_fill(~batch["readable"][..., None], -1e9)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the mean negative log-probability of the first and last position."""
        return -self(batch).log_softmax(1).gather(1, batch["labels"][:, None]).mean()
