"""How far a score would move on another draw of its test documents."""

from collections.abc import Sequence

import numpy as np

from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Instance

GROUPS = 30  # of documents, one of which is left out at a time


def leave_out(dataset: Dataset, test: Sequence[Instance], predicted: Sequence) -> list[float]:
    """The main score without each group of test documents in turn; of fewer than three documents nothing.

    Groups are drawn, and are the same for every model. Instances that do not say of which document they are, or of
    which question, are one each.
    """
    places: dict[object, list[int]] = {}
    for place, one in enumerate(test):
        places.setdefault(getattr(one, "document", "") or getattr(one, "group", "") or place, []).append(place)
    number = min(GROUPS, len(places))
    if number < 3:
        return []
    # Drawn: files may be in the order of their labels, and groups that have all labels alike would hide the scatter.
    group_of, drawn = np.empty(len(test), dtype=int), np.random.default_rng(0).permutation(len(places)) % number
    for group, found in zip(drawn, places.values(), strict=True):
        group_of[found] = group
    scores = []
    for group in range(number):
        kept = np.flatnonzero(group_of != group)
        found = dataset.score([test[place] for place in kept], [predicted[place] for place in kept])
        scores.append(found[dataset.main_score])
    return scores


def find_variance(scores: Sequence[float]) -> tuple[float, int]:
    """The variance of a score over draws of test documents, and its degrees of freedom, by the scores of `leave_out`.

    Of a difference by the differences of both sides' scores. A jackknife that leaves out a group at a time (Shao and Tu
    1995, section 5.5); nan for no scores.
    """
    if not len(scores):
        return np.nan, 0
    groups = len(scores)
    return (groups - 1) / groups * float(((np.array(scores) - np.mean(scores)) ** 2).sum()), groups - 1
