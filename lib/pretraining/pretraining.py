"""Pretraining of one registered model: from its text and its start to a folder that anybody can load.

    python -m lib.pretraining.pretraining SCALE MODEL

does the same from the command line; started by torchrun, on many processes, GPUs or nodes.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path

import numpy as np
import torch
import transformers

from lib import artefacts, parent, provenance
from lib.errors import StudyError
from lib.modeling import costs, models
from lib.pretraining import blocks, embeddings, masking, mixing, objectives, tokens
from lib.pretraining.settings import Pretraining
from lib.progress import Progress
from lib.study import open_study, params, paths
from lib.study.analysis import pretrained
from lib.training import checkpoints, optimizers, training
from lib.training.settings import Phase

VERSION = 1  # raised when the same settings and text give other weights: batches, masks, objectives, the loop
HELD_OUT_SHARE, HELD_OUT_ROWS = 0.15, 32  # of held-out text: what is hidden, and the rows looked at together
VECTOR_PIECES = 600  # of text for each piece of the vocabulary are enough for word vectors: a minute at 8,192


def run(key: str, scale: str) -> dict:
    """Pretrain a registered model unless it is there already; returns its record, with its log.

    Writes outputs/<scale>/models/<key> in the save_pretrained layout, whole or not at all. Goes on from the
    checkpoint of a run that was killed. Where the scale asks for more than one process, torchrun starts them.
    """
    record = describe_run(key, scale)
    folder = paths.model(scale, key)
    if finished := artefacts.find_finished(folder, record):
        return finished | {"log": pretrained.read_log(folder)}
    processes = count_processes(scale)
    if processes == 1:
        train(key, scale)
    else:
        study, model = open_study(scale), params.load("models", key)
        vocabulary = study.vocabulary(model.vocabulary)
        for corpus in model.corpora:  # once, and not in every process
            vocabulary.pack(study.corpus(corpus))
        launch(key, scale, processes)
    return artefacts.read_record(folder) | {"log": pretrained.read_log(folder)}


def count_processes(scale: str) -> int:
    """The processes that pretrain a model at a scale: as many as it says, or one a GPU."""
    return params.load("scales", scale).processes or max(1, torch.cuda.device_count())


def launch(key: str, scale: str, processes: int) -> None:
    """Train in processes of their own on this machine; what they print is passed on."""
    start = "from lib import parent; parent.watch(); from torch.distributed.run import main; main()"
    command = [sys.executable, "-c", start, "--standalone", f"--nproc-per-node={processes}"]
    ran = subprocess.Popen(
        [*command, "-m", "lib.pretraining.pretraining", scale, key],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    last = ""
    for line in ran.stdout:
        print(line, end="", flush=True)
        last = line.strip() if line.startswith("error: ") else last
    if ran.wait():
        raise StudyError(
            last.removeprefix("error: ") or f"{processes} processes of pretraining ended with {ran.returncode}"
        )


def describe_run(key: str, scale: str) -> dict:
    """The record of a run before it starts: all that its weights follow from.

    StudyError for a model that cannot be pretrained from what is at hand: its weights would be random ones.
    """
    if reason := params.load("models", key).not_run:
        raise StudyError(f"model '{key}' cannot be pretrained here: {reason}")
    model, plan, budget = params.load("models", key), params.load_pretraining(key, scale), params.load("scales", scale)
    inputs = {
        "vocabulary": provenance.file_fingerprint(paths.vocabulary(scale, model.vocabulary) / "tokenizer.json"),
    } | {corpus: open_study(scale).corpus(corpus).record["content"] for corpus in model.corpora}
    if model.initial:
        inputs["initial weights"] = models.find(model.initial, scale, released=False).fingerprint
    return provenance.record(
        "pretraining",
        VERSION,
        model.model_dump(exclude={"title", "papers", "published", "released", "parameters", "not_run", "differs"})
        | plan.model_dump()
        | {"precision": training.resolve(budget.precision), "threads": budget.threads, "seed": budget.seeds[0]}
        | {"processes": count_processes(scale), "epsilon": optimizers.EPSILON}
        | {"made of": {"tokens": tokens.VERSION, "word vectors": embeddings.VERSION}}  # which follow from the inputs
        | budget.pretraining.model_dump(include={"compile", "micro_batch", "held_out_blocks", "evaluations"}),
        inputs,
    )


def train(key: str, scale: str) -> None:
    """Train one model in this process, or in this process's share of a run started by torchrun; write its folder."""
    model_settings, budget = params.load("models", key), params.load("scales", scale)
    plan = params.load_pretraining(key, scale)
    record = describe_run(key, scale)
    if artefacts.find_finished(paths.model(scale, key), record):
        return
    vocabulary = open_study(scale).vocabulary(model_settings.vocabulary)
    tokenizer = vocabulary.tokenizer()
    folder = paths.model(scale, key)
    partial_folder = folder.with_name(f".{key}.partial")
    device = training.accelerator(budget.precision)
    torch.set_num_threads(budget.threads)  # after Accelerate, which may set its own number
    for phase in plan.phases:  # now, and not after days of an earlier phase
        training.count_parts(phase.batch_size, phase.length, device.num_processes, budget.pretraining.micro_batch)
    transformers.set_seed(budget.seeds[0])
    model = models.build(
        model_settings.architecture, plan.body, len(tokenizer), plan.positions, plan.dropout,
        pairs=model_settings.pairs != "none",
    )  # fmt: skip
    log: list[dict] = []
    if model_settings.corpora:
        batches = Phases([make_batches(key, scale, number) for number in range(len(plan.phases))], plan.phases)
        held_out = make_batches(key, scale, len(plan.phases) - 1, "held_out")
        flops_of = partial(count_flops, model, batches, model_settings.adversarial)
        log = training.train(
            model,
            batches,
            objectives.loss_of(model_settings),
            device=device,
            settings=plan,
            rate_of=batches.rate,
            seed=budget.seeds[0],
            progress=Progress(f"{key} on {', '.join(model_settings.corpora)}", curve=True),
            begin=lambda: start(model, key, scale, plan),
            evaluate=lambda: evaluate(model, held_out, device),
            evaluations=batches.evaluations(budget.pretraining.evaluations),
            micro_batch=budget.pretraining.micro_batch,
            workers=budget.pretraining.workers,
            compiled=budget.pretraining.compile and not model_settings.adversarial,
            flops_of=flops_of,
            folder=partial_folder,
            fingerprint=record["fingerprint"],
        )
    if not device.is_main_process:
        return
    record |= models.count_parameters(model) | {
        "tokens": log[-1]["tokens"] if log else 0,
        "seconds": round(log[-1]["seconds"]) if log else 0,
        "seconds of the start": time_start(model_settings, scale, plan, model),
        "documents too short": sum(
            vocabulary.pack(open_study(scale).corpus(corpus))["left out"] for corpus in model_settings.corpora
        ),
        "FLOPs": sum(map(flops_of, range(len(batches)))) if log else 0.0,
        "device": training.describe_device(device),
    }
    save(model, tokenizer, folder, record, log, partial_folder / "live.jsonl")
    checkpoints.clear(partial_folder)


