"""Two versions of a dataset: shared instances, their labels and scores, checked by hand; some facts about real ones."""

import pytest
from golden import make_masked, tagged
from notebook_code import definitions

from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Labelled
from lib.study import open_study

PAGE = definitions("91_protocols", "NEGATIVE", "SHARED", "ELSEWHERE", "AGREE", "ANSWERS", "TRIVIAL")


def measure(family: str, metrics: tuple[str, str], first: dict, second: dict, **options) -> dict[str, dict]:
    """Compare two made-up versions, each given by split; return the rows by what they measure."""
    sets = [Dataset("m", "M", family, "", metric, list, {}) for metric in metrics]
    return {row["what"]: row for row in PAGE.measure(sets, [first, second], **options)}


def values(line: dict) -> tuple:
    return line["first_value"], line["second_value"], line["difference"], line["n"]


@pytest.mark.parametrize(
    ("text", "tags", "plain"),
    [
        ("IL-2 binds", "B-DNA O", "B I O"),
        ("( IL-2 )", "B I O", "B I"),  # punctuation passes its B on to the next I
        ("( x", "B O", "O"),
        ("a - b", "B O B", "B B"),
        (". ;", "O O", ""),
    ],
)
def test_plain_tags(text, tags, plain):
    assert PAGE.plain_tags(tagged(text, tags)) == tuple(plain.split())


def test_equal_labels_are_matched_first_and_repeats_as_often_as_in_both():
    first = [("x", "1"), ("x", "0"), ("x", "0"), ("y", "1"), ("z", "1")]
    second = [("x", "0"), ("x", "2"), ("y", "0"), ("w", "1")]
    assert sorted(PAGE.match(first, second)) == [("0", "0"), ("1", "0"), ("1", "2")]
    assert PAGE.match(first, []) == []


def test_matching_ids_ignores_the_order_of_the_mentions():
    first, second = make_masked("a", "1", "12.T3.T4"), make_masked("b", "1", "12.T4.T3")
    assert PAGE.by_ids(first) == PAGE.by_ids(second)
    assert PAGE.by_ids(first) != PAGE.by_ids(make_masked("a", "1", "12.T3.T5"))
    assert PAGE.by_text(first) != PAGE.by_text(second)
    assert PAGE.by_text(make_masked("A, b", "1")) == PAGE.by_text(make_masked("a b", "0"))


def test_share_of_positives():
    assert PAGE.share_positives([tagged("a b c d", "B I O O"), tagged("a b", "O O")]) == pytest.approx(100 / 3)
    assert PAGE.share_positives([make_masked("a", label) for label in ("CPR:3", "false", "0", "1")]) == 50
    assert PAGE.share_positives([Labelled("1", ("A.",), ("x",)), Labelled("2", ("B.",), ())]) == 50


def test_relations_with_other_labels():
    train = [make_masked("t", "false", "0.T1.T2"), make_masked("u", "CPR:3", "0.T1.T3")]
    test = [
        make_masked(text, label, f"1.T1.T{text}") for text, label in (("2", "CPR:3"), ("3", "false"), ("4", "CPR:4"))
    ]
    other = [make_masked(text, label, f"1.T{text}.T1") for text, label in (("2", "CPR:3"), ("3", "CPR:3"))]
    second = {"train": train + test[2:], "test": [*other, make_masked("9", "false", "9")]}
    both = {"train": train, "test": test}, second
    rows = measure("relations", ["relation-micro-f1"] * 2, *both, identify=PAGE.by_ids)
    assert values(rows["instances, train"]) == (2, 3, 1, 5)
    assert values(rows["positives, test"]) == (66.67, 66.67, 0, 6)
    assert values(rows[PAGE.SHARED]) == (66.67, 66.67, 0, 6)
    assert values(rows[PAGE.ELSEWHERE]) == (33.33, 0, -33.33, 6)
    assert values(rows[PAGE.AGREE]) == (100, 50, -50, 2)
    # the first's labels find one of the second's two positives, miss the other and predict nothing else
    assert values(rows[PAGE.ANSWERS]) == (100, 66.67, -33.33, 2)
    # always CPR:3: one of three is right and one of two positives is found; in the second, two of three and both
    assert values(rows[PAGE.TRIVIAL]) == (40, 80, 40, 6)
    assert rows[PAGE.ANSWERS]["note"] == "Relation micro F1, on the shared instances"


def test_tags_in_two_tokenisations():
    train = [tagged("IL-2 binds", "B O")]
    first = {"train": train, "test": [tagged("IL-2 acts .", "B O O"), tagged("a b", "B O")]}
    second = {"train": train, "test": [tagged("IL - 2 acts", "B I I O"), tagged("a b", "O B")]}
    rows = measure("tagging", ["entity-f1"] * 2, first, second)
    assert values(rows[PAGE.SHARED])[:2] == (100, 100)
    assert rows[PAGE.AGREE]["second_value"] == 50 and rows[PAGE.ANSWERS]["second_value"] == 50
    # IL-2 is known and found whole; in the second version no word is known
    assert values(rows[PAGE.TRIVIAL])[:2] == (66.67, 0)
    assert rows[PAGE.TRIVIAL]["note"] == "Entity-level F1"


def test_documents_without_labels_under_two_metrics():
    documents = [Labelled(str(i), (f"T{i}.",), labels) for i, labels in enumerate([("x",), (), ("x", "y"), ("y",)])]
    second = {"train": documents[2:], "test": [document for document in documents if document.labels]}
    both = {"train": documents, "test": documents}, second
    rows = measure("documents", ["multilabel-micro-f1", "example-f1"], *both)
    assert values(rows[PAGE.SHARED])[:2] == (75, 100)
    assert rows[PAGE.AGREE]["second_value"] == rows[PAGE.ANSWERS]["second_value"] == 100
    assert rows[PAGE.TRIVIAL]["note"] == "Multilabel micro F1 and Example-based F1"


def test_rows_are_left_out_without_shared_instances_or_a_training_set():
    rows, others = [make_masked("x", "1"), make_masked("y", "0")], [make_masked("z", "1"), make_masked("w", "0")]
    measured = measure("relations", ["binary-f1"] * 2, {"dev": rows}, {"train": rows, "dev": others}, split="dev")
    assert list(measured) == ["instances, dev", "positives, dev", PAGE.SHARED, PAGE.ELSEWHERE]
    assert values(measured[PAGE.SHARED])[:2] == (0, 0) and values(measured[PAGE.ELSEWHERE])[:2] == (100, 0)


def test_real_versions_of_gad_have_one_test_set_and_one_is_its_development_set(real_data):
    for key in ("gad-biobert", "gad-bioelectra"):
        datasets = [open_study("laptop").dataset(name) for name in ("gad", key)]
        if any(dataset.missing for dataset in datasets):
            pytest.skip("not every set is in the data folder")
        loaded = [{split: dataset.load(split) for split in dataset.splits} for dataset in datasets]
        measured = PAGE.measure_shared(datasets[1], loaded, PAGE.by_text, "test")
        rows = {row["what"]: row for row in measured}
        assert values(rows[PAGE.SHARED])[:2] == values(rows[PAGE.ANSWERS])[:2] == (100, 100)
    assert rows[PAGE.ELSEWHERE]["first_value"] == 100
