"""One encoder's results as one portable JSON file: page 02 writes it, page 03 reads it (docs/results_format.md)."""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, TypeAdapter

from lib import artefacts, provenance
from lib.benchmarks import registry
from lib.errors import StudyError, unknown
from lib.places import show_path
from lib.settings import Settings
from lib.study import own_sets, params, parsing, paths, requests, results, scores, show

if TYPE_CHECKING:
    from lib.benchmarks.datasets import Dataset
    from lib.study import Study

VERSION = 1  # of the schema; raised when older files can no longer be read
TASK_TYPES = {  # family -> MTEB's task type, or the hub's where MTEB has none
    "tagging": "TokenClassification", "pico": "TokenClassification", "relations": "RelationClassification",
    "similarity": "STS", "inference": "PairClassification", "documents": "Classification",
    "answers": "Classification", "questions": "QuestionAnswering", "ranking": "Reranking",
}  # fmt: skip
LANGUAGES = {"en": "eng-Latn", "ja": "jpn-Jpan"}
PARTS = ("train", "dev", "test")
ROUNDED = 0.006  # how far a mean rounded to two decimals may be from the mean of the scores
DESCRIBED = "docs/results_format.md"
NOT_ALWAYS = {"device": "", "versions": {}, "jackknife": []}  # fields that a run may lack -> the value then

Key = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
Number = Annotated[float, Field(allow_inf_nan=False)]
Points = Annotated[Number, Field(ge=-100, le=100)]


class Data(Settings):
    """A dataset and its revision: the fingerprint of its files, and of each part; empty if not kept."""

    path: Key
    revision: str
    parts: dict[str, str]
    reader: str


class Score(Settings):
    """The scores of one run on the test part. `main_score`: in points; None if undefined."""

    seed: int
    fold: int
    main_score: Points | None
    scores: dict[str, Number | None]
    jackknife: list[Number | None]
    instances: dict[str, int]
    collapsed: str
    seconds: Number
    device: str
    commit: str
    versions: dict[str, str]


class Task(Settings):
    """One dataset with its runs and their summary. `main_score` is the name of a score, as in MTEB's metadata."""

    task_name: str
    task_type: str
    dataset: Data
    split: Literal["test"]
    languages: list[str]
    metric: str
    main_score: str
    scores: Annotated[list[Score], Field(min_length=1)]
    mean: Points | None
    std: Number | None
    interval: Annotated[list[Number], Field(min_length=2, max_length=2)] | None
    settings: dict
    baselines: dict[str, Points]

    def by_seed(self) -> list[float]:
        """Return the main score of each seed, averaged over folds; nan if undefined."""
        seed_scores = defaultdict(list)
        for run in self.scores:
            seed_scores[run.seed].append(math.nan if run.main_score is None else run.main_score)
        return [fmean(values) for values in seed_scores.values()]


class ModelEntry(Settings):
    """The encoder. `revision`: the fingerprint of its weights."""

    name: Key
    title: str
    source: str
    revision: str
    n_parameters: int | None


class ResultFile(Settings):
    """The content of a file."""

    schema_version: Literal[1]
    model: ModelEntry
    protocol: Key
    scale: Key
    made_up: bool
    results: Annotated[list[Task], Field(min_length=1)]


@dataclass(frozen=True)
class Sent:
    """A result file and its source, as pages name it."""

    source: str
    content: ResultFile

    @property
    def what(self) -> tuple[str, str, str]:
        """What identifies a file: model, protocol and scale."""
        return self.content.model.name, self.content.protocol, self.content.scale


