"""Where a model's embeddings can start: vectors and counts of the tokens of its own text, waves for their places."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from lib.errors import StudyError
from lib.pretraining import tokens
from lib.pretraining.tokens import Tokens

VERSION = 1  # raised when the same text gives other vectors
STANDARD_DEVIATION = 0.02  # of BERT's initial weights (Devlin et al. 2019, its released code)
WAVES = 2  # times as large: with waves as large as the vectors of tokens, neighbours are found later
WINDOW, NEGATIVES = 5, 5  # tokens on each side; false neighbours for each true one
LONGEST = 10_000  # of a longer document gensim would not see the rest
TOKENS_EACH = 600  # of text for each token of the vocabulary are enough: a minute at 8,192
SLICE = 2**20  # tokens counted at once, so that memory does not grow with the text


def list_versions() -> dict[str, int]:
    """Those of what a model is trained on, which follows from its inputs."""
    return {"tokens": tokens.VERSION, "word vectors": VERSION}


def make_vectors(texts: Sequence[Tokens], vocabulary_size: int, width: int, seed: int = 1) -> np.ndarray:
    """Skip-gram vectors of all tokens, centred, with BERT's standard deviation. Shape (vocabulary, width), float32.

    Skip-gram with negative sampling (Mikolov et al. 2013, section 2.2) over each document's tokens, of as much of the
    text as they need. Tokens that do not occur, among them [MASK], are drawn from a normal distribution. The same text
    and seed give the same bytes: that takes one thread, since more would write to the same vectors in no fixed order.
    StudyError when fewer than two different tokens occur, and for a token beyond the vocabulary.
    """
    from gensim.models import Word2Vec

    limit = TOKENS_EACH * vocabulary_size
    counts = count_each_token(read_token_documents(texts, limit), vocabulary_size)
    found = np.flatnonzero(counts)
    if len(found) < 2:
        raise StudyError(f"word vectors: {len(found)} different tokens in the text, at least 2 are needed")
    skip_gram = Word2Vec(
        vector_size=width,
        sg=1,
        window=WINDOW,
        negative=NEGATIVES,
        min_count=1,
        sorted_vocab=0,  # the order stays; that of equally frequent tokens could differ between machines
        workers=1,
        seed=seed,
    )
    # Tokens go by their place in `found`: where a number is both a token and a place, gensim takes one for the other
    # and draws false neighbours by the wrong counts.
    skip_gram.build_vocab_from_freq(dict(enumerate(counts[found].tolist())))
    places = np.cumsum(counts > 0) - 1
    documents = (places[ids].tolist() for ids in read_token_documents(texts, limit))
    skip_gram.train(documents, total_words=int(counts.sum()), epochs=1)
    vectors = skip_gram.wv.vectors - skip_gram.wv.vectors.mean(axis=0)
    table = np.random.default_rng(seed).normal(0, STANDARD_DEVIATION, (vocabulary_size, width)).astype(np.float32)
    table[found] = vectors * (STANDARD_DEVIATION / vectors.std())
    return table


def read_token_documents(texts: Sequence[Tokens], limit: int) -> Iterator[np.ndarray]:
    """The token ids of documents evenly spread over the text that together hold about `limit` tokens, or of all."""
    size = sum(len(text.ids) for text in texts)
    total = min(limit, size)
    seen = taken = 0
    for text in texts:
        ids = np.asarray(text.ids)
        for first, end in pairwise(np.asarray(text.starts)):
            if taken * size <= seen * total:
                taken += int(end - first)
                yield from (ids[begin : min(end, begin + LONGEST)] for begin in range(first, end, LONGEST))
            seen += int(end - first)


def log_counts(texts: Sequence[Tokens], vocabulary_size: int) -> np.ndarray:
    """The logarithm of each token's share of the text, one added to its count. Shape (vocabulary,), float32.

    As bias of the output layer it makes an untrained model guess by frequency. StudyError for a token beyond the
    vocabulary.
    """
    slices = (text.ids[first : first + SLICE] for text in texts for first in range(0, len(text.ids), SLICE))
    counts = count_each_token(slices, vocabulary_size) + 1
    return np.log(counts / counts.sum()).astype(np.float32)


def make_waves(length: int, width: int) -> np.ndarray:
    """Sines and cosines of a place in the sequence, centred; twice BERT's standard deviation. Shape (length, width).

    The fixed positions of Vaswani et al. 2017, section 3.5, as a start for learned ones: near places begin alike, so
    that a sequence's order need not be learned from nothing.
    """
    slowness = 10_000.0 ** (np.arange(0, width, 2) / width)
    angles = np.arange(length)[:, None] / slowness
    pairs = np.stack([np.sin(angles), np.cos(angles)], axis=2)
    waves = pairs.reshape(length, -1)[:, :width]
    waves -= waves.mean(axis=0)
    scale = WAVES * STANDARD_DEVIATION / waves.std()
    return (waves * scale).astype(np.float32)


def count_each_token(parts: Iterable[np.ndarray], vocabulary_size: int) -> np.ndarray:
    """How often each token occurs in some parts of a text. Shape (vocabulary,), int64."""
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
