"""Scores on entities whose name is in the training set, and on the others."""

from collections import Counter
from collections.abc import Collection, Sequence

from lib.benchmarks import metrics
from lib.benchmarks.instances import Sentence
from lib.benchmarks.rates import rates

SCORES = "f1_seen", "f1_unseen"


def list_entities(sentence: Sentence, tags: Sequence[str]) -> dict[tuple, str]:
    """Return the entities (type, first word, last word) that tags mark in a sentence, with the name of each."""
    (entities,) = metrics.entity_sets([tags])
    return {entity: " ".join(sentence.words[entity[1] : entity[2] + 1]) for entity in entities}


def find_names(sentences: Sequence[Sentence]) -> set[str]:
    """Return the names of the sentences' entities, as written."""
    return {name for sentence in sentences for name in list_entities(sentence, sentence.tags).values()}


def count_names(train: Sequence[Sentence], test: Sequence[Sentence]) -> dict[str, int]:
    """Count a test set's entities and their distinct names, and how many of each training has."""
    train_names = find_names(train)
    names = [name for sentence in test for name in list_entities(sentence, sentence.tags).values()]
    distinct_names = set(names)
    return {"entities": len(names), "entities_seen": sum(name in train_names for name in names),
            "names": len(distinct_names), "names_seen": len(distinct_names & train_names)}  # fmt: skip


def score_seen(
    test: Sequence[Sentence], predicted: Sequence[Sequence[str]], known: Collection[str]
) -> dict[str, float]:
    """Return entity F1 over all entities, over those whose name is known, and over the others.

    Gold and predicted entities are divided alike, so that a false positive counts by its own name.
    """
    right_counts, predicted_counts, gold_counts = Counter(), Counter(), Counter()  # keyed by whether the name is known
    for sentence, tags in zip(test, predicted, strict=True):
        gold_names = list_entities(sentence, sentence.tags)
        gold_counts.update(name in known for name in gold_names.values())
        for entity, name in list_entities(sentence, tags).items():
            predicted_counts[name in known] += 1
            right_counts[name in known] += entity in gold_names
    scores = {"f1": rates(right_counts.total(), predicted_counts.total(), gold_counts.total())["f1"]}
    for score, seen in zip(SCORES, (True, False), strict=True):
        scores[score] = rates(right_counts[seen], predicted_counts[seen], gold_counts[seen])["f1"]
    return scores
