"""One raw file to rows: the job that the graph runs once for each source file, so that a thousand run side by side.

python -m lib.documents SCALE SOURCE FILE
"""

import itertools
import sys
import zlib
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path, PurePosixPath

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lib import artefacts, cleaning, instances, leakage, mesh, params, parent, paths, provenance, readers, smoke_data
from lib.errors import StudyError, unknown
from lib.records import Document

SCHEMA = pa.schema(
    [
        ("id", pa.string()), ("version", pa.int32()), ("deleted", pa.bool_()), ("title", pa.string()),
        ("text", pa.string()), ("characters", pa.int32()), ("language", pa.string()), ("year", pa.int32()),
        ("mesh", pa.list_(pa.string())), ("trees", pa.list_(pa.string())), ("major trees", pa.list_(pa.string())),
        ("bands", pa.list_(pa.uint64(), 8)),
        ("test texts", pa.list_(pa.uint32())),
    ]
)  # fmt: skip
LONGEST = 5_000_000  # characters; a record beyond is no document but a fault of its file
BATCH = 1000

SHINGLE = 5  # words
BANDS, ROWS = 8, 8
# Odd multipliers and offsets of 64 hash functions, the same in every process.
MULTIPLIERS = np.random.default_rng(0).integers(0, 2**63, BANDS * ROWS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
OFFSETS = np.random.default_rng(1).integers(0, 2**63, BANDS * ROWS, dtype=np.uint64)


def read(source: str, file: str, scale: str) -> dict:
    """Write the rows of one raw file, and its counts, below outputs/<scale>/documents/; returns the record.

    Every citation is a row, those without text and withdrawn ones too, since they may replace another one. Records
    over LONGEST are left out and counted.
    """
    settings = params.load("sources", source)
    path = raw_file(source, file, scale)
    guard, target = test_sentences(scale), paths.documents(scale, source, file)
    record = provenance.record(
        settings.model_dump(include={"reader", "language"}),
        {file: provenance.file_fingerprint(path)}
        | {f"test texts {p.parent.name}/{p.name}": provenance.file_fingerprint(p) for p in instances.test_files(scale)}
        | {p.name: provenance.file_fingerprint(p) for p in mesh.files(scale)}
        | {"code": provenance.code_fingerprint("documents")},
    )
    record |= {"source": source, "file": file, "read": 0, "too long": 0, "unknown headings": 0}
    documents = readers.READERS[settings.reader](path)
    with artefacts.whole_file(target.with_suffix(".parquet")) as new, pq.ParquetWriter(new, SCHEMA) as out:
        while batch := list(itertools.islice(documents, BATCH)):
            record["read"] += len(batch)
            rows = list(to_rows(batch, settings.language, guard, scale, record))
            out.write_table(pa.Table.from_pylist(rows, SCHEMA))
        if not record["read"]:
            raise StudyError(f"{paths.show(path)}: no documents in the file")
    artefacts.write_json(target, record)
    return record


def to_rows(batch: list[Document], language: str, guard, scale: str, record: dict) -> Iterator[dict]:
    """Rows of SCHEMA; what is left out or not understood is counted in the record."""
    for document in batch:
        if len(document.title) + len(document.text) > LONGEST:
            record["too long"] += 1
            continue
        words = leakage.plain_words(f"{document.title} {document.text}")
        resolved = [mesh.tree_numbers(heading, scale) for heading in document.mesh]
        record["unknown headings"] += sum(not trees for trees in resolved)
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
            "bands": sketch(words),
            "test texts": sorted(guard.find(words)),
        }


def sketch(words: list[str]) -> np.ndarray:
    """Eight hashes, of which near-duplicates share at least one (MinHash with locality-sensitive bands).

    Of two texts whose sets of five-word shingles overlap (Jaccard) by 0.9, 99% share a band; by 0.8, 77%; by 0.5, 3%.
    Shape (8,), uint64.
    """
    hashes = np.fromiter((zlib.crc32(word.encode()) for word in words or [""]), np.uint64, max(1, len(words)))
    size = min(SHINGLE, len(hashes))
    shingles = np.zeros(len(hashes) - size + 1, np.uint64)
    for i in range(size):  # order counts: each place has a multiplier of its own
        shingles = shingles * np.uint64(0x9E3779B97F4A7C15) + hashes[i : i + len(shingles)]
    shingles ^= shingles >> np.uint64(29)
    lowest = np.full(BANDS * ROWS, np.iinfo(np.uint64).max, np.uint64)
    for start in range(0, len(shingles), 4096):  # a novel in blocks, so that memory stays small
        values = shingles[start : start + 4096, None] * MULTIPLIERS + OFFSETS
        lowest = np.minimum(lowest, (values ^ (values >> np.uint64(32))).min(axis=0))
    bands = np.zeros(BANDS, np.uint64)
    for row in range(ROWS):
        bands = bands * np.uint64(0xC2B2AE3D27D4EB4F) + lowest.reshape(BANDS, ROWS)[:, row]
    return bands


@cache
def test_sentences(scale: str) -> leakage.TestSentences:
    """The sentences of every benchmark's test set that is at hand."""
    return leakage.TestSentences(
        sentence
        for texts in instances.test_texts(scale).values()
        for text in texts
        for sentence in cleaning.split_sentences(text)
    )


def raw_file(source: str, file: str, scale: str) -> Path:
    """The raw file of that name; StudyError when it is not in the data folder."""
    path = paths.data(scale) / PurePosixPath(params.load("sources", source).files).parent / file
    if not path.is_file():
        raise StudyError(f"source '{source}' has no file {paths.show(path)}")
    return path


def raw_files(source: str, scale: str) -> list[str]:
    """The names of a source's raw files, in order: those in the data folder, or those that will be made up."""
    settings = params.load("sources", source)
    if settings.reader not in readers.READERS:
        raise unknown("reader", settings.reader, readers.READERS)
    if params.load("scales", scale).made_up:
        return sorted(PurePosixPath(f).name for f in smoke_data.CORPORA if fnmatch(f, settings.files))
    return sorted(path.name for path in paths.data(scale).glob(settings.files))


def main() -> int:
    parent.watch()
    scale, source, file = sys.argv[1:]
    try:
        read(source, file, scale)
    except StudyError as error:
        print(f"FAILED  documents {source}, {file}: {error}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
