"""Which runs fill which cell, whatever a table's rows and columns are."""

import numpy as np
import pandas as pd
import pytest

from lib.study import params, results
from lib.study.analysis import cells, compare
from lib.study.study import Study


@pytest.fixture
def scores(monkeypatch):
    """The scores of runs that exist: (model, dataset, protocol) -> those of seeds 1 and 2."""
    known = {}

    def read(scale, *run):
        if run not in known:
            return None
        names = ("f1", "pearson", "accuracy", "precision", "recall")
        pairs = zip((1, 2), known[run], strict=True)
        return {"runs": [{"seed": seed, "scores": dict.fromkeys(names, value)} for seed, value in pairs]}

    monkeypatch.setattr(results, "read", read)
    monkeypatch.setattr(cells, "find_obstacle", lambda *_: "")
    return known


def one(table, row, column):
    (line,) = table[(table["row"] == row) & (table["column"] == column)].to_dict("records")
    return line


def test_rows_and_columns_may_be_models_datasets_or_protocols(scores):
    scores["pubmedbert", "bc5cdr-chem", "gu-bilstm"] = (80.0, 82.0)
    scores["pubmedbert", "ddi", "gu-markers"] = (60.0, 62.0)
    scores["bluebert-pubmed", "biosses", "wada"] = (70.0, 74.0)
    line = one(cells.build("gu-12", "laptop"), "BC5-chem", "Bi-LSTM")
    assert (line["ours"], line["n_seeds"]) == (81.0, 2) and line["ours_std"] == pytest.approx(2**0.5, abs=0.01)
    assert one(cells.build("gu-14", "laptop"), "entity markers / [CLS]", "DDI")["ours"] == 61.0
    assert one(cells.build("wada-7", "paper"), "BlueBERT (W + BC/ P: BaseVocab)", "BIOSSES")["ours"] == 72.0
    assert one(cells.build("gu-12", "laptop"), "BC5-chem", "Linear layer")["note"] == results.NOT_MADE


def test_a_mean_over_groups_needs_every_set(scores):
    sets = [["a", "b"], ["c"]]
    cell = cells.Cell("mean", "model", "macro average", 1.0, np.nan, "m", sets, "p", "", "")
    assert cell.runs == [("m", "a", "p"), ("m", "b", "p"), ("m", "c", "p")]
    scores |= {("m", "a", "p"): (10.0, 20.0), ("m", "b", "p"): (30.0, 40.0)}
    assert cells.read_scores(cell, "f1", "laptop") is None
    scores["m", "c", "p"] = (60.0, 60.0)
    assert cells.read_scores(cell, "f1", "laptop") == {1: 40.0, 2: 45.0}  # (20 + 60) / 2, (30 + 60) / 2


def test_what_cannot_be_run_says_why(monkeypatch):
    monkeypatch.setattr(Study, "why_not", lambda _, key, protocol: "not at hand" if key == "mednli" else "")
    assert cells.find_obstacle("pubmedbert", [["mednli"]], "paper") == "not at hand"
    assert cells.find_obstacle("pubmedbert", [["mednli", "biosses"]], "paper") == "a mean of 2 sets; missing: mednli"
    assert "Semantic Scholar" in cells.find_obstacle("scibert-cased", [["biosses"]], "paper")
    assert cells.find_obstacle("roberta", [["biosses"]], "smoke") == "outside the budget of scale 'smoke'"
    assert cells.find_obstacle("", [["biosses"]], "paper") == "no run is assigned to this cell"
    assert cells.find_obstacle("tfidf-svm", [["jmed-crade"]], "smoke") == ""


def change_scale(monkeypatch, **changes):
    """Let the scale laptop have other settings."""
    load, changed = params.load, params.load("scales", "laptop").model_copy(update=changes)
    monkeypatch.setattr(params, "load", lambda *named: changed if named == ("scales", "laptop") else load(*named))


def test_panels_fill_cells_of_models_that_are_not_compared(monkeypatch):
    monkeypatch.setattr(Study, "why_not", lambda *_: "")
    panel = params.Panel(protocol="gu", models=["pubmedbert-half"], datasets=["gad", "ddi"])
    change_scale(monkeypatch, compared=["bert-general"], panels=[panel])
    outside = "outside the budget of scale 'laptop'"
    assert cells.find_obstacle("bert-general", [["hoc"]], "laptop", "lee") == ""
    assert cells.find_obstacle("pubmedbert-half", [["gad"], ["ddi"]], "laptop", "gu") == ""
    assert cells.find_obstacle("pubmedbert-half", [["gad", "hoc"]], "laptop", "gu") == outside
    assert cells.find_obstacle("pubmedbert-half", [["gad"]], "laptop", "gu-bilstm") == outside


def test_a_scale_may_run_one_thing_in_place_of_another(scores, monkeypatch):
    instead = params.Instead(models={"biobert-1m": "bert-general-pubmed"}, protocols={"wada": "gu"})
    change_scale(monkeypatch, compared=None, instead=instead)
    scores["bert-general-pubmed", "biosses", "gu"] = (70.0, 74.0)
    line = one(cells.build("wada-7", "laptop"), "BioBERT (W + BC/ P: BaseVocab)", "BIOSSES")
    assert line["ours"] == 72.0 and line["note"] == "bert-general-pubmed in place of biobert-1m, gu in place of wada"
    assert ("bert-general-pubmed", "biosses", "gu") in cells.list_runs("wada-7", "laptop")
    planned = params.Panel(protocol="wada", models=["medbert-en"], datasets=["biosses"])
    change_scale(monkeypatch, compared=None, instead=instead, panels=[planned])
    assert ("medbert-en", "biosses", "wada") in cells.list_runs("wada-7", "laptop")  # as the panel has it
    shown = cells.describe_runs("wada-7", "laptop").set_index("printed")["ours"]
    assert shown["BioBERT (W + BC/ P: BaseVocab)"] == "bert-general-pubmed"


def test_every_table_of_scores_is_read_without_a_run(monkeypatch):
    monkeypatch.setattr(results, "read", lambda *_: None)
    for key in params.keys("tables"):
        table = params.load("tables", key)
        if table.kind == "scores":
            built = cells.build(key, "laptop")
            assert built["ours"].isna().all() and (built["note"] != "").all()
            assert not compare.spread(built, table.shown).empty
            assert "No cell of this table was run" in cells.describe(built, table.shown, "laptop")
            assert cells.count_reasons(built)["cells"].sum() == built["published"].notna().sum()


def test_substitutions_are_read_from_the_notes_of_a_table():
    notes = ["not in the paper; gu in place of wada", "bert-general in place of biobert-1m, gu in place of wada", "x"]
    lines = pd.DataFrame({"ours": [1.0, 2.0, 3.0], "note": notes})
    assert compare.read_substitutions(lines) == ["gu in place of wada", "bert-general in place of biobert-1m"]
    assert compare.read_substitutions(lines.assign(ours=np.nan)) == []
