"""Display functions for notebooks: tables, our scores beside the paper's, sentences on runs, the settings in force."""

import html
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd
from IPython.display import HTML, Markdown

from lib import artefacts
from lib.benchmarks import registry
from lib.benchmarks.datasets import Dataset
from lib.finetuning.protocol import say_settings
from lib.study import params, paths, results
from lib.study.tables import PLACE

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from lib.study import Study

REFERENCES = {  # column of tables.baselines -> its name on pages
    "chance": "chance", "without_pretraining": "best without pretraining",
    "unlabelled_text": "best with unlabelled text",
}  # fmt: skip
AS_NUMBER = """function (cell, what) {
    return what === "display" || what === "filter" ? cell : cell === "" ? -1000 : parseFloat(cell);
}"""


def table(rows, decimals: int = 2, escape: str | None = "html", caption: str = "") -> HTML:
    """Show rows as a table without its index; empty cells read n/a. `escape=None` if the cells are HTML already.

    The names and classes that pandas gives to cells are left out: they are three times as long as the content.
    """
    style = pd.DataFrame(rows).style.hide(axis="index").format(precision=decimals, na_rep="n/a", escape=escape)
    return HTML(style.to_html(exclude_styles=True, caption=caption or None))


def load_sorting() -> HTML:
    """Return the scripts that `sortable` tables need, about 1 MB, once per page; they contact no host."""
    from itables import options  # here, so that other pages need not wait
    from itables.javascript import generate_init_offline_itables_html

    options.display_logo_when_loading = False  # a link to its makers' site
    return HTML(generate_init_offline_itables_html(options.dt_bundle))


def sortable(rows, name: str, filters: Collection[str] = (), caption: str = "", paged: bool = False) -> HTML:
    """Show rows as a table that a browser can sort by any column; the columns of `filters` get a list of values.

    Text that begins with a number sorts as that number; empty cells sort below all numbers. `name`: the table's id,
    unique on its page; `paged`: 25 rows at a time.
    """
    from itables import JavascriptFunction, to_html_datatable

    frame = pd.DataFrame(rows)
    shown = frame.map(lambda cell: show_value(cell) if isinstance(cell, float) and pd.notna(cell) else cell).fillna("")
    numbers = [place for place, key in enumerate(frame) if is_number(shown[key])]
    chosen = [frame.columns.get_loc(key) for key in filters]
    ways = [{"targets": numbers, "render": JavascriptFunction(AS_NUMBER), "type": "num"}] if numbers else []
    ways += [{"targets": chosen, "columnControl": ["order", ["searchList"]]}] if chosen else []
    return HTML(to_html_datatable(
        shown, caption=caption or None, table_id=name, connected=False, maxBytes=0, showIndex=False, columnDefs=ways,
        columnControl=["order"], ordering={"indicators": False, "handler": False}, paging=paged, pageLength=25,
        classes="display compact", style="width:auto", autoWidth=False, display_logo_when_loading=False,
    ))  # fmt: skip


def is_number(cells: pd.Series) -> bool:
    """Return whether every non-empty cell of a column begins with a number, and there is at least one."""
    filled = cells.astype(str)[lambda texts: texts != ""]
    return len(filled) > 0 and filled.str.match(r"-?\d+(\.\d+)?( |$)").all()


def sentences(study: "Study", *said: str) -> Markdown:
    """List a page's findings, one per line; on made-up data, say instead that no number means anything."""
    if study.budget.made_up:
        return Markdown("**The data are made up**, so no number on this page says anything about a paper.")
    return Markdown("\n".join(f"- {one}" for one in said))


