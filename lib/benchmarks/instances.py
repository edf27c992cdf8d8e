"""What the benchmark datasets are made of: a class of instances for each task family."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Sentence:
    """A tagged sentence: words, and for each a tag such as `O`, `B-Disease` or `I`.

    Of elements that overlap, a word has all, in order, joined by `|`: `I-INT|I-PAR`. `document`: PMID or the name of
    the file, empty where the format does not say.
    """

    words: list[str]
    tags: list[str]
    document: str = ""


class Mention(NamedTuple):
    """A named stretch of a text. `kind` is written as in its dummy: CHEMICAL, GENE, DRUG, DISEASE, PROBLEM."""

    id: str
    kind: str
    start: int
    end: int  # one past the last character


@dataclass(frozen=True, slots=True)
class Relation:
    """Two mentions in one sentence, in text order, and what relates them.

    `masked`: the text comes with dummies in the places of its mentions, and the mentions are those dummies.
    """

    id: str
    text: str
    first: Mention
    second: Mention
    label: str
    masked: bool = False
    document: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts and a label, or a score: similarity, inference, a question with what may answer it.

    `group`: what is ranked together, the id of a question.
    """

    id: str
    first: str
    second: str
    label: str | float
    group: str = ""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A text, in sentences where the source has them, and its labels: none, one or many."""

    id: str
    sentences: tuple[str, ...]
    labels: tuple[str, ...]


class Span(NamedTuple):
    """Where an answer stands: the number of the passage, and characters in it."""

    passage: int
    start: int
    end: int


class Answer(NamedTuple):
    """A span that is given as an answer, and how probable it is among those of its kind."""

    passage: int
    start: int
    end: int
    probability: float


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the passages it is asked of, and its answers, any of which is right.

    `spans` are the answers as they stand in the passages; none means that it cannot be answered from them. `batch`: of
    BioASQ, the file that it was asked in, as its editions are scored batch by batch.
    """

    id: str
    question: str
    passages: tuple[str, ...]
    answers: tuple[str, ...]
    spans: tuple[Span, ...]
    batch: str = ""


Instance = Sentence | Relation | Pair | Labelled | Question


def label_of(instance: Instance):
    """What is to be predicted of an instance, as something that can be counted."""
    match instance:
        case Sentence():
            return tuple(instance.tags)
        case Labelled():
            return instance.labels
        case Question():
            return tuple(sorted(answer.lower() for answer in instance.answers))
        case _:
            return instance.label
