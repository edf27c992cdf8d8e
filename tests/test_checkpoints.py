"""Tests of checkpoints: kills while saving, damaged files, other runs, and a full disk.

test_training.py tests that a killed run resumes to the same bits with every optimizer.
"""

import contextlib
import errno
import functools
import resource
import shutil
import subprocess
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from conftest import each
from safetensors import safe_open

from lib import artefacts
from lib.errors import StudyError
from lib.training import checkpoints, optimizers
from lib.training.optimization import Optimization

STEPS = 12
WIDTH = 300  # makes the table larger than a file buffer, so that the disk fills up in the middle of a file
FILES = [*checkpoints.FILES, checkpoints.CHECKSUMS]


class Tied(torch.nn.Module):
    """A small model with a shared table, a layer norm and dropout."""

    def __init__(self, seed: int):
        super().__init__()
        torch.manual_seed(seed)
        self.table = torch.nn.Embedding(11, WIDTH)
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.dropout = torch.nn.Dropout(0.3)
        self.output = torch.nn.Linear(WIDTH, 11)
        self.output.weight = self.table.weight

    def forward(self, pieces):
        return self.output(self.dropout(self.norm(self.table(pieces))))


class Run:
    """A training run that seeds batches and dropout at every step and saves every few steps."""

    def __init__(self, folder, *, seed: int = 0, fingerprint: str = "a"):
        settings = Optimization(optimizer="adamw", weight_decay=0.01, betas=[0.9, 0.98], dropout=0.0)
        self.folder, self.fingerprint = folder, fingerprint
        self.model = Tied(seed)
        self.optimizer = optimizers.make_optimizer(self.model, settings, 0.01)
        self.state = {"step": 0, "log": [], "seconds": 0.1}

    def load(self) -> "Run":
        self.state |= checkpoints.load_checkpoint(self.folder, self.fingerprint, self.model, self.optimizer)
        return self

    def save(self) -> None:
        checkpoints.save_checkpoint(self.folder, self.fingerprint, self.model, self.optimizer, self.state)

    def train(self, until: int = STEPS, *, every: int = 2) -> "Run":
        for step in range(self.state["step"], until):
            torch.manual_seed(step)
            pieces = torch.randint(11, (8,))
            loss = torch.nn.functional.cross_entropy(self.model(pieces % 11), (pieces * 3) % 11)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.state |= {"step": step + 1, "log": [*self.state["log"], {"step": step, "loss": loss.item()}]}
            if (step + 1) % every == 0:
                self.save()
        return self

    def weights(self) -> list[torch.Tensor]:
        return [weight.detach().clone() for weight in self.model.parameters()]

    def steps(self) -> list[int]:
        return [checkpoints.step_of(path) for path in checkpoints.list_folders(self.folder)]


@functools.cache
def undisturbed() -> Run:
    """Return a finished run that was never stopped or saved."""
    return Run(None).train(every=STEPS + 1)


def same(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def names_left(folder) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_tied_weights_are_saved_once_and_stay_tied(tmp_path):
    run = Run(tmp_path).train(2)
    folder = tmp_path / "step-0000000002"
    with safe_open(folder / "model.safetensors", "pt") as file:
        assert len(set(file.keys()) & {"table.weight", "output.weight"}) == 1
    restored = Run(tmp_path, seed=5).load()
    assert restored.model.table.weight is restored.model.output.weight
    assert same(restored.weights(), run.weights())
    if shutil.which("sha256sum"):
        subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, check=True)


@each("moment", ["save_model", "torch.save", "checksum"])
def test_a_run_killed_while_saving_keeps_its_earlier_checkpoints(tmp_path, monkeypatch, moment):
    run = Run(tmp_path).train(4)
    leftover = run.folder / ".step-0000000004.0123abcd.tmp"  # of a kill that left no time to remove it
    leftover.mkdir()
    (leftover / "model.safetensors").write_bytes(b"half")
    with monkeypatch.context() as patches, pytest.raises(KeyboardInterrupt):
        patches.setattr(f"lib.training.checkpoints.{moment}", Mock(side_effect=KeyboardInterrupt))
        run.train(6)
    assert names_left(run.folder) == {"step-0000000002", "step-0000000004"}
    assert Run(run.folder, seed=1).load().state["step"] == 4


