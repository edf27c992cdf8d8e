"""Every way of counting by hand; the pages of sizes and counts make the committed tables."""

import csv
import shutil

import pandas as pd
import pytest
from conftest import each
from golden import make_masked
from hypothesis import given, settings
from hypothesis import strategies as st
from notebook_code import definitions, run

from lib.benchmarks import chemprot, counting
from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Labelled, Pair, Question, Sentence, Span
from lib.study import paths, results
from lib.study.study import Study

COUNTS = definitions("13_dataset_counts")
RECORDED = paths.ROOT / "outputs/record/laptop/tables"
QUICK = settings(max_examples=25, deadline=None)
TAGGED = [Sentence(["An", "ulcer", "of", "skin"], ["O", "B", "O", "B-Part"]), Sentence(["It"], ["O"])]
ELEMENTS = [Sentence(["Old", "ulcer"], ["I-PAR", "I-INT|I-PAR"])]


def sentence(*words: str) -> Sentence:
    return Sentence(list(words), ["O"] * len(words))


def test_words_entities_elements_and_positives():
    assert (counting.words(TAGGED), counting.entities(TAGGED), counting.entities(ELEMENTS)) == (5, 2, 0)
    assert counting.element_words(ELEMENTS) == {"PAR": 2, "INT": 1}  # one word is in two elements
    labels = ("1", "0", "false", "DDI-false", "CPR:3")
    assert counting.positives(make_masked("x", label) for label in labels) == 2


def test_distinct_rows_are_of_text_and_label():
    rows = [make_masked("a", "1"), make_masked("a", "1"), make_masked("a", "0"), make_masked("b", "1")]
    assert COUNTS.count_distinct(rows) == 3
    pairs = [Pair("1", "a", "b", "yes"), Pair("2", "a", "b", "yes"), Pair("3", "a", "c", "yes")]
    assert COUNTS.count_distinct(pairs) == 2


@each(
    ("found", "rows", "lines"),
    [
        ([sentence("a", "b"), sentence("c")], 3, 4),  # and the blank line between them
        ([sentence("a", '"', "b", '"', "c")], 3, 3),  # `a`, one from quote to quote, `c`
        ([sentence("a", '"'), sentence("b", '"'), sentence("c")], 3, 4),  # the blank line between the quotes is gone
        ([sentence("a", '"'), sentence("b")], 2, 1),  # no second one: all to the end of the file
        ([sentence('"a"', "b")], 2, 2),  # a field in quotes that ends where it began
        ([sentence('a"', "b")], 2, 2),  # a quote within a word is one of its letters
        ([sentence('"', *["word"] * 40_000, '"')], 1, 1),  # longer than a field of the module may be by itself
        ([], 0, -1),
    ],
)
def test_a_double_quote_swallows_lines(found, rows, lines):
    assert (COUNTS.count_csv_rows(found), COUNTS.count_csv_rows(found, blank=True)) == (rows, lines)


@QUICK
@given(
    st.lists(
        st.lists(st.sampled_from(["a", "b,", '"', '""', "'", 'c"']), min_size=1, max_size=5), min_size=1, max_size=6
    )
)
def test_rows_of_a_tagged_file_are_those_of_a_reader_of_the_file(tmp_path_factory, found):
    path = tmp_path_factory.mktemp("csv") / "a.tsv"
    path.write_text("".join("".join(f"{word}\tO\n" for word in words) + "\n" for words in found))
    with open(path, newline="") as file:
        rows = list(csv.reader(file, delimiter="\t"))
    sentences = [sentence(*words) for words in found]
    assert COUNTS.count_csv_rows(sentences) == len([row for row in rows if row])
    assert COUNTS.count_csv_rows(sentences, blank=True) == len(rows) - 1


@each("total", [2, 5, 9, 10, 355, 5122])
def test_fifths_are_scikit_learns(total):
    from sklearn.model_selection import train_test_split

    rows = [make_masked(f"text {i}", "1") for i in range(total)]
    rest, dev = train_test_split(range(total), test_size=0.2, random_state=0)
    train, test = train_test_split(rest, test_size=0.2, random_state=0) if len(rest) > 1 else (rest[1:], rest[:1])
    assert COUNTS.count_fifths(rows) == {"train": len(train), "dev": len(dev), "test": len(test)}
    assert COUNTS.count_fifths([*rows, *rows]) == COUNTS.count_fifths(rows)  # distinct ones


# Pages


QUESTIONS = [
    Question("1", "Who?", ("I.", "He."), ("He",), (Span(1, 0, 2),)),
    Question("1", "Who?", ("She.",), ("He",), ()),
]


@each(
    ("family", "found", "said"),
    [
        ("tagging", TAGGED, "2 entities, 5 words"),
        ("pico", ELEMENTS, "3 words in elements, 2 words"),
        ("relations", [make_masked("x", "1"), make_masked("x", "0")], "1 positive"),
        ("questions", QUESTIONS, "3 passages, 1 questions without an answer in them"),
        ("ranking", [Pair("1", "Q", "a", "1", "q"), Pair("2", "Q", "b", "0", "q")], "1 questions"),
        ("documents", [Labelled("1", ("One.", "Two."), ())], "2 sentences"),
        ("similarity", [Pair("1", "a", "b", 1.0)], ""),
    ],
)
def test_what_a_split_holds(family, found, said):
    assert definitions("12_datasets").describe_content(family, found) == said


@each(
    ("ours", "reason", "explained", "said"),
    [
        (5, "", False, ("agrees", "")),
        (4, "", True, ("explained", "in words")),
        (4, "", False, ("differs", "-1; odd")),
        (float("nan"), "no file", False, ("n/a", "no file")),
        (float("nan"), "no file", True, ("explained", "in words")),  # by another set
    ],
)
def test_verdicts_on_a_printed_count(ours, reason, explained, said):
    assert COUNTS.judge(5, ours, reason, explained, "in words", "odd") == said


def without_punkt(table: bytes) -> list[bytes]:
    """The lines of a table, without those of ChemProt where NLTK cannot cut it into sentences."""
    return [line for line in table.splitlines() if chemprot.load_punkt() or b"ChemProt" not in line]


@pytest.fixture(scope="module")
def read_once():
    """What several tables count is read by the first of them."""
    read, kept = Dataset.load, {}

    def load(dataset, split):
        if (dataset.key, split) not in kept:
            kept[dataset.key, split] = tuple(read(dataset, split))
        return kept[dataset.key, split]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dataset, "load", load)
        yield


@pytest.mark.parametrize("key", ["gu-3", "lee-3", "naseem-6", "ozyurt-1"])
def test_the_page_of_counts_makes_the_committed_table(real_data, read_once, own_outputs, key):
    recorded = (RECORDED / f"{key}.csv").read_bytes()
    run("13_dataset_counts", scale="laptop", table=key)
    assert without_punkt(paths.table("laptop", key).read_bytes()) == without_punkt(recorded)


def test_the_page_of_sizes_makes_the_committed_tables_from_the_counts_by_file(own_outputs, tmp_path, monkeypatch):
    """It needs no data to show them; that nothing is written then is overruled here."""
    shutil.copytree(RECORDED, own_outputs / "record/laptop/tables")
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "nowhere"))
    write = results.write_table
    monkeypatch.setattr(
        Study, "save", lambda _, name, what: isinstance(what, pd.DataFrame) and write("laptop", name, what)
    )
    run("11_corpus_sizes", scale="laptop")
    for name in ("corpora", "lee-1", "naseem-2", "wada-2", "gu-5"):
        assert paths.table("laptop", name).read_bytes() == (RECORDED / f"{name}.csv").read_bytes(), name
