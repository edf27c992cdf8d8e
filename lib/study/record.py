"""The record: what a run at a scale with real data found, taken over into outputs/record/<scale>/, which is committed.

Runs and opened pages write below outputs/<scale>/, which git ignores. `take_over` alone changes the record.
"""

import json
import re
from collections.abc import Callable, Collection
from pathlib import Path

import pandas as pd

from lib import artefacts
from lib.benchmarks import registry
from lib.errors import StudyError
from lib.study import claims, exploring, gains, open_study, params, paths, results, scores, show
from lib.study.tables import PLACE

VOCABULARY = ("record.json", "tokenizer.json", "tokenizer_config.json")
# All pages but those of single corpora, models and runs, some of which show documents.
PAGES = "0[0145]_*", "1[1-4]_*", "15_without_pretraining", "2[124]_*", "33_*", "[4-9]*"
POINTS = 25  # of the log of a run: a curve as one sees it
PRETRAININGS = (
    "Scores: mean ± standard deviation over pretrainings (their number), each fine-tuned once. Losses: on held-out "
    "text, one for each pretraining; comparable between models of one text, vocabulary and masking only."
)
LINK = re.compile(r'(?<=\]\()[\w-]+(?=\.ipynb\))|(?<=href=\\")[\w-]+(?=\.ipynb\\")')  # in the JSON of a notebook
SOURCES = "../../../../notebooks/"  # from a page of the record
FIGURES = "brief", "claims", "integers"  # that show no published table; README has the first


def take_over(scale: str) -> list[Path]:
    """Copy what a run here found into the record; the files of the record that are new or changed.

    StudyError, and nothing is changed, for made-up data, where nothing has been run or a notebook failed or was broken
    off, for a damaged file on either side, and where a filled cell of a published table would become empty.
    """
    if params.load("scales", scale).made_up:
        raise StudyError(f"scale '{scale}' has made-up data, of which nothing is recorded")
    broken = [path.stem for folder in ("failed", "running") for path in paths.output(scale, folder).glob("*.ipynb")]
    if broken:
        raise StudyError(f"not recorded: {broken[0]} failed or was broken off: run ./run_all.sh {scale} first")
    found = list_recorded(scale)
    if not found:
        raise StudyError(f"nothing has been run at scale '{scale}': run ./run_all.sh {scale} first")
    emptied = {path.stem: cells for path in found if path.suffix == ".csv" and (cells := list_emptied(path))}
    if emptied:
        (table, cells), *_ = emptied.items()
        raise StudyError(
            f"not recorded: {sum(map(len, emptied.values()))} cells that the record fills would become empty, first in "
            f"{table}: {', '.join(filter(None, cells[0]))}; run what fills them, or delete the table from the record"
        )
    contents = {paths.recorded(path): read_content(path) for path in found}
    beside = {path.stem for path in (*contents, *paths.output("record", scale, "notebooks").glob("*.ipynb"))}
    for path in contents:
        if path.suffix == ".ipynb":
            contents[path] = mend_links(contents[path].decode(), beside).encode()
    before = {path: read_content(path) if path.exists() else b"" for path in contents}
    changed = [path for path, content in contents.items() if content != before[path]]
    for path in changed:
        with artefacts.whole_file(path) as temporary:
            temporary.write_bytes(contents[path])
    return changed


def list_recorded(scale: str) -> list[Path]:
    """What is recorded of a scale: runs of the study's own models, tables, FIGURES and those with a number of ours,
    pages, vocabularies."""
    here = paths.output(scale)
    runs = [path for path in here.glob("results/*.json") if is_ours(*path.stem.split("--")[:2])]
    tables = [*here.glob("*.csv"), *here.glob("tables/*.csv")]
    drawn = [path for path in here.glob("figures/*.svg") if path.stem in FIGURES or has_ours(scale, path.stem)]
    recorded = [*runs, *tables, *drawn]
    for pattern in PAGES:
        recorded += here.glob(f"notebooks/{pattern}.ipynb")
    for name in VOCABULARY:
        recorded += here.glob(f"vocabularies/*/{name}")
    lists = here.glob("vocabularies/*/vocab.txt")  # of Japanese; elsewhere tokenizer.json says it too
    recorded += [path for path in lists if not path.with_name("tokenizer.json").exists()]
    return sorted(recorded)


def mend_links(page: str, beside: Collection[str]) -> str:
    """The text of an executed notebook with links to those beside it; of one that ran for several keys to the first,
    of one that is not there to its source."""

    def find_target(link: re.Match) -> str:
        if link[0] in beside:
            return link[0]
        group = link[0].split("--")[0]
        return min((name for name in beside if name.split("--")[0] == group), default=f"{SOURCES}{group}")

    return LINK.sub(find_target, page)


def is_ours(model: str, dataset: str) -> bool:
    """Whether runs of a model on a dataset are the study's, and not of somebody's encoder or data."""
    return dataset in registry.DATASETS and (
        params.is_model(model) or model in (*params.BASELINES, exploring.SHIPPED)
    )


def has_ours(scale: str, key: str) -> bool:
    """Whether a published table has a cell with a number of ours."""
    table = results.find_table(paths.table(scale, key))
    return table is not None and "ours" in table and bool(table["ours"].notna().any())


def list_emptied(path: Path) -> list[tuple]:
    """The published cells of a table that have a number of ours in the record and none here."""
    return sorted(list_filled(paths.recorded(path)) - list_filled(path))


