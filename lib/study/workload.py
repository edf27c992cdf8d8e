"""How many trainings an encoder has on a dataset, and how long they take on this machine."""

from statistics import fmean

import torch
from torch.utils.benchmark import Timer

from lib.benchmarks import registry
from lib.benchmarks.datasets import Dataset
from lib.finetuning.settings import FinetuningSettings
from lib.finetuning.splits import Splits
from lib.modeling.loading import Encoder
from lib.study import open_study
from lib.training import training
from lib.training.settings import Machine

SAMPLE = 200  # instances of which lengths are measured


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
