"""How far a score would move on another draw of its test documents."""

from collections.abc import Mapping, Sequence

import numpy as np

from lib import statistics
from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Instance, Labelled, Sentence

GROUPS = 30  # of documents, one of which is left out at a time
Folds = Mapping[int, Sequence[Sequence[float]]]  # by fold what leave_documents_out gave for each run


def leave_documents_out(dataset: Dataset, test: Sequence[Instance], predicted: Sequence) -> list[float]:
    """The main score without each group of test documents in turn; of fewer than three documents nothing.

    Groups are the same for every model.
    """
    group_of = group_documents(dataset, test)
    number = max(group_of) + 1
    if number < 3:
        return []
    scores = []
    for group in range(number):
        kept = np.flatnonzero(group_of != group)
        found = dataset.score([test[place] for place in kept], [predicted[place] for place in kept])
        scores.append(found[dataset.main_score])
    return scores


def group_documents(dataset: Dataset, test: Sequence[Instance]) -> np.ndarray:
    """The group of each instance: at most GROUPS, none of which shares a document, or a question, with another.

    Tagged sentences that do not say of which document they are stand in its order: groups are of neighbours. Other
    instances that do not say so are one each.
    """
    if isinstance(test[0], Sentence) and not any(one.document for one in test):
        return np.arange(len(test)) * min(GROUPS, len(test)) // len(test)
    places: dict[object, list[int]] = {}
    for place, one in enumerate(test):
        places.setdefault(name_document(dataset, one) or place, []).append(place)
    group_of = np.empty(len(test), dtype=int)
    # Drawn: files may be in the order of their labels, and groups that have all labels alike would hide the scatter.
    drawn = np.random.default_rng(0).permutation(len(places)) % min(GROUPS, len(places))
    for group, found in zip(drawn, places.values(), strict=True):
        group_of[found] = group
    return group_of


def name_document(dataset: Dataset, one: Instance) -> str:
    """The document that an instance is of, or the question that it is a candidate for; empty where it does not say."""
    if isinstance(one, Labelled):
        return one.sentences[-1] if dataset.question_first else one.document
    return getattr(one, "document", "") or getattr(one, "group", "")


def find_variance(scores: Sequence[float]) -> tuple[float, int]:
    """The variance of a score over draws of test documents, and its degrees of freedom, by leave_documents_out.

    Of a difference by the differences of both sides' scores. A jackknife that leaves out a group at a time (Shao and Tu
    1995, The jackknife and bootstrap); nan for no scores.
    """
    if not len(scores):
        return np.nan, 0
    groups = len(scores)
    return (groups - 1) / groups * float(((np.array(scores) - np.mean(scores)) ** 2).sum()), groups - 1


def compare_sides(better: Folds, than: Folds) -> tuple[float, float] | None:
    """The variance of the difference of two sides' mean scores over draws of test documents, and its freedom.

    Folds are drawn apart. None unless every run of both sides kept its scores, of the same groups.
    """
    variances = []
    for fold in better.keys() | than.keys():
        runs, other_runs = better.get(fold), than.get(fold)
        if not runs or not other_runs:
            return None
        every_run = [*runs, *other_runs]
        lengths = {len(scores) for scores in every_run}
        if len(lengths) > 1 or 0 in lengths or np.isnan(every_run).any():
            return None
        variances.append(find_variance(np.mean(runs, axis=0) - np.mean(other_runs, axis=0)))
    variance, freedom = statistics.add_variances(variances)
    return variance / len(variances) ** 2, freedom
