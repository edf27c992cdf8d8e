"""Tests of printed numbers: rounding, by hand; the page that recomputes them; numbers printed more than once."""

import pandas as pd
import pytest
from conftest import each
from notebook_code import definitions, run

from lib.errors import StudyError
from lib.study import page_jobs, params, paths, plan, printed, repeated, results
from lib.study.printed import Number, check, count, judge_number, read, wins


def numbers(text: str) -> list[Number]:
    return [Number.read(number) for number in text.split()]


def bounds(found: Number) -> tuple[float, float, float]:
    return tuple(round(value, 6) for value in (found.value, found.low, found.high))


# Numbers


@each(
    ("text", "expected"),
    [("0.80", (0.8, 0.795, 0.805)), ("8", (8, 7.5, 8.5)), ("-1.95", (-1.95, -1.955, -1.945))],
)
def test_a_number_of_a_text_is_uncertain_by_half_a_unit(text, expected):
    assert bounds(Number.read(text)) == expected
    assert str(Number.read(text)) == text


def test_cells_have_the_places_of_their_metric_and_counts_are_exact():
    assert bounds(printed.read_one("gu-10", "BIOSSES", "PubMed")) == (92.3, 92.295, 92.305)  # 92.30
    assert bounds(printed.read_one("wada-7", "SciBERT (Sci: SciVocab)", "Total")) == (82.0, 81.95, 82.05)
    assert str(printed.read_one("naseem-7", "MedSTS", "Base2")) == "85.00"
    assert bounds(printed.read_one("lee-3", "BC2GM", "train")) == (12573, 12573, 12573)
    assert printed.read_one("ozyurt-5", "BioASQ 5b reranking", "BERT Base").spread == 0.007


@each(
    ("found", "expected"),
    [
        (printed.mean(numbers("80.0 82.5")), (81.25, 81.2, 81.3)),
        (printed.total(numbers("2.5 0.8")), (3.3, 3.2, 3.4)),
        (printed.highest(numbers("80.0 82.0")), (82, 81.95, 82.05)),
        (printed.lowest(numbers("80.0 82.0")), (80, 79.95, 80.05)),
        (Number.read("82.0") - Number.read("79.0"), (3, 2.9, 3.1)),
        (Number.read("110") / Number.read("14"), (7.857143, 7.551724, 8.185185)),
        ((Number.read("100") / Number.read("62.5")).percent(less=100), (60, 59.072742, 60.928743)),
        (printed.f1(*numbers("1 3")), (1.5, 0.833333, 2.1)),  # bounds: F1 of 0.5 and 2.5, of 1.5 and 3.5
    ],
)
def test_what_follows_from_numbers_lies_between_what_follows_from_their_bounds(found, expected):
    assert bounds(found) == expected


def test_wins_are_counted_pair_by_pair_or_against_one_number():
    assert bounds(wins(numbers("81 79 80"), Number.read("80"))) == (1, 1, 2)  # 80 against 80 may be a win or not
    assert bounds(wins(numbers("80"), numbers("79 78 80.4"))) == (2, 2, 3)
    table = read("lee-4", "F1", rows=["BC2GM", "JNLPBA"])
    sides = table[["BioBERT (+PubMed)", "BioBERT (+PMC)"]], table[["State-of-the-art"] * 2]
    assert wins(*sides) == Number(4, 4, 4) and wins(*reversed(sides)) == Number(0, 0, 0)


@each(
    ("ours", "theirs", "message"),
    [
        (numbers("1 2 3"), numbers("1 2"), "3 numbers on one side, 2 on the other"),
        (pd.Series(numbers("1 2"), ["a", "b"]), pd.Series(numbers("1 2"), ["b", "a"]), "other rows: a, b and b, a"),
        (read("lee-3", rows=["BC2GM", "GAD"])["valid"], Number.read("1"), "a cell is not printed"),
    ],
)
def test_sides_that_do_not_fit_are_refused(ours, theirs, message):
    with pytest.raises(StudyError, match=message):
        wins(ours, theirs)


# Names


