"""A child that does not outlive its parent, however the parent died."""

import os
import threading
import time

SECONDS = 0.5


def watch() -> None:
    """End this process, at once and without clean-up, soon after its parent has gone.

    The kernel's own signal for this (PR_SET_PDEATHSIG) fires when the parent's *thread* ends, and Snakemake's
    threads end before their jobs do.
    """
    parent = os.getppid()

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()
