"""Scores that the papers print more than once: the model, dataset and metric of each, under one name."""

from functools import cache

import pandas as pd

from lib.benchmarks import versions
from lib.study import open_study, params, paths, published, results, scores
from lib.study.printed import read_scores

GIORGI = "the system of Giorgi and Bader"
MODELS = {  # what stands for a row or column -> whose scores these are
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
OF_ANOTHER = "ozyurt-bert"  # a protocol that is a paper's own for one model, and no ablation's
QUOTED = {  # table and column -> set -> whose score it is; of naseem's as the note under its table has it
    ("lee-4", "State-of-the-art"): {"LINNAEUS": GIORGI},
    ("naseem-7", "SOTA"): {
        **dict.fromkeys(["NCBI disease", "BC5 disease", "BC5 chemical", "Species-800", "EU-ADR"], "BioBERT"),
        **dict.fromkeys(["BioASQ 4b", "BioASQ 5b", "BioASQ 6b"], "BioBERT"),
        **dict.fromkeys(["DDI", "BIOSSES"], "PubMedBERT"),
        "LINNAEUS": GIORGI,
    },
}
SETS = {  # where the registry's title says more
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
    """Every score that the papers' tables print, a line each: models in the order of MODELS, tables in the papers'.

    Columns: paper, table, row, column, metric, number; name (the row or column of its model) and run (what stands for
    that here, empty for what is quoted); model, set and score, in one name for all papers: empty for a model that no
    other table prints or that is an ablation's, and for a mean that is in one table only.
    """
    keys = [key for paper in results.list_papers() for key in scores.list_tables(paper)]
    lines = pd.concat([name_scores(key) for key in keys], ignore_index=True)
    order = {model: place for place, model in enumerate([*MODELS.values(), GIORGI])}
    return lines.sort_values("model", key=lambda models: models.map(order), kind="stable", ignore_index=True)


def name_scores(key: str) -> pd.DataFrame:
    """Those of one table, in its order."""
    place, table = ["row", "column", "metric"], params.load("tables", key)
    # At the scale of the papers nothing stands in place of what they name.
    runs = open_study("paper").published(key).dropna(subset="published").drop_duplicates(place)
    found = runs.merge(read_scores().query("table == @key"), on=place, validate="one_to_one")
    own = found["protocol"].isin([*results.list_protocols(), OF_ANOTHER])
    named = {
        "paper": table.paper,
        "name": [published.name_printed_model(table, cell) for cell in found.to_dict("records")],
        "run": found["model"],
        "set": [name_set_of(cell) for cell in found.to_dict("records")],
        "score": found["metric"].replace(SCORES),
    }
    quoted = [
        QUOTED.get((key, cell), {}).get(known, "") for cell, known in zip(found["column"], named["set"], strict=True)
    ]
    return found.assign(**named, model=found["model"].map(MODELS).where(own).fillna(pd.Series(quoted)))


def name_set_of(cell: dict) -> str:
    """The set of a cell of Study.published, or what its mean is called."""
    if cell["is_mean"]:
        return MEANS.get(cell["row"]) or MEANS.get(cell["column"], "")
    return SETS.get(cell["dataset"]) or versions.name_set(cell["dataset"])


def describe_differences(before: str, after: str, model: str, known: str) -> str:
    """What is known to differ between two tables that print a score of a model on a set."""

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
    """What differs between two places, a table or a paper each, that print the same; model and set empty: of all."""
    return pd.read_csv(paths.PUBLISHED / "repeated.csv", keep_default_na=False)
