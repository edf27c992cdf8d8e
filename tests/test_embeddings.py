"""Tests of token vectors: similar for tokens that occur together, reproducible, and scaled as initial embeddings."""

from unittest import mock

import numpy as np
import pytest
from conftest import run_python
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.errors import StudyError
from lib.pretraining import embeddings
from lib.pretraining.tokens import Tokens

SEPARATOR = 3
ALL = 10**9  # tokens
DOCUMENTS = st.lists(st.lists(st.integers(0, 19), min_size=1, max_size=12), min_size=1, max_size=20)


def pack(documents: list[list[int]]) -> Tokens:
    """Return token ids and document starts, as a corpus stores them."""
    starts = np.cumsum([0, *map(len, documents)]).astype(np.int64)
    return Tokens(np.array([piece for document in documents for piece in document], np.uint16), starts, "made-up text")


def write_text(seed: int = 0, documents: int = 300, first: int = 10) -> Tokens:
    """Generate documents of two kinds: with tokens 10 to 19 or with tokens 20 to 29; `first` moves both ranges."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 2, documents)
    return pack([[*rng.integers(first, first + 10, 40) + 10 * kind, SEPARATOR] for kind in kinds])


def train(text: Tokens | None = None, vocabulary_size: int = 32, **settings) -> np.ndarray:
    return embeddings.make_vectors([text or write_text()], vocabulary_size, 16, **settings)


def read_all(*texts: Tokens, limit: int = ALL) -> list[list[int]]:
    return [ids.tolist() for ids in embeddings.read_token_documents(texts, limit)]


@given(DOCUMENTS, st.integers(1, 300), st.integers(0, 20))
@settings(max_examples=50, deadline=None)
def test_a_limit_takes_whole_documents_evenly_spread_over_all_corpora(texts, limit, first_corpus):
    documents = [[number] * len(text) for number, text in enumerate(texts)]
    corpora = [pack(part) for part in (documents[:first_corpus], documents[first_corpus:]) if part]
    assert read_all(*corpora) == documents
    taken = [document[0] for document in read_all(*corpora, limit=limit)]
    lengths = list(map(len, texts))
    share = min(1, limit / sum(lengths))
    assert len(set(taken)) == len(taken)
    for end in range(1, len(texts) + 1):  # the requested share up to any document, give or take one document
        tokens_read = sum(lengths[number] for number in taken if number < end)
        assert abs(tokens_read - share * sum(lengths[:end])) <= max(lengths) + 1e-9


def test_a_long_document_is_read_to_its_end():
    text = pack([[7] * (2 * embeddings.LONGEST + 5)])
    assert list(map(len, read_all(text))) == [embeddings.LONGEST, embeddings.LONGEST, 5]


def test_tokens_that_occur_together_get_similar_vectors():
    table = train(write_text(documents=1500))
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    within = (unit[10:20] @ unit[10:20].T).mean()
    across = (unit[10:20] @ unit[20:30].T).mean()
    assert within > across + 0.5


def test_vectors_are_centred_with_the_standard_deviation_of_berts_initial_weights():
    table = train(vocabulary_size=2000)
    assert table.shape == (2000, 16) and table.dtype == np.float32
    vectors, unseen = table[[SEPARATOR, *range(10, 30)]], table[30:]
    assert np.abs(vectors.mean(axis=0)).max() < 1e-6
    assert vectors.std() == pytest.approx(0.02, rel=1e-5)
    assert unseen.std() == pytest.approx(0.02, rel=0.05) and abs(unseen.mean()) < 0.001
    assert len(np.unique(unseen, axis=0)) == len(unseen)


def test_vectors_do_not_depend_on_which_tokens_of_the_vocabulary_occur():
    table, shifted = (train(write_text(first=first), 40) for first in (10, 15))
    np.testing.assert_array_equal(table[10:30], shifted[15:35])


def test_vectors_depend_on_text_and_seed_alone_also_in_another_process():
    program = "import sys; sys.path.insert(0, 'tests'); import test_embeddings as t; print(t.train().tobytes().hex())"
    printed = run_python(program, PYTHONHASHSEED="1", PYTHONDONTWRITEBYTECODE="1").strip()
    assert printed == train().tobytes().hex()
    assert printed != train(seed=2).tobytes().hex()


def test_no_more_text_is_read_than_needed(monkeypatch):
    table = train()
    monkeypatch.setattr(embeddings, "TOKENS_EACH", 100)
    assert not np.array_equal(table, train())


def test_text_of_one_token_or_of_another_vocabulary_is_refused():
    with pytest.raises(StudyError, match="1 different tokens in the text, at least 2"):
        train(pack([[5, 5, 5]]))
    with pytest.raises(StudyError, match="token 29 in a text for a vocabulary of 20"):
        train(write_text(), 20)


@given(st.lists(st.integers(0, 7), max_size=40), st.lists(st.integers(0, 7), max_size=40))
def test_log_counts_are_log_shares_with_one_added(first, second):
    with mock.patch.object(embeddings, "SLICE", 7):
        bias = embeddings.log_counts([pack([first]), pack([second])], 8)
    expected = [((first + second).count(piece) + 1) / (len(first + second) + 8) for piece in range(8)]
    np.testing.assert_allclose(np.exp(bias), expected, rtol=1e-5)
    assert bias.dtype == np.float32


def test_waves_are_similar_for_nearby_positions():
    waves = embeddings.make_waves(64, 16)
    assert waves.shape == (64, 16) and waves.dtype == np.float32
    assert abs(waves.std() - 0.04) < 1e-6 and np.allclose(waves.mean(axis=0), 0, atol=1e-8)
    distances = np.linalg.norm(waves[20] - waves, axis=1)
    assert list(np.argsort(distances)[:3]) in ([20, 19, 21], [20, 21, 19])
    # Centring and scaling change the difference between two positions in the paper's formula by a factor only.
    scales = [10_000 ** (2 * i / 16) for i in range(8)]
    difference = [f(7 / scale) - f(3 / scale) for scale in scales for f in (np.sin, np.cos)]
    factors = (waves[7] - waves[3]) / difference
    assert np.allclose(factors, factors[0], rtol=1e-4) and factors[0] > 0
