"""The report: executed notebooks as a site that works from a folder, offline; what was found opens first."""

import base64
import html
import json
import re
import shutil
import tempfile
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from lib import artefacts, provenance
from lib.errors import StudyError
from lib.places import show_path
from lib.study import paths

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
LINKS = (  # to an executed notebook, in prose and in what cells show: it may have been run for many keys, or not at all
    r"\[(?P<text>[^\]]+)\]\((?:[./]+/notebooks/)?(?P<name>[\w-]+)\.ipynb\)(?P<rest>)",
    r'<a href="(?:[./]+/notebooks/)?(?P<name>[^"/:#]+)\.ipynb"(?P<rest>[^>]*)>(?P<text>.*?)</a>',
)
ASSETS = {kind: Path(__file__).with_suffix(f".{kind}") for kind in ("css", "js")}  # the site's own style and script
HEADING = re.compile(r"(?:#+ ([^\n]*)\s*)?")  # of a text cell, where it has one; what stands behind it is prose
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
    """Write outputs/<scale>/report/ from what is there; its index page, and whether it had to be built.

    Raises StudyError when nothing has been run at this scale.
    """
    pages = collect_pages(scale)
    if not pages:
        raise StudyError(f"nothing has been run at scale '{scale}' yet: run ./run_all.sh {scale}")
    folder = paths.output(scale, "report")
    read = [*pages, *sorted(paths.NOTEBOOKS.glob("*.ipynb")), Path(__file__), *ASSETS.values()]
    state = provenance.fingerprint([[path.name, provenance.file_fingerprint(path)] for path in read], [*pages.values()])
    stamp = folder / "built.json"
    if stamp.exists() and json.loads(stamp.read_text()).get("state") == state:
        return folder / "index.html", False
    with artefacts.whole_folder(folder) as site, tempfile.TemporaryDirectory(prefix="study-") as temporary:
        source = Path(temporary) / "source"
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
            being_written = artefacts.is_locked(path.with_suffix(".lock"))
            if not being_written and path.exists():
                found[path.name] = (path, state)
    return dict(found[name] for name in sorted(found))


def name_page(path: Path, state: str) -> str:
    """What a copy's page is called; the front page is the one that a site opens on."""
    if state != "done":
        return f"{path.stem}--{state}"
    return "index" if path.stem == FRONT else path.stem


def write_source(scale: str, pages: dict[Path, str], folder: Path) -> None:
    """What Sphinx reads: the notebooks as pages, lists of runs, and the front page, run or not."""
    for kind, file in ASSETS.items():
        artefacts.write_text(folder / "_static" / f"study.{kind}", file.read_text(encoding="utf-8"))
    artefacts.write_text(folder / "_static" / "datatables.js", load_datatables())
    copies = {path: copy for path in pages if (copy := read_copy(path))}
    groups: dict[str, dict[str, str]] = {}  # notebook -> its copies -> their pages
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
    titles = {name: find_title(notebook).source.splitlines()[0] for name, notebook in notebooks.items()}
    titles |= {group: text.splitlines()[0] for group, text in lists.items()}
    front.cells.append(new_markdown_cell(list_chapters(groups, titles)))
    for name, notebook in notebooks.items():
        nbformat.write(notebook, folder / f"{name}.ipynb")
    for group, text in lists.items():
        artefacts.write_text(folder / f"{group}.md", text)


def load_datatables() -> str:
    """DataTables, as itables ships it, as a script that hands it to `sortTables`; from a data address, since a browser
    imports no module from a file on disk."""
    from itables import options  # here, as the command line need not wait for it

    bundle = base64.b64encode(Path(options.dt_bundle).read_bytes()).decode()
    return f'import("data:text/javascript;base64,{bundle}").then(module => sortTables(module.default));\n'


def read_copy(path: Path) -> nbformat.NotebookNode | None:
    """An executed copy; None, and a line that says so, for one that is damaged: the others are a report without it."""
    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        find_title(notebook)
    except Exception as error:  # nbformat has many kinds for what is no notebook
        print(f"{show_path(path)}: damaged ({type(error).__name__}), left out of the report; delete it or run it again")
        return None
    return notebook


