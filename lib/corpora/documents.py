"""One raw file to rows: the job that the graph runs once for each source file, so that a thousand run side by side.

python -m lib.corpora.documents SCALE SOURCE FILE
"""

import itertools
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import pyarrow as pa
import pyarrow.parquet as pq

from lib import artefacts, parent, provenance
from lib.corpora import leakage, mesh, readers
from lib.corpora.records import Document
from lib.errors import StudyError, unknown
from lib.made_up import smoke_corpora
from lib.places import show_path
from lib.study import params, paths

SCHEMA = pa.schema(
    [
        ("id", pa.string()), ("version", pa.int32()), ("deleted", pa.bool_()), ("title", pa.string()),
        ("text", pa.string()), ("characters", pa.int32()), ("language", pa.string()), ("year", pa.int32()),
        ("mesh", pa.list_(pa.string())), ("trees", pa.list_(pa.string())), ("major trees", pa.list_(pa.string())),
        ("bands", pa.list_(pa.uint64(), 8)),
        ("test texts", pa.list_(pa.uint32())),
    ]
)  # fmt: skip
VERSION = 1  # raised when the same file gives other rows: the readers, the guard, MeSH
LONGEST = 5_000_000  # characters; a record beyond is no document but a fault of its file
BATCH = 1000


def read(source: str, file: str, scale: str) -> dict:
    """Write the rows of one raw file, and its counts, unless they are there already; returns the record.

    Every citation is a row, those without text and withdrawn ones too, since they may replace another one. Records
    over LONGEST are left out and counted.
    """
    settings = params.load("sources", source)
    path = raw_file(source, file, scale)
    index = index_path(scale)
    identity = provenance.record(
        "documents",
        VERSION,
        settings.model_dump(include={"reader", "language"}),
        {file: provenance.file_fingerprint(path), "test sentences": provenance.file_fingerprint(index)}
        | {p.name: provenance.file_fingerprint(p) for p in mesh.files(scale)},
    )

    def write(new: Path) -> dict:
        counts = {"source": source, "file": file, "read": 0, "too long": 0, "unknown headings": 0}
        guard = leakage.TestSentences(pq.read_table(index))
        documents = readers.READERS[settings.reader](path)
        with pq.ParquetWriter(new / "documents.parquet", SCHEMA) as out:
            while batch := list(itertools.islice(documents, BATCH)):
                counts["read"] += len(batch)
                rows = list(to_rows(batch, settings.language, guard, scale, counts))
                out.write_table(pa.Table.from_pylist(rows, SCHEMA))
        if not counts["read"]:
            raise StudyError(f"{show_path(path)}: no documents in the file")
        return counts

    return artefacts.cached(paths.documents(scale, source, file), identity, write)


def to_rows(batch: list[Document], language: str, guard, scale: str, counts: dict) -> Iterator[dict]:
    """Rows of SCHEMA; what is left out or not understood is counted."""
    for document in batch:
        if len(document.title) + len(document.text) > LONGEST:
            counts["too long"] += 1
            continue
        words = leakage.plain_words(f"{document.title} {document.text}")
        resolved = [mesh.tree_numbers(heading, scale) for heading in document.mesh]
        counts["unknown headings"] += sum(not trees for trees in resolved)
        major = {t for trees, heading in zip(resolved, document.mesh, strict=True) if heading.major for t in trees}
        yield {
            "id": document.id,
            "version": document.version,
            "deleted": document.deleted,
            "title": document.title,
            "text": document.text,
            "characters": len(document.text),
            "language": document.language or language,
            "year": document.year,
            "mesh": [("*" if heading.major else "") + (heading.ui or heading.name) for heading in document.mesh],
            "trees": sorted({t for trees in resolved for t in trees} | set(document.trees)),
            "major trees": sorted(major),
            "bands": leakage.sketch(words),
            "test texts": sorted(guard.find(words)),
        }


def index_path(scale: str) -> Path:
    """The index of test sentences that lib/study/analysis/texts.py writes; StudyError when it has not."""
    path = paths.test_sentences(scale) / "index.parquet"
    if not path.exists():
        raise StudyError(f"no index of test sentences at scale '{scale}': run ./run_all.sh {scale} 01")
    return path


def raw_file(source: str, file: str, scale: str) -> Path:
    """The raw file of that name; StudyError when it is not in the data folder."""
    path = paths.data(scale) / PurePosixPath(params.load("sources", source).files).parent / file
    if not path.is_file():
        raise StudyError(f"source '{source}' has no file {show_path(path)}")
    return path


def raw_files(source: str, scale: str) -> list[str]:
    """The names of a source's raw files, in order: those in the data folder, or those that will be made up."""
    settings = params.load("sources", source)
    if settings.reader not in readers.READERS:
        raise unknown("reader", settings.reader, readers.READERS)
    if params.load("scales", scale).made_up:
        return sorted(PurePosixPath(f).name for f in smoke_corpora.CORPORA if fnmatch(f, settings.files))
    return sorted(path.name for path in paths.data(scale).glob(settings.files))


def main() -> int:
    scale, source, file = sys.argv[1:]
    return parent.run_job(f"documents {source}, {file}", lambda: read(source, file, scale))


if __name__ == "__main__":
    sys.exit(main())
