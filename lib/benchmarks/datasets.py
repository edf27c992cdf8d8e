"""A benchmark dataset: what it is, how its files are read, and where they lie.

One of a reader's own needs no registration:

    notes = Dataset("mine", "My notes", "tagging", "drugs", "entity-f1", conll.read_conll, by_split("notes")).at(folder)
    test = notes.load("test")
    notes.score(test, [["O"] * len(sentence.words) for sentence in test])[notes.main_score]
"""

import inspect
import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from statistics import fmean

import numpy as np

from lib import provenance
from lib.benchmarks import answer_metrics, chemprot, metrics, questions
from lib.benchmarks.instances import Instance, Labelled
from lib.errors import StudyError, unknown
from lib.places import show_path
from lib.reading import find_file

LOWEST = -100.0  # below every score that is worth a choice: stands for one that is undefined
HELD_OUT = 0.1  # of a training set, to choose settings on where there is no development set
SPLITS = ("train", "dev", "test")
TRAIN_TEST = ("train", "test")
MULTILABEL = ("multilabel-micro-f1", "example-f1", "label-f1")  # metrics of sets of labels


@dataclass(frozen=True)
class Dataset:
    """What is known of a dataset besides its text, and the folder of its files.

    `read` is called with the paths of a split's `files`, which lie below `folder`, may have .gz after the name and may
    hold {fold}; with `members`, then with the name of the split's file in that archive; where it takes one, with a
    Counter `left_out` of what it leaves out. `divide` takes the part of a split from a file that has no division:
    (instances, split, fold).
    """

    key: str
    title: str
    family: str  # tagging, pico, relations, similarity, inference, documents, answers, questions or ranking
    labels: str  # what is to be found
    metric: str  # a key of metrics.METRICS
    read: Callable[..., Iterable[Instance]]
    files: dict[str, tuple[str, ...]]
    group: str = ""  # of params/downloads.yaml: how to get it, and its licence
    results: tuple[str, ...] = ()  # the published tables with scores on it
    access: str = "public"  # `own`: of whoever runs it; else registration or credentialed: no text leaves its folder
    members: dict[str, str] = field(default_factory=dict)
    folds: int = 1
    divide: Callable[[list, str, int], list] | None = None
    negative: str | None = "false"  # of relations: the label that says none
    punkt: bool = False  # its sentences are cut by NLTK's splitter
    natural: Callable[..., list[str]] | None = None  # whole texts of a split's files, where instances hold only parts
    overlapping: bool = False  # of tags: a word may have several
    question_first: bool = False  # of documents: the first sentence is a question about the second
    language: str = "en"
    version: int = 1  # of what reads it: raised when the same files give other examples, or Japanese other words
    folder: Path | None = None
    how: str = ""  # to get files that are not there or damaged, for messages

    def __post_init__(self):
        if self.metric not in metrics.METRICS:
            raise unknown("metric", self.metric, metrics.METRICS)

    def at(self, folder: Path, how: str = "") -> "Dataset":
        """The same dataset with its files below a folder."""
        return replace(self, folder=Path(folder), how=how)

    def paths(self, split: str, fold: int = 1) -> list[Path]:
        """The raw files or folders of a split.

        StudyError when the set has no such split or fold, was given no folder, or one of them is not there.
        """
        if split not in self.files:
            raise StudyError(f"{self.title} has no {split} split: it has {', '.join(self.files)}")
        if not 1 <= fold <= self.folds:
            raise StudyError(f"{self.title} has no fold {fold}: it has {self.folds}")
        if self.folder is None:
            raise StudyError(f"{self.title}: say where its files lie: .at(folder)")
        paths = []
        for name in self.files[split]:
            path = self.folder / name.format(fold=fold)
            try:
                paths.append(path if path.is_dir() else find_file(path))
            except StudyError:
                raise StudyError(f"{self.title}: no {show_path(path)}{self.how and f'; {self.how}'}") from None
        return paths

    @property
    def parts(self) -> list[tuple[str, int]]:
        """Every split with every fold."""
        return [(split, fold) for split in self.files for fold in range(1, self.folds + 1)]

    @property
    def missing(self) -> dict[str, str]:
        """The splits that cannot be read, and why."""
        reasons = {}
        for split in self.files:
            try:
                for fold in range(1, self.folds + 1):
                    self.paths(split, fold)
            except StudyError as error:
                reasons[split] = str(error)
        return reasons

    @property
    def splits(self) -> list[str]:
        """The splits that can be read."""
        missing = self.missing
        return [split for split in self.files if split not in missing]

    def why_missing(self, split: str) -> str:
        """Why a split cannot be read, or an empty string when it can."""
        return self.missing.get(split, "") if split in self.files else f"{self.title} has no {split} split here"

    @property
    def leaves_out(self) -> bool:
        """Whether its reader leaves something of the files out, and counts it."""
        return "left_out" in inspect.signature(self.read).parameters

    def load(self, split: str, fold: int = 1, left_out: Counter | None = None) -> list[Instance]:
        """The instances of a split; StudyError as in paths, and for files that are empty or damaged, and for a training
        set without the negative label, which is then spelt otherwise: its relations would count as right ones.

        `left_out`: takes how much of the files the reader leaves out, by what it is.
        """
        files = self.paths(split, fold)
        inside = [self.members[split].format(fold=fold)] if self.members else []
        counter = {"left_out": left_out} if self.leaves_out else {}
        with self.blame_files():
            instances = list(self.read(*files, *inside, **counter))
            if self.divide:
                instances = self.divide(instances, split, fold)
            if not instances:
                raise StudyError(f"{show_path(files[0])}: no instances of the {split} split")
        relations = self.metric == "relation-micro-f1" and self.negative is not None
        if relations and split == "train" and all(one.gold != self.negative for one in instances):
            raise StudyError(
                f"{show_path(files[0])}: none of {len(instances)} instances has the negative label '{self.negative}': "
                "give the dataset this set's as `negative`, or None where it has none"
            )
        return instances

    @contextmanager
    def blame_files(self) -> Iterator[None]:
        """A StudyError of what reads the files says how to get them again, where that is known."""
        try:
            yield
        except StudyError as error:
            raise StudyError(f"{error}{self.how and f'; to get the file again, move it away: {self.how}'}") from None

    def natural_texts(self, split: str) -> list[str]:
        """What somebody wrote of a split, of all folds, each text once: sentences, titles, abstracts, questions.

        Whole texts where the set has them, else the parts that its instances hold; errors as in load.
        """
        if self.natural:
            files = self.paths(split)
            with self.blame_files():
                texts = self.natural(*files)
        else:
            loaded = (self.load(split, fold) for fold in range(1, self.folds + 1))
            texts = (text for instances in loaded for instance in instances for text in instance.natural)
        return list(dict.fromkeys(texts))

    def fingerprints(self) -> dict[str, str]:
        """Of what a score depends: the files of each part, unread; how they are read. Errors as in paths."""
        files = {f"{split} {fold}": self.fingerprint_files(split, fold) for split, fold in self.parts}
        return files | {"reader": self.fingerprint_reader()}

    def fingerprint_files(self, split: str, fold: int = 1) -> str:
        """Of the files of a part, unread; errors as in paths."""
        files = list_data_files(self.paths(split, fold))
        return provenance.fingerprint([provenance.file_fingerprint(file) for file in files])

    @property
    def repeats_test(self) -> bool:
        """Whether the development files are the test files again, unread: nothing may be chosen on them."""
        apart = {"dev", "test"} <= {*self.files} and not self.members and not self.divide
        return apart and self.fingerprint_files("dev") == self.fingerprint_files("test")

    def fingerprint_reader(self) -> str:
        """Of how the files are read, and with what version of the reader."""
        options = getattr(self.read, "keywords", {})
        facts = [self.files, self.members, self.metric, self.negative, self.overlapping, self.question_first,
                 self.language, options]  # fmt: skip
        return provenance.fingerprint(facts, self.edition)

    @property
    def edition(self) -> int | str:
        """The version of the reader, which is another where its sentences are cut otherwise."""
        return f"{self.version}, {self.differs}" if self.differs else self.version

    @property
    def differs(self) -> str:
        """How it is not what its title says on this machine; empty where it is."""
        return chemprot.UNLEARNT if self.punkt and not chemprot.has_punkt() else ""

    @property
    def multilabel(self) -> bool:
        """Whether an instance may have any number of labels."""
        return self.metric in MULTILABEL

    @property
    def main_score(self) -> str:
        """The name of the number that ranks models."""
        return metrics.METRICS[self.metric].main or self.metric

    def score(self, instances: Sequence[Instance], predicted: Sequence) -> dict[str, float]:
        """Every number of the metric, by name; errors as in lib/benchmarks/metrics.py.

        `predicted`: for each instance its tags, label, labels or number; of ranking the score of each candidate; of
        questions the ranked answers, spans of their passages. BioASQ's batches are scored one by one and averaged (Lee
        et al. 2020, Table 6).
        """
        gold = [instance.gold for instance in instances]
        match self.metric:
            case "ranking-mrr":
                groups = [pair.group for pair in instances]
                return answer_metrics.ranking_scores(list(map(int, gold)), predicted, groups)
            case "strict-span-f1":
                metrics.check_tags(gold, predicted)
                documents = [one.document or number for number, one in enumerate(instances)]
                sides = []
                for side in (gold, predicted):
                    tags = defaultdict(list)  # of a document, as parts of a mention may stand in several sentences
                    for document, of_sentence in zip(documents, side, strict=True):
                        tags[document] += of_sentence
                    sides.append(metrics.mention_sets([*tags.values()]))
                return metrics.strict_spans(*sides)
            case "squad":
                texts = [questions.read_answers(*one) for one in zip(instances, predicted, strict=True)]
                return answer_metrics.squad_scores(gold, [next(iter(ranked), "") for ranked in texts])
            case "bioasq-factoid":
                batches = defaultdict(list)
                for one, right, ranked in zip(instances, gold, predicted, strict=True):
                    batches[one.batch].append((right, questions.read_answers(one, ranked)))
                scores = [answer_metrics.bioasq_factoid(*zip(*batch, strict=True)) for batch in batches.values()]
                return {name: fmean(one[name] for one in scores) for name in scores[0]}
        return self.score_labels(gold, predicted)

    def rank(self, instances: Sequence[Instance], predicted: Sequence) -> float:
        """The number that ranks models, LOWEST where it is undefined."""
        return fill_undefined(self.score(instances, predicted)[self.main_score])

    def score_labels(self, gold: Sequence, predicted: Sequence) -> dict[str, float]:
        """As `score`, of gold and predictions that are in the form that the metric takes."""
        function = metrics.METRICS[self.metric].function
        options = {"negative": self.negative} if function is metrics.relation_scores else {}
        scores = function(gold, predicted, **options)
        return scores if isinstance(scores, dict) else {self.metric: scores}


