"""Every rule of counting by hand; what is said of a printed count; how many of the real ones agree."""

import csv
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.benchmarks import chemprot, datasets, registry
from lib.benchmarks.instances import Labelled, Mention, Pair, Question, Relation, Sentence, Span
from lib.errors import StudyError
from lib.study import params, results
from lib.study.analysis import counts

QUICK = settings(max_examples=25, deadline=None)
ENDS = Mention("", "GENE", 0, 6), Mention("", "DISEASE", 7, 16)
TAGGED = [
    Sentence(["An", "ulcer", "of", "skin"], ["O", "B", "O", "B-Part"]),
    Sentence(["It"], ["O"]),
    Sentence(["Old", "ulcer"], ["I-PAR", "I-INT|I-PAR"]),
]
QUESTIONS = [
    Question("1", "Who?", ("I.", "He."), ("He",), (Span(1, 0, 2),)),
    Question("1", "Who?", ("She.",), ("He",), ()),
    Question("2", "Why?", ("So.",), ("no",), ()),
]


@pytest.fixture(autouse=True)
def fresh():
    """Nothing that an earlier test counted."""
    counts.count.cache_clear()
    yield
    counts.count.cache_clear()


def relation(id: str, text: str, label: str) -> Relation:
    return Relation(id, f"@GENE$ {text} @DISEASE$", *ENDS, label, masked=True)


def sentence(*words: str) -> Sentence:
    return Sentence(list(words), ["O"] * len(words))


# Rules


@pytest.mark.parametrize(
    ("rule", "found", "expected"),
    [
        ("instances", TAGGED, 3),
        ("sentences", TAGGED, 3),
        ("sentences less one", TAGGED, 2),
        ("entities", TAGGED, 2),
        ("words", TAGGED, 7),
        ("words in elements", [TAGGED[2]], 3),  # one word is in two elements
        ("positive relations", [relation("1", "x", label) for label in ("1", "0", "false", "DDI-false", "CPR:3")], 2),
        ("questions", QUESTIONS, 2),
        ("passages", QUESTIONS, 4),
    ],
)
def test_rules_by_hand(rule, found, expected):
    assert counts.COUNTS[rule](found) == expected


def test_distinct_rows_are_of_text_and_label():
    rows = [relation("1", "a", "1"), relation("2", "a", "1"), relation("3", "a", "0"), relation("4", "b", "1")]
    assert counts.distinct(rows) == 3
    assert counts.distinct([Pair("1", "a", "b", "yes"), Pair("2", "a", "b", "yes"), Pair("3", "a", "c", "yes")]) == 2


@pytest.mark.parametrize(
    ("found", "rows", "lines"),
    [
        ([sentence("a", "b"), sentence("c")], 3, 4),  # and the blank line between them
        ([sentence("a", '"', "b", '"', "c")], 3, 3),  # `a`, one from quote to quote, `c`
        ([sentence("a", '"'), sentence("b", '"'), sentence("c")], 3, 4),  # the blank line between the quotes is gone
        ([sentence("a", '"'), sentence("b")], 2, 1),  # no second one: all to the end of the file
        ([sentence('"a"', "b")], 2, 2),  # a field in quotes that ends where it began
        ([sentence('a"', "b")], 2, 2),  # a quote within a word is one of its letters
        ([], 0, -1),
    ],
)
def test_a_double_quote_swallows_lines(found, rows, lines):
    assert counts.csv_rows(found, blank=False) == counts.COUNTS["rows of a CSV reader"](found) == rows
    assert counts.csv_rows(found, blank=True) == counts.COUNTS["lines of a CSV reader"](found) == lines


def test_a_field_of_the_reader_may_be_as_long_as_a_file():
    long = [sentence('"', *["word"] * 40_000, '"')]
    assert counts.csv_rows(long, blank=False) == 1


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
    assert counts.csv_rows(sentences, blank=False) == len([row for row in rows if row])
    assert counts.csv_rows(sentences, blank=True) == len(rows) - 1


@pytest.mark.parametrize("total", [2, 5, 9, 10, 355, 5122])
def test_fifths_are_scikit_learns(total):
    from sklearn.model_selection import train_test_split

    rows = [relation(str(i), f"text {i}", "1") for i in range(total)]
    rest, dev = train_test_split(range(total), test_size=0.2, random_state=0)
    train, test = train_test_split(rest, test_size=0.2, random_state=0) if len(rest) > 1 else (rest[1:], rest[:1])
    assert counts.fifths(rows) == (len(train), len(dev), len(test))
    assert counts.fifths([*rows, *rows]) == counts.fifths(rows)  # distinct ones
    names = (
        "distinct rows after two fifths",
        "a fifth of the distinct rows",
        "a fifth of the rest of the distinct rows",
    )
    assert tuple(counts.COUNTS[name](rows) for name in names) == counts.fifths(rows)


# Counts of the registry


