"""Documents as they come from their sources, and functions that XML readers share."""

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
    """A text with its metadata; fields that the source lacks are empty.

    `id`: PMID, PMCID, or the source's own. `version` increases with newer versions of a citation; a `deleted` one was
    withdrawn. `text`: the abstract, or the body with one paragraph a line. `trees`: MeSH tree numbers that the source
    gives directly. `entered`: the day on which a citation entered PubMed, `2019-01-31`.
    """

    id: str = ""
    title: str = ""
    text: str = ""
    version: int = 1
    deleted: bool = False
    language: str = ""
    mesh: tuple[Heading, ...] = ()
    trees: tuple[str, ...] = ()
    entered: str = ""


def iterate_xml(
    name: str, file: BinaryIO, tags: tuple[str, ...], what: str, roots: tuple[str, ...]
) -> Iterator[etree._Element]:
    """Yield the elements with these tags, one at a time, each freed after use.

    `name`: of the file; `what`: what messages call an element; `roots`: the allowed root elements. Nothing is resolved
    or expanded: a file that declares its own entities is rejected (entity expansion, local files), and so is an element
    that contains an entity. Raises StudyError, with the line and the number of complete elements before it, if the XML
    is not well formed or not in its declared encoding, and for another root.
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
    """Raise StudyError for another kind of document, such as a page that reports too many requests."""
    tag = root.tag.rpartition("}")[2]  # not by etree.QName, which rejects a namespace with a damaged byte
    if tag not in roots:
        raise StudyError(f"{name}: a document of <{tag}>, expected {' or '.join(roots)}")


def flat_text(element) -> str:
    """Return the text of an XML element without its mark-up, with white space collapsed; empty for None."""
    return "" if element is None else FLAT(element)
