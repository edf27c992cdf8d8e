"""The run behind each printed cell at a scale: model, datasets and protocol, or why there is none."""

from collections.abc import Iterable
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from lib.benchmarks import registry, versions
from lib.benchmarks.definitions import list_pairs
from lib.errors import StudyError
from lib.study import params, paths, results

if TYPE_CHECKING:
    from lib.study import Study


def list_lines(study: "Study", key: str) -> list[dict]:
    """Return the lines of a table of scores or a figure as records, made once per study.

    Raises StudyError if the table is of another kind.
    """
    table = params.load("tables", key)
    if table.kind not in ("scores", "curves"):
        raise StudyError(f"{key} is a table of {table.kind}: no runs stand for its cells")
    if key not in study.cells:
        study.cells[key] = list_cells(study, table) if table.kind == "scores" else list_figure_lines(study, table)
    return study.cells[key]


def list_table_runs(study: "Study", key: str) -> list[params.RunKey]:
    """List every run that a table or figure needs and that can be made, each once."""
    lines = [line for line in list_lines(study, key) if not line["why_not"]]
    return list(dict.fromkeys((line["model"], line["dataset"], line["protocol"]) for line in lines))


def list_compared(study: "Study") -> list[params.RunKey]:
    """List the runs under the papers' own protocols whose scores can be compared.

    They come from tables of scores and panels, and are compared with another run of the model on the same dataset, or
    by another definition of the score.
    """
    planned = []
    for key in params.load_tables("scores"):
        planned += list_table_runs(study, key)
    planned += [run for run in study.budget.panel_runs() if not study.why_not(run[1])]
    protocols = results.list_protocols().values()
    paper_runs = list(dict.fromkeys(run for run in planned if run[2] in protocols))
    paired = {run for pair in pair_runs(paper_runs) for run in pair}
    return [run for run in paper_runs if run in paired or list_pairs(registry.lookup(run[1]))]


def pair_runs(runs: Iterable[params.RunKey]) -> list[tuple[params.RunKey, params.RunKey]]:
    """Pair the runs of one model on one dataset: two versions of it, or two papers' protocols.

    Within a pair, runs are in the order of the papers' protocols.
    """
    groups = {}  # the runs of a set and a model
    order = list(results.list_protocols().values())
    for run in sorted(runs, key=lambda run: order.index(run[2])):
        model, dataset, _ = run
        groups.setdefault((versions.name_set(dataset), model), []).append(run)
    return [pair for group in groups.values() for pair in combinations(group, 2)]


def list_models(study: "Study", key: str) -> list[str]:
    """List the models behind a table or figure: registered ones and baselines."""
    return list(dict.fromkeys(line["model"] for line in list_lines(study, key) if line["model"]))


def read_printed_cells(table: params.ScoreTable) -> list[dict]:
    """Return the printed cells of a table as in `results.read_published`, but all on the scale of 0 to 100."""
    cells = results.read_published(table.paper, table.table)
    cells[["value", "std"]] = (cells[["value", "std"]] * 100 / table.highest).round(4)  # else 0.014 is not 1.4
    return cells.to_dict("records")


def list_cells(study: "Study", table: params.ScoreTable) -> list[dict]:
    """Return the lines of a table of scores: first the columns that only we have, then the printed cells."""
    printed = read_printed_cells(table)
    row_metrics = dict.fromkeys((cell["row"], cell["metric"]) for cell in printed if cell["row"] in table.rows)
    added = [
        {"row": row, "column": column, "metric": metric, "value": np.nan, "std": np.nan}
        for column in table.ours_only
        for row, metric in row_metrics
    ]
    lines = []
    for cell in [*added, *printed]:
        why_not = table.not_run.get(cell["column"]) or table.not_run.get(cell["row"], "")
        run = find_run(table, cell["row"], cell["column"])
        lines += assign(study, cell, run, table.metrics.get(cell["metric"], ""), why_not)
    return lines