def describe_encoder(study: "Study", model: str, protocol: str, keys: Iterable[str]) -> dict:
    """Return the file's content for one encoder under a protocol: numbers, never texts of a dataset.

    `keys`: datasets; those without a result, and users' folders that have changed since, are left out. Empty if none is
    left.
    """
    encoder_results = []
    for key in keys:
        if own_sets.has_changed(study.scale, key):
            print(f"left out of the file: {key}: its folder is gone or has changed since")
        elif result := results.read_result(study.scale, model, key, protocol):
            encoder_results.append(result)
    if not encoder_results:
        return {}
    runs = [run for result in encoder_results for run in result["runs"]]
    weights = sorted({run["inputs"]["model"] for run in runs if "inputs" in run})
    sizes = [run["body parameters"] for run in runs if "body parameters" in run]
    model_entry = {
        "name": model,
        "title": encoder_results[0]["model title"],
        "source": find_source(study, model, protocol),
        "revision": ", ".join(weights),
        "n_parameters": max(sizes, default=None),
    }
    baselines = find_baselines(study, [result["dataset"] for result in encoder_results])
    tasks = [describe_task(study.dataset(result["dataset"]), result, baselines) for result in encoder_results]
    head = {"schema_version": VERSION, "model": model_entry, "protocol": protocol, "scale": study.scale}
    content = head | {"made_up": study.budget.made_up, "results": tasks}
    return TypeAdapter(dict).dump_python(content, mode="json")  # null for nan, which JSON lacks


def describe_task(dataset: "Dataset", result: dict, baselines: dict[str, dict[str, float]]) -> dict:
    """Return the runs of a result and their summary."""
    summary, first_run = scores.summarize_runs(result), result["runs"][0]
    inputs = first_run.get("inputs", {})
    parts = {name: value for name, value in inputs.items() if name.split()[0] in PARTS}
    revision = provenance.fingerprint(parts) if parts else ""
    return {
        "task_name": dataset.title,
        "task_type": name_task(dataset),
        "dataset": {"path": dataset.key, "revision": revision, "parts": parts, "reader": inputs.get("reader", "")},
        "split": "test",
        "languages": [LANGUAGES[dataset.language]],
        "metric": dataset.metric,
        "main_score": result["main score"],
        "scores": [describe_score(run, result["main score"]) for run in result["runs"]],
        "mean": summary["ours"],
        "std": summary["ours_std"],
        "interval": None if math.isnan(summary["low"]) else [float(summary["low"]), float(summary["high"])],
        "settings": {
            name: value for name, value in first_run["settings"].items() if name not in ("seed", "fold", "split")
        },
        "baselines": baselines.get(dataset.key, {}),
    }


def name_task(dataset: "Dataset") -> str:
    """Return the type of a dataset's task."""
    is_multilabel = dataset.family == "documents" and dataset.multilabel
    return "MultilabelClassification" if is_multilabel else TASK_TYPES[dataset.family]


def describe_score(run: dict, main_score: str) -> dict:
    """Return one run in the form of the file."""
    fields = {name: run[name] for name in ("seed", "fold", "scores", "instances", "collapsed", "seconds", "commit")}
    optional_fields = {name: run.get(name, missing) for name, missing in NOT_ALWAYS.items()}
    return fields | optional_fields | {"main_score": run["scores"][main_score]}


def find_source(study: "Study", model: str, protocol: str) -> str:
    """Return where an encoder comes from: its name on the hub, its folder's name, or pretraining here; else empty."""
    if params.is_released(model, study.scale):
        return params.describe_weights(model)
    if params.is_model(model):
        return f"pretrained at scale {study.scale}"
    source = requests.find_request(study.scale, model, protocol)["source"]
    return Path(source).name if Path(source).is_absolute() else source


def find_baselines(study: "Study", keys: list[str]) -> dict[str, dict[str, float]]:
    """Return the baselines for the main score of datasets: dataset -> kind of baseline -> score."""
    baselines = {}
    for row in own_sets.list_all_baselines(study, keys).to_dict("records"):
        key = row["dataset"]
        if key in keys and row["score"] == study.dataset(key).main_score:
            kinds = results.BASELINES.values()
            baselines[key] = {kind: row[kind] for kind in kinds if not math.isnan(row[kind])}
    return baselines


def write_result_file(study: "Study", model: str, protocol: str, keys: Iterable[str]) -> list[Path]:
    """Write an encoder's file below outputs/<scale>/. Return its path, or an empty list if nothing has been run."""
    path = paths.result_file(study.scale, model, protocol)
    if content := describe_encoder(study, model, protocol, keys):
        artefacts.write_json(path, content)
    return [path] if content else []


