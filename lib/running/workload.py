"""The number of trainings for a dataset, their time on this machine, and the size of public weights."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import torch
from torch.utils.benchmark import Timer
from transformers import AutoModel, PretrainedConfig, PreTrainedModel

from lib.benchmarks.datasets import Dataset
from lib.corpora.cleaning import segment_japanese
from lib.finetuning.protocol import FinetuningSettings
from lib.finetuning.splits import Splits
from lib.modeling.loading import LONGEST, Encoder
from lib.modeling.models import configure
from lib.study import params, paths
from lib.training import training
from lib.training.optimization import Machine
from lib.vocabularies import words

if TYPE_CHECKING:
    from lib.running.plan import Plan
    from lib.study import Study

SAMPLE = 200  # instances whose lengths are measured
COUNTED_BY = "bert-cased"  # the vocabulary that counts tokens of texts before any model is there


def count_runs(study: "Study", key: str, protocol: str) -> tuple[int, int]:
    """Return the number of seeds and folds of a model on a dataset, without the runs that settings are chosen by."""
    dataset = study.dataset(key)
    settings = study.protocol(protocol, key)
    return len(study.budget.seeds[: settings.runs]), min(dataset.folds, settings.folds or dataset.folds)


def count_trainings(study: "Study", dataset: str, protocol: str) -> int:
    """Count the trainings of a model on a dataset: for each candidate or trial of settings, then each seed and fold."""
    settings = study.protocol(protocol, dataset)
    candidates, (seeds, folds) = len(settings.candidates()), count_runs(study, dataset, protocol)
    return (settings.trials or candidates if candidates > 1 else 0) + seeds * folds


def count_read_tokens(encoder: Encoder, dataset: Dataset, settings: FinetuningSettings) -> float:
    """Count the tokens that an encoder reads in one training on a dataset, averaged over candidates.

    Lengths are estimated from the first SAMPLE instances of the training set.
    """
    splits = Splits(encoder, dataset, settings)
    instances = splits.read("train", 1)
    sample = instances[:SAMPLE]
    sequences = splits.task(1).encode(sample)
    n_sequences = len(sequences) * len(instances) / len(sample)
    length = fmean(len(sequence.tokens) for sequence in sequences)
    read_counts = [
        settings.steps * candidate["batch_size"]
        if settings.steps
        else settings.count_epochs(candidate, round(n_sequences)) * n_sequences
        for candidate in settings.candidates()
    ]
    return fmean(read_counts) * length


def measure_speed(encoder: Encoder, dataset: Dataset, settings: FinetuningSettings, machine: Machine) -> float:
    """Measure the training speed of an encoder on a dataset, in tokens a second, on a few of its sequences."""
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


def share_cut(study: "Study", encoder: Encoder, dataset: str, protocol: str) -> tuple[float, float]:
    """Return the shares of training words that hold an unknown token, and that are cut into three tokens or more.

    Raises StudyError if the vocabulary knows too few of the words.
    """
    data = study.dataset(dataset)
    instances = Splits(encoder, data, study.protocol(protocol, dataset)).read("train", 1)
    texts = [text for instance in instances for text in instance.inputs]
    if data.language == "ja":
        texts = map(segment_japanese, texts)
    return words.measure_words(encoder.tokenizer, texts, dataset)


def count_cut(study: "Study", encoder: Encoder, dataset: str, protocol: str) -> dict[str, tuple[int, int]]:
    """Count, for each split, the instances longer than a sequence, and all instances.

    Longer texts are cut off; longer sentences with entities are read in several sequences.
    """
    splits, counts = Splits(encoder, study.dataset(dataset), study.protocol(protocol, dataset)), {}
    for split in splits.dataset.files:
        sequences, instances = splits.encode(split, 1), splits.read(split, 1)
        sequence_counts = Counter(sequence.instance for sequence in sequences)
        n_longer = sum(count > 1 for count in sequence_counts.values()) or splits.cut[split, 1]
        counts[split] = n_longer, len(instances)
    return counts


def estimate_hours(study: "Study", runs: Iterable[tuple[Encoder, str, str]]) -> float:
    """Estimate the hours to train encoders on datasets under protocols on this machine.

    An encoder's speed is measured on the first of its datasets; encoders with the same tokenizer read the same tokens.
    Reading, scoring, and the datasets that a protocol fine-tunes on first are not counted.
    """
    tokens, speeds, hours = {}, {}, 0.0
    for encoder, key, protocol in runs:
        data_and_settings = study.dataset(key), study.protocol(protocol, key)
        tokens_key = id(encoder.tokenizer), key, protocol
        if tokens_key not in tokens:
            tokens[tokens_key] = count_trainings(study, key, protocol) * count_read_tokens(encoder, *data_and_settings)
        if id(encoder) not in speeds:
            speeds[id(encoder)] = measure_speed(encoder, *data_and_settings, study.machine)
        hours += tokens[tokens_key] / speeds[id(encoder)] / 3600
    return hours


def describe_downloads(plan: "Plan") -> str:
    """Describe the cost of a plan with public weights: models, gigabytes of weights in float32, trainings, hours."""
    runs = [run for job in plan.jobs["finetune"] for run in plan.runnable.runs_in(*job) if params.find_kind(run[0])]
    models = {model for model, *_ in runs}
    gigabytes = sum(4 * count_encoder_parameters(plan.study, model) for model in models) / 1e9
    trainings = sum(count_trainings(plan.study, dataset, protocol) for _, dataset, protocol in runs)
    source = "in $RELEASED" if paths.released("") else "from the hub, less what its cache holds"
    message = f"{len(models)} models with public weights, about {gigabytes:.1f} GB {source}; {trainings:,} trainings"
    if why_not := plan.study.vocabulary(COUNTED_BY).why_not:
        return f"{message}; hours cannot be told without vocabulary '{COUNTED_BY}': {why_not}"
    hours = estimate_runs(plan.study, runs)
    return f"{message}, about {hours:,.1f} hours, one at a time on this machine, less what is done"


def count_encoder_parameters(study: "Study", model: str) -> int:
    """Count the parameters of a registered model's encoder without loading it; for a published one, as printed."""
    if params.find_kind(model) == "encoders":
        return round(params.load("encoders", model).parameters * 1e6)
    with torch.device("meta"):
        return AutoModel.from_config(study.model(model).configs[0]).num_parameters()


@dataclass(frozen=True, kw_only=True)
class Stand(Encoder):
    """An encoder with random weights, which takes as long to train as a pretrained one."""

    config: PretrainedConfig

    def body(self, dropout: float) -> PreTrainedModel:
        return AutoModel.from_config(self.config)


def estimate_runs(study: "Study", runs: list[params.RunKey]) -> float:
    """Estimate the hours of training for some runs on this machine.

    Tokens are those of BERT's vocabulary, and the speed is that of a random model of the same architecture and size. A
    published encoder is counted as BERT.
    """
    stands, stand_runs = {}, []
    tokenizer = study.vocabulary(COUNTED_BY).tokenizer()
    for model, dataset, protocol in runs:
        settings = params.load(params.find_kind(model), model)
        kind = architecture, size = getattr(settings, "architecture", "bert"), settings.size
        if kind not in stands:
            config, _ = configure(architecture, study.budget.bodies[size], len(tokenizer), LONGEST, dropout=0.1)
            stands[kind] = Stand(
                title=model, source="", revision="", fingerprint="", tokenizer=tokenizer, max_length=LONGEST,
                architecture=architecture, parameters=0, config=config,
            )  # fmt: skip
        stand_runs.append((stands[kind], dataset, protocol))
    return estimate_hours(study, stand_runs)
