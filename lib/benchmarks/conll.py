"""Tagged sentences from files with a word and its tag on a line."""

import re
from collections.abc import Iterator
from pathlib import Path

from lib.benchmarks.instances import Sentence
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import ends_with_line, read_lines

DOCUMENT = "-DOCSTART-"
MARK = re.compile(rf"{DOCUMENT}(?:\s+\((\S+?)\))?(?:\s.*)?")
TAG = re.compile(r"O|[BIESLU](?:-\S+)?")
BIO = {"E": "I", "L": "I", "S": "B", "U": "B"}  # letters of BIOES and BILOU -> those of BIO
PICO_TAG = re.compile(r"O|I-(?:INT|OUT|PAR)")
ANY_WIDTH = tuple(range(2, 30))


def read_conll(path: Path) -> Iterator[Sentence]:
    """Sentences of a file with two columns, word and tag, or CoNLL-2003's four; blank lines between sentences.

    Tabs separate the columns, or single spaces in a file without tabs. Tags are O, B, I, B-type or I-type, and those of
    BIOES and BILOU, which come as BIO. A mark `-DOCSTART-` ends a sentence and yields none; one with an id in brackets
    names the document of what follows. A line that begins with `#` and has another number of columns than the rows is a
    comment. StudyError with the line for another number of columns or another tag, for a type that only the last line
    has when that has no end, as where a file was cut, for bytes that are not UTF-8, and for a file without sentences.
    """
    return read_tagged(path, "", (2, 4), TAG, "'word<TAB>tag', the tag O, B, I, B-type or I-type")


def read_any(path: Path) -> Iterator[Sentence]:
    """Sentences as in read_conll, of any number of columns, the tag last; runs of spaces separate as one does, and
    each mark `-DOCSTART-` without an id names a document by its line."""
    expected = ("a word and, in the last column, its tag on each line (O, B-type, I-type, or the letters of BIOES or "
                "BILOU), or, in a table, a header with the columns text and label")  # fmt: skip
    return read_tagged(path, "", ANY_WIDTH, TAG, expected, loose=True)


def read_merged(path: Path) -> Iterator[Sentence]:
    """Sentences as in read_conll, the types dropped: `B-DNA` is `B`. Gu et al. 2021 (section 2.3.1) use JNLPBA so."""
    return (Sentence(s.words, [tag[0] for tag in s.tags], s.document) for s in read_conll(path))


def read_pico(path: Path) -> Iterator[Sentence]:
    """Sentences of EBM-NLP in SciBERT's form: `word NN O tag` with single spaces; marks and errors as in read_conll,
    and no comments.

    A word has one tag of I-INT, I-PAR, I-OUT and O: overlaps are not in this form.
    """
    return read_tagged(path, " ", (4,), PICO_TAG, "'word NN O tag', the tag I-INT, I-PAR, I-OUT or O")


def read_tagged(
    path: Path, separator: str, widths: tuple[int, ...], tag: re.Pattern, expected: str, loose: bool = False
) -> Iterator[Sentence]:
    """Sentences of lines of cells, the word first and its tag last; errors as in read_conll, naming `expected`.

    `separator`: of the cells, of which the first row has one of the `widths`, and all others as many; empty: as the
    first row has it. `loose`: as read_any says.
    """
    where, words, tags, document, empty = show_path(path), [], [], "", True
    own, added = not separator, 0  # whether comments are known; the line of the newest tag
    good: dict[str, str] = {}  # tags seen, in BIO, as there are few and matching each takes as long as all else
    for number, line in read_lines(path):
        marked = line.startswith(DOCUMENT) and MARK.fullmatch(line)
        if line.strip() and not marked:
            between = separator or ("\t" if "\t" in line else " ")
            *cells, last = line.split() if loose and between == " " else line.split(between)
            if last not in good and tag.fullmatch(last):
                good[last] = BIO.get(last[0], last[0]) + last[1:]
                added = number
            fits = len(cells) + 1 in widths and cells[0] != ""
            if fits and last in good:
                words.append(cells[0])
                tags.append(good[last])
                separator, widths = between, (len(cells) + 1,)
            elif not (own and line.startswith("#") and (not fits or not separator and between == " ")):
                known = "another tag" if fits else f"{len(cells) + 1} column(s)"
                raise StudyError(f"{where}:{number}: expected {expected}; found {known}")
            continue
        if words:
            yield Sentence(words, tags, document)
            empty, words, tags = False, [], []
        if marked:
            document = marked[1] or (f"line {number}" if loose else "")
    if words:
        alone = own and added == number and last != "O" and [tag[2:] for tag in good].count(last[2:]) == 1
        if alone and not ends_with_line(path):
            raise StudyError(f"{where}:{number}: the last line has a type of its own and no end; was the file cut off? "
                             "If not, end the line")  # fmt: skip
        yield Sentence(words, tags, document)
    elif empty:
        raise StudyError(f"{where}: no sentences in the file")