def list_figure_lines(study: "Study", figure: params.CurveTable) -> list[dict]:
    """Return the lines of a figure: the single-dataset rows of its tables, by metric and column of the figure.

    A gain has two lines per point: the score (`side` is empty), and the score that it is a gain over (`than`).
    """
    sizes, lines = read_sizes(figure.sizes), []
    for name, wanted_metric in figure.of.items():
        table = params.load("tables", name)
        printed = {(cell["row"], cell["column"], cell["metric"]): cell["value"] for cell in read_printed_cells(table)}
        rows = {row for row, run in table.rows.items() if run.dataset and row in (figure.rows or table.rows)}
        row_metrics = dict.fromkeys(
            (row, metric) for row, _, metric in printed if row in rows and wanted_metric in ("", metric)
        )
        for row, metric in row_metrics:
            score = table.metrics.get(metric, "")
            for column, column_run in figure.columns.items():
                runs = {"": find_run(table, row, column, column_run)}
                value = printed.get((row, column, metric), np.nan)
                if figure.than:
                    runs["than"] = find_run(table, row, figure.than, params.Run(protocol=column_run.protocol))
                    value -= printed[row, figure.than, metric]
                cell = {"row": row, "column": column, "metric": metric, "value": round(value, 2), "std": np.nan}
                point = []
                for side, run in runs.items():
                    point += [line | {"side": side} for line in assign(study, cell, run, score)]
                substituted = dict.fromkeys(line["substituted"] for line in point if line["substituted"])
                point_fields = {
                    "why_not": next((line["why_not"] for line in point if line["why_not"]), ""),
                    "substituted": "; ".join(substituted),
                    "x": place_on_axis(study, figure.axis, point[0]),
                    "published_x": sizes.get(row, np.nan),
                }
                lines += [line | point_fields for line in point]
    return lines


def assign(study: "Study", cell: dict, requested: params.Run, score: str, why_not: str = "") -> list[dict]:
    """Return a line for each dataset of a printed cell, with its run. `score`: empty for the dataset's main one."""
    run = substitute_run(study, requested)
    groups = run.mean_of or [[run.dataset]]
    members = [(number, dataset) for number, group in enumerate(groups) for dataset in group]
    datasets = [dataset for _, dataset in members if dataset]
    why_not = why_not or find_obstacle(study, run.model, datasets, run.protocol)
    differs = [requested.differs]
    if not why_not:
        differs += [registry.lookup(dataset).differs for _, dataset in members]
    fields = {
        "row": cell["row"],
        "column": cell["column"],
        "metric": cell["metric"],
        "published": cell["value"],
        "published_std": cell["std"],
        "model": run.model,
        "protocol": run.protocol,
        "is_mean": len(members) > 1,
        "substituted": describe_substitution(requested, run),
        "differs": " ".join(dict.fromkeys(filter(None, differs))),
        "why_not": why_not,
    }
    lines = []
    for number, dataset in members:
        main_score = registry.lookup(dataset).main_score if dataset else ""
        lines.append(fields | {"dataset": dataset, "group": number, "score": score or main_score})
    return lines


def find_run(table: params.ScoreTable, row: str, column: str, override: params.Run | None = None) -> params.Run:
    """Merge what a table, row and column say of a run: a column overrides a row, and `override` overrides both."""
    settings = {}
    for layer in (table.all, table.rows.get(row), (table.columns | table.ours_only).get(column), override):
        settings |= layer.model_dump(exclude_defaults=True) if layer else {}
    return params.Run(**settings)


def name_printed_model(table: params.ScoreTable, cell: dict) -> str:
    """Return the printed name of a cell's model: its column, or its row if the columns are datasets."""
    column = (table.columns | table.ours_only).get(cell["column"])
    return cell["row"] if column and (column.dataset or column.mean_of) else cell["column"]


