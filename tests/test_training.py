"""The training loop: resuming, learning, and losses that are not finite."""

import math

import pytest
import torch

from lib import training
from lib.errors import StudyError
from lib.progress import Progress


class Batches:
    """A regression task whose batch i depends on i alone; can be told to break down at a step."""

    def __init__(self, steps: int, dies_at: int | None = None):
        self.steps, self.dies_at = steps, dies_at

    def __len__(self):
        return self.steps

    def __getitem__(self, step):
        if step == self.dies_at:
            raise KeyboardInterrupt
        generator = torch.Generator().manual_seed(step)
        x = torch.randn(8, 4, generator=generator)
        return {"input_ids": x, "labels": x.sum(1, keepdim=True)}


def make_model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Dropout(0.2), torch.nn.ReLU(), torch.nn.Linear(16, 1))


def square_loss(model, batch):
    return ((model(batch["input_ids"]) - batch["labels"]) ** 2).mean()


def train(model, batches, **changes):
    settings = {
        "device": training.accelerator("float32"), "learning_rate": 1e-2, "warmup": 0.1, "weight_decay": 0.01,
        "seed": 1, "progress": Progress("test"), "evaluate": lambda: {"held-out loss": 1.0}, "evaluations": 4,
    }  # fmt: skip
    return training.train(model, batches, square_loss, **settings | changes)


@pytest.mark.parametrize("dies_at", [1, 37, 99])
def test_a_killed_run_goes_on_to_the_same_weights_and_log(tmp_path, dies_at):
    undisturbed = make_model()
    log = train(undisturbed, Batches(100))
    resumed = make_model()
    checkpoint = {"checkpoint": tmp_path / "c.pt", "fingerprint": "a", "checkpoint_seconds": 0.0}
    with pytest.raises(KeyboardInterrupt):
        train(resumed, Batches(100, dies_at), **checkpoint)
    resumed = make_model()
    resumed_log = train(resumed, Batches(100), **checkpoint)
    for a, b in zip(undisturbed.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(a, b)
    timeless = [[{k: v for k, v in row.items() if k != "seconds"} for row in rows] for rows in (log, resumed_log)]
    assert timeless[0] == timeless[1]
    assert [row["step"] for row in log if "held-out loss" in row] == [25, 50, 75, 100]


def test_a_checkpoint_of_another_run_or_a_damaged_one_is_not_used(tmp_path):
    path = tmp_path / "c.pt"
    train(make_model(), Batches(10), checkpoint=path, fingerprint="a")
    assert len(train(make_model(), Batches(10), checkpoint=path, fingerprint="b")) == 10
    path.write_bytes(path.read_bytes()[:100])
    assert len(train(make_model(), Batches(10), checkpoint=path, fingerprint="b")) == 10


def test_a_loss_that_is_not_finite_stops_with_its_step():
    class Poisoned(Batches):
        def __getitem__(self, step):
            batch = super().__getitem__(step)
            return batch | {"labels": batch["labels"] * (math.nan if step == 3 else 1)}

    with pytest.raises(StudyError, match="the loss is nan at step 4 of 10"):
        train(make_model(), Poisoned(10))


def test_it_learns():
    log = train(make_model(), Batches(400))
    assert log[-1]["loss"] < 0.5 * log[0]["loss"]


def test_schedule_rises_then_falls():
    rates = [training.slanted_triangle(step, 100, 0.1) for step in range(100)]
    assert max(rates) == rates[9] == rates[10] == 1.0
    assert rates[0] == pytest.approx(0.1)
    assert rates[-1] == pytest.approx(1 / 90)
