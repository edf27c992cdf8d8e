"""Fine-tuning runs on disk: predictions with the record of their run, but no text of the dataset."""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import pyarrow as pa
import pyarrow.parquet as pq

from lib import artefacts
from lib.benchmarks.instances import Answer, Instance


def name_run(seed: int, fold: int, folds: int) -> str:
    """Return the name of a run on the test set: its seed, and its fold if the dataset has several."""
    return f"{seed}.{fold}" if folds > 1 else str(seed)


def write_run(path: Path, family: str, instances: Sequence[Instance], predicted: Sequence, record: dict) -> None:
    """Write gold and predictions, one row per instance in dataset order, with the run's record in the metadata.

    Rows hold tags, labels, numbers, or an answer's passage and character positions, but no text of the dataset. Gold
    answers are left out because they are texts.
    """
    if family == "questions":
        columns = {"predicted": [[answer._asdict() for answer in answers] for answers in predicted]}
    else:  # Arrow takes the labels of documents, which are tuples, as lists
        columns = {"predicted": list(predicted), "gold": [instance.gold for instance in instances]}
    table = pa.table(columns)
    with artefacts.whole_file(path) as temporary:
        pq.write_table(table.replace_schema_metadata({"record": json.dumps(record)}), temporary)


def read_run_predictions(path: Path) -> tuple[list, list]:
    """Read the gold and the prediction of every instance, for families whose gold is stored (all but questions)."""
    table = pq.read_table(path)
    return table["gold"].to_pylist(), table["predicted"].to_pylist()


def read_predicted(path: Path, family: str) -> list:
    """Read the prediction for every instance, in the form that Dataset.score takes."""
    predicted = pq.read_table(path, columns=["predicted"])["predicted"].to_pylist()
    if family == "questions":
        return [[Answer(**answer) for answer in answers] for answers in predicted]
    return [tuple(labels) for labels in predicted] if family == "documents" else predicted


def read_run(path: Path) -> dict | None:
    """Read a run's record from the file of its predictions, or return None if there is no readable file."""
    try:
        return json.loads(pq.read_metadata(path).metadata[b"record"])
    except (OSError, pa.ArrowInvalid):
        return None


def average_folds(result: dict) -> dict[int, dict[str, float]]:
    """Return the scores of each seed of a result (Finetuning.run), averaged over its folds."""
    seeds = defaultdict(list)
    for run in result["runs"]:
        seeds[run["seed"]].append(run["scores"])
    return {
        seed: {name: mean(scores[name] for scores in fold_scores) for name in fold_scores[0]}
        for seed, fold_scores in seeds.items()
    }
