"""Checkpoints: where a run of the training loop goes on after it was killed.

Each is a folder, step-0000001234, below the folder of its run. It holds the weights (safetensors), the optimiser's
state, what the loop counts (state.json), and the checksums of these, as `sha256sum -c` reads. Random states are not
kept: the loop seeds every step.
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
    """Write a checkpoint, whole or not at all, then delete all but it and the one before.

    `state`: what JSON can hold, with the number of steps done under `step`. What goes: earlier checkpoints, those of
    other runs, and those of later steps, which `load_checkpoint` has passed over as damaged. Raises StudyError when
    there is no room on the disk; older checkpoints are untouched then.
    """
    path = folder / f"step-{state['step']:010d}"
    try:
        artefacts.remove_leftovers(folder)  # a run that was killed here may have left gigabytes
        with artefacts.whole_folder(path) as temporary:
            save_model(model, str(temporary / "model.safetensors"))
            with open(temporary / "optimizer.pt", "wb") as file:  # given a path, torch would not say why it failed
                torch.save(optimizer.state_dict(), file)
            content = {"fingerprint": fingerprint, "state": state}
            (temporary / "state.json").write_text(json.dumps(content), encoding="utf-8")
            sums = "".join(f"{checksum(temporary / name)}  {name}\n" for name in FILES)
            (temporary / CHECKSUMS).write_text(sums, encoding="utf-8")
    except Exception as error:  # each library has its own for a full disk
        if not (reason := no_space(error)):
            raise
        older = find_checkpoints(folder, fingerprint)
        kept = f"The one of step {step_of(older[0])} is kept" if older else "There is none before it"
        raise StudyError(
            f"{show_path(folder)}: no room for the checkpoint of step {state['step']} ({reason}). {kept}: free some "
            f"space, and the same command {'goes on from there' if older else 'starts over'}"
        ) from error
    older = [found for found in find_checkpoints(folder, fingerprint) if step_of(found) < state["step"]]
    for other in set(list_folders(folder)) - {path, *older[: KEPT - 1]}:
        shutil.rmtree(other, ignore_errors=True)


def load_checkpoint(folder: Path, fingerprint: str, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> dict:
    """Restore model and optimiser from the newest whole checkpoint; returns its `state`.

    Empty when there is none, and nothing is changed. Damaged ones are passed over with a line that names them, those
    of other runs (settings, data or code have changed since) without one.
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


def clear(folder: Path) -> None:
    """Delete the checkpoints of a run that is finished."""
    shutil.rmtree(folder, ignore_errors=True)


def list_folders(folder: Path) -> list[Path]:
    """The checkpoints below a folder, of whatever run, newest first."""
    return sorted(folder.glob("step-*"), reverse=True)


def step_of(path: Path) -> int:
    return int(path.name.removeprefix("step-"))


def find_checkpoints(folder: Path, fingerprint: str) -> list[Path]:
    """The checkpoints of one run, newest first, as far as their state.json can be read."""
    found = []
    for path in list_folders(folder):
        try:
            if json.loads((path / "state.json").read_text(encoding="utf-8"))["fingerprint"] == fingerprint:
                found.append(path)
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def read_state(path: Path, fingerprint: str) -> dict | None:
    """What state.json holds, every file checked; None for another run's. OSError or ValueError says what is wrong."""
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
    """What the system said when there was no room, in an error or in those that led to it; else an empty string."""
    while error:
        number = getattr(error, "errno", None)
        if said := re.search(r"\(os error (\d+)\)", str(error)):  # safetensors keeps the number in its message
            number = int(said[1])
        if number in NO_SPACE:
            return os.strerror(number)
        error = error.__cause__ or error.__context__
    return ""
