"""A benchmark dataset: what it is, how its files are read, and where they are.

A dataset of your own needs no registration:

    notes = Dataset("mine", "My notes", "tagging", "drugs", "entity-f1", conll.read_conll, by_split("notes")).at(folder)
    test = notes.load("test")
    notes.score(test, [["O"] * len(sentence.words) for sentence in test])[notes.main_score]
"""

import inspect
import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
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

LOWEST = -100.0  # below every score worth choosing; replaces an undefined one
SEED = 0  # of the order in which documents are assigned to parts
HELD_OUT = 0.1  # share of training held out to choose settings if there is no development set
SPLITS = ("train", "dev", "test")
TRAIN_TEST = ("train", "test")
MULTILABEL = ("multilabel-micro-f1", "example-f1", "label-f1")  # metrics over sets of labels


@dataclass(frozen=True)
class Dataset:
    """A dataset's description, without its text, and the folder of its files.

    `read` is called with the paths of a split's `files`, which are below `folder`, may end in .gz and may contain
    {fold}. If there are `members`, it also gets the name of the split's file in that archive. If it accepts `left_out`,
    it gets a Counter for what it leaves out. `divide(instances, split, fold)` returns the part of a split from a file
    without a division.
    """

    key: str
    title: str
    family: str  # tagging, pico, relations, similarity, inference, documents, answers, questions or ranking
    labels: str  # what is to be predicted
    metric: str  # a key of metrics.METRICS
    read: Callable[..., Iterable[Instance]]
    files: dict[str, tuple[str, ...]]
    group: str = ""  # in params/downloads.yaml: how to get the dataset, and its licence
    results: tuple[str, ...] = ()  # published tables that report scores on it
    access: str = "public"  # `own`: the user's; else registration or credentialed: no text leaves its folder
    members: dict[str, str] = field(default_factory=dict)
    folds: int = 1
    divide: Callable[[list, str, int], list] | None = None
    negative: str | None = "false"  # for relations: the label for no relation
    punkt: bool = False  # NLTK's punkt splits its sentences
    natural: Callable[..., list[str]] | None = None  # whole texts of a split, if instances hold only parts
    overlapping: bool = False  # for tagging: a word may have several tags
    question_first: bool = False  # for documents: the first sentence is a question about the second
    language: str = "en"
    version: int = 1  # bumped when the same files yield other examples, other parts, or other Japanese words
    folder: Path | None = None
    how: str = ""  # how to get missing or damaged files, for messages

    def __post_init__(self):
        known = [key for key, metric in metrics.METRICS.items() if metric.of_datasets]
        if self.metric not in known:
            raise unknown("metric", self.metric, known)

    def at(self, folder: Path, how: str = "") -> "Dataset":
        """Return the same dataset with its files below a folder."""
        return replace(self, folder=Path(folder), how=how)

    def paths(self, split: str, fold: int = 1) -> list[Path]:
        """Return the raw files or folders of a split.

        Raises StudyError if the dataset has no such split or fold, was given no folder, or lacks a file.
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
        for split, fold in self.parts:
            try:
                self.paths(split, fold)
            except StudyError as error:
                reasons.setdefault(split, str(error))
        return reasons

    @property
    def splits(self) -> list[str]:
        """The splits that can be read."""
        missing = self.missing
        return [split for split in self.files if split not in missing]

    def why_missing(self, split: str) -> str:
        """Return why a split cannot be read, or an empty string if it can."""
        return self.missing.get(split, "") if split in self.files else f"{self.title} has no {split} split here"

    @property
    def leaves_out(self) -> bool:
        """Whether the reader leaves out something in the files and counts it."""
        return "left_out" in inspect.signature(self.read).parameters

    def load(self, split: str, fold: int = 1, left_out: Counter | None = None) -> list[Instance]:
        """Return the instances of a split.

        `left_out` counts what the reader leaves out, by kind. Raises StudyError as in paths, if a file is empty or
        damaged, or if no training relation has the `negative` label, because negatives spelt differently would score as
        relations.
        """
        files = self.paths(split, fold)
        member_names = [self.members[split].format(fold=fold)] if self.members else []
        counter = {"left_out": left_out} if self.leaves_out else {}
        with self.blame_files():
            instances = list(self.read(*files, *member_names, **counter))
            if self.divide:
                instances = self.divide(instances, split, fold)
            if not instances:
                raise StudyError(f"{show_path(files[0])}: no instances of the {split} split")
        has_negatives = self.metric == "relation-micro-f1" and self.negative is not None
        if has_negatives and split == "train" and all(instance.gold != self.negative for instance in instances):
            raise StudyError(
                f"{show_path(files[0])}: none of {len(instances)} instances has the negative label '{self.negative}': "
                "give the dataset this set's as `negative`, or None where it has none"
            )
        return instances

    @contextmanager
    def blame_files(self) -> Iterator[None]:
        """Add how to get the files again, if known, to a StudyError raised while reading them."""
        try:
            yield
        except StudyError as error:
            raise StudyError(f"{error}{self.how and f'; to get the file again, move it away: {self.how}'}") from None

    def natural_texts(self, split: str) -> list[str]:
        """Return the human-written texts of a split over all folds, each once: sentences, titles, abstracts, questions.

        These are whole texts if the dataset has them, else the parts in its instances. Raises StudyError as in load.
        """
        if self.natural:
            files = self.paths(split)
            with self.blame_files():
                texts = self.natural(*files)
        else:
            fold_instances = (self.load(split, fold) for fold in range(1, self.folds + 1))
            texts = (text for instances in fold_instances for instance in instances for text in instance.natural)
        return list(dict.fromkeys(texts))

    def list_documents(self, instances: Iterable[Instance]) -> list[str | int]:
        """List each instance's document, or the question it is a candidate for; its position if it has neither."""
        documents = []
        for position, instance in enumerate(instances):
            document = getattr(instance, "document", "")  # which questions do not have
            if self.question_first:
                document = instance.sentences[-1]
            documents.append(document or position)
        return documents

    def fingerprints(self) -> dict[str, str]:
        """Return fingerprints of all that a score depends on: the unparsed files of each part, and how they are read.

        Raises StudyError as in paths.
        """
        files = {f"{split} {fold}": self.fingerprint_files(split, fold) for split, fold in self.parts}
        return files | {"reader": self.fingerprint_reader()}

    def fingerprint_files(self, split: str, fold: int = 1) -> str:
        """Return a fingerprint of a part's files, unparsed. Raises StudyError as in paths."""
        files = list_data_files(self.paths(split, fold))
        return provenance.fingerprint([provenance.file_fingerprint(file) for file in files])

    @property
    def repeats_test(self) -> bool:
        """Whether the development files are copies of the test files, so that nothing may be chosen on them."""
        separate_files = {"dev", "test"} <= {*self.files} and not self.members and not self.divide
        return separate_files and self.fingerprint_files("dev") == self.fingerprint_files("test")

    def fingerprint_reader(self) -> str:
        """Return a fingerprint of how the files are read, including the reader's version."""
        options = getattr(self.read, "keywords", {})
        facts = [self.files, self.members, self.metric, self.negative, self.overlapping, self.question_first,
                 self.language, options]  # fmt: skip
        return provenance.fingerprint(facts, self.edition)

    @property
    def edition(self) -> int | str:
        """The version of the reader, which changes if sentences are split differently on this machine."""
        return f"{self.version}, {chemprot.UNLEARNT}" if self.lacks_punkt else self.version

    @property
    def lacks_punkt(self) -> bool:
        """Whether its sentences would be split by NLTK's punkt if that were at hand."""
        return self.punkt and not chemprot.load_punkt()

    @property
    def differs(self) -> str:
        """How the dataset differs from its title on this machine, and what to do; empty if it does not differ."""
        return f"{chemprot.UNLEARNT} {chemprot.FETCH_PUNKT}" if self.lacks_punkt else ""

    @property
    def multilabel(self) -> bool:
        """Whether an instance may have any number of labels."""
        return self.metric in MULTILABEL

    @property
    def main_score(self) -> str:
        """The name of the score that ranks models."""
        return metrics.METRICS[self.metric].main or self.metric

    def score(self, instances: Sequence[Instance], predicted: Sequence) -> dict[str, float]:
        """Return every score of the metric by name. Raises errors as in lib/benchmarks/metrics.py.

        `predicted` has, for each instance, its tags, label, labels or number; for ranking, the score of each candidate;
        for questions, the ranked answers as spans of the passages. BioASQ's batches are scored separately and averaged
        (Lee et al. 2020, Table 6).
        """
        gold = [instance.gold for instance in instances]
        match self.metric:
            case "ranking-mrr":
                groups = [pair.group for pair in instances]
                return answer_metrics.ranking_scores(list(map(int, gold)), predicted, groups)
            case "strict-span-f1":
                metrics.check_tags(gold, predicted)
                documents, sides = self.list_documents(instances), []
                for side in (gold, predicted):
                    tags = defaultdict(list)  # per document, because parts of a mention may be in several sentences
                    for document, sentence_tags in zip(documents, side, strict=True):
                        tags[document] += sentence_tags
                    sides.append(metrics.mention_sets([*tags.values()]))
                return metrics.strict_spans(*sides)
            case "squad":
                texts = [questions.read_answers(*pair) for pair in zip(instances, predicted, strict=True)]
                return answer_metrics.squad_scores(gold, [next(iter(answers), "") for answers in texts])
            case "bioasq-factoid":
                batches = defaultdict(list)
                for item, gold_answers, answers in zip(instances, gold, predicted, strict=True):
                    batches[item.batch].append((gold_answers, questions.read_answers(item, answers)))
                scores = [answer_metrics.bioasq_factoid(*zip(*batch, strict=True)) for batch in batches.values()]
                return {name: fmean(batch_scores[name] for batch_scores in scores) for name in scores[0]}
        return self.score_labels(gold, predicted)

    def rank(self, instances: Sequence[Instance], predicted: Sequence) -> float:
        """Return the score that ranks models, or LOWEST if it is undefined."""
        return fill_undefined(self.score(instances, predicted)[self.main_score])

    def score_labels(self, gold: Sequence, predicted: Sequence) -> dict[str, float]:
        """Return the scores of gold and predictions that are already in the metric's form."""
        function = metrics.METRICS[self.metric].function
        options = {"negative": self.negative} if function is metrics.relation_scores else {}
        scores = function(gold, predicted, **options)
        return scores if isinstance(scores, dict) else {self.metric: scores}


