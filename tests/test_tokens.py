"""Tests of tokenized corpora on disk: what is written, what is held out, and incomplete files."""

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import each
from hypothesis import given, settings
from hypothesis import strategies as st
from small_encoders import make_wordpiece

from lib import artefacts
from lib.errors import StudyError
from lib.pretraining import tokens
from lib.study import open_study
from lib.study.vocabularies import Vocabulary

FEW = settings(max_examples=40, deadline=None, derandomize=True)
WORDS = [f"word{letter}" for letter in "abcdefghij"]
TOKENIZER = make_wordpiece(*WORDS)
SEP = TOKENIZER.sep_token_id
TEXTS = [" ".join(WORDS[i % 10] for i in range(n, n + 2 + n % 7)) for n in range(400)]


def documents(split: tokens.Tokens) -> list[str]:
    return [
        " ".join(TOKENIZER.convert_ids_to_tokens(split.ids[first : end - 1].tolist()))
        for first, end in zip(split.starts, split.starts[1:], strict=False)
    ]


def pack(folder, texts=(*TEXTS, "worda"), tokenizer=TOKENIZER, **settings) -> dict:
    """Pack texts, by default TEXTS and a text of one piece, and return the splits."""
    tokens.pack(texts, tokenizer, folder, **settings)
    return {split: tokens.open_packed(folder, split) for split in tokens.SPLITS}


def test_every_document_of_two_tokens_is_in_one_split(tmp_path):
    packed = pack(tmp_path)
    assert artefacts.read_record(tmp_path)["left out"] == 1
    assert sorted(documents(packed["train"]) + documents(packed["held_out"])) == sorted(TEXTS)
    assert 2 <= len(documents(packed["held_out"])) <= 18  # one in fifty of 400
    for split in packed.values():
        assert split.starts[0] == 0 and split.starts[-1] == len(split.ids)
        assert (np.flatnonzero(split.ids == SEP) == split.starts[1:] - 1).all()
        assert isinstance(split.ids, np.memmap) and isinstance(split.starts, np.memmap)


def test_what_is_held_out_depends_on_the_text_alone(tmp_path):
    before = set(documents(pack(tmp_path / "all")["held_out"]))
    assert set(documents(pack(tmp_path / "half", TEXTS[200:])["held_out"])) == before & set(TEXTS[200:])


def test_nothing_need_be_held_out(tmp_path):
    tokens.pack(TEXTS[:3], TOKENIZER, tmp_path / "mine", hold_out=0)
    assert documents(tokens.open_packed(tmp_path / "mine")) == TEXTS[:3]
    with pytest.raises(StudyError, match="^mine, held out: no document; the corpus is too small"):
        tokens.open_packed(tmp_path / "mine", "held_out")


def test_tokens_are_written_again_only_when_text_or_vocabulary_change(own_outputs, monkeypatch):
    """Corpus and vocabulary are registered ones whose content and tokenizer the test can change."""
    state = SimpleNamespace(content="1", tokenizer=TOKENIZER, reads=0)

    def read():
        state.reads += 1
        return (SimpleNamespace(text=text) for text in TEXTS)

    def pack() -> int:
        corpus = SimpleNamespace(key="made-up", record={"content": state.content, "bytes": 1}, documents=read)
        assert len(vocabulary.packed(corpus).ids) and vocabulary.packed(corpus, "held_out").name == "corpus 'made-up'"
        return state.reads

    monkeypatch.setattr(Vocabulary, "tokenizer", lambda self: state.tokenizer)
    vocabulary = open_study("smoke").vocabulary("pubmed-uncased")
    assert pack() == 1
    TOKENIZER(["worda", "wordb wordc"], padding=True)  # padding changes the state of the tokenizer
    assert pack() == 1
    state.content = "2"
    assert pack() == 2
    state.tokenizer = make_wordpiece(*WORDS, "more")
    assert pack() == 3


def test_a_large_vocabulary_has_wide_ids(tmp_path):
    large = make_wordpiece(*WORDS, *(f"extra{i}" for i in range(len(TOKENIZER), 2**16 + 1)))
    packed = pack(tmp_path, [*TEXTS, f"extra{2**16} extra{2**16}"] * 3, large)
    assert packed["train"].ids.dtype == np.uint32
    assert max(split.ids.max() for split in packed.values()) == 2**16


@each("file", ["train.ids", "held_out.starts"])
@each("damage", ["cut off", "missing", "too long"])
def test_an_incomplete_file_is_named(tmp_path, file, damage):
    pack(tmp_path / "packed")
    path = tmp_path / "packed" / file
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(content[:-2] if damage == "cut off" else content + b"  ")
    with pytest.raises(StudyError, match=rf"{file}: .*(missing|bytes where).*delete the folder .*packed"):
        tokens.open_packed(tmp_path / "packed", file.split(".")[0])


def test_an_interrupted_folder_is_not_opened(tmp_path):
    def texts():
        yield from TEXTS
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tokens.pack(texts(), TOKENIZER, tmp_path / "packed")
    with pytest.raises(StudyError, match="packed: no packed text in it, or one that was not finished"):
        tokens.open_packed(tmp_path / "packed")


lengths = st.lists(st.lists(st.integers(2, 9), min_size=1, max_size=6), min_size=1, max_size=3)


@FEW
@given(lengths, st.randoms(use_true_random=False))
def test_several_corpora_read_as_one(corpus_lengths, random):
    parts = []
    for k, sizes in enumerate(corpus_lengths):
        starts = np.cumsum([0, *sizes])
        parts.append(tokens.Tokens((100 * k + np.arange(starts[-1])).astype(np.uint16), starts, f"corpus {k}"))
    text = tokens.Text(parts)
    everything = np.concatenate([part.ids for part in parts])
    assert len(text) == len(everything)
    places = np.array([random.randrange(len(text)) for _ in range(20)])
    assert (text.read(places.reshape(4, 5)) == everything[places].reshape(4, 5)).all()
    edges = np.cumsum([0, *(n for sizes in corpus_lengths for n in sizes)])
    first, end = text.find_documents(places)
    for place, low, high in zip(places, first, end, strict=True):
        k = int((edges <= place).sum())
        assert (low, high) == (edges[k - 1], edges[k] - 1)
