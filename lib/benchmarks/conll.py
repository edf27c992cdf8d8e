"""Tagged sentences from files with one word and its tag per line."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from lib.benchmarks import metrics
from lib.benchmarks.instances import Sentence
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import ends_with_line, read_lines

DOCUMENT = "-DOCSTART-"
MARK = re.compile(rf"{DOCUMENT}(?:\s+\((\S+?)\))?(?:\s.*)?")
TAG = re.compile(r"O|[BIESLU](?:-\S+)?")
BIO = {"E": "I", "L": "I", "S": "B", "U": "B"}  # letters of BIOES and BILOU -> those of BIO
PICO_TAGS = {"O", *(f"{letter}-{element}" for letter in "BI" for element in metrics.PICO)}
ANY_WIDTH = range(2, 30)


def read_conll(path: Path) -> Iterator[Sentence]:
    """Read sentences from a file with two columns, word and tag, or CoNLL-2003's four; blank lines separate sentences.

    Tabs separate the columns, or single spaces in a file without tabs. Tags are O, B, I, B-type or I-type; those of
    BIOES and BILOU are converted to BIO. A `-DOCSTART-` line ends a sentence and yields none; an id in brackets names
    the document that follows. A line that begins with `#` is a comment if its number of columns differs from the rows'.
    Raises StudyError with the line if the number of columns or a tag is wrong, bytes are not UTF-8, or the file has no
    sentences. Also raises it if a type occurs only in the last line and that line has no end, because the file may be
    cut off.
    """
    return read_tagged(path, (2, 4), "'word<TAB>tag', the tag O, B, I, B-type or I-type")


def read_any(path: Path) -> Iterator[Sentence]:
    """Read sentences as in read_conll from any number of columns, the tag last.

    Runs of spaces separate as one space does. A `-DOCSTART-` line without an id names a document by its line number.
    """
    expected = ("a word and, in the last column, its tag on each line (O, B-type, I-type, or the letters of BIOES or "
                "BILOU), or, in a table, a header with the columns text and label")  # fmt: skip
    return read_tagged(path, ANY_WIDTH, expected, loose=True)


def read_merged(path: Path) -> Iterator[Sentence]:
    """Read sentences as in read_conll, without types: `B-DNA` becomes `B`.

    Gu et al. 2021 (section 2.3.1) use JNLPBA in this form.
    """
    return (
        Sentence(sentence.words, [tag[0] for tag in sentence.tags], sentence.document) for sentence in read_conll(path)
    )


def read_pico(path: Path) -> Iterator[Sentence]:
    """Read sentences of EBM-NLP, one tag a word, as in read_conll. Also raises StudyError for any other element."""
    for sentence in read_conll(path):
        if not PICO_TAGS.issuperset(sentence.tags):
            raise StudyError(f"{show_path(path)}: expected O, or tags of INT, OUT and PAR; was the file cut off?")
        yield sentence


def read_tagged(path: Path, widths: Sequence[int], expected: str, loose: bool = False) -> Iterator[Sentence]:
    """Read sentences from lines of cells, the word first and its tag last.

    `widths`: the numbers of cells allowed in the first row, whose number and separator all others match. `loose`: as in
    read_any. Raises StudyError as in read_conll, naming `expected`.
    """
    location, words, tags, document, empty = show_path(path), [], [], "", True
    separator, newest_tag_line = "", 0
    bio_tags: dict[str, str] = {}  # tags seen -> BIO, cached because matching each takes as long as all else
    for number, line in read_lines(path):
        mark = line.startswith(DOCUMENT) and MARK.fullmatch(line)
        if line.strip() and not mark:
            delimiter = separator or ("\t" if "\t" in line else " ")
            *cells, tag_cell = line.split() if loose and delimiter == " " else line.split(delimiter)
            if tag_cell not in bio_tags and TAG.fullmatch(tag_cell):
                bio_tags[tag_cell] = BIO.get(tag_cell[0], tag_cell[0]) + tag_cell[1:]
                newest_tag_line = number
            fits = len(cells) + 1 in widths and cells[0] != ""
            if fits and tag_cell in bio_tags:
                words.append(cells[0])
                tags.append(bio_tags[tag_cell])
                separator, widths = delimiter, (len(cells) + 1,)
            elif not (line.startswith("#") and (not fits or not separator and delimiter == " ")):
                problem = "another tag" if fits else f"{len(cells) + 1} column(s)"
                raise StudyError(f"{location}:{number}: expected {expected}; found {problem}")
            continue
        if words:
            yield Sentence(words, tags, document)
            empty, words, tags = False, [], []
        if mark:
            document = mark[1] or (f"line {number}" if loose else "")
    if words:
        seen_once = (
            newest_tag_line == number and tag_cell != "O" and [tag[2:] for tag in bio_tags].count(tag_cell[2:]) == 1
        )
        if seen_once and not ends_with_line(path):
            raise StudyError(f"{location}:{number}: the last line has a type of its own and no end; was the file cut "
                             "off? If not, end the line")  # fmt: skip
        yield Sentence(words, tags, document)
    elif empty:
        raise StudyError(f"{location}: no sentences in the file")
