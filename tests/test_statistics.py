"""Verdicts and tables: the rules of 00_start_here, on made-up scores."""

import numpy as np
import pandas as pd
import pytest
from conftest import each
from golden import write
from notebook_code import definitions
from scipy import stats

from benchmarks import design, verdict_rule
from lib import statistics
from lib.errors import StudyError
from lib.study import agreement, open_study, pairs, paths, results, tables

CELLS = definitions("04_printed_numbers")


@each(
    ("published", "ours", "verdict"),
    [
        (80.0, [79.4, 80.0, 80.6], "agrees"),
        (81.0, [79.0, 80.0, 81.0], "undecided"),
        (90.0, [79.0, 80.0, 81.0], "below"),
        (70.0, [79.0, 80.0, 81.0], "above"),
        (80.0, [80.0], "n/a"),
        (float("nan"), [80.0, 81.0], "n/a"),
        # mean 80, sd 0.913, n 4: the half width is t(0.975, 3) * 0.913 / 2 = 1.453
        (81.44, [79.0, 79.5, 80.5, 81.0], "agrees"),
        (81.46, [79.0, 79.5, 80.5, 81.0], "below"),
    ],
)
def test_a_printed_cell_is_compared_with_the_interval_of_ours(published, ours, verdict):
    assert tables.judge_cell(published, ours) == verdict


def side(*means: float, pretraining=(0.0,), seeds=(-0.5, 0.5)) -> statistics.Side:
    """Return a side whose datasets have these means; `pretraining` and `seeds` are offsets from them."""
    return [[[mean + offset + seed for seed in seeds] for offset in pretraining] for mean in means]


@each(
    ("gaps", "verdict"),
    [
        ([2.0, 2.5, 3.0], "holds"),
        ([-2.0, -2.5, -3.0], "fails"),
        ([2.0, -2.5, 3.0], "undecided"),
        ([9.0], "undecided"),
    ],
)
def test_the_error_of_a_difference_is_the_scatter_of_datasets(gaps, verdict):
    """Neither more seeds nor their agreement make it surer."""
    estimate = statistics.estimate_difference(side(*gaps, seeds=(0.0,) * 9), side(*[0.0] * len(gaps)))
    judged = statistics.judge(estimate)
    assert judged["verdict"] == verdict and judged["effect"] == pytest.approx(np.mean(gaps))
    if len(gaps) > 1:
        assert (judged["ci_low"], judged["ci_high"]) == pytest.approx(statistics.find_interval(gaps))
        p = 2 * stats.ttest_1samp(gaps, 0, alternative="greater" if judged["effect"] > 0 else "less").pvalue
        assert verdict == "undecided" or judged["p"] == pytest.approx(p)


def test_the_error_of_a_recipe_includes_the_scatter_of_pretrainings():
    """If the datasets agree fully, it is Welch's t-test over pretrainings, with half the degrees of freedom."""
    better, worse = (0.0, 0.4, 0.8), (-1.0, 0.0, 0.4)
    sides = side(1.0, 2.0, pretraining=better), side(0.0, 1.0, pretraining=worse)
    judged = statistics.judge(statistics.estimate_difference(*sides, recipe=True))
    welch = stats.ttest_ind([value + 1 for value in better], worse, equal_var=False)
    wider = stats.t.ppf(0.975, welch.df / 2) / stats.t.ppf(0.975, welch.df)
    ends = [judged["effect"] + wider * (end - judged["effect"]) for end in welch.confidence_interval()]
    assert (judged["ci_low"], judged["ci_high"]) == pytest.approx(tuple(ends))
    once = side(1.0, 3.0), side(0.0, 1.0)  # one pretraining says nothing about another
    assert statistics.estimate_difference(*once, recipe=True) == statistics.estimate_difference(*once)


