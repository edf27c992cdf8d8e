"""Reading what exists: our results, and the papers' printed numbers."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pandas as pd

from lib import artefacts
from lib.benchmarks import registry, seen
from lib.errors import StudyError
from lib.finetuning import runs
from lib.places import show_path
from lib.study import papers, params, paths

COLUMNS = ["paper", "table", "row", "column", "metric", "published", "published_std", "ours", "ours_std", "n_seeds",
           "verdict", "note"]  # fmt: skip
MADE_UP = "made-up data: not a finding"
NOT_MADE = "the run failed or has not been made"
BASELINES = {  # kinds of baselines -> columns
    "chance": "chance", "without pretraining": "without_pretraining", "unlabelled text": "unlabelled_text"
}  # fmt: skip


def read_published(paper: str, table: str) -> pd.DataFrame:
    """Every printed cell of one table: row, column, metric, value, std."""
    scores = pd.read_csv(paths.PUBLISHED / "scores.csv", dtype={"table": str})
    cells = scores[(scores["paper"] == paper) & (scores["table"] == table)]
    if cells.empty:
        raise StudyError(f"published/scores.csv has no table {table} of {paper}")
    return cells.reset_index(drop=True)


def list_papers() -> dict[str, str]:
    """The papers in the order of pages: key in published/ -> what pages call it."""
    return {paper.paper: paper.title for paper in papers.read_all(paths.PARAMS / "papers")}


def list_protocols() -> list[str]:
    """The papers' own protocols of fine-tuning, in the order of pages."""
    return [paper.all.protocol for paper in papers.read_all(paths.PARAMS / "papers")]


def read_claims() -> pd.DataFrame:
    """What the papers claim."""
    return pd.read_csv(paths.PUBLISHED / "claims.csv")


def read_terms() -> pd.DataFrame:
    """The cells of the printed vocabulary tables."""
    return pd.read_csv(paths.PUBLISHED / "vocabulary_terms.csv", dtype=str, keep_default_na=False)


def read_result(scale: str, model: str, dataset: str, protocol: str) -> dict | None:
    """The results of one model on one dataset, of a run here or of the record; None when it has not been run."""
    path = paths.find(paths.results(scale, model, dataset, protocol))
    return artefacts.read_json(path) if path.exists() else None


def read_predictions(scale: str, result: dict, run: dict) -> tuple[list, list]:
    """Gold and predicted of one run of a result; StudyError where they are not here, or are those of another run."""
    keys = result["model"], result["dataset"], result["protocol"]
    registered = registry.DATASETS.get(result["dataset"])  # data of one's own have no folds
    name = runs.name_run(run["seed"], run["fold"], registered.folds if registered else 1)
    path = paths.predictions(scale, *keys, name)
    if not path.exists():
        raise StudyError("the predictions are not on this machine; only scores are committed")
    if (runs.read_run(path) or {}).get("fingerprint") != run["fingerprint"]:
        raise StudyError(f"{show_path(path)}: predictions of another run than the scores")
    return runs.read_run_predictions(path)


def list_runs(result: dict) -> pd.DataFrame:
    """The runs of a model on a dataset, a line each: dataset, seed, fold, scores, seconds, why it learnt nothing."""
    runs = pd.DataFrame(
        {"seed": run["seed"], "fold": run["fold"]} | run["scores"] | {n: run[n] for n in ("seconds", "collapsed")}
        for run in result["runs"]
    )
    runs.insert(0, "dataset", result["dataset"])
    return runs


def list_tried(result: dict) -> pd.DataFrame:
    """The settings that were tried on one dataset, a line each, or those that were given where nothing was searched."""
    tried = pd.DataFrame(result["candidates"] or [result["chosen on dev"]])
    tried.insert(0, "dataset", result["dataset"])
    return tried.astype({"learning_rate": str})


