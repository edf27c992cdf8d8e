"""Tests of masking: shares, whole words, runs of words; a row depends on its key alone."""

import numpy as np
import pytest
from conftest import each
from hypothesis import given, settings
from hypothesis import strategies as st
from small_encoders import make_wordpiece

from lib.pretraining.masking import (
    IGNORED,
    Masking,
    begin_words,
    count_to_mask,
    join_words,
    mask_tokens,
    take_inventory,
    take_units,
)
from lib.pretraining.random_numbers import draw_numbers, make_keys, to_share

FEW = settings(max_examples=60, deadline=None, derandomize=True)
TOKENIZER = make_wordpiece(*(f"word{i}" for i in range(60)), *(f"##end{i}" for i in range(40)))
INVENTORY = take_inventory(TOKENIZER)
LENGTH = 64
KINDS = ("word-piece", "whole-word", "n-gram")


def make_rows(count: int, continued: float = 0.4) -> np.ndarray:
    """Return rows of words of one or a few pieces, with a [SEP] in the middle and occasional unknown pieces."""
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((count, LENGTH)) < continued, rng.integers(65, 105, (count, LENGTH)),
                    rng.integers(5, 65, (count, LENGTH)))  # fmt: skip
    rows[:, 0], rows[:, -1], rows[:, 20] = INVENTORY.cls, INVENTORY.sep, INVENTORY.sep
    rows[rng.random(rows.shape) < 0.01] = TOKENIZER.unk_token_id
    return rows


def mask(rows, kind="whole-word", limit=None):
    keys = make_keys(0, np.arange(len(rows)))
    return mask_tokens(rows, keys, INVENTORY, Masking(kind, 0.15, limit), np.full(len(rows), 0.15))


@each("kind", KINDS)
def test_shares_of_masked_replaced_and_kept_tokens(kind):
    rows = make_rows(3000)
    rows[::3, 60:] = INVENTORY.pad
    inputs, positions, targets = mask(rows, kind)
    assert positions.shape == targets.shape == (3000, Masking(kind, 0.15).slots(LENGTH))
    used = targets != IGNORED
    assert (used[:, :-1] >= used[:, 1:]).all() and not used.all() and (positions[~used] == 0).all()
    assert (np.diff(positions, axis=1)[used[:, 1:]] > 0).all()
    row, slot = np.nonzero(used)
    position, target = positions[row, slot], targets[row, slot]
    assert len(row) / (~INVENTORY.special[rows]).sum() == pytest.approx(0.15, abs=0.002)
    assert (target == rows[row, position]).all() and not INVENTORY.special[target].any()
    input_tokens = inputs[row, position]
    assert (input_tokens == INVENTORY.mask).mean() == pytest.approx(0.8, abs=0.01)
    assert (input_tokens == target).mean() == pytest.approx(0.1 + 0.1 / len(INVENTORY.ordinary), abs=0.01)
    untouched = np.ones(rows.shape, bool)
    untouched[row, position] = False
    assert (inputs[untouched] == rows[untouched]).all()
    replaced = input_tokens[(input_tokens != target) & (input_tokens != INVENTORY.mask)]
    assert set(replaced) == set(INVENTORY.ordinary)  # any ordinary token may replace another


@each("kind", ["whole-word", "n-gram"])
def test_whole_words_are_never_split(kind):
    rows = make_rows(500)
    _, positions, targets = mask(rows, kind)
    masked = np.zeros(rows.shape, bool)
    masked[np.nonzero(targets != IGNORED)[0], positions[targets != IGNORED]] = True
    checked = 0
    for row, masked_row in zip(rows, masked, strict=True):
        for position in range(1, LENGTH):
            if INVENTORY.continues[row[position]] and not INVENTORY.special[row[position - 1]]:
                assert masked_row[position] == masked_row[position - 1]
                checked += masked_row[position]
    assert checked > 500  # many words had several pieces


