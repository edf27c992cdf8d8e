"""Models beside each other on many datasets under one protocol, with what the papers print of these datasets."""

from collections.abc import Iterable
from statistics import fmean, stdev

import pandas as pd

from lib import artefacts
from lib.benchmarks import metrics, registry
from lib.benchmarks.baselines import CHANCE, NO_PRETRAINING
from lib.errors import StudyError
from lib.study import open_study, params, paths, published, results
from lib.study.analysis.compare import show_ours, show_value

COLUMNS = ["protocol", "dataset", "family", "model", "score", "ours", "ours_std", "n_seeds", "collapsed", "tokens",
           "seconds", "FLOPs", "note"]  # fmt: skip
TOTALS = {"gu": ("BLURB score", "gu-6"), "wada": ("BLUE total", "wada-7")}  # protocol -> name, and table of its sets


def choose(protocol: str) -> list[str]:
    """The datasets that a protocol's paper prints scores on."""
    paper = params.load("protocols", protocol).paper.split("-")[0]
    return [dataset.key for dataset in registry.ROWS if any(table.startswith(f"{paper}-") for table in dataset.results)]


def read_request(scale: str, model: str, setting: str) -> dict:
    """What was asked for of somebody's encoder, its source and datasets; StudyError where nothing was."""
    path = paths.evaluation(scale, model, setting)
    if not path.exists():
        raise StudyError(
            f"'{model}' has not been evaluated under {setting} at scale '{scale}': run ./run_all.sh evaluate --model "
            f"FOLDER_OR_HUB_NAME --protocol {setting} --scale {scale}"
        )
    return artefacts.read_json(path)


def list_panels(scale: str) -> pd.DataFrame:
    """A scale's panels, a row each."""
    return pd.DataFrame(
        {"protocol": panel.protocol, "models": ", ".join(panel.models), "datasets": ", ".join(panel.datasets)}
        for panel in params.load("scales", scale).panels
    )


def build(scale: str, runs: Iterable[params.RunKey]) -> pd.DataFrame:
    """A line for each run: mean and standard deviation over seeds, what it took, or why there is none."""
    lines = []
    for model, key, protocol in runs:
        dataset = registry.lookup(key)
        line = {"protocol": protocol, "dataset": key, "family": dataset.family, "model": model}
        line |= {"score": dataset.main_score, "n_seeds": 0}
        result = results.read(scale, model, key, protocol)
        why = open_study(scale).why_missing(key, protocol) if result is None else ""
        if result is None:
            lines.append(line | {"note": why or results.NOT_MADE})
        else:
            lines.append(line | summarise(result))
    return pd.DataFrame(lines, columns=COLUMNS)


def summarise(result: dict) -> dict:
    """What the runs of a result come to."""
    values = [scores[result["main score"]] for scores in results.by_seed(result).values()]
    return {
        "ours": round(fmean(values), 2),
        "ours_std": round(stdev(values), 2) if len(values) > 1 else None,
        "n_seeds": len(values),
        "collapsed": sum(bool(run["collapsed"]) for run in result["runs"]),
    } | {name: sum(run[name] for run in result["runs"])
         for name in ("tokens", "seconds", "FLOPs") if name in result["runs"][0]}  # fmt: skip


def total(lines: pd.DataFrame, protocol: str, model: str) -> dict | None:
    """The benchmark total of a protocol's paper, and which of its sets a model did not run on: then it has none.

    BLURB: the mean over task types of the mean over their sets; BLUE: the mean over sets. None for a paper without one.
    """
    if protocol not in TOTALS:
        return None
    name, table = TOTALS[protocol]
    members = [dataset for dataset in registry.ROWS if table in dataset.results]
    found = lines[(lines["protocol"] == protocol) & (lines["model"] == model) & lines["ours"].notna()]
    scores = dict(zip(found["dataset"], found["ours"], strict=True))
    groups: dict[str, list[str]] = {}
    for dataset in members:
        if dataset.key in scores:
            groups.setdefault(dataset.family if protocol == "gu" else name, []).append(dataset.key)
    missing = [dataset.key for dataset in members if dataset.key not in scores]
    value = None if missing else round(metrics.benchmark_total(scores, groups), 2)
    return {"name": name, "value": value, "sets": len(members) - len(missing), "missing": missing}


