"""The record: results of runs on real data, copied to outputs/record/<scale>/, which is committed.

Runs and opened pages write below outputs/<scale>/, which git ignores. Only `take_over` changes the record.
"""

import json
import re
from collections.abc import Callable, Collection
from pathlib import Path

import pandas as pd

from lib import artefacts
from lib.benchmarks import baselines, registry
from lib.errors import StudyError
from lib.places import show_path
from lib.running import executed
from lib.study import claims, exploring, gains, open_study, params, paths, results, scores, show
from lib.study.tables import PLACE

VOCABULARY = ("record.json", "tokenizer.json", "tokenizer_config.json")
# All pages except those of single corpora, models and runs, because some of these show documents.
PAGES = "0[0145]_*", "1[1-4]_*", "15_without_pretraining", "2[124]_*", "33_*", "[4-9]*"
POINTS = 25  # rows kept of a run's log, enough to draw its curve
PRETRAININGS = (
    "Scores: mean ± standard deviation over pretrainings (their number), each fine-tuned once. Losses: on held-out "
    "text, one for each pretraining; comparable between models of one text, vocabulary and masking only."
)
LINK = re.compile(r'(?<=\]\()[\w-]+(?=\.ipynb\))|(?<=href=\\")[\w-]+(?=\.ipynb\\")')  # links in a notebook's JSON
SOURCES = "../../../../notebooks/"  # from a page of the record
FIGURES = "brief", "claims", "integers"  # recorded although no published table has them; README shows the first


def take_over(scale: str) -> list[Path]:
    """Copy the results of a run here into the record, pages with their answer under the title.

    Return the files of the record that are new or changed. Raises StudyError, and changes nothing, if the data are made
    up, if nothing has been run, if a notebook failed or was interrupted, if a file on either side is damaged, or if a
    filled cell of a published table would become empty.
    """
    if params.load("scales", scale).made_up:
        raise StudyError(f"scale '{scale}' has made-up data, of which nothing is recorded")
    broken = [path for folder in ("failed", "running") for path in paths.output(scale, folder).glob("*.ipynb")]
    if broken:
        raise StudyError(f"not recorded: {show_path(broken[0])}: failed or was broken off; run it again, or delete it")
    files = list_recorded(scale)
    if not files:
        raise StudyError(f"nothing has been run at scale '{scale}': run ./run_all.sh {scale} first")
    emptied = {}  # table -> its published cells with a number of ours in the record but not here
    for path in files:
        if path.suffix == ".csv" and (cells := list_filled(paths.recorded(path)) - list_filled(path)):
            emptied[path.stem] = sorted(cells)
    if emptied:
        (table, cells), *_ = emptied.items()
        raise StudyError(
            f"not recorded: {sum(map(len, emptied.values()))} cells that the record fills would become empty, first in "
            f"{table}: {', '.join(filter(None, cells[0]))}; run what fills them, or delete the table from the record"
        )
    stems = {path.stem for path in (*files, *paths.output("record", scale, "notebooks").glob("*.ipynb"))}
    changed = {}
    for path in files:
        is_page, twin = path.suffix == ".ipynb", paths.recorded(path)
        content = mend_links(executed.repeat_answer(path), stems).encode() if is_page else read_content(path)
        if not twin.exists() or content != read_content(twin):
            changed[twin] = content
    for path, content in changed.items():
        with artefacts.whole_file(path) as temporary:
            temporary.write_bytes(content)
    return list(changed)


def list_recorded(scale: str) -> list[Path]:
    """List the files of a scale to record: runs of the study's own models, tables, figures, pages and vocabularies.

    Figures are those in FIGURES and those with a number of ours. Page 26's table is left out because it is about
    made-up data or the user's own.
    """
    folder = paths.output(scale)
    runs = [path for path in folder.glob("results/*.json") if is_ours(*path.stem.split("--")[:2])]
    tables = [*folder.glob("*.csv"), *(path for path in folder.glob("tables/*.csv") if path.stem != "own-data")]
    figures = [path for path in folder.glob("figures/*.svg") if path.stem in FIGURES or has_ours(scale, path.stem)]
    recorded = [*runs, *tables, *figures]
    for pattern in PAGES:
        recorded += folder.glob(f"notebooks/{pattern}.ipynb")
    for name in VOCABULARY:
        recorded += folder.glob(f"vocabularies/*/{name}")
    token_lists = folder.glob("vocabularies/*/vocab.txt")  # needed for Japanese; others have it in tokenizer.json
    recorded += [path for path in token_lists if not path.with_name("tokenizer.json").exists()]
    return sorted(recorded)


