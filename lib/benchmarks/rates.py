"""Rates from counts, which all metrics share, and the checks of their input. ValueError with counts and no text."""

from collections.abc import Collection, Hashable, Iterable, Sequence

Scores = dict[str, float]


def check_lengths(gold: Sequence, predicted: Sequence) -> None:
    """ValueError when there is nothing to score, or not a prediction for each gold instance."""
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} gold instances, {len(predicted)} predicted")
    if not len(gold):
        raise ValueError("0 gold instances: nothing to score")


def check_known(labels: Iterable, known: Collection) -> None:
    """ValueError with the number of labels that are not among the known ones."""
    if unknown := sum(label not in known for label in labels):
        raise ValueError(f"{unknown} labels are not of {', '.join(map(str, known))}")


def rates(right: int, predicted: int, gold: int) -> Scores:
    """Precision, recall and F1 from three counts: right items, predicted items, gold items."""
    return {
        "precision": 100 * right / predicted if predicted else 0.0,
        "recall": 100 * right / gold if gold else 0.0,
        "f1": 200 * right / (predicted + gold) if predicted + gold else 0.0,
    }


def class_rates(gold: Sequence[Hashable], predicted: Sequence[Hashable], label: Hashable) -> Scores:
    """Precision, recall and F1 of one class."""
    right = sum(g == p == label for g, p in zip(gold, predicted, strict=True))
    return rates(right, sum(p == label for p in predicted), sum(g == label for g in gold))


def label_rates(
    gold: Sequence[Collection[Hashable]], predicted: Sequence[Collection[Hashable]], label: Hashable
) -> Scores:
    """Precision, recall and F1 of one label, where an instance may have several."""
    return class_rates([label in labels for labels in gold], [label in labels for labels in predicted], True)


def set_rates(gold: Sequence[Collection[Hashable]], predicted: Sequence[Collection[Hashable]]) -> Scores:
    """Precision, recall and F1 over the members of all sets, a set an instance."""
    check_lengths(gold, predicted)
    gold_sets = [set(members) for members in gold]
    predicted_sets = [set(members) for members in predicted]
    right = sum(len(g & p) for g, p in zip(gold_sets, predicted_sets, strict=True))
    return rates(right, sum(map(len, predicted_sets)), sum(map(len, gold_sets)))