def read_folders(folders: Iterable[Path], made_up: bool) -> list[Sent]:
    """Read the result files of some folders, each once.

    Raises StudyError for a folder that is missing or has no such file, for a file that `read_result_file` rejects, for
    made-up data on a page of real data or the reverse, and for two files of one model, protocol and scale that differ.
    """
    files = {}  # the first of each model, protocol and scale
    for path in [path for folder in folders for path in find_result_files(folder)]:
        file = Sent(name_source(path), read_result_file(path))
        if file.content.made_up != made_up:
            kinds = ("made-up", "real") if made_up else ("real", "made-up")
            raise StudyError(f"{file.source}: this page is of {kinds[0]} data, and its scores are on {kinds[1]} data")
        first = files.setdefault(file.what, file)
        if first.content != file.content:
            name, protocol, scale = file.what
            error = f"{first.source} and {file.source} differ, and both are of {name} under {protocol} at scale {scale}"
            raise StudyError(f"{error}: keep one of them")
    return list(files.values())


def find_result_files(folder: Path) -> list[Path]:
    """List the JSON files of a folder. Raises StudyError if it is missing or has none."""
    if not folder.is_dir():
        raise StudyError(f"no folder {show_path(folder)}")
    if not (files := sorted(folder.glob("*.json"))):
        hint = "./run_all.sh evaluate writes them to outputs/<scale>/result-files/"
        raise StudyError(f"{show_path(folder)}: no result file (*.json) in it; {hint}")
    return files


def name_source(path: Path) -> str:
    """Name a file for messages and pages, always with its folder, because files that people send may share a name."""
    name = show_path(path)
    return f"{path.parent.name}/{name}" if name == path.name else name


def read_result_file(path: Path) -> ResultFile:
    """Read and check a result file. Raises StudyError that names the file, the field and the problem."""
    source = name_source(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StudyError(f"{source}: damaged ({error}); ask for it again, or take it out of the folder") from None
    version = content.get("schema_version") if isinstance(content, dict) else None
    if version is None:
        raise StudyError(f"{source}: not a result file ({DESCRIBED}); take it out of the folder")
    if version != VERSION:
        raise StudyError(f"{source}: schema_version: {version}, but this version of the study reads {VERSION}")
    return check_result_file(source, parsing.check_settings(source, content, ResultFile))


def check_result_file(place: str, content: ResultFile) -> ResultFile:
    """Return the file if it is consistent.

    Raises StudyError if its parts contradict each other, or if its protocol, the model's name or a main score does not
    fit the study.
    """
    if content.protocol not in params.keys("protocols"):
        raise StudyError(f"{place}: {unknown('protocol', content.protocol, params.keys('protocols'))}")
    if content.model.name in show.REFERENCES.values():
        raise StudyError(
            f"{place}: model.name: a baseline is called '{content.model.name}'; name the encoder otherwise"
        )
    counts = Counter(task.dataset.path for task in content.results)
    for task in content.results:
        key = task.dataset.path
        location = f"{place}: results, {key}"
        if counts[key] > 1:
            raise StudyError(f"{location}: {counts[key]} times; keep one")
        if len({(run.seed, run.fold) for run in task.scores}) < len(task.scores):
            raise StudyError(f"{location}, scores: a seed and fold stand twice; keep one")
        dataset = registry.DATASETS.get(key)
        if dataset and dataset.main_score != task.main_score:
            raise StudyError(f"{location}, main_score: '{task.main_score}', but here it is '{dataset.main_score}'")
        mean = fmean(task.by_seed())
        stated_mean = math.nan if task.mean is None else task.mean
        if math.isnan(mean) != math.isnan(stated_mean) or abs(mean - stated_mean) > ROUNDED:
            raise StudyError(
                f"{location}, mean: {stated_mean:.2f}, but its scores have {mean:.2f}; ask for the file again"
            )
    return content