def test_the_error_of_checkpoints_on_few_datasets_is_that_of_seeds_and_test_documents():
    """Disagreement of the datasets does not count, unless documents or seeds are too few or datasets are many.

    The error is computed by hand.
    """
    sides = side(2.0, 6.0, seeds=(-1.0, 0.0, 1.0)), side(1.0, 1.0, seeds=(-1.0, 0.0, 1.0))
    samples = [(0.25, 29), (0.25, 29)]
    estimate = statistics.estimate_difference(*sides, samples=samples)
    # variances: four means of three seeds, each 1/3 with 2 degrees of freedom, and two of test documents
    variance, spread = 4 / 3 + 0.5, 4 * (1 / 3) ** 2 / 2 + 2 * 0.25**2 / 29
    assert (estimate.effect, estimate.error) == (3.0, pytest.approx(np.sqrt(variance) / 2))
    assert estimate.freedom == pytest.approx(variance**2 / spread / 2) and estimate.drawn
    by_sets = statistics.estimate_difference(*sides)
    assert statistics.estimate_difference(*sides, samples=samples[:1]) == by_sets and not by_sets.drawn
    assert not statistics.estimate_difference(side(1.0), side(2.0), samples=samples[:1]).drawn  # two seeds
    assert not statistics.estimate_difference(*sides, recipe=True, samples=samples).drawn
    many = side(*range(6), seeds=(0.0, 1.0, 2.0))
    assert not statistics.estimate_difference(many, many, samples=samples * 3).drawn


@each(
    ("relation", "margin", "mean", "verdict"),
    [
        ("beats", 0, 2.0, "holds"),
        ("beats", 0, -2.0, "fails"),
        ("beats", 0, 0.3, "undecided"),
        ("as good as", 1, -0.3, "holds"),
        ("as good as", 1, -1.2, "undecided"),
        ("as good as", 1, -2.0, "fails"),
        ("equals", 1, 0.3, "holds"),
        ("equals", 1, 1.2, "undecided"),
        ("equals", 1, 2.0, "fails"),
        ("equals", 1, -2.0, "fails"),
    ],
)
def test_relations_and_margins(relation, margin, mean, verdict):
    judged = statistics.judge(statistics.Estimate(mean, 0.25, 1000), relation, margin)
    assert judged["verdict"] == verdict and (judged["p"] < 0.05) == (verdict != "undecided")
    assert judged["ci_high"] - judged["ci_low"] == pytest.approx(0.981, abs=1e-3)


def test_a_median_has_its_exact_interval():
    """For 15 values it is the fourth to the twelfth: the chance that fewer than four are below the median is 1.8%."""
    values = [float(value) for value in range(1, 16)]
    judged = statistics.judge_median(values, threshold=3.5)
    assert (judged["effect"], judged["ci_low"], judged["ci_high"]) == (8.0, 4.0, 12.0)
    assert judged["verdict"] == "holds" and judged["p"] == pytest.approx(2 * stats.binom.cdf(3, 15, 0.5))
    assert statistics.judge_median(values, threshold=4.5)["verdict"] == "undecided"
    assert statistics.judge_median(values, threshold=8, margin=5)["verdict"] == "holds"
    assert statistics.judge_median(values, threshold=20, margin=5)["verdict"] == "fails"


@each(("recipe", "pretrainings", "weakened"), [(True, 2, True), (True, 3, False), (False, 1, False)])
def test_a_recipe_that_was_pretrained_less_than_three_times_only_points(recipe, pretrainings, weakened):
    weaker = {"holds": "points that way", "fails": "points the other way", "undecided": "undecided"}
    for verdict, weak in weaker.items():
        assert statistics.limit(verdict, recipe, pretrainings) == (weak if weakened else verdict)


