"""Each finding on tiny made-up datasets, with results counted by hand; some facts of the real ones."""

import math
from collections import Counter

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.benchmarks import baselines, datasets, registry
from lib.benchmarks.instances import Labelled, Mention, Pair, Question, Relation, Sentence
from lib.corpora import leakage
from lib.study import documents, open_study, paths
from lib.study.analysis import findings, texts
from lib.study.corpora import Corpus

QUICK = settings(max_examples=25, deadline=None)
ENDS = Mention("", "GENE", 0, 6), Mention("", "DISEASE", 7, 16)
CACHES = (findings.load, findings.sentences_of, texts.test_texts, leakage.bands)


@pytest.fixture(autouse=True)
def fresh():
    """Nothing that another test's data left in memory."""
    forget()
    yield
    forget()


@pytest.fixture
def register(monkeypatch, tmp_path):
    """Make the registry consist of made-up sets: key -> family, metric and instances by split, or of each fold."""
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    rows: dict[str, datasets.Dataset] = {}

    def add(key: str, family: str, metric: str, splits: dict[str, list], folds: int = 1) -> None:
        given = {
            f"{key}-{split}-{fold}": part
            for split, found in splits.items()
            for fold, part in enumerate(found if folds > 1 else [found], start=1)
        }
        for name in given:
            (tmp_path / name).touch()
        files = {split: (f"{key}-{split}-{{fold}}",) for split in splits}
        rows[key] = datasets.Dataset(
            key, key, family, "", metric, lambda path: given[path.name], files, folds=folds
        )
        monkeypatch.setattr(registry, "DATASETS", dict(rows))
        forget()

    return add


def forget() -> None:
    for cached in CACHES:
        cached.cache_clear()


def tagged(text: str, tags: str = "") -> Sentence:
    words = text.split()
    return Sentence(words, tags.split() or ["O"] * len(words))


def answer(id: str, second: str, label: str, first: str = "Is it?") -> Pair:
    return Pair(id, first, second, label)


def relation(id: str, text: str, label: str) -> Relation:
    return Relation(id, f"@GENE$ {text} @DISEASE$", *ENDS, label, masked=True)


def long_text(seed: int, size: int = 40) -> str:
    return " ".join(f"w{seed}x{number}" for number in range(size))


def rows_of(find) -> dict[tuple, tuple]:
    """(finding, dataset, where) -> (count, of)."""
    rows = list(find("laptop"))
    assert all(list(row) == findings.COLUMNS for row in rows)
    return {(row["finding"], row["dataset"], row["where"]): (row["count"], row["of"]) for row in rows}


# A row


def test_a_row_says_the_share_and_which_tables_it_touches():
    assert findings.line("f", "bc2gm", "test", 1, 3, 12.344, "n") == {
        "finding": "f", "dataset": "bc2gm", "where": "test", "count": 1, "of": 3, "share": 33.33, "score": 12.34,
        "touches": "lee-4, gu-6, naseem-7, ozyurt-4", "note": "n",
    }  # fmt: skip
    row = findings.line("f", "squad", "dev", 0, 0)
    assert math.isnan(row["share"]) and math.isnan(row["score"]) and row["touches"] == "none"


# Copies


def test_copies_and_near_copies(register):
    near = long_text(1).split()[:-1]
    register("set", "tagging", "entity-f1", {
        "train": [tagged(long_text(1)), tagged("a b"), tagged("c d")],
        "dev": [tagged("e f")],
        "test": [tagged("A , b"), tagged("c d"), tagged(" ".join(near)), tagged("e f"), tagged("g h")],
    })  # fmt: skip
    assert rows_of(findings.find_copies) == {
        ("same text in two splits", "set", "test in train"): (2, 5),  # `A , b` has the plain words of `a b`
        ("near copy in two splits", "set", "test in train"): (1, 5),
        ("same text in two splits", "set", "test in dev"): (1, 5),
        ("near copy in two splits", "set", "test in dev"): (0, 5),
        ("same text in two splits", "set", "dev in train"): (0, 1),
        ("near copy in two splits", "set", "dev in train"): (0, 1),
    }


