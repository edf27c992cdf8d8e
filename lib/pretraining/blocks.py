"""Sequences of tokens in training order: plain blocks of packed text, or pairs of segments.

Nothing is stored for a document or a block: orders, masks and partners are computed from their numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from lib.errors import StudyError
from lib.pretraining.masking import IGNORED, Masking, mask_tokens, take_inventory
from lib.pretraining.mixing import Layout
from lib.pretraining.random_numbers import CUT, SEQUENCE, SHIFT, draw_numbers, make_keys, permute, to_share

SHORT = 0.1  # share of paired sequences with a random length (Devlin et al. 2019, section A.2)
PLACES_TOGETHER = 2**15  # tokens of the sequences prepared at once
LOOK_BACK = 64  # a random segment begins at a sentence if one begins at most so many tokens back, else at a word


@dataclass(frozen=True)
class Segments:
    """The two segments of each sequence as stretches of the text: first place and number of tokens, (sequences,)."""

    first: np.ndarray
    first_length: np.ndarray
    second: np.ndarray
    second_length: np.ndarray
    pair: np.ndarray  # 0: the second follows the first in the text; 1: it is random, or the two are swapped


class Blocks:
    """The batches of one training phase: `blocks[step]`, or `blocks[step, part, parts]` for part of its sequences.

    An item is a dict of tensors: `input_ids` (sequences, length), `positions` and `targets` (sequences, slots) as in
    masking.mask_tokens, all int64; `counts` (3,) float32, of these sequences: tokens to predict, tokens that are not
    padding, sequences. With pairs also `token_type_ids` (sequences, length) and `pair` (sequences,), int64; and if a
    sequence is not full, `attention_mask` (sequences, length), bool, false at padding. A sequence depends only on the
    seed and its number, so that a run can resume anywhere and be split over any number of processes. Every block occurs
    once an epoch, in a new order each time.
    """

    def __init__(
        self,
        layout: Layout,
        tokenizer: PreTrainedTokenizerBase,
        *,
        length: int,
        batch_size: int,
        steps: int,
        masking: Masking,
        pairs: str = "none",
        duplicates: int | None = None,
        seed: int = 0,
        span: tuple[float, float] = (0.0, 1.0),
    ):
        """`pairs`: "none", "next sentence" or "sentence order"; `duplicates`: the number of epochs after which the same
        sequences, with the same masks, come again; `span`: where this phase begins and ends in the whole training, for
        a share of masked tokens that changes with it.

        Raises StudyError if the text does not fill one sequence.
        """
        self.layout, self.text, self.inventory = layout, layout.text, take_inventory(tokenizer)
        self.length, self.batch_size, self.steps = length, batch_size, steps
        self.masking, self.pairs, self.span = masking, pairs, span
        self.duplicates, self.seed = duplicates, seed
        self.width = length - (2 if pairs == "none" else 3)
        self.ready: dict[tuple[int, int], dict] = {}  # by part and parts: batches prepared together with another
        self.last: dict[tuple[int, int], int] = {}  # the step requested last
        self.count = layout.count(self.width)
        if self.count < 1:
            raise StudyError(
                f"{self.text.name}: {len(self.text):,} tokens do not fill a sequence of {self.width}; take more text "
                "or shorter sequences"
            )

    def __len__(self) -> int:
        return self.steps

    def shape(self, step: int) -> tuple[int, int]:
        """Return the number of sequences of a step, and their length."""
        return self.batch_size, self.length

    def __getitem__(self, index: int | tuple[int, int, int]) -> dict[str, torch.Tensor]:
        step, part, parts = index if isinstance(index, tuple) else (index, 0, 1)
        if not 0 <= step < self.steps:
            raise IndexError(f"step {step} of {self.steps}")
        worker = part, parts
        batches = self.ready.get(worker, {})
        if step not in batches:
            steps = self.choose_steps(step, part, parts)
            batches = self.prepare(steps, part, parts)
            self.ready[worker] = batches
        self.last[worker] = step
        return batches.pop(step)

    def choose_steps(self, step: int, part: int, parts: int) -> Sequence[int]:
        """Return the steps to prepare together, this one first."""
        sequence_count = len(range(part, self.batch_size, parts))
        step_count = max(1, PLACES_TOGETHER // (sequence_count * self.length))
        # One of several workers gets only every n-th step, and prepares no others.
        stride = step - self.last.get((part, parts), step)
        return range(step, self.steps, stride)[:step_count] if stride > 0 else [step]

    def prepare(self, steps: Sequence[int], part: int, parts: int) -> dict[int, dict[str, torch.Tensor]]:
        """Prepare the batches of a few steps together, because for a few sequences calls cost more than their work."""
        numbers = np.stack([self.list_sequences(step, part, parts) for step in steps])
        epochs, blocks, keys = self.order(numbers.ravel())
        is_token = np.ones((len(keys), self.length), bool)
        arrays = {}
        if self.pairs == "none":
            sequences = self.fill(epochs, blocks)
        else:
            segments = self.cut(epochs, blocks, keys)
            sequences, arrays["token_type_ids"], is_token = self.join(segments)
            arrays["pair"] = segments.pair
        sequences_each = numbers.shape[1]
        shares = np.repeat([self.share_at(step) for step in steps], sequences_each)
        inputs, positions, targets = mask_tokens(sequences, keys, self.inventory, self.masking, shares)
        arrays |= {"input_ids": inputs, "positions": positions, "targets": targets}
        batches = {}
        for number, step in enumerate(steps):
            rows = slice(number * sequences_each, (number + 1) * sequences_each)
            batch = {name: array[rows] for name, array in arrays.items()}
            if not is_token[rows].all():
                batch["attention_mask"] = is_token[rows]
            predicted = (batch["targets"] != IGNORED).sum()
            batch["counts"] = np.array([predicted, is_token[rows].sum(), sequences_each], np.float32)
            batches[step] = {name: torch.from_numpy(array) for name, array in batch.items()}
        return batches

    def list_sequences(self, step: int, part: int = 0, parts: int = 1) -> np.ndarray:
        """Return the numbers of a step's sequences in training order."""
        return step * self.batch_size + np.arange(part, self.batch_size, parts)

    def share_at(self, step: int) -> float:
        """Return the share of tokens to predict at a step."""
        begin, end = self.span
        return self.masking.share_at(begin + (end - begin) * step / self.steps)

    def order(self, sequences: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the epoch, block and key of each sequence; the same three make the same sequence."""
        epochs, blocks = np.divmod(sequences, self.count)
        blocks = permute(blocks, self.count, make_keys(self.seed, epochs))
        if self.duplicates:
            epochs = epochs % self.duplicates
        return epochs, blocks, make_keys(self.seed, epochs, blocks)

    def read(self, places: np.ndarray) -> np.ndarray:
        """Return the token ids at some places. Raises StudyError for an id beyond the vocabulary."""
        ids = self.text.read(places)
        if ids.max(initial=0) >= self.inventory.size:
            raise StudyError(
                f"{self.text.name}: token {ids.max():,} is beyond the vocabulary's {self.inventory.size:,}: the file "
                "is damaged, or of another vocabulary; pack the text again"
            )
        return ids

    def fill(self, epochs: np.ndarray, blocks: np.ndarray) -> np.ndarray:
        """Return [CLS] block [SEP] as ids, int64, (sequences, length)."""
        places = self.layout.place(epochs, blocks, self.width)[:, None] + np.arange(self.width)
        sequences = np.empty((len(blocks), self.length), np.int64)
        sequences[:, 0] = self.inventory.cls
        sequences[:, 1:-1] = self.read(places)
        sequences[:, -1] = self.inventory.sep
        return sequences

    def cut(self, epochs: np.ndarray, blocks: np.ndarray, keys: np.ndarray) -> Segments:
        """Cut each sequence into segments (Devlin et al. 2019, sections 3.1 and A.2; Lan et al. 2020, section 3.1).

        A sequence is as much as fits of the document at the middle of its block: around this middle, or from an edge of
        the document that is near. It is cut at the end of a sentence if one ends within it, else between two words.
        Blocks begin elsewhere in each epoch, so that the same tokens are not always at an edge.
        """
        width = self.width
        shift = (make_keys(self.seed, SHIFT, epochs) % np.uint64(width)).astype(np.int64)
        middle = self.layout.place(epochs, blocks, width) + shift
        document, document_end = self.text.find_documents(middle)
        short_chance, size_chance, pair_chance, place_chance = to_share(draw_numbers(keys, SEQUENCE, 4)).T
        short_size = 2 + (size_chance * (width - 1)).astype(np.int64)
        goal_size = np.where(short_chance < SHORT, short_size, width)
        size = np.minimum(goal_size, document_end - document)
        begin = np.clip(middle - size // 2, document, document_end - size)

        length = self.choose_cuts(begin, size, keys)
        first, second, first_length, second_length = begin, begin + length, length, size - length

        pair = (pair_chance < 0.5).astype(np.int64)
        if self.pairs == "sentence order":
            first, second = np.where(pair, second, first), np.where(pair, first, second)
            first_length = np.where(pair, second_length, first_length)
            second_length = size - first_length
        elif pair.any():
            is_random = pair == 1
            low, high = self.layout.pool(epochs[is_random], blocks[is_random], width)
            second[is_random], second_length[is_random] = self.find_random(
                low,
                high,
                document[is_random],
                document_end[is_random],
                (goal_size - length)[is_random],
                place_chance[is_random],
            )
        return Segments(first, first_length, second, second_length, pair)

    def choose_cuts(self, begin: np.ndarray, size: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Return how many tokens of each stretch precede its cut: one of the best cuts, at random."""
        width = self.width
        places = begin[:, None] + np.arange(width)
        ids = self.read(np.minimum(places, len(self.text) - 1))
        chance = to_share(draw_numbers(keys, CUT, width - 1))
        ratings = self.rate_cuts(ids[:, :-1], ids[:, 1:]) + chance
        ratings[np.arange(1, width) >= size[:, None]] = -1
        return 1 + ratings.argmax(axis=1)

    def rate_cuts(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Rate cuts between two tokens: 2 between sentences, 1 between words, else 0."""
        sentence_cuts = self.inventory.ends[before] & self.inventory.opens[after]
        return np.where(sentence_cuts, 2.0, ~self.inventory.continues[after])

    def find_random(self, low, high, document, document_end, lengths, chance) -> tuple[np.ndarray, np.ndarray]:
        """Choose a stretch of a given length, or a whole shorter document, outside each sequence's own document.

        The stretch comes from the sequence's pool. It begins at a sentence if one begins nearby. Returns first places
        and lengths. Raises StudyError if the pool holds no other document.
        """
        places = self.draw_places(low, high, document, document_end, chance)
        other_begin, other_end = self.text.find_documents(places)
        length = np.minimum(lengths, other_end - other_begin)
        begin = np.clip(places, other_begin, other_end - length)
        return self.find_openings(begin, other_begin), length

    def draw_places(self, low, high, document, document_end, chance) -> np.ndarray:
        """Draw a place for each sequence, uniformly from its pool without its own document."""
        own_begin, own_end = np.clip([document[:, None], document_end[:, None] + 1], low, high)
        own_sizes = own_end - own_begin
        sizes = high - low - own_sizes
        sums = np.cumsum(sizes, axis=1)
        total = sums[:, -1]
        if total.min() < 1:
            raise StudyError(
                f"{self.text.name}: no second document for a random segment; take more text or larger files"
            )
        offset = (chance * total).astype(np.int64)[:, None]
        stretch = (offset >= sums).sum(axis=1, keepdims=True)
        candidates = low + offset - (sums - sizes)
        candidates += np.where(candidates >= own_begin, own_sizes, 0)
        return np.take_along_axis(candidates, stretch, axis=1)[:, 0]

    def find_openings(self, begin: np.ndarray, document: np.ndarray) -> np.ndarray:
        """Return the nearest place at or before `begin` where a sentence of its document begins, else a word."""
        distances = np.arange(LOOK_BACK + 1)
        places = begin[:, None] - distances
        ids = self.read(np.maximum(begin[:, None] - np.arange(LOOK_BACK + 2), 0))
        ratings = self.rate_cuts(ids[:, 1:], ids[:, :-1])
        ratings[places == document[:, None]] = 2
        ratings -= distances / len(distances)  # the nearest of equals wins
        ratings[places < document[:, None]] = -1
        return begin - ratings.argmax(axis=1)

    def join(self, segments: Segments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return [CLS] first [SEP] second [SEP], padded: ids, token types (int64) and what is no padding (bool).

        All (sequences, length).
        """
        inventory, columns = self.inventory, np.arange(self.length)
        middle_sep = segments.first_length[:, None] + 1
        last_sep = middle_sep + segments.second_length[:, None] + 1
        first_offset = segments.first[:, None] - 1
        second_offset = segments.second[:, None] - 1 - middle_sep
        places = np.where(columns < middle_sep, first_offset, second_offset) + columns
        special = (columns == 0) | (columns == middle_sep) | (columns >= last_sep)
        sequences = self.read(np.where(special, 0, places))
        sequences[special] = inventory.sep
        sequences[:, 0] = inventory.cls
        is_token = columns <= last_sep
        sequences[~is_token] = inventory.pad
        token_types = (columns > middle_sep) & is_token
        return sequences, token_types.astype(np.int64), is_token
