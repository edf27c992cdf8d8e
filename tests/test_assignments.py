"""Tests of which runs fill which cell of a printed table or point of a figure."""

import numpy as np
import pandas as pd
import pytest
from conftest import change_settings

from lib.running import plan
from lib.study import open_study, params, published, results, tables
from lib.study.settings import Substitutes
from lib.study.study import Study

NAMES = ("f1", "mrr", "pearson", "accuracy", "precision", "recall", "exact match")
MODEL = "bert-general-pubmed"


def fill(key: str, scale: str = "laptop") -> pd.DataFrame:
    """Return a published table, one row per cell with our score, as its notebook fills it."""
    study = open_study(scale)
    return tables.summarize_cells(tables.by_seed(study.published(key), study.results()))


@pytest.fixture
def scores(monkeypatch):
    """Return a dictionary of existing runs: (model, dataset, protocol) -> scores of seeds 1 and 2, training size."""
    runs = {}

    def read(scale, *run):
        return {"runs": [{"instances": {"train": runs[run][2]}}]} if run in runs else None

    def list_scores(scale, own):
        constant = {"pretraining": 1, "fold": 1}
        rows = [
            dict(zip(tables.RUN, (*run, name), strict=True)) | constant | {"seed": seed, "value": value, "train": size}
            for run, (*values, size) in runs.items()
            for seed, value in enumerate(values, 1)
            for name in NAMES
        ]
        return pd.DataFrame(rows, columns=[*tables.RUN, "pretraining", "fold", "seed", "value", "train"])

    monkeypatch.setattr(results, "read_result", read)
    monkeypatch.setattr(results, "list_scores", list_scores)
    monkeypatch.setattr(published, "find_obstacle", lambda *_: "")
    return runs


def one(table, row, column):
    (cell,) = table[(table["row"] == row) & (table["column"] == column)].to_dict("records")
    return cell


def test_rows_and_columns_may_be_models_datasets_or_protocols(scores):
    scores["pubmedbert", "bc5cdr-chem", "gu-bilstm"] = (80.0, 82.0, 9)
    scores["pubmedbert", "ddi", "gu-markers"] = (60.0, 62.0, 9)
    scores["bluebert-pubmed", "biosses", "wada"] = (70.0, 74.0, 9)
    cell = one(fill("gu-12"), "BC5-chem", "Bi-LSTM")
    assert (cell["ours"], cell["ours_std"], cell["n_seeds"]) == (81.0, 1.41, 2)
    assert one(fill("gu-14"), "entity markers / [CLS]", "DDI")["ours"] == 61.0
    assert one(fill("wada-7", "paper"), "BlueBERT (W + BC/ P: BaseVocab)", "BIOSSES")["ours"] == 72.0
    assert one(fill("gu-12"), "BC5-chem", "Linear layer")["note"] == results.NOT_MADE


def test_obstacles_to_a_run(monkeypatch):
    monkeypatch.setattr(Study, "why_not", lambda _, key, protocol: "not at hand" if key == "mednli" else "")
    why = published.find_obstacle
    assert why(open_study("paper"), "pubmedbert", ["mednli"], "gu") == "not at hand"
    assert why(open_study("paper"), "pubmedbert", ["mednli", "biosses"], "gu") == "a mean of 2 sets; missing: mednli"
    assert "Semantic Scholar" in why(open_study("laptop"), "scibert-cased", ["biosses"], "gu")
    assert why(open_study("paper"), "scibert-cased", ["biosses"], "gu") == ""  # its public weights are used
    assert "released outside the hub" in why(open_study("released"), "biobert-pmc", ["biosses"], "gu")
    assert why(open_study("smoke"), "roberta", ["biosses"], "gu") == "outside the budget of scale 'smoke'"
    assert why(open_study("paper"), "", ["biosses"], "gu") == "no run is assigned to this cell"
    assert why(open_study("smoke"), "tfidf-svm", ["jmed-crade"], "wada") == ""


def test_panels_fill_cells_of_models_outside_the_comparison(monkeypatch):
    monkeypatch.setattr(Study, "why_not", lambda *_: "")
    panel = params.Panel(protocol="gu", models=["pubmedbert-half"], datasets=["gad", "ddi"])
    change_settings(monkeypatch, "scales", "laptop", compared=["bert-general"], panels=[panel])
    outside = "outside the budget of scale 'laptop'"
    why, laptop = published.find_obstacle, open_study("laptop")
    assert why(laptop, "bert-general", ["hoc"], "lee") == ""
    assert why(laptop, "pubmedbert-half", ["gad", "ddi"], "gu") == ""
    assert why(laptop, "pubmedbert-half", ["gad", "hoc"], "gu") == outside
    assert why(laptop, "pubmedbert-half", ["gad"], "gu-bilstm") == outside


def test_a_scale_may_substitute_models_and_protocols(scores, monkeypatch):
    substitutes = Substitutes(models={"biobert-1m": MODEL}, protocols={"wada": "gu"})
    change_settings(monkeypatch, "scales", "laptop", compared=None, substitutes=substitutes)
    scores[MODEL, "biosses", "gu"] = (70.0, 74.0, 9)
    cell = one(fill("wada-7"), "BioBERT (W + BC/ P: BaseVocab)", "BIOSSES")
    assert cell["ours"] == 72.0 and cell["note"] == f"{MODEL} in place of biobert-1m, gu in place of wada"
    assert (MODEL, "biosses", "gu") in published.list_table_runs(open_study("laptop"), "wada-7")
    # The models of a panel are run as they are.
    panel = params.Panel(protocol="wada", models=["medbert-en"], datasets=["biosses"])
    change_settings(monkeypatch, "scales", "laptop", compared=None, substitutes=substitutes, panels=[panel])
    assert ("medbert-en", "biosses", "wada") in published.list_table_runs(open_study("laptop"), "wada-7")


