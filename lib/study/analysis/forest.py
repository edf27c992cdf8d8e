"""The forest plot of the claims: the papers' own effects beside ours."""

import re
import textwrap
from functools import cache

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from lib.benchmarks import registry
from lib.study import params, results
from lib.study.analysis import cells, compare, curves, figures, scoreboard

FROM_0_TO_1 = "ranking-mrr"  # the one metric whose scores are no points
COLORS = {  # blue for, orange against: told apart without red and green, and dark enough for words
    "holds": "#00447c", "points that way": "#2a78b8", "undecided": "#666666", "points the other way": "#b85f00",
    "fails": "#8a2b00", "n/a": "#666666",
}  # fmt: skip
CLAIMED = "#e9eef2"
LINE, WIDTH, LEFT, AXIS = 0.14, 9.0, 3.55, 4.15  # inches: a line of text, the figure, where the axis begins, the axis
PAPER = {"color": "black", "markerfacecolor": "white", "linestyle": "none", "zorder": 3}
EVERY, HERE = PAPER | {"marker": "o", "markersize": 6.5}, PAPER | {"marker": "D", "markersize": 3.5}
OURS = {"marker": "o", "markersize": 5.5, "linewidth": 1.6}


def paper_effects(scale: str) -> pd.DataFrame:
    """The effects of the papers' printed cells, by the differences that ours are of: columns claim, paper_effect over
    all sets of a claim, and paper_effect_here over those that have runs at a scale; empty where no such cells are
    printed. Of several parts that of the one that decides ours; of the first while nothing has been run."""
    lines = []
    for claim in results.read_claims().to_dict("records"):
        test = params.claim_tests().get(claim["claim"])
        if isinstance(test, params.TrendTest):
            found = [compare_slopes(part, test.falls, scale) for part in test.parts]
        elif isinstance(test, params.PairedTest):
            found = [compare_pairs(part, claim["paper"], scale) for part in test.parts]
        else:
            continue
        decided = scoreboard.DECIDE[test.kind](test, scale).get("effect", np.nan) if len(found) > 1 else np.nan
        _, *effects = next((one for one in found if np.isclose(one[0], decided)), found[0])
        lines.append((claim["claim"], *effects))
    return pd.DataFrame(lines, columns=["claim", "paper_effect", "paper_effect_here"]).round(2)


def compare_pairs(part: params.Part, paper: str, scale: str) -> tuple[float, float, float]:
    """The mean difference of a part: ours, as printed, and as printed of the pairs and places that ours are of."""
    every, elsewhere, own = scoreboard.pair_differences(part, scale), read_printed(paper), {}
    if part.table:
        table = params.load("tables", part.table)
        printed = compare.of_metric(results.read_published(table.paper, table.table), part.metric)
        for row, column, value in zip(printed["row"], printed["column"], printed["value"], strict=True):
            own |= {(row, column): value, (column, row): value}

    def read(side: str | params.Run, place: str) -> float:
        if not part.table:
            run = side.model_copy(update={"dataset": place})
        elif (side, place) in own:
            return own[side, place]
        else:  # a column of ours alone, such as one that the paper prints in another table
            run = cells.find_run(table, *((side, place) if side in table.rows else (place, side)))
        return elsewhere.get((run.model, run.dataset, run.protocol, registry.lookup(run.dataset).main_score), np.nan)

    gaps = {}
    for number, place in every:
        better, than = (part.pairs or part.runs)[number]
        gaps[number, place] = read(better, place) - read(than, place)
    ran = [key for key, values in every.items() if values]
    ours = float(np.mean([np.mean(every[key]) for key in ran])) if ran else np.nan
    return ours, pd.Series(gaps).mean(), pd.Series([gaps[key] for key in ran], dtype=float).mean()


@cache
def read_printed(paper: str) -> dict[tuple[str, str, str, str], float]:
    """What a paper's tables print of a run: by model, dataset, protocol and score; the first table says it."""
    found = {}
    for table in (params.load("tables", key) for key in params.keys("tables")):
        if table.kind == "scores" and table.paper == paper:
            for cell in results.read_published(paper, table.table).to_dict("records"):
                run = cells.find_run(table, cell["row"], cell["column"])
                if run.model and run.dataset:
                    score = table.metrics.get(cell["metric"]) or registry.lookup(run.dataset).main_score
                    found.setdefault((run.model, run.dataset, run.protocol, score), cell["value"])
    return found