def over_seeds(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over seeds of each dataset's scores, a seed's being the mean over its folds.

    Where some runs learnt nothing, also without them. `runs`: of list_runs, of any number of datasets.
    """
    scores = [*runs.columns.drop(["dataset", "seed", "fold", "seconds", "collapsed"])]
    parts = []
    for dataset, own in runs.groupby("dataset", sort=False):
        sound = own[own["collapsed"] == ""]
        kinds = {"": own}
        if 0 < len(sound) < len(own):
            kinds[" of runs that did not collapse"] = sound
        for kind, found in kinds.items():
            part = found.groupby("seed")[scores].mean().agg(["mean", "std"])
            parts.append(part.assign(dataset=dataset, over=part.index + kind))
    return pd.concat(parts)[["dataset", "over", *scores]]


def gather_runs(scale: str) -> pd.DataFrame:
    """Every run of a registered model or encoder on a test set at one scale, one row each."""
    columns = ["scale", "model", "dataset", "protocol", "metric", "seed", "fold", "score name", "score",
               "collapsed", "test instances", "test rows", "steps", "tokens", "device", "commit"]  # fmt: skip
    rows = []
    for path in paths.find_all(scale, "results", "*.json"):
        model, dataset, protocol = path.stem.split("--")
        if not params.find_kind(model) or dataset not in registry.DATASETS:
            continue  # somebody's own encoder or data: not part of the study
        result = artefacts.read_json(path)
        named = {"scale": scale, "model": model, "dataset": dataset, "protocol": protocol, "metric": result["metric"]}
        for run in result["runs"]:
            rows.append(
                named
                | {"score name": result["main score"], "score": run["scores"][result["main score"]]}
                | {"test instances": run["instances"]["test"], "test rows": run["rows"]["test"]}
                | {name: run[name] for name in ("seed", "fold", "collapsed", "steps", "tokens", "device", "commit")}
            )
    return pd.DataFrame(rows, columns=columns)


def list_scores(scale: str, own: bool = False) -> pd.DataFrame:
    """Every score of every run on a test set at one scale, here or in the record, a line each; `model` is its key.

    `own`: on data of one's own too, which are no part of the study.
    `jackknife`: of the score that ranks models, that without each group of test documents; empty where it was not kept.
    """
    files = tuple((path, path.stat().st_mtime_ns) for path in paths.find_all(scale, "results", "*.json"))
    scores = read_run_scores(files)
    return scores.copy() if own else scores[scores["dataset"].isin(registry.DATASETS)].reset_index(drop=True)


@lru_cache(maxsize=4)
def read_run_scores(files: tuple[tuple[Path, int], ...]) -> pd.DataFrame:
    """The scores of result files, each with the time it was written at: read again when one has changed."""
    lines = []
    for path, _ in files:
        result = artefacts.read_json(path)
        name, dataset, protocol = path.stem.split("--")
        model, pretraining = params.split_seed(name)
        run_of = {"model": model, "pretraining": pretraining, "dataset": dataset, "protocol": protocol}
        for run in result["runs"]:
            place = run_of | {"seed": run["seed"], "fold": run["fold"]}
            place |= {"train": run["instances"]["train"], "device": run.get("device", "")}
            found = run["scores"] | {name: run[name] for name in seen.SCORES if name in run}
            kept = {result["main score"]: tuple(run.get("jackknife", ()))}
            for name, value in found.items():
                lines.append(place | {"score": name, "value": value, "jackknife": kept.get(name, ())})
    columns = ["model", "pretraining", "dataset", "protocol", "seed", "fold", "train", "device", "score", "value",
               "jackknife"]  # fmt: skip
    return pd.DataFrame(lines, columns=columns)


def read_baselines(scale: str) -> pd.DataFrame:
    """What datasets score without an encoder: of each kind of method the best one; no lines where page 15 has not run.

    Of real data these do not depend on a scale, but for how much unlabelled text there is: where one has none of its
    own, those of `laptop`.
    """
    found = find_table(paths.table(scale, "baselines"))
    if found is None and not params.load("scales", scale).made_up:
        found = find_table(paths.table("laptop", "baselines"))
    return pivot_baselines(found)


def pivot_baselines(found: pd.DataFrame | None) -> pd.DataFrame:
    """Rows of baseline_scores.measure_dataset as a line for each dataset and score, with the best of each kind in a
    column."""
    if found is None:
        return pd.DataFrame(columns=["dataset", "score", *BASELINES.values()])
    measured = found[found["kind"].isin(BASELINES)]  # what is printed of other systems stands in the table too
    wide = measured.pivot_table(index=["dataset", "metric"], columns="kind", values="score", aggfunc="max")
    return wide.reindex(columns=list(BASELINES)).rename(columns=BASELINES).reset_index(names=["dataset", "score"])


def write_csv(path: Path, rows) -> None:
    """Write rows as CSV, whole or not at all."""
    with artefacts.whole_file(path) as temporary:
        pd.DataFrame(rows).to_csv(temporary, index=False, lineterminator="\n")


def write_table(scale: str, name: str, table: pd.DataFrame) -> None:
    """Write one of our tables; a published one with COLUMNS, a figure with its places too."""
    if name in params.keys("tables"):
        printed = params.load("tables", name)
        places = ["x", "published_x"] if printed.kind == "curves" else []
        table = table.assign(paper=printed.paper, table=printed.table)[[*COLUMNS, *places]]
    write_csv(paths.table(scale, name), table)


def read_table(path: Path) -> pd.DataFrame:
    """One of our tables, in which n/a is a word and an empty cell is empty; StudyError when it is damaged."""
    try:
        return pd.read_csv(path, keep_default_na=False, na_values=[""])
    except ValueError as error:  # of the parser too
        raise StudyError(f"{show_path(path)}: damaged ({error}); restore or delete it") from None


def find_table(path: Path) -> pd.DataFrame | None:
    """One of our tables, of a run here or of the record; None where there is neither."""
    path = paths.find(path)
    return read_table(path) if path.exists() else None


def computed(path: Path, scale: str, make: Callable[..., object], *arguments) -> pd.DataFrame:
    """A table of a page: made of what is at hand, and written; or, without the scale's data, that of the record.

    So a page that is opened where there are neither data nor weights shows what was measured, and changes nothing.
    Raises StudyError where nothing is at hand.
    """
    if not paths.data(scale).is_dir() and (recorded := find_table(path)) is not None:
        return recorded
    table = pd.DataFrame(make(*arguments))
    if table.columns.empty:
        raise StudyError(f"{show_path(path)}: nothing at hand to make it of: run ./run_all.sh {scale}")
    write_csv(path, table)
    return table
