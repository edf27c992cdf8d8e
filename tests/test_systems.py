"""Tests of printed scores of systems without a transformer: published/systems.csv, and beside our baselines."""

import pandas as pd
from notebook_code import definitions

from lib.benchmarks import baseline_scores, baselines, registry
from lib.study import paths, results

CELLS = definitions("15_without_pretraining")
ROWS = CELLS.list_printed()
QUOTED = {"jnlpba-biobert": "JNLPBA", "bc2gm": "BC2GM", "linnaeus": "LINNAEUS", "s800": "Species-800",
          "gad-biobert": "GAD", "euadr": "EU-ADR", "chemprot-lim": "CHEMPROT"}  # fmt: skip


def test_each_row_has_a_score_in_percent_and_its_source():
    assert len(ROWS) > 40 and ROWS["score"].between(1, 100).all()
    assert ROWS["source"].str.contains("https://").all() and not ROWS.duplicated(["dataset", "method", "source"]).any()
    assert set(ROWS["dataset"]) <= set(registry.DATASETS)


def test_a_quoted_score_is_that_of_the_paper_that_quotes_it():
    cells = pd.concat([results.read_published("lee-biobert", table) for table in ("4", "5")])
    cells = cells[(cells["column"] == "State-of-the-art") & (cells["metric"] == "F1")].set_index("row")["value"]
    quoted = ROWS[ROWS["source"].str.startswith("Lee et al.")].set_index("dataset")["score"]
    assert quoted.to_dict() == {dataset: cells[row] for dataset, row in QUOTED.items()}


def test_printed_systems_are_not_counted_as_baselines(own_outputs):
    scores = {"chance": 48.0, "without pretraining": 80.0, "unlabelled text": 81.0}
    measured = [{"dataset": "ncbi-disease", "metric": "f1", "kind": kind, "method": "m", "score": score}
                for kind, score in scores.items()]  # fmt: skip
    for kind, score in (("chance", 85.0), ("without pretraining", 81.0)):
        measured.append({"dataset": "euadr", "metric": "f1", "kind": kind, "method": "m", "score": score})
    table = pd.concat([pd.DataFrame(measured), ROWS]).reindex(columns=[*baseline_scores.COLUMNS, "source"])
    results.write_table("laptop", "baselines", table)
    at_chance, above = results.read_baselines("laptop").values.tolist()
    assert above == ["ncbi-disease", "f1", 48.0, 80.0, 81.0]
    assert at_chance[:4] == ["euadr", "f1", 85.0, 85.0]  # a baseline is never worse than chance


def test_the_committed_table_has_every_printed_system():
    committed = results.read_table(paths.recorded(paths.table("laptop", "baselines")))
    printed = committed.loc[committed["kind"] == baselines.PRINTED, ROWS.columns]
    assert printed.fillna("").values.tolist() == ROWS.fillna("").values.tolist()
    assert committed.loc[committed["kind"] != baselines.PRINTED, "source"].isna().all()
