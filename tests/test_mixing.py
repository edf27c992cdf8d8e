"""Tests of mixing core and satellite: shares, repeats and partners, with both methods."""

from collections import Counter

import numpy as np
import pytest
from conftest import each
from hypothesis import given, settings
from hypothesis import strategies as st
from notebook_code import definitions
from small_encoders import make_wordpiece

from lib.pretraining import mixing
from lib.pretraining.blocks import Blocks
from lib.pretraining.masking import Masking
from lib.pretraining.mixing import CorpusFiles
from lib.pretraining.tokens import Text, Tokens

FEW = settings(max_examples=40, deadline=None, derandomize=True)
TOKENIZER = make_wordpiece(*(f"word{i}" for i in range(50)), ".")
LENGTH, WIDTH = 32, 29


def make_tokens(pieces: int, document: int, name: str) -> Tokens:
    """Return documents of equal length, the last one cut off."""
    ids = np.random.default_rng(0).integers(5, len(TOKENIZER), pieces).astype(np.uint16)
    starts = np.unique([*range(0, pieces - 2, document), pieces])
    ids[starts[1:] - 1] = TOKENIZER.sep_token_id
    return Tokens(ids, starts, name)


CORE, SATELLITE = make_tokens(3_000, 60, "core"), make_tokens(30_000, 100, "satellite")


def arrange(method, core=(CORE,), satellites=(SATELLITE,), file_tokens=2_000):
    return mixing.arrange(method, core, satellites, seed=1, file_tokens=file_tokens)


def place_all(layout, epochs: int, width: int = WIDTH) -> np.ndarray:
    """Return the places of all blocks, of shape (epochs, blocks)."""
    blocks = np.arange(layout.count(width))
    return np.stack([layout.place(np.full(len(blocks), epoch), blocks, width) for epoch in range(epochs)])


def cut(layout, rows: int, duplicates: int | None = None):
    batches = Blocks(layout, TOKENIZER, length=LENGTH, batch_size=rows, steps=1, masking=Masking("word-piece", 0.15),
                     pairs="next sentence", duplicates=duplicates)  # fmt: skip
    return batches.cut(*batches.order(batches.list_sequences(0)))


@each(("method", "share"), [("simultaneous", 0.5), ("split files", 1 / 11)])
def test_core_and_satellite_have_equal_shares_or_those_of_their_sizes(method, share):
    layout = arrange(method, core=(make_tokens(1_000, 60, "core"), make_tokens(2_000, 60, "more")))
    assert (place_all(layout, 3) < 3_000).mean() == pytest.approx(share, abs=0.001)
    segments = cut(layout, 20_000)
    for side, label in ((segments.first, 0), (segments.second, 1)):
        assert (side[segments.pair == label] < 3_000).mean() == pytest.approx(share, abs=0.02 * share + 0.01)


@FEW
@given(st.integers(40, 3_000), st.integers(40, 3_000), st.integers(60, 3_000), st.integers(4, 40))
def test_chunks_lie_within_their_corpus_and_the_satellite_comes_once_an_epoch(core, satellite, file_tokens, width):
    layout = arrange("simultaneous", [make_tokens(core, 30, "core")], [make_tokens(satellite, 30, "satellite")],
                     file_tokens)  # fmt: skip
    size, cores, satellites = layout.chunks(width)
    assert size >= 1 and size * cores <= core // width and size * satellites <= satellite // width
    assert 2 * size * width <= max(file_tokens, 2 * width)
    places = place_all(layout, 2, width)
    assert (places[:, :] >= 0).all() and places.max() + width <= core + satellite
    for epoch in places:
        in_core, in_satellite = epoch[epoch < core], epoch[epoch >= core]
        assert len(in_core) == len(in_satellite) and (in_core + width <= core).all()
        assert len(set(in_satellite)) == len(in_satellite)
    blocks = np.arange(layout.count(width))
    low, high = layout.pool(np.zeros_like(blocks), blocks, width)
    assert ((low <= places[0][:, None]) & (places[0][:, None] < high)).any(axis=1).all()
    assert (high[:, 0] <= core).all() and (low[:, 1] >= core).all() and (high[:, 1] <= core + satellite).all()


