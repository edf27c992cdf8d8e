"""Tests of the record: one command updates it, and opened pages show it where there are no data or weights."""

import json
import os
import shutil
import subprocess
import sys

import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from lib import artefacts
from lib.errors import StudyError
from lib.running import executed, page_jobs, plan, record
from lib.study import open_study, paths, results

COLUMNS = ["row", "column", "metric", "published", "ours", "n_seeds", "note"]


@pytest.fixture
def run(own_outputs):
    """Write what a run at laptop scale leaves: a table with two scores, figures, results, pages, a vocabulary."""
    results.write_csv(paths.table("laptop", "lee-4"), make_table(78.7, 77.0))
    artefacts.write_json(paths.results("laptop", "bert-general", "ncbi-disease", "lee"), {"runs": []})
    artefacts.write_json(paths.results("laptop", "somebody-0a1b2c", "ncbi-disease", "lee"), {"runs": []})
    artefacts.write_json(paths.vocabulary("laptop", "pubmed-cased") / "tokenizer.json", {"model": {"a": 1}})
    for name in ("figures/lee-4.svg", "figures/loss--bert-general.svg", "figures/claims.svg",
                 "vocabularies/pubmed-cased/vocab.txt", "vocabularies/ja-clinical/vocab.txt",
                 "tables/own-data.csv",
                 "notebooks/30_finetune_words--bert-general--lee--tagging.ipynb",
                 "notebooks/02_evaluate--somebody-0a1b2c--lee.ipynb"):  # fmt: skip
        artefacts.write_text(paths.output("laptop", name), "x")
    artefacts.write_text(paths.output("laptop", "notebooks/40_biobert.ipynb"), nbformat.writes(make_page()))
    return paths.output("laptop")


def make_page() -> nbformat.NotebookNode:
    said = [new_output("display_data", {"text/markdown": "It helps."})]
    cells = [
        new_markdown_cell("# Does it help?"),
        new_markdown_cell("## What we see\n\nSee [leaks](14_leaks.ipynb)."),
        new_code_cell("say()", outputs=said, metadata={"tags": ["answer"]}),
    ]
    return new_notebook(cells=cells)


def make_table(*ours) -> pd.DataFrame:
    rows = [("NCBI", "BioBERT", "F1", 89.4), ("NCBI", "BERT", "F1", 85.6)]
    lines = [[*row, value, 3, ""] for row, value in zip(rows, ours, strict=True)]
    return pd.DataFrame(lines, columns=COLUMNS)


def read_record() -> dict[str, bytes]:
    folder = paths.output("record")
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_is_taken_over_once_without_pages_of_runs_and_without_what_is_not_of_the_study(run):
    first = record.take_over("laptop")
    assert sorted(read_record()) == [
        "laptop/figures/claims.svg",
        "laptop/figures/lee-4.svg",
        "laptop/notebooks/40_biobert.ipynb",
        "laptop/results/bert-general--ncbi-disease--lee.json",
        "laptop/tables/lee-4.csv",
        "laptop/vocabularies/ja-clinical/vocab.txt",
        "laptop/vocabularies/pubmed-cased/tokenizer.json",
    ]
    assert read_record()["laptop/vocabularies/pubmed-cased/tokenizer.json"] == b'{"model":{"a":1}}'
    assert len(first) == 7 and record.take_over("laptop") == []
    results.write_csv(paths.table("laptop", "lee-4"), make_table(79.0, 77.0))
    shutil.rmtree(run / "results")  # what a run did not make stays in the record
    before = read_record()
    assert record.take_over("laptop") == [paths.recorded(paths.table("laptop", "lee-4"))]
    assert read_record().keys() == before.keys()


def test_a_page_is_recorded_with_its_answer_under_the_title_and_else_as_it_ran(run):
    page = run / "notebooks" / "40_biobert.ipynb"
    record.take_over("laptop")
    cells = nbformat.read(paths.recorded(page), as_version=4).cells
    prose = "## What we see\n\nSee [leaks](../../../../notebooks/14_leaks.ipynb)."
    assert [cell.source for cell in cells] == ["# Does it help?", prose, "# answer", prose, "say()"]
    assert cells[2].outputs == cells[4].outputs == make_page().cells[2].outputs
    assert executed.read_copy(paths.recorded(page)).cells[2] == executed.read_copy(page).cells[2]


