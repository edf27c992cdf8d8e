"""What papers count of a split under the heading of its size: entities, words, positives, rows; of its instances."""

import csv
import math
import sys
from collections import Counter
from collections.abc import Iterable
from itertools import chain

from lib.benchmarks import metrics
from lib.benchmarks.instances import Pair, Relation, Sentence

NEGATIVE = ("false", "0", "DDI-false")  # labels that say that nothing relates two mentions


def words(sentences: Iterable[Sentence]) -> int:
    return sum(len(sentence.words) for sentence in sentences)


def entities(sentences: Iterable[Sentence]) -> int:
    """Entities, counted as B tags. PICO's tags have no B: of them element_words counts words."""
    return sum(tag[0] == "B" for sentence in sentences for tag in sentence.tags)


def element_words(sentences: Iterable[Sentence]) -> Counter[str]:
    """How many words each PICO element has; a word of two elements counts in both."""
    return Counter(element for sentence in sentences for tag in sentence.tags for element in metrics.elements(tag))


def positives(relations: Iterable[Relation]) -> int:
    return sum(relation.label not in NEGATIVE for relation in relations)


def distinct(found: Iterable[Relation | Pair]) -> int:
    """Different texts with a label."""
    return len({(*instance.inputs, instance.label) for instance in found})


def csv_rows(sentences: Iterable[Sentence], blank: bool = False) -> int:
    """The rows that a CSV reader makes of a tagged file, a word and its tag a line; `blank`: empty ones count too.

    A word that is a double quote begins a field, which swallows all lines up to the next one. The blank line at the end
    of the file counts for nothing.
    """
    csv.field_size_limit(sys.maxsize)
    lines = chain.from_iterable([*map("{}\t{}\n".format, s.words, s.tags), "\n"] for s in sentences)
    rows = list(csv.reader(lines, delimiter="\t"))
    return len(rows) - 1 if blank else sum(bool(row) for row in rows)


def fifths(found: Iterable[Relation]) -> dict[str, int]:
    """Distinct rows divided as scikit-learn's train_test_split does twice, a fifth each time, by split."""
    total = distinct(found)
    dev = math.ceil(total / 5)
    test = math.ceil((total - dev) / 5)
    return {"train": total - dev - test, "dev": dev, "test": test}
