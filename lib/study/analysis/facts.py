"""What the papers print besides their tables, and vendors of their machines: files of params/ beside its folders."""

from functools import cache
from typing import Annotated, Literal

from pydantic import Field, model_validator

from lib.settings import Settings
from lib.study import paths
from lib.study.parsing import read_yaml

Precision = Literal["float32", "float16", "bfloat16"]


class Device(Settings):
    """An accelerator as its vendor describes it."""

    title: str  # as its driver names it, where ours ran on one
    rates: dict[Precision, float]  # FLOP/s of dense matrix products, at best
    watts: float | None  # at most; None: not found
    source: str


class Today(Settings):
    """The GPU that everything is put on for comparison."""

    device: str
    precision: Precision
    share: float = Field(gt=0, le=1)  # of its rate
    why: str


class Believable(Settings):
    """The shares of a machine's rate that the page does not speak of."""

    low: float = Field(gt=0)
    high: float = Field(lt=1)
    why: str


class PrintedRun(Settings):
    """On what, and how long, models were pretrained, as a paper prints it of each of them."""

    paper: str
    where: str
    days: dict[str, float | str | None]  # model -> days; the row of `table` that holds them; None: not printed
    table: str = ""  # of the paper, in published/scores.csv
    said: str = ""  # before the days: about, nearly, more than
    device: str | None = None
    devices: int | None = Field(default=None, gt=0)
    precision: Precision | None = None
    missing: dict[Literal["steps", "time"], str] = {}  # what is not printed -> why nothing stands for it
    assumed: str = ""  # what is not printed, and what stands for it
    reading: str = ""  # another way to read the same models; empty: the one that counts
    changes: dict[Literal["steps", "batch_size", "length", "max_predictions"], int] = {}  # of every phase

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
    each_token: bool = False  # it is the cost of a token, and not of the whole pretraining


class Hardware(Settings):
    devices: dict[str, Device]
    today: Today
    believable: Believable
    runs: list[PrintedRun]
    ratios: list[PrintedRatio]

    @model_validator(mode="after")
    def check(self):
        for used in (self.today, *self.runs):
            if used.device and used.precision not in getattr(self.devices.get(used.device), "rates", {}):
                raise ValueError(f"devices has no rate of '{used.device}' in {used.precision}")
        return self


class AttentionExample(Settings):
    """A sentence of ours around the words that a paper prints of a figure's sentence."""

    dataset: str  # that the paper's sentence is from
    sentence: str  # words and signs, with spaces between them
    asked: str  # whose attention is shown: of a word its first piece, or [CLS]
    printed: list[str] = Field(min_length=1)  # the words of it that the paper prints

    @model_validator(mode="after")
    def check(self):
        words = self.sentence.split()
        if not set(self.printed) <= set(words) or self.asked not in (*words, "[CLS]"):
            raise ValueError("printed and asked name words of the sentence")
        return self


class Attention(Settings):
    where: str
    vocabularies: dict[str, str]  # what is said of a published one -> which it is
    models: list[Annotated[list[str], Field(min_length=2, max_length=2)]]  # the first two that a scale has are shown
    examples: dict[str, AttentionExample]


class PrintedSample(Settings):
    """A sample of predictions as a paper prints it, and which of its words the biomedical model found better."""

    dataset: str  # as printed
    ours: list[str]  # the datasets here that may hold it
    sample: str = ""
    better: list[str] = []
    withheld: str = ""  # why the sample is not repeated here

    @model_validator(mode="after")
    def check(self):
        if bool(self.sample) == bool(self.withheld) or bool(self.sample) != bool(self.better):
            raise ValueError("give a sample and its words, or say why it is withheld")
        return self


class Comparison(Settings):
    """Two models whose predictions on some datasets are put beside each other."""

    general: str
    biomedical: str
    protocol: str
    datasets: list[str] = Field(min_length=1)


class Samples(Settings):
    where: str
    printed: list[PrintedSample]
    comparisons: list[Comparison]  # the first one that a scale has is shown


@cache
def hardware() -> Hardware:
    """What is printed of the papers' hardware and times, and what vendors say of it."""
    return read_yaml(paths.PARAMS / "hardware.yaml", Hardware)


@cache
def attention() -> Attention:
    """The examples whose attention is shown."""
    return read_yaml(paths.PARAMS / "attention.yaml", Attention)


@cache
def samples() -> Samples:
    """The printed samples of predictions, and the models that are compared in their place."""
    return read_yaml(paths.PARAMS / "samples.yaml", Samples)
