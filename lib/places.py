"""Where the repository and the real data lie, and how messages and pages name a file in them."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def real_data() -> Path:
    """$STUDY_DATA or data/, without the `..` of a relative one, which would look like a place in the repository."""
    return Path(os.path.abspath(ROOT / os.environ.get("STUDY_DATA", "data")))


def show_path(path: Path) -> str:
    """A path as messages and pages print it: relative to the repository or to the real data, else its name."""
    path, real = Path(os.path.abspath(path)), real_data()
    if path.is_relative_to(ROOT):
        return str(path.relative_to(ROOT))
    return f"$STUDY_DATA/{path.relative_to(real)}" if path.is_relative_to(real) else path.name
