"""What makes a job run again, besides its input jobs: settings, versions, raw files, printed numbers, cells.

The code of lib never does: each computation has a version, which is raised by hand. `--again` reruns anything.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from lib import provenance
from lib.benchmarks import datasets, registry
from lib.corpora import build, rows
from lib.finetuning import protocol as finetuning_settings
from lib.study import (
    dataset_texts,
    documents,
    exploring,
    hardware,
    open_study,
    params,
    paths,
    published,
    requests,
)
from lib.study.corpora import PROSE
from lib.study.settings import BASELINES_VERSION
from lib.vocabularies import learning

if TYPE_CHECKING:
    from lib.study import Study


def dump(kind: str, *named: str, **options) -> list:
    """Return the settings of the named keys, or of all registered ones."""
    return [params.load(kind, key).model_dump(**options) for key in named or params.keys(kind)]


def budget(study: "Study", *named: str) -> dict:
    """Return the named settings of a scale, or all of them."""
    return study.budget.model_dump(include=set(named) or None)


def raw_files_state(files: Iterable[Path]) -> list:
    """Return name, size and time of raw files: enough to see that one has changed."""
    return [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in files]


def readers() -> dict[str, int]:
    """Return the version of every dataset's reader, which is raised when the same files are read differently."""
    return {key: dataset.version for key, dataset in registry.DATASETS.items()}


def dataset_files(study: "Study") -> list:
    """Return the state of the datasets' files and the versions of their readers."""
    return [raw_files_state(registry.files(study.data)), readers()]


def vocabulary_files(study: "Study") -> list:
    return raw_files_state(sorted(study.data.glob("vocab/*.txt")))


def printed() -> list[str]:
    """Return fingerprints of the papers' numbers, so that pages that show them run again when one is corrected."""
    return [provenance.file_fingerprint(path) for path in sorted(paths.PUBLISHED.glob("*.csv"))]


def recorded_tables(scale: str, *named: str) -> list[str]:
    """Return fingerprints of the named tables that a scale has in the record."""
    files = [paths.recorded(paths.table(scale, name)) for name in named]
    return [provenance.file_fingerprint(file) for file in files if file.exists()]


def measured() -> list[str]:
    """Return fingerprints of the committed measurements of benchmarks/."""
    return [provenance.file_fingerprint(file) for file in sorted(paths.output("record", "benchmarks").glob("*.csv"))]


def dump_tables(*kinds: str) -> list:
    """Return the settings of the published tables and figures of some kinds."""
    return dump("tables", *params.load_tables(*kinds))


def timed(study: "Study") -> dict:
    """Return what decides the size of a scale's models and steps, and how steps are computed."""
    names = ("bodies", "vocabulary_size", "sequence_length", "precision", "threads", "pretraining", "made_up")
    return budget(study, *names)


def documents_of(study: "Study", source: str, file: str) -> list:
    files = [documents.raw_file(study, source, file), *study.mesh_tables]
    return [dump("sources", source, include={"reader", "language"}), rows.VERSION, raw_files_state(files)]


def corpus_state(study: "Study", key: str) -> dict:
    corpus = study.corpus(key)
    prose = {"told": [*dump("cleaning", corpus.settings.cleaning, include=PROSE), *dump("selections", include=PROSE)]}
    return corpus.settings.model_dump() | prose | {"version": build.VERSION} | corpus.recipe


def vocabulary_state(study: "Study", key: str) -> dict:
    vocabulary = study.vocabulary(key)
    return vocabulary.settings.model_dump() | {"version": learning.VERSION} | vocabulary.recipe


def pretraining_state(study: "Study", model: str) -> dict:
    """Return what the weights depend on, and what the model's page shows besides."""
    page_state = params.load("models", model).model_dump(include=params.TOLD) | budget(study, "precision", "processes")
    version = params.load_pretraining(model, study.scale).version
    return params.identify_weights(model, study.scale) | page_state | {"version": version}


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


def saved(study: "Study", *run: str) -> dict:
    """Return the folder to save a run's model in; empty if saving was not requested."""
    folder = requests.name_save_folder(study.scale, *run)
    return {"saved in": str(folder)} if folder else {}


def evaluation_state(study: "Study", model: str, protocol: str) -> list:
    return [requests.read_request(study.scale, model, protocol), printed()]


def table_state(study: "Study", key: str) -> list:
    table, others = params.load("tables", key), []
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
    return [table.model_dump(), registered, others, planned, printed()]


STAGES = {
    "texts": lambda study, key: [raw_files_state(dataset_texts.test_files(study)), dataset_texts.VERSION, readers()],
    "documents": documents_of,
    "corpus": corpus_state,
    "vocabulary": vocabulary_state,
    "pretrain": pretraining_state,
    "tuning": finetuning_state,
    "finetune": lambda study, *runs: {run[1]: finetuning_state(study, *run) | saved(study, *run) for run in runs},
    "table": table_state,
    "evaluation": evaluation_state,
    "explored": lambda study, model: finetuning_state(study, model, exploring.DATASET, exploring.PROTOCOL),
}
