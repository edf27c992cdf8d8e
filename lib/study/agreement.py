"""The verdict on each printed cell that we have a score for, counted over tables and papers."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lib import statistics
from lib.study import params, paths, results

if TYPE_CHECKING:
    from lib.study import Study

VERDICTS = ("agrees", "explained", "below", "above", "differs", "n/a")  # on a printed cell with ours beside it


def judge_cell(published: float, ours: list[float]) -> str:
    """`agrees` when the printed value lies in the 95% t-interval of our mean over seeds, else `below` or `above`.

    Fewer than two seeds give no interval: `n/a`.
    """
    if len(ours) < 2 or np.isnan(published):
        return "n/a"
    low, high = statistics.find_interval(ours)
    if low <= published <= high:
        return "agrees"
    return "below" if high < published else "above"


def read_made_tables(study: "Study") -> dict[str, pd.DataFrame]:
    """The published tables that have been made at a scale, by key; figures repeat cells of tables, and are left out."""
    found = {}
    for key, printed in params.load_tables().items():
        table = None if printed.kind == "curves" else results.find_table(paths.table(study.scale, key))
        if table is not None:
            found[key] = table
    return found


def count_verdicts(study: "Study") -> pd.DataFrame:
    """Of each table: its printed cells, how many have ours beside them, and how many of these each verdict took.

    In the order of the notebooks. Tables that have not been made, and figures whose values the papers do not print,
    count nothing.
    """
    lines, made = [], read_made_tables(study)
    printed_tables = params.load_tables()
    for key in sorted(printed_tables, key=lambda key: printed_tables[key].notebook):
        cells = made.get(key, pd.DataFrame(columns=["published", "ours", "verdict"]))
        printed = cells[cells["published"].notna()]
        ran = printed[printed["ours"].notna()]
        verdicts = ran["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
        lines.append({"table": key, "printed": len(printed), "ours beside": len(ran)} | verdicts.to_dict())
    return pd.DataFrame(lines)


def split_verdicts(verdicts: pd.DataFrame) -> dict[str, pd.Series]:
    """The verdicts of tables added up: of cells that need no training, and of the scores of models trained here."""
    scores = np.array([params.load("tables", key).kind == "scores" for key in verdicts["table"]], dtype=bool)
    counts = verdicts[["printed", "ours beside", *VERDICTS]].astype(int)  # a paper may have no table of a kind
    return {"what is counted": counts[~scores].sum(), "scores of models": counts[scores].sum()}


def describe_agreement(counts: pd.Series) -> str:
    """Of the cells that were judged, how many agree: of one table, or of several added up."""
    judged = counts["ours beside"] - counts["n/a"]
    if not judged:
        return "none is judged"
    explained = f", {counts['explained']} more explained" if counts["explained"] else ""
    below = f", {counts['below']} below" if counts["below"] else ""
    return f"{counts['agrees']} of {judged} agree{explained}{below}"