def say_budget(study: "Study") -> str:
    """Say in two sentences what budget each model has at a scale.

    Only the seeds are named if the papers decide the rest, or if the data are made up.
    """
    budget, tuned = study.budget, study.budget.finetuning.train_instances
    said = f"Seeds {', '.join(map(str, budget.seeds))}."
    if budget.pretraining.recipe is None or budget.made_up:
        return said
    said += f" Models of {budget.bodies['base'].layers} layers, each pretrained "
    said += f"{'once' if budget.pretrainings == 1 else f'{budget.pretrainings} times'} on at most "
    said += f"{budget.pretraining.recipe.tokens / 1e6:.1f} million tokens"
    said += f" and fine-tuned on at most {tuned:,} examples" if tuned else ""
    return said + ("." if budget.target else ": compare their scores with each other, not with printed ones.")


def bracket(words: Sequence[str], tags: Sequence[str], kinds: bool = False) -> str:
    """Return a sentence as text with its entities in brackets, with `kinds` followed by their types.

    An I tag of another type, or without a B before it, begins an entity, as in predictions.
    """
    out = []
    for word, tag, before, after in zip(words, tags, ("O", *tags), (*tags[1:], "O"), strict=False):
        if tag == "O":
            out.append(word)
            continue
        begins = tag[0] == "B" or before == "O" or tag[1:] != before[1:]
        ends = after[0] != "I" or tag[1:] != after[1:]
        shown = f"[{word}" if begins else word
        if ends:
            shown += "]"
            if kinds:
                shown += tag[2:].replace("|I-", "+")  # a word in overlapping elements has several types
        out.append(shown)
    return " ".join(out)


def tokens_of(text: str, tokenizers: Mapping[str, "PreTrainedTokenizerBase"]) -> HTML:
    """Show how several vocabularies tokenize a text, a row per vocabulary."""
    cut = {name: tokenizer.tokenize(text) for name, tokenizer in tokenizers.items()}
    return table({"vocabulary": name, "tokens": len(found), "text": " ".join(found)} for name, found in cut.items())


def may_show(dataset: Dataset, show_text: bool) -> bool:
    """Return whether a page may show text of a dataset: it is public or the user's own, and `show_text` is set."""
    return show_text and dataset.access in ("public", "own")


def readable(dataset: Dataset, show_text: bool) -> Dataset:
    """Return a dataset whose instances may be shown: this one, or made-up data in its format.

    Made-up data are used if this dataset's text may not be shown or is not here. If this dataset has no made-up
    version, that of another dataset of its family is used.
    """
    if may_show(dataset, show_text) and "train" in dataset.splits:
        return dataset
    alike = (one for one in (dataset, *registry.DATASETS.values()) if one.family == dataset.family)
    found = next(made for one in alike if "train" in (made := one.at(paths.MADE_UP)).splits)
    return replace(found, title=f"made up, in the format of {found.title}")


def list_made_up(number: int) -> list[str]:
    """List made-up sentences, to show in place of text that may not be shown."""
    sentences = registry.lookup("bc5cdr-chem").at(paths.MADE_UP).load("train")
    return [" ".join(sentence.words) for sentence in sentences[:number]]


def quote(rows: Sequence[dict], dataset: Dataset, show_text: bool) -> HTML | Markdown:
    """Show rows with text of a dataset as a table, or a sentence instead if that text may not be shown."""
    if not may_show(dataset, show_text):
        return Markdown("No text is shown here: only of public sets, where a person runs this page with `show_text`.")
    return table(rows) if rows else Markdown("There is none.")


def say_runs(study: "Study", result: dict) -> list[str]:
    """Summarise the runs of one model on one dataset in sentences: scores, training data, settings, baselines."""
    runs, main = results.list_runs(result), result["main score"]
    seeds = runs.groupby("seed")[main].mean()
    first = result["runs"][0]
    instances, sequences, cut = first["instances"], first["rows"], first["cut"]
    trained = next(name for name in instances if name != "test")
    settings = say_settings(result["chosen on dev"])
    if result["candidates"]:
        settings += f", the best of {len(result['candidates'])} on the development set"
    said = [
        f"{result['model title']} on {result['dataset']}: {main} {seeds.mean():.2f} on the test set, from "
        f"{seeds.min():.2f} to {seeds.max():.2f} over {len(seeds)} seeds.",
        f"Trained on {instances[trained]} instances in {sequences[trained]} sequences, with {settings}.",
        f"All {instances['test']} test instances are scored; {cut['test']} were cut at the length limit.",
        f"{(runs['collapsed'] != '').sum()} of {len(runs)} runs learnt nothing.",
    ]
    if first.get("first on"):
        said.append(f"First trained on {first['first on']}.")
    if "reads" in first:
        said.append(f"The splits were read in this order: {', '.join(first['reads'])}.")
    known = [f"{name} {value:.2f}" for name, value in without_encoder(study, result).items()]
    if known:
        said.append(f"Baselines: {', '.join(known)}.")
    return said


