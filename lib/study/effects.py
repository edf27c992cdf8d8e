"""What claims compare of runs: paired differences and slopes, of our scores and of the printed ones."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from lib import statistics
from lib.benchmarks import registry
from lib.study import params, published, results, tables

if TYPE_CHECKING:
    from lib.study import Study

FEWEST = 3  # points of a curve that make a trend
ASKED = {"beats": "above 0", "as good as": "above -{:g}", "equals": "within {:g} of 0"}
# Of each side, below which a claim about recipes of pretraining at most points: the intervals here leave out the chance
# of pretraining (page 00).
FEWEST_PRETRAININGS = 3
PRETRAININGS = 1  # of each model
POINTS = {"holds": "points that way", "fails": "points the other way"}

Relation = Literal["beats", "as good as", "equals"]
Unit = Literal["recipe", "checkpoint", ""]  # compared are recipes of pretraining, uses of one model, or neither
Side = tuple[str, str]  # a model and a protocol


@dataclass(frozen=True)
class Judgement:
    """What a test found: `n` is 0 where nothing was measured, `p` empty where nothing was resampled.

    `paper_effect`: the same of the printed scores, over all sets of the comparison; `_here`: over those that ran.
    """

    effect: float = np.nan
    ci_low: float = np.nan
    ci_high: float = np.nan
    n: int = 0
    p: float = np.nan
    verdict: str = "n/a"
    note: str = ""
    paper_effect: float = np.nan
    paper_effect_here: float = np.nan

    def leave_open(self) -> "Judgement":
        """The same of what has not been tested in full."""
        return replace(self, verdict="undecided", p=1.0)


@dataclass(frozen=True)
class Pairs:
    """Columns or rows of a table of scores in pairs, or two runs on some datasets: the better, and what it beats.

    All pairs together are one comparison.
    """

    pairs: tuple[tuple[str, str], ...] = ()
    table: str = ""
    metric: str = ""  # as printed; empty where each row has its own
    only: tuple[str, ...] = ()  # the rows, or columns, over which the pairs are compared; empty: all
    runs: tuple[Side, ...] = ()  # both sides, in place of a table and its pairs, on
    datasets: tuple[str, ...] = ()
    relation: Relation = "beats"
    margin: float = 0.0  # points, of "as good as" and "equals"
    ahead: int = 0  # the sets on which the better has to be ahead; 0: their mean


@dataclass(frozen=True)
class Trend:
    """The curves of a figure that has an axis, on whose logarithm they rise, or fall."""

    figure: str
    only: tuple[str, ...] = ()  # the curves that count; empty: all
    falls: bool = False


@dataclass(frozen=True)
class Test:
    """How a claim is decided, and what of the study it reads."""

    decide: Callable[["Study"], Judgement]
    unit: Unit = ""
    tables: tuple[str, ...] = ()
    vocabularies: tuple[str, ...] = ()
    parts: tuple[Pairs, ...] | tuple[Trend, ...] = ()


def limit_verdict(verdict: str, unit: Unit) -> str:
    """A verdict as far as the number of pretrainings bears it: of recipes that were trained once, one that points."""
    return POINTS.get(verdict, verdict) if unit == "recipe" and PRETRAININGS < FEWEST_PRETRAININGS else verdict


def paired(table: str, *pairs: tuple[str, str], unit: Unit = "recipe", metric="", only=(), ahead=0,
           relation: Relation = "beats", margin=0.0) -> Test:  # fmt: skip
    """That columns or rows of a table are better than others, over datasets and seeds; arguments as of Pairs."""
    part = Pairs(pairs, table, metric, tuple(only), relation=relation, margin=margin, ahead=ahead)
    return Test(partial(decide_pairs, (part,), unit), unit, (table,), parts=(part,))


def paired_runs(better: Side, than: Side, datasets: list[str], unit: Unit = "recipe", ahead=0,
                relation: Relation = "beats", margin=0.0) -> Test:  # fmt: skip
    """That one kind of run is better than another on some datasets, by their main scores; arguments as of Pairs."""
    part = Pairs(runs=(better, than), datasets=tuple(datasets), relation=relation, margin=margin, ahead=ahead)
    return Test(partial(decide_pairs, (part,), unit), unit, parts=(part,))


def trend(figure: str, only=(), falls=False) -> Test:
    """That the curves of a figure rise with the logarithm of its axis, or fall; arguments as of Trend."""
    part = Trend(figure, tuple(only), falls)
    return Test(partial(decide_trends, (part,)), "recipe", (figure,), parts=(part,))


def all_of(*tests: Test) -> Test:
    """That several comparisons hold, all paired or all trends: the claim fails when one of them does."""
    parts, unit = tuple(part for test in tests for part in test.parts), tests[0].unit
    decide = partial(decide_trends, parts) if isinstance(parts[0], Trend) else partial(decide_pairs, parts, unit)
    return Test(decide, unit, tuple(name for test in tests for name in test.tables), parts=parts)


def find_decisive(judged: list[Judgement]) -> int:
    """Which of the parts that were measured decides: the first that fails, else that with the highest p."""
    fails = [number for number, one in enumerate(judged) if one.n and one.verdict == "fails"]
    return fails[0] if fails else max((n for n, one in enumerate(judged) if one.n), key=lambda n: judged[n].p)


def decide_all(judged: list[Judgement]) -> Judgement:
    """A claim of several parts, some of which were measured: it holds when every part does, and fails when one does.

    Effects, interval and p are those of the part that decides.
    """
    decided = judged[find_decisive(judged)]
    return decided if decided.verdict == "fails" or all(one.n for one in judged) else decided.leave_open()


def decide_pairs(parts: tuple[Pairs, ...], unit: Unit, study: "Study") -> Judgement:
    """A claim of paired comparisons, as many as it has parts."""
    judged = [judge_pairs(part, study) for part in parts]
    if not any(one.n for one in judged):
        return replace(judged[0], note="no pair of runs has been made")
    if len(parts) == 1:
        return replace(judged[0], note=f"points, {judged[0].note}")
    notes = [f"points, of part {find_decisive(judged) + 1}"]
    for number, one in enumerate(judged, 1):
        measured = f"{one.effect:+.2f} points, {limit_verdict(one.verdict, unit)}, " if one.n else ""
        notes.append(f"part {number}: {measured}{one.note}")
    return replace(decide_all(judged), note="; ".join(notes))


def judge_pairs(part: Pairs, study: "Study") -> Judgement:
    """One comparison; its note says of what.

    Undecided while one of its pairs has not been run, or while only one of its several sets has; so is one that would
    hold, but is ahead on fewer sets than it speaks of.
    """
    shown = tabulate_pairs(part, study)
    gaps = subtract_pairs(part, shown, study)
    ran = gaps[gaps["ours"].notna()]
    printed, here = (lines.drop_duplicates(["pair", "place"])["published"].mean() for lines in (gaps, ran))
    if ran.empty:
        return Judgement(note="no pair has been run", paper_effect=printed)
    differences = [ours.tolist() for _, ours in ran.groupby(["pair", "place"], sort=False)["ours"]]
    found = statistics.judge_difference(differences, part.relation, part.margin)
    judged = Judgement(**found, paper_effect=printed, paper_effect_here=here)
    (sets, of_sets), (pairs, of_pairs) = ((ran[name].nunique(), gaps[name].nunique()) for name in ("place", "pair"))
    if pairs < of_pairs or sets == 1 < of_sets:
        judged = judged.leave_open()
    said = [*ran["place"].unique(), f"{sets} of {of_sets} sets"]
    said += [f"{pairs} of {of_pairs} pairs"] * (of_pairs > 1) + list_substitutions(part, shown)
    note = f"asked to be {ASKED[part.relation].format(part.margin)}: {', '.join(said)}"
    if part.ahead:
        ahead = sum(np.mean(values) > 0 for values in differences)
        note += f"; ahead on {ahead} of the {part.ahead} sets that it speaks of"
        if ahead < part.ahead and judged.verdict == "holds":
            judged = judged.leave_open()
    return replace(judged, note=note)


def tabulate_pairs(part: Pairs, study: "Study") -> pd.DataFrame:
    """The cells of a comparison as of Study.published: of its table, or of its two runs as columns of one."""
    if part.table:
        return study.published(part.table)
    lines = []
    for column, (model, protocol) in zip(("better", "than"), part.runs, strict=True):
        for dataset in part.datasets:
            asked = params.Run(model=model, dataset=dataset, protocol=protocol)
            made, score = published.settle(asked, study.scale), registry.lookup(dataset).main_score
            line = {"row": dataset, "column": column, "metric": score, "published": find_printed(asked, score)}
            line |= made.model_dump(include={"model", "dataset", "protocol"}) | {"score": score}
            why_not = published.find_obstacle(made.model, [[dataset]], study.scale, made.protocol)
            line |= {"group": 0, "is_mean": False, "why_not": why_not}
            lines.append(line | {"instead": published.describe_instead(asked, made)})
    return pd.DataFrame(lines)


def subtract_pairs(part: Pairs, shown: pd.DataFrame, study: "Study") -> pd.DataFrame:
    """The better minus the other: as of tables.differences, with the number of the pair.

    Means over several sets are left out: their sets are there one by one.
    """
    kept = shown[~shown["is_mean"] & (shown["model"] != "") & (shown["dataset"] != "")]
    kept = kept[kept["metric"] == part.metric] if part.metric else kept
    kept = fill_printed(kept, part.table) if part.table else kept
    seeds = tables.by_seed(kept, study.results())
    found = []
    for number, pair in enumerate(part.pairs or (("better", "than"),)):
        across = "column" if {*pair} <= {*kept["column"]} else "row"
        found.append(tables.differences(seeds, *pair, across).assign(pair=number))
    gaps = pd.concat(found)
    return gaps[gaps["place"].isin(part.only)] if part.only else gaps


def fill_printed(cells: pd.DataFrame, table: str) -> pd.DataFrame:
    """Cells of Study.published with what the paper prints in another table of a column that is ours alone here."""
    cells = cells.copy()
    for line in cells[cells["published"].isna() & ~cells["is_mean"]].itertuples():
        asked = published.find_run(params.load("tables", table), line.row, line.column)
        cells.loc[line.Index, "published"] = find_printed(asked, line.score)
    return cells


def list_substitutions(part: Pairs, shown: pd.DataFrame) -> list[str]:
    """What the runs of a comparison have in place of what it asks for, each once."""
    named = {name for pair in part.pairs or (("better", "than"),) for name in pair}
    of_pairs = shown["row"].isin(named) | shown["column"].isin(named)
    return shown.loc[of_pairs & (shown["why_not"] == "") & (shown["instead"] != ""), "instead"].unique().tolist()


def find_printed(asked: params.Run, score: str) -> float:
    """What the paper of a run's protocol prints of it, in whichever table; nan for nothing."""
    paper = params.load("protocols", asked.protocol).paper
    return read_printed(paper).get((asked.model, asked.dataset, asked.protocol, score), np.nan)


