"""The study: settings and keys, what they make, results, tables, claims, and what pages show."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lib.study.study import Study


def open_study(scale: str = "smoke") -> "Study":
    """Open the study at a scale. Raises StudyError with the nearest names if the scale is unknown."""
    from lib.study.study import Study  # here, because a process that only hands a job on imports this too

    return Study(scale)
