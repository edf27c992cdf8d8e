"""A dataset as an encoder reads it: the instances of each split and fold, and their token sequences."""

import copy
from functools import cached_property

from lib.benchmarks.datasets import Dataset, choose_training, hold_out
from lib.benchmarks.instances import Instance
from lib.errors import StudyError, unknown
from lib.finetuning import spans, tagging, texts
from lib.finetuning.examples import DatasetTask, Example
from lib.finetuning.protocol import FinetuningSettings
from lib.modeling import loading, models
from lib.vocabularies.japanese import JapaneseTokenizer

TASKS = {
    "tagging": tagging.Tagging, "pico": tagging.Tagging, "relations": texts.Texts, "similarity": texts.Texts,
    "inference": texts.Texts, "documents": texts.Texts, "answers": texts.Texts, "ranking": texts.Texts,
    "questions": spans.Spans,
}  # fmt: skip


class Splits:
    """The splits of one dataset for one encoder, each read and tokenized once for all seeds and candidates.

    `base`: the split to train on; `reads`: the splits read so far, in order. Raises StudyError if the dataset's family
    has no task.
    """

    def __init__(
        self,
        encoder: loading.Encoder | models.Checkpoint,
        dataset: Dataset,
        settings: FinetuningSettings,
        base: str = "train",
    ):
        if dataset.family not in TASKS:
            raise unknown("family", dataset.family, TASKS)
        self.encoder, self.dataset, self.settings, self.base = encoder, dataset, settings, base
        self.reads: list[str] = []
        self.instances: dict[tuple[str, int], list[Instance]] = {}
        self.sequences: dict[tuple[str, int], list[Example]] = {}
        self.cut: dict[tuple[str, int], int] = {}
        self.tasks: dict[int, DatasetTask] = {}

    @cached_property
    def loaded(self) -> loading.Encoder:
        """The encoder, loaded when a run first needs it, so that existing results do not load it."""
        return self.encoder.load()

    @cached_property
    def choice(self) -> str:
        """The split to choose settings on: dev, or a held-out part of training if dev is missing or repeats test."""
        return "dev" if "dev" in self.dataset.files and not self.dataset.repeats_test else "held out"

    def read(self, split: str, fold: int) -> list[Instance]:
        """Return the instances of a split; `rest` and `held out` are the parts of the training set if dev is missing.

        Raises StudyError if the split has no instance, and as Dataset.load does.
        """
        key = (split, fold)
        if key not in self.instances:
            if split in ("rest", "held out"):
                rest, held_out = hold_out(self.dataset, self.read(self.base, fold))
                self.instances["rest", fold], self.instances["held out", fold] = rest, held_out
            else:
                instances = self.dataset.load(split, fold)
                self.reads.append(split if self.dataset.folds == 1 else f"{split} {fold}")
                if split == self.base:
                    instances = choose_training(self.dataset.family, instances, self.settings.train_instances)
                self.instances[key] = instances
        if not self.instances[key]:
            raise StudyError(
                f"{self.dataset.title}: its '{split}' split has no instance: of {self.base}, questions without an "
                "answer in their passages are left out, and a tenth is held out where settings are chosen on it"
            )
        return self.instances[key]

    def task(self, fold: int) -> DatasetTask:
        """Return the dataset's task, with the labels of the training set.

        Raises StudyError if the vocabulary is Japanese and the dataset is not.
        """
        if fold not in self.tasks:
            tokenizer = copy.deepcopy(self.loaded.tokenizer)  # a task may add markers to it
            if isinstance(tokenizer, JapaneseTokenizer) and self.dataset.language != "ja":
                raise StudyError(
                    f"{self.loaded.title}: its vocabulary is of Japanese words; {self.dataset.title} is not Japanese"
                )
            length = self.loaded.length(self.settings.max_length)
            train = self.read(self.base, fold)
            self.tasks[fold] = TASKS[self.dataset.family](self.dataset, self.settings, tokenizer, train, length)
        return self.tasks[fold]

    def encode(self, split: str, fold: int) -> list[Example]:
        """Return the token sequences of a split."""
        key = (split, fold)
        if key not in self.sequences:
            task = self.task(fold)
            self.sequences[key] = task.encode(self.read(split, fold))
            self.cut[key] = task.cut
        return self.sequences[key]
