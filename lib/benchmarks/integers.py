"""The integer check: whether printed scores can come from one run, whose counts of answers are whole numbers.

A score is a part of a whole: precision true positives of predicted, recall true positives of gold, accuracy right
answers of all, F1 twice the true positives of predicted and gold together. All of it is exact, in whole numbers.
"""

from typing import NamedTuple

import numpy as np

POINT = 100  # a point is so many-th of a score of 1


class Printed(NamedTuple):
    """A printed score above 0, in units of its last place: 89.71 % is 8,971 units, 10,000 of which are 1."""

    units: int
    whole: int

    @classmethod
    def percent(cls, value: float, places: int) -> "Printed":
        """A score in %, with so many decimals."""
        return cls(round(value * 10**places), 100 * 10**places)

    @property
    def near(self) -> np.ndarray:
        """The units of all scores above 0 with as many decimals that are at most a point off."""
        point = self.whole // POINT
        return np.arange(max(1, self.units - point), min(self.whole, self.units + point) + 1)


def bound_whole(part, units, whole: int, cut: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest number of which a part prints as a score; of none the lowest is the higher.

    Numbers or arrays that fit each other. Rounded, a tie up or down; `cut`: what follows the last place is dropped.
    """
    if cut:
        return part * whole // (units + 1) + 1, part * whole // units
    return -(-2 * part * whole // (2 * units + 1)), 2 * part * whole // (2 * units - 1)


def bound_part(of: int, units, whole: int, cut: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest part of a number that prints as a score, likewise."""
    if cut:
        return -(-of * units // whole), np.minimum(-(-of * (units + 1) // whole) - 1, of)
    return -(-of * (2 * units - 1) // (2 * whole)), np.minimum(of * (2 * units + 1) // (2 * whole), of)


def find_right(of: int, score: Printed, cut: bool = False) -> np.ndarray:
    """How many of so many instances may be right where an accuracy, or a recall, is printed; empty for none."""
    low, high = bound_part(of, *score, cut)
    return np.arange(low, high + 1)


def find_counts(
    gold: int,
    precision: Printed | None = None,
    recall: Printed | None = None,
    f1: Printed | None = None,
    cut: bool = False,
) -> np.ndarray:
    """The counts from which printed scores can come at once: precision or F1, and others where they are given.

    A line for each number of true positives: itself, and the lowest and highest number of predicted ones, between
    which all will do. No lines: no counts print so. `gold`: how many there are to be found.
    """
    found = find_right(gold, recall, cut) if recall else np.arange(1, gold + 1)
    low, high = found, np.full(found.shape, np.iinfo(np.int64).max)
    if precision:
        lowest, highest = bound_whole(found, *precision, cut)
        low, high = np.maximum(low, lowest), np.minimum(high, highest)
    if f1:
        lowest, highest = bound_whole(2 * found, *f1, cut)
        low, high = np.maximum(low, lowest - gold), np.minimum(high, highest - gold)
    return np.stack([found, low, high], axis=1)[low <= high]


def chance_of_pair(gold: int, precision: Printed, recall: Printed) -> float:
    """The share of all pairs of scores, each at most a point off the printed one, that come from some counts.

    None is drawn: each pair is tried. Rounded.
    """
    low, high = bound_part(gold, recall.near, recall.whole)
    found = np.arange(max(1, low.min()), high.max() + 1)  # true positives
    recalls = (low[:, None] <= found) & (found <= high[:, None])
    lowest, highest = bound_whole(found[:, None], precision.near, precision.whole)
    precisions = np.maximum(lowest, found[:, None]) <= highest
    return float((recalls.astype(int) @ precisions.astype(int) > 0).mean())


def chance_of_accuracy(of: int, score: Printed) -> float:
    """The same of a single score: the share that some number of right instances, of so many, prints as."""
    low, high = bound_part(of, score.near, score.whole)
    return float((low <= high).mean())


def chance_of_f1(gold: int, f1: Printed) -> float:
    """The same of an F1 that is printed without precision and recall."""
    found = np.arange(1, gold + 1)
    lowest, highest = bound_whole(2 * found, f1.near[:, None], f1.whole)  # of predicted and gold together
    return float((np.maximum(lowest - gold, found) <= highest - gold).any(axis=1).mean())
