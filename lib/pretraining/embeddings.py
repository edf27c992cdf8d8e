"""Where a model's embeddings can start: vectors and counts of the pieces of its own text, waves for their places."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from lib.errors import StudyError
from lib.pretraining.tokens import Tokens

VERSION = 1  # raised when the same text gives other vectors
STANDARD_DEVIATION = 0.02  # of BERT's initial weights (Devlin et al. 2019, its released code)
WAVES = 2  # times as large: with waves as large as the vectors of pieces, neighbours are found later
WINDOW, NEGATIVES = 5, 5  # pieces on each side; false neighbours for each true one
LONGEST = 10_000  # of a longer document gensim would not see the rest
PIECES = 600  # of text for each piece of the vocabulary are enough: a minute at 8,192
SLICE = 2**20  # pieces counted at once, so that memory does not grow with the text


@dataclass(frozen=True)
class Documents:
    """The documents of some packed text as lists of piece ids; each iteration begins again.

    With a limit, documents evenly spread over the text that together hold about so many pieces.
    """

    tokens: Sequence[np.ndarray]  # for each corpus the ids of its pieces (pieces,)
    starts: Sequence[np.ndarray]  # for each corpus the first piece of each document; last, the number of pieces
    limit: int | None = None
    renumber: np.ndarray | None = None  # (vocabulary,) what stands in the lists for each id

    def __iter__(self) -> Iterator[list[int]]:
        size = sum(map(len, self.tokens))
        wanted = size if self.limit is None else min(self.limit, size)
        seen = taken = 0
        for ids, starts in zip(map(np.asarray, self.tokens), map(np.asarray, self.starts), strict=True):
            for first, end in pairwise(starts):
                if taken * size <= seen * wanted:
                    taken += int(end - first)
                    for begin in range(first, end, LONGEST):
                        part = ids[begin : min(end, begin + LONGEST)]
                        yield (part if self.renumber is None else self.renumber[part]).tolist()
                seen += int(end - first)


def train_vectors(
    tokens: Sequence[np.ndarray],
    starts: Sequence[np.ndarray],
    vocabulary_size: int,
    width: int,
    *,
    seed: int,
    passes: int = 1,
    limit: int | None = None,
) -> np.ndarray:
    """Skip-gram vectors of all pieces, centred, with BERT's standard deviation. Shape (vocabulary, width), float32.

    Skip-gram with negative sampling (Mikolov et al. 2013, section 2.2) over each document's pieces. Pieces that do not
    occur, among them [MASK], are drawn from a normal distribution. `tokens`, `starts`, `limit`: as of Documents.
    The same text and seed give the same bytes: that takes one thread, since more would write to the same vectors in
    no fixed order. StudyError when fewer than two different pieces occur, and for a piece beyond the vocabulary.
    """
    from gensim.models import Word2Vec

    documents = Documents(tokens, starts, limit)
    counts = count_pieces(map(np.array, documents), vocabulary_size)
    found = np.flatnonzero(counts)
    if len(found) < 2:
        raise StudyError(f"word vectors: {len(found)} different pieces in the text, at least 2 are needed")
    skip_gram = Word2Vec(
        vector_size=width,
        sg=1,
        window=WINDOW,
        negative=NEGATIVES,
        min_count=1,
        sorted_vocab=0,  # the order stays; that of equally frequent pieces could differ between machines
        workers=1,
        seed=seed,
    )
    # Pieces go by their place in `found`: where a number is both a piece and a place, gensim takes one for the other
    # and draws false neighbours by the wrong counts.
    skip_gram.build_vocab_from_freq(dict(enumerate(counts[found].tolist())))
    documents = replace(documents, renumber=np.cumsum(counts > 0) - 1)
    skip_gram.train(documents, total_words=int(counts.sum()), epochs=passes)
    vectors = skip_gram.wv.vectors - skip_gram.wv.vectors.mean(axis=0)
    table = np.random.default_rng(seed).normal(0, STANDARD_DEVIATION, (vocabulary_size, width)).astype(np.float32)
    table[found] = vectors * (STANDARD_DEVIATION / vectors.std())
    return table


def make_vectors(texts: Sequence[Tokens], vocabulary_size: int, width: int) -> np.ndarray:
    """Word vectors for a model to start with, of as much of its text as they need; as of train_vectors."""
    ids, starts = [text.ids for text in texts], [text.starts for text in texts]
    return train_vectors(ids, starts, vocabulary_size, width, seed=1, limit=PIECES * vocabulary_size)


def log_counts(tokens: Sequence[np.ndarray], vocabulary_size: int) -> np.ndarray:
    """The logarithm of each piece's share of the text, one added to its count. Shape (vocabulary,), float32.

    As bias of the output layer it makes an untrained model guess by frequency. StudyError for a piece beyond the
    vocabulary.
    """
    slices = (ids[first : first + SLICE] for ids in tokens for first in range(0, len(ids), SLICE))
    counts = count_pieces(slices, vocabulary_size) + 1
    return np.log(counts / counts.sum()).astype(np.float32)


def make_waves(length: int, width: int) -> np.ndarray:
    """Sines and cosines of a place in the row, centred; twice BERT's standard deviation. Shape (length, width).

    The fixed positions of Vaswani et al. 2017, section 3.5, as a start for learned ones: near places begin alike, so
    that a row's order need not be learned from nothing.
    """
    angles = np.arange(length)[:, None] / 10_000.0 ** (np.arange(0, width, 2) / width)
    waves = np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(length, -1)[:, :width]
    waves -= waves.mean(axis=0)
    return (waves * (WAVES * STANDARD_DEVIATION / waves.std())).astype(np.float32)


def count_pieces(parts: Iterator[np.ndarray], vocabulary_size: int) -> np.ndarray:
    """How often each piece occurs in some parts of a text. Shape (vocabulary,), int64."""
    counts = np.zeros(vocabulary_size, np.int64)
    for ids in parts:
        try:
            np.add.at(counts, ids, 1)
        except IndexError:
            raise StudyError(
                f"word vectors: piece {ids.max()} in a text for a vocabulary of {vocabulary_size}: the text was made "
                "with another vocabulary"
            ) from None
    return counts
