"""The speed of a run, and its share of the machine's limit."""

import time
from dataclasses import dataclass, field, replace

import torch
from accelerate import Accelerator

from lib.modeling import costs

WINDOW = 5.0  # seconds after which averaging of the speed starts afresh


@dataclass
class Progression:
    """The progress of a run: what a checkpoint holds besides weights and optimizer."""

    step: int = 0
    log: list[dict] = field(default_factory=list)
    loss: float = 0.0  # summed since the last row of the log
    counted: int = 0
    tokens: int = 0
    seconds: float = 0.0


class Meter:
    """Speed and share of the machine's limit, for the progress line."""

    def __init__(self, state: Progression, flops_of, device: Accelerator):
        self.state, self.flops_of, self.limit = state, flops_of, None
        if flops_of:
            dtype = torch.bfloat16 if device.mixed_precision == "bf16" else torch.float32
            self.limit = costs.matrix_rate(device.device, dtype) * device.num_processes
        self.seconds_before, self.begun = state.seconds, time.monotonic()
        self.before, self.flops = replace(state), 0.0  # where the window began, FLOPs since then

    def tick(self) -> float:
        """Count the step just taken, and return the time."""
        now = time.monotonic()
        self.state.seconds = self.seconds_before + now - self.begun
        if self.flops_of:
            self.flops += self.flops_of(self.state.step - 1)
        return now

    def report(self, loss: float) -> str:
        """Return the text of the progress line."""
        seconds = max(1e-9, self.state.seconds - self.before.seconds)
        speed = (self.state.tokens - self.before.tokens) / seconds
        text = f"loss {loss:.2f}, {speed:,.0f} tokens/s"
        if self.limit:
            text += f", {self.flops / seconds / self.limit:.0%} of the machine's matrix rate"
        if seconds > WINDOW:
            self.before, self.flops = replace(self.state), 0.0
        return text
