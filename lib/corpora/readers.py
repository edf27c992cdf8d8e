"""Readers of all sources of text, by name: each streams the documents of one file in its native format."""

import re
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

from lib.corpora import articles, medline
from lib.corpora.records import Document, Heading
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import read_columns, read_csv, read_json_lines, read_lines


def read_citations(path: Path) -> Iterator[Document]:
    """Read citations from a table `pmid TAB title TAB abstract` with a header."""
    for _, cells in read_columns(path, 3, "pmid title abstract"):
        yield Document(*map(str.strip, cells))


def read_ohsumed(path: Path) -> Iterator[Document]:
    """Read the same table from OHSUMED, whose identifiers `ohsumed:<number>:C01,C14` hold MeSH categories."""
    for number, document in enumerate(read_citations(path), start=2):
        parts = document.id.split(":")
        trees = re.findall(r"C\d\d", parts[-1])
        if len(parts) != 3 or not trees:
            raise StudyError(f"{show_path(path)}:{number}: no MeSH categories in the identifier {document.id!r}")
        document.id, document.trees = ":".join(parts[:2]), tuple(trees)
        yield document


def read_abstract_lines(path: Path) -> Iterator[Document]:
    """Read one abstract a line, without title or identifier."""
    for _, line in read_lines(path):
        if line.strip():
            yield Document(text=line.strip())


def read_europepmc(path: Path) -> Iterator[Document]:
    """Read JSON lines of Europe PMC records: pmid, title, abstract, MeSH descriptors with major flags."""

    def to_document(record: dict) -> Document:
        headings = record.get("mesh") or ()
        return Document(
            id=as_text(record.get("pmid")),
            title=as_text(record.get("title")),
            text=as_text(record.get("abstract")),
            mesh=tuple(Heading(name=as_text(m["descriptor"]), major=m.get("major") == "Y") for m in headings),
        )

    return read_records(path, to_document, "Europe PMC")


def read_mesh_sample(path: Path) -> Iterator[Document]:
    """Read JSON lines of the PubMed multi-label sample: pmid, Title, abstractText, names and tree numbers as lists."""

    def to_document(record: dict) -> Document:
        names = re.findall(r"""'([^']*)'|"([^"]*)\"""", as_text(record["meshMajor"]))
        return Document(
            id=as_text(record["pmid"]),
            title=as_text(record["Title"]),
            text=as_text(record["abstractText"]),
            mesh=tuple(Heading(name=single or double) for single, double in names),
            trees=tuple(re.findall(r"[A-Z]\d\d(?:\.\d+)*", as_text(record["meshid"]))),
        )

    return read_records(path, to_document, "the sample")


def read_records(path: Path, to_document: Callable[[dict], Document], source: str) -> Iterator[Document]:
    """Convert each JSON line to a document. Raises StudyError if a line is not a record of `source`."""
    for location, record in read_json_lines(path):
        try:
            yield to_document(record)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StudyError(f"{location}: not a record of {source} ({type(error).__name__}: {error})") from None


def as_text(value) -> str:
    """Return a JSON value as text. Raises TypeError if it is neither text nor null, ValueError for half a character."""
    if not isinstance(value, str | None):
        raise TypeError(f"text expected, found {type(value).__name__}")
    (value or "").encode()  # JSON can escape half of a surrogate pair
    return value or ""


def read_paragraphs(path: Path) -> Iterator[Document]:
    """Read one paragraph a line, with a blank line between documents and `# id` above a document if known.

    The format of the books, of extracted Wikipedia (the title is the first line) and of full texts.
    """
    for has_text, group in groupby((line for _, line in read_lines(path)), lambda line: bool(line.strip())):
        if has_text:
            lines = list(group)
            identifier = lines.pop(0)[2:].strip() if lines[0].startswith("# ") else ""
            if lines or identifier:
                yield Document(identifier, text="\n".join(map(str.strip, lines)))


def read_notes(path: Path) -> Iterator[Document]:
    """Read the clinical notes of MIMIC-III's NOTEEVENTS.csv; a note that its author marked as an error is empty."""
    for _, row in read_csv(path, ["ROW_ID", "ISERROR", "TEXT"]):
        lines = [line.strip() for line in row["TEXT"].splitlines() if line.strip()]
        yield Document(row["ROW_ID"], text="" if row["ISERROR"] == "1" else "\n".join(lines))


READERS: dict[str, Callable[[Path], Iterator[Document]]] = {
    "pubmed-xml": medline.read_xml,
    "medline-text": medline.read_medline,
    "citations": read_citations,
    "ohsumed": read_ohsumed,
    "abstract-lines": read_abstract_lines,
    "europepmc": read_europepmc,
    "mesh-sample": read_mesh_sample,
    "jats": articles.read_jats,
    "wikipedia-xml": articles.read_wikipedia,
    "paragraphs": read_paragraphs,
    "mimic-notes": read_notes,
}
