"""The documents of a raw file as rows, with all that is needed to choose between them."""

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lib.corpora import leakage
from lib.corpora.mesh import Mesh
from lib.corpora.records import Document

SCHEMA = pa.schema(
    [
        ("id", pa.string()), ("version", pa.int32()), ("deleted", pa.bool_()), ("title", pa.string()),
        ("text", pa.string()), ("characters", pa.int32()), ("language", pa.string()), ("year", pa.int32()),
        ("entered", pa.string()),
        ("mesh", pa.list_(pa.string())), ("trees", pa.list_(pa.string())), ("major trees", pa.list_(pa.string())),
        ("bands", pa.list_(pa.uint64(), 8)),
        ("test texts", pa.list_(pa.uint32())),
    ]
)  # fmt: skip
VERSION = 3  # increased when the same file gives different rows: the readers, the guard, MeSH
LONGEST = 5_000_000  # characters; a longer record is not a document but a fault in its file
BATCH = 1000


def write_document_rows(
    documents: Iterable[Document],
    path: Path,
    mesh: Mesh | None = None,
    tests: leakage.TestSentences | None = None,
    language: str = "",
) -> dict[str, int]:
    """Write the rows of documents to a Parquet file; return counts: read, too long, unknown headings.

    Every citation is a row, even one without text or withdrawn, because it may replace another. Records over LONGEST
    are left out and counted. `tests`: the test sentences to look for; `language`: of documents that do not give theirs.
    """
    mesh, tests = mesh or Mesh(), tests or leakage.TestSentences(leakage.index_sentences([]))
    counts, documents = {"read": 0, "too long": 0, "unknown headings": 0}, iter(documents)
    with pq.ParquetWriter(path, SCHEMA) as writer:
        while batch := list(itertools.islice(documents, BATCH)):
            counts["read"] += len(batch)
            writer.write_table(pa.Table.from_pylist(list(to_rows(batch, language, tests, mesh, counts)), SCHEMA))
    return counts


def to_rows(
    batch: list[Document], language: str, tests: leakage.TestSentences, mesh: Mesh, counts: dict
) -> Iterator[dict]:
    """Yield rows of SCHEMA; documents left out and unknown headings are counted in `counts`."""
    for document in batch:
        if len(document.title) + len(document.text) > LONGEST:
            counts["too long"] += 1
            continue
        words = leakage.plain_words(f"{document.title} {document.text}")
        heading_trees = [mesh.tree_numbers(heading) for heading in document.mesh]
        counts["unknown headings"] += sum(not trees for trees in heading_trees)
        major_trees = {
            t for trees, heading in zip(heading_trees, document.mesh, strict=True) if heading.major for t in trees
        }
        yield {
            "id": document.id,
            "version": document.version,
            "deleted": document.deleted,
            "title": document.title,
            "text": document.text,
            "characters": len(document.text),
            "language": document.language or language,
            "year": document.year,
            "entered": document.entered,
            "mesh": [("*" if heading.major else "") + (heading.ui or heading.name) for heading in document.mesh],
            "trees": sorted({t for trees in heading_trees for t in trees} | set(document.trees)),
            "major trees": sorted(major_trees),
            "bands": leakage.sketch(words),
            "test texts": sorted(tests.find(words)),
        }
