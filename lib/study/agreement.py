"""The verdict on each printed cell that we have a score for, counted over tables and papers."""

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lib import statistics
from lib.study import params, paths, results

if TYPE_CHECKING:
    from lib.study import Study

VERDICTS = ("agrees", "explained", "below", "above", "differs", "n/a")  # on a printed cell with ours beside it


def judge_cell(published: float, ours: list[float]) -> str:
    """`agrees` when the printed value lies in the 95% t-interval of our mean over seeds, else `below` or `above`.

    Fewer than two seeds give no interval: `n/a`.
    """
    if len(ours) < 2 or np.isnan(published):
        return "n/a"
    low, high = statistics.find_interval(ours)
    if low <= published <= high:
        return "agrees"
    return "below" if high < published else "above"


def read_made_tables(study: "Study") -> dict[str, pd.DataFrame]:
    """The published tables that have been made at a scale, by key; figures repeat cells of tables, and are left out."""
    keys = [key for key in params.keys("tables") if params.load("tables", key).kind != "curves"]
    found = {key: results.find_table(paths.table(study.scale, key)) for key in keys}
    return {key: table for key, table in found.items() if table is not None}


def count_verdicts(study: "Study") -> pd.DataFrame:
    """Of each table: its printed cells, how many have ours beside them, and how many of these each verdict took.

    In the order of the notebooks. Tables that have not been made, and figures whose values the papers do not print,
    count nothing.
    """
    lines, made = [], read_made_tables(study)
    for key in sorted(params.keys("tables"), key=lambda key: params.load("tables", key).notebook):
        cells = made.get(key, pd.DataFrame(columns=["published", "ours", "verdict"]))
        printed = cells[cells["published"].notna()]
        ran = printed[printed["ours"].notna()]
        verdicts = ran["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
        lines.append({"table": key, "printed": len(printed), "ours beside": len(ran)} | verdicts.to_dict())
    return pd.DataFrame(lines)


def split_verdicts(verdicts: pd.DataFrame) -> dict[str, pd.Series]:
    """The verdicts of tables added up: of cells that need no training, and of the scores of models trained here."""
    scores = np.array([params.load("tables", key).kind == "scores" for key in verdicts["table"]], dtype=bool)
    counts = verdicts[["printed", "ours beside", *VERDICTS]].astype(int)  # a paper may have no table of a kind
    return {"what is counted": counts[~scores].sum(), "scores of models": counts[scores].sum()}


def describe_agreement(counts: pd.Series) -> str:
    """Of the cells that were judged, how many agree: of one table, or of several added up."""
    judged = counts["ours beside"] - counts["n/a"]
    if not judged:
        return "none is judged"
    explained = f", {counts['explained']} more explained" if counts["explained"] else ""
    below = f", {counts['below']} below" if counts["below"] else ""
    return f"{counts['agrees']} of {judged} agree{explained}{below}"


def decision_accuracy(cells: pd.DataFrame) -> pd.DataFrame:
    """Of each dataset the pairs of printed cells that ours orders as the paper does (Magnusson et al. 2025).

    `cells`: dataset, published and ours, a line for each model; those without both are left out, and so are pairs that
    are printed equal. Columns: dataset, models, pairs, alike (how many of the pairs).
    """
    lines = []
    for dataset, models in cells.dropna(subset=["published", "ours"]).groupby("dataset", sort=False):
        scores = models[["published", "ours"]].itertuples(index=False)
        pairs = alike = 0
        for one, other in itertools.combinations(scores, 2):
            if one.published != other.published:
                pairs += 1
                alike += (one.published - other.published) * (one.ours - other.ours) > 0
        if pairs:
            lines.append([dataset, len(models), pairs, alike])
    return pd.DataFrame(lines, columns=["dataset", "models", "pairs", "alike"])


def find_share(decided: pd.DataFrame) -> tuple[float, float, float]:
    """The share of all pairs that are ordered alike, with its exact 95% interval (Clopper and Pearson 1934).

    Of some models on a dataset no more comparisons are independent than models but one.
    """
    from scipy import stats  # here, as it takes most of a second

    share = decided["alike"].sum() / decided["pairs"].sum()
    independent = (decided["models"] - 1).sum()
    hit = share * independent
    miss = (1 - share) * independent
    low = float(stats.beta.ppf(0.025, hit, miss + 1)) if hit else 0.0
    high = float(stats.beta.ppf(0.975, hit + 1, miss)) if miss else 1.0
    return share, low, high


def signal_to_noise(seeds: pd.DataFrame) -> pd.Series:
    """Of each dataset how far models lie apart over how far their seeds do: both standard deviations.

    `seeds`: dataset, model and ours, a line for each seed; a dataset needs two models with two seeds.
    """
    each = seeds.groupby(["dataset", "model"], sort=False)["ours"]
    noise = np.sqrt(each.var().groupby("dataset", sort=False).mean())
    return (each.mean().groupby("dataset", sort=False).std() / noise).dropna()


def variation(published: float, ours: float) -> float:
    """CV*, the degree of reproduction of two scores in %, 0 for equal ones (Belz 2022): their standard deviation over
    their mean, both corrected for so small a sample."""
    n, c4 = 2, np.sqrt(2 / np.pi)
    return 100 * (1 + 1 / (4 * n)) * (np.std([published, ours], ddof=1) / c4) / np.mean([published, ours])
