"""Searches on disk: resumed, shared, and gone on with after a kill."""

import os
import signal
import subprocess
import sys
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


def test_the_best_point_is_found_and_comes_first(tmp_path):
    trials = tuning.search(SPACE, peak, 20, tmp_path / "s.sqlite", "a", seed=1)
    assert len(trials) == 20
    assert {key: trials[0][key] for key in SPACE} == {"x": 2, "y": 1e-3} and trials[0]["score"] == 0
    assert [t["score"] for t in trials] == sorted((t["score"] for t in trials), reverse=True)
    shares = tuning.weigh_settings(tuning.load_search(tmp_path / "s.sqlite", "a"))
    assert shares["x"] > shares["y"] and sum(shares.values()) == pytest.approx(1)


def test_a_search_resumes_and_the_same_seed_proposes_the_same(tmp_path):
    seen, other = [], []
    score = lambda point: seen.append(point) or peak(point)  # noqa: E731
    for trials, total in ((3, 3), (5, 5), (5, 5)):
        assert len(tuning.search(SPACE, score, trials, tmp_path / "s.sqlite", "a", seed=1)) == total == len(seen)
    tuning.search(SPACE, lambda point: other.append(point) or peak(point), 5, tmp_path / "t.sqlite", "a", seed=1)
    assert other == seen
    tuning.search(SPACE, score, 1, tmp_path / "s.sqlite", "another study", seed=1)
    assert len(seen) == 6


def test_a_search_on_another_machine_starts_anew(tmp_path):
    settings = open_study("smoke").protocol("ozyurt-tuned", "ncbi-disease")
    names = []
    for machine in (Machine(), Machine(threads=2), Machine()):
        work = Finetuning(
            SimpleNamespace(fingerprint="w"), registry.lookup("ncbi-disease").at(paths.MADE_UP), settings,
            run_file=tmp_path.joinpath, search_file=tmp_path / "s.sqlite", machine=machine,
        )  # fmt: skip
        names.append(work.name_search(1))
    assert names[0] == names[2] != names[1]


WORKER = """
import sys
from pathlib import Path
from lib.finetuning import tuning
def score(point):
    print("trial", flush=True)
    sys.stdin.readline()  # waits until the input is closed
    return -point["x"]
tuning.search({"x": [0, 1, 2, 3]}, score, int(sys.argv[2]), Path(sys.argv[1]), "a", 1)
"""


def start_worker(folder, trials: int) -> subprocess.Popen:
    """Start a search in a process of its own, and return when it is in its first trial, where it waits."""
    command = [sys.executable, "-c", WORKER, str(folder / "s.sqlite"), str(trials)]
    environment = os.environ | {"PYTHONPATH": str(paths.ROOT)}
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert worker.stdout.readline() == "trial\n"
    return worker


def test_the_trial_of_a_killed_worker_is_not_counted(tmp_path):
    worker = start_worker(tmp_path, 2)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    assert len(tuning.search({"x": SPACE["x"]}, lambda point: -point["x"], 2, tmp_path / "s.sqlite", "a", seed=1)) == 2
    trials = tuning.load_search(tmp_path / "s.sqlite", "a").get_trials()
    assert [trial.state for trial in trials] == [TrialState.RUNNING, TrialState.COMPLETE, TrialState.COMPLETE]


def test_several_workers_share_one_search(tmp_path):
    workers = [start_worker(tmp_path, 8) for _ in range(2)]
    further = [worker.communicate(timeout=120)[0].count("trial") for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0]
    assert further == [7, 0]  # beside the first trial of each, of which the second worker's became superfluous
    trials = tuning.load_search(tmp_path / "s.sqlite", "a").get_trials()
    assert {trial.state for trial in trials} == {TrialState.COMPLETE}


def test_a_repeated_pretraining_is_searched_under_its_own_seed(monkeypatch):
    class Work:
        encoder = SimpleNamespace(key="pubmedbert.2")

        def choose(self, seed):
            raise StudyError(f"searched under seed {seed}")

    monkeypatch.setattr(Study, "finetuning", lambda *asked: Work())
    assert params.list_seeds("pubmedbert.2", "weekend") == [2]
    with pytest.raises(StudyError, match="^searched under seed 2$"):
        open_study("weekend").tune("pubmedbert.2", "ncbi-disease", "ozyurt-tuned")
