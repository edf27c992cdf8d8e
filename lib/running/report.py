"""The report: executed notebooks as a site that works offline from a folder and opens on the findings."""

import base64
import html
import json
import re
import shutil
import tempfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook

from lib import artefacts, provenance
from lib.errors import StudyError
from lib.running import executed
from lib.study import paths

Groups = dict[str, dict[str, str]]  # notebook -> its executed copies -> their pages

TITLE = "Five biomedical language models, reproduced"
FRONT = "01_results_in_brief"  # the notebook that is the front page
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
LINKS = (  # to notebooks, in prose and in outputs of cells; a notebook may have been run for many keys, or not at all
    r"\[(?P<text>[^\]]+)\]\((?:[./]+/notebooks/)?(?P<name>[\w-]+)\.ipynb\)(?P<rest>)",
    r'<a href="(?:[./]+/notebooks/)?(?P<name>[^"/:#]+)\.ipynb"(?P<rest>[^>]*)>(?P<text>.*?)</a>',
)
ASSETS = {kind: Path(__file__).with_suffix(f".{kind}") for kind in ("css", "js")}  # the site's own style and script
SETTINGS = {
    "project": TITLE,
    "extensions": ["myst_nb"],
    "nb_execution_mode": "off",
    "html_theme": "furo",
    "html_title": TITLE,
    "html_show_copyright": False,
    "html_static_path": ["_static"],
    "html_css_files": ["study.css"],
    "html_js_files": ["study.js"],
    "html_copy_source": False,
    "html_show_sphinx": False,
    "suppress_warnings": ["mystnb.unknown_mime_type", "myst.header", "misc.highlighting_failure", "toc.not_included"],
}


def build_report(scale: str) -> tuple[Path, bool]:
    """Write outputs/<scale>/report/ from the executed notebooks. Return its index page and whether it was rebuilt.

    Raises StudyError if nothing has been run at this scale.
    """
    pages = collect_pages(scale)
    if not pages:
        raise StudyError(f"nothing has been run at scale '{scale}' yet: run ./run_all.sh {scale}")
    folder = paths.output(scale, "report")
    notebooks = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
    files = [*pages, *notebooks, Path(__file__), Path(executed.__file__), *ASSETS.values()]
    state = provenance.fingerprint(
        [[path.name, provenance.file_fingerprint(path)] for path in files], [*pages.values()]
    )
    stamp = folder / "built.json"
    if stamp.exists() and json.loads(stamp.read_text()).get("state") == state:
        return folder / "index.html", False
    with artefacts.whole_folder(folder) as site, tempfile.TemporaryDirectory(prefix="study-") as temporary:
        source = Path(temporary) / "source"
        write_source(scale, pages, source)
        run_sphinx(source, Path(temporary) / "site")  # myst-nb leaves a folder of its own beside the site
        shutil.copytree(Path(temporary) / "site", site, dirs_exist_ok=True)
        artefacts.write_json(site / "built.json", {"state": state})
    return folder / "index.html", True


def collect_pages(scale: str) -> dict[Path, str]:
    """Return the executed copies, from runs here and from the record, in reading order, each with its state.

    A notebook whose last run failed or was interrupted has only that copy, because results of an earlier run may no
    longer hold. A copy that another process is still writing is left out; that process moves it when it ends.
    """
    copies = {path.name: (path, "done") for path in paths.find_all(scale, "notebooks", "*.ipynb")}
    for folder, state in (("running", "interrupted"), ("failed", "failed")):
        for path in paths.output(scale, folder).glob("*.ipynb"):
            being_written = artefacts.is_locked(path.with_suffix(".lock"))
            if not being_written and path.exists():
                copies[path.name] = (path, state)
    return dict(copies[name] for name in sorted(copies))


def name_page(path: Path, state: str) -> str:
    """Name the page of an executed copy; the front page is the index of the site."""
    if state != "done":
        return f"{path.stem}--{state}"
    return "index" if path.stem == FRONT else path.stem


def write_source(scale: str, pages: dict[Path, str], folder: Path) -> None:
    """Write the source of the site: notebooks as pages, lists of runs, and a front page even if it was not run."""
    for kind, file in ASSETS.items():
        artefacts.write_text(folder / "_static" / f"study.{kind}", file.read_text(encoding="utf-8"))
    artefacts.write_text(folder / "_static" / "datatables.js", load_datatables())
    copies = {}
    for path in pages:
        try:
            copies[path] = executed.read_copy(path)
        except StudyError as error:
            print(f"left out of the report: {error}")
    groups: Groups = {}
    for path in copies:
        runs = groups.setdefault(path.stem.split("--")[0], {})
        runs[path.stem] = name_page(path, pages[path])
    notebooks = {"index": new_notebook(cells=[new_markdown_cell(f"# {TITLE}: {scale}")])}
    broken = []
    for path, copy in copies.items():
        state = pages[path]
        page = name_page(path, state)
        prepare(path, state, copy, groups)
        notebooks[page] = copy
        if state != "done":
            broken.append(f"- {link(page, path.stem)}: {state}")
    if broken:
        broken = ["## Failed or interrupted", "", *broken]
    front = notebooks["index"]
    front.cells.insert(1, new_markdown_cell("\n".join(broken)))
    lists = {group: list_copies(group, runs) for group, runs in groups.items() if len(runs) > 1}
    titles = {name: executed.find_title(notebook).source.splitlines()[0] for name, notebook in notebooks.items()}
    titles |= {group: text.splitlines()[0] for group, text in lists.items()}
    front.cells.append(new_markdown_cell(list_chapters(groups, titles)))
    for name, notebook in notebooks.items():
        nbformat.write(notebook, folder / f"{name}.ipynb")
    for group, text in lists.items():
        artefacts.write_text(folder / f"{group}.md", text)


