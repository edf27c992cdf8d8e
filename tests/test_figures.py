"""Figures of the report: SVG whose points have texts that say what they show."""

from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from conftest import each
from matplotlib import pyplot

from lib.study import figures


def draw(figure) -> list[str]:
    """Draw a figure, and return the texts of its points in order."""
    pyplot.close(figure)
    root = ElementTree.fromstring(figures.draw_svg(figure))
    assert root.tag == f"{{{figures.SVG}}}svg"
    return [title.text for title in root.iter(f"{{{figures.SVG}}}title")]


def test_points_have_their_texts_in_order_and_missing_points_none():
    figure, ((axes,),) = figures.new_figure(3, 2)
    (line,) = axes.plot([1.0, np.nan, 3.0], [0, 1, 2], "o")
    axes.plot([0, 4], [0, 2])
    figures.name_points(line, ["a & b", "missing", "c"])
    assert draw(figure) == ["a & b", "c"]
    figures.name_points(line, ["a"])
    with pytest.raises(ValueError, match="zip"):
        draw(figure)


def test_points_and_bars_without_texts_show_their_series_tick_and_value(monkeypatch):
    figure, ((left, right),) = figures.new_figure(5, 3, columns=2)
    left.barh(["corpora", "models"], [1, 2.5], label="planned")
    left.errorbar([1, 2], [0, 1], xerr=[0.1, 0.2], fmt="o", label="taken")
    left.axvspan(1, 2)  # not a bar of a series
    left.set(xlabel="hours")
    right.plot([1, np.nan, 16323.4], [2, 3, 40], marker="o")
    right.plot([1, 2], [3, 40])  # a line alone
    right.set(xscale="log", xlabel="MB", ylabel="seconds")
    assert sorted(draw(figure)) == [
        "MB 1, seconds 2", "MB 16,320, seconds 40", "planned, corpora, hours 1", "planned, models, hours 2.5",
        "taken, corpora, hours 1", "taken, models, hours 2",
    ]  # fmt: skip
    monkeypatch.setattr(figures, "MOST_NAMED", 2)
    assert draw(figure) == []  # more than can be read


@each(("steps", "places", "panels", "lines"), [(3, 13, 3, 13), (6, 2, 2, 6), (4, 20, 4, 20)])
def test_effects_fit_a_page_whatever_there_are_many_of(steps, places, panels, lines):
    index = pd.MultiIndex.from_product([[f"step {n}" for n in range(steps)], [f"place {n}" for n in range(places)]])
    frame = pd.DataFrame({"paper": 1.0, "ours": 2.0, "sd": 0.5}, index=index)
    frame.loc[("no step", "no place"), "sd"] = 0.5
    figure = figures.effects(frame, "points")
    pyplot.close(figure)
    drawn = [axes for axes in figure.axes if axes.get_visible()]
    assert len(drawn) == panels and figure.get_figwidth() < 9
    assert len(drawn[0].get_yticklabels()) == lines
