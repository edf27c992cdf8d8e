"""Figures without printed values: their runs, their tables and the verdicts on them, from made-up results."""

import numpy as np
import pytest

from lib.study import params, results, stages
from lib.study.analysis import cells, compare, curves, figures

FIGURES = [key for key in params.keys("tables") if params.load("tables", key).kind == "curves"]
MODEL = "bert-general-pubmed"


@pytest.fixture
def scores(monkeypatch):
    """The scores of runs that exist: (model, dataset, protocol) -> those of seeds 1 and 2, and training instances."""
    known = {}

    def read(scale, *run):
        if run not in known:
            return None
        *values, size = known[run]
        names = ("f1", "mrr", "exact match", "accuracy")
        return {
            "runs": [
                {"seed": seed, "scores": dict.fromkeys(names, value), "instances": {"train": size, "test": 9}}
                for seed, value in enumerate(values, 1)
            ]
        }

    monkeypatch.setattr(results, "read", read)
    monkeypatch.setattr(cells, "find_obstacle", lambda *_: "")
    return known


def test_scores_along_the_share_of_the_text(scores):
    for key, score in (("-text-10", 61.0), ("-text-30", 62.0), ("", 64.0)):
        scores[f"{MODEL}{key}", "ncbi-disease", "lee"] = (score, score + 1, 100)
    lines = curves.build("lee-figure-2", "laptop")
    assert list(lines.columns) == [*results.COLUMNS, "x", "published_x"] and len(lines) == 10
    ran = lines[lines["ours"].notna()]
    assert ran["row"].unique() == ["NCBI disease"] and (ran["metric"] == "F1").all()
    assert ran[["column", "x", "ours", "ours_std", "n_seeds"]].values.tolist() == [
        ["10%", 0.1, 61.5, 0.71, 2], ["30%", 0.3, 62.5, 0.71, 2], ["100%", 1.0, 64.5, 0.71, 2],
    ]  # fmt: skip
    assert (ran["verdict"] == "n/a").all() and (ran["note"] == curves.NOT_PRINTED).all()
    assert (lines.loc[lines["ours"].isna(), "note"] == results.NOT_MADE).all() and lines["published"].isna().all()
    said = curves.describe(lines, "lee-figure-2", "laptop")
    assert "3 of 10 points have a number" in said and "NCBI disease: 64.50 at 100%, 61.50 at 10%" in said
    assert "from 30% to 100% +2.00" in said


def test_scores_along_steps_are_those_of_the_scale(scores):
    for percent, score in ((10, 20.0), (60, 30.0)):
        scores[f"bio-electra-steps-{percent}", "bioasq-8b-factoid", "ozyurt"] = (score, score, 100)
    lines = curves.build("ozyurt-figure-1", "paper")
    assert lines["x"].tolist() == [180_000, 360_000, 720_000, 1_080_000, 1_800_000]
    assert (lines["metric"] == "exact match").all()
    assert lines["ours"].fillna(-1).tolist() == [20.0, -1, -1, 30.0, -1]


def test_gains_are_paired_by_seed_and_stand_at_the_instances_trained_on(scores):
    scores["bert-general", "gad-biobert", "lee"] = (70.0, 74.0, 4000)
    scores["biobert-pubmed-pmc", "gad-biobert", "lee"] = (73.0, 75.0, 4000)
    lines = curves.build("lee-figure-4", "laptop").set_index(["row", "column"])
    assert len(lines) == 45 and lines.index.get_level_values("row").nunique() == 15
    gain = lines.loc[("GAD", "BioBERT (+PubMed+PMC)")]
    assert (gain["ours"], gain["ours_std"], gain["n_seeds"], gain["x"]) == (2.0, 1.41, 2, 4000)
    # lee-5: 81.57 - 79.33; lee-3: 5,339 instances
    assert (gain["published"], gain["published_x"], gain["verdict"]) == (2.24, 5339, "agrees")
    assert np.isnan(lines.loc[("GAD", "BioBERT (+PubMed)"), "ours"])
    assert lines.loc[("BioASQ 4b", "BioBERT (+PubMed)"), "metric"] == "MRR"
    assert lines["published"].notna().all() and lines["published_x"].notna().all()


