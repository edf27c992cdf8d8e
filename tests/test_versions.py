"""Two versions of a set: shared instances, labels and what they are worth, counted by hand; some facts of real ones."""

import pytest
from notebook_code import definitions

from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Labelled, Mention, Relation, Sentence
from lib.study import open_study

PAGE = definitions("91_protocols", "NEGATIVE", "SHARED", "ELSEWHERE", "AGREE", "ANSWERS", "TRIVIAL")
ENDS = Mention("", "GENE", 0, 6), Mention("", "DISEASE", 7, 16)


def tagged(text: str, tags: str) -> Sentence:
    return Sentence(text.split(), tags.split())


def relation(text: str, label: str, id: str = "1.T1.T2") -> Relation:
    return Relation(id, f"@GENE$ {text} @DISEASE$", *ENDS, label, masked=True)


def measure(family: str, metrics: tuple[str, str], first: dict, second: dict, **options) -> dict[str, dict]:
    """The lines of two made-up versions, given by split, by what they measure."""
    sets = [Dataset("m", "M", family, "", metric, list, {}) for metric in metrics]
    return {line["what"]: line for line in PAGE.measure(sets, [first, second], **options)}


def values(line: dict) -> tuple:
    return line["first_value"], line["second_value"], line["difference"], line["n"]


@pytest.mark.parametrize(
    ("text", "tags", "plain"),
    [
        ("IL-2 binds", "B-DNA O", "B I O"),
        ("IL - 2 binds", "B I I O", "B I O"),
        ("( IL-2 )", "B I O", "B I"),  # punctuation leaves its B to the next inside
        ("( x", "B O", "O"),
        ("a b c", "B B I", "B B I"),
        ("a - b", "B O B", "B B"),
        (". ;", "O O", ""),
    ],
)
def test_plain_tags(text, tags, plain):
    assert PAGE.plain_tags(tagged(text, tags)) == tuple(plain.split())


def test_equal_labels_are_paired_first_and_repeats_count_as_often_as_in_both():
    first = [("x", "1"), ("x", "0"), ("x", "0"), ("y", "1"), ("z", "1")]
    second = [("x", "0"), ("x", "2"), ("y", "0"), ("w", "1")]
    assert sorted(PAGE.match(first, second)) == [("0", "0"), ("1", "0"), ("1", "2")]
    assert PAGE.match(first, []) == []


def test_ids_are_the_same_whichever_mention_is_named_first():
    one, other = relation("a", "1", "12.T3.T4"), relation("b", "1", "12.T4.T3")
    assert PAGE.by_ids(one) == PAGE.by_ids(other)
    assert PAGE.by_ids(one) != PAGE.by_ids(relation("a", "1", "12.T3.T5"))
    assert PAGE.by_text(one) != PAGE.by_text(other)
    assert PAGE.by_text(relation("A, b", "1")) == PAGE.by_text(relation("a b", "0"))


def test_share_of_positives():
    assert PAGE.share_positives([tagged("a b c d", "B I O O"), tagged("a b", "O O")]) == pytest.approx(100 / 3)
    assert PAGE.share_positives([relation("a", label) for label in ("CPR:3", "false", "0", "1")]) == 50
    assert PAGE.share_positives([Labelled("1", ("A.",), ("x",)), Labelled("2", ("B.",), ())]) == 50


def test_relations_with_another_rule_for_labels():
    train = [relation("t", "false", "0.T1.T2"), relation("u", "CPR:3", "0.T1.T3")]
    test = [relation(text, label, f"1.T1.T{text}") for text, label in (("2", "CPR:3"), ("3", "false"), ("4", "CPR:4"))]
    other = [relation(text, label, f"1.T{text}.T1") for text, label in (("2", "CPR:3"), ("3", "CPR:3"))]
    second = {"train": train + test[2:], "test": [*other, relation("9", "false", "9")]}
    both = {"train": train, "test": test}, second
    found = measure("relations", ["relation-micro-f1"] * 2, *both, identify=PAGE.by_ids)
    assert values(found["instances, train"]) == (2, 3, 1, 5)
    assert values(found["positives, test"]) == (66.67, 66.67, 0, 6)
    assert values(found[PAGE.SHARED]) == (66.67, 66.67, 0, 6)
    assert values(found[PAGE.ELSEWHERE]) == (33.33, 0, -33.33, 6)
    assert values(found[PAGE.AGREE]) == (100, 50, -50, 2)
    # of the second's two positives the first's labels find one and miss one, and say nothing else
    assert values(found[PAGE.ANSWERS]) == (100, 66.67, -33.33, 2)
    # always CPR:3: one of three is right and one is found; in the other two of three, and both are found
    assert values(found[PAGE.TRIVIAL]) == (40, 80, 40, 6)
    assert found[PAGE.ANSWERS]["note"] == "Relation micro F1, on the shared instances"


