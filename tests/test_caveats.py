"""What the cells of tables and the runs come to, and which runs to be wary of."""

import pandas as pd
import pytest

from lib.study import caveats, paths, results
from lib.study.analysis import compare


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Two tables of three cells each: one agrees, one is below, the others could not be run for one reason."""
    monkeypatch.setattr(paths, "ROOT", tmp_path)

    def line(ours, verdict, note):
        values = ["p", "t", "r", "c", "F1", 80.0, None, ours, None, 3 if ours else 0, verdict, note]
        return dict(zip(results.COLUMNS, values, strict=True))

    first = [line(80.0, "agrees", ""), line(70.0, "below", ""), line(None, "n/a", "no data")]
    second = [line(None, "n/a", "no data"), line(None, "n/a", "no data"), line(None, "n/a", "no model")]
    for key, lines in (("lee-4", first), ("gu-6", second)):
        results.write_csv(paths.table("laptop", key), pd.DataFrame(lines))


def test_verdicts_are_counted_over_all_tables(tables):
    counted = compare.count_verdicts("laptop").set_index("table")
    assert counted.loc["lee-4", ["printed", "ours beside", "agrees", "below"]].tolist() == [3, 2, 1, 1]
    assert counted.loc["gu-6", "ours beside"] == 0


def test_what_is_counted_and_what_is_trained_agree_apart(tables):
    results.write_csv(paths.table("laptop", "gu-1"), pd.DataFrame([{"published": 1, "ours": 1, "verdict": "agrees"}]))
    parts = compare.split_verdicts(compare.count_verdicts("laptop"))
    said = {name: compare.describe_agreement(counts) for name, counts in parts.items()}
    assert said == {"what is counted": "1 of 1 agree", "scores of models": "1 of 2 agree, 1 below"}
    nothing = compare.split_verdicts(compare.count_verdicts("laptop").iloc[:0])
    assert {compare.describe_agreement(counts) for counts in nothing.values()} == {"none is judged"}


def test_runs_that_know_no_more_than_what_reads_no_text(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    runs = pd.DataFrame({"dataset": ["hoc", "hoc", "gad", "biosses"], "score": [31.18, 40.0, 70.0, 5.0]})
    monkeypatch.setattr(results, "gather", lambda scale: runs)
    assert caveats.list_trivial("laptop").empty and caveats.say_trivial("laptop") == []  # not yet audited
    leaks = [
        {"finding": "most frequent label", "dataset": "hoc", "score": 31.18, "note": "no label; score: always one"},
        {"finding": "most frequent label", "dataset": "gad", "score": 68.96, "note": "1; score: always 1"},
        {"finding": "dev is test", "dataset": "biosses", "score": 90.0, "note": ""},
    ]
    results.write_csv(paths.table("laptop", "leaks"), leaks)
    found = caveats.list_trivial("laptop").set_index("dataset")
    assert found["no better"].to_dict() == {"gad": 0, "hoc": 1} and found["runs"].to_dict() == {"gad": 1, "hoc": 2}
    assert found.loc["hoc", ["best of ours", "without reading", "which is"]].tolist() == [40.0, 31.18, "always one"]
    (said,) = caveats.say_trivial("laptop")
    assert said.startswith("1 of 3 fine-tuning runs") and said.endswith("on hoc.")


def test_devices_are_told_apart_where_there_are_several(monkeypatch):
    runs = pd.DataFrame({"model": ["a", "a", "b", "c", "b"], "device": ["GPU"] * 2 + ["CPU", "GPU", "CPU"]})
    monkeypatch.setattr(results, "gather", lambda scale: runs)
    (said,) = caveats.say_devices("laptop")
    assert said.startswith("3 of 5 fine-tuning runs were computed on GPU; 2 on CPU, of b: ")
    monkeypatch.setattr(results, "gather", lambda scale: runs[runs["device"] == "GPU"])
    assert caveats.say_devices("laptop") == []
