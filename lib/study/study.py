"""A scale of the study, opened: what stands behind each key, as objects."""

from dataclasses import dataclass
from pathlib import Path

from lib.benchmarks import registry
from lib.benchmarks.datasets import Dataset
from lib.finetuning.settings import Finetuning
from lib.study import params, paths


@dataclass(frozen=True)
class Study:
    """Opening it reads nothing but the scale's budget; all else is read when it is asked for."""

    scale: str

    def __post_init__(self):
        params.load("scales", self.scale)

    @property
    def budget(self) -> params.Scale:
        return params.load("scales", self.scale)

    @property
    def data(self) -> Path:
        """The folder of raw data, which need not be there."""
        return paths.data(self.scale)

    def dataset(self, key: str) -> Dataset:
        """A registered dataset where its files lie at this scale; StudyError with the nearest names for no such one."""
        dataset = registry.lookup(key)
        how = f"./run_all.sh data {dataset.group} fetches it or says how to get it"
        return dataset.at(self.data, how if dataset.group else "")

    def protocol(self, key: str, dataset: str) -> Finetuning:
        """How a dataset is fine-tuned on under a protocol, with what the budget changes of it; StudyError for none."""
        return params.load_finetuning(key, dataset, registry.lookup(dataset).family, self.scale)

    def why_missing(self, dataset: str, protocol: str = "") -> str:
        """Why some split of a dataset cannot be read, or an empty string when all can.

        With a protocol, also of the set on which it fine-tunes before this one.
        """
        found = self.dataset(dataset)
        reasons = found.missing
        if not reasons:
            first = protocol and self.protocol(protocol, dataset).first_on
            reason = self.why_missing(first) if first else ""
            return f"{protocol} fine-tunes on {first} first: {reason}" if reason else ""
        some = f"the {' and '.join(reasons)} split{'s are' if len(reasons) > 1 else ' is'} not at hand: "
        return (some if len(reasons) < len(found.files) else "") + next(iter(reasons.values()))

    def why_not(self, dataset: str, protocol: str = "") -> str:
        """Why a dataset cannot be run here, or an empty string when it can; with a protocol, under that."""
        # Made-up data are written by the study itself, so they need not be there yet.
        reason = "" if self.budget.made_up else self.why_missing(dataset, protocol)
        if not reason and self.budget.datasets is not None and dataset not in self.budget.datasets:
            return f"outside the budget of scale '{self.scale}'"
        return reason