def prepare(path: Path, state: str, notebook: nbformat.NotebookNode, groups: dict[str, dict[str, str]]) -> None:
    """Make an executed copy a page: its state in the title, today's prose, what it found on top, its code folded,
    pictures described, links that lead to pages."""
    group = path.stem.split("--")[0]
    take_current_prose(notebook, group)
    title = find_title(notebook)
    describe_pictures(notebook)
    lead_with_answer(notebook)
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


def lead_to_pages(text: str, groups: dict[str, dict[str, str]]) -> str:
    """Links to notebooks as links to their pages, or to the lists of their runs; those without one as plain text."""

    def turn(found: re.Match) -> str:
        name, text = found["name"], found["text"]
        copies = groups.get(name.split("--")[0], {})
        if name in copies:
            page = copies[name]
        elif len(copies) == 1:
            (page,) = copies.values()
        elif name in groups:
            page = name
        else:
            return text
        return link(page, text, found["rest"])

    for pattern in LINKS:
        text = re.sub(pattern, turn, text)
    return text


def take_current_prose(notebook: nbformat.NotebookNode, name: str) -> None:
    """Give an executed copy its text cells and tags as they stand now: these can be mended without running anything."""
    source = paths.NOTEBOOKS / f"{name}.ipynb"
    if not source.exists():
        return
    now = {cell.id: cell for cell in nbformat.read(source, as_version=4).cells}
    first = find_title(notebook)
    title = first.source.splitlines()[0]  # holds the keys of this run
    for cell in notebook.cells:
        if cell.id in now and cell.cell_type == "markdown":
            cell.source = now[cell.id].source
        elif cell.id in now:
            cell.metadata.tags = now[cell.id].metadata.get("tags", [])
    first.source = "\n".join([title, *first.source.splitlines()[1:]])


