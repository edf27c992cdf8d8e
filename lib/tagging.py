"""Tagging: sentences to windows of pieces, and predictions back to one tag a word."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional
from transformers import PreTrainedTokenizerBase

from lib import vocabularies
from lib.conll import Sentence
from lib.errors import StudyError

IGNORED = -100  # the label that cross-entropy ignores: special tokens, and all but the first piece of a word
POOL = 50  # batches whose sentences are sorted by length together


@dataclass(frozen=True)
class Window:
    """A stretch of a sentence that fits the encoder: its piece ids, where each word begins, and the words' labels."""

    sentence: int
    pieces: list[int]
    starts: list[int]
    labels: list[int]


def list_labels(sentences: Sequence[Sentence]) -> list[str]:
    """The tags in use, O first, so that a label's number does not depend on the order of the sentences."""
    tags = {tag for sentence in sentences for tag in sentence.tags}
    return ["O", *sorted(tags - {"O"})]


def make_windows(
    sentences: Sequence[Sentence], labels: list[str], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> list[Window]:
    """Cut each sentence into as few windows of at most `max_length` pieces as it takes, between words.

    Every word is in exactly one window, so no gold tag is lost to the length limit. Of a word that alone is longer
    than a window, the first pieces are kept.
    """
    numbers = {label: i for i, label in enumerate(labels)}
    pieces_of = vocabularies.pieces_of_words(tokenizer, (word for s in sentences for word in s.words))
    room = max_length - 2
    windows = []
    for index, sentence in enumerate(sentences):
        pieces, starts, tags = [], [], []
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            word_pieces = pieces_of[word][:room]
            if len(pieces) + len(word_pieces) > room:
                windows.append(close_window(index, pieces, starts, tags, tokenizer))
                pieces, starts, tags = [], [], []
            starts.append(len(pieces) + 1)
            tags.append(numbers[tag])
            pieces += word_pieces
        windows.append(close_window(index, pieces, starts, tags, tokenizer))
    return windows


def close_window(sentence: int, pieces: list[int], starts: list[int], labels: list[int], tokenizer) -> Window:
    return Window(sentence, [tokenizer.cls_token_id, *pieces, tokenizer.sep_token_id], starts, labels)


def make_batch(windows: Sequence[Window], padding: int) -> dict[str, torch.Tensor]:
    """Windows padded to the longest of them: input_ids, attention_mask and labels, each (batch, length)."""
    length = max(len(window.pieces) for window in windows)
    ids = np.full((len(windows), length), padding)
    attention = np.zeros_like(ids)
    labels = np.full_like(ids, IGNORED)
    for row, window in enumerate(windows):
        ids[row, : len(window.pieces)] = window.pieces
        attention[row, : len(window.pieces)] = 1
        labels[row, window.starts] = window.labels
    tensors = {"input_ids": ids, "attention_mask": attention, "labels": labels}
    return {name: torch.from_numpy(array) for name, array in tensors.items()}


class TaggingBatches:
    """Batches of windows of similar length; batch i depends on the seed and on i alone.

    In each epoch the windows are shuffled, sorted by length within pools of POOL batches, cut into batches, and the
    batches shuffled: little padding, and still a random order.
    """

    def __init__(self, windows: list[Window], padding: int, *, batch_size: int, epochs: int, seed: int):
        self.windows, self.padding, self.batch_size = windows, padding, batch_size
        self.plan = [batch for epoch in range(epochs) for batch in self.plan_epoch(seed, epoch)]

    def plan_epoch(self, seed: int, epoch: int) -> list[np.ndarray]:
        rng = np.random.default_rng([seed, epoch])
        order = rng.permutation(len(self.windows))
        batches = []
        for first in range(0, len(order), POOL * self.batch_size):
            pool = sorted(order[first : first + POOL * self.batch_size], key=lambda i: len(self.windows[i].pieces))
            batches += [pool[i : i + self.batch_size] for i in range(0, len(pool), self.batch_size)]
        return [batches[i] for i in rng.permutation(len(batches))]

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, key: tuple[int, int, int]) -> dict[str, torch.Tensor]:
        step, part, parts = key
        return make_batch([self.windows[i] for i in self.plan[step][part::parts]], self.padding)

    def shape(self, step: int) -> tuple[int, int]:
        """Rows of a step, and their length."""
        return len(self.plan[step]), max(len(self.windows[i].pieces) for i in self.plan[step])


def tagging_loss(model, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Mean cross-entropy over the first pieces of the words."""
    logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    return functional.cross_entropy(logits.float().flatten(0, 1), batch["labels"].flatten(), ignore_index=IGNORED)


def predict(model, windows: list[Window], sentences: int, labels: list[str], padding: int, device, batch_size=64):
    """One tag for each word of each sentence, put together from the sentence's windows."""
    order = sorted(range(len(windows)), key=lambda i: len(windows[i].pieces))
    found: dict[int, list[str]] = {}
    with torch.inference_mode(), device.autocast():
        for first in range(0, len(order), batch_size):
            chosen = order[first : first + batch_size]
            batch = make_batch([windows[i] for i in chosen], padding)
            inputs = {name: batch[name].to(device.device) for name in ("input_ids", "attention_mask")}
            best = model(**inputs).logits.argmax(-1).cpu().numpy()
            for row, i in enumerate(chosen):
                found[i] = [labels[n] for n in best[row, windows[i].starts]]
    tags: list[list[str]] = [[] for _ in range(sentences)]
    for i, window in enumerate(windows):
        tags[window.sentence] += found[i]
    return tags


def check_length(model, max_length: int, title: str) -> int:
    """The window length to use: the protocol's, or the encoder's own limit where that is lower."""
    limit = getattr(model.config, "max_position_embeddings", None) or max_length
    if getattr(model.config, "model_type", "") in ("roberta", "xlm-roberta", "camembert"):
        limit -= 2  # its positions are counted from padding_idx + 1
    length = min(max_length, limit)
    if length < 8:
        raise StudyError(f"{title}: windows of {length} pieces are too short to fine-tune on")
    return length
