"""One raw file to rows: the job that the graph runs once for each source file, so that a thousand run side by side.

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
    """Write the rows of one raw file, and its counts, unless they are there already; returns the record.

    StudyError for a file without documents, and as in its reader; of real data it says how to get the file again.
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
        found, tests = readers.READERS[settings.reader](path), leakage.TestSentences(pq.read_table(index))
        mesh = study.mesh
        try:
            counts = rows.write_document_rows(found, new / "documents.parquet", mesh, tests, settings.language)
            if not counts["read"]:
                raise StudyError(f"{show_path(path)}: no documents in the file")
        except StudyError as error:
            again = "" if study.budget.made_up else f"; to get the file again, move it away: {settings.missing}"
            raise StudyError(f"{error}{again}") from None
        return {"source": source, "file": file} | counts

    return artefacts.cached(paths.documents(study.scale, source, file), identity, write)


def rows_path(study: "Study", source: str, file: str) -> Path:
    """The rows of one raw file; StudyError when they have not been made."""
    path = paths.documents(study.scale, source, file) / "documents.parquet"
    if not path.exists():
        raise StudyError(f"{file} has not been read at scale '{study.scale}': run ./run_all.sh {study.scale} 10")
    return path


def index_path(study: "Study") -> Path:
    """The index of test sentences that lib/study/dataset_texts.py writes; StudyError when it has not."""
    path = paths.test_sentences(study.scale) / "index.parquet"
    if not path.exists():
        raise StudyError(f"no index of test sentences at scale '{study.scale}': run ./run_all.sh {study.scale} 10")
    return path


def raw_file(study: "Study", source: str, file: str) -> Path:
    """The raw file of that name; StudyError when it is not in the data folder."""
    path = study.data / PurePosixPath(params.load("sources", source).files).parent / file
    if not path.is_file():
        raise StudyError(f"source '{source}' has no file {show_path(path)}")
    return path


def list_raw_files(study: "Study", source: str) -> list[str]:
    """The names of a source's raw files in the data folder, in order.

    Where the scale says how many it reads, the first of them.
    """
    settings, budget = params.load("sources", source), study.budget
    if settings.reader not in readers.READERS:
        raise unknown("reader", settings.reader, readers.READERS)
    for name in budget.first_files:
        if name not in params.keys("sources"):
            raise unknown(f"source in first_files of scale '{study.scale}'", name, params.keys("sources"))
    return sorted(path.name for path in study.data.glob(settings.files))[: budget.first_files.get(source)]


def main() -> int:
    scale, source, file, receipt = sys.argv[1:]

    def job() -> None:
        read_raw_file(open_study(scale), source, file)
        receipts.write_receipt(Path(receipt), paths.documents(scale, source, file) / "record.json")

    return parent.run_job(f"documents {source}, {file}", job)


if __name__ == "__main__":
    sys.exit(main())
