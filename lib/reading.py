"""Source files, compressed or not: bytes, lines, tables, JSON, members of archives.

Damaged or malformed content raises a StudyError that names file and line and quotes nothing, because a text may be
restricted.
"""

import bz2
import csv
import io
import json
import lzma
import re
import struct
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from isal import igzip, isal_zlib
from lxml import etree

from lib.errors import StudyError
from lib.places import show_path

BROKEN = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError,
          RuntimeError, ValueError, OverflowError, IndexError)  # fmt: skip
Cells = Iterator[tuple[str, list[str]]]  # `file:line` and the cells of each row
NamedCells = Iterator[tuple[str, dict[str, str]]]  # the same, by column


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file as bytes, decompressed if it begins as gzip or bzip2 does. Raises StudyError if it is damaged."""
    with open(path, "rb") as raw:
        first_bytes = raw.peek(3)[:3]
        stream = raw
        if first_bytes[:1] == b"\x1f":  # gzip, however early it was cut off; no text begins with this byte
            stream = igzip.GzipFile(fileobj=raw)  # twice as fast as zlib's
        elif first_bytes == b"BZh":
            stream = bz2.BZ2File(raw)
        try:
            yield stream
        except (EOFError, OSError, isal_zlib.error) as error:
            if isinstance(error, OSError) and error.errno:
                raise  # an error of the disk, not of the content
            raise StudyError(f"{show_path(path)}: cut off or damaged ({error})") from None


def name_file(path: Path, member: str) -> str:
    """Name a file, or a member of an archive, as in messages."""
    return f"{show_path(path)}: {member}" if member else show_path(path)


def read_lines(path: Path, member: str = "") -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a text, without line ends. Raises StudyError, with the line, for invalid UTF-8.

    `member`: a file in the archive `path`.
    """
    if member:
        yield from decode_lines(name_file(path, member), io.BytesIO(read_members(path, [member])[member]))
        return
    with open_bytes(path) as file:
        yield from decode_lines(show_path(path), file)


def ends_with_line(path: Path) -> bool:
    """Return whether the last line of a file has a line end; it has none if a copy was cut off."""
    last_line = b""
    with open_bytes(path) as file:
        for line in file:  # line by line, because a file may be larger than memory
            last_line = line
    return last_line.endswith(b"\n")


def read_text(path: Path) -> str:
    """Return a whole text with its line ends as they are. Raises StudyError as read_lines does."""
    with open_bytes(path) as file:
        return decode_text(show_path(path), file.read())