def load_datatables() -> str:
    """Return a script that passes DataTables, as itables ships it, to `sortTables`.

    It imports from a data URL because a browser imports no module from a file on disk.
    """
    from itables import options  # here, so that the command line does not wait for it

    bundle = base64.b64encode(Path(options.dt_bundle).read_bytes()).decode()
    return f'import("data:text/javascript;base64,{bundle}").then(module => sortTables(module.default));\n'


def prepare(path: Path, state: str, notebook: NotebookNode, groups: Groups) -> None:
    """Turn an executed copy into a page.

    The title gets its state, the prose is updated, the answer moves under the title, before the introduction, code is
    folded, pictures are described, and links lead to pages.
    """
    group = path.stem.split("--")[0]
    executed.take_current_prose(notebook, group)
    title = executed.find_title(notebook)
    describe_pictures(notebook)
    if answer := executed.take_answer(notebook):
        top = answer + executed.take_figure(notebook)
        notebook.cells = executed.drop_empty(notebook.cells)
        title.source, _, introduction = title.source.partition("\n")
        if introduction:
            top.append(new_markdown_cell(f"## About this page\n{introduction}", id="introduction"))
        executed.put_under_title(notebook, top)
    if state != "done":
        title.source = title.source.replace("# ", f"# {state.upper()}: ", 1)
    if len(groups[group]) > 1:
        title.source += f"\n\n{link(group, 'All runs of this notebook')}"
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = lead_to_pages(cell.source, groups)
            continue
        if "remove-input" not in (tags := cell.metadata.get("tags", [])):
            cell.metadata.tags = sorted({*tags, "hide-input"})
        for output in cell.outputs:
            if "text/html" in output.get("data", {}):
                output.data["text/html"] = lead_to_pages(output.data["text/html"], groups)


def link(page: str, text: str, rest: str = "") -> str:
    return f'<a href="{page}.html"{rest}>{text}</a>'


def lead_to_pages(text: str, groups: Groups) -> str:
    """Point links to notebooks at their pages or lists of runs; links to notebooks without a page become plain text."""

    def turn(match: re.Match) -> str:
        name, text = match["name"], match["text"]
        copies = groups.get(name.split("--")[0], {})
        if name in copies:
            page = copies[name]
        elif len(copies) == 1:
            (page,) = copies.values()
        elif name in groups:
            page = name
        else:
            return text
        return link(page, text, match["rest"])

    for pattern in LINKS:
        text = re.sub(pattern, turn, text)
    return text


def describe_pictures(notebook: NotebookNode) -> None:
    """Describe each picture by the heading and the first sentence before it, and the page's question."""
    question, heading, sentence = executed.HEADING.match(executed.find_title(notebook).source)[1], "", ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            match = executed.HEADING.match(cell.source)
            heading = match[1] or heading
            sentence = re.split(r"(?<=[.?]) |\n|$", cell.source[match.end() :])[0]
        elif executed.find_pictures(cell):
            parts = [
                re.sub(r"\[(.*?)\]\(.*?\)|[*`]", r"\1", part).strip(".: ") for part in (heading, sentence, question)
            ]
            label = html.escape(". ".join(["Figure", *filter(None, parts)]))
            for data in (output.data for output in executed.find_pictures(cell)):
                svg = data["image/svg+xml"].replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
                data["text/html"] = f'<div class="figure">{svg}</div>'  # inline, so that its points have texts


def list_chapters(groups: Groups, titles: dict[str, str]) -> str:
    """Return the menu (MyST): each notebook under its chapter, with its number and question.

    A notebook that was run several times leads to the list of its runs. The menu is hidden on a front page that has
    content of its own.
    """
    entries = {group: group if len(copies) > 1 else next(iter(copies.values())) for group, copies in groups.items()}
    hidden = [":hidden:"] if entries.get(FRONT) == "index" else []
    lines = []
    for digit, chapter in CHAPTERS.items():
        chapter_entries = []
        for group, entry in entries.items():
            if group.startswith(digit):
                number = group.split("_")[0]
                title = titles[entry].removeprefix("# ").replace(f"({chapter}, ", "(")  # the chapter names the paper
                chapter_entries.append(f"{number} · {title} <{'self' if entry == 'index' else entry}>")
        if chapter_entries:
            lines += ["```{toctree}", *hidden, ":maxdepth: 1", f":caption: {chapter}", "", *chapter_entries, "```", ""]
    return "\n".join(lines)


def list_copies(group: str, copies: dict[str, str]) -> str:
    """Return the page of a notebook that was run for several keys: its question, and a link to each run.

    The runs are not in the menu because every page carries the whole menu, so the site would grow with their square.
    """
    source = paths.NOTEBOOKS / f"{group}.ipynb"
    title = f"# {group}"
    if source.exists():
        title = executed.find_title(nbformat.read(source, as_version=4)).source.splitlines()[0]
    lines = [title, "", f"This notebook was run for {len(copies)} choices of its keys:", ""]
    for page in copies.values():
        keys = page.split("--")[1:]
        lines.append(f"- {link(page, ' · '.join(keys))}")
    return "\n".join([*lines, ""])


def run_sphinx(source: Path, site: Path) -> None:
    """Build the site. Raises StudyError if Sphinx fails."""
    from sphinx.application import Sphinx  # here, so that the command line does not wait for it
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
