"""Tests of the report: which pages it has, their order, and the links of its front page."""

import fcntl
import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from lib import artefacts
from lib.study import executed, paths, report

SVG = '<svg width="9"><use><title>a point</title></use></svg>'


def test_a_copy_that_another_process_still_writes_is_no_page(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    running = paths.output("smoke", "running", "20_finetune.ipynb")
    running.parent.mkdir(parents=True)
    running.write_text("{half")
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
    assert ":caption: BioBERT\n\n40 · Does pretraining on PubMed help" in front
    assert "? (Tables 4, 5, 6) <40_biobert>\n" in front
    assert ":hidden:" in front
    page = (tmp_path / "source" / "40_biobert.md").read_text()
    assert "40_biobert--a.html" in page and "40_biobert--b--failed.html" in page


def test_the_menu_leads_to_a_page_with_index_in_its_name():
    menu = report.list_chapters(
        {"14_index_of_leaks": {"14_index_of_leaks": "14_index_of_leaks"}}, {"14_index_of_leaks": "# Leaks"}
    )
    assert "\n14 · Leaks <14_index_of_leaks>\n" in menu


def test_where_nothing_was_found_yet_the_site_opens_on_the_menu(tmp_path):
    front = write_front(tmp_path, _01_results_in_brief="interrupted", _14_leaks="done")
    assert front.startswith(f"# {report.TITLE}: smoke\n\n## Failed or interrupted\n\n- <a href=")
    assert "01_results_in_brief <01_results_in_brief--interrupted>\n" in front and " <14_leaks>\n" in front
    assert ":hidden:" not in front


def test_a_page_that_cannot_be_read_is_named_and_the_others_are_a_report(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    running, copies = paths.output("smoke", "running"), paths.output("smoke", "notebooks")
    for folder in (running, copies):
        folder.mkdir(parents=True)
    (running / "23_pretrain--pubmedbert.ipynb").write_text("")  # as Ctrl-C left it
    for name, content in (("14_leaks", "{half"), ("13_dataset_counts", "{}"), ("12_datasets", '{"cells": [{}]}')):
        (copies / f"{name}.ipynb").write_text(content)
    nbformat.write(new_notebook(cells=[new_markdown_cell("# Lessons")]), copies / "94_lessons.ipynb")
    index, _ = report.build_report("smoke")
    assert sorted(page.stem for page in index.parent.glob("[0-9]*.html")) == ["94_lessons"]
    assert "Lessons" in index.read_text() and "Failed" not in index.read_text()
    messages = [message for message in capsys.readouterr().out.splitlines() if "damaged" in message]
    names = ["12_datasets", "13_dataset_counts", "14_leaks", "23_pretrain--pubmedbert"]
    assert [re.search(r"([\w-]+)\.ipynb: damaged", message)[1] for message in messages] == names


def show_figure(words: str) -> list:
    return [new_output("display_data", {"text/plain": words, "image/svg+xml": SVG})]


def show_words(words: str) -> list:
    return [new_output("display_data", {"text/markdown": words})]


def make_page(answer: list | None = None) -> list:
    """Return the cells of a page with a figure in the middle and an answer near the end."""
    table = [new_output("display_data", {"text/html": "<table></table>"})]
    return [
        new_markdown_cell("# Does it help? (BioBERT, Table 4)\n\nOf a table.", id="title"),
        new_code_cell("open_page()", id="open", outputs=show_words("Scale")),
        new_markdown_cell("## Ours\n\nBy set, *paper* hollow. Ours filled.", id="ours"),
        new_code_cell("draw()", id="draw", outputs=show_figure("figure") + table),
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
    assert list_shown(cells)[5:] == ["Scale", "## Ours", "<table></table>", "Kept in", "Next: another"]
    code = [cell.source for cell in cells if cell.cell_type == "code" and "hide-input" in cell.metadata.tags]
    assert code == ["open_page()", "draw()", "say()", "where()"]


def test_a_page_of_the_record_begins_with_its_answer_and_the_report_is_the_same(tmp_path, monkeypatch):
    run, recorded = (tmp_path / folder / "40_biobert.ipynb" for folder in ("run", "record"))
    artefacts.write_text(run, nbformat.writes(new_notebook(cells=make_page())))
    expected = prepare(tmp_path, monkeypatch, executed.read_copy(run).cells)
    artefacts.write_text(recorded, executed.repeat_answer(run))
    title, *shown = list_shown(nbformat.read(recorded, as_version=4).cells)
    assert shown[:2] == list_shown(expected)[1:3]
    assert [title, *shown[2:]] == list_shown(executed.read_copy(run).cells)
    assert prepare(tmp_path, monkeypatch, executed.read_copy(recorded).cells) == expected


def test_a_figure_whose_points_have_texts_is_part_of_the_page_and_described(tmp_path, monkeypatch):
    (figure,) = prepare(tmp_path, monkeypatch, make_page())[4].outputs
    label = "Figure. Ours. By set, paper hollow. Does it help? (BioBERT, Table 4)"
    inner = f'<svg role="img" aria-label="{label}" width="9"><use><title>a point</title></use></svg>'
    assert figure.data["text/html"] == f'<div class="figure">{inner}</div>'


@pytest.mark.parametrize("answer", [[], [new_output("error", ename="StudyError", evalue="", traceback=[])]])
def test_a_page_that_failed_before_its_answer_stays_in_order(tmp_path, monkeypatch, answer):
    expected = list_shown(make_page(answer))
    assert list_shown(prepare(tmp_path, monkeypatch, make_page(answer))) == expected


def test_a_copy_without_the_cell_of_the_answer_stays_in_order(tmp_path, monkeypatch):
    cells = [cell for cell in make_page() if cell.id != "say"]
    expected = list_shown(cells)
    assert list_shown(prepare(tmp_path, monkeypatch, cells)) == expected


def test_a_heading_below_which_nothing_is_left_goes(tmp_path, monkeypatch):
    cells = make_page()
    del cells[3].outputs[1], cells[6]
    assert list_shown(prepare(tmp_path, monkeypatch, cells))[5:] == ["Scale", "Next: another"]


def test_the_notebooks_name_their_answers_and_one_figure_at_most():
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        cells = nbformat.read(path, as_version=4).cells
        tags = [tag for cell in cells if cell.cell_type == "code" for tag in cell.metadata.get("tags", [])]
        assert ("answer" in tags) == any(cell.source.startswith("## What we see") for cell in cells), path.name
        assert tags.count("figure") <= 1, path.name
