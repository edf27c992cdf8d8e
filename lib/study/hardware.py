"""The machines and hours of the papers' pretraining, and vendors' figures for the machines: params/hardware.yaml."""

from functools import cache
from typing import Literal

from pydantic import Field, model_validator

from lib.errors import StudyError
from lib.settings import Settings
from lib.study import paths, results
from lib.study.parsing import read_yaml

Precision = Literal["float32", "float16", "bfloat16"]


class Device(Settings):
    """An accelerator as its vendor describes it."""

    title: str  # as its driver names it, if we ran on one
    rates: dict[Precision, float]  # peak FLOP/s of dense matrix products
    watts: float | None  # maximum; None: not found
    source: str


class Today(Settings):
    """The GPU to which all costs are converted for comparison."""

    device: str
    precision: Precision
    share: float = Field(gt=0, le=1)  # of its peak rate
    why: str


class Believable(Settings):
    """The shares of a machine's peak rate that the page accepts without comment."""

    low: float = Field(gt=0)
    high: float = Field(lt=1)
    why: str


class PrintedRun(Settings):
    """The machine and the time of models' pretraining, as a paper prints them."""

    paper: str
    where: str
    days: dict[str, float | str | None]  # model -> days, or the row of `table` that holds them; None: not printed
    table: str = ""  # a table of the paper, in published/scores.csv
    said: str = ""  # the words before the days: about, nearly, more than
    device: str | None = None
    devices: int | None = Field(default=None, gt=0)
    precision: Precision | None = None
    missing: dict[Literal["steps", "time"], str] = {}  # what is not printed -> why nothing is assumed
    assumed: str = ""  # what is not printed, and what is assumed instead
    reading: str = ""  # another reading of the same models; empty: the one that counts
    changes: dict[Literal["steps", "batch_size", "length", "max_predictions"], int] = {}  # settings of every phase

    @model_validator(mode="after")
    def check(self):
        if len({self.device is None, self.devices is None, self.precision is None}) > 1:
            raise ValueError("device, devices and precision go together")
        if any((days is None) != ("time" in self.missing) for days in self.days.values()):
            raise ValueError("a model has days, or `missing` says why there is no time")
        if self.device is None and set(self.days.values()) != {None}:
            raise ValueError("days need the device that they were spent on")
        if any(isinstance(days, str) != bool(self.table) for days in self.days.values()):
            raise ValueError("rows of days need the table that they are in, and a table needs its rows")
        if self.changes and not self.reading:
            raise ValueError("changes of a recipe are another reading")
        return self


class PrintedRatio(Settings):
    """How much more pretraining some models had than others, as printed."""

    said: str
    where: str
    of: list[str] = Field(min_length=1)
    to: list[str] = Field(min_length=1)
    printed: float
    each_token: bool = False  # the ratio is of costs per token, not of the whole pretraining


class Hardware(Settings):
    devices: dict[str, Device]
    today: Today
    believable: Believable
    runs: list[PrintedRun]
    ratios: list[PrintedRatio]

    @model_validator(mode="after")
    def check(self):
        for machine in (self.today, *self.runs):
            if machine.device and machine.precision not in getattr(self.devices.get(machine.device), "rates", {}):
                raise ValueError(f"devices has no rate of '{machine.device}' in {machine.precision}")
        return self


@cache
def read_hardware() -> Hardware:
    """Read the papers' printed hardware and times, and the vendors' figures."""
    return read_yaml(paths.PARAMS / "hardware.yaml", Hardware)


def read_days(key: str, run: PrintedRun) -> float | None:
    """Return the printed days of a model. Raises StudyError if the table does not have exactly one such row."""
    days = run.days[key]
    if not isinstance(days, str):
        return days
    cells = results.read_published(run.paper, run.table)
    values = cells.loc[(cells["row"] == days) & (cells["metric"] == "days"), "value"]
    if len(values) != 1:
        source = f"table {run.table} of {run.paper}"
        raise StudyError(f"params/hardware.yaml, {key}: {source} has {len(values)} rows '{days}' with days")
    return float(values.iloc[0])
