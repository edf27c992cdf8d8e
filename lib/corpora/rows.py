"""The documents of a raw file as rows, with all that is needed to choose between them."""

import itertools
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lib.corpora import leakage
from lib.corpora.mesh import Mesh
from lib.corpora.records import Document

SCHEMA = pa.schema({
    "id": "string", "version": "int32", "deleted": "bool", "title": "string", "text": "string", "characters": "int32",
    "language": "string", "entered": "string", "trees": pa.list_(pa.string()), "major trees": pa.list_(pa.string()),
    "bands": pa.list_(pa.uint64(), 8), "test texts": pa.list_(pa.uint32()),
})  # fmt: skip
VERSION = 4  # increased when the same file gives different rows: the readers, the guard, MeSH
LONGEST = 5_000_000  # characters; a longer record is not a document but a fault in its file
BATCH = 1000


def write_document_rows(
    documents: Iterable[Document], path: Path, mesh: Mesh, tests: leakage.TestSentences, language: str
) -> dict[str, int]:
    """Write the rows of documents to a Parquet file; return counts: read, too long, unknown headings.

    Every citation is a row, even one without text or withdrawn, because it may replace another. Records over LONGEST
    are left out and counted. `tests`: the test sentences to look for; `language`: of documents that do not give theirs.
    """
    counts, documents = {"read": 0, "too long": 0, "unknown headings": 0}, iter(documents)
    with pq.ParquetWriter(path, SCHEMA) as writer:
        while batch := list(itertools.islice(documents, BATCH)):
            kept = [document for document in batch if len(document.title) + len(document.text) <= LONGEST]
            headings = [heading for document in kept for heading in document.mesh]
            counts["read"] += len(batch)
            counts["too long"] += len(batch) - len(kept)
            counts["unknown headings"] += sum(not mesh.tree_numbers(heading) for heading in headings)
            rows = [to_row(document, language, tests, mesh) for document in kept]
            writer.write_table(pa.Table.from_pylist(rows, SCHEMA))
    return counts


def to_row(document: Document, language: str, tests: leakage.TestSentences, mesh: Mesh) -> dict:
    """Return a row of SCHEMA."""
    words = leakage.plain_words(f"{document.title} {document.text}")
    trees = {tree for heading in document.mesh for tree in mesh.tree_numbers(heading)}
    major_trees = {tree for heading in document.mesh if heading.major for tree in mesh.tree_numbers(heading)}
    return {
        "id": document.id,
        "version": document.version,
        "deleted": document.deleted,
        "title": document.title,
        "text": document.text,
        "characters": len(document.text),
        "language": document.language or language,
        "entered": document.entered,
        "trees": sorted(trees.union(document.trees)),
        "major trees": sorted(major_trees),
        "bands": leakage.sketch(words),
        "test texts": sorted(tests.find(words)),
    }
