"""Paired runs of the study and a peer: separate processes, the Trainer of `transformers`, ratios, tables.

The two sides alternate. Each run has its own process, on all cores of a machine that should be otherwise idle. A ratio
compares two runs of one repetition; tables show the median, lowest and highest ratio. Shares are fractions of the
machine's rate of matrix products (lib/modeling/costs.py) and count useful products only. Both sides compute in bfloat16
if the processor does, else in float32. Nothing runs on a GPU.
"""

import argparse
import multiprocessing
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pandas as pd
import torch
from torch import nn
from transformers import PreTrainedTokenizerBase, PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from lib import provenance
from lib.errors import StudyError, unknown
from lib.modeling import costs
from lib.modeling.shape import Body
from lib.study import paths, results
from lib.training import training
from lib.vocabularies.special_tokens import SPECIAL
from lib.vocabularies.tokenization import load_vocabulary

OUTPUT = paths.output("record", "benchmarks")
MINI = Body(layers=4, hidden=256, heads=4, intermediate=1024, embedding=256)


def make_parser(said: str, **numbers: int | None) -> argparse.ArgumentParser:
    """Return a command-line parser that shows a docstring and has an integer option for each of `numbers`."""
    parser = argparse.ArgumentParser(description=said, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser


def check(parser: argparse.ArgumentParser, names: Iterable[str], known: Iterable[str]) -> None:
    """Exit with the parser's message if a name is not known."""
    for name in names:
        if name not in known:
            parser.error(str(unknown("name", name, known)))


def start(main: Callable[[], None]) -> None:
    """Call `main` with GPUs hidden, and exit with the message of a StudyError."""
    os.environ |= {"CUDA_VISIBLE_DEVICES": "", "TOKENIZERS_PARALLELISM": "false"}
    try:
        main()
    except StudyError as error:
        sys.exit(f"error: {error}")


def run_apart(function: Callable, *arguments):
    """Return the result of a function that runs in its own process.

    The process is a fork, so that it does not spend seconds on imports. This process itself never computes, so it has
    no threads that a fork would lose.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork"), use_all_cores) as pool:
        return pool.submit(function, *arguments).result()


def use_all_cores() -> None:
    torch.set_num_threads(len(os.sched_getaffinity(0)))


def make_tokenizer(size: int, folder: Path) -> PreTrainedTokenizerBase:
    """Write a vocabulary of `size` meaningless word pieces into a folder, and return its tokenizer."""
    pieces = [*SPECIAL, *(f"p{i}" for i in range(size - len(SPECIAL)))]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    return load_vocabulary(folder / "vocab.txt", cased=False)


class Timed:
    """Batches for the study's loop that record when each is requested."""

    def __init__(self, batches: training.Batches):
        self.batches, self.times = batches, []

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, key: tuple[int, int, int]) -> training.Batch:
        self.times.append(time.perf_counter())
        return self.batches[key]

    def shape(self, step: int) -> tuple[int, int]:
        return self.batches.shape(step)


class Watch(TrainerCallback):
    """A callback that records when each of the Trainer's steps begins."""

    def __init__(self):
        self.times = []

    def on_step_begin(self, args, state, control, **kwargs):
        self.times.append(time.perf_counter())


def train_by_trainer(model: nn.Module, rows, collator, watch: TrainerCallback, **settings) -> Trainer:
    """Train with the Trainer and return it. Settings not given keep their defaults; nothing is saved."""
    with tempfile.TemporaryDirectory(prefix="study-") as folder:
        arguments = TrainingArguments(
            folder, use_cpu=True, save_strategy="no", logging_strategy="no", report_to=[], disable_tqdm=True, **settings
        )
        trainer = Trainer(model, arguments, data_collator=collator, train_dataset=rows, callbacks=[watch])
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return trainer


def measure_rate() -> float:
    """Return the FLOP/s of matrix products in the precision that both sides compute in."""
    return costs.matrix_rate(torch.device("cpu"), getattr(torch, training.resolve("auto")))


def compare(ours: list[float], peer: list[float], unit: str, digits: int | None = 1) -> dict:
    """Return the table columns that compare both sides' speeds, which are paired by repetition."""
    ratios = [our_speed / peer_speed for our_speed, peer_speed in zip(ours, peer, strict=True)]
    return {
        "ours": round(statistics.median(ours), digits),
        "peer": round(statistics.median(peer), digits),
        "ratio": round(statistics.median(ratios), 2),
        "lowest": round(min(ratios), 2),
        "highest": round(max(ratios), 2),
        "repetitions": len(ratios),
        "unit": unit,
    }


def share(ours: list[float], peer: list[float], most: float) -> dict:
    """Return both sides' median speeds as shares of `most`, the speed at the machine's rate of matrix products."""
    shares = (round(statistics.median(speeds) / most, 3) for speeds in (ours, peer))
    return dict(zip(("ours_share", "peer_share"), shares, strict=True))


def describe_machine() -> dict[str, str]:
    """Return the last columns of every table: the device and the commit."""
    return {"device": describe_device(), "commit": provenance.commit()}


def describe_device() -> str:
    """Describe the cores, the processor with its vector units and bfloat16 support, and torch's version."""
    facts = dict(re.findall(r"^(model name|flags)\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M))
    flags = facts.get("flags", "").split()
    vector_units = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if flag in flags]
    native = "" if training.computes_in_bfloat16() else "; bfloat16 only emulated"
    cores, library = len(os.sched_getaffinity(0)), torch.__version__.partition("+")[0]
    return f"{cores} cores of {facts.get('model name', 'CPU')} ({', '.join(vector_units)}{native}), torch {library}"


def write_lines(name: str, lines: list[dict], keys: tuple[str, ...] = ("what", "device")) -> None:
    """Print rows and write them into a table of outputs/record/benchmarks/, replacing all rows with the same keys."""
    path, table = OUTPUT / f"{name}.csv", pd.DataFrame(lines)
    print(table.to_string(index=False))
    if path.exists():
        old_table = results.read_table(path).set_index(list(keys), drop=False)
        is_kept = ~old_table.index.isin(table.set_index(list(keys)).index)
        table = pd.concat([old_table[is_kept], table], ignore_index=True)
    results.write_csv(path, table)
