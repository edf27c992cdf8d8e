"""Two versions of a set: shared instances, labels and what they are worth, counted by hand; some facts of real ones."""

import pytest

from lib.benchmarks import datasets, registry
from lib.benchmarks.instances import Labelled, Mention, Relation, Sentence
from lib.study import open_study
from lib.study.analysis import facts, findings, versions

ENDS = Mention("", "GENE", 0, 6), Mention("", "DISEASE", 7, 16)


@pytest.fixture
def register(monkeypatch, tmp_path):
    """Make the registry consist of made-up sets, all versions of one: key -> family, metric and instances by split."""
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    rows: dict[str, datasets.Dataset] = {}

    def add(key: str, family: str, metric: str, folds: int = 1, **splits) -> None:
        for split in splits:
            (tmp_path / f"{key}-{split}").touch()
        files = {split: (f"{key}-{split}",) for split in splits}
        given = {f"{key}-{split}": found for split, found in splits.items()}
        rows[key] = datasets.Dataset(
            key, key.upper(), family, "", metric, lambda path: given[path.name], files, folds=folds
        )
        monkeypatch.setattr(registry, "DATASETS", dict(rows))
        known = facts.comparisons().model_copy(update={"sets": {"one": list(rows)}})
        monkeypatch.setattr(facts, "comparisons", lambda: known)
        findings.load.cache_clear()

    yield add
    findings.load.cache_clear()


def tagged(text: str, tags: str) -> Sentence:
    return Sentence(text.split(), tags.split())


def relation(text: str, label: str, id: str = "1.T1.T2") -> Relation:
    return Relation(id, f"@GENE$ {text} @DISEASE$", *ENDS, label, masked=True)


def compare(first: str = "a", second: str = "b", **settings) -> dict[str, dict]:
    lines = versions.compare_pair(facts.VersionPair(first=first, second=second, **settings), "laptop")
    return {line["what"]: line for line in lines}


def values(line: dict) -> tuple:
    return line["first_value"], line["second_value"], line["difference"], line["n"]


# Tags that do not depend on how a text is cut into words


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
    assert versions.plain_tags(tagged(text, tags)) == tuple(plain.split())


# Instances in pairs


def test_equal_labels_are_paired_first_and_repeats_count_as_often_as_in_both():
    first = [("x", "1"), ("x", "0"), ("x", "0"), ("y", "1"), ("z", "1")]
    second = [("x", "0"), ("x", "2"), ("y", "0"), ("w", "1")]
    assert sorted(versions.match(first, second)) == [("0", "0"), ("1", "0"), ("1", "2")]
    assert versions.match(first, []) == []


def test_ids_are_the_same_whichever_mention_is_named_first():
    one, other = relation("a", "1", "12.T3.T4"), relation("b", "1", "12.T4.T3")
    assert versions.identify(one, "ids") == versions.identify(other, "ids")
    assert versions.identify(one, "ids") != versions.identify(relation("a", "1", "12.T3.T5"), "ids")
    assert versions.identify(one, "text") != versions.identify(other, "text")
    assert versions.identify(relation("A, b", "1"), "text") == versions.identify(relation("a b", "0"), "text")


def test_share_of_positives():
    assert versions.share_positives([tagged("a b c d", "B I O O"), tagged("a b", "O O")]) == pytest.approx(100 / 3)
    assert versions.share_positives([relation("a", label) for label in ("CPR:3", "false", "0", "1")]) == 50
    assert versions.share_positives([Labelled("1", ("A.",), ("x",)), Labelled("2", ("B.",), ())]) == 50


# Pairs of versions


def test_relations_with_another_rule_for_labels(register):
    train = [relation("t", "false", "0.T1.T2"), relation("u", "CPR:3", "0.T1.T3")]
    test = [relation(text, label, f"1.T1.T{text}") for text, label in (("2", "CPR:3"), ("3", "false"), ("4", "CPR:4"))]
    other = [relation(text, label, f"1.T{text}.T1") for text, label in (("2", "CPR:3"), ("3", "CPR:3"))]
    register("a", "relations", "relation-micro-f1", train=train, test=test)
    register("b", "relations", "relation-micro-f1", train=train + test[2:], test=[*other, relation("9", "false", "9")])
    found = compare(by="ids")
    assert values(found["instances, train"]) == (2, 3, 1, 5)
    assert values(found["positives, test"]) == (66.67, 66.67, 0, 6)
    assert values(found[versions.SHARED]) == (66.67, 66.67, 0, 6)
    assert values(found[versions.ELSEWHERE]) == (33.33, 0, -33.33, 6)
    assert values(found[versions.AGREE]) == (100, 50, -50, 2)
    # of the second's two positives the first's labels find one and miss one, and say nothing else
    assert values(found[versions.ANSWERS]) == (100, 66.67, -33.33, 2)
    # always CPR:3: one of three is right and one is found; in the other two of three, and both are found
    assert values(found[versions.TRIVIAL]) == (40, 80, 40, 6)
    line = found[versions.ANSWERS]
    assert (line["set"], line["kind"], line["unit"], line["differs"]) == ("one", "data", "points", "A | B")
    assert line["note"] == "Relation micro F1, on the shared instances"


