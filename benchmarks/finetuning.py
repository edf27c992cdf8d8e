"""Fine-tuning: the study's loop against the Trainer of `transformers`, in sentences a second and in F1.

    python -m benchmarks.finetuning [case ...] [--sentences N] [--repetitions N]
    python -m benchmarks.finetuning scores [--repetitions N]

Named entities in made-up sentences, as many and about as long as those that BC5CDR-chem trains on, three epochs, AdamW,
dropout of 0.1; the same model, from the same random weights, and the same tokens on both sides (benchmarks/paired.py).
The first epoch, in which kernels are built for each new shape, stands apart from the later ones; both sides keep as
many kernels (lib/training/training.py). Shares count no product of padding.

The Trainer runs as in examples/pytorch/token-classification/run_ner.py: AutoModelForTokenClassification,
DataCollatorForTokenClassification, which pads to the longest sentence of a batch, labels of first tokens alone, every
other setting its default, nothing saved; the study's loop tells glibc to keep freed memory. `evaluation` is its predict
on the same sentences.

`scores`: F1 on BC5CDR-chem's development set after three epochs of 1,500 sentences, for each repetition another seed,
from the study's pubmedbert, which has to be pretrained at scale laptop.

Writes its lines into outputs/record/benchmarks/finetuning.csv, where those of other cases and devices stay, and
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
PARTS = {"first epoch": 3, "later epochs": 3, "evaluation": 1}  # of a run, and the products in each for one forward


@dataclass(frozen=True)
class Case:
    """An encoder, the sentences of a step, and how many of all it trains on."""

    title: str
    body: Body
    batch: int
    share: float = 1.0  # a step of a large body takes that much longer


BASE = Body(layers=12, hidden=768, heads=12, intermediate=3072, embedding=768)
CASES = {
    "mini-16": Case("BERT-mini, 16 a step", paired.MINI, 16),
    "mini-32": Case("BERT-mini, 32 a step", paired.MINI, 32),
    "base-16": Case("BERT-base, 16 a step", BASE, 16, 0.1),
}


@dataclass(frozen=True)
class Work:
    """What both sides do: fine-tune the encoder of a folder on sentences, then tag others."""

    folder: Path  # of the tokenizer too
    sentences: list[Sentence]
    asked: list[Sentence]
    batch: int
    seed: int


# What is trained, and on what.


def make_sentences(count: int, words: int = 3000) -> list[Sentence]:
    """Tagged sentences of made-up words, about as long as those that BC5CDR trains on: 25 words on the mean, half of
    them 14 to 32, where there it is 26, and 16 to 32."""
    rng = np.random.default_rng(0)
    lengths = np.clip(np.exp(rng.normal(np.log(22), 0.55, count)), 3, 110).astype(int)
    shares = 1 / np.arange(1, words + 1)
    drawn = [rng.choice(words, length, p=shares / shares.sum()) for length in lengths]
    tags = [["B" if word % 17 == 0 else "O" for word in one] for one in drawn]
    return [Sentence([f"p{word}" for word in one], of_one) for one, of_one in zip(drawn, tags, strict=True)]


def save_encoder(body: Body, folder: Path) -> None:
    """A made-up tokenizer, and the random weights that both sides start from."""
    tokenizer = paired.make_tokenizer(VOCABULARY, folder)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    models.encoder_of(models.build_model("bert", body, len(tokenizer), LENGTH, 0.1)).save_pretrained(folder)


def make_task(sentences: list[Sentence], tokenizer: PreTrainedTokenizerBase) -> tagging.Tagging:
    return tagging.Tagging(registry.lookup(DATASET), read_settings(), tokenizer, sentences, LENGTH)


def read_settings() -> FinetuningSettings:
    return open_study(SCALE).protocol("gu", DATASET)


# One run of one side, in a process of its own.


def run_ours(work: Work) -> dict:
    """The study's loop, as lib/finetuning/finetuning.py calls it."""
    device, encoder = training.accelerator("auto"), loading.load_encoder(work.folder)
    task = make_task(work.sentences, encoder.tokenizer)
    torch.manual_seed(work.seed)
    model, sequences = task.build(encoder.body(0.1), work.sentences), task.encode(work.sentences)
    words = {"batch_size": work.batch, "epochs": EPOCHS, "steps": None, "seed": work.seed}
    batches = paired.Timed(BucketedBatches(sequences, task.collate, **words))
    found = describe_work(model.config, sequences)
    training.train(
        model, batches, lambda module, batch: module.loss(batch), device=device, seed=work.seed,
        settings=read_settings().optimization(), progress=Progress("benchmark"),
        rate_of=lambda step: RATE * optimizers.slanted_triangle(step, len(batches), 0.1),
    )  # fmt: skip
    found |= split_epochs([*batches.times, time.perf_counter()], len(sequences))
    asked = task.encode(work.asked)
    begun = time.perf_counter()
    labels = predictions.predict(model, task, asked, device)
    return found | {"evaluation": len(asked) / (time.perf_counter() - begun)} | rate_tags(task, work.asked, labels)


