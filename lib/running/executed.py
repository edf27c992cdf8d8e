"""Executed copies of notebooks: reading them, their current prose, and their answer under the title."""

import re
from copy import deepcopy
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from lib.errors import StudyError
from lib.places import show_path
from lib.study import paths

HEADING = re.compile(r"(?:#+ ([^\n]*)\s*)?")  # of a text cell, if it has one; the rest is prose
ABOVE = "-above"  # ends the ids of cells under the title that come from further down


def read_copy(path: Path) -> NotebookNode:
    """Read an executed copy as it ran, without what `repeat_answer` added. Raises StudyError if it is damaged."""
    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        find_title(notebook)
    except Exception as error:  # nbformat raises errors of many kinds for a file that is not a notebook
        raise StudyError(f"{show_path(path)}: damaged ({type(error).__name__}); delete it or run it again") from error
    notebook.cells = [cell for cell in notebook.cells if not cell.id.endswith(ABOVE)]
    return notebook


def repeat_answer(path: Path) -> str:
    """Return the text of an executed copy with its answer repeated under the title.

    All else stays as it ran, since the code is in view. Raises StudyError if the copy is damaged.
    """
    notebook = read_copy(path)
    current = deepcopy(notebook)
    take_current_prose(current, path.stem.split("--")[0])
    put_under_title(notebook, take_answer(current))
    return f"{nbformat.writes(notebook)}\n"


def take_current_prose(notebook: NotebookNode, name: str) -> None:
    """Update text cells and tags of an executed copy from the notebook, since these may change without a new run."""
    source = paths.NOTEBOOKS / f"{name}.ipynb"
    if not source.exists():
        return
    current_cells = {cell.id: cell for cell in nbformat.read(source, as_version=4).cells}
    title_cell = find_title(notebook)
    title = title_cell.source.splitlines()[0]  # holds the keys of this run
    for cell in notebook.cells:
        if cell.id in current_cells and cell.cell_type == "markdown":
            cell.source = current_cells[cell.id].source
        elif cell.id in current_cells:
            cell.metadata.tags = current_cells[cell.id].metadata.get("tags", [])
    title_cell.source = "\n".join([title, *title_cell.source.splitlines()[1:]])


def find_title(notebook: NotebookNode) -> NotebookNode:
    """Return the title cell; it is not the first of a failed notebook, because papermill puts a mark before it."""
    return next(cell for cell in notebook.cells if cell.cell_type == "markdown" and cell.source.startswith("# "))


def put_under_title(notebook: NotebookNode, cells: list[NotebookNode]) -> None:
    """Insert cells after the title cell."""
    position = notebook.cells.index(find_title(notebook)) + 1
    notebook.cells[position:position] = cells


def take_answer(notebook: NotebookNode) -> list[NotebookNode]:
    """Take the outputs of cells tagged `answer` out of a notebook.

    Return them as cells, with the heading and prose that introduce them; their code stays where it ran. From a page
    without an answer, or whose answer failed, nothing is taken.
    """
    cells = notebook.cells
    answers = [cell for cell in cells if "answer" in cell.metadata.get("tags", []) and cell.outputs]
    if not answers or any(output.output_type == "error" for cell in answers for output in cell.outputs):
        return []
    heading = find_lead(cells, answers[0])
    top = [new_markdown_cell(heading.source, id=f"{heading.id}{ABOVE}")] if heading else []
    notebook.cells = [cell for cell in cells if cell is not heading]
    return top + [take_outputs(cell, "answer") for cell in answers]


def take_figure(notebook: NotebookNode) -> list[NotebookNode]:
    """Take the pictures of the first cell tagged `figure` out of a notebook; return them as cells after their prose."""
    figures = [cell for cell in notebook.cells if "figure" in cell.metadata.get("tags", []) and find_pictures(cell)]
    if not figures:
        return []
    lead = find_lead(notebook.cells, figures[0])
    picture = take_outputs(figures[0], "figure")
    prose = HEADING.sub("", lead.source, count=1) if lead else ""
    if not prose:
        return [picture]
    lead.source = lead.source.removesuffix(prose).strip()
    return [new_markdown_cell(prose, id=f"{lead.id}{ABOVE}"), picture]


def find_lead(cells: list[NotebookNode], answer: NotebookNode) -> NotebookNode | None:
    """Return the text cell before the outputs of `answer`; None if other outputs come between or it is the title."""
    lead = None  # the last cell before the answer that shows anything
    for cell in cells:
        if cell is answer:
            break
        if cell.cell_type == "markdown" or cell.outputs:
            lead = cell
    if lead is None or lead.cell_type != "markdown" or lead.source.startswith("# "):
        return None
    return lead


def take_outputs(cell: NotebookNode, tag: str) -> NotebookNode:
    """Move a cell's outputs to a new cell without code; for tag `figure`, only the pictures."""
    taken = find_pictures(cell) if tag == "figure" else cell.outputs
    cell.outputs = [output for output in cell.outputs if output not in taken]
    source, metadata = f"# {tag}", {"tags": [tag, "remove-input"]}  # a cell without source would be dropped
    return new_code_cell(source, outputs=taken, metadata=metadata, id=f"{cell.id}{ABOVE}")


def find_pictures(cell: NotebookNode) -> list[NotebookNode]:
    """Return the pictures among a cell's outputs."""
    return [output for output in cell.outputs if "image/svg+xml" in output.get("data", {})]


def drop_empty(cells: list[NotebookNode]) -> list[NotebookNode]:
    """Drop text cells that have become empty, and headings with nothing left below them."""
    kept = []
    for cell in reversed(cells):
        if cell.cell_type == "markdown":
            below = next((later for later in reversed(kept) if later.cell_type == "markdown" or later.outputs), None)
            depth = len(cell.source) - len(cell.source.lstrip("#"))
            ends = below is None or re.match(rf"#{{1,{depth}}} |Next: ", below.source) if depth else False
            if not cell.source or (ends and not HEADING.sub("", cell.source, count=1)):
                continue
        kept.append(cell)
    return kept[::-1]
