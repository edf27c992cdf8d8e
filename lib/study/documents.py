"""Conversion of one raw file to rows, a job of the graph for each file, so that a thousand files run in parallel.

python -m lib.study.documents SCALE SOURCE FILE RECEIPT
"""

import sys
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from lib import artefacts, parent, provenance
from lib.corpora import leakage, readers, rows
from lib.errors import StudyError, unknown
from lib.places import show_path
from lib.study import open_study, params, paths, receipts

if TYPE_CHECKING:
    from lib.study import Study


def read_raw_file(study: "Study", source: str, file: str) -> dict:
    """Write the rows and counts of one raw file, unless they are there already, and return the record.

    Raises StudyError if the file has no documents, and as its reader does; for real data the message says how to get
    the file again.
    """
    settings = params.load("sources", source)
    path, index = raw_file(study, source, file), index_path(study)
    identity = provenance.record(
        "documents",
        rows.VERSION,
        settings.model_dump(include={"reader", "language"}),
        {file: provenance.file_fingerprint(path), "test sentences": provenance.file_fingerprint(index)}
        | {table.name: provenance.file_fingerprint(table) for table in study.mesh_tables},
    )

    def write(new: Path) -> dict:
        documents, tests = readers.READERS[settings.reader](path), leakage.TestSentences(pq.read_table(index))
        mesh = study.mesh
        try:
            counts = rows.write_document_rows(documents, new / "documents.parquet", mesh, tests, settings.language)
            if not counts["read"]:
                raise StudyError(f"{show_path(path)}: no documents in the file")
        except StudyError as error:
            advice = "" if study.budget.made_up else f"; to get the file again, move it away: {settings.missing}"
            raise StudyError(f"{error}{advice}") from None
        return {"source": source, "file": file} | counts

    return artefacts.cached(paths.documents(study.scale, source, file), identity, write)


def rows_path(study: "Study", source: str, file: str) -> Path:
    """Return the path of a raw file's rows. Raises StudyError if they have not been made."""
    path = paths.documents(study.scale, source, file) / "documents.parquet"
    if not path.exists():
        raise StudyError(f"{file} has not been read at scale '{study.scale}': run ./run_all.sh {study.scale} 10")
    return path


def index_path(study: "Study") -> Path:
    """Return the path of the index of lib/study/dataset_texts.py. Raises StudyError if it has not been written."""
    path = paths.test_sentences(study.scale) / "index.parquet"
    if not path.exists():
        raise StudyError(f"no index of test sentences at scale '{study.scale}': run ./run_all.sh {study.scale} 10")
    return path


def raw_file(study: "Study", source: str, file: str) -> Path:
    """Return the path of a raw file. Raises StudyError if it is not in the data folder."""
    path = study.data / PurePosixPath(params.load("sources", source).files).parent / file
    if not path.is_file():
        raise StudyError(f"source '{source}' has no file {show_path(path)}")
    return path


def list_raw_files(study: "Study", source: str) -> list[str]:
    """List the names of a source's raw files in the data folder, in order, up to the scale's limit for the source."""
    settings, budget = params.load("sources", source), study.budget
    if settings.reader not in readers.READERS:
        raise unknown("reader", settings.reader, readers.READERS)
    for name in budget.first_files:
        if name not in params.keys("sources"):
            raise unknown(f"source in first_files of scale '{study.scale}'", name, params.keys("sources"))
    return sorted(path.name for path in study.data.glob(settings.files))[: budget.first_files.get(source)]


def main() -> None:
    scale, source, file, receipt = sys.argv[1:]
    with parent.run_job(f"documents {source}, {file}"):
        read_raw_file(open_study(scale), source, file)
        receipts.write_receipt(Path(receipt), paths.documents(scale, source, file) / "record.json")


if __name__ == "__main__":
    main()
