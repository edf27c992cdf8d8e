"""The cells of the published tables of scores: which runs fill each, and what these come to."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from lib.benchmarks import metrics, registry
from lib.errors import StudyError
from lib.study import open_study, params, paths, results
from lib.study.analysis import compare


@dataclass(frozen=True)
class Cell:
    """A cell and the runs that fill it: of one model under one protocol, on one dataset or on groups of them."""

    row: str
    column: str
    metric: str
    published: float
    published_std: float
    model: str
    groups: list[list[str]]
    protocol: str
    note: str  # in a table of ours
    why_not: str  # it has no runs
    instead: str = ""  # what its runs have in place of what was asked for

    @property
    def datasets(self) -> list[str]:
        return [dataset for group in self.groups for dataset in group]

    @property
    def runs(self) -> list[params.RunKey]:
        """Each run; none where the cell cannot be filled."""
        return [] if self.why_not else [(self.model, dataset, self.protocol) for dataset in self.datasets]


def list_cells(key: str, scale: str) -> list[Cell]:
    """Every cell of a table: of the columns that only we have, then the printed ones."""
    table = params.load("tables", key)
    printed = results.read_published(table.paper, table.table).to_dict("records")
    metric_of = dict.fromkeys((cell["row"], cell["metric"]) for cell in printed if cell["row"] in table.rows)
    added = [
        {"row": row, "column": column, "metric": metric, "value": np.nan, "std": np.nan}
        for column in table.ours_only
        for row, metric in metric_of
    ]
    return [make_cell(table, scale, cell) for cell in [*added, *printed]]


def tabulate(key: str, scale: str) -> pd.DataFrame:
    """The same as a frame, a line a cell and dataset, with the run that stands for it; StudyError without scores.

    Of a figure of gains there are two lines a point: the score, and with `side` than, the one that it is a gain over.
    """
    table = params.load("tables", key)
    if table.kind == "scores":
        sides = [("", cell, table.metrics.get(cell.metric, "")) for cell in list_cells(key, scale)]
    elif table.kind == "curves":
        from lib.study.analysis import curves  # which is made of this module's cells

        points = [(point, side) for point in curves.list_points(key, scale) for side in ("", "than")]
        sides = [(side, point.than if side else point.cell, point.score) for point, side in points]
    else:
        raise StudyError(f"{key} is a table of {table.kind}: no runs stand for its cells")
    lines = []
    for side, cell, score in ((side, cell, score) for side, cell, score in sides if cell):
        named = ("row", "column", "metric", "published", "published_std", "model")
        line = {name: getattr(cell, name) for name in named}
        for number, dataset in [(number, dataset) for number, group in enumerate(cell.groups) for dataset in group]:
            main = registry.lookup(dataset).main_score if dataset else ""
            line |= {"dataset": dataset, "protocol": cell.protocol, "score": score or main}
            line |= {"group": number, "is_mean": len(cell.datasets) > 1, "side": side}
            lines.append(line | {"why_not": cell.why_not, "instead": cell.instead})
    frame = pd.DataFrame(lines)
    return frame if table.kind == "curves" else frame.drop(columns="side")


def make_cell(table: params.ScoreTable, scale: str, cell: dict) -> Cell:
    """A cell with its runs, or why it has none."""
    row, column = cell["row"], cell["column"]
    asked = find_run(table, row, column)
    run = settle(asked, scale)
    groups = run.mean_of or [[run.dataset]]
    obstacle = find_obstacle(run.model, groups, scale, run.protocol)
    instead = describe_instead(asked, run)
    return Cell(
        row, column, cell["metric"], cell["value"], cell["std"], run.model, groups, run.protocol,
        note="; ".join(filter(None, ["not in the paper" * (column in table.ours_only), instead])),
        why_not=table.not_run.get(column) or table.not_run.get(row) or obstacle, instead=instead,
    )  # fmt: skip


def find_run(table: params.ScoreTable, row: str, column: str, more: params.Run | None = None) -> params.Run:
    """What all of a table, a row and a column say together; a column's word stands before a row's, `more` first."""
    parts = [table.all, table.rows.get(row), (table.columns | table.ours_only).get(column), more]
    said = [part.model_dump(exclude_defaults=True) for part in parts if part]
    return params.Run(**{name: value for part in said for name, value in part.items()})


def settle(run: params.Run, scale: str) -> params.Run:
    """A run as it is made at a scale: where no panel has it as named, another model or protocol may stand for it."""
    budget = params.load("scales", scale)
    named = [dataset for group in run.mean_of or [[run.dataset]] for dataset in group]
    if {(run.model, dataset, run.protocol) for dataset in named} <= set(budget.panel_runs()):
        return run
    instead = budget.instead
    found = {"model": instead.models.get(run.model), "protocol": instead.protocols.get(run.protocol)}
    return run.model_copy(update={name: key for name, key in found.items() if key})


def describe_instead(asked: params.Run, made: params.Run) -> str:
    """What a run has in place of what was asked for, or an empty string."""
    pairs = ((made.model, asked.model), (made.protocol, asked.protocol))
    return ", ".join(f"{one} in place of {other}" for one, other in pairs if one != other)


def find_obstacle(model: str, groups: list[list[str]], scale: str, protocol: str = "") -> str:
    """Why runs cannot be made at a scale, or an empty string."""
    named = [dataset for group in groups for dataset in group if dataset]
    if not model or not named:
        return "no run is assigned to this cell"
    if model not in params.BASELINES and params.load("models", model).not_run:
        return params.load("models", model).not_run
    why = {dataset: why_not_run(model, dataset, scale, protocol) for dataset in named}
    missing = [dataset for dataset in named if why[dataset]]
    if missing:
        return why[missing[0]] if len(named) == 1 else f"a mean of {len(named)} sets; missing: {', '.join(missing)}"
    return "" if is_planned(model, named, scale, protocol) else f"outside the budget of scale '{scale}'"


def why_not_run(model: str, dataset: str, scale: str, protocol: str) -> str:
    """Why a run cannot be made at a scale, or an empty string; what has been run needs its data no more."""
    made = paths.find(paths.results(scale, model, dataset, protocol)).exists()
    return "" if made else open_study(scale).why_not(dataset, protocol)


def is_planned(model: str, named: list[str], scale: str, protocol: str) -> bool:
    """Whether a model's runs on some datasets are within the budget of a scale: it is compared, or panels have them."""
    budget = params.load("scales", scale)
    if budget.compared is None or model in budget.compared:
        return True
    return {(model, dataset, protocol) for dataset in named} <= set(budget.panel_runs())


