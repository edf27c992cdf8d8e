"""What is printed of systems without a transformer: params/systems.yaml, and beside what was measured."""

import pandas as pd
import pytest

from lib.benchmarks import baseline_scores, registry
from lib.errors import StudyError
from lib.study import parsing, paths, results, systems

SOURCE = "sources: {x: {said: X, url: https://x.org}}\n"


def test_each_row_has_a_score_and_where_it_was_read():
    rows = systems.list_rows()
    assert len(rows) > 40 and {tuple(row) for row in rows} == {
        ("dataset", "metric", "kind", "method", "score", "note", "source")
    }
    assert all(1 < row["score"] <= 100 and "https://" in row["source"] for row in rows)
    keys = [(row["dataset"], row["method"], row["source"]) for row in rows]
    assert len(set(keys)) == len(keys)
    assert [row["dataset"] for row in rows] == sorted((key for key, *_ in keys), key=list(registry.DATASETS).index)
    known = systems.read_systems()
    assert {system.source for system in known.systems} == {*known.sources}  # none is left over


def test_a_score_that_a_paper_quotes_stands_in_its_table_alone():
    (found,) = [row["score"] for row in systems.list_rows() if row["dataset"] == "gad-biobert"]
    assert found == systems.find_score(["lee-biobert", "5", "GAD", "State-of-the-art", "F1"]) == 83.93
    with pytest.raises(StudyError, match="table 5 of lee-biobert has 0 cells GAD, nobody, F1"):
        systems.find_score(["lee-biobert", "5", "GAD", "nobody", "F1"])


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{method: m, source: x, scores: {ncbi-diseas: 80.0}}", "did you mean ncbi-disease"),
        ("{method: m, source: x, scores: {ncbi-disease: 0.8}}", "in percent"),
        ("{method: m, source: x, scores: {ncbi-disease: [lee-4, NCBI disease]}}", "a cell is paper, table, row"),
        ("{method: m, source: y, scores: {ncbi-disease: 80.0}}", "unknown source 'y'"),
        ("{method: m, scores: {ncbi-disease: 80.0}}", "source: Field required"),
    ],
)
def test_what_cannot_be_so_is_refused(tmp_path, entry, message):
    (tmp_path / "systems.yaml").write_text(f"{SOURCE}systems: [{entry}]\n")
    with pytest.raises(StudyError, match=f"systems.yaml: .*{message}"):
        parsing.read_yaml(tmp_path / "systems.yaml", systems.Systems)


def test_they_are_in_the_table_and_not_in_what_needs_no_encoder(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "output", lambda scale, *parts: tmp_path.joinpath(scale, *parts))
    scores = {"chance": 48.0, "without pretraining": 80.0, "unlabelled text": 81.0}
    measured = [{"dataset": "ncbi-disease", "metric": "f1", "kind": kind, "method": "m", "score": score}
                for kind, score in scores.items()]  # fmt: skip
    table = pd.DataFrame([*measured, *systems.list_rows()], columns=[*baseline_scores.COLUMNS, "source"])
    results.write_table("laptop", "baselines", table)
    assert results.read_baselines("laptop").values.tolist() == [["ncbi-disease", "f1", 48.0, 80.0, 81.0]]


def test_the_committed_table_holds_them_all():
    committed = results.read_table(paths.recorded(paths.table("laptop", "baselines")))
    rows = pd.DataFrame(systems.list_rows())
    printed = committed.loc[committed["kind"] == systems.KIND, rows.columns].fillna("")
    assert printed.values.tolist() == rows.values.tolist()
    assert committed.loc[committed["kind"] != systems.KIND, "source"].isna().all()
