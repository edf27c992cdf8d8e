"""Members of zip and tar archives, read in memory: nothing is unpacked to disk."""

import io
import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

from lib.corpora.records import AGAIN, open_bytes
from lib.errors import StudyError
from lib.places import show_path

BROKEN = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError,
          RuntimeError, ValueError, OverflowError, IndexError)  # fmt: skip


def read_members(archive: Path, names: Collection[str]) -> dict[str, bytes]:
    """The bytes of named members of a zip or a tar, which may be compressed; nothing is written to disk.

    StudyError for a damaged archive, a member that is not there, a name that occurs twice or leads outside of the
    archive, a link.
    """
    where = show_path(archive)
    with open_bytes(archive) as file:
        data = file.read()  # to the end, where gzip has its check sum
    try:
        if data[:2] == b"PK":
            with zipfile.ZipFile(io.BytesIO(data)) as opened:
                members = opened.infolist()
                present = [member.filename for member in members]
                links = any(stat.S_ISLNK(member.external_attr >> 16) for member in members)
                found = {name: opened.read(name) for name in set(names) & set(present)}
        else:
            with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as opened:
                members = opened.getmembers()
                present = [member.name for member in members]
                links = not all(member.isfile() or member.isdir() for member in members)
                wanted = [member for member in members if member.name in names and member.isfile()]
                found = {member.name: opened.extractfile(member).read() for member in wanted}
    except BROKEN:
        raise StudyError(f"{where}: cut off, damaged or no archive; {AGAIN}") from None
    outside = any(PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts for name in present)
    if outside or links or len(set(present)) < len(present):
        raise StudyError(f"{where}: has links, names twice or paths that lead outside: refused; {AGAIN}")
    for name in names:
        if name not in found:
            raise StudyError(f"{where}: {name}: no such member; {AGAIN}")
    return found


def split_lines(where: str, data: bytes) -> Iterator[tuple[int, str]]:
    """Numbered lines of a member, without their ends; StudyError with the line for bytes that are not UTF-8."""
    for number, line in enumerate(io.BytesIO(data), start=1):
        try:
            yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise StudyError(f"{where}:{number}: not UTF-8 text; {AGAIN}") from None
