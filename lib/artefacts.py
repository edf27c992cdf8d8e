"""Files and folders that are complete or absent: written under a temporary name, then renamed."""

import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lib.errors import StudyError
from lib.places import show_path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside `path`, and rename it to `path` only if no error occurred."""
    temporary = name_temporary(path)
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Do the same for a folder; an older one of that name is replaced."""
    temporary = name_temporary(path)
    old_folder = temporary.with_suffix(".old.tmp")
    temporary.mkdir()
    try:
        yield temporary
        if path.exists():
            os.replace(path, old_folder)
        os.replace(temporary, path)
        if old_folder.exists():
            shutil.rmtree(old_folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def name_temporary(path: Path) -> Path:
    """Return a hidden name beside `path`, whose folder is created; remove_leftovers recognizes the name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file beside `path`, waiting for it, so that only one of two processes makes an artefact."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_name(f".{path.name}.lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_locked(file: Path) -> bool:
    """Return whether a living process holds this lock file."""
    try:
        with open(file) as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def cached(folder: Path, identity: dict, make: Callable[[Path], dict]) -> dict:
    """Return the record of the artefact in `folder`, which is made unless one of this identity exists.

    The artefact is complete or absent. `identity`: from provenance.record; `make(new folder)` writes the files and
    returns further entries of the record. If two processes need the same artefact, only one makes it. Raises StudyError
    if an existing record is damaged.
    """
    with locked(folder):
        if finished_record := find_finished(folder, identity):
            return finished_record
        with whole_folder(folder) as new_folder:
            record = identity | make(new_folder)
            write_record(new_folder, record)
    return record


def find_finished(folder: Path, identity: dict) -> dict | None:
    """Return the record of the artefact in `folder`, or None if it is missing or has another identity."""
    record = read_record(folder)
    return record if record and record["fingerprint"] == identity["fingerprint"] else None


def write_record(folder: Path, record: dict) -> None:
    """Write the record of an artefact into its folder."""
    write_json(folder / "record.json", record)


def read_record(folder: Path) -> dict | None:
    """Return the record of a finished artefact, or None if there is none. Raises StudyError if it is damaged."""
    path = folder / "record.json"
    return read_json(path) if path.exists() else None


def read_json(path: Path):
    """Return the content of a JSON file of the study. Raises StudyError if it is damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StudyError(f"{show_path(path)}: damaged ({error}); delete it and run again") from None


def write_text(path: Path, text: str) -> None:
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, content) -> None:
    write_text(path, to_lines(content))


def to_lines(content) -> str:
    """Format content as JSON in the style of the study's files."""
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def remove_leftovers(folder: Path) -> None:
    """Delete temporary files and folders that a killed run left below `folder`.

    A folder that was being replaced when the run was killed gets its name back. What belongs to an artefact that a
    living process has locked is left alone.
    """
    in_use = []
    for path in sorted(folder.rglob(".*.tmp")):  # a folder comes before what is in it
        name = path.name.removeprefix(".").removesuffix(".tmp").removesuffix(".old")
        target = path.with_name(name.rsplit(".", 1)[0])
        if is_locked(path.with_name(f".{target.name}.lock")):
            in_use.append(path)
        if any(path.is_relative_to(used) for used in in_use):
            continue
        if path.name.endswith(".old.tmp") and not target.exists():
            os.replace(path, target)
        elif path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
