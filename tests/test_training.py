"""Tests of the training loop: resuming, micro-batches, non-finite losses and progress lines."""

import json
import math
from unittest import mock

import pytest
import torch

from lib.errors import StudyError
from lib.progress import Progress
from lib.training import meter, optimizers, training
from lib.training.optimization import Optimization


class Batches:
    """A regression task whose rows depend only on the step; reading step `dies_at` raises KeyboardInterrupt."""

    def __init__(self, steps: int, dies_at: int | None = None, counts: bool = True):
        self.steps, self.dies_at, self.counts = steps, dies_at, counts

    def __len__(self):
        return self.steps

    def shape(self, step):
        return 8, 4

    def __getitem__(self, key):
        step, part, parts = key
        if step == self.dies_at:
            raise KeyboardInterrupt
        generator = torch.Generator().manual_seed(step)
        inputs = torch.randn(8, 4, generator=generator)
        batch = {"input_ids": inputs[part::parts], "labels": inputs.sum(1, keepdim=True)[part::parts]}
        return batch | ({"counts": torch.tensor([float(len(batch["labels"]))])} if self.counts else {})


def make_model(dropout: float = 0.2) -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 16), torch.nn.Dropout(dropout), torch.nn.ReLU(), torch.nn.Linear(16, 1)
    )


def square_loss(model, batch):
    errors = (model(batch["input_ids"]) - batch["labels"]) ** 2
    return errors.sum() / batch["counts"][0] if "counts" in batch else errors.mean()


def train(model, batches, **changes):
    recipe = Optimization(optimizer="adamw", weight_decay=0.01, betas=[0.9, 0.999], dropout=0.0)
    settings = {
        "device": training.accelerator("float32"), "settings": recipe, "seed": 1, "progress": Progress("test"),
        "rate_of": lambda step: 1e-2 * optimizers.slanted_triangle(step, len(batches), 0.1),
        "evaluate": lambda: {"held-out loss": 1.0},
        "evaluations": [(i + 1) * len(batches) // 4 for i in range(4)],
    }  # fmt: skip
    with mock.patch.object(training, "CHECKPOINT_SECONDS", 0.0):  # checkpoints as often as their share of time allows
        return training.train(model, batches, square_loss, **settings | changes)


def assert_equal(one: torch.nn.Module, other: torch.nn.Module) -> None:
    for first, second in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(first, second)


def without_times(log: list[dict]) -> list[dict]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in log]


@pytest.mark.parametrize(("optimizer", "dies_at"), [("adamw", 1), ("lamb", 37), ("adamw", 99)])
def test_a_killed_run_resumes_to_the_same_weights_and_log(tmp_path, optimizer, dies_at):
    recipe = Optimization(optimizer=optimizer, weight_decay=0.01, betas=[0.9, 0.999], dropout=0.0)
    undisturbed = make_model()
    log = train(undisturbed, Batches(100), settings=recipe)
    options = {"folder": tmp_path, "fingerprint": "a", "settings": recipe}
    with pytest.raises(KeyboardInterrupt):
        train(make_model(), Batches(100, dies_at), **options)
    resumed = make_model()
    resumed_log = train(resumed, Batches(100), **options)
    assert_equal(undisturbed, resumed)
    assert without_times(log) == without_times(resumed_log)
    assert [row["step"] for row in log if "held-out loss" in row] == [25, 50, 75, 100]


@pytest.mark.parametrize("counts", [True, False])
def test_a_step_in_parts_equals_a_whole_step(counts):
    whole, parts = make_model(dropout=0.0), make_model(dropout=0.0)
    log = train(whole, Batches(50, counts=counts))
    parts_log = train(parts, Batches(50, counts=counts), micro_batch=8)  # two rows of four tokens at a time
    for expected, actual in zip(whole.parameters(), parts.parameters(), strict=True):
        torch.testing.assert_close(expected, actual, rtol=1e-4, atol=1e-6)
    assert [row["loss"] for row in parts_log] == pytest.approx([row["loss"] for row in log], rel=1e-4)


def test_workers_prepare_the_same_batches():
    without_workers, with_workers = make_model(), make_model()
    train(without_workers, Batches(20))
    train(with_workers, Batches(20), workers=2)
    assert_equal(without_workers, with_workers)


def test_a_step_is_divided_into_equal_parts():
    assert training.count_parts(32, 128, 1, None) == 1
    assert training.count_parts(32, 128, 1, 1024) == 4
    assert training.count_parts(30, 128, 2, 1024) == 6
    assert training.count_parts(4, 512, 1, 100) == 4  # at least one sequence in each
    with pytest.raises(StudyError, match="30 sequences cannot be dealt to 4 processes"):
        training.count_parts(30, 128, 4, None)


def test_a_loss_that_is_not_finite_stops_with_its_step_and_keeps_the_last_checkpoint(tmp_path):
    class Poisoned(Batches):
        def shape(self, step):
            return (16 if step < 2 else 8), 4  # the phase before had larger steps

        def __getitem__(self, key):
            batch = super().__getitem__(key)
            return batch | {"labels": batch["labels"] * (math.nan if key[0] == 3 else 1)}

    with pytest.raises(StudyError, match="nan at step 4 of 10 .sequences 40 to 47,.*last checkpoint is kept"):
        train(make_model(), Poisoned(10), folder=tmp_path, fingerprint="a")
    assert json.loads((tmp_path / "failure.json").read_text())["step"] == 4
    healthy = make_model()
    train(healthy, Batches(10), folder=tmp_path, fingerprint="a")
    undisturbed = make_model()
    train(undisturbed, Batches(10))
    assert_equal(healthy, undisturbed)


def test_the_progress_line_shows_loss_speed_and_share_of_the_limit():
    state, device = meter.Progression(), training.accelerator("float32")
    progress_meter = meter.Meter(state, lambda step: 1e6, device)
    progress_meter.before.seconds, progress_meter.seconds_before, state.step, state.tokens = 0.0, 2.0, 1, 2000
    progress_meter.limit = 1e6
    progress_meter.tick()
    assert progress_meter.report(1.234) == "loss 1.23, 1,000 tokens/s, 50% of the machine's matrix rate"
    progress_meter.seconds_before = 10.0
    progress_meter.tick()
    progress_meter.report(1.0)
    assert progress_meter.before.tokens == 2000 and progress_meter.flops == 0  # a new measuring window
