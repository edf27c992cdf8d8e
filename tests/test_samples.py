"""Tests of the comparison of two models on the same instances (page 71): McNemar's test, and which text is shown."""

import dataclasses

import pytest
from conftest import each
from made_runs import write_answers
from notebook_code import definitions

from lib.benchmarks import registry
from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Labelled, Sentence
from lib.errors import StudyError
from lib.study import contrasts, open_study, paths, published

CELLS = definitions("71_bioalbert_samples", "COUNTS", "COLUMNS", "PRINTED")
STUDY, ONE = open_study("smoke"), contrasts.Comparison("g", "b", "gu", ("ncbi-disease", "hoc"))
TAGS = [["O", "B-Disease", "I-Disease"], ["O", "O", "O"], ["B-Disease", "O", "O"], ["O", "B-Disease", "O"]]
PREDICTED = {
    "g": [["O", "B-Disease", "O"], ["O", "O", "O"], ["B-Disease", "O", "O"], ["O", "O", "O"]],
    "b": [["O", "I-Disease", "I-Disease"], ["O", "O", "O"], ["O", "O", "O"], ["B-Disease", "O", "O"]],
}  # an I that begins an entity counts as B


def write_run(model: str, dataset: str, gold: list, predicted: list, seeds="1", fingerprint: str = "f") -> None:
    write_answers((model, dataset, "gu"), dict.fromkeys(seeds, (gold, predicted)), fingerprint)


@each(("one", "other", "p"), [(0, 0, 1), (5, 0, 2 / 2**5), (1, 9, 2 * 11 / 2**10)])
def test_counts_and_mcnemar_p_by_hand(one, other, p):
    right = [(True, False)] * one + [(False, True)] * other + [(True, True)] * 3 + [(False, False)] * 2
    counts = CELLS.count_right(right)
    assert counts == {"instances": one + other + 5, "both": 3, "only general": one, "only biomedical": other,
                      "neither": 2, "p": pytest.approx(p)}  # fmt: skip


def test_an_instance_is_right_as_a_whole():
    assert CELLS.find_right("entity-f1", TAGS, PREDICTED["g"]) == [False, True, True, False]
    assert CELLS.find_right("entity-f1", TAGS, PREDICTED["b"]) == [True, True, False, False]
    parts, two = ["B-D", "O", "I-D"], ["B-D", "O", "B-D"]
    assert CELLS.find_right("strict-span-f1", [parts, two], [parts, parts]) == [True, False]
    assert CELLS.find_right("multilabel-micro-f1", [["a", "b"], []], [["b", "a"], ["a"]]) == [True, False]


def test_one_row_per_dataset_and_seed_with_corrected_p(own_outputs):
    gold = [["a"]] * 10
    write_run("g", "hoc", gold, [["b"]] * 10, seeds="12")
    write_run("b", "hoc", gold, gold, seeds="213")
    write_run("g", "ncbi-disease", TAGS, PREDICTED["g"])
    table = CELLS.compare_all(STUDY, ONE, ONE.datasets)
    assert table["dataset"].tolist() == ["ncbi-disease", "hoc", "hoc"]
    assert "not been made" in table.iloc[0]["note"]
    assert table["seed"].tolist()[1:] == [1, 2]
    assert table.iloc[1][["instances", *CELLS.COUNTS.values()]].tolist() == [10, 0, 0, 10, 0]
    assert table["p"].dropna().tolist() == pytest.approx([2 * 2 / 2**10] * 2)
    assert CELLS.compare_all(STUDY, None, []).empty


