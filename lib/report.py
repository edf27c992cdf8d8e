"""The report: executed notebooks as a site that works from a folder, offline, with tables and scoreboard first."""

import html
import json
import shutil
import tempfile
import warnings
from pathlib import Path

import nbformat
import pandas as pd
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from lib import artefacts, compare, params, paths, provenance, results, scoreboard
from lib.errors import StudyError

CHAPTERS = {  # by the first digit of a notebook's number
    "0": "Start, and the data",
    "1": "Pretraining",
    "2": "Fine-tuning",
    "3": "BioBERT",
    "4": "PubMedBERT",
    "5": "ouBioBERT",
    "6": "BioALBERT",
    "7": "Bio-ELECTRA",
    "8": "Across papers",
    "9": "Scoreboard",
}
STYLE = """\
table { font-size: 0.85em; display: block; overflow-x: auto; max-width: 100%; border-collapse: collapse; }
td, th { padding: 0.25em 0.6em; text-align: left; vertical-align: top; }
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
    "suppress_warnings": ["mystnb.unknown_mime_type", "myst.header", "misc.highlighting_failure"],
}


def build(scale: str) -> tuple[Path, bool]:
    """Write outputs/<scale>/report/ from what is there; its index page, and whether it had to be built.

    Raises StudyError when nothing has been run at this scale.
    """
    pages = collect_pages(scale)
    if not pages:
        raise StudyError(f"nothing has been run at scale '{scale}' yet: run ./run_all.sh {scale}")
    folder = paths.output(scale, "report")
    tables = sorted(paths.output(scale, "tables").glob("*.csv"))
    state = provenance.fingerprint(
        [[path.name, provenance.file_fingerprint(path)] for path in [*pages, *tables]],
        [[path.stem, path.read_text(encoding="utf-8")] for path in sorted(paths.NOTEBOOKS.glob("*.ipynb"))],
        provenance.module_code("report"),
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
    if scale == "laptop":
        update_readme(scale)
    return folder / "index.html", True


def collect_pages(scale: str) -> dict[Path, str]:
    """Executed copies, in reading order, with their state. Of a notebook that failed when it was run again, or was
    interrupted, only that copy: what an earlier run found may no longer hold. A copy that another process is still
    writing is left out, and moves away when it ends."""
    found = {}
    for folder, state in (("notebooks", "done"), ("running", "interrupted"), ("failed", "failed")):
        for path in paths.output(scale, folder).glob("*.ipynb"):
            if not artefacts.is_locked(path.with_suffix(".lock")) and path.exists():
                found[path.name] = (path, state)
    return {found[name][0]: found[name][1] for name in sorted(found)}


def write_source(scale: str, pages: dict[Path, str], folder: Path) -> None:
    """What Sphinx reads: the notebooks with their code folded, and the index."""
    (folder / "_static").mkdir()
    (folder / "_static" / "study.css").write_text(STYLE)
    for path, state in pages.items():
        notebook = with_current_prose(nbformat.read(path, as_version=4), path.stem.split("--")[0])
        if state != "done":
            title = find_title(notebook)
            title.source = title.source.replace("# ", f"# {state.upper()}: ", 1)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.metadata.tags = sorted({*cell.metadata.get("tags", []), "hide-input"})
        nbformat.write(notebook, folder / f"{page_name(path, state)}.ipynb")
    (folder / "index.md").write_text(make_index(scale, pages), encoding="utf-8")


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
    """The front page (MyST Markdown): what, scoreboard, tables, state of every page."""
    budget = params.load("scales", scale)
    lines = [f"# Five biomedical language models, reproduced: {scale}", ""]
    seeds = ", ".join(map(str, budget.seeds))
    lines += [f"Scale **{budget.title}**. Commit `{provenance.commit()}`. Seeds {seeds}.", ""]
    if budget.made_up:
        lines += [":::{warning}\nThe data are **made up** by the study itself. No number here is a finding.\n:::", ""]
    failed = {path: state for path, state in pages.items() if state != "done"}
    if failed:
        lines += ["## Failed or interrupted", ""]
        lines += [f"- [{path.stem}]({page_name(path, state)}.ipynb): {state}" for path, state in failed.items()] + [""]
    lines += ["## Scoreboard of claims", "", *describe_scoreboard(scale), ""]
    lines += ["## Published tables, ours beside the paper's", ""]
    for key in params.keys("tables"):
        lines += describe_published_table(key, scale, pages)
    lines += ["## Pages", ""]
    for digit, chapter in CHAPTERS.items():
        names = [page_name(path, state) for path, state in pages.items() if path.stem.startswith(digit)]
        if names:
            lines += ["```{toctree}", f":caption: {chapter}", ":maxdepth: 1", "", *names, "```", ""]
    return "\n".join(lines)


def describe_scoreboard(scale: str) -> list[str]:
    path = paths.table(scale, "claims")
    if not path.exists():
        return ["Not judged yet: notebook 90 has not run."]
    claims = results.read_table(path)
    measured = claims[claims["n"] > 0]
    lines = [scoreboard.describe(claims), ""]
    if len(measured):
        shown = measured[["paper", "statement", "effect", "ci_low", "ci_high", "n", "verdict", "note"]]
        lines += [to_html(shown)]
    by_paper = claims.groupby("paper")["verdict"].value_counts().unstack(fill_value=0).reset_index()
    by_paper["paper"] = by_paper["paper"].map(results.PAPERS)
    return [*lines, "", to_html(by_paper)]


def describe_published_table(key: str, scale: str, pages: dict[Path, str]) -> list[str]:
    table = params.load("tables", key)
    stems = (table.notebook, f"{table.notebook}--{key}")
    page = next((page_name(path, state) for path, state in pages.items() if path.stem in stems), None)
    lines = [f"### {key}: {table.title}", ""]
    path = paths.table(scale, key)
    if not path.exists():
        return [*lines, f"Not there: notebook {table.notebook} has not ended.", ""]
    cells = results.read_table(path)
    runs = table.kind in ("scores", "curves")
    metric = getattr(table, "shown", "") if runs else cells["metric"].iloc[0]
    named = metric or ", ".join(dict.fromkeys(cells["metric"]))
    said = f"{named}, mean ± standard deviation over seeds." if runs else f"{named}."
    lines += [said + (f" [Its page]({page}.ipynb)." if page else ""), ""]
    decimals = 0 if table.kind == "counts" else 2
    return [*lines, to_html(compare.spread(cells, metric, decimals).reset_index(names="")), ""]


def to_html(table: pd.DataFrame) -> str:
    """A table as a block of HTML, numbers with two digits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = table.map(lambda v: "" if pd.isna(v) else f"{v:.2f}" if isinstance(v, float) else html.escape(str(v)))
    return text.to_html(index=False, escape=False, border=0).replace("\n", "")


