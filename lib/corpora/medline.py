"""PubMed citations from the formats of the National Library of Medicine: XML and MEDLINE text."""

import re
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from lib.corpora.records import Document, Heading, flat_text, read_year
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import open_bytes, read_lines

PARSER = etree.XMLParser(
    resolve_entities=False, no_network=True, huge_tree=True, encoding="utf-8", remove_comments=True, remove_pis=True
)
RECORD = re.compile(rb"<(PubmedArticle|PubmedBookArticle|DeleteCitation|DeleteDocument)[ >]")
HEAD, BLOCK = 1 << 16, 1 << 20  # bytes read at a time; a file says in its head what it is

YEAR = etree.XPath("string((.//PubDate/Year | .//PubDate/MedlineDate)[1])", smart_strings=False)
# A heading as NLM writes it today; of any other form (older exports have no UI) the parser makes sense, more slowly.
HEADING = re.compile(
    r'<MeshHeading>\s*<DescriptorName UI="(\w+)" MajorTopicYN="([YN])"(?: Type="\w+")?>([^<&\0-\x1f]+)'
    r"</DescriptorName>"
    r"((?:\s*<QualifierName[^<>]*>[^<]*</QualifierName>)*)\s*</MeshHeading>"
)

FIELD = re.compile(r"[A-Z][A-Z0-9 ]{3}-( |$)")  # of the MEDLINE display format


def read_xml(path: Path) -> Iterator[Document]:
    """Citations of a PubMed XML file: baseline, update file (newer versions, deletions) or E-utilities export.

    Books (PubmedBookArticle) are citations too. A deletion yields an empty document that is `deleted`. StudyError
    with file and citation for a file that ends early, XML that is not well formed, an encoding other than UTF-8, and
    entities declared in the file.
    """
    for number, (kind, record) in enumerate(split_records(path), start=1):
        try:
            if kind == b"PubmedArticle":
                yield read_article(record)
            elif kind == b"PubmedBookArticle":
                yield read_book(etree.fromstring(record, PARSER))
            else:
                for pmid in etree.fromstring(record, PARSER).iterchildren("PMID"):
                    yield Document(id=pmid.text or "", version=int(pmid.get("Version", 1)), deleted=True)
        except (etree.XMLSyntaxError, LookupError, AttributeError, ValueError) as error:
            pmid = re.search(rb"<PMID[^>]*>(\d+)", record)
            malformed = isinstance(error, etree.XMLSyntaxError | UnicodeDecodeError)
            wrong = "not well-formed XML" if malformed else "an element is missing"
            raise StudyError(
                f"{show_path(path)}: citation {number} (PMID {pmid[1].decode() if pmid else 'unknown'}): {wrong} "
                f"({error}); fetch the file again, or name it under leave_out of its source"
            ) from None


