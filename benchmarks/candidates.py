"""What each way to make a pretraining step faster brings on this machine, those that lib does not take too.

    python -m benchmarks.candidates [--repetitions N] [--threads N]

BERT-mini, masked tokens; a step is forward, backward and optimizer, as the loop takes it, on one batch. Today and
each candidate take turns in one process. A ratio is today's seconds over the candidate's, of one repetition; shown are
the median, the lowest and the highest. lib takes what gains 3% on each. Candidates change no more than the order of
sums and the precision of what lies between two products. Writes outputs/record/benchmarks/candidates.csv.
"""

import argparse
import os
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import torch
from torch.nn import functional

from benchmarks.pretraining import (
    CASES,
    OUTPUT,
    describe_device,
    make_batches,
    make_text,
    make_tokenizer,
    run_apart,
)
from lib import provenance
from lib.modeling import bodies, models
from lib.pretraining import masking, objectives
from lib.study import params, results
from lib.training import timing, training

SHAPES = {"mini-8192": [(32, 128), (16, 64)], "mini-30522": [(32, 128)]}  # rows and their length
CHUNK = 64  # positions whose logits are in memory at once


def attend_fused(query, key, value, mask, lost, training):
    """Attention by torch's kernel."""
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=lost if training else 0)


def apply_one_product(layer, hidden, queried, mask, config, training):
    """A layer whose queries, keys and values are one product of the three weights put together."""
    if queried is not hidden:
        return APPLY_LAYER(layer, hidden, queried, mask, config, training)
    modules = (layer.query, layer.key, layer.value)
    weight, bias = (torch.cat([getattr(module, name) for module in modules]) for name in ("weight", "bias"))
    made = iter(functional.linear(hidden, weight, bias).chunk(3, -1))
    query, key, value = (lambda x: next(made) for _ in modules)
    return APPLY_LAYER(layer._replace(query=query, key=key, value=value), hidden, queried, mask, config, training)


def embed_in_bfloat16(*arguments):
    """What the layers add to in the precision of their products."""
    return EMBED(*arguments).to(find_precision())


def find_precision() -> torch.dtype:
    """That of products here: bfloat16 where the processor has it, else float32."""
    return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32


class ChunkedLoss(torch.autograd.Function):
    """Summed cross-entropy of a linear layer's logits, of which no more than CHUNK rows are in memory in float32."""

    @staticmethod
    def forward(ctx, states, weight, bias, targets):
        slopes = torch.empty(len(states), len(weight), dtype=states.dtype)
        small, total = weight.to(states.dtype), torch.zeros(())
        for first in range(0, len(states), CHUNK):
            part = slice(first, first + CHUNK)
            logits = torch.addmm(bias.to(states.dtype), states[part], small.T).float()
            kept = (targets[part] != masking.IGNORED)[:, None]
            rights = targets[part].clamp(min=0)[:, None]
            logs = logits.log_softmax(-1)
            total -= (logs.gather(1, rights) * kept).sum()
            slopes[part] = logs.exp_().scatter_add_(1, rights, -torch.ones_like(rights, dtype=torch.float)) * kept
        ctx.save_for_backward(states, small, slopes)
        return total

    @staticmethod
    def backward(ctx, slope):
        states, small, slopes = ctx.saved_tensors
        return slope * (slopes @ small), slope * (slopes.T @ states).float(), slope * slopes.float().sum(0), None


def lose_in_chunks(model, batch):
    """The loss of masked tokens by ChunkedLoss."""
    states, _ = objectives.hidden_states(model, batch)
    head = model.cls.predictions
    states = head.transform(states).flatten(0, 1).to(find_precision())
    total = ChunkedLoss.apply(states, head.decoder.weight, head.decoder.bias, batch["targets"].flatten())
    return total / batch["counts"][0]


EMBED, APPLY_LAYER = bodies.embed, bodies.apply_layer
# Without its patterns, one of which puts torch's attention in place of the products.
COMPILED = torch.compile(APPLY_LAYER, dynamic=False, options={"pattern_matcher": False})
CANDIDATES: dict[str, tuple[dict, Callable]] = {  # what stands in bodies, and the loss
    "today": ({}, objectives.masked_tokens),
    "fused attention": ({"attend": attend_fused}, objectives.masked_tokens),
    "one product for q, k, v": ({"apply_layer": apply_one_product}, objectives.masked_tokens),
    "what layers add to in bfloat16": ({"embed": embed_in_bfloat16}, objectives.masked_tokens),
    "loss in chunks": ({}, lose_in_chunks),
    "each layer compiled": ({"apply_layer": COMPILED}, objectives.masked_tokens),
    "each layer compiled, in bfloat16": (
        {"apply_layer": COMPILED, "embed": embed_in_bfloat16},
        objectives.masked_tokens,
    ),
}


def measure(key: str, rows: int, length: int, repetitions: int, threads: int) -> list[dict]:
    """A line a candidate, of one shape of a step."""
    torch.set_num_threads(threads)
    case, device = CASES[key], training.accelerator("auto")
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = make_tokenizer(case.vocabulary, Path(folder))
    batch = make_batches(make_text(case.vocabulary), tokenizer, rows, 1, length=length)[0, 0, 1]
    recipe, works = params.load("scales", "laptop").pretraining.recipe, {}
    for name, (functions, loss_of) in CANDIDATES.items():
        torch.manual_seed(0)
        model = models.build(case.architecture, case.body, case.vocabulary, length, 0.0)
        step = timing.make_step(model, loss_of, batch, recipe, 1e-4, device)
        works[name] = lambda step=step, functions=functions: take(step, functions)
    times = timing.take_turns(works, repetitions, device.device)
    wide = times.pivot(index="repetition", columns="model", values="seconds")
    kind = "bfloat16" if device.mixed_precision == "bf16" else "float32"
    where = {"device": f"{describe_device()}, {threads} thread(s), {kind}", "commit": provenance.commit()}
    lines = []
    for name in CANDIDATES:
        ratios = wide["today"] / wide[name]
        lines.append({
            "what": f"{case.title}, vocabulary of {case.vocabulary}, {rows} x {length}", "candidate": name,
            "ms": round(1000 * float(wide[name].median()), 1), "ratio": round(float(ratios.median()), 3),
            "lowest": round(float(ratios.min()), 3), "highest": round(float(ratios.max()), 3),
            "repetitions": len(ratios), **where,
        })  # fmt: skip
    return lines


def take(step: Callable, functions: dict) -> float:
    """A step with functions of lib/modeling/bodies.py replaced; its loss."""
    with mock.patch.multiple(bodies, **functions) if functions else nullcontext():
        return step().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    words, lines = parser.parse_args(), []
    for key, shapes in SHAPES.items():
        for rows, length in shapes:
            lines += run_apart(measure, key, rows, length, words.repetitions, words.threads)
            for line in lines[-len(CANDIDATES) :]:
                print({name: line[name] for name in ("what", "candidate", "ms", "ratio", "lowest", "highest")})
    results.write_csv(OUTPUT / "candidates.csv", lines)


if __name__ == "__main__":
    main()
