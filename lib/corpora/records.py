"""A document as it came from its source, and what readers of all formats share: lines, XML, messages."""

import bz2
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from isal import igzip, isal_zlib
from lxml import etree

from lib.errors import StudyError
from lib.places import show_path

AGAIN = "fetch the file again"
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


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """A file as bytes, unpacked when it begins as gzip or bzip2 does, whatever its name; StudyError when damaged."""
    with open(path, "rb") as raw:
        start = raw.peek(3)[:3] if isinstance(raw, io.BufferedReader) else b""
        opened = raw
        if start[:1] == b"\x1f":  # of gzip, however short it was cut; no text begins so
            opened = igzip.GzipFile(fileobj=raw)  # twice as fast as zlib's
        elif start == b"BZh":
            opened = bz2.BZ2File(raw)
        try:
            yield opened
        except (EOFError, OSError, isal_zlib.error) as error:
            if isinstance(error, OSError) and error.errno:
                raise  # of the disk, not of what is on it
            raise StudyError(f"{show_path(path)}: cut off or damaged ({error}); fetch the file again") from None


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines of a text, without their ends; StudyError with the line for bytes that are not UTF-8."""
    number = 0
    with open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise StudyError(
                    f"{show_path(path)}:{number}: not UTF-8 text ({error.reason}); convert the file"
                ) from None
            yield number, text.rstrip("\r\n")


def find_file(path: Path) -> Path:
    """The path of a file or of its gzip form; StudyError when neither is there."""
    form = path if path.is_file() else path.with_name(f"{path.name}.gz")
    if not form.is_file():
        raise StudyError(f"no file {show_path(path)}; set STUDY_DATA to a folder that holds it")
    return form


def read_columns(path: Path, width: int, header: str = "") -> Iterator[tuple[str, list[str]]]:
    """`file:line` and the cells of every line of a tab-separated file; StudyError for a line of another width.

    `header`: names that the first line must have, which is then left out.
    """
    name, number = show_path(path), 0
    for number, line in read_lines(path):
        where, cells = f"{name}:{number}", line.split("\t")
        if len(cells) != width:
            raise StudyError(f"{where}: expected {width} columns, found {len(cells)}; {AGAIN}")
        if number == 1 and header:
            if cells != header.split():
                raise StudyError(f"{where}: expected the header {', '.join(header.split())}; {AGAIN}")
            continue
        yield where, cells
    if not number:
        raise StudyError(f"{name}: empty file; {AGAIN}")


def read_json(path: Path):
    """What a JSON file holds; StudyError when it is not JSON. The message quotes none of it."""
    try:
        return json.loads("\n".join(line for _, line in read_lines(path)))
    except (ValueError, RecursionError) as error:
        line = f":{error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise StudyError(f"{show_path(path)}{line}: not JSON; was the file cut off? {AGAIN}") from None


def read_json_lines(path: Path) -> Iterator[tuple[str, dict]]:
    """`file:line` and the JSON object of every line; StudyError for a line that is none."""
    name, number = show_path(path), 0
    for number, line in read_lines(path):
        where = f"{name}:{number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
            raise StudyError(f"{where}: not JSON ({reason}); was the file cut off?") from None
        if not isinstance(record, dict):
            raise StudyError(f"{where}: not a JSON object")
        yield where, record
    if not number:
        raise StudyError(f"{name}: empty file; {AGAIN}")


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


def refuse_entities(where: str, tree: etree._ElementTree) -> None:
    """StudyError when a document type declares entities inside the file, as no publisher's file does."""
    dtd = tree.docinfo.internalDTD
    names = [entity.name for entity in dtd.iterentities()] if dtd is not None else []
    if names:
        raise StudyError(f"{where}: declares {len(names)} entities of its own: refused")


def read_year(date: str) -> int:
    """The first four digits of a date such as `1998 Dec-1999 Jan`; 0 when there are none."""
    found = re.search(r"\d{4}", date)
    return int(found[0]) if found else 0


def flat_text(element) -> str:
    """The text of an XML element without its markup, white space folded; empty for None."""
    return "" if element is None else FLAT(element)
