"""The folders of the repository and of the real data, and how messages and pages name a file in them."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATH_VARIABLES = ("STUDY_DATA", "RELEASED", "HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME", "TMPDIR")


def from_here(word: str) -> str:
    """Return a command-line word as an absolute path if it names an existing file or folder, else unchanged."""
    path = os.path.expanduser(word)  # os.path: Path raises an error for an unknown ~user or an overlong name
    return str(Path(path).absolute()) if os.path.exists(path) else word


def settle_variables() -> None:
    """Make relative paths in environment variables absolute, because jobs run in another folder."""
    for name in PATH_VARIABLES:
        if os.environ.get(name):
            os.environ[name] = os.path.abspath(os.path.expanduser(os.environ[name]))


def real_data() -> Path:
    """Return $STUDY_DATA or data/, without the `..` of a relative path, which would seem to lie in the repository.

    In a notebook a relative $STUDY_DATA counts from the repository's root; the command line has made it absolute.
    """
    return Path(os.path.abspath(ROOT / (os.environ.get("STUDY_DATA") or "data")))


def show_path(path: Path) -> str:
    """Return a path as messages and pages print it: relative to the repository or to the real data, else its name."""
    path, data_folder = Path(os.path.abspath(path)), real_data()
    if path.is_relative_to(ROOT):
        return str(path.relative_to(ROOT))
    return str("$STUDY_DATA" / path.relative_to(data_folder)) if path.is_relative_to(data_folder) else path.name
