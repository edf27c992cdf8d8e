"""When a claim counts as reproduced: differences and slopes with their errors, the five verdicts, Holm's correction.

Page 00 states the rule; benchmarks/verdict_rule.py counts how often it errs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import Literal

import numpy as np

SETS = 6  # the fewest datasets whose mean generalizes to other datasets
PRETRAININGS = 3  # the fewest of each side for a claim about a pretraining recipe to hold or fail
SEEDS = 3  # the fewest runs of each side on each dataset whose scatter serves as an error
SIGNIFICANT = 0.05
POINTS = {"holds": "points that way", "fails": "points the other way"}

Relation = Literal["beats", "as good as", "equals"]
Chance = Callable[[float, bool], float]  # that the truth is at or below a bound (True), or at or above it (False)
Side = list[list[list[float]]]  # scores of one side: by dataset, pretraining and seed
Samples = Sequence[tuple[float, float]]  # by dataset: variance over samples of test documents, degrees of freedom
Curve = list[tuple[float, list[float]]]  # points: x above zero, and the scores there, one a seed


@dataclass(frozen=True)
class Estimate:
    """An effect in points, its standard error (nan if unknown) and the degrees of freedom of that error.

    `drawn`: what was sampled at random, if it is not what the effect is averaged over.
    """

    effect: float
    error: float
    freedom: float
    drawn: str = ""


def find_interval(values: list[float]) -> tuple[float, float]:
    """Return the 95% t-interval of the mean of some values; nan for a single value."""
    judged = judge(estimate_mean(values))
    return judged["ci_low"], judged["ci_high"]


def estimate_mean(values: list[float]) -> Estimate:
    """Return the mean of values, with its standard error from their scatter; nan for a single value."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return Estimate(float(np.mean(values)), float(error), len(values) - 1)


def estimate_difference(better: Side, other: Side, recipe: bool = False, samples: Samples = ()) -> Estimate:
    """Estimate one side minus the other, as a mean over datasets, with the error of all that was sampled.

    Datasets are sampled: the scatter of their differences includes that of seeds and test sets. For a `recipe` with two
    or more pretrainings a side, so are pretrainings: the scatter of each side's means over them. The variances are
    added, with the degrees of freedom of `count_freedom`; seeds count in each, which errs on the safe side.

    For checkpoints on fewer than SETS datasets, the datasets are taken as fixed: if `samples` are known for each
    dataset and each side has SEEDS runs, the estimate is that of `estimate_on_few`.
    """
    runs = min(sum(map(len, dataset_scores)) for dataset_scores in [*better, *other])
    if not recipe and len(samples) == len(better) < SETS and runs >= SEEDS:
        return estimate_on_few(better, other, samples)
    dataset_estimate = estimate_mean(subtract_by_dataset(better, other))
    if not recipe or min(map(len, [*better, *other])) == 1:
        return dataset_estimate
    estimates = [dataset_estimate]
    for side in (better, other):
        estimates.append(estimate_mean(list(map(find_mean, zip(*side, strict=True)))))
    variance, freedom = add_variances([(estimate.error**2, estimate.freedom) for estimate in estimates])
    return Estimate(dataset_estimate.effect, float(np.sqrt(variance)), count_freedom(freedom, estimates))


def estimate_on_few(better: Side, other: Side, samples: Samples) -> Estimate:
    """Estimate one side minus the other on these datasets alone, where seeds and test documents are sampled."""
    seed_estimates = [estimate_mean([*chain.from_iterable(dataset_scores)]) for dataset_scores in [*better, *other]]
    seed_variances = [(estimate.error**2, estimate.freedom) for estimate in seed_estimates]
    variance, freedom = add_variances([*seed_variances, *samples])
    effect = fmean(subtract_by_dataset(better, other))
    error = float(np.sqrt(variance)) / len(better)
    return Estimate(effect, error, count_freedom(freedom, seed_estimates), "seeds and test documents")


def subtract_by_dataset(better: Side, other: Side) -> list[float]:
    """Return the mean of one side minus that of the other, by dataset."""
    return [
        find_mean(better_runs) - find_mean(other_runs) for better_runs, other_runs in zip(better, other, strict=True)
    ]


def count_freedom(freedom: float, parts: list[Estimate]) -> float:
    """Return half of Satterthwaite's degrees of freedom, but no fewer than the part with the fewest has.

    Satterthwaite's are too many if a part has few runs and one part scatters less than another
    (benchmarks/verdict_rule.py).
    """
    return max(freedom / 2, min(part.freedom for part in parts))


