"""Answers to questions without an encoder: runs of words in the passages, ranked by frequency or order."""

import re
from collections import Counter
from collections.abc import Sequence

from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Answer, Question

WORD = re.compile(r"\w+(?:[-'/.]\w+)*")
LONGEST, ANSWERS = 4, 5  # words in the longest run; runs returned as answers, as many as BioASQ counts
Parts = Sequence[Sequence[Question]]


def answer_by_frequency(dataset: Dataset, train: Sequence[Question], parts: Parts, power: float) -> list[list]:
    """Rank runs of words by their frequency in the passages times a power of their length; nothing is trained."""
    return [[rank_runs(question, power) for question in part] for part in parts]


def answer_in_order(dataset: Dataset, train: Sequence[Question], parts: Parts) -> list[list]:
    """Return the first runs of words of the passages, in text order."""
    return [[rank_runs(question) for question in part] for part in parts]


def rank_runs(question: Question, power: float | None = None) -> list[Answer]:
    """Return the best ANSWERS runs of words in the passages, without function words or words of the question.

    The best are the most frequent, as in answer_by_frequency; ties go to the run that occurs first, and so do all
    without a `power`.
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # imported here because it takes seconds

    excluded_words = {word.lower() for word in WORD.findall(question.question)} | ENGLISH_STOP_WORDS
    counts, first_answers = Counter(), {}
    for number, passage in enumerate(question.passages):
        words = list(WORD.finditer(passage))
        for begin, word in enumerate(words):
            for last in range(begin, min(begin + LONGEST, len(words))):
                is_broken = last > begin and passage[words[last - 1].end() : words[last].start()] != " "
                if is_broken or words[last].group().lower() in excluded_words:
                    break
                span = word.start(), words[last].end()
                run = passage[slice(*span)].lower()
                counts[run] += 1
                first_answers.setdefault(run, Answer(number, *span, 0.0))
    runs = list(counts)
    if power is not None:
        runs.sort(key=lambda run: -counts[run] * len(run.split()) ** power)
    return [first_answers[run] for run in runs[:ANSWERS]]
