"""Deletions before a run with `--again`, so that targets are rebuilt even if their settings have not changed.

Weights, results and tables stay until new ones replace them. A run that is then killed resumes without `--again`. Jobs
that read the new results rerun only if the content has changed (lib/study/receipts.py).
"""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lib.study import params, paths, receipts
from lib.study.page_jobs import BASELINE_PAGE
from lib.study.plan import Plan
from lib.study.study import Study


def forget_targets(plan: Plan) -> None:
    """Delete what marks the targets of a command line as done."""
    for stage, keys in plan.asked.items():
        for job in keys:
            for path in [*list_finished(plan, stage, job), paths.ROOT / receipts.name(plan.scale, stage, job)]:
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
    plan = Plan(scale)
    for key in datasets:
        (paths.ROOT / receipts.name(scale, "finetune", plan.name_job((model, key, protocol)))).unlink(missing_ok=True)


def list_finished(plan: Plan, stage: str, keys: Iterable[str]) -> Iterator[Path]:
    """Yield what marks a job as done, besides its receipt.

    This includes intermediate results that no command line can name.
    """
    scale, study = plan.scale, plan.study
    match stage, *keys:
        case "corpus", key:  # with the rows of its files, and the test sentences excluded from them
            folders = [paths.documents(scale, *file) for file in study.corpus(key).files]
            for folder in (paths.test_sentences(scale), *folders, paths.corpus(scale, key)):
                yield folder / "record.json"
        case "vocabulary", key:
            yield paths.vocabulary(scale, key) / "record.json"
        case "pretrain", key:  # with its packed text, word vectors and the checkpoint of a killed run
            model = study.model(key)
            vocabulary = model.vocabulary.key
            folders = [paths.tokens(scale, corpus.key, vocabulary) for corpus in model.corpora]
            vectors = paths.vectors(scale, model.settings.corpora, vocabulary, model.plan.embedding_width)
            for folder in (model.folder, *folders, vectors):
                yield folder / "record.json"
            yield model.folder.with_name(f".{key}.partial")
        case "tuning", *run:
            yield paths.tuning(scale, *run)
            yield from list_predictions(scale, run, "try.*")
        case "finetune", model, protocol, family:  # with the intermediate weights of its runs
            for run in plan.runs_in(model, protocol, family):
                yield from list_predictions(scale, run, "*")
                if first := study.protocol(protocol, run[1]).first_on:
                    yield paths.intermediate(scale, model, first, protocol)
                if model in params.BASELINES:  # their search is not a job of its own
                    yield paths.tuning(scale, *run)
        case "evaluation", model, protocol:
            for job in plan.evaluated(model, protocol):
                yield from list_finished(plan, "finetune", job)
                yield paths.ROOT / receipts.name(scale, "finetune", job)
        case "explored", model:
            yield paths.explored(scale, model) / "tagger" / "record.json"
        case "page", key if key == BASELINE_PAGE:
            for folder in ("baselines", "word-classes"):
                yield from paths.output(scale, folder).rglob("record.json")


def list_predictions(scale: str, run: Sequence[str], pattern: str) -> Iterator[Path]:
    """Return a run's prediction files, which also hold its records. `pattern`: a pattern for their last key."""
    path = paths.predictions(scale, *run, pattern)
    return path.parent.glob(path.name)
