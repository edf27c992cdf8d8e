"""The training loop for pretraining and fine-tuning, in one process or many."""

import ctypes
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, PartialState
from torch import nn
from torch.utils.data import DataLoader

from lib import artefacts
from lib.errors import StudyError
from lib.modeling.heads import Batch
from lib.places import show_path
from lib.progress import Progress
from lib.training import checkpoints, optimizers
from lib.training.meter import Meter, Progression
from lib.training.optimization import Optimization

# In bfloat16 oneDNN builds kernels for each shape, and keeps 1,024 of them. Sentences have more shapes than that, so
# that every epoch would build them again. oneDNN reads the variable before its first product.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "20000")

CHECKPOINT_SECONDS = 30.0  # minimum time between checkpoints
CHECKPOINT_SHARE = 0.02  # maximum share of the time spent on writing checkpoints
LOG_ROWS = 100  # in one run of the loop
GPU_STEPS = 10  # between reads of the loss on a GPU, because each read makes it wait


class Batches(Protocol):
    """Batches for the loop. `batches[step, part, parts]`: one of the equal parts of a step's sequences.

    Sequences depend only on the step and their number in it, so that a run can resume anywhere and many processes
    train on the same sequences as one.
    """

    def __len__(self) -> int: ...
    def __getitem__(self, key: tuple[int, int, int]) -> Batch: ...
    def shape(self, step: int) -> tuple[int, int]:
        """Return the number of sequences in a step and their length."""
        ...


class Loss(nn.Module):
    """A model and its loss as one module, which distributed training and the compiler need."""

    def __init__(self, model: nn.Module, loss_of: Callable[[nn.Module, Batch], torch.Tensor]):
        super().__init__()
        self.model, self.loss_of = model, loss_of

    def forward(self, batch: Batch) -> torch.Tensor:
        return self.loss_of(self.model, batch)


def accelerator(precision: str) -> Accelerator:
    """Create the process's Accelerator. `precision`: float32, or auto for bfloat16 if the device supports it."""
    AcceleratorState._reset_state(reset_partial_state=False)
    if "WORLD_SIZE" not in os.environ:
        PartialState._reset_state()
    keep_memory()
    half = resolve(precision) == "bfloat16"
    # Without a GPU, `cpu` makes it join the other processes; otherwise each would train alone.
    return Accelerator(
        mixed_precision="bf16" if half else "no", cpu="WORLD_SIZE" in os.environ and not torch.cuda.is_available()
    )


def resolve(precision: str) -> str:
    """Return the precision to compute in: `auto` is bfloat16 if that is native here, else float32."""
    return "bfloat16" if precision == "auto" and computes_in_bfloat16() else "float32"


def computes_in_bfloat16() -> bool:
    """Return whether bfloat16 is native here; emulated, it is several times slower than float32."""
    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


def keep_memory() -> None:
    """Tell glibc to keep freed memory: allocating large tensors at each step slows pretraining (benchmarks/)."""
    M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # names of <malloc.h>
    try:
        libc = ctypes.CDLL("libc.so.6")
        for option, value in ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, 2**31 - 1), (M_TOP_PAD, 64 * 2**20)):
            libc.mallopt(option, value)
    except (OSError, AttributeError):
        pass  # another C library: slower, but the results are right


def describe_device(device: Accelerator) -> str:
    """Describe device, threads, processes and precision for the record."""
    name = torch.cuda.get_device_name() if device.device.type == "cuda" else f"{torch.get_num_threads()} CPU thread(s)"
    description = f"{device.num_processes} processes of {name}" if device.num_processes > 1 else name
    return f"{description}, {'bfloat16' if device.mixed_precision == 'bf16' else 'float32'}"


