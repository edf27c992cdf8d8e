"""The measurement on another machine (tools/gpu.py): packed, run elsewhere until the time is over, taken over."""

import json
import multiprocessing
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import Study
from golden import write

from lib import provenance
from lib.errors import StudyError
from lib.study import paths
from tools import gpu

TOOL = paths.ROOT / "tools" / "gpu.py"
# What the other machine lacks of the study's environment, and WHEELS do not bring.
LACKING = ("IPython", "fugashi", "ipykernel", "itables", "nbclient", "nbformat", "papermill", "pycrfsuite",
           "snakemake", "sphinx")  # fmt: skip
RUN = "results/bert-general--ncbi-disease--lee.json"
JOBS = [["pretrain", "bert-general"], ["finetune", "bert-general", "ncbi-disease", "lee"]]


class PackedStudy:
    """A tiny study with its text but no weights, packed; `here` runs the tool in it, `there` in what was packed."""

    def __init__(self, finished: Study, folder: Path):
        self.folder, self.study = folder, Study(folder / "study")
        shutil.copytree(finished.folder, self.study.folder, symlinks=True)
        write(self.study.folder / "tools" / "gpu.py", TOOL.read_bytes())
        for made in ("models", "predictions", "results"):
            (self.study.outputs / made).rename(folder / made)
        for package in LACKING:
            write(folder / "lacking" / package / "__init__.py", f"raise ModuleNotFoundError('{package}')")
        self.pack_output = self.here("pack", "smoke", folder / "packed", "--no-wheels")
        self.first_output = self.there("run", 0, folder / "out", 2)  # the time is over at once

    def run(self, *command, **variables) -> str:
        environment = self.study.environment | {"STUDY_COMMIT": "abc"} | variables  # the copy is no git repository
        command = [sys.executable, *map(str, command)]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)
        return done.stdout + done.stderr

    def here(self, *words) -> str:
        return self.run("-P", self.study.folder / "tools/gpu.py", *words)

    def there(self, *words, work: Path | str = "work") -> str:
        variables = {"PYTHONPATH": str(self.folder / "lacking"), "STUDY_WORK": str(self.folder / work)}
        return self.run("-P", self.folder / "packed/gpu.py", *words, **variables)


@pytest.fixture(scope="module")
def packed_study(finished_study, tmp_path_factory) -> PackedStudy:
    return PackedStudy(finished_study, tmp_path_factory.mktemp("packed"))


def test_a_recipe_that_no_panel_has_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(provenance, "commit", lambda: "abc")
    with pytest.raises(StudyError, match="unknown recipe 'bert-genral': did you mean bert-general"):
        gpu.pack("smoke", tmp_path, ["pubmedbert", "bert-genral"])


def test_a_process_that_dies_fails_its_job_and_nothing_else():
    crew, job = gpu.Crew("smoke", 1), ("pretrain", "bert-general")
    for is_working in (True, False):
        ours, theirs = multiprocessing.Pipe()
        crew.processes[ours] = SimpleNamespace(exitcode=-9)
        crew.idle.append(ours)
        if is_working:
            crew.start(job)
        theirs.close()  # with its job unread, or before it got one
        if not is_working:
            crew.start(job)
        ((failed, _, problem),) = crew.finish(1.0)
        assert (failed, problem, crew.idle, crew.busy) == (job, "its process ended with -9", [], {})


def read_scores(folder) -> list[dict]:
    return [run["scores"] for run in json.loads((folder / RUN).read_text())["runs"]]


def test_what_ran_elsewhere_is_what_runs_here(packed_study, tmp_path):
    assert "2 jobs" in packed_study.pack_output
    assert "0 jobs done, 0 failed, 0 broken off, 2 left" in packed_study.first_output
    shutil.copytree(packed_study.folder / "work", tmp_path / "work")  # before anything has run
    study, out = packed_study.study, packed_study.folder / "out"
    printed = packed_study.there("run", 300, out, 2, work=tmp_path / "work")
    assert "2 jobs done, 0 failed, 0 broken off, 0 left" in printed
    notes = [json.loads(line) for line in (out / "jobs.jsonl").read_text().splitlines()]
    assert [note["job"] for note in notes] == JOBS and {note["problem"] for note in notes} == {""}
    before = json.dumps({"runs": [{"inputs": {"model": "weights that were before"}}]})
    other = write(study.outputs / "results" / "bert-general--bc2gm--lee.json", before)
    recorded = write(study.folder / "outputs/record/smoke/results/bert-general--jnlpba--lee.json", "{}")
    said = packed_study.here("take", out)  # its other result would be of weights that are gone
    assert "0 files taken over" in said and "did not come again: bert-general" in said
    recorded.unlink()
    assert "3 files taken over, 1 results of other weights" in packed_study.here("take", out)
    assert not other.exists()
    assert read_scores(study.outputs) == read_scores(packed_study.folder)
    record = json.loads((study.outputs / "models/bert-general/record.json").read_text())
    assert record["commit"] == "abc" and not (study.outputs / "models/bert-general/model.safetensors").exists()
    output = packed_study.here("pack", "smoke", tmp_path / "again", "bert-general")
    assert "every run of bert-general of the panels" in output


def test_a_job_that_fails_is_named_and_keeps_what_needs_it_from_beginning(packed_study, tmp_path):
    shutil.copytree(packed_study.folder / "work", tmp_path / "work")
    shutil.rmtree(tmp_path / "work/outputs/smoke/tokens")
    printed = packed_study.there("run", 300, tmp_path / "out", 1, work=tmp_path / "work")
    assert "FAILED pretrain bert-general" in printed and "1 left" in printed
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"jobs.jsonl", "results.tar.xz"}
