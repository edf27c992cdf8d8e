"""Pretraining: the study's loop against the Trainer of `transformers`, in tokens a second.

    python -m benchmarks.pretraining [case ...] [--steps N] [--repetitions N]

Both sides (benchmarks/paired.py) have the same model, from the same random weights, the same number of tokens a step,
AdamW, and packed text made up here, of whose tokens they mask the same share.

The Trainer runs as in examples/pytorch/language-modeling/run_mlm.py: the library's own forward pass and dropout of 0.1,
DataCollatorForLanguageModeling with 15%, every other setting its default, nothing evaluated or saved. The study's loop
runs as lib/pretraining/pretraining.py calls it, without checkpoints, telling glibc to keep freed memory, which the
Trainer does not; what that alone brings the Trainer has a line too. ELECTRA has no collator or example in the library:
its two models are put together here, each with the library's forward pass and logits of every place. Shares count the
output layer at masked tokens, whatever a side computes besides.

`--steps`: of the Trainer that are timed, an even number, else each case has its own. Writes its lines into
outputs/record/benchmarks/pretraining.csv, where those of other cases and devices stay.
"""

import statistics
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerBase, TrainerCallback

from benchmarks import paired
from lib.modeling import costs, models
from lib.modeling.shape import Body
from lib.pretraining import blocks, masking, mixing, objectives, tokens
from lib.progress import Progress
from lib.study import params
from lib.training import training
from lib.vocabularies.tokenization import SPECIAL

MASKED = masking.Masking("word-piece", 0.15)
WARM_UP = 2  # steps

# Steps that are timed together. The study's loop prepares the batches of eight steps at once, so a median over single
# steps would leave that out. It is about four times as fast, so that a window takes both sides about as long.
WINDOW, PEER_WINDOW = 8, 2


@dataclass(frozen=True)
class Case:
    """A model, the steps of the Trainer that are timed, and what is in one."""

    title: str
    architecture: str
    body: Body
    vocabulary: int
    steps: int
    rows: int = 32
    length: int = 128


TINY = Body(layers=2, hidden=128, heads=2, intermediate=512, embedding=128)
DEEP = Body(layers=12, hidden=256, heads=4, intermediate=1024, embedding=128)
CASES = {
    "mini-30522": Case("BERT-mini", "bert", paired.MINI, 30_522, 2),
    "mini-8192": Case("BERT-mini", "bert", paired.MINI, 8_192, 4),
    "mini-8192-laptop": Case("BERT-mini", "bert", paired.MINI, 8_192, 16, rows=16, length=64),  # as scale laptop trains
    "tiny-30522": Case("BERT-tiny", "bert", TINY, 30_522, 6),
    "tiny-8192": Case("BERT-tiny", "bert", TINY, 8_192, 16),
    "albert-8192": Case("ALBERT, 12 shared layers of 256", "albert", DEEP, 8_192, 2),
    "electra-8192": Case("ELECTRA, 12 layers of 256", "electra", DEEP, 8_192, 2),
}


# Models and text, of both sides.


def make_text(size: int, count: int = 200_000) -> tokens.Text:
    """One document of random ids that are as frequent as Zipf's law has it; the same for the same size."""
    shares = 1 / np.arange(1, size - len(SPECIAL) + 1)
    ids = np.random.default_rng(0).choice(len(shares), count, p=shares / shares.sum()) + len(SPECIAL)
    return tokens.Text([tokens.Tokens(ids.astype(np.uint16), np.array([0, count]), "made-up text")])


def make_batches(text, tokenizer, rows: int, steps: int, length: int, seed: int = 0) -> blocks.Blocks:
    """The study's batches."""
    return blocks.Blocks(
        mixing.CorpusFiles(text), tokenizer, length=length, batch_size=rows, steps=steps, masking=MASKED, seed=seed
    )


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


def train_as_run_mlm(
    model: nn.Module, text: tokens.Text, tokenizer, watch: TrainerCallback, length: int, **settings
) -> None:
    """Train by the Trainer; what `settings` does not say is as it comes."""
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=MASKED.share)
    paired.train_by_trainer(model, Rows(text, tokenizer, length), collator, watch, **settings)


# One run of one side, in a process of its own.


