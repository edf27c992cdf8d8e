"""How notebooks are stored: no outputs, one cell of parameters, short cells, no paths of a machine."""

import re

import nbformat
from conftest import each

from lib.running import plan
from lib.study import paths

NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
# More than 30: pages with a method of their own, many kinds of leaks, many small checks, or four comparisons.
MORE_CELLS = {"02_evaluate": 35, "14_leaks": 36, "90_audit": 87, "91_protocols": 50,
              "95_integer_check": 44}  # fmt: skip


def code(notebook) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


@each("path", NOTEBOOKS)
def test_stored_without_outputs_with_links_that_lead_somewhere(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs") and cell.get("execution_count") is None
    assert notebook.metadata.kernelspec.name == "python3"
    assert "papermill" not in notebook.metadata
    for name in re.findall(r"\]\(([\w-]+)\.ipynb\)", path.read_text(encoding="utf-8")):
        assert (paths.NOTEBOOKS / f"{name}.ipynb").exists()


@each("path", NOTEBOOKS)
def test_prose_explained_parameters_and_short_cells(path):
    notebook = nbformat.read(path, as_version=4)
    assert notebook.cells[0].source.startswith("# ")
    assert "Needs:" in notebook.cells[0].source and "Takes:" in notebook.cells[0].source
    (cell,) = [c for c in notebook.cells if "parameters" in c.metadata.get("tags", [])]
    lines = cell.source.splitlines()
    assert 1 <= len(lines) <= 8
    assert all(re.fullmatch(r"\w+: (str|int|float|bool|list|dict) = .+  # .+", line) for line in lines)
    assert 'scale: str = "smoke"' in lines[0]
    assert len(notebook.cells) <= MORE_CELLS.get(path.stem, 30)
    for source in code(notebook):
        assert len(source.splitlines()) <= 20
        assert not re.search(r"sys\.path|^[!%]|[\"']/\w", source, re.M)


def test_no_two_notebooks_share_a_cell_of_more_than_six_lines():
    pages = {}
    for path in NOTEBOOKS:
        for source in code(nbformat.read(path, as_version=4)):
            if len([line for line in source.splitlines() if line.strip()]) > 6:
                pages.setdefault(source, set()).add(path.stem)
    assert pages and not [names for names in pages.values() if len(names) > 1]


def test_every_notebook_is_a_stage_of_the_study():
    on_request = {"02_evaluate", "03_leaderboard"}  # for a user's own encoder, and for result files from others
    assert {*plan.list_targets("smoke")["notebooks"]} == {path.stem for path in NOTEBOOKS} - on_request
