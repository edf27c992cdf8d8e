"""The stages of the study: the notebook that does a stage's jobs, what they read, what reruns them, what they finish.

A job is a stage and its keys, such as `pretrain` and `pubmedbert`. The Snakefile has a rule for each stage; pages are
listed in lib/running/page_jobs.py.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lib.benchmarks import datasets
from lib.corpora import build, rows
from lib.finetuning import protocol as finetuning_settings
from lib.running.page_jobs import BASELINE_PAGE, PAGES, Jobs, each
from lib.running.state import (
    budget,
    dataset_files,
    dump,
    judged,
    printed,
    raw_files_state,
    readers,
    timed,
    vocabulary_files,
)
from lib.study import (
    dataset_texts,
    documents,
    exploring,
    hardware,
    open_study,
    params,
    paths,
    published,
    receipts,
    requests,
    vocabularies,
)
from lib.study.corpora import PROSE
from lib.study.settings import BASELINES_VERSION
from lib.vocabularies import learning

if TYPE_CHECKING:
    from lib.running.runnable import Runnable
    from lib.study import Study

FINETUNING = {  # family -> the notebook that fine-tunes
    **dict.fromkeys(("tagging", "pico"), "30_finetune_words"),
    **dict.fromkeys(("relations", "similarity", "documents", "inference", "answers", "ranking"), "31_finetune_texts"),
    "questions": "32_finetune_answers",
}
BASELINE = "15_japanese_baselines"


class Stage:
    """A kind of job. The keys of a job are those of its receipt, in the same order."""

    notebook_name = ""  # if one notebook does all jobs

    def notebook(self, *keys: str) -> str:
        """Return the notebook that does a job, or an empty string if there is none."""
        return self.notebook_name

    def reads(self, runnable: "Runnable", *keys: str) -> Jobs:
        """Return the jobs that a job reads, by stage."""
        return {}

    def state(self, runnable: "Runnable", *keys: str) -> dict | list:
        """Return what reruns a job when it changes, besides its notebook and the jobs that it reads."""
        raise NotImplementedError

    def finished(self, runnable: "Runnable", *keys: str) -> Iterator[Path]:
        """Yield what marks a job as done, besides its receipt.

        This includes intermediate results that no command line can name.
        """
        yield from ()


class TextsStage(Stage):
    """The hashes of every test sentence."""

    def state(self, runnable: "Runnable", *keys: str) -> list:
        return [raw_files_state(dataset_texts.test_files(runnable.study)), dataset_texts.VERSION, readers()]


class DocumentsStage(Stage):
    """The rows of one raw file of a source."""

    def reads(self, runnable: "Runnable", *keys: str) -> Jobs:
        return {"texts": [("all",)]}

    def state(self, runnable: "Runnable", source: str, file: str) -> list:
        files = [documents.raw_file(runnable.study, source, file), *runnable.study.mesh_tables]
        return [dump("sources", source, include={"reader", "language"}), rows.VERSION, raw_files_state(files)]


class CorpusStage(Stage):
    notebook_name = "10_corpora"

    def reads(self, runnable: "Runnable", key: str) -> Jobs:
        return {"documents": runnable.study.corpus(key).files}

    def state(self, runnable: "Runnable", key: str) -> dict:
        corpus = runnable.study.corpus(key)
        told = [*dump("cleaning", corpus.settings.cleaning, include=PROSE), *dump("selections", include=PROSE)]
        return corpus.settings.model_dump() | {"told": told, "version": build.VERSION} | corpus.recipe

    def finished(self, runnable: "Runnable", key: str) -> Iterator[Path]:
        """Yield the records of the corpus, of the rows of its files, and of the test sentences excluded from them."""
        folders = [paths.documents(runnable.scale, *file) for file in runnable.study.corpus(key).files]
        for folder in (paths.test_sentences(runnable.scale), *folders, paths.corpus(runnable.scale, key)):
            yield folder / "record.json"


class VocabularyStage(Stage):
    notebook_name = "20_vocabularies"

    def reads(self, runnable: "Runnable", key: str) -> Jobs:
        return {"corpus": each(params.load("vocabularies", key).corpora)}

    def state(self, runnable: "Runnable", key: str) -> dict:
        vocabulary = runnable.study.vocabulary(key)
        return vocabulary.settings.model_dump() | {"version": learning.VERSION} | vocabulary.recipe

    def finished(self, runnable: "Runnable", key: str) -> Iterator[Path]:
        yield paths.vocabulary(runnable.scale, key) / "record.json"


class PretrainStage(Stage):
    notebook_name = "23_pretrain"

    def reads(self, runnable: "Runnable", model: str) -> Jobs:
        settings = params.load("models", model)
        return {
            "corpus": each(settings.corpora),
            "vocabulary": runnable.vocabulary_jobs([settings.vocabulary]),
            "pretrain": runnable.pretrain_jobs(settings.initial or ""),
        }

    def state(self, runnable: "Runnable", model: str) -> dict:
        """Return what the weights depend on, and what the model's page shows besides."""
        shown = params.load("models", model).model_dump(include=params.TOLD)
        shown |= budget(runnable.study, "precision", "processes")
        version = params.load_pretraining(model, runnable.scale).version
        return params.identify_weights(model, runnable.scale) | shown | {"version": version}

    def finished(self, runnable: "Runnable", key: str) -> Iterator[Path]:
        """Yield the model's record, those of its packed text and word vectors, and the checkpoint of a killed run."""
        model = runnable.study.model(key)
        vocabulary = model.vocabulary.key
        folders = [paths.tokens(runnable.scale, corpus.key, vocabulary) for corpus in model.corpora]
        vectors = paths.vectors(runnable.scale, model.settings.corpora, vocabulary, model.plan.embedding_width)
        for folder in (model.folder, *folders, vectors):
            yield folder / "record.json"
        yield model.folder.with_name(f".{key}.partial")