def test_rows_and_columns_are_as_printed_or_those_that_are_asked_for():
    assert list(read("wada-8")) == ["total", "clinical", "biomedical"]
    assert list(read("lee-5", "F1").index) == ["GAD", "EU-ADR", "CHEMPROT", "Average"]
    cells = read("lee-5", "F1", rows=["CHEMPROT", "GAD"], columns=["BERT (Wiki+Books)"])
    assert cells.map(str).to_numpy().tolist() == [["72.36"], ["79.33"]]
    assert list(read("lee-5", "F1", but=["Average", "State-of-the-art"])) == list(read("lee-5", "F1"))[1:]


@each(
    ("asked", "message"),
    [
        ({"table": "lee-33"}, "unknown table 'lee-33': did you mean lee-3"),
        ({"table": "lee-4"}, "lee-4 prints several metrics in a cell: name one of precision, recall, F1"),
        ({"table": "lee-4", "metric": "recal"}, "unknown metric of lee-4 'recal': did you mean recall"),
        ({"table": "gu-6", "rows": ["BC5-chemical"]}, "unknown row of gu-6 'BC5-chemical': did you mean BC5-chem"),
        ({"table": "naseem-7", "columns": ["STOA"]}, "unknown column of naseem-7 'STOA': did you mean SOTA"),
        ({"table": "gu-6", "but": ["BLURB"]}, "unknown row or column of gu-6 'BLURB': did you mean BLURB score"),
        ({"table": "gu-6", "metric": "Pearson", "rows": ["DDI"]}, "unknown row of gu-6 'DDI': known: BIOSSES"),
    ],
)
def test_names_that_are_not_printed_are_refused(asked, message):
    with pytest.raises(StudyError, match=message):
        read(**asked)


@each(
    ("paper", "stated", "message"),
    [
        ("lee-bert", "1.86", "unknown paper 'lee-bert': did you mean lee-biobert"),
        ("lee-biobert", 0.8, "0.8 is no printed number: give its digits in quotes"),  # a float loses trailing zeros
        ("lee-biobert", "1.86%", "'1.86%' is no printed number"),
    ],
)
def test_faults_of_a_statement_are_named(paper, stated, message):
    with pytest.raises(StudyError, match=message):
        check(paper, "abstract", "a gain", stated, Number.read("1"))


# Verdicts


@each(
    ("stated", "found", "verdict"),
    [
        ("90.34", (90.335, 90.33, 90.34), "agrees"),  # a tie may be rounded up or down
        ("90.33", (90.335, 90.33, 90.34), "agrees"),
        ("76.66", (76.6533, 76.6483, 76.6583), "rounding"),
        ("76.67", (76.6533, 76.6483, 76.6583), "differs"),
        ("82.8", (82.9, 82.85, 82.95), "differs"),  # one unit: no number rounds to both
    ],
)
def test_a_number_agrees_or_is_excused_by_rounding_or_differs(stated, found, verdict):
    judged = judge_number(Number.read(stated), Number(*found))
    assert judged["verdict"] == verdict
    assert judged["excused_by_rounding"] == ("no" if verdict == "differs" else "yes")
    assert judged["difference"] == round(float(stated) - found[0], 4)


def test_counts_are_not_rounded_and_cells_that_may_be_equal_excuse_them():
    def count_of(*found):
        judged = judge_number(Number.read("17"), Number(*found), exact=True)
        return judged["rounding"], judged["verdict"]

    assert [count_of(17, 17, 17), count_of(16, 16, 17), count_of(16, 16, 16)] == [
        (0, "agrees"), (0.5, "rounding"), (0, "differs"),
    ]  # fmt: skip


@each(("stated", "ours", "verdict"), [("2", "9 8 7", "agrees"), ("3", "9 8 5", "rounding"), ("3", "9 8 4", "differs")])
def test_words_may_say_at_least(stated, ours, verdict):
    row = count("gu-pubmedbert", "section 3", "wins", stated, numbers(ours), Number.read("5"), at_least=True, note="n")
    assert (row["verdict"], row["note"], row["kind"]) == (verdict, "at least; n", "text")