def test_links_of_a_page_lead_to_what_is_recorded_or_to_the_source():
    linked = '[a](40_biobert.ipynb) [b](13_dataset_counts.ipynb) [c](15_x.ipynb) <a href=\\"30_y--m--lee.ipynb\\">'
    assert record.mend_links(linked, {"40_biobert", "13_dataset_counts--lee-3", "13_dataset_counts--gu-3"}) == (
        "[a](40_biobert.ipynb) [b](13_dataset_counts--gu-3.ipynb) [c](../../../../notebooks/15_x.ipynb) "
        '<a href=\\"../../../../notebooks/30_y.ipynb\\">'
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("record/laptop/tables/lee-4.csv", 'row,ours\n"a', r"lee-4.csv: damaged \(.*\); restore or delete it"),
        ("laptop/results/bert-general--ncbi-disease--lee.json", '{"runs": [',
         r"bert-general--ncbi-disease--lee.json: damaged"),
        ("laptop/notebooks/40_biobert.ipynb", "{half", r"40_biobert.ipynb: damaged"),
        ("laptop/tables/lee-4.csv", make_table(None, 70.0).to_csv(index=False),
         r"1 cells that the record fills would become empty, first in lee-4: NCBI, BioBERT, F1"),
        ("laptop/tables/lee-4.csv", make_table(79.0, 70.0).drop(columns="ours").to_csv(index=False),
         r"2 cells that the record fills would become empty, first in lee-4: NCBI, BERT, F1"),
        ("laptop/failed/01_results_in_brief.ipynb", "x",
         r"01_results_in_brief.ipynb: failed or was broken off; run it again, or delete it"),
        ("laptop", None, r"nothing has been run at scale 'laptop': run ./run_all.sh laptop first"),
    ],
)  # fmt: skip
def test_a_refused_run_leaves_the_record_as_it_was(run, name, content, message):
    record.take_over("laptop")
    if content:
        artefacts.write_text(paths.output(name), content)
    else:
        shutil.rmtree(run)
    before = read_record()
    with pytest.raises(StudyError, match=message) as refused:
        record.take_over("laptop")
    assert "\n" not in str(refused.value) and read_record() == before


def test_made_up_data_are_never_recorded(run):
    with pytest.raises(StudyError, match="scale 'smoke' has made-up data"):
        record.take_over("smoke")


def test_what_is_read_is_of_a_run_here_else_of_the_record(run, monkeypatch):
    record.take_over("laptop")
    path = paths.table("laptop", "lee-4")
    results.write_csv(path, make_table(79.0, 77.0))
    assert results.find_table(path)["ours"].tolist() == [79.0, 77.0]
    path.unlink()
    assert results.find_table(paths.table("laptop", "lee-5")) is None
    monkeypatch.setenv("STUDY_DATA", "nowhere")
    table = results.computed(path, "laptop", lambda: pytest.fail("made again"))
    kept = open_study("laptop").keep("lee-4", table[:0])
    for recorded in (results.find_table(path), table, kept):
        assert recorded["ours"].tolist() == [78.7, 77.0]
    with pytest.raises(StudyError, match=r"datasets.csv: nothing at hand to make it of: run ./run_all.sh laptop"):
        results.computed(paths.table("laptop", "datasets"), "laptop", list)
    assert not path.exists() and not paths.table("laptop", "datasets").exists()


def test_a_scale_writes_its_own_summary_where_its_marks_are(tmp_path, monkeypatch):
    sections = {scale: f"<!-- {scale}: generated -->\n{{}}\n<!-- /{scale} -->" for scale in ("laptop", "two-hours")}
    pages = {"README.md": "laptop", "docs/small.md": "two-hours", "docs/other.md": "gpu"}
    for name, scale in pages.items():
        artefacts.write_text(tmp_path / name, f"before\n{sections.get(scale, '').format('old')}\nafter")
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(record, "summarize_scale", lambda scale: f"of {scale}")
    for scale in ("laptop", "smoke"):  # smoke has no marks
        record.update_summaries(scale)
    assert [(tmp_path / name).read_text() for name in pages] == [
        f"before\n{sections['laptop'].format('of laptop')}\nafter",
        f"before\n{sections['two-hours'].format('old')}\nafter",
        "before\n\nafter",
    ]


