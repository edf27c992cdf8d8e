"""What a notebook shows of frames: a table, ours beside the paper's, what stands for what, the settings in force."""

import html
from typing import TYPE_CHECKING

import pandas as pd
from IPython.display import HTML, Markdown

from lib import artefacts
from lib.study import params, paths
from lib.study.analysis import compare
from lib.study.tables import PLACE

if TYPE_CHECKING:
    from lib.study import Study

REFERENCES = {"chance": "chance", "without_pretraining": "best without an encoder"}  # of tables.floors, in words


def table(rows, decimals: int = 2, escape: str | None = "html", caption: str = "") -> HTML:
    """A table without its index; empty cells as n/a. `escape=None` where cells are HTML already.

    Without the name and class that pandas gives each cell, which are three times as long as what is in it.
    """
    style = pd.DataFrame(rows).style.hide(axis="index").format(precision=decimals, na_rep="n/a", escape=escape)
    return HTML(style.to_html(exclude_styles=True, caption=caption or None))


def sentences(study: "Study", *said: str) -> Markdown:
    """What a page says of its frames, a line each; of made-up data, that they say nothing."""
    if study.budget.made_up:
        return Markdown("**The data are made up**, so no number on this page says anything about a paper.")
    return Markdown("\n".join(f"- {one}" for one in said))


def say_effects(effect: pd.DataFrame, unit: str = "points") -> list[str]:
    """A sentence a step: what ours adds on average, and what the paper prints on the same places and on all of its.

    `effect`: indexed by step and place, with the columns paper and ours, as for figures.effects.
    """
    said = []
    for step, found in effect.groupby("step", sort=False):
        ran, printed = found.dropna(subset="ours"), found["paper"].dropna()
        shared = printed.reindex(ran.index).dropna()
        which = "these" if len(shared) == len(ran) else f"{len(shared)} of these"
        parts = [f"{shared.mean():+.2f} on {which}"] if len(shared) else []
        parts += [f"{printed.mean():+.2f} on all of its {len(printed)}"] if len(printed) else ["none"]
        ours = f"{ran['ours'].mean():+.2f} {unit} on average over {len(ran)}, ahead on {(ran['ours'] > 0).sum()}"
        said.append(f"{step}: {ours if len(ran) else 'not run at this scale'}; the paper prints {', '.join(parts)}.")
    return said


def say_instead(filled: pd.DataFrame) -> list[str]:
    """What our numbers have in place of what the paper names, in a sentence; none where they have all of it."""
    made = filled.dropna(subset="ours")
    instead = dict.fromkeys(part for said in made["instead"] for part in said.split(", ") if part)
    return [f"Ours has {', '.join(instead)}."] if instead else []


def say_floors(filled: pd.DataFrame) -> str:
    """How many of our cells are no better than what needs no encoder, of those for which that is known."""
    known = filled.dropna(subset=["ours", "without_pretraining"])
    if known.empty:
        return "No cell has a number of ours and one without an encoder."
    below = known[known["ours"] <= known["without_pretraining"]]
    return f"{len(below)} of {len(known)} cells of ours are no better than the best without an encoder."


def name_axes(cells: pd.DataFrame) -> tuple[str, str]:
    """What the datasets of a published table run along, `row` or `column`, and what its models do: the other."""
    sets = cells.groupby(PLACE, sort=False)["dataset"].agg(tuple).reset_index()
    return ("row", "column") if (sets.groupby("row")["dataset"].nunique() <= 1).all() else ("column", "row")


