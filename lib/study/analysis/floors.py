"""What every dataset at hand scores without an encoder: by chance, and without pretraining."""

import time
from pathlib import Path
from statistics import fmean

import pandas as pd

from lib import artefacts, provenance
from lib.benchmarks import baselines, registry
from lib.benchmarks.baselines import Baseline
from lib.benchmarks.datasets import Dataset
from lib.errors import StudyError
from lib.progress import Progress
from lib.study import open_study, params, paths

COLUMNS = ["dataset", "metric", "kind", "method", "score", "settings", "train", "test", "folds", "seconds", "note"]
SPANS = "answers are spans of a text: none of these methods gives one"


def gather(scale: str) -> pd.DataFrame:
    """A row a dataset and method; a score is kept, and computed again when the files or the method change.

    Of made-up sets those within the scale's budget; of real ones all, as these methods need little of it.
    """
    study = open_study(scale)
    chosen = [study.dataset(key) for key in registry.DATASETS if not (study.budget.made_up and study.why_not(key))]
    chosen = [one for one in chosen if {"train", "test"} <= set(one.splits)]
    progress, rows = Progress("datasets without an encoder"), []
    for number, dataset in enumerate(chosen, start=1):
        rows += measure(dataset, paths.output(scale, "floors", dataset.key))
        progress.update(number, len(chosen), dataset.key)
    whole = dict.fromkeys(("train", "test", "folds", "seconds"), "Int64")  # empty where there is no score
    return pd.DataFrame(rows, columns=COLUMNS).astype(whole)


def measure(dataset: Dataset, folder: Path) -> list[dict]:
    """The rows of one dataset, a method each; scores are kept below `folder`, why there is none is not."""
    row, rows = {"dataset": dataset.key, "metric": dataset.main_score}, []
    for method in baselines.list_baselines(dataset.family):
        own = folder / method.method.replace(" ", "-")
        identity = provenance.record("floors", baselines.VERSION, {"points": method.points}, dataset.fingerprints())
        try:
            kept = artefacts.cached(own, identity, lambda new, method=method: {"row": score(method, dataset)})
            found = kept["row"]
        except StudyError as error:
            found = {"note": f"n/a: {error}"}
        rows.append(row | {"kind": method.kind, "method": method.method} | found)
    return rows or [row | {"note": f"n/a: {SPANS}"}]


def score(method: Baseline, dataset: Dataset) -> dict:
    """The mean over folds, with the settings that were chosen in each, and sizes; StudyError where it cannot be run."""
    begun, found, sizes = time.monotonic(), [], []
    for fold in range(1, dataset.folds + 1):
        train, test = (dataset.load(split, fold) for split in ("train", "test"))
        predicted, point = baselines.run(method, dataset, train, load_dev(dataset, fold, test), test)
        found.append((dataset.score(test, predicted)[dataset.main_score], point))
        sizes.append((len(train), len(test)))
    chosen = dict.fromkeys(", ".join(f"{k} {v}" for k, v in point.items()) for _, point in found)
    return {
        "score": round(fmean(value for value, _ in found), 4),
        "settings": "; ".join(chosen),
        "train": round(fmean(size for size, _ in sizes)),
        "test": round(fmean(size for _, size in sizes)),
        "folds": dataset.folds,
        "seconds": round(time.monotonic() - begun),
        "note": "",
    }


def load_dev(dataset: Dataset, fold: int, test: list) -> list:
    """The development set to choose on; empty where there is none, or where it is the test set again."""
    if "dev" not in dataset.splits:
        return []
    dev = dataset.load("dev", fold)
    return [] if [(one.inputs, one.gold) for one in dev] == [(one.inputs, one.gold) for one in test] else dev


def spread(table: pd.DataFrame) -> pd.DataFrame:
    """A row a dataset, a column a method, for people."""
    wide = table.pivot_table(index=["dataset", "metric"], columns="method", values="score", sort=False)
    return wide.reset_index().rename_axis(columns=None)


def describe(table: pd.DataFrame, scale: str) -> str:
    """What the table shows, in sentences made from it (Markdown)."""
    if params.load("scales", scale).made_up:
        return "The data are made up: nothing here is a finding."
    scored = table[table["score"].notna()]
    best = scored.pivot_table(index="dataset", columns="kind", values="score", aggfunc="max", sort=False).dropna()
    learned = best[best[baselines.NO_PRETRAINING] > best[baselines.CHANCE]]
    lines = [
        f"- {scored['dataset'].nunique()} datasets have a score without an encoder; of {len(best)} that have both, "
        f"what is learned from the training set alone is above chance in {len(learned)}."
    ]
    below = sorted(set(best.index) - set(learned.index))
    if below:
        lines.append(f"- Not above chance: {', '.join(below)}.")
    missing = table[table["score"].isna()].drop_duplicates(["dataset", "method"])
    lines += [f"- {row['dataset']}: {row['note']}." for row in missing.to_dict("records")]
    return "\n".join(lines)
