"""The test of a claim, its result, and how several parts decide."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from lib import statistics

if TYPE_CHECKING:
    from lib.study import Study
    from lib.study.pairs import Pairs
    from lib.study.trends import Trend


Unit = Literal["recipe", "checkpoint", ""]  # compared are recipes of pretraining, uses of one model, or neither
About = Literal["scores", "text", "arithmetic"]  # of models; of text, vocabularies and cost; of a paper's own numbers


@dataclass(frozen=True)
class Judgement:
    """What a test found: `n` is 0 where nothing was measured, `p` empty where no interval decides.

    `paper_effect`: the same of the printed scores, over all sets of the comparison; `_here`: over those that ran.
    `part`: of several parts of a claim the number of that which decides, whose effects these are; 1 of one alone.
    `substituted`: what its runs have in place of what the claim names.
    `n_sets`, and of each side on each of them at least `n_pretrainings` and `n_seeds`; `below_baseline`: on how many of
    them a side is below the best baseline without pretraining.
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
        """The same of what has not been tested in full."""
        return replace(self, verdict="undecided", p=1.0)


@dataclass(frozen=True)
class Test:
    """How a claim is decided, and what of the study it reads."""

    decide: Callable[["Study"], Judgement]
    unit: Unit = ""
    tables: tuple[str, ...] = ()
    vocabularies: tuple[str, ...] = ()
    parts: "tuple[Pairs, ...] | tuple[Trend, ...]" = ()
    by_interval: bool = False  # of the claims that p is corrected for, whether or not it has been measured
    about: About = "scores"
    measured_in: str = ""  # the unit of its effects, where no parts say it


def find_decisive(judged: list[Judgement]) -> int:
    """Which of the parts that were measured decides: the first that fails, else that with the highest p."""
    fails = [number for number, one in enumerate(judged) if one.n and one.verdict == "fails"]
    if fails:
        return fails[0]
    measured = [number for number, one in enumerate(judged) if one.n]
    return max(measured, key=lambda number: judged[number].p)


def decide_all(judged: list[Judgement]) -> Judgement:
    """A claim of several parts, some of which were measured: it holds when every part does, and fails when one does.

    Effects, interval and p are those of the part that decides. That any of so many fails comes about by chance more
    often than that one does: p of a failure is multiplied by their number, and where it does not survive the claim
    only points the other way.
    """
    decisive = find_decisive(judged)
    decided = replace(judged[decisive], part=decisive + 1)
    if decided.verdict != "fails":
        return decided if all(one.n for one in judged) else decided.leave_open()
    p = min(1.0, decided.p * len(judged))
    return replace(decided, p=p, verdict="fails" if p < statistics.SIGNIFICANT else statistics.weaken("fails"))
