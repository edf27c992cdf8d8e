"""Tests of printed numbers: rounding, by hand; the page that recomputes them; numbers printed more than once."""

import pandas as pd
import pytest
from conftest import each
from notebook_code import definitions, run

from lib.errors import StudyError
from lib.study import params, paths, printed, repeated, results
from lib.study.printed import Number, check, judge_number, read, wins


def numbers(text: str) -> list[Number]:
    return [Number.read(number) for number in text.split()]


def bounds(found: Number) -> tuple[float, float, float]:
    return tuple(round(value, 6) for value in (found.value, found.low, found.high))


# Numbers


def test_a_printed_number_is_uncertain_by_half_a_unit():
    assert bounds(Number.read("0.80")) == (0.8, 0.795, 0.805) and str(Number.read("0.80")) == "0.80"
    assert bounds(Number.read("-1.95")) == (-1.95, -1.955, -1.945)


@each(
    ("found", "expected"),
    [
        (printed.mean(numbers("80.0 82.5")), (81.25, 81.2, 81.3)),
        (printed.total(numbers("2.5 0.8")), (3.3, 3.2, 3.4)),
        (printed.highest(numbers("80.0 82.0")), (82, 81.95, 82.05)),
        (Number.read("82.0") - Number.read("79.0"), (3, 2.9, 3.1)),
        (Number.read("110") / Number.read("14"), (7.857143, 7.551724, 8.185185)),
        ((Number.read("100") / Number.read("62.5")).percent(less=100), (60, 59.072742, 60.928743)),
        (printed.f1(*numbers("1 3")), (1.5, 0.833333, 2.1)),  # bounds: F1 of 0.5 and 2.5, of 1.5 and 3.5
    ],
)
def test_the_bounds_of_a_result_follow_from_those_of_its_numbers(found, expected):
    assert bounds(found) == expected


def test_wins_are_counted_pair_by_pair_or_against_one_number():
    assert bounds(wins(numbers("81 79 80"), Number.read("80"))) == (1, 1, 2)  # 80 against 80 may be a win or not
    assert bounds(wins(numbers("80"), numbers("79 78 80.4"))) == (2, 2, 3)


@each(
    ("ask", "message"),
    [
        (lambda: wins(numbers("1 2 3"), numbers("1 2")), "3 numbers on one side, 2 on the other"),
        (
            lambda: wins(pd.Series(numbers("1 2"), ["a", "b"]), pd.Series(numbers("1 2"), ["b", "a"])),
            "other rows: a, b and b, a",
        ),
        (lambda: wins(read("lee-3", rows=["BC2GM", "GAD"])["valid"], Number.read("1")), "a cell is not printed"),
        (lambda: read("lee-4"), "lee-4 prints several metrics in a cell: name one of precision, recall, F1"),
        (lambda: read("naseem-7", columns=["STOA"]), "unknown column of naseem-7 'STOA': did you mean SOTA"),
        (lambda: read("gu-6", but=["BLURB"]), "unknown row or column of gu-6 'BLURB': did you mean BLURB score"),
        (lambda: check("lee-bert", "abstract", "a gain", "1.86", Number.read("1")), "unknown paper 'lee-bert'"),
        # A float loses trailing zeros.
        (lambda: check("lee-biobert", "abstract", "a gain", 0.8, Number.read("1")), "0.8 is no printed number"),
    ],
)
def test_faulty_questions_are_refused(ask, message):
    with pytest.raises(StudyError, match=message):
        ask()


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


@each(
    ("found", "rounding", "verdict"),
    [((17, 17, 17), 0, "agrees"), ((16, 16, 17), 0.5, "rounding"), ((16, 16, 16), 0, "differs")],
)
def test_a_count_is_exact_unless_cells_may_be_equal(found, rounding, verdict):
    judged = judge_number(Number.read("17"), Number(*found), exact=True)
    assert (judged["rounding"], judged["verdict"]) == (rounding, verdict)


def test_the_mean_f1_of_runs_lies_below_the_f1_of_their_means():
    # Runs with precision 81 and 79 and recall 79 and 81: each F1 is 79.9875, the F1 of the means is 80.
    average_below = definitions("90_audit").average_below
    assert average_below(*[Number(80, 79.5, 80.5, spread=1.0)] * 2) == pytest.approx(0.0125)
    assert average_below(*numbers("80 80")) == 0
    f1 = printed.f1(*numbers("80.00 80.00"))
    assert judge_number(Number.read("79.98"), f1, averaging=0.0125)["verdict"] == "averaging"
    assert judge_number(Number.read("80.02"), f1, averaging=0.0125)["verdict"] == "differs"


# The page


def test_the_page_makes_the_committed_audit(own_outputs):
    recorded = (paths.ROOT / "outputs/record/laptop/tables/audit.csv").read_bytes()
    page = run("90_audit")
    assert paths.table("smoke", "audit").read_bytes() == recorded
    audit, findings = page["audit"], page["findings"]
    assert not audit.duplicated(["paper", "where", "what"]).any()
    differing = [line for line in findings if line.startswith("  - ")]
    assert len(differing) == (page["own"]["verdict"] == "differs").sum() > 0
    assert any("the best of 8 models above SOTA): 12.25 printed, 11.87 recomputed" in line for line in findings)
    exceptions = page["list_exceptions"](audit, "F1")
    assert exceptions["verdict"].drop_duplicates().tolist() == ["differs", "averaging", "rounding"]


def test_quotations_are_short_and_stand_beside_both_numbers():
    audit = results.read_table(paths.recorded(paths.table("laptop", "audit")))
    quoted = audit[audit["note"].str.startswith('"', na=False)]
    words = quoted["note"].str.extract('^"([^"]+)"')[0].str.split().str.len()
    assert words.min() >= 3 and words.max() <= 15
    assert quoted[["printed", "recomputed"]].notna().all(axis=None)
    assert set(quoted["verdict"]) == {"differs"} and set(quoted["paper"]) == set(results.list_papers())


# Numbers printed more than once


def test_repeated_scores_name_printed_models_datasets_and_tables():
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


def test_a_difference_between_two_tables_is_noted_in_either_order():
    note = repeated.describe_differences("wada-7", "gu-6", "BERT uncased", "DDI")
    assert note == repeated.describe_differences("gu-6", "wada-7", "BERT uncased", "DDI")
    assert note.endswith("wada: one run, as BLUE has them; BLUE leaves 90 training files out")
    assert repeated.describe_differences("gu-6", "gu-7", "PubMedBERT", "DDI") == ""