def test_predictions_that_do_not_fit_are_named(own_outputs):
    for model in "gb":
        write_run(model, "ncbi-disease", TAGS, PREDICTED[model])
    paths.predictions("smoke", "b", "ncbi-disease", "gu", "1").unlink()
    with pytest.raises(StudyError, match="the predictions are not on this machine"):
        CELLS.compare_all(STUDY, ONE, ONE.datasets)
    write_run("b", "ncbi-disease", TAGS, PREDICTED["b"], fingerprint="another")
    with pytest.raises(StudyError, match=r"b--ncbi-disease--gu--1.parquet: predictions of another run"):
        CELLS.compare_all(STUDY, ONE, ONE.datasets)
    write_run("b", "ncbi-disease", TAGS[::-1], PREDICTED["b"])
    with pytest.raises(StudyError, match="different gold labels"):
        CELLS.compare_all(STUDY, ONE, ONE.datasets)


def test_the_first_comparison_that_a_scale_can_make(monkeypatch):
    first, second = contrasts.COMPARISONS
    assert contrasts.choose_comparison(STUDY) == dataclasses.replace(second, datasets=("ncbi-disease",))
    runs = [(model, "ncbi-disease", "gu") for model in ("bert-general", "pubmedbert")]
    assert contrasts.list_contrast_runs(STUDY) == runs
    monkeypatch.setattr(published, "find_obstacle", lambda study, model, sets, *how: "" if sets == ["s800"] else "no")
    assert contrasts.choose_comparison(STUDY) == dataclasses.replace(first, datasets=("s800",))
    laptop = contrasts.choose_comparison(open_study("laptop"))
    assert laptop.protocol == "gu"  # in place of naseem, as the scale has it
    monkeypatch.setattr(published, "find_obstacle", lambda *run: "no")
    assert contrasts.choose_comparison(STUDY) is None and contrasts.list_contrast_runs(STUDY) == []


def test_instances_that_one_model_alone_gets_right_are_shown_unless_restricted(own_outputs, monkeypatch):
    for model in "gb":
        write_run(model, "ncbi-disease", TAGS, PREDICTED[model])
    sentences = [Sentence(["the", "qzword", f"fever{number}"], tags) for number, tags in enumerate(TAGS)]
    monkeypatch.setattr(Dataset, "load", lambda _, split, fold: sentences)
    monkeypatch.setattr(Dataset, "missing", {})
    first, second = CELLS.find_differences(STUDY, ONE, "ncbi-disease", True)
    assert first == {"dataset": "ncbi-disease", "gold": "the [qzword fever0]", "label": "", "g": "the [qzword] fever0",
                     "b": "the [qzword fever0]"}  # fmt: skip
    assert second["gold"] == "[the] qzword fever2"
    assert not list(CELLS.find_differences(STUDY, ONE, "ncbi-disease", False))
    restricted = dataclasses.replace(registry.lookup("ncbi-disease"), access="registration")
    monkeypatch.setitem(registry.DATASETS, "ncbi-disease", restricted)
    assert not list(CELLS.find_differences(STUDY, ONE, "ncbi-disease", True))
    assert not CELLS.compare_all(STUDY, ONE, ONE.datasets).empty  # counts hold no text


def test_printed_samples_come_from_public_sets():
    assert {registry.lookup(key).access for printed in CELLS.PRINTED for key in printed["datasets"]} == {"public"}


def test_a_printed_sample_is_looked_up(monkeypatch):
    by_split = {
        "train": [Sentence(["a", "high", "fever2", ",", "the", "end"], ["O", "O", "B", "O", "O", "O"])],
        "dev": [Sentence(["high", "fever"], ["O", "B"])],
        "test": [Labelled("1", ("None.", "A high fever2 - the end."), ("a",))],
    }
    monkeypatch.setattr(Dataset, "missing", {})
    monkeypatch.setattr(Dataset, "load", lambda _, split: by_split[split])
    arguments = open_study("laptop"), "bc2gm", "high Fever2, the", ["fever2", "the"]
    assert CELLS.find_sample(*arguments) == {"occurs in": "train, test", "of these in an entity":
                                             "fever2; n/a: labels are of whole documents"}  # fmt: skip
    by_split["train"], by_split["test"] = by_split["dev"], by_split["dev"]
    assert "not found" in CELLS.find_sample(*arguments)["note"]
