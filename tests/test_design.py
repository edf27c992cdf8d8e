"""Tests of the design of the measurement: its page matches the scale, and power follows the rule for claims."""

from benchmarks import design
from lib.study import pairs, paths, results

DESIGN = results.read_table(paths.recorded(paths.output("benchmarks", "design.csv")))


def test_the_page_says_what_the_scale_says():
    assert design.describe(DESIGN) in design.PAGE.read_text(encoding="utf-8")


def test_power_grows_with_the_effect_and_falls_with_the_correction():
    pair = pairs.Pairs(names=("a", "b"))
    zero, medium, large = (design.find_power(pair, 9, 5, effect, 35, 40) for effect in (0.0, 5.0, 50.0))
    assert zero[0] < 0.1 < medium[0] and medium[1] < medium[0] and large == [1.0, 1.0]
