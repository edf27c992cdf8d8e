"""Hyperparameters searched with Optuna: the study lies on disk, goes on after a kill, and many workers may share it."""

from collections.abc import Callable
from pathlib import Path

import optuna
from optuna.study import MaxTrialsCallback
from optuna.trial import TrialState

from lib import artefacts

optuna.logging.set_verbosity(optuna.logging.WARNING)


def search(
    space: dict[str, list], score: Callable[[dict], float], trials: int, path: Path, name: str, seed: int
) -> list[dict]:
    """Try `trials` points of a space by the tree-structured Parzen estimator (Bergstra et al. 2013), best score first.

    `space`: the values of each setting; `score`: a point to the number to maximise; `path`: of the SQLite file that
    holds the study `name`. Complete trials that are there count; one whose worker died never becomes complete. Returns
    each trial's settings with its number and `score`.
    """
    study = load_search(path, name)
    done = MaxTrialsCallback(trials, states=(TrialState.COMPLETE,))

    def try_point(trial: optuna.Trial) -> float:
        return score({key: trial.suggest_categorical(key, values) for key, values in space.items()})

    while sum(trial.state == TrialState.COMPLETE for trial in study.get_trials(deepcopy=False)) < trials:
        proposed = len(study.get_trials(deepcopy=False))
        study.sampler = optuna.samplers.TPESampler(seed=seed * 10_007 + proposed, constant_liar=True)
        study.optimize(try_point, n_trials=1, callbacks=[done])
    return list_trials(study)


def load_search(path: Path, name: str) -> optuna.Study:
    """The study of that name in a file, made where there is none."""
    with artefacts.locked(path):  # two at once would both make the tables
        storage = optuna.storages.RDBStorage(f"sqlite:///{path}", engine_kwargs={"connect_args": {"timeout": 60}})
        return optuna.create_study(study_name=name, storage=storage, direction="maximize", load_if_exists=True)


def list_trials(study: optuna.Study) -> list[dict]:
    """The complete trials, the best first."""
    trials = [
        {"trial": trial.number, **trial.params, "score": trial.value}
        for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    ]
    return sorted(trials, key=lambda trial: (-trial["score"], trial["trial"]))


def weigh_settings(study: optuna.Study) -> dict[str, float]:
    """How much each setting explains of the scores, shares of 1 (functional analysis of variance); {} of few trials."""
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if len({trial.value for trial in trials}) < 2 or len(trials) < 4:
        return {}
    return optuna.importance.get_param_importances(study, evaluator=optuna.importance.FanovaImportanceEvaluator(seed=0))
