"""Fine-tuning: the study's loop against the Trainer of `transformers`, in sentences a second and in F1.

    python benchmarks/finetuning.py [case ...] [--sentences N] [--repetitions N]
    python benchmarks/finetuning.py scores [--repetitions N]

Named entities of BC5CDR-chem, 16 sentences a step, AdamW, dropout of 0.1; the same model, from the same random
weights, and the same tokens on both sides. Each side runs in a process of its own, all sides of a case in turn, on
every core of a machine that should have nothing else to do. A ratio is that of two runs of one repetition; shown are
the median, the lowest and the highest.

The Trainer runs as in examples/pytorch/token-classification/run_ner.py: AutoModelForTokenClassification,
DataCollatorForTokenClassification, labels of first tokens alone, every other setting its default, nothing saved. It
pads to the longest sentence of a batch (run_ner's default) or to 128; `evaluation` is its predict on the same
sentences. Where the processor has no bfloat16, the Trainer with bf16=True runs in the first repetition alone.

`scores`: F1 on the development set after three epochs of 1,500 sentences, for each repetition another seed, from a
pretrained encoder where the study has one at scale laptop, else from random weights.

The vocabulary is the study's where it is built at scale laptop. Writes outputs/record/benchmarks/finetuning.csv when no
case is named, and finetuning-scores.csv.
"""

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch
from transformers import (
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    PrinterCallback,
    Trainer,
    TrainingArguments,
)

from lib import provenance
from lib.benchmarks import metrics, registry
from lib.benchmarks.instances import Sentence
from lib.errors import StudyError, unknown
from lib.finetuning import predictions, tagging
from lib.finetuning.examples import BucketedBatches
from lib.modeling import heads, loading, models
from lib.modeling.settings import Body
from lib.places import show_path
from lib.progress import Progress
from lib.study import open_study, paths, results
from lib.training import optimizers, training

DATASET, SCALE, VOCABULARY, PRETRAINED = "bc5cdr-chem", "laptop", "pubmed-uncased", "pubmedbert"
BATCH, LENGTH, RATE = 16, 128, 5.0e-4
BODIES = {
    "BERT-mini": Body(layers=4, hidden=256, heads=4, intermediate=1024, embedding=128),
    "BERT-base": Body(layers=12, hidden=768, heads=12, intermediate=3072, embedding=128),
}
CASES = {  # what is timed: body, whether it trains, and the sides to compare with; the bar of each ratio
    "BERT-mini": ("BERT-mini", True, {"dynamic": 3.5, "to 128": 6.0, "dynamic, bf16": None}),
    "BERT-mini, evaluation": ("BERT-mini", False, {"dynamic": 3.5}),
    "BERT-base": ("BERT-base", True, {"dynamic": 2.4}),
}
SHARE = {"BERT-mini": 1.0, "BERT-base": 0.1}  # of the sentences, as a step of a large body takes that much longer


def load(count: int, split: str = "train") -> list[Sentence]:
    return open_study(SCALE).dataset(DATASET).load(split)[:count]


def load_tokenizer():
    folder = paths.vocabulary(SCALE, VOCABULARY)
    if not folder.is_dir():
        raise StudyError(f"{show_path(folder)} is not there: run ./run_all.sh {SCALE} {VOCABULARY}")
    return AutoTokenizer.from_pretrained(folder)


def make_task(sentences: list[Sentence], tokenizer) -> tagging.Tagging:
    settings = open_study(SCALE).protocol("gu", DATASET)
    return tagging.Tagging(registry.lookup(DATASET), settings, tokenizer, sentences, LENGTH)


def save_encoder(name: str, folder: Path) -> None:
    """The tokenizer and the random weights that all sides start from."""
    tokenizer = load_tokenizer()
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    models.encoder_of(models.build("bert", BODIES[name], len(tokenizer), LENGTH, 0.1)).save_pretrained(folder)


def run_ours(folder: Path, seed: int, count: int, epochs: int, train: bool, **_) -> dict:
    """The study's loop, as lib/finetuning/finetuning.py calls it."""
    sentences, tokenizer = load(count), load_tokenizer()
    task = make_task(sentences, tokenizer)
    encoder = loading.load_encoder(folder).body(0.1)
    torch.manual_seed(seed)
    model, sequences, device = task.build(encoder, sentences), task.encode(sentences), training.accelerator("auto")
    model.to(device.device)
    if not train:
        return time_it(lambda: predictions.predict(model.eval(), task, sequences, device), len(sequences))
    batches = BucketedBatches(sequences, task.collate, batch_size=BATCH, epochs=epochs, steps=None, seed=seed)
    settings = open_study(SCALE).protocol("gu", DATASET).optimization()

    def fit() -> None:
        training.train(
            model, batches, lambda module, batch: module.loss(batch), device=device, settings=settings,
            rate_of=lambda step: RATE * optimizers.slanted_triangle(step, len(batches), 0.1), seed=seed,
            progress=Progress("benchmark"),
        )  # fmt: skip

    timed = time_it(fit, len(sequences) * epochs)
    if epochs == 1:
        return timed
    dev = load(10**6, "dev")
    sequences = task.encode(dev)
    predicted = task.decode(dev, sequences, predictions.predict(model, task, sequences, device))
    return timed | {"f1": metrics.entity_scores([s.tags for s in dev], predicted)["f1"]}


