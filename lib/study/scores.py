"""Encoders on many datasets under a protocol, beside the paper's printed scores and the baselines."""

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
from lib.study import own_sets, params, paths, published, results, show, tables

if TYPE_CHECKING:
    from lib.study import Study

COLUMNS = ["protocol", "dataset", "family", "model", "score", "ours", "ours_std", "n_seeds", "collapsed", "tokens",
           "seconds", "FLOPs", "note"]  # fmt: skip
SET = ["protocol", "dataset", "score"]
PRINTED = ["paper", "dataset", "whose", "table", "published"]


def choose_printed_datasets(protocol: str) -> list[str]:
    """The datasets that a protocol's paper prints scores on."""
    paper = params.load("protocols", protocol).paper.split("-")[0]
    return [dataset.key for dataset in registry.ROWS if any(table.startswith(f"{paper}-") for table in dataset.results)]


def tabulate_runs(study: "Study", runs: Iterable[params.RunKey]) -> pd.DataFrame:
    """A line for each run, here or in the record: mean and spread over seeds, what it took, or why there is none.

    COLUMNS, and the 95% t interval of the mean in `low` and `high`. `score`: the one that ranks models on the dataset.
    """
    lines = []
    for model, key, protocol in runs:
        dataset = study.dataset(key)
        line = {"protocol": protocol, "dataset": key, "family": dataset.family, "model": model}
        line |= {"score": dataset.main_score, "n_seeds": 0}
        if result := results.read_result(study.scale, model, key, protocol):
            lines.append(line | summarise_runs(result))
        else:
            why_not = study.why_missing(key, protocol) or params.why_no_weights(model, study.scale)
            lines.append(line | {"note": why_not or results.NOT_MADE})
    return pd.DataFrame(lines, columns=[*COLUMNS, "low", "high"])


def summarise_runs(result: dict) -> dict:
    """What the runs of a result come to."""
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
    """Study.results, also on data of one's own, with the names that models have in files: `pubmedbert.2` of a second
    pretraining."""
    runs = study.results(own=True)
    names = list(map(params.name_model, runs["model"], runs["pretraining"]))
    return runs.assign(model=pd.Series(names, runs.index, dtype=str))  # text too where there is no run


def compare_pretrainings(study: "Study") -> pd.DataFrame:
    """Models that were pretrained several times, a line each: their score on each dataset, mean and standard deviation
    over pretrainings and the number of these, and the losses on held-out text at the end of each, where page 25 has
    listed them; of models that others continue the losses alone."""
    runs = keep_main(study.results())
    each = runs.groupby(["model", "pretraining", "protocol", "dataset"])["value"].mean()
    over = each.groupby(["model", "protocol", "dataset"], sort=False).agg(ours="mean", ours_std="std", n="count")
    said = over.dropna().apply(lambda line: f"{show.show_ours(line)} ({line['n']:.0f})", axis=1)
    table = said.unstack(["protocol", "dataset"]).rename_axis(None)
    table.columns = [f"{registry.lookup(dataset).title}, {protocol}" for protocol, dataset in table.columns]
    pretrained = results.find_table(paths.table(study.scale, "pretrained"))
    if pretrained is not None:
        table = table.join(list_losses(pretrained), how="outer").fillna("")
    return table.reset_index(names="model")


def list_losses(pretrained: pd.DataFrame) -> pd.Series:
    """The losses on held-out text of all pretrainings of each model, as text."""
    models = [params.split_seed(name)[0] for name in pretrained["model"]]
    losses = pretrained.assign(model=models).groupby("model")["held-out loss"]
    return losses.agg(lambda values: ", ".join(values.map("{:.2f}".format)))


def list_tables(paper: str) -> list[str]:
    """The keys of a paper's tables of scores, in its order."""
    found = [key for key, table in params.load_tables("scores").items() if table.paper == paper]
    return sorted(found, key=lambda key: (len(key), key))


def list_printed_scores(study: "Study", papers: Iterable[str]) -> pd.DataFrame:
    """The scores that papers print of single datasets, of the score that ranks models there: lines of
    `list_single_scores`."""
    return keep_main(list_single_scores(study, papers))


def list_single_scores(study: "Study", papers: Iterable[str]) -> pd.DataFrame:
    """The scores that papers print of single datasets: lines of Study.published with `paper`, `table` (its key) and
    `whose` (as printed); differences, which some tables print too, are left out."""
    found = []
    for key in (key for paper in papers for key in list_tables(paper)):
        cells, table = study.published(key), params.load("tables", key)
        cells = cells[~cells["is_mean"] & (cells["dataset"] != "") & cells["published"].notna()]
        cells = cells[~cells["column"].str.startswith("difference")]
        whose = [published.name_printed_model(table, cell) for cell in cells.to_dict("records")]
        found.append(cells.assign(paper=table.paper, table=key, whose=pd.Series(whose, cells.index, dtype=str)))
    return pd.concat(found) if found else pd.DataFrame(columns=[*PRINTED, "score"])


def list_registered_scores(study: "Study", papers: Iterable[str]) -> pd.DataFrame:
    """The same of the tables that a dataset is registered with, without what a table repeats."""
    lines = list_printed_scores(study, papers)
    places = zip(lines["dataset"], lines["table"], strict=True)
    registered = [table in registry.lookup(dataset).results for dataset, table in places]
    return lines.loc[registered, PRINTED].drop_duplicates(PRINTED[:-1])


