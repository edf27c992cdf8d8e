"""The report: executed notebooks as a site that works from a folder, offline, with tables and scoreboard first."""

import html
import json
import re
import shutil
import tempfile
import warnings
from pathlib import Path

import nbformat
import pandas as pd

from lib import artefacts, provenance
from lib.benchmarks import registry
from lib.errors import StudyError
from lib.study import caveats, claims, effects, open_study, params, paths, record, results, scores
from lib.study.analysis import compare

CHAPTERS = {  # by the first digit of a notebook's number
    "0": "Start, and what was found",
    "1": "Text and datasets",
    "2": "Vocabularies and pretraining",
    "3": "Fine-tuning",
    "4": "BioBERT",
    "5": "PubMedBERT",
    "6": "ouBioBERT",
    "7": "BioALBERT",
    "8": "Bio-ELECTRA",
    "9": "Across papers",
}
PAPERS = "by_paper"  # the page of what was found by paper
FOREST_SAID = "Effects of the papers' claims, printed and measured here, with intervals and verdicts"
LINK = r'(<a href=")([^"/:#]+\.ipynb)("[^>]*>.*?)</a>'  # of pages.link_runs
PROSE_LINK = r"\[([^\]]+)\]\(([\w-]+)\.ipynb\)"  # to a notebook, which may have been run for many keys or not at all
STYLE = """\
table { font-size: 0.85em; display: block; overflow-x: auto; max-width: 100%; border-collapse: collapse; }
td, th { padding: 0.25em 0.6em; text-align: left; vertical-align: top; }
td:first-child a { white-space: nowrap; }
tbody tr:nth-child(odd) { background: var(--color-background-secondary); }
"""
SETTINGS = {
    "project": "Five biomedical language models, reproduced",
    "extensions": ["myst_nb"],
    "nb_execution_mode": "off",
    "html_theme": "furo",
    "html_title": "Five biomedical language models, reproduced",
    "html_show_copyright": False,
    "html_static_path": ["_static"],
    "html_css_files": ["study.css"],
    "html_copy_source": False,
    "html_show_sphinx": False,
    "myst_enable_extensions": ["colon_fence"],
    "suppress_warnings": ["mystnb.unknown_mime_type", "myst.header", "misc.highlighting_failure", "toc.not_included"],
}


def build(scale: str) -> tuple[Path, bool]:
    """Write outputs/<scale>/report/ from what is there; its index page, and whether it had to be built.

    Raises StudyError when nothing has been run at this scale.
    """
    pages = collect_pages(scale)
    if not pages:
        raise StudyError(f"nothing has been run at scale '{scale}' yet: run ./run_all.sh {scale}")
    folder = paths.output(scale, "report")
    tables = paths.find_all(scale, "tables", "*.csv")
    runs = paths.find_all(scale, "results", "*.json")
    state = provenance.fingerprint(
        [[path.name, provenance.file_fingerprint(path)] for path in [*pages, *tables, *runs]],
        [[path.stem, path.read_text(encoding="utf-8")] for path in sorted(paths.NOTEBOOKS.glob("*.ipynb"))],
        provenance.read_module("lib.study.report")[0],
    )
    stamp = folder / "built.json"
    if stamp.exists() and json.loads(stamp.read_text()).get("state") == state:
        return folder / "index.html", False
    with artefacts.whole_folder(folder) as site, tempfile.TemporaryDirectory(prefix="study-") as temporary:
        source = Path(temporary) / "source"
        source.mkdir()
        write_source(scale, pages, source)
        run_sphinx(source, Path(temporary) / "site")  # myst-nb leaves a folder of its own beside what it builds
        shutil.copytree(Path(temporary) / "site", site, dirs_exist_ok=True)
        artefacts.write_json(site / "built.json", {"state": state})
    return folder / "index.html", True


