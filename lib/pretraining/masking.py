"""What is hidden of a row of pieces: single pieces, whole words, or runs of words.

All rows of a batch are done at once. Every row has random numbers of its own, computed from its key: they do not
depend on the rows beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from transformers import PreTrainedTokenizerBase

from lib.pretraining.random_numbers import FATES, RUNS, UNITS, draw, to_share
from lib.vocabularies.loading import MARKS
from lib.vocabularies.words import continuation_flags

UNASKED = -100  # the target that cross-entropy ignores
RUN_SHARES = np.array([6, 3, 2]) / 11  # of runs of one, two and three words: as 1/n (Lan et al. 2020, section 4.1)
SENTENCE_ENDS = (".", "!", "?", "。", "！", "？")
BRACKETS = ("(", "[", '"', "'", "“", "‘", "「", "『")  # and quotation marks: a sentence may begin with one

UNIT_BITS = np.uint64(0xFFFF)  # the number of a unit in its row


@dataclass(frozen=True)
class Masking:
    """Which pieces of a row are chosen, how many, and what becomes of them."""

    kind: str  # "word-piece", "whole-word" or "n-gram" (of whole words)
    share: float | Sequence[float]  # several: of equal parts of the training (Gu et al. 2021, section 2.1.3)
    limit: int | None = None  # at most so many pieces of a row
    hidden: float = 0.8  # of the chosen pieces (Devlin et al. 2019, section 3.1)
    replaced: float = 0.1  # by a random piece; the rest stay as they are

    @property
    def shares(self) -> Sequence[float]:
        return self.share if isinstance(self.share, Sequence) else (self.share,)

    def share_at(self, done: float) -> float:
        """The share of pieces when that much of the training is done, from 0 to 1."""
        return self.shares[min(int(done * len(self.shares)), len(self.shares) - 1)]

    def slots(self, length: int) -> int:
        """The most pieces that are chosen of a row of that length at any time."""
        return int(count_wanted(np.array([length - 2]), max(self.shares), self.limit)[0])


def count_wanted(pieces: np.ndarray, share: float | np.ndarray, limit: int | None) -> np.ndarray:
    """How many of so many pieces are to be chosen: the share, at least one, at most the limit."""
    wanted = np.maximum(1, np.rint(share * pieces)).astype(np.int64)
    return wanted if limit is None else np.minimum(wanted, limit)


@dataclass(frozen=True)
class Inventory:
    """What masking and cutting need to know of a vocabulary; arrays have an entry a piece."""

    size: int
    special: np.ndarray  # bool: never hidden, nor put in another's place
    continues: np.ndarray  # bool: goes on with the word before
    ends: np.ndarray  # bool: may end a sentence
    opens: np.ndarray  # bool: may begin one
    ordinary: np.ndarray  # ids of all that are not special
    cls: int
    sep: int
    mask: int
    pad: int


def take_inventory(tokenizer: PreTrainedTokenizerBase) -> Inventory:
    """The Inventory of a tokenizer's pieces.

    A sentence begins with a letter, a bracket or a quotation mark, so that no number is cut at its point.
    """
    size = len(tokenizer)
    special = np.zeros(size, bool)
    special[tokenizer.all_special_ids] = True
    continues = np.array(continuation_flags(tokenizer))
    texts = [MARKS.sub("", piece) for piece in tokenizer.convert_ids_to_tokens(range(size))]
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


def hide(
    rows: np.ndarray, keys: np.ndarray, inventory: Inventory, masking: Masking, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose pieces, hide most, replace some by a random piece, and leave the rest (Devlin et al. 2019, section 3.1).

    `rows` (rows, length) int64; `keys` and `shares` (rows,). Returns the rows as the model sees them, and for the
    chosen pieces their places in ascending order and what they were: (rows, slots) int64, with 0 and UNASKED in
    unused slots.
    """
    chosen = choose(rows, keys, inventory, masking, shares)
    row, place = np.nonzero(chosen)
    slot = np.cumsum(chosen, axis=1)[row, place] - 1
    slots = masking.slots(rows.shape[1])
    positions = np.zeros((len(rows), slots), np.int64)
    targets = np.full((len(rows), slots), UNASKED, np.int64)
    positions[row, slot] = place
    targets[row, slot] = rows[row, place]
    chance = to_share(draw(keys, FATES, 2 * slots))
    fate, number = chance[row, slot], chance[row, slots + slot] * len(inventory.ordinary)
    replacement = inventory.ordinary[number.astype(np.int64)]
    inputs = rows.copy()
    inputs[row, place] = np.where(
        fate < masking.hidden,
        inventory.mask,
        np.where(fate < masking.hidden + masking.replaced, replacement, rows[row, place]),
    )
    return inputs, positions, targets


