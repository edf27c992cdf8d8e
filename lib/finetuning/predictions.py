"""Predictions of a fine-tuned model: made, and looked at for what says that it learnt nothing."""

import statistics
from collections.abc import Callable, Sequence

import torch
from accelerate import Accelerator

from lib.benchmarks import metrics
from lib.finetuning.examples import CPU_TOKENS, TOKENS, Batch, DatasetTask, Example, compute_each

WORDS = ("tagging", "pico")  # families whose predictions are tags of words
FALLEN = 0.95  # a loss whose last tenth is more than this share of its beginning has not fallen


def predict(
    model: Callable[[Batch], torch.Tensor],
    task: DatasetTask,
    sequences: Sequence[Example],
    device: Accelerator,
    on_cpu: int = CPU_TOKENS,
) -> list:
    """What the head predicts of each sequence, as the task reads it; `on_cpu`: the tokens of a batch on a CPU."""

    def compute(chosen: list[Example]) -> list:
        batch = {name: tensor.to(device.device) for name, tensor in task.collate(chosen).items()}
        return task.read(model(batch), chosen)

    with device.autocast():
        return compute_each(sequences, compute, on_cpu if device.device.type == "cpu" else TOKENS)


def find_collapse(family: str, gold: Sequence, predicted: Sequence, log: list[dict]) -> str:
    """Why a run is one that learnt nothing, or an empty string.

    It predicts the same for every test instance (for every word: O), or numbers that are nearly so, or the mean loss of
    the last tenth of its log is more than FALLEN of that of the first.
    """
    if family in WORDS:
        answers = {tag for tags in predicted for tag in tags}
    else:
        answers = {str(round(one, 3) if isinstance(one, float) else one) for one in predicted}
    same = len(answers) == 1 or (family == "similarity" and metrics.is_constant(gold, predicted))
    if same and len(predicted) > 1:
        return "one answer only"
    tenth = max(1, len(log) // 10)
    first, last = (statistics.mean(row["loss"] for row in part) for part in (log[:tenth], log[-tenth:]))
    return "the loss did not fall" if last > FALLEN * first else ""
