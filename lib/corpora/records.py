"""A document as it came from its source, and what readers of XML share."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from lxml import etree

from lib.errors import StudyError
from lib.places import show_path
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
    the source gives directly.
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


def iterate_xml(path: Path, file: BinaryIO, tags: tuple[str, ...], what: str) -> Iterator[etree._Element]:
    """The elements with these tags, one at a time, each freed after use.

    Nothing is resolved or expanded: a file that declares entities of its own is refused (entity expansion, files of
    this machine). StudyError with the line, and how many elements were whole before it, for XML that is not well
    formed or not in the encoding that it claims.
    """
    found = 0
    try:
        events = etree.iterparse(
            file, tag=tags, resolve_entities=False, no_network=True, huge_tree=True, remove_comments=True
        )
        for _, element in events:
            if not found:
                refuse_entities(show_path(path), element.getroottree())
            found += 1
            yield element
            element.clear(keep_tail=False)
            parent = element.getparent()
            if parent is not None:
                while element.getprevious() is not None:
                    del parent[0]
    except etree.XMLSyntaxError as error:
        raise StudyError(
            f"{show_path(path)}:{error.lineno}: not well-formed XML after {what} {found}: {error.msg}; fetch the file "
            "again, or name it under leave_out of its source"
        ) from None


def read_year(date: str) -> int:
    """The first four digits of a date such as `1998 Dec-1999 Jan`; 0 when there are none."""
    found = re.search(r"\d{4}", date)
    return int(found[0]) if found else 0


def flat_text(element) -> str:
    """The text of an XML element without its markup, white space folded; empty for None."""
    return "" if element is None else FLAT(element)
