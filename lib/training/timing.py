"""Seconds that training steps and forward passes of several models take on this machine, in turns."""

import time
from collections.abc import Callable

import pandas as pd
import torch
from accelerate import Accelerator
from torch import nn

from lib.modeling import bodies
from lib.training import optimizers, training
from lib.training.optimization import Optimization

LIMIT, FEWEST = 40.0, 5  # seconds; repetitions
Work = Callable[[], object]


def take_turns(works: dict[str, Work], repetitions: int, device: torch.device) -> pd.DataFrame:
    """Seconds of each work in each repetition: columns `model` (its name in `works`), `repetition`, `seconds`.

    In a repetition each is done once, in turn forwards and backwards, so that what slows the machine down slows all
    of them. One repetition before the first is not counted. None begins after LIMIT seconds, once there are FEWEST: on
    a busy machine a page would take for ever.
    """
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None  # a GPU works on after a call returns
    rows, start = [], time.perf_counter()
    for repetition in range(repetitions + 1):
        if repetition > FEWEST and time.perf_counter() - start > LIMIT:
            break
        for name in list(works)[:: 1 if repetition % 2 else -1]:
            wait()
            begun = time.perf_counter()
            works[name]()
            wait()
            rows.append({"model": name, "repetition": repetition, "seconds": time.perf_counter() - begun})
    times = pd.DataFrame(rows)
    return times[times["repetition"] > 0].reset_index(drop=True)


def make_step(
    model: nn.Module,
    loss_of: Callable[[nn.Module, training.Batch], torch.Tensor],
    batch: training.Batch,
    settings: Optimization,
    rate: float,
    device: Accelerator,
) -> Work:
    """A step of the training loop, forward, backward and optimizer, on a batch that is on the device already."""
    model.to(device.device).train()
    module, optimizer = device.prepare(training.Loss(model, loss_of), optimizers.make_optimizer(model, settings, rate))
    batch = {name: tensor.to(device.device) for name, tensor in batch.items()}
    return lambda: training.take_step(module, optimizer, [batch], device, settings.clip, (0, 0))


def make_pass(body: nn.Module, ids: torch.Tensor, device: Accelerator) -> Work:
    """A forward pass of an encoder over tokens (sequences, length), every layer at every position, without a head."""
    body, ids = body.to(device.device).eval(), ids.to(device.device)

    def work() -> None:
        with torch.inference_mode(), device.autocast():
            bodies.encode_body(body, ids)

    return work
