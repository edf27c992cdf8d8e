"""Rates from counts, shared by all metrics, and input checks that raise ValueError with counts and no text."""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence

Scores = dict[str, float]
Sets = Sequence[Collection[Hashable]]  # one set per instance
KindOf = Callable[[Hashable], str]  # member of a set -> its kind


def check_lengths(gold: Sequence, predicted: Sequence) -> None:
    """Raise ValueError if there is nothing to score, or not one prediction per gold instance."""
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} gold instances, {len(predicted)} predicted")
    if not len(gold):
        raise ValueError("0 gold instances: nothing to score")


def check_known(labels: Iterable, known: Collection) -> None:
    """Raise ValueError with the number of unknown labels if there are any."""
    if unknown := sum(label not in known for label in labels):
        raise ValueError(f"{unknown} labels are not of {', '.join(map(str, known))}")


def rates(right: int, predicted: int, gold: int) -> Scores:
    """Return precision, recall and F1 from three counts: right, predicted and gold items."""
    return {
        "precision": 100 * right / predicted if predicted else 0.0,
        "recall": 100 * right / gold if gold else 0.0,
        "f1": 200 * right / (predicted + gold) if predicted + gold else 0.0,
    }


def class_rates(gold: Sequence[Hashable], predicted: Sequence[Hashable], label: Hashable) -> Scores:
    """Return precision, recall and F1 of one class."""
    right = sum(g == p == label for g, p in zip(gold, predicted, strict=True))
    return rates(right, sum(p == label for p in predicted), sum(g == label for g in gold))


def set_rates(gold: Sets, predicted: Sets) -> Scores:
    """Return precision, recall and F1 over the members of all sets."""
    check_lengths(gold, predicted)
    right = sum(len(set(g) & set(p)) for g, p in zip(gold, predicted, strict=True))
    return rates(right, sum(len(set(p)) for p in predicted), sum(len(set(g)) for g in gold))


def rates_by_kind(gold: Sets, predicted: Sets, kind_of: KindOf = str) -> dict[str, Scores]:
    """Return precision, recall and F1 for each kind of member in gold or predictions, sorted by kind."""
    check_lengths(gold, predicted)
    shared = [set(g) & set(p) for g, p in zip(gold, predicted, strict=True)]
    right, marked, expected = (count_kinds(sets, kind_of) for sets in (shared, predicted, gold))
    return {kind: rates(right[kind], marked[kind], expected[kind]) for kind in sorted(marked | expected)}


def count_kinds(sets: Sets, kind_of: KindOf) -> Counter[str]:
    """Count the members of each kind over all sets."""
    return Counter(kind_of(member) for members in sets for member in set(members))
