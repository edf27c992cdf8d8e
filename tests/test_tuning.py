"""Searches on disk: resumed, shared, and gone on with after a kill."""

import math
import os
import signal
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import pytest
from optuna.trial import TrialState

from lib.benchmarks import registry
from lib.errors import StudyError
from lib.finetuning import tuning
from lib.finetuning.finetuning import Finetuning
from lib.study import open_study, params, paths
from lib.study.study import Study
from lib.training.optimization import Machine

SPACE = {"x": [0, 1, 2, 3], "y": [1e-4, 1e-3]}


def peak(point: dict) -> float:
    return -((point["x"] - 2) ** 2) - (0.5 if point["y"] < 5e-4 else 0.0)


def test_the_best_is_found_and_comes_first(tmp_path):
    trials = tuning.search(SPACE, peak, 20, tmp_path / "s.sqlite", "a", seed=1)
    assert len(trials) == 20
    assert {key: trials[0][key] for key in SPACE} == {"x": 2, "y": 1e-3} and trials[0]["score"] == 0
    assert [t["score"] for t in trials] == sorted((t["score"] for t in trials), reverse=True)
    shares = tuning.weigh_settings(tuning.load_search(tmp_path / "s.sqlite", "a"))
    assert shares["x"] > shares["y"] and sum(shares.values()) == pytest.approx(1)


def test_a_search_goes_on_where_it_was_and_the_same_seed_proposes_the_same(tmp_path):
    seen = []
    score = lambda point: seen.append(point) or peak(point)  # noqa: E731
    tuning.search(SPACE, score, 3, tmp_path / "s.sqlite", "a", seed=1)
    tuning.search(SPACE, score, 5, tmp_path / "s.sqlite", "a", seed=1)
    assert len(seen) == 5
    assert len(tuning.search(SPACE, score, 5, tmp_path / "s.sqlite", "a", seed=1)) == 5 and len(seen) == 5
    other = []
    tuning.search(SPACE, lambda point: other.append(point) or peak(point), 5, tmp_path / "t.sqlite", "a", seed=1)
    assert other == seen
    tuning.search(SPACE, score, 1, tmp_path / "s.sqlite", "another study", seed=1)
    assert len(seen) == 6


def test_a_search_on_a_machine_that_computes_otherwise_begins_anew(tmp_path):
    dataset = registry.lookup("ncbi-disease").at(paths.MADE_UP)
    settings, file = open_study("smoke").protocol("ozyurt-tuned", "ncbi-disease"), tmp_path / "s.sqlite"
    work = Finetuning(
        SimpleNamespace(fingerprint="w"), dataset, settings, run_file=lambda run: tmp_path / run, search_file=file,
        machine=Machine(),
    )  # fmt: skip
    tuning.search(SPACE, peak, 2, file, work.name_search(1), seed=1)
    found = []
    for machine in (Machine(threads=2), Machine()):
        work.machine = machine
        found.append(len(tuning.load_search(file, work.name_search(1)).get_trials()))
    assert found == [0, 2]


WORKER = """
import sys, time
from pathlib import Path
from lib.finetuning import tuning
def score(point):
    print("trial", flush=True)
    time.sleep(float(sys.argv[2]))
    return -point["x"]
print(len(tuning.search({"x": [0, 1, 2, 3]}, score, int(sys.argv[3]), Path(sys.argv[1]), "a", 1)), flush=True)
"""


def start(tmp_path, seconds: float, trials: int) -> subprocess.Popen:
    command = [sys.executable, "-c", textwrap.dedent(WORKER), str(tmp_path / "s.sqlite"), str(seconds), str(trials)]
    return subprocess.Popen(command, cwd=paths.ROOT, stdout=subprocess.PIPE, text=True,
                            env=os.environ | {"PYTHONPATH": str(paths.ROOT)})  # fmt: skip


def test_the_trial_of_a_killed_worker_does_not_count(tmp_path):
    worker = start(tmp_path, 60, 2)
    assert worker.stdout.readline() == "trial\n"
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    assert len(tuning.search({"x": SPACE["x"]}, lambda point: -point["x"], 2, tmp_path / "s.sqlite", "a", seed=1)) == 2
    trials = tuning.load_search(tmp_path / "s.sqlite", "a").get_trials()
    assert [trial.state for trial in trials] == [TrialState.RUNNING, TrialState.COMPLETE, TrialState.COMPLETE]


def test_several_workers_share_one_search(tmp_path):
    workers = [start(tmp_path, 0.3, 8) for _ in range(2)]
    printed = [worker.communicate(timeout=120)[0].splitlines() for worker in workers]
    assert all(worker.returncode == 0 for worker in workers)
    tried = [lines.count("trial") for lines in printed]
    assert min(tried) > 0 and 8 <= sum(tried) <= 9  # each may end one that the other made superfluous
    assert not any(math.isnan(trial.value) for trial in tuning.load_search(tmp_path / "s.sqlite", "a").get_trials())


def test_a_model_pretrained_again_is_searched_under_the_seed_that_its_fine_tuning_looks_for(monkeypatch):
    class Work:
        encoder = SimpleNamespace(key="pubmedbert.2")

        def choose(self, seed):
            raise StudyError(f"searched under seed {seed}")

    monkeypatch.setattr(Study, "finetuning", lambda *asked: Work())
    assert params.list_seeds("pubmedbert.2", "weekend") == [2]
    with pytest.raises(StudyError, match="^searched under seed 2$"):
        open_study("weekend").tune("pubmedbert.2", "ncbi-disease", "ozyurt-tuned")