def fill_undefined(score: float, value: float = LOWEST) -> float:
    """A score, or `value` in place of one that is undefined: LOWEST to choose by, another to report."""
    return value if math.isnan(score) else score


def by_split(folder: str, ending: str = ".tsv", splits: Iterable[str] = SPLITS) -> dict[str, tuple[str, ...]]:
    """Files that are named for their splits."""
    return {split: (f"{folder}/{split}{ending}",) for split in splits}


def list_data_files(paths: Iterable[Path]) -> list[Path]:
    """The files among paths and in the folders among them, each once, in order."""
    return sorted({f for path in paths for f in (path.rglob("*") if path.is_dir() else [path]) if f.is_file()})


def choose_training(family: str, instances: list[Instance], limit: int | None) -> list[Instance]:
    """What a model is trained on of a training set: the first `limit`, or all; of questions those that have an answer,
    as the others cannot be learnt (Lee et al. 2020, section 3.3)."""
    return (questions.answerable(instances) if family == "questions" else instances)[:limit]


def hold_out(instances: list[Instance]) -> tuple[list[Instance], list[Instance]]:
    """A training set without a tenth of it, and that tenth; the same for every model."""
    order = np.random.default_rng(0).permutation(len(instances)).tolist()
    held = set(order[: max(1, round(HELD_OUT * len(instances)))])
    parts = ([], [])
    for number, instance in enumerate(instances):
        parts[number in held].append(instance)
    return parts


