"""Scores on entities whose name is in the training set, and on the others."""

from collections.abc import Collection, Sequence

from lib.benchmarks import metrics
from lib.benchmarks.instances import Sentence
from lib.benchmarks.rates import rates, rates_by_kind, set_rates

SCORES = "f1_seen", "f1_unseen"


def list_entities(sentence: Sentence, tags: Sequence[str]) -> set[tuple]:
    """Return the entities (type, first word, last word, name) that tags mark in a sentence."""
    (entities,) = metrics.entity_sets([tags])
    return {(kind, first, last, " ".join(sentence.words[first : last + 1])) for kind, first, last in entities}


def find_names(sentences: Sequence[Sentence]) -> set[str]:
    """Return the names of the sentences' entities, as written."""
    return {name for sentence in sentences for *_, name in list_entities(sentence, sentence.tags)}


def count_names(train: Sequence[Sentence], test: Sequence[Sentence]) -> dict[str, int]:
    """Count a test set's entities and their distinct names, and how many of each training has."""
    train_names, test_names = find_names(train), find_names(test)
    names = [name for sentence in test for *_, name in list_entities(sentence, sentence.tags)]
    return {
        "entities": len(names),
        "entities_seen": sum(name in train_names for name in names),
        "names": len(test_names),
        "names_seen": len(test_names & train_names),
    }


def score_seen(
    test: Sequence[Sentence], predicted: Sequence[Sequence[str]], known: Collection[str]
) -> dict[str, float]:
    """Return entity F1 over all entities, over those whose name is known, and over the others.

    Gold and predicted entities are divided alike, so that a false positive counts by its own name.
    """
    gold = [list_entities(sentence, sentence.tags) for sentence in test]
    marked = [list_entities(sentence, tags) for sentence, tags in zip(test, predicted, strict=True)]
    by_known = rates_by_kind(gold, marked, lambda entity: entity[-1] in known)
    scores = {"f1": set_rates(gold, marked)["f1"]}
    for score, seen in zip(SCORES, (True, False), strict=True):
        scores[score] = by_known.get(seen, rates(0, 0, 0))["f1"]
    return scores
