"""What the benchmark datasets are made of: a class of instances for each task family.

Each has three views. `gold`: what is to be predicted, as something that can be counted. `inputs`: the strings that a
model reads, a document's sentences and a question's passages one by one. `natural`: the texts that somebody wrote,
without dummies (@GENE$), to be found again elsewhere.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

DUMMY = re.compile(r"@[A-Z0-9-]+\$|\bbc6(?:ent[cg]|other)\b", re.IGNORECASE)
JOINT = {"CHEMICAL": "CHEM"}  # as the dummy of two mentions that overlap has it: @CHEM-GENE$
BREAKS = re.compile(r"[\n\t\r]")


def split_lines(texts: Iterable[str]) -> list[str]:
    """The lines of texts without white space around them; blank ones are left out."""
    return [part.strip() for text in texts for part in text.split("\n") if part.strip()]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A tagged sentence: words, and for each a tag such as `O`, `B-Disease` or `I`.

    In a set whose elements overlap a word has all, in order, joined by `|`: `I-INT|I-PAR`. `document`: PMID or the name
    of the file, empty where the format does not say. `annotated`: the types that were looked for in it; None: all.
    """

    words: list[str]
    tags: list[str]
    document: str = ""
    annotated: tuple[str, ...] | None = None

    @property
    def gold(self) -> tuple[str, ...]:
        return tuple(self.tags)

    @property
    def inputs(self) -> list[str]:
        return [" ".join(self.words)]

    @property
    def natural(self) -> list[str]:
        return split_lines(self.inputs)


class Mention(NamedTuple):
    """A named stretch of a text. `kind` is written as in its dummy: CHEMICAL, GENE, DRUG, DISEASE, PROBLEM."""

    id: str
    kind: str
    start: int
    end: int  # one past the last character


class Marked(NamedTuple):
    """A relation's text as a model reads it, and where its two mentions stand in it, first and one past the last."""

    text: str
    first: tuple[int, int]
    second: tuple[int, int]


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

    @property
    def gold(self) -> str:
        return self.label

    @property
    def inputs(self) -> list[str]:
        return [self.dummify().text]

    @property
    def natural(self) -> list[str]:
        return split_lines(DUMMY.split(self.text))

    def dummify(self) -> Marked:
        """The text with `@KIND$` for each of the two mentions, or one dummy such as `@CHEM-GENE$` for two that overlap.

        Line ends and tabs become spaces. A text that comes with dummies stays as it is. Source: Gu et al. 2021, 2.4.2
        and Table 14; the dummies are BLURB's.
        """
        first, second, text = self.first, self.second, self.text
        if self.masked:
            return Marked(text, (first.start, first.end), (second.start, second.end))
        if first.end > second.start:
            kinds = sorted(JOINT.get(one.kind, one.kind) for one in (first, second))
            middle = f"@{'-'.join(kinds)}$"
            spans = [(first.start, first.start + len(middle))] * 2
        else:
            dummy, other_dummy = f"@{first.kind}$", f"@{second.kind}$"
            middle = dummy + text[first.end : second.start] + other_dummy
            end = first.start + len(middle)
            spans = [(first.start, first.start + len(dummy)), (end - len(other_dummy), end)]
        masked = text[: first.start] + middle + text[max(first.end, second.end) :]
        return Marked(BREAKS.sub(" ", masked), *spans)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts and a label, or a score: similarity, inference, a question with what may answer it.

    `group`: what is ranked together, the id of a question; elsewhere the document that a pair is of, if known.
    """

    id: str
    first: str
    second: str
    label: str | float
    group: str = ""

    @property
    def gold(self) -> str | float:
        return self.label

    @property
    def inputs(self) -> list[str]:
        return [f"{self.first} {self.second}"]

    @property
    def natural(self) -> list[str]:
        return split_lines([self.first, self.second])


@dataclass(frozen=True, slots=True)
class Labelled:
    """A text, in sentences where the source has them, and its labels: none, one or many.

    `document`: that it is a part of, where that is known.
    """

    id: str
    sentences: tuple[str, ...]
    labels: tuple[str, ...]
    document: str = ""

    @property
    def gold(self) -> tuple[str, ...]:
        return self.labels

    @property
    def inputs(self) -> list[str]:
        return list(self.sentences)

    @property
    def natural(self) -> list[str]:
        return split_lines(self.sentences)


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

    @property
    def gold(self) -> tuple[str, ...]:
        return tuple(sorted(answer.lower() for answer in self.answers))

    @property
    def inputs(self) -> list[str]:
        return [f"{self.question} {passage}" for passage in self.passages]

    @property
    def natural(self) -> list[str]:
        return split_lines([self.question, *self.passages])


Instance = Sentence | Relation | Pair | Labelled | Question
