"""Running one notebook: failures are kept, copies can be told apart; wrong parameters are refused."""

import fcntl
import re
import sys
from types import SimpleNamespace

import nbformat
import pytest
from notebook_code import write_question

from lib import artefacts, parent, places
from lib.errors import StudyError
from lib.running import plan, runner
from lib.study import params, paths


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    """A folder with one small notebook, run at smoke scale."""
    write_question(
        tmp_path / "notebooks",
        'scale: str = "smoke"  # the scale\nnumber: int = 1  # a number\nrate: float = 0.5  # a rate',
        "import os\nfrom lib.errors import StudyError\nprint(os.getcwd(), number)",
        'if number == 13:\n    raise StudyError("thirteen is not allowed")',
        "1 / (number - 7)",
    )
    params.load("scales", "smoke")
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(places, "ROOT", tmp_path)
    return tmp_path / "outputs" / "smoke"


def run(number=1, name="42_question--a--b", **others):
    return runner.run("smoke", "42_question", name, {"scale": "smoke", "number": number, **others})


def test_the_copy_is_whole_titled_and_without_the_machine(workshop):
    path = run(3, rate=1)  # an integer is a float
    assert path == workshop / "notebooks" / "42_question--a--b.ipynb"
    copy = nbformat.read(path, as_version=4)
    assert copy.cells[0].source == "# a · b: What comes out?"
    assert copy.metadata.papermill.end_time
    assert copy.metadata.papermill.parameters == {"scale": "smoke", "number": 3, "rate": 1}
    assert str(paths.ROOT) not in path.read_text()
    assert copy.cells[3].outputs[0].text == "notebooks 3\n"
    assert not list((workshop / "running").iterdir())


def test_the_page_of_a_table_has_its_title():
    titled = runner.with_title(paths.NOTEBOOKS / "40_biobert.ipynb", "--lee-5")
    assert titled.cells[0].source.startswith("# lee-5: BioBERT on three relation extraction datasets\n\n*Reproduces:*")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("numbr", 1, "unknown parameter of 42_question 'numbr': did you mean number"),
        ("number", True, "parameter number must be int, not True"),
        ("rate", "2e-5", "parameter rate must be float, not '2e-5'"),
    ],
)
def test_wrong_parameters_are_refused(workshop, name, value, message):
    parameter_types = runner.list_parameters(paths.NOTEBOOKS / "42_question.ipynb")
    with pytest.raises(StudyError, match=message):
        params.check_parameter("42_question", name, value, parameter_types)


@pytest.mark.parametrize(
    ("number", "message"), [(13, "^thirteen is not allowed$"), (7, "ZeroDivisionError: division by zero")]
)
def test_a_failed_copy_is_kept_until_a_good_one_comes(workshop, number, message):
    with pytest.raises(StudyError, match=message):
        run(number)
    failed = workshop / "failed" / "42_question--a--b.ipynb"
    assert any(o.output_type == "error" for c in nbformat.read(failed, 4).cells for o in c.get("outputs", []))
    assert not (workshop / "notebooks").exists()
    run(1)
    assert not failed.exists()


def test_while_a_cell_runs_the_copy_holds_what_those_before_it_printed(workshop):
    path = paths.NOTEBOOKS / "42_question.ipynb"
    notebook = nbformat.read(path, as_version=4)
    running = str(workshop / "running" / "42_question--a--b.ipynb")
    notebook.cells += [
        nbformat.v4.new_code_cell("print(number * 1000 + 1)"),
        nbformat.v4.new_markdown_cell("Then:"),
        nbformat.v4.new_code_cell(f"import nbformat\nprint(nbformat.read({running!r}, 4).cells[-3].outputs[0].text)"),
    ]
    nbformat.write(notebook, path)
    printed = nbformat.read(run(3), as_version=4).cells[-1].outputs[0].text
    assert printed.strip() == "3001"  # a slow kernel sends the line break in an output of its own


def test_a_copy_that_is_being_saved_when_the_run_is_stopped_stays_whole(tmp_path, monkeypatch):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])
    copy = runner.Copy(notebook, str(tmp_path / "copy.ipynb"))
    copy.save()
    before = (tmp_path / "copy.ipynb").read_text()

    def stop(_, file):
        open(file, "w").close()
        raise KeyboardInterrupt

    monkeypatch.setattr(nbformat, "write", stop)
    with pytest.raises(KeyboardInterrupt):
        copy.save()
    assert (tmp_path / "copy.ipynb").read_text() == before and len(list(tmp_path.iterdir())) == 1


def test_a_notebook_that_does_not_write_what_it_should_has_failed(workshop):
    with pytest.raises(StudyError, match="ended without writing outputs/smoke/nothing.json"):
        runner.run("smoke", "42_question", "42_question", {"scale": "smoke"}, [workshop / "nothing.json"])
    assert (workshop / "failed" / "42_question.ipynb").exists()


def test_every_notebook_takes_the_parameters_that_the_graph_gives():
    rules = (paths.ROOT / "Snakefile").read_text(encoding="utf-8").split("\nrule ")
    commands = {rule.partition(":")[0]: rule.partition("shell:")[2] for rule in rules}
    given = {stage: re.findall(r"[ \"](\w+)=\{", shell) for stage, shell in commands.items()}
    planned = plan.Plan("smoke")
    for stage, keys in planned.jobs.items():
        for notebook, job in {planned.notebook(stage, *job): job for job in keys}.items():
            names = ["scale", *given[stage], *(["table"] if stage == "table" and planned.table_key(*job) else [])]
            values = {name: ["some-key"] if name == "datasets" else "some-key" for name in names}
            if notebook:
                parameter_types = runner.list_parameters(paths.NOTEBOOKS / f"{notebook}.ipynb")
                for name, value in values.items():
                    params.check_parameter(notebook, name, value, parameter_types)
    assert given["finetune"] == ["model", "protocol", "datasets"]


def test_a_line_of_a_job_is_one_write(monkeypatch):
    """Otherwise, with PYTHONUNBUFFERED, lines of two jobs mix and one is lost."""
    writes = []
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(write=writes.append, flush=lambda: None))
    parent.report("start   10_corpora")
    assert [text for text in writes if text] == ["start   10_corpora\n"]


def test_one_process_runs_a_notebook_though_the_lock_was_deleted_while_it_waited(tmp_path, monkeypatch):
    path, waits = tmp_path / "page.lock", []

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 1:
            path.unlink()
            finished.close()

    with open(path, "w") as finished:
        fcntl.flock(finished, fcntl.LOCK_EX)
        monkeypatch.setattr(runner, "time", SimpleNamespace(sleep=wait))
        monkeypatch.setattr(runner, "LOCK_SECONDS", 2)
        with runner.hold_lock(path, "page"):
            assert artefacts.is_locked(path)
            with pytest.raises(StudyError, match="page is already running"), runner.hold_lock(path, "page"):
                pass
    assert not artefacts.is_locked(path)
