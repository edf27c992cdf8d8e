"""Jobs of the graph: child processes that end when their parent does, however it died, and report in whole lines."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from lib.errors import StudyError

SECONDS = 0.5


def watch() -> None:
    """Start a thread that ends this process, without clean-up, soon after its parent has gone.

    The kernel's own signal for this (PR_SET_PDEATHSIG) fires when the parent's *thread* ends, and Snakemake's threads
    end before their jobs do.
    """
    parent = os.getppid()

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()


def report(line: str) -> None:
    """Print a line in one write, so that lines of two jobs do not mix, even if Python's output is unbuffered."""
    print(f"{line}\n", end="", flush=True)


@contextmanager
def run_job(name: str) -> Iterator[None]:
    """Run a job of the graph that has no notebook; after a StudyError, print it on one line and exit."""
    watch()
    try:
        yield
    except StudyError as error:
        report(f"FAILED  {name}: {error}")
        sys.exit(1)
