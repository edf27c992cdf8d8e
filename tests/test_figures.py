"""Figures as the report has them: SVG whose points say what they are."""

from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import pyplot

from lib.study import figures


def draw(names):
    figure, ((axes,),) = figures.new_figure(3, 2)
    (line,) = axes.plot([1.0, np.nan, 3.0], [0, 1, 2], "o")
    axes.plot([0, 4], [0, 2])
    if names:
        figures.name_points(line, names)
    pyplot.close(figure)
    return figures.draw_named(figure)


def test_points_have_their_texts_in_order_and_missing_ones_none():
    root = ElementTree.fromstring(draw(["a & b", "missing", "c"]))
    assert root.tag == f"{{{figures.SVG}}}svg"
    assert [one.text for one in root.iter(f"{{{figures.SVG}}}title")] == ["a & b", "c"]


def test_a_figure_without_texts_stays_a_picture():
    assert draw([]) is None


def test_texts_that_are_not_as_many_as_the_points_are_refused():
    with pytest.raises(ValueError, match="zip"):
        draw(["a"])