def compare_slopes(part: params.Trend, falls: bool, scale: str) -> tuple[float, float, float]:
    """The mean slope of a figure's curves, turned where the claim is that they fall: else as in `compare_pairs`."""
    lines = curves.build(part.table, scale).dropna(subset=["published_x", "published"])
    name = "row" if params.load("tables", part.table).along == "columns" else "column"
    lines = lines[lines[name].isin(part.only or lines[name])]
    ours = [curve for key, curve in curves.read_curves(part.table, scale).items() if key in (part.only or [key])]
    every, here = (
        [curves.list_places(curve, "published_x", "published") for _, curve in points.groupby(name)]
        for points in (lines, lines[lines["ours"].notna()])
    )

    def slope(found: list[compare.Curve]) -> float:
        slopes = [compare.find_slope(curve) for curve in found if len({x for x, _ in curve}) >= scoreboard.FEWEST]
        return float(np.mean(slopes)) * (-1 if falls else 1) if slopes else np.nan

    return slope(ours), slope(every), slope(here)


def in_points(claims: pd.DataFrame) -> pd.Series:
    """Which claims are measured in points of a score between two models, or along an axis: not in %, pieces or times,
    not by scoring one model in two ways, and not where a set is scored from 0 to 1."""

    def is_one(test: params.ClaimTest | None) -> bool:
        if not isinstance(test, params.PairedTest | params.TrendTest):
            return False
        named = [dataset for part in test.parts for dataset in getattr(part, "datasets", [])]
        for key in (part.table for part in test.parts if part.table):
            scores = getattr(params.load("tables", key), "of", [key])  # of a figure: the tables whose runs it shows
            named += [run.dataset for one in scores for run in cells.list_parts(one) if run.dataset]
        return all(registry.lookup(dataset).metric != FROM_0_TO_1 for dataset in named)

    return claims["claim"].map(lambda claim: is_one(params.claim_tests().get(claim))).astype(bool)


def draw(claims: pd.DataFrame, effects: pd.DataFrame, scale: str) -> Figure:
    """The forest: a row a claim that was measured in points, by paper; below it the other measured claims as text.

    `claims`: as of scoreboard.read; `effects`: of paper_effects.
    """
    measured = claims[claims["n"] > 0].reindex(columns=scoreboard.COLUMNS)  # of which there are fewer before a run
    measured = measured.drop(columns=effects.columns[1:], errors="ignore").merge(effects, how="left", on="claim")
    measured = measured.sort_values("paper", key=lambda column: column.map(list(results.PAPERS).index), kind="stable")
    rows, others = (measured[chosen] for chosen in (in_points(measured), ~in_points(measured)))
    # The axis holds every interval of ours; what the papers print beyond it is an arrow and a number.
    reach = 1.05 * np.nanmax([5, *rows[["effect", "ci_low", "ci_high"]].abs().max()])
    lowest = np.nanmin([-1, *rows[["effect", "ci_low", *effects.columns[1:]]].min()])
    figure, ((axes,),) = figures.new_figure(WIDTH, 1)  # as high as its lines, which are counted as they are written
    figure.set_layout_engine("none")
    axes.set(yticks=[], xlim=(max(1.15 * lowest, -reach), reach))
    axes.set_xlabel("points of the score (better minus other)", fontsize=9)
    axes.tick_params(axis="x", labelsize=8, pad=0)
    axes.spines[:].set_visible(False)
    axes.axvline(0, color="black", linewidth=0.8)
    y = 0.3
    for paper, found in rows.groupby("paper", sort=False):
        y += write(axes, 0, y, [results.PAPERS[paper]], weight="bold") + 0.4
        for claim in found.to_dict("records"):
            lines = max(2, write_claim(axes, y, claim, "", 57))
            draw_row(axes, claim, y + lines / 2, lines + 0.4)
            y += lines + 0.5
    bottom = max(y, 2)
    y = bottom + 3.2  # below the axis and its label
    if len(others):
        said = "Measured otherwise: counted, timed, recomputed, or one model scored in two ways"
        y += write(axes, 0, y, [said], weight="bold") + 0.4
    for claim in others.to_dict("records"):
        y += write_claim(axes, y, claim, f"{results.PAPERS[claim['paper']]}: ", 116) + 0.1
    notes = [line for note in list_notes(claims, scale) for line in textwrap.wrap(note, 145)]
    height = y + 0.6 + write(axes, 0, y + 0.6, notes, color="#444444") + 2  # and two of the legend
    figure.set_size_inches(WIDTH, LINE * height)
    axes.set_ylim(bottom, 0)
    axes.set_position([LEFT / WIDTH, 1 - (2 + bottom) / height, AXIS / WIDTH, bottom / height])
    handles = [Line2D([], [], label="the paper, all its sets", **EVERY),
               Line2D([], [], label="the paper, our sets", **HERE),
               Line2D([], [], label="ours, 95% interval, coloured by verdict", color=COLORS["undecided"], **OURS),
               Patch(label="where the claim puts it", color=CLAIMED)]  # fmt: skip
    figure.legend(handles=handles, loc="upper center", ncols=4, fontsize=8, borderpad=0, columnspacing=1.6)
    return figure


