"""Confusions of a model, entity by entity or text by text, and its commonest errors."""

from collections import Counter
from collections.abc import Sequence

from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Instance, Sentence
from lib.benchmarks.metrics import entity_sets
from lib.benchmarks.rates import class_rates, rates

NONE = "none"  # no entity, or no label
LETTERS = 200  # of a text that is shown
Pairs = list[tuple[str, str, str]]  # gold, predicted, and the text that they are of


def pair_labels(dataset: Dataset, instances: Sequence[Instance], predicted: Sequence) -> Pairs:
    """Gold and predicted, side by side: of tagging the types of each entity, of documents and pairs their labels."""
    if dataset.family == "tagging":
        sides = zip(instances, predicted, strict=True)
        return [found for one, tags in sides for found in pair_entities(one, tags)]
    texts = [" / ".join(one.inputs)[:LETTERS] for one in instances]
    sides = [[say_labels(one) for one in side] for side in ([one.gold for one in instances], predicted)]
    return list(zip(*sides, texts, strict=True))


def pair_entities(sentence: Sentence, tags: Sequence[str]) -> Pairs:
    """The entities of a sentence with what was predicted in their place, each once: the same words, else words that
    overlap (`other bounds` of its type), else none; and predicted ones in the place of none."""
    (gold,), (found,) = entity_sets([sentence.tags]), entity_sets([tags])
    pairs, left = [], sorted(found - gold, key=lambda entity: entity[1])
    for entity in sorted(gold, key=lambda entity: entity[1]):
        kind, first, last = entity
        words = " ".join(sentence.words[first : last + 1])
        if entity in found:
            pairs.append((kind, kind, words))
            continue
        here = [other for other in left if other[1] <= last and other[2] >= first]
        best = next((other for other in here if other[1:] == entity[1:]), here[0] if here else None)
        if best is None:
            pairs.append((kind, NONE, words))
            continue
        left.remove(best)
        other = best[0] if best[1:] == entity[1:] else f"{best[0]}, other bounds"
        pairs.append((kind, other, words))
    return pairs + [(NONE, kind, " ".join(sentence.words[first : last + 1])) for kind, first, last in left]


def say_labels(answer: str | float | Sequence[str]) -> str:
    """One label, several or a number, as one word."""
    return str(answer) if isinstance(answer, str | float) else "; ".join(answer) or NONE


def count_pairs(pairs: Pairs) -> list[dict[str, object]]:
    """The confusion matrix: a row each gold label, a column each one that is gold or predicted."""
    counts = Counter((gold, predicted) for gold, predicted, _ in pairs)
    rows = sorted({gold for gold, _ in counts}, key=lambda name: (name == NONE, name))
    others = sorted({predicted for _, predicted in counts} - {*rows})
    columns = [*rows, *others] if NONE not in rows else [*rows[:-1], *others, NONE]
    return [{"gold": row} | {column: counts[row, column] for column in columns} for row in rows]


def list_errors(pairs: Pairs, most: int = 10) -> list[dict[str, object]]:
    """What is wrong most often: gold, predicted, how often, and of which texts most."""
    wrong = Counter((gold, predicted) for gold, predicted, _ in pairs if gold != predicted)
    texts = {place: Counter() for place in wrong}
    for gold, predicted, text in pairs:
        if gold != predicted:
            texts[gold, predicted][text] += 1
    return [
        {"gold": gold, "predicted": predicted, "times": times,
         "as in": " | ".join(f"{text} ({n})" if n > 1 else text for text, n in texts[gold, predicted].most_common(3))}
        for (gold, predicted), times in wrong.most_common(most)
    ]  # fmt: skip


def score_each(dataset: Dataset, instances: Sequence[Instance], predicted: Sequence) -> list[dict[str, object]]:
    """Precision, recall and F1 of each type, class or label, with how many gold ones there are."""
    if dataset.family == "tagging":
        both = entity_sets([one.gold for one in instances]), entity_sets(predicted)
        shared = [one & other for one, other in zip(*both, strict=True)]
        gold, found, right = (Counter(e[0] for one in side for e in one) for side in (*both, shared))
        kinds = sorted(gold | found)
        return [{"label": kind, "gold": gold[kind]} | rates(right[kind], found[kind], gold[kind]) for kind in kinds]
    sides = [[{one} if isinstance(one, str) else {*one} for one in side]
             for side in ([one.gold for one in instances], predicted)]  # fmt: skip
    labels = sorted(set().union(*sides[0], *sides[1]))
    rows = []
    for label in labels:
        gold, found = ([label in one for one in side] for side in sides)
        rows.append({"label": label, "gold": sum(gold)} | class_rates(gold, found, True))
    return rows


def list_farthest(instances: Sequence[Instance], predicted: Sequence[float], most: int = 10) -> list[dict[str, object]]:
    """Of numbers, those that are farthest from gold."""
    order = sorted(range(len(instances)), key=lambda i: -abs(instances[i].gold - predicted[i]))[:most]
    return [{"gold": instances[i].gold, "predicted": predicted[i], "text": " / ".join(instances[i].inputs)[:LETTERS]}
            for i in order]  # fmt: skip
