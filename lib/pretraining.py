"""Pretraining of one registered model: its text as packed pieces, its stages, its folder."""

import hashlib
import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import transformers

from lib import (
    artefacts,
    corpora,
    models,
    objectives,
    params,
    paths,
    provenance,
    smoke_language,
    training,
    vocabularies,
)
from lib.errors import StudyError
from lib.progress import Progress

HELD_OUT = 50  # one document in so many never trains, so that the loss on unseen text can be shown


def pack(corpus: str, vocabulary: str, scale: str) -> dict[str, np.ndarray]:
    """A corpus as two long rows of piece ids, `train` and `held_out`, [SEP] after each document; memory-mapped.

    Which documents are held out depends on their text alone. Written once for each corpus and vocabulary.
    """
    folder = paths.tokens(scale, corpus, vocabulary)
    tokenizer = vocabularies.load(vocabulary, scale)
    kind = "uint16" if len(tokenizer) < 2**16 else "uint32"
    record = {
        "corpus": corpora.built(corpus, scale)["content"],
        "vocabulary": provenance.file_fingerprint(paths.vocabulary(scale, vocabulary) / "vocab.txt"),
        "code": provenance.code_fingerprint("pretraining", without="corpora"),
        "type": kind,
    }
    with artefacts.locked(folder):
        if artefacts.read_record(folder) != record:
            write_tokens(folder, corpora.iterate(corpus, scale), tokenizer, record)
    if not all((folder / f"{name}.bin").stat().st_size for name in ("train", "held_out")):
        raise StudyError(f"corpus '{corpus}' is too small: no document to train on, or none to hold out")
    return {name: np.memmap(folder / f"{name}.bin", dtype=kind, mode="r") for name in ("train", "held_out")}


def write_tokens(folder: Path, documents: Iterator[corpora.Document], tokenizer, record: dict) -> None:
    with artefacts.whole_folder(folder) as temporary, vocabularies.all_cores():
        with open(temporary / "train.bin", "wb") as train, open(temporary / "held_out.bin", "wb") as held_out:
            while texts := [document.text for document in itertools.islice(documents, 500)]:
                encoded = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
                for text, ids in zip(texts, encoded, strict=True):
                    number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big")
                    file = train if number % HELD_OUT else held_out
                    file.write(np.array([*ids, tokenizer.sep_token_id], dtype=record["type"]).tobytes())
        artefacts.write_json(temporary / "record.json", record)