def beside(filled: pd.DataFrame, cells: pd.DataFrame, study: "Study", metric: str = "", decimals: int = 2) -> HTML:
    """The paper's line above ours for each printed row, and what needs no encoder; ours leads to the pages of its runs.

    `filled`: of tables.summarise and tables.floors; `cells`: of Study.published; `metric`: as printed, empty where each
    row or column has its own.
    """
    lines, (along, across) = filled[filled["metric"] == metric] if metric else filled, name_axes(cells)
    runs = {place: found[["model", "dataset", "protocol"]].values.tolist() for place, found in cells.groupby(PLACE)}
    places = lines[PLACE].itertuples(index=False, name=None)
    ours = [
        "n/a" if pd.isna(line["ours"]) else link_runs(compare.show_ours(line, decimals), runs[place], study.scale)
        for line, place in zip(lines.to_dict("records"), places, strict=True)
    ]
    if not metric:
        lines = lines.assign(**{along: lines[along] + ", " + lines["metric"]})
    lines = lines.assign(row=lines["row"].map(html.escape), column=lines["column"].map(html.escape))
    parts = [lines.assign(whose="paper", said=lines["published"]), lines.assign(whose="ours", said=ours)]
    for key, name in REFERENCES.items():  # as columns, or as rows
        parts.append(lines.assign(**{across: name}, whose="ours" if along == "row" else "", said=lines[key]))
    long = pd.concat(parts).dropna(subset="said").drop_duplicates(["row", "whose", "column"])
    long["said"] = [compare.show_value(value, decimals) for value in long["said"]]
    wide = long.pivot(index=["row", "whose"], columns="column", values="said")
    order = pd.MultiIndex.from_product([dict.fromkeys(long["row"]), ["paper", "ours", ""]])
    columns = [*dict.fromkeys(lines["column"]), *REFERENCES.values()]
    wide = wide.reindex(index=order[order.isin(wide.index)], columns=[name for name in columns if name in wide])
    wide.insert(0, "", [row if whose != "ours" else "" for row, whose in wide.index])
    wide.insert(1, " ", [whose for _, whose in wide.index])
    return table(wide.fillna(""), escape=None)


def link_runs(text: str, runs: list[params.RunKey], scale: str) -> str:
    """A number as HTML that leads to the executed notebooks beside this one which made it, as far as they are there.

    A number of several runs unfolds into their links.
    """
    found = {" ".join(run): paths.find_page(scale, *run) for run in runs}
    links = {name: f'<a href="{page.name}" title="{name}">' for name, page in found.items() if page}
    if len(runs) == 1 and links:
        return f"{''.join(links.values())}{text}</a>"
    listed = "".join(f"<br>{opened}{name}</a>" for name, opened in links.items())
    return f"<details><summary>{text}</summary>{len(runs)} runs{listed}</details>" if len(runs) > 1 else text


def models(cells: pd.DataFrame) -> HTML:
    """Which model of ours stands for which printed name, what it is pretrained on, and how it differs from the paper's.

    `in its place`: where the scale runs another model or protocol than the one that differs so.
    """
    _, across = name_axes(cells)
    found = cells[cells["model"].map(params.is_model)].groupby(["model", "instead"], sort=False)[across].unique()
    rows = []
    for (key, instead), printed in found.items():
        model = params.load("models", key)
        texts = ", then ".join(params.list_texts(key)) or "nothing"
        rows.append({"printed": ", ".join(printed), "ours": key, "pretrained on": texts, "vocabulary": model.vocabulary,
                     "in its place": instead, "differs from the paper": model.differs})  # fmt: skip
    return table(rows)


def pretraining(cells: pd.DataFrame, study: "Study") -> HTML:
    """How long each model of a table is pretrained at this scale, on how much of what, and how it differs.

    `words of its text`: of the last text, where it is at hand; of a small one the tokens come again and again.
    """
    rows = []
    for key in dict.fromkeys(name for name in cells["model"] if params.is_model(name)):
        model, phases = params.load("models", key), params.load_pretraining(key, study.scale).phases
        texts = [artefacts.read_record(paths.corpus(study.scale, corpus)) for corpus in model.corpora]
        rows.append({"model": key, "pretrained on": ", then ".join(params.list_texts(key)) or "nothing",
                     "steps": sum(phase.steps for phase in phases),
                     "tokens": sum(phase.steps * phase.batch_size * phase.length for phase in phases),
                     "words of its text": sum(text["words"] for text in texts) if all(texts) else None,
                     "differs from the paper": model.differs})  # fmt: skip
    return table(pd.DataFrame(rows).astype({"words of its text": "Int64"}))


def protocols(cells: pd.DataFrame, study: "Study") -> HTML | Markdown:
    """The settings in force of the runs: a row a protocol and dataset, without settings that none of them has."""
    seeds, rows = study.budget.seeds, []
    runs = cells.loc[cells["why_not"] == "", ["protocol", "dataset"]].drop_duplicates()
    for key, dataset in runs.itertuples(index=False, name=None):
        settings = study.protocol(key, dataset).model_dump()
        rows.append({"protocol": key, "dataset": dataset} | settings | {"runs": len(seeds[: settings["runs"]])})
    if not rows:
        return Markdown(f"No run is planned at scale **{study.scale}**.")
    frame = pd.DataFrame(rows).map(lambda value: ", ".join(map(str, value)) if isinstance(value, list) else value)
    return table(frame.dropna(axis="columns", how="all").rename(columns=lambda name: name.replace("_", " ")))