def test_the_rule_seldom_errs():
    """Run benchmarks/verdict_rule.py briefly: without an effect at most 5% hold or fail, give or take 500 draws."""
    for setting in [
        ("recipe", "as measured", 3, 3, 3),
        ("recipe", "same effect everywhere", 9, 3, 1),
        ("checkpoint", "heavy tails", 6, 1, 3),
        (verdict_rule.BY_DOCUMENTS, "unequal variances", 3, 1, 3),
        ("recipe", verdict_rule.MEASURED, 3, 3, 1),
    ]:
        effects = [*verdict_rule.NO_EFFECT, ("beats", 40.0)]
        *without_effect, large = verdict_rule.simulate((*setting, effects), 500, verdict_rule.measure_seeds())
        assert all(result["share_holds"] + result["share_fails"] < 0.07 for result in without_effect), setting
        assert large["share_holds"] > 0.9, setting
    (pretrained_once,) = verdict_rule.simulate(("recipe", "as measured", 9, 1, 3, [("beats", 40.0)]), 50, np.ones(1))
    assert (pretrained_once["share_holds"], pretrained_once["share_points"]) == (0, 1)


def test_power_grows_with_the_effect_and_falls_with_the_correction():
    pair = pairs.Pairs(names=("a", "b"))
    zero, medium, large = (design.find_power(pair, 9, 5, effect, 35, 40) for effect in (0.0, 5.0, 50.0))
    assert zero[0] < 0.1 < medium[0] and medium[1] < medium[0] and large == [1.0, 1.0]


def test_the_page_of_the_design_is_up_to_date():
    recorded = results.read_table(paths.recorded(paths.output("benchmarks", "design.csv")))
    assert design.describe(recorded) in design.PAGE.read_text(encoding="utf-8")


