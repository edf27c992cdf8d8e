"""How far a score would move on another draw of its test documents."""

from collections.abc import Sequence

import numpy as np

from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Instance

GROUPS = 30  # of documents, one of which is left out at a time


def find_variance(dataset: Dataset, test: Sequence[Instance], predicted: Sequence) -> tuple[float, int]:
    """The variance of a dataset's main score over draws of its test documents, and its degrees of freedom.

    By a jackknife that leaves out a group of documents at a time (Shao and Tu 1995, section 5.5); nan for fewer than
    three documents. Instances that do not say of which document they are, or of which question, are one each.
    """
    places: dict[object, list[int]] = {}
    for place, one in enumerate(test):
        places.setdefault(getattr(one, "document", "") or getattr(one, "group", "") or place, []).append(place)
    number = min(GROUPS, len(places))
    if number < 3:
        return np.nan, 0
    # Drawn: files may be in the order of their labels, and groups that have all labels alike would hide the scatter.
    group_of, drawn = np.empty(len(test), dtype=int), np.random.default_rng(0).permutation(len(places)) % number
    for group, found in zip(drawn, places.values(), strict=True):
        group_of[found] = group
    scores = []
    for group in range(number):
        kept = np.flatnonzero(group_of != group)
        found = dataset.score([test[place] for place in kept], [predicted[place] for place in kept])
        scores.append(found[dataset.main_score])
    return (number - 1) / number * float(((np.array(scores) - np.mean(scores)) ** 2).sum()), number - 1
