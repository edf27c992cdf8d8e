"""The papers' own effects from their printed cells, and the picture of the claims, from made-up runs."""

import itertools

import numpy as np
import pytest
from matplotlib import pyplot

from lib.study import params, results
from lib.study.analysis import cells, compare, curves, forest, scoreboard

THREE, TWO = ("bc5cdr-chem", "ncbi-disease", "bc2gm"), ("bc5cdr-chem", "bc5cdr-disease")


@pytest.fixture
def runs(monkeypatch):
    """The score of runs that exist: (model, dataset, protocol) -> that of both seeds."""
    known = {}

    def read(scale, *run):
        one = {"scores": dict.fromkeys(("f1", "accuracy", "pearson"), known.get(run)), "instances": {"train": 9}}
        return {"runs": [one | {"seed": seed} for seed in (1, 2)]} if run in known else None

    monkeypatch.setattr(results, "read", read)
    monkeypatch.setattr(cells, "find_obstacle", lambda *_: "")
    monkeypatch.setattr(compare, "RESAMPLES", 100)
    return known


def test_the_papers_effects_are_over_all_their_sets_and_over_ours(runs):
    ways = itertools.product(("pubmedbert", "pubmedbert-general-vocabulary"), ("", "-word-piece"), THREE)
    runs |= {(vocabulary + masking, dataset, "gu"): 60.0 for vocabulary, masking, dataset in ways}
    runs |= {(model, dataset, "gu"): 60.0 for model in ("pubmedbert-half", "bert-general-pubmed") for dataset in THREE}
    both = itertools.product(("bert-general", "bert-general-pubmed"), (*TWO, *THREE[1:]))
    runs |= {(model, dataset, "lee"): 60.0 for model, dataset in both}
    # The small corpus alone is worse than the simultaneous way, better than the continual one: part 2 decides.
    places = {"medbert-en": 62.0, "medbert-en-core-only": 61.0, "bert-uncased-pubmed-small": 60.0}
    runs |= {(model, dataset, "gu"): score for model, score in places.items() for dataset in TWO}
    found = forest.paper_effects("laptop").set_index("claim")
    assert found.loc["gu-vocab-matters"].tolist() == [0.70, -0.32]
    assert found.loc["gu-half-compute"].tolist() == [-0.36, -0.29]
    assert found.loc["wada-small-only-worst"].tolist() == [3.91, 1.90]
    assert found.loc["lee-beats-bert-ner"].tolist() == [1.11, 1.64]


def test_what_the_papers_print_is_found_without_runs_of_ours(runs):
    found = forest.paper_effects("laptop").set_index("claim")
    assert found["paper_effect_here"].isna().all()
    printed = results.read_published("gu-pubmedbert", "6").pivot(index="row", columns="column", values="value")
    printed = printed.drop("BLURB score")
    gap = (printed["PubMedBERT uncased"] - printed["BioBERT cased"]).mean()  # the former is not in table 9
    effects = found["paper_effect"]
    assert effects["gu-scratch-beats-continual"] == pytest.approx(gap, abs=0.005)
    # Bio-ELECTRA++ less BERT in tables 2, 3 and 6, which the claim names by runs; its second part is an MRR
    assert effects["ozyurt-small-comparable"] == round(np.mean([67.48 - 70.25, 69.84 - 51.71, -5.58, 80.96 - 79.91]), 2)
    assert effects[["naseem-beats-albert", "lee-bio-beats-bioes", "lee-steps"]].isna().all()
    points = curves.build("lee-figure-4", "laptop").query("column == 'BioBERT (+PubMed+PMC)'")
    slope = np.polyfit(np.log10(points["published_x"]), points["published"], 1)[0]
    assert effects["lee-small-sets-gain"] == pytest.approx(-slope, abs=0.005)  # the claim is that gains fall


def test_claims_in_points_are_told_by_their_tests():
    claims = results.read_claims()
    found = forest.in_points(claims).set_axis(claims["claim"])
    assert found[["gu-half-compute", "lee-steps", "lee-bio-beats-bioes", "lee-small-sets-gain"]].all()
    others = ["gu-vocab-whole", "naseem-faster", "naseem-ner-gain", "lee-averages", "naseem-mimic-hurts"]
    assert not found[[*others, "ozyurt-weighted-loss"]].any()  # whose score runs from 0 to 1


@pytest.fixture
def claims():
    """Every claim that has a test, as if it had been measured; the others have not been."""
    claims, verdicts = results.read_claims(), itertools.cycle(forest.COLORS)
    claims["n"] = claims["claim"].isin(params.claim_tests()).map({True: 6, False: 0})
    claims["verdict"] = [next(verdicts) for _ in claims.index]
    return claims.assign(effect=3.0, ci_low=-1.0, ci_high=9.0, note="points, asked to be above 0")


def draw(claims, printed):
    effects = claims[["claim"]].assign(paper_effect=printed, paper_effect_here=np.nan)
    figure = forest.draw(claims, effects, "laptop")
    figure.canvas.draw()
    pyplot.close(figure)
    return figure, [text for text in figure.axes[0].texts if text.get_text().strip()]


def test_the_forest_says_each_measured_claim_and_its_verdict(claims):
    claims.loc[claims["claim"] == "gu-half-compute", "note"] += ", gu in place of wada"
    figure, texts = draw(claims, 40.0)
    said = " ".join(" ".join(text.get_text() for text in texts).split())
    assert "matches mixed-domain pretraining with all of it *" in said and said.count(" * ") == 2  # and what it means
    assert "(points for ten times more steps)" in said and "+40.0" in said  # what lies beyond the axis is said
    missing = claims[claims["n"] == 0]
    assert f"{len(missing)} of {len(claims)} claims are not measured here" in said
    assert not any(statement in said for statement in missing["statement"])
    assert not any(paper in said for paper in results.PAPERS) and "BERT-mini" in said
    for verdict in map(scoreboard.describe_verdict, claims[claims["n"] > 0].to_dict("records")):
        assert verdict in said
    low, high = figure.axes[0].get_xlim()
    assert low < -1 and high > 9


def test_no_text_of_the_forest_overlaps_another_or_is_small(claims):
    figure, texts = draw(claims, 2.0)
    boxes = [text.get_window_extent() for text in texts]
    assert len(texts) > 90 and min(text.get_fontsize() for text in texts) >= 8
    for (one, box), (other, place) in itertools.combinations(zip(texts, boxes, strict=True), 2):
        assert not box.overlaps(place), (one.get_text(), other.get_text())
    assert all(box.x0 >= 0 and box.y0 >= 0 for box in boxes)
    axis = figure.axes[0].get_window_extent()
    assert not any(box.overlaps(axis) for box in boxes)


def test_nothing_measured_is_no_error():
    claims = results.read_claims().assign(n=0, verdict="n/a", note="")  # as of scoreboard.read before any run
    _, texts = draw(claims, np.nan)
    assert f"{len(claims)} of {len(claims)} claims are not measured here" in texts[-1].get_text()