def test_holms_correction():
    # sorted 0.01, 0.02, 0.04 times 3, 2, 1; never below the one before
    assert statistics.correct([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert statistics.correct([0.6, 0.5]) == [1.0, 1.0]


def rising(*slopes) -> list[statistics.Curve]:
    """Return curves over 1, 10 and 100 with these slopes and two seeds at every point."""
    steps = [*enumerate((1.0, 10.0, 100.0))]
    return [[(x, [70 + slope * i - 1, 70 + slope * i + 1]) for i, x in steps] for slope in slopes]


def test_a_slope_is_per_tenfold():
    assert statistics.find_slope([(1.0, [60.0]), (10.0, [61.0, 65.0]), (100.0, [66.0])]) == pytest.approx(3.0)
    # least squares by hand: x is -1.5, -0.5, 0.5, 1.5; sum of products 4.5 + 0 + 0.5 + 3 = 8; of squares 5
    points = [(1.0, [-3.0]), (10.0, [0.0]), (100.0, [1.0]), (1000.0, [2.0])]
    assert statistics.find_slope(points) == pytest.approx(1.6)
    assert np.isnan(statistics.find_slope([(5.0, [1.0]), (5.0, [2.0])]))


def test_the_error_of_several_slopes_is_their_scatter():
    judged = statistics.judge(statistics.estimate_slope(rising(1.0, 1.2, 1.4)))
    assert judged["verdict"] == "holds" and judged["effect"] == pytest.approx(1.2)
    assert (judged["ci_low"], judged["ci_high"]) == pytest.approx(statistics.find_interval([1.0, 1.2, 1.4]))
    assert statistics.judge(statistics.estimate_slope(rising(1.0, -2.0, 1.0)))["verdict"] == "undecided"


def test_the_error_of_one_slope_is_that_of_its_residuals():
    x, y = [1.0, 10.0, 100.0, 1000.0], [60.0, 61.1, 61.9, 63.0]
    fitted = stats.linregress(np.log10(x), y)
    estimate = statistics.estimate_slope([[(step, [value]) for step, value in zip(x, y, strict=True)]])
    assert (estimate.effect, estimate.error, estimate.freedom) == pytest.approx((fitted.slope, fitted.stderr, 2))
    assert statistics.judge(estimate)["p"] == pytest.approx(fitted.pvalue)
    assert np.isnan(statistics.estimate_slope([[(1.0, [1.0]), (10.0, [2.0])]]).error)


def test_damaged_results_are_named(own_outputs):
    write(paths.results("laptop", "bert-general", "ncbi-disease", "lee"), '{"runs": [')
    with pytest.raises(StudyError, match="bert-general--ncbi-disease--lee.json: damaged"):
        open_study("laptop").results()


def test_verdicts_are_counted_apart_for_counts_and_for_scores_of_models(own_outputs):
    """Of the scores one cell agrees, one is below, one above, and one could not be run."""
    scores = [{"published": 80.0, "ours": 80.0, "verdict": "agrees"},
              {"published": 80.0, "ours": 70.0, "verdict": "below"},
              {"published": 80.0, "ours": 90.0, "verdict": "above"},
              {"published": 80.0, "ours": None, "verdict": "n/a"}]  # fmt: skip
    results.write_csv(paths.table("laptop", "lee-4"), pd.DataFrame(scores))
    results.write_csv(paths.table("laptop", "gu-1"), pd.DataFrame([{"published": 1, "ours": 1, "verdict": "agrees"}]))
    counts = agreement.count_verdicts(open_study("laptop"))
    counted = counts.set_index("table").loc["lee-4", ["printed", "ours beside", "agrees", "below"]]
    assert counted.tolist() == [4, 3, 1, 1]
    parts = agreement.split_verdicts(counts)
    descriptions = {name: agreement.describe_agreement(part) for name, part in parts.items()}
    assert descriptions == {"what is counted": "1 of 1 agree", "scores of models": "1 of 3 agree, 1 below, 1 above"}
    empty = agreement.split_verdicts(counts.iloc[:0])
    assert {agreement.describe_agreement(part) for part in empty.values()} == {"none is judged"}


def test_the_share_of_pairs_of_models_in_the_printed_order():
    cells = [("a", 80, 60), ("a", 82, 65), ("a", 84, 63), ("a", 84, 10), ("a", 90, None), ("b", 70, 50), ("b", 60, 51)]
    accuracy = CELLS.decision_accuracy(pd.DataFrame(cells, columns=["dataset", "published", "ours"]))
    # on a: 80-82 and 80-84 agree, 82-84 does not; the other 84 is below both; the two at 84 are printed equal
    assert accuracy.to_numpy().tolist() == [["a", 4, 5, 2], ["b", 2, 1, 0]]
    share, low, high = CELLS.find_share(accuracy)
    # a third of four independent pairs, so the bounds lie between those for one and two of four
    one, two = (stats.binomtest(hits, 4).proportion_ci() for hits in (1, 2))
    assert share == pytest.approx(1 / 3) and one.low < low < two.low and one.high < high < two.high
    whole = pd.DataFrame({"models": [2] * 4, "pairs": [1] * 4, "alike": [1] * 4})
    assert CELLS.find_share(whole) == (1.0, pytest.approx(stats.binomtest(4, 4).proportion_ci().low), 1.0)


def test_signal_to_noise_of_a_dataset():
    """Models score 60 and 64, and their seeds have variances 2 and 0: sqrt(8) over 1."""
    rows = [("x", "a", 59.0), ("x", "a", 61.0), ("x", "b", 64.0), ("x", "b", 64.0), ("y", "a", 1.0), ("y", "a", 2.0)]
    ratios = CELLS.signal_to_noise(pd.DataFrame(rows, columns=["dataset", "model", "ours"]))
    assert ratios.to_dict() == {"x": pytest.approx(np.sqrt(8))}


def test_the_degree_of_reproduction_of_two_scores():
    """By hand: the deviation is |a - b| / sqrt(2), over c4(2) = 0.7979; the factor for two scores is 1 + 1/8."""
    assert CELLS.variation(90.0, 80.0) == pytest.approx(1.125 * 7.0711 / 0.7979 / 85 * 100, rel=1e-3)
    assert CELLS.variation(70.0, 70.0) == 0
