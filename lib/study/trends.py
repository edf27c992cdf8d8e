"""Claims that scores rise with pretraining text or steps, or that gains fall with the size of the training set."""

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lib import statistics
from lib.study import params, tables
from lib.study.verdicts import Judgement, Test, decide_all

if TYPE_CHECKING:
    from lib.study import Study

FEWEST = 3  # points that a curve needs for a trend


@dataclass(frozen=True)
class Trend:
    """The curves of a figure that are claimed to rise, or fall, with the logarithm of its axis."""

    figure: str
    only: tuple[str, ...] = ()  # the curves that count; empty: all
    falls: bool = False


def trend(*parts: Trend) -> Test:
    """Return a test that curves of figures rise, or fall, with the logarithm of their axes."""
    figures = tuple(part.figure for part in parts)
    decide = partial(decide_trends, parts)
    return Test(decide, "recipe", figures, parts=parts, by_interval=True, measured_in="points")


def decide_trends(parts: tuple[Trend, ...], study: "Study") -> Judgement:
    """Judge a claim that scores rise with pretraining, or that gains fall with the size of the fine-tuning set.

    It does not test whether a curve also *levels off* (lee-corpus-size, lee-steps), which needs more points near the
    end than the figures have, nor whether gains are *large*: only whether smaller sets gain more.
    """
    judgements = [judge_trend(part, study) for part in parts]
    decisive = decide_all(judgements) if any(judgement.n for judgement in judgements) else judgements[0]
    return replace(decisive, note="; ".join(judgement.note for judgement in judgements))


def judge_trend(part: Trend, study: "Study") -> Judgement:
    """Judge the mean slope of a figure's curves, of three points or more each, on the logarithm of its axis.

    The sign is reversed if the claim is that they fall. If the axis is along rows, each point is a dataset, and the
    error comes from the points.
    """
    table = params.load("tables", part.figure)
    sign = -1 if part.falls else 1
    curve_column = name_curves(table)
    seeds = list_curve_seeds(part, study)
    scored = seeds.dropna(subset="ours")
    curves = {}
    for name, points in scored.groupby(curve_column, sort=False):
        curve = list_points(points, sign)
        if is_long(curve):
            curves[name] = curve
    fields = {"paper_effect": sign * find_printed_slope(seeds, curve_column)}
    fields["paper_effect_here"] = sign * find_printed_slope(scored, curve_column)
    if not curves:
        return Judgement(note=f"{part.figure}: no curve has {FEWEST} points", **fields)

    fields |= statistics.judge(statistics.estimate_slope(list(curves.values())))
    runs_per_point = [len(values) for curve in curves.values() for _, values in curve]
    n_sets = len(runs_per_point) if table.along == "rows" else len(curves)
    fields |= {"n": sum(runs_per_point), "n_sets": n_sets, "n_pretrainings": 1, "n_seeds": min(runs_per_point)}
    factor = f"ten times {'fewer' if part.falls else 'more'} {table.axis}"
    note = f"{part.figure}: points for {factor}; {', '.join(curves)}, {len(runs_per_point)} points on the curve"
    return Judgement(**fields, note=note)


def name_curves(table: params.CurveTable) -> str:
    """Return what names the curves of a figure: its rows, or its columns if the axis is along rows."""
    return "row" if table.along == "columns" else "column"


def list_curve_seeds(part: Trend, study: "Study") -> pd.DataFrame:
    """Return the points of the curves that count, a row for each seed as in tables.by_seed; for gains, the gains."""
    seeds = tables.by_seed(study.published(part.figure), study.results())
    name = name_curves(params.load("tables", part.figure))
    return seeds[seeds[name].isin(part.only or seeds[name])]


def list_points(seeds: pd.DataFrame, sign: int) -> statistics.Curve:
    """Return a curve: its places on the axis, as far as they are known, each with its seeds' values times `sign`."""
    by_point = seeds.dropna(subset="x").groupby(tables.PLACE, sort=False)
    return [(points["x"].iloc[0], (sign * points["ours"]).tolist()) for _, points in by_point]


def is_long(curve: statistics.Curve) -> bool:
    """Return whether a curve has points at enough places for a trend."""
    return len({x for x, _ in curve}) >= FEWEST


def find_printed_slope(points: pd.DataFrame, name: str) -> float:
    """Return the mean slope of the printed curves of three points or more; nan if there are none."""
    printed = points.drop_duplicates(tables.PLACE).dropna(subset=["published_x", "published"])
    slopes = []
    for _, points_of_curve in printed.groupby(name):
        pairs = points_of_curve[["published_x", "published"]].itertuples(index=False)
        curve = [(x, [score]) for x, score in pairs]
        if is_long(curve):
            slopes.append(statistics.find_slope(curve))
    return float(np.mean(slopes)) if slopes else np.nan