def read_scores(cell: Cell, metric_name: str, scale: str) -> dict[int, float] | None:
    """A cell's score for each seed that all its runs have; None when a run has not been made.

    `metric_name`: our name of the score, or empty for each dataset's main one.
    """
    found = {}
    for model, dataset, protocol in cell.runs:
        result = results.read(scale, model, dataset, protocol)
        if result is None:
            return None
        name = metric_name or registry.lookup(dataset).main_score
        found[dataset] = {seed: scores[name] for seed, scores in results.by_seed(result).items()}
    if not found:
        return None
    groups = {str(number): group for number, group in enumerate(cell.groups)}
    seeds = set.intersection(*(set(scores) for scores in found.values()))
    return {
        seed: metrics.benchmark_total({dataset: scores[seed] for dataset, scores in found.items()}, groups)
        for seed in sorted(seeds)
    }


def build(key: str, scale: str) -> pd.DataFrame:
    """A published table with our numbers beside it: the columns that only we have, then one line a printed cell.

    `ours` is empty and `note` says why where a cell could not be run.
    """
    table = params.load("tables", key)
    lines = []
    for cell in list_cells(key, scale):
        line = {name: getattr(cell, name) for name in ("row", "column", "metric", "published", "published_std")}
        lines.append({"paper": table.paper, "table": table.table} | line | fill(cell, table, scale))
    return pd.DataFrame(lines, columns=results.COLUMNS)


def write(key: str, scale: str) -> pd.DataFrame:
    """Build a table, and write it; errors and record as of compare.computed."""
    return compare.computed(paths.table(scale, key), scale, build, key, scale)


def fill(cell: Cell, table: params.ScoreTable, scale: str) -> dict:
    """Our part of one line."""
    scores = read_scores(cell, table.metrics.get(cell.metric, ""), scale)
    return summarise(cell, list((scores or {}).values()), scale)


def summarise(cell: Cell, values: list[float], scale: str) -> dict:
    """Our part of a line of which the values of all seeds are known: mean, standard deviation, verdict and note."""
    if not values:
        missing = cell.why_not or results.NOT_MADE
        return {"ours": np.nan, "ours_std": np.nan, "n_seeds": 0, "verdict": "n/a", "note": missing}
    made_up = params.load("scales", scale).made_up
    return {
        "ours": round(float(np.mean(values)), 2),
        "ours_std": round(float(np.std(values, ddof=1)), 2) if len(values) > 1 else np.nan,
        "n_seeds": len(values),
        "verdict": "n/a" if made_up else compare.judge_cell(cell.published, values),
        "note": results.MADE_UP if made_up else cell.note,
    }


def list_runs(key: str, scale: str) -> list[params.RunKey]:
    """Every run that a table needs, each once."""
    return list(dict.fromkeys(run for runs in map_runs(key, scale).values() for run in runs))


def map_runs(key: str, scale: str) -> dict[params.Place, list[params.RunKey]]:
    """The runs of each cell of a table, by row, column and metric."""
    return {(cell.row, cell.column, cell.metric): cell.runs for cell in list_cells(key, scale)}


def list_models(key: str) -> list[str]:
    """The models that a table names, registered ones and baselines."""
    return list(dict.fromkeys(part.model for part in list_parts(key) if part.model))


def list_parts(key: str) -> list[params.Run]:
    """What a table, each row and each column say of runs."""
    table = params.load("tables", key)
    return [table.all, *table.rows.values(), *table.columns.values(), *table.ours_only.values()]


