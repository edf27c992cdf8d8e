"""Which published tables are made at a scale, and how many of their printed cells agree with ours."""

from typing import TYPE_CHECKING

import pandas as pd

from lib.study import params

if TYPE_CHECKING:
    from lib.study import Study

VERDICTS = ("agrees", "explained", "below", "above", "differs", "undecided", "n/a")  # on printed cells
WORDS = {"explained": "more explained", "differs": "differ"}  # of verdicts that are counted in other words


def read_made_tables(study: "Study") -> dict[str, pd.DataFrame]:
    """Read the published tables made at a scale, by key, without figures, since these repeat cells of tables."""
    tables = {}
    for key, printed in params.load_tables().items():
        table = None if printed.kind == "curves" else study.find_table(key)
        if table is not None:
            tables[key] = table
    return tables


def count_verdicts(study: "Study") -> pd.DataFrame:
    """Count for each table its printed cells, those that have ours beside them, and the verdicts on the latter.

    Tables are in the order of the notebooks. Those that have not been made, and figures without printed values, count
    zero.
    """
    rows, made_tables = [], read_made_tables(study)
    printed_tables = params.load_tables()
    for key in sorted(printed_tables, key=lambda key: printed_tables[key].notebook):
        cells = made_tables.get(key, pd.DataFrame(columns=["published", "ours", "verdict"]))
        printed = cells[cells["published"].notna()]
        compared = printed[printed["ours"].notna()]
        verdicts = compared["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
        rows.append({"table": key, "printed": len(printed), "ours beside": len(compared)} | verdicts.to_dict())
    return pd.DataFrame(rows)


def split_verdicts(verdicts: pd.DataFrame) -> dict[str, pd.Series]:
    """Sum the verdicts of tables, separately for cells that need no training and for scores of trained models."""
    is_scores = verdicts["table"].isin(params.load_tables("scores"))
    counts = verdicts[["printed", "ours beside", *VERDICTS]].astype(int)  # a paper may have no table of a kind
    return {"what is counted": counts[~is_scores].sum(), "scores of models": counts[is_scores].sum()}


def describe_agreement(counts: pd.Series) -> str:
    """Say how many of the judged cells agree, in one table or in several added up."""
    judged = counts["ours beside"] - counts["n/a"]
    if not judged:
        return "none is judged"
    text = f"{counts['agrees']} of {judged} agree"
    for verdict in VERDICTS[1:-1]:  # all others that a judged cell may have
        if counts[verdict]:
            text += f", {counts[verdict]} {WORDS.get(verdict, verdict)}"
    return text