def test_the_mean_f1_of_runs_lies_below_the_f1_of_their_means():
    # Runs with precision 81 and 79 and recall 79 and 81: each F1 is 79.9875, the F1 of the means is 80.
    average_below = definitions("90_audit").average_below
    assert average_below(*[Number(80, 79.5, 80.5, spread=1.0)] * 2) == pytest.approx(0.0125)
    assert average_below(*numbers("80 80")) == 0
    f1 = printed.f1(*numbers("80.00 80.00"))
    assert judge_number(Number.read("79.98"), f1, averaging=0.0125)["verdict"] == "averaging"
    assert judge_number(Number.read("80.02"), f1, averaging=0.0125)["verdict"] == "differs"


# The page


def test_the_page_makes_the_committed_audit_and_says_how_it_came_out(own_outputs):
    recorded = (paths.ROOT / "outputs/record/laptop/tables/audit.csv").read_bytes()
    page = run("90_audit")
    assert paths.table("smoke", "audit").read_bytes() == recorded
    audit, notes = page["audit"], page["findings"]
    assert not audit.duplicated(["paper", "where", "what"]).any()
    assert len([line for line in notes if line.startswith("  - ")]) == (page["own"]["verdict"] == "differs").sum() > 0
    assert any("the best of 8 models above SOTA): 12.25 printed, 11.87 recomputed" in line for line in notes)
    exceptions = page["list_exceptions"](audit, "F1")
    assert set(exceptions["kind"]) == {"F1"} and exceptions["verdict"].drop_duplicates().tolist() == [
        "differs", "averaging", "rounding",
    ]  # fmt: skip


def test_lines_that_quote_a_sentence_have_few_words_and_the_numbers_that_they_are_held_against():
    audit = results.read_table(paths.recorded(paths.table("laptop", "audit")))
    quoted = audit[audit["note"].str.startswith('"', na=False)]
    words = quoted["note"].str.extract('^"([^"]+)"')[0].str.split().str.len()
    assert quoted["kind"].value_counts().to_dict() == {"text": 23, "two papers": 20}
    assert words.min() >= 3 and words.max() <= 15
    assert quoted[["printed", "recomputed"]].notna().all(axis=None)
    assert set(quoted["verdict"]) == {"differs"} and set(quoted["paper"]) == set(results.list_papers())


def test_the_audit_needs_no_data():
    jobs = plan.Plan("laptop", ["90"]).jobs
    assert {stage: keys for stage, keys in jobs.items() if keys} == {"page": [("90_audit",)]}
    assert ("90_audit",) in page_jobs.PAGES["01_results_in_brief"].reads(plan.Plan("smoke"))["page"]


# Numbers printed more than once


def test_every_name_of_what_is_printed_again_means_something():
    scores = repeated.list_all_printed()
    models, sets = set(scores["model"]), set(scores["set"])
    assert set(repeated.MODELS) <= set(params.keys("models")) and set(repeated.MODELS.values()) <= models
    assert set(repeated.SCORES) <= set(scores["metric"]) and set(repeated.MEANS.values()) <= sets
    for (table, column), quoted in repeated.QUOTED.items():
        rows = scores[(scores["table"] == table) & (scores["column"] == column)]
        assert dict(zip(rows["set"], rows["model"], strict=True)).items() >= quoted.items()
    places = set(scores["table"]) | set(scores["table"].str.split("-").str[0])
    for *tables, model, dataset, _ in repeated.read_reasons().itertuples(index=False):
        assert {*tables} <= places and model in {"", *models} and dataset in {"", *sets}


def test_notes_are_on_two_tables_in_either_order():
    note = repeated.describe_differences("wada-7", "gu-6", "BERT uncased", "DDI")
    assert note == repeated.describe_differences("gu-6", "wada-7", "BERT uncased", "DDI")
    assert note.endswith("wada: one run, as BLUE has them; BLUE leaves 90 training files out")
    assert repeated.describe_differences("gu-6", "gu-7", "PubMedBERT", "DDI") == ""
