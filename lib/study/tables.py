"""A published table with our scores in its cells: functions of frames, Study.published, .results and .baselines.

A cell is a row, a column and a metric; its lines are the datasets that it is a mean of, or the one that it is of.
"""

from typing import TYPE_CHECKING

import pandas as pd

from lib.benchmarks import jackknife
from lib.study import agreement, results

if TYPE_CHECKING:
    from lib.study import Study

PLACE = ["row", "column", "metric"]
RUN = ["model", "dataset", "protocol", "score"]
SEED = ["pretraining", "seed"]
BASELINES = [*results.BASELINES.values()]


def by_seed(cells: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """A line for each cell, pretraining and seed, with `ours`: the mean over folds, over each group of sets, over
    groups; of a figure of gains, the gain.

    A seed that not every set of a cell has is left out: a mean of sets is of all of them, or empty. A cell without a
    seed keeps one line.
    """
    if "side" not in cells:
        return score_seeds(cells, runs)
    than = cells["side"] == "than"
    seeds = score_seeds(cells[~than], runs)
    return subtract(seeds, score_seeds(cells[than], runs)) if than.any() else seeds


def score_seeds(cells: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """The scores of cells as of `by_seed`."""
    over_folds = runs.groupby([*RUN, *SEED], as_index=False)["value"].mean()
    cells = cells.assign(sets=cells.groupby(PLACE)["dataset"].transform("size"))
    found = cells[cells["why_not"] == ""].merge(over_folds, on=RUN)

    seed = [*PLACE, *SEED]
    n_sets = found.groupby(seed)["dataset"].transform("size")
    whole = found[n_sets == found["sets"]]
    of_groups = whole.groupby([*seed, "group"])["value"].mean()
    ours = of_groups.groupby(seed).mean().rename("ours").reset_index()
    places = cells.drop_duplicates(PLACE).drop(columns=["dataset", "group", "sets"])
    return places.merge(ours, how="left", on=PLACE)


def summarise_cells(seeds: pd.DataFrame, made_up: bool = False) -> pd.DataFrame:
    """A line for each cell: mean and standard deviation of ours, their number, the verdict (none on made-up data), and
    a note.

    The note says why there is none of ours, or what ours has in place of what the paper names, and where it prints no
    number.

    Runs of several pretrainings count as seeds alike: what they have in common is not told from what they have not.
    """
    each = seeds.groupby(PLACE, sort=False)["ours"]
    table = seeds.drop_duplicates(PLACE).drop(columns=SEED).reset_index(drop=True)
    table["ours"] = each.mean().round(2).to_numpy()
    table["ours_std"] = each.std().round(2).to_numpy()
    table["n_seeds"] = each.count().to_numpy()

    unprinted = "the paper prints no value" if "side" in table else "not in the paper"  # a figure's are plotted alone
    remarks = table["published"].isna().map({True: f"{unprinted}; ", False: ""}) + table["substituted"]
    ran_note = results.MADE_UP if made_up else remarks.str.removesuffix("; ")
    missing = table["why_not"].where(table["why_not"] != "", results.NOT_MADE)
    table["note"] = missing.where(table["n_seeds"] == 0, ran_note)
    if made_up:
        return table.assign(verdict="n/a")
    judged = []
    for published, (_, ours) in zip(table["published"], each, strict=True):
        judged.append(agreement.judge_cell(published, ours.dropna().tolist()))
    return table.assign(verdict=judged)


def baselines(cells: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """A line for each cell with what it comes to without an encoder, in columns of BASELINES, means as of `by_seed`.

    Empty where the score of a dataset of the cell is not known. `known`: of Study.baselines.
    """
    found = cells.merge(known, how="left", on=["dataset", "score"])
    for keys in ([*PLACE, "group"], PLACE):
        each = found.groupby(keys, sort=False)[BASELINES]
        found = each.mean().where(each.count().eq(each.size(), axis=0)).reset_index()
    return found


def fill(cells: pd.DataFrame, seeds: pd.DataFrame, study: "Study") -> pd.DataFrame:
    """A line for each cell: ours as of `summarise_cells`, and what it comes to without an encoder."""
    filled = summarise_cells(seeds, study.budget.made_up)
    return filled.merge(baselines(cells, study.baselines()), how="left", on=PLACE)


def find_sample(better: pd.DataFrame, than: pd.DataFrame) -> tuple[float, float] | None:
    """The variance of the difference of runs of one dataset over draws of test documents, with its degrees of freedom;
    None unless every run kept what it takes."""
    return jackknife.compare_sides(*({fold: [*runs] for fold, runs in side.groupby("fold")["jackknife"]}
                               for side in (better, than)))  # fmt: skip


def subtract(one: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """The gains of the lines of one frame of `by_seed` over those of another at the same place, pretraining and seed.

    `published` stays: a figure of gains has the printed gain there.
    """
    seed = [*PLACE, *SEED]
    columns = [*seed, "ours"]
    both = one[columns].merge(other[columns], on=seed)
    both["ours"] = both.pop("ours_x") - both.pop("ours_y")
    places = one.drop(columns=[*SEED, "ours"]).drop_duplicates(PLACE)
    return places.merge(both.dropna(subset="ours"), how="left", on=PLACE)


def tabulate_effects(
    seeds: pd.DataFrame, steps: dict[str, tuple[str, str]], across: str = "column", with_means: bool = False
) -> pd.DataFrame:
    """What each step adds, by place: the printed difference, the mean of ours over seeds, its deviation and number.

    `steps`: name -> the better one and the other, as for `differences`. Indexed by step and place, with the columns
    paper, ours, sd and n. Places that have neither are left out, and so are means over datasets, unless asked for.
    """
    seeds = seeds if with_means else seeds[~seeds["is_mean"]]
    gains = pd.concat(differences(seeds, *pair, across=across).assign(step=name) for name, pair in steps.items())
    by_place = gains.groupby(["step", "place"], sort=False)
    found = by_place.agg(paper=("published", "first"), ours=("ours", "mean"), sd=("ours", "std"), n=("ours", "count"))
    return found.dropna(subset=["paper", "ours"], how="all")


def recompute_means(cells: pd.DataFrame) -> pd.DataFrame:
    """A line for each printed mean: as printed, and as it follows from the printed cells of its datasets, where all
    are."""

    def average(values: pd.Series) -> float:
        return values.mean(skipna=False)  # empty where a part is

    single = cells[~cells["is_mean"]]
    parts = cells[cells["is_mean"] & cells["published"].notna()]
    axis = "row" if parts["row"].isin(single["row"]).all() else "column"
    on = [axis, "dataset", "score"]
    found = parts.drop(columns="published").merge(single[[*on, "published"]], how="left", on=on)
    groups = found.groupby([*PLACE, "group"], sort=False)["published"].agg(average)
    again = groups.groupby(PLACE, sort=False).agg(average).rename("recomputed")
    printed = parts.drop_duplicates(PLACE)[[*PLACE, "published"]]
    return printed.merge(again.reset_index(), on=PLACE)


def missing(filled: pd.DataFrame) -> pd.DataFrame:
    """How many cells have no number of ours, by reason: of the printed ones, or of all where none is printed."""
    printed = filled["published"].notna()
    empty = filled[filled["ours"].isna() & (printed | ~printed.any())]
    return empty.groupby("note").size().rename("cells").reset_index().rename(columns={"note": "reason"})


def differences(seeds: pd.DataFrame, better: str, than: str, across: str = "column") -> pd.DataFrame:
    """One column minus another, a line for each row and seed that both have; with `across="row"`, one row minus
    another.

    `place`: the row, or the column; `published`: the difference as printed; `ours`: empty where one has not been run.
    """
    place = "row" if across == "column" else "column"
    on = [place, "metric"]
    first = seeds[seeds[across] == better]
    second = seeds[seeds[across] == than]

    columns = [*on, "published"]
    printed = first[columns].drop_duplicates(on).merge(second[columns].drop_duplicates(on), on=on)
    printed["published"] = printed.pop("published_x") - printed.pop("published_y")

    columns = [*on, *SEED, "ours"]
    ours = first.dropna(subset="ours")[columns].merge(second[columns], on=[*on, *SEED])
    ours["ours"] = ours.pop("ours_x") - ours.pop("ours_y")
    return printed.merge(ours, how="left", on=on).rename(columns={place: "place"})
