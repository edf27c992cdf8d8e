"""The study: settings and keys, the graph and its jobs, the record and the report."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lib.study.study import Study


def open_study(scale: str = "smoke") -> "Study":
    """The study at a scale; StudyError with the nearest names for an unknown one."""
    from lib.study.study import Study  # here, as what only hands a job on imports this package too

    return Study(scale)
