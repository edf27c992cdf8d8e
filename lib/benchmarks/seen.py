"""Scores on entities whose name is in the training set, and on the others."""

from collections import Counter
from collections.abc import Collection, Sequence

from lib.benchmarks import metrics
from lib.benchmarks.instances import Sentence
from lib.benchmarks.rates import rates

SCORES = "f1_seen", "f1_unseen"


def list_entities(sentence: Sentence, tags: Sequence[str]) -> dict[tuple, str]:
    """The entities of a sentence (type, first word, last word) by some tags of its words, with the name of each."""
    (found,) = metrics.entity_sets([tags])
    return {entity: " ".join(sentence.words[entity[1] : entity[2] + 1]) for entity in found}


def find_names(sentences: Sequence[Sentence]) -> set[str]:
    """The names of the entities of sentences, as they are written."""
    return {name for sentence in sentences for name in list_entities(sentence, sentence.tags).values()}


def count_names(train: Sequence[Sentence], test: Sequence[Sentence]) -> dict[str, int]:
    """Of the entities of a test set, and of their distinct names, how many there are, and how many training has."""
    known = find_names(train)
    names = [name for sentence in test for name in list_entities(sentence, sentence.tags).values()]
    distinct = set(names)
    return {"entities": len(names), "entities_seen": sum(name in known for name in names),
            "names": len(distinct), "names_seen": len(distinct & known)}  # fmt: skip


def score_seen(
    test: Sequence[Sentence], predicted: Sequence[Sequence[str]], known: Collection[str]
) -> dict[str, float]:
    """Entity F1 of all entities, of those whose name is known, and of the others; gold or predicted alike.

    An entity that is predicted where none is counts among those of its own name.
    """
    right, guessed, gold = Counter(), Counter(), Counter()  # by whether the name is known
    for sentence, tags in zip(test, predicted, strict=True):
        gold_names = list_entities(sentence, sentence.tags)
        gold.update(name in known for name in gold_names.values())
        for entity, name in list_entities(sentence, tags).items():
            guessed[name in known] += 1
            right[name in known] += entity in gold_names
    scores = {"f1": rates(right.total(), guessed.total(), gold.total())["f1"]}
    for score, seen in zip(SCORES, (True, False), strict=True):
        scores[score] = rates(right[seen], guessed[seen], gold[seen])["f1"]
    return scores
