"""Ours beside the papers': the rules for a verdict, tables as people read them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from lib.errors import StudyError
from lib.places import show_path
from lib.study import params, paths, results

RESAMPLES = 10_000
VERDICTS = ("agrees", "explained", "below", "above", "differs", "n/a")  # on a printed cell with ours beside it


def judge_cell(published: float, ours: list[float]) -> str:
    """`agrees` when the printed value lies in the 95% t-interval of our mean over seeds, else `below` or `above`.

    Fewer than two seeds give no interval: `n/a`.
    """
    if len(ours) < 2 or np.isnan(published):
        return "n/a"
    low, high = find_interval(ours)
    return "agrees" if low <= published <= high else "below" if high < published else "above"


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


def show_value(value: float | str, decimals: int = 2) -> str:
    return value if isinstance(value, str) else f"{value:.4f}" if 0 < value < 0.1 else f"{value:.{decimals}f}"


def show_ours(line: dict, decimals: int = 2) -> str:
    if pd.isna(line["ours"]):
        return "n/a"
    return show_value(line["ours"], decimals) + ("" if pd.isna(line["ours_std"]) else f" ± {line['ours_std']:.2f}")


def read_tables(scale: str) -> dict[str, pd.DataFrame]:
    """The published tables that have been made at a scale, by key; figures repeat cells of tables, and are left out."""
    keys = [key for key in params.keys("tables") if params.load("tables", key).kind != "curves"]
    found = {key: results.find_table(paths.table(scale, key)) for key in keys}
    return {key: table for key, table in found.items() if table is not None}


def count_verdicts(scale: str) -> pd.DataFrame:
    """Of each table: its printed cells, how many have ours beside them, and how many of these each verdict took.

    In the order of the notebooks. Tables that have not been made, and figures whose values the papers do not print,
    count nothing.
    """
    lines, made = [], read_tables(scale)
    for key in sorted(params.keys("tables"), key=lambda key: params.load("tables", key).notebook):
        cells = made.get(key, pd.DataFrame(columns=["published", "ours", "verdict"]))
        printed = cells[cells["published"].notna()]
        ran = printed[printed["ours"].notna()]
        verdicts = ran["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
        lines.append({"table": key, "printed": len(printed), "ours beside": len(ran)} | verdicts.to_dict())
    return pd.DataFrame(lines)


def split_verdicts(verdicts: pd.DataFrame) -> dict[str, pd.Series]:
    """The verdicts of tables added up: of what needs no training, and of the scores of models trained here."""
    scores = np.array([params.load("tables", key).kind == "scores" for key in verdicts["table"]], dtype=bool)
    counts = verdicts[["printed", "ours beside", *VERDICTS]].astype(int)  # a paper may have no table of a kind
    return {"what is counted": counts[~scores].sum(), "scores of models": counts[scores].sum()}


def describe_agreement(counts: pd.Series) -> str:
    """Of the cells that were judged, how many agree: of one table, or of several added up."""
    judged = counts["ours beside"] - counts["n/a"]
    if not judged:
        return "none is judged"
    explained = f", {counts['explained']} more explained" if counts["explained"] else ""
    below = f", {counts['below']} below" if counts["below"] else ""
    return f"{counts['agrees']} of {judged} agree{explained}{below}"


def computed(path: Path, scale: str, make: Callable[..., object], *arguments) -> pd.DataFrame:
    """A table of a page: made of what is at hand, and written; or, without the scale's data, that of the record.

    So a page that is opened where there are neither data nor weights shows what was measured, and changes nothing.
    Raises StudyError where nothing is at hand.
    """
    if not paths.data(scale).is_dir() and (recorded := results.find_table(path)) is not None:
        return recorded
    table = pd.DataFrame(make(*arguments))
    if table.columns.empty:
        raise StudyError(f"{show_path(path)}: nothing at hand to make it of: run ./run_all.sh {scale}")
    results.write_csv(path, table)
    return table
