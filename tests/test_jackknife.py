"""Tests of the variance of scores over test documents, against the known variance of a proportion."""

import math
import random

import pytest

from lib.benchmarks import conll, jackknife
from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Labelled, Sentence
from lib.benchmarks.registry import DATASETS


def test_the_variance_of_an_accuracy_is_a_binomials():
    rng = random.Random(0)
    test = [Labelled(str(number), ("a",), ("yes",)) for number in range(3000)]
    predicted = sorted([("yes",) if rng.random() < 0.7 else ("no",) for _ in test])  # as in files sorted by label
    variance, freedom = jackknife.find_variance(jackknife.leave_documents_out(DATASETS["docclsjp"], test, predicted))
    assert freedom == 29 and math.sqrt(variance) == pytest.approx(100 * math.sqrt(0.7 * 0.3 / 3000), rel=0.35)


def test_sentences_of_a_document_are_left_out_together():
    dataset = Dataset("x", "x", "tagging", "x", "entity-f1", conll.read_conll, {})
    named = [Sentence(["a"], ["B"], document) for document in "xyz" for _ in range(50)]
    groups = jackknife.group_documents(dataset, named).reshape(3, 50)
    assert (groups == groups[:, :1]).all() and sorted(groups[:, 0]) == [0, 1, 2]
    scores = jackknife.leave_documents_out(dataset, named[:100], [["B"]] * 100)
    assert scores == []  # two documents are too few for a variance
    unnamed = [Sentence(["a"], ["B"]) for _ in range(90)]
    assert jackknife.group_documents(dataset, unnamed).tolist() == [group for group in range(30) for _ in range(3)]
    assert jackknife.find_variance(jackknife.leave_documents_out(dataset, unnamed, [["B"]] * 90)) == (0.0, 29)


def test_the_variance_of_a_difference_is_summed_over_folds():
    better, worse = [[3.0, 2.0, 2.0, 1.0]], [[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]  # one run, and two
    assert jackknife.compare_sides({1: better}, {1: worse}) == (pytest.approx(3 / 4 * 2), 3)
    shorter = {1: better, 2: [[5.0, 5.0, 5.0]]}  # a fold with fewer documents has fewer groups
    variance, freedom = jackknife.compare_sides(shorter, {1: worse, 2: [[1.0, 1.0, 1.0]]})
    assert (variance, freedom) == (pytest.approx(1.5 / 4), 3)
    for incomplete in ({1: [[]]}, {2: worse}, {1: [[1.0, 2.0]]}, {1: [[1.0, math.nan, 1.0, 1.0]]}):
        assert jackknife.compare_sides({1: better}, incomplete) is None
