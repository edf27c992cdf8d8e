"""Scores minus the best baseline: by hand, and for the papers' printed scores."""

import numpy as np
import pandas as pd
import pytest
from notebook_code import definitions

from lib.running import page_jobs, plan
from lib.study import gains, open_study
from lib.study.study import Study

PAGE = definitions("05_what_pretraining_buys")
KNOWN = pd.DataFrame(
    [("ncbi-disease", "f1", 48.0, 80.0), ("chemprot-lim", "f1", 18.0, 54.0), ("biosses", "pearson", np.nan, 79.5)],
    columns=["dataset", "score", "chance", "without_pretraining"],
).assign(unlabelled_text=np.nan)
RUN = {"pretraining": 1, "fold": 1, "score": "f1"}
RUNS = [
    ("bert-general-pubmed", "lee", "ncbi-disease", 1, 61.0),
    ("bert-general-pubmed", "lee", "ncbi-disease", 2, 64.0),
    ("pubmedbert", "lee", "chemprot-lim", 1, 60.0),
    ("somebody", "lee", "ncbi-disease", 1, 99.0),
]


@pytest.fixture(scope="module")
def lines() -> pd.DataFrame:
    """The gains of handmade runs over handmade baselines, with those of all printed scores."""
    runs = pd.DataFrame(RUNS, columns=["model", "protocol", "dataset", "seed", "value"]).assign(**RUN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Study, "baselines", lambda _: KNOWN)
        patch.setattr(Study, "results", lambda _: pd.concat([runs, runs.assign(score="recall", value=1.0)]))
        return gains.tabulate_gains(open_study("laptop"))


def test_every_printed_score_has_a_line_and_so_has_each_of_ours_that_no_table_prints(lines):
    printed = lines[lines["published"].notna()]
    assert not printed.duplicated(["table", "row", "column"]).any()
    assert set(printed["table"]) > {"lee-4", "gu-6", "wada-7", "naseem-7", "ozyurt-4"}
    assert not printed["column"].str.startswith("difference").any() and not printed["row"].eq("Average").any()
    rest = lines[lines["published"].isna()]
    assert rest[["model", "dataset", "ours", "ours_above_without_pretraining"]].values.tolist() == [
        ["pubmedbert", "chemprot-lim", 60.0, 6.0]
    ]


def test_a_line_has_its_gains_and_the_mean_over_seeds(lines):
    chosen = (lines["table"] == "lee-4") & (lines["row"] == "NCBI disease") & (lines["column"] == "BioBERT (+PubMed)")
    (row,) = lines[chosen].to_dict("records")
    assert (row["published"], row["ours"], row["note"]) == (89.94, 62.5, "")
    assert [row[name] for name in gains.GAINS] == [41.94, 9.94, -17.5]


def test_caveats_are_noted(lines):
    notes = lines.groupby(["table", "dataset"])["note"].agg(set)
    assert notes["gu-6", "chemprot"] == {"without pretraining: of another version, chemprot-lim"}
    assert notes["gu-6", "ddi"] == {"not known what it scores without pretraining"}
    assert gains.QUOTED in notes["lee-4", "ncbi-disease"]
    assert all("(page 91)" in note for note in notes["naseem-7", "ncbi-disease"])
    assert any("naseem-6 prints 3277 in train, our files have" in note for note in notes["naseem-7", "gad-biobert"])


def test_quoted_scores_and_those_without_pretraining_are_not_counted(lines):
    known = gains.keep_known(lines)
    assert {dataset.split("-")[0] for dataset in known["dataset"]} == {"ncbi", "chemprot", "biosses"}
    assert not {"State-of-the-art", "SOTA"} & set(known["column"])
    assert gains.keep_known(lines.assign(model="tfidf-svm")).empty
    assert gains.keep_known(lines.assign(model="bert-random")).empty


def test_scores_that_beat_the_baseline_are_counted(lines, monkeypatch):
    printed = gains.keep_known(lines).dropna(subset="published")
    above = (printed["published"] > printed["without_pretraining"]).sum()
    first, ours = gains.describe(lines)
    assert first.startswith(f"{above} of {len(printed)} printed scores beat the best baseline")
    assert ours == "1 of our 2 scores beats it; the median difference is -5.8 points."
    by_dataset = PAGE.by_dataset(lines).set_index("dataset")
    assert by_dataset["printed"].sum() == len(printed) and by_dataset.loc["ncbi-disease", "largest of ours"] == -17.5
    axes = PAGE.draw_gains(lines).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == list(by_dataset.index)
    counts = PAGE.count_better(lines).sort_values("dataset")
    assert counts.to_numpy().tolist() == [["chemprot-lim", 1, 1], ["ncbi-disease", 1, 0]]
    ties = lines["ours_above_without_pretraining"].clip(upper=0)
    assert PAGE.count_better(lines.assign(ours_above_without_pretraining=ties))["sum"].tolist() == [0, 0]

    monkeypatch.setattr(Study, "baselines", lambda _: KNOWN[:0])
    without_baselines = gains.tabulate_gains(open_study("laptop"))
    assert gains.describe(without_baselines) == [] and PAGE.by_dataset(without_baselines).empty
    PAGE.draw_gains(without_baselines)


def test_the_page_of_gains_waits_for_every_planned_run():
    assert page_jobs.split_tables(["gains"])["page"] == [("05_what_pretraining_buys",)]
    whole = plan.Plan("laptop")
    panel_jobs = whole.runnable.finetune_jobs(whole.study.budget.panel_runs())
    assert {*panel_jobs} <= {*whole.reads("page", "01_results_in_brief")["finetune"]}
