"""What to keep in mind of the runs at a scale: those that know no more than what reads no text, and other devices."""

import pandas as pd

from lib.study import paths, results


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


def say_trivial(scale: str) -> list[str]:
    """How many runs know no more than what reads no text, and of which datasets: a sentence, where there are any."""
    found = list_trivial(scale)
    no_better = found[found["no better"] > 0]
    if no_better.empty:
        return []
    share = f"{found['no better'].sum()} of {found['runs'].sum()} fine-tuning runs score"
    return [f"{share} no better than an answer without reading the text: on {', '.join(no_better['dataset'])}."]


def say_devices(scale: str) -> list[str]:
    """On what the runs were computed, and those of which models elsewhere: a sentence, where it is not all one."""
    runs = results.gather(scale)
    counts = runs["device"].value_counts()
    if len(counts) < 2:
        return []
    said = [f"{counts.iloc[0]} of {len(runs)} fine-tuning runs were computed on {counts.index[0]}"]
    for device, count in counts.iloc[1:].items():
        said.append(f"{count} on {device}, of {', '.join(runs.loc[runs['device'] == device, 'model'].unique())}")
    return ["; ".join(said) + ": a difference of models across these holds that of the devices too."]
