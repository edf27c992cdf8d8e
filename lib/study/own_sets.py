"""Users' data folders as datasets of the study, each with a key made from its name and its content.

`evaluate --data` records below outputs/<scale>/own-data/<key>/ where the folder is and what was found in it; the texts
stay where they are. A folder whose content has changed is another dataset.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lib import artefacts
from lib.benchmarks import own_data
from lib.benchmarks.datasets import Dataset
from lib.benchmarks.own_data import OwnData
from lib.errors import StudyError
from lib.study import paths

if TYPE_CHECKING:
    import pandas as pd

    from lib.benchmarks.word_classes import WordClasses
    from lib.study import Study

DIVISION = "division.tsv"  # for a folder that was divided: the part of each document
LONGEST = 40  # letters of a folder's name in a key


def keep_own_data(scale: str, data: OwnData) -> str:
    """Record a folder that was read, with the part of each document if it was divided. Return its dataset's key."""
    fingerprint = own_data.fingerprint_data(data.dataset)
    key = paths.to_key(f"own-{data.dataset.title[:LONGEST]}-{fingerprint[:6]}")
    record = {"fingerprint": fingerprint, "folder": str(data.dataset.folder.resolve()), "labels": data.dataset.labels,
              "form": data.form, "notes": data.notes, "parts": data.parts}  # fmt: skip
    with artefacts.whole_folder(paths.own_data(scale, key)) as folder:
        if data.division:
            lines = ["document\tpart", *("\t".join(row) for row in data.division)]
            artefacts.write_text(folder / DIVISION, "\n".join(lines) + "\n")
        artefacts.write_record(folder, record)
    return key


def is_own(scale: str, key: str) -> bool:
    """Return whether a key is that of a user's folder."""
    return (paths.own_data(scale, key) / "record.json").exists()


def read_own_record(scale: str, key: str) -> dict:
    """Return what was found in a folder."""
    return artefacts.read_record(paths.own_data(scale, key)) or {}


def find_own(scale: str, key: str) -> Dataset:
    """Return the dataset of a user's folder. Raises StudyError if the folder is gone or has changed since."""
    record = read_own_record(scale, key)
    return open_folder(key, record["folder"], record["fingerprint"], record["labels"])


def has_changed(scale: str, key: str) -> bool:
    """Return whether a key is that of a user's folder that is gone or has changed since."""
    try:
        if is_own(scale, key):
            find_own(scale, key)
    except StudyError:
        return True
    return False


@cache  # because it reads every file
def open_folder(key: str, folder: str, fingerprint: str, labels: str) -> Dataset:
    dataset, _ = own_data.describe_folder(Path(folder))
    if own_data.fingerprint_data(dataset) != fingerprint:
        raise StudyError(f"{folder}: its files have changed since: run ./run_all.sh evaluate --data again")
    return replace(dataset, key=key, labels=labels)


def find_classes(study: "Study") -> "WordClasses | None":
    """Return the word classes of the corpus `pubmed`, made once; None if the corpus is not built."""
    from lib.benchmarks import word_classes  # here, because it takes seconds

    corpus = study.corpus("pubmed")
    if artefacts.read_record(corpus.folder) is None:
        return None
    texts = (document.text for document in corpus.documents())
    return word_classes.keep_classes(paths.output(study.scale, "word-classes"), texts, corpus.record["content"])


def list_all_baselines(study: "Study", keys: Iterable[str]) -> "pd.DataFrame":
    """Return Study.baselines with those that page 02 measured for the users' folders among `keys`, in the same form."""
    import pandas as pd  # here, because these take seconds

    from lib.study import results

    files = [paths.own_baselines(study.scale, key) for key in keys]
    own_baselines = [results.pivot_baselines(results.read_table(path)) for path in files if path.exists()]
    return pd.concat([study.baselines(), *own_baselines])
