"""The integer check, by hand and by brute force; errors of scores from the sampling of the test set; page 95."""

from itertools import product

import numpy as np
import pytest
from conftest import each
from notebook_code import definitions, run

from lib.study import paths, results

PAGE = definitions("95_integer_check", "POINT", "NO_LIMIT", "SIGMAS")


def percent(text: str) -> tuple:
    return PAGE.Printed.percent(float(text), len(text.partition(".")[2]))


def count(gold: int, precision: str = "", recall: str = "", f1: str = "", cut: bool = False) -> list:
    scores = [percent(text) if text else None for text in (precision, recall, f1)]
    return PAGE.find_counts(gold, *scores, cut).tolist()


@each(
    ("asked", "found"),
    [
        # BioBERT on NCBI disease, as in its journal article: exactly one set of counts fits.
        ((960, "88.22", "91.25", "89.71"), [[876, 993, 993]]),
        ((960, "88.22", "91.26"), []),  # 876 of 960 is 91.25, 877 is 91.35
        ((3, "66.7", "66.7", "66.6"), []),  # F1 rules it out
        ((3, "66.6", "66.6"), []),  # 66.66… is 66.7 rounded
        ((8, "100", "12"), [[1, 1, 1]]),  # 12.5: a tie may go either way
        ((8, "100", "13"), [[1, 1, 1]]),
        ((4, "", "", "80"), [[4, 6, 6]]),  # 2 * 4 / (4 + 6)
        ((1, "50"), [[1, 2, 2]]),
        ((1, "1"), [[1, 67, 200]]),  # 67 to 200 predicted all fit
        ((8, "0.0", "12.5"), [[1, 2000, PAGE.NO_LIMIT]]),  # 1 of 2,000 is 0.05, a tie
    ],
)
def test_counts_that_give_the_printed_scores(asked, found):
    assert count(*asked) == found


def test_digits_may_be_cut_off():
    assert count(3, "66.6", "66.6", "66.6", cut=True) == [[2, 3, 3]]
    assert count(8, "100", "13", cut=True) == [] and count(8, "100", "12", cut=True) == [[1, 1, 1]]
    assert PAGE.find_right(3, percent("66.6"), cut=True).tolist() == [2]


@each(
    ("of", "score", "right"),
    [(140, "85.71", [120]), (140, "85.72", []), (1422, "83.1", [1181, 1182]), (4000, "0.0", [0, 1, 2])],
)
def test_right_answers_of_a_printed_accuracy(of, score, right):
    assert PAGE.find_right(of, percent(score)).tolist() == right


def prints(part: int, of: int, units: int, whole: int) -> bool:
    return abs(2 * (whole * part - units * of)) <= of


@each(
    ("gold", "precision", "recall"),
    [(12, "1", "100"), (40, "62.5", "71.2"), (12, "0", "4")],
)
def test_the_chance_of_a_pair_by_brute_force(gold, precision, recall):
    printed_precision, printed_recall = percent(precision), percent(recall)
    most = 300 * gold if printed_precision.units < 3 else 3 * gold
    fit = [
        any(
            prints(right, gold, second, printed_recall.whole)
            and any(
                prints(right, predicted, first, printed_precision.whole) for predicted in range(max(1, right), most)
            )
            for right in range(gold + 1)
        )
        for first, second in product(printed_precision.near.tolist(), printed_recall.near.tolist())
    ]
    assert PAGE.chance_of_pair(gold, printed_precision, printed_recall) == pytest.approx(sum(fit) / len(fit))


def test_chance_of_one_score():
    right = [percent(f"{100 * n / 140:.2f}").units for n in range(141)]
    near = percent("85.71").near
    assert near[[0, -1]].tolist() == [8471, 8671]
    assert PAGE.chance_of_accuracy(140, percent("85.71")) == sum(units in right for units in near) / 201
    assert PAGE.chance_of_accuracy(1422, percent("83.0")) == 1
    assert PAGE.chance_of_f1(6325, percent("84.72")) == 1 > PAGE.chance_of_f1(20, percent("99.00"))


@pytest.mark.parametrize("f1", [0.3, 0.9])
def test_the_error_of_an_f1_equals_that_of_simulated_test_sets(f1):
    gold = 1000
    union = round(gold * (2 - f1))  # gold or predicted, if the two are equally many
    true_positives = np.random.default_rng(0).binomial(union, f1 / (2 - f1), 20_000)
    assert PAGE.error_of_f1(f1, gold) == pytest.approx(np.std(2 * true_positives / (union + true_positives)), rel=0.03)


def test_the_best_ties_with_scores_within_the_error_of_their_difference():
    scores = {"third": 0.80, "best": 0.90, "second": 0.89}
    assert PAGE.tie(scores, dict.fromkeys(scores, 0.03)) == ["best", "second"]  # 1.96 x 0.042: 0.083
    assert PAGE.tie(scores, dict.fromkeys(scores, 0.04)) == ["best", "second", "third"]


def test_the_page_makes_the_committed_table(tmp_path, monkeypatch):
    recorded = paths.recorded(paths.table("laptop", "integers")).read_bytes()
    monkeypatch.setattr(paths, "figure", lambda scale, key: tmp_path / key)
    monkeypatch.setattr(results, "write_csv", lambda path, table: table.to_csv(tmp_path / path.name, index=False))
    page = run("95_integer_check")
    assert (tmp_path / "integers.csv").read_bytes() == recorded and (tmp_path / "integers.svg").exists()
    checked = page["checked"]
    biobert = checked.query("paper == 'lee-biobert' and table == '4' and row != 'BC4CHEMD'")
    cells = page["count_fits"](biobert).iloc[0]
    assert cells[["cells", "fit", "with F1 too", "rare", "rare, fit"]].tolist() == [28, 6, 2, 12, 0]
    assert cells["by chance"] == pytest.approx(8, abs=0.1)
    assert not checked.duplicated(["paper", "table", "row", "column", "gold", "score"]).any()
    assert sum(finding.startswith("- ") for finding in page["findings"]) == 4
    ties = page["ties"].set_index(["table", "dataset"])
    assert (ties["tied"] >= 1).all() and (ties["tied"] <= ties["scores"]).all()
    assert ties.loc[("gu-6", "gad"), ["scores", "tied"]].tolist() == [9, 9]  # its test set has 534 sentences