def substitute_run(study: "Study", run: params.Run) -> params.Run:
    """Return the run that a scale makes for the named one.

    Unless the panels include the named run, a substitute model or protocol may take its place.
    """
    budget = study.budget
    datasets = [dataset for group in run.mean_of or [[run.dataset]] for dataset in group]
    if {(run.model, dataset, run.protocol) for dataset in datasets} <= set(budget.panel_runs()):
        return run
    substitutes = budget.substitutes
    replacements = {"model": substitutes.models.get(run.model), "protocol": substitutes.protocols.get(run.protocol)}
    return run.model_copy(update={name: key for name, key in replacements.items() if key})


def describe_substitution(requested: params.Run, used: params.Run) -> str:
    """Describe what a run has in place of what was requested, or return an empty string."""
    pairs = ((used.model, requested.model), (used.protocol, requested.protocol))
    return ", ".join(f"{substitute} in place of {original}" for substitute, original in pairs if substitute != original)


def join_substitutions(descriptions: Iterable[str]) -> str:
    """Join what `describe_substitution` says of several runs, each substitute once."""
    return ", ".join(dict.fromkeys(part for text in descriptions for part in text.split(", ") if part))


def find_obstacle(study: "Study", model: str, datasets: list[str], protocol: str) -> str:
    """Return why runs cannot be made at a scale, or an empty string; finished runs no longer need their data."""
    if not model or not datasets:
        return "no run is assigned to this cell"
    if why_not := params.why_no_weights(model, study.scale):
        return why_not
    missing = {dataset: why for dataset in datasets if (why := why_not_run(study, model, dataset, protocol))}
    if missing and len(datasets) > 1:
        return f"a mean of {len(datasets)} sets; missing: {', '.join(missing)}"
    if missing:
        return missing[datasets[0]]
    return "" if is_planned(study, model, datasets, protocol) else study.outside_budget


def why_not_planned(study: "Study", model: str, datasets: Iterable[str], protocol: str) -> str:
    """Return why a scale makes none of a model's runs on some datasets, or an empty string.

    Whether the data are at hand does not matter.
    """
    if why_not := params.why_no_weights(model, study.scale):
        return why_not
    planned = any(is_planned(study, model, [dataset], protocol) for dataset in datasets)
    return "" if planned else study.outside_budget


def why_not_run(study: "Study", model: str, dataset: str, protocol: str) -> str:
    """Return why a run cannot be made at a scale, or an empty string; a finished run no longer needs its data."""
    finished = paths.find(paths.results(study.scale, model, dataset, protocol)).exists()
    return "" if finished else study.why_not(dataset, protocol)


def is_planned(study: "Study", model: str, datasets: list[str], protocol: str) -> bool:
    """Return whether a scale's budget covers a model's runs on some datasets.

    It does if the scale compares the model, or if panels include all the runs.
    """
    budget = study.budget
    if budget.compared is None or model in budget.compared:
        return True
    return {(model, dataset, protocol) for dataset in datasets} <= set(budget.panel_runs())


def place_on_axis(study: "Study", axis: str | None, line: dict) -> float:
    """Return a run's position on a figure's axis; nan without an axis, or if it is not known.

    A public encoder's steps and text are not, nor are the instances of a run that has not been made.
    """
    if axis in ("steps", "text") and not params.is_model(line["model"]):
        return np.nan
    match axis:
        case "steps":
            return sum(phase.steps for phase in params.load_pretraining(line["model"], study.scale).phases)
        case "text":
            return min(params.load("corpora", key).part for key in params.load("models", line["model"]).corpora)
        case "training instances":
            result = results.read_result(study.scale, line["model"], line["dataset"], line["protocol"])
            return result["runs"][0]["instances"]["train"] if result else np.nan
    return np.nan


def read_sizes(key: str) -> dict[str, float]:
    """Return the training set sizes that a table of counts prints, by row; empty without a table."""
    if not key:
        return {}
    counts = params.load("tables", key)
    printed = results.read_published(counts.paper, counts.table)
    train = printed[printed["column"].map(counts.columns) == "train"]
    return dict(zip(train["row"], train["value"], strict=True))
