"""Submit a job to a run's warm parent (lib/running/warm.py) and exit with its status; without a parent, do it here.

`python -SP lib/running/submit.py MODULE WORDS...` replaces `python -m MODULE WORDS...`. It imports almost nothing,
because each job of the graph starts with it.
"""

import json
import os
import socket
import sys
from contextlib import chdir

SECONDS = 0.5  # between checks that the process that wants the job is alive


def find_parent() -> socket.socket | None:
    """Connect to the warm parent; None if there is none."""
    address = os.environ.get("STUDY_WARM", "no")  # as in lib/running/warm.py, which is slow to import
    if address == "no":
        return None
    connection = socket.socket(socket.AF_UNIX)
    try:
        with chdir(os.path.dirname(address)):  # a socket's whole path may be too long for the system
            connection.connect(os.path.basename(address))
    except OSError:
        connection.close()
        return None
    return connection


def name_copy(receipt: str, notebook: str, words: list[str]) -> str:
    """Return the name of an executed copy: the notebook, and the keys of its receipt if it has parameters."""
    return f"{notebook}--{os.path.basename(receipt)}" if any("=" in word for word in words) else notebook


def ask_parent(parent: socket.socket, words: list[str]) -> int:
    """Have the warm parent do a job, with our environment and pipes; return the job's exit status."""
    wanted_by = os.getppid()
    socket.send_fds(parent, [b"\n"], [0, 1, 2])
    request = {"words": words, "environment": dict(os.environ), "folder": os.getcwd()}
    parent.sendall(json.dumps(request).encode() + b"\n")
    parent.settimeout(SECONDS)
    while os.getppid() == wanted_by:
        try:
            answer = parent.recv(1)
        except TimeoutError:
            continue
        if answer:
            return answer[0]
        module, *rest = words
        if module == "lib.running.runner":
            _, receipt, notebook, *keys = rest
            name = name_copy(receipt, notebook, keys)
        else:
            name = " ".join([module.rsplit(".")[-1], *rest])
        # One write, as in lib/parent.py; this module imports nothing of lib.
        print(f"FAILED  {name}: its process was ended (too little memory?)\n", end="", flush=True)
        break
    return 1  # closing our end of the connection ends the job if it is still running


if __name__ == "__main__":
    if parent := find_parent():
        sys.exit(ask_parent(parent, sys.argv[1:]))
    os.execv(sys.executable, [sys.executable, "-m", *sys.argv[1:]])
