"""Scores on entities whose name is in the training set, and on the others."""

from collections import Counter
from collections.abc import Collection, Sequence

from lib.benchmarks import metrics
from lib.benchmarks.instances import Sentence
from lib.benchmarks.rates import rates

SCORES = "f1_seen", "f1_unseen"


def list_entities(sentence: Sentence, tags: Sequence[str]) -> dict[tuple, str]:
    """Return the entities (type, first word, last word) that tags mark in a sentence, with the name of each."""
    (found,) = metrics.entity_sets([tags])
    return {entity: " ".join(sentence.words[entity[1] : entity[2] + 1]) for entity in found}


def find_names(sentences: Sequence[Sentence]) -> set[str]:
    """Return the names of the sentences' entities, as written."""
    return {name for sentence in sentences for name in list_entities(sentence, sentence.tags).values()}


def count_names(train: Sequence[Sentence], test: Sequence[Sentence]) -> dict[str, int]:
    """Count a test set's entities and their distinct names, and how many of each training has."""
    known = find_names(train)
    names = [name for sentence in test for name in list_entities(sentence, sentence.tags).values()]
    distinct = set(names)
    return {"entities": len(names), "entities_seen": sum(name in known for name in names),
            "names": len(distinct), "names_seen": len(distinct & known)}  # fmt: skip


def score_seen(
    test: Sequence[Sentence], predicted: Sequence[Sequence[str]], known: Collection[str]
) -> dict[str, float]:
    """Return entity F1 over all entities, over those whose name is known, and over the others.

    Gold and predicted entities are divided alike, so that a false positive counts by its own name.
    """
    right, guessed, gold = Counter(), Counter(), Counter()  # keyed by whether the name is known
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
