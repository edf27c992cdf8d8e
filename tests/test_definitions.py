"""The same predictions scored by several definitions, checked by hand; page 91 on runs and printed scores."""

import math
import random

import pandas as pd
import pytest
from made_runs import make_runs, write_answers, write_result
from notebook_code import definitions as read_cells

from lib.benchmarks import definitions, registry
from lib.benchmarks.definitions import ENTITIES, RECORDED, WORD_ACCURACY, WORDS, list_pairs, score_by
from lib.benchmarks.metrics import METRICS
from lib.running import plan
from lib.study import open_study, params, paths, published, results

PAGE = read_cells("91_protocols", "AGREE", "ANSWERS", "COMPARED")


def apply(name: str, dataset: str, gold: list, predicted: list) -> float:
    return score_by(name, registry.lookup(dataset), gold, predicted)


def test_definitions_by_hand():
    gold, predicted = [["B", "I", "O", "O"], ["B"]], [["B", "O", "O", "O"], ["B"]]
    assert apply(ENTITIES, "bc2gm", gold, predicted) == 50  # one of two
    assert apply(WORDS, "bc2gm", gold, predicted) == 80  # two right, two predicted, three gold
    assert apply(WORD_ACCURACY, "bc2gm", gold, predicted) == 80  # four of five words

    gold, predicted = ["CPR:3", "false", "false", "CPR:4"], ["CPR:3", "false", "CPR:3", "false"]
    assert apply("micro F1 of positive types", "chemprot", gold, predicted) == 50
    assert apply("accuracy", "chemprot", gold, predicted) == 50
    assert apply("F1 of the positive class", "gad", ["1", "1", "0"], ["1", "0", "0"]) == pytest.approx(200 / 3)
    assert apply("F1 of no", "bioasq-7b-yesno", ["yes", "yes", "no"], ["yes", "no", "no"]) == pytest.approx(200 / 3)

    gold, predicted = [[], ["a"], ["a", "b"]], [["a"], ["a"], ["b"]]
    assert apply("micro F1 of labels", "hoc", gold, predicted) == pytest.approx(200 / 3)  # 2 right, 3 predicted, 3 gold
    assert apply("micro F1 of labels, labelled documents", "hoc", gold, predicted) == 80  # 2 right, 2 predicted, 3 gold
    # means over documents: precision 0, 1, 1 and recall 0, 1, 1/2
    assert apply("example-based F1", "hoc", gold, predicted) == pytest.approx(100 * 2 * (2 / 3) * 0.5 / (2 / 3 + 0.5))
    assert apply("example-based F1, labelled documents", "hoc", gold, predicted) == pytest.approx(150 / 1.75)


def test_the_first_definition_is_the_datasets_own_score():
    rng = random.Random(0)
    answers = {
        "entity-f1": lambda: rng.choices(["B", "I", "O"], k=5),
        "relation-micro-f1": lambda: rng.choice(["false", "DDI-false", "CPR:3", "CPR:4"]),
        "binary-f1": lambda: rng.choice(["0", "1"]),
        "accuracy": lambda: rng.choice(["yes", "no"]),
        "answer-class-f1": lambda: rng.choice(["yes", "no"]),
    }
    assert RECORDED["mean reciprocal rank"] == METRICS["bioasq-factoid"].main
    for dataset in registry.DATASETS.values():
        for first, second, papers in list_pairs(dataset):
            named = {name.partition(", ")[0] for name in (first, second)}
            assert named <= {*definitions.METRIC_OF, *RECORDED} and papers
            if first in RECORDED:
                continue
            make = answers.get(dataset.metric, lambda: rng.sample(["a", "b", "c"], 2))
            gold, predicted = ([make() for _ in range(40)] for _ in range(2))
            main_score = dataset.score_labels(gold, predicted)[dataset.main_score]
            assert score_by(first, dataset, gold, predicted) == pytest.approx(main_score)


def test_sets_with_one_definition_have_no_pairs():
    assert list_pairs(registry.lookup("chemprot-scibert")) == list_pairs(registry.lookup("pubmedqa")) == []


# Page 91