class TuningStage(Stage):
    """The search of settings of one model on one dataset under one protocol."""

    notebook_name = "32_tuning"

    def reads(self, runnable: "Runnable", model: str, *keys: str) -> Jobs:
        return {"pretrain": runnable.pretrain_jobs(model)}

    def state(self, runnable: "Runnable", *run: str) -> dict:
        return finetuning_state(runnable.study, *run)

    def finished(self, runnable: "Runnable", *run: str) -> Iterator[Path]:
        yield paths.tuning(runnable.scale, *run)
        yield from list_predictions(runnable.scale, run, "try.*")


class FinetuneStage(Stage):
    """The runs of one model under one protocol on the datasets of one family."""

    def notebook(self, model: str, protocol: str, family: str) -> str:
        return BASELINE if model in params.BASELINES else FINETUNING[family]

    def reads(self, runnable: "Runnable", *job: str) -> Jobs:
        model = job[0]
        if model in params.BASELINES:  # their word vectors are trained on it
            return {"corpus": [("ja-clinical",)]}
        tuned_runs = [run for run in runnable.runs_in(*job) if runnable.study.protocol(run[2], run[1]).trials]
        return {"pretrain": runnable.pretrain_jobs(model), "tuning": tuned_runs}

    def state(self, runnable: "Runnable", *job: str) -> dict:
        runs = {}
        for run in runnable.runs_in(*job):
            runs[run[1]] = finetuning_state(runnable.study, *run) | self.saved(runnable.scale, run)
        return runs

    def saved(self, scale: str, run: params.RunKey) -> dict:
        """Return the folder to save a run's model in; empty if saving was not requested."""
        folder = requests.name_save_folder(scale, *run)
        return {"saved in": str(folder)} if folder else {}

    def finished(self, runnable: "Runnable", *job: str) -> Iterator[Path]:
        """Yield the files of all runs, and the intermediate weights that they start from."""
        for run in runnable.runs_in(*job):
            model, dataset, protocol = run
            yield from list_predictions(runnable.scale, run, "*")
            if first := runnable.study.protocol(protocol, dataset).first_on:
                yield paths.intermediate(runnable.scale, model, first, protocol)
            if model in params.BASELINES:  # their search is not a job of its own
                yield paths.tuning(runnable.scale, *run)


class TableStage(Stage):
    def notebook(self, table: str) -> str:
        return params.load("tables", table).notebook

    def reads(self, runnable: "Runnable", table: str) -> Jobs:
        runs = runnable.runs_of_tables.get(table)  # None: a table without scores, so without baselines
        return {} if runs is None else {"finetune": runnable.finetune_jobs(runs), "page": [(BASELINE_PAGE,)]}

    def state(self, runnable: "Runnable", key: str) -> list:
        study, table, others = runnable.study, params.load("tables", key), []
        models = published.list_models(study, key) if table.kind in ("scores", "curves") else []
        match table.kind:
            case "curves":
                others = dump("tables", *filter(None, (*table.of, table.sizes)))
            case "times":
                models = [*table.rows.values()]
                others = [timed(open_study("paper")), timed(study), hardware.read_hardware().model_dump()]
            case "counts":
                others = [dataset_files(study)]
            case "lengths":
                others = [vocabulary_files(study), dataset_files(study)]
        registered = [dump("models", model) for model in models if params.is_model(model)]
        planned = budget(study, "title", "compared", "substitutes", "panels")
        return [table.model_dump(), registered, others, planned, judged()]


