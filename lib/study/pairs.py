"""Claims that one side beats another over datasets: two columns or rows of a score table, or two kinds of run."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lib import statistics
from lib.benchmarks import registry
from lib.study import params, published, tables
from lib.study.verdicts import Judgement, Test, Unit, decide_all

if TYPE_CHECKING:
    from lib.study import Study

ASKED = {"beats": "above 0", "as good as": "above -{:g}", "equals": "within {:g} of 0"}
Side = tuple[str, str]  # a model and a protocol
Scores = dict[str, dict[int, list[float]]]  # of a side: place -> pretraining -> our score with each seed


@dataclass(frozen=True)
class Pairs:
    """A comparison of two columns or rows of a score table, or of two kinds of run; the better side comes first.

    With more than two names, the other side is the mean of all but the first.
    """

    names: tuple[str, ...] = ("better", "than")
    table: str = ""
    metric: str = ""  # as printed; empty if each row has its own
    only: tuple[str, ...] = ()  # the rows or columns to compare over; empty: all
    runs: tuple[Side, ...] = ()  # both sides, in place of a table and its names
    datasets: tuple[str, ...] = ()  # for `runs`
    relation: statistics.Relation = "beats"
    margin: float = 0.0  # for "as good as" and "equals"
    ahead: int = 0  # datasets on which the better side must lead too; 0: only the mean counts
    than_at_chance: bool = False  # the worse side may be at chance, because the claim says so
    unit: Unit = "recipe"


def paired(table: str, *pairs: tuple[str, ...], only: Iterable[str] = (), **asked) -> Test:
    """Return a test that columns or rows of a table beat others, pair by pair. `asked`: fields of Pairs."""
    return compare(*(Pairs(pair, table, only=tuple(only), **asked) for pair in pairs))


def paired_runs(better: Side, than: Side, datasets: Iterable[str], **asked) -> Test:
    """Return a test that one kind of run beats another on some datasets, by main score. `asked`: fields of Pairs."""
    return compare(Pairs(runs=(better, than), datasets=tuple(datasets), **asked))


def all_of(*tests: Test) -> Test:
    """Return a test that several comparisons all hold; the claim fails if one of them fails."""
    return compare(*(part for test in tests for part in test.parts))


def compare(*parts: Pairs) -> Test:
    """Return the test of a claim that consists of paired comparisons, one for each part."""
    table_keys = tuple(dict.fromkeys(part.table for part in parts if part.table))
    decide = partial(decide_pairs, parts)
    return Test(decide, parts[0].unit, table_keys, parts=parts, by_interval=True, measured_in="points")


def decide_pairs(parts: tuple[Pairs, ...], study: "Study") -> Judgement:
    """Judge a claim that consists of paired comparisons, one for each part."""
    tabulated = {}  # a table, or runs and datasets -> the compared cells and our scores in them
    judgements, cells_of_parts = [], []
    for part in parts:
        source = part.table, part.runs, part.datasets
        if source not in tabulated:
            cells = list_compared_cells(part, study)
            tabulated[source] = cells, tables.by_seed(cells, study.results())
        cells, seeds = tabulated[source]
        judgements.append(judge_pairs(part, study, cells, seeds))
        cells_of_parts.append(cells)
    if not any(judgement.n for judgement in judgements):
        reason = describe_obstacles(study, parts, cells_of_parts)
        return replace(judgements[0], note=f"not run: {reason}" if reason else "not run")
    if len(parts) == 1:
        return judgements[0]
    decisive = decide_all(judgements)
    left_open = decisive.verdict == "undecided" and judgements[decisive.part - 1].verdict == "holds"
    notes = ["undecided because some parts did not run" if left_open else f"part {decisive.part} decides"]
    notes += list_part_notes(
        [describe_part(part, judgement) for part, judgement in zip(parts, judgements, strict=True)]
    )
    return replace(decisive, note="; ".join(notes))


def list_part_notes(described: list[str]) -> list[str]:
    """List the results of several comparisons by number; consecutive equal results share one note."""
    notes = []
    first = 1
    for description, repeats in groupby(described):
        last = first + len(list(repeats)) - 1
        if last == first:
            label = f"part {first}"
        elif last == first + 1:
            label = f"parts {first} and {last}"
        else:
            label = f"parts {first} to {last}"
        notes.append(f"{label}: {description}")
        first = last + 1
    return notes


def describe_part(part: Pairs, judged: Judgement) -> str:
    """Describe the result of one of several comparisons."""
    verdict = statistics.limit(judged.verdict, part.unit == "recipe", judged.n_pretrainings)
    decided = " before correction" if verdict in ("holds", "fails") else ""
    return f"{judged.effect:+.2f} points, {verdict}{decided}, {judged.note}" if judged.n_sets else judged.note


def describe_obstacles(study: "Study", parts: tuple[Pairs, ...], tables_of_cells: list[pd.DataFrame]) -> str:
    """Explain why whole sides of comparisons are not run at a scale, whatever data are at hand; empty if all may be."""
    reasons = {}  # reason -> the names that it holds for, as the keys of a dict
    for part, cells in zip(parts, tables_of_cells, strict=True):
        for name, side in find_cells(part, cells).groupby("name", sort=False):
            cell = side.iloc[0]
            model, reason = cell["model"], cell["why_not"]
            if model:
                reason = published.why_not_planned(study, model, side["dataset"], cell["protocol"])
            if reason:
                reasons.setdefault(reason, {})[model or name] = None
    return "; ".join(f"{reason} ({', '.join(names)})" for reason, names in reasons.items())


def judge_pairs(part: Pairs, study: "Study", table_cells: pd.DataFrame, seeds: pd.DataFrame) -> Judgement:
    """Judge one comparison; the note says what was tested.

    Datasets on which a side is no better than chance are named but not pooled, unless the claim says that this side is
    at chance. Undecided if only one of several datasets is pooled. `table_cells`: rows of Study.published; `seeds`: our
    scores in them, rows of tables.by_seed.
    """
    cells = find_cells(part, table_cells)
    printed_effects, sides = subtract_printed(part, cells), list_sides(part, cells, seeds)
    paper_effect = (
        printed_effects.mean()
        if printed_effects.notna().any()
        else subtract_means(part, table_cells, {*cells["dataset"]})
    )
    places = [place for place in printed_effects.index if all(place in side for side in sides)]
    if not places:
        return Judgement(note="not run", paper_effect=paper_effect)
    baselines = cells.merge(tables.baselines(cells, study.baselines()), on=tables.PLACE)
    baselines = baselines.drop_duplicates("place").set_index("place")
    better, than = (align(side, places) for side in sides)
    means = {place: (statistics.find_mean(better[place]), statistics.find_mean(than[place])) for place in places}
    tested = [better] if part.than_at_chance else [better, than]
    kept = [place for place in places if not any(is_chance(side[place], baselines["chance"][place]) for side in tested)]
    lost = [
        f"{place} ({better_mean - than_mean:+.2f})"
        for place, (better_mean, than_mean) in means.items()
        if place not in kept
    ]
    substituted = describe_substitutions(part, table_cells)
    note = describe_tested(part, kept, lost, len(printed_effects), substituted)
    facts = {
        "substituted": substituted,
        "paper_effect": paper_effect,
        "paper_effect_here": printed_effects[kept].mean(),
    }
    if not kept:
        n_runs = count_seeds([*better.values(), *than.values()])
        return Judgement(note=note, n=sum(n_runs), **facts).leave_open()

    pooled = cells[cells["place"].isin(kept)]
    samples = find_samples(part, pooled, study) if part.unit == "checkpoint" else []
    better_kept, than_kept = [better[place] for place in kept], [than[place] for place in kept]
    estimate = statistics.estimate_difference(better_kept, than_kept, part.unit == "recipe", samples)
    if estimate.drawn:
        note += f"; interval over {estimate.drawn}"
    n_below = sum(min(means[place]) < baselines["without_pretraining"][place] for place in kept)
    n_runs = count_seeds(better_kept + than_kept)
    judgement = Judgement(
        **statistics.judge(estimate, part.relation, part.margin), note=note, **facts, n=sum(n_runs), n_sets=len(kept),
        n_pretrainings=min(map(len, better_kept + than_kept)), n_seeds=min(n_runs),
        below_baseline=f"{n_below} of {len(kept)}",
    )  # fmt: skip
    if len(kept) == 1 < len(printed_effects):
        judgement = judgement.leave_open()
    n_ahead = sum(means[place][0] > means[place][1] for place in kept)
    return hold_back(judgement, part, list_unfair(part, pooled, study), n_ahead)


def count_seeds(side: statistics.Side) -> list[int]:
    """Count the runs of each pretraining of a side, dataset by dataset."""
    return [len(seeds) for pretrainings in side for seeds in pretrainings]


def describe_tested(part: Pairs, kept: list[str], left_out: list[str], printed: int, substituted: str) -> str:
    """Describe what was tested and on which datasets: those kept, out of `printed`, and those left out (`left_out`)."""
    note = f"tested: {ASKED[part.relation].format(part.margin)}, on {len(kept)} of {printed} datasets"
    if kept:
        note += f" ({', '.join(kept)})"
    if substituted:
        note += f", with {substituted}"
    if left_out:
        note += f"; left out, as a side is no better than chance: {', '.join(left_out)}"
    return note


def hold_back(judged: Judgement, part: Pairs, unfair: list[str], ahead: int) -> Judgement:
    """Leave a judgement open if the comparison is unfair, or if it holds but the better side leads on too few datasets.

    The note says so.
    """
    if unfair:
        judged = replace(judged.leave_open(), note=f"{judged.note}; not a fair comparison: {'; '.join(unfair)}")
    if part.ahead:
        judged = replace(judged, note=f"{judged.note}; ahead on {ahead} datasets, {part.ahead} needed")
    return judged.leave_open() if ahead < part.ahead and judged.verdict == "holds" else judged


def align(side: Scores, places: list[str]) -> dict[str, list[list[float]]]:
    """Return the scores of the pretrainings that all places share; of each place's first one if they share none."""
    common = set.intersection(*({*side[place]} for place in places))
    aligned = {}
    for place in places:
        shared = [seeds for pretraining, seeds in side[place].items() if pretraining in common]
        aligned[place] = shared or list(side[place].values())[:1]
    return aligned


