"""Tagged sentences from files with a word and its tag on a line."""

import re
from collections.abc import Iterator
from pathlib import Path

from lib.benchmarks.instances import Sentence
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import AGAIN, open_bytes, read_lines

DOCUMENT = "-DOCSTART-"
MARK = re.compile(rf"{DOCUMENT}(?:\s+\((\S+?)\))?(?:\s.*)?")
TAG = re.compile(r"O|[BI](?:-\S+)?")
PICO_TAG = re.compile(r"O|I-(?:INT|OUT|PAR)")


def read(path: Path) -> Iterator[Sentence]:
    """Sentences of a two-column file `word TAB tag`, blank lines between sentences; gzip or not.

    Tags are O, B, I, B-type or I-type. A mark `-DOCSTART-` ends a sentence and yields none; one with an id in brackets
    names the document of what follows. StudyError with the line for another number of columns or another tag, bytes
    that are not UTF-8, a last line that was cut off, and for a file without sentences.
    """
    return read_tagged(path, "\t", 2, TAG, "'word<TAB>tag', the tag O, B, I, B-type or I-type")


def read_merged(path: Path) -> Iterator[Sentence]:
    """Sentences as in read, the types dropped: `B-DNA` is `B`. Gu et al. 2021 (section 2.3.1) use JNLPBA so."""
    return (Sentence(s.words, [tag[0] for tag in s.tags], s.document) for s in read(path))


def read_pico(path: Path) -> Iterator[Sentence]:
    """Sentences of EBM-NLP in SciBERT's form: `word NN O tag` with single spaces; marks and errors as in read.

    A word has one tag of I-INT, I-PAR, I-OUT and O: overlaps are not in this form.
    """
    return read_tagged(path, " ", 4, PICO_TAG, "'word NN O tag', the tag I-INT, I-PAR, I-OUT or O")


def read_tagged(path: Path, separator: str, width: int, tag: re.Pattern, expected: str) -> Iterator[Sentence]:
    """Sentences of lines with `width` cells, the word first and its tag last; errors as in read, naming `expected`."""
    where, words, tags, document, number, empty = show_path(path), [], [], "", 0, True
    good: set[str] = set()  # tags seen, as there are few and matching each takes as long as all else
    for number, line in read_lines(path):
        marked = line.startswith(DOCUMENT) and MARK.fullmatch(line)
        if line.strip() and not marked:
            cells = line.split(separator)
            if cells[-1] not in good and tag.fullmatch(cells[-1]):
                good.add(cells[-1])
            if len(cells) != width or not cells[0] or cells[-1] not in good:
                known = "another tag" if len(cells) == width and cells[0] else f"{len(cells)} column(s)"
                raise StudyError(f"{where}:{number}: expected {expected}; found {known}; {AGAIN}")
            words.append(cells[0])
            tags.append(cells[-1])
            continue
        if words:
            yield Sentence(words, tags, document)
            empty, words, tags = False, [], []
        if marked:
            document = marked[1] or ""
    if words:
        require_end(path, number)
        yield Sentence(words, tags, document)
    elif empty:
        raise StudyError(f"{where}: no sentences in the file; {AGAIN}")


def require_end(path: Path, number: int) -> None:
    """StudyError when the last line of a text, of this number, has no end, as where a copy was cut off."""
    end = b""
    with open_bytes(path) as file:
        for line in file:
            end = line[-1:]
    if end != b"\n":
        raise StudyError(f"{show_path(path)}:{number}: the last line has no end: was the file cut off? {AGAIN}")