def test_copies_are_counted_within_each_fold(register):
    one, two, three = (relation(str(i), f"text {i}", "1") for i in range(3))
    folds = {"train": [[one, two], [one, three]], "test": [[two, three], [two]]}
    register("set", "relations", "binary-f1", folds, folds=2)
    found = rows_of(findings.find_copies)
    assert found["same text in two splits", "set", "test in train, 2 folds"] == (1, 3)
    assert found["near copy in two splits", "set", "test in train, 2 folds"] == (0, 3)


@QUICK
@given(st.lists(st.sampled_from("abcdef"), min_size=1), st.lists(st.sampled_from("defghi"), min_size=1))
def test_any_copies_are_counted(train, test):
    dataset = datasets.Dataset("set", "Set", "tagging", "", "entity-f1", list, {"train": (), "test": ()})
    splits = {"train": [tagged(word) for word in train], "test": [tagged(word) for word in test]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "DATASETS", {"set": dataset})
        patch.setattr(findings, "load", lambda key, split, scale, fold=1: splits[split])
        found = rows_of(findings.find_copies)
    common = sum(word in train for word in test)
    assert found["same text in two splits", "set", "test in train"] == (common, len(test))


# Equal splits


@pytest.mark.parametrize(
    ("dev", "equal"),
    [
        ([("a", "1"), ("b", "0")], True),
        ([("b", "0"), ("a", "1")], True),  # in another order
        ([("a", "1"), ("b", "1")], False),
        ([("a", "1")], False),
        ([("a", "1"), ("b", "0"), ("b", "0")], False),
    ],
)
def test_a_development_set_that_is_the_test_set(register, dev, equal):
    made = [[relation(str(i), *row) for i, row in enumerate(rows)] for rows in (dev, [("a", "1"), ("b", "0")])]
    register("set", "relations", "binary-f1", {"train": made[1], "dev": made[0], "test": made[1]})
    assert rows_of(findings.find_equal_splits) == ({("dev is test", "set", "dev and test"): (2, 2)} if equal else {})


# Contradictions


def test_labels_that_contradict(register):
    register("set", "relations", "binary-f1", {
        "train": [relation("1", "a", "1"), relation("2", "a", "1"), relation("3", "b", "0"), relation("4", "c", "0")],
        "test": [relation("1", "a", "0"), relation("2", "b", "0")],
    })  # fmt: skip
    (row,) = findings.find_contradictions("laptop")
    # Three rows have the text a, of which two have label 1: whoever says 1 is wrong once in six.
    assert (row["count"], row["of"], row["share"]) == (3, 6, 50)
    assert row["score"] == pytest.approx(100 * 5 / 6, abs=0.01)


def test_labels_of_words_and_of_documents_contradict_too(register):
    register("tags", "tagging", "entity-f1", {"train": [tagged("a b", "O B"), tagged("a b", "O O"), tagged("a", "O")]})
    register(
        "topics", "documents", "example-f1", {"train": [Labelled("1", ("A.",), ("x",)), Labelled("2", ("A.",), ())]}
    )
    found = {row["dataset"]: (row["count"], row["of"], row["score"]) for row in findings.find_contradictions("laptop")}
    assert found == {"tags": (2, 3, 66.67), "topics": (2, 2, 50)}


# Sentences and questions of one set in another


def test_sentences_in_another_dataset(register):
    test = [tagged(long_text(number, 12)) for number in range(4)]
    register("one", "tagging", "entity-f1", {"train": [tagged("a b")], "test": [*test, tagged("too short")]})
    both = " . ".join([" ".join(test[0].words).title(), long_text(9, 12)]) + " ."
    register(
        "two",
        "documents",
        "accuracy",
        {"train": [Labelled("1", (both,), ("x",))], "test": [Labelled("2", ("No",), ("x",))]},
    )
    assert rows_of(findings.find_shared) == {
        ("sentences of a test set in another dataset", "one", "test in two, train"): (1, 4)
    }


def test_forms_of_one_set_share_their_test_on_purpose(register):
    test = [tagged(long_text(1, 12))]
    register("set", "tagging", "entity-f1", {"train": [tagged("a b")], "test": test})
    register("set-other", "tagging", "entity-f1", {"train": test, "test": test})
    assert rows_of(findings.find_shared) == {
        ("sentences of a test set in another dataset", "set", "test in set-other, train"): (1, 1)
    }


