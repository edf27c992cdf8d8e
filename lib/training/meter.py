"""How fast a run is, how near the machine's limit, how long it will take."""

import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from accelerate import Accelerator

from lib import artefacts
from lib.modeling import costs

LIVE_SECONDS = 5.0


@dataclass
class Progression:
    """Where a run stands: what a checkpoint holds besides weights and optimiser."""

    step: int = 0
    log: list[dict] = field(default_factory=list)
    loss: float = 0.0  # summed since the last row of the log
    counted: int = 0
    tokens: int = 0
    seconds: float = 0.0
    waited: float = 0.0  # seconds for batches


class Meter:
    """Speed, share of the machine's limit, time left: for the line of progress and live.jsonl."""

    def __init__(self, state: Progression, steps: int, flops_of, device: Accelerator, folder: Path | None):
        self.state, self.steps, self.flops_of = state, steps, flops_of
        self.main = device.is_main_process
        self.file = folder / "live.jsonl" if folder and self.main else None
        kind = torch.bfloat16 if device.mixed_precision == "bf16" else torch.float32
        self.limit = costs.matrix_rate(device.device, kind) * device.num_processes if flops_of else None
        self.seconds_before = state.seconds
        self.begun = self.written = time.monotonic()
        self.before, self.flops = replace(state), 0.0  # where the run stood at the last line of JSON, FLOPs since then

    def tick(self) -> float:
        """Count the step just taken; the time."""
        now = time.monotonic()
        self.state.seconds = self.seconds_before + now - self.begun
        if self.flops_of:
            self.flops += self.flops_of(self.state.step - 1)
        return now

    def report(self, loss: float) -> str:
        """What the line of progress says; now and then the same as a line of JSON."""
        seconds = max(1e-9, self.state.seconds - self.before.seconds)
        speed = (self.state.tokens - self.before.tokens) / seconds
        text = f"loss {loss:.2f}, {speed:,.0f} tokens/s"
        if self.limit:
            text += f", {self.flops / seconds / self.limit:.0%} of the machine's matrix rate"
        if self.file and (time.monotonic() - self.written > LIVE_SECONDS or self.state.step == self.steps):
            row = {"step": self.state.step, "of": self.steps, "loss": round(loss, 4), "pieces a second": round(speed)}
            if self.limit:
                row["share of the matrix rate"] = round(self.flops / seconds / self.limit, 3)
            row |= {
                "share of waiting for batches": round((self.state.waited - self.before.waited) / seconds, 4),
                "seconds": round(self.state.seconds, 1),
                "seconds left": round(self.state.seconds / self.state.step * (self.steps - self.state.step)),
            }
            artefacts.append_line(self.file, json.dumps(row))
            self.written = time.monotonic()
            self.before, self.flops = replace(self.state), 0.0
        return text
