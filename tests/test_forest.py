"""The picture of the claims, from made-up effects."""

import itertools

import numpy as np
import pytest
from matplotlib import pyplot

from lib.study import claims, forest, open_study, results


def test_claims_in_points_are_told_by_their_tests():
    drawn = {"gu-half-compute", "lee-steps", "lee-bio-beats-bioes", "lee-small-sets-gain"}
    others = {"gu-vocab-whole", "naseem-faster", "naseem-ner-gain", "lee-averages", "ozyurt-one-class-runs"}
    from_0_to_1 = {"ozyurt-weighted-loss"}
    assert {key for key in drawn | others | from_0_to_1 if forest.in_points(key)} == drawn


@pytest.fixture
def judged():
    """Every claim as if it had been measured, but for those that need clinical notes."""
    lines, verdicts = results.read_claims(), itertools.cycle(forest.COLORS)
    lines["n"] = [0 if claim.key in ("gu-clinical-notes-no-help", "naseem-mimic-hurts") else 6
                  for claim in claims.CLAIMS]  # fmt: skip
    lines["verdict"] = [next(verdicts) for _ in lines.index]
    lines["unit"] = [claim.test.unit for claim in claims.CLAIMS]
    lines["n_pretrainings"], lines["n_sets"] = 1, 6
    return lines.assign(effect=3.0, ci_low=-1.0, ci_high=9.0, note="points; tested: above 0")


def draw(judged, printed):
    figure = forest.draw_forest(open_study("laptop"), judged.assign(paper_effect=printed, paper_effect_here=np.nan))
    figure.canvas.draw()
    pyplot.close(figure)
    return figure, [text for text in figure.axes[0].texts if text.get_text().strip()]


def test_the_forest_says_each_measured_claim_and_its_verdict(judged):
    judged.loc[judged["claim"] == "gu-half-compute", "note"] += ", gu in place of wada"
    figure, texts = draw(judged, 40.0)
    said = " ".join(" ".join(text.get_text() for text in texts).split())
    assert "matches mixed-domain pretraining with all of it *" in said and said.count(" * ") == 2  # and what it means
    assert "(points for ten times more steps)" in said and "+40.0" in said  # what lies beyond the axis is said
    missing, scores = judged[judged["n"] == 0], claims.list_about(judged)["scores"]
    assert f"Not measured here: 2 of {len(scores)} claims about scores, 0 of 8 claims about text" in said
    places = [said.index(heading) for heading in forest.OTHERWISE.values()]  # each kind apart, checks last
    assert places == sorted(places) and said.index("printed averages and F1") > places[2]
    assert not any(statement in said for statement in missing["statement"])
    assert not any(paper in said for paper in results.list_papers()) and "BERT-mini" in said
    for verdict in map(claims.describe_verdict, judged[judged["n"] > 0].to_dict("records")):
        assert verdict in said
    low, high = figure.axes[0].get_xlim()
    assert low < -1 and high > 3  # every effect of ours; a wider interval ends in an arrow
    recipes = sum(claim.test.unit == "recipe" for claim in claims.CLAIMS)
    assert f"fewer than three times: {recipes} of {recipes}" in said


def test_no_text_of_the_forest_overlaps_another_or_is_small(judged):
    figure, texts = draw(judged, 2.0)
    boxes = [text.get_window_extent() for text in texts]
    assert len(texts) > 90 and min(text.get_fontsize() for text in texts) >= 8
    for (one, box), (other, place) in itertools.combinations(zip(texts, boxes, strict=True), 2):
        assert not box.overlaps(place), (one.get_text(), other.get_text())
    assert all(box.x0 >= 0 and box.y0 >= 0 for box in boxes)
    axis = figure.axes[0].get_window_extent()
    assert not any(box.overlaps(axis) for box in boxes)


def test_nothing_measured_is_no_error(judged):
    _, texts = draw(judged.assign(n=0), np.nan)
    assert f"{len(claims.list_about(judged)['scores'])} claims about scores" in texts[-1].get_text()