def list_unfair(part: Pairs, cells: pd.DataFrame, study: "Study") -> list[str]:
    """List differences between the sides other than their models.

    These are the devices and precision of encoders, and word vectors of a text that both sides were trained on but from
    which only one side started.
    """
    differences = []
    runs = study.results().merge(cells[tables.RUN].drop_duplicates(), on=tables.RUN)
    devices = sorted({*runs["device"]} - {""})
    if len(devices) > 1:
        differences.append(f"run on {' and '.join(devices)}")
    is_better = cells["name"] == part.names[0]
    sides = []  # for each: corpus that its models were trained on -> whether they started from its word vectors
    for in_side in (is_better, ~is_better):
        corpora = {}
        for model in cells.loc[in_side, "model"].unique():
            if params.is_model(model):
                corpora |= study.model(model).trained_on
        sides.append(corpora)
    better_corpora, than_corpora = sides
    one_sided = {
        *list_vectors_alone(better_corpora, than_corpora, study),
        *list_vectors_alone(than_corpora, better_corpora, study),
    }
    if one_sided:
        differences.append(f"only one side starts from word vectors of {', '.join(sorted(one_sided))}")
    return differences


def list_vectors_alone(side: dict[str, bool], other: dict[str, bool], study: "Study") -> list[str]:
    """List the corpora from whose word vectors `side` started, if `other` was trained on their sources without them."""
    with_vectors, without = set(), set()
    for corpus, has_vectors in other.items():
        sources = with_vectors if has_vectors else without
        sources.update(study.corpus(corpus).sources)
    only_without = without - with_vectors
    return [corpus for corpus in side if side[corpus] and only_without & {*study.corpus(corpus).sources}]