def write(axes, inches: float, y: float, lines: list[str], **style) -> int:
    """Lines of text so far from the left of the figure, from a line of the axis on; how many they are."""
    axes.text((inches + 0.08 - LEFT) / AXIS, y, "\n".join(lines), fontsize=8, va="top", linespacing=1.25,
              transform=axes.get_yaxis_transform(), **style)  # fmt: skip
    return len(lines)


def write_claim(axes, y: float, claim: dict, before: str, width: int) -> int:
    """What a paper claims, without keys of the study and with a star where ours has another set, model or protocol;
    the verdict at the right. As many lines as of `write`."""
    test, said = params.claim_tests()[claim["claim"]], claim["statement"]
    for paper, name in results.PAPERS.items():
        said = said.replace(paper, name)
    if isinstance(test, params.TrendTest):
        axis = params.load("tables", test.parts[0].table).axis
        said += f" (points for ten times {'fewer' if test.falls else 'more'} {axis})"
    said = before + said[:1].upper() + said[1:] + " *" * bool(re.search(r"in (its )?place( of|:)", claim["note"]))
    verdict = textwrap.wrap(scoreboard.describe_verdict(claim), 20)
    write(axes, LEFT + AXIS, y, verdict, color=COLORS[claim["verdict"]], weight="bold")
    return write(axes, 0, y, textwrap.wrap(said, width, break_on_hyphens=False))


def draw_row(axes, claim: dict, y: float, height: float) -> None:
    """A claim on the axis: where it puts the difference, the paper's effects, and below them ours with its interval."""
    number = re.match(r"points, of part (\d+)", claim["note"])  # that which decides
    part = params.claim_tests()[claim["claim"]].parts[int(number[1]) - 1 if number else 0]
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
    interval = [[claim["effect"] - claim["ci_low"]], [claim["ci_high"] - claim["effect"]]]
    axes.errorbar(claim["effect"], y + 0.45, xerr=interval, color=COLORS[claim["verdict"]], **OURS)


def list_notes(claims: pd.DataFrame, scale: str) -> list[str]:
    """What is said below the forest: of the scale, of what is not drawn or not decided, and of stars."""
    budget, missing = params.load("scales", scale), (claims["n"] == 0).sum()
    return [
        f"Scale {budget.title}." + " The data are made up: no number is a finding." * budget.made_up
        + f" There is {scoreboard.ONE_MODEL}, whose chance no interval holds: a claim about how to pretrain at most "
        "points one way.",
        f"{missing} of {len(claims)} claims are not measured here. Undecided is also what was run on too few of the "
        "sets or models that a claim speaks of, or is lost to correction for the number of claims. Without a hollow "
        "marker the paper prints no such scores. Of a claim of several parts the one that decides is drawn.",
        "* Ours has another set, model or fine-tuning protocol in place of the paper's; the scoreboard says which.",
    ]  # fmt: skip
