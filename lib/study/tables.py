"""A published table with our scores in its cells: functions of two frames, Study.published and Study.results.

A cell is a row, a column and a metric; its lines are the datasets that it is a mean of, or the one that it is of.
"""

import pandas as pd

from lib.study.analysis import compare

PLACE = ["row", "column", "metric"]
RUN = ["model", "dataset", "protocol", "score"]
SEED = ["pretraining", "seed"]


def by_seed(cells: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """A line a cell, pretraining and seed, with `ours`: the mean over folds, over each group of sets, over groups.

    A seed that not every set of a cell has is left out: a mean of sets is of all of them, or empty. A cell without a
    seed keeps one line.
    """
    runs = runs.groupby([*RUN, *SEED], as_index=False)["value"].mean()
    cells = cells.assign(sets=cells.groupby(PLACE)["dataset"].transform("size"))
    found = cells[cells["why_not"] == ""].merge(runs, on=RUN)
    found = found[found.groupby([*PLACE, *SEED])["dataset"].transform("size") == found["sets"]]
    ours = found.groupby([*PLACE, *SEED, "group"])["value"].mean().groupby([*PLACE, *SEED]).mean().rename("ours")
    places = cells.drop_duplicates(PLACE).drop(columns=["dataset", "group", "sets"])
    return places.merge(ours.reset_index(), how="left", on=PLACE)


def summarise(seeds: pd.DataFrame, made_up: bool = False) -> pd.DataFrame:
    """A line a cell: mean and standard deviation of ours, their number, and the verdict (none on made-up data).

    Runs of several pretrainings count as seeds alike: what they have in common is not told from what they have not.
    """
    each = seeds.groupby(PLACE, sort=False)["ours"]
    table = seeds.drop_duplicates(PLACE).drop(columns=SEED)
    found = {"ours": each.mean().round(2), "ours_std": each.std().round(2), "n_seeds": each.count()}
    table = table.assign(**{name: values.to_numpy() for name, values in found.items()})
    values = [ours.dropna().tolist() for _, ours in each]
    judged = [compare.judge_cell(*both) for both in zip(table["published"], values, strict=True)]
    return table.assign(verdict="n/a" if made_up else judged).reset_index(drop=True)


def differences(seeds: pd.DataFrame, better: str, than: str, across: str = "column") -> pd.DataFrame:
    """One column minus another, a line a row and seed that both have; with `across="row"`, one row minus another.

    `place`: the row, or the column; `published`: the difference as printed; `ours`: empty where one has not been run.
    """
    on = ["row" if across == "column" else "column", "metric"]
    one, other = (seeds[seeds[across] == name] for name in (better, than))
    printed = one.drop_duplicates(on)[[*on, "published"]].merge(other.drop_duplicates(on)[[*on, "published"]], on=on)
    printed["published"] = printed.pop("published_x") - printed.pop("published_y")
    ours = one.dropna(subset="ours")[[*on, *SEED, "ours"]].merge(other[[*on, *SEED, "ours"]], on=[*on, *SEED])
    ours["ours"] = ours.pop("ours_x") - ours.pop("ours_y")
    return printed.merge(ours, how="left", on=on).rename(columns={on[0]: "place"})