def run_sphinx(source: Path, site: Path) -> None:
    """Build the site; StudyError when Sphinx fails."""
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


def update_readme(scale: str) -> None:
    """Write the scoreboard's summary between the marks of README.md."""
    path = paths.ROOT / "README.md"
    begin, end = "<!-- scoreboard: generated -->", "<!-- /scoreboard -->"
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    if not after:
        return
    summary = "\n".join(summarise(scale))
    artefacts.write_text(path, f"{before}{begin}\n{summary}\n{end}{after}")


def summarise(scale: str) -> list[str]:
    """The state of the study in a few Markdown lines."""
    lines = [f"At scale *{params.load('scales', scale).title}*:", ""]
    if paths.table(scale, "claims").exists():
        claims = results.read_table(paths.table(scale, "claims"))
        lines += [scoreboard.describe(claims), ""]
    lines += ["| table | printed cells with ours beside them | of those judged, agree |", "|---|---|---|"]
    for key in params.keys("tables"):
        curves = params.load("tables", key).kind == "curves"  # what follows from printed cells is in their tables
        if paths.table(scale, key).exists() and not curves:
            cells = results.read_table(paths.table(scale, key))
            printed = cells[cells["published"].notna()]
            ran = printed[printed["ours"].notna()]
            judged = ran[ran["verdict"] != "n/a"]
            tally = judged["verdict"].value_counts()
            agree = f"{tally.get('agrees', 0)} of {len(judged)}" if len(judged) else "none is judged"
            explained = f", {tally['explained']} more explained" if "explained" in tally else ""
            lines.append(f"| {key} | {len(ran)} of {len(printed)} | {agree}{explained} |")
    return lines