def test_without_runs_every_cell_says_why_it_is_empty(monkeypatch):
    monkeypatch.setattr(results, "read_result", lambda *_: None)
    no_scores = pd.DataFrame(columns=[*tables.RUN, "pretraining", "fold", "seed", "value", "train"])
    monkeypatch.setattr(results, "list_scores", lambda scale, own: no_scores)
    for key in params.load_tables("scores", "curves"):
        table = fill(key)
        assert table["ours"].isna().all() and (table["note"] != "").all(), key
        printed = table["published"].notna()
        assert tables.missing(table)["cells"].sum() == (printed.sum() or len(table)), key


def test_scores_by_share_of_the_text(scores):
    for key, score in (("-text-10", 61.0), ("", 64.0)):
        scores[f"{MODEL}{key}", "ncbi-disease", "lee"] = (score, score + 1, 100)
    points = fill("lee-figure-2")
    assert len(points) == 14 and points["published"].isna().all()
    scored = points[points["ours"].notna()]
    assert scored["row"].unique() == ["NCBI disease"] and (scored["metric"] == "F1").all()
    assert scored[["column", "x", "ours", "ours_std", "n_seeds"]].values.tolist() == [
        ["10%", 0.1, 61.5, 0.71, 2], ["100%", 1.0, 64.5, 0.71, 2],
    ]  # fmt: skip
    assert (scored["verdict"] == "n/a").all() and (scored["note"] == "the paper prints no value").all()
    substituted = fill("lee-figure-2", "choices").query("column == '100%'")  # an encoder has no known text
    assert (substituted["substituted"] == "encoder-14m in place of bert-general-pubmed, gu in place of lee").all()
    assert len(substituted) and substituted["x"].isna().all()


def test_scores_by_steps_have_the_steps_of_the_scale(scores):
    for percent, score in ((10, 20.0), (60, 30.0)):
        scores[f"bio-electra-steps-{percent}", "bioasq-8b-factoid", "ozyurt"] = (score, score, 100)
    points = fill("ozyurt-figure-1", "paper")
    assert points["x"].tolist() == [180_000, 360_000, 720_000, 880_000, 1_080_000, 1_800_000]
    assert (points["metric"] == "exact match").all()
    assert points["ours"].fillna(-1).tolist() == [20.0, -1, -1, -1, 30.0, -1]


def test_gains_are_paired_by_seed_and_placed_at_the_training_size(scores):
    scores["bert-general", "gad-biobert", "lee"] = (70.0, 74.0, 4000)
    scores["biobert-pubmed-pmc", "gad-biobert", "lee"] = (73.0, 75.0, 4000)
    points = fill("lee-figure-4").set_index(["row", "column"])
    assert len(points) == 45 and points.index.get_level_values("row").nunique() == 15
    gain = points.loc[("GAD", "BioBERT (+PubMed+PMC)")]
    assert (gain["ours"], gain["ours_std"], gain["n_seeds"], gain["x"]) == (2.0, 1.41, 2, 4000)
    # lee-5: 81.57 - 79.33; lee-3: 5,339 instances
    assert (gain["published"], gain["published_x"], gain["verdict"]) == (2.24, 5339, "undecided")
    assert np.isnan(points.loc[("GAD", "BioBERT (+PubMed)"), "ours"])
    assert points.loc[("BioASQ 4b", "BioBERT (+PubMed)"), "metric"] == "MRR"
    assert points["published"].notna().all() and points["published_x"].notna().all()


def test_gains_on_reduced_training_sets_are_within_a_protocol(scores):
    for protocol, size, gain in (("lee-100", 100, 8.0), ("lee-300", 300, 6.0)):
        scores["bert-general", "ncbi-disease", protocol] = (50.0, 52.0, size)
        scores["biobert-pubmed-pmc", "ncbi-disease", protocol] = (50.0 + gain, 52.0 + gain, size)
    points = fill("lee-figure-4-one-set", "paper")
    assert points["ours"].fillna(0).tolist() == [8.0, 6.0, 0, 0] and points["x"].tolist()[:2] == [100, 300]
    runs = published.list_table_runs(open_study("paper"), "lee-figure-4-one-set")
    assert len(runs) == 8  # two models under four protocols


def test_a_figure_without_an_axis_holds_every_set_of_its_table(scores):
    scores["albert-base", "ddi", "gu"] = (60.0, 62.0, 100)  # gu stands in for naseem at this scale
    scores["bioalbert-base1", "ddi", "gu"] = (64.0, 66.0, 100)
    points = fill("naseem-figure-2")
    assert points["row"].nunique() == 20 and not points["row"].str.startswith("BLURB").any()
    assert points.loc[points["row"] == "DDI", "ours"].tolist() == [61.0, 65.0]


def test_a_figure_needs_its_runs_and_no_more():
    jobs = plan.Plan("smoke", ["lee-figure-2"]).jobs
    assert jobs["finetune"] == [(MODEL, "lee", "tagging")]
    assert {*jobs["pretrain"]} == {(MODEL,), ("bert-general-half",)}
    assert {*jobs["corpus"]} == {("pubmed",), ("wiki-books",)}


def test_printed_means_are_recomputed_where_all_their_sets_are_printed():
    means = tables.recompute_means(open_study("laptop").published("gu-6"))
    assert len(means) == 9 and (means["published"] - means["recomputed"]).abs().max() < 0.01
