"""Texts of test sets, which are kept out of pretraining.

python -m lib.study.dataset_texts SCALE RECEIPT writes the index of test sentences, a job of the graph.
"""

import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from lib import artefacts, parent, provenance
from lib.benchmarks import datasets, registry
from lib.corpora import cleaning, leakage
from lib.errors import StudyError
from lib.places import show_path
from lib.study import open_study, paths, receipts, results

if TYPE_CHECKING:
    from lib.study import Study

VERSION = 3  # of the index; raised when the same files yield other test sentences


def tests_at_hand(study: "Study") -> dict[str, list[Path]]:
    """Return the files of every test set at hand, over all folds; for SQuAD, whose test set is secret, the dev set."""
    files = {}
    for dataset in map(study.dataset, registry.DATASETS):
        split = "test" if "test" in dataset.files else "dev"
        try:
            files[dataset.key] = [path for fold in range(1, dataset.folds + 1) for path in dataset.paths(split, fold)]
        except StudyError:
            continue
    return files


def test_files(study: "Study") -> list[Path]:
    """List the files that test_texts reads, for its fingerprint."""
    return datasets.list_data_files(path for files in tests_at_hand(study).values() for path in files)


@cache
def test_texts(study: "Study") -> dict[str, list[str]]:
    """Return the natural texts of every test set at hand: sentences, titles, abstracts, snippets, questions."""
    texts = {}
    for key in tests_at_hand(study):
        dataset = study.dataset(key)
        texts[key] = dataset.natural_texts("test" if "test" in dataset.files else "dev")
    return texts


def read_test_sentences(study: "Study", key: str) -> list[str]:
    """List the sentences of one test set in test_texts."""
    return [sentence for text in test_texts(study)[key] for sentence in cleaning.split_sentences(text)]


def count_sets(study: "Study") -> list[dict]:
    """List the test sets in the index, whose sentences are kept out of the corpora, with their numbers of texts."""
    record = artefacts.read_record(paths.test_sentences(study.scale)) or {"texts": {}}
    return [{"dataset": key, "texts": number} for key, number in record["texts"].items()]


def compare_sets(study: "Study") -> str:
    """Say how the test sets at hand differ from those that the record's corpora were made with; empty if they agree.

    Test sets decide which documents are kept out, and so affect every vocabulary and model.
    """
    path = paths.recorded(paths.table(study.scale, "test-sets"))
    if not path.exists():
        return ""
    recorded, at_hand = set(results.read_table(path)["dataset"]), set(tests_at_hand(study))
    if recorded == at_hand:
        return ""
    sides = (("without", recorded - at_hand), ("with", at_hand - recorded))
    differences = "; ".join(f"{word} {', '.join(sorted(keys))}" for word, keys in sides if keys)
    return (
        f"{len(at_hand)} test sets are at hand, and the record was made with {len(recorded)}: {differences}. Other "
        "documents are kept out of the corpora, so vocabularies and models can differ from the record's."
    )


def write_index(study: "Study") -> dict:
    """Write the index of all test sentences at hand (hashes only), unless it is there, and return the record."""
    identity = provenance.record(
        "test sentences",
        VERSION,
        {"readers": {key: registry.lookup(key).version for key in tests_at_hand(study)}},
        {show_path(path): provenance.file_fingerprint(path) for path in test_files(study)},
    )

    def write(new: Path) -> dict:
        set_texts = test_texts(study)
        index = leakage.index_sentences(sentence for key in set_texts for sentence in read_test_sentences(study, key))
        pq.write_table(index, new / "index.parquet")
        return {"texts": {key: len(texts) for key, texts in set_texts.items()}, "sentences": len(index)}

    return artefacts.cached(paths.test_sentences(study.scale), identity, write)


def main() -> None:
    scale, receipt = sys.argv[1:]
    with parent.run_job("texts"):
        write_index(open_study(scale))
        receipts.write_receipt(Path(receipt), paths.test_sentences(scale) / "record.json")


if __name__ == "__main__":
    main()
