"""Datasets that are versions of one another."""

from lib.benchmarks import registry

SETS = {  # set -> its versions; any other dataset is a set of its own
    "BC5 chemical": ["bc5cdr-chem", "bc5cdr-chem-pubtator"],
    "BC5 disease": ["bc5cdr-disease", "bc5cdr-disease-pubtator"],
    "NCBI disease": ["ncbi-disease", "ncbi-disease-pubtator"],
    "JNLPBA": ["jnlpba", "jnlpba-biobert"],
    "ChemProt": ["chemprot", "chemprot-blurb", "chemprot-blue", "chemprot-lim", "chemprot-bioelectra",
                 "chemprot-scibert"],
    "DDI": ["ddi", "ddi-blurb"],
    "GAD": ["gad", "gad-biobert", "gad-bioelectra"],
    "HoC": ["hoc", "hoc-blue"],
}  # fmt: skip


def name_set(dataset: str) -> str:
    """Return the set that a registered dataset is a version of, or its own title if it has no other version."""
    return next((name for name, keys in SETS.items() if dataset in keys), registry.lookup(dataset).title)