def test_few_shared_sentences_are_not_listed(register):
    test = [tagged(long_text(number, 10)) for number in range(101)]
    register("one", "tagging", "entity-f1", {"train": [tagged("a")], "test": test})
    register("two", "tagging", "entity-f1", {"train": test[:1], "test": [tagged("b")]})
    assert rows_of(findings.find_shared) == {}  # one of 101 is under 1%
    register("two", "tagging", "entity-f1", {"train": test[:2], "test": [tagged("b")]})
    assert list(rows_of(findings.find_shared).values()) == [(2, 101)]


def test_questions_in_another_dataset(register):
    asked = [Question(str(i), text, ("P.",), ("a",), ()) for i, text in enumerate(["Who is it?", "why", "When?"])]
    register("one", "questions", "squad", {"train": asked[:1], "test": asked})
    register(
        "two",
        "answers",
        "accuracy",
        {"train": [answer("1", "x", "yes", "WHO is it")], "test": [answer("2", "x", "no")]},
    )
    register("three", "similarity", "pearson", {"train": [Pair("1", "When?", "x", 1.0)]})  # sentences, no questions
    assert rows_of(findings.find_shared_questions) == {
        ("questions of a test set in another dataset", "one", "test in two, train"): (1, 3)
    }


# Test sentences in the text for pretraining


def test_documents_that_hold_test_sentences(register, monkeypatch, tmp_path):
    first, second = long_text(1, 12), long_text(2, 12)
    register("one", "tagging", "entity-f1", {"train": [tagged("a")], "test": [tagged(first), tagged("too short")]})
    register("two", "tagging", "entity-f1", {"train": [tagged("a")], "test": [tagged(first), tagged(second)]})
    numbers = [leakage.number(text.split()) for text in (first, second)]
    held = {"x": [[numbers[0]], [], [numbers[0], numbers[1]]], "y": [[numbers[1]], [], [7]]}
    monkeypatch.setattr(Corpus, "files", [("s", "x"), ("s", "y")])
    monkeypatch.setattr(documents, "rows_path", lambda scale, source, file: tmp_path / file)
    for file, rows in held.items():
        column = pa.array(rows, pa.list_(pa.uint32()))
        pq.write_table(pa.table({"test texts": column}), tmp_path / file)
    found = list(findings.find_in_pretraining("laptop"))
    assert [(row["dataset"], row["count"], row["of"]) for row in found] == [("one", 2, 6), ("two", 3, 6)]
    assert [row["note"][:14] for row in found] == ["of 1 sentences", "of 2 sentences"]


# What gives the answer away


def test_answers_that_the_second_text_gives_away(register):
    """The word that tells is `good` or `bad`; three of four test texts have that of their label."""
    train = [
        answer(str(i), f"{word} news", label) for i, (word, label) in enumerate([("good", "yes"), ("bad", "no")] * 4)
    ]
    train.append(answer("9", "yes it is", "yes"))
    test = [answer("1", "good", "yes"), answer("2", "bad", "no"), answer("3", "bad", "no"), answer("4", "good", "no")]
    register("set", "answers", "accuracy", {"train": train, "test": test})
    (row,) = findings.find_given_away("laptop")
    assert (row["finding"], row["count"], row["of"]) == ("answer given away by the text", 3, 4)
    assert row["score"] == 25  # always `yes`, the most frequent in training
    # F1 is 2/3 of yes, one of two said rightly, and 4/5 of no; with always yes it is 2/5 and 0.
    assert "mean F1 of the labels 73.3, and 20.0 with always 'yes'" in row["note"]
    assert "1 of all texts begin with their label" in row["note"]


def test_only_questions_and_inference_with_both_splits_are_tried(register):
    register("sts", "similarity", "pearson", {"train": [Pair("1", "a", "b", 1.0)], "test": [Pair("2", "a", "b", 1.0)]})
    register("half", "answers", "accuracy", {"train": [answer("1", "a", "yes")]})
    assert list(findings.find_given_away("laptop")) == []


# The same answer always


def balance(register, family: str, metric: str, train: list, test: list) -> dict:
    register("set", family, metric, {"train": train, "test": test})
    (row,) = findings.find_balance("laptop")
    assert row["finding"] == "most frequent label"
    return row


