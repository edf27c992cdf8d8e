"""Scores minus the best baseline: by hand, and for the papers' printed scores."""

import numpy as np
import pandas as pd
import pytest
from notebook_code import definitions

from lib.study import gains, open_study, page_jobs, plan, results
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


def test_every_printed_score_of_one_dataset_has_a_line_and_so_has_what_no_table_prints(lines):
    printed = lines[lines["published"].notna()]
    assert not printed.duplicated(["table", "row", "column"]).any()
    assert set(printed["table"]) > {"lee-4", "gu-6", "wada-7", "naseem-7", "ozyurt-4"}
    assert not printed["column"].str.startswith("difference").any() and not printed["row"].eq("Average").any()
    rest = lines[lines["published"].isna()]
    assert rest[["model", "dataset", "ours", "ours_above_without_pretraining"]].values.tolist() == [
        ["pubmedbert", "chemprot-lim", 60.0, 6.0]
    ]


def test_a_line_has_its_distances_and_ours_is_the_mean_over_seeds(lines):
    chosen = (lines["table"] == "lee-4") & (lines["row"] == "NCBI disease") & (lines["column"] == "BioBERT (+PubMed)")
    (row,) = lines[chosen].to_dict("records")
    assert (row["published"], row["ours"], row["note"]) == (89.94, 62.5, "")
    assert [row[name] for name in gains.GAINS] == [41.94, 9.94, -17.5]


def test_what_stands_against_a_distance_is_noted(lines):
    notes = lines.groupby(["table", "dataset"])["note"].agg(set)
    assert notes["gu-6", "chemprot"] == {"without pretraining: of another version, chemprot-lim"}
    assert notes["gu-6", "ddi"] == {"not known what it scores without pretraining"}
    assert gains.QUOTED in notes["lee-4", "ncbi-disease"]
    assert all("(page 91)" in note for note in notes["naseem-7", "ncbi-disease"])
    assert any("naseem-6 prints 3277 in train, our files have" in note for note in notes["naseem-7", "gad-biobert"])


def test_quoted_scores_and_classifiers_without_an_encoder_are_not_counted(lines):
    known = gains.keep_known(lines)
    assert {dataset.split("-")[0] for dataset in known["dataset"]} == {"ncbi", "chemprot", "biosses"}
    assert not {"State-of-the-art", "SOTA"} & set(known["column"])
    row = {"model": "tfidf-svm", "column": np.nan, "published": np.nan, "without_pretraining": 80.0}
    row |= {"dataset": "a", "reference": "a"}
    assert gains.describe_caveats(row, {}) == gains.UNTRAINED


def test_the_sentences_count_what_beats_the_baseline(lines):
    known = gains.keep_known(lines)
    printed = known.dropna(subset="published")
    (first, ours), (papers,) = gains.describe(lines), PAGE.describe_papers(lines)
    above = (printed["published"] > printed["without_pretraining"]).sum()
    assert first.startswith(f"{above} of {len(printed)} printed scores beat the best baseline")
    assert all(name in papers for name in results.list_papers().values())
    assert ours == "1 of our 2 scores beat it; the median difference is -5.8 points."
    by_dataset = PAGE.by_dataset(lines).set_index("dataset")
    assert by_dataset["printed"].sum() == len(printed) and by_dataset.loc["ncbi-disease", "largest of ours"] == -17.5
    axes = PAGE.draw_gains(lines).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == list(by_dataset.index)
    assert {"ncbi-disease, ours, bert-general-pubmed: -17.50"} <= {*axes.lines[-3].names}


def test_ours_are_counted_by_dataset_where_the_baseline_is_known(lines):
    counts = PAGE.count_better(lines).sort_values("dataset")
    assert counts.to_numpy().tolist() == [["chemprot-lim", 1, 1], ["ncbi-disease", 1, 0]]
    ties = lines["ours_above_without_pretraining"].clip(upper=0)
    assert PAGE.count_better(lines.assign(ours_above_without_pretraining=ties))["sum"].tolist() == [0, 0]
    assert PAGE.count_better(lines.assign(model="tfidf-svm")).empty  # a baseline is none of ours


def test_where_nothing_is_known_there_is_nothing_to_say(lines, monkeypatch):
    monkeypatch.setattr(Study, "baselines", lambda _: KNOWN[:0])
    empty = gains.tabulate_gains(open_study("laptop"))
    assert gains.describe(empty) == [] and PAGE.by_dataset(empty).empty
    PAGE.draw_gains(empty)


def test_the_page_that_makes_the_table_waits_on_every_planned_run():
    assert page_jobs.split_tables(["gains"])["page"] == [("05_what_pretraining_buys",)]
    whole = plan.Plan("laptop")
    assert set(whole.jobs_of(whole.study.budget.panel_runs())) <= set(page_jobs.read_claimed(whole)["finetune"])
