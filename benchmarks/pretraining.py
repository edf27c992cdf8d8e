"""Pretraining: the study's loop against the Trainer of `transformers`, in tokens a second.

    python -m benchmarks.pretraining [case ...] [--steps N] [--repetitions N]

Both sides (benchmarks/paired.py) train the same model from the same random weights with AdamW, on the same number of
tokens a step. They read made-up packed text and mask the same share of its tokens.

The Trainer runs as in examples/pytorch/language-modeling/run_mlm.py: the library's own forward pass, dropout of 0.1,
DataCollatorForLanguageModeling with 15%, every other setting at its default, nothing evaluated or saved. The study's
loop runs as lib/pretraining/pretraining.py calls it, without checkpoints. It tells glibc to keep freed memory, which
the Trainer does not; a separate row shows the Trainer's gain from that alone. The library has no collator or example
for ELECTRA: its two models are combined here, each with the library's forward pass and logits at every position. Shares
count the output layer at masked tokens only, even if a side computes more.

`--steps`: the timed steps of the Trainer, an even number; by default each case has its own. Writes its rows into
outputs/record/benchmarks/pretraining.csv, keeping those of other cases and devices.
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
from lib.vocabularies.special_tokens import SPECIAL

MASKED = masking.Masking("word-piece", 0.15)
WARM_UP = 2  # steps

# Steps that are timed together. The study's loop prepares the batches of eight steps at once, so a median over single
# steps would miss that time. It is about four times as fast, so these windows take both sides about as long.
WINDOW, PEER_WINDOW = 8, 2


@dataclass(frozen=True)
class Case:
    """A model, the timed steps of the Trainer, and the size of a batch."""

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


# Models and text for both sides.


def make_text(size: int, count: int = 200_000) -> tokens.Text:
    """Return one document of random ids whose frequencies follow Zipf's law; the same for the same size."""
    shares = 1 / np.arange(1, size - len(SPECIAL) + 1)
    ids = np.random.default_rng(0).choice(len(shares), count, p=shares / shares.sum()) + len(SPECIAL)
    return tokens.Text([tokens.Tokens(ids.astype(np.uint16), np.array([0, count]), "made-up text")])


def make_batches(text, tokenizer, rows: int, steps: int, length: int, seed: int = 0) -> blocks.Blocks:
    """Return the study's batches."""
    return blocks.Blocks(
        mixing.CorpusFiles(text), tokenizer, length=length, batch_size=rows, steps=steps, masking=MASKED, seed=seed
    )


class Rows(torch.utils.data.Dataset):
    """The same text as the rows that run_mlm gives the Trainer: lists, with every field that a tokenizer adds."""

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
    """ELECTRA's loss from the library's own two models, with both models' logits at every position."""

    def __init__(self, model: models.Electra):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask=None, token_type_ids=None, labels=None):
        masks = {"attention_mask": attention_mask, "token_type_ids": token_type_ids}
        generated = self.model.generator(input_ids=input_ids, labels=labels, **masks)
        masked = labels != masking.IGNORED
        with torch.no_grad():
            sampled = functional.gumbel_softmax(generated.logits[masked].float(), hard=True).argmax(-1)
            inputs = input_ids.clone()
            inputs[masked] = sampled
            replaced = torch.zeros_like(input_ids)
            replaced[masked] = (sampled != labels[masked]).long()
        discriminated = self.model.discriminator(input_ids=inputs, labels=replaced, **masks)
        return {"loss": generated.loss + objectives.DISCRIMINATOR_WEIGHT * discriminated.loss}


def train_as_run_mlm(
    model: nn.Module, text: tokens.Text, tokenizer, watch: TrainerCallback, length: int, **settings
) -> None:
    """Train with the Trainer as run_mlm does. Settings not given keep their defaults."""
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=MASKED.share)
    paired.train_by_trainer(model, Rows(text, tokenizer, length), collator, watch, **settings)


# One run of one side, in its own process.


