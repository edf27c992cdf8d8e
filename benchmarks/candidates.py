"""What each way to make a pretraining step faster brings on this machine, those that lib does not take too.

    python -m benchmarks.candidates [--repetitions N] [--threads N]

BERT-mini, masked tokens; a step is forward, backward and optimizer, as the loop takes it, on one batch. Today and
each candidate take turns in one process. A ratio is today's seconds over the candidate's, of one repetition; shown are
the median, the lowest and the highest. lib takes what gains 3% on each and leaves weights and gradients in float32.
Candidates change no more than the order of sums, the precision of what lies between two products and, where weights
are said to be in bfloat16, that of gradients.
Writes outputs/record/benchmarks/candidates.csv, in which lines of other devices stay.
"""

import argparse
import os
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import torch
from torch import nn
from torch.nn import functional

from benchmarks.pretraining import (
    CASES,
    describe_device,
    make_batches,
    make_text,
    make_tokenizer,
    run_apart,
    write_lines,
)
from lib import provenance
from lib.modeling import bodies, models
from lib.pretraining import masking, objectives
from lib.study import params
from lib.training import optimizers, timing, training

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


def normalise_in_bfloat16(norm):
    """A layer norm that reads and writes what layers add to, where autocast would make it float32; sums are in float32
    either way."""

    def apply(values):
        with torch.autocast(values.device.type, enabled=False):
            return functional.layer_norm(values, norm.normalized_shape, norm.weight, norm.bias, norm.eps)

    return apply


def in_bfloat16(apply_layer):
    """The application of a layer with all of its activations in bfloat16."""

    def apply(layer, *arguments):
        norms = {name: normalise_in_bfloat16(getattr(layer, name)) for name in ("attended_norm", "norm")}
        return apply_layer(layer._replace(**norms), *arguments)

    return apply


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


def make_half_step(model, loss_of, batch, settings, rate, device):
    """A step on weights in bfloat16, of which the optimizer keeps copies in float32, two tensors: what decays, and what
    does not."""
    groups = [[one for one in model.parameters() if (one.ndim > 1) == decays] for decays in (True, False)]
    flat = [torch.cat([one.detach().flatten() for one in group]) for group in groups]
    copies = nn.ParameterList([flat[0][None], flat[1]])
    optimizer = optimizers.make_optimizer(copies, settings, rate)
    model.to(torch.bfloat16).train()

    def step() -> torch.Tensor:
        loss = loss_of(model, batch)
        loss.backward()
        for group, copy in zip(groups, copies, strict=True):
            copy.grad = torch.cat([one.grad.flatten() for one in group]).float().view_as(copy)
        nn.utils.clip_grad_norm_(copies, settings.clip)
        optimizer.step()
        with torch.no_grad():
            for group, copy in zip(groups, copies, strict=True):
                parts = copy.flatten().split([one.numel() for one in group])
                torch._foreach_copy_([one.view(-1) for one in group], list(parts))
        model.zero_grad()
        return loss

    return step


@dataclass(frozen=True)
class Candidate:
    """What stands in lib/modeling/bodies.py, the loss, and what makes the step."""

    functions: dict[str, Callable] = field(default_factory=dict)
    loss_of: Callable = objectives.masked_tokens
    make: Callable = timing.make_step


def compile_plainly(function: Callable) -> Callable:
    """Compiled without patterns, one of which puts torch's attention in place of the products."""
    return torch.compile(function, dynamic=False, options={"pattern_matcher": False})


EMBED, APPLY_LAYER = bodies.embed_tokens, bodies.apply_layer
LAYER, WHOLE = compile_plainly(APPLY_LAYER), compile_plainly(objectives.masked_tokens)
CANDIDATES = {
    "today": Candidate(),
    "fused attention": Candidate({"attend": attend_fused}),
    "one product for q, k, v": Candidate({"apply_layer": apply_one_product}),
    "what layers add to in bfloat16": Candidate({"embed_tokens": embed_in_bfloat16}),
    "activations in bfloat16": Candidate({"apply_layer": in_bfloat16(APPLY_LAYER), "embed_tokens": embed_in_bfloat16}),
    "activations in bfloat16, one product": Candidate(
        {"apply_layer": in_bfloat16(apply_one_product), "embed_tokens": embed_in_bfloat16}
    ),
    "loss in chunks": Candidate(loss_of=lose_in_chunks),
    "weights in bfloat16": Candidate(make=make_half_step),
    "each layer compiled": Candidate({"apply_layer": LAYER}),
    "each layer compiled, in bfloat16": Candidate({"apply_layer": LAYER, "embed_tokens": embed_in_bfloat16}),
    "all compiled": Candidate(loss_of=WHOLE),
    "all compiled, weights in bfloat16": Candidate(loss_of=WHOLE, make=make_half_step),
}


def measure(key: str, rows: int, length: int, repetitions: int, threads: int) -> list[dict]:
    """A line for each candidate, of one shape of a step."""
    torch.set_num_threads(threads)
    case, device = CASES[key], training.accelerator("auto")
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = make_tokenizer(case.vocabulary, Path(folder))
    batch = make_batches(make_text(case.vocabulary), tokenizer, rows, 1, length=length)[0, 0, 1]
    recipe, works = params.load("scales", "laptop").pretraining.recipe, {}
    for name, candidate in CANDIDATES.items():
        torch.manual_seed(0)
        model = models.build_model(case.architecture, case.body, case.vocabulary, length, 0.0)
        step = candidate.make(model, candidate.loss_of, batch, recipe, 1e-4, device)
        works[name] = lambda step=step, functions=candidate.functions: take(step, functions)
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
    write_lines("candidates", lines)


if __name__ == "__main__":
    main()