def test_chunks_of_the_core_come_equally_often_with_new_partners():
    layout = arrange("simultaneous")
    size, cores, satellites = layout.chunks(WIDTH)
    assert (size, cores, satellites) == (25, 4, 41)
    files, core_chunks = np.arange(satellites), []
    for epoch in range(8):
        core, _ = layout.find_chunks(np.full(satellites, epoch), files, WIDTH)
        core_chunks.append(core // (size * WIDTH))
    repeats = np.concatenate(core_chunks).reshape(-1, cores)
    assert (np.sort(repeats, axis=1) == np.arange(cores)).all()  # each comes once before any comes again
    assert len({tuple(order) for order in repeats.tolist()}) > 10
    assert all(len(set(partners)) > 1 for partners in np.array(core_chunks).T)  # each satellite file meets several


def test_no_text_is_left_out_in_every_epoch():
    layout = arrange("simultaneous", [make_tokens(WIDTH * 50, 60, "core")], [make_tokens(WIDTH * 109, 60, "satellite")],
                     WIDTH * 80)  # fmt: skip
    assert layout.chunks(WIDTH) == (25, 2, 4)
    satellite = place_all(layout, 60) // WIDTH - 50
    assert set(satellite[satellite >= 0].tolist()) == set(range(109))


def test_random_segments_of_split_files_come_from_the_same_file():
    layout = arrange("split files")
    assert layout.files == 16
    segments = cut(layout, 5_000)
    chosen = segments.pair == 1
    in_core = zip((segments.first[chosen] < 3_000).tolist(), (segments.second[chosen] < 3_000).tolist(), strict=True)
    assert len(set(in_core)) == 4  # core and satellite meet
    files = [np.where(place < 3_000, place / 3_000, (place - 3_000) / 30_000) * layout.files
            for place in (segments.first[chosen], segments.second[chosen])]  # fmt: skip
    assert np.abs(np.floor(files[0]) - np.floor(files[1])).max() <= 1  # segments may begin a little before their file
    assert (np.floor(files[0]) == np.floor(files[1])).mean() > 0.8


def test_corpus_files_leave_out_no_block_of_either_side():
    layout = CorpusFiles(Text([make_tokens(1_000, 60, "first"), make_tokens(2_000, 60, "second")]), (1_000,), 3)
    blocks = np.arange(1_000 // WIDTH + 2_000 // WIDTH)
    assert layout.count(WIDTH) == len(blocks)
    epochs = np.zeros_like(blocks)
    expected = [*range(0, 1_000 - WIDTH + 1, WIDTH), *range(1_000, 3_000 - WIDTH + 1, WIDTH)]
    assert layout.place(epochs, blocks, WIDTH).tolist() == expected
    low, high = layout.pool(epochs, blocks, WIDTH)
    assert low[0].tolist() == [0, 1_000] and high[0].tolist() == [333, 1_666]
    assert low[-1].tolist() == [666, 2_333] and high[-1].tolist() == [1_000, 3_000]


def test_the_pages_counts_equal_those_made_one_by_one():
    layout, rows = arrange("simultaneous"), 6_000  # more than are cut at a time
    page = definitions("24_simultaneous_pretraining", "KINDS", "TOGETHER")
    counts = page.count_mixture(layout, page.cut_sequences(layout, TOKENIZER, rows, LENGTH, 2), 3_000)
    segments = cut(layout, rows, duplicates=2)
    pieces, pairs = np.zeros(2), set()
    starts = np.concatenate([CORE.starts[:-1], 3_000 + SATELLITE.starts])
    for a, n, b, m, label in zip(segments.first, segments.first_length, segments.second, segments.second_length,
                                 segments.pair, strict=True):  # fmt: skip
        pieces[int(a >= 3_000)] += n
        pieces[int(b >= 3_000)] += m
        if label:
            pairs.add(tuple(int((starts <= place).sum()) for place in (a, b)))
    assert counts["core share"] == pytest.approx(pieces[0] / pieces.sum())
    assert counts["core seen"] == pytest.approx(pieces[0] / 3_000)
    assert counts["satellite seen"] == pytest.approx(pieces[1] / 30_000)
    assert counts["random pairs"] == segments.pair.sum() and counts["distinct pairs"] == len(pairs)
    core_documents = len(CORE.starts) - 1
    kinds = Counter(sum(document > core_documents for document in pair) for pair in pairs)
    assert [counts[kind] for kind in page.KINDS] == [kinds[0], kinds[1], kinds[2]]
