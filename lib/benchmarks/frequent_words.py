"""Answers to questions without an encoder: words that stand in the passages, and how often."""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Answer, Question

WORD = re.compile(r"\w+(?:[-'/.]\w+)*")
LONGEST, ANSWERS = 4, 5  # words of a run; runs that are given as answers, as many as BioASQ counts
Parts = Sequence[Sequence[Question]]


def answer_by_frequency(dataset: Dataset, train: Sequence[Question], parts: Parts, power: float) -> list[list]:
    """Runs of words by how often they stand in the passages, times a power of their length; nothing is trained."""
    return [[rank_runs(question, lambda run, times: times * len(run.split()) ** power) for question in part]
            for part in parts]  # fmt: skip


def answer_in_order(dataset: Dataset, train: Sequence[Question], parts: Parts) -> list[list]:
    """The first runs of words of the passages, as they stand there."""
    return [[rank_runs(question, lambda run, times: 0) for question in part] for part in parts]


def rank_runs(question: Question, weigh: Callable[[str, int], float]) -> list[Answer]:
    """The best ANSWERS of the runs of a few words, none of them a function word or the question's, in its passages.

    `weigh`: of a run in lower case, and how often it stands there; of equal ones the first.
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # here, as it takes seconds

    others = {word.lower() for word in WORD.findall(question.question)} | ENGLISH_STOP_WORDS
    times, first = Counter(), {}
    for number, passage in enumerate(question.passages):
        words = list(WORD.finditer(passage))
        for begin, word in enumerate(words):
            for last in range(begin, min(begin + LONGEST, len(words))):
                apart = last > begin and passage[words[last - 1].end() : words[last].start()] != " "
                if apart or words[last].group().lower() in others:
                    break
                span = word.start(), words[last].end()
                run = passage[slice(*span)].lower()
                times[run] += 1
                first.setdefault(run, Answer(number, *span, 0.0))
    return [first[run] for run in sorted(times, key=lambda run: -weigh(run, times[run]))[:ANSWERS]]
