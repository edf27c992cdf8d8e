"""Pretraining: from packed text, a tokenizer and a plan to a model folder that transformers can load."""

import hashlib
import json
import os
import shutil
from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import torch
import transformers
from transformers import PreTrainedTokenizerBase

from lib import artefacts, provenance
from lib.errors import StudyError
from lib.modeling import costs, loading, models
from lib.pretraining import blocks, embeddings, masking, mixing, objectives
from lib.pretraining.model_card import write_card
from lib.pretraining.plan import Pretraining
from lib.pretraining.tokens import Tokens
from lib.progress import Progress
from lib.training import optimizers, training
from lib.training.optimization import Machine, Phase
from lib.vocabularies.tokenization import fingerprint_tokenizer

HELD_OUT_SHARE, HELD_OUT_SEQUENCES = 0.15, 32  # for held-out text: the share masked, and the sequences of a batch


def pretrain(
    plan: Pretraining,
    corpora: Sequence[Tokens],
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    machine: Machine | None = None,
    *,
    seed: int = 1,
    held_out: Sequence[Tokens] = (),
    initial: loading.Encoder | None = None,
    vectors: np.ndarray | None = None,
    evaluations: int = 8,
    held_out_blocks: int = 128,
    record: dict | None = None,
    title: str = "",
    note: str = "",
) -> dict | None:
    """Pretrain a model and write it to `folder` in the save_pretrained layout, whole or not at all.

    Resumes a killed run from its checkpoint; a finished run is not repeated. `held_out`: text on which the loss is
    measured, `evaluations` times a phase, on `held_out_blocks` sequences; `initial`: a model to continue, without
    its token embeddings and output layer if the vocabulary differs; `vectors`: initial word vectors, (vocabulary,
    width), otherwise trained on the text if the plan asks for them; `record`: what is known before the start, with the
    fingerprint of all that determines the weights, otherwise made from the arguments; `title`, `note`: of the model
    card.

    Returns the record with the log, a list of dicts, or None in all but the first process of a run started by torchrun.
    Raises StudyError for text that is too short or of another vocabulary, a model that cannot be continued, a batch
    that cannot be split over the processes, and a loss that is not finite.
    """
    folder, machine = Path(folder), machine or Machine()
    if record is None:
        measuring = {"evaluations": evaluations, "held_out_blocks": held_out_blocks}
        record = describe_run(plan, corpora, tokenizer, machine, seed, held_out, initial, vectors, measuring)
    if finished_record := find_pretrained(folder, record):
        return finished_record
    unfinished = folder.with_name(f".{folder.name}.partial")
    device = training.accelerator(machine.precision)
    torch.set_num_threads(machine.threads)  # after Accelerate, which may set its own number
    for phase in plan.phases:  # now, not after days of an earlier phase
        training.count_parts(phase.batch_size, phase.length, device.num_processes, machine.micro_batch)
    transformers.set_seed(seed)
    model = models.build_model(
        plan.architecture, plan.body, len(tokenizer), plan.positions, plan.dropout, pairs=plan.pairs != "none"
    )
    begin = partial(set_first_weights, model, plan, corpora, tokenizer, initial, vectors)
    batches = make_batches(plan, corpora, tokenizer, seed)
    flops_of = partial(count_flops, model, batches, plan.adversarial)
    evaluate = None
    if held_out and plan.phases:
        held_out_batches = make_held_out(plan, held_out, tokenizer, held_out_blocks)
        evaluate = partial(measure_held_out, model, held_out_batches, device)
    log: list[dict] = []
    if plan.phases:
        log = training.train(
            model,
            batches,
            objectives.loss_of(plan),
            device=device,
            settings=plan,
            rate_of=batches.rate,
            seed=seed,
            progress=Progress(f"{folder.name} on {', '.join(text.name for text in corpora)}", curve=True),
            begin=begin,
            evaluate=evaluate,
            evaluations=batches.evaluations(evaluations) if evaluate else (),
            micro_batch=machine.micro_batch,
            workers=machine.workers,
            compiled=machine.compile and not plan.adversarial,
            flops_of=flops_of,
            folder=unfinished,
            fingerprint=record["fingerprint"],
        )
    else:
        begin()
    if not device.is_main_process:
        return None
    last = log[-1] if log else {"tokens": 0, "seconds": 0}
    record = record | models.count_parameters(model) | {
        "tokens": last["tokens"],
        "seconds": round(last["seconds"]),
        "FLOPs": sum(map(flops_of, range(len(batches))), 0.0),
        "device": training.describe_device(device),
    }  # fmt: skip
    with artefacts.whole_folder(folder) as new_folder:
        model.save_pretrained(new_folder)
        tokenizer.save_pretrained(new_folder)
        artefacts.write_text(new_folder / "log.jsonl", "".join(json.dumps(row) + "\n" for row in log))
        artefacts.write_text(new_folder / "README.md", write_card(title or folder.name, record, log, note))
        artefacts.write_record(new_folder, record)
    shutil.rmtree(unfinished, ignore_errors=True)  # its checkpoints
    return record | {"log": log}


