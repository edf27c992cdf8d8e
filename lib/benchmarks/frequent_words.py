"""Answers to questions without an encoder: runs of words in the passages, ranked by frequency or order."""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Answer, Question

WORD = re.compile(r"\w+(?:[-'/.]\w+)*")
LONGEST, ANSWERS = 4, 5  # words in the longest run; runs returned as answers, as many as BioASQ counts
Parts = Sequence[Sequence[Question]]


def answer_by_frequency(dataset: Dataset, train: Sequence[Question], parts: Parts, power: float) -> list[list]:
    """Rank runs of words by their frequency in the passages times a power of their length; nothing is trained."""
    return [[rank_runs(question, lambda run, times: times * len(run.split()) ** power) for question in part]
            for part in parts]  # fmt: skip


def answer_in_order(dataset: Dataset, train: Sequence[Question], parts: Parts) -> list[list]:
    """Return the first runs of words of the passages, in text order."""
    return [[rank_runs(question, lambda run, times: 0) for question in part] for part in parts]


def rank_runs(question: Question, weigh: Callable[[str, int], float]) -> list[Answer]:
    """Return the best ANSWERS runs of words in the passages, without function words or words of the question.

    `weigh` takes a run in lower case and its frequency; ties go to the run that occurs first.
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # imported here because it takes seconds

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
