"""Errors of scores for the draw of the test set, against draws; tie groups by hand."""

import numpy as np
import pytest

from lib.benchmarks import separable


@pytest.mark.parametrize("f1", [0.3, 0.6, 0.9])
def test_the_error_of_an_f1_is_that_over_draws_of_what_is_gold_or_predicted(f1):
    gold = 1000
    every = round(gold * (2 - f1))  # gold or predicted, where as many are predicted
    found = np.random.default_rng(0).binomial(every, f1 / (2 - f1), 20_000)  # true positives
    assert separable.error_of_f1(f1, gold) == pytest.approx(np.std(2 * found / (every + found)), rel=0.03)


def test_the_error_of_a_share_is_a_binomials():
    assert separable.error_of_share(0.5, 100) == 0.05


def test_the_best_ties_with_all_that_are_not_apart_from_it():
    scores = {"third": 0.80, "best": 0.90, "second": 0.89}
    assert separable.tie(scores, dict.fromkeys(scores, 0.03)) == ["best", "second"]  # 1.96 x 0.042: 0.083
    assert separable.tie(scores, dict.fromkeys(scores, 0.04)) == ["best", "second", "third"]
