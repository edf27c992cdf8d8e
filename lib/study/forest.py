"""The forest plot of the claims: the papers' own effects beside ours."""

import re
import textwrap
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from lib import statistics
from lib.benchmarks import registry
from lib.study import claims, figures, params, results
from lib.study.trends import Trend

if TYPE_CHECKING:
    from lib.study import Study

FROM_0_TO_1 = "ranking-mrr"  # the one metric whose scores are no points
COLORS = {  # blue for, orange against: told apart without red and green, and dark enough for words
    "holds": "#00447c", "points that way": "#2a78b8", "undecided": "#666666", "points the other way": "#b85f00",
    "fails": "#8a2b00", "n/a": "#666666",
}  # fmt: skip
OTHERWISE = {
    "scores": "Scores, measured otherwise: counted, from 0 to 1, or one model scored in two ways",
    "text": "Text, vocabularies and cost: counted or timed", "arithmetic": "Checks of arithmetic: recomputed",
}  # fmt: skip
CLAIMED = "#e9eef2"
LINE, WIDTH, LEFT, AXIS = 0.14, 9.0, 3.55, 4.15  # inches: a line of text, the figure, where the axis begins, the axis
PAPER = {"color": "black", "markerfacecolor": "white", "linestyle": "none", "zorder": 3}
EVERY, HERE = PAPER | {"marker": "o", "markersize": 6.5}, PAPER | {"marker": "D", "markersize": 3.5}
OURS = {"marker": "o", "markersize": 5.5, "linewidth": 1.6}


def in_points(key: str) -> bool:
    """Whether a claim is measured in points of a score between two models, or along an axis: not in %, tokens or times,
    not by scoring one model in two ways, and not where a set is scored from 0 to 1."""
    test = claims.find_claim(key).test
    if test is None or not test.parts:
        return False
    named = [dataset for part in test.parts for dataset in getattr(part, "datasets", ())]
    for table in test.tables:
        scores = getattr(params.load("tables", table), "of", [table])  # of a figure: the tables whose runs it shows
        named += [run.dataset for one in scores for run in params.load("tables", one).parts if run.dataset]
    return all(registry.lookup(dataset).metric != FROM_0_TO_1 for dataset in named)


def draw_forest(study: "Study", judged: pd.DataFrame) -> Figure:
    """The forest: a row a claim that was measured in points, by paper; below it the other measured claims as text.

    `judged`: as of claims.judge.
    """
    measured = judged[judged["n"] > 0]
    papers = list(results.list_papers())
    measured = measured.sort_values("paper", key=lambda column: column.map(papers.index), kind="stable")
    drawn = measured["claim"].map(in_points).astype(bool)
    rows, others = measured[drawn], measured[~drawn]
    # The axis holds every effect of ours; what the papers print beyond it is an arrow and a number, a wider interval
    # ends in an arrow.
    reach = 1.6 * np.nanmax([4, rows["effect"].abs().max()])
    lowest = np.nanmin([-reach, *rows[["paper_effect", "paper_effect_here"]].min()])
    figure, ((axes,),) = figures.new_figure(WIDTH, 1)  # as high as its lines, which are counted as they are written
    figure.set_layout_engine("none")
    axes.set(yticks=[], xlim=(max(1.15 * lowest, -reach), reach))
    axes.set_xlabel("points of the score (better minus other)", fontsize=9)
    axes.tick_params(axis="x", labelsize=8, pad=0)
    axes.spines[:].set_visible(False)
    axes.axvline(0, color="black", linewidth=0.8)
    y = 0.3
    for paper, found in rows.groupby("paper", sort=False):
        y += write_lines(axes, 0, y, [results.list_papers()[paper]], weight="bold") + 0.4
        for claim in found.to_dict("records"):
            lines = max(2, write_claim(axes, y, claim, "", 57))
            draw_row(axes, claim, y + lines / 2, lines + 0.4)
            y += lines + 0.5
    bottom = max(y, 2)
    y = bottom + 3.2  # below the axis and its label
    for about, found in claims.list_about(others).items():
        y += write_lines(axes, 0, y, [OTHERWISE[about]], weight="bold") + 0.4 if len(found) else 0
        for claim in found.to_dict("records"):
            y += write_claim(axes, y, claim, f"{results.list_papers()[claim['paper']]}: ", 116) + 0.1
    notes = [line for note in list_notes(study.budget, judged) for line in textwrap.wrap(note, 145)]
    height = y + 0.6 + write_lines(axes, 0, y + 0.6, notes, color="#444444") + 2  # and two of the legend
    figure.set_size_inches(WIDTH, LINE * height)
    axes.set_ylim(bottom, 0)
    axes.set_position([LEFT / WIDTH, 1 - (2 + bottom) / height, AXIS / WIDTH, bottom / height])
    handles = [Line2D([], [], label="the paper, all its sets", **EVERY),
               Line2D([], [], label="the paper, our sets", **HERE),
               Line2D([], [], label="ours, 95% interval, coloured by verdict", color=COLORS["undecided"], **OURS),
               Patch(label="where the claim puts it", color=CLAIMED)]  # fmt: skip
    figure.legend(handles=handles, loc="upper center", ncols=4, fontsize=8, borderpad=0, columnspacing=1.6)
    return figure


