"""Initial embeddings: vectors and counts of the tokens of a model's own text, and waves for positions."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from lib.errors import StudyError
from lib.pretraining import tokens
from lib.pretraining.tokens import Tokens

VERSION = 1  # increased when the same text gives different vectors
STANDARD_DEVIATION = 0.02  # of BERT's initial weights (Devlin et al. 2019, its released code)
WAVES = 2  # times as large as token vectors; if as large, the model learns later to find neighbouring tokens
WINDOW, NEGATIVES = 5, 5  # tokens on each side; false neighbours for each true one
LONGEST = 10_000  # tokens; gensim would ignore the rest of a longer document
TOKENS_EACH = 600  # tokens of text for each token of the vocabulary, which is enough and takes a minute at 8,192
SLICE = 2**20  # tokens counted at once, so that memory does not grow with the text


def list_versions() -> dict[str, int]:
    """Return the versions of what is derived from a model's inputs: packed tokens and word vectors."""
    return {"tokens": tokens.VERSION, "word vectors": VERSION}


def make_vectors(texts: Sequence[Tokens], vocabulary_size: int, width: int, seed: int = 1) -> np.ndarray:
    """Train skip-gram vectors of all tokens, centred, with BERT's standard deviation: (vocabulary, width), float32.

    Skip-gram with negative sampling (Mikolov et al. 2013, section 2.2) over each document's tokens, on as much text as
    needed. Tokens that do not occur, such as [MASK], are drawn from a normal distribution. The same text and seed give
    the same bytes; this takes a single thread, because several would update the same vectors in no fixed order. Raises
    StudyError if fewer than two different tokens occur, and for a token beyond the vocabulary.
    """
    from gensim.models import Word2Vec

    limit = TOKENS_EACH * vocabulary_size
    counts = count_each_token(read_token_documents(texts, limit), vocabulary_size)
    present_ids = np.flatnonzero(counts)
    if len(present_ids) < 2:
        raise StudyError(f"word vectors: {len(present_ids)} different tokens in the text, at least 2 are needed")
    skip_gram = Word2Vec(
        vector_size=width,
        sg=1,
        window=WINDOW,
        negative=NEGATIVES,
        min_count=1,
        sorted_vocab=0,  # keeps the order; that of equally frequent tokens could differ between machines
        workers=1,
        seed=seed,
    )
    # Tokens are given by their index in `present_ids`: if a number is both a token and an index, gensim confuses them
    # and draws negative samples by the wrong counts.
    skip_gram.build_vocab_from_freq(dict(enumerate(counts[present_ids].tolist())))
    indices = np.cumsum(counts > 0) - 1
    documents = (indices[ids].tolist() for ids in read_token_documents(texts, limit))
    skip_gram.train(documents, total_words=int(counts.sum()), epochs=1)
    vectors = skip_gram.wv.vectors - skip_gram.wv.vectors.mean(axis=0)
    table = np.random.default_rng(seed).normal(0, STANDARD_DEVIATION, (vocabulary_size, width)).astype(np.float32)
    table[present_ids] = vectors * (STANDARD_DEVIATION / vectors.std())
    return table


def read_token_documents(texts: Sequence[Tokens], limit: int) -> Iterator[np.ndarray]:
    """Yield the token ids of documents evenly spread over the text, about `limit` tokens in all, or the whole text."""
    size = sum(len(text.ids) for text in texts)
    total = min(limit, size)
    seen_tokens = taken_tokens = 0
    for text in texts:
        ids = np.asarray(text.ids)
        for first, end in pairwise(np.asarray(text.starts)):
            if taken_tokens * size <= seen_tokens * total:
                taken_tokens += int(end - first)
                yield from (ids[begin : min(end, begin + LONGEST)] for begin in range(first, end, LONGEST))
            seen_tokens += int(end - first)


def log_counts(texts: Sequence[Tokens], vocabulary_size: int) -> np.ndarray:
    """Return the logarithm of each token's share of the text, after adding one to its count.

    Shape (vocabulary,), float32. As bias of the output layer it makes an untrained model predict by frequency. Raises
    StudyError for a token beyond the vocabulary.
    """
    slices = (text.ids[first : first + SLICE] for text in texts for first in range(0, len(text.ids), SLICE))
    counts = count_each_token(slices, vocabulary_size) + 1
    return np.log(counts / counts.sum()).astype(np.float32)


def make_waves(length: int, width: int) -> np.ndarray:
    """Return sines and cosines of each position, centred, with twice BERT's standard deviation. Shape (length, width).

    The fixed positions of Vaswani et al. 2017, section 3.5, as initial values of learned ones: nearby positions begin
    alike, so that the order of tokens need not be learned from scratch.
    """
    scales = 10_000.0 ** (np.arange(0, width, 2) / width)
    angles = np.arange(length)[:, None] / scales
    pairs = np.stack([np.sin(angles), np.cos(angles)], axis=2)
    waves = pairs.reshape(length, -1)[:, :width]
    waves -= waves.mean(axis=0)
    scale = WAVES * STANDARD_DEVIATION / waves.std()
    return (waves * scale).astype(np.float32)


def count_each_token(parts: Iterable[np.ndarray], vocabulary_size: int) -> np.ndarray:
    """Count each token in some parts of a text. Shape (vocabulary,), int64."""
    counts = np.zeros(vocabulary_size, np.int64)
    for ids in parts:
        try:
            np.add.at(counts, ids, 1)
        except IndexError:
            raise StudyError(
                f"word vectors: token {ids.max()} in a text for a vocabulary of {vocabulary_size}: the text was made "
                "with another vocabulary"
            ) from None
    return counts
