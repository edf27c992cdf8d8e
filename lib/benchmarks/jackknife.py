"""The variance of a score over draws of its test documents, by a jackknife."""

from collections.abc import Mapping, Sequence

import numpy as np

from lib import statistics
from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Instance, Sentence

GROUPS = 30  # groups of documents, left out one at a time
Folds = Mapping[int, Sequence[Sequence[float]]]  # fold -> the result of leave_documents_out for each run


def leave_documents_out(dataset: Dataset, test: Sequence[Instance], predicted: Sequence) -> list[float]:
    """Return the main score without each group of test documents in turn; empty for fewer than three documents.

    Groups are the same for every model.
    """
    group_of = group_documents(dataset, test)
    group_count = max(group_of) + 1
    if group_count < 3:
        return []
    scores = []
    for group in range(group_count):
        positions = np.flatnonzero(group_of != group)
        remaining_scores = dataset.score([test[i] for i in positions], [predicted[i] for i in positions])
        scores.append(remaining_scores[dataset.main_score])
    return scores


def group_documents(dataset: Dataset, test: Sequence[Instance]) -> np.ndarray:
    """Return the group of each instance: at most GROUPS, none of which shares a document or question with another.

    Tagged sentences without document names are grouped with their neighbours in file order. Other instances without one
    are a document each.
    """
    if isinstance(test[0], Sentence) and not any(instance.document for instance in test):
        return np.arange(len(test)) * min(GROUPS, len(test)) // len(test)
    documents = dataset.list_documents(test)
    distinct = list(dict.fromkeys(documents))
    # Random: if a file is sorted by label, dealing it out in order gives all groups the same mix and hides the scatter.
    order = np.random.default_rng(0).permutation(len(distinct))
    groups = order % min(GROUPS, len(distinct))
    group_of = dict(zip(distinct, groups, strict=True))
    return np.array([group_of[document] for document in documents])


def find_variance(scores: Sequence[float]) -> tuple[float, int]:
    """Return the variance of a score over draws of test documents, and its degrees of freedom.

    `scores` are from leave_documents_out; for a difference, they are the differences of both sides' scores. This is a
    jackknife that leaves out a group at a time (Shao and Tu 1995, The jackknife and bootstrap). The variance is nan if
    there are no scores.
    """
    if not len(scores):
        return np.nan, 0
    groups = len(scores)
    return (groups - 1) / groups * float(((np.array(scores) - np.mean(scores)) ** 2).sum()), groups - 1


def compare_sides(better: Folds, than: Folds) -> tuple[float, float] | None:
    """Return the variance of two sides' difference in means over draws of test documents, and its degrees of freedom.

    Folds count as independent draws. None unless every run of both sides kept its scores, over the same groups.
    """
    variances = []
    for fold in better.keys() | than.keys():
        runs, other_runs = better.get(fold), than.get(fold)
        if not runs or not other_runs:
            return None
        all_runs = [*runs, *other_runs]
        lengths = {len(scores) for scores in all_runs}
        if len(lengths) > 1 or 0 in lengths or np.isnan(all_runs).any():
            return None
        variances.append(find_variance(np.mean(runs, axis=0) - np.mean(other_runs, axis=0)))
    variance, freedom = statistics.add_variances(variances)
    return variance / len(variances) ** 2, freedom