@cache
def read_printed(paper: str) -> dict[tuple[str, str, str, str], float]:
    """What a paper's tables print of a run: by model, dataset, protocol and score; the first table says it."""
    found = {}
    for table in (params.load("tables", key) for key in params.keys("tables")):
        if table.kind == "scores" and table.paper == paper:
            for cell in results.read_published(paper, table.table).to_dict("records"):
                run = published.find_run(table, cell["row"], cell["column"])
                if run.model and run.dataset:
                    score = table.metrics.get(cell["metric"]) or registry.lookup(run.dataset).main_score
                    found.setdefault((run.model, run.dataset, run.protocol, score), cell["value"])
    return found


def decide_trends(parts: tuple[Trend, ...], study: "Study") -> Judgement:
    """A claim that scores rise with pretraining, or that gains fall with the size of the fine-tuning set.

    That a curve also *levels off* (lee-corpus-size, lee-steps) is not tested: it would take more points near the end
    than the figures have. Nor is that gains are *large*: only that smaller sets gain more.
    """
    judged = [judge_trend(part, study) for part in parts]
    decided = decide_all(judged) if any(one.n for one in judged) else judged[0]
    return replace(decided, note="; ".join(one.note for one in judged))


def judge_trend(part: Trend, study: "Study") -> Judgement:
    """The mean slope of a figure's curves of three points or more on the logarithm of its axis, turned where they fall.

    Where the axis is along rows each point is a dataset, and points are what is resampled.
    """
    table, sign = params.load("tables", part.figure), -1 if part.falls else 1
    seeds = list_seeds(part, study)
    ran = seeds.dropna(subset="ours")
    found = {name: list_points(points, sign) for name, points in ran.groupby(name_curves(table), sort=False)}
    found = {name: curve for name, curve in found.items() if is_long(curve)}
    here = seeds[seeds.set_index(tables.PLACE).index.isin(ran.set_index(tables.PLACE).index)]
    printed, of_ours = (sign * find_printed_slope(points, name_curves(table)) for points in (seeds, here))
    if not found:
        note = f"{part.figure}: no curve of {FEWEST} points or more has been run"
        return Judgement(note=note, paper_effect=printed, paper_effect_here=of_ours)
    if table.along == "rows":
        (points,) = found.values()
        judged = statistics.judge_cloud(points)
    else:
        judged = statistics.judge_trend(list(found.values()))
    way, count = "fewer" if part.falls else "more", sum(map(len, found.values()))
    note = f"{part.figure}: points for ten times {way} {table.axis}; {', '.join(found)}, {count} points"
    return Judgement(**judged, note=note, paper_effect=printed, paper_effect_here=of_ours)