def test_leftovers_of_a_running_process_are_not_removed(tmp_path):
    locked, killed = (tmp_path / f".{name}.0123abcd.tmp" for name in ("tiny-short.2", "tiny"))
    for folder in (locked, killed):
        folder.mkdir()
        (folder / ".log.jsonl.4567cdef.tmp").touch()
    with artefacts.locked(tmp_path / "tiny-short.2"):
        artefacts.remove_leftovers(tmp_path)
        assert names_left(tmp_path) == {locked.name, ".tiny-short.2.lock"} and len(names_left(locked)) == 1
    artefacts.remove_leftovers(tmp_path)
    assert not locked.exists()


def test_a_checkpoint_of_another_run_is_skipped_and_later_replaced(tmp_path, capsys):
    Run(tmp_path, fingerprint="a").train()
    other = Run(tmp_path, fingerprint="b", seed=1)
    before = other.weights()
    other.load()
    assert other.state["step"] == 0 and same(other.weights(), before)
    assert capsys.readouterr().out == ""
    assert other.train(4).steps() == [4, 2]


# Damage


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path):
    path.write_bytes(b"")


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0x41
    path.write_bytes(content)


@each(("file", "damage"), [*((file, damage) for file in FILES for damage in (Path.unlink, flip)),
                           (checkpoints.CHECKSUMS, empty), ("optimizer.pt", cut)])  # fmt: skip
def test_after_damage_the_run_resumes_from_the_checkpoint_before_to_the_same_bits(tmp_path, capsys, file, damage):
    Run(tmp_path).train(8)
    damage(tmp_path / "step-0000000008" / file)
    resumed = Run(tmp_path, seed=9).load()
    warning = capsys.readouterr().out
    assert warning.count("\n") == 1
    assert "step-0000000008 is damaged" in warning and "going on from step 6" in warning
    assert resumed.state["step"] == 6
    assert same(resumed.train().weights(), undisturbed().weights()) and resumed.state == undisturbed().state
    assert resumed.steps() == [12, 10]


@each("content", ["", "{", "[]", "{}", '{"fingerprint": "a"}'])
def test_a_damaged_checkpoint_is_not_one_of_the_two_kept(tmp_path, content):
    Run(tmp_path).train(8)
    (tmp_path / "step-0000000008" / "state.json").write_text(content)
    assert Run(tmp_path).load().train(7, every=7).steps() == [7, 6]


def test_a_run_whose_checkpoints_are_all_damaged_starts_over(tmp_path, capsys):
    Run(tmp_path).train(4)
    for step in (2, 4):
        cut(tmp_path / f"step-000000000{step}" / "optimizer.pt")
    run = Run(tmp_path, seed=3)
    before = run.weights()
    run.load()
    assert run.state["step"] == 0 and same(run.weights(), before) and not run.optimizer.state
    warning = capsys.readouterr().out
    assert warning.count("\n") == 1 and "starting over" in warning
    assert "step-0000000004" in warning and "step-0000000002" in warning


# A full disk


@contextlib.contextmanager
def largest_file(size: int):
    """Make writing more than `size` bytes to a file fail, as on a nearly full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@each("room", [5_000, 20_000])  # the disk fills up in the weights, in the optimizer's state
def test_on_a_full_disk_the_last_checkpoint_is_kept_and_the_run_resumes_from_it(tmp_path, room):
    run = Run(tmp_path).train(4)
    with largest_file(room), pytest.raises(StudyError, match=r"step 6 \(File too large\)\. The one of step 4 is kept"):
        run.train(6)
    assert names_left(tmp_path) == {"step-0000000002", "step-0000000004"}
    assert same(Run(tmp_path).load().train().weights(), undisturbed().weights())


@each(
    ("error", "raised", "message"),
    [
        (OSError(errno.ENOSPC, "No space left"), StudyError, r"step 2 \(No space left.*none before it: .*starts over"),
        (ValueError("not contiguous"), ValueError, "not contiguous"),
    ],
)
def test_an_error_at_the_first_checkpoint_leaves_nothing(tmp_path, monkeypatch, error, raised, message):
    with monkeypatch.context() as patches, pytest.raises(raised, match=message):
        patches.setattr("lib.training.checkpoints.torch.save", Mock(side_effect=error))
        Run(tmp_path).train()
    assert names_left(tmp_path) == set()