def test_differences_are_over_the_seeds_that_have_both_values():
    row = PAGE.subtract({1: 50.0, 2: 60.0, 3: 90.0, 4: math.nan}, {2: 61.0, 1: 53.0, 4: 1.0})
    assert (row["n"], row["first_value"], row["second_value"], row["difference"]) == (2, 55.0, 57.0, 2.0)
    assert (row["first_std"], row["second_std"], row["difference_std"]) == (7.07, 5.66, 1.41)
    assert (row["first_by_seed"], row["second_by_seed"]) == ("50.00 60.00", "53.00 61.00")
    row = PAGE.subtract({0: 80.0}, {0: 80.0})
    assert row["difference"] == 0 and math.isnan(row["difference_std"])
    assert PAGE.subtract({1: 1.0}, {2: 1.0}) == {"unit": "points", "n": 0, "note": "no seed has both values"}


@pytest.fixture
def study(own_outputs):
    return open_study("smoke")


def test_scores_are_by_seed_and_averaged_over_folds(study):
    run, right, wrong = ("m", "gad-biobert", "lee"), ["1", "0"], ["0", "0"]
    write_answers(run, dict.fromkeys(("1.1", "2.1", "2.2"), (right, right)) | {"1.2": (right, wrong)})
    (row,) = PAGE.compare_run(study, run)
    assert (row["first_by_seed"], row["second_by_seed"]) == ("50.00 100.00", "75.00 100.00")
    assert (row["first_value"], row["second_value"], row["difference"], row["n"]) == (75, 87.5, 12.5, 2)
    assert (row["set"], row["dataset"], row["protocol"], row["model"]) == ("GAD", "gad-biobert", "lee", "m")
    assert row["differs"].startswith("metric: lee-5 and ozyurt-6")


def test_a_note_says_why_a_run_cannot_be_scored(study):
    run = "m", "ncbi-disease", "lee"

    def explain():
        rows = list(PAGE.compare_run(study, run))
        assert [row["n"] for row in rows] == [0, 0]
        return rows[0]["note"]

    assert explain() == "the run failed or has not been made"
    write_answers(run, {"1": ([["B"]], [["B"]])}, fingerprint="another")
    assert explain().endswith("m--ncbi-disease--lee--1.parquet: predictions of another run than the scores")
    paths.predictions("smoke", *run, "1").unlink()
    assert explain() == "the predictions are not on this machine; only scores are committed"


def test_scores_of_questions_are_taken_from_the_record(study, monkeypatch):
    run = "m", "bioasq-4b-factoid", "lee"
    runs = make_runs([20.0, 30.0], "mrr", fingerprint="f")
    for made, value in zip(runs, (30.0, 44.0), strict=True):
        made["scores"]["lenient accuracy"] = value
    write_result(run, runs, score="mrr")
    (row,) = PAGE.compare_run(study, run)
    assert (row["first_value"], row["second_value"], row["difference"]) == (25, 37, 12)
    pairs = [(*RECORDED, ""), ("mean reciprocal rank", "accuracy", "")]  # the second needs predictions, which are gone
    monkeypatch.setitem(PAGE.compare_run.__globals__, "list_pairs", lambda dataset: pairs)
    assert [row["n"] for row in PAGE.compare_run(study, run)] == [2, 0]


def test_runs_of_one_model_and_set_are_paired_in_the_order_of_the_protocols():
    runs = [("m", "hoc-blue", "wada"), ("m", "hoc", "gu"), ("n", "hoc", "gu"), ("m", "bc2gm", "gu"),
            ("m", "bc2gm", "lee")]  # fmt: skip
    assert published.pair_runs(runs) == [
        (("m", "bc2gm", "lee"), ("m", "bc2gm", "gu")),
        (("m", "hoc", "gu"), ("m", "hoc-blue", "wada")),
    ]