def find_samples(part: Pairs, cells: pd.DataFrame, study: "Study") -> statistics.Samples:
    """Return the variance of each place's difference over draws of test documents; empty if a run did not keep it."""
    runs = cells.merge(study.results(), on=tables.RUN)
    is_better = runs["name"] == part.names[0]
    better = dict(list(runs[is_better].groupby("place")))
    than = dict(list(runs[~is_better].groupby("place")))
    samples = [tables.find_sample(better[place], than[place]) for place in runs["place"].unique()]
    return [] if None in samples else samples


def is_chance(runs: list[list[float]], chance: float) -> bool:
    """Return whether a side is no better than chance; False if chance is unknown (nan).

    It is if the lower end of the 95% interval of its runs, or the score of a single run, is not above chance.
    """
    values = [value for seeds in runs for value in seeds]
    lowest = statistics.find_interval(values)[0] if len(values) > 1 else values[0]
    return lowest <= chance


def list_compared_cells(part: Pairs, study: "Study") -> pd.DataFrame:
    """Return the cells of a comparison in the form of Study.published.

    They are its table with all that its paper prints, or its two kinds of run as columns.
    """
    if part.table:
        return fill_printed(study.published(part.table), part.table)
    rows = []
    for column, (model, protocol) in zip(("better", "than"), part.runs, strict=True):
        for dataset in part.datasets:
            run = params.Run(model=model, dataset=dataset, protocol=protocol)
            score = registry.lookup(dataset).main_score
            cell = {"row": dataset, "column": column, "metric": score}
            cell |= {"value": find_printed(run, score), "std": np.nan}
            rows += published.assign(study, cell, run, score)
    return pd.DataFrame(rows)


