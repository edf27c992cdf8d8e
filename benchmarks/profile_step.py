"""Where the time of a training step goes, in rows that a person understands, and how near it is to the machine's rate.

    python -m benchmarks.profile_step [case ...] [--steps N] [--threads N]

Pretraining and fine-tuning run as lib does it, on made-up text; after a warm-up torch's profiler looks on, and the time
of each operation by itself goes to one row. What Python does between operations is in none. `share` is that of all
rows; of `useful FLOPs` it is what lib/modeling/costs.py counts as needed, over the rate of a large matrix product in
the same precision: the profiler's own cost lowers it. Writes its lines into outputs/record/benchmarks/profile.csv,
where those of other cases and devices stay.
"""

import argparse
import os
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks import finetuning
from benchmarks.pretraining import (
    LENGTH,
    MINI,
    ROWS,
    SHARE,
    Timed,
    describe_device,
    make_batches,
    make_text,
    make_tokenizer,
    run_apart,
    write_lines,
)
from lib import provenance
from lib.errors import unknown
from lib.finetuning.examples import BucketedBatches
from lib.modeling import costs, loading, models
from lib.modeling.shape import Body
from lib.pretraining import masking, objectives
from lib.progress import Progress
from lib.study import params
from lib.training import training

WARM_UP = 10  # steps, in which kernels are built
PARTS = {  # a row -> its operations, without aten:: and what follows an underscore
    "matrix products": ("mm", "addmm", "bmm", "baddbmm", "matmul", "linear", "mkldnn"),
    "attention": ("_scaled_dot_product", "scaled_dot_product"),
    "GELU": ("gelu",),
    "layer norm": ("native_layer_norm", "layer_norm"),
    "softmax and loss": ("_log_softmax", "_softmax", "softmax", "log_softmax", "nll_loss", "cross_entropy"),
    "dropout": ("bernoulli", "native_dropout", "dropout", "_fused_dropout", "random", "ge"),
    "copies and casts": ("copy_", "_to_copy", "to", "clone", "contiguous", "cat", "stack", "index", "gather", "take",
                         "slice_backward", "select_backward", "as_strided", "fill_", "zero_", "zeros", "empty"),
    "embeddings": ("embedding",),
    "optimizer and clipping": ("_foreach", "_fused_adamw", "linalg_vector_norm", "addcdiv", "addcmul", "lerp", "sqrt"),
    "sums and additions": ("add", "mul", "sum", "div", "sub", "mean", "where", "masked_fill", "neg", "pow"),
}  # fmt: skip


@dataclass(frozen=True)
class Profiled:
    """A model that is trained, and on what: pretrained on so many rows a step, or fine-tuned on sentences."""

    title: str
    body: Body
    rows: int
    length: int | None = LENGTH  # none: sentences


PROFILES = {
    "pretraining": Profiled("BERT-mini, pretraining, 32 x 128", MINI, ROWS),
    "recipe": Profiled("BERT-mini, pretraining, 16 x 64", MINI, 16, 64),
    "fine-tuning": Profiled("BERT-mini, fine-tuning, 16 sentences", MINI, 16, None),
}


class Watched(Timed):
    """Batches that start the profiler when the warm-up is over."""

    def __init__(self, batches, profiler: profile):
        super().__init__(batches)
        self.profiler = profiler

    def __getitem__(self, key: tuple[int, int, int]) -> dict[str, torch.Tensor]:
        if key[:2] == (WARM_UP, 0):
            self.profiler.start()
        return super().__getitem__(key)


def prepare(what: Profiled, steps: int, folder: Path):
    """The model, its batches, its loss and optimisation, and the useful FLOPs of a token."""
    torch.manual_seed(0)
    if what.length:
        tokenizer = make_tokenizer(finetuning.VOCABULARY, folder)
        model = models.build_model("bert", what.body, len(tokenizer), what.length, 0.0)
        batches = make_batches(make_text(len(tokenizer)), tokenizer, what.rows, steps, length=what.length)
        asked = masking.Masking("word-piece", SHARE).slots(what.length)
        flops = costs.training_flops(model.config, what.length, asked) / what.length
        return model, batches, objectives.masked_tokens, params.load("scales", "laptop").pretraining.recipe, flops
    finetuning.save_encoder(what.body, folder)
    encoder, sentences = loading.load_encoder(folder), finetuning.make_sentences(what.rows * steps)
    task, settings = finetuning.make_task(sentences, encoder.tokenizer), finetuning.read_settings()
    model, sequences = task.build(encoder.body(0.1), sentences), task.encode(sentences)
    batches = BucketedBatches(sequences, task.collate, batch_size=what.rows, epochs=1, steps=None, seed=1)
    mean = float(np.mean([len(sequence.tokens) for sequence in sequences]))
    flops = 3 * costs.body_flops(model.config, mean, mean) / mean
    return model, batches, lambda module, batch: module.loss(batch), settings.optimization(), flops


def measure(key: str, steps: int, threads: int) -> list[dict]:
    """The rows of a case: milliseconds a step, and the share of all of them."""
    torch.set_num_threads(threads)
    what, device = PROFILES[key], training.accelerator("auto")
    with tempfile.TemporaryDirectory() as folder:
        model, batches, loss_of, settings, flops = prepare(what, WARM_UP + steps, Path(folder))
    profiler = profile(activities=[ProfilerActivity.CPU])
    log = training.train(
        model, Watched(batches, profiler), loss_of, device=device, settings=settings, rate_of=lambda step: 1e-4, seed=0,
        progress=Progress("benchmark"),
    )  # fmt: skip
    profiler.stop()
    before = next(row for row in reversed(log) if row["step"] <= WARM_UP)
    seconds, tokens = (log[-1][name] - before[name] for name in ("seconds", "tokens"))
    kind = torch.bfloat16 if device.mixed_precision == "bf16" else torch.float32
    reached = flops * tokens / seconds / costs.matrix_rate(torch.device("cpu"), kind)
    times: Counter = Counter()
    for event in profiler.key_averages():
        times[find_part(event.key)] += event.self_cpu_time_total / 1000 / (len(batches) - WARM_UP)
    whole = sum(times.values())
    where = {"device": f"{describe_device()}, {threads} thread(s), {str(kind)[6:]}", "commit": provenance.commit()}
    lines = [{"what": part, "ms": round(ms, 2), "share": round(ms / whole, 3)} for part, ms in times.most_common()]
    lines.append({"what": "useful FLOPs", "ms": round(1000 * seconds / (len(batches) - WARM_UP), 2),
                  "share": round(reached, 3)})  # fmt: skip
    return [{"model": what.title} | line | where for line in lines]


def find_part(operation: str) -> str:
    """The row of an operation by its name; the optimizer's own are those that torch names so."""
    if operation.startswith("Optimizer"):
        return "optimizer and clipping"
    name = operation.removeprefix("aten::")
    known = (part for part, starts in PARTS.items() for one in starts if name == one or name.startswith(f"{one}_"))
    return next(known, "the rest")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(PROFILES)}")
    parser.add_argument("--steps", type=int, default=20, help="that the profiler sees")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    words = parser.parse_args()
    for name in words.cases:
        if name not in PROFILES:
            parser.error(str(unknown("case", name, PROFILES)))
    lines = [line for key in words.cases or PROFILES for line in run_apart(measure, key, words.steps, words.threads)]
    write_lines("profile", lines)
    for line in lines:
        print(f"{line['model']:40} {line['what']:24} {line['ms']:8.2f} ms {line['share']:6.1%}")


if __name__ == "__main__":
    main()
