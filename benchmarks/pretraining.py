"""Pretraining: the study's loop against the Trainer of `transformers`, in tokens a second and in loss.

    python -m benchmarks.pretraining [case ...] [--steps N] [--repetitions N]
    python -m benchmarks.pretraining curves [--steps N] [--repetitions N]

Each side runs in a process of its own, all sides of a case in turn, on every core of a machine that should have
nothing else to do. Both sides have the same model, from the same random weights, the same number of tokens a step,
AdamW, and packed text made up here, and compute in bfloat16 where the processor does, else in float32. A ratio is that
of two runs of one repetition; shown are the median, the lowest and the highest.

The Trainer runs as in examples/pytorch/language-modeling/run_mlm.py: the library's own forward pass and dropout of 0.1,
DataCollatorForLanguageModeling with 15%, every other setting its default, nothing evaluated or saved. The study's loop
runs as lib/pretraining/pretraining.py calls it, without checkpoints, telling glibc to keep freed memory, which the
Trainer does not; what that alone brings the Trainer has a line too. ELECTRA has no collator or example in the library:
its two models are put together here, each with the library's forward pass and logits of every place. Both sides mask
the same share of the tokens. The share of the machine's rate of matrix products counts useful ones alone, with the
output layer at masked tokens, whatever a side computes besides.

`curves`: the loss on held-out text over 400 steps of 16 rows, three seeds a side, both without dropout and with the
same learning rates. Text and vocabulary are the study's where they are built at scale laptop, else made up.

Writes its lines into outputs/record/benchmarks/pretraining.csv, where those of other cases and devices stay, and
pretraining-curves.csv.
"""

import argparse
import multiprocessing
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy import stats
from torch import nn
from torch.nn import functional
from transformers import (
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    PreTrainedTokenizerBase,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from lib import provenance
from lib.errors import StudyError, unknown
from lib.modeling import costs, models
from lib.modeling.shape import Body
from lib.pretraining import blocks, masking, mixing, objectives, tokens
from lib.progress import Progress
from lib.study import open_study, params, paths, results
from lib.training import training
from lib.vocabularies.learning import train_wordpiece
from lib.vocabularies.tokenization import SPECIAL, load_wordpiece
from tools.made_up import language

OUTPUT = paths.output("record", "benchmarks")
LENGTH, ROWS, SHARE = 128, 32, 0.15

# Steps that are timed together. The study's loop prepares the batches of eight steps at once, so a median over single
# steps would leave that out. It is about four times as fast, so that a window takes both sides about as long.
WINDOW = {"study": 8, "trainer": 2}
WARM_UP = 2  # steps


@dataclass(frozen=True)
class Case:
    """A model, the steps of the Trainer that are timed, and what is in one."""

    title: str
    architecture: str
    body: Body
    vocabulary: int
    steps: int
    rows: int = ROWS
    length: int = LENGTH


TINY = Body(layers=2, hidden=128, heads=2, intermediate=512, embedding=128)
MINI = Body(layers=4, hidden=256, heads=4, intermediate=1024, embedding=256)
DEEP = Body(layers=12, hidden=256, heads=4, intermediate=1024, embedding=128)
CASES = {
    "mini-30522": Case("BERT-mini", "bert", MINI, 30_522, 2),
    "mini-8192": Case("BERT-mini", "bert", MINI, 8_192, 4),
    "mini-8192-laptop": Case("BERT-mini", "bert", MINI, 8_192, 16, rows=16, length=64),  # as scale laptop trains
    "tiny-30522": Case("BERT-tiny", "bert", TINY, 30_522, 6),
    "tiny-8192": Case("BERT-tiny", "bert", TINY, 8_192, 16),
    "albert-8192": Case("ALBERT, 12 shared layers of 256", "albert", DEEP, 8_192, 2),
    "electra-8192": Case("ELECTRA, 12 layers of 256", "electra", DEEP, 8_192, 2),
}


@dataclass(frozen=True)
class Side:
    """One of the ways to run a case."""

    loop: str  # "study" or "trainer"
    dropout: float = 0.0
    compiled: bool = False
    keeps_memory: bool = False  # the Trainer, told so as the study's loop always is

    @property
    def title(self) -> str:
        if self.loop == "trainer":
            return f"Trainer{' that keeps memory' if self.keeps_memory else ''}, dropout {self.dropout:g}"
        return f"{'compiled' if self.compiled else 'eager'}, dropout {self.dropout:g}"


TRAINER = Side("trainer", dropout=0.1)
LOOPS = [Side("trainer", dropout=0.1, keeps_memory=True), Side("study"), Side("study", compiled=True)]
MINI_LOOPS = [*LOOPS, Side("study", dropout=0.1)]


def sides_of(case: Case) -> list[Side]:
    return [TRAINER, *(MINI_LOOPS if case.body == MINI else LOOPS)]


# Text and batches, of both sides.


def make_tokenizer(size: int, folder: Path) -> PreTrainedTokenizerBase:
    """A tokenizer of so many word pieces, whose names mean nothing."""
    pieces = [*SPECIAL, *(f"p{i}" for i in range(size - len(SPECIAL)))]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    return load_wordpiece(folder / "vocab.txt", cased=False)


def make_text(size: int, count: int = 200_000) -> tokens.Text:
    """One document of random ids that are as frequent as Zipf's law has it; the same for the same size."""
    shares = 1 / np.arange(1, size - len(SPECIAL) + 1)
    ids = np.random.default_rng(0).choice(len(shares), count, p=shares / shares.sum()) + len(SPECIAL)
    return tokens.Text([tokens.Tokens(ids.astype(np.uint16), np.array([0, count]), "made-up text")])


class Timed:
    """Batches of the study's loop, with the times at which they were asked for."""

    def __init__(self, batches: blocks.Blocks):
        self.batches, self.times = batches, []

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, key: tuple[int, int, int]) -> dict[str, torch.Tensor]:
        self.times.append(time.perf_counter())
        return self.batches[key]

    def shape(self, step: int) -> tuple[int, int]:
        return self.batches.shape(step)