def take_fold(instances: list[Labelled], split: str, fold: int, folds: int = 5) -> list[Labelled]:
    """The train or test part of a set without a division: `fold` of 1 to `folds`, labels in equal shares, in order.

    scikit-learn's StratifiedKFold, shuffled with seed 0; every instance is in one test part, and a label rarer than
    there are folds in some of them only. Where documents come several times (JMED-LLM asks several things of one) it
    is StratifiedGroupKFold, which keeps them together and labels in nearly equal shares. StudyError for another split,
    a fold outside, labels that are all rarer, or documents fewer, than there are folds.
    """
    if split not in ("train", "test"):
        raise unknown("split", split, ("train", "test"))
    labels = tuple("|".join(instance.labels) for instance in instances)
    documents = tuple(instance.sentences[-1] for instance in instances)
    commonest = max(Counter(labels).values(), default=0)
    distinct = len(set(documents))
    if not 1 <= fold <= folds or not 2 <= folds <= min(commonest, distinct):
        raise StudyError(f"no fold {fold} of {folds} of {len(labels)} documents, {commonest} of the commonest label")
    repeated = distinct < len(documents)
    every_fold = cut_folds(labels, documents if repeated else None, folds)
    train, test = every_fold[fold - 1]
    return [instances[place] for place in (train if split == "train" else test)]


@lru_cache(maxsize=4)  # each part of a set asks for the same
def cut_folds(
    labels: tuple[str, ...], documents: tuple[str, ...] | None, folds: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The places of the training and the test part of each fold, as take_fold says; `documents` where some come again.
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold  # here, as it takes seconds

    cut = (StratifiedGroupKFold if documents else StratifiedKFold)(folds, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of labels rarer than folds
        return list(cut.split(labels, labels, documents))