def find_pretrained(folder: Path, record: dict) -> dict | None:
    """Return the record of the model in `folder`, with its log, or None if it is missing or has another identity.

    A model taken over from another machine has a record without weights (tools/gpu.py): it is not finished here.
    """
    finished_record = artefacts.find_finished(folder, record)
    if finished_record is None or not (folder / "config.json").exists():
        return None
    return finished_record | {"log": read_log(folder)}


def describe_run(
    plan: Pretraining,
    corpora: Sequence[Tokens],
    tokenizer: PreTrainedTokenizerBase,
    machine: Machine,
    seed: int,
    held_out: Sequence[Tokens],
    initial: loading.Encoder | None,
    vectors: np.ndarray | None,
    measuring: dict,
) -> dict:
    """Return the record of a run before it starts, with the fingerprint of all that determines its weights and log."""
    names = {"corpora": [text.name for text in corpora], "vocabulary": f"{len(tokenizer):,} tokens"}
    inputs = {f"corpus {number}": text.fingerprint() for number, text in enumerate(corpora, start=1)}
    inputs |= {f"held out {number}": text.fingerprint() for number, text in enumerate(held_out, start=1)}
    inputs["vocabulary"] = fingerprint_tokenizer(tokenizer)
    if initial:
        inputs["initial weights"] = initial.fingerprint
    if vectors is not None:
        inputs["word vectors"] = hashlib.sha256(np.ascontiguousarray(vectors)).hexdigest()[:16]
    settings = settle_settings(plan, machine, seed) | measuring | names | {"initial": initial and initial.title}
    return provenance.record("pretraining", plan.version, settings, inputs)


def settle_settings(plan: Pretraining, machine: Machine, seed: int, processes: int | None = None) -> dict:
    """Return all settings that determine weights, as resolved on this machine."""
    return (
        plan.model_dump(exclude={"core"})
        | machine.model_dump(include={"threads", "compile", "micro_batch"})
        | {"precision": training.resolve(machine.precision), "seed": seed, "epsilon": optimizers.EPSILON}
        | {"processes": processes or int(os.environ.get("WORLD_SIZE", 1))}
        | {"made of": embeddings.list_versions()}
    )


class Phases:
    """The batches of several phases, one after the other, as one run."""

    def __init__(self, parts: Sequence[blocks.Blocks], settings: Sequence[Phase]):
        self.parts, self.settings = parts, settings
        self.bounds = [0, *accumulate(map(len, parts))]

    def __len__(self) -> int:
        return self.bounds[-1]

    def find(self, step: int) -> tuple[int, int]:
        """Return the phase of a step, and the step's number in it."""
        phase = bisect(self.bounds, step) - 1
        return phase, step - self.bounds[phase]

    def __getitem__(self, key: tuple[int, int, int]) -> dict[str, torch.Tensor]:
        step, part, parts = key
        phase, step = self.find(step)
        return self.parts[phase][step, part, parts]

    def shape(self, step: int) -> tuple[int, int]:
        """Return the number of sequences of a step, and their length."""
        phase, step = self.find(step)
        return self.parts[phase].shape(step)

    def rate(self, step: int) -> float:
        """Return the learning rate at a step."""
        phase, step = self.find(step)
        return optimizers.rate(self.settings[phase], step)

    def evaluations(self, count: int) -> list[int]:
        """Return the steps after which held-out text is evaluated: `count` times a phase, evenly."""
        return [
            first + round((i + 1) * (end - first) / count) for first, end in pairwise(self.bounds) for i in range(count)
        ]


