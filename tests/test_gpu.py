"""The measurement on a lent machine (tools/gpu.py): packed, run elsewhere until the time is over, taken over."""

import json
import shutil
import subprocess
import sys

import pytest
from conftest import Study

from lib.study import paths

TOOL = paths.ROOT / "tools" / "gpu.py"
# What a lent machine lacks of the study's environment, and WHEELS do not bring.
LACKING = ("IPython", "fugashi", "ipykernel", "itables", "nbclient", "nbformat", "papermill", "pycrfsuite",
           "snakemake", "sphinx")  # fmt: skip
RUN = "results/bert-general--ncbi-disease--lee.json"
JOBS = [["pretrain", "bert-general"], ["finetune", "bert-general", "ncbi-disease", "lee"]]


@pytest.fixture
def lent(study, tmp_path):
    """What is packed of a tiny study that has its text and no weights; and how the tool is run here and there."""
    (study.folder / "tools").mkdir()
    shutil.copy(TOOL, study.folder / "tools" / "gpu.py")
    for made in ("models", "predictions", "results"):
        (study.outputs / made).rename(tmp_path / made)
    environment = study.environment | {"STUDY_COMMIT": "abc", "STUDY_WORK": str(tmp_path / "work")}  # it is no git

    for package in LACKING:
        (tmp_path / "lacking" / package).mkdir(parents=True)
        (tmp_path / "lacking" / package / "__init__.py").write_text(f"raise ModuleNotFoundError('{package}')")

    def use(where, *words) -> str:
        clean = environment | ({} if where == "tools" else {"PYTHONPATH": str(tmp_path / "lacking")})
        place = study.folder / "tools" if where == "tools" else tmp_path / "packed"
        command = [sys.executable, "-P", str(place / "gpu.py"), *map(str, words)]
        done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True)
        return done.stdout + done.stderr

    packed = use("tools", "pack", "smoke", tmp_path / "packed", "--no-wheels")
    assert "2 jobs" in packed
    return use


def read_scores(folder) -> list[dict]:
    return [run["scores"] for run in json.loads((folder / RUN).read_text())["runs"]]


def test_what_ran_elsewhere_is_what_runs_here(lent, study: Study, tmp_path):
    first = lent("there", "run", 0, tmp_path / "out", 2)  # the time is over at once
    assert "0 jobs done, 0 failed, 0 broken off, 2 left" in first
    printed = lent("there", "run", 300, tmp_path / "out", 2)
    assert "2 jobs done, 0 failed, 0 broken off, 0 left" in printed
    notes = [json.loads(line) for line in (tmp_path / "out" / "jobs.jsonl").read_text().splitlines()]
    assert [note["job"] for note in notes] == JOBS and {note["problem"] for note in notes} == {""}
    other = study.outputs / "results" / "bert-general--bc2gm--lee.json"
    other.parent.mkdir()
    other.write_text(json.dumps({"runs": [{"inputs": {"model": "weights that were before"}}]}))
    recorded = study.folder / "outputs/record/smoke/results/bert-general--jnlpba--lee.json"
    recorded.parent.mkdir(parents=True)
    recorded.write_text("{}")
    said = lent("tools", "take", tmp_path / "out")  # its other result would be of weights that are gone
    assert "0 files taken over" in said and "did not come again: bert-general" in said
    recorded.unlink()
    assert "3 files taken over, 1 results of other weights" in lent("tools", "take", tmp_path / "out")
    assert not other.exists()
    assert read_scores(study.outputs) == read_scores(tmp_path)
    record = json.loads((study.outputs / "models/bert-general/record.json").read_text())
    assert record["commit"] == "abc" and not (study.outputs / "models/bert-general/model.safetensors").exists()
    assert "every run of the panels" in lent("tools", "pack", "smoke", tmp_path / "again")
    assert "every run of biobert-1m of the panels" in lent("tools", "pack", "smoke", tmp_path / "again", "biobert-1m")


def test_a_job_that_fails_is_named_and_keeps_what_needs_it_from_beginning(lent, tmp_path):
    lent("there", "run", 0, tmp_path / "out")
    shutil.rmtree(tmp_path / "work/outputs/smoke/tokens")
    printed = lent("there", "run", 300, tmp_path / "out", 1)
    assert "FAILED pretrain bert-general" in printed and "1 left" in printed
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"jobs.jsonl", "results.tar.xz"}
