"""Instances of the benchmark datasets: one class for each task family.

Each class has three views. `gold`: what is to be predicted, in a form that can be counted. `inputs`: the strings that a
model reads; sentences of a document and passages of a question are separate. `natural`: the human-written texts without
dummies (@GENE$), used to find them in other texts.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

DUMMY = re.compile(r"@[A-Z0-9-]+\$|\bbc6(?:ent[cg]|other)\b", re.IGNORECASE)
JOINT = {"CHEMICAL": "CHEM"}  # spelling in the dummy of two overlapping mentions: @CHEM-GENE$
BREAKS = re.compile(r"[\n\t\r]")


def split_lines(texts: Iterable[str]) -> list[str]:
    """Return the non-blank lines of texts, stripped of white space."""
    return [line.strip() for text in texts for line in text.split("\n") if line.strip()]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A tagged sentence: words, each with a tag such as `O`, `B-Disease` or `I`.

    If elements overlap, a word has all of its own, in order, joined by `|`: `I-INT|I-PAR`. `document`: a PMID or file
    name; empty if the format has none. `annotated`: the entity types that were annotated in the sentence; None: all.
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
    """A span of text that names something. `kind` is as in its dummy: CHEMICAL, GENE, DRUG, DISEASE, PROBLEM."""

    id: str
    kind: str
    start: int
    end: int  # one past the last character

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        return ((self.start, self.end),)


class Marked(NamedTuple):
    """A relation's text as a model reads it, and the (start, end) of its two mentions."""

    text: str
    first: tuple[int, int]
    second: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Relation:
    """Two mentions in one sentence, in text order, and the label of their relation.

    `masked`: the text already has dummies in place of its mentions, and the mentions are those dummies.
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
        """Return the text with `@KIND$` for each mention, or one dummy such as `@CHEM-GENE$` if the two overlap.

        Line ends and tabs become spaces. A text that already has dummies is unchanged. Source: Gu et al. 2021, 2.4.2
        and Table 14; the dummies are BLURB's.
        """
        first, second, text = self.first, self.second, self.text
        if self.masked:
            return Marked(text, (first.start, first.end), (second.start, second.end))
        if first.end > second.start:
            kinds = sorted(JOINT.get(mention.kind, mention.kind) for mention in (first, second))
            dummies = f"@{'-'.join(kinds)}$"
            first_span = second_span = first.start, first.start + len(dummies)
        else:
            dummy, other_dummy = f"@{first.kind}$", f"@{second.kind}$"
            dummies = dummy + text[first.end : second.start] + other_dummy
            end = first.start + len(dummies)
            first_span = first.start, first.start + len(dummy)
            second_span = end - len(other_dummy), end
        before = text[: first.start]
        after = text[max(first.end, second.end) :]
        return Marked(BREAKS.sub(" ", before + dummies + after), first_span, second_span)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts with a label or a score: similarity, inference, or a question with a candidate answer.

    `group`: for ranking, the id of the question whose pairs are ranked together; otherwise the pair's document, if
    known. `document` is the same.
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
    def document(self) -> str:
        return self.group

    @property
    def inputs(self) -> list[str]:
        return [f"{self.first} {self.second}"]

    @property
    def natural(self) -> list[str]:
        return split_lines([self.first, self.second])


@dataclass(frozen=True, slots=True)
class Labelled:
    """A text, in sentences if the source has them, with no label, one or many.

    `document`: the document that it is part of, if known.
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
    """The position of an answer: the passage number, and the characters in the passage."""

    passage: int
    start: int
    end: int


class Answer(NamedTuple):
    """A span predicted as an answer, and its probability."""

    passage: int
    start: int
    end: int
    probability: float


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its passages, and its answers, any of which is right.

    `spans` are the positions of the answers in the passages; without any, the question cannot be answered from them.
    `batch`: for BioASQ, the file that the question came in, because BioASQ is scored batch by batch.
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