def test_the_summary_of_a_scale_with_a_target_compares_its_scores_with_it(run):
    row = {"protocol": "small-encoder", "dataset": "ncbi-disease", "model": "small-encoder", "score": "f1",
           "ours": 79.0, "ours_std": 0.5, "n_seeds": 3, "note": ""}  # fmt: skip
    results.write_csv(paths.table("two-hours", "panels"), [row])
    text = record.summarize_scale("two-hours")
    assert "NCBI-disease, F1" in text and "79.00 ± 0.50 over 3 seeds, *reached*" in text and "| paper" not in text


# Runs the code cells of every page in order, as a reader does, at a scale and at the defaults, in one process.
# Pages that need no run, named in sys.argv, are left out at the defaults, because tests/test_study.py runs them.
OPEN = """
import contextlib, gc, io, json, os, sys
from pathlib import Path
import matplotlib.pyplot, nbformat
from IPython.core.interactiveshell import InteractiveShell
matplotlib.use("agg")
matplotlib.figure.Figure.savefig = lambda *words, **options: None  # that figures are drawn is seen where pages run
found, shown = {}, ""
for path in sorted(Path(".").glob("*.ipynb")):
    if path.stem[:2] in ("26", "90", "95", "96"):
        continue  # they read neither data nor runs of a scale, and other tests run them
    for scale in ["laptop"] if path.stem in sys.argv[1:] else ["laptop", ""]:
        InteractiveShell.clear_instance()
        shell, said = InteractiveShell.instance(), ""
        shell.showtraceback = lambda *words, **options: None
        for cell in (cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"):
            with contextlib.redirect_stdout(io.StringIO()):
                ran = shell.run_cell(cell.source, store_history=True)
            if path.stem == "40_biobert":
                shown += getattr(ran.result, "data", "")
            if scale and "parameters" in cell.metadata.get("tags", []):
                shell.user_ns["scale"] = scale
            shell.user_ns["repetitions"] = 1  # of page 93, which measures
            if error := ran.error_before_exec or ran.error_in_exec:
                said = f"{type(error).__name__}: {error}"
                break
        found.setdefault(scale, {})[path.stem] = said
        matplotlib.pyplot.close("all")
        gc.freeze()  # else a training, which collects garbage at its end, goes through what all pages have left
print(json.dumps([found, shown]), flush=True)
os._exit(0)  # at an orderly end each of the shells collects garbage, a minute in all
"""
# Notebooks that make one artefact from data or weights. Those of results show the record instead.
STAGES = ("10", "15_japanese", "20", "23", "25", "30", "31", "32")


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """Yield a clone of the working tree, with uncommitted changes and without data or weights."""
    folder = tmp_path_factory.mktemp("clone")

    def git(*words, cwd=folder):
        return subprocess.run(["git", *words], cwd=cwd, check=True, capture_output=True, text=True).stdout

    for name in git("ls-files", "--cached", "--others", "--exclude-standard", cwd=paths.ROOT).splitlines():
        if (paths.ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(paths.ROOT / name, folder / name)
    git("init", "--quiet")
    git("add", "--all")
    git("-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "--quiet", "--message=all")
    yield folder
    assert git("status", "--porcelain") == ""  # opening pages changed no file


@pytest.mark.skipif(not (paths.ROOT / ".git").exists(), reason="git says what changed")
def test_every_notebook_opened_without_data_shows_the_record_or_names_a_command(clone):
    """At a recorded scale, pages of results show the record; at the defaults of a fresh clone, some need a run."""
    planned = plan.Plan("smoke")
    once = [name for name, page in page_jobs.PAGES.items() if not page.reads(planned.study)]
    once += ["15_without_pretraining", "91_protocols"]
    environment = os.environ | {"PYTHONPATH": str(clone), "STUDY_DATA": "nowhere", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", OPEN, *once]
    process = subprocess.run(command, cwd=clone / "notebooks", env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    errors, shown = json.loads(process.stdout.splitlines()[-1])
    assert errors.keys() == {"laptop", ""} and all(len(pages) > 30 for pages in errors.values())
    for scale, pages in errors.items():
        for name, error in pages.items():
            needs_a_run = not scale or name.startswith((*STAGES, "02"))
            names_a_command = error.startswith("StudyError: ") and "./run_all.sh" in error and "\n" not in error
            assert not error or (needs_a_run and names_a_command), (scale, name, error)

    scores = results.read_table(paths.recorded(paths.table("laptop", "lee-4"))).dropna(subset="ours_std")
    numbers = [f"{row.ours:.2f} ± {row.ours_std:.2f}" for row in scores[scores["metric"] == "F1"].itertuples()]
    assert len(numbers) > 9 and all(number in shown for number in numbers)
