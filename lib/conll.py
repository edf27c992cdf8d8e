"""Tagged sentences from the two-column format of the NER sets."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lib import paths
from lib.errors import StudyError


@dataclass(frozen=True)
class Sentence:
    """A tagged sentence: words and their BIO tags, equally many."""

    words: list[str]
    tags: list[str]


def read(path: Path) -> Iterator[Sentence]:
    """Sentences of a two-column file `word TAB tag`, blank lines between sentences, BIO tags.

    `-DOCSTART-` blocks are document marks and yield nothing. Raises StudyError with file and line for a line
    that is not two columns, a tag that is not O, B, I, B-type or I-type, bytes that are not UTF-8, a last line
    that was cut off, and a file without sentences.
    """
    where = paths.show(path)
    words: list[str] = []
    tags: list[str] = []
    found = False
    number = 0
    with open(path, encoding="utf-8", newline="\n") as file:
        try:
            for number, line in enumerate(file, start=1):
                if not line.endswith("\n") and line.strip():
                    raise StudyError(f"{where}:{number}: the last line has no end: was the file cut off?")
                line = line.rstrip("\r\n")
                if not line.strip():
                    if words:
                        yield Sentence(words, tags)
                        found, words, tags = True, [], []
                    continue
                columns = line.split("\t")
                if columns[0] == "-DOCSTART-":
                    if words:
                        yield Sentence(words, tags)
                        found, words, tags = True, [], []
                    continue
                if len(columns) != 2 or not columns[0]:
                    raise StudyError(f"{where}:{number}: expected 'word<TAB>tag', found {len(columns)} column(s)")
                word, tag = columns
                if tag != "O" and tag[:2] not in ("B-", "I-") and tag not in ("B", "I"):
                    raise StudyError(f"{where}:{number}: tag {tag!r} is not O, B, I, B-type or I-type")
                words.append(word)
                tags.append(tag)
        except UnicodeDecodeError as error:
            raise StudyError(f"{where}: after line {number}: not UTF-8 text ({error.reason})") from None
    if words:
        found = True
        yield Sentence(words, tags)
    if not found:
        raise StudyError(f"{where}: no sentences in the file")


def count_mentions(sentences: list[Sentence]) -> int:
    """Gold entities, counted as B tags."""
    return sum(tag[0] == "B" for sentence in sentences for tag in sentence.tags)
