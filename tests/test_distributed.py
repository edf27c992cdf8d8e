"""Tests of training in two processes: tiny models on made-up text. torchrun runs this file as both processes."""

import argparse
import contextlib
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch
from small_encoders import make_wordpiece

from lib.errors import StudyError
from lib.modeling import models
from lib.modeling.shape import Body
from lib.pretraining import blocks, masking, mixing, objectives, tokens
from lib.progress import Progress
from lib.running import cli, plan
from lib.study import parsing, paths
from lib.training import training
from lib.training.optimization import Optimization

LENGTH, ROWS, STEPS = 24, 8, 8
HALF = ROWS // 2 * LENGTH  # tokens in memory at once with which one process divides a step's rows as two do
BODY = Body(layers=2, hidden=16, heads=2, intermediate=32, embedding=8)
ADAMW = {"optimizer": "adamw", "weight_decay": 0.01, "betas": [0.9, 0.98], "clip": 1.0}
# Dropout, ELECTRA's draws and adversarial noise are random, and equal if the rows are divided alike.
KINDS = {
    "bert": ("bert", "next sentence", 0.0, objectives.masked_tokens),
    "bert with dropout": ("bert", "none", 0.1, objectives.masked_tokens),
    "albert": ("albert", "sentence order", 0.1, objectives.masked_tokens),
    "electra": ("electra", "none", 0.1, objectives.replaced_tokens),
    "adversarial": ("bert", "none", 0.1, objectives.adversarial_tokens),
}


class Rows(blocks.Blocks):
    """Batches of the made-up text; reading step `dies_at` raises KeyboardInterrupt."""

    dies_at: int | None = None

    def __getitem__(self, where):
        if where[0] == self.dies_at:
            raise KeyboardInterrupt
        return super().__getitem__(where)


TOKENIZER = make_wordpiece(".", *(f"word{i}" for i in range(30)), "##ly", "##ness")


def write_text(folder: Path) -> None:
    """Pack documents of very different lengths, so that the halves of a batch differ in their tokens to predict."""
    random = np.random.default_rng(0)
    words = [f"word{i}{ending}" for i in range(30) for ending in ("", "ly", "ness", " .")]
    texts = [" ".join(random.choice(words, random.integers(3, 60))) for _ in range(200)]
    tokens.pack(texts, TOKENIZER, folder)


def make_batches(folder: Path, pairs: str) -> Rows:
    text = tokens.Text([tokens.open_packed(folder)])
    return Rows(
        mixing.CorpusFiles(text), TOKENIZER, length=LENGTH, batch_size=ROWS, steps=STEPS,
        masking=masking.Masking("whole-word", 0.15), pairs=pairs, seed=1,
    )  # fmt: skip


def train(text: Path, kind: str, dies_at: int | None = None, **options) -> tuple[list, dict]:
    """Return the loss of each step, and the weights."""
    architecture, pairs, dropout, loss_of = KINDS[kind]
    device = training.accelerator("float32")
    torch.manual_seed(0)
    model = models.build_model(architecture, BODY, len(TOKENIZER), LENGTH, dropout, pairs != "none")
    batches = make_batches(text, pairs)
    batches.dies_at = dies_at
    with mock.patch.object(training, "CHECKPOINT_SECONDS", 0.0):  # as often as their share of the time allows
        log = training.train(
            model, batches, loss_of, device=device, settings=Optimization(**ADAMW, dropout=dropout),
            rate_of=lambda step: 3e-3, seed=1, progress=Progress("test"), **options,
        )  # fmt: skip
    return [row["loss"] for row in log], model.state_dict()


def checkpoints(folder: Path) -> dict:
    """Return the options of the loop that keep checkpoints."""
    return {"folder": folder, "fingerprint": "a"}


def train_in_two_processes(folder: Path) -> None:
    """Train as each of the two processes does; the first saves the results."""
    text = folder / "tokens"
    done = {kind: train(text, kind) for kind in KINDS}
    for name in ("stopped", "resumed"):
        with contextlib.suppress(KeyboardInterrupt):
            train(text, "bert with dropout", dies_at=5, **checkpoints(folder / name))
    torch.distributed.barrier()  # the second process does not wait until the first has written its checkpoint
    done["resumed"] = train(text, "bert with dropout", **checkpoints(folder / "resumed"))
    if os.environ["RANK"] == "0":
        torch.save(done, folder / "done.pt")
    torch.distributed.destroy_process_group()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("distributed")
    write_text(folder / "tokens")
    return folder


@pytest.fixture(scope="module")
def two_processes(folder) -> dict:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    command += [__file__, str(folder)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return torch.load(folder / "done.pt")


def assert_alike(ours, theirs) -> None:
    """Losses and weights are equal up to the order of summation; Adam divides by tiny gradients too."""
    torch.testing.assert_close(torch.tensor(ours[0]), torch.tensor(theirs[0]), rtol=1e-5, atol=1e-6)
    for name, weight in theirs[1].items():
        torch.testing.assert_close(ours[1][name], weight, rtol=1e-3, atol=5e-5, msg=lambda text, n=name: f"{n}: {text}")


def test_two_processes_train_as_one_does(folder, two_processes):
    """The halves of a step have different numbers of tokens to predict: a mean of the halves' means would be wrong."""
    batches = make_batches(folder / "tokens", "next sentence")
    counts = [[batches[step, part, 2]["counts"].tolist() for part in range(2)] for step in range(STEPS)]
    assert any(first[0] != second[0] for first, second in counts)
    one = train(folder / "tokens", "bert")
    assert len(one[0]) == STEPS and one[0][-1] < one[0][0]
    assert_alike(two_processes["bert"], one)


@pytest.mark.parametrize("kind", [*KINDS][1:])
def test_two_processes_train_as_one_that_sums_its_gradient_over_two_parts(folder, two_processes, kind):
    assert_alike(two_processes[kind], train(folder / "tokens", kind, micro_batch=HALF))


def test_two_processes_or_one_resume_to_the_same_weights(folder, two_processes):
    resumed, undisturbed = two_processes["resumed"], two_processes["bert with dropout"]
    assert resumed[0] == undisturbed[0]
    for name, weight in undisturbed[1].items():
        assert torch.equal(resumed[1][name], weight), name
    one = train(folder / "tokens", "bert with dropout", micro_batch=HALF, **checkpoints(folder / "stopped"))
    assert_alike(one, undisturbed)


def test_profiles_of_clusters(tmp_path):
    profile = parsing.read_yaml(paths.ROOT / "profiles" / "slurm" / "config.yaml", dict)
    assert profile["set-resources"].keys() <= {*plan.STAGES}
    options = argparse.Namespace(profile=str(tmp_path), cores=1)
    with pytest.raises(StudyError, match="no config.yaml in it; the study's own is profiles/slurm"):
        cli.choose_place(options)
    (tmp_path / "config.yaml").write_text("executor: nowhere\n")
    with pytest.raises(StudyError, match="executor 'nowhere' is not installed: run .* -m pip install"):
        cli.choose_place(options)


if __name__ == "__main__":
    train_in_two_processes(Path(sys.argv[1]))
