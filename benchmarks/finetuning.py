"""Fine-tuning: the study's loop against the Trainer of `transformers`, in sentences a second and in F1.

    python -m benchmarks.finetuning [case ...] [--sentences N] [--repetitions N]
    python -m benchmarks.finetuning scores [--repetitions N]

Both sides (benchmarks/paired.py) fine-tune the same model, from the same random weights, on the same tokens: three
epochs of tagging made-up sentences with AdamW and dropout 0.1. The sentences are as many as BC5CDR-chem's training
sentences and about as long. The first epoch is timed apart from the later ones because it builds kernels for each new
shape; both sides keep the same number of kernels (lib/training/training.py). Shares leave out products of padding.

The Trainer runs as in examples/pytorch/token-classification/run_ner.py: AutoModelForTokenClassification,
DataCollatorForTokenClassification, which pads to the longest sentence of a batch, labels on first tokens only, every
other setting at its default, nothing saved. The study's loop tells glibc to keep freed memory. `evaluation` is
prediction on the same sentences.

`scores`: F1 on BC5CDR-chem's development set after three epochs of 1,500 sentences, with another seed for each
repetition, from the study's pubmedbert, which must have been pretrained at scale laptop.

Writes its rows into outputs/record/benchmarks/finetuning.csv, keeping those of other cases and devices, and into
finetuning-scores.csv.
"""

import itertools
import statistics
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from transformers import (
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    PretrainedConfig,
    PreTrainedTokenizerBase,
)

from benchmarks import paired
from lib.benchmarks import metrics, registry
from lib.benchmarks.instances import Sentence
from lib.finetuning import predictions, tagging
from lib.finetuning.examples import BucketedBatches, Example
from lib.finetuning.protocol import FinetuningSettings
from lib.modeling import costs, heads, loading, models
from lib.modeling.shape import Body
from lib.progress import Progress
from lib.study import open_study, results
from lib.training import optimizers, training

DATASET, SCALE, PRETRAINED = "bc5cdr-chem", "laptop", "pubmedbert"
EPOCHS, LENGTH, VOCABULARY, RATE = 3, 128, 8_192, 5.0e-4
SENTENCES = 4_560  # of the training set of BC5CDR-chem
PARTS = {"first epoch": 3, "later epochs": 3, "evaluation": 1}  # of a run -> its matrix products, in forward passes


@dataclass(frozen=True)
class Case:
    """An encoder, its batch size, and the share of all sentences that it trains on."""

    title: str
    body: Body
    batch: int
    share: float = 1.0  # smaller for a large body, because its steps take longer


BASE = Body(layers=12, hidden=768, heads=12, intermediate=3072, embedding=768)
CASES = {
    "mini-16": Case("BERT-mini, 16 a step", paired.MINI, 16),
    "mini-32": Case("BERT-mini, 32 a step", paired.MINI, 32),
    "base-16": Case("BERT-base, 16 a step", BASE, 16, 0.1),
}


@dataclass(frozen=True)
class Work:
    """The work of both sides: fine-tune the encoder in a folder on sentences, then tag others."""

    folder: Path  # of encoder and tokenizer
    sentences: list[Sentence]
    asked: list[Sentence]
    batch: int
    seed: int


# The model and its sentences.


def make_sentences(count: int, words: int = 3000) -> list[Sentence]:
    """Make tagged sentences of made-up words, about as long as BC5CDR's training sentences.

    They have 25 words on average, and half of them 14 to 32; BC5CDR's have 26 on average, and half of them 16 to 32.
    """
    rng = np.random.default_rng(0)
    lengths = np.clip(np.exp(rng.normal(np.log(22), 0.55, count)), 3, 110).astype(int)
    shares = 1 / np.arange(1, words + 1)
    word_ids = [rng.choice(words, length, p=shares / shares.sum()) for length in lengths]
    tags = [["B" if word % 17 == 0 else "O" for word in ids] for ids in word_ids]
    return [
        Sentence([f"p{word}" for word in ids], sentence_tags) for ids, sentence_tags in zip(word_ids, tags, strict=True)
    ]


def save_encoder(body: Body, folder: Path) -> None:
    """Save a made-up tokenizer and the random weights that both sides start from."""
    tokenizer = paired.make_tokenizer(VOCABULARY, folder)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    models.encoder_of(models.build_model("bert", body, len(tokenizer), LENGTH, 0.1)).save_pretrained(folder)


