"""Tagged sentences from a text and the offsets of its mentions; every mention is kept or counted."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from lib.benchmarks.instances import Mention, Sentence
from lib.corpora import cleaning
from lib.errors import StudyError

WORD = re.compile(r"\w+|[^\w\s]")  # a run of letters, digits and underscores, or one other character
LINE = r"\n"
BLANK_LINE = r"\n\s*\n"
OFFSET = re.compile(r"[0-9]{1,9}")  # a character offset as files write it


@dataclass(frozen=True, slots=True)
class Annotation:
    """A mention in one or more parts: `spans` are (start, end) in characters of the text, in text order.

    `kind`: as in its tag, `Disorder`.
    """

    kind: str
    spans: tuple[tuple[int, int], ...]


def tag_text(
    text: str,
    mentions: Iterable[Mention | Annotation],
    document: str = "",
    paragraph: str = LINE,
    left_out: Counter | None = None,
) -> list[Sentence]:
    """Return sentences with tags B-kind and I-kind; of a mention in parts, only the first word of the first part has B.

    Words are matches of WORD, also cut where a mention begins or ends. Sentences end at `paragraph`, a regular
    expression, and where cleaning.split_sentences ends them, but never inside a part of a mention. Of overlapping
    mentions, keep_longest decides which are tagged; `left_out` counts the others. Raises StudyError if a mention is
    outside the text or holds no word, or if the sentence splitter changes the text.
    """
    kept, lost = keep_longest(mentions)
    if left_out is not None:
        left_out["mentions that overlap a longer one"] += len(lost)
    parts = sorted((start, end, m.kind, i == 0) for m in kept for i, (start, end) in enumerate(m.spans))
    if any(not 0 <= start < end <= len(text) for start, end, _, _ in parts):
        raise StudyError(f"document {document}: a mention lies outside its text; check its offsets")
    part_at = {start: (kind, first) for start, _, kind, first in parts}
    inside = {position for start, end, _, _ in parts for position in range(start + 1, end)}
    breaks = {start for start, _ in find_sentences(text, paragraph, f"document {document}")} - inside
    edges = sorted({0, len(text), *breaks, *part_at, *(end for _, end, _, _ in parts)})
    sentences, words, tags = [], [], []
    for edge, following in pairwise(edges):  # between two edges lies one part of a mention, or none
        if edge in breaks and words:
            sentences.append(Sentence(words, tags, document))
            words, tags = [], []
        found = [word[0] for word in WORD.finditer(text, edge, following)]
        words += found
        if edge not in part_at:
            tags += ["O"] * len(found)
        elif found:
            kind, first = part_at[edge]
            tags += [f"{'B' if first else 'I'}-{kind}", *[f"I-{kind}"] * (len(found) - 1)]
        else:
            raise StudyError(f"document {document}: a mention holds no word; check its offsets")
    return [*sentences, Sentence(words, tags, document)] if words else sentences


def find_words(text: str) -> list[list[tuple[int, int]]]:
    """Return the (start, end) of the words of each sentence, as tag_text finds them without mentions."""
    starts = [start for start, _ in find_sentences(text, LINE, "a text")]
    sentences = ([word.span() for word in WORD.finditer(text, *bounds)] for bounds in pairwise([*starts, len(text)]))
    return [words for words in sentences if words]


def find_sentences(text: str, paragraph: str, place: str) -> Iterator[tuple[int, int]]:
    """Yield the (start, end) of each sentence of each paragraph. Raises StudyError as in locate_sentences."""
    sentences = (sentence for lines in re.split(paragraph, text) for sentence in cleaning.split_sentences(lines))
    return locate_sentences(sentences, text, place)


def find_span(place: str, text: str, first: str, last: str, words: str) -> tuple[int, int]:
    """Return the offsets of a mention as numbers, without the spaces that it begins or ends with.

    Raises StudyError if they are none, or if the text has other words there; spaces and how letters are composed
    (NFC) do not count.
    """
    if not OFFSET.fullmatch(first) or not OFFSET.fullmatch(last):
        raise StudyError(f"{place}: expected two offsets")
    start, end = int(first), int(last)
    marked = text[start:end]
    expected, found = (unicodedata.normalize("NFC", part).split() for part in (words, marked))
    if not found or found != expected:
        raise StudyError(f"{place}: the text has other words at {start} to {end}; offsets count characters from 0")
    return start + len(marked) - len(marked.lstrip()), start + len(marked.rstrip())


def keep_longest(mentions: Iterable[Mention | Annotation]) -> tuple[list, list]:
    """Divide mentions into those that can all be tagged and those that overlap a longer one; ties go to the first.

    The length of a mention in parts is the sum of its parts, in characters.
    """
    kept, lost, taken_spans = [], [], []
    for mention in sorted(mentions, key=lambda m: (-sum(end - start for start, end in m.spans), m.spans)):
        if any(a < end and start < z for a, z in mention.spans for start, end in taken_spans):
            lost.append(mention)
        else:
            kept.append(mention)
            taken_spans.extend(mention.spans)
    return kept, lost


def locate_sentences(sentences: Iterable[str], text: str, place: str) -> Iterator[tuple[int, int]]:
    """Yield the (start, end) of each sentence that a splitter made. Raises StudyError if the splitter changed one."""
    end = 0
    for sentence in sentences:
        start = text.find(sentence, end)
        if start < 0:
            raise StudyError(f"{place}: the splitter changed a sentence; use one that only cuts")
        end = start + len(sentence)
        yield start, end
