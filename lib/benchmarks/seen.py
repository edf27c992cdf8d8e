"""Scores on entities whose name is in the training set, and on the others."""

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
    return {"entities": len(names), "entities_seen": sum(name in known for name in names),
            "names": len({*names}), "names_seen": len({*names} & known)}  # fmt: skip


def score_seen(
    test: Sequence[Sentence], predicted: Sequence[Sequence[str]], known: Collection[str]
) -> dict[str, float]:
    """Entity F1 of all entities, of those whose name is known, and of the others; gold or predicted alike.

    An entity that is predicted where none is counts among those of its own name.
    """
    counts = {True: [0, 0, 0], False: [0, 0, 0]}  # right, predicted, gold
    for sentence, tags in zip(test, predicted, strict=True):
        gold, found = list_entities(sentence, sentence.tags), list_entities(sentence, tags)
        for place, entities in enumerate(({one: gold[one] for one in gold.keys() & found.keys()}, found, gold)):
            for name in entities.values():
                counts[name in known][place] += 1
    every = [sum(both) for both in zip(*counts.values(), strict=True)]
    parts = zip(SCORES, (counts[True], counts[False]), strict=True)
    return {"f1": rates(*every)["f1"]} | {name: rates(*found)["f1"] for name, found in parts}