def without_encoder(study: "Study", result: dict) -> dict[str, float]:
    """Return the baselines of a result's dataset that page 15 has, by the names in REFERENCES."""
    known = study.baselines().set_index(["dataset", "score"])
    found = known.reindex([(result["dataset"], result["main score"])]).iloc[0]
    return {name: found[key] for key, name in REFERENCES.items() if pd.notna(found[key])}


def say_effects(effect: pd.DataFrame, unit: str = "points") -> list[str]:
    """Say in a sentence per step what it adds on average: ours, and the paper's on the same places and on all of its.

    `effect`: indexed by step and place, with the columns paper and ours, as for figures.effects.
    """
    said = []
    for step, places in effect.groupby("step", sort=False):
        ours = places["ours"].dropna()
        ours_said = "not run at this scale"
        if len(ours):
            ours_said = f"{ours.mean():+.2f} {unit} on average over {len(ours)}, ahead on {(ours > 0).sum()}"
        printed_said = say_printed_effect(places["paper"].dropna(), ours.index)
        said.append(f"{step}: {ours_said}; the paper prints {printed_said}.")
    return said


def say_printed_effect(printed: pd.Series, run_here: pd.Index) -> str:
    """Say the mean effect that a paper prints: over the places that were run here, and over all."""
    if printed.empty:
        return "none"
    on_all = f"{printed.mean():+.2f} on all of its {len(printed)}"
    shared = printed.reindex(run_here).dropna()
    if shared.empty:
        return on_all
    which = "these" if len(shared) == len(run_here) else f"{len(shared)} of these"
    return f"{shared.mean():+.2f} on {which}, {on_all}"


def say_substitutions(filled: pd.DataFrame) -> list[str]:
    """Say in a sentence which models or protocols our numbers substitute for the paper's; empty if none."""
    made = filled.dropna(subset="ours")
    substituted = dict.fromkeys(part for said in made["substituted"] for part in said.split(", ") if part)
    return [f"Ours has {', '.join(substituted)}."] if substituted else []


def say_baselines(filled: pd.DataFrame) -> str:
    """Say how many of our scores do not beat the best baseline, among the cells that have one."""
    known = filled.dropna(subset=["ours", "without_pretraining"])
    if known.empty:
        return "No cell has both a score of ours and a baseline."
    below = known[known["ours"] <= known["without_pretraining"]]
    return f"{len(below)} of {len(known)} scores of ours do not beat the best without pretraining."


def name_axes(cells: pd.DataFrame) -> tuple[str, str]:
    """Return the side of a published table that lists datasets, `row` or `column`, and the side that lists models."""
    sets = cells.groupby(PLACE, sort=False)["dataset"].agg(tuple).reset_index()
    return ("row", "column") if (sets.groupby("row")["dataset"].nunique() <= 1).all() else ("column", "row")


