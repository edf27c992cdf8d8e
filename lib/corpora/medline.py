"""Readers of PubMed citations in the formats of the National Library of Medicine: XML and MEDLINE text."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from lib.corpora.records import Document, Heading, flat_text, iterate_xml
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import open_bytes, read_lines

ROOTS = ("PubmedArticleSet", "PubmedBookArticleSet", "DeleteCitation", "DeleteDocument", "eFetchResult")
RECORDS = ("PubmedArticle", "PubmedBookArticle", "DeleteCitation", "DeleteDocument")
NO_TITLE = re.compile(r"\[?not available\]?\.?", re.IGNORECASE)  # in place of a missing English title
FIELD = re.compile(r"[A-Z][A-Z0-9 ]{3}-( |$)")  # a field of the MEDLINE display format


def read_xml(path: Path) -> Iterator[Document]:
    """Read citations from a PubMed XML file: baseline, update file (newer versions, deletions) or E-utilities export.

    Books (PubmedBookArticle) are citations too. A deletion yields an empty document with `deleted` set. Raises
    StudyError as iterate_xml does, and with file and citation if an element is missing.
    """
    with open_bytes(path) as file:
        for number, record in enumerate(iterate_xml(show_path(path), file, RECORDS, "citation", ROOTS), start=1):
            try:
                if record.tag.startswith("Delete"):
                    for pmid in record.iterchildren("PMID"):
                        yield Document(id=pmid.text or "", version=int(pmid.get("Version", 1)), deleted=True)
                else:
                    yield read_citation(record)
            except (LookupError, AttributeError, ValueError) as error:
                pmid = record.findtext(".//PMID") or "unknown"
                raise StudyError(
                    f"{show_path(path)}: citation {number} (PMID {pmid}): an element is missing ({error})"
                ) from None


def read_citation(record) -> Document:
    """Convert a record with a MedlineCitation, or the BookDocument of an NCBI Bookshelf chapter, to a document."""
    elements = {element.tag: element for element in record[0]}
    article = {element.tag: element for element in elements["Article"]} if "Article" in elements else elements
    pmid, title = elements["PMID"], article.get("ArticleTitle")
    if title is None and "Book" in elements:
        title = elements["Book"].find("BookTitle")
    title = flat_text(title)
    return Document(
        id=pmid.text or "",
        title="" if NO_TITLE.fullmatch(title) else title,
        text=read_abstract(article.get("Abstract")),
        version=int(pmid.get("Version", 1)),
        language=article["Language"].text or "" if "Language" in article else "",
        mesh=read_headings(elements.get("MeshHeadingList")),
        entered=read_entered(record),
    )


def read_entered(record) -> str:
    """Return the day on which a record entered PubMed, whatever was revised since; empty if its history lacks it."""
    date = record.find("*/History/PubMedPubDate[@PubStatus='entrez']")
    tags = ("Year", "Month", "Day")
    return "" if date is None else "-".join((date.findtext(tag) or "").zfill(2) for tag in tags)


def read_abstract(element) -> str:
    """Return an Abstract element as one paragraph, each section after its label, without the copyright notice.

    Bold elements in a row are separated: labels such as `<b>Patient: Male</b><b>Symptoms: ...`.
    """
    if element is None:
        return ""
    for bold in element.iterfind("AbstractText/b"):
        if not bold.tail and (next_element := bold.getnext()) is not None and next_element.tag == "b":
            bold.tail = " "
    sections = ((section.get("Label"), flat_text(section)) for section in element.iterchildren("AbstractText"))
    return " ".join(f"{label}: {text}" if label and label != "UNLABELLED" else text for label, text in sections if text)


def read_headings(headings) -> tuple[Heading, ...]:
    """Return the headings of a MeshHeadingList; a heading is major if its descriptor or any of its qualifiers is."""
    if headings is None:
        return ()
    return tuple(
        Heading(
            heading[0].get("UI", ""), heading[0].text or "", any(child.get("MajorTopicYN") == "Y" for child in heading)
        )
        for heading in headings.iterchildren("MeshHeading")
    )


def read_medline(path: Path) -> Iterator[Document]:
    """Read citations from a file in MEDLINE display format: `TAG - value`, continued after six spaces.

    A field after an empty line begins another citation; a value may continue after one.
    """
    fields: dict[str, list[list[str]]] = {}  # the values of each tag, as lists of lines
    tag, number, name, after_empty_line = None, 0, show_path(path), False
    for number, line in read_lines(path):
        if not line.strip():
            after_empty_line = True
            continue
        if line.startswith("      ") and tag:
            fields[tag][-1].append(line.strip())
        elif FIELD.match(line):
            if after_empty_line and fields:
                yield citation_of(fields, f"{name}:{number - 1}")
                fields = {}
            tag = line[:4].strip()
            fields.setdefault(tag, []).append([line[6:].strip()])
        else:
            raise StudyError(f"{name}:{number}: expected 'TAG - value' of the MEDLINE format, found {line[:40]!r}")
        after_empty_line = False
    if fields:
        yield citation_of(fields, f"{name}:{number}")


def citation_of(lines: dict[str, list[list[str]]], place: str) -> Document:
    """Convert the fields of one MEDLINE record to a document. Raises StudyError if it has no PMID."""
    fields = defaultdict(list, {tag: [" ".join(value) for value in values] for tag, values in lines.items()})
    if not any(fields["PMID"]):
        raise StudyError(f"{place}: the record that ends here has no PMID")
    headings = []
    for value in fields["MH"]:
        name, *qualifiers = value.split("/")
        headings.append(Heading(name=name.lstrip("*"), major="*" in name or any("*" in q for q in qualifiers)))
    title = " ".join(fields["TI"] or fields["BTI"])
    return Document(
        id=fields["PMID"][0],
        title="" if NO_TITLE.fullmatch(title) else title,
        text=" ".join(fields["AB"]),
        language=["", *fields["LA"]][-1],
        mesh=tuple(headings),
    )
