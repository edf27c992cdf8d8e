"""Tests of each kind of leak on tiny made-up datasets, counted by hand, and of page 14 on a small registry."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from golden import make_masked, tagged
from notebook_code import definitions, run

from lib.benchmarks import datasets, registry
from lib.benchmarks.instances import Labelled, Pair, Question
from lib.corpora import leakage
from lib.study import documents, paths
from lib.study.corpora import Corpus

PAGE = definitions("14_leaks")


def answer(id: str, second: str, label: str, first: str = "Is it?") -> Pair:
    return Pair(id, first, second, label)


NEWS = [answer(str(i), f"{word} news", label) for i, (word, label) in enumerate([("good", "yes"), ("bad", "no")] * 4)]


def long_text(seed: int, size: int = 40) -> str:
    return " ".join(f"w{seed}x{number}" for number in range(size))


def make_dataset(folder, key: str, family: str, metric: str, splits: dict[str, list], **facts) -> datasets.Dataset:
    """Make a dataset that reads these instances by split, and create an empty file for each split."""
    for split in splits:
        (folder / f"{key}-{split}").touch()
    files = {split: (f"{key}-{split}",) for split in splits}
    return datasets.Dataset(
        key, key, family, "", metric, lambda path: splits[path.name.removeprefix(f"{key}-")], files, **facts
    ).at(folder)


def test_copies_and_near_copies():
    near = long_text(1).rsplit(" ", 1)[0]
    train = [tagged(long_text(1)), tagged("a b"), tagged("c d")]
    test = [tagged("A , b"), tagged("c d"), tagged(near), tagged("e f"), tagged("g h")]
    assert PAGE.count_copies(test, train) == {"same": 2, "near": 1, "": 2}  # `A , b` has the plain words of `a b`


def test_equal_splits_have_the_same_labels_in_any_order():
    test = [make_masked("a", "1"), make_masked("b", "0")]
    assert PAGE.are_equal(test[::-1], test)
    assert not PAGE.are_equal([test[0], make_masked("b", "1")], test)
    assert not PAGE.are_equal([*test, test[1]], test)


def test_contradictory_labels():
    rows = [("a", "1"), ("a", "1"), ("b", "0"), ("c", "0"), ("a", "0"), ("b", "0")]
    count, total, best_accuracy = PAGE.count_contradictions(make_masked(*row) for row in rows)
    # Three rows have the text a, two of them with label 1: always predicting 1 for a errs once in six rows.
    assert (count, total) == (3, 6) and best_accuracy == pytest.approx(100 * 5 / 6)
    tags = [tagged("a b", "O B"), tagged("a b", "O O"), tagged("a", "O")]
    assert PAGE.count_contradictions(tags)[:2] == (2, 3)


def test_long_sentences_in_plain_words(tmp_path):
    long, other = long_text(1, 10), long_text(2, 12)
    sentences = {"test": [tagged(long.title()), tagged("too short")]}
    assert PAGE.long_sentences(make_dataset(tmp_path, "words", "tagging", "entity-f1", sentences), "test") == {long}
    whole_texts = {"test": [Labelled("1", (f"{long} . {other} .",), ("x",))]}
    document_set = make_dataset(tmp_path, "whole", "documents", "accuracy", whole_texts)
    assert PAGE.long_sentences(document_set, "test") == {long, other}


# The page


@pytest.fixture
def lines(fresh, own_outputs, tmp_path, monkeypatch):
    """Return the page's rows by (finding, dataset, where), for made-up datasets and a corpus of two files."""
    first, second, short = tagged(long_text(1, 12)), tagged(long_text(2, 12)), tagged("a b", "O B")
    labels = [("good", "yes"), ("bad", "no"), ("bad", "no"), ("good", "no")]
    answer_pairs = [answer(str(i), second, label) for i, (second, label) in enumerate(labels, 1)]
    pairs = [make_masked("a", "1"), make_masked("b", "0")]
    sets = [
        ("one", "tagging", "entity-f1", {"train": [short], "test": [first, second, short]}),
        ("two", "tagging", "entity-f1", {"train": [first], "test": [tagged("new pain", "B I")]}),
        ("two-again", "tagging", "entity-f1", {"test": [tagged("new pain", "B I")]}),
        ("answers", "answers", "accuracy", {"train": [*NEWS, answer("9", "yes it is", "yes")], "test": answer_pairs}),
        ("pairs", "relations", "binary-f1", {"train": [pairs[0], make_masked("b", "1")], "dev": pairs, "test": pairs}),
        ("asked", "questions", "squad", {"test": [Question("1", "is it", ("P.",), ("a",), ())]}),
    ]  # fmt: skip
    (tmp_path / "data").mkdir()
    registered = {key: make_dataset(tmp_path / "data", key, *facts) for key, *facts in sets}
    monkeypatch.setattr(registry, "DATASETS", registered)
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))
    numbers = [leakage.number_sentence(sentence.words) for sentence in (first, second)]
    for file, sentence_numbers in {"x": [[numbers[0]], [], numbers], "y": [[numbers[1]], [], [7]]}.items():
        pq.write_table(pa.table({"test texts": pa.array(sentence_numbers, pa.list_(pa.uint32()))}), tmp_path / file)
    monkeypatch.setattr(Corpus, "files", [("s", "x"), ("s", "y")])
    monkeypatch.setattr(documents, "rows_path", lambda study, source, file: tmp_path / file)
    table = run("14_leaks", scale="laptop")["table"]
    assert paths.table("laptop", "leaks").exists()
    return {(row["finding"], row["dataset"], row["where"]): row for row in table.to_dict("records")}