def make_task(sentences: list[Sentence], tokenizer: PreTrainedTokenizerBase) -> tagging.Tagging:
    return tagging.Tagging(registry.lookup(DATASET), read_settings(), tokenizer, sentences, LENGTH)


def read_settings() -> FinetuningSettings:
    return open_study(SCALE).protocol("gu", DATASET)


# One run of one side, in its own process.


def run_ours(work: Work) -> dict:
    """Fine-tune and tag with the study's loop, as lib/finetuning/finetuning.py calls it."""
    device, encoder = training.accelerator("auto"), loading.load_encoder(work.folder)
    task = make_task(work.sentences, encoder.tokenizer)
    torch.manual_seed(work.seed)
    model, sequences = task.build(encoder.body(0.1), work.sentences), task.encode(work.sentences)
    options = {"batch_size": work.batch, "epochs": EPOCHS, "steps": None, "seed": work.seed}
    batches = paired.Timed(BucketedBatches(sequences, task.collate, **options))
    result = describe_work(model.config, sequences)
    training.train(
        model, batches, lambda module, batch: module.loss(batch), device=device, seed=work.seed,
        settings=read_settings().optimization(), progress=Progress("benchmark"),
        rate_of=lambda step: RATE * optimizers.slanted_triangle(step, len(batches), 0.1),
    )  # fmt: skip
    result |= split_epochs([*batches.times, time.perf_counter()], len(sequences))
    test_sequences = task.encode(work.asked)
    start = time.perf_counter()
    labels = predictions.predict(model, task, test_sequences, device)
    return (
        result
        | {"evaluation": len(test_sequences) / (time.perf_counter() - start)}
        | rate_tags(task, work.asked, labels)
    )


def run_trainer(work: Work, keeps_memory: bool = False) -> dict:
    """Fine-tune and tag with the Trainer, as run_ner uses it.

    `keeps_memory`: tell glibc to keep freed memory, as the study's loop always does.
    """
    if keeps_memory:
        training.keep_memory()
    tokenizer = AutoTokenizer.from_pretrained(work.folder)
    task = make_task(work.sentences, tokenizer)
    torch.manual_seed(work.seed)
    model = AutoModelForTokenClassification.from_pretrained(work.folder, num_labels=len(task.labels))
    result = describe_work(model.config, task.encode(work.sentences))
    watch, training_rows = paired.Watch(), label_tokens(task, work.sentences)
    trainer = paired.train_by_trainer(
        model, training_rows, DataCollatorForTokenClassification(tokenizer), watch, num_train_epochs=EPOCHS,
        per_device_train_batch_size=work.batch, per_device_eval_batch_size=work.batch, learning_rate=RATE,
        warmup_steps=0.1, seed=work.seed, bf16=training.computes_in_bfloat16(),
    )  # fmt: skip
    result |= split_epochs([*watch.times, time.perf_counter()], len(training_rows))
    test_rows = label_tokens(task, work.asked)
    start = time.perf_counter()
    label_ids = trainer.predict(test_rows).predictions.argmax(-1)
    result["evaluation"] = len(test_rows) / (time.perf_counter() - start)
    labels = [
        [[int(label)] for label, gold in zip(sentence_ids, sequence["labels"], strict=False) if gold != heads.IGNORED]
        for sentence_ids, sequence in zip(label_ids, test_rows, strict=True)
    ]
    return result | rate_tags(task, work.asked, labels)


def label_tokens(task: tagging.Tagging, sentences: list[Sentence]) -> list[dict]:
    """Return the study's sequences in the Trainer's form, with labels on first tokens only."""
    sequences = []
    for sequence in task.encode(sentences):
        labels = [heads.IGNORED] * len(sequence.tokens)
        for position, (label,) in zip(sequence.positions, sequence.target, strict=True):
            labels[position] = label
        mask = [1] * len(sequence.tokens)
        sequences.append({"input_ids": sequence.tokens, "attention_mask": mask, "labels": labels})
    return sequences


def describe_work(config: PretrainedConfig, sequences: list[Example]) -> dict:
    """Return the useful forward FLOPs of a sentence, and the rate of matrix products before the run."""
    lengths = [len(sequence.tokens) for sequence in sequences]
    flops = statistics.mean(costs.body_flops(config, length, length) for length in lengths)
    return {"FLOPs": flops, "matrix rate": paired.measure_rate()}


