"""Writers of made-up files that give the same bytes each time, also for archives and gzip."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write a text, gzipped if the name ends in .gz."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gz":
        write_gzip(path, text)
    else:
        path.write_bytes(text.encode())


def write_lines(path: Path, lines: Iterable[str]) -> None:
    write_text(path, "".join(f"{line}\n" for line in lines))


def write_gzip(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def write_zip(path: Path, members: dict[str, str]) -> None:
    """Write a zip whose members all have the oldest time that zip allows, so that its bytes are always the same."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)


def write_tar(path: Path, members: dict[str, str]) -> None:
    """Write a gzipped tar whose members have no time, so that its bytes are always the same."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        for name, text in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    write_gzip(path, tar.getvalue())