def test_the_page_finds_each_kind_of_leak(lines):
    counted = {key: (row["count"], row["of"]) for key, row in lines.items() if row["count"]}
    shared_sentences = "sentences of a test set in another dataset"
    assert {key: counts for key, counts in counted.items() if key[0] != "most frequent label"} == {
        ("same text in two splits", "one", "test in train"): (1, 3),
        ("same text in two splits", "pairs", "test in train"): (2, 2),
        ("same text in two splits", "pairs", "test in dev"): (2, 2),
        ("same text in two splits", "pairs", "dev in train"): (2, 2),
        ("dev is test", "pairs", "dev and test"): (2, 2),
        (shared_sentences, "one", "test in two, train"): (1, 2),
        ("questions of a test set in another dataset", "answers", "test in asked, test"): (1, 1),
        ("questions of a test set in another dataset", "asked", "test in answers, train"): (1, 1),
        ("questions of a test set in another dataset", "asked", "test in answers, test"): (1, 1),
        ("test sentences in the raw corpora", "one", "documents"): (3, 6),
        ("labels that contradict", "pairs", "all splits"): (3, 6),
        ("labels that contradict", "answers", "all splits"): counted["labels that contradict", "answers", "all splits"],
        ("answer given away by the text", "answers", "test"): (3, 4),
    }
    assert lines["test sentences in the raw corpora", "one", "documents"]["note"].startswith("of 2 sentences of 10")


def test_answers_given_away_by_the_text_and_most_frequent_labels(lines):
    """F1 is 2/3 for yes, predicted twice and once correctly, and 4/5 for no; always predicting yes gives 2/5 and 0."""
    given_away = lines["answer given away by the text", "answers", "test"]
    assert "mean F1 of the labels 73.3, and 20.0 with always 'yes'" in given_away["note"] and given_away["score"] == 25
    assert "1 of all texts begin with their label" in given_away["note"]
    by_set = {key[1]: row for key, row in lines.items() if key[0] == "most frequent label"}
    assert by_set["pairs"]["note"].endswith("score: always 1") and by_set["pairs"]["score"] == pytest.approx(66.67)
    assert (by_set["one"]["count"], by_set["one"]["of"], by_set["one"]["score"]) == (25, 26, 100)
    assert by_set.keys() == {"one", "two", "answers", "pairs"}


def test_most_frequent_labels_of_other_tasks(tmp_path):
    def describe(family: str, test: list, predicted: str | tuple, **facts):
        dataset = make_dataset(tmp_path, "set", family, "accuracy", {"test": test}, **facts)
        return PAGE.describe_label(dataset, test, [predicted])

    candidates = [Pair("1", "Q?", "c", "0", "q"), Pair("2", "Q?", "d", "1", "q")]
    assert describe("ranking", candidates, "1")[:3] == ("test, candidates", 1, 2)
    unlabelled = [Labelled("1", ("A.",), ()), Labelled("2", ("B.",), ())]
    assert describe("documents", unlabelled, ("x", "y")) == ("test", 2, 2, "no label; score: always x and y")
    restricted = describe("inference", unlabelled, "a label", access="credentialed")
    assert restricted[3] == "score: always the same label"
