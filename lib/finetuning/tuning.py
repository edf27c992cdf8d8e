"""Hyperparameter search with Optuna: the study is kept on disk, can be resumed and can be shared by many workers."""

from collections.abc import Callable
from pathlib import Path

import optuna
from optuna.trial import TrialState

from lib import artefacts

optuna.logging.set_verbosity(optuna.logging.WARNING)


def search(
    space: dict[str, list], score: Callable[[dict], float], trials: int, path: Path, name: str, seed: int
) -> list[dict]:
    """Try `trials` points of a space by the tree-structured Parzen estimator (Bergstra et al. 2013), best score first.

    `space`: the values of each setting; `score`: maps a point to the number to maximize; `path`: the SQLite file that
    holds the study `name`. Complete trials in the file count; a trial whose worker died stays incomplete. Returns each
    trial's settings with its number and `score`.
    """
    study = load_search(path, name)

    def try_point(trial: optuna.Trial) -> float:
        return score({key: trial.suggest_categorical(key, values) for key, values in space.items()})

    while sum(trial.state == TrialState.COMPLETE for trial in study.get_trials(deepcopy=False)) < trials:
        trial_count = len(study.get_trials(deepcopy=False))
        study.sampler = optuna.samplers.TPESampler(seed=seed * 10_007 + trial_count, constant_liar=True)
        study.optimize(try_point, n_trials=1)
    return list_trials(study)


def load_search(path: Path, name: str) -> optuna.Study:
    """Load the study of that name from a file, or create it."""
    with artefacts.locked(path):  # because two processes at once would both create the tables
        storage = optuna.storages.RDBStorage(f"sqlite:///{path}", engine_kwargs={"connect_args": {"timeout": 60}})
        return optuna.create_study(study_name=name, storage=storage, direction="maximize", load_if_exists=True)


def list_trials(study: optuna.Study) -> list[dict]:
    """List the complete trials, best first."""
    trials = [
        {"trial": trial.number, **trial.params, "score": trial.value}
        for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    ]
    return sorted(trials, key=lambda trial: (-trial["score"], trial["trial"]))


def weigh_settings(study: optuna.Study) -> dict[str, float]:
    """Return the share of the scores' variance that each setting explains (functional analysis of variance).

    Shares sum to 1. Returns {} if there are fewer than four trials or all scores are equal.
    """
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if len({trial.value for trial in trials}) < 2 or len(trials) < 4:
        return {}
    return optuna.importance.get_param_importances(study, evaluator=optuna.importance.FanovaImportanceEvaluator(seed=0))
