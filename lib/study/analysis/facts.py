"""What the papers print besides their tables: files of params/ beside its folders."""

from functools import cache

from pydantic import Field, model_validator

from lib.settings import Settings
from lib.study import paths
from lib.study.parsing import read_yaml


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
def samples() -> Samples:
    """The printed samples of predictions, and the models that are compared in their place."""
    return read_yaml(paths.PARAMS / "samples.yaml", Samples)
