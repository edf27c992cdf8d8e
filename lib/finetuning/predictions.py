"""Predictions of a fine-tuned model, and checks for signs that it learnt nothing."""

import statistics
from collections.abc import Callable, Sequence

import torch
from accelerate import Accelerator

from lib.benchmarks import metrics
from lib.finetuning.examples import CPU_TOKENS, TOKENS, Batch, DatasetTask, Example, compute_each

WORDS = ("tagging", "pico")  # families whose predictions are tags of words
FALLEN = 0.95  # the loss has not fallen if the mean of its last tenth exceeds this share of the first tenth's


def predict(
    model: Callable[[Batch], torch.Tensor],
    task: DatasetTask,
    sequences: Sequence[Example],
    device: Accelerator,
    on_cpu: int = CPU_TOKENS,
) -> list:
    """Return the head's output for each sequence, as the task reads it; `on_cpu`: tokens of a batch on a CPU."""

    def compute(chosen: list[Example]) -> list:
        batch = {name: tensor.to(device.device) for name, tensor in task.collate(chosen).items()}
        return task.read(model(batch), chosen)

    with device.autocast():
        return compute_each(sequences, compute, on_cpu if device.device.type == "cpu" else TOKENS)


def find_collapse(family: str, gold: Sequence, predicted: Sequence, log: list[dict]) -> str:
    """Return why a run seems to have learnt nothing, or an empty string.

    Either it predicts the same for every test instance (or word), for similarity also nearly the same number, or the
    mean loss of the last tenth of its log exceeds FALLEN times that of the first.
    """
    if family in WORDS:
        answers = {tag for tags in predicted for tag in tags}
    else:
        answers = {str(round(answer, 3) if isinstance(answer, float) else answer) for answer in predicted}
    is_constant = len(answers) == 1 or (family == "similarity" and metrics.is_constant(gold, predicted))
    if is_constant and len(predicted) > 1:
        return "one answer only"
    tenth = max(1, len(log) // 10)
    first_loss, last_loss = (statistics.mean(row["loss"] for row in rows) for rows in (log[:tenth], log[-tenth:]))
    return "the loss did not fall" if last_loss > FALLEN * first_loss else ""