@pytest.fixture
def made_up_sets(monkeypatch):
    """Two sets: one of 5 and 2 sentences in train and test, with a development set that is missing; one of 4."""
    sizes = {"one": {"train": 5, "test": 2}, "other": {"train": 4}}
    files = {"one": dict.fromkeys(("train", "dev", "test"), ()), "other": {"train": ()}}
    rows = {
        key: datasets.Dataset(key, f"Set {key}", "tagging", "", "entity-f1", list, files[key], "bc2gm") for key in sizes
    }
    monkeypatch.setattr(registry, "DATASETS", rows)
    monkeypatch.setattr(datasets.Dataset, "load", lambda one, split: [sentence("a", "b")] * sizes[one.key][split])
    monkeypatch.setattr(
        datasets.Dataset, "missing", property(lambda one: {s: "no file" for s in one.files if s not in sizes[one.key]})
    )
    return rows


def test_count_of_a_split_and_of_all(made_up_sets):
    assert counts.count("one", "train", "sentences", "laptop") == 5
    assert counts.count("one", "test", "words", "laptop") == 4
    assert counts.count("other", "all", "sentences", "laptop") == 4
    with pytest.raises(StudyError, match="unknown rule of counting 'sentence': did you mean sentences"):
        counts.count("one", "train", "sentence", "laptop")


@pytest.mark.parametrize(
    ("dataset", "split", "reason"),
    [
        ("one", "train", ""),
        ("one", "dev", "no file"),
        ("one", "all", "the dev split is not at hand: no file"),
        ("other", "test", "Set other has no test split here"),
        ("other", "all", ""),
    ],
)
def test_why_a_split_cannot_be_counted(made_up_sets, dataset, split, reason):
    assert counts.why_not(dataset, split, "laptop") == reason


ROW = params.CountRow(
    dataset="one",
    count="sentences",
    otherwise={
        "train": params.Count(count="words", why="counted in words"),
        "dev": params.Count(dataset="other", split="train", why="of another set"),
    },
    remarks={"test": "a known oddity"},
)


@pytest.mark.parametrize(
    ("column", "published", "ours", "verdict", "note"),
    [
        ("train", 5, 5, "agrees", ""),
        ("train", 10, 5, "explained", "counted in words"),
        ("train", 9, 5, "differs", "-4; no rule found that gives it"),
        ("test", 1, 2, "differs", "+1; a known oddity"),
        ("dev", 4, None, "explained", "of another set"),  # also where ours is not at hand
        ("dev", 3, None, "n/a", "no file"),
    ],
)
def test_verdicts(made_up_sets, column, published, ours, verdict, note):
    judged = counts.judge_count(ROW, column, column, published, 99, "laptop")
    assert (judged["verdict"], judged["note"]) == (verdict, note)
    assert np.isnan(judged["ours"]) if ours is None else judged["ours"] == ours


@pytest.mark.parametrize(("row_sum", "verdict"), [(4, "explained"), (5, "differs")])
def test_the_sum_of_a_row_explains_its_cells(made_up_sets, row_sum, verdict):
    row = params.CountRow(dataset="other", count="sentences", sum_of=params.Count(why="divided otherwise"))
    assert counts.judge_count(row, "train", "train", 3, row_sum, "laptop")["verdict"] == verdict
    assert counts.judge_count(row, "test", "test", 1, row_sum, "laptop")["verdict"] == (
        "explained" if verdict == "explained" else "n/a"
    )


@pytest.fixture
def made_up_table(made_up_sets, monkeypatch):
    """A printed table of three rows: ours, not run, and one whose train column is of all splits together."""
    table = params.CountTable(
        title="T", paper="gu-pubmedbert", table="3", notebook="13_dataset_counts", kind="counts",
        columns={"training": "train", "held out": "test"},
        rows={"One": ROW.model_copy(update={"otherwise": {}, "remarks": {}}),
              "Other": params.CountRow(dataset="other", count="words", splits={"training": "all"})},
        not_run={"Third": "never published"},
    )  # fmt: skip
    printed = [("One", "training", 5), ("One", "held out", 3), ("Other", "training", 8), ("Third", "training", 7)]
    cells = pd.DataFrame(printed, columns=["row", "column", "value"])
    cells = cells.assign(paper="gu-pubmedbert", table="3", metric="instances", std=None)
    load = params.load
    monkeypatch.setattr(params, "load", lambda kind, key: table if kind == "tables" else load(kind, key))
    monkeypatch.setattr(results, "read_published", lambda paper, number: cells)
    return table


def test_a_table_of_counts(made_up_table):
    cells = counts.build_counts("gu-3", "laptop")
    assert list(cells.columns) == results.COLUMNS
    assert cells["verdict"].tolist() == ["agrees", "differs", "agrees", "n/a"]
    assert cells["ours"].tolist()[:3] == [5, 2, 8] and np.isnan(cells["ours"][3])
    assert cells["note"].tolist() == ["", "-1; no rule found that gives it", "", "never published"]
    said = counts.describe_counts(cells, "laptop")
    assert said.splitlines() == [
        "- Of 4 printed counts 2 are ours, 0 are explained, 1 differ, and 1 cannot be tried.",
        "- One, held out: 3 printed, 2 here.",
    ]


