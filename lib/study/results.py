"""Our results and the papers' printed numbers: reading them, and writing tables."""

from collections.abc import Callable
from functools import cache, lru_cache
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
    """Read every printed cell of one table: row, column, metric, value, std."""
    scores = read_printed_scores()
    return scores[(scores["paper"] == paper) & (scores["table"] == table)].reset_index(drop=True)


@cache  # because a page reads dozens of tables
def read_printed_scores() -> pd.DataFrame:
    """Read every printed cell of every table. The frame is shared: use it only to select from."""
    return pd.read_csv(paths.PUBLISHED / "scores.csv", dtype={"table": str})


def list_papers() -> dict[str, str]:
    """Return the papers in the order of pages: key in published/ -> title on pages."""
    return {paper.paper: paper.title for paper in papers.read_all(paths.PARAMS / "papers")}


def list_protocols() -> dict[str, str]:
    """Return the papers' own fine-tuning protocols in the order of pages: paper -> protocol."""
    return {paper.paper: paper.all.protocol for paper in papers.read_all(paths.PARAMS / "papers")}


def read_claims() -> pd.DataFrame:
    """Read the papers' claims."""
    return pd.read_csv(paths.PUBLISHED / "claims.csv")


def read_terms() -> pd.DataFrame:
    """Read the cells of the printed vocabulary tables."""
    return pd.read_csv(paths.PUBLISHED / "vocabulary_terms.csv", dtype=str, keep_default_na=False)


def read_result(scale: str, model: str, dataset: str, protocol: str) -> dict | None:
    """Read the result of a model on a dataset, from a run here or the record; None if it has not been run."""
    path = paths.find(paths.results(scale, model, dataset, protocol))
    return artefacts.read_json(path) if path.exists() else None


def read_predictions(scale: str, result: dict, run: dict) -> tuple[list, list]:
    """Read the gold and predicted labels of one run of a result.

    Raises StudyError if they are not on this machine, or belong to another run.
    """
    keys = result["model"], result["dataset"], result["protocol"]
    entry = registry.DATASETS.get(result["dataset"])  # the user's own data have no folds
    name = runs.name_run(run["seed"], run["fold"], entry.folds if entry else 1)
    path = paths.predictions(scale, *keys, name)
    if not path.exists():
        raise StudyError("the predictions are not on this machine; only scores are committed")
    if (runs.read_run(path) or {}).get("fingerprint") != run["fingerprint"]:
        raise StudyError(f"{show_path(path)}: predictions of another run than the scores")
    return runs.read_run_predictions(path)


def list_runs(result: dict) -> pd.DataFrame:
    """Return a model's runs on a dataset, one row each: dataset, seed, fold, scores, seconds, why it learnt nothing."""
    frame = pd.DataFrame(
        {"seed": run["seed"], "fold": run["fold"]} | run["scores"] | {n: run[n] for n in ("seconds", "collapsed")}
        for run in result["runs"]
    )
    frame.insert(0, "dataset", result["dataset"])
    return frame


def list_tried(result: dict) -> pd.DataFrame:
    """Return the settings tried on a dataset, one row each, or the given ones if nothing was searched."""
    candidates = pd.DataFrame(result["candidates"] or [result["chosen on dev"]])
    candidates.insert(0, "dataset", result["dataset"])
    return candidates.astype({"learning_rate": str})


