"""A published table or figure filled with our scores, as its notebook does it."""

import pandas as pd

from lib.study import open_study, tables


def fill(key: str, scale: str = "laptop") -> pd.DataFrame:
    """Return one row per cell with our score, or our gain for a figure of gains."""
    study = open_study(scale)
    return tables.summarise_cells(tables.by_seed(study.published(key), study.results()))
