"""Tests of batches: order and content of rows; a row depends on the seed and its number alone."""

import tracemalloc

import numpy as np
import pytest
import torch
from conftest import each, keep_calls
from hypothesis import given, settings
from hypothesis import strategies as st
from small_encoders import make_wordpiece

from lib.errors import StudyError
from lib.pretraining.batch_counts import measure_batches
from lib.pretraining.blocks import Blocks
from lib.pretraining.masking import IGNORED, Masking
from lib.pretraining.mixing import CorpusFiles
from lib.pretraining.random_numbers import make_keys, permute
from lib.pretraining.tokens import Text, Tokens
from lib.vocabularies import special_tokens

PIECES, SPECIAL = 6000, len(special_tokens.SPECIAL)
LENGTH = 64


def name_piece(place: int) -> str:
    """Return the token at a place of the text; no other place has it, so that a batch shows where it comes from."""
    if place % 11 == 10:
        return f"end{place}."
    return f"##more{place}" if place % 4 == 1 else f"word{place}"


TOKENIZER = make_wordpiece(*map(name_piece, range(PIECES)))
SEP, CLS, PAD = TOKENIZER.sep_token_id, TOKENIZER.cls_token_id, TOKENIZER.pad_token_id


def make_tokens(pieces: int = PIECES, shortest: int = 5) -> Tokens:
    """Return a made-up corpus. The id of a piece is its place + SPECIAL, except for [SEP]."""
    rng = np.random.default_rng(0)
    starts = np.cumsum([0, *rng.integers(shortest, 300, 2 * pieces // shortest)])
    starts = np.append(starts[starts < pieces - shortest], pieces)
    ids = np.arange(pieces) + SPECIAL
    ids[starts[1:] - 1] = SEP
    return Tokens(ids.astype(np.uint16), starts, "made-up text")


TOKENS = make_tokens()


def make(tokens=TOKENS, batch_size=8, steps=40, share=0.15, kind="whole-word", **settings):
    masking = Masking(kind, share)
    layout = CorpusFiles(Text([tokens]))
    return Blocks(layout, TOKENIZER, length=LENGTH, batch_size=batch_size, steps=steps, masking=masking, **settings)


def unmask(batch) -> np.ndarray:
    """Return the rows of a batch as they were before masking."""
    rows = batch["input_ids"].clone()
    row, slot = torch.nonzero(batch["targets"] != IGNORED, as_tuple=True)
    rows[row, batch["positions"][row, slot]] = batch["targets"][row, slot]
    return rows.numpy()


def same(one, other) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


PAIRS = ["none", "next sentence", "sentence order"]


@each("pairs", PAIRS)
def test_a_batch_depends_on_seed_and_step_alone(pairs):
    batches, used = make(pairs=pairs), make(pairs=pairs)
    for step in (5, 0, 30, 5):
        used[step]
    batch = batches[12]
    assert batch["input_ids"].shape == (8, LENGTH) and batch["positions"].shape == batch["targets"].shape == (8, 9)
    masked, tokens = (batch["targets"] != IGNORED).sum(), (batch["input_ids"] != PAD).sum()
    assert batch["counts"].tolist() == [masked, tokens, 8]
    assert ("pair" in batch) == ("token_type_ids" in batch) == (pairs != "none")
    assert same(batch, used[12])
    batches[12]["input_ids"].zero_()  # changing a returned batch changes no later one
    assert same(batches[12], used[12])
    assert not torch.equal(batch["input_ids"], make(pairs=pairs, seed=2)[12]["input_ids"])


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.sampled_from(PAIRS), st.integers(1, 8), st.integers(0, 39))
def test_the_parts_of_a_step_make_up_the_step(pairs, parts, step):
    whole = make(pairs=pairs, share=(0.1, 0.3))[step]
    batches = make(pairs=pairs, share=(0.1, 0.3))
    batches[max(0, step - 1), 0, parts]  # prepares later steps of this part
    counts = torch.zeros(3)
    for part in range(parts):
        batch = batches[step, part, parts]
        counts += batch["counts"]
        for name in batch.keys() - {"counts", "attention_mask"}:
            assert torch.equal(batch[name], whole[name][part::parts])
        rows = whole.get("attention_mask", torch.ones(8, LENGTH, dtype=torch.bool))[part::parts]
        assert "attention_mask" not in batch if rows.all() else torch.equal(batch["attention_mask"], rows)
    assert torch.equal(counts, whole["counts"])


@each(("workers", "parts"), [(1, 1), (3, 1), (3, 4)])
def test_workers_prepare_each_batch_once(monkeypatch, workers, parts):
    whole = make(pairs="next sentence")
    keys = [(step, part, parts) for step in range(len(whole)) for part in range(parts)]
    expected = [whole[key] for key in keys]
    prepared = keep_calls(monkeypatch, Blocks, "prepare", lambda _, steps, part, parts: [(s, part) for s in steps])
    for number in range(workers):  # workers take batches in turn, as in a DataLoader
        batches = make(pairs="next sentence")
        for index in range(number, len(keys), workers):
            assert same(batches[keys[index]], expected[index])
    assert sorted(sum(prepared, [])) == [key[:2] for key in keys]


def test_every_block_comes_once_an_epoch_in_another_order():
    count = PIECES // (LENGTH - 2)
    rows = np.concatenate([unmask(batch) for batch in make(batch_size=1, steps=2 * count)])
    text = np.concatenate([np.full((count, 1), CLS), TOKENS.ids[: count * (LENGTH - 2)].reshape(count, -1),
                           np.full((count, 1), SEP)], axis=1)  # fmt: skip
    epochs = [rows[:count].tolist(), rows[count:].tolist()]
    assert sorted(epochs[0]) == sorted(epochs[1]) == sorted(text.tolist())
    assert epochs[0] != epochs[1] and epochs[0] != text.tolist()


@each("pairs", PAIRS)
def test_masks_repeat_after_the_given_number_of_epochs(pairs):
    count = PIECES // (LENGTH - (2 if pairs == "none" else 3))
    repeated, fresh = (make(batch_size=1, steps=4 * count, pairs=pairs, duplicates=n) for n in (2, None))
    inputs = [[tuple(b[step]["input_ids"][0].tolist()) for step in range(4 * count)] for b in (repeated, fresh)]
    epochs = [[set(rows[count * e : count * (e + 1)]) for e in range(4)] for rows in inputs]
    assert epochs[0][0] == epochs[0][2] and epochs[0][1] == epochs[0][3] and epochs[0][0] != epochs[0][1]
    assert inputs[0][:count] != inputs[0][2 * count : 3 * count]  # the rows come in another order
    assert len(epochs[1][0] & epochs[1][2]) < 0.1 * count


def test_the_masked_share_rises_during_training():
    masking = Masking("whole-word", (0.05, 0.10, 0.15, 0.20, 0.25))
    assert [masking.share_at(step / 100) for step in (0, 19, 21, 50, 99, 100)] == [0.05, 0.05, 0.10, 0.15, 0.25, 0.25]
    batches = make(steps=20, share=(0.05, 0.25), kind="word-piece", span=(0.0, 0.8))
    shares = [batches[step]["counts"][0].item() / (8 * (LENGTH - 2)) for step in range(20)]
    assert shares == pytest.approx([0.05] * 13 + [0.25] * 7, abs=0.02)
    assert batches[0]["targets"].shape == batches[19]["targets"].shape == (8, 16)  # for the largest share


def test_permutations_hold_each_number_once_and_look_random():
    for count in (1, 2, 3, 62, 1000, 2049):
        assert sorted(permute(np.arange(count), count, make_keys(7)).tolist()) == list(range(count))
    orders = np.stack([permute(np.arange(1000), 1000, make_keys(seed)) for seed in range(100)])
    assert (orders[0] == orders[1]).sum() < 10
    assert abs(np.corrcoef(orders[:, :-1].ravel(), orders[:, 1:].ravel())[0, 1]) < 0.02
    assert np.allclose(orders.mean(axis=0), 499.5, atol=5 * 29)  # the mean of 100 has an SD of 29


def take_apart(batches):
    """Yield the places of segments A and B and the label of each row, after checking the form of the row."""
    for step in range(len(batches)):
        batch = batches[step]
        types = batch["token_type_ids"].numpy()
        padding = ~batch.get("attention_mask", torch.ones(8, LENGTH, dtype=bool)).numpy()
        for row, kind, padded, label in zip(unmask(batch), types, padding, batch["pair"].tolist(), strict=True):
            middle, last = np.flatnonzero(row == SEP)
            assert row[0] == CLS and (row[last + 1 :] == PAD).all() and PAD not in row[: last + 1]
            assert padded.tolist() == (row == PAD).tolist()
            assert kind.tolist() == [int(middle < j <= last) for j in range(LENGTH)]
            a, b = row[1:middle] - SPECIAL, row[middle + 1 : last] - SPECIAL
            assert len(a) and len(b) and (np.diff(a) == 1).all() and (np.diff(b) == 1).all()
            yield a, b, label


def document_of(place: int) -> int:
    return int(np.searchsorted(TOKENS.starts, place, "right")) - 1


def ends_sentence(place: int) -> bool:
    """Return whether a sentence ends with the piece at a place, which requires that the next piece begins a word."""
    return place % 11 == 10 and not name_piece(place + 1).startswith("##")


@each("pairs", PAIRS[1:])
def test_half_of_the_pairs_are_random_or_swapped(pairs):
    labels = []
    for a, b, label in take_apart(make(pairs=pairs, steps=200)):
        labels.append(label)
        assert document_of(a[0]) == document_of(a[-1]) and document_of(b[0]) == document_of(b[-1])
        if label and pairs == "next sentence":
            assert document_of(a[0]) != document_of(b[0])
        else:
            assert (a[0] == b[-1] + 1) if label else (b[0] == a[-1] + 1)
    assert np.mean(labels) == pytest.approx(0.5, abs=0.06)


def test_segments_begin_at_sentences_or_else_at_words():
    cuts, random_begins = [], []
    for a, b, label in take_apart(make(pairs="next sentence", steps=200)):
        random_begins += [b[0] == TOKENS.starts[document_of(b[0])] or ends_sentence(b[0] - 1)] if label else []
        if not label:
            possible = [place for place in (*a, *b[:-1]) if ends_sentence(place)]
            words = [place for place in (*a, *b[:-1]) if not name_piece(place + 1).startswith("##")]
            assert a[-1] in (possible or words or a)
            cuts += [possible.index(a[-1])] if len(possible) == 4 else []
    assert len(cuts) > 100 and (np.bincount(cuts) / len(cuts)).tolist() == pytest.approx([0.25] * 4, abs=0.1)
    assert np.mean(random_begins) == 1


@each("pairs", PAIRS[1:])
def test_a_tenth_of_the_sequences_are_short_and_the_others_full(pairs):
    tokens = make_tokens(shortest=200)  # no document is too short to fill a row
    lengths = [len(a) + len(b) for a, b, _ in take_apart(make(tokens, pairs=pairs, steps=250))]
    assert np.mean(np.array(lengths) < LENGTH - 3) == pytest.approx(0.1, abs=0.02)
    assert max(lengths) == LENGTH - 3 and min(lengths) < 10


def test_each_token_is_seen_about_equally_often():
    count = PIECES // (LENGTH - 3)
    seen = np.zeros(PIECES)
    for a, b, _ in take_apart(make(pairs="sentence order", batch_size=8, steps=20 * count // 8)):
        seen[np.concatenate([a, b])] += 1 / 20
    inside = TOKENS.ids != SEP
    assert seen[inside].mean() == pytest.approx(0.95, abs=0.05)  # because a tenth of the rows are shorter
    assert np.quantile(seen[inside], 0.02) > 0.3 and np.quantile(seen[inside], 0.98) < 1.8


def test_text_that_is_too_short_or_of_another_vocabulary_is_refused():
    with pytest.raises(StudyError, match="made-up text: 40 tokens do not fill a sequence of 62"):
        make(make_tokens(40))
    single = Tokens(TOKENS.ids[:200], np.array([0, 200]), "made-up text")
    with pytest.raises(StudyError, match="no second document"):
        make(single, pairs="next sentence")[0]
    make(single, pairs="sentence order")[0]
    ids = TOKENS.ids.copy()
    ids[1000] = len(TOKENIZER)
    batches = make(Tokens(ids, TOKENS.starts, "made-up text"))
    with pytest.raises(StudyError, match="made-up text: token 6,005 is beyond the vocabulary's 6,005"):
        [batches[step] for step in range(40)]


@each("pairs", PAIRS)
def test_memory_does_not_grow_with_the_corpus(pairs):
    large = Tokens(np.zeros(50_000_000, np.uint16), np.arange(0, 50_000_001, 100), "large")
    peaks = []
    for tokens in (TOKENS, large):
        make(tokens, pairs=pairs)[0]
        tracemalloc.start()
        make(tokens, pairs=pairs, seed=1)[0]
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


@each("pairs", PAIRS)
@each("kind", ["word-piece", "whole-word", "n-gram"])
def test_measured_shares_are_those_wanted(pairs, kind):
    rows = {row["what"]: row for row in measure_batches(make(pairs=pairs, kind=kind, steps=60), 50)}
    for row in rows.values():
        if row["wanted"] is not None and "count" not in row["what"]:
            assert row["measured"] == pytest.approx(row["wanted"], abs=0.06)
    partial = rows["words selected in part (count)"]
    assert partial["measured"] > 100 if kind == "word-piece" else partial["measured"] == partial["wanted"] == 0
    assert (rows["padding"]["measured"] > 0.02) == (pairs != "none")
    assert ("random segments of the same document (count)" in rows) == (pairs == "next sentence")


def test_a_word_too_long_to_mask_is_left_alone():
    one_word = Tokens(np.full(500, 1 + SPECIAL, np.uint16), np.array([0, 500]), "one word")
    rows = {row["what"]: row["measured"] for row in measure_batches(make(one_word), 5)}
    assert rows["tokens selected for prediction"] == 0 and np.isnan(rows["of these, replaced by [MASK]"])


def test_measuring_notices_random_segments_of_the_same_document(monkeypatch):
    batches = make(pairs="next sentence")
    monkeypatch.setattr(batches, "find_random", lambda low, high, own, end, wanted, chance: (own, wanted))
    rows = {row["what"]: row["measured"] for row in measure_batches(batches, 5)}
    assert rows["random segments of the same document (count)"] > 10
