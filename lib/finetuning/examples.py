"""What an encoder is fine-tuned on: a task, its sequences of tokens, and batches of them of similar length."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Instance
from lib.finetuning.protocol import FinetuningSettings
from lib.modeling.heads import Batch
from lib.vocabularies.tokenization import find_frame

POOL = 50  # batches whose examples are sorted by length together
TOKENS = 16_384  # in a batch of an evaluation, at most, padding included
CPU_TOKENS = 4096  # the same for an encoder on a CPU, where it is a third faster than four times as many


@dataclass(frozen=True, slots=True)
class Example:
    """A sequence: what the encoder reads of an instance, where the head looks, and what it should predict.

    `second`: the position where the second of two texts begins, else 0. What `positions` and `target` hold depends on
    the task: lib/finetuning/tagging.py, lib/finetuning/texts.py, lib/finetuning/spans.py.
    """

    instance: int
    tokens: list[int]
    second: int
    positions: list
    target: object
    words: Sequence[str] = ()  # of entities, for a head that reads letters
    annotated: tuple[str, ...] | None = None  # the types of entities that were looked for; None: all


class Template:
    """The special tokens of a tokenizer around one text or two."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase):
        self.frame = find_frame(tokenizer)
        self.start = len(self.frame.before)  # of the first text
        self.padding = tokenizer.pad_token_id or 0  # nothing looks at it, so that any token will do

    def capacity(self, max_length: int, pair: bool) -> int:
        """How many tokens of the texts fit."""
        before, between, after, _ = self.frame
        return max_length - len(before) - len(after) - (len(between) if pair else 0)

    def join(self, first: list[int], second: list[int] | None = None) -> tuple[list[int], int]:
        """The sequence, and where its second text begins (0: there is none)."""
        before, between, after, _ = self.frame
        if second is None:
            return [*before, *first, *after], 0
        start = [*before, *first, *between]
        return [*start, *second, *after], len(start)

    def place(self, tokens: list[int]) -> int:
        """The position in a sequence that is read for all of it: that of [CLS]."""
        return self.frame.place % len(tokens)


class DatasetTask:
    """What an encoder is to do on a dataset: what all tasks hold, each with `encode`, `collate`, `read` and `decode`.

    `names`: of types, labels or classes, in place of those of `train`.
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
        self.template, self.max_length = Template(tokenizer), max_length
        self.cut = 0  # instances that lost something to the limit of length, of those encoded last
        self.names = self.list_names(train) if names is None else [*names]
        self.prepare(train)

    def list_names(self, train: Sequence[Instance]) -> list[str]:
        return []

    def prepare(self, train: Sequence[Instance]) -> None:
        """What else a task holds."""


def pad(examples: Sequence[Example], padding: int) -> Batch:
    """`input_ids` (sequences, length of the longest); `token_type_ids` where there are second texts; `attention_mask`,
    bool, true at tokens and false at padding, where sequences differ in length."""
    lengths = np.array([len(example.tokens) for example in examples])
    longest = lengths.max()
    ids = np.full((len(examples), longest), padding)
    for i, example in enumerate(examples):
        ids[i, : lengths[i]] = example.tokens
    position = np.arange(longest)
    is_token = position < lengths[:, None]
    batch = {"input_ids": ids}
    if any(example.second for example in examples):
        second = np.array([example.second or longest for example in examples])
        in_second = (position >= second[:, None]) & is_token
        batch["token_type_ids"] = in_second.astype(np.int64)
    if lengths.min() < longest:
        batch["attention_mask"] = is_token
    return {name: torch.from_numpy(array) for name, array in batch.items()}


class BucketedBatches:
    """Batches of examples of similar length; batch i depends on the seed and on i alone.

    In each epoch the examples are shuffled, sorted by length within pools of POOL batches, cut into batches of
    `batch_size`, as the papers count them, and the batches shuffled: little padding, and still a random order.
    Either whole `epochs`, or as many as `steps` take.
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
        """Sequences of a step, and their length."""
        return len(self.plan[step]), max(map(self.length, self.plan[step]))


def compute_each(
    examples: Sequence[Example], compute: Callable[[list[Example]], Iterable], tokens: int = TOKENS
) -> list:
    """What `compute` gives for each example, of batches as of cut_evenly; without gradients."""
    results: list = [None] * len(examples)
    with torch.inference_mode():
        for numbers in cut_evenly(examples, tokens):
            for number, one in zip(numbers, compute([examples[number] for number in numbers]), strict=True):
                results[number] = one
    return results


def cut_evenly(examples: Sequence[Example], tokens: int = TOKENS) -> Iterator[list[int]]:
    """The numbers of all examples, the longest first, in batches of one or more and at most `tokens`, padding included.

    A single one may be longer.
    """
    order = sorted(range(len(examples)), key=lambda i: -len(examples[i].tokens))
    while order:
        count = max(1, tokens // len(examples[order[0]].tokens))
        yield order[:count]
        order = order[count:]
