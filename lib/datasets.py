"""The benchmark datasets: one registry row each."""

from dataclasses import dataclass
from pathlib import Path

from lib import conll, params, paths
from lib.errors import StudyError, unknown

SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class Dataset:
    """What is known of a dataset besides its text."""

    key: str
    title: str
    entities: str  # what is tagged
    folder: str  # below the data folder, holding train.tsv, dev.tsv and test.tsv
    licence: str
    access: str  # public, or credentialed: no text may leave the data folder
    printed: dict[str, str]  # published table of counts -> the dataset's row there
    family: str = "tagging"
    metric: str = "entity-level F1"
    missing: str = "set STUDY_DATA to a folder that holds it"  # how to get it


DATASETS = {
    row.key: row
    for row in [
        Dataset(
            "ncbi-disease", "NCBI-disease", "diseases", "ner/ncbi-disease",
            "public domain (corpus), CC BY 4.0 (IOB form)", "public",
            {"lee-3": "NCBI disease", "gu-3": "NCBI-disease"},
        ),
        Dataset(
            "bc5cdr-disease", "BC5CDR, disease", "diseases", "ner/bc5cdr-disease", "CC BY 4.0 (IOB form)", "public",
            {"lee-3": "BC5CDR Disease", "gu-3": "BC5-disease"},
        ),
        Dataset(
            "bc5cdr-chem", "BC5CDR, chemical", "chemicals", "ner/bc5cdr-chem", "CC BY 4.0 (IOB form)", "public",
            {"lee-3": "BC5CDR Drug/Chemical", "gu-3": "BC5-chem"},
        ),
        Dataset(
            "bc2gm", "BC2GM", "genes", "ner/bc2gm", "CC BY 4.0 (IOB form)", "public",
            {"lee-3": "BC2GM", "gu-3": "BC2GM"},
        ),
        Dataset(
            "jnlpba-biobert", "JNLPBA, BioBERT's version", "proteins, DNA and RNA, merged", "ner/jnlpba-biobert",
            "CC BY 3.0 (annotations)", "public", {"lee-3": "JNLPBA"},
        ),
        Dataset("linnaeus", "LINNAEUS", "species", "ner/linnaeus", "CC BY 4.0 (IOB form)", "public",
                {"lee-3": "LINNAEUS"}),
        Dataset("s800", "Species-800", "species", "ner/s800", "none stated", "public", {"lee-3": "Species-800"}),
        Dataset(
            "bc4chemd", "BC4CHEMD", "chemicals", "ner/bc4chemd", "unclear", "public", {"lee-3": "BC4CHEMD"},
            missing="run ./run_all.sh data bc4chemd",
        ),
        Dataset(
            "i2b2-2010", "i2b2 2010 concepts", "problems, tests and treatments", "ner/i2b2-2010",
            "data use agreement", "credentialed", {"lee-3": "2010 i2b2/VA"},
            missing="needs credentials from the n2c2 data portal",
        ),
    ]
}  # fmt: skip


def lookup(key: str) -> Dataset:
    """The registry row of a dataset; StudyError with the nearest names when there is none."""
    if key not in DATASETS:
        raise unknown("dataset", key, DATASETS)
    return DATASETS[key]


def is_at_hand(key: str, scale: str) -> bool:
    """Whether every split of a dataset lies in the data folder."""
    folder = paths.data(scale) / lookup(key).folder
    return all((folder / f"{split}.tsv").exists() for split in SPLITS)


def why_not(key: str, scale: str) -> str:
    """Why a dataset cannot be run at a scale, or an empty string when it can."""
    dataset = lookup(key)
    budget = params.load("scales", scale)
    # Made-up data are written by the study itself, for the datasets of the budget.
    if not budget.made_up and not is_at_hand(key, scale):
        return f"data not at hand: {dataset.missing}"
    if budget.datasets is not None and key not in budget.datasets:
        return f"outside the budget of scale '{scale}'"
    return ""


def split_file(key: str, split: str, scale: str) -> Path:
    """The raw file of a split; StudyError when it is not there."""
    dataset = lookup(key)
    path = paths.require_data(scale) / dataset.folder / f"{split}.tsv"
    if not path.is_file():
        raise StudyError(f"{dataset.title}: no file {paths.show(path)}: {dataset.missing}")
    return path


def load(key: str, split: str, scale: str) -> list[conll.Sentence]:
    """The sentences of one split."""
    return list(conll.read(split_file(key, split, scale)))