class PageStage(Stage):
    """The notebooks that take no key."""

    def notebook(self, page: str) -> str:
        return page

    def reads(self, runnable: "Runnable", page: str) -> Jobs:
        jobs = {}
        for kind, keys in PAGES[page].reads(runnable.study).items():
            match kind:
                case "runs":
                    jobs["finetune"] = runnable.finetune_jobs(keys)
                case "vocabularies":
                    jobs["vocabulary"] = runnable.vocabulary_jobs(key for (key,) in keys)
                case stage:
                    jobs[stage] = keys
        return jobs

    def state(self, runnable: "Runnable", page: str) -> object:
        return PAGES[page].watches(runnable.study)

    def finished(self, runnable: "Runnable", page: str) -> Iterator[Path]:
        if page == BASELINE_PAGE:
            for folder in ("baselines", "word-classes"):
                yield from paths.output(runnable.scale, folder).rglob("record.json")


class ExploredStage(Stage):
    """What an encoder makes of a sentence."""

    notebook_name = "02_explore_an_encoder"

    def reads(self, runnable: "Runnable", model: str) -> Jobs:
        common = vocabularies.choose_common(runnable.study)
        return {
            "pretrain": runnable.pretrain_jobs(model),
            "vocabulary": runnable.vocabulary_jobs(vocabulary.key for vocabulary in common),
        }

    def state(self, runnable: "Runnable", model: str) -> dict:
        return finetuning_state(runnable.study, model, exploring.DATASET, exploring.PROTOCOL)

    def finished(self, runnable: "Runnable", model: str) -> Iterator[Path]:
        yield paths.explored(runnable.scale, model) / "tagger" / "record.json"


class EvaluationStage(Stage):
    """A user's encoder on a paper's benchmarks."""

    notebook_name = "02_evaluate"

    def reads(self, runnable: "Runnable", model: str, protocol: str) -> Jobs:
        return {"finetune": runnable.evaluation_jobs(model, protocol)}

    def state(self, runnable: "Runnable", model: str, protocol: str) -> list:
        return [requests.read_request(runnable.scale, model, protocol), printed()]

    def finished(self, runnable: "Runnable", model: str, protocol: str) -> Iterator[Path]:
        for job in runnable.evaluation_jobs(model, protocol):
            yield from STAGES["finetune"].finished(runnable, *job)
            yield paths.ROOT / receipts.name(runnable.scale, "finetune", job)


STAGES = {  # in the order in which jobs are listed
    "texts": TextsStage(),
    "documents": DocumentsStage(),
    "corpus": CorpusStage(),
    "vocabulary": VocabularyStage(),
    "pretrain": PretrainStage(),
    "tuning": TuningStage(),
    "finetune": FinetuneStage(),
    "table": TableStage(),
    "evaluation": EvaluationStage(),
    "explored": ExploredStage(),
    "page": PageStage(),
}


def finetuning_state(study: "Study", model: str, dataset: str, protocol: str) -> dict:
    """Return what the runs on a dataset depend on, besides pretraining here.

    `first`: the same for the dataset that the protocol trains on first.
    """
    data = study.dataset(dataset)
    files = datasets.list_data_files(file for part in data.parts for file in data.paths(*part))
    settings = study.protocol(protocol, dataset)
    version = BASELINES_VERSION if model in params.BASELINES else finetuning_settings.VERSION
    inputs = {"reader's version": data.edition, "files": raw_files_state(files)}
    if settings.first_on and settings.first_on != dataset:
        inputs["first"] = finetuning_state(study, model, settings.first_on, protocol)
    if params.is_released(model, study.scale):  # no job makes its weights
        inputs |= params.load(params.find_kind(model), model).model_dump(include={"released", "revision"})
    return settings.model_dump() | budget(study, "seeds", "precision", "threads") | {"version": version} | inputs


def list_predictions(scale: str, run: params.RunKey, pattern: str) -> Iterator[Path]:
    """Return a run's prediction files, which also hold its records. `pattern`: a pattern for their last key."""
    path = paths.predictions(scale, *run, pattern)
    return path.parent.glob(path.name)