def decode_text(place: str, data: bytes) -> str:
    """Decode a whole text. Raises StudyError as read_lines does."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise StudyError(f"{place}:{line}: not UTF-8 text ({error.reason}); convert the file") from None


def decode_lines(place: str, lines: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """Yield numbered lines without line ends. Raises StudyError as read_lines does."""
    for number, line in enumerate(lines, start=1):
        try:
            yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise StudyError(f"{place}:{number}: not UTF-8 text ({error.reason}); convert the file") from None


def index_files(paths: Iterable[Path], form: re.Pattern) -> dict[str, Path]:
    """Return the files whose names have a form, by its first group. Raises StudyError if two have the same."""
    files: dict[str, Path] = {}
    for path in sorted(paths):
        match = form.fullmatch(path.name)
        if match and (first := files.setdefault(match[1], path)) is not path:
            raise StudyError(f"{show_path(path)}: stands for the same as {show_path(first)}; leave one of them out")
    return files


def read_names(path: Path, form: re.Pattern, example: str) -> list[re.Match[str]]:
    """Return the matches of the names in a list, separated by commas or line ends.

    Raises StudyError if there are none, and for a name of another form or one that comes again.
    """
    matches: dict[str, re.Match[str]] = {}
    for number, line in read_lines(path):
        for name in filter(None, map(str.strip, line.split(","))):
            match = form.fullmatch(name)
            if not match or name in matches:
                raise StudyError(f"{show_path(path)}:{number}: expected names such as {example}, each once")
            matches[name] = match
    if not matches:
        raise StudyError(f"{show_path(path)}: empty file")
    return list(matches.values())


def find_file(path: Path) -> Path:
    """Return the path of a file or of its gzip form. Raises StudyError if neither exists."""
    file = path if path.is_file() else path.with_name(f"{path.name}.gz")
    if not file.is_file():
        raise StudyError(f"no file {show_path(path)}; set STUDY_DATA to a folder that holds it")
    return file


def read_first_line(path: Path, member: str = "") -> str:
    """Return the first line that is not blank, or an empty string. `member`: a file in the archive `path`."""
    return next((line for _, line in read_lines(path, member) if line.strip()), "")


def read_columns(path: Path, width: int, header: str = "", member: str = "") -> Cells:
    """Yield `file:line` and the cells of every line of a tab-separated file. Raises StudyError for another width.

    `header`: names that the first line must have; this line is skipped. `member`: a file in the archive `path`.
    """
    name, number = name_file(path, member), 0
    for number, line in read_lines(path, member):
        location, cells = f"{name}:{number}", line.split("\t")
        if len(cells) != width:
            raise StudyError(f"{location}: expected {width} columns, found {len(cells)}")
        if number == 1 and header:
            if cells != header.split():
                raise StudyError(f"{location}: expected the header {', '.join(header.split())}")
            continue
        yield location, cells
    if not number:
        raise StudyError(f"{name}: empty file")


def read_json_lines(path: Path, blank: bool = False) -> Iterator[tuple[str, dict]]:
    """Yield `file:line` and the JSON object of every line. Raises StudyError if a line is not an object.

    `blank`: allow blank lines.
    """
    name, number = show_path(path), 0
    for number, line in read_lines(path):
        if blank and not line.strip():
            continue
        location = f"{name}:{number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
            raise StudyError(f"{location}: not JSON ({reason}); was the file cut off?") from None
        if not isinstance(record, dict):
            raise StudyError(f"{location}: not a JSON object")
        yield location, record
    if not number:
        raise StudyError(f"{name}: empty file")


def read_rows(path: Path, columns: str, header: bool = True, member: str = "") -> NamedCells:
    """Yield `file:line` and the cells of each row of a tab-separated file, by column; quotes have no meaning.

    `header`: whether the first line has the columns' names. `member`: a file in the archive `path`. Raises StudyError
    as in read_columns.
    """
    names = columns.split()
    return name_cells(names, read_columns(path, len(names), columns if header else "", member))


def read_json_rows(path: Path, columns: str) -> Iterator[tuple[str, dict]]:
    """Yield `file:line` and the object of every line, which has a text under each column. Else raises StudyError."""
    for location, record in read_json_lines(path):
        for name in columns.split():
            if not isinstance(record.get(name), str):
                raise StudyError(f"{location}: expected a text under {name}")
        yield location, record


def read_csv_cells(path: Path, **form) -> Cells:
    """Yield `file:line`, for the row's last line, and the cells of each row of a CSV, without blank lines.

    Raises StudyError for a malformed row. `form`: options of csv.reader for other separators or quotes.
    """
    csv.field_size_limit(sys.maxsize)  # a cell may hold a long text
    name, reader = show_path(path), csv.reader((f"{line}\n" for _, line in read_lines(path)), strict=True, **form)
    try:
        for cells in reader:
            if cells:
                yield f"{name}:{reader.line_num}", cells
    except csv.Error as error:
        raise StudyError(f"{name}:{reader.line_num}: not CSV ({error}); was the file cut off?") from None


def name_cells(names: list[str], rows: Cells) -> NamedCells:
    """Yield the cells of rows by column. Raises StudyError for a row of another width."""
    for location, cells in rows:
        if len(cells) != len(names):
            fault = f"expected {len(names)} columns, found {len(cells)}; is a quotation missing, or the file cut off?"
            raise StudyError(f"{location}: {fault}")
        yield location, dict(zip(names, cells, strict=True))


def read_csv(path: Path, needed: list[str]) -> NamedCells:
    """Yield the rows of a CSV with a header. Raises StudyError for a missing column or a malformed row."""
    rows = read_csv_cells(path)
    location, names = next(rows, ("", []))
    if not names:
        raise StudyError(f"{show_path(path)}: empty file")
    if not set(needed) <= set(names) or len(set(names)) < len(names):
        raise StudyError(f"{location}: expected the columns {', '.join(needed)}, each once")
    yield from name_cells(names, rows)


def read_members(archive: Path, names: Collection[str]) -> dict[str, bytes]:
    """Return the bytes of named members of a zip or tar, compressed or not, without writing to disk.

    Raises StudyError for a damaged archive, a missing member and one that is there twice.
    """
    wanted = {*names}
    with open_bytes(archive) as file:
        data = file.read()  # to the end, where gzip has its checksum
    try:
        if data[:2] == b"PK":
            with zipfile.ZipFile(io.BytesIO(data)) as archive_file:
                members = [name for name in archive_file.namelist() if name in wanted]
                contents = {name: archive_file.read(name) for name in members}
        else:
            with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive_file:
                members = [member for member in archive_file if member.name in wanted and member.isfile()]
                contents = {member.name: archive_file.extractfile(member).read() for member in members}
    except BROKEN:
        raise StudyError(f"{show_path(archive)}: cut off, damaged or no archive") from None
    if len(contents) < len(members):
        raise StudyError(f"{show_path(archive)}: a member is there twice; fetch the archive again")
    for name in names:
        if name not in contents:
            raise StudyError(f"{name_file(archive, name)}: no such member")
    return contents


def parse_xml(place: str, content: bytes) -> etree._Element:
    """Return the root of an XML text.

    Raises StudyError if it is not well formed, with the line, or if it declares entities inside.
    """
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        root = etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise StudyError(f"{place}:{line}: not well-formed XML") from None
    refuse_entities(place, root.getroottree())
    return root


def refuse_entities(place: str, tree: etree._ElementTree) -> None:
    """Raise StudyError if a document type declares entities inside the file, as no publisher's file does."""
    dtd = tree.docinfo.internalDTD
    names = [entity.name for entity in dtd.iterentities()] if dtd is not None else []
    if names:
        raise StudyError(f"{place}: declares {len(names)} entities of its own: refused")
