"""Deletions before a run with `--again`, so that targets are rebuilt even if their settings have not changed.

Weights, results and tables stay until new ones replace them. A run that is then killed resumes without `--again`. Jobs
that read the new results rerun only if the content has changed (lib/study/receipts.py).
"""

import shutil
from pathlib import Path

from lib.running.plan import Plan
from lib.running.runnable import Runnable
from lib.running.stages import STAGES
from lib.study import params, paths, receipts
from lib.study.study import Study


def forget_targets(plan: Plan) -> None:
    """Delete what marks the targets of a command line as done."""
    for stage, keys in plan.asked.items():
        for job in keys:
            for path in [
                *STAGES[stage].finished(plan.runnable, *job),
                paths.ROOT / receipts.name(plan.scale, stage, job),
            ]:
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
    receipts.forget_deleted(plan.scale)


def list_unsaved(study: Study, model: str, datasets: list[str], protocol: str, folder: Path) -> list[str]:
    """List the datasets for which an encoder's best model is not yet saved in a folder.

    Raises StudyError if something else is in its place.
    """
    from lib.finetuning import saved  # imported here because it takes seconds

    unsaved, seeds = [], params.list_seeds(study.encoder(model).key, study.scale)
    for dataset in datasets:
        finetuning = study.finetuning(model, dataset, protocol)
        saved.check_free(folder / dataset, finetuning.describe_saved(protocol))
        if not saved.is_complete(folder / dataset, finetuning.identify_saved(seeds)):
            unsaved.append(dataset)
    return unsaved


def forget_runs(scale: str, model: str, datasets: list[str], protocol: str) -> None:
    """Delete what marks an encoder's runs on some datasets as done; their predictions stay."""
    runnable = Runnable(scale)
    for dataset in datasets:
        job = runnable.name_job((model, dataset, protocol))
        (paths.ROOT / receipts.name(scale, "finetune", job)).unlink(missing_ok=True)
