"""Word classes from neighbours in unlabelled text: a use of such text without an encoder."""

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lib import artefacts, provenance
from lib.errors import StudyError

VERSION = 1  # bumped when the same text yields other classes
SIZES = (100, 500, 2000)  # numbers of classes; a word has one class for each
VECTORS, WINDOW, NEGATIVES = 100, 5, 5
SEED = 1
RAREST = 5  # least occurrences; rarer words have no class
TOKEN = re.compile(r"[^\W_]+|[^\w\s]|_")  # words and punctuation apart, as in tagged datasets
WORDS = 20_000_000  # read from the start of the text: ten minutes


@dataclass(frozen=True)
class WordClasses:
    """The classes of lower-case words, and the fingerprint of what they were made from."""

    by_word: dict[str, list[str]]
    fingerprint: str


def keep_classes(folder: Path, texts: Iterable[str], content: str) -> WordClasses:
    """Return the word classes of texts, cached in a folder until `content`, the fingerprint of the texts, changes.

    Raises StudyError as in make_classes.
    """
    settings = {"sizes": SIZES, "vectors": VECTORS, "window": WINDOW, "negatives": NEGATIVES, "rarest": RAREST,
                "words": WORDS}  # fmt: skip
    identity = provenance.record("word classes", VERSION, settings, {"text": content})

    def write(new: Path) -> dict:
        classes = make_classes(texts)
        artefacts.write_json(new / "classes.json", classes)
        return {"words": len(classes)}

    artefacts.cached(folder, identity, write)
    return WordClasses(artefacts.read_json(folder / "classes.json"), identity["fingerprint"])


def make_classes(texts: Iterable[str]) -> dict[str, list[str]]:
    """Return the classes of each lower-case word of the texts: `size:number` for each of SIZES.

    k-means clusters the directions of skip-gram vectors, at several sizes at once, as features for a tagger (Guo et al.
    2014, Revisiting embedding features for simple semi-supervised learning). The same texts give the same classes,
    because vectors are trained in one thread. Raises StudyError if there are fewer than two words.
    """
    from gensim.models import Word2Vec  # imported here because it takes seconds
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.preprocessing import normalize

    sentences, words = [], 0
    for text in texts:
        for line in text.split("\n"):
            sentences.append([sys.intern(word) for word in TOKEN.findall(line.lower())])
            words += len(sentences[-1])
        if words >= WORDS:
            break
    try:
        vectors = Word2Vec(sentences, vector_size=VECTORS, sg=1, window=WINDOW, negative=NEGATIVES, min_count=RAREST,
                           workers=1, seed=SEED, epochs=1).wv  # fmt: skip
    except RuntimeError:  # from gensim, if there are no words
        vectors = []
    if len(vectors) < 2:
        raise StudyError(f"word classes: {len(vectors)} words stand {RAREST} times or more in the text, 2 are needed")
    directions, classes = normalize(vectors.vectors), {word: [] for word in vectors.index_to_key}
    for size in SIZES:
        clusterer = MiniBatchKMeans(min(size, len(classes)), random_state=SEED, n_init=1, batch_size=4096)
        for names, number in zip(classes.values(), clusterer.fit_predict(directions), strict=True):
            names.append(f"{size}:{number}")
    return classes