def keep_main(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines, of printed cells or of runs, of the score that ranks models on their dataset."""
    return lines[lines["score"] == [registry.lookup(dataset).main_score for dataset in lines["dataset"]]]


def references(study: "Study", lines: pd.DataFrame) -> pd.DataFrame:
    """What stands beside our scores: a line for each protocol, dataset and score of `lines`.

    Columns besides: those of tables.BASELINES; published, the best score that the protocol's paper prints of the
    dataset, or at a scale that has a target the score of that model; whose it is, and in which table.
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
    """The rank of each line of `tabulate_runs` on its dataset under its protocol: one more than how many are above and
    apart.

    Two are apart where the 95% t-interval of their difference leaves out zero: by their seeds and, where both kept
    them, the draws of test documents. None for a line of fewer runs than their scatter takes, which counts for no
    other, and on made-up data.
    """
    if study.budget.made_up:
        return [None] * len(lines)
    ranks = {}
    own = list_study_runs(study).merge(lines[["protocol", "dataset", "model", "score"]])
    for place, runs in own.groupby(["protocol", "dataset"]):
        sides = split_models(runs)
        for model, found in sides.items():
            others = [other for name, other in sides.items() if name != model]
            ranks[*place, model] = 1 + sum(is_apart(other, found) for other in others)
    keys = lines[["protocol", "dataset", "model"]].itertuples(index=False, name=None)
    return [ranks.get(key) for key in keys]


def spread(study: "Study", lines: pd.DataFrame, beside: pd.DataFrame) -> pd.DataFrame:
    """The lines of `tabulate_runs` with a row for each set and a column for each model: mean, spread and rank, as text.

    `beside`: what stands beside each set (`references`), in the last columns. Empty: no such line.
    """
    ranks = [f" ({rank})" if rank else "" for rank in rank_lines(study, lines)]
    shown = lines.assign(said=[show.show_ours(line) for line in lines.to_dict("records")])
    shown["said"] += ranks
    wide = shown.pivot(index=SET, columns="model", values="said").reindex(columns=lines["model"].unique())
    wide = wide.fillna("").reset_index()
    return beside[SET].merge(wide).merge(beside.drop(columns="table"))


def split_models(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The runs of each model that has as many seeds as their scatter takes (SEEDS)."""
    sides = {}
    for model, found in runs.groupby("model", sort=False):
        if found["seed"].nunique() >= statistics.SEEDS:
            sides[model] = found
    return sides


def is_apart(better: pd.DataFrame, than: pd.DataFrame) -> bool:
    """Whether runs of one dataset are better than others by more than their seeds and test documents may make."""
    seeds = [[found.groupby("seed")["value"].mean().tolist()] for found in (better, than)]
    sample = tables.find_sample(better, than) or (0.0, 1)
    return statistics.judge(statistics.estimate_on_few([seeds[0]], [seeds[1]], [sample]))["verdict"] == "holds"


def list_means(study: "Study", paper: str) -> dict[str, dict[int, list[str]]]:
    """The means over datasets that a paper prints: name and first table -> the datasets of each group."""
    found: dict[str, dict[int, list[str]]] = {}
    for key in list_tables(paper):
        cells, table = study.published(key), params.load("tables", key)
        for place, cell in cells[cells["is_mean"] & cells["published"].notna()].groupby(["row", "column"], sort=False):
            groups = cell.groupby("group")["dataset"].agg(list).to_dict()
            model = published.name_printed_model(table, cell.iloc[0])
            (name,) = set(place) - {model}
            if groups not in found.values():
                found[f"{name} ({key})"] = groups
    return found


def totals(study: "Study", lines: pd.DataFrame) -> pd.DataFrame:
    """The means over datasets that the papers print, of our models: a line for each protocol, mean and model that has a
    set.

    The mean over groups of the mean over a group's sets, as in the BLURB score; empty unless all `of` sets were run.
    """
    found = []
    ran = lines.dropna(subset="ours")
    papers = {key: params.load("protocols", key).paper for key in ran["protocol"].unique()}
    means = {paper: list_means(study, paper) for paper in dict.fromkeys(papers.values())}
    for (protocol, model), runs in ran.groupby(["protocol", "model"], sort=False):
        scores = runs.set_index("dataset")["ours"]
        for name, groups in means[papers[protocol]].items():
            parts = scores.reindex(list(chain(*groups.values())))
            if parts.count():
                line = {"protocol": protocol, "mean": name, "model": model, "sets": parts.count(), "of": len(parts)}
                ours = metrics.benchmark_total(parts.to_dict(), groups)
                line |= {"ours": ours, "missing": ", ".join(parts.index[parts.isna()])}
                found.append(line)
    return pd.DataFrame(found, columns=["protocol", "mean", "model", "sets", "of", "ours", "missing"])


def say_target(study: "Study", lines: pd.DataFrame) -> list[str]:
    """Each score of a scale with a target against the printed one, in a sentence (Markdown); none without a target.

    Reached: the mean over seeds is no lower than the printed number.
    """
    target = study.budget.target
    if not target:
        return []
    said = []
    held = lines.merge(references(study, lines), on=SET).dropna(subset="published")
    for line in held.to_dict("records"):
        table = params.load("tables", line["table"]).table
        printed, ours = line["published"], line["ours"]
        if pd.isna(ours):
            outcome = f"n/a, {line['note']}"
        else:
            verdict = "reached" if ours >= printed else "not reached"
            outcome = f"{show.show_ours(line)} over {line['n_seeds']} seeds, *{verdict}*, {ours - printed:+.2f}"
        where = f"{registry.lookup(line['dataset']).title}, {line['score'].upper()}"
        said.append(
            f"{where}: {target} prints {show.show_value(printed)} (its Table {table}); {line['model']} {outcome}."
        )
    return said
