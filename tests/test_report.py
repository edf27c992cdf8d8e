"""Tests of the report: which pages it has, their order, and the links of its front page."""

import fcntl
import re

import nbformat
import pytest
from golden import write
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from lib import artefacts
from lib.running import report
from lib.study import paths

SVG = '<svg width="9"><use><title>a point</title></use></svg>'


def test_a_copy_that_another_process_is_still_writing_is_no_page(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    running = write(paths.output("smoke", "running", "20_finetune.ipynb"), "{half")
    with open(running.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert report.collect_pages("smoke") == {}
    assert report.collect_pages("smoke") == {running: "interrupted"}


def write_front(folder, **states: str) -> str:
    """Return the text of the front page as Sphinx reads it. `states`: page -> state of its copy."""
    pages = {folder / f"{name[1:].replace('__', '--')}.ipynb": state for name, state in states.items()}
    for path in pages:
        text = f"# Title of {path.stem}\n\nOf [tables](40_biobert.ipynb), [leaks](14_leaks.ipynb)."
        nbformat.write(new_notebook(cells=[new_markdown_cell(text)]), path)
    report.write_source("smoke", pages, folder / "source")
    return "\n\n".join(cell.source for cell in nbformat.read(folder / "source" / "index.ipynb", 4).cells)


def test_the_site_opens_on_what_was_found_then_on_what_failed_and_has_the_menu(tmp_path):
    front = write_front(tmp_path, _01_results_in_brief="done", _40_biobert__a="done", _40_biobert__b="failed")
    assert front.startswith("# Title of 01_results_in_brief\n\nOf ")
    assert 'Of <a href="40_biobert.html">tables</a>, leaks.\n\n## Failed' in front
    assert '- <a href="40_biobert--b--failed.html">40_biobert--b</a>: failed' in front
    assert ":caption: Start, and what was found\n\n01 · Title of 01_results_in_brief <self>\n" in front
    assert ":caption: BioBERT\n\n40 · Does pretraining on PubMed help" in front and ":hidden:" in front
    assert "? (Tables 4, 5, 6) <40_biobert>\n" in front
    page = (tmp_path / "source" / "40_biobert.md").read_text()
    assert "40_biobert--a.html" in page and "40_biobert--b--failed.html" in page


def test_where_nothing_was_found_yet_the_site_opens_on_the_menu(tmp_path):
    front = write_front(tmp_path, _01_results_in_brief="interrupted", _14_index_of_leaks="done")
    assert front.startswith(f"# {report.TITLE}: smoke\n\n## Failed or interrupted\n\n- <a href=")
    assert "01_results_in_brief <01_results_in_brief--interrupted>\n" in front and " <14_index_of_leaks>\n" in front
    assert ":hidden:" not in front


def test_damaged_pages_are_named_and_the_others_are_a_report(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    damaged = {
        "notebooks/12_datasets": '{"cells": [{}]}',
        "notebooks/14_leaks": "{half",
        "running/23_pretrain--pubmedbert": "",  # as Ctrl-C left it
    }
    for name, content in damaged.items():
        artefacts.write_text(paths.output("smoke", f"{name}.ipynb"), content)
    lessons = new_notebook(cells=[new_markdown_cell("# Lessons")])
    nbformat.write(lessons, paths.output("smoke", "notebooks", "94_lessons.ipynb"))
    index, _ = report.build_report("smoke")
    assert sorted(page.stem for page in index.parent.glob("[0-9]*.html")) == ["94_lessons"]
    assert "Lessons" in index.read_text() and "Failed" not in index.read_text()
    messages = [message for message in capsys.readouterr().out.splitlines() if "damaged" in message]
    named = [re.search(r"([\w-]+)\.ipynb: damaged", message)[1] for message in messages]
    assert named == [name.split("/")[1] for name in damaged]


def show_words(words: str) -> list:
    return [new_output("display_data", {"text/markdown": words})]


def make_page(answer: list | None = None) -> list:
    """Return the cells of a page with a figure in the middle and an answer near the end."""
    figure = new_output("display_data", {"text/plain": "figure", "image/svg+xml": SVG})
    table = new_output("display_data", {"text/html": "<table></table>"})
    return [
        new_markdown_cell("# Does it help? (BioBERT, Table 4)\n\nOf a table.", id="title"),
        new_code_cell("open_page()", id="open", outputs=show_words("Scale")),
        new_markdown_cell("## Ours\n\nBy set, *paper* hollow. Ours filled.", id="ours"),
        new_code_cell("draw()", id="draw", outputs=[figure, table]),
        new_markdown_cell("## What we see\n\nIn points.", id="see"),
        new_code_cell("say()", id="say", outputs=show_words("It helps.") if answer is None else answer),
        new_code_cell("where()", id="where", outputs=show_words("Kept in")),
        new_markdown_cell("Next: another", id="next"),
    ]


def prepare(folder, monkeypatch, cells: list, tagged_copy: bool = False) -> list:
    """Return the cells of a page as Sphinx reads it; a copy older than its notebook's tags takes them from there."""
    monkeypatch.setattr(paths, "NOTEBOOKS", folder)
    notebook = new_notebook(cells=[*make_page(), new_code_cell("new()", id="new")])
    tags = {"draw": ["figure"], "say": ["answer", "hide-input"]}
    for cell in [*notebook.cells, *(cells if tagged_copy else [])]:
        if cell.id in tags:
            cell.metadata.tags = tags[cell.id]
    if not tagged_copy:
        nbformat.write(notebook, folder / "40_biobert.ipynb")
    copy, path = new_notebook(cells=cells), folder / "40_biobert.ipynb"
    report.prepare(path, "done", copy, {"40_biobert": {"40_biobert": "40_biobert"}})
    return copy.cells


def list_shown(cells: list) -> list[str]:
    """List the texts and outputs of a page in reading order."""
    contents = []
    for cell in cells:
        outputs = [] if cell.cell_type == "markdown" else cell.outputs
        contents += [cell.source] if cell.cell_type == "markdown" else []
        contents += [next(iter(output.get("data", {"error": ""}).values())) for output in outputs]
    return contents


@pytest.mark.parametrize("tagged_copy", [False, True])
def test_a_page_begins_with_its_answer_and_figure_and_has_them_once(tmp_path, monkeypatch, tagged_copy):
    cells = prepare(tmp_path, monkeypatch, make_page(), tagged_copy)
    above = ["## What we see\n\nIn points.", "It helps.", "By set, *paper* hollow. Ours filled.", "figure"]
    assert list_shown(cells)[1:5] == above
    about = "## About this page\n\nOf a table."
    assert list_shown(cells)[5:] == [about, "Scale", "## Ours", "<table></table>", "Kept in", "Next: another"]
    code = [cell.source for cell in cells if cell.cell_type == "code" and "hide-input" in cell.metadata.tags]
    assert code == ["open_page()", "draw()", "say()", "where()"]


def test_a_figure_whose_points_have_texts_is_part_of_the_page_and_described(tmp_path, monkeypatch):
    (figure,) = prepare(tmp_path, monkeypatch, make_page())[4].outputs
    label = "Figure. Ours. By set, paper hollow. Does it help? (BioBERT, Table 4)"
    inner = f'<svg role="img" aria-label="{label}" width="9"><use><title>a point</title></use></svg>'
    assert figure.data["text/html"] == f'<div class="figure">{inner}</div>'


def test_a_page_without_an_answer_stays_in_order(tmp_path, monkeypatch):
    failed = make_page([new_output("error", ename="StudyError", evalue="", traceback=[])])
    without_its_cell = [cell for cell in make_page() if cell.id != "say"]
    for cells in (failed, make_page([]), without_its_cell):
        expected = list_shown(cells)
        assert list_shown(prepare(tmp_path, monkeypatch, cells)) == expected


def test_a_heading_below_which_nothing_is_left_goes(tmp_path, monkeypatch):
    cells = make_page()
    del cells[3].outputs[1], cells[6]
    assert list_shown(prepare(tmp_path, monkeypatch, cells))[6:] == ["Scale", "Next: another"]


def test_the_notebooks_name_their_answers_and_one_figure_at_most():
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        cells = nbformat.read(path, as_version=4).cells
        tags = [tag for cell in cells if cell.cell_type == "code" for tag in cell.metadata.get("tags", [])]
        assert ("answer" in tags) == any(cell.source.startswith("## What we see") for cell in cells), path.name
        assert tags.count("figure") <= 1, path.name
