"""Variances of scores over draws of test documents, against what is known of a share."""

import math
import random

import pytest

from lib.benchmarks import conll, jackknife
from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Labelled, Sentence
from lib.benchmarks.registry import DATASETS


def test_the_variance_of_an_accuracy_is_a_binomials():
    rng = random.Random(0)
    test = [Labelled(str(place), ("a",), ("yes",)) for place in range(3000)]
    predicted = sorted([("yes",) if rng.random() < 0.7 else ("no",) for _ in test])  # as in files by label
    variance, freedom = jackknife.find_variance(jackknife.leave_out(DATASETS["docclsjp"], test, predicted))
    assert freedom == 29 and math.sqrt(variance) == pytest.approx(100 * math.sqrt(0.7 * 0.3 / 3000), rel=0.35)


def test_sentences_of_a_document_are_left_out_together():
    """Two documents of many sentences each are too few, however many sentences there are."""
    dataset = Dataset("x", "x", "tagging", "x", "entity-f1", conll.read, {})
    test = [Sentence(["a"], ["B"], document) for document in "xy" for _ in range(50)]
    assert jackknife.leave_out(dataset, test, [["B"]] * 100) == []
    apart = [Sentence(["a"], ["B"]) for _ in range(100)]
    assert jackknife.find_variance(jackknife.leave_out(dataset, apart, [["B"]] * 100)) == (0.0, 29)
