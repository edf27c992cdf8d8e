"""A document as it came from its source, and what readers of XML share."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from lxml import etree

from lib.errors import StudyError
from lib.reading import refuse_entities

FLAT = etree.XPath("normalize-space()", smart_strings=False)  # several times as fast as joining itertext()


class Heading(NamedTuple):
    """A MeSH heading: descriptor UI (`D009369`) or name, whichever the source has, and whether it is a major topic."""

    ui: str = ""
    name: str = ""
    major: bool = False


@dataclass(slots=True)
class Document:
    """A text with what its source knows of it; empty where it knows nothing.

    `id`: PMID, PMCID, or the source's own. `version` counts up with newer versions of one citation; a `deleted` one
    was withdrawn. `text` is the abstract, or the body with a paragraph a line. `trees` are MeSH tree numbers that
    the source gives directly. `entered`: the day on which a citation entered PubMed, `2019-01-31`.
    """

    id: str = ""
    title: str = ""
    text: str = ""
    version: int = 1
    deleted: bool = False
    language: str = ""
    year: int = 0
    mesh: tuple[Heading, ...] = ()
    trees: tuple[str, ...] = ()
    entered: str = ""


def iterate_xml(
    name: str, file: BinaryIO, tags: tuple[str, ...], what: str, roots: tuple[str, ...]
) -> Iterator[etree._Element]:
    """The elements with these tags, one at a time, each freed after use; `name`: of the file, `roots`: what holds them.

    Nothing is resolved or expanded: a file that declares entities of its own is refused (entity expansion, files of
    this machine), and so is an element that holds one. StudyError with the line, and how many elements were whole
    before it, for XML that is not well formed or not in the encoding that it claims, and for another root.
    """
    count = 0
    try:
        events = etree.iterparse(
            file, tag=tags, resolve_entities=False, no_network=True, huge_tree=True, remove_comments=True,
            remove_pis=True,
        )  # fmt: skip
        for _, element in events:
            if not count:
                refuse_entities(name, element.getroottree())
                check_root(name, element.getroottree().getroot(), roots)
            count += 1
            if (entity := next(element.iter(etree.Entity), None)) is not None:
                raise StudyError(f"{name}:{element.sourceline}: {entity.text} is declared elsewhere: refused")
            yield element
            element.clear(keep_tail=False)
            parent = element.getparent()
            if parent is not None:
                while element.getprevious() is not None:
                    del parent[0]
        if not count:
            check_root(name, events.root, roots)
    except etree.XMLSyntaxError as error:
        raise StudyError(f"{name}:{error.lineno or 1}: not well-formed XML after {what} {count}: {error.msg}") from None


def check_root(name: str, root: etree._Element, roots: tuple[str, ...]) -> None:
    """StudyError for a document of another kind, such as a page that says that there were too many requests."""
    tag = root.tag.rpartition("}")[2]  # as etree.QName says it, which refuses a namespace with a damaged byte
    if tag not in roots:
        raise StudyError(f"{name}: a document of <{tag}>, expected {' or '.join(roots)}")


def read_year(date: str) -> int:
    """The first four digits of a date such as `1998 Dec-1999 Jan`; 0 when there are none."""
    year = re.search(r"\d{4}", date)
    return int(year[0]) if year else 0


def flat_text(element) -> str:
    """The text of an XML element without its markup, white space folded; empty for None."""
    return "" if element is None else FLAT(element)