def test_one_set_made_smaller_is_compared_under_the_same_protocol(scores):
    for protocol, size, gain in (("lee-100", 100, 8.0), ("lee-300", 300, 6.0), ("lee-1000", 1000, 4.0)):
        scores["bert-general", "ncbi-disease", protocol] = (50.0, 52.0, size)
        scores["biobert-pubmed-pmc", "ncbi-disease", protocol] = (50.0 + gain, 52.0 + gain, size)
    lines = curves.build("lee-figure-4-one-set", "paper")
    assert lines["ours"].fillna(0).tolist() == [8.0, 6.0, 4.0, 0] and lines["x"].tolist()[:3] == [100, 300, 1000]
    runs = curves.list_runs("lee-figure-4-one-set", "paper")
    assert {(model, protocol) for model, _, protocol in runs} == {
        (model, protocol)
        for model in ("bert-general", "biobert-pubmed-pmc")
        for protocol in ("lee-100", "lee-300", "lee-1000", "lee")
    }


def test_a_figure_without_an_axis_holds_every_set_of_its_table(scores):
    scores["albert-base", "ddi", "gu"] = (60.0, 62.0, 100)  # which stands for naseem at this scale
    scores["bioalbert-base1", "ddi", "gu"] = (64.0, 66.0, 100)
    lines = curves.build("naseem-figure-2", "laptop")
    assert lines["row"].nunique() == 20 and not lines["row"].str.startswith("BLURB").any()
    assert lines.loc[lines["row"] == "DDI", "ours"].tolist() == [61.0, 65.0]
    assert "BioALBERT against ALBERT: +4.00 points on average, ahead on 1 of 1 sets" in curves.describe(
        lines, "naseem-figure-2", "laptop"
    )


@pytest.mark.parametrize("key", FIGURES)
def test_every_figure_is_made_without_a_run_and_says_why(monkeypatch, key):
    monkeypatch.setattr(results, "read", lambda *_: None)
    lines = curves.build(key, "laptop")
    assert lines["ours"].isna().all() and (lines["note"] != "").all()
    assert cells.count_reasons(lines)["cells"].sum() == len(lines)
    assert not compare.spread(lines, "").empty
    assert f"0 of {len(lines)} points" in curves.describe(lines, key, "laptop")
    assert figures.draw_curves(lines, params.load("tables", key)).axes
    models = curves.describe_models(key, "paper")
    assert len(models) >= 2 and (models["steps"] > 0).all()


def test_a_figure_needs_its_runs_and_no_more():
    jobs = stages.plan("smoke", stages.targets("smoke", ["lee-figure-2"]))
    runs = {output for output in jobs if output.startswith("results/")}
    assert runs == {f"results/{model}--ncbi-disease--lee.json" for model in (MODEL, f"{MODEL}-text-10")}
    assert {job.keys["model"] for job in jobs.values() if job.stage.name == "pretrain"} == {
        MODEL, f"{MODEL}-text-10", "bert-general-half"}  # fmt: skip
    assert {job.keys["corpus"] for job in jobs.values() if job.stage.name == "corpus"} == {
        "pubmed", "pubmed-10", "wiki-books"}  # fmt: skip


def test_what_the_printed_cells_say_of_the_gains():
    """The slope of figure 4 by the printed cells: least squares of 15 gains on the logarithm of 15 sizes."""
    lines = curves.build("lee-figure-4", "paper")
    found = lines[lines["column"] == "BioBERT (+PubMed+PMC)"]
    slope = np.polyfit(np.log10(found["published_x"].astype(float)), found["published"].astype(float), 1)[0]
    said = curves.describe_cloud("BioBERT (+PubMed+PMC)", found)
    assert slope < 0 and f"{slope:+.2f} for a training set ten times as large" in said[0]
    assert "12 sets of F1 alone" in said[0] and len(said) == 1