def beside(filled: pd.DataFrame, cells: pd.DataFrame, study: "Study", metric: str = "", decimals: int = 2) -> HTML:
    """Show a published table with our scores below the paper's, linked to their runs, and the baselines.

    `filled`: from tables.summarise_cells and tables.baselines; `cells`: from Study.published; `metric`: as printed,
    empty if each row or column has its own. The caption says how datasets differ from the paper's.
    """
    along, across = name_axes(cells)
    lines = (filled[filled["metric"] == metric] if metric else filled).copy()
    ours = link_ours(study, lines, cells, decimals)
    if not metric:
        lines[along] += ", " + lines["metric"]
    for name in ("row", "column"):
        lines[name] = lines[name].map(html.escape)
    parts = [lines.assign(whose="paper", said=lines["published"]), lines.assign(whose="ours", said=ours)]
    whose = "ours" if along == "row" else ""
    for key, name in REFERENCES.items():  # on the side that lists models
        parts.append(lines.assign(**{across: name}, whose=whose, said=lines[key]))
    long = pd.concat(parts).dropna(subset="said").drop_duplicates(["row", "whose", "column"])
    long["said"] = [show_value(value, decimals) for value in long["said"]]
    wide = spread_columns(long, [*lines["column"].unique(), *REFERENCES.values()])
    differ = " ".join(filter(None, cells["differs"].unique()))
    return table(wide.fillna(""), escape=None, caption=html.escape(differ))


def link_ours(study: "Study", lines: pd.DataFrame, cells: pd.DataFrame, decimals: int) -> list[str]:
    """List our number for each line as HTML linked to the pages of its runs; n/a if there is none."""
    runs = {place: behind[["model", "dataset", "protocol"]].values.tolist() for place, behind in cells.groupby(PLACE)}
    shown = []
    for line in lines.to_dict("records"):
        number = show_ours(line, decimals)
        if pd.notna(line["ours"]):
            place = tuple(line[name] for name in PLACE)
            number = link_runs(study, number, runs[place])
        shown.append(number)
    return shown