def fill_undefined(score: float, value: float = LOWEST) -> float:
    """Return a score, or `value` if it is undefined: LOWEST for choosing, another for reporting."""
    return value if math.isnan(score) else score


def by_split(folder: str, ending: str = ".tsv", splits: Iterable[str] = SPLITS) -> dict[str, tuple[str, ...]]:
    """Return files that are named after their splits."""
    return {split: (f"{folder}/{split}{ending}",) for split in splits}


def list_data_files(paths: Iterable[Path]) -> list[Path]:
    """List the files among the paths, and those that are not hidden inside the folders among them, once and sorted."""
    files = set()
    for path in paths:
        for file in path.rglob("*") if path.is_dir() else [path]:
            hidden = any(part.startswith(".") for part in file.relative_to(path).parts)
            if file.is_file() and not hidden:
                files.add(file)
    return sorted(files)


def choose_training(family: str, instances: list[Instance], limit: int | None) -> list[Instance]:
    """Return the first `limit` training instances, or all.

    Questions without an answer in a passage are dropped, because they cannot be learnt (Lee et al. 2020, section 3.3).
    """
    return (questions.answerable(instances) if family == "questions" else instances)[:limit]


def hold_out(dataset: Dataset, instances: list[Instance]) -> tuple[list[Instance], list[Instance]]:
    """Split a training set into the rest and a held-out tenth of its documents, the same for every model.

    An instance without a document counts as one.
    """
    documents = dataset.list_documents(instances)
    part_of = draw_parts(documents, {"held out": HELD_OUT})
    parts = {"train": [], "held out": []}
    for document, instance in zip(documents, instances, strict=True):
        parts[part_of[document]].append(instance)
    return parts["train"], parts["held out"]