def find_cells(part: Pairs, table_cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells to compare, each with the `name` of its row or column and its `place` on the other axis.

    Means over datasets are left out because their datasets are listed one by one, and so are places that lack a name.
    """
    cells = table_cells[~table_cells["is_mean"] & (table_cells["dataset"] != "")]
    if part.metric:
        cells = cells[cells["metric"] == part.metric]
    name_axis, place_axis = ("column", "row") if {*part.names} <= {*cells["column"]} else ("row", "column")
    cells = cells[cells[name_axis].isin(part.names)]
    if part.only:
        cells = cells[cells[place_axis].isin(part.only)]
    named_cells = cells.assign(name=cells[name_axis], place=cells[place_axis])
    return named_cells[named_cells.groupby("place")["name"].transform("nunique") == len(part.names)]


def subtract_printed(part: Pairs, cells: pd.DataFrame) -> pd.Series:
    """Return the printed score of the better side minus the other, by place; nan where one is not printed."""
    wide = cells.drop_duplicates(["place", "name"]).pivot(index="place", columns="name", values="published")
    better, *than = (wide.reindex(index=cells["place"].unique())[name].astype(float) for name in part.names)
    return better - sum(than) / len(than)


def subtract_means(part: Pairs, table_cells: pd.DataFrame, datasets: set[str]) -> float:
    """Return the same difference for the means printed over exactly these datasets; nan if a name has no such mean."""
    means = table_cells[table_cells["is_mean"]]
    printed_means = {}
    for (row, column, metric), cell in means.groupby(tables.PLACE, sort=False):
        if {*cell["dataset"]} == datasets and part.metric in ("", metric):
            printed_means[row] = printed_means[column] = cell["published"].iloc[0]
    better, *than = (printed_means.get(name, np.nan) for name in part.names)
    return float(better - np.mean(than))


def list_sides(part: Pairs, cells: pd.DataFrame, seeds: pd.DataFrame) -> list[Scores]:
    """Return our scores of both sides, with those seeds that all names of a side have."""
    cell_names = cells[[*tables.PLACE, "name", "place"]].drop_duplicates(tables.PLACE)
    ours = seeds.dropna(subset="ours").merge(cell_names, on=tables.PLACE)
    better, *than = part.names
    return [list_side(ours, [better]), list_side(ours, than)]


def list_side(ours: pd.DataFrame, names: list[str]) -> Scores:
    """Return the scores of one side, the mean over its names."""
    rows = ours[ours["name"].isin(names)]
    by_seed = rows.groupby(["place", *tables.SEED], sort=False)["ours"]
    has_all = by_seed.size() == len(names)
    means = by_seed.mean()[has_all].reset_index()
    side = {}
    for (place, pretraining), scores in means.groupby(["place", "pretraining"], sort=False)["ours"]:
        side.setdefault(place, {})[pretraining] = scores.tolist()
    return side


def fill_printed(cells: pd.DataFrame, table: str) -> pd.DataFrame:
    """Fill cells that this table does not print (columns only we have) with what the paper prints in another table."""
    cells = cells.copy()
    for cell in cells[cells["published"].isna() & ~cells["is_mean"]].itertuples():
        run = published.find_run(params.load("tables", table), cell.row, cell.column)
        cells.loc[cell.Index, "published"] = find_printed(run, cell.score)
    return cells


def describe_substitutions(part: Pairs, table_cells: pd.DataFrame) -> str:
    """List, each once, what the runs of a comparison use in place of what the claim names."""
    is_compared = table_cells["row"].isin(part.names) | table_cells["column"].isin(part.names)
    substitutes = table_cells.loc[is_compared & (table_cells["why_not"] == ""), "substituted"]
    return published.join_substitutions(substitutes)


def find_printed(run: params.Run, score: str) -> float:
    """Return the score that the paper of a run's protocol prints for it, in any table; nan if there is none."""
    paper = params.load("protocols", run.protocol).paper
    return read_printed_runs(paper).get((run.model, run.dataset, run.protocol, score), np.nan)


@cache
def read_printed_runs(paper: str) -> dict[tuple[str, str, str, str], float]:
    """Return the scores that a paper's tables print for runs, by model, dataset, protocol and score.

    If several tables print a run, the first counts.
    """
    printed_scores = {}
    for table in params.load_tables("scores").values():
        if table.paper == paper:
            for cell in published.read_printed_cells(table):
                run = published.find_run(table, cell["row"], cell["column"])
                if run.model and run.dataset:
                    score = table.metrics.get(cell["metric"]) or registry.lookup(run.dataset).main_score
                    printed_scores.setdefault((run.model, run.dataset, run.protocol, score), cell["value"])
    return printed_scores