def make_batches(plan: Pretraining, corpora: Sequence[Tokens], tokenizer, seed: int) -> Phases:
    """Make the batches of all phases of a plan."""
    if plan.core and plan.core >= len(corpora):
        raise StudyError(f"the first {plan.core} of {len(corpora)} corpora are the core: give a satellite after them")
    steps_done, steps, parts = 0, sum(phase.steps for phase in plan.phases), []
    for number, phase in enumerate(plan.phases):
        phase_seed = seed * 100 + number
        parts.append(
            blocks.Blocks(
                mixing.arrange(plan.mixing, corpora[: plan.core], corpora[plan.core :], seed=phase_seed),
                tokenizer,
                length=phase.length,
                batch_size=phase.batch_size,
                steps=phase.steps,
                masking=make_masking(plan, plan.masked_share, phase.max_predictions),
                pairs=plan.pairs,
                duplicates=plan.duplicates,
                seed=phase_seed,
                span=(steps_done / steps, (steps_done + phase.steps) / steps),
            )
        )
        steps_done += phase.steps
    return Phases(parts, plan.phases)


def make_held_out(plan: Pretraining, texts: Sequence[Tokens], tokenizer, number: int) -> blocks.Blocks:
    """Make at most about `number` held-out sequences, as long as the last phase's, always with the same masks.

    They mask 15% of the tokens in the model's own way, whatever share the training masks.
    """
    batch_size, length = min(HELD_OUT_SEQUENCES, number), plan.phases[-1].length
    layout = mixing.arrange("as they are", [], texts)
    return blocks.Blocks(
        layout, tokenizer, length=length, batch_size=batch_size,
        steps=max(1, min(number, layout.count(length)) // batch_size),
        masking=make_masking(plan, HELD_OUT_SHARE), pairs=plan.pairs,
    )  # fmt: skip


def make_masking(plan: Pretraining, share: float | list[float], limit: int | None = None) -> masking.Masking:
    """Return how a model's sequences are masked.

    For ELECTRA, 85% of the chosen tokens are masked and the others stay as they are: google-research/electra,
    pretrain/pretrain_helpers.py. Clark et al. 2020, section 3.1, mask them all.
    """
    options = {"masked": 0.85, "replaced": 0.0} if plan.architecture == "electra" else {}
    return masking.Masking(plan.masking, share, limit, **options)


def set_first_weights(
    model: torch.nn.Module,
    plan: Pretraining,
    corpora: Sequence[Tokens],
    tokenizer: PreTrainedTokenizerBase,
    initial: loading.Encoder | None,
    vectors: np.ndarray | None,
) -> None:
    """Set a model's initial weights: random, or another model's, then those of the plan's `start`."""
    if initial:
        same_vocabulary = initial.tokenizer.get_vocab() == tokenizer.get_vocab()
        models.continue_from(model, initial.source, same_vocabulary, initial.title, initial.revision)
    table, output = model.get_input_embeddings(), model.get_output_embeddings()
    with torch.no_grad():
        if "word vectors" in plan.start:
            if vectors is None:
                vectors = embeddings.make_vectors(corpora, table.num_embeddings, table.embedding_dim)
            table.weight.copy_(torch.from_numpy(vectors))
        if "token counts" in plan.start:
            output.bias.copy_(torch.from_numpy(embeddings.log_counts(corpora, table.num_embeddings)))
        if "position waves" in plan.start:
            positions = models.encoder_of(model).embeddings.position_embeddings.weight
            positions.copy_(torch.from_numpy(embeddings.make_waves(*positions.shape)))


def measure_held_out(model: torch.nn.Module, batches: blocks.Blocks, device) -> dict[str, float]:
    """Average what objectives.measure_batch returns over all held-out batches."""
    totals, counts = Counter(), Counter()
    torch.manual_seed(0)  # fixes ELECTRA's draws
    with torch.inference_mode(), device.autocast():
        for step in range(len(batches)):
            batch = {name: tensor.to(device.device) for name, tensor in batches[step, 0, 1].items()}
            for name, (total, count) in objectives.measure_batch(model, batch).items():
                totals[name] += total
                counts[name] += count
    return {name: total / counts[name] for name, total in totals.items() if counts[name]}


def count_flops(model: torch.nn.Module, batches: Phases, adversarial: bool, step: int) -> float:
    """Return the FLOPs of one step: those of matrix multiplications, forward and backward."""
    phase, _ = batches.find(step)
    part = batches.parts[phase]
    generator = model.generator.config if isinstance(model, models.Electra) else None
    passes = objectives.ADVERSARIAL_PASSES if adversarial else 1.0
    slots = part.masking.slots(part.length)
    return passes * part.batch_size * costs.training_flops(model.config, part.length, slots, generator)


def read_log(folder: Path) -> list[dict]:
    """Return the log of a pretrained model."""
    return [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