def draw_parts(documents: Sequence[Hashable], shares: dict[str, float]) -> dict[Hashable, str]:
    """Draw a part for each document, the same one every time: one of `shares`, or `train` for the rest.

    `shares`: part -> its share of the documents, which is one document at least.
    """
    distinct = list(dict.fromkeys(documents))
    part_of = dict.fromkeys(distinct, "train")
    order = [distinct[number] for number in np.random.default_rng(SEED).permutation(len(distinct))]
    for part, share in shares.items():
        size = max(1, round(share * len(distinct)))
        part_of |= dict.fromkeys(order[:size], part)
        order = order[size:]
    return part_of


def take_fold(instances: list[Labelled], split: str, fold: int, folds: int = 5) -> list[Labelled]:
    """Return the train or test part of one fold, for a dataset without a division, in file order.

    `fold` counts from 1 to `folds`. Folds come from scikit-learn's StratifiedKFold, shuffled with seed 0, so that
    labels have equal shares. Every instance is in exactly one test part; a label rarer than `folds` is in only some of
    them. If documents repeat (JMED-LLM asks several things about one), StratifiedGroupKFold keeps them together, with
    labels in nearly equal shares. Raises StudyError if every label is rarer than `folds`, or there are fewer documents
    than folds.
    """
    labels = tuple("|".join(instance.labels) for instance in instances)
    documents = tuple(instance.sentences[-1] for instance in instances)
    label_count = max(Counter(labels).values(), default=0)
    document_count = len(set(documents))
    if folds > min(label_count, document_count):
        raise StudyError(
            f"no fold {fold} of {folds} of {document_count} documents; the commonest label has {label_count} instances"
        )
    has_repeats = document_count < len(documents)
    train, test = cut_folds(labels, documents if has_repeats else None, folds)[fold - 1]
    return [instances[position] for position in (train if split == "train" else test)]


@lru_cache(maxsize=4)  # each part of a dataset needs the same folds
def cut_folds(
    labels: tuple[str, ...], documents: tuple[str, ...] | None, folds: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the training and test positions of each fold, as in take_fold; `documents` if some repeat."""
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold  # imported here because it takes seconds

    splitter = (StratifiedGroupKFold if documents else StratifiedKFold)(folds, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about labels rarer than folds
        return list(splitter.split(labels, labels, documents))