def run_trainer(folder: Path, seed: int, count: int, epochs: int, train: bool, padding: str, bf16: bool) -> dict:
    """The Trainer, as run_ner uses it."""
    sentences, tokenizer = load(count), load_tokenizer()
    task = make_task(sentences, tokenizer)
    torch.manual_seed(seed)
    model = AutoModelForTokenClassification.from_pretrained(folder, num_labels=len(task.labels))
    options = {"padding": "max_length", "max_length": LENGTH} if padding == "to 128" else {}
    collator = DataCollatorForTokenClassification(tokenizer, **options)
    with tempfile.TemporaryDirectory(prefix="study-") as output:
        arguments = TrainingArguments(
            output, num_train_epochs=epochs, per_device_train_batch_size=BATCH, per_device_eval_batch_size=BATCH,
            learning_rate=RATE, warmup_steps=0.1, seed=seed, bf16=bf16, report_to=[], save_strategy="no",
            logging_strategy="no", disable_tqdm=True, use_cpu=not torch.cuda.is_available(),
        )  # fmt: skip
        sequences = label_tokens(task, sentences)
        trainer = Trainer(model, arguments, data_collator=collator, train_dataset=sequences)
        trainer.remove_callback(PrinterCallback)
        if not train:
            return time_it(lambda: trainer.predict(sequences), len(sequences))
        timed = time_it(trainer.train, len(sequences) * epochs)
        if epochs == 1:
            return timed
        dev = load(10**6, "dev")
        sequences = label_tokens(task, dev)
        numbers = trainer.predict(sequences).predictions.argmax(-1)
    labels = [
        [[int(label)] for label, gold in zip(line, sequence["labels"], strict=False) if gold != heads.IGNORED]
        for line, sequence in zip(numbers, sequences, strict=True)
    ]
    predicted = task.decode(dev, task.encode(dev), labels)
    return timed | {"f1": metrics.entity_scores([s.tags for s in dev], predicted)["f1"]}


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


def time_it(work: Callable[[], object], sentences: int) -> dict:
    begun = time.perf_counter()
    work()
    return {"rate": sentences / (time.perf_counter() - begun)}


SIDES = {
    "ours": (run_ours, {}),
    "dynamic": (run_trainer, {"padding": "dynamic", "bf16": False}),
    "to 128": (run_trainer, {"padding": "to 128", "bf16": False}),
    "dynamic, bf16": (run_trainer, {"padding": "dynamic", "bf16": True}),
}


def run_apart(side: str, **words) -> dict:
    """Run a side in a process of its own, which starts from nothing."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        function, options = SIDES[side]
        return pool.submit(function, **words, **options).result()


def measure(case: str, sentences: int, repetitions: int, folder: Path) -> list[dict]:
    """The lines of a case, one for each side that it is compared with."""
    body, train, sides = CASES[case]
    save_encoder(body, folder)
    count = max(BATCH, round(sentences * SHARE[body]))
    slow = "dynamic, bf16" if not training.computes_in_bfloat16() else None
    rates: dict[str, list[float]] = {}
    for repetition in range(repetitions):
        for side in ("ours", *sides):
            if side != slow or repetition == 0:
                found = run_apart(side, folder=folder, seed=repetition, count=count, epochs=1, train=train)
                rates.setdefault(side, []).append(found["rate"])
    lines = []
    for side, bar in sides.items():
        ratios = [ours / peer for ours, peer in zip(rates["ours"], rates[side], strict=False)]
        lines.append({
            "what": case, "peer is": f"Trainer, padded {side}", "ours": round(statistics.median(rates["ours"]), 1),
            "peer": round(statistics.median(rates[side]), 1), "ratio": round(statistics.median(ratios), 2),
            "lowest": round(min(ratios), 2), "highest": round(max(ratios), 2), "bar": bar, "unit": "sentences/s",
            "repetitions": len(ratios), "device": describe_device(), "commit": provenance.commit(),
        })  # fmt: skip
        print(lines[-1], flush=True)
    return lines


def compare_scores(repetitions: int, folder: Path) -> list[dict]:
    """F1 of both sides, a line a seed."""
    pretrained = paths.model(SCALE, PRETRAINED)
    known = (pretrained / "config.json").exists()
    if not known:
        save_encoder("BERT-mini", folder)
    source, lines = (pretrained if known else folder), []
    for seed in range(1, repetitions + 1):
        words = {"folder": source, "seed": seed, "count": 1500, "epochs": 3, "train": True}
        ours, peer = (run_apart(side, **words)["f1"] for side in ("ours", "dynamic"))
        lines.append({
            "encoder": PRETRAINED if known else "random weights", "seed": seed, "ours": round(ours, 2),
            "peer": round(peer, 2), "difference": round(ours - peer, 2), "unit": "dev F1", "device": describe_device(),
            "commit": provenance.commit(),
        })  # fmt: skip
        print(lines[-1], flush=True)
    return lines


def describe_device() -> str:
    return training.describe_device(training.accelerator("auto"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help=f"{'; '.join(CASES)}; or: scores")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=3)
    words = parser.parse_args()
    torch.set_num_threads(os.cpu_count())
    try:
        with tempfile.TemporaryDirectory(prefix="study-") as folder:
            if words.cases == ["scores"]:
                lines = compare_scores(words.repetitions, Path(folder))
                return results.write_csv(paths.output("record", "benchmarks", "finetuning-scores.csv"), lines)
            for case in words.cases:
                if case not in CASES:
                    raise unknown("case", case, [*CASES, "scores"])
            lines = [
                line
                for case in words.cases or CASES
                for line in measure(case, words.sentences, words.repetitions, Path(folder))
            ]
            if not words.cases:
                results.write_csv(paths.output("record", "benchmarks", "finetuning.csv"), lines)
    except StudyError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
