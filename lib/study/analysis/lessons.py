"""What reproducing the papers taught: settings that they do not state, and what could not be computed, and why."""

import pandas as pd

from lib.study import claims, params, paths, results, tables
from lib.study.analysis import compare

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
            paper = results.list_papers()[protocol.paper]
            rows.append({"paper": paper, "protocol": key, "left open, or different here": protocol.differs})
    return pd.DataFrame(rows).sort_values(["paper", "protocol"], ignore_index=True)


def count_reasons(scale: str) -> pd.DataFrame:
    """Why printed cells have no number of ours: how many cells, in which tables, the commonest reason first."""
    parts = [tables.missing(table).assign(table=key) for key, table in compare.read_tables(scale).items()]
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


def list_trivial(scale: str) -> pd.DataFrame:
    """How many runs of a dataset score no better than what reads no text: one answer to all, or a table of words.

    Those scores are of the audit of datasets (page 14), of the whole training set; datasets without one are left out.
    """
    leaks = results.find_table(paths.table(scale, "leaks"))
    if leaks is None:
        leaks = pd.DataFrame(columns=["finding", "dataset", "score", "note"])
    trivial = leaks[(leaks["finding"] == "most frequent label") & leaks["score"].notna()].set_index("dataset")
    rows = []
    for dataset, runs in results.gather(scale).groupby("dataset"):
        if dataset in trivial.index:
            score, note = trivial.loc[dataset, ["score", "note"]]
            rows.append(
                {"dataset": dataset, "runs": len(runs), "no better": (runs["score"] <= score).sum(),
                 "best of ours": runs["score"].max(), "without reading": score,
                 "which is": note.rpartition("score: ")[2]}
            )  # fmt: skip
    columns = ["dataset", "runs", "no better", "best of ours", "without reading", "which is"]
    return pd.DataFrame(rows, columns=columns)


def describe_trivial(scale: str) -> list[str]:
    """How many runs know no more than what reads no text, and of which datasets: a sentence, where there are any."""
    found = list_trivial(scale)
    no_better = found[found["no better"] > 0]
    if no_better.empty:
        return []
    share = f"{found['no better'].sum()} of {found['runs'].sum()} fine-tuning runs score"
    return [f"{share} no better than an answer without reading the text: on {', '.join(no_better['dataset'])}."]


def describe_devices(scale: str) -> list[str]:
    """On what the runs were computed, and those of which models elsewhere: a sentence, where it is not all one."""
    runs = results.gather(scale)
    counts = runs["device"].value_counts()
    if len(counts) < 2:
        return []
    said = [f"{counts.iloc[0]} of {len(runs)} fine-tuning runs were computed on {counts.index[0]}"]
    for device, count in counts.iloc[1:].items():
        said.append(f"{count} on {device}, of {', '.join(runs.loc[runs['device'] == device, 'model'].unique())}")
    return ["; ".join(said) + ": a difference of models across these holds that of the devices too."]


def describe(scale: str) -> str:
    """What came out and what did not, in sentences made from the tables (Markdown)."""
    verdicts, reasons, judged = compare.count_verdicts(scale), count_reasons(scale), claims.read(scale)
    said = [f"Of {verdicts['printed'].sum()} printed cells {verdicts['ours beside'].sum()} have a number of ours."]
    for name, counts in compare.split_verdicts(verdicts).items():
        said.append(f"{name.capitalize()}: {compare.describe_agreement(counts)}.")
    if len(reasons):
        most = reasons.iloc[0]
        said.append(f"The commonest reason for an empty cell, of {most['cells']}: {most['reason']}.")
    collapsed = list_collapsed(scale)
    said.append(
        f"{collapsed['runs'].sum()} of {len(results.gather(scale))} fine-tuning runs gave one answer to everything, or "
        "their loss did not fall."
    )
    said += describe_trivial(scale) + describe_devices(scale)
    open_ones = judged[judged["verdict"] == "n/a"]
    said.append(f"{len(open_ones)} of {len(judged)} claims could not be measured.")
    if params.load("scales", scale).made_up:
        said.append("The data are made up: none of this is a finding.")
    return "\n".join(f"- {line}" for line in said)