class Rows(torch.utils.data.Dataset):
    """The same rows as run_mlm hands them to the Trainer: lists, with all that a tokenizer adds."""

    def __init__(self, text: tokens.Text, tokenizer: PreTrainedTokenizerBase, length: int):
        self.text, self.tokenizer, self.special = text, tokenizer, set(tokenizer.all_special_ids)
        self.length = length

    def __len__(self) -> int:
        return len(self.text) // (self.length - 2)

    def __getitem__(self, number: int) -> dict[str, list[int]]:
        ids = self.text.read(np.arange(number * (self.length - 2), (number + 1) * (self.length - 2)))
        row = [self.tokenizer.cls_token_id, *ids.tolist(), self.tokenizer.sep_token_id]
        return {
            "input_ids": row,
            "token_type_ids": [0] * self.length,
            "attention_mask": [1] * self.length,
            "special_tokens_mask": [int(token in self.special) for token in row],
        }


class LibraryElectra(nn.Module):
    """ELECTRA's loss by the library's own two models: all logits of both."""

    def __init__(self, model: models.Electra):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask=None, token_type_ids=None, labels=None):
        masks = {"attention_mask": attention_mask, "token_type_ids": token_type_ids}
        predicted = self.model.generator(input_ids=input_ids, labels=labels, **masks)
        asked = labels != masking.IGNORED
        with torch.no_grad():
            drawn = functional.gumbel_softmax(predicted.logits[asked].float(), hard=True).argmax(-1)
            inputs = input_ids.clone()
            inputs[asked] = drawn
            replaced = torch.zeros_like(input_ids)
            replaced[asked] = (drawn != labels[asked]).long()
        judged = self.model.discriminator(input_ids=inputs, labels=replaced, **masks)
        return {"loss": predicted.loss + objectives.DISCRIMINATOR_WEIGHT * judged.loss}


class Watch(TrainerCallback):
    """The times at which the Trainer's steps began, and what is called after chosen ones."""

    def __init__(self, evaluate: Callable[[int], None] | None = None, evaluations: frozenset[int] = frozenset()):
        self.times, self.evaluate, self.evaluations = [], evaluate, evaluations

    def on_step_begin(self, args, state, control, **kwargs):
        self.times.append(time.perf_counter())

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step in self.evaluations:
            self.evaluate(state.global_step)


# One run of one side, in a process of its own.


