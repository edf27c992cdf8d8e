"""The papers' figures whose values are not printed: the runs behind each point, what they come to, and their slopes."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from lib import artefacts
from lib.study import params, paths, results
from lib.study.analysis import cells, compare

COLUMNS = [*results.COLUMNS, "x", "published_x"]
NOT_PRINTED = "the paper prints no value"


@dataclass(frozen=True)
class Point:
    """A place in a figure: the cell of its run, and of the one that it is a gain over, if it is one."""

    cell: cells.Cell
    than: cells.Cell | None
    score: str  # our name of it, or empty: the dataset's main one


def list_points(key: str, scale: str) -> list[Point]:
    """Every point of a figure: its tables' rows that are one dataset, by metric and by column of the figure."""
    table = params.load("tables", key)
    found = []
    for name, wanted in table.of.items():
        scores = params.load("tables", name)
        cells_of = results.read_published(scores.paper, scores.table).to_dict("records")
        printed = {(cell["row"], cell["column"], cell["metric"]): cell["value"] for cell in cells_of}
        rows = {row for row, run in scores.rows.items() if run.dataset and row in (table.rows or scores.rows)}
        places = dict.fromkeys((row, metric) for row, _, metric in printed if row in rows and wanted in ("", metric))
        found += [
            make_point(table, scores, printed, *place, column, scale) for place in places for column in table.columns
        ]
    return found


def make_point(table: params.CurveTable, scores: params.ScoreTable, printed: dict, row, metric, column, scale) -> Point:
    """A point with its runs, or why it has none. `printed`: the value of each row, column and metric of the table."""
    own = table.columns[column]
    asked = [cells.find_run(scores, row, column, own)]
    asked += [cells.find_run(scores, row, table.than, params.Run(protocol=own.protocol))] if table.than else []
    runs = [cells.settle(one, scale) for one in asked]
    value = printed.get((row, column, metric), np.nan) - (printed[row, table.than, metric] if table.than else 0)
    obstacles = (cells.find_obstacle(one.model, [[one.dataset]], scale, one.protocol) for one in runs)
    why_not = next(filter(None, obstacles), "")
    instead = dict.fromkeys(cells.describe_instead(*pair) for pair in zip(asked, runs, strict=True))
    note = "; ".join(filter(None, [NOT_PRINTED * bool(np.isnan(value)), *instead]))
    made = [
        cells.Cell(row, column, metric, round(value, 2), np.nan, one.model, [[one.dataset]], one.protocol, note,
                   why_not, "; ".join(filter(None, instead)))
        for one in runs
    ]  # fmt: skip
    return Point(made[0], made[1] if table.than else None, scores.metrics.get(metric, ""))


def map_runs(key: str, scale: str) -> dict[params.Place, list[params.RunKey]]:
    """The runs of each point of a figure, by row, column and metric: of a gain, those of both sides."""
    return {
        (point.cell.row, point.cell.column, point.cell.metric): [
            run for cell in (point.cell, point.than) if cell for run in cell.runs
        ]
        for point in list_points(key, scale)
    }


def list_runs(key: str, scale: str) -> list[params.RunKey]:
    """Every run that a figure needs, each once."""
    return list(dict.fromkeys(run for runs in map_runs(key, scale).values() for run in runs))


def list_models(key: str, scale: str) -> list[str]:
    """The models that a figure names."""
    points = list_points(key, scale)
    return list(dict.fromkeys(cell.model for point in points for cell in (point.than, point.cell) if cell))


def read_values(point: Point, scale: str) -> list[float]:
    """A point's score, or gain, for each seed; none when a run has not been made."""
    if point.than:
        return cells.subtract(point.cell, point.than, point.score, scale)
    return list((cells.read_scores(point.cell, point.score, scale) or {}).values())


def find_place(axis: str | None, cell: cells.Cell, scale: str) -> float:
    """Where a run stands on an axis; nan without one, and where only the run itself would say it."""
    match axis:
        case "steps":
            return sum(phase.steps for phase in params.load_pretraining(cell.model, scale).phases)
        case "share of the text":
            return min(params.load("corpora", corpus).part for corpus in params.load("models", cell.model).corpora)
        case "training instances":
            result = results.read(scale, cell.model, cell.datasets[0], cell.protocol)
            return result["runs"][0]["instances"]["train"] if result else np.nan
    return np.nan


def read_sizes(key: str) -> dict[str, float]:
    """The training instances that a table of counts prints, by row; none without a table."""
    if not key:
        return {}
    counts = params.load("tables", key)
    printed = results.read_published(counts.paper, counts.table)
    train = printed[printed["column"].map(counts.columns) == "train"]
    return dict(zip(train["row"], train["value"], strict=True))


def build(key: str, scale: str) -> pd.DataFrame:
    """A figure as a table, one line a point: of results.COLUMNS, and the places of ours and the paper's on the axis.

    `published` is there for gains of which both cells are printed; `ours` is empty and `note` says why where nothing
    was run.
    """
    table = params.load("tables", key)
    sizes, lines = read_sizes(table.sizes), []
    for point in list_points(key, scale):
        cell = point.cell
        line = {"paper": table.paper, "table": table.table}
        line |= {name: getattr(cell, name) for name in ("row", "column", "metric", "published", "published_std")}
        line |= cells.summarise(cell, read_values(point, scale), scale)
        lines.append(line | {"x": find_place(table.axis, cell, scale), "published_x": sizes.get(cell.row, np.nan)})
    return pd.DataFrame(lines, columns=COLUMNS)


