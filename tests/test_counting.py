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
from lib.benchmarks.instances import Pair, Sentence
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


def test_rows_with_the_same_text_and_label_count_once():
    rows = [make_masked("a", "1"), make_masked("a", "1"), make_masked("a", "0"), make_masked("b", "1")]
    assert COUNTS.count_distinct(rows) == 3
    pairs = [Pair("1", "a", "b", "yes"), Pair("2", "a", "b", "yes"), Pair("3", "a", "c", "yes")]
    assert COUNTS.count_distinct(pairs) == 2


def test_a_quoted_text_may_be_longer_than_a_field_of_the_csv_module():
    assert COUNTS.count_csv_rows([sentence('"', *["word"] * 40_000, '"')]) == 1


@QUICK
@given(
    st.lists(
        st.lists(st.sampled_from(["a", "b,", '"', '""', "'", 'c"']), min_size=1, max_size=5), min_size=1, max_size=6
    )
)
def test_double_quotes_swallow_lines_as_in_the_csv_module(tmp_path_factory, found):
    path = tmp_path_factory.mktemp("csv") / "a.tsv"
    path.write_text("".join("".join(f"{word}\tO\n" for word in words) + "\n" for words in found))
    with open(path, newline="") as file:
        rows = list(csv.reader(file, delimiter="\t"))
    sentences = [sentence(*words) for words in found]
    assert COUNTS.count_csv_rows(sentences) == len([row for row in rows if row])
    assert COUNTS.count_csv_rows(sentences, blank=True) == len(rows) - 1


@each("total", [2, 5, 355])
def test_fifths_are_scikit_learns(total):
    from sklearn.model_selection import train_test_split

    rows = [make_masked(f"text {i}", "1") for i in range(total)]
    rest, dev = train_test_split(range(total), test_size=0.2, random_state=0)
    train, test = train_test_split(rest, test_size=0.2, random_state=0) if len(rest) > 1 else (rest[1:], rest[:1])
    assert COUNTS.count_fifths(rows) == {"train": len(train), "dev": len(dev), "test": len(test)}
    assert COUNTS.count_fifths([*rows, *rows]) == COUNTS.count_fifths(rows)  # distinct ones


# Pages


@each(
    ("ours", "reason", "explained", "verdict_and_note"),
    [
        (5, "", False, ("agrees", "")),
        (4, "", True, ("explained", "in words")),
        (4, "", False, ("differs", "-1; odd")),
        (float("nan"), "no file", False, ("n/a", "no file")),
        (float("nan"), "no file", True, ("explained", "in words")),  # by another set
    ],
)
def test_verdicts_on_a_printed_count(ours, reason, explained, verdict_and_note):
    assert COUNTS.judge(5, ours, reason, explained, "in words", "odd") == verdict_and_note


def without_punkt(table: bytes) -> list[bytes]:
    """Return the lines of a table, without those of ChemProt where NLTK cannot cut it into sentences."""
    return [line for line in table.splitlines() if chemprot.load_punkt() or b"ChemProt" not in line]


@pytest.fixture(scope="module")
def read_once():
    """Read each dataset once for all tables."""
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
    """It shows them without data, but then saves nothing; here it saves them."""
    shutil.copytree(RECORDED, own_outputs / "record/laptop/tables")
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "nowhere"))
    write = results.write_table
    monkeypatch.setattr(
        Study, "save", lambda _, name, what: isinstance(what, pd.DataFrame) and write("laptop", name, what)
    )
    run("11_corpus_sizes", scale="laptop")
    for name in ("corpora", "lee-1", "naseem-2", "wada-2", "gu-5"):
        assert paths.table("laptop", name).read_bytes() == (RECORDED / f"{name}.csv").read_bytes(), name
