"""Masking of token sequences: single tokens, whole words, or runs of words.

All sequences of a batch are masked at once. Each has its own random numbers, computed from its key, so that they do not
depend on the sequences beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from transformers import PreTrainedTokenizerBase

from lib.pretraining.random_numbers import FATES, RUNS, UNITS, draw_numbers, to_share
from lib.vocabularies.tokenization import MARKS
from lib.vocabularies.words import continuation_flags

IGNORED = -100  # the target that cross-entropy ignores
RUN_SHARES = np.array([6, 3, 2]) / 11  # runs of one, two and three words, as 1/n (Lan et al. 2020, section 4.1)
SENTENCE_ENDS = (".", "!", "?", "。", "！", "？")
BRACKETS = ("(", "[", '"', "'", "“", "‘", "「", "『")  # brackets and quotation marks that may begin a sentence

UNIT_BITS = np.uint64(0xFFFF)  # the bits that hold a unit's number in its sequence


@dataclass(frozen=True)
class Masking:
    """How many tokens of a sequence are chosen, in which units, and what replaces them."""

    kind: str  # "word-piece", "whole-word" or "n-gram" (of whole words)
    share: float | Sequence[float]  # several: for equal parts of the training, in turn (Gu et al. 2021, section 2.1.3)
    limit: int | None = None  # the most tokens chosen in a sequence
    masked: float = 0.8  # share of the chosen tokens (Devlin et al. 2019, section 3.1)
    replaced: float = 0.1  # by a random token; the rest stay as they are

    @property
    def shares(self) -> Sequence[float]:
        return self.share if isinstance(self.share, Sequence) else (self.share,)

    def share_at(self, done: float) -> float:
        """Return the share of tokens to choose when a fraction `done` of the training is over."""
        return self.shares[min(int(done * len(self.shares)), len(self.shares) - 1)]

    def slots(self, length: int) -> int:
        """Return the most tokens ever chosen in a sequence of this length."""
        return int(count_to_mask(np.array([length - 2]), max(self.shares), self.limit)[0])


def count_to_mask(tokens: np.ndarray, share: float | np.ndarray, limit: int | None) -> np.ndarray:
    """Return how many of `tokens` to choose: the share, at least one, at most the limit.

    BERT's and ELECTRA's code takes the share of all tokens, [CLS] and [SEP] included: sometimes one token more.
    """
    count = np.maximum(1, np.rint(share * tokens)).astype(np.int64)
    return count if limit is None else np.minimum(count, limit)


@dataclass(frozen=True)
class Inventory:
    """What masking and cutting need to know about a vocabulary; arrays have one entry per token."""

    size: int
    special: np.ndarray  # bool: never masked, and never a replacement
    continues: np.ndarray  # bool: continues a word
    ends: np.ndarray  # bool: may end a sentence
    opens: np.ndarray  # bool: may begin a sentence
    ordinary: np.ndarray  # ids of all tokens that are not special
    cls: int
    sep: int
    mask: int
    pad: int


def take_inventory(tokenizer: PreTrainedTokenizerBase) -> Inventory:
    """Return the Inventory of a tokenizer's tokens.

    A sentence begins with a letter, a bracket or a quotation mark, so that no number is cut at its decimal point.
    """
    size = len(tokenizer)
    special = np.zeros(size, bool)
    special[tokenizer.all_special_ids] = True
    continues = np.array(continuation_flags(tokenizer))
    texts = [MARKS.sub("", token) for token in tokenizer.convert_ids_to_tokens(range(size))]
    return Inventory(
        size=size,
        special=special,
        continues=continues,
        ends=np.array([text.endswith(SENTENCE_ENDS) for text in texts]) & ~special,
        opens=np.array([text[:1].isalpha() or text.startswith(BRACKETS) for text in texts]) & ~(special | continues),
        ordinary=np.flatnonzero(~special),
        cls=tokenizer.cls_token_id,
        sep=tokenizer.sep_token_id,
        mask=tokenizer.mask_token_id,
        pad=tokenizer.pad_token_id,
    )


def mask_tokens(
    sequences: np.ndarray, keys: np.ndarray, inventory: Inventory, masking: Masking, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose tokens, mask most, replace some by a random token, and leave the rest (Devlin et al. 2019, section 3.1).

    `sequences` (sequences, length) int64; `keys` and `shares` (sequences,). Returns the sequences as the model sees
    them, and the positions of the chosen tokens in ascending order with their original ids: (sequences, slots) int64,
    with 0 and IGNORED in unused slots.
    """
    chosen = choose_tokens(sequences, keys, inventory, masking, shares)
    sequence, position = np.nonzero(chosen)
    original = sequences[sequence, position]
    slot = np.cumsum(chosen, axis=1)[sequence, position] - 1
    slots = masking.slots(sequences.shape[1])
    positions = np.zeros((len(sequences), slots), np.int64)
    targets = np.full((len(sequences), slots), IGNORED, np.int64)
    positions[sequence, slot] = position
    targets[sequence, slot] = original
    chances = to_share(draw_numbers(keys, FATES, 2 * slots))
    fate, index = chances[sequence, slot], chances[sequence, slots + slot] * len(inventory.ordinary)
    replacement = inventory.ordinary[index.astype(np.int64)]
    inputs = sequences.copy()
    kept_or_replaced = np.where(fate < masking.masked + masking.replaced, replacement, original)
    inputs[sequence, position] = np.where(fate < masking.masked, inventory.mask, kept_or_replaced)
    return inputs, positions, targets


