"""The one training loop, for pretraining and fine-tuning."""

import math
import os
import pickle
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState

from lib import artefacts
from lib.errors import StudyError
from lib.progress import Progress

CHECKPOINT_SECONDS = 30.0
LOG_ROWS = 100  # in one run of the loop


def accelerator(precision: str) -> Accelerator:
    """The process's Accelerator. `precision` is float32, or auto: bfloat16 where the device computes in it."""
    AcceleratorState._reset_state(reset_partial_state=False)
    half = precision == "auto" and computes_in_bfloat16()
    return Accelerator(mixed_precision="bf16" if half else "no")


def computes_in_bfloat16() -> bool:
    """Whether bfloat16 is native here; emulated, it is several times slower than float32."""
    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


def describe_device(device: Accelerator) -> str:
    """Device, threads and precision, for the record."""
    name = torch.cuda.get_device_name() if device.device.type == "cuda" else f"{torch.get_num_threads()} CPU thread(s)"
    return f"{name}, {'bfloat16' if device.mixed_precision == 'bf16' else 'float32'}"


def slanted_triangle(step: int, steps: int, warmup: float) -> float:
    """Share of the peak learning rate at a step: linear warm-up over a share of the steps, then linear decay."""
    rising = max(1, round(warmup * steps))
    return (step + 1) / rising if step < rising else (steps - step) / max(1, steps - rising)


def make_optimizer(model: torch.nn.Module, learning_rate: float, weight_decay: float, betas: Sequence[float]):
    """AdamW without decay of biases and layer norms, as in BERT."""
    decayed, free = [], []
    for parameter in model.parameters():
        (free if parameter.ndim < 2 else decayed).append(parameter)
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": free, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=tuple(betas), fused=True)


def train(
    model: torch.nn.Module,
    batches: Sequence[dict[str, torch.Tensor]],
    loss_of: Callable[[torch.nn.Module, dict[str, torch.Tensor]], torch.Tensor],
    *,
    device: Accelerator,
    learning_rate: float,
    warmup: float,
    weight_decay: float,
    betas: Sequence[float] = (0.9, 0.999),
    seed: int,
    progress: Progress,
    evaluate: Callable[[], dict[str, float]] | None = None,
    evaluations: int = 0,
    checkpoint: Path | None = None,
    fingerprint: str = "",
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> list[dict]:
    """Train `model` in place on `batches`, one step each; returns the log.

    `batches[i]` must depend on i alone: with random states set from (seed, step), a run that was killed goes on
    from its checkpoint to the same weights. Log rows: step, loss (mean since the row before), tokens, seconds, and
    what `evaluate` returns, `evaluations` times, evenly spread. Raises StudyError at a loss that is not finite.
    """
    steps = len(batches)
    optimizer = make_optimizer(model, learning_rate, weight_decay, betas)
    model, optimizer = device.prepare(model, optimizer)
    state = {"step": 0, "log": [], "loss": 0.0, "counted": 0, "tokens": 0, "seconds": 0.0}
    state |= load_checkpoint(checkpoint, fingerprint, model, optimizer)
    evaluated = {round((i + 1) * steps / evaluations) for i in range(evaluations)} if evaluate else set()
    logged = {math.ceil((i + 1) * steps / LOG_ROWS) for i in range(LOG_ROWS)} | evaluated
    saved_at = begun = time.monotonic()
    seconds_before = state["seconds"]
    model.train()
    for step in range(state["step"], steps):
        torch.manual_seed(seed * 1_000_003 + step)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * slanted_triangle(step, steps, warmup)
        batch = {name: tensor.to(device.device) for name, tensor in batches[step].items()}
        with device.autocast():
            loss = loss_of(model, batch)
        value = loss.item()
        if not math.isfinite(value):
            raise StudyError(f"the loss is {value} at step {step + 1} of {steps}: lower the learning rate")
        device.backward(loss)
        device.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

        now = time.monotonic()
        state["step"] = step + 1
        state["loss"] += value
        state["counted"] += 1
        state["tokens"] += batch["input_ids"].numel()
        state["seconds"] = seconds_before + now - begun
        if step + 1 in logged:
            row = {"step": step + 1, "loss": state["loss"] / state["counted"], "tokens": state["tokens"]}
            if step + 1 in evaluated:
                model.eval()
                row |= evaluate()
                model.train()
            state["log"].append(row | {"seconds": round(state["seconds"], 2)})
            state["loss"], state["counted"] = 0.0, 0
        progress.update(step + 1, steps, f"loss {value:.2f}", state["log"])
        if checkpoint and (step + 1 == steps or now - saved_at >= checkpoint_seconds):
            save_checkpoint(checkpoint, fingerprint, model, optimizer, state)
            saved_at = now
    model.eval()
    device.free_memory()  # the Accelerator would keep every model and optimiser that it has prepared
    return state["log"]


def save_checkpoint(path: Path, fingerprint: str, model, optimizer, state: dict) -> None:
    content = {"fingerprint": fingerprint, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    with artefacts.whole_file(path) as temporary:
        torch.save(content | {"state": dict(state)}, temporary)


def load_checkpoint(path: Path | None, fingerprint: str, model, optimizer) -> dict:
    """Restore model and optimiser from a checkpoint of the same run; its state, or nothing when there is none."""
    if path is None or not path.exists():
        return {}
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, OSError, ValueError, pickle.UnpicklingError) as error:
        print(f"checkpoint {os.path.basename(path)} cannot be read ({error}); starting over")
        return {}
    if content["fingerprint"] != fingerprint:
        return {}  # of another run: settings, data or code have changed since
    model.load_state_dict(content["model"])
    optimizer.load_state_dict(content["optimizer"])
    return content["state"]
