"""A published table or figure filled with our scores, as its notebook does it."""

import pandas as pd

from lib.study import open_study, tables


def fill(key: str, scale: str = "laptop") -> pd.DataFrame:
    """A line for each cell; of a figure of gains, the gains."""
    study = open_study(scale)
    cells, runs = study.published(key), study.results()
    if "side" not in cells:
        return tables.summarise_cells(tables.by_seed(cells, runs))
    seeds, than = (tables.by_seed(cells[cells["side"] == side], runs) for side in ("", "than"))
    seeds = tables.subtract(seeds, than) if (cells["side"] == "than").any() else seeds
    return tables.summarise_cells(seeds, unprinted="the paper prints no value")