def prepare(case: Case, dropout: float) -> tuple[nn.Module, tokens.Text, PreTrainedTokenizerBase, dict]:
    """Model, text and tokenizer; the machine's matrix rate before the run, and the useful FLOPs of a token."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = paired.make_tokenizer(case.vocabulary, Path(folder))
    torch.manual_seed(0)
    model = models.build_model(case.architecture, case.body, case.vocabulary, case.length, dropout)
    generator = model.generator.config if case.architecture == "electra" else None
    flops = costs.training_flops(model.config, case.length, MASKED.slots(case.length), generator)
    found = {"matrix rate": paired.measure_rate(), "FLOPs": flops / case.length}
    return model, make_text(case.vocabulary), tokenizer, found


def count_steps(windows: int, window: int) -> int:
    """The steps of a run, one more than are timed: nothing tells when the last one has ended."""
    return WARM_UP + window * windows + 1


def find_speed(case: Case, times: list[float], window: int) -> float:
    """Tokens a second, the median over windows, of the times at which steps began."""
    seconds = np.diff(times[WARM_UP::window]) / window
    return case.rows * case.length / float(np.median(seconds))


def run_ours(case: Case, windows: int, dropout: float = 0.0, compiled: bool = False) -> dict:
    """The study's loop."""
    model, text, tokenizer, found = prepare(case, dropout)
    batches = make_batches(text, tokenizer, case.rows, count_steps(windows, WINDOW), case.length)
    timed = paired.Timed(batches)
    training.train(
        model,
        timed,
        objectives.replaced_tokens if case.architecture == "electra" else objectives.masked_tokens,
        device=training.accelerator("auto"),
        settings=params.load("scales", "laptop").pretraining.recipe,
        rate_of=lambda step: 1e-4,
        seed=0,
        progress=Progress("benchmark"),
        compiled=compiled,
    )
    return found | {"speed": find_speed(case, timed.times, WINDOW)}


def run_trainer(case: Case, windows: int, keeps_memory: bool = False) -> dict:
    """The Trainer; `keeps_memory`: told so as the study's loop always is."""
    model, text, tokenizer, found = prepare(case, dropout=0.1)
    if keeps_memory:
        training.keep_memory()
    watch = paired.Watch()
    train_as_run_mlm(
        LibraryElectra(model) if case.architecture == "electra" else model, text, tokenizer, watch, case.length,
        max_steps=count_steps(windows, PEER_WINDOW), per_device_train_batch_size=case.rows,
        bf16=training.computes_in_bfloat16(),
    )  # fmt: skip
    return found | {"speed": find_speed(case, watch.times, PEER_WINDOW)}


# What puts the runs together.

PEER = "Trainer, dropout 0.1"
SIDES = {
    PEER: run_trainer,
    "Trainer that keeps memory, dropout 0.1": partial(run_trainer, keeps_memory=True),
    "eager, dropout 0": run_ours,
    "compiled, dropout 0": partial(run_ours, compiled=True),
}
DROPPED = {"eager, dropout 0.1": partial(run_ours, dropout=0.1)}  # of BERT-mini too


def run_case(key: str, steps: int | None, repetitions: int) -> dict[str, list[dict]]:
    """The runs of each side."""
    case = CASES[key]
    sides = SIDES | (DROPPED if case.body == paired.MINI else {})
    runs: dict[str, list[dict]] = {side: [] for side in sides}
    for _ in range(repetitions):
        for side, function in sides.items():
            run = paired.run_apart(function, case, max(1, (steps or case.steps) // PEER_WINDOW))
            runs[side].append(run)
            rate = f"matrix products {run['matrix rate'] / 1e9:,.0f} GFLOP/s"
            print(f"{key}, {side}: {run['speed']:,.0f} tokens/s, {rate}", flush=True)
    return runs


def compare_sides(case: Case, runs: dict[str, list[dict]], rate: float) -> list[dict]:
    """A line for each other side against the Trainer as it comes."""
    speeds = {side: [run["speed"] for run in done] for side, done in runs.items()}
    what = f"{case.title}, vocabulary of {case.vocabulary}, {case.rows} x {case.length}"
    peer, precision = speeds.pop(PEER), training.resolve("auto")
    most = rate / runs[PEER][0]["FLOPs"]
    return [
        {"what": what, "ours_as": f"{side}, {precision}", "peer_as": f"{PEER}, {precision}"}
        | paired.compare(ours, peer, "tokens/s", digits=None)
        | paired.share(ours, peer, most)
        for side, ours in speeds.items()
    ]


def main() -> None:
    parser = paired.make_parser(__doc__, steps=None, repetitions=3)
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}")
    words = parser.parse_args()
    paired.check(parser, words.cases, CASES)
    found = {key: run_case(key, words.steps, words.repetitions) for key in words.cases or CASES}
    rate = statistics.median(run["matrix rate"] for runs in found.values() for done in runs.values() for run in done)
    lines = [line for key, runs in found.items() for line in compare_sides(CASES[key], runs, rate)]
    product = f"matrix product of {' x '.join(map(str, costs.MATRIX['cpu']))}, {training.resolve('auto')}"
    lines.append({"what": product, "ours": round(rate / 1e9, 1), "unit": "GFLOP/s"})
    paired.write_lines("pretraining", [line | paired.describe_machine() for line in lines])


if __name__ == "__main__":
    paired.start(main)