def run_apart(function: Callable, *arguments):
    """The result of a function in a process of its own: a fork, so that the imports of seconds are there already.

    This process itself never computes, so there are no threads that a fork would lose.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork"), use_all_cores) as pool:
        return pool.submit(function, *arguments).result()


def use_all_cores() -> None:
    torch.set_num_threads(len(os.sched_getaffinity(0)))


def run_trainer(
    model: nn.Module,
    text: tokens.Text,
    tokenizer: PreTrainedTokenizerBase,
    steps: int,
    watch: Watch,
    *,
    length: int = LENGTH,
    **settings,
) -> None:
    """Train by the Trainer; what is not in `settings` is as it comes."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, max_steps=steps, use_cpu=True, save_strategy="no", eval_strategy="no", report_to="none",
            disable_tqdm=True, dataloader_num_workers=0, **settings,
        )  # fmt: skip
        trainer = Trainer(
            model=LibraryElectra(model) if isinstance(model, models.Electra) else model,
            args=arguments,
            train_dataset=Rows(text, tokenizer, length),
            processing_class=tokenizer,
            data_collator=DataCollatorForLanguageModeling(tokenizer, mlm_probability=SHARE),
            callbacks=[watch],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()


def make_batches(
    text: tokens.Text, tokenizer: PreTrainedTokenizerBase, rows: int, steps: int, seed: int = 0, length: int = LENGTH
) -> blocks.Blocks:
    hidden = masking.Masking("word-piece", SHARE)
    return blocks.Blocks(
        mixing.CorpusFiles(text), tokenizer, length=length, batch_size=rows, steps=steps, masking=hidden, seed=seed
    )


def measure_speed(case: Case, side: Side, steps: int) -> dict:
    """Tokens a second, the machine's matrix rate before the run, and the useful FLOPs of a token."""
    window = WINDOW[side.loop]
    count = WARM_UP + window * max(1, steps // WINDOW["trainer"]) + 1  # nothing tells when the last step has ended
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = make_tokenizer(case.vocabulary, Path(folder))
    text = make_text(case.vocabulary)
    torch.manual_seed(0)
    model = models.build_model(case.architecture, case.body, case.vocabulary, case.length, side.dropout)
    asked = masking.Masking("word-piece", SHARE).slots(case.length)
    generator = model.generator.config if isinstance(model, models.Electra) else None
    flops = costs.training_flops(model.config, case.length, asked, generator)
    half = training.computes_in_bfloat16()
    kind = torch.bfloat16 if half else torch.float32
    rate = costs.matrix_rate(torch.device("cpu"), kind)
    if side.loop == "study":
        batches = Timed(make_batches(text, tokenizer, case.rows, count, length=case.length))
        training.train(
            model,
            batches,
            objectives.masked_tokens if generator is None else objectives.replaced_tokens,
            device=training.accelerator("auto"),
            settings=params.load("scales", "laptop").pretraining.recipe,
            rate_of=lambda step: 1e-4,
            seed=0,
            progress=Progress("benchmark"),
            compiled=side.compiled,
            flops_of=lambda step: case.rows * flops,
        )
        times = batches.times
    else:
        if side.keeps_memory:
            training.keep_memory()
        watch = Watch()
        words = {"per_device_train_batch_size": case.rows, "bf16": half, "length": case.length}
        run_trainer(model, text, tokenizer, count, watch, **words)
        times = watch.times
    seconds = (np.diff(times[WARM_UP::window]) / window).tolist()
    return {
        "speed": case.rows * case.length / statistics.median(seconds),
        "FLOPs a token": flops / case.length,
        "dtype": str(kind).removeprefix("torch."),
        "matrix rate": rate,
    }


def follow_loss(loop: str, folder: Path, steps: int, seed: int) -> list[tuple[int, float]]:
    """The held-out loss of BERT-tiny after so many tokens, at eight times of a run."""
    rows = 16
    tokenizer = AutoTokenizer.from_pretrained(folder / "vocabulary")
    text, held_out = (tokens.Text([tokens.open_packed(folder / "tokens", split)]) for split in tokens.SPLITS)
    held_out = make_batches(held_out, tokenizer, rows=32, steps=8)
    recipe = params.load("scales", "laptop").pretraining.recipe
    rate, warmup = 2e-3, max(1, steps // 20)
    torch.manual_seed(seed)
    model = models.build_model("bert", TINY, len(tokenizer), LENGTH, 0.0)
    evaluations = frozenset(round((i + 1) * steps / 8) for i in range(8))
    if loop == "study":
        log = training.train(
            model,
            make_batches(text, tokenizer, rows, steps, seed),
            objectives.masked_tokens,
            device=training.accelerator("auto"),
            settings=recipe,
            rate_of=lambda step: rate * min(step / warmup, (steps - step) / (steps - warmup)),  # the Trainer's
            seed=seed,
            progress=Progress("benchmark"),
            evaluate=lambda: {"held-out loss": held_out_loss(model, held_out)},
            evaluations=sorted(evaluations),
        )
        return [(row["tokens"], row["held-out loss"]) for row in log if "held-out loss" in row]
    found = []

    def evaluate(step: int) -> None:
        model.eval()
        found.append((step * rows * LENGTH, held_out_loss(model, held_out)))
        model.train()

    run_trainer(
        model, text, tokenizer, steps, Watch(evaluate, evaluations), per_device_train_batch_size=rows, seed=seed,
        learning_rate=rate, warmup_steps=warmup, weight_decay=recipe.weight_decay,
        adam_beta1=recipe.betas[0], adam_beta2=recipe.betas[1], max_grad_norm=recipe.clip,
    )  # fmt: skip
    return found


def held_out_loss(model: nn.Module, batches: blocks.Blocks) -> float:
    """The mean over all masked tokens, in float32."""
    with torch.inference_mode():
        found = [objectives.measure_batch(model, batches[step])["held-out loss"] for step in range(len(batches))]
    return sum(total for total, _ in found) / sum(count for _, count in found)


# What puts the runs together.


def describe_device() -> str:
    """Cores, the processor's name and vector units, and whether it computes in bfloat16; torch's version."""
    library = f"torch {torch.__version__.partition('+')[0]}"
    facts = {}
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    flags = facts.get("flags", "").split()
    found = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if flag in flags]
    native = "" if training.computes_in_bfloat16() else "; bfloat16 only emulated"
    name = facts.get("model name", "CPU")
    return f"{len(os.sched_getaffinity(0))} cores of {name} ({', '.join(found)}{native}), {library}"


def compare_speeds(keys: list[str], steps: int | None, repetitions: int) -> list[dict]:
    """The table's lines: every other side against the Trainer as it comes, case by case."""
    found = {key: {side: [] for side in sides_of(CASES[key])} for key in keys}
    for key, runs in found.items():
        for _ in range(repetitions):
            for side, done in runs.items():
                begun = time.perf_counter()
                done.append(run_apart(measure_speed, CASES[key], side, steps or CASES[key].steps))
                print(
                    f"{key}, {side.title}: {done[-1]['speed']:,.0f} tokens/s, matrix products "
                    f"{done[-1]['matrix rate'] / 1e9:,.0f} GFLOP/s; {time.perf_counter() - begun:.0f} s",
                    flush=True,
                )
    every = [result for runs in found.values() for done in runs.values() for result in done]
    rates = {
        kind: statistics.median(r["matrix rate"] for r in every if r["dtype"] == kind)
        for kind in sorted({r["dtype"] for r in every})
    }
    where = {"device": describe_device(), "commit": provenance.commit()}
    lines = []
    for key, runs in found.items():
        for ours in (side for side in runs if side != TRAINER):
            lines.append(compare_runs(CASES[key], ours, TRAINER, runs[ours], runs[TRAINER], rates) | where)
    for kind, rate in rates.items():
        what = f"matrix product of {' x '.join(map(str, costs.MATRIX['cpu']))}, {kind}"
        lines.append({"what": what, "ours": round(rate / 1e9, 1), "unit": "GFLOP/s"} | where)
    return lines


def compare_runs(case: Case, ours: Side, peer: Side, our_runs: list, peer_runs: list, rates: dict[str, float]) -> dict:
    """One line of the table; runs go together by repetition."""

    def reach(runs: list[dict]) -> float:
        return statistics.median(r["speed"] for r in runs) * runs[0]["FLOPs a token"] / rates[runs[0]["dtype"]]

    ratios = [one["speed"] / other["speed"] for one, other in zip(our_runs, peer_runs, strict=True)]
    return {
        "what": f"{case.title}, vocabulary of {case.vocabulary}, {case.rows} x {case.length}",
        "ours_as": f"{ours.title}, {our_runs[0]['dtype']}",
        "peer_as": f"{peer.title}, {peer_runs[0]['dtype']}",
        "ours": round(statistics.median(r["speed"] for r in our_runs)),
        "peer": round(statistics.median(r["speed"] for r in peer_runs)),
        "ratio": round(statistics.median(ratios), 2),
        "lowest": round(min(ratios), 2),
        "highest": round(max(ratios), 2),
        "repetitions": len(ratios),
        "unit": "tokens/s",
        "ours_share": round(reach(our_runs), 3),
        "peer_share": round(reach(peer_runs), 3),
    }


COLUMNS = ["what", "ours_as", "peer_as", "ours", "peer", "ratio", "lowest", "highest", "repetitions", "unit",
           "ours_share", "peer_share", "device", "commit"]  # fmt: skip


def write_lines(name: str, lines: list[dict]) -> None:
    """Put lines into a table of outputs/record/benchmarks/ for those of the same device and the same first column."""
    path, new = OUTPUT / f"{name}.csv", pd.DataFrame(lines)
    if path.exists():
        old, keys = results.read_table(path), [new.columns[0], "device"]
        stays = ~old[keys].apply(tuple, axis=1).isin(new[keys].apply(tuple, axis=1))
        new = pd.concat([old[stays], new], ignore_index=True)
    results.write_csv(path, new)


CORPUS, VOCABULARY, SCALE = "pubmed-gu", "pubmed-uncased", "laptop"


def prepare_text(folder: Path) -> str:
    """Put tokens and vocabulary for the curves into a folder; says of what text they are."""
    try:
        study = open_study(SCALE)
        study.vocabulary(VOCABULARY).pack(study.corpus(CORPUS))
    except StudyError as error:
        print(f"made-up text, since {error}")
    else:
        (folder / "tokens").symlink_to(paths.tokens(SCALE, CORPUS, VOCABULARY))
        (folder / "vocabulary").symlink_to(paths.vocabulary(SCALE, VOCABULARY))
        return f"{CORPUS}, vocabulary {VOCABULARY}"
    rng, names = random.Random(0), language.Lexicon(0).names
    templates = language.MEDICAL + language.AMBIGUOUS + language.GENERAL
    texts = [language.make_text(rng, templates, names, rng.randint(5, 20)) for _ in range(4000)]
    (folder / "vocabulary").mkdir()
    train_wordpiece(lambda: texts, 8_192, cased=False).save_model(str(folder / "vocabulary"))
    tokenizer = load_wordpiece(folder / "vocabulary" / "vocab.txt", cased=False)
    tokenizer.save_pretrained(folder / "vocabulary")
    tokens.pack(texts, tokenizer, folder / "tokens")
    return "made-up text"


def compare_curves(steps: int, seeds: int) -> list[dict]:
    """A line for each side, seed and number of tokens."""
    lines = []
    with tempfile.TemporaryDirectory() as name:
        text = run_apart(prepare_text, Path(name))
        for seed in range(1, seeds + 1):
            for loop in WINDOW:
                curve = run_apart(follow_loss, loop, Path(name), steps, seed)
                lines += [
                    {"side": loop, "seed": seed, "tokens": seen, "held-out loss": round(loss, 4), "text": text}
                    for seen, loss in curve
                ]
                print(f"{loop}, seed {seed}: loss {curve[-1][1]:.3f} after {curve[-1][0]:,} tokens", flush=True)
    return [line | {"commit": provenance.commit()} for line in lines]


def describe_curves(lines: list[dict]) -> str:
    """How far the two sides are apart at the end, beside the spread over seeds."""
    last = max(line["tokens"] for line in lines)
    ours, peer = (
        np.array([line["held-out loss"] for line in lines if line["side"] == side and line["tokens"] == last])
        for side in ("study", "trainer")
    )
    text = (
        f"Held-out loss after {last:,} tokens of {lines[0]['text']}, {len(ours)} seed(s) a side: "
        f"{ours.mean():.3f} ours, {peer.mean():.3f} the Trainer's"
    )
    if len(ours) < 2:
        return f"{text}; one seed shows no spread."
    difference = ours - peer  # of one seed, from which both have the same first weights
    half = stats.t.ppf(0.975, len(difference) - 1) * stats.sem(difference)
    low, high = difference.mean() - half, difference.mean() + half
    return (
        f"{text}; mean difference {difference.mean():+.3f}, 95% interval over seeds {low:+.3f} to {high:+.3f}, which "
        f"{'holds' if low <= 0 <= high else 'does not hold'} 0; standard deviation over seeds {ours.std(ddof=1):.3f} "
        f"ours, {peer.std(ddof=1):.3f} the Trainer's."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}; or curves")
    parser.add_argument("--steps", type=int, help="of the Trainer that are timed, an even number; of curves, all")
    parser.add_argument("--repetitions", type=int, default=3, help="of curves, the seeds")
    words = parser.parse_args()
    os.environ |= {"CUDA_VISIBLE_DEVICES": "", "TOKENIZERS_PARALLELISM": "false"}
    if words.cases == ["curves"]:
        lines = compare_curves(words.steps or 400, words.repetitions)
        results.write_csv(OUTPUT / "pretraining-curves.csv", lines)
        print(describe_curves(lines))
        return
    for name in words.cases:
        if name not in CASES:
            parser.error(str(unknown("case", name, [*CASES, "curves"])))
    lines = compare_speeds(words.cases or list(CASES), words.steps, words.repetitions)
    write_lines("pretraining", [{name: line.get(name) for name in COLUMNS} for line in lines])
    for line in lines:
        print(line)


if __name__ == "__main__":
    main()