def prepare(case: Case, dropout: float) -> tuple[nn.Module, tokens.Text, PreTrainedTokenizerBase, dict]:
    """Return model, text and tokenizer, with the matrix rate before the run and the useful FLOPs per token."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = paired.make_tokenizer(case.vocabulary, Path(folder))
    torch.manual_seed(0)
    model = models.build_model(case.architecture, case.body, case.vocabulary, case.length, dropout)
    generator = model.generator.config if case.architecture == "electra" else None
    flops = costs.training_flops(model.config, case.length, MASKED.slots(case.length), generator)
    facts = {"matrix rate": paired.measure_rate(), "FLOPs": flops / case.length}
    return model, make_text(case.vocabulary), tokenizer, facts


def count_steps(windows: int, window: int) -> int:
    """Return the steps of a run: one more than are timed, because nothing shows when the last one ends."""
    return WARM_UP + window * windows + 1


def find_speed(case: Case, times: list[float], window: int) -> float:
    """Return tokens a second, the median over windows. `times`: when each step began."""
    seconds = np.diff(times[WARM_UP::window]) / window
    return case.rows * case.length / float(np.median(seconds))


def run_ours(case: Case, windows: int, dropout: float = 0.0, compiled: bool = False) -> dict:
    """Pretrain with the study's loop, and return its speed and the FLOPs."""
    model, text, tokenizer, facts = prepare(case, dropout)
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
    return facts | {"speed": find_speed(case, timed.times, WINDOW)}


def run_trainer(case: Case, windows: int, keeps_memory: bool = False) -> dict:
    """Pretrain with the Trainer, and return its speed and the FLOPs.

    `keeps_memory`: tell glibc to keep freed memory, as the study's loop always does.
    """
    model, text, tokenizer, facts = prepare(case, dropout=0.1)
    if keeps_memory:
        training.keep_memory()
    watch = paired.Watch()
    train_as_run_mlm(
        LibraryElectra(model) if case.architecture == "electra" else model, text, tokenizer, watch, case.length,
        max_steps=count_steps(windows, PEER_WINDOW), per_device_train_batch_size=case.rows,
        bf16=training.computes_in_bfloat16(),
    )  # fmt: skip
    return facts | {"speed": find_speed(case, watch.times, PEER_WINDOW)}


# All runs together.

PEER = "Trainer, dropout 0.1"
SIDES = {
    PEER: run_trainer,
    "Trainer that keeps memory, dropout 0.1": partial(run_trainer, keeps_memory=True),
    "eager, dropout 0": run_ours,
    "compiled, dropout 0": partial(run_ours, compiled=True),
}
DROPPED = {"eager, dropout 0.1": partial(run_ours, dropout=0.1)}  # in addition, for BERT-mini only


def run_case(key: str, steps: int | None, repetitions: int) -> dict[str, list[dict]]:
    """Run every side of a case, in turn, and return the runs of each."""
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
    """Return a row for each other side, compared with the Trainer at its defaults."""
    speeds = {side: [run["speed"] for run in side_runs] for side, side_runs in runs.items()}
    description = f"{case.title}, vocabulary of {case.vocabulary}, {case.rows} x {case.length}"
    peer, precision = speeds.pop(PEER), training.resolve("auto")
    peak_speed = rate / runs[PEER][0]["FLOPs"]
    return [
        {"what": description, "ours_as": f"{side}, {precision}", "peer_as": f"{PEER}, {precision}"}
        | paired.compare(ours, peer, "tokens/s", digits=None)
        | paired.share(ours, peer, peak_speed)
        for side, ours in speeds.items()
    ]


def main() -> None:
    parser = paired.make_parser(__doc__, steps=None, repetitions=3)
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}")
    options = parser.parse_args()
    paired.check(parser, options.cases, CASES)
    runs_by_case = {key: run_case(key, options.steps, options.repetitions) for key in options.cases or CASES}
    rate = statistics.median(
        run["matrix rate"] for runs in runs_by_case.values() for side_runs in runs.values() for run in side_runs
    )
    rows = [row for key, runs in runs_by_case.items() for row in compare_sides(CASES[key], runs, rate)]
    product = f"matrix product of {' x '.join(map(str, costs.MATRIX['cpu']))}, {training.resolve('auto')}"
    rows.append({"what": product, "ours": round(rate / 1e9, 1), "unit": "GFLOP/s"})
    paired.write_lines("pretraining", [row | paired.describe_machine() for row in rows])


if __name__ == "__main__":
    paired.start(main)
