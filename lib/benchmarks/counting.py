"""Counts that papers print as the size of a split: words, entities, positives."""

from collections import Counter
from collections.abc import Iterable

from lib.benchmarks import metrics
from lib.benchmarks.instances import Relation, Sentence

NEGATIVE = ("false", "0", "DDI-false")  # labels for no relation


def words(sentences: Iterable[Sentence]) -> int:
    return sum(len(sentence.words) for sentence in sentences)


def entities(sentences: Iterable[Sentence]) -> int:
    """Count entities as B tags. PICO tags have no B; element_words counts their words."""
    return sum(tag[0] == "B" for sentence in sentences for tag in sentence.tags)


def element_words(sentences: Iterable[Sentence]) -> Counter[str]:
    """Count the words of each PICO element; a word with two elements counts for both."""
    return Counter(element for sentence in sentences for tag in sentence.tags for element in metrics.elements(tag))


def positives(relations: Iterable[Relation]) -> int:
    return sum(relation.label not in NEGATIVE for relation in relations)
