"""The code of a notebook, for tests: the functions that its cells define, or all cells run; and a small notebook."""

import ast
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from lib import artefacts
from lib.study import open_study, pages, paths

DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)


def read_code(name: str) -> list[str]:
    """Return the code cells of a notebook, in order."""
    notebook = nbformat.read(paths.NOTEBOOKS / f"{name}.ipynb", as_version=4)
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def write_question(folder: Path, parameters: str, *code: str) -> None:
    """Write the notebook 42_question with a cell of parameters and these cells of code."""
    given = new_code_cell(parameters, metadata={"tags": ["parameters"]})
    cells = [new_markdown_cell("# What comes out?"), given, *map(new_code_cell, code)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = new_notebook(cells=cells, metadata={"kernelspec": kernel})
    artefacts.write_text(folder / "42_question.ipynb", nbformat.writes(notebook))


def definitions(name: str, *constants: str) -> SimpleNamespace:
    """Return what a notebook imports, the functions and classes it defines, and the constants named.

    Nothing else in its cells is run.
    """
    nodes = [node for source in read_code(name) for node in ast.parse(source).body]
    assignments = [node for node in nodes if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in constants]
    body = [node for node in nodes if isinstance(node, DEFINITIONS) or node in assignments]
    namespace = {"__name__": name}
    exec(compile(ast.Module(body, type_ignores=[]), f"{name}.ipynb", "exec"), namespace)
    return SimpleNamespace(**namespace)


def run(name: str, **parameters) -> dict:
    """Run the code cells of a notebook in this process, and return the names they define.

    `parameters`: values in place of the defaults, as papermill gives them.
    """
    namespace = {"__name__": name}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "open_page", open_study)  # it would ask Jupyter for the parameters
        for number, source in enumerate(read_code(name), 1):
            exec(compile(source, f"{name}.ipynb, code cell {number}", "exec"), namespace)
            if number == 1:  # the cell of parameters
                namespace |= parameters
    return namespace
