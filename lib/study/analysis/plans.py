"""What a scale plans to pretrain and to fine-tune, how long that takes by the runs so far, and what it took."""

import math
from statistics import fmean, median, stdev

import pandas as pd
import torch
from torch.utils.benchmark import Timer

from lib import artefacts
from lib.benchmarks import registry
from lib.benchmarks.datasets import Dataset
from lib.finetuning.settings import FinetuningSettings
from lib.finetuning.splits import Splits
from lib.modeling.loading import Encoder
from lib.study import open_study, params, paths, results, stages
from lib.training import training
from lib.training.settings import Machine

COLUMNS = ["kind", "what", "on", "runs planned", "runs made", "minutes each", "minutes planned", "minutes taken", "sd",
           "error"]  # fmt: skip
MINUTE, HOUR = 60, 60  # seconds, minutes
SAMPLE = 200  # instances of which lengths are measured


def build(scale: str) -> pd.DataFrame:
    """A line a model to pretrain, then a line a dataset and protocol to fine-tune under.

    Minutes are of training on the threads of one run; evaluation, reading and starting come on top. `minutes each`: the
    median of the runs made on a dataset; of a model, its pieces at the median speed of finished ones of its
    architecture and size. `sd`: of the main score over seeds, the mean over models; `error`: the standard error that a
    difference of two models on this one set then has.
    """
    jobs = stages.plan(scale, stages.whole_study(scale)).values()
    models = [job.keys["model"] for job in jobs if job.stage.name == "pretrain"]
    runs = [(job.keys["model"], job.keys["dataset"], job.keys["setting"]) for job in jobs
            if job.stage.name == "finetune" and job.keys["model"] not in params.BASELINES]  # fmt: skip
    lines = pd.DataFrame([*plan_pretraining(models, scale), *plan_finetuning(runs, scale)], columns=COLUMNS)
    return lines.assign(**{"minutes planned": lines["minutes each"] * lines["runs planned"]})


def plan_pretraining(models: list[str], scale: str) -> list[dict]:
    """A line for each model that has text to train on."""
    records = {key: artefacts.read_record(paths.model(scale, key)) for key in models if count_pieces(key, scale)}
    speeds: dict[tuple[str, str], list[float]] = {}
    for key, record in records.items():
        if record and record["seconds"]:  # rounded: what took less than half of one has no speed
            speeds.setdefault(find_kind(key), []).append(record["tokens"] / record["seconds"])
    lines = []
    for key, record in records.items():
        pieces, speed = count_pieces(key, scale), speeds.get(find_kind(key))
        text = ", then ".join(params.list_texts(key))
        line = {"kind": "pretraining", "what": key, "on": f"{pieces:,} pieces: {text}"}
        line |= {"runs planned": 1, "runs made": int(record is not None)}
        line["minutes each"] = pieces / median(speed) / MINUTE if speed else math.nan
        lines.append(line | {"minutes taken": record["seconds"] / MINUTE if record else 0.0})
    return lines


def find_kind(model: str) -> tuple[str, str]:
    """What decides how fast a model trains."""
    settings = params.load("models", model)
    return settings.architecture, settings.size


def count_pieces(model: str, scale: str) -> int:
    """The pieces that a model is trained on at a scale, without those of a model that it continues."""
    phases = params.load_pretraining(model, scale).phases
    return sum(phase.steps * phase.batch_size * phase.length for phase in phases)


def plan_finetuning(runs: list[params.RunKey], scale: str) -> list[dict]:
    """A line for each dataset and protocol, over all models that are planned on it."""
    groups: dict[tuple[str, str], list[str]] = {}
    for model, dataset, protocol in runs:
        groups.setdefault((dataset, protocol), []).append(model)
    lines = []
    for (dataset, protocol), models in groups.items():
        found = [result for model in models if (result := results.read(scale, model, dataset, protocol))]
        minutes = [run["seconds"] / MINUTE for result in found for run in result["runs"]]
        seeds, folds = count_runs(dataset, protocol, scale)
        spread = find_spread(found)
        line = {"kind": f"fine-tuning: {registry.lookup(dataset).family}", "what": dataset}
        line |= {"on": f"{protocol}: {', '.join(models)}", "runs planned": len(models) * seeds * folds}
        line |= {"runs made": len(minutes), "minutes each": median(minutes) if minutes else math.nan}
        lines.append(line | {"minutes taken": sum(minutes), "sd": spread, "error": spread * math.sqrt(2 / seeds)})
    return lines


def count_runs(key: str, protocol: str, scale: str) -> tuple[int, int]:
    """Seeds and folds of a model on a dataset; what settings are chosen by comes on top."""
    study, dataset = open_study(scale), registry.lookup(key)
    settings = study.protocol(protocol, key)
    return len(study.budget.seeds[: settings.runs]), min(dataset.folds, settings.folds or dataset.folds)