def subtract(better: Cell, than: Cell, score: str, scale: str) -> list[float]:
    """The differences of two cells over the seeds that both have; none where one has not been run."""
    both = [read_scores(cell, score, scale) for cell in (better, than)]
    return [both[0][seed] - both[1][seed] for seed in sorted(both[0].keys() & both[1].keys())] if all(both) else []


def describe_runs(key: str, scale: str) -> pd.DataFrame:
    """Which model of ours stands for which row or column of a table, and how it differs from the paper's.

    Where a scale runs another in its place, it is the one in place of which it runs that differs so.
    """
    table = params.load("tables", key)
    named = {"every cell": table.all} | table.ours_only | table.columns | table.rows
    asked = {name: part for name, part in named.items() if part.model in params.keys("models")}
    made = {name: settle(part, scale).model for name, part in asked.items()}
    texts = {model: ", then ".join(params.list_texts(model)) or "nothing" for model in made.values()}
    return pd.DataFrame(
        {"printed": name, "ours": made[name], "pretrained on": texts[made[name]],
         "vocabulary": params.load("models", made[name]).vocabulary,
         "differs from the paper": params.load("models", part.model).differs}
        for name, part in asked.items()
    )  # fmt: skip


def name_model(table: params.ScoreTable, cell: dict) -> str:
    """What a printed cell is named for in a table: its column, or its row where the columns are datasets."""
    column = (table.columns | table.ours_only).get(cell["column"])
    return cell["row"] if column and (column.dataset or column.mean_of) else cell["column"]


def list_datasets(key: str, scale: str) -> list[str]:
    """The datasets of a table that can be run at this scale."""
    return list(dict.fromkeys(dataset for _, dataset, _ in list_runs(key, scale)))


def count_reasons(table: pd.DataFrame) -> pd.DataFrame:
    """How many cells have no number of ours, by reason: of the printed ones, or of all where none is printed."""
    printed = table["published"].notna()
    empty = table[table["ours"].isna() & (printed | ~printed.any())]
    return empty.groupby("note").size().rename("cells").reset_index().rename(columns={"note": "reason"})


def describe(table: pd.DataFrame, metric: str, scale: str) -> str:
    """What the table shows, in sentences made from its numbers (Markdown)."""
    rows = name_lines(compare.of_metric(table, metric))
    ran = rows[rows["ours"].notna()]
    budget = params.load("scales", scale)
    if ran.empty:
        return f"No cell of this table was run at scale **{scale}**."
    printed = rows[rows["published"].notna()]
    covered, of = printed["ours"].notna().sum(), f" of {metric}" if metric else ""
    lines = [f"Scale **{budget.title}**: {covered} of {len(printed)} printed cells{of} have a number of "
             f"ours, each a mean over {describe_range(ran['n_seeds'])} seeds."]  # fmt: skip
    if budget.made_up:
        lines.append("**The data are made up**, so no number on this page says anything about the paper.")
    return "\n".join(f"- {line}" for line in [*lines, *describe_means(ran, printed)])


def describe_range(values: pd.Series) -> str:
    """The lowest and the highest of some numbers, or the one that all are."""
    return " to ".join(str(value) for value in sorted({values.min(), values.max()}))


def describe_means(ran: pd.DataFrame, printed: pd.DataFrame) -> list[str]:
    """The mean of each `name`, and what it is ahead of the one before on the same `set`: sentences, of what was run."""
    ours, theirs = (lines.set_index(["set", "metric"]).groupby("name", sort=False) for lines in (ran, printed))
    means = {name: lines["ours"] for name, lines in ours}
    published = {name: lines["published"] for name, lines in theirs}
    said = []
    for name, found in means.items():
        paper = published[name].reindex(found.index).dropna() if name in published else found.iloc[:0]
        beside = f"; the paper prints {paper.mean():.2f} on the same sets" if len(paper) else ""
        said.append(f"{name}: {found.mean():.2f} on average over {len(found)} sets{beside}.")
    for name, base in zip(list(means)[1:], means, strict=False):
        difference = (means[name] - means[base]).dropna()
        if len(difference):
            said.append(
                f"{name} against {base}: {difference.mean():+.2f} points on average, "
                f"ahead on {(difference > 0).sum()} of {len(difference)} sets."
            )
    return said if len(means) > 1 else [*said, "One model was run: nothing to compare."]


def name_lines(table: pd.DataFrame) -> pd.DataFrame:
    """The lines of a table with the name of what is compared, and of the set: a column and a row, or the reverse."""
    scores = [params.load("tables", key) for key in params.keys("tables")]
    paper, number = map(str, table[["paper", "table"]].iloc[0])
    (found,) = [one for one in scores if one.kind == "scores" and (one.paper, one.table) == (paper, number)]
    names = [name_model(found, line) for line in table.to_dict("records")]
    sets = np.where(table["column"] == names, table["row"], table["column"])
    return table.assign(name=names, set=sets)
