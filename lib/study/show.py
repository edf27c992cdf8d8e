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
from lib.finetuning.protocol import describe_settings
from lib.study import params, paths, published, results
from lib.study.tables import PLACE

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from lib.study import Study
    from lib.study.corpora import Corpus

REFERENCES = {  # column of tables.baselines -> its name on pages
    "chance": "chance", "without_pretraining": "best without pretraining",
    "unlabelled_text": "best with unlabelled text",
}  # fmt: skip
OURS = "Ours: mean ± standard deviation over runs, linked to them."
BASELINES = (
    "Last: baselines without an encoder, the best of them chosen on the test set, which favours it "
    '(<a href="15_without_pretraining.ipynb">15</a>).'
)
BEST_BASELINE = "the best baseline without pretraining, which uses the full training set"
NO_TEXT = "No text is shown: it needs a public dataset on this machine and `show_text = True`."
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
    texts = frame.map(lambda cell: show_value(cell) if isinstance(cell, float) and pd.notna(cell) else cell).fillna("")
    numeric = [index for index, column in enumerate(frame) if is_number(texts[column])]
    filtered = [frame.columns.get_loc(column) for column in filters]
    options = [{"targets": numeric, "render": JavascriptFunction(AS_NUMBER), "type": "num"}] if numeric else []
    options += [{"targets": filtered, "columnControl": ["order", ["searchList"]]}] if filtered else []
    return HTML(to_html_datatable(
        texts, caption=caption or None, table_id=name, connected=False, maxBytes=0, showIndex=False, columnDefs=options,
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
    return Markdown("\n".join(f"- {sentence}" for sentence in said))


def describe_budget(study: "Study") -> str:
    """Say in two sentences what budget each model has at a scale.

    Only the seeds are named if the papers decide the rest, or if the data are made up.
    """
    budget, examples = study.budget, study.budget.finetuning.train_instances
    seeds = ", ".join(map(str, budget.seeds))
    text = f"Seeds {seeds}." if budget.pretrainings == 1 else "One fine-tuning seed for each pretraining."
    if budget.pretraining.recipe is None or budget.made_up:
        return text
    text += f" Models of {budget.bodies['base'].layers} layers, each pretrained "
    text += f"{'once' if budget.pretrainings == 1 else f'{budget.pretrainings} times'}, as a rule on at most "
    text += f"{budget.pretraining.recipe.tokens / 1e6:.1f} million tokens,"
    text += f" and fine-tuned on at most {examples:,} examples" if examples else ""
    return text + ("." if budget.target else ": compare their scores with each other, not with printed ones.")


def bracket(words: Sequence[str], tags: Sequence[str], kinds: bool = False) -> str:
    """Return a sentence as text with its entities in brackets, with `kinds` followed by their types.

    An I tag of another type, or without a B before it, begins an entity, as in predictions.
    """
    texts = []
    for word, tag, before, after in zip(words, tags, ("O", *tags), (*tags[1:], "O"), strict=False):
        if tag == "O":
            texts.append(word)
            continue
        begins = tag[0] == "B" or before == "O" or tag[1:] != before[1:]
        ends = after[0] != "I" or tag[1:] != after[1:]
        text = f"[{word}" if begins else word
        if ends:
            text += "]"
            if kinds:
                text += tag[2:].replace("|I-", "+")  # a word in overlapping elements has several types
        texts.append(text)
    return " ".join(texts)


def tokens_of(text: str, tokenizers: Mapping[str, "PreTrainedTokenizerBase"]) -> HTML:
    """Show how several vocabularies tokenize a text, a row per vocabulary."""
    tokenized = {vocabulary: tokenizer.tokenize(text) for vocabulary, tokenizer in tokenizers.items()}
    return table(
        {"vocabulary": vocabulary, "tokens": len(tokens), "text": " ".join(tokens)}
        for vocabulary, tokens in tokenized.items()
    )


def may_show(source: "Dataset | Corpus", show_text: bool) -> bool:
    """Return whether a page may show its text: it is public or the user's own, and `show_text` is set."""
    return show_text and source.access in ("public", "own")


def readable(dataset: Dataset, show_text: bool) -> Dataset:
    """Return a dataset whose instances may be shown: this one, or made-up data in its format.

    Made-up data are used if this dataset's text may not be shown or is not here. If this dataset has no made-up
    version, that of another dataset of its family is used.
    """
    if may_show(dataset, show_text) and "train" in dataset.splits:
        return dataset
    members = (member for member in (dataset, *registry.DATASETS.values()) if member.family == dataset.family)
    example = next(made_up for member in members if "train" in (made_up := member.at(paths.MADE_UP)).splits)
    return replace(example, title=f"made up, in the format of {example.title}")


def list_made_up(number: int) -> list[str]:
    """List made-up sentences, to show in place of text that may not be shown."""
    instances = registry.lookup("bc5cdr-chem").at(paths.MADE_UP).load("train")
    return [" ".join(instance.words) for instance in instances[:number]]


def quote(rows: Sequence[dict], dataset: Dataset, show_text: bool) -> HTML | Markdown:
    """Show rows with text of a dataset as a table, or a sentence instead if that text may not be shown."""
    if not may_show(dataset, show_text):
        return Markdown(NO_TEXT)
    return table(rows) if rows else Markdown("There is none.")


def describe_runs(study: "Study", result: dict) -> list[str]:
    """Summarise the runs of one model on one dataset in sentences: scores, training data, settings, baselines."""
    runs, main_score = results.list_runs(result), result["main score"]
    seeds = runs.groupby("seed")[main_score].mean()
    first_run = result["runs"][0]
    instances, sequences, cut = first_run["instances"], first_run["rows"], first_run["cut"]
    split = next(name for name in instances if name != "test")
    settings = describe_settings(result["chosen on dev"])
    if result["candidates"]:
        settings += f", the best of {len(result['candidates'])} on the development set"
    statements = [
        f"{result['model title']} on {result['dataset']}: {main_score} {seeds.mean():.2f} on the test set, from "
        f"{seeds.min():.2f} to {seeds.max():.2f} over {len(seeds)} seeds.",
        f"Trained on {instances[split]} instances in {sequences[split]} sequences, with {settings}.",
        f"All {instances['test']} test instances are scored; {cut['test']} were cut at the length limit.",
        f"{(runs['collapsed'] != '').sum()} of {len(runs)} runs learnt nothing.",
    ]
    if first_run.get("first on"):
        statements.append(f"First trained on {first_run['first on']}.")
    if "reads" in first_run:
        statements.append(f"The splits were read in this order: {', '.join(first_run['reads'])}.")
    baselines = [f"{name} {value:.2f}" for name, value in without_encoder(study, result).items()]
    if baselines:
        statements.append(f"Baselines: {', '.join(baselines)}.")
    return statements


def without_encoder(study: "Study", result: dict) -> dict[str, float]:
    """Return the baselines of a result's dataset that page 15 has, by the names in REFERENCES."""
    baselines = study.baselines().set_index(["dataset", "score"])
    row = baselines.reindex([(result["dataset"], result["main score"])]).iloc[0]
    return {name: row[key] for key, name in REFERENCES.items() if pd.notna(row[key])}


def describe_table(effect: pd.DataFrame, filled: pd.DataFrame, places: str = "datasets") -> list[str]:
    """Say what a table shows: what each step adds, our scores above the baseline, substitutions, steps not run.

    `effect`: as for describe_effects; `filled`: rows of the table, from tables.fill.
    """
    effects = describe_effects(effect, places)
    return [*effects, *describe_baselines(filled), *describe_replacements(filled), *describe_not_run(effect)]


def describe_effects(effect: pd.DataFrame, places: str = "datasets") -> list[str]:
    """Say in a sentence per step what it adds on average: ours, and the paper's on the same places and on all of its.

    `effect`: indexed by step and place, with the columns paper and ours, as for figures.effects; `places`: what its
    places are, in the plural. The last sentence says what these means leave open. Empty if no step was run.
    """
    statements = []
    for step, rows in effect.groupby("step", sort=False):
        ours = rows["ours"].dropna()
        if ours.empty:
            continue
        ours_text = f"{ours.mean():+.2f} points"
        if len(ours) == 1:
            ours_text += f" on {format_count(1, places)}"
        else:
            ours_text += f" on average over {format_count(len(ours), places)}, above zero on {(ours > 0).sum()}"
        printed_text = describe_printed_effect(rows["paper"].dropna(), ours.index)
        statements.append(f"{step}: {ours_text}; the paper prints {printed_text}.")
    if statements:
        statements.append(
            f"Means are over all runs. Verdicts leave out {places} where a side is at chance, and pretrainings that "
            f"lack some of the {places}: see *Claims*."
        )
    return statements


def describe_printed_effect(printed: pd.Series, run_here: pd.Index) -> str:
    """Say the mean effect that a paper prints: over the places that were run here, and over all."""
    if printed.empty:
        return "none"
    overall = f"{printed.mean():+.2f} on all of its {len(printed)}"
    shared = printed.reindex(run_here).dropna()
    if shared.empty:
        return overall
    shared_text = "the same" if len(shared) == len(run_here) else f"{len(shared)} of these"
    shared_text = f"{shared.mean():+.2f} on {shared_text}"
    return shared_text if len(shared) == len(printed) else f"{shared_text}, {overall}"


def describe_not_run(effect: pd.DataFrame) -> list[str]:
    """Name in a sentence the steps that were not run, each with the mean effect that the paper prints; empty if none.

    `effect`: as for describe_effects.
    """
    means = effect.groupby("step", sort=False)[["paper", "ours"]].mean()
    printed = means.loc[means["ours"].isna(), "paper"]
    if printed.empty:
        return []
    steps = (f"{step} ({'none' if pd.isna(mean) else f'{mean:+.2f}'})" for step, mean in printed.items())
    return [f"Not run at this scale, with the paper's mean difference in points: {', '.join(steps)}."]


def describe_replacements(filled: pd.DataFrame) -> list[str]:
    """Say in a sentence which models or protocols our numbers substitute for the paper's; empty if none."""
    rows = filled.dropna(subset="ours")
    substitutions = published.join_substitutions(rows["substituted"])
    return [f"Our runs substitute models or protocols: {substitutions}."] if substitutions else []


def describe_baselines(filled: pd.DataFrame) -> list[str]:
    """Say how many of our scores beat the best baseline, among the cells that have both; empty if there are none."""
    compared = filled.dropna(subset=["ours", "without_pretraining"])
    if compared.empty:
        return []
    n_above = (compared["ours"] > compared["without_pretraining"]).sum()
    return [f"{n_above} of our {len(compared)} scores {'beats' if n_above == 1 else 'beat'} {BEST_BASELINE}."]


def format_count(number: int, things: str) -> str:
    """Format a number with what it counts, given in the plural: 1 dataset, 2,000 datasets."""
    return f"{number:,} {things.removesuffix('s') if number == 1 else things}"


def name_axes(cells: pd.DataFrame) -> tuple[str, str]:
    """Return the side of a published table that lists datasets, `row` or `column`, and the side that lists models."""
    datasets = cells.groupby(PLACE, sort=False)["dataset"].agg(tuple).reset_index()
    return ("row", "column") if (datasets.groupby("row")["dataset"].nunique() <= 1).all() else ("column", "row")


def beside(filled: pd.DataFrame, cells: pd.DataFrame, study: "Study", metric: str = "") -> HTML:
    """Show a published table with our scores below the paper's, linked to their runs, and the baselines.

    `filled`: from tables.fill; `cells`: from Study.published; `metric`: as printed,
    empty if each row or column has its own. The caption also says how datasets differ from the paper's.
    """
    dataset_side, model_side = name_axes(cells)
    lines = (filled[filled["metric"] == metric] if metric else filled).copy()
    ours = link_ours(study, lines, cells)
    if not metric:
        lines[dataset_side] += ", " + lines["metric"]
    for name in ("row", "column"):
        lines[name] = lines[name].map(html.escape)
    frames = [lines.assign(whose="paper", said=lines["published"]), lines.assign(whose="ours", said=ours)]
    owner = "ours" if dataset_side == "row" else ""
    for key, name in REFERENCES.items():  # on the side that lists models
        frames.append(lines.assign(**{model_side: name}, whose=owner, said=lines[key]))
    long = pd.concat(frames).dropna(subset="said").drop_duplicates(["row", "whose", "column"])
    long["said"] = [show_value(value) for value in long["said"]]
    wide = spread_columns(long, [*lines["column"].unique(), *REFERENCES.values()])
    baselines = BASELINES if lines[[*REFERENCES]].notna().any(axis=None) else ""
    caption = " ".join(filter(None, [OURS, baselines, *map(html.escape, cells["differs"].unique())]))
    return table(wide.fillna(""), escape=None, caption=caption)


def link_ours(study: "Study", lines: pd.DataFrame, cells: pd.DataFrame) -> list[str]:
    """List our number for each line as HTML linked to the pages of its runs; n/a if there is none."""
    runs = {place: group[["model", "dataset", "protocol"]].values.tolist() for place, group in cells.groupby(PLACE)}
    texts = []
    for line in lines.to_dict("records"):
        text = show_ours(line)
        if pd.notna(line["ours"]):
            place = tuple(line[column] for column in PLACE)
            text = link_runs(study, text, runs[place])
        texts.append(text)
    return texts


def spread_columns(long: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Pivot to a line for each `row` and `whose`, the paper's first, with `said` in those `columns` that occur."""
    wide = long.pivot(index=["row", "whose"], columns="column", values="said")
    order = pd.MultiIndex.from_product([long["row"].unique(), ["paper", "ours", ""]], names=wide.index.names)
    index = order[order.isin(wide.index)]
    present = [column for column in columns if column in wide]
    wide = wide.reindex(index=index, columns=present).reset_index()
    wide.loc[wide["row"].duplicated(), "row"] = ""
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
        return "".join(f"{tag}{text}</a>" for tag in links.values()) or text
    items = "".join(f"<br>{tag}{name}</a>" for name, tag in links.items())
    return f"<details><summary>{text}</summary>{len(runs)} runs{items}</details>"


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
    _, side = name_axes(cells)
    names = cells[cells["model"].map(params.is_model)].groupby(["model", "substituted"], sort=False)[side].unique()
    rows = []
    for (key, substituted), printed in names.items():
        model, row = params.load("models", key), {"printed": ", ".join(printed), "ours": key}
        if params.is_released(key, study.scale):
            row |= {"public weights": params.describe_weights(key), "in its place": substituted}
        else:
            texts = ", then ".join(params.list_texts(key)) or "nothing"
            row |= {"pretrained on": texts, "vocabulary": model.vocabulary, "in its place": substituted,
                    "differs from the paper": model.differs}  # fmt: skip
        rows.append(row)
    return table(pd.DataFrame(rows).fillna(""), caption=describe_common_recipe(study))


def describe_common_recipe(study: "Study") -> str:
    """Say what a scale with a recipe of its own changes for all models; empty if they keep their published ones."""
    recipe = study.budget.pretraining.recipe
    if recipe is None:
        return ""
    masked = f" and masks {recipe.masked_share:.0%} of their tokens" if recipe.masked_share else ""
    return (
        f"At this scale one recipe trains all models{masked}, whatever is published. Their vocabularies are trained "
        "here. As a rule, a model that continues another has half of the tokens, and the other model had the other "
        "half."
    )


def encoders(models: Iterable[str]) -> HTML:
    """Show published encoders: their public weights, papers and pretraining text."""
    entries = {key: params.load("encoders", key) for key in models}
    return table({"encoder": key, "title": encoder.title, "public weights": params.describe_weights(key),
                  "from": encoder.source}
                 for key, encoder in entries.items())  # fmt: skip


def show_pretraining(cells: pd.DataFrame, study: "Study") -> HTML:
    """Show how each model of a table is pretrained at this scale: text, steps, tokens, differences from the paper.

    Models with public weights show repository and revision instead. `words of its text`: the size of the last text,
    if it is at hand; a small text is repeated, so `tokens` may exceed it many times.
    """
    rows = []
    for key in dict.fromkeys(name for name in cells["model"] if params.is_model(name)):
        if params.is_released(key, study.scale):
            rows.append({"model": key, "public weights": params.describe_weights(key)})
            continue
        model, phases = params.load("models", key), params.load_pretraining(key, study.scale).phases
        records = [artefacts.read_record(paths.corpus(study.scale, corpus)) for corpus in model.corpora]
        rows.append({"model": key, "pretrained on": ", then ".join(params.list_texts(key)) or "nothing",
                     "steps": sum(phase.steps for phase in phases),
                     "tokens": sum(phase.steps * phase.batch_size * phase.length for phase in phases),
                     "words of its text": sum(record["words"] for record in records) if all(records) else None,
                     "differs from the paper": model.differs})  # fmt: skip
    return table(pd.DataFrame(rows).convert_dtypes(), caption=describe_common_recipe(study))


def protocols(cells: pd.DataFrame, study: "Study") -> HTML | Markdown:
    """Show the settings in force, a row for each protocol and dataset; columns that no run sets are left out."""
    rows = []
    runs = cells.loc[cells["why_not"] == "", ["protocol", "dataset"]].drop_duplicates()
    for protocol, dataset in runs.itertuples(index=False, name=None):
        settings = study.protocol(protocol, dataset).model_dump()
        seeds = study.budget.seeds[: settings["runs"]]
        rows.append({"protocol": protocol, "dataset": dataset} | settings | {"runs": len(seeds)})
    if not rows:
        return Markdown(f"No run is planned at scale **{study.scale}**.")
    frame = pd.DataFrame(rows).map(lambda value: ", ".join(map(str, value)) if isinstance(value, list) else value)
    filled = frame.dropna(axis="columns", how="all")
    return table(filled.rename(columns=lambda name: name.replace("_", " ")))


def show_finetuning(study: "Study", protocol: str, datasets: Iterable[str]) -> HTML:
    """Show the settings in force on some datasets under a protocol, and the file that each comes from."""
    rows = [
        {"dataset": key} | row
        for key in datasets
        for row in params.explain_finetuning(protocol, key, study.dataset(key).family, study.scale)
        if row["value"] != "None"
    ]
    grouped = pd.DataFrame(rows).groupby(["setting", "value", "from"], sort=False)["dataset"].agg(", ".join)
    return table(grouped.reset_index())


def show_value(value: float | str) -> str:
    """Format a table's number as text, with two decimals, or four if it is between 0 and 0.1; return text unchanged."""
    if isinstance(value, str):
        return value
    return f"{value:.4f}" if 0 < value < 0.1 else f"{value:.2f}"


def show_ours(line: dict) -> str:
    """Format our score in a line of a table, with its standard deviation over seeds if there are several."""
    if pd.isna(line["ours"]):
        return "n/a"
    return show_value(line["ours"]) + ("" if pd.isna(line["ours_std"]) else f" ± {line['ours_std']:.2f}")
