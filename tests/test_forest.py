"""Tests of the figure of claims on page 01, with made-up effects."""

import itertools

import numpy as np
import pytest
from matplotlib import pyplot
from notebook_code import definitions

from lib.study import claims, results

PAGE = definitions("01_results_in_brief", "COLORS")


@pytest.fixture
def judged():
    """Return every claim as if measured, except those that need clinical notes."""
    frame, verdicts = results.read_claims(), itertools.cycle(PAGE.COLORS)
    frame["n"] = [0 if claim.key in ("gu-clinical-notes-no-help", "naseem-mimic-hurts") else 6
                  for claim in claims.CLAIMS]  # fmt: skip
    frame["verdict"], frame["n_sets"] = [next(verdicts) for _ in frame.index], 6
    effects = {"paper_effect": 2.0, "paper_effect_here": np.nan, "effect": 3.0, "ci_low": -1.0, "ci_high": 9.0}
    return frame.assign(note="tested: above 0", part=1, substituted="", **effects)


def test_the_figure_has_the_claims_in_points_with_their_verdicts_and_no_text_overlaps(judged):
    judged.loc[judged["claim"] == "gu-half-compute", "substituted"] = "gu in place of wada"
    judged.loc[judged["claim"] == "gu-whole-word", "paper_effect"] = 36.0
    rows = {row["claim"]: row for row in judged.to_dict("records")}
    others = {"gu-vocab-whole", "naseem-faster", "naseem-ner-gain", "ozyurt-one-class-runs", "naseem-mimic-hurts"}
    assert not any(PAGE.in_points(rows[key]) for key in others)
    assert PAGE.describe_effects(rows["naseem-ner-gain"]).endswith("(-1.00 to +9.00) points")

    figure = PAGE.draw_claims(judged)
    figure.canvas.draw()
    pyplot.close(figure)
    drawn = judged[[PAGE.in_points(row) for row in rows.values()]]
    assert len(drawn) == 44 and len(figure.axes) == drawn["paper"].nunique()
    left_labels = [label for axes in figure.axes for label in axes.get_yticklabels()]
    right_labels = [label for axes in figure.axes for label in axes.child_axes[0].get_yticklabels()]
    text = " ".join(" ".join(label.get_text() for label in left_labels).split())
    assert len(left_labels) == len(drawn) and text.count("*") == 1
    assert "matches mixed-domain pretraining with all of it *" in text and "(for ten times more steps)" in text
    verdicts = [label.get_text() for label in right_labels]
    assert sorted(verdicts) == sorted(map(claims.describe_verdict, drawn.to_dict("records")))
    assert all(axes.get_xlim()[1] > 36 for axes in figure.axes)
    boxes = [label.get_window_extent() for label in left_labels]
    assert not any(first.overlaps(second) for first, second in itertools.combinations(boxes, 2))
    assert min(label.get_fontsize() for label in left_labels + right_labels) >= 8


def test_the_figure_may_be_empty(judged):
    figure = PAGE.draw_claims(judged.assign(n=0))
    pyplot.close(figure)
    assert len(figure.axes) == 1