def add_variances(parts: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the sum of variances and its degrees of freedom by Satterthwaite (1946), from those of each variance."""
    total = sum(variance for variance, _ in parts)
    spread = sum(variance**2 / (freedom or 1) for variance, freedom in parts)
    return total, total**2 / spread if spread else parts[0][1]


def find_mean(runs: list[list[float]]) -> float:
    """Return the mean over pretrainings of the mean over seeds."""
    return fmean(map(fmean, runs))


def estimate_slope(curves: list[Curve]) -> Estimate:
    """Estimate the mean slope of one curve a dataset, in points per tenfold x, with its error.

    The error of several curves comes from the scatter of their slopes; that of one curve from its residuals, if it has
    three or more points, not all at one x.
    """
    if len(curves) > 1:
        return estimate_mean([find_slope(points) for points in curves])
    from scipy import stats

    (curve,) = curves
    slope, freedom, error = find_slope(curve), len(curve) - 2, np.nan
    if freedom > 0 and not np.isnan(slope):
        positions, scores = zip(*curve, strict=True)
        error = stats.linregress(np.log10(positions), list(map(fmean, scores))).stderr
    return Estimate(slope, float(error), freedom)


def find_slope(points: Curve) -> float:
    """Return the least-squares slope through the means of some points, per tenfold x."""
    return fit_slope([x for x, _ in points], [np.mean(scores) for _, scores in points])


def fit_slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the least-squares slope of y per tenfold x; nan if all x are equal."""
    deviations = np.log10(x) - np.log10(x).mean()
    sum_of_squares = (deviations**2).sum()
    return float((deviations * y).sum() / sum_of_squares) if sum_of_squares > 1e-12 else np.nan


def judge(estimate: Estimate, relation: Relation = "beats", margin: float = 0.0) -> dict:
    """Return the effect with its 95% t-interval and the verdict of `decide`; undecided if the error is unknown."""
    from scipy import special

    if np.isnan(estimate.error):
        return {"effect": estimate.effect, "ci_low": np.nan, "ci_high": np.nan, "p": 1.0, "verdict": "undecided"}
    half_width = -special.stdtrit(estimate.freedom, SIGNIFICANT / 2) * estimate.error
    interval = estimate.effect - half_width, estimate.effect + half_width

    def find_chance(bound: float, below: bool) -> float:
        gap = bound - estimate.effect if below else estimate.effect - bound
        return float(special.stdtr(estimate.freedom, gap / estimate.error)) if estimate.error else float(gap > 0)

    return {"effect": estimate.effect} | decide(interval, find_chance, relation, margin)


def judge_median(values: list[float], threshold: float, margin: float = 0.0) -> dict:
    """Return the median with its exact 95% interval, judged as above `threshold` or, with a margin, as equal to it."""
    from scipy import stats

    def find_chance(bound: float, below: bool) -> float:
        alternative = "greater" if below else "less"
        return stats.quantile_test(values, q=bound + threshold, alternative=alternative).pvalue

    interval = stats.quantile_test(values).confidence_interval()
    decision = decide([end - threshold for end in interval], find_chance, "equals" if margin else "beats", margin)
    return {"effect": float(np.median(values))} | decision | dict(zip(("ci_low", "ci_high"), interval, strict=True))


def find_bounds(relation: Relation, margin: float) -> tuple[float, float]:
    """Return what an effect must lie between.

    beats: above zero. as good as: above minus the margin. equals: within the margin on both sides.
    """
    return 0.0 if relation == "beats" else -margin, margin if relation == "equals" else np.inf


def decide(interval: tuple[float, float], find_chance: Chance, relation: Relation, margin: float) -> dict:
    """Return the verdict on an interval, and its p.

    A claim `holds` if the whole interval lies within the bounds of its relation, `fails` if all of it lies elsewhere;
    otherwise it is `undecided`. `p` is two-sided, twice the chance at the verdict's bound.
    """
    low, high = map(float, interval)
    lower, upper = find_bounds(relation, margin)
    if lower < low and high < upper:
        verdict, chance = "holds", find_chance(lower, True)
        if np.isfinite(upper):
            chance = max(chance, find_chance(upper, False))
    elif high < lower:
        verdict, chance = "fails", find_chance(lower, False)
    elif low > upper:
        verdict, chance = "fails", find_chance(upper, True)
    else:
        verdict, chance = "undecided", 0.5
    return {"ci_low": low, "ci_high": high, "p": min(1.0, 2 * float(chance)), "verdict": verdict}


def limit(verdict: str, recipe: bool, pretrainings: int) -> str:
    """Weaken a verdict on a recipe to one that only points, if a side has fewer than PRETRAININGS pretrainings.

    The error from a single pretraining leaves out the chance of pretraining.
    """
    return weaken(verdict) if recipe and pretrainings < PRETRAININGS else verdict


def weaken(verdict: str) -> str:
    """Return what remains of a verdict if a condition of page 00 is not met: that the effect points one way."""
    return POINTS.get(verdict, verdict)


def correct(ps: list[float]) -> list[float]:
    """Correct the p values of several tests for their number (Holm 1979)."""
    order, corrected, highest = np.argsort(ps), [0.0] * len(ps), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[index]))
        corrected[index] = highest
    return corrected