def count_parts(sequences: int, length: int, processes: int, micro_batch: int | None) -> int:
    """Return the number of equal parts of a step's sequences.

    It is a multiple of the processes, and each part has at most `micro_batch` tokens. Raises StudyError if the
    sequences cannot be divided evenly among the processes.
    """
    if sequences % processes:
        divisor = f"choose a divisor of {sequences}"
        raise StudyError(f"a batch of {sequences} sequences cannot be dealt to {processes} processes: {divisor}")
    for parts in range(processes, sequences + 1, processes):
        if sequences % parts == 0 and (micro_batch is None or sequences // parts * length <= micro_batch):
            return parts
    return sequences


def check_agreement(step: int, device: Accelerator) -> None:
    """Raise StudyError if processes resume from different checkpoints, because their steps would differ."""
    steps = device.gather(torch.tensor([step], device=device.device)).tolist()
    if len(set(steps)) > 1:
        raise StudyError(
            f"the processes found checkpoints of different steps ({', '.join(map(str, sorted(set(steps))))}): "
            "all nodes must see one disk; start the same command again"
        )


def train(
    model: nn.Module,
    batches: Batches,
    loss_of: Callable[[nn.Module, Batch], torch.Tensor],
    *,
    device: Accelerator,
    settings: Optimization,
    rate_of: Callable[[int], float],
    seed: int,
    progress: Progress,
    begin: Callable[[], None] | None = None,
    evaluate: Callable[[], dict[str, float]] | None = None,
    evaluations: Sequence[int] = (),
    micro_batch: int | None = None,
    workers: int = 0,
    compiled: bool = False,
    flops_of: Callable[[int], float] | None = None,
    shares: Mapping[str, float] | None = None,
    folder: Path | None = None,
    fingerprint: str = "",
) -> list[dict]:
    """Train `model` in place on `batches` and return the log.

    `rate_of(step)`: the learning rate; `begin`: sets the first weights, called if there is no checkpoint to resume
    from; `evaluations`: the numbers of steps after which `evaluate` is called; `micro_batch`: tokens in memory at once,
    with the gradient summed over the parts of a step; `workers`: processes that prepare batches; `flops_of(step)`: a
    step's cost, to show how close to the machine's limit it runs; `shares`: factors on the learning rate by parameter
    name; `folder`: for checkpoints, from which a run with the same `fingerprint` resumes.

    Random states are set from (seed, step, part), so a run that was killed resumes to the same weights. Log rows:
    step, loss (mean since the previous row), tokens, seconds, and what `evaluate` returns. Raises StudyError if the
    loss or its gradient is not finite; the step is written into the folder, and the last checkpoint is kept.
    """
    steps = len(batches)
    model.to(device.device)
    optimizer = optimizers.make_optimizer(model, settings, rate_of(0), shares)
    saved_state = checkpoints.load_checkpoint(folder, fingerprint, model, optimizer) if folder else {}
    if begin and not saved_state:
        begin()
    state = Progression(**saved_state)
    check_agreement(state.step, device)
    module = Loss(model, loss_of)
    if compiled:
        # On a CPU without the compiler's patterns: they restore torch's fused attention, which is slower there
        # (lib/modeling/bodies.py).
        module.compile(dynamic=False, options={"pattern_matcher": device.device.type != "cpu"})
    prepared_module, prepared_optimizer = device.prepare(module, optimizer)
    logged_steps = {math.ceil((i + 1) * steps / LOG_ROWS) for i in range(LOG_ROWS)} | set(evaluations)
    read_every = GPU_STEPS if device.device.type == "cuda" else 1
    meter = Meter(state, flops_of, device)
    saved_at, interval = time.monotonic(), CHECKPOINT_SECONDS
    losses: list[torch.Tensor] = []  # of the steps since losses were last read
    model.train()
    for step, parts in load_batches(batches, state, device, micro_batch, workers):
        for group in optimizer.param_groups:
            group["lr"] = group["share"] * rate_of(step)
        losses.append(take_step(prepared_module, prepared_optimizer, parts, device, settings.clip, seed, step))
        state.step = step + 1
        state.tokens += math.prod(batches.shape(step))
        now = meter.tick()
        checkpoint_due = (
            device.is_main_process and folder is not None and (step + 1 == steps or now - saved_at >= interval)
        )
        if len(losses) < read_every and step + 1 not in logged_steps and step + 1 < steps and not checkpoint_due:
            continue

        for loss_step, loss in enumerate(torch.stack(losses).tolist(), step + 1 - len(losses)):
            if not math.isfinite(loss):
                stop(folder, batches, loss_step, loss, rate_of(loss_step), device)
            state.loss += loss
            state.counted += 1
        losses.clear()
        if step + 1 in logged_steps:
            row = {"step": step + 1, "loss": state.loss / state.counted, "tokens": state.tokens}
            if evaluate and step + 1 in evaluations:
                model.eval()
                row |= evaluate()
                model.train()
            state.log.append(row | {"seconds": round(state.seconds, 2)})
            state.loss, state.counted = 0.0, 0
        if device.is_main_process:
            progress.update(step + 1, steps, meter.report(loss), state.log)
        if checkpoint_due:
            started_at = time.monotonic()
            checkpoints.save_checkpoint(folder, fingerprint, model, optimizer, asdict(state))
            saved_at = time.monotonic()
            interval = max(CHECKPOINT_SECONDS, (saved_at - started_at) / CHECKPOINT_SHARE)
    model.eval()
    device.free_memory()  # because the Accelerator keeps every model and optimizer that it has prepared
    return state.log


def load_batches(
    batches: Batches, state: Progression, device: Accelerator, micro_batch: int | None, workers: int
) -> Iterator[tuple[int, list[Batch]]]:
    """Yield each remaining step with this process's parts of it, on the device.

    The `counts` of each part are replaced by those of the whole step divided by the number of processes, because
    gradients are averaged over processes: so the losses of the parts add up to the loss of the step.
    """
    processes, steps = device.num_processes, range(state.step, len(batches))

    def deal(step: int) -> list[tuple[int, int, int]]:
        parts = count_parts(*batches.shape(step), processes, micro_batch)
        return [(step, part, parts) for part in range(device.process_index, parts, processes)]

    keys = (key for step in steps for key in deal(step))
    loader = iter(DataLoader(batches, sampler=keys, batch_size=None, num_workers=workers))
    for step in steps:
        parts = []
        for _ in deal(step):
            batch = next(loader)
            parts.append({name: tensor.to(device.device, non_blocking=True) for name, tensor in batch.items()})
        if "counts" in parts[0]:
            counts = device.reduce(torch.stack([batch["counts"] for batch in parts]).sum(0), "sum") / processes
            parts = [batch | {"counts": counts} for batch in parts]
        yield step, parts


def take_step(
    module: nn.Module,
    optimizer,
    parts: list[Batch],
    device: Accelerator,
    clip: float | None,
    seed: int,
    step: int,
) -> torch.Tensor:
    """Take one optimizer step on the summed gradient of the parts; return the loss of the whole step.

    The loss is NaN if the gradient's norm is not finite. `seed` and `step` set the random states of the parts.
    """
    total = torch.zeros((), device=device.device)
    for number, batch in enumerate(parts):
        part = number * device.num_processes + device.process_index
        # Not torch.manual_seed on a CPU: it records the stack for every kind of device, 3 to 10% of a step at scale
        # smoke.
        generator = torch.default_generator if device.device.type == "cpu" else torch
        generator.manual_seed((seed * 1_000_003 + step) * 10_007 + part)
        with device.no_sync(module) if number + 1 < len(parts) else nullcontext():
            with device.autocast():
                loss = module(batch)
            if "counts" not in batch:
                loss = loss / len(parts)
            device.backward(loss)
        total += loss.detach()
    norm = device.clip_grad_norm_(module.parameters(), clip or math.inf)
    optimizer.step()
    optimizer.zero_grad()
    total = device.reduce(total, "mean")
    return torch.where(torch.isfinite(norm), total, torch.nan)  # the weights are lost even if the loss is finite


def stop(folder: Path | None, batches: Batches, step: int, loss: float, rate: float, device: Accelerator) -> None:
    """Record the step and sequences at which loss or gradient were not finite, and raise StudyError.

    The last checkpoint is kept.
    """
    sequences, length = batches.shape(step)
    first = sum(batches.shape(earlier_step)[0] for earlier_step in range(step))
    report = {"step": step + 1, "loss": str(loss), "learning rate": rate, "rows": sequences, "length": length}
    note = ""
    if folder:  # the same message in every process, because any of them may be the last to print
        if device.is_main_process:
            artefacts.write_json(folder / "failure.json", report)
        note = f"; written to {show_path(folder / 'failure.json')}, the last checkpoint is kept"
    raise StudyError(
        f"the loss or its gradient is {loss} at step {step + 1} of {len(batches)} (sequences {first} to "
        f"{first + sequences - 1}, learning rate {rate:.2g}): lower the learning rate{note}"
    )
