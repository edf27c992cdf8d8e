"""What `--again` deletes before a run, so that it is made anew whatever its identity says.

Weights, results and tables stay until others take their place. A run that is then killed goes on without `--again`, and
what reads the new ones is done again where their content has changed (lib/study/receipts.py).
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

from lib.study import params, paths, receipts
from lib.study.page_jobs import BASELINE_PAGE
from lib.study.plan import Plan
from lib.study.study import Study


def forget_targets(plan: Plan) -> None:
    """Take away what says that the targets of a command line are done."""
    for stage, keys in plan.asked.items():
        for one in keys:
            forget_job(plan, stage, *one)
    receipts.forget_deleted(plan.scale)


def forget_job(plan: Plan, stage: str, *keys: str) -> None:
    for path in FINISHED[stage](plan, *keys) if stage in FINISHED else ():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    (paths.ROOT / receipts.name(plan.scale, stage, keys)).unlink(missing_ok=True)


def list_unsaved(study: Study, model: str, datasets: list[str], protocol: str, folder: Path) -> list[str]:
    """The datasets of which an encoder's best model is not in a folder yet; StudyError where something else is."""
    from lib.finetuning import saved  # here, as it takes seconds

    unsaved, seeds = [], params.list_seeds(study.encoder(model).key, study.scale)
    for key in datasets:
        work = study.finetuning(model, key, protocol)
        saved.check_free(folder / key, work.describe_saved({"protocol": protocol}))
        if not saved.is_complete(folder / key, work.identify_saved(seeds)):
            unsaved.append(key)
    return unsaved


def forget_runs(scale: str, model: str, datasets: list[str], protocol: str) -> None:
    """Take away what says that an encoder's runs on some datasets are done; their predictions stay."""
    plan = Plan(scale)
    for key in datasets:
        (paths.ROOT / receipts.name(scale, "finetune", plan.name_job((model, key, protocol)))).unlink(missing_ok=True)


def list_corpus_files(plan: Plan, key: str) -> Iterator[Path]:
    """With the rows of its files and the test sentences that they are without, which no command line names."""
    folders = [paths.documents(plan.scale, *file) for file in plan.files_of(key)]
    for folder in (paths.test_sentences(plan.scale), *folders, paths.corpus(plan.scale, key)):
        yield folder / "record.json"


def list_vocabulary_files(plan: Plan, key: str) -> Iterator[Path]:
    yield paths.vocabulary(plan.scale, key) / "record.json"


def list_model_files(plan: Plan, key: str) -> Iterator[Path]:
    """With its packed text, its word vectors and the checkpoint of a run that was killed."""
    model = plan.study.model(key)
    vocabulary = model.vocabulary.key
    folders = [model.folder, *(paths.tokens(plan.scale, corpus.key, vocabulary) for corpus in model.corpora)]
    folders.append(paths.vectors(plan.scale, model.settings.corpora, vocabulary, model.plan.embedding_width))
    for folder in folders:
        yield folder / "record.json"
    yield model.folder.with_name(f".{key}.partial")


def list_tuning_files(plan: Plan, *run: str) -> Iterator[Path]:
    yield paths.tuning(plan.scale, *run)
    tried = paths.predictions(plan.scale, *run, "try.*")
    yield from tried.parent.glob(tried.name)


def list_run_files(plan: Plan, model: str, protocol: str, family: str) -> Iterator[Path]:
    """The predictions of its runs, which have their records; with the weights that they start from."""
    for run in plan.runs_in(model, protocol, family):
        predicted = paths.predictions(plan.scale, *run, "*")
        yield from predicted.parent.glob(predicted.name)
        if first := plan.study.protocol(protocol, run[1]).first_on:
            yield paths.intermediate(plan.scale, model, first, protocol)
        if model in params.BASELINES:  # whose search is no job of its own
            yield paths.tuning(plan.scale, *run)


def list_evaluation_files(plan: Plan, model: str, protocol: str) -> Iterator[Path]:
    """With its runs, which no command line names."""
    for job in plan.evaluated(model, protocol):
        yield from list_run_files(plan, *job)
        yield paths.ROOT / receipts.name(plan.scale, "finetune", job)


def list_page_files(plan: Plan, key: str) -> Iterator[Path]:
    if key == BASELINE_PAGE:
        for folder in ("baselines", "word-classes"):
            yield from paths.output(plan.scale, folder).rglob("record.json")


FINISHED = {
    "corpus": list_corpus_files,
    "vocabulary": list_vocabulary_files,
    "pretrain": list_model_files,
    "tuning": list_tuning_files,
    "finetune": list_run_files,
    "evaluation": list_evaluation_files,
    "page": list_page_files,
}
