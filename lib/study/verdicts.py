"""The test of a claim, its result, and the combination of several parts."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lib import statistics

if TYPE_CHECKING:
    from lib.study import Study


Unit = Literal["recipe", "checkpoint", ""]  # compares pretraining recipes, uses of one checkpoint, or neither
About = Literal["scores", "text", "arithmetic"]  # of models; of text, vocabularies and cost; of a paper's own numbers


@dataclass(frozen=True)
class Judgement:
    """The result of a test: `n` is 0 if nothing was measured, `p` nan if no interval decides.

    `paper_effect`: the effect in printed scores over all datasets of the comparison; `paper_effect_here`: over those
    that ran. `part`: the number of the decisive part, whose effects these are; 1 if there is only one. `substituted`:
    the models or protocols that replace those of the claim. `n_sets`: the datasets, on each of which each side has at
    least `n_pretrainings` and `n_seeds`. `below_baseline`: on how many of them a side is below the best baseline
    without pretraining.
    """

    effect: float = np.nan
    ci_low: float = np.nan
    ci_high: float = np.nan
    n: int = 0
    p: float = np.nan
    verdict: str = "n/a"
    note: str = ""
    part: int = 1
    substituted: str = ""
    paper_effect: float = np.nan
    paper_effect_here: float = np.nan
    n_sets: int = 0
    n_pretrainings: int = 0
    n_seeds: int = 0
    below_baseline: str = ""

    def leave_open(self) -> "Judgement":
        """Return this judgement as undecided, because the claim has not been tested in full."""
        return replace(self, verdict="undecided", p=1.0)


@dataclass(frozen=True)
class Test:
    """How a claim is decided, and what it reads from the study."""

    decide: Callable[["Study"], Judgement]
    unit: Unit = ""
    tables: tuple[str, ...] = ()
    vocabularies: tuple[str, ...] = ()
    parts: tuple[Any, ...] = ()  # the comparisons (Pairs) or curves (Trend) that are tested
    by_interval: bool = False  # counts among the claims that p is corrected for (page 00), even if not measured
    about: About = "scores"
    measured_in: str = ""  # the unit of its effects; empty if the note states it


def find_decisive(judged: list[Judgement]) -> int:
    """Return the index of the decisive part: the first that fails, else the measured one with the highest p."""
    measured = [number for number, judgement in enumerate(judged) if judgement.n]
    fails = [number for number in measured if judged[number].verdict == "fails"]
    return fails[0] if fails else max(measured, key=lambda number: judged[number].p)


def decide_all(judged: list[Judgement]) -> Judgement:
    """Combine the parts of a claim, of which some were measured: it holds if every part does and fails if one does.

    Effects, interval and p are those of the decisive part. One of several parts fails by chance more often than a
    single one, so p of a failure is multiplied by their number; if it is then not significant, the claim only points
    the other way.
    """
    decisive = find_decisive(judged)
    decided = replace(judged[decisive], part=decisive + 1)
    if decided.verdict != "fails":
        return decided if all(judgement.n for judgement in judged) else decided.leave_open()
    p = min(1.0, decided.p * len(judged))
    return replace(decided, p=p, verdict="fails" if p < statistics.SIGNIFICANT else statistics.weaken("fails"))
