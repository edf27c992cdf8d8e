"""Figures in one restrained style: ours filled, the papers' hollow, legible in print and without colour.

In the report, a point or bar shows its values when the pointer is on it.
"""

import io
import math
import textwrap
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import matplotlib
import pandas as pd
import seaborn as sns
from IPython import get_ipython
from IPython.core.pylabtools import select_figure_formats
from IPython.display import display
from matplotlib import pyplot
from matplotlib.artist import Artist
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogFormatter, ScalarFormatter

from lib.finetuning.runs import average_folds
from lib.progress import draw_log
from lib.study.show import without_encoder

if TYPE_CHECKING:
    from lib.study import Study

STYLE = {
    "svg.hashsalt": "study",  # so that the same figure has the same bytes
    "svg.fonttype": "none",  # text stays text: a tenth of the bytes, and it can be searched and read out
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],  # others are narrower than the measured one
    "savefig.bbox": "tight",
    "figure.dpi": 110,
    "legend.frameon": False,
    "font.size": 9,
}
SVG = "http://www.w3.org/2000/svg"
ElementTree.register_namespace("", SVG)  # otherwise each element gets a made-up prefix
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
MARKERS = "osD^vP"
BESIDE = {"fontsize": 7, "loc": "upper left", "bbox_to_anchor": (1, 1)}  # a legend to the right of the axes
MOST = 3  # panels side by side
MOST_NAMED = 1000  # points and bars with texts, in one figure


def new_figure(width: float, height: float, columns: int = 1, rows: int = 1, **options):
    """Return a figure and its axes in the study's style. `options`: of pyplot.subplots."""
    sns.set_theme(style="whitegrid", palette="colorblind", rc=STYLE)
    subplots = pyplot.subplots(rows, columns, figsize=(width, height), squeeze=False, layout="constrained", **options)
    if shell := get_ipython():  # here, because pyplot has just chosen PNG
        select_figure_formats(shell, "svg")
        shell.display_formatter.formatters["image/svg+xml"].for_type(Figure, draw_svg)
    return subplots


def name_points(line: Line2D, texts: Iterable[str]) -> None:
    """Give each point of a line the text that the report shows under the pointer instead of its values."""
    line.names = list(texts)


def draw_svg(figure: Figure) -> str:
    """Return the figure as SVG, with a text at each marker and bar if there are at most MOST_NAMED.

    Raises ValueError if the markers that a line draws and its texts differ in number, missing values apart.
    """
    artist_texts = list_named(figure)
    if sum(len(texts) for _, texts in artist_texts) > MOST_NAMED:
        artist_texts = []
    for number, (artist, _) in enumerate(artist_texts):
        artist.set_gid(f"named-{number}")
    buffer = io.StringIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    root = ElementTree.fromstring(buffer.getvalue())
    for artist, texts in artist_texts:
        group = root.find(f".//*[@id='{artist.get_gid()}']")
        marks = list(group.iter(f"{{{SVG}}}use")) if isinstance(artist, Line2D) else [group]
        for mark, text in zip(marks, texts, strict=True):
            ElementTree.SubElement(mark, f"{{{SVG}}}title").text = text
    return ElementTree.tostring(root, encoding="unicode")


def list_named(figure: Figure) -> list[tuple[Artist, list[str]]]:
    """List the lines with markers and the bars of a figure, with a text for each point and bar that is drawn."""
    artist_texts = []
    for axes in figure.axes:
        label_of = {artist: group.get_label() for group in axes.containers for artist in group.get_children()}
        for line in axes.lines:
            if line.get_marker() not in ("", "None"):
                points, label = line.get_xydata(), label_of.get(line, line.get_label())
                texts = getattr(line, "names", None) or [format_values(axes, label, *point) for point in points]
                is_drawn = pd.notna(points).all(axis=1)
                artist_texts.append((line, [text for text, drawn in zip(texts, is_drawn, strict=True) if drawn]))
        for bars in (group for group in axes.containers if isinstance(group, BarContainer)):
            for bar in bars:
                width, height = bar.get_width(), bar.get_height()
                is_horizontal = bars.orientation == "horizontal"
                end = (width, bar.get_y() + height / 2) if is_horizontal else (bar.get_x() + width / 2, height)
                artist_texts.append((bar, [format_values(axes, bars.get_label(), *end)]))
    return artist_texts


def format_values(axes, label: str, x: float, y: float) -> str:
    """Describe a point: its series, its labels on categorical axes, its numbers with the labels of their axes."""
    words, numbers = [] if label.startswith("_") else [label], []
    for axis, value in ((axes.xaxis, x), (axes.yaxis, y)):
        if isinstance(axis.get_major_formatter(), ScalarFormatter | LogFormatter):
            rounded = float(f"{value:.4g}")
            numbers.append(f"{axis.get_label_text()} {rounded:,g}".strip())
            continue
        for position, tick in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True):
            if math.isclose(position, value):
                words.append(tick.get_text().replace("\n", " "))
    return ", ".join(text for text in (*words, *numbers) if text)


def show(figure: Figure) -> None:
    """Display a figure at once, as buttons need, and close it, so that the cell does not show it again."""
    display(figure)
    pyplot.close(figure)


