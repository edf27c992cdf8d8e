"""Figures as the report has them: SVG whose points say what they are."""

from xml.etree import ElementTree

import numpy as np
import pandas as pd
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


@pytest.mark.parametrize(("steps", "places", "panels", "lines"), [(3, 13, 3, 13), (6, 2, 2, 6), (4, 20, 4, 20)])
def test_effects_fit_a_page_whatever_there_are_many_of(steps, places, panels, lines):
    index = pd.MultiIndex.from_product([[f"step {n}" for n in range(steps)], [f"place {n}" for n in range(places)]])
    frame = pd.DataFrame({"paper": 1.0, "ours": 2.0, "sd": 0.5}, index=index)
    frame.loc[("no step", "no place"), "sd"] = 0.5
    figure = figures.effects(frame, "points")
    pyplot.close(figure)
    drawn = [axes for axes in figure.axes if axes.get_visible()]
    assert len(drawn) == panels and figure.get_figwidth() < 9
    assert len(drawn[0].get_yticklabels()) == lines