def mend_links(page: str, beside: Collection[str]) -> str:
    """Return an executed notebook's text with its links mended to the notebooks `beside` it.

    A notebook that ran for several keys is linked by its first copy, one that is not there by its source.
    """

    def find_target(link: re.Match) -> str:
        if link[0] in beside:
            return link[0]
        group = link[0].split("--")[0]
        return min((name for name in beside if name.split("--")[0] == group), default=f"{SOURCES}{group}")

    return LINK.sub(find_target, page)


def is_ours(model: str, dataset: str) -> bool:
    """Return whether a model and a dataset are the study's, not a user's encoder or data."""
    return dataset in registry.DATASETS and (params.is_model(model) or model in (*params.BASELINES, exploring.SHIPPED))


def has_ours(scale: str, key: str) -> bool:
    """Return whether a table has a number of ours beside printed ones."""
    table = results.find_table(paths.table(scale, key))
    return table is not None and "ours" in table and bool(table["ours"].notna().any())


def list_filled(path: Path) -> set[tuple]:
    """Return row, column and metric of each published cell of a table with a number of ours.

    Raises StudyError if the table is damaged.
    """
    table = results.read_table(path) if path.exists() else pd.DataFrame()
    if not {*PLACE, "ours"} <= {*table}:
        return set()
    cells = table.loc[table["ours"].notna(), PLACE]
    return set(cells.astype(object).fillna("").itertuples(index=False, name=None))


def read_content(path: Path) -> bytes:
    """Return a file's content as recorded: results of runs with thinned logs, vocabularies without white space.

    Raises StudyError if the file is damaged.
    """
    if path.name == "tokenizer.json":
        return json.dumps(artefacts.read_json(path), ensure_ascii=False, separators=(",", ":")).encode()
    if path.parent.name != "results":
        return path.read_bytes()
    result = artefacts.read_json(path)
    runs = [run | {"log": thin(run["log"])} if "log" in run else run for run in result["runs"]]
    return artefacts.to_lines(result | {"runs": runs}).encode()


def thin(log: list) -> list:
    """Return at most POINTS rows of a log, evenly spaced, including the first and the last."""
    if len(log) <= POINTS:
        return log
    return [log[round(number * (len(log) - 1) / (POINTS - 1))] for number in range(POINTS)]


def update_summaries(scale: str) -> None:
    """Write the scale's summary and the findings between their marks in README.md and docs/*.md."""
    for path in (paths.ROOT / "README.md", *paths.ROOT.glob("docs/*.md")):
        write_between(path, scale, lambda: summarize_scale(scale))
        write_between(path, "findings", list_findings)


def write_between(path: Path, name: str, make: Callable[[], str]) -> None:
    """Write generated text between the marks of a name in a page, if the page has them."""
    begin, end = f"<!-- {name}: generated -->", f"<!-- /{name} -->"
    before, _, rest = path.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    if after:
        artefacts.write_text(path, f"{before}{begin}\n{make()}\n{end}{after}")


def list_findings() -> str:
    """List the main findings in the record's tables (Markdown)."""
    audit, bought = (results.read_table(paths.recorded(paths.table("laptop", name))) for name in ("audit", "gains"))
    recipes = claims.list_measured_recipes(claims.read_verdicts(open_study("weekend")))
    findings = [describe_audit(audit)]
    if len(recipes):
        findings.append(describe_recipes(recipes))
    findings += [describe_beaten(bought), describe_tagger()]
    return "\n".join(f"- {finding}" for finding in findings)


