"""Inputs for fine-tuning: a task, its token sequences, and batches of sequences of similar length."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Instance
from lib.finetuning.protocol import FinetuningSettings
from lib.modeling.heads import Batch
from lib.vocabularies.special_tokens import find_frame

POOL = 50  # batches whose examples are sorted by length together
TOKENS = 16_384  # maximum in an evaluation batch, padding included
CPU_TOKENS = 4096  # the same for an encoder on a CPU, where it is a third faster than four times as many


@dataclass(frozen=True, slots=True)
class Example:
    """A sequence: an instance's tokens, the positions that the head reads, and the target.

    `second`: the position where the second of two texts begins, else 0. The content of `positions` and `target` depends
    on the task: lib/finetuning/tagging.py, lib/finetuning/texts.py, lib/finetuning/spans.py.
    """

    instance: int
    tokens: list[int]
    second: int = 0
    positions: Sequence = ()
    target: object = None
    words: Sequence[str] = ()  # for taggers whose head reads letters
    annotated: tuple[str, ...] | None = None  # the entity types that were annotated; None: all


class DatasetTask:
    """The base class of tasks on a dataset; each adds `encode`, `collate`, `read` and `decode`.

    `names`: the names of types, labels or classes; if None they are taken from `train`.
    """

    def __init__(
        self,
        dataset: Dataset,
        settings: FinetuningSettings,
        tokenizer: PreTrainedTokenizerBase,
        train: Sequence[Instance],
        max_length: int,
        names: Sequence[str] | None = None,
    ):
        self.dataset, self.settings, self.tokenizer = dataset, settings, tokenizer
        self.frame, self.max_length = find_frame(tokenizer), max_length
        self.cut = 0  # instances of the last encoding that were truncated
        self.names = self.list_names(train) if names is None else [*names]
        self.prepare(train)

    def list_names(self, train: Sequence[Instance]) -> list[str]:
        return []

    def prepare(self, train: Sequence[Instance]) -> None:
        """Set further attributes of a task."""


def pad(examples: Sequence[Example], padding: int) -> Batch:
    """Return `input_ids` (sequences, length of the longest), padded.

    Adds `token_type_ids` if there are second texts, and `attention_mask` (bool, true at tokens, false at padding) if
    sequences differ in length.
    """
    lengths = np.array([len(example.tokens) for example in examples])
    longest = lengths.max()
    ids = np.full((len(examples), longest), padding)
    for i, example in enumerate(examples):
        ids[i, : lengths[i]] = example.tokens
    position = np.arange(longest)
    is_token = position < lengths[:, None]
    batch = {"input_ids": ids}
    if any(example.second for example in examples):
        second_starts = np.array([example.second or longest for example in examples])
        in_second = (position >= second_starts[:, None]) & is_token
        batch["token_type_ids"] = in_second.astype(np.int64)
    if lengths.min() < longest:
        batch["attention_mask"] = is_token
    return {name: torch.from_numpy(array) for name, array in batch.items()}


class BucketedBatches:
    """Batches of examples of similar length; batch i depends only on the seed and on i.

    In each epoch the examples are shuffled, sorted by length within pools of POOL batches, and cut into batches of
    `batch_size` examples, as the papers count them; then the batches are shuffled. So there is little padding, and the
    order is still random. Training takes whole `epochs`, or `steps` if given.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        collate: Callable[[Sequence[Example]], Batch],
        *,
        batch_size: int,
        epochs: int,
        steps: int | None,
        seed: int,
    ):
        self.examples, self.collate, self.batch_size = examples, collate, batch_size
        if steps:
            epochs = -(-steps * batch_size // len(examples))
        self.plan = [batch for epoch in range(epochs) for batch in self.plan_epoch(seed, epoch)][:steps]

    def plan_epoch(self, seed: int, epoch: int) -> list[list[int]]:
        rng = np.random.default_rng([seed, epoch])
        order = rng.permutation(len(self.examples))
        pool_size = POOL * self.batch_size
        batches = []
        for first in range(0, len(order), pool_size):
            pool = sorted(order[first : first + pool_size], key=self.length)
            for begin in range(0, len(pool), self.batch_size):
                batches.append(pool[begin : begin + self.batch_size])
        return [batches[i] for i in rng.permutation(len(batches))]

    def length(self, number: int) -> int:
        return len(self.examples[number].tokens)

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, key: tuple[int, int, int]) -> Batch:
        step, part, parts = key
        return self.collate([self.examples[i] for i in self.plan[step][part::parts]])

    def shape(self, step: int) -> tuple[int, int]:
        """Return the number of sequences in a step and their length."""
        return len(self.plan[step]), max(map(self.length, self.plan[step]))


def compute_each(
    examples: Sequence[Example], compute: Callable[[list[Example]], Iterable], tokens: int = TOKENS
) -> list:
    """Return what `compute` returns for each example, in batches from cut_evenly, without gradients."""
    results: list = [None] * len(examples)
    with torch.inference_mode():
        for numbers in cut_evenly(examples, tokens):
            batch_results = compute([examples[number] for number in numbers])
            for number, result in zip(numbers, batch_results, strict=True):
                results[number] = result
    return results


def cut_evenly(examples: Sequence[Example], tokens: int) -> Iterator[list[int]]:
    """Yield the numbers of all examples, longest first, in batches of at most `tokens`, padding included.

    An example longer than that is a batch of its own.
    """
    order = sorted(range(len(examples)), key=lambda i: -len(examples[i].tokens))
    while order:
        count = max(1, tokens // len(examples[order[0]].tokens))
        yield order[:count]
        order = order[count:]
