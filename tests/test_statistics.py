"""Verdicts and tables: the rules as 00_start_here states them, on made-up scores."""

import json

import numpy as np
import pandas as pd
import pytest
from filled import fill

from lib import statistics
from lib.errors import StudyError
from lib.study import agreement, paths, results


@pytest.mark.parametrize(
    ("published", "ours", "verdict"),
    [(80.0, [79.0, 80.0, 81.0], "agrees"), (90.0, [79.0, 80.0, 81.0], "below"), (70.0, [79.0, 80.0, 81.0], "above"),
     (80.0, [80.0], "n/a"), (float("nan"), [80.0, 81.0], "n/a")],
)  # fmt: skip
def test_a_cell(published, ours, verdict):
    assert agreement.judge_cell(published, ours) == verdict


def test_a_cell_at_the_edge_of_the_interval():
    # mean 80, sd 1, n 4: the half width is t(0.975, 3) / 2 = 1.591
    ours = [79.0, 79.5, 80.5, 81.0]
    half = 3.182446 * np.std(ours, ddof=1) / 2
    assert agreement.judge_cell(80 + half - 0.01, ours) == "agrees"
    assert agreement.judge_cell(80 + half + 0.01, ours) == "below"


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [([[2.0, 2.5], [3.0, 2.2]], "holds"), ([[-2.0, -2.5], [-3.0, -2.2]], "fails"),
     ([[2.0, -2.5], [3.0, -2.2]], "undecided")],
)  # fmt: skip
def test_a_difference(differences, verdict):
    judged = statistics.judge_difference(differences)
    assert judged["verdict"] == verdict
    assert judged["effect"] == pytest.approx(np.mean([np.mean(d) for d in differences]))
    assert judged["ci_low"] <= judged["effect"] <= judged["ci_high"]
    assert judged == statistics.judge_difference(differences)


@pytest.mark.parametrize(
    ("relation", "margin", "mean", "verdict"),
    [("beats", 0, 2.0, "holds"), ("beats", 0, -2.0, "fails"), ("beats", 0, 0.3, "undecided"),
     ("as good as", 1, -0.3, "holds"), ("as good as", 1, -1.2, "undecided"), ("as good as", 1, -2.0, "fails"),
     ("equals", 1, 0.3, "holds"), ("equals", 1, 1.2, "undecided"), ("equals", 1, 2.0, "fails"),
     ("equals", 1, -2.0, "fails")],
)  # fmt: skip
def test_relations_and_margins(relation, margin, mean, verdict):
    means = np.linspace(mean - 0.5, mean + 0.5, 10_001)  # the interval is the mean +- 0.475
    judged = statistics.judge_means(means, relation, margin)
    assert judged["verdict"] == verdict and (judged["p"] < 0.05) == (verdict != "undecided")
    assert judged["ci_high"] - judged["ci_low"] == pytest.approx(0.95)


def test_p_is_twice_the_share_on_the_wrong_side():
    means = np.array([-1.0] * 2 + [1.0] * 198)
    assert statistics.judge_means(means)["p"] == pytest.approx(0.02)
    assert statistics.judge_means(-means)["p"] == pytest.approx(0.02)