def test_words_with_their_most_frequent_tag(register):
    train = [tagged("an ulcer", "O B"), tagged("ulcer", "B"), tagged("ulcer", "O"), tagged("pain", "B")]
    row = balance(register, "tagging", "entity-f1", train, [tagged("ulcer here", "B O"), tagged("new pain", "B I")])
    # Found: ulcer, right; pain alone, where the mention has two words. One of two is right, one of two is found.
    assert (row["count"], row["of"], row["score"]) == (1, 4, 50)


def test_elements_with_their_most_frequent_tag(register):
    train = [tagged("men got zinc", "I-PAR O I-INT")]
    row = balance(register, "pico", "pico-macro-f1", train, [tagged("men zinc well", "I-PAR I-INT I-OUT")])
    assert (row["count"], row["of"], row["score"]) == (0, 3, 66.67)  # no outcome is known


def test_always_the_best_label_of_training(register):
    train = [relation(str(i), "x", label) for i, label in enumerate("0001")]
    row = balance(
        register, "relations", "binary-f1", train, [relation(str(i), "y", label) for i, label in enumerate("0011")]
    )
    assert (row["count"], row["of"]) == (2, 4)
    assert row["score"] == 66.67 and row["note"].endswith("always 1")  # `0` is more frequent, and never scores


def test_the_negative_label_never_scores(register):
    train = [relation(str(i), "x", label) for i, label in enumerate(["false", "false", "CPR:3"])]
    row = balance(register, "relations", "relation-micro-f1", train, train)
    assert (row["count"], row["of"], row["score"]) == (2, 3, 50)  # of three said CPR:3 one is right, and all are found
    assert row["note"] == "false; score: always CPR:3"


def test_labels_of_documents_in_words(register):
    train = [Labelled("1", ("A.",), ("x", "y")), Labelled("2", ("B.",), ()), Labelled("3", ("C.",), ("x", "y"))]
    row = balance(register, "documents", "example-f1", train, [*train, Labelled("4", ("D.",), ())])
    assert (row["count"], row["of"]) == (2, 4)
    assert row["note"] == "x and y; score: always x and y" and row["score"] == 50
    assert findings.show_label(()) == "no label" and findings.show_label("1") == "1"


def test_questions_without_an_answer_in_their_passages(register):
    questions = [Question(str(i), "Q?", ("P.",), ("a",), ()) for i in range(3)]
    row = balance(register, "questions", "squad", questions, questions)
    assert (row["count"], row["of"]) == (3, 3) and math.isnan(row["score"])


def test_candidates_in_the_order_of_the_file(register):
    rows = [("q", "0"), ("q", "1"), ("r", "1"), ("r", "0"), ("s", "0")]
    test = [Pair(str(i), "Q?", "c", label, group) for i, (group, label) in enumerate(rows)]
    row = balance(register, "ranking", "ranking-mrr", test, test)
    assert (row["count"], row["of"], row["score"]) == (3, 5, 0.5)  # second, first and none: 1/2, 1 and 0


def test_similarity_has_no_frequent_label(register):
    rows = [Pair("1", "a", "b", 1.0)]
    register("set", "similarity", "pearson", {"train": rows, "test": rows})
    assert list(findings.find_balance("laptop")) == []


@QUICK
@given(
    st.lists(st.sampled_from(["yes", "no", "maybe"]), min_size=1),
)
def test_the_constant_answer_is_the_most_frequent_of_training(train):
    dataset = datasets.Dataset("set", "Set", "answers", "", "accuracy", list, {"train": (), "test": ()})
    best = baselines.choose_constant(dataset, [answer("1", "", label) for label in train])
    assert Counter(train)[best] == max(Counter(train).values())


# All together


def test_only_what_is_at_hand_is_looked_at(register, tmp_path):
    rows = [answer("1", "good", "yes"), answer("2", "bad", "no")]
    register("set", "answers", "accuracy", {"train": rows, "test": rows})
    (tmp_path / "set-train-1").unlink()
    assert list(findings.at_hand("laptop")) == [("set", ["test"])]
    assert rows_of(findings.find_copies) == rows_of(findings.find_balance) == rows_of(findings.find_given_away) == {}
    (tmp_path / "set-test-1").unlink()
    assert list(findings.at_hand("laptop")) == []


