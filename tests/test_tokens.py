"""A corpus as pieces on disk: what is written, what is held out, and files that are not whole."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertTokenizer

from lib.errors import StudyError
from lib.pretraining import tokens
from lib.study import paths
from lib.study.study import Study
from lib.vocabularies.loading import SPECIAL

FEW = settings(max_examples=40, deadline=None, derandomize=True)
WORDS = [f"word{letter}" for letter in "abcdefghij"]
TOKENIZER = BertTokenizer(
    vocab={piece: i for i, piece in enumerate([*SPECIAL, *WORDS])}, do_lower_case=False
)
SEP = TOKENIZER.sep_token_id
TEXTS = [" ".join(WORDS[i % 10] for i in range(n, n + 2 + n % 7)) for n in range(400)]


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A corpus of TEXTS and a text of one piece; a test may change its content and the vocabulary."""
    state = SimpleNamespace(texts=[*TEXTS, "worda"], content="1", tokenizer=TOKENIZER, reads=0)

    def read():
        state.reads += 1
        return (SimpleNamespace(text=text) for text in state.texts)

    monkeypatch.setattr(paths, "output", lambda scale, *parts: tmp_path.joinpath(*parts))
    monkeypatch.setattr(Study, "corpus", lambda *_: SimpleNamespace(
        record={"content": state.content, "bytes": 1}, documents=read))  # fmt: skip
    monkeypatch.setattr(Study, "vocabulary", lambda *_: SimpleNamespace(tokenizer=lambda: state.tokenizer))
    return state


def documents(split: tokens.Tokens) -> list[str]:
    return [
        " ".join(TOKENIZER.convert_ids_to_tokens(split.ids[first : end - 1].tolist()))
        for first, end in zip(split.starts, split.starts[1:], strict=False)
    ]


def test_every_document_of_two_pieces_is_in_one_split(study):
    packed = tokens.pack("made-up", "plain", "smoke")
    assert sorted(documents(packed["train"]) + documents(packed["held_out"])) == sorted(TEXTS)
    assert 2 <= len(documents(packed["held_out"])) <= 18  # one in fifty of 400
    for split in packed.values():
        assert split.starts[0] == 0 and split.starts[-1] == len(split.ids)
        assert (np.flatnonzero(split.ids == SEP) == split.starts[1:] - 1).all()
        assert isinstance(split.ids, np.memmap) and isinstance(split.starts, np.memmap)


def test_what_is_held_out_depends_on_the_text_alone(study):
    before = set(documents(tokens.pack("made-up", "plain", "smoke")["held_out"]))
    study.texts, study.content = TEXTS[200:], "2"
    assert set(documents(tokens.pack("made-up", "plain", "smoke")["held_out"])) == before & set(TEXTS[200:])


def test_pieces_are_written_again_only_when_text_or_vocabulary_change(study):
    tokens.pack("made-up", "plain", "smoke")
    TOKENIZER(["worda", "wordb wordc"], padding=True)  # leaves a mark in the tokenizer
    tokens.pack("made-up", "plain", "smoke")
    assert study.reads == 1
    study.content = "2"
    tokens.pack("made-up", "plain", "smoke")
    assert study.reads == 2
    study.tokenizer = BertTokenizer(vocab=TOKENIZER.get_vocab() | {"more": len(TOKENIZER)}, do_lower_case=False)
    tokens.pack("made-up", "plain", "smoke")
    assert study.reads == 3


def test_a_large_vocabulary_has_wide_ids(study, tmp_path):
    more = {f"extra{i}": i for i in range(len(TOKENIZER), 2**16 + 1)}
    study.tokenizer = BertTokenizer(vocab=TOKENIZER.get_vocab() | more, do_lower_case=False)
    study.texts = [*TEXTS, f"extra{2**16} extra{2**16}"] * 3
    packed = tokens.pack("made-up", "plain", "smoke")
    assert packed["train"].ids.dtype == np.uint32
    assert max(split.ids.max() for split in packed.values()) == 2**16


@pytest.mark.parametrize("file", ["train.ids", "train.starts", "held_out.ids"])
@pytest.mark.parametrize("damage", ["cut off", "missing", "too long"])
def test_a_file_that_is_not_whole_is_named(study, tmp_path, file, damage):
    tokens.pack("made-up", "plain", "smoke")
    path = tmp_path / "tokens" / "made-up--plain" / file
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(content[:-2] if damage == "cut off" else content + b"  ")
    with pytest.raises(StudyError, match=rf"{file}: .*(missing|bytes where).*delete the folder .*made-up--plain"):
        tokens.pack("made-up", "plain", "smoke")
    assert study.reads == 1


def test_a_corpus_without_held_out_documents_is_too_small(study):
    study.texts = [text for text in TEXTS if tokens.hash_text(text) % tokens.HELD_OUT]
    with pytest.raises(StudyError, match="corpus 'made-up', held out: no document"):
        tokens.pack("made-up", "plain", "smoke")


def test_a_piece_beyond_the_vocabulary_is_an_error():
    tokens.check_range(np.array([[0, 9]]), 10, "train")
    tokens.check_range(np.array([], dtype=np.int64), 10, "train")
    with pytest.raises(StudyError, match="train: piece 10 is beyond the vocabulary's 10"):
        tokens.check_range(np.array([[0, 10]]), 10, "train")


lengths = st.lists(st.lists(st.integers(2, 9), min_size=1, max_size=6), min_size=1, max_size=3)


@FEW
@given(lengths, st.randoms(use_true_random=False))
def test_several_corpora_read_as_one(corpus_lengths, random):
    parts = []
    for k, documents in enumerate(corpus_lengths):
        starts = np.cumsum([0, *documents])
        parts.append(tokens.Tokens((100 * k + np.arange(starts[-1])).astype(np.uint16), starts, f"corpus {k}"))
    text = tokens.Text(parts)
    everything = np.concatenate([part.ids for part in parts])
    assert len(text) == len(everything)
    places = np.array([random.randrange(len(text)) for _ in range(20)])
    assert (text.read(places.reshape(4, 5)) == everything[places].reshape(4, 5)).all()
    edges = np.cumsum([0, *(n for documents in corpus_lengths for n in documents)])
    first, end = text.find_documents(places)
    for place, low, high in zip(places, first, end, strict=True):
        k = int((edges <= place).sum())
        assert (low, high) == (edges[k - 1], edges[k] - 1)