@FEW
@given(st.integers(0, 2**32), st.integers(0, 30))
def test_units_are_taken_in_random_order_until_no_other_fits(seed, room):
    """Taking all units at once gives the same as taking them one by one."""
    sizes = np.random.default_rng(seed).integers(1, 6, (1, 30))
    sizes[0, 20 + seed % 10 :] = 0  # the row has fewer units
    random = draw_numbers(make_keys(seed), 0, 30)
    taken = set()
    for unit in np.argsort(random[0]):
        if 0 < sizes[0, unit] <= room:
            taken.add(int(unit))
            room -= sizes[0, unit]
    assert set(np.flatnonzero(take_units(sizes, np.array([room + sizes[0, [*taken]].sum()]), random)[0])) == taken


@each("kind", KINDS)
def test_the_number_to_mask_is_reached_and_never_exceeds_the_limit(kind):
    rows = make_rows(500, continued=0.0)
    expected = count_to_mask((~INVENTORY.special[rows]).sum(axis=1), 0.15, None)
    counts = (mask(rows, kind)[2] != IGNORED).sum(axis=1)
    assert (counts == expected).mean() == 1 if kind != "n-gram" else (counts == expected).mean() > 0.9
    limited = mask(make_rows(100), kind, limit=5)[2] != IGNORED
    assert limited.shape[1] == limited.sum(axis=1).max() == 5
    assert Masking(kind, 0.15, 20).slots(128) == 19
    assert Masking(kind, 0.15, 20).slots(512) == 20


def test_a_row_of_one_token_and_a_row_of_padding():
    rows = np.full((2, LENGTH), INVENTORY.pad)
    rows[0, 1] = 7
    _, positions, targets = mask(rows)
    assert (targets[0, 0], positions[0, 0]) == (7, 1)
    assert (targets[0, 1:] == IGNORED).all() and (targets[1] == IGNORED).all()


def test_runs_of_words_have_alberts_lengths():
    rows = make_rows(2000)
    maskable = ~INVENTORY.special[rows]
    words = begin_words(rows, maskable, INVENTORY)
    runs = join_words(words, maskable, make_keys(3, np.arange(len(rows))))
    assert not (runs & ~words).any()
    lengths = []
    for row in range(len(rows)):
        segment = maskable[row, 1:20]
        if segment.all():
            words_of_runs = np.split(words[row, 1:20], np.flatnonzero(runs[row, 1:20]))[1:-1]
            lengths += [int(run.sum()) for run in words_of_runs[:4]]  # not the last, which the segment cuts off
    share = np.bincount(lengths, minlength=4) / len(lengths)
    assert share[1:] == pytest.approx([6 / 11, 3 / 11, 2 / 11], abs=0.02) and len(share) == 4
    assert runs[:, 21][maskable[:, 21]].all()  # a run does not span the [SEP] before


def test_random_numbers_are_even_and_independent():
    keys = make_keys(1, np.arange(400), 5)
    shares = to_share(draw_numbers(keys, 2, 400))
    assert shares.min() >= 0 and shares.max() < 1
    counts = np.bincount((shares * 16).astype(int).ravel(), minlength=16)
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 45  # chi-square of 15 degrees of freedom, p = 0.0001
    for other in (shares[:, 1:], shares[1:], to_share(draw_numbers(keys, 3, 400))):  # the next draw, key and stream
        cut = shares[: other.shape[0], : other.shape[1]]
        assert abs(np.corrcoef(cut.ravel(), other.ravel())[0, 1]) < 0.012
    assert (draw_numbers(keys, 2, 7) == draw_numbers(keys, 2, 400)[:, :7]).all()


def test_which_tokens_begin_and_end_sentences():
    tokenizer = make_wordpiece(".", "?", "The", "##the", "5", "(", ",", "et")
    inventory = take_inventory(tokenizer)
    assert tokenizer.convert_ids_to_tokens(np.flatnonzero(inventory.ends)) == [".", "?"]
    assert tokenizer.convert_ids_to_tokens(np.flatnonzero(inventory.opens)) == ["The", "(", "et"]