def test_all_findings_in_one_table_and_in_words(register, monkeypatch):
    monkeypatch.setattr(Corpus, "files", [])
    one, two = relation("1", "a", "1"), relation("2", "b", "0")
    register("set", "relations", "binary-f1", {"train": [one, two], "dev": [two], "test": [two]})
    register("other", "relations", "binary-f1", {"train": [one], "test": [relation("1", "a", "0")]})
    leaks = findings.gather("laptop")
    assert list(leaks.columns) == findings.COLUMNS
    assert set(leaks["finding"]) == {
        "same text in two splits", "near copy in two splits", "dev is test", "test sentences in the raw corpora",
        "labels that contradict", "most frequent label",
    }  # fmt: skip
    said = findings.describe(leaks, "laptop").splitlines()
    assert len(said) == 6 and all(line.startswith("- ") and " of 2 datasets at hand " in line for line in said)
    assert said[0].startswith("- 2 of 2") and said[1].startswith("- 0 of 2") and said[2].startswith("- 1 of 2")
    assert "most of all set (dev and test): 100.0%" in said[2]
    assert "made up: nothing here is a finding" in findings.describe(leaks, "smoke")


def test_nothing_at_hand(register, monkeypatch):
    monkeypatch.setattr(Corpus, "files", [])
    monkeypatch.setattr(registry, "DATASETS", {})
    leaks = findings.gather("laptop")
    assert leaks.empty and list(leaks.columns) == findings.COLUMNS
    assert "0 of 0 datasets" in findings.describe(leaks, "laptop")


def test_every_finding_runs_on_made_up_data(smoke_data, monkeypatch):
    """A set of each family: the made-up sets have no copies between splits, but for Bio-ELECTRA's GAD."""
    keys = ("bc2gm", "ebm-pico", "ddi", "gad", "gad-bioelectra", "biosses", "mednli", "hoc", "pubmedqa", "squad",
            "bioasq-4b-factoid", "bioasq-reranker")  # fmt: skip
    monkeypatch.setattr(registry, "DATASETS", {key: registry.DATASETS[key] for key in keys})
    monkeypatch.setattr(Corpus, "files", [])
    leaks = findings.gather("smoke")
    assert leaks["share"].dropna().between(0, 100).all() and (leaks["count"] <= leaks["of"]).all()
    assert set(leaks["dataset"]) == set(keys)
    equal = leaks[leaks["finding"] == "dev is test"]
    assert equal["dataset"].tolist() == ["gad-bioelectra"]
    assert paths.data("smoke") == smoke_data
    # No column but the names of labels comes from the data.
    held = {" ".join(i.words) for i in open_study("smoke").dataset("bc2gm").load("test")}
    assert not any(text in note for note in leaks["note"] for text in held)


# Real data: numbers only


def look_at(monkeypatch, *keys: str) -> None:
    monkeypatch.setattr(registry, "DATASETS", {key: registry.DATASETS[key] for key in keys})
    if any(open_study("laptop").why_missing(key) for key in keys):
        pytest.skip("not every set is in the data folder")


def test_real_gad_of_bioelectra_is_developed_on_its_test_set(real_data, monkeypatch):
    look_at(monkeypatch, "gad", "gad-bioelectra")
    size = len(open_study("laptop").dataset("gad-bioelectra").load("test"))
    assert rows_of(findings.find_equal_splits) == {("dev is test", "gad-bioelectra", "dev and test"): (size, size)}


def test_real_yesno_texts(real_data, monkeypatch):
    """BLURB's BioASQ has snippets, and more of its questions are yes than no; Bio-ELECTRA's has the ideal answers."""
    look_at(monkeypatch, "bioasq-7b-yesno", "bioasq-8b-yesno")
    rows = pd.DataFrame(findings.find_given_away("laptop")).set_index("dataset")
    assert rows["of"].to_dict() == {key: len(open_study("laptop").dataset(key).load("test")) for key in rows.index}
    assert (rows["score"] > 50).all()
    assert rows.loc["bioasq-8b-yesno", "share"] > rows.loc["bioasq-7b-yesno", "share"]