def write_lines(axes, inches: float, y: float, lines: list[str], **style) -> int:
    """Lines of text so far from the left of the figure, from a line of the axis on; how many they are."""
    axes.text((inches + 0.08 - LEFT) / AXIS, y, "\n".join(lines), fontsize=8, va="top", linespacing=1.25,
              transform=axes.get_yaxis_transform(), **style)  # fmt: skip
    return len(lines)


def write_claim(axes, y: float, claim: dict, before: str, width: int) -> int:
    """What a paper claims, without keys of the study and with a star where ours has another set, model or protocol;
    the verdict at the right. As many lines as of `write_lines`."""
    test, said = claims.find_claim(claim["claim"]).test, claim["statement"]
    for paper, name in results.list_papers().items():
        said = said.replace(paper, name)
    if test.parts and isinstance(test.parts[0], Trend):
        axis = params.load("tables", test.parts[0].figure).axis
        said += f" (points for ten times {'fewer' if test.parts[0].falls else 'more'} {axis})"
    said = before + said[:1].upper() + said[1:] + " *" * bool(re.search(r"in (its )?place( of|:)", claim["note"]))
    verdict = textwrap.wrap(claims.describe_verdict(claim), 20)
    beside = write_lines(axes, LEFT + AXIS, y, verdict, color=COLORS[claim["verdict"]], weight="bold")
    return max(beside, write_lines(axes, 0, y, textwrap.wrap(said, width, break_on_hyphens=False)))


def draw_row(axes, claim: dict, y: float, height: float) -> None:
    """A claim on the axis: where it puts the difference, the paper's effects, and below them ours with its interval."""
    number = re.match(r"points; part (\d+) decides", claim["note"])  # that which decides
    part = claims.find_claim(claim["claim"]).test.parts[int(number[1]) - 1 if number else 0]
    margin, (low, high) = getattr(part, "margin", 0), axes.get_xlim()
    most = margin if getattr(part, "relation", "") == "equals" else high
    axes.barh(y, most + margin, height, left=-margin, color=CLAIMED, linewidth=0, zorder=0)
    beyond, right = [], claim["paper_effect"] > 0
    for name, where, style in (("paper_effect", "", EVERY), ("paper_effect_here", " on our sets", HERE)):
        if abs(claim[name]) > high:
            beyond, style = [*beyond, f"{claim[name]:+.1f}{where}"], style | {"marker": ">" if right else "<"}
        axes.plot(np.clip(claim[name], low, high), y - 0.45, clip_on=False, **style)
    where, away, aligned = (high, -8, "right") if right else (low, 8, "left")
    axes.annotate(", ".join(beyond), (where, y - 0.45), (away, 0), textcoords="offset points", fontsize=8,
                  ha=aligned, va="center")  # fmt: skip
    color = COLORS[claim["verdict"]]
    axes.plot(claim["effect"], y + 0.45, color=color, **OURS)
    ends = np.array([claim["ci_low"], claim["ci_high"]])
    axes.plot(np.clip(ends, low, high), [y + 0.45] * 2, color=color, linewidth=OURS["linewidth"])
    for end, cut, marker in zip(ends, (ends[0] < low, ends[1] > high), "<>", strict=True):
        if cut:
            axes.plot(np.clip(end, low, high), y + 0.45, color=color, marker=marker, markersize=4, clip_on=False)


def list_notes(budget: params.Scale, judged: pd.DataFrame) -> list[str]:
    """What is said below the forest: of the scale, of what is not drawn or not decided, and of stars."""
    missing = [f"{(found['n'] == 0).sum()} of {len(found)} {claims.KINDS[about]}"
               for about, found in claims.list_about(judged).items()]  # fmt: skip
    once = ((judged["unit"] == "recipe") & (judged["n_pretrainings"] < statistics.PRETRAININGS)).sum()
    return [
        f"Scale {budget.title}." + " The data are made up: no number is a finding." * budget.made_up
        + " A claim about how to pretrain at most points one way while a side was pretrained fewer than three times: "
        f"{once} of {(judged['unit'] == 'recipe').sum()}. Intervals that end in an arrow are wider than the axis; a "
        "single set has none.",
        f"Not measured here: {', '.join(missing)}. Undecided is also what was run on too few of the "
        "sets or models that a claim speaks of, or has a side no better than chance on all of them. Without a hollow "
        "marker the paper prints no such scores. Of a claim of several parts the one that decides is drawn.",
        "* Ours has another set, model or fine-tuning protocol in place of the paper's; page 01 says which.",
    ]  # fmt: skip