def over_seeds(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the mean and standard deviation over seeds of each dataset's scores, averaged over folds first.

    If some runs learnt nothing, the frame also has both without them. `runs`: from list_runs, of any number of
    datasets.
    """
    scores = [*runs.columns.drop(["dataset", "seed", "fold", "seconds", "collapsed"])]
    summaries = []
    for dataset, dataset_runs in runs.groupby("dataset", sort=False):
        sound_runs = dataset_runs[dataset_runs["collapsed"] == ""]
        subsets = {"": dataset_runs}
        if 0 < len(sound_runs) < len(dataset_runs):
            subsets[" of runs that did not collapse"] = sound_runs
        for suffix, subset in subsets.items():
            summary = subset.groupby("seed")[scores].mean().agg(["mean", "std"])
            summaries.append(summary.assign(dataset=dataset, over=summary.index + suffix))
    return pd.concat(summaries)[["dataset", "over", *scores]]


def gather_runs(scale: str) -> pd.DataFrame:
    """Return every run of a registered model or encoder on a test set at one scale, one row each."""
    columns = ["scale", "model", "dataset", "protocol", "metric", "seed", "fold", "score name", "score",
               "collapsed", "test instances", "test rows", "steps", "tokens", "device", "commit"]  # fmt: skip
    rows = []
    for path in paths.find_all(scale, "results", "*.json"):
        model, dataset, protocol = path.stem.split("--")
        if not params.find_kind(model) or dataset not in registry.DATASETS:
            continue  # a user's encoder or data: not part of the study
        result = artefacts.read_json(path)
        fields = {"scale": scale, "model": model, "dataset": dataset, "protocol": protocol, "metric": result["metric"]}
        main_score = result["main score"]
        for run in result["runs"]:
            rows.append(
                fields
                | {"score name": main_score, "score": run["scores"][main_score]}
                | {"test instances": run["instances"]["test"], "test rows": run["rows"]["test"]}
                | {name: run[name] for name in ("seed", "fold", "collapsed", "steps", "tokens", "device", "commit")}
            )
    return pd.DataFrame(rows, columns=columns)


def list_scores(scale: str, own: bool = False) -> pd.DataFrame:
    """Return every score of every run at one scale, here or in the record, one row each; `model` is its key.

    `own`: include the user's own datasets, which are not part of the study.
    `jackknife`: the main score without each group of test documents in turn; empty for other scores, and where it was
    not kept.
    """
    files = tuple((path, path.stat().st_mtime_ns) for path in paths.find_all(scale, "results", "*.json"))
    scores = read_run_scores(files)
    return scores.copy() if own else scores[scores["dataset"].isin(registry.DATASETS)].reset_index(drop=True)


@lru_cache(maxsize=4)
def read_run_scores(files: tuple[tuple[Path, int], ...]) -> pd.DataFrame:
    """Read the scores of result files. Each comes with its time of change, so that a changed file is read again."""
    rows = []
    for path, _ in files:
        result = artefacts.read_json(path)
        name, dataset, protocol = path.stem.split("--")
        model, pretraining = params.split_seed(name)
        result_fields = {"model": model, "pretraining": pretraining, "dataset": dataset, "protocol": protocol}
        for run in result["runs"]:
            run_fields = result_fields | {"seed": run["seed"], "fold": run["fold"]}
            run_fields |= {"train": run["instances"]["train"], "device": run.get("device", "")}
            scores = run["scores"] | {name: run[name] for name in seen.SCORES if name in run}
            jackknife = {result["main score"]: tuple(run.get("jackknife", ()))}
            for name, value in scores.items():
                rows.append(run_fields | {"score": name, "value": value, "jackknife": jackknife.get(name, ())})
    columns = ["model", "pretraining", "dataset", "protocol", "seed", "fold", "train", "device", "score", "value",
               "jackknife"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def read_baselines(scale: str) -> pd.DataFrame:
    """Read the best baseline of each kind without an encoder, by dataset; empty if page 15 has not run.

    On real data only the amount of unlabelled text depends on the scale, so a scale without baselines of its own uses
    those of `laptop`.
    """
    return pivot_baselines(find_baseline_table(scale, "baselines"))


def find_baseline_table(scale: str, name: str) -> pd.DataFrame | None:
    """Read a table of page 15 as read_baselines does; None if the page has not run."""
    table = find_table(paths.table(scale, name))
    if table is None and not params.load("scales", scale).made_up:
        return find_table(paths.table("laptop", name))
    return table


def pivot_baselines(frame: pd.DataFrame | None) -> pd.DataFrame:
    """Reshape rows of baseline_scores.measure_dataset to one row for each dataset and score.

    Each kind of baseline is a column with the best score. Where no method beats chance, chance is the best of both.
    """
    if frame is None:
        return pd.DataFrame(columns=["dataset", "score", *BASELINES.values()])
    measured = frame[frame["kind"].isin(BASELINES)]  # the table also has printed scores of other systems
    wide = measured.pivot_table(index=["dataset", "metric"], columns="kind", values="score", aggfunc="max")
    wide = wide.reindex(columns=list(BASELINES)).rename(columns=BASELINES)
    for kind in ("without_pretraining", "unlabelled_text"):
        wide[kind] = wide[kind].clip(lower=wide["chance"])
    return wide.reset_index(names=["dataset", "score"])


def write_csv(path: Path, rows) -> None:
    """Write rows as CSV, whole or not at all."""
    with artefacts.whole_file(path) as temporary:
        pd.DataFrame(rows).to_csv(temporary, index=False, lineterminator="\n")


def write_table(scale: str, name: str, table: pd.DataFrame) -> None:
    """Write one of our tables: a published one with COLUMNS, a figure also with its positions on the axis."""
    if name in params.keys("tables"):
        settings = params.load("tables", name)
        axis_columns = ["x", "published_x"] if settings.kind == "curves" else []
        table = table.assign(paper=settings.paper, table=settings.table)[[*COLUMNS, *axis_columns]]
    write_csv(paths.table(scale, name), table)


def read_table(path: Path) -> pd.DataFrame:
    """Read one of our tables, keeping `n/a` as a word and an empty cell as missing.

    Raises StudyError if the file is damaged.
    """
    try:
        return pd.read_csv(path, keep_default_na=False, na_values=[""])
    except ValueError as error:  # includes the parser's errors
        raise StudyError(f"{show_path(path)}: damaged ({error}); restore or delete it") from None


def find_table(path: Path) -> pd.DataFrame | None:
    """Read one of our tables, from a run here or the record; None if there is neither."""
    path = paths.find(path)
    return read_table(path) if path.exists() else None


def computed(path: Path, scale: str, make: Callable[..., object], *arguments) -> pd.DataFrame:
    """Compute a page's table and write it; without the scale's data, return the one at hand, of a run or the record.

    A page opened without data or weights therefore shows what was measured, and changes nothing. Raises StudyError if
    there is nothing to compute the table from.
    """
    if not paths.data(scale).is_dir() and (recorded := find_table(path)) is not None:
        return recorded
    table = pd.DataFrame(make(*arguments))
    if table.columns.empty:
        raise StudyError(f"{show_path(path)}: nothing at hand to make it of: run ./run_all.sh {scale}")
    write_csv(path, table)
    return table
