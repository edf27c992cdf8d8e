"""What papers count of a split under the heading of its size: entities, words, positives; of its instances."""

from collections import Counter
from collections.abc import Iterable

from lib.benchmarks import metrics
from lib.benchmarks.instances import Relation, Sentence

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