def name_curves(table: params.CurveTable) -> str:
    """What the curves of a figure are named for: its rows, or its columns where the axis is along rows."""
    return "row" if table.along == "columns" else "column"


def list_seeds(part: Trend, study: "Study") -> pd.DataFrame:
    """The points of the curves that count, a line a seed as of tables.by_seed; of gains, the gains."""
    shown, runs = study.published(part.figure), study.results()
    seeds = tables.by_seed(shown[shown["side"] == ""], runs)
    if (shown["side"] == "than").any():
        seeds = tables.subtract(seeds, tables.by_seed(shown[shown["side"] == "than"], runs))
    name = name_curves(params.load("tables", part.figure))
    return seeds[seeds[name].isin(part.only or seeds[name])]


def list_points(seeds: pd.DataFrame, sign: int) -> statistics.Curve:
    """A curve: each of its places on the axis, with the values of its seeds, turned where it is said to fall."""
    each = seeds.groupby(tables.PLACE, sort=False)
    return [(points["x"].iloc[0], (sign * points["ours"]).tolist()) for _, points in each]


def is_long(curve: statistics.Curve) -> bool:
    """Whether a curve has points at enough places to make a trend."""
    return len({x for x, _ in curve}) >= FEWEST


def find_printed_slope(points: pd.DataFrame, name: str) -> float:
    """The mean slope of some curves as printed, of three points or more; nan where none is."""
    printed = points.drop_duplicates(tables.PLACE).dropna(subset=["published_x", "published"])
    lines = printed.groupby(name)
    curves = [[(x, [y]) for x, y in line[["published_x", "published"]].itertuples(index=False)] for _, line in lines]
    slopes = [statistics.find_slope(curve) for curve in curves if is_long(curve)]
    return float(np.mean(slopes)) if slopes else np.nan