def test_tags_of_two_tokenisations():
    train = [tagged("IL-2 binds", "B O")]
    first = {"train": train, "test": [tagged("IL-2 acts .", "B O O"), tagged("a b", "B O")]}
    second = {"train": train, "test": [tagged("IL - 2 acts", "B I I O"), tagged("a b", "O B")]}
    found = measure("tagging", ["entity-f1"] * 2, first, second)
    assert values(found[PAGE.SHARED])[:2] == (100, 100)
    assert found[PAGE.AGREE]["second_value"] == 50 and found[PAGE.ANSWERS]["second_value"] == 50
    # IL-2 is known and found whole; of the other version no word is known
    assert values(found[PAGE.TRIVIAL])[:2] == (66.67, 0)
    assert found[PAGE.TRIVIAL]["note"] == "Entity-level F1"


def test_documents_without_labels_under_two_metrics():
    documents = [Labelled(str(i), (f"T{i}.",), labels) for i, labels in enumerate([("x",), (), ("x", "y"), ("y",)])]
    second = {"train": documents[2:], "test": [document for document in documents if document.labels]}
    both = {"train": documents, "test": documents}, second
    found = measure("documents", ["multilabel-micro-f1", "example-f1"], *both)
    assert values(found[PAGE.SHARED])[:2] == (75, 100)
    assert found[PAGE.AGREE]["second_value"] == found[PAGE.ANSWERS]["second_value"] == 100
    assert found[PAGE.TRIVIAL]["note"] == "Multilabel micro F1 and Example-based F1"


def test_nothing_shared_and_no_training_set_leave_lines_out():
    rows, others = [relation("x", "1"), relation("y", "0")], [relation("z", "1"), relation("w", "0")]
    found = measure("relations", ["binary-f1"] * 2, {"dev": rows}, {"train": rows, "dev": others}, split="dev")
    assert list(found) == ["instances, dev", "positives, dev", PAGE.SHARED, PAGE.ELSEWHERE]
    assert values(found[PAGE.SHARED])[:2] == (0, 0) and values(found[PAGE.ELSEWHERE])[:2] == (100, 0)


def measure_real(first: str, second: str) -> dict[str, dict]:
    """The lines of two registered datasets on what they share."""
    both = [open_study("laptop").dataset(key) for key in (first, second)]
    if any(one.missing for one in both):
        pytest.skip("not every set is in the data folder")
    loaded = [{split: one.load(split) for split in one.splits} for one in both]
    return {line["what"]: line for line in PAGE.measure_shared(both[1], loaded, PAGE.by_text, "test")}


def test_real_labels_of_jnlpba_are_another_task(real_data):
    found = measure_real("jnlpba", "jnlpba-biobert")
    assert found[PAGE.SHARED]["n"] == 2 * 3856 and found[PAGE.SHARED]["first_value"] > 99
    assert found[PAGE.AGREE]["second_value"] < 60 and 80 < found[PAGE.ANSWERS]["second_value"] < 90


def test_real_gad_is_one_test_set_and_one_is_developed_on_it(real_data):
    for other in ("gad-biobert", "gad-bioelectra"):
        found = measure_real("gad", other)
        assert values(found[PAGE.SHARED])[:2] == values(found[PAGE.ANSWERS])[:2] == (100, 100)
    assert found[PAGE.ELSEWHERE]["first_value"] == 100
