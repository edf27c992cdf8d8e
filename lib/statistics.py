"""Intervals, verdicts on paired differences and slopes by resampling, corrections for several tests."""

import numpy as np

RESAMPLES = 10_000


def find_interval(values: list[float]) -> tuple[float, float]:
    """The 95% t-interval of the mean of two values or more."""
    from scipy import stats  # here, as it takes most of a second, which the command line need not wait

    mean, half = np.mean(values), stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return mean - half, mean + half


def judge_difference(
    differences: list[list[float]], relation: str = "beats", margin: float = 0.0, seed: int = 0
) -> dict:
    """The mean paired difference, its 95% bootstrap interval, and whether it is as claimed.

    `differences`: for each dataset, one difference a seed, of the better minus the other. Resampled over datasets, and
    over seeds within each. `relation` and `margin`: as in `judge_means`.
    """
    _, means = draw_means(differences, np.random.default_rng(seed))
    effect = float(np.mean([np.mean(d) for d in differences]))
    return {"effect": effect, "n": sum(map(len, differences))} | judge_means(means.mean(axis=1), relation, margin)


def draw_means(samples: list[list[float]], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A bootstrap over samples and the values within each: which were drawn, and the means; (RESAMPLES, samples)."""
    means = np.empty((RESAMPLES, len(samples)))
    picks = rng.integers(0, len(samples), means.shape)
    for i, values in enumerate(samples):
        means[picks == i] = draw_mean(values, means.shape, rng)[picks == i]
    return picks, means


def draw_mean(values: list[float], shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """So many means of as many values, drawn with replacement."""
    return np.asarray(values)[rng.integers(0, len(values), (*shape, len(values)))].mean(-1)


Curve = list[tuple[float, list[float]]]  # its points: a place above zero, and our scores there, one a seed


def judge_trend(curves: list[Curve], seed: int = 0) -> dict:
    """The mean slope of one curve a dataset, in points for each tenfold x, its 95% bootstrap interval, and whether it
    is above zero. Resampled over datasets and, within each, over the seeds at every point.
    """
    rng = np.random.default_rng(seed)
    slopes = np.empty((RESAMPLES, len(curves)))
    picks = rng.integers(0, len(curves), slopes.shape)
    for i, points in enumerate(curves):
        y = np.stack([draw_mean(values, slopes.shape, rng) for _, values in points], axis=-1)
        slopes[picks == i] = find_slopes(np.array([x for x, _ in points]), y)[picks == i]
    effect = float(np.mean([find_slope(points) for points in curves]))
    scores = sum(len(values) for points in curves for _, values in points)
    return {"effect": effect, "n": scores} | judge_means(slopes.mean(axis=1))


def judge_cloud(points: Curve, seed: int = 0) -> dict:
    """The slope over points that are a dataset each; else as in `judge_trend`.

    Draws whose points all have one x have no slope, and are left out.
    """
    picks, y = draw_means([values for _, values in points], np.random.default_rng(seed))
    slopes = find_slopes(np.array([x for x, _ in points])[picks], y)
    scores = sum(len(values) for _, values in points)
    return {"effect": find_slope(points), "n": scores} | judge_means(slopes[~np.isnan(slopes)])


def find_slope(points: Curve) -> float:
    """The slope of the line of least squares through the means of some points, for each tenfold x."""
    return float(find_slopes(np.array([x for x, _ in points]), np.array([np.mean(values) for _, values in points])))


def find_slopes(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The slopes of lines of least squares over the last axis, for each tenfold x; nan where all x are one."""
    places = np.log10(x) - np.log10(x).mean(axis=-1, keepdims=True)
    squares = (places**2).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(squares > 1e-12, (places * y).sum(axis=-1) / squares, np.nan)


def judge_means(means: np.ndarray, relation: str = "beats", margin: float = 0.0) -> dict:
    """The 95% interval of resampled means, the verdict on it, and the verdict's p.

    beats: above zero. as good as: above minus the margin. equals: within the margin on both sides. A claim `holds`
    when the whole interval lies where it says, `fails` when all of it lies elsewhere, else it is `undecided`. `p` is
    two-sided: twice the share of means on the wrong side of the verdict's bound, and at least one in RESAMPLES.
    """
    low, high = np.percentile(means, [2.5, 97.5])
    bounds = {"beats": (0.0, np.inf), "as good as": (-margin, np.inf), "equals": (-margin, margin)}[relation]
    outside = (np.mean(means <= bounds[0]), np.mean(means >= bounds[1]))
    if bounds[0] < low and high < bounds[1]:
        verdict, p = "holds", 2 * max(outside)
    elif high < bounds[0] or low > bounds[1]:
        verdict, p = "fails", 2 * (1 - max(outside))
    else:
        verdict, p = "undecided", 1.0
    return {"ci_low": float(low), "ci_high": float(high), "p": max(p, 1 / RESAMPLES), "verdict": verdict}


def correct(ps: list[float]) -> list[float]:
    """The p values of several tests, corrected for their number (Holm 1979)."""
    order, corrected, highest = np.argsort(ps), [0.0] * len(ps), 0.0
    for done, i in enumerate(order):
        highest = max(highest, min(1.0, (len(ps) - done) * ps[i]))
        corrected[i] = highest
    return corrected