def split_records(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """The (tag, bytes) of each record of a PubMed XML file, a block of the file in memory at a time.

    Cutting at the end tags of records and parsing them one by one is several times as fast as one parser over the
    whole file. What stands between records may only be white space, so that no damaged record is passed over.
    """
    where, number = show_path(path), 0
    with open_bytes(path) as file:
        buffer = check_head(path, file.read(HEAD))
        ended = False
        while True:
            start = 0
            while found := RECORD.search(buffer, start):
                end_tag = b"</" + found[1] + b">"
                end = buffer.find(end_tag, found.end())
                if end < 0:
                    break
                between = buffer[start : found.start()]
                if between.strip() if number else b"</" in between:  # before the first one stand other opening tags
                    raise StudyError(f"{where}: not well-formed XML after citation {number}: fetch the file again")
                number += 1
                start = end + len(end_tag)
                yield found[1], buffer[found.start() : start]
            if ended:
                break
            # Enough for the longest record; growing by doubling keeps a very long one linear.
            block = file.read(max(BLOCK, len(buffer) - start))
            ended = not block
            buffer = buffer[start:] + block
    rest = buffer[start:]
    if number:
        ends = re.fullmatch(rb"\s*</\w+>\s*", rest)
    else:  # a set of none
        ends = re.search(rb"</\w+>\s*$", rest) and rest.count(b"</") == 1 and not RECORD.search(rest)
    if not ends:
        raise StudyError(f"{where}: the file ends early, or is damaged, after citation {number}: fetch it again")


def check_head(path: Path, head: bytes) -> bytes:
    """The first bytes without a byte order mark; StudyError for another encoding, entities, or what is not PubMed's."""
    where = show_path(path)
    head = head.removeprefix(b"\xef\xbb\xbf")
    if not head:
        raise StudyError(f"{where}: empty file")
    encoding = re.match(rb"<\?xml[^>]*encoding\s*=\s*[\"']([\w.-]+)", head)
    if encoding and encoding[1].lower() not in (b"utf-8", b"us-ascii") or b"\0" in head[:100]:
        raise StudyError(f"{where}: PubMed's XML is UTF-8, this file says otherwise: convert it")
    first = RECORD.search(head)
    prolog = head[: first.start()] if first else head
    if b"<!ENTITY" in prolog:
        raise StudyError(f"{where}: declares entities of its own, as no file of PubMed does: refused")
    if not re.search(rb"<(PubmedArticleSet|DeleteCitation|PubmedArticle|PubmedBookArticleSet|eFetchResult)", head):
        raise StudyError(f"{where}: no PubmedArticleSet: not a PubMed XML file")
    return head


def read_article(record: bytes) -> Document:
    """The bytes of a PubmedArticle element as a document; etree.XMLSyntaxError where they are not well formed."""
    short, mesh = shorten(record)
    citation = {part.tag: part for part in etree.fromstring(short, PARSER)[0]}
    article = {part.tag: part for part in citation["Article"]}
    pmid = citation["PMID"]
    return Document(
        id=pmid.text or "",
        title=flat_text(article.get("ArticleTitle")),
        text=read_abstract(article.get("Abstract")),
        version=int(pmid.get("Version", 1)),
        language=article["Language"].text or "" if "Language" in article else "",
        year=read_year(YEAR(article["Journal"])),
        mesh=read_headings(citation.get("MeshHeadingList")) if mesh is None else mesh,
    )


def shorten(record: bytes) -> tuple[bytes, tuple[Heading, ...] | None]:
    """A citation without what no row needs, most of its bytes, and its MeSH headings, read without a tree.

    Where the headings are not of the usual form, or a comment, CDATA section or instruction might hide a tag: all of
    it, and None.
    """
    end = record.find(b"</Article>")
    if end < 0 or b"<!" in record or b"<?" in record:
        return record, None
    first = record.find(b"<MeshHeadingList", end)
    headings = record[first : record.find(b"</MeshHeadingList>", first)].decode() if first > 0 else ""
    found = HEADING.findall(headings)
    if len(found) != max(0, headings.count("<MeshHeading") - 1):
        return record, None
    mesh = tuple([Heading(ui, name, major == "Y" or '"Y"' in qualifiers) for ui, major, name, qualifiers in found])
    authors = record.find(b"<AuthorList", 0, end)
    after = record.find(b"</AuthorList>", authors, end) if authors > 0 else -1
    if after < 0:
        authors = after = 0  # nothing to cut
    else:
        after += len(b"</AuthorList>")
    return record[:authors] + record[after:end] + b"</Article></MedlineCitation></PubmedArticle>", mesh


def read_book(element) -> Document:
    """A PubmedBookArticle element (a chapter of the NCBI Bookshelf) as a document."""
    book = element.find("BookDocument")
    pmid = book.find("PMID")
    title = book.find("ArticleTitle")
    return Document(
        id=pmid.text or "",
        title=flat_text(title if title is not None else book.find("Book/BookTitle")),
        text=read_abstract(book.find("Abstract")),
        version=int(pmid.get("Version", 1)),
        language=book.findtext("Language") or "",
        year=read_year(YEAR(book.find("Book"))),
    )


def read_abstract(element) -> str:
    """An Abstract element as one paragraph, each section after its label; the copyright notice is no text of it."""
    if element is None:
        return ""
    sections = []
    for section in element.iterchildren("AbstractText"):
        text = flat_text(section)
        label = section.get("Label")
        if text:
            sections.append(f"{label}: {text}" if label and label != "UNLABELLED" else text)
    return " ".join(sections)


def read_headings(headings) -> tuple[Heading, ...]:
    """The headings of a MeshHeadingList; one is major when its descriptor or any of its qualifiers is."""
    if headings is None:
        return ()
    return tuple(
        Heading(
            heading[0].get("UI", ""), heading[0].text or "", any(part.get("MajorTopicYN") == "Y" for part in heading)
        )
        for heading in headings.iterchildren("MeshHeading")
    )


def read_text(path: Path) -> Iterator[Document]:
    """Citations of a file in MEDLINE display format: `TAG - value`, lines going on after six spaces."""
    fields: dict[str, list[list[str]]] = {}  # the lines of each value of a tag
    tag, number, name = None, 0, show_path(path)
    for number, line in read_lines(path):
        if not line.strip():
            if fields:
                yield citation_of(fields, f"{name}:{number}")
            fields, tag = {}, None
        elif line.startswith("      ") and tag:
            fields[tag][-1].append(line.strip())
        elif FIELD.match(line):
            tag = line[:4].strip()
            fields.setdefault(tag, []).append([line[6:].strip()])
        else:
            raise StudyError(f"{name}:{number}: expected 'TAG - value' of the MEDLINE format, found {line[:40]!r}")
    if fields:
        yield citation_of(fields, f"{name}:{number}")


def citation_of(lines: dict[str, list[list[str]]], where: str) -> Document:
    """The fields of one MEDLINE record as a document; StudyError when it has no PMID."""
    fields = {tag: [" ".join(value) for value in values] for tag, values in lines.items()}
    if not any(fields.get("PMID", [])):
        raise StudyError(f"{where}: the record that ends here has no PMID")
    headings = []
    for value in fields.get("MH", []):
        name, *qualifiers = value.split("/")
        headings.append(Heading(name=name.lstrip("*"), major="*" in name or any("*" in q for q in qualifiers)))
    return Document(
        id=fields["PMID"][0],
        title=" ".join(fields.get("TI", [])),
        text=" ".join(fields.get("AB", [])),
        language=fields.get("LA", [""])[0],
        year=read_year(fields.get("DP", [""])[0]),
        mesh=tuple(headings),
    )