def count_trainings(dataset: str, protocol: str, scale: str) -> int:
    """Trainings of a model on a dataset: of each candidate that settings are chosen from, then every seed and fold."""
    settings = open_study(scale).protocol(protocol, dataset)
    candidates, (seeds, folds) = len(settings.candidates()), count_runs(dataset, protocol, scale)
    return (settings.trials or candidates if candidates > 1 else 0) + seeds * folds


def count_tokens(encoder: Encoder, dataset: Dataset, settings: FinetuningSettings) -> float:
    """Tokens that an encoder reads in a training on a dataset, the mean over candidates.

    The first SAMPLE instances of the training set stand for the length of all.
    """
    splits = Splits(encoder, dataset, settings)
    instances = splits.read("train", 1)
    sample = instances[:SAMPLE]
    sequences = splits.task(1).encode(sample)
    in_all = len(sequences) * len(instances) / len(sample)
    length = fmean(len(sequence.tokens) for sequence in sequences)
    read = [
        settings.steps * one["batch_size"] if settings.steps else settings.count_epochs(one, round(in_all)) * in_all
        for one in settings.candidates()
    ]
    return fmean(read) * length


def measure_speed(encoder: Encoder, dataset: Dataset, settings: FinetuningSettings, machine: Machine) -> float:
    """Tokens a second of training an encoder on a dataset, by steps on a few of its sequences."""
    torch.set_num_threads(machine.threads)
    device = training.accelerator(machine.precision)
    splits = Splits(encoder, dataset, settings.model_copy(update={"train_instances": 8}))
    task, sequences = splits.task(1), splits.encode("train", 1)
    model = task.build(encoder.body(settings.dropout), splits.read("train", 1)).to(device.device).train()
    batch = {name: tensor.to(device.device) for name, tensor in task.collate(sequences).items()}

    def step() -> None:
        with device.autocast():
            loss = model.loss(batch)
        loss.backward()

    timer = Timer("step()", globals={"step": step}, num_threads=machine.threads)
    return sum(len(sequence.tokens) for sequence in sequences) / timer.blocked_autorange(min_run_time=2).median


def estimate_hours(encoder: Encoder, datasets: list[str], protocol: str, scale: str) -> float:
    """Hours that the trainings of an encoder take on this machine.

    Reading and scoring come on top, and what a protocol fine-tunes on before.
    """
    study = open_study(scale)
    sets = {key: (study.dataset(key), study.protocol(protocol, key)) for key in datasets}
    tokens = sum(count_trainings(key, protocol, scale) * count_tokens(encoder, *found) for key, found in sets.items())
    return tokens / measure_speed(encoder, *next(iter(sets.values())), study.machine) / 3600


def find_spread(found: list[dict]) -> float:
    """The standard deviation of the main score over seeds, the mean over models; nan without two seeds of any."""
    scores = [[one[result["main score"]] for one in results.by_seed(result).values()] for result in found]
    spreads = [stdev(values) for values in scores if len(values) > 1]
    return fmean(spreads) if spreads else math.nan


def describe(lines: pd.DataFrame, scale: str) -> str:
    """What the plan comes to, in sentences made from its numbers (Markdown)."""
    said = []
    for kind, found in lines.groupby(lines["kind"].str.split(":").str[0], sort=False):
        blank = found["minutes each"].isna().sum()
        unknown = f", without {blank} lines that no run was made of" if blank else ""
        planned, taken = found["minutes planned"].sum() / HOUR, found["minutes taken"].sum() / HOUR
        said.append(
            f"{kind.capitalize()}: {found['runs made'].sum()} of {found['runs planned'].sum()} runs are made; planned "
            f"{planned:.1f} hours{unknown}, taken {taken:.1f}."
        )
    both = lines[["minutes planned", "minutes taken"]].sum() / HOUR
    threads = params.load("scales", scale).threads
    said.append(
        f"In all {both['minutes planned']:.1f} hours planned and {both['minutes taken']:.1f} taken, of runs on "
        f"{threads} thread{'s' if threads > 1 else ''} each; two at a time take half of that."
    )
    families = lines[lines["kind"].str.startswith("fine-tuning")].groupby("kind")["error"].median().dropna()
    if len(families):
        said.append(
            "Twice the standard error of a difference on one set, the median over the sets of a family: "
            + ", ".join(f"{kind.split(': ')[1]} {2 * error:.1f}" for kind, error in families.items())
            + " points. A smaller difference is not seen on one set alone."
        )
    return "\n".join(f"- {line}" for line in said)
