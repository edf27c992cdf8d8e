"""Results of runs that were never made, written where a study looks for them."""

import json

import pyarrow as pa
import pyarrow.parquet as pq

from lib import artefacts
from lib.study import paths


def make_runs(values: list[float], score: str = "f1", **facts) -> list[dict]:
    """Return runs of seeds 1, 2 and so on with these values of a score; `facts` are the same in all."""
    return [{"seed": seed, "fold": 1, "scores": {score: value}, **facts} for seed, value in enumerate(values, 1)]


def write_result(run: tuple[str, str, str], runs: list[dict], scale: str = "smoke", score: str = "f1") -> None:
    """Write the result of a model on a dataset under a protocol."""
    result = dict(zip(("model", "dataset", "protocol"), run, strict=True))
    artefacts.write_json(
        paths.results(scale, *run), result | {"model title": "A model", "main score": score, "runs": runs}
    )


def write_answers(run: tuple[str, str, str], answers: dict[str, tuple[list, list]], fingerprint: str = "f") -> None:
    """Write a result and the predictions of its runs. `answers`: `seed` or `seed.fold` -> gold and predicted.

    `fingerprint`: that of the predictions; in the result it is f.
    """
    runs = []
    for name, (gold, predicted) in answers.items():
        seed, _, fold = name.partition(".")
        runs.append({"seed": int(seed), "fold": int(fold or 1), "fingerprint": "f", "scores": {"f1": 1.0}})
        path = paths.predictions("smoke", *run, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        metadata = {"record": json.dumps(runs[-1] | {"fingerprint": fingerprint})}
        pq.write_table(pa.table({"gold": gold, "predicted": predicted}).replace_schema_metadata(metadata), path)
    write_result(run, runs)
