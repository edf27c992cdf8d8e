"""Checkpoints, from which the training loop resumes a run that was killed.

Each is a folder, such as step-0000001234, in the folder of its run. It holds the weights (safetensors), the optimizer's
state, the loop's progress (state.json), and their checksums in the format of `sha256sum -c`. Random states are not
kept, because the loop seeds every step.
"""

import errno
import hashlib
import json
import os
import re
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_model, save_model

from lib import artefacts
from lib.errors import StudyError
from lib.places import show_path

KEPT = 2
FILES = ("state.json", "model.safetensors", "optimizer.pt")
CHECKSUMS = "SHA256SUMS"
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # of the disk, of a quota, of a limit on the size of files


def save_checkpoint(
    folder: Path, fingerprint: str, model: torch.nn.Module, optimizer: torch.optim.Optimizer, state: dict
) -> None:
    """Write a checkpoint, whole or not at all, then delete all others but the previous one.

    `state`: a dict that JSON can hold, with the number of finished steps under `step`. Deleted are earlier checkpoints,
    those of other runs, and those of later steps, which `load_checkpoint` has skipped as damaged. Raises StudyError if
    the disk is full; older checkpoints are then left alone.
    """
    path = folder / f"step-{state['step']:010d}"
    try:
        artefacts.remove_leftovers(folder)  # a run that was killed here may have left gigabytes
        with artefacts.whole_folder(path) as temporary:
            save_model(model, str(temporary / "model.safetensors"))
            with open(temporary / "optimizer.pt", "wb") as file:  # because with a path torch hides why it failed
                torch.save(optimizer.state_dict(), file)
            content = {"fingerprint": fingerprint, "state": state}
            (temporary / "state.json").write_text(json.dumps(content), encoding="utf-8")
            sums = "".join(f"{checksum(temporary / name)}  {name}\n" for name in FILES)
            (temporary / CHECKSUMS).write_text(sums, encoding="utf-8")
    except Exception as error:  # because each library raises its own error for a full disk
        if not (reason := no_space(error)):
            raise
        older = find_checkpoints(folder, fingerprint)
        backup = f"The one of step {step_of(older[0])} is kept" if older else "There is none before it"
        raise StudyError(
            f"{show_path(folder)}: no room for the checkpoint of step {state['step']} ({reason}). {backup}: free some "
            f"space, and the same command {'goes on from there' if older else 'starts over'}"
        ) from error
    older = [checkpoint for checkpoint in find_checkpoints(folder, fingerprint) if step_of(checkpoint) < state["step"]]
    for obsolete in set(list_folders(folder)) - {path, *older[: KEPT - 1]}:
        shutil.rmtree(obsolete, ignore_errors=True)


def load_checkpoint(folder: Path, fingerprint: str, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> dict:
    """Restore model and optimizer from the newest intact checkpoint and return its `state`.

    If there is none, change nothing and return an empty dict. Damaged checkpoints are skipped with a printed line that
    names them, those of other runs (with other settings, data or code) silently.
    """
    damaged = []
    for path in list_folders(folder):
        try:
            content = read_state(path, fingerprint)
        except (OSError, ValueError) as error:
            damaged.append(f"{path.name} is damaged ({error})")
            continue
        if content is not None:
            warn(damaged, f"going on from step {step_of(path)}")
            load_model(model, path / "model.safetensors")
            optimizer.load_state_dict(torch.load(path / "optimizer.pt", map_location="cpu", weights_only=True))
            return content["state"]
    warn(damaged, "starting over")
    return {}


def list_folders(folder: Path) -> list[Path]:
    """List the checkpoints in a folder, of any run, newest first."""
    return sorted(folder.glob("step-*"), reverse=True)


def step_of(path: Path) -> int:
    return int(path.name.removeprefix("step-"))


def find_checkpoints(folder: Path, fingerprint: str) -> list[Path]:
    """List the checkpoints of one run whose state.json can be read, newest first."""
    paths = []
    for path in list_folders(folder):
        try:
            if json.loads((path / "state.json").read_text(encoding="utf-8"))["fingerprint"] == fingerprint:
                paths.append(path)
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return paths


def read_state(path: Path, fingerprint: str) -> dict | None:
    """Check every file of a checkpoint and return the content of state.json, or None if it is another run's.

    Raises OSError or ValueError if the checkpoint is damaged.
    """
    if not (path / CHECKSUMS).is_file():
        raise ValueError(f"{CHECKSUMS} is missing")
    lines = (path / CHECKSUMS).read_text(encoding="utf-8", errors="replace")
    sums = {name: digest for digest, name in re.findall(r"^(\w+)  (\S+)$", lines, re.MULTILINE)}
    content = None
    for name in FILES:
        if not (path / name).is_file():
            raise ValueError(f"{name} is missing")
        if checksum(path / name) != sums.get(name):
            raise ValueError(f"{name} is not what {CHECKSUMS} says")
        if name == "state.json":
            content = json.loads((path / name).read_text(encoding="utf-8"))
            if content["fingerprint"] != fingerprint:
                return None
    return content


def checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def warn(damaged: list[str], what_now: str) -> None:
    if damaged:
        print(f"checkpoint {', '.join(damaged)}: {what_now}")


def no_space(error: BaseException | None) -> str:
    """Return the system's message for a full disk if an error or one of its causes is that, else an empty string."""
    while error:
        number = getattr(error, "errno", None)
        if match := re.search(r"\(os error (\d+)\)", str(error)):  # safetensors keeps the number in its message
            number = int(match[1])
        if number in NO_SPACE:
            return os.strerror(number)
        error = error.__cause__ or error.__context__
    return ""
