"""Tests of checkpoints: kills while saving, damaged files, other runs, and a full disk.

test_training.py tests that a killed run resumes to the same bits with every optimiser.
"""

import contextlib
import errno
import functools
import json
import resource
import shutil
import subprocess
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from conftest import each
from safetensors import SafetensorError

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


# Resuming


def test_tied_weights_are_saved_once_and_stay_tied(tmp_path):
    from safetensors import safe_open

    run = Run(tmp_path).train(2)
    with safe_open(run.folder / "step-0000000002" / "model.safetensors", "pt") as file:
        assert len(set(file.keys()) & {"table.weight", "output.weight"}) == 1
    restored = Run(tmp_path, seed=5).load()
    assert restored.model.table.weight is restored.model.output.weight
    assert same(restored.weights(), run.weights())


@pytest.mark.skipif(not shutil.which("sha256sum"), reason="needs sha256sum")
def test_sha256sum_reads_the_checksums(tmp_path):
    Run(tmp_path).train(2)
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path / "step-0000000002", check=True)


def test_what_a_kill_left_behind_is_removed_by_the_next_save(tmp_path):
    leftover = tmp_path / ".step-0000000004.0123abcd.tmp"
    leftover.mkdir()
    (leftover / "model.safetensors").write_bytes(b"half")
    Run(tmp_path).train(2)
    assert names_left(tmp_path) == {"step-0000000002"}


def test_what_a_living_process_has_locked_is_not_left_behind(tmp_path):
    locked, killed = (tmp_path / f".{name}.0123abcd.tmp" for name in ("tiny-short.2", "tiny"))
    for folder in (locked, killed):
        folder.mkdir()
        (folder / ".log.jsonl.4567cdef.tmp").touch()
    with artefacts.locked(tmp_path / "tiny-short.2"):
        artefacts.remove_leftovers(tmp_path)
        assert {*names_left(tmp_path)} == {locked.name, ".tiny-short.2.lock"} and len(names_left(locked)) == 1
    artefacts.remove_leftovers(tmp_path)
    assert not locked.exists()


@each("moment", ["save_model", "torch.save", "checksum"])
def test_a_run_that_is_killed_while_it_saves_has_the_checkpoints_from_before(tmp_path, monkeypatch, moment):
    run = Run(tmp_path / moment).train(4)
    with monkeypatch.context() as patches, pytest.raises(KeyboardInterrupt):
        patches.setattr(f"lib.training.checkpoints.{moment}", Mock(side_effect=KeyboardInterrupt))
        run.train(6)
    assert names_left(run.folder) == {"step-0000000002", "step-0000000004"}
    assert Run(run.folder, seed=1).load().state["step"] == 4


def test_clear_leaves_nothing(tmp_path):
    run = Run(tmp_path / "run").train(4)
    checkpoints.clear(run.folder)
    assert not run.folder.exists()
    checkpoints.clear(run.folder)


# Other runs


def test_a_checkpoint_of_another_run_is_passed_over_and_later_replaced(tmp_path, capsys):
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
def test_a_damaged_checkpoint_falls_back_to_the_one_before_and_comes_to_the_same_bits(tmp_path, capsys, file, damage):
    folder = tmp_path / f"{file}-{damage.__name__}"
    Run(folder).train(8)
    damage(folder / "step-0000000008" / file)
    resumed = Run(folder, seed=9).load()
    warning = capsys.readouterr().out
    assert warning.count("\n") == 1
    assert "step-0000000008 is damaged" in warning and "going on from step 6" in warning
    assert resumed.state["step"] == 6
    assert same(resumed.train().weights(), undisturbed().weights()) and resumed.state == undisturbed().state
    assert resumed.steps() == [12, 10]


def test_a_damaged_checkpoint_is_not_counted_among_the_two_kept(tmp_path):
    Run(tmp_path).train(8)
    cut(tmp_path / "step-0000000008" / "model.safetensors")
    assert Run(tmp_path).load().train(7, every=7).steps() == [7, 6]


@each("content", ["{", "[]", "{}", '{"fingerprint": 1}'])
def test_a_state_that_is_not_ours_is_damaged(tmp_path, capsys, content):
    Run(tmp_path).train(4)
    (tmp_path / "step-0000000004" / "state.json").write_text(content)
    assert Run(tmp_path).load().train(6).steps() == [6, 4]
    assert "step-0000000004 is damaged (state.json" in capsys.readouterr().out
    checkpoints.clear(tmp_path)


def test_when_both_are_damaged_the_run_starts_over(tmp_path, capsys):
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


# No room


@contextlib.contextmanager
def largest_file(size: int):
    """Make writing more than `size` bytes to a file fail, as on a nearly full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@each("room", [5_000, 20_000])  # the disk fills up in the weights, in the optimiser's state
def test_without_room_the_last_good_checkpoint_is_kept_and_the_run_goes_on_from_it(tmp_path, room):
    checkpoints.clear(tmp_path / "run")
    run = Run(tmp_path / "run").train(4)
    with largest_file(room), pytest.raises(StudyError) as raised:
        run.train(6)
    assert str(raised.value) == (
        "run: no room for the checkpoint of step 6 (File too large). The one of step 4 is kept: free some space, and "
        "the same command goes on from there"
    )
    assert names_left(tmp_path / "run") == {"step-0000000002", "step-0000000004"}
    assert same(Run(tmp_path / "run").load().train().weights(), undisturbed().weights())


NO_SPACE = OSError(errno.ENOSPC, "No space left on device")
IN_RUST = SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")


@each(("writer", "error"), [("save_model", IN_RUST), ("torch.save", NO_SPACE), ("json.dumps", NO_SPACE)])
def test_a_full_disk_at_the_first_checkpoint_leaves_nothing(tmp_path, monkeypatch, writer, error):
    expected = r"step 2 \(No space left on device\)\. There is none before it: .*starts over"
    with monkeypatch.context() as patches, pytest.raises(StudyError, match=expected):
        patches.setattr(f"lib.training.checkpoints.{writer}", Mock(side_effect=error))
        Run(tmp_path / "run").train()
    assert names_left(tmp_path / "run") == set()


def test_an_error_that_is_not_about_room_is_not_called_one(tmp_path, monkeypatch):
    monkeypatch.setattr("lib.training.checkpoints.save_model", Mock(side_effect=ValueError("not contiguous")))
    with pytest.raises(ValueError, match="not contiguous"):
        Run(tmp_path / "run").train(2)
    assert names_left(tmp_path / "run") == set()


def test_the_state_keeps_its_numbers(tmp_path):
    run = Run(tmp_path)
    run.state |= {"loss": 0.1 + 0.2, "tiny": 5e-324, "worst": float("inf"), "tokens": 2**60}
    run.save()
    assert checkpoints.load_checkpoint(tmp_path, "a", run.model, run.optimizer) == run.state
    assert json.loads((tmp_path / "step-0000000000" / "state.json").read_text())["fingerprint"] == "a"
