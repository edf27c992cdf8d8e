"""Tests of published tables as frames: cells by seed, means over datasets, differences of columns."""

import numpy as np
import pandas as pd
import pytest

from lib.errors import StudyError
from lib.study import open_study, params, published, results, tables

CELLS = pd.DataFrame(
    [("NCBI", "BERT", "F1", 80.0, "bert", "ncbi-disease", "p", "f1", 0, ""),
     ("NCBI", "BioBERT", "F1", 82.0, "bio", "ncbi-disease", "p", "f1", 0, ""),
     ("mean", "BioBERT", "F1", 70.0, "bio", "ncbi-disease", "p", "f1", 0, ""),
     ("mean", "BioBERT", "F1", 70.0, "bio", "bc2gm", "p", "f1", 0, ""),
     ("mean", "BioBERT", "F1", 70.0, "bio", "biosses", "p", "r", 1, ""),
     ("NCBI", "XLNet", "F1", 75.0, "bert", "ncbi-disease", "p", "f1", 0, "no such model here")],
    columns=["row", "column", "metric", "published", "model", "dataset", "protocol", "score", "group", "why_not"],
).assign(substituted=["", "bio in place of bio-1m", "", "", "", ""], differs="")  # fmt: skip


def run(model, dataset, score, values, pretraining=1, fold=1):
    common = {"model": model, "pretraining": pretraining, "dataset": dataset, "fold": fold}
    return [common | {"protocol": "p", "score": score, "seed": seed, "value": value} for seed, value in values.items()]


RUNS = pd.DataFrame(
    run("bert", "ncbi-disease", "f1", {1: 78.0, 2: 80.0})
    + run("bio", "ncbi-disease", "f1", {1: 81.0, 2: 83.0, 3: 90.0})
    + run("bio", "ncbi-disease", "f1", {1: 83.0}, fold=2)
    + run("bio", "bc2gm", "f1", {1: 60.0, 2: 61.0}) + run("bio", "biosses", "r", {1: 40.0, 3: 50.0})
    + run("bio", "biosses", "accuracy", {2: 99.0})
)  # fmt: skip


def test_a_cell_is_a_mean_over_folds_datasets_and_groups():
    seeds = tables.by_seed(CELLS, RUNS).set_index(["row", "column"])
    assert seeds.loc[("NCBI", "BioBERT"), "ours"].tolist() == [82.0, 83.0, 90.0]
    assert seeds.loc[[("mean", "BioBERT")], ["seed", "ours"]].to_numpy().tolist() == [[1.0, (71 + 40) / 2]]
    assert np.isnan(seeds.loc[("NCBI", "XLNet"), "ours"]).all()  # not BERT's score, although it was run


def test_cells_are_summarized_without_verdicts_on_made_up_data():
    seeds = tables.by_seed(CELLS, RUNS)
    table = tables.summarize_cells(seeds)
    assert table["column"].tolist() == ["BERT", "BioBERT", "BioBERT", "XLNet"]
    assert table["ours"].tolist()[:3] == [79.0, 85.0, 55.5] and table["n_seeds"].tolist() == [2, 3, 1, 0]
    assert table["ours_std"].tolist()[0] == 1.41
    assert table["verdict"].tolist() == ["undecided", "undecided", "n/a", "n/a"]
    assert table["note"].tolist() == ["", "bio in place of bio-1m", "", "no such model here"]
    assert tables.missing(table).to_numpy().tolist() == [["no such model here", 1]]
    made_up = tables.summarize_cells(seeds, made_up=True)
    assert set(made_up["verdict"]) == {"n/a"} and made_up["note"].tolist()[0] == "made-up data: not a finding"


def test_baselines_of_a_cell_are_means_over_all_its_datasets():
    scores = pd.DataFrame(
        [("ncbi-disease", "f1", 20.0, 60.0, 61.0), ("bc2gm", "f1", 30.0, 70.0, np.nan),
         ("biosses", "r", np.nan, 25.0, np.nan)],
        columns=["dataset", "score", "chance", "without_pretraining", "unlabelled_text"],
    )  # fmt: skip
    frame = tables.baselines(CELLS, scores).set_index(["row", "column"])
    assert frame.loc[("NCBI", "BERT"), tables.BASELINES].tolist() == [20.0, 60.0, 61.0]
    assert frame.loc[("mean", "BioBERT"), "without_pretraining"] == (65 + 25) / 2
    assert np.isnan(frame.loc[("mean", "BioBERT"), "chance"])
    assert len(frame) == 4


def test_differences_are_over_common_seeds():
    seeds = tables.by_seed(CELLS, RUNS)
    frame = tables.differences(seeds, "BioBERT", "BERT")
    assert frame[["place", "seed", "published", "ours"]].to_numpy().tolist() == [
        ["NCBI", 1, 2.0, 4.0], ["NCBI", 2, 2.0, 3.0],
    ]  # fmt: skip
    (row,) = tables.differences(seeds, "XLNet", "BERT").to_dict("records")
    assert row["published"] == -5.0 and np.isnan(row["ours"])
    by_row = tables.differences(seeds, "mean", "NCBI", across="row")
    assert by_row[["place", "published", "ours"]].to_numpy().tolist() == [["BioBERT", -12.0, 55.5 - 82.0]]


def test_effects_are_on_single_datasets_or_on_means_but_never_on_both():
    rows = [(place, column, score, place == "mean") for place, low in (("NCBI", 60.0), ("mean", 70.0))
            for column, score in (("BERT", low), ("BioBERT", low + 2))]  # fmt: skip
    seeds = pd.DataFrame(rows, columns=["row", "column", "published", "is_mean"])
    seeds = seeds.assign(metric="F1", ours=seeds["published"], seed=1, pretraining=1)
    for means, places in ((False, ["NCBI"]), (True, ["mean"])):
        effect = tables.tabulate_effects(seeds, {"step": ("BioBERT", "BERT")}, only_means=means)
        assert effect.reset_index()["place"].tolist() == places and effect["paper"].tolist() == [2.0]


def test_each_caller_has_its_own_frame_of_printed_cells():
    first = results.read_published("lee-biobert", "4")
    kept = first.copy()
    first["value"] = 0.0
    pd.testing.assert_frame_equal(results.read_published("lee-biobert", "4"), kept)


def test_scores_printed_from_0_to_1_are_shown_in_percent():
    cells = published.read_printed_cells(params.load("tables", "ozyurt-5"))
    (bert,) = (cell for cell in cells if cell["column"] == "BERT Base")
    assert (bert["value"], bert["std"]) == (24.6, 0.7)


def test_a_study_has_the_run_behind_each_printed_cell():
    study = open_study("laptop")
    cells = study.published("lee-4").set_index(["row", "column", "metric"])
    cell = cells.loc[("NCBI disease", "BioBERT (+PubMed)", "F1"), ["model", "dataset", "protocol", "score"]]
    assert cell.tolist() == ["bert-general-pubmed", "ncbi-disease", "lee", "f1"]
    baselines = study.baselines().set_index("dataset")
    assert baselines.loc["ncbi-disease", "chance"] < baselines.loc["ncbi-disease", "without_pretraining"] < 100
    with pytest.raises(StudyError, match="lee-1 is a table of corpora"):
        study.published("lee-1")