def split_epochs(times: list[float], sentences: int) -> dict[str, float]:
    """Return sentences a second in the first epoch and in the later ones.

    `times`: when each step began, then the end of the last one.
    """
    epoch_steps = (len(times) - 1) // EPOCHS
    later_speed = (EPOCHS - 1) * sentences / (times[-1] - times[epoch_steps])
    return {"first epoch": sentences / (times[epoch_steps] - times[0]), "later epochs": later_speed}


def rate_tags(task: tagging.Tagging, asked: list[Sentence], labels: list) -> dict[str, float]:
    """Return the entity F1 of the predicted labels."""
    predicted = task.decode(asked, task.encode(asked), labels)
    return {"f1": metrics.entity_scores([sentence.tags for sentence in asked], predicted)["f1"]}


# All runs together.

PEER = "Trainer"
SIDES = {
    "dropout 0.1": run_ours,
    "Trainer that keeps memory": partial(run_trainer, keeps_memory=True),
    PEER: run_trainer,
}


def measure(case: Case, sentences: int, repetitions: int, folder: Path) -> list[dict]:
    """Return the rows of a case, one for each side and part of a run."""
    paired.run_apart(save_encoder, case.body, folder)
    made_up_sentences = make_sentences(max(case.batch, round(sentences * case.share)))
    runs: dict[str, list[dict]] = {side: [] for side in SIDES}
    for repetition in range(repetitions):
        for side, function in SIDES.items():
            runs[side].append(
                paired.run_apart(function, Work(folder, made_up_sentences, made_up_sentences, case.batch, repetition))
            )
            rates = ", ".join(f"{part} {runs[side][-1][part]:.1f}" for part in PARTS)
            print(f"{case.title}, {side}: {rates} sentences/s", flush=True)
    rate = statistics.median(run["matrix rate"] for side in runs.values() for run in side)
    precision = training.resolve("auto")
    rows = []
    for part, side in itertools.product(PARTS, [side for side in SIDES if side != PEER]):
        ours, peer = ([run[part] for run in runs[compared_side]] for compared_side in (side, PEER))
        rows.append(
            {
                "what": f"{case.title}, {len(made_up_sentences):,} sentences: {part}",
                "ours_as": f"{side}, {precision}",
                "peer_as": f"{PEER}, {precision}, padded to the longest of a batch",
            }
            | paired.compare(ours, peer, "sentences/s")
            | paired.share(ours, peer, rate / (PARTS[part] * runs[PEER][0]["FLOPs"]))
            | paired.describe_machine()
        )
    return rows


def compare_scores(repetitions: int) -> list[dict]:
    """Return a row for each seed with the F1 of both sides.

    Raises StudyError if the encoder has not been pretrained.
    """
    study, rows = open_study(SCALE), []
    dataset, folder = study.dataset(DATASET), Path(study.encoder(PRETRAINED).source)
    sentences, dev_sentences = dataset.load("train")[:1500], dataset.load("dev")
    for seed in range(1, repetitions + 1):
        work = Work(folder, sentences, dev_sentences, 16, seed)
        ours, peer = (paired.run_apart(function, work)["f1"] for function in (run_ours, run_trainer))
        row = {"encoder": PRETRAINED, "seed": seed, "ours": round(ours, 2), "peer": round(peer, 2),
               "difference": round(ours - peer, 2), "unit": "dev F1"}  # fmt: skip
        rows.append(row | paired.describe_machine())
        print(row, flush=True)
    return rows


def main() -> None:
    parser = paired.make_parser(__doc__, sentences=SENTENCES, repetitions=3)
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}; or scores")
    options = parser.parse_args()
    paired.check(parser, options.cases, [*CASES, "scores"])
    for name in options.cases or CASES:
        if name == "scores":
            results.write_csv(paired.OUTPUT / "finetuning-scores.csv", compare_scores(options.repetitions))
            continue
        with tempfile.TemporaryDirectory(prefix="study-") as folder:
            rows = measure(CASES[name], options.sentences, options.repetitions, Path(folder))
        paired.write_lines("finetuning", rows)  # now, as a later case may fail


if __name__ == "__main__":
    paired.start(main)