def collect_pages(scale: str) -> dict[Path, str]:
    """Executed copies, of runs here and of the record, in reading order, with their state. Of a notebook that failed
    when it was run again, or was interrupted, only that copy: what an earlier run found may no longer hold. A copy that
    another process is still writing is left out, and moves away when it ends."""
    found = {path.name: (path, "done") for path in paths.find_all(scale, "notebooks", "*.ipynb")}
    for folder, state in (("running", "interrupted"), ("failed", "failed")):
        for path in paths.output(scale, folder).glob("*.ipynb"):
            if not artefacts.is_locked(path.with_suffix(".lock")) and path.exists():
                found[path.name] = (path, state)
    return {found[name][0]: found[name][1] for name in sorted(found)}


def write_source(scale: str, pages: dict[Path, str], folder: Path) -> None:
    """What Sphinx reads: the notebooks with their code folded, and the index."""
    (folder / "_static").mkdir()
    (folder / "_static" / "study.css").write_text(STYLE)
    groups = group_pages(pages)
    there = {path.name for path, state in pages.items() if state == "done"}
    for path, state in pages.items():
        group = path.stem.split("--")[0]
        notebook = with_current_prose(nbformat.read(path, as_version=4), group)
        if state != "done":
            title = find_title(notebook)
            title.source = title.source.replace("# ", f"# {state.upper()}: ", 1)
        if len(groups[group]) > 1:
            find_title(notebook).source += f"\n\n[All runs of this notebook]({group}.md)"
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.metadata.tags = sorted({*cell.metadata.get("tags", []), "hide-input"})
                link_outputs(cell, there)
            else:
                cell.source = link_prose(cell.source, groups)
        nbformat.write(notebook, folder / f"{page_name(path, state)}.ipynb")
    runs = results.gather(scale)
    for group, names in groups.items():
        if len(names) > 1:
            (folder / f"{group}.md").write_text(make_group(group, names, runs), encoding="utf-8")
    (folder / "index.md").write_text(make_index(scale, pages), encoding="utf-8")
    (folder / f"{PAPERS}.md").write_text(make_papers(scale, pages), encoding="utf-8")
    if forest := find_forest(scale):
        shutil.copy(forest, folder / "_static")


def link_prose(text: str, groups: dict[str, list[str]]) -> str:
    """Turn links to notebooks into links to their pages, or to the list of them; those without one into plain text."""

    def turn(found: re.Match) -> str:
        said, name = found.groups()
        names = groups.get(name.split("--")[0], [])
        if name in names or len(names) == 1:
            return f"[{said}]({name if name in names else names[0]}.ipynb)"
        return f"[{said}]({name}.md)" if name in groups else said

    return re.sub(PROSE_LINK, turn, text)


def link_outputs(cell: nbformat.NotebookNode, there: set[str]) -> None:
    """Turn a cell's links to executed notebooks into links to their pages; those without a page into plain text."""

    def turn(found: re.Match) -> str:
        opened, name, text = found.groups()
        return f"{opened}{name.removesuffix('.ipynb')}.html{text}</a>" if name in there else text.partition(">")[2]

    for output in cell.outputs:
        if "text/html" in output.get("data", {}):
            output.data["text/html"] = re.sub(LINK, turn, output.data["text/html"])


def make_group(group: str, names: list[str], runs: pd.DataFrame) -> str:
    """The page of a notebook that was run for several keys: its question, and each run with what it scored.

    The runs are not in the menu: every page carries the whole menu, which would grow with their square.
    """
    source, keys = paths.NOTEBOOKS / f"{group}.ipynb", ["model", "setting", "family"]
    title = find_title(nbformat.read(source, as_version=4)).source.splitlines()[0] if source.exists() else f"# {group}"
    runs = runs.assign(family=[registry.lookup(dataset).family for dataset in runs["dataset"]])
    by_seed = runs.groupby([*keys, "dataset", "seed"])["score"].mean()  # over folds
    scores = by_seed.groupby([*keys, "dataset"]).agg(["mean", "std", "size"])
    lines = [title, "", f"This notebook was run for {len(names)} choices of its keys. Scores: the main metric of each "
             "dataset, mean ± standard deviation over seeds.", "", "| run | score |", "|---|---|"]  # fmt: skip
    for name in names:
        run, said = tuple(name.split("--")[1:]), []
        if len(run) == 3 and run in scores.index:
            for dataset, (mean, deviation, n) in scores.loc[run].iterrows():
                said.append(f"{dataset} {mean:.2f}" + (f" ± {deviation:.2f} ({n:.0f} seeds)" if n > 1 else ""))
        lines.append(f"| [{' · '.join(run)}]({name}.ipynb) | {', '.join(said)} |")
    return "\n".join([*lines, ""])


