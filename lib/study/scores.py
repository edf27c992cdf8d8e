"""Scores of encoders on many datasets under a protocol, beside the paper's printed scores and the baselines."""

from collections.abc import Iterable
from itertools import chain
from math import nan
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lib import statistics
from lib.benchmarks import metrics, registry
from lib.finetuning.runs import average_folds
from lib.study import own_sets, params, published, results, show, tables

if TYPE_CHECKING:
    from lib.study import Study

COLUMNS = ["protocol", "dataset", "family", "model", "score", "ours", "ours_std", "n_seeds", "collapsed", "tokens",
           "seconds", "FLOPs", "note"]  # fmt: skip
SET = ["protocol", "dataset", "score"]
PRINTED = ["paper", "dataset", "whose", "table", "published"]


def choose_printed_datasets(protocol: str) -> list[str]:
    """List the datasets on which a protocol's paper prints scores."""
    paper = params.load("protocols", protocol).paper.split("-")[0]
    return [dataset.key for dataset in registry.ROWS if any(table.startswith(f"{paper}-") for table in dataset.results)]


def tabulate_runs(study: "Study", runs: Iterable[params.RunKey]) -> pd.DataFrame:
    """Return a row for each run, here or in the record: mean and spread over seeds, its cost, or why it is missing.

    Columns: COLUMNS, and the 95% t-interval of the mean in `low` and `high`. `score`: the dataset's main score.
    """
    rows = []
    for model, key, protocol in runs:
        dataset = study.dataset(key)
        row = {"protocol": protocol, "dataset": key, "family": dataset.family, "model": model}
        row |= {"score": dataset.main_score, "n_seeds": 0}
        if result := results.read_result(study.scale, model, key, protocol):
            rows.append(row | summarize_runs(result))
        else:
            why_not = study.why_missing(key, protocol) or params.why_no_weights(model, study.scale)
            rows.append(row | {"note": why_not or results.NOT_MADE})
    return pd.DataFrame(rows, columns=[*COLUMNS, "low", "high"])


def summarize_runs(result: dict) -> dict:
    """Return the summary of a result's runs: mean, spread and interval over seeds, collapsed runs, cost."""
    values = [scores[result["main score"]] for scores in average_folds(result).values()]
    low, high = statistics.find_interval(values)
    costs = [name for name in ("tokens", "seconds", "FLOPs") if name in result["runs"][0]]
    return {
        "ours": round(fmean(values), 2),
        "ours_std": round(float(np.std(values, ddof=1)), 2) if len(values) > 1 else nan,
        "n_seeds": len(values),
        "collapsed": sum(bool(run["collapsed"]) for run in result["runs"]),
        **{name: sum(run[name] for run in result["runs"]) for name in costs},
        "low": low,
        "high": high,
    }


def list_study_runs(study: "Study") -> pd.DataFrame:
    """Return Study.results, user data included, with models named as in files.

    The second pretraining of a model is named `pubmedbert.2`.
    """
    runs = study.results(own=True)
    names = list(map(params.name_model, runs["model"], runs["pretraining"]))
    return runs.assign(model=pd.Series(names, runs.index, dtype=str))  # text even if there is no run


def compare_pretrainings(study: "Study") -> pd.DataFrame:
    """Return a row for each model that was pretrained several times.

    Columns: its score on each dataset (mean and standard deviation over pretrainings, and their number), and the final
    held-out loss of each pretraining, if page 25 has listed them. Models without such scores, for example those that
    others continue, have only losses.
    """
    runs = keep_main(study.results())
    means = runs.groupby(["model", "pretraining", "protocol", "dataset"])["value"].mean()
    summary = means.groupby(["model", "protocol", "dataset"], sort=False).agg(ours="mean", ours_std="std", n="count")
    texts = summary.dropna().apply(lambda line: f"{show.show_ours(line)} ({line['n']:.0f})", axis=1)
    table = texts.unstack(["protocol", "dataset"]).rename_axis(None)
    table.columns = [f"{registry.lookup(dataset).title}, {protocol}" for protocol, dataset in table.columns]
    pretrained = study.find_table("pretrained")
    if pretrained is not None:
        table = table.join(list_losses(pretrained), how="outer").fillna("")
    return table.reset_index(names="model")


def list_losses(pretrained: pd.DataFrame) -> pd.Series:
    """Return the held-out losses of all pretrainings of each model, as text."""
    models = [params.split_seed(name)[0] for name in pretrained["model"]]
    losses = pretrained.assign(model=models).groupby("model")["held-out loss"]
    return losses.agg(lambda values: ", ".join(values.map("{:.2f}".format)))