def choose_tokens(
    sequences: np.ndarray, keys: np.ndarray, inventory: Inventory, masking: Masking, shares: np.ndarray
) -> np.ndarray:
    """Choose tokens, (sequences, length) bool: units in random order, each whole or not at all.

    A unit that would exceed the number to mask is skipped, so that in the end no remaining unit would fit.
    """
    maskable = ~inventory.special[sequences]
    unit_starts = maskable if masking.kind == "word-piece" else begin_words(sequences, maskable, inventory)
    if masking.kind == "n-gram":
        unit_starts = join_words(unit_starts, maskable, keys)
    number_to_mask = count_to_mask(maskable.sum(axis=1), shares, masking.limit)
    unit_of_token = np.cumsum(unit_starts, axis=1) - 1  # a special token has that of the token before
    global_unit = np.arange(len(sequences))[:, None] * sequences.shape[1] + unit_of_token
    sizes = np.bincount(global_unit[maskable], minlength=sequences.size).reshape(sequences.shape)
    unit_count = max(1, int(unit_of_token[:, -1].max()) + 1)
    taken = take_units(sizes[:, :unit_count], number_to_mask, draw_numbers(keys, UNITS, unit_count))
    return np.take_along_axis(taken, np.maximum(unit_of_token, 0), axis=1) & maskable


def begin_words(sequences: np.ndarray, maskable: np.ndarray, inventory: Inventory) -> np.ndarray:
    """Mark the first tokens of words, (sequences, length) bool; a partial word at a sequence's edge counts as one."""
    word_starts = maskable.copy()
    word_starts[:, 1:] &= ~(inventory.continues[sequences[:, 1:]] & maskable[:, :-1])
    return word_starts


def join_words(begins: np.ndarray, maskable: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Mark the first tokens of runs of one to three words, drawn by RUN_SHARES; no run spans a special token."""
    sequences, length = begins.shape
    chances = to_share(draw_numbers(keys, RUNS, length))
    run_lengths = 1 + np.searchsorted(np.cumsum(RUN_SHARES)[:-1], chances, "right")
    run_ends = np.minimum(np.cumsum(run_lengths, axis=1), length)
    starts_run = np.zeros((sequences, length + 1), bool)
    starts_run[:, 0] = True
    np.put_along_axis(starts_run, run_ends, True, axis=1)
    word_numbers = np.maximum(np.cumsum(begins, axis=1) - 1, 0)
    after_special = np.ones_like(begins)
    after_special[:, 1:] = ~maskable[:, :-1]
    return begins & (np.take_along_axis(starts_run, word_numbers, axis=1) | after_special)


def take_units(sizes: np.ndarray, to_mask: np.ndarray, random: np.ndarray) -> np.ndarray:
    """Take units in random order until the number of tokens to mask is reached; (sequences, units) bool.

    `sizes` (sequences, units): tokens of each unit, 0 if a sequence has no such unit; `to_mask` (sequences,).
    """
    # The lowest bits hold the unit's number, so that sorting the numbers sorts the units.
    order = np.sort((random & ~UNIT_BITS) | np.arange(sizes.shape[1], dtype=np.uint64), axis=1)
    order = (order & UNIT_BITS).astype(np.int64)
    too_large = np.int64(2**31)
    ordered_sizes = np.take_along_axis(sizes, order, axis=1)
    remaining = np.where(ordered_sizes > 0, ordered_sizes, too_large)
    taken = np.zeros(sizes.shape, bool)
    room = to_mask.copy()
    open_rows = np.arange(len(sizes))
    while len(open_rows):
        open_sizes = remaining[open_rows]
        fits = open_sizes <= room[open_rows, None]
        # Take the units that fit, up to the first that no longer fits: as if taken one by one until one is skipped.
        fits &= np.cumsum(np.where(fits, open_sizes, 0), axis=1) <= room[open_rows, None]
        taken[open_rows] |= fits
        room[open_rows] -= np.where(fits, open_sizes, 0).sum(axis=1)
        remaining[open_rows] = np.where(fits, too_large, open_sizes)
        open_rows = open_rows[fits.any(axis=1) & (room[open_rows] > 0)]
    result = np.zeros_like(taken)
    np.put_along_axis(result, order, taken, axis=1)
    return result
