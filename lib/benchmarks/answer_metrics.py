"""Metrics of answers to questions: ranked answers, answer texts or ranked candidates; conventions as in metrics.py."""

import math
import re
import string
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Sequence
from statistics import fmean

from lib.benchmarks.rates import Scores, check_known, check_lengths, rates


def bioasq_factoid(gold: Sequence[Collection[str]], predicted: Sequence[Sequence[str]]) -> Scores:
    """BioASQ's strict accuracy, lenient accuracy and mean reciprocal rank (`mrr`) of ranked answers.

    `gold`: all correct strings of each question. `predicted`: its answers, best first, of which five count. An answer
    is right if it equals a gold string in lower case; the official evaluation normalizes nothing else. A question
    without a predicted answer counts as wrong, whereas the official program leaves out questions that a submission
    lacks. If a question has no gold answer, as one question of 4b, any answer to it is wrong. The five batches of a
    year are scored separately and averaged: lee Table 6, which prints all three scores, says so of the state of the art
    only, and naseem Table 7, which prints the lenient accuracy, says nothing. Raises ValueError if no question has a
    gold answer.
    """
    check_lengths(gold, predicted)
    if not any(gold):
        raise ValueError(f"none of {len(gold)} questions has a gold answer")
    ranks = []
    for gold_answers, answers in zip(gold, predicted, strict=True):
        gold_answers = {answer.lower() for answer in gold_answers}
        ranks.append(
            next((n for n, answer in enumerate(answers[:5], start=1) if answer.lower() in gold_answers), math.inf)
        )
    return {
        "strict accuracy": 100 * fmean(rank == 1 for rank in ranks),
        "lenient accuracy": 100 * fmean(rank <= 5 for rank in ranks),
        "mrr": 100 * fmean(1 / rank for rank in ranks),
    }


def squad_scores(gold: Sequence[Collection[str]], predicted: Sequence[str]) -> Scores:
    """SQuAD v1.1's exact match and F1: means over questions of the best score over the gold answers.

    Answers are compared in lower case, without punctuation and articles. F1 counts the words that two answers share,
    each as often as in both. Printed in ozyurt Table 2 (BioASQ 8b, factoid and list).
    """
    check_lengths(gold, predicted)
    if unanswered := sum(not answers for answers in gold):
        raise ValueError(f"{unanswered} of {len(gold)} questions have no gold answer")
    pairs = [
        ([normalise_answer(answer) for answer in answers], normalise_answer(prediction))
        for answers, prediction in zip(gold, predicted, strict=True)
    ]
    return {
        "exact match": 100 * fmean(prediction in answers for answers, prediction in pairs),
        "f1": fmean(max(word_f1(answer, prediction) for answer in answers) for answers, prediction in pairs),
    }


def normalise_answer(text: str) -> str:
    """Return a text in lower case, without ASCII punctuation, then without articles, single-spaced (SQuAD v1.1)."""
    unpunctuated = text.lower().translate(str.maketrans("", "", string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", unpunctuated).split())


def word_f1(gold: str, predicted: str) -> float:
    gold_words, predicted_words = Counter(gold.split()), Counter(predicted.split())
    return rates((gold_words & predicted_words).total(), predicted_words.total(), gold_words.total())["f1"]


def ranking_scores(labels: Sequence[int], scores: Sequence[float], groups: Sequence[Hashable]) -> Scores:
    """Mean reciprocal rank of each question's first right candidate by descending score.

    An item is a candidate: 1 (right) or 0, its score, its question. A question without a right candidate counts as 0.
    Of equal scores the earlier candidate comes first, as in the authors' program. Raises ValueError if a score is nan.
    Printed in ozyurt Table 5.
    """
    check_lengths(labels, scores)
    check_lengths(labels, groups)
    check_known(labels, (0, 1))
    if undefined := sum(map(math.isnan, scores)):
        raise ValueError(f"{undefined} of {len(scores)} scores are nan")
    rankings = defaultdict(list)
    for _, label, group in sorted(zip(scores, labels, groups, strict=True), key=lambda item: -item[0]):
        rankings[group].append(label)
    ranks = [1 / (1 + ranking.index(1)) if 1 in ranking else 0.0 for ranking in rankings.values()]
    return {"mrr": 100 * fmean(ranks)}