def test_tags_of_two_tokenisations(register):
    train = [tagged("IL-2 binds", "B O")]
    register("a", "tagging", "entity-f1", train=train, test=[tagged("IL-2 acts .", "B O O"), tagged("a b", "B O")])
    register("b", "tagging", "entity-f1", train=train, test=[tagged("IL - 2 acts", "B I I O"), tagged("a b", "O B")])
    found = compare(note="a remark")
    assert values(found[versions.SHARED])[:2] == (100, 100)
    assert found[versions.AGREE]["second_value"] == 50 and found[versions.ANSWERS]["second_value"] == 50
    # IL-2 is known and found whole; of the other version no word is known
    assert values(found[versions.TRIVIAL])[:2] == (66.67, 0)
    assert found[versions.TRIVIAL]["note"] == "Entity-level F1; a remark"


def test_documents_without_labels_and_the_first_of_several_folds(register):
    documents = [Labelled(str(i), (f"T{i}.",), labels) for i, labels in enumerate([("x",), (), ("x", "y"), ("y",)])]
    register("a", "documents", "multilabel-micro-f1", folds=2, train=documents, test=documents)
    register("b", "documents", "example-f1", train=documents[2:], test=[d for d in documents if d.labels])
    found = compare()
    assert values(found[versions.SHARED])[:2] == (75, 100)
    assert found[versions.AGREE]["second_value"] == found[versions.ANSWERS]["second_value"] == 100
    assert all("a: the first of 2 folds" in line["note"] for line in found.values())
    assert found[versions.TRIVIAL]["note"].startswith("Multilabel micro F1 and Example-based F1")


def test_what_is_missing_is_said(register):
    rows = [relation("x", "1"), relation("y", "0")]
    register("a", "relations", "binary-f1", dev=rows, test=rows)
    register("b", "relations", "binary-f1", train=rows, dev=[relation("z", "1"), relation("w", "0")])
    (line,) = versions.compare_pair(facts.VersionPair(first="a", second="b"), "laptop")
    assert line["n"] == 0 and "has no test split" in line["note"]
    found = compare(split="dev")
    assert values(found[versions.SHARED])[:2] == (0, 0) and found[versions.SHARED]["note"] == "of the dev split"
    assert not {versions.AGREE, versions.ANSWERS, versions.TRIVIAL} & set(
        found
    )  # none is shared; the first has no train


# What the file names, and real data


def test_pairs_name_sets_and_splits_that_exist():
    known = facts.comparisons()
    assert {key for keys in known.sets.values() for key in keys} <= set(registry.DATASETS)
    for pair in known.versions:
        assert all(pair.split in registry.lookup(key).files for key in (pair.first, pair.second))
    assert versions.name_set("hoc-blue") == "HoC" and versions.name_set("bc2gm") == "BC2GM"


def look_at(*keys: str) -> None:
    if any(open_study("laptop").why_missing(key) for key in keys):
        pytest.skip("not every set is in the data folder")


def test_real_labels_of_jnlpba_are_another_task(real_data):
    look_at("jnlpba", "jnlpba-biobert")
    pair = facts.VersionPair(first="jnlpba", second="jnlpba-biobert")
    tests = [{"test": open_study("laptop").dataset(key).load("test")} for key in (pair.first, pair.second)]
    found = {line["what"]: line for line in versions.measure_shared(pair, tests)}
    assert found[versions.SHARED]["n"] == 2 * 3856 and found[versions.SHARED]["first_value"] > 99
    assert found[versions.AGREE]["second_value"] < 60 and 80 < found[versions.ANSWERS]["second_value"] < 90


def test_real_gad_is_one_test_set_and_one_is_developed_on_it(real_data):
    look_at("gad", "gad-biobert", "gad-bioelectra")
    for other in ("gad-biobert", "gad-bioelectra"):
        found = compare("gad", other)
        assert values(found[versions.SHARED])[:2] == values(found[versions.ANSWERS])[:2] == (100, 100)
    assert found[versions.ELSEWHERE]["first_value"] == 100