def read_published(dataset: str, protocol: str) -> dict[str, float]:
    """What a protocol's paper prints of a dataset, of the score that ranks models on it: name in a table -> value."""
    found = {}
    for key in registry.lookup(dataset).results:
        table = params.load("tables", key) if key in params.keys("tables") else None
        if table is None or table.paper != params.load("protocols", protocol).paper:
            continue
        for cell in results.read_published(table.paper, table.table).dropna(subset="value").to_dict("records"):
            run, main = published.find_run(table, cell["row"], cell["column"]), registry.lookup(dataset).main_score
            if run.dataset == dataset and table.metrics.get(cell["metric"], main) == main:
                found[f"{published.name_model(table, cell)} ({key})"] = cell["value"]
    return found


def read_floors(scale: str) -> dict[str, dict[str, float]]:
    """What a dataset scores without an encoder, the best of each kind: dataset -> kind -> score."""
    found = results.list_floors(scale).set_index("dataset")
    kinds = {column: kind for kind, column in results.FLOORS.items()}
    best = found[list(kinds)].rename(columns=kinds)
    return {dataset: row.dropna().to_dict() for dataset, row in best.iterrows()}


def spread(lines: pd.DataFrame, scale: str) -> pd.DataFrame:
    """The panels as a person reads them: a row a dataset and protocol, a column a model, what needs no encoder, and
    what is printed."""
    rows, floors = [], read_floors(scale)
    for (protocol, dataset), found in lines.groupby(["protocol", "dataset"], sort=False):
        row = {"dataset": dataset, "protocol": protocol, "score": found["score"].iloc[0]}
        for line in found.to_dict("records"):
            row[line["model"]] = show_ours(line)
        row |= {kind: show_value(score) for kind, score in floors.get(dataset, {}).items()}
        printed = read_published(dataset, protocol).items()
        rows.append(row | {"printed": ", ".join(f"{name} {show_value(value)}" for name, value in printed)})
    wide = pd.DataFrame(rows).fillna("")
    last = [name for name in (CHANCE, NO_PRETRAINING, "printed") if name in wide]
    return wide[[name for name in wide if name not in last] + last]


def describe_bar(lines: pd.DataFrame, scale: str) -> list[str]:
    """Each score of a scale with a bar against the printed one (Markdown items).

    Reached: the mean over seeds is no lower than the printed number.
    """
    bar, said = params.load("scales", scale).bar, []
    for line in lines.to_dict("records") if bar else []:
        for name, printed in read_published(line["dataset"], line["protocol"]).items():
            paper, key = name.removesuffix(")").rsplit(" (", 1)
            if paper != bar:
                continue
            printed_in = f"{paper} prints {show_value(printed)} (its Table {params.load('tables', key).table})"
            ours = f"n/a, {line['note']}"
            if pd.notna(line["ours"]):
                verdict = "reached" if line["ours"] >= printed else "not reached"
                ours = f"{show_ours(line)} over {line['n_seeds']} seeds, *{verdict}*, {line['ours'] - printed:+.2f}"
            title = registry.lookup(line["dataset"]).title
            said.append(f"- {title}, {line['score'].upper()}: {printed_in}; {line['model']} {ours}.")
    return said


def describe(lines: pd.DataFrame, scale: str) -> str:
    """What the panels show, in sentences made from their numbers (Markdown)."""
    ran = lines[lines["ours"].notna()]
    collapsed, seconds = ran["collapsed"].sum(), ran["seconds"].sum()
    said = []
    for protocol, model in lines[["protocol", "model"]].drop_duplicates().itertuples(index=False):
        found = total(lines, protocol, model)
        if found and found["sets"]:
            missing = found["missing"]
            value = f"n/a, without {', '.join(missing)}" if missing else f"{found['value']:.2f}"
            said.append(f"- {model}: {found['name']} {value}.")
    said += describe_bar(lines, scale)
    said += [
        f"- {len(ran)} of {len(lines)} combinations of model, dataset and protocol were run with all their seeds and "
        f"folds, on {ran['dataset'].nunique()} datasets of {ran['family'].nunique()} families, in {seconds / 60:.0f} "
        f"minutes of training; {collapsed:.0f} runs of a seed or fold collapsed.",
    ]
    missing = lines[lines["ours"].isna()].groupby(["dataset", "protocol", "note"], sort=False)["model"]
    said += [
        f"- {dataset} under {protocol}, n/a for {', '.join(models)}: {note}."
        for (dataset, protocol, note), models in missing
    ]
    if params.load("scales", scale).made_up:
        said.append("- The data are made up: these scores are not findings.")
    return "\n".join(said)
