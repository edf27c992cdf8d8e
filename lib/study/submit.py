"""Ask the warm parent of a run (lib/study/warm.py) for a job, and end as it ends; without one, do it here.

`python -SP lib/study/submit.py MODULE WORDS...` stands for `python -m MODULE WORDS...`. It imports next to nothing,
since each job of the graph begins with it.
"""

import json
import os
import socket
import sys

SECONDS = 0.5  # between looks at whether the process that wants the job still lives


def find_parent() -> socket.socket | None:
    """A connection to the warm parent, where there is one."""
    address = os.environ.get("STUDY_WARM", "no")  # as lib/study/warm.py says them, which would take longer to import
    if address == "no":
        return None
    connection = socket.socket(socket.AF_UNIX)
    folder = os.open(".", os.O_RDONLY)
    try:
        os.chdir(os.path.dirname(address))  # a socket's whole path may be too long for the system
        connection.connect(os.path.basename(address))
    except OSError:
        connection.close()
        return None
    finally:
        os.fchdir(folder)
    return connection


def name_copy(receipt: str, notebook: str, words: list[str]) -> str:
    """The name of an executed copy: the notebook, and the keys of its receipt where it is told some."""
    return f"{notebook}--{os.path.basename(receipt)}" if any("=" in word for word in words) else notebook


def ask_parent(parent: socket.socket, words: list[str]) -> int:
    """The exit status of a job that the warm parent does, with our environment and on our pipes."""
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
        runner, name = words[0] == "lib.study.runner", " ".join([words[0].rsplit(".")[-1], *words[1:]])
        name = name_copy(*words[2:4], words[4:]) if runner else name
        print(f"FAILED  {name}: its process was ended (too little memory?)", flush=True)
        break
    return 1  # and with our end of the connection the job ends, where it still runs


if __name__ == "__main__":
    if parent := find_parent():
        sys.exit(ask_parent(parent, sys.argv[1:]))
    os.execv(sys.executable, [sys.executable, "-m", *sys.argv[1:]])
