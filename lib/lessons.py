"""What reproducing the papers taught: settings that they do not state, and what could not be computed, and why."""

import pandas as pd

from lib import cells, compare, params, results, scoreboard

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


def count_reasons(scale: str) -> pd.DataFrame:
    """Why printed cells have no number of ours: how many cells, in which tables, the commonest reason first."""
    parts = [cells.count_reasons(table).assign(table=key) for key, table in compare.read_tables(scale).items()]
    if not parts:
        return pd.DataFrame(columns=["reason", "cells", "tables"])
    together = pd.concat(parts).groupby("reason").agg(cells=("cells", "sum"), tables=("table", ", ".join))
    return together.sort_values("cells", ascending=False).reset_index()


def list_collapsed(scale: str) -> pd.DataFrame:
    """The runs that learnt nothing, by dataset and reason: how many of all."""
    runs = results.gather(scale)
    every = runs.groupby("dataset").size()
    fallen = runs[runs["collapsed"].fillna("") != ""]
    found = fallen.groupby(["dataset", "collapsed"]).size().rename("runs").reset_index()
    return found.assign(of=found["dataset"].map(every))


def describe(scale: str) -> str:
    """What came out and what did not, in sentences made from the tables (Markdown)."""
    verdicts, reasons, claims = compare.count_verdicts(scale), count_reasons(scale), scoreboard.read(scale)
    printed, ours, agree = verdicts[["printed", "ours beside", "agrees"]].sum()
    said = [f"Of {printed} printed cells {ours} have a number of ours, and {agree} of these agree with the print."]
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