def spread_columns(long: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Pivot to a line for each `row` and `whose`, the paper's first, with `said` in those `columns` that occur."""
    wide = long.pivot(index=["row", "whose"], columns="column", values="said")
    order = pd.MultiIndex.from_product([long["row"].unique(), ["paper", "ours", ""]], names=wide.index.names)
    lines = order[order.isin(wide.index)]
    shown = [name for name in columns if name in wide]
    wide = wide.reindex(index=lines, columns=shown).reset_index()
    wide.loc[wide["whose"] == "ours", "row"] = ""
    return wide


def link_runs(study: "Study", text: str, runs: list[params.RunKey]) -> str:
    """Return a number as HTML linked to those executed notebooks of its runs that are there, beside this page.

    A number of several runs unfolds into a list of links.
    """
    links = {}  # run -> opening tag of its link
    for run in runs:
        name, page = " ".join(run), paths.find_page(study.scale, *run)
        if page:
            links[name] = f'<a href="{page.name}" title="{name}">'
    if len(runs) < 2:
        return "".join(f"{opened}{text}</a>" for opened in links.values()) or text
    listed = "".join(f"<br>{opened}{name}</a>" for name, opened in links.items())
    return f"<details><summary>{text}</summary>{len(runs)} runs{listed}</details>"


def link_table(study: "Study", key: str) -> str:
    """Return a published table's key as HTML, linked to its executed page if that is there, beside this page."""
    if key not in params.keys("tables"):
        return key
    notebook = params.load("tables", key).notebook
    for page in (f"{notebook}--{key}.ipynb", f"{notebook}.ipynb"):
        if paths.find_all(study.scale, "notebooks", page):
            return f'<a href="{page}">{key}</a>'
    return key


def models(cells: pd.DataFrame, study: "Study") -> HTML:
    """Show which of our models stands for each printed name, its pretraining, and how it differs from the paper's.

    `in its place`: the substitution, if the scale runs another model or protocol than the one assigned. For public
    weights, the repository and revision replace text and vocabulary.
    """
    _, across = name_axes(cells)
    found = cells[cells["model"].map(params.is_model)].groupby(["model", "substituted"], sort=False)[across].unique()
    rows = []
    for (key, substituted), printed in found.items():
        model, line = params.load("models", key), {"printed": ", ".join(printed), "ours": key}
        if params.is_released(key, study.scale):
            line |= {"public weights": params.say_released(key), "in its place": substituted}
        else:
            texts = ", then ".join(params.list_texts(key)) or "nothing"
            line |= {"pretrained on": texts, "vocabulary": model.vocabulary, "in its place": substituted,
                     "differs from the paper": model.differs}  # fmt: skip
        rows.append(line)
    return table(pd.DataFrame(rows).fillna(""))


def encoders(models: Iterable[str]) -> HTML:
    """Show published encoders: their public weights, papers and pretraining text."""
    found = {key: params.load("encoders", key) for key in models}
    return table({"encoder": key, "title": one.title, "public weights": params.say_released(key), "from": one.source}
                 for key, one in found.items())  # fmt: skip


def show_pretraining(cells: pd.DataFrame, study: "Study") -> HTML:
    """Show how each model of a table is pretrained at this scale: text, steps, tokens, differences from the paper.

    Models with public weights show repository and revision instead. `words of its text`: the size of the last text,
    if it is at hand; a small text is repeated, so `tokens` may exceed it many times.
    """
    rows = []
    for key in dict.fromkeys(name for name in cells["model"] if params.is_model(name)):
        if params.is_released(key, study.scale):
            rows.append({"model": key, "public weights": params.say_released(key)})
            continue
        model, phases = params.load("models", key), params.load_pretraining(key, study.scale).phases
        texts = [artefacts.read_record(paths.corpus(study.scale, corpus)) for corpus in model.corpora]
        rows.append({"model": key, "pretrained on": ", then ".join(params.list_texts(key)) or "nothing",
                     "steps": sum(phase.steps for phase in phases),
                     "tokens": sum(phase.steps * phase.batch_size * phase.length for phase in phases),
                     "words of its text": sum(text["words"] for text in texts) if all(texts) else None,
                     "differs from the paper": model.differs})  # fmt: skip
    return table(pd.DataFrame(rows).convert_dtypes())


def protocols(cells: pd.DataFrame, study: "Study") -> HTML | Markdown:
    """Show the settings in force, a row for each protocol and dataset; columns that no run sets are left out."""
    rows = []
    runs = cells.loc[cells["why_not"] == "", ["protocol", "dataset"]].drop_duplicates()
    for key, dataset in runs.itertuples(index=False, name=None):
        settings = study.protocol(key, dataset).model_dump()
        seeds = study.budget.seeds[: settings["runs"]]
        rows.append({"protocol": key, "dataset": dataset} | settings | {"runs": len(seeds)})
    if not rows:
        return Markdown(f"No run is planned at scale **{study.scale}**.")
    frame = pd.DataFrame(rows).map(lambda value: ", ".join(map(str, value)) if isinstance(value, list) else value)
    given = frame.dropna(axis="columns", how="all")
    return table(given.rename(columns=lambda name: name.replace("_", " ")))


def show_finetuning(study: "Study", protocol: str, datasets: Iterable[str]) -> HTML:
    """Show the settings in force on some datasets under a protocol, and the file that each comes from."""
    rows = [
        {"dataset": key} | row
        for key in datasets
        for row in params.explain_finetuning(protocol, key, study.dataset(key).family, study.scale)
        if row["value"] != "None"
    ]
    alike = pd.DataFrame(rows).groupby(["setting", "value", "from"], sort=False)["dataset"].agg(", ".join)
    return table(alike.reset_index())


def show_value(value: float | str, decimals: int = 2) -> str:
    """Format a table's number as text, positive ones below 0.1 (p values) with four decimals; return text unchanged."""
    if isinstance(value, str):
        return value
    return f"{value:.4f}" if 0 < value < 0.1 else f"{value:.{decimals}f}"


def show_ours(line: dict, decimals: int = 2) -> str:
    """Format our score in a line of a table, with its standard deviation over seeds if there are several."""
    if pd.isna(line["ours"]):
        return "n/a"
    return show_value(line["ours"], decimals) + ("" if pd.isna(line["ours_std"]) else f" ± {line['ours_std']:.2f}")