def stage_tokens(key: str, scale: str) -> list[int]:
    """How many pieces each stage of a model trains on."""
    budget = params.load("scales", scale).pretraining
    stages = params.load("models", key).stages
    return budget.stage_tokens.get(key) or [budget.tokens // len(stages)] * len(stages)


def make_batches(key: str, scale: str, stage: int, split: str = "train") -> objectives.MaskedBlocks:
    """The batches of one stage of a model; of the held-out text, always the same blocks with the same masks."""
    model, budget = params.load("models", key), params.load("scales", scale)
    pretraining = budget.pretraining
    tokens = pack(model.stages[stage], model.vocabulary, scale)[split]
    if split == "train":
        steps = stage_tokens(key, scale)[stage] // (pretraining.batch_size * budget.sequence_length)
    else:
        blocks = min(pretraining.held_out_blocks, len(tokens) // (budget.sequence_length - 2))
        steps = blocks // pretraining.batch_size
    if steps < 1:
        raise StudyError(f"model '{key}', stage {stage + 1}: too little {split} text for one batch")
    return objectives.MaskedBlocks(
        tokens,
        vocabularies.load(model.vocabulary, scale),
        length=budget.sequence_length,
        batch_size=pretraining.batch_size,
        steps=steps,
        masked_share=model.masked_share,
        whole_words=model.masking == "whole-word",
        seed=stage + 1 if split == "train" else 0,
        shuffle=split == "train",
    )


def held_out_loss(model, batches: objectives.MaskedBlocks, device) -> dict[str, float]:
    """Mean masked-language-modelling loss over the held-out batches."""
    with torch.inference_mode(), device.autocast():
        losses = [
            objectives.masked_lm_loss(model, {k: v.to(device.device) for k, v in batches[i].items()}).item()
            for i in range(len(batches))
        ]
    return {"held-out loss": float(np.mean(losses))}


def run(key: str, scale: str) -> dict:
    """Pretrain a registered model unless it is there already; returns its record, with the log of each stage.

    Writes outputs/<scale>/models/<key> in the save_pretrained layout, whole or not at all. Continues from the
    checkpoint of a run that was killed.
    """
    model_settings, budget = params.load("models", key), params.load("scales", scale)
    tokenizer = vocabularies.load(model_settings.vocabulary, scale)
    record = provenance.record(
        model_settings.model_dump(exclude={"title", "differs"})
        | {
            "body": budget.body.model_dump(),
            "sequence length": budget.sequence_length,
            "precision": budget.precision,
            "threads": budget.threads,
            "seed": budget.seeds[0],
            "pretraining": budget.pretraining.model_dump(exclude={"stage_tokens"}),
            "stage tokens": stage_tokens(key, scale) if model_settings.stages else [],
        },
        {"vocabulary": provenance.file_fingerprint(paths.vocabulary(scale, model_settings.vocabulary) / "vocab.txt")}
        | {corpus: corpora.built(corpus, scale)["content"] for corpus in model_settings.stages}
        | {"code": provenance.code_fingerprint("pretraining", without="corpora")},
    )
    folder = paths.model(scale, key)
    if finished := artefacts.reuse(folder, record["fingerprint"]):
        return finished | {"logs": read_logs(folder)}

    torch.set_num_threads(budget.threads)
    device = training.accelerator(budget.precision)
    transformers.set_seed(budget.seeds[0])
    model = models.build_bert(budget.body, len(tokenizer), budget.sequence_length, budget.pretraining.dropout)
    partial = folder.with_name(f".{key}.partial")
    logs = [
        run_stage(model, key, scale, stage, device, partial / f"stage-{stage}.pt", record["fingerprint"])
        for stage in range(len(model_settings.stages))
    ]
    sizes = models.count_parameters(model)
    tokens = sum(log[-1]["tokens"] for log in logs)
    record |= sizes | {
        "tokens": tokens,
        "seconds": round(sum(log[-1]["seconds"] for log in logs)),
        "FLOPs": 6 * sizes["body parameters"] * tokens,
        "device": training.describe_device(device),
    }
    save(model, tokenizer, folder, record, logs)
    shutil.rmtree(partial, ignore_errors=True)
    return record | {"logs": logs}


def run_stage(model, key: str, scale: str, stage: int, device, checkpoint: Path, fingerprint: str) -> list[dict]:
    """Train one stage, with a schedule and an optimiser of its own; returns its log."""
    budget = params.load("scales", scale).pretraining
    held_out = make_batches(key, scale, stage, "held_out")
    corpus = params.load("models", key).stages[stage]
    return training.train(
        model,
        make_batches(key, scale, stage),
        objectives.masked_lm_loss,
        device=device,
        learning_rate=budget.learning_rate,
        warmup=budget.warmup,
        weight_decay=budget.weight_decay,
        betas=budget.betas,
        seed=stage + 1,
        progress=Progress(f"{key} on {corpus}", curve=True),
        evaluate=lambda: held_out_loss(model, held_out, device),
        evaluations=budget.evaluations,
        checkpoint=checkpoint,
        fingerprint=fingerprint,
    )


def save(model, tokenizer, folder: Path, record: dict, logs: list[list[dict]]) -> None:
    """Write the model folder: weights, tokenizer, log.jsonl with a row a line, and the record."""
    rows = [{"stage": stage, **row} for stage, log in enumerate(logs) for row in log]
    with artefacts.whole_folder(folder) as temporary:
        model.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
        artefacts.write_text(temporary / "log.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        artefacts.write_record(temporary, record)


def read_logs(folder: Path) -> list[list[dict]]:
    """The log of each stage of a pretrained model."""
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [list(log) for _, log in itertools.groupby(rows, key=lambda row: row["stage"])]


def mask_example(key: str, scale: str, show_text: bool) -> list[dict]:
    """What a model is asked, as rows: a piece of text, as the model sees it, and the pieces to guess.

    The text is of the model's own corpus, or made up where it is not to be shown.
    """
    settings = params.load("models", key)
    tokenizer = vocabularies.load(settings.vocabulary, scale)
    corpus = (settings.stages or params.load("vocabularies", settings.vocabulary).corpora)[0]
    made_up = " ".join(smoke_language.make_examples(3)).replace("[", "").replace("]", "")
    text = next(corpora.iterate(corpus, scale)).text if show_text else made_up
    ids = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"][:60]
    blocks = objectives.MaskedBlocks(
        np.array(ids), tokenizer, length=len(ids) + 2, batch_size=1, steps=1,
        masked_share=settings.masked_share, whole_words=settings.masking == "whole-word", seed=0,
    )  # fmt: skip
    batch = blocks[0]
    asked = batch["labels"][0][batch["labels"][0] != objectives.UNMASKED]
    return [
        {"": "the model sees", "pieces": " ".join(tokenizer.convert_ids_to_tokens(batch["input_ids"][0].tolist()))},
        {"": "it has to guess", "pieces": " ".join(tokenizer.convert_ids_to_tokens(asked.tolist()))},
    ]


def name_stages(record: dict) -> dict[str, list[dict]]:
    """The log of each stage under a name for people."""
    stages = record["settings"]["stages"]
    return {f"stage {i + 1}, {stage}": log for i, (stage, log) in enumerate(zip(stages, record["logs"], strict=True))}


def summarise(record: dict) -> dict:
    """The size and cost of a pretrained model."""
    names = ("parameters", "body parameters", "tokens", "seconds", "FLOPs", "device", "commit", "fingerprint")
    return {name: f"{record[name]:.2e}" if name == "FLOPs" else record[name] for name in names}


def describe(record: dict, scale: str) -> str:
    """What the run shows, in sentences made from its numbers (Markdown)."""
    if not record["logs"]:
        return "- This model was not pretrained: its weights are random."
    lines = []
    for name, log in name_stages(record).items():
        seen = [row["held-out loss"] for row in log if "held-out loss" in row]
        lines.append(
            f"- {name}: {log[-1]['tokens']:,} pieces; the loss on held-out text of this corpus went from "
            f"{seen[0]:.2f} to {seen[-1]:.2f} over {len(seen)} evaluations."
        )
    if params.load("scales", scale).made_up:
        lines.append("- The data are made up.")
    return "\n".join(lines)