def test_holm_s_correction():
    # sorted 0.01, 0.02, 0.04 times 3, 2, 1; never below the one before
    assert statistics.correct([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert statistics.correct([0.6, 0.5]) == [1.0, 1.0]


def test_the_bootstrap_draws_datasets_not_only_seeds():
    """Two datasets that disagree leave the claim open however well the seeds agree."""
    judged = statistics.judge_difference([[5.0, 5.0, 5.0], [-1.0, -1.0, -1.0]])
    assert judged["verdict"] == "undecided"
    assert (judged["ci_low"], judged["ci_high"]) == (-1.0, 5.0)


def rising(*slopes, spread=0.0):
    """Curves through 1, 10 and 100 with these slopes, and two seeds at every point that lie so far off."""
    places = list(enumerate((1.0, 10.0, 100.0)))
    return [[(x, [70 + slope * i - spread, 70 + slope * i + spread]) for i, x in places] for slope in slopes]


def test_a_slope_is_that_for_each_tenfold():
    assert statistics.find_slope([(1.0, [60.0]), (10.0, [61.0, 65.0]), (100.0, [66.0])]) == pytest.approx(3.0)
    # least squares by hand: places -1.5, -0.5, 0.5, 1.5; sum of products 4.5 + 0 + 0.5 + 3 = 8; of squares 5
    points = [(1.0, [-3.0]), (10.0, [0.0]), (100.0, [1.0]), (1000.0, [2.0])]
    assert statistics.find_slope(points) == pytest.approx(1.6)
    assert np.isnan(statistics.find_slope([(5.0, [1.0]), (5.0, [2.0])]))


@pytest.mark.parametrize(
    ("curves", "effect", "verdict"),
    [(rising(1.0, 2.0), 1.5, "holds"), (rising(-1.0, -2.0), -1.5, "fails"), (rising(1.0, -2.0), -0.5, "undecided"),
     (rising(0.1, 0.2, spread=5.0), 0.15, "undecided"), (rising(3.0), 3.0, "holds")],
)  # fmt: skip
def test_trends(curves, effect, verdict):
    judged = statistics.judge_trend(curves)
    assert judged["effect"] == pytest.approx(effect) and judged["verdict"] == verdict
    assert judged["n"] == sum(2 * 3 for _ in curves) and judged["ci_low"] <= judged["effect"] <= judged["ci_high"]
    assert judged == statistics.judge_trend(curves)


def test_slopes_are_for_ten_times_as_much_and_need_two_places():
    x, y = np.array([10, 100, 1000]), np.array([50.0, 52.0, 54.0])
    assert statistics.find_slopes(x, y) == pytest.approx(2) and np.isnan(statistics.find_slopes(x[:1], y[:1]))
    assert np.isnan(statistics.find_slopes(x, np.nan * y))


def test_the_spread_of_seeds_widens_a_trend():
    """One curve of slope 1: a draw's is 1 + (a - b) / 2, where a and b are -5, 0 or 5 with chances 1/4, 1/2, 1/4."""
    judged = statistics.judge_trend(rising(1.0, spread=5.0))
    assert (judged["ci_low"], judged["ci_high"]) == (-4.0, 6.0)


def test_a_cloud_is_resampled_over_its_points():
    falling = [(10.0 * 2**i, [10.0 - 2 * i, 10.2 - 2 * i]) for i in range(8)]
    judged = statistics.judge_cloud(falling)
    assert judged["effect"] == pytest.approx(-2 / np.log10(2)) and judged["verdict"] == "fails" and judged["n"] == 16
    outlier = [*[(x, [5.0]) for x, _ in falling], (10_000.0, [50.0])]  # one set makes the slope
    assert statistics.judge_cloud(outlier)["verdict"] == "undecided"
    two = [(1.0, [1.0]), (10.0, [2.0])]  # draws of one point twice have no slope
    assert statistics.judge_cloud(two)["ci_low"] == 1.0


@pytest.fixture
def laptop_results(tmp_path, monkeypatch):
    """Results at laptop scale on one dataset, where only that dataset is at hand."""
    monkeypatch.setattr(paths, "output", lambda scale, *parts: tmp_path.joinpath("outputs", scale, *parts))
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    folder = tmp_path / "ner" / "ncbi-disease"
    folder.mkdir(parents=True)
    for split in ("train", "dev", "test"):
        (folder / f"{split}.tsv").write_text("a\tO\n")
    for model, f1 in (("bert-random", 60.0), ("bert-general", 70.0), ("bert-general-pubmed", 75.0)):
        scores = [{"precision": f1, "recall": f1, "f1": f1 + s} for s in (1, 2, 3)]
        runs = [
            {"seed": s, "fold": 1, "scores": found, "instances": {"train": 2000}} for s, found in enumerate(scores, 1)
        ]
        path = paths.results("laptop", model, "ncbi-disease", "lee")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"model": model, "dataset": "ncbi-disease", "setting": "lee", "runs": runs}))
    return tmp_path


def test_the_table_has_every_printed_cell_with_ours_or_a_reason(laptop_results):
    table = fill("lee-4")
    printed = results.read_published("lee-biobert", "4")
    assert table["published"].notna().sum() == len(printed) == 150
    assert (table["ours"].notna() | (table["note"] != "")).all()
    cell = table[(table["row"] == "NCBI disease") & (table["metric"] == "F1")].set_index("column")
    assert cell.loc["BERT (Wiki+Books)", ["ours", "ours_std", "n_seeds", "verdict"]].tolist() == [72.0, 1.0, 3, "below"]
    assert cell.loc["Random initialisation", "note"] == "not in the paper"
    assert pd.isna(cell.loc["BioBERT (+PMC)", "ours"])
    other = table[(table["row"] == "BC2GM") & (table["column"] == "BERT (Wiki+Books)")]
    assert other["note"].str.startswith("BC2GM: no ").all()


def test_damaged_results_are_named(laptop_results):
    paths.results("laptop", "bert-general", "ncbi-disease", "lee").write_text('{"runs": [')
    with pytest.raises(StudyError, match="bert-general--ncbi-disease--lee.json: damaged"):
        fill("lee-4")


@pytest.fixture
def two_tables(tmp_path, monkeypatch):
    """Two tables of three cells each: one agrees, one is below, the others could not be run for one reason."""
    monkeypatch.setattr(paths, "ROOT", tmp_path)

    def line(ours, verdict, note):
        values = ["p", "t", "r", "c", "F1", 80.0, None, ours, None, 3 if ours else 0, verdict, note]
        return dict(zip(results.COLUMNS, values, strict=True))

    first = [line(80.0, "agrees", ""), line(70.0, "below", ""), line(None, "n/a", "no data")]
    second = [line(None, "n/a", "no data"), line(None, "n/a", "no data"), line(None, "n/a", "no model")]
    for key, lines in (("lee-4", first), ("gu-6", second)):
        results.write_csv(paths.table("laptop", key), pd.DataFrame(lines))


def test_verdicts_are_counted_over_all_tables(two_tables):
    counted = agreement.count_verdicts("laptop").set_index("table")
    assert counted.loc["lee-4", ["printed", "ours beside", "agrees", "below"]].tolist() == [3, 2, 1, 1]
    assert counted.loc["gu-6", "ours beside"] == 0


def test_what_is_counted_and_what_is_trained_agree_apart(two_tables):
    results.write_csv(paths.table("laptop", "gu-1"), pd.DataFrame([{"published": 1, "ours": 1, "verdict": "agrees"}]))
    parts = agreement.split_verdicts(agreement.count_verdicts("laptop"))
    said = {name: agreement.describe_agreement(counts) for name, counts in parts.items()}
    assert said == {"what is counted": "1 of 1 agree", "scores of models": "1 of 2 agree, 1 below"}
    nothing = agreement.split_verdicts(agreement.count_verdicts("laptop").iloc[:0])
    assert {agreement.describe_agreement(counts) for counts in nothing.values()} == {"none is judged"}