class Phases:
    """The batches of one phase after those of another, as one run."""

    def __init__(self, parts: Sequence[blocks.Blocks], settings: Sequence[Phase]):
        self.parts, self.settings = parts, settings
        self.ends = list(accumulate(len(part) for part in parts))

    def __len__(self) -> int:
        return self.ends[-1]

    def find(self, step: int) -> tuple[int, int]:
        """The phase of a step, and the step's number in it."""
        phase = next(number for number, end in enumerate(self.ends) if step < end)
        return phase, step - self.ends[phase] + len(self.parts[phase])

    def __getitem__(self, key: tuple[int, int, int]) -> dict[str, torch.Tensor]:
        phase, step = self.find(key[0])
        return self.parts[phase][step, *key[1:]]

    def shape(self, step: int) -> tuple[int, int]:
        """Rows of a step, and their length."""
        settings = self.settings[self.find(step)[0]]
        return settings.batch_size, settings.length

    def rate(self, step: int) -> float:
        """The learning rate at a step."""
        phase, step = self.find(step)
        return optimizers.rate(self.settings[phase], step)

    def evaluations(self, count: int) -> list[int]:
        """The numbers of steps after which held-out text is looked at: `count` times a phase, evenly."""
        firsts = [0, *self.ends]
        return [
            first + round((i + 1) * (end - first) / count)
            for first, end in zip(firsts, self.ends, strict=False)
            for i in range(count)
        ]


