"""Settings of the training loop."""

from typing import Literal

from pydantic import Field

from lib.settings import Settings


class Machine(Settings):
    """How a machine computes; every setting but `workers` changes the last bits of results."""

    precision: Literal["float32", "auto"] = "auto"  # auto: bfloat16 if the device supports it
    threads: int = Field(default=1, gt=0)
    micro_batch: int | None = Field(default=None, gt=0)  # tokens in memory at once on each device; None: a whole step
    compile: bool = False  # by torch; takes half a minute before the first step, so it pays in runs of several minutes
    workers: int = Field(default=0, ge=0)  # processes that prepare batches; 0: the training process itself


class Stretch(Settings):
    """A part of pretraining with one input length and one warm-up and decay of the learning rate."""

    length: int = Field(gt=8)  # tokens in a sequence
    batch_size: int = Field(gt=0)  # sequences in a step
    learning_rate: float = Field(gt=0)
    warmup: float = Field(ge=0, lt=1)  # share of its steps
    end: float = Field(default=0.0, ge=0, lt=1)  # share of the learning rate that remains at its end


class Phase(Stretch):
    """A stretch with a fixed number of steps."""

    decay: Literal["linear", "square root"] = "linear"
    steps: int = Field(gt=0)
    max_predictions: int | None = None  # maximum in a sequence


class Optimization(Settings):
    optimizer: Literal["adamw", "lamb"]
    weight_decay: float = Field(ge=0)
    betas: list[float] = Field(min_length=2, max_length=2)
    clip: float | None = Field(default=1.0, gt=0)  # maximum norm of the gradient
    dropout: float = Field(ge=0, lt=1)