def run_trainer(work: Work, keeps_memory: bool = False) -> dict:
    """The Trainer, as run_ner uses it; `keeps_memory`: told so as the study's loop always is."""
    if keeps_memory:
        training.keep_memory()
    tokenizer = AutoTokenizer.from_pretrained(work.folder)
    task = make_task(work.sentences, tokenizer)
    torch.manual_seed(work.seed)
    model = AutoModelForTokenClassification.from_pretrained(work.folder, num_labels=len(task.labels))
    found = describe_work(model.config, task.encode(work.sentences))
    watch, labelled = paired.Watch(), label_tokens(task, work.sentences)
    trainer = paired.train_by_trainer(
        model, labelled, DataCollatorForTokenClassification(tokenizer), watch, num_train_epochs=EPOCHS,
        per_device_train_batch_size=work.batch, per_device_eval_batch_size=work.batch, learning_rate=RATE,
        warmup_steps=0.1, seed=work.seed, bf16=training.computes_in_bfloat16(),
    )  # fmt: skip
    found |= split_epochs([*watch.times, time.perf_counter()], len(labelled))
    asked = label_tokens(task, work.asked)
    begun = time.perf_counter()
    numbers = trainer.predict(asked).predictions.argmax(-1)
    found["evaluation"] = len(asked) / (time.perf_counter() - begun)
    labels = [
        [[int(label)] for label, gold in zip(line, sequence["labels"], strict=False) if gold != heads.IGNORED]
        for line, sequence in zip(numbers, asked, strict=True)
    ]
    return found | rate_tags(task, work.asked, labels)


def label_tokens(task: tagging.Tagging, sentences: list[Sentence]) -> list[dict]:
    """The study's sequences in the Trainer's form: a label for each first token, none for the others."""
    sequences = []
    for sequence in task.encode(sentences):
        labels = [heads.IGNORED] * len(sequence.tokens)
        for position, (label,) in zip(sequence.positions, sequence.target, strict=True):
            labels[position] = label
        mask = [1] * len(sequence.tokens)
        sequences.append({"input_ids": sequence.tokens, "attention_mask": mask, "labels": labels})
    return sequences


def describe_work(config: PretrainedConfig, sequences: list[Example]) -> dict:
    """The FLOPs of a sentence that count, forward, and the rate of matrix products before the run."""
    lengths = [len(sequence.tokens) for sequence in sequences]
    flops = statistics.mean(costs.body_flops(config, length, length) for length in lengths)
    return {"FLOPs": flops, "matrix rate": paired.measure_rate()}


def split_epochs(times: list[float], sentences: int) -> dict[str, float]:
    """Sentences a second in the first epoch and in the later ones, of the times at which steps began, and the end."""
    first = (len(times) - 1) // EPOCHS
    later = (EPOCHS - 1) * sentences / (times[-1] - times[first])
    return {"first epoch": sentences / (times[first] - times[0]), "later epochs": later}


def rate_tags(task: tagging.Tagging, asked: list[Sentence], labels: list) -> dict[str, float]:
    """F1 of entities by the labels of words."""
    predicted = task.decode(asked, task.encode(asked), labels)
    return {"f1": metrics.entity_scores([sentence.tags for sentence in asked], predicted)["f1"]}


# What puts the runs together.

PEER = "Trainer"
SIDES = {
    "dropout 0.1": run_ours,
    "Trainer that keeps memory": partial(run_trainer, keeps_memory=True),
    PEER: run_trainer,
}


def measure(case: Case, sentences: int, repetitions: int, folder: Path) -> list[dict]:
    """The lines of a case, one for each part of a run."""
    paired.run_apart(save_encoder, case.body, folder)
    made = make_sentences(max(case.batch, round(sentences * case.share)))
    runs: dict[str, list[dict]] = {side: [] for side in SIDES}
    for repetition in range(repetitions):
        for side, function in SIDES.items():
            runs[side].append(paired.run_apart(function, Work(folder, made, made, case.batch, repetition)))
            rates = ", ".join(f"{part} {runs[side][-1][part]:.1f}" for part in PARTS)
            print(f"{case.title}, {side}: {rates} sentences/s", flush=True)
    rate = statistics.median(run["matrix rate"] for side in runs.values() for run in side)
    precision = training.resolve("auto")
    lines = []
    for part, side in itertools.product(PARTS, [side for side in SIDES if side != PEER]):
        ours, peer = ([run[part] for run in runs[one]] for one in (side, PEER))
        lines.append(
            {
                "what": f"{case.title}, {len(made):,} sentences: {part}",
                "ours_as": f"{side}, {precision}",
                "peer_as": f"{PEER}, {precision}, padded to the longest of a batch",
            }
            | paired.compare(ours, peer, "sentences/s")
            | paired.share(ours, peer, rate / (PARTS[part] * runs[PEER][0]["FLOPs"]))
            | paired.describe_machine()
        )
    return lines


def compare_scores(repetitions: int) -> list[dict]:
    """F1 of both sides, a line for each seed. StudyError where the encoder has not been pretrained."""
    study, lines = open_study(SCALE), []
    dataset, folder = study.dataset(DATASET), Path(study.encoder(PRETRAINED).source)
    sentences, asked = dataset.load("train")[:1500], dataset.load("dev")
    for seed in range(1, repetitions + 1):
        work = Work(folder, sentences, asked, 16, seed)
        ours, peer = (paired.run_apart(function, work)["f1"] for function in (run_ours, run_trainer))
        line = {"encoder": PRETRAINED, "seed": seed, "ours": round(ours, 2), "peer": round(peer, 2),
                "difference": round(ours - peer, 2), "unit": "dev F1"}  # fmt: skip
        lines.append(line | paired.describe_machine())
        print(line, flush=True)
    return lines


def main() -> None:
    parser = paired.make_parser(__doc__, sentences=SENTENCES, repetitions=3)
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}; or scores")
    words = parser.parse_args()
    paired.check(parser, words.cases, [*CASES, "scores"])
    lines = []
    for name in words.cases or CASES:
        if name == "scores":
            results.write_csv(paired.OUTPUT / "finetuning-scores.csv", compare_scores(words.repetitions))
            continue
        with tempfile.TemporaryDirectory(prefix="study-") as folder:
            lines += measure(CASES[name], words.sentences, words.repetitions, Path(folder))
    if lines:
        paired.write_lines("finetuning", lines)


if __name__ == "__main__":
    paired.start(main)