def page_name(path: Path, state: str) -> str:
    return path.stem if state == "done" else f"{path.stem}--{state}"


def with_current_prose(notebook: nbformat.NotebookNode, name: str) -> nbformat.NotebookNode:
    """The executed copy with its text cells as they stand now: prose can be mended without running anything."""
    source = paths.NOTEBOOKS / f"{name}.ipynb"
    if source.exists():
        prose = {c.id: c.source for c in nbformat.read(source, as_version=4).cells if c.cell_type == "markdown"}
        first = find_title(notebook)
        title = first.source.splitlines()[0]  # holds the keys of this run
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = prose.get(cell.id, cell.source)
        first.source = "\n".join([title, *first.source.splitlines()[1:]])
    return notebook


def find_title(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The cell with the title; papermill puts a mark before it when a notebook fails."""
    return next(cell for cell in notebook.cells if cell.cell_type == "markdown" and cell.source.startswith("# "))


def make_index(scale: str, pages: dict[Path, str]) -> str:
    """The front page (MyST Markdown), under 300 words: the claims as a picture and counted, and where the rest is."""
    budget, judged = params.load("scales", scale), claims.read(scale)
    lines = [f"# Five biomedical language models, reproduced: {scale}", "", *describe_budget(scale), ""]
    if budget.made_up:
        lines += [":::{warning}\nThe data are **made up** by the study itself. No number here is a finding.\n:::", ""]
    failed = {path: state for path, state in pages.items() if state != "done"}
    if failed:
        lines += ["## Failed or interrupted", ""]
        lines += [f"- [{path.stem}]({page_name(path, state)}.ipynb): {state}" for path, state in failed.items()] + [""]
    if find_forest(scale):
        lines += [f"![{FOREST_SAID}](_static/{record.CLAIMS}.svg)", ""]
    if judged["n"].any():
        lines += [to_html(tally_claims(judged)), ""]
    links = [
        link_page("01_scoreboard", pages, "Every claim") + ": its test, effect, interval and what is not tested",
        f"[Every table and figure]({PAPERS}.md) with what it comes to, by paper",
        link_page("94_lessons", pages, "What could not be done") + ", and what else was learnt",
        link_page("00_start_here", pages, "How the study works") + ", and when a claim holds",
    ]
    lines += [f"- {link}." for link in links if link.startswith("[")] + [""]
    lines += ["```{toctree}", ":hidden:", ":maxdepth: 1", "", PAPERS, "```", ""]
    for digit, chapter in CHAPTERS.items():
        names = [name for name in list_entries(pages) if name.startswith(digit)]
        if names:
            lines += ["```{toctree}", ":hidden:", f":caption: {chapter}", ":maxdepth: 1", "", *names, "```", ""]
    return "\n".join(lines)


def make_papers(scale: str, pages: dict[Path, str]) -> str:
    """The page of what was found by paper: claims that were measured, and tables with how far each is covered."""
    judged, verdicts = claims.read(scale), compare.count_verdicts(scale)
    lines = ["# What was found, by paper", "", *describe_scale(scale), "", *describe_findings(scale, judged), ""]
    if judged["n"].any() or verdicts["printed"].any():  # else nothing of the papers has been made at this scale
        lines += ["## Claims and cells", "", to_html(tally_papers(judged, verdicts)), ""]
        for paper, name in results.list_papers().items():
            lines += [f"## {name}", "", *describe_paper(paper, judged, verdicts, pages)]
    return "\n".join(lines)


def find_forest(scale: str) -> Path | None:
    """The picture of the claims, of a run here or of the record."""
    path = paths.find(paths.figure(scale, record.CLAIMS).with_suffix(".svg"))
    return path if path.exists() else None


def describe_budget(scale: str) -> list[str]:
    """Scale, seeds, and what the scale gives each model, in two sentences."""
    budget = params.load("scales", scale)
    lines = [f"Scale **{budget.title}**, seeds {', '.join(map(str, budget.seeds))}."]
    recipe, tuned = budget.pretraining.recipe, budget.finetuning
    if recipe is None or budget.made_up:  # the papers decide what a model gets, or nothing is a finding
        return lines
    said = f"Models of {budget.bodies['base'].layers} layers, each pretrained once on at most "
    said += f"{recipe.tokens / 1e6:.1f} million tokens"
    said += f" and fine-tuned on at most {tuned.train_instances:,} examples" if tuned.train_instances else ""
    return [*lines, said + ("." if budget.bar else ": compare their scores with each other, not with printed ones.")]


def describe_scale(scale: str) -> list[str]:
    """Scale, seeds, data and commits, as the runs say them."""
    runs = results.gather(scale)
    lines = [*describe_budget(scale), f"Report at commit `{provenance.commit()}`."]
    if not params.load("scales", scale).made_up:
        lines += [*caveats.say_trivial(scale), *caveats.say_devices(scale)]
    if len(runs):
        commits = ", ".join(f"`{commit}`" for commit in sorted(set(runs["commit"])))
        lines.append(
            f"Fine-tuning: {len(runs)} runs of {runs['model'].nunique()} models on {runs['dataset'].nunique()} "
            f"datasets, at commit {commits}."
        )
    return lines


def describe_findings(scale: str, judged: pd.DataFrame) -> list[str]:
    """Scores against the scale's bar; the scoreboard in a sentence, then the claims of each paper that hold, fail or
    point one way, with effects (Markdown). A scale with a bar that measures no claim has no scoreboard."""
    lines = list_bar(scale)
    if lines and not judged["n"].any():
        return lines
    lines += [claims.describe(judged), ""]
    for paper, name in results.list_papers().items():
        for verdict in (*effects.POINTS, *effects.POINTS.values()):
            found = judged[(judged["paper"] == paper) & (judged["verdict"] == verdict)]
            for claim in found.to_dict("records"):
                said = f"{name}, *{claims.describe_verdict(claim)}*: {claim['statement']}"
                lines.append(f"- {said}. {claims.describe_effect(claim)}")
    return lines


def list_bar(scale: str) -> list[str]:
    """A scale's scores against its bar (Markdown items); none before page 33 has run."""
    found = results.find_table(paths.table(scale, "panels"))
    return [] if found is None else [f"- {said}" for said in scores.say_bar(open_study(scale), found)]


def tally_claims(judged: pd.DataFrame) -> pd.DataFrame:
    """The claims of each paper by verdict, then of all."""
    lines = []
    for paper, name in [*results.list_papers().items(), (None, "all")]:
        verdicts = judged.loc[judged["paper"].eq(paper) | (paper is None), "verdict"].tolist()
        counts = {verdict: verdicts.count(verdict) for verdict in claims.VERDICTS}
        lines.append({"paper": name, "claims": len(verdicts)} | counts)
    return pd.DataFrame(lines)


def tally_papers(judged: pd.DataFrame, verdicts: pd.DataFrame) -> pd.DataFrame:
    """A line a paper: its claims by verdict, its printed cells, and how many of them have ours beside them."""
    lines = []
    for paper, name in results.list_papers().items():
        tables = verdicts[[params.load("tables", key).paper == paper for key in verdicts["table"]]]
        lines.append(
            {"paper": name, "printed cells": tables["printed"].sum(), "ours beside": tables["ours beside"].sum()}
            | {name: compare.describe_agreement(counts) for name, counts in compare.split_verdicts(tables).items()}
        )
    return tally_claims(judged)[: len(lines)].merge(pd.DataFrame(lines), on="paper", validate="one_to_one")


def describe_paper(paper: str, judged: pd.DataFrame, verdicts: pd.DataFrame, pages: dict[Path, str]) -> list[str]:
    """A paper's part of the front page: its claims that were measured, and its tables with how far each is covered."""
    own = judged[judged["paper"] == paper]
    measured = own[own["n"] > 0]
    tests = link_page("01_scoreboard", pages, "All, with their tests and notes")
    lines = [f"{len(measured)} of {len(own)} claims are measured. {tests}"]
    if len(measured):
        lines += ["", to_html(measured[["statement", "verdict", "effect", "ci_low", "ci_high", "n", "note"]])]
    lines += ["", "| page | table or figure | printed cells | ours beside | agree |", "|---|---|---|---|---|"]
    for _, counts in verdicts.iterrows():
        key, table = counts["table"], params.load("tables", counts["table"])
        if table.paper == paper:
            stems = (f"{table.notebook}--{key}", table.notebook)
            page = next((link for stem in stems if (link := link_page(stem, pages, key))), key)
            cells = f"{counts['printed']} | {counts['ours beside']} | {compare.describe_agreement(counts)}"
            lines.append(f"| {page} | {table.title} | {cells} |")
    return [*lines, ""]


def link_page(stem: str, pages: dict[Path, str], text: str) -> str:
    """A link (Markdown) to the page of an executed notebook, or nothing."""
    return next((f"[{text}]({page_name(path, state)}.ipynb)" for path, state in pages.items() if path.stem == stem), "")


def list_entries(pages: dict[Path, str]) -> list[str]:
    """What stands in the list of pages: one for each notebook; that of one run several times lists its runs."""
    return [group if len(names) > 1 else names[0] for group, names in group_pages(pages).items()]


def group_pages(pages: dict[Path, str]) -> dict[str, list[str]]:
    """The pages of each notebook."""
    groups: dict[str, list[str]] = {}
    for path, state in pages.items():
        groups.setdefault(path.stem.split("--")[0], []).append(page_name(path, state))
    return groups


def to_html(table: pd.DataFrame) -> str:
    """A table as a block of HTML, numbers with two digits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = table.map(lambda v: "" if pd.isna(v) else f"{v:.2f}" if isinstance(v, float) else html.escape(str(v)))
    return text.to_html(index=False, escape=False, border=0).replace("\n", "")


def run_sphinx(source: Path, site: Path) -> None:
    """Build the site; StudyError when Sphinx fails."""
    from sphinx.application import Sphinx  # here, as the command line need not wait for it
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    trees = source / "_trees"
    log = source / "_log.txt"
    with open(log, "w") as messages, patch_docutils(), docutils_namespace():
        app = Sphinx(
            srcdir=source, confdir=None, outdir=site, doctreedir=trees, buildername="html",
            confoverrides=SETTINGS, status=None, warning=messages, freshenv=True,
        )  # fmt: skip
        app.build()
    if app.statuscode:
        raise StudyError(f"the report could not be built: {log.read_text()[-1000:]}")
    for leftover in ("objects.inv", ".buildinfo"):
        (site / leftover).unlink(missing_ok=True)
    shutil.rmtree(site / "_sources", ignore_errors=True)  # copies of what the pages show already


def update_summaries(scale: str) -> None:
    """Write the scale's summary between its marks in README.md and docs/*.md, where they are."""
    begin, end = f"<!-- {scale}: generated -->", f"<!-- /{scale} -->"
    for path in (paths.ROOT / "README.md", *paths.ROOT.glob("docs/*.md")):
        before, _, rest = path.read_text(encoding="utf-8").partition(begin)
        _, _, after = rest.partition(end)
        if after:
            summary = "\n".join(summarise(scale))
            artefacts.write_text(path, f"{before}{begin}\n{summary}\n{end}{after}")


def summarise(scale: str) -> list[str]:
    """The state of the study in a few Markdown lines, at most 120 words: scores against the scale's bar where it has
    one, else the claims of each paper by verdict."""
    lines = [" ".join(describe_budget(scale)), ""]
    if params.load("scales", scale).bar:
        return lines + list_bar(scale)
    counts = tally_claims(claims.read(scale)).rename(columns=claims.VERDICTS)
    return [*lines, counts.to_markdown(index=False, disable_numparse=True)]