def write(key: str, scale: str) -> pd.DataFrame:
    """Build a figure's table, and write it; errors and record as of compare.computed."""
    return compare.computed(paths.table(scale, key), scale, build, key, scale)


def read_curves(key: str, scale: str) -> dict[str, compare.Curve]:
    """The points of a figure that were run: a curve for each row, or for each column where the axis is along rows."""
    table = params.load("tables", key)
    found: dict[str, compare.Curve] = {}
    for point in list_points(key, scale):
        if values := read_values(point, scale):
            name = point.cell.row if table.along == "columns" else point.cell.column
            found.setdefault(name, []).append((find_place(table.axis, point.cell, scale), values))
    return found


def describe_models(key: str, scale: str) -> pd.DataFrame:
    """The models of a figure: how long and on what each is pretrained at a scale, and how it differs from the paper's.

    Words are those of the text of its last pretraining, where it is at hand; of a small one the pieces come again and
    again.
    """
    rows = []
    for model in list_models(key, scale):
        settings, phases = params.load("models", model), params.load_pretraining(model, scale).phases
        texts = [artefacts.read_record(paths.corpus(scale, corpus)) for corpus in settings.corpora]
        rows.append(
            {"model": model, "pretrained on": ", then ".join(params.list_texts(model)) or "nothing",
             "steps": sum(phase.steps for phase in phases),
             "pieces": sum(phase.steps * phase.batch_size * phase.length for phase in phases),
             "words of its text": sum(text["words"] for text in texts) if all(texts) else None,
             "differs from the paper": settings.differs}
        )  # fmt: skip
    return pd.DataFrame(rows).astype({"words of its text": "Int64"})


def describe(lines: pd.DataFrame, key: str, scale: str) -> str:
    """What the figure shows, in sentences made from its numbers (Markdown)."""
    table, budget = params.load("tables", key), params.load("scales", scale)
    lines = lines.assign(name=lines["column"], set=lines["row"])
    ran = lines[lines["ours"].notna()]
    said = [f"Scale **{budget.title}**: {len(ran)} of {len(lines)} points have a number of ours."]
    if len(ran) and budget.made_up:
        said.append("**The data are made up**, so no number on this page says anything about the paper.")
    if instead := compare.read_substitutions(lines):
        said.append(f"Ours: {', '.join(instead)}.")
    if table.axis is None:
        said += cells.describe_means(ran, lines[lines["published"].notna()])
    elif table.along == "columns":
        said += [describe_curve(row, found, table.axis) for row, found in ran.groupby("row", sort=False)]
    else:
        for column, found in lines.groupby("column", sort=False):
            said += describe_cloud(column, found)
    return "\n".join(f"- {line}" for line in said)


def describe_curve(name: str, points: pd.DataFrame, axis: str) -> str:
    """Where a curve begins and ends, and what its last step adds."""
    found = points.sort_values("x").to_dict("records")
    first, last = found[0], found[-1]
    said = f"{name}: {last['ours']:.2f} at {last['column']}"
    if len(found) > 1:
        slope = compare.find_slope(list_places(points, "x", "ours"))
        said += (
            f", {first['ours']:.2f} at {first['column']}: {slope:+.2f} points for ten times the {axis}; from "
            f"{found[-2]['column']} to {last['column']} {last['ours'] - found[-2]['ours']:+.2f}"
        )
    return said + "."


def describe_cloud(name: str, points: pd.DataFrame) -> list[str]:
    """The slopes of the paper's points and of ours; with its 95% interval over datasets for the paper's, which no claim
    shows, and of the commonest metric alone where there are several."""
    said = []
    for whose, x, y in (("as printed", "published_x", "published"), ("ours", "x", "ours")):
        found = points.dropna(subset=[x, y])
        if found.empty:
            continue
        common = found[found["metric"] == found["metric"].mode()[0]]
        slope, of_common = (compare.find_slope(list_places(part, x, y)) for part in (found, common))
        line = f"{name}, {whose}: {found[y].mean():+.2f} points on average over {len(found)} sets; "
        line += (
            "all of one size, so no trend" if np.isnan(slope) else f"{slope:+.2f} for a training set ten times as large"
        )
        if whose == "as printed":
            judged = compare.judge_cloud(list_places(found, x, y))
            line += f" (95% interval over sets {judged['ci_low']:+.2f} to {judged['ci_high']:+.2f})"
        if len(common) < len(found) and not np.isnan(of_common):
            line += f", {of_common:+.2f} over the {len(common)} sets of {common['metric'].iloc[0]} alone"
        said.append(f"{line}.")
    return said


def list_places(points: pd.DataFrame, x: str, y: str) -> compare.Curve:
    """Points whose places and values are in two columns, of one value each."""
    return [(place, [value]) for place, value in zip(points[x], points[y], strict=True)]