def find_title(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The cell with the title; papermill puts a mark before it when a notebook fails."""
    return next(cell for cell in notebook.cells if cell.cell_type == "markdown" and cell.source.startswith("# "))


def lead_with_answer(notebook: nbformat.NotebookNode) -> None:
    """Move what cells tagged `answer` show, and the pictures of the one tagged `figure`, up under the title, with the
    heading and the prose that lead to them. Their code stays where it ran; a page without an answer stays as it is."""
    cells = notebook.cells
    answers = [cell for cell in cells if "answer" in cell.metadata.get("tags", []) and cell.outputs]
    figures = [cell for cell in cells if "figure" in cell.metadata.get("tags", []) and find_pictures(cell)]
    if not answers or any(output.output_type == "error" for cell in answers for output in cell.outputs):
        return
    heading = find_lead(cells, answers[0])
    top = [heading] if heading else []
    notebook.cells = [cell for cell in cells if cell is not heading]
    top += [take_outputs(cell, "answer") for cell in answers]
    for cell in figures[:1]:
        lead = find_lead(notebook.cells, cell)
        if lead and (prose := HEADING.sub("", lead.source, count=1)):
            top.append(new_markdown_cell(prose, id=f"{lead.id}-above"))
            lead.source = lead.source.removesuffix(prose).strip()
        top.append(take_outputs(cell, "figure"))
    notebook.cells = drop_empty(notebook.cells)
    place = next(number for number, cell in enumerate(notebook.cells, start=1) if cell is find_title(notebook))
    notebook.cells[place:place] = top


def find_lead(cells: list[nbformat.NotebookNode], shown: nbformat.NotebookNode) -> nbformat.NotebookNode | None:
    """The text that stands before what a cell shows; None where something else is shown in between, or the title."""
    before = cells[: next(number for number, cell in enumerate(cells) if cell is shown)]
    found = next((c for c in reversed(before) if c.cell_type == "markdown" or c.outputs), None)
    return found if found and found.cell_type == "markdown" and not found.source.startswith("# ") else None


def take_outputs(cell: nbformat.NotebookNode, tag: str) -> nbformat.NotebookNode:
    """What a cell shows as a cell of its own, without code; of a figure's cell the pictures alone."""
    taken = find_pictures(cell) if tag == "figure" else cell.outputs
    cell.outputs = [output for output in cell.outputs if output not in taken]
    metadata = {**cell.metadata, "tags": [tag, "remove-input"]}
    return new_code_cell(f"# {tag}", outputs=taken, metadata=metadata, id=f"{cell.id}-above")  # not empty, else dropped


def find_pictures(cell: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """The pictures among what a cell shows."""
    return [output for output in cell.outputs if "image/svg+xml" in output.get("data", {})]


def drop_empty(cells: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Cells without texts of which nothing is left, and without headings below which nothing is shown any more."""
    kept = []
    for cell in reversed(cells):
        if cell.cell_type == "markdown":
            below = next((one for one in reversed(kept) if one.cell_type == "markdown" or one.outputs), None)
            depth = len(cell.source) - len(cell.source.lstrip("#"))
            ends = below is None or re.match(rf"#{{1,{depth}}} |Next: ", below.source) if depth else False
            if not cell.source or (ends and not HEADING.sub("", cell.source, count=1)):
                continue
        kept.append(cell)
    return kept[::-1]


def describe_pictures(notebook: nbformat.NotebookNode) -> None:
    """Describe each picture by the heading and the first sentence before it, and the page's question."""
    question, heading, said = HEADING.match(find_title(notebook).source)[1], "", ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            found = HEADING.match(cell.source)
            heading = found[1] or heading
            said = re.split(r"(?<=[.?]) |\n|$", cell.source[found.end() :])[0]
        elif find_pictures(cell):
            parts = [re.sub(r"\[(.*?)\]\(.*?\)|[*`]", r"\1", part).strip(".: ") for part in (heading, said, question)]
            label = html.escape(". ".join(["Figure", *filter(None, parts)]))
            for data in (output.data for output in find_pictures(cell)):
                svg = data["image/svg+xml"].replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
                data["text/html"] = f'<div class="figure">{svg}</div>'  # as part of the page its points have texts


def list_chapters(groups: dict[str, dict[str, str]], titles: dict[str, str]) -> str:
    """The menu (MyST): each notebook under its chapter, with its number and question; one that was run several times as
    the list of its runs. The front page does not show it where it has something else to show."""
    entries = {group: group if len(copies) > 1 else next(iter(copies.values())) for group, copies in groups.items()}
    hidden = [":hidden:"] if entries.get(FRONT) == "index" else []
    lines = []
    for digit, chapter in CHAPTERS.items():
        listed = []
        for group, entry in entries.items():
            if group.startswith(digit):
                number, title = group.split("_")[0], name_entry(titles[entry], chapter)
                listed.append(f"{number} · {title} <{entry.replace('index', 'self')}>")
        if listed:
            lines += ["```{toctree}", *hidden, ":maxdepth: 1", f":caption: {chapter}", "", *listed, "```", ""]
    return "\n".join(lines)


def name_entry(title: str, chapter: str) -> str:
    """A page's title as the menu has it: without the paper that the chapter names."""
    return title.removeprefix("# ").replace(f"({chapter}, ", "(")


def list_copies(group: str, copies: dict[str, str]) -> str:
    """The page of a notebook that was run for several keys: its question, and a link to each run.

    The runs are not in the menu: every page carries the whole menu, which would grow with their square.
    """
    source = paths.NOTEBOOKS / f"{group}.ipynb"
    title = f"# {group}"
    if source.exists():
        title = find_title(nbformat.read(source, as_version=4)).source.splitlines()[0]
    lines = [title, "", f"This notebook was run for {len(copies)} choices of its keys:", ""]
    for page in copies.values():
        keys = page.split("--")[1:]
        lines.append(f"- {link(page, ' · '.join(keys))}")
    return "\n".join([*lines, ""])


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