def test_made_up_data_have_no_verdict(made_up_table):
    cells = counts.build_counts("gu-3", "smoke")
    assert (cells["verdict"] == "n/a").all() and cells["ours"].notna().sum() == 3
    assert set(cells["note"]) == {results.MADE_UP, "never published"}
    assert "none of the 4 printed counts is judged" in counts.describe_counts(cells, "smoke")


def test_rules_are_listed():
    listed = counts.list_rules("naseem-6")
    table = params.load("tables", "naseem-6")
    assert listed["row"].nunique() == len(table.rows) and set(listed["count"]) <= set(counts.COUNTS)
    assert (listed[listed["row"] == "HoC"]["column"] == ["all", "their sum"]).all()
    assert (listed["why"] != "").sum() == sum(len(r.otherwise) + bool(r.sum_of) for r in table.rows.values())


# Pages


@pytest.mark.parametrize(
    ("family", "found", "said"),
    [
        ("tagging", TAGGED[:2], "2 entities, 5 words"),
        ("pico", [TAGGED[2]], "3 words in elements, 2 words"),
        ("relations", [relation("1", "x", "1"), relation("2", "x", "0")], "1 positive"),
        ("questions", QUESTIONS, "4 passages, 2 questions without an answer in them"),
        ("ranking", [Pair("1", "Q", "a", "1", "q"), Pair("2", "Q", "b", "0", "q")], "1 questions"),
        ("documents", [Labelled("1", ("One.", "Two."), ())], "2 sentences"),
        ("similarity", [Pair("1", "a", "b", 1.0)], ""),
    ],
)
def test_what_a_split_holds(family, found, said):
    assert counts.describe_content(family, found) == said


def test_every_dataset_is_listed_with_its_names_in_the_papers(tmp_path, monkeypatch):
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    listed = counts.list_datasets("laptop").set_index("key")
    assert list(listed.index) == list(registry.DATASETS)
    assert listed["state"].str.contains(r"\./run_all\.sh data ").all() and (listed["licence"] != "").all()
    assert listed.loc["bc2gm", "in the papers"] == "gu-3: BC2GM; lee-3: BC2GM; naseem-6: BC2GM; ozyurt-1: BC2GM"
    assert listed.loc["gad-biobert", "splits"] == "train, test in 10 folds"
    assert counts.count_datasets("laptop").empty


def test_splits_at_hand_are_counted(made_up_sets):
    assert counts.count_datasets("laptop").to_dict("list") == {
        "dataset": ["one", "one", "other"],
        "split": ["train", "test", "train"],
        "fold": ["", "", ""],
        "instances": [5, 2, 4],
        "counted besides": ["0 entities, 10 words", "0 entities, 4 words", "0 entities, 8 words"],
    }


# Real data. Rows of sets that are not at hand, and ChemProt's without NLTK's punkt, are left out.

NOT_AT_HAND = {
    "gu-3": {"EBM PICO"},
    "lee-3": {"2010 i2b2/VA", "BC4CHEMD"},
    "naseem-6": {"Share/Clefe", "i2b2", "MedNLI", "MedSTS"},
    "ozyurt-1": {"BC4CHEMD"},
}
CHEMPROT = {"gu-3": "agrees agrees agrees", "naseem-6": "differs agrees differs"}


@pytest.fixture(scope="module")
def load_once():
    """Dataset.load with a memory, as four tables count the same sets."""
    load, known = datasets.Dataset.load, {}

    def load_once(dataset: datasets.Dataset, split: str) -> list:
        if (dataset.key, split) not in known:
            known[dataset.key, split] = load(dataset, split)
        return known[dataset.key, split]

    return load_once


@pytest.fixture
def judge(real_data, monkeypatch, load_once):
    """The verdicts on the cells of a printed table whose rows are chosen."""
    monkeypatch.setattr(datasets.Dataset, "load", load_once)

    def build(key: str, chosen) -> list[str]:
        table = params.load("tables", key)
        printed = results.read_published(table.paper, table.table)
        monkeypatch.setattr(results, "read_published", lambda *_: printed[printed["row"].map(chosen)])
        return counts.build_counts(key, "laptop")["verdict"].tolist()

    return build


@pytest.mark.parametrize(
    ("key", "agree", "explained", "differ"),
    [("gu-3", 32, 1, 0), ("lee-3", 12, 15, 2), ("naseem-6", 11, 19, 9), ("ozyurt-1", 18, 0, 0)],
)
def test_real_counts(judge, key, agree, explained, differ):
    left_out = NOT_AT_HAND[key] | ({"ChemProt"} if key in CHEMPROT else set())
    verdicts = Counter(judge(key, lambda row: row not in left_out))
    assert (verdicts["agrees"], verdicts["explained"], verdicts["differs"]) == (agree, explained, differ)


@pytest.mark.parametrize("key", CHEMPROT)
def test_real_counts_of_chemprot(judge, key):
    try:
        chemprot.load_punkt()
    except StudyError as reason:
        pytest.skip(str(reason))
    assert judge(key, lambda row: row == "ChemProt") == CHEMPROT[key].split()