def describe_audit(audit: pd.DataFrame) -> str:
    derived = audit[audit["kind"].isin(("F1", "average", "difference"))]
    stated, passages = (audit[audit["kind"] == kind] for kind in ("text", "passage"))
    return (
        f"**Printed numbers.** {(derived['verdict'] == 'differs').sum()} of {len(derived)} printed F1s, averages and "
        "differences do not follow from their paper's own numbers, even allowing for rounding and averaging over runs; "
        f"{(stated['verdict'] == 'differs').sum()} of {len(stated)} statements in the text disagree with its tables; "
        f"{len(passages)} more passages, read literally, differ from another place of their paper "
        "([page 90](outputs/record/laptop/notebooks/90_audit.ipynb))."
    )


def describe_recipes(measured: pd.DataFrame) -> str:
    """Count the verdicts on recipes, and quote the first claim in list order, not the one with the largest effect."""
    claim = measured.iloc[0]
    return (
        f"**Recipes** (`weekend`). Of {len(measured)} claims about recipes pretrained several times, "
        f"{claims.describe_counts(measured)} ([all](docs/measurement.md)). The first, that {claim['statement']}: "
        f"{claim['effect']:+.1f} points (95% interval {claim['ci_low']:+.1f} to {claim['ci_high']:+.1f}, corrected p "
        f"{claim['p']:.2f}; the paper {claim['paper_effect_here']:+.1f}) on {claim['n_sets']} datasets."
    )


def describe_beaten(bought: pd.DataFrame) -> str:
    printed, ours = gains.list_distances(bought)
    return (
        "**Baselines** (`laptop`). The best method without pretraining, chosen on the test set, beats "
        f"{(printed < 0).sum()} of {len(printed)} printed scores, some of another split, and {(ours < 0).sum()} of "
        f"{len(ours)} of ours, which learn from fewer examples "
        "([page 05](outputs/record/laptop/notebooks/05_what_pretraining_buys.ipynb))."
    )


def describe_tagger() -> str:
    """Compare the tagger that ships with baselines and printed scores; its table's first dataset is an example."""
    table = results.read_table(exploring.TAGGER / "scores.csv")
    n_above, example = (table["f1"] > table["baseline f1"]).sum(), table.iloc[0]
    known = results.read_table(paths.recorded(paths.table("laptop", "baselines")))
    printed = known[known["kind"] == baselines.PRINTED].groupby("dataset")["score"].max().reindex(table["dataset"])
    n_below = (table["f1"].to_numpy() < printed.to_numpy()).sum()
    return (
        f"**Tagger.** [The one that ships](model/tagger/README.md), 14M parameters, learnt once from {len(table)} "
        f"datasets. It beats our best baseline on {n_above} of {len(table)} test sets ({example['dataset']}: F1 "
        f"{example['f1']:.1f}, baseline {example['baseline f1']:.1f}); the best score printed without a transformer is "
        f"higher on {n_below} ([page 15](outputs/record/laptop/notebooks/15_without_pretraining.ipynb))."
    )


def summarize_scale(scale: str) -> str:
    """Summarise a scale (Markdown).

    A scale with a target gets its scores against the target; one that pretrains models several times gets the
    measured claims about recipes and the models' scores; any other gets its claims counted by kind and verdict.
    """
    study = open_study(scale)
    summary = f"Scale **{study.budget.title}**. {show.describe_budget(study)}\n\n"
    if study.budget.target:
        panels = results.find_table(paths.table(scale, "panels"))
        findings = [] if panels is None else scores.describe_target(study, panels)
        return summary + "\n".join(f"- {finding}" for finding in findings)
    if study.budget.pretrainings > 1:
        table = scores.compare_pretrainings(study).to_markdown(index=False, disable_numparse=True)
        return summary + "\n".join([*claims.list_recipes(claims.read_verdicts(study)), "", table, "", PRETRAININGS])
    counts = claims.tally(claims.read_verdicts(study)).query("paper == 'all'").drop(columns="paper")
    return summary + counts.to_markdown(index=False, disable_numparse=True)