def show_legend(axes) -> None:
    """Draw the legend beside the axes, or say that there is nothing to show."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(**BESIDE)
    else:
        axes.text(0.5, 0.5, "nothing to show", transform=axes.transAxes, ha="center")


def effects(frame: pd.DataFrame, label: str) -> Figure:
    """Plot effects, a panel for each step and a row for each place: the paper's hollow, ours filled, ± one SD.

    `frame`: indexed by step and place, with the columns paper, ours and sd; rows with neither effect are left out.
    `label`: of the horizontal axis. If steps are many and places few, steps become rows and places panels.
    """
    frame = frame.dropna(subset=["paper", "ours"], how="all")
    steps, places = (list(frame.index.unique(level)) for level in (0, 1))
    if not steps:
        figure, axes = new_figure(3, 1.5)
        show_legend(axes.flat[0])
        return figure
    if len(steps) > max(MOST, len(places)):
        frame, steps, places = frame.swaplevel(), places, steps
    columns = len(steps) if len(steps) <= MOST else 2
    rows = math.ceil(len(steps) / columns)
    labels = [textwrap.fill(place, 34, break_on_hyphens=False) for place in places]
    height = 0.9 + 0.27 * len(places) * max(1, 0.6 * max(name.count("\n") + 1 for name in labels))
    figure, axes = new_figure(1.8 + 2.1 * columns, 0.3 + rows * height, columns, rows)
    for axis, step in zip(axes.flat, steps, strict=False):
        draw_effects(axis, frame.loc[step].reindex(places))
        axis.set_title(textwrap.fill(step, 26, break_on_hyphens=False), fontsize=8)
        axis.set(yticks=range(len(places)), yticklabels=labels if axis in axes[:, 0] else [])
        axis.set_xlabel(label, fontsize=8)
        axis.tick_params(labelsize=8)
        axis.locator_params(axis="x", nbins=4)
    for axis in axes.flat[len(steps) :]:
        axis.set_visible(False)
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside upper left", ncols=2, fontsize=8)
    return figure


def draw_effects(axis, frame: pd.DataFrame) -> None:
    """Draw one panel of `effects`."""
    positions = range(len(frame))
    axis.axvline(0, color="grey", linewidth=1)
    (paper,) = axis.plot(frame["paper"], positions, "o", color="black", markerfacecolor="none", label="paper")
    ours, *_ = axis.errorbar(frame["ours"], positions, xerr=frame["sd"].fillna(0), fmt="o", markersize=5,
                             color=sns.color_palette("colorblind")[0], label="ours, ± sd over runs")  # fmt: skip
    for line, source in ((paper, "paper"), (ours, "ours")):
        name_points(line, [f"{place}, {source}: {value:+.2f}" for place, value in frame[source].items()])
    axis.set_ylim(len(frame) - 0.5, -0.5)


def runs(study: "Study", done: Collection[dict]) -> Figure:
    """Plot, in a row for each dataset, the loss of each seed on one fold, and the test scores beside the baselines.

    `done`: results of Study.finetune.
    """
    figure, axes = new_figure(8, 2.8 * len(done), columns=2, rows=len(done))
    for (loss_axes, score_axes), result in zip(axes, done, strict=True):
        for run in result["runs"]:
            if run["fold"] == 1:
                draw_log(loss_axes, f"seed {run['seed']}", run["log"])
        loss_axes.legend(fontsize=7)
        main_score, seeds = result["main score"], average_folds(result)
        score_axes.plot(list(seeds), [seed_scores[main_score] for seed_scores in seeds.values()], "o", label="test set")
        baselines = without_encoder(study, result)
        for (name, value), style in zip(baselines.items(), (":", "--", "-."), strict=False):
            score_axes.axhline(value, color="grey", linestyle=style, label=name)
        score_axes.set(xlabel="seed", ylabel=main_score, xticks=list(seeds), title=result["dataset"])
        score_axes.legend(**BESIDE)
    return figure


def scores(lines: pd.DataFrame, references: pd.DataFrame) -> Figure:
    """Plot a row for each dataset: our scores with their intervals, the paper's hollow, and the baselines.

    `lines`: dataset, ours, low, high; `references`, a row for each dataset: dataset, published, and tables.BASELINES.
    """
    figure, ((axes,),) = new_figure(6.5, 1.2 + 0.27 * len(references))
    datasets, ticks = references["dataset"].tolist(), range(len(references))
    scored = lines.dropna(subset="ours")
    if len(scored):
        errors = scored["ours"] - scored["low"], scored["high"] - scored["ours"]
        spread = [error.fillna(0).clip(lower=0) for error in errors]  # as our score is rounded, but not its interval
        run_ticks = [datasets.index(dataset) for dataset in scored["dataset"]]
        ours, *_ = axes.errorbar(scored["ours"], run_ticks, xerr=spread, fmt="o", alpha=0.5, markersize=4,
                                 label="ours, 95% interval")  # fmt: skip
        rows = scored.itertuples()
        name_points(ours, [f"{row.dataset}, ours: {row.ours:.2f} ({row.low:.2f} to {row.high:.2f})" for row in rows])
    axes.plot(references["published"], ticks, "o", color="black", markerfacecolor="none", label="paper")
    axes.plot(references["without_pretraining"], ticks, "|", color="black", markersize=10, label="without pretraining")
    axes.plot(references["unlabelled_text"], ticks, "+", color="black", markersize=7, label="with unlabelled text")
    axes.plot(references["chance"], ticks, "x", color="grey", markersize=5, label="chance")
    axes.set(xlabel="score", yticks=ticks, yticklabels=datasets, ylim=(max(len(datasets), 1) - 0.5, -0.5))
    axes.legend(**BESIDE)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure as SVG; `path` has no suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
