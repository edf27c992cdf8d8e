"""What reproducing the papers taught: settings that they do not state, and what could not be computed, and why."""

import pandas as pd

from lib import cells, params, paths, results, scoreboard

UNSTATED = "Not stated"  # begins what a model's source says of settings that its paper does not have
SAME = "Nothing else."  # what a protocol says that differs from the one it is like in its settings alone


def list_unstated_pretraining() -> pd.DataFrame:
    """What the papers do not state of pretraining, with what is taken in its place, and for which models."""
    found: dict[str, list[str]] = {}
    for key in params.keys("models"):
        published = params.load("models", key).published
        _, mark, said = published.source.partition(UNSTATED) if published else ("", "", "")
        if mark:
            found.setdefault(said.removeprefix(":").strip(), []).append(key)
    rows = [{"not stated, and what is taken": said, "models": ", ".join(keys)} for said, keys in found.items()]
    return pd.DataFrame(rows).sort_values("models", ignore_index=True)


def list_unstated_finetuning() -> pd.DataFrame:
    """What the papers leave open of fine-tuning, and where a protocol of ours differs from what they say."""
    rows = []
    for key in params.keys("protocols"):
        protocol = params.load("protocols", key)
        if protocol.differs != SAME:
            rows.append({"paper": results.PAPERS[protocol.paper], "protocol": key, "left open, or different here":
                         protocol.differs})  # fmt: skip
    return pd.DataFrame(rows).sort_values(["paper", "protocol"], ignore_index=True)


def read_tables(scale: str) -> dict[str, pd.DataFrame]:
    """The published tables that have been made at a scale, by key; figures repeat cells of tables, and are left out."""
    keys = [key for key in params.keys("tables") if params.load("tables", key).kind != "curves"]
    found = {key: paths.table(scale, key) for key in keys}
    return {key: results.read_table(path) for key, path in found.items() if path.exists()}


def count_reasons(scale: str) -> pd.DataFrame:
    """Why printed cells have no number of ours: how many cells, in which tables, the commonest reason first."""
    parts = [cells.count_reasons(table).assign(table=key) for key, table in read_tables(scale).items()]
    if not parts:
        return pd.DataFrame(columns=["reason", "cells", "tables"])
    together = pd.concat(parts).groupby("reason").agg(cells=("cells", "sum"), tables=("table", ", ".join))
    return together.sort_values("cells", ascending=False).reset_index()


def count_verdicts(scale: str) -> pd.DataFrame:
    """Of each table: printed cells, those with ours beside them, and how these were judged."""
    rows = []
    for key, table in read_tables(scale).items():
        printed = table[table["published"].notna()]
        ran = printed[printed["ours"].notna()]
        if len(printed):
            verdicts = ran["verdict"].value_counts()
            rows.append({"table": key, "printed": len(printed), "ours beside": len(ran)} | verdicts.to_dict())
    return pd.DataFrame(rows).fillna(0)


def list_collapsed(scale: str) -> pd.DataFrame:
    """The runs that learnt nothing, by dataset and reason: how many of all."""
    runs = results.gather(scale)
    every = runs.groupby("dataset").size()
    fallen = runs[runs["collapsed"].fillna("") != ""]
    found = fallen.groupby(["dataset", "collapsed"]).size().rename("runs").reset_index()
    return found.assign(of=found["dataset"].map(every))


def describe(scale: str) -> str:
    """What came out and what did not, in sentences made from the tables (Markdown)."""
    verdicts, reasons, claims = count_verdicts(scale), count_reasons(scale), scoreboard.read(scale)
    said = []
    if len(verdicts):
        agree = verdicts.get("agrees", pd.Series([0])).sum()
        said.append(
            f"Of {verdicts['printed'].sum()} printed cells {verdicts['ours beside'].sum()} have a number of ours, and "
            f"{agree:.0f} of these agree with the print."
        )
    if len(reasons):
        most = reasons.iloc[0]
        said.append(f"The commonest reason for an empty cell, of {most['cells']}: {most['reason']}.")
    collapsed = list_collapsed(scale)
    said.append(f"{collapsed['runs'].sum()} of {len(results.gather(scale))} fine-tuning runs learnt nothing.")
    open_ones = claims[claims["verdict"] == "n/a"]
    said.append(f"{len(open_ones)} of {len(claims)} claims could not be measured.")
    if params.load("scales", scale).made_up:
        said.append("The data are made up: none of this is a finding.")
    return "\n".join(f"- {line}" for line in said)