def list_tables(paper: str) -> list[str]:
    """List the keys of a paper's score tables, in the paper's order."""
    table_keys = [key for key, table in params.load_tables("scores").items() if table.paper == paper]
    return sorted(table_keys, key=lambda key: (len(key), key))


def list_printed_scores(study: "Study", papers: Iterable[str]) -> pd.DataFrame:
    """Return the main scores that papers print for single datasets: rows of `list_single_scores`."""
    return keep_main(list_single_scores(study, papers))


def list_single_scores(study: "Study", papers: Iterable[str]) -> pd.DataFrame:
    """Return the scores that papers print for single datasets.

    These are rows of Study.published with `paper`, `table` (its key) and `whose` (the model, as printed). Differences,
    which some tables print too, are left out.
    """
    frames = []
    for paper in papers:
        for key in list_tables(paper):
            table, cells = params.load("tables", key), study.published(key)
            is_single = ~cells["is_mean"] & (cells["dataset"] != "")
            is_score = cells["published"].notna() & ~cells["column"].str.startswith("difference")
            cells = cells[is_single & is_score]
            models = [published.name_printed_model(table, cell) for cell in cells.to_dict("records")]
            whose = pd.Series(models, cells.index, dtype=str)  # text even if there is no cell
            frames.append(cells.assign(paper=paper, table=key, whose=whose))
    return pd.concat(frames) if frames else pd.DataFrame(columns=[*PRINTED, "score"])


def list_registered_scores(study: "Study", papers: Iterable[str]) -> pd.DataFrame:
    """Return `list_printed_scores` for the tables each dataset is registered with, without repeats within a table."""
    rows = list_printed_scores(study, papers)
    pairs = zip(rows["dataset"], rows["table"], strict=True)
    is_registered = [table in registry.lookup(dataset).results for dataset, table in pairs]
    return rows.loc[is_registered, PRINTED].drop_duplicates(PRINTED[:-1])


def keep_main(lines: pd.DataFrame) -> pd.DataFrame:
    """Keep the rows (printed cells or runs) whose score is the main score of their dataset."""
    return lines[lines["score"] == [registry.lookup(dataset).main_score for dataset in lines["dataset"]]]


def references(study: "Study", lines: pd.DataFrame) -> pd.DataFrame:
    """Return the references for our scores: a row for each protocol, dataset and score of `lines`.

    Further columns: those of tables.BASELINES; `published`, the best score that the protocol's paper prints for the
    dataset, or the target model's score at a scale that has a target; `whose` score it is, and its `table`.
    """
    rows = lines[SET].drop_duplicates()
    rows["paper"] = rows["protocol"].map(lambda key: params.load("protocols", key).paper)
    printed = list_registered_scores(study, rows["paper"].unique())
    if study.budget.target:
        printed = printed[printed["whose"] == study.budget.target]
    best = printed.sort_values("published", ascending=False, kind="stable").drop_duplicates(["paper", "dataset"])
    baselines = own_sets.list_all_baselines(study, rows["dataset"].unique())
    rows = rows.merge(baselines, how="left", on=["dataset", "score"])
    return rows.merge(best, how="left", on=["paper", "dataset"]).drop(columns="paper")


def rank_lines(study: "Study", lines: pd.DataFrame) -> list[int | None]:
    """Return the rank of each row of `tabulate_runs` on its dataset under its protocol.

    A rank is one more than the number of models that are better and apart. Two models are apart if the 95% t-interval
    of their difference excludes zero; its error comes from seeds and, where both models kept them, draws of test
    documents. None on made-up data, and for a model with too few seeds to measure their scatter, which counts in no
    other rank either.
    """
    if study.budget.made_up:
        return [None] * len(lines)
    ranks = {}
    study_runs = list_study_runs(study).merge(lines[["protocol", "dataset", "model", "score"]])
    for group, runs in study_runs.groupby(["protocol", "dataset"]):
        sides = split_models(runs)
        for model, model_runs in sides.items():
            others = [other for name, other in sides.items() if name != model]
            ranks[*group, model] = 1 + sum(is_apart(other, model_runs) for other in others)
    keys = lines[["protocol", "dataset", "model"]].itertuples(index=False, name=None)
    return [ranks.get(key) for key in keys]


