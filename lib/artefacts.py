"""Files that are whole or not there: written under a temporary name, then renamed."""

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
    """Yield a temporary name beside `path`; what was written there takes the name only if no error came."""
    temporary = name_temporary(path)
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """The same for a folder; an older one of that name is replaced."""
    temporary = name_temporary(path)
    old = temporary.with_suffix(".old.tmp")
    temporary.mkdir()
    try:
        yield temporary
        if path.exists():
            os.replace(path, old)
        os.replace(temporary, path)
        if old.exists():
            shutil.rmtree(old)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def name_temporary(path: Path) -> Path:
    """A hidden name beside `path`, in its folder, which is made; remove_leftovers knows it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file beside `path`, waiting for it: of two processes that make one artefact, one makes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_name(f".{path.name}.lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_locked(file: Path) -> bool:
    """Whether a living process holds this lock file."""
    try:
        with open(file) as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def cached(folder: Path, identity: dict, make: Callable[[Path], dict]) -> dict:
    """The record of the artefact in `folder`, made unless one of this identity is there; whole or not there.

    `identity`: of provenance.record; `make(new folder)` writes the files and returns what else is known of them. Of two
    processes that ask for one artefact, one makes it. StudyError when the record that is there is damaged.
    """
    with locked(folder):
        if finished := find_finished(folder, identity):
            return finished
        with whole_folder(folder) as new:
            record = identity | make(new)
            write_record(new, record)
    return record


def find_finished(folder: Path, identity: dict) -> dict | None:
    """The record of the artefact in `folder`, if it is there and of this identity."""
    record = read_record(folder)
    return record if record and record["fingerprint"] == identity["fingerprint"] else None


def write_record(folder: Path, record: dict) -> None:
    """Write what is known of an artefact into its folder."""
    write_json(folder / "record.json", record)


def read_record(folder: Path) -> dict | None:
    """The record of a finished artefact, or None when there is none; StudyError when it is damaged."""
    path = folder / "record.json"
    return read_json(path) if path.exists() else None


def read_json(path: Path):
    """The content of a JSON file of ours; StudyError when it is damaged."""
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
    """JSON as our files have it."""
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def remove_leftovers(folder: Path) -> int:
    """Delete temporary files and folders that a killed run left below `folder`; returns how many.

    A folder that was about to be replaced when the run was killed gets its name back.
    """
    leftovers = list(folder.rglob(".*.tmp"))
    for path in leftovers:
        target = path.with_name(path.name.removeprefix(".").rsplit(".", 3)[0])
        if path.name.endswith(".old.tmp") and not target.exists():
            os.replace(path, target)
        elif path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return len(leftovers)