def make_batches(key: str, scale: str, number: int, split: str = "train") -> blocks.Blocks:
    """The batches of one phase of a model; of the held-out text, always the same rows with the same masks.

    Held-out rows hide 15% of the pieces in the model's own way, whatever the training hides.
    """
    model, plan, budget = params.load("models", key), params.load_pretraining(key, scale), params.load("scales", scale)
    tokenizer = open_study(scale).vocabulary(model.vocabulary).tokenizer()
    packed = dict(zip(model.corpora, read_texts(model, scale, split), strict=True))
    core = [packed[corpus] for corpus in model.core]
    satellites = [packed[corpus] for corpus in model.corpora if corpus not in model.core]
    phase, seed = plan.phases[number], budget.seeds[0] * 100 + number
    if split == "held_out":
        rows, wanted = min(HELD_OUT_ROWS, budget.pretraining.held_out_blocks), budget.pretraining.held_out_blocks
        layout = mixing.arrange("as they are", [], [*core, *satellites])
        return blocks.Blocks(
            layout, tokenizer, length=phase.length, batch_size=rows,
            steps=max(1, min(wanted, layout.count(phase.length)) // rows),
            masking=make_masking(model, HELD_OUT_SHARE), pairs=model.pairs,
        )  # fmt: skip
    before, steps = sum(p.steps for p in plan.phases[:number]), sum(p.steps for p in plan.phases)
    return blocks.Blocks(
        mixing.arrange(model.mixing, core, satellites, seed=seed),
        tokenizer,
        length=phase.length,
        batch_size=phase.batch_size,
        steps=phase.steps,
        masking=make_masking(model, plan.masked_share, phase.max_predictions),
        pairs=model.pairs,
        duplicates=plan.duplicates,
        seed=seed,
        span=(before / steps, (before + phase.steps) / steps),
    )


def make_masking(model: params.Model, share: float | list[float], limit: int | None = None) -> masking.Masking:
    """How a model's rows are hidden. All chosen pieces of ELECTRA's are (Clark et al. 2020, section 3.1)."""
    hidden = {"hidden": 1.0, "replaced": 0.0} if model.objective == "replaced pieces" else {}
    return masking.Masking(model.masking, tuple(share) if isinstance(share, list) else share, limit, **hidden)


def start(model: torch.nn.Module, key: str, scale: str, plan: Pretraining) -> None:
    """Give a model its first weights: random ones stay; another model's; what the scale's recipe has for a start."""
    settings = params.load("models", key)
    if settings.initial:
        encoder = models.find(settings.initial, scale, released=False)  # a published one has pieces of its own
        same = params.load("models", settings.initial).vocabulary == settings.vocabulary
        models.continue_from(model, encoder.source, same, f"{settings.title}, from {encoder.title}")
    table, output = model.get_input_embeddings(), model.get_output_embeddings()
    with torch.no_grad():
        if "word vectors" in plan.start:
            table.weight.copy_(torch.from_numpy(find_vectors(settings, scale, table.embedding_dim)))
        if "piece counts" in plan.start:
            ids = [text.ids for text in read_texts(settings, scale)]
            output.bias.copy_(torch.from_numpy(embeddings.log_counts(ids, table.num_embeddings)))
        if "position waves" in plan.start:
            places = models.encoder_of(model).embeddings.position_embeddings.weight
            places.copy_(torch.from_numpy(embeddings.make_waves(*places.shape)))


def read_texts(model: params.Model, scale: str, split: str = "train") -> list[tokens.Tokens]:
    """The packed corpora of a model, in the order of its file."""
    study = open_study(scale)
    return [study.vocabulary(model.vocabulary).packed(study.corpus(corpus), split) for corpus in model.corpora]


def find_vectors(model: params.Model, scale: str, width: int) -> np.ndarray:
    """Word vectors of a model's own text, (vocabulary, width); made once for all models of one text and vocabulary."""
    texts = read_texts(model, scale)
    size = len(open_study(scale).vocabulary(model.vocabulary).tokenizer())
    folder = paths.vectors(scale, model.corpora, model.vocabulary, width)
    limit = VECTOR_PIECES * size
    identity = provenance.record(
        "word vectors",
        embeddings.VERSION,
        {"width": width, "limit": limit},
        {corpus: open_study(scale).corpus(corpus).record["content"] for corpus in model.corpora}
        | {"vocabulary": provenance.file_fingerprint(paths.vocabulary(scale, model.vocabulary) / "tokenizer.json")},
    )

    def write(new: Path) -> dict:
        begun = time.monotonic()
        ids, starts = [text.ids for text in texts], [text.starts for text in texts]
        np.save(new / "vectors.npy", embeddings.train_vectors(ids, starts, size, width, seed=1, limit=limit))
        return {"seconds": round(time.monotonic() - begun)}

    artefacts.cached(folder, identity, write)
    return np.load(folder / "vectors.npy")


def time_start(settings: params.Model, scale: str, plan: Pretraining, model: torch.nn.Module) -> int:
    """Seconds that a model's word vectors took, when they were made; 0 without them."""
    if "word vectors" not in plan.start or not settings.corpora:
        return 0
    width = model.get_input_embeddings().embedding_dim
    return artefacts.read_record(paths.vectors(scale, settings.corpora, settings.vocabulary, width))["seconds"]


def evaluate(model: torch.nn.Module, batches: blocks.Blocks, device) -> dict[str, float]:
    """What objectives.measure finds, over all held-out batches."""
    sums: dict[str, list[float]] = {}
    torch.manual_seed(0)  # ELECTRA's draws
    with torch.inference_mode(), device.autocast():
        for step in range(len(batches)):
            batch = {name: tensor.to(device.device) for name, tensor in batches[step, 0, 1].items()}
            for name, (total, count) in objectives.measure(model, batch).items():
                before = sums.setdefault(name, [0.0, 0.0])
                sums[name] = [before[0] + total, before[1] + count]
    return {name: total / count for name, (total, count) in sums.items() if count}


def count_flops(model: torch.nn.Module, batches: Phases, adversarial: bool, step: int) -> float:
    """FLOPs of one step: what is multiplied in matrices, forward and backward."""
    phase, _ = batches.find(step)
    rows, length = batches.shape(step)
    asked = batches.parts[phase].masking.slots(length)
    generator = model.generator.config if isinstance(model, models.Electra) else None
    passes = objectives.ADVERSARIAL_PASSES if adversarial else 1.0
    return passes * rows * costs.training_flops(model.config, length, asked, generator)


def save(model, tokenizer, folder: Path, record: dict, log: list[dict], live: Path) -> None:
    """Write the model's folder: weights, tokenizer, model card, log.jsonl with a row a line, and the record."""
    with artefacts.whole_folder(folder) as temporary:
        model.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
        artefacts.write_text(temporary / "log.jsonl", "".join(json.dumps(row) + "\n" for row in log))
        if live.exists():
            shutil.copy(live, temporary / "live.jsonl")
        artefacts.write_text(temporary / "README.md", pretrained.write_card(folder.name, record, log))
        artefacts.write_record(temporary, record)


def main(words: Sequence[str]) -> int:
    """Pretrain the model that the words name: scale, key. The exit status."""
    if len(words) != 2:
        print("usage: python -m lib.pretraining.pretraining SCALE MODEL", file=sys.stderr)
        return 2
    if "WORLD_SIZE" in os.environ:  # torchrun's processes outlive it when it is killed
        parent.watch()
    try:
        train(words[1], words[0])
    except StudyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
