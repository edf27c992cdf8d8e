"""Published tables with our scores in their cells, and the verdict on each, from frames of Study.

A cell is a row, a column and a metric; it has one line for each dataset that it averages, or for its only dataset.
"""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lib import statistics
from lib.benchmarks import jackknife
from lib.study import results

if TYPE_CHECKING:
    from lib.study import Study

PLACE = ["row", "column", "metric"]
RUN = ["model", "dataset", "protocol", "score"]
SEED = ["pretraining", "seed"]
BASELINES = [*results.BASELINES.values()]
WIDEST = 2.0  # points to each side, of an interval in which a printed score agrees


def by_seed(cells: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each cell, pretraining and seed, with our score in `ours`; in a figure of gains, our gain.

    Scores are averaged over folds, over the datasets of a group, then over groups. A seed that lacks a dataset of the
    cell is left out, so that every mean covers all datasets. A cell without a seed keeps one line.
    """
    if "side" not in cells:
        return score_seeds(cells, runs)
    is_reference = cells["side"] == "than"
    seeds = score_seeds(cells[~is_reference], runs)
    return subtract(seeds, score_seeds(cells[is_reference], runs)) if is_reference.any() else seeds


def score_seeds(cells: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of cells as in `by_seed`."""
    fold_means = runs.groupby([*RUN, *SEED], as_index=False)["value"].mean()
    cells = cells.assign(sets=cells.groupby(PLACE)["dataset"].transform("size"))
    scores = cells[cells["why_not"] == ""].merge(fold_means, on=RUN)

    seed_columns = [*PLACE, *SEED]
    n_sets = scores.groupby(seed_columns)["dataset"].transform("size")
    complete = scores[n_sets == scores["sets"]]
    group_means = complete.groupby([*seed_columns, "group"])["value"].mean()
    ours = group_means.groupby(seed_columns).mean().rename("ours").reset_index()
    places = cells.drop_duplicates(PLACE).drop(columns=["dataset", "group", "sets"])
    return places.merge(ours, how="left", on=PLACE)


def summarize_cells(seeds: pd.DataFrame, made_up: bool = False) -> pd.DataFrame:
    """Return a line for each cell: mean and standard deviation of ours, number of seeds, verdict and note.

    The note says why ours is missing, what ours has in place of what the paper names, and whether the paper prints no
    number. On made-up data the verdict is n/a.

    Runs of several pretrainings are pooled as seeds: variation between pretrainings and within them is not separated.
    """
    by_cell = seeds.groupby(PLACE, sort=False)["ours"]
    table = seeds.drop_duplicates(PLACE).drop(columns=SEED).reset_index(drop=True)
    table["ours"] = by_cell.mean().round(2).to_numpy()
    table["ours_std"] = by_cell.std().round(2).to_numpy()
    table["n_seeds"] = by_cell.count().to_numpy()

    unprinted = "the paper prints no value" if "side" in table else "not in the paper"  # a figure only plots values
    remarks = table["published"].isna().map({True: f"{unprinted}; ", False: ""}) + table["substituted"]
    ran_note = results.MADE_UP if made_up else remarks.str.removesuffix("; ")
    missing_note = table["why_not"].where(table["why_not"] != "", results.NOT_MADE)
    table["note"] = missing_note.where(table["n_seeds"] == 0, ran_note)
    if made_up:
        return table.assign(verdict="n/a")
    verdicts = []
    for published, (_, ours) in zip(table["published"], by_cell, strict=True):
        verdicts.append(judge_cell(published, ours.dropna().tolist()))
    return table.assign(verdict=verdicts)


def baselines(cells: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each cell with its baselines without an encoder, averaged as in `by_seed`.

    Columns: BASELINES, empty if the score of a dataset of the cell is unknown. `known`: from Study.baselines.
    """
    lines = cells.merge(known, how="left", on=["dataset", "score"])
    for keys in ([*PLACE, "group"], PLACE):
        lines = lines.groupby(keys, sort=False)[BASELINES].mean(skipna=False).reset_index()
    return lines


def fill(cells: pd.DataFrame, seeds: pd.DataFrame, study: "Study") -> pd.DataFrame:
    """Return a line for each cell: ours as in `summarize_cells`, and its baselines without an encoder."""
    filled = summarize_cells(seeds, study.budget.made_up)
    return filled.merge(baselines(cells, study.baselines()), how="left", on=PLACE)


def find_sample(better: pd.DataFrame, than: pd.DataFrame) -> tuple[float, float] | None:
    """Return the variance of the difference between two sides' runs on one dataset, and its degrees of freedom.

    The variance is over draws of test documents. None unless every run kept its jackknife scores.
    """
    first, second = ({fold: [*runs] for fold, runs in side.groupby("fold")["jackknife"]} for side in (better, than))
    return jackknife.compare_sides(first, second)


def subtract(frame: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Return the gains of one frame of `by_seed` over another at the same place, pretraining and seed.

    `published` stays, because in a figure of gains it already is the printed gain.
    """
    gains = subtract_column(frame, other, [*PLACE, *SEED], "ours")
    places = frame.drop(columns=[*SEED, "ours"]).drop_duplicates(PLACE)
    return places.merge(gains.dropna(subset="ours"), how="left", on=PLACE)


def subtract_column(frame: pd.DataFrame, other: pd.DataFrame, keys: list[str], column: str) -> pd.DataFrame:
    """Return `keys` and one frame's column minus the other's, for the keys that both have."""
    merged = frame[[*keys, column]].merge(other[[*keys, column]], on=keys)
    merged[column] = merged.pop(f"{column}_x") - merged.pop(f"{column}_y")
    return merged


def tabulate_effects(
    seeds: pd.DataFrame, steps: dict[str, tuple[str, str]], across: str = "column", only_means: bool = False
) -> pd.DataFrame:
    """Return what each step adds, by place: the printed difference, and mean, deviation and number of ours over seeds.

    `steps`: name -> the better one and the other, as for `differences`. Indexed by step and place, with the columns
    paper, ours, sd and n. Places that have neither are left out. `only_means`: take the means over datasets in place of
    the single datasets.
    """
    seeds = seeds[seeds["is_mean"] == only_means]
    gains = pd.concat(differences(seeds, *pair, across=across).assign(step=name) for name, pair in steps.items())
    by_place = gains.groupby(["step", "place"], sort=False)
    effects = by_place.agg(paper=("published", "first"), ours=("ours", "mean"), sd=("ours", "std"), n=("ours", "count"))
    return effects.dropna(subset=["paper", "ours"], how="all")


def recompute_means(cells: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each printed mean: as printed, and recomputed from the printed cells of its datasets.

    The recomputed mean is empty unless all of these cells are printed.
    """

    def average(values: pd.Series) -> float:
        return values.mean(skipna=False)  # empty if a part is empty

    single = cells[~cells["is_mean"]]
    mean_cells = cells[cells["is_mean"] & cells["published"].notna()]
    axis = "row" if mean_cells["row"].isin(single["row"]).all() else "column"
    keys = [axis, "dataset", "score"]
    components = mean_cells.drop(columns="published").merge(single[[*keys, "published"]], how="left", on=keys)
    group_means = components.groupby([*PLACE, "group"], sort=False)["published"].agg(average)
    recomputed = group_means.groupby(PLACE, sort=False).agg(average).rename("recomputed")
    printed = mean_cells.drop_duplicates(PLACE)[[*PLACE, "published"]]
    return printed.merge(recomputed.reset_index(), on=PLACE)


def missing(filled: pd.DataFrame) -> pd.DataFrame:
    """Count the cells without a score of ours, by reason, among the printed cells, or all if none is printed."""
    printed = filled["published"].notna()
    unscored = filled[filled["ours"].isna() & (printed | ~printed.any())]
    return unscored.groupby("note").size().rename("cells").reset_index().rename(columns={"note": "reason"})


def differences(seeds: pd.DataFrame, better: str, than: str, across: str = "column") -> pd.DataFrame:
    """Return one column minus another, a line for each row and seed that both have.

    With `across="row"`, one row minus another. `place`: the row, or the column; `published`: the printed difference;
    `ours`: empty if one has not been run.
    """
    place = "row" if across == "column" else "column"
    keys = [place, "metric"]
    first = seeds[seeds[across] == better]
    second = seeds[seeds[across] == than]

    printed = subtract_column(first.drop_duplicates(keys), second.drop_duplicates(keys), keys, "published")
    ours = subtract_column(first.dropna(subset="ours"), second, [*keys, *SEED], "ours")
    return printed.merge(ours, how="left", on=keys).rename(columns={place: "place"})


def judge_cell(published: float, ours: list[float]) -> str:
    """Return `agrees` if the printed value lies in the 95% t-interval of our mean over seeds, else `below` or `above`.

    `below`: ours is the lower one. `undecided`: the interval is too wide (WIDEST) to tell. Fewer than two seeds give no
    interval: `n/a`.
    """
    if len(ours) < 2 or np.isnan(published):
        return "n/a"
    low, high = statistics.find_interval(ours)
    if low <= published <= high:
        return "agrees" if high - low <= 2 * WIDEST else "undecided"
    return "below" if high < published else "above"