def choose(
    rows: np.ndarray, keys: np.ndarray, inventory: Inventory, masking: Masking, shares: np.ndarray
) -> np.ndarray:
    """Which pieces are chosen, (rows, length) bool: units in random order, each whole or not at all.

    A unit that would exceed the wanted number is passed over, so that in the end none that is left would fit.
    """
    hideable = ~inventory.special[rows]
    begins = hideable if masking.kind == "word-piece" else begin_words(rows, hideable, inventory)
    if masking.kind == "n-gram":
        begins = join_words(begins, hideable, keys)
    wanted = count_wanted(hideable.sum(axis=1), shares, masking.limit)
    unit = np.cumsum(begins, axis=1) - 1  # of each piece; a special piece has that of the piece before
    number = np.arange(len(rows))[:, None] * rows.shape[1] + unit
    sizes = np.bincount(number[hideable], minlength=rows.size).reshape(rows.shape)
    units = max(1, int(unit[:, -1].max()) + 1)
    taken = take_units(sizes[:, :units], wanted, draw(keys, UNITS, units))
    return np.take_along_axis(taken, np.maximum(unit, 0), axis=1) & hideable


def begin_words(rows: np.ndarray, hideable: np.ndarray, inventory: Inventory) -> np.ndarray:
    """The first pieces of words, (rows, length) bool; what the row holds of a word at its edges counts as a word."""
    begins = hideable.copy()
    begins[:, 1:] &= ~(inventory.continues[rows[:, 1:]] & hideable[:, :-1])
    return begins


def join_words(begins: np.ndarray, hideable: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """The first pieces of runs of one to three words, as RUN_SHARES says; no run spans a special piece."""
    rows, length = begins.shape
    lengths = 1 + np.searchsorted(np.cumsum(RUN_SHARES)[:-1], to_share(draw(keys, RUNS, length)), "right")
    first_words = np.zeros((rows, length + 1), bool)
    first_words[:, 0] = True
    np.put_along_axis(first_words, np.minimum(np.cumsum(lengths, axis=1), length), True, axis=1)
    word = np.maximum(np.cumsum(begins, axis=1) - 1, 0)
    alone = np.ones_like(begins)
    alone[:, 1:] = ~hideable[:, :-1]
    return begins & (np.take_along_axis(first_words, word, axis=1) | alone)


def take_units(sizes: np.ndarray, wanted: np.ndarray, random: np.ndarray) -> np.ndarray:
    """Take units in random order until the wanted number of pieces is reached; (rows, units) bool.

    `sizes` (rows, units): pieces of each, 0 where a row has no such unit; `wanted` (rows,).
    """
    # The number of the unit in the lowest bits, so that sorting the numbers sorts the units.
    order = np.sort((random & ~UNIT_BITS) | np.arange(sizes.shape[1], dtype=np.uint64), axis=1)
    order = (order & UNIT_BITS).astype(np.int64)
    never = np.int64(2**31)
    sizes = np.take_along_axis(sizes, order, axis=1)
    left = np.where(sizes > 0, sizes, never)
    taken = np.zeros(sizes.shape, bool)
    room = wanted.copy()
    open_rows = np.arange(len(sizes))
    while len(open_rows):
        sizes = left[open_rows]
        fits = sizes <= room[open_rows, None]
        # Of those that fit, as many as fit together: what one after the other would take until one is passed over.
        fits &= np.cumsum(np.where(fits, sizes, 0), axis=1) <= room[open_rows, None]
        taken[open_rows] |= fits
        room[open_rows] -= np.where(fits, sizes, 0).sum(axis=1)
        left[open_rows] = np.where(fits, never, sizes)
        open_rows = open_rows[fits.any(axis=1) & (room[open_rows] > 0)]
    result = np.zeros_like(taken)
    np.put_along_axis(result, order, taken, axis=1)
    return result
