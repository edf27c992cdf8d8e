"""Scores that are printed more than once, with the same names for model, dataset and metric in all papers."""

from functools import cache

import pandas as pd

from lib.benchmarks import versions
from lib.study import open_study, params, paths, published, results
from lib.study.printed import read_scores
from lib.study.scores import list_tables

GIORGI = "the system of Giorgi and Bader"
MODELS = {  # model that stands for a row or column -> its common name
    "bert-uncased": "BERT uncased",
    "bert-general": "BERT cased",
    "biobert-1m": "BioBERT",
    "bert-general-pubmed": "BioBERT",
    "scibert-uncased": "SciBERT uncased",
    "clinicalbert": "ClinicalBERT",
    "bluebert-pubmed": "BlueBERT on PubMed",
    "bluebert-pubmed-mimic": "BlueBERT on PubMed and MIMIC-III",
    "pubmedbert": "PubMedBERT",
    "bio-electra-plus": "Bio-ELECTRA++",
}
OF_ANOTHER = "ozyurt-bert"  # a paper's own protocol for another model, not for an ablation
QUOTED = {  # table and column -> set -> whose score it is; for naseem, from the note under its table
    ("lee-4", "State-of-the-art"): {"LINNAEUS": GIORGI},
    ("naseem-7", "SOTA"): {
        **dict.fromkeys(["NCBI disease", "BC5 disease", "BC5 chemical", "Species-800", "EU-ADR"], "BioBERT"),
        **dict.fromkeys(["BioASQ 4b", "BioASQ 5b", "BioASQ 6b"], "BioBERT"),
        **dict.fromkeys(["DDI", "BIOSSES"], "PubMedBERT"),
        "LINNAEUS": GIORGI,
    },
}
SETS = {  # datasets whose registered title is longer
    "ebm-pico": "EBM PICO",
    "euadr": "EU-ADR",
    "bioasq-4b-factoid": "BioASQ 4b",
    "bioasq-5b-factoid": "BioASQ 5b",
    "bioasq-6b-factoid": "BioASQ 6b",
    "bioasq-7b-yesno": "BioASQ 7b yes/no",
}
MEANS = {"BLURB score": "the BLURB score", "Total": "BLUE's total", "total": "BLUE's total"}
SCORES = {"F1 entity-level": "F1", "micro F1": "F1", "macro F1 word-level": "F1 by word", "macro average": "mean"}


def list_all_printed() -> pd.DataFrame:
    """Return every score that the papers' tables print, one row each.

    Rows are sorted by model in the order of MODELS, then by table in the order of the papers. Columns: paper, table,
    row, column, metric, number; name (the row or column of its model) and run (the model that stands for it here, empty
    for a quoted score); model, set and score, named alike for all papers. `model` is empty if no other table prints the
    model, and for ablations; `set` is empty for a mean that is in one table only.
    """
    keys = [key for paper in results.list_papers() for key in list_tables(paper)]
    lines = pd.concat([name_scores(key) for key in keys], ignore_index=True)
    order = {model: rank for rank, model in enumerate([*MODELS.values(), GIORGI])}
    return lines.sort_values("model", key=lambda models: models.map(order), kind="stable", ignore_index=True)


def name_scores(key: str) -> pd.DataFrame:
    """Return the scores of one table with their common names, in the order of the table."""
    cell_columns, table = ["row", "column", "metric"], params.load("tables", key)
    # Scale `paper` substitutes nothing for what the papers name.
    lines = open_study("paper").published(key).dropna(subset="published").drop_duplicates(cell_columns)
    cells = lines.merge(read_scores().query("table == @key"), on=cell_columns, validate="one_to_one")
    is_own = cells["protocol"].isin([*results.list_protocols().values(), OF_ANOTHER])
    fields = {
        "paper": table.paper,
        "name": [published.name_printed_model(table, cell) for cell in cells.to_dict("records")],
        "run": cells["model"],
        "set": [name_set_of(cell) for cell in cells.to_dict("records")],
        "score": cells["metric"].replace(SCORES),
    }
    quoted_models = [
        QUOTED.get((key, cell), {}).get(set_name, "")
        for cell, set_name in zip(cells["column"], fields["set"], strict=True)
    ]
    return cells.assign(**fields, model=cells["model"].map(MODELS).where(is_own).fillna(pd.Series(quoted_models)))


def name_set_of(cell: dict) -> str:
    """Return the dataset of a cell of Study.published, or the name of its mean."""
    if cell["is_mean"]:
        return MEANS.get(cell["row"]) or MEANS.get(cell["column"], "")
    return SETS.get(cell["dataset"]) or versions.name_set(cell["dataset"])


def describe_differences(before: str, after: str, model: str, known: str) -> str:
    """Describe the known differences between two tables that print a model's score on the same dataset."""

    def is_in(table: str, where: str) -> bool:
        return where in (table, table.split("-")[0])

    notes = []
    for first, second, models, sets, note in read_reasons().itertuples(index=False):
        in_order = is_in(before, first) and is_in(after, second)
        reversed_order = is_in(before, second) and is_in(after, first)
        if (in_order or reversed_order) and models in ("", model) and sets in ("", known):
            notes.append(note)
    return "; ".join(notes)


@cache
def read_reasons() -> pd.DataFrame:
    """Read the known differences between two places, each a table or a paper, that print the same score.

    An empty model or set stands for all.
    """
    return pd.read_csv(paths.PUBLISHED / "repeated.csv", keep_default_na=False)