def list_filled(path: Path) -> set[tuple]:
    """Row, column and metric of each published cell of a table with a number of ours; StudyError when it is damaged."""
    table = results.read_table(path) if path.exists() else pd.DataFrame()
    if not {*PLACE, "ours"} <= {*table}:
        return set()
    cells = table.loc[table["ours"].notna(), PLACE]
    return set(cells.astype(object).fillna("").itertuples(index=False, name=None))


def read_content(path: Path) -> bytes:
    """A file as it is recorded: the results of runs with thinner logs, vocabularies without white space; StudyError
    when one is damaged."""
    if path.name == "tokenizer.json":
        return json.dumps(artefacts.read_json(path), ensure_ascii=False, separators=(",", ":")).encode()
    if path.parent.name != "results":
        return path.read_bytes()
    result = artefacts.read_json(path)
    runs = [run | {"log": thin(run["log"])} if "log" in run else run for run in result["runs"]]
    return artefacts.to_lines(result | {"runs": runs}).encode()


def thin(log: list) -> list:
    """At most POINTS rows of a log, evenly spread, with the first and the last."""
    if len(log) <= POINTS:
        return log
    return [log[round(number * (len(log) - 1) / (POINTS - 1))] for number in range(POINTS)]


def update_summaries(scale: str) -> None:
    """Write the scale's summary, and what was found at all scales, between their marks in README.md and docs/*.md,
    where they are."""
    for path in (paths.ROOT / "README.md", *paths.ROOT.glob("docs/*.md")):
        write_between(path, scale, lambda: summarise_scale(scale))
        write_between(path, "findings", list_findings)


def write_between(path: Path, name: str, make: Callable[[], str]) -> None:
    """Write what is generated between the marks of that name in a page, where it has them."""
    begin, end = f"<!-- {name}: generated -->", f"<!-- /{name} -->"
    before, _, rest = path.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    if after:
        artefacts.write_text(path, f"{before}{begin}\n{make()}\n{end}{after}")


def list_findings() -> str:
    """What a reader should know first, from the record's tables (Markdown)."""
    audit, bought = (results.read_table(paths.recorded(paths.table("laptop", name))) for name in ("audit", "gains"))
    recipes = claims.list_measured_recipes(claims.read_verdicts(open_study("weekend")))
    findings = [say_audit(audit)]
    if len(recipes):
        findings.append(say_recipes(recipes))
    findings += [say_beaten(bought), say_tagger()]
    return "\n".join(f"- {finding}" for finding in findings)


def say_audit(audit: pd.DataFrame) -> str:
    own = audit[~audit["kind"].isin(("two tables", "two papers"))]
    return (
        f"**Printed numbers.** {(own['verdict'] == 'differs').sum()} of {len(own)} numbers that follow from others in "
        "their paper (an F1, an average, a difference) do not, even allowing for rounding and averaging over runs "
        "([page 90](outputs/record/laptop/notebooks/90_audit.ipynb))."
    )


def say_recipes(measured: pd.DataFrame) -> str:
    """How many claims came out which way, and the first in the order of the list: not the one with most effect."""
    counts = measured["verdict"].value_counts()
    ways = ", ".join(f"{counts[verdict]} {words}" for verdict, words in claims.VERDICTS.items() if verdict in counts)
    first = measured.iloc[0]
    return (
        f"**Recipes.** Of {len(measured)} claims about recipes that were pretrained several times, {ways} "
        f"([all](docs/measurement.md)). The first, that {first['statement']}: {first['effect']:+.1f} "
        f"points (95% interval {first['ci_low']:+.1f} to {first['ci_high']:+.1f}; the paper "
        f"{first['paper_effect_here']:+.1f}) on {first['n_sets']} datasets."
    )


def say_beaten(bought: pd.DataFrame) -> str:
    printed, ours = gains.list_distances(bought)
    return (
        f"**Baselines.** Methods without pretraining beat {(printed < 0).sum()} of {len(printed)} printed scores and "
        f"{(ours < 0).sum()} of {len(ours)} of ours "
        "([page 05](outputs/record/laptop/notebooks/05_what_pretraining_buys.ipynb))."
    )


def say_tagger() -> str:
    """How the tagger that ships stands beside the baselines; the first dataset of its table as an example."""
    scored = results.read_table(exploring.TAGGER / "scores.csv")
    above, first = (scored["f1"] > scored["baseline f1"]).sum(), scored.iloc[0]
    return (
        "**Tagger.** [The one that ships](model/tagger/README.md), 14M parameters, one seed, beats the best "
        f"baseline on {above} of {len(scored)} test sets ({first['dataset']}: F1 {first['f1']:.1f}, baseline "
        f"{first['baseline f1']:.1f})."
    )


def summarise_scale(scale: str) -> str:
    """The state of the study (Markdown): scores against the scale's target where it has one; where models were
    pretrained several times, what that says of each claim; else the claims of each kind by verdict."""
    study = open_study(scale)
    said = f"Scale **{study.budget.title}**. {show.say_budget(study)}\n\n"
    if study.budget.target:
        ran = results.find_table(paths.table(scale, "panels"))
        return said + "\n".join(f"- {one}" for one in ([] if ran is None else scores.say_target(study, ran)))
    if study.budget.pretrainings > 1:
        found = scores.compare_pretrainings(study).to_markdown(index=False, disable_numparse=True)
        return said + "\n".join([*claims.list_recipes(claims.read_verdicts(study)), "", found, "", PRETRAININGS])
    counts = claims.tally(claims.read_verdicts(study)).query("paper == 'all'").drop(columns="paper")
    return said + counts.to_markdown(index=False, disable_numparse=True)