def spread(study: "Study", lines: pd.DataFrame, beside: pd.DataFrame) -> pd.DataFrame:
    """Return `tabulate_runs` with a row for each dataset and a column for each model: mean, spread and rank, as text.

    `beside`: each dataset's `references`, shown in the last columns. A cell is empty if there is no such run.
    """
    ranks = [f" ({rank})" if rank else "" for rank in rank_lines(study, lines)]
    frame = lines.assign(said=[show.show_ours(row) for row in lines.to_dict("records")])
    frame["said"] += ranks
    wide = frame.pivot(index=SET, columns="model", values="said").reindex(columns=lines["model"].unique())
    wide = wide.fillna("").reset_index()
    return beside[SET].merge(wide).merge(beside.drop(columns="table"))


def split_models(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the runs of each model that has enough seeds to measure their scatter (SEEDS)."""
    sides = {}
    for model, model_runs in runs.groupby("model", sort=False):
        if model_runs["seed"].nunique() >= statistics.SEEDS:
            sides[model] = model_runs
    return sides


def is_apart(better: pd.DataFrame, than: pd.DataFrame) -> bool:
    """Return whether runs on one dataset are better than others by more than the noise of seeds and test documents."""
    # One dataset and one pretraining, in the form of statistics.Side.
    first, second = ([[side.groupby("seed")["value"].mean().tolist()]] for side in (better, than))
    sample = tables.find_sample(better, than) or (0.0, 1)
    estimate = statistics.estimate_on_few(first, second, [sample])
    return statistics.judge(estimate)["verdict"] == "holds"


def list_means(study: "Study", paper: str) -> dict[str, dict[int, list[str]]]:
    """Return the means over datasets that a paper prints: name and first table -> the datasets of each group."""
    means = {}
    for key in list_tables(paper):
        cells, table = study.published(key), params.load("tables", key)
        for labels, cell in cells[cells["is_mean"] & cells["published"].notna()].groupby(["row", "column"], sort=False):
            groups = cell.groupby("group")["dataset"].agg(list).to_dict()
            model = published.name_printed_model(table, cell.iloc[0])
            (name,) = set(labels) - {model}
            if groups not in means.values():
                means[f"{name} ({key})"] = groups
    return means


def totals(study: "Study", lines: pd.DataFrame) -> pd.DataFrame:
    """Return our models' means over the datasets that the papers average.

    There is a row for each protocol, mean and model that ran at least one of the datasets. A mean is taken within each
    group of datasets, then over groups, as in the BLURB score; it is empty unless all `of` datasets were run.
    """
    rows = []
    scored_rows = lines.dropna(subset="ours")
    papers = {key: params.load("protocols", key).paper for key in scored_rows["protocol"].unique()}
    means = {paper: list_means(study, paper) for paper in dict.fromkeys(papers.values())}
    for (protocol, model), runs in scored_rows.groupby(["protocol", "model"], sort=False):
        scores = runs.set_index("dataset")["ours"]
        for name, groups in means[papers[protocol]].items():
            values = scores.reindex(list(chain(*groups.values())))
            if values.count():
                row = {"protocol": protocol, "mean": name, "model": model, "sets": values.count(), "of": len(values)}
                mean = metrics.benchmark_total(values.to_dict(), groups)
                row |= {"ours": mean, "missing": ", ".join(values.index[values.isna()])}
                rows.append(row)
    return pd.DataFrame(rows, columns=["protocol", "mean", "model", "sets", "of", "ours", "missing"])


def describe_target(study: "Study", lines: pd.DataFrame) -> list[str]:
    """Compare each score with the target's printed one, in a sentence each (Markdown); none if the scale has no target.

    A target is reached if the mean over seeds is no lower than the printed number.
    """
    target = study.budget.target
    if not target:
        return []
    sentences = []
    rows = lines.merge(references(study, lines), on=SET).dropna(subset="published")
    for row in rows.to_dict("records"):
        table = params.load("tables", row["table"]).table
        printed, ours = row["published"], row["ours"]
        if pd.isna(ours):
            outcome = f"n/a, {row['note']}"
        else:
            verdict = "reached" if ours >= printed else "not reached"
            outcome = f"{show.show_ours(row)} over {row['n_seeds']} seeds, *{verdict}*, {ours - printed:+.2f}"
        label = f"{registry.lookup(row['dataset']).title}, {row['score'].upper()}"
        sentences.append(
            f"{label}: {target} prints {show.show_value(printed)} (its Table {table}); {row['model']} {outcome}."
        )
    return sentences