def test_a_row_says_what_differs_between_two_runs(monkeypatch):
    study, by_run = open_study("paper"), {}
    monkeypatch.setattr(results, "read_result", lambda scale, *run: by_run.get(run))
    runs = ("m", "hoc", "gu"), ("m", "hoc-blue", "wada")
    assert PAGE.compare_runs(study, *runs)["note"] == "the run failed or has not been made"
    for run, scores in zip(runs, ((80.0, 82.0), (85.0, 85.0)), strict=True):
        by_run[run] = {"main score": "f1", "runs": make_runs(scores)}
    row = PAGE.compare_runs(study, *runs)
    assert (row["set"], row["first"], row["second"]) == ("HoC", "hoc, gu", "hoc-blue, wada")
    assert (row["first_value"], row["second_value"], row["difference"], row["difference_std"]) == (81, 85, 4, 1.41)
    assert row["differs"].startswith(
        "data (Hallmarks of Cancer, BLURB's division | Hallmarks of Cancer, documents with a hallmark); "
        "metric (Multilabel micro F1 | Example-based F1); fine-tuning (epochs, batch size, "
    )
    assert PAGE.tell_apart(study, ("bc2gm", "gu"), ("bc2gm", "gu")) == ""
    assert PAGE.tell_apart(study, ("bc2gm", "lee"), ("bc2gm", "lee-bioes")) == "fine-tuning (scheme)"


def test_printed_scores_are_placed_beside_those_by_each_definition(monkeypatch):
    always, by_word = "always", "by word"
    monkeypatch.setitem(PAGE.place_printed.__globals__, "NO_MODEL", (always, by_word))
    rows = [("ncbi-disease", always, WORD_ACCURACY, 0, 91.0), ("ncbi-disease", by_word, WORD_ACCURACY, 50, 95.0),
            ("ncbi-disease", "m", WORDS, 80, 84.0), ("ncbi-disease", "m", WORD_ACCURACY, 80, 96.0),
            ("ncbi-disease", "n", WORD_ACCURACY, 84, 98.0), ("jnlpba", by_word, WORD_ACCURACY, 40, 87.0)]  # fmt: skip
    scores = pd.DataFrame(rows, columns=["dataset", "model", "second", "first_value", "second_value"])
    printed = pd.DataFrame({"row": "NCBI", "dataset": "ncbi-disease", "column": ["SOTA", "Base1"],
                            "value": [89.71, 95.89]})  # fmt: skip
    placed = PAGE.place_printed(scores.assign(kind="metric", first=ENTITIES), printed)
    assert placed.index.tolist() == [("NCBI", "ncbi-disease")]  # the other set is not printed
    row = placed.iloc[0]
    assert (row["SOTA"], row["Base1"], row[f"ours: {ENTITIES}"], row[f"ours: {WORDS}"]) == (89.71, 95.89, 82, 84)
    assert (row[f"ours: {WORD_ACCURACY}"], row[f"{by_word}: {WORD_ACCURACY}"]) == (97, 95)


def test_findings_summarize_every_comparison_that_has_rows(monkeypatch):
    monkeypatch.setitem(PAGE.describe_pairs.__globals__, "NO_MODEL", ("by word",))
    row = {"set": "NCBI disease", "model": "pubmedbert", "what": "score", "first": "a", "second": "b"}
    rows = [row | {"kind": kind, "difference": value} for kind in PAGE.COMPARED for value in (1.0, -4.0)]
    rows += [row | {"kind": "metric", "model": "by word", "difference": 90.0}]
    for value in (100.0, 55.49):
        labels = row | {"kind": "data", "model": None, "second_value": value, "difference": value - 100}
        rows += [labels | {"what": what} for what in (PAGE.AGREE, PAGE.ANSWERS)]
    made = pd.DataFrame(rows)
    (metric, *_), (data,) = PAGE.describe_pairs(made), PAGE.describe_versions(made)
    assert "median distance 2.50 points over 2 pairs; largest -4.00, on NCBI disease (b minus a)" in metric
    assert "1 of 2 pairs label shared" in data and "lose at most 44.51 points" in data
    assert len(PAGE.describe_pairs(made[:2])) == 1 and PAGE.describe_versions(made[:2]) == []


def test_the_page_needs_no_run_of_its_own():
    """All that it reads is made for tables and panels anyway."""
    planned = plan.Plan("smoke", [*params.keys("tables"), "33"])
    needed = planned.reads("page", "91_protocols")["finetune"]
    assert {*needed} <= {*planned.jobs["finetune"]}
    assert ("bioalbert-base1", "naseem", "tagging") in needed
