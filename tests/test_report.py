"""The report's choice of pages, and what its front page leads to."""

import fcntl
import re

import nbformat
from nbformat.v4 import new_markdown_cell, new_notebook

from lib.study import paths, report


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
    """The text of the front page as Sphinx reads it, of copies in these states."""
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
    assert ":caption: Start, and what was found\n\nself\n" in front and ":caption: BioBERT\n\n40_biobert\n" in front
    assert ":hidden:" in front
    listed = (tmp_path / "source" / "40_biobert.md").read_text()
    assert "40_biobert--a.html" in listed and "40_biobert--b--failed.html" in listed


def test_where_nothing_was_found_yet_the_site_opens_on_the_menu(tmp_path):
    front = write_front(tmp_path, _01_results_in_brief="interrupted", _14_leaks="done")
    assert front.startswith(f"# {report.TITLE}: smoke\n\n## Failed or interrupted\n\n- <a href=")
    assert "\n01_results_in_brief--interrupted\n" in front and "\n14_leaks\n" in front and ":hidden:" not in front


def test_a_page_that_cannot_be_read_is_named_and_the_others_are_a_report(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    running, copies = paths.output("smoke", "running"), paths.output("smoke", "notebooks")
    for folder in (running, copies):
        folder.mkdir(parents=True)
    (running / "23_pretrain--pubmedbert.ipynb").write_text("")  # as Ctrl-C left it
    for name, content in (("14_leaks", "{half"), ("13_dataset_counts", "{}"), ("12_datasets", '{"cells": [{}]}')):
        (copies / f"{name}.ipynb").write_text(content)
    nbformat.write(new_notebook(cells=[new_markdown_cell("# Lessons")]), copies / "94_lessons.ipynb")
    index, _ = report.build("smoke")
    assert sorted(page.stem for page in index.parent.glob("[0-9]*.html")) == ["94_lessons"]
    assert "Lessons" in index.read_text() and "Failed" not in index.read_text()
    said = [line for line in capsys.readouterr().out.splitlines() if "damaged" in line]
    names = ["12_datasets", "13_dataset_counts", "14_leaks", "23_pretrain--pubmedbert"]
    assert [re.search(r"([\w-]+)\.ipynb: damaged", line)[1] for line in said] == names


def test_the_notebooks_name_their_answers_and_one_figure_at_most():
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        cells = nbformat.read(path, as_version=4).cells
        tags = [tag for cell in cells if cell.cell_type == "code" for tag in cell.metadata.get("tags", [])]
        assert ("answer" in tags) == any(cell.source.startswith("## What we see") for cell in cells), path.name
        assert tags.count("figure") <= 1, path.name
