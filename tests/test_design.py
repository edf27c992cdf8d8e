"""The design of the measurement: its page says what the scale says, and the power is that of the rule for claims."""

from benchmarks import design
from lib.study import pairs, paths, results

DESIGN = results.read_table(paths.recorded(paths.output("benchmarks", "design.csv")))


def test_the_page_says_what_the_scale_says():
    assert design.describe(DESIGN) in design.PAGE.read_text(encoding="utf-8")


def test_power_grows_with_the_effect_and_falls_with_the_correction():
    part = pairs.Pairs(names=("a", "b"))
    none, some, all_of_them = (design.find_power(part, 9, 5, effect, 35, 40) for effect in (0.0, 5.0, 50.0))
    assert none[0] < 0.1 < some[0] and some[1] < some[0] and all_of_them == [1.0, 1.0]
