"""Tests of batches: order and content of rows; a row depends on the seed and its number alone."""

import tracemalloc

import numpy as np
import pytest
import torch
from conftest import each
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader
from transformers import BertTokenizer

from lib.errors import StudyError
from lib.pretraining.batch_counts import measure_batches
from lib.pretraining.blocks import Blocks
from lib.pretraining.masking import IGNORED, Masking
from lib.pretraining.mixing import CorpusFiles
from lib.pretraining.random_numbers import make_keys, permute
from lib.pretraining.tokens import Text, Tokens
from lib.vocabularies import tokenization

PIECES, SPECIAL = 6000, len(tokenization.SPECIAL)
LENGTH = 64


def name_piece(place: int) -> str:
    """Return the piece at a place of the text; no other place has it, so that a batch shows where it comes from."""
    if place % 11 == 10:
        return f"end{place}."
    return f"##more{place}" if place % 4 == 1 else f"word{place}"


TOKENIZER = BertTokenizer(
    vocab={p: i for i, p in enumerate([*tokenization.SPECIAL, *map(name_piece, range(PIECES))])}, do_lower_case=False
)
SEP, CLS, PAD = TOKENIZER.sep_token_id, TOKENIZER.cls_token_id, TOKENIZER.pad_token_id


def make_tokens(pieces: int = PIECES, shortest: int = 5, longest: int = 300, first: int = 0) -> Tokens:
    """Return a made-up corpus. The id of a piece is its place + `first` + SPECIAL, except for [SEP]."""
    rng = np.random.default_rng(0)
    starts = np.cumsum([0, *rng.integers(shortest, longest, 2 * pieces // shortest)])
    starts = np.append(starts[starts < pieces - shortest], pieces)
    ids = np.arange(first, first + pieces) + SPECIAL
    ids[starts[1:] - 1] = SEP
    return Tokens(ids.astype(np.uint16), starts, "made-up text")


TOKENS = make_tokens()


def make(tokens=TOKENS, length=LENGTH, batch_size=8, steps=40, share=0.15, limit=None, kind="whole-word", **settings):
    masking = Masking(kind, share, limit)
    layout = tokens if isinstance(tokens, CorpusFiles) else CorpusFiles(Text([tokens]))
    return Blocks(layout, TOKENIZER, length=length, batch_size=batch_size, steps=steps, masking=masking, **settings)


def unmask(batch) -> np.ndarray:
    """Return the rows of a batch as they were before masking."""
    rows = batch["input_ids"].clone()
    row, slot = torch.nonzero(batch["targets"] != IGNORED, as_tuple=True)
    rows[row, batch["positions"][row, slot]] = batch["targets"][row, slot]
    return rows.numpy()


def rows_of(batches) -> np.ndarray:
    return np.concatenate([unmask(batches[step]) for step in range(len(batches))])


def same(one, other) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


PAIRS = ["none", "next sentence", "sentence order"]


@each("pairs", PAIRS)
def test_the_form_of_a_batch(pairs):
    batches = make(pairs=pairs)
    batch = batches[3]
    assert batch["input_ids"].shape == (8, LENGTH) and batch["positions"].shape == batch["targets"].shape == (8, 9)
    masked, tokens = (batch["targets"] != IGNORED).sum(), (batch["input_ids"] != PAD).sum()
    assert batch["counts"].tolist() == [masked, tokens, 8]
    assert ("pair" in batch) == ("token_type_ids" in batch) == (pairs != "none")
    with pytest.raises(IndexError):
        batches[len(batches)]


@each("pairs", PAIRS)
def test_a_batch_depends_on_seed_and_step_alone(pairs):
    batches, used = make(pairs=pairs), make(pairs=pairs)
    for step in (5, 0, 30, 5):
        used[step]
    assert same(batches[12], used[12]) and same(batches[12], batches[12])
    batches[12]["input_ids"].zero_()  # changing a returned batch changes no later one
    assert same(batches[12], used[12])
    assert not torch.equal(batches[12]["input_ids"], make(pairs=pairs, seed=2)[12]["input_ids"])


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.sampled_from(PAIRS), st.integers(1, 8), st.integers(0, 39), st.booleans())
def test_parts_make_up_the_step(pairs, parts, step, in_order):
    whole = make(pairs=pairs, share=(0.1, 0.3))[step]
    batches = make(pairs=pairs, share=(0.1, 0.3))
    for before in range(step - 2 if in_order else step, step):
        if before >= 0:
            batches[before, 0, parts]
    counts = torch.zeros(3)
    for part in range(parts):
        batch = batches[step, part, parts]
        counts += batch["counts"]
        for name in batch.keys() - {"counts", "attention_mask"}:
            assert torch.equal(batch[name], whole[name][part::parts])
        rows = whole.get("attention_mask", torch.ones(8, LENGTH, dtype=torch.bool))[part::parts]
        assert "attention_mask" not in batch if rows.all() else torch.equal(batch["attention_mask"], rows)
    assert torch.equal(counts, whole["counts"])


@each("pairs", PAIRS)
@each("workers", [1, 3])
@each("parts", [1, 4])
def test_workers_prepare_every_batch_once_and_the_same(monkeypatch, pairs, workers, parts):
    whole, prepared, prepare = make(pairs=pairs), [], Blocks.prepare

    def count(blocks, steps, part, parts):
        prepared.extend((step, part) for step in steps)
        return prepare(blocks, steps, part, parts)

    keys = [(step, part, parts) for step in range(len(whole)) for part in range(parts)]
    expected = [whole[key] for key in keys]
    monkeypatch.setattr(Blocks, "prepare", count)
    for number in range(workers):  # workers take batches in turn, as in a DataLoader
        worker_batches = make(pairs=pairs)
        for index in range(number, len(keys), workers):
            assert same(worker_batches[keys[index]], expected[index])
    assert sorted(prepared) == [key[:2] for key in keys]


def test_a_loader_with_workers_gives_the_same_batches_in_the_same_order():
    whole, keys = make(), [(step, 0, 1) for step in range(40)]
    loaded = DataLoader(make(), sampler=keys, batch_size=None, num_workers=3)
    assert all(same(batch, whole[step]) for step, batch in enumerate(loaded))


def test_every_block_comes_once_an_epoch_in_another_order():
    count = PIECES // (LENGTH - 2)
    rows = rows_of(make(batch_size=1, steps=2 * count))
    text = np.concatenate([np.full((count, 1), CLS), TOKENS.ids[: count * (LENGTH - 2)].reshape(count, -1),
                           np.full((count, 1), SEP)], axis=1)  # fmt: skip
    epochs = [rows[:count].tolist(), rows[count:].tolist()]
    assert sorted(epochs[0]) == sorted(epochs[1]) == sorted(text.tolist())
    assert epochs[0] != epochs[1] and epochs[0] != text.tolist()


@each("pairs", PAIRS)
def test_masks_come_again_after_so_many_epochs(pairs):
    count = PIECES // (LENGTH - (2 if pairs == "none" else 3))
    repeated, fresh = (make(batch_size=1, steps=4 * count, pairs=pairs, duplicates=n) for n in (2, None))
    inputs = [[tuple(b[step]["input_ids"][0].tolist()) for step in range(4 * count)] for b in (repeated, fresh)]
    epochs = [[set(rows[count * e : count * (e + 1)]) for e in range(4)] for rows in inputs]
    assert epochs[0][0] == epochs[0][2] and epochs[0][1] == epochs[0][3] and epochs[0][0] != epochs[0][1]
    assert inputs[0][:count] != inputs[0][2 * count : 3 * count]  # the rows come in another order
    assert len(epochs[1][0] & epochs[1][2]) < 0.1 * count


def test_more_is_asked_as_the_training_goes_on():
    batches = make(steps=20, share=(0.05, 0.25), kind="word-piece")
    rates = [batches[step]["counts"][0].item() / (8 * (LENGTH - 2)) for step in range(20)]
    assert np.mean(rates[:10]) == pytest.approx(0.05, abs=0.01) and np.mean(rates[10:]) == pytest.approx(0.25, abs=0.01)
    last = make(steps=20, share=(0.05, 0.25), kind="word-piece", span=(0.75, 1.0))
    assert last[0]["counts"][0] / (8 * (LENGTH - 2)) == pytest.approx(0.25, abs=0.02)
    assert batches[0]["targets"].shape == batches[19]["targets"].shape == (8, 16)


@each("count", [1, 2, 3, 62, 1000, 2049])
def test_an_order_holds_every_number_once(count):
    assert sorted(permute(np.arange(count), count, make_keys(7)).tolist()) == list(range(count))


def test_orders_differ_by_key_and_look_random():
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
def test_half_of_the_pairs_follow_and_the_others_are_of_another_document_or_exchanged(pairs):
    labels = []
    for a, b, label in take_apart(make(pairs=pairs, steps=200)):
        labels.append(label)
        assert document_of(a[0]) == document_of(a[-1]) and document_of(b[0]) == document_of(b[-1])
        if label and pairs == "next sentence":
            assert document_of(a[0]) != document_of(b[0])
        else:
            assert (a[0] == b[-1] + 1) if label else (b[0] == a[-1] + 1)
    assert np.mean(labels) == pytest.approx(0.5, abs=0.06)


def test_pairs_are_cut_between_sentences_else_between_words():
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
def test_a_tenth_of_the_rows_is_short_and_the_others_are_full(pairs):
    tokens = make_tokens(shortest=200)  # no document is too short to fill a row
    lengths = [len(a) + len(b) for a, b, _ in take_apart(make(tokens, pairs=pairs, steps=250))]
    assert np.mean(np.array(lengths) < LENGTH - 3) == pytest.approx(0.1, abs=0.02)
    assert max(lengths) == LENGTH - 3 and min(lengths) < 10


def test_every_piece_is_seen_about_equally_often():
    count = PIECES // (LENGTH - 3)
    seen = np.zeros(PIECES)
    for a, b, _ in take_apart(make(pairs="sentence order", batch_size=8, steps=20 * count // 8)):
        seen[np.concatenate([a, b])] += 1 / 20
    inside = TOKENS.ids != SEP
    assert seen[inside].mean() == pytest.approx(0.95, abs=0.05)  # because a tenth of the rows are shorter
    assert np.quantile(seen[inside], 0.02) > 0.3 and np.quantile(seen[inside], 0.98) < 1.8


def test_no_text_is_lost_between_sides():
    first, second = make_tokens(1000), make_tokens(2000, first=1000)
    layout = CorpusFiles(Text([first, second]), (1000,), 3)
    width = LENGTH - 2
    assert layout.count(width) == 1000 // width + 2000 // width
    places = layout.place(np.zeros(48, np.int64), np.arange(layout.count(width)), width)
    assert places.tolist() == [*range(0, 1000 - width + 1, width), *range(1000, 3000 - width + 1, width)]
    low, high = layout.pool(np.zeros(48, np.int64), np.arange(layout.count(width)), width)
    assert low[0].tolist() == [0, 1000] and high[0].tolist() == [333, 1666]
    assert low[-1].tolist() == [666, 2333] and high[-1].tolist() == [1000, 3000]
    assert (low[:, 0] <= places).tolist()[:16] == [True] * 16


def test_too_little_text_for_a_row_or_a_random_partner_is_an_error():
    with pytest.raises(StudyError, match="made-up text: 40 tokens do not fill a sequence of 62"):
        make(make_tokens(40))
    single = Tokens(TOKENS.ids[:200], np.array([0, 200]), "made-up text")
    with pytest.raises(StudyError, match="no second document"):
        make(single, pairs="next sentence")[0]
    make(single, pairs="sentence order")[0]


@each("pairs", PAIRS)
def test_a_piece_beyond_the_vocabulary_is_an_error(pairs):
    ids = TOKENS.ids.copy()
    ids[1000] = len(TOKENIZER)
    batches = make(Tokens(ids, TOKENS.starts, "made-up text"), pairs=pairs, steps=40)
    with pytest.raises(StudyError, match="made-up text: token 6,005 is beyond the vocabulary's 6,005"):
        [batches[step] for step in range(40)]


@each("pairs", PAIRS)
def test_memory_does_not_grow_with_the_corpus(pairs, tmp_path):
    documents, size = 500_000, 400
    starts = np.memmap(tmp_path / "starts", np.int64, "w+", shape=documents + 1)
    starts[:] = np.arange(documents + 1) * size
    with open(tmp_path / "ids", "wb") as file:
        file.truncate(2 * documents * size)  # 400 MB of [PAD], none of it on disk
    large = Tokens(np.memmap(tmp_path / "ids", np.uint16, "r"), starts, "large")
    peaks = []
    for tokens in (TOKENS, large):
        batches = make(tokens, pairs=pairs)
        batches[0]
        batches = make(tokens, pairs=pairs, seed=1)
        tracemalloc.start()
        batches[0]
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


@each("pairs", PAIRS)
@each("kind", ["word-piece", "whole-word", "n-gram"])
def test_what_batches_are_like_is_measured(pairs, kind):
    rows = {row["what"]: row for row in measure_batches(make(pairs=pairs, kind=kind, steps=60), 50)}
    for row in rows.values():
        if row["wanted"] is not None and "count" not in row["what"]:
            assert row["measured"] == pytest.approx(row["wanted"], abs=0.06)
    partial = rows["words asked for in part (count)"]
    assert partial["measured"] > 100 if kind == "word-piece" else partial["measured"] == partial["wanted"] == 0
    assert (rows["padding"]["measured"] > 0.02) == (pairs != "none")
    assert ("random segments of the same document (count)" in rows) == (pairs == "next sentence")


def test_words_too_long_to_be_masked_are_counted_as_none():
    long = Tokens(np.full(500, 1 + SPECIAL, np.uint16), np.array([0, 500]), "one word")
    rows = {row["what"]: row["measured"] for row in measure_batches(make(long), 5)}
    assert rows["pieces asked for"] == 0 and np.isnan(rows["of these, hidden"])


def test_measuring_would_notice_a_random_segment_of_the_same_document(monkeypatch):
    batches = make(pairs="next sentence")
    monkeypatch.setattr(batches, "find_random", lambda low, high, own, end, wanted, chance: (own, wanted))
    rows = {row["what"]: row["measured"] for row in measure_batches(batches, 5)}
    assert rows["random segments of the same document (count)"] > 10
