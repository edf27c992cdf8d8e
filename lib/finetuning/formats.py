"""File formats for new text and predictions: plain lines, JSON lines, tables, PubTator, BRAT."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from lib.benchmarks.instances import BREAKS
from lib.benchmarks.own_tables import read_table_cells
from lib.benchmarks.pubtator import HEAD
from lib.errors import StudyError
from lib.finetuning.new_text import Entity
from lib.places import show_path
from lib.reading import read_first_line, read_json_lines, read_lines, read_text

FIELDS = "start", "end", "type", "text", "probability"
DIGITS = 4  # of a probability in a file


class NewText(NamedTuple):
    """A text or a pair of texts, and its location as `file:line`.

    `numbered`: the file gives no id; its place in the file counts as one.
    """

    where: str
    id: str
    text: str
    second: str | None = None
    numbered: bool = False


# Input: files with text.


def read_input(path: Path) -> Iterator[NewText]:
    """Yield the documents of a file, or of the .txt files in a folder, one at a time.

    .jsonl: JSON lines with `text` and optionally `text2` and `id`; .csv and .tsv: the same as columns with a header. A
    file whose first line is `PMID|t|title` is PubTator, and one without a suffix whose first line begins like a JSON
    object is JSON lines. Any other file has one document per line. The default id is the number of the line, in JSON
    lines and tables that of the record. Files may be compressed (.gz). Raises StudyError with the line for text that is
    not UTF-8, is missing or is malformed, and for an empty file or folder.
    """
    empty = True
    for document in choose_reader(path)(path):
        check_document(document)
        yield document
        empty = False
    if empty:
        raise StudyError(f"{show_path(path)}: {'no .txt files in the folder' if path.is_dir() else 'no text in it'}")


def choose_reader(path: Path) -> Callable[[Path], Iterator[NewText]]:
    """Return the reader for a file by its name, else by its first line. Raises StudyError if the file is missing."""
    if path.is_dir():
        return read_folder
    if not path.exists():
        raise StudyError(f"no file {show_path(path)}")
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix in READERS:
        return READERS[suffix]
    first_line = read_first_line(path)
    if not suffix and first_line.startswith('{"'):
        return read_json_texts
    head = HEAD.fullmatch(first_line)
    return read_pubtator_texts if head and head[2] == "t" else read_plain


def check_document(document: NewText) -> None:
    """Raise StudyError for a lone surrogate, which JSON can escape but UTF-8 cannot encode."""
    try:
        "".join(filter(None, (document.id, document.text, document.second))).encode()
    except UnicodeEncodeError:
        raise StudyError(f"{document.where}: half of a surrogate pair; mend the text") from None


def read_plain(path: Path) -> Iterator[NewText]:
    """Yield one document per line; blank lines are skipped."""
    for number, line in read_lines(path):
        if line.strip():
            yield NewText(f"{show_path(path)}:{number}", str(number), line, numbered=True)


def read_json_texts(path: Path) -> Iterator[NewText]:
    for number, (location, record) in enumerate(read_json_lines(path, blank=True), start=1):
        yield make_document(location, record, number)


def read_text_table(path: Path) -> Iterator[NewText]:
    """Yield the documents of a table, read like the tables that classifiers are trained on."""
    for number, (location, row) in enumerate(read_table_cells(path), start=1):
        if "text" not in row:
            raise StudyError(f"{show_path(path)}:1: expected a column text in the header")
        yield make_document(location, row, number)


def make_document(place: str, record: dict, number: int) -> NewText:
    """Make a document from a JSON object or a table row.

    Raises StudyError if it has no text or a field has the wrong type.
    """
    text, second, id = record.get("text"), record.get("text2"), record.get("id")
    if not isinstance(text, str) or not text.strip():
        raise StudyError(f'{place}: no text under "text"; put one there, or leave the line out')
    if not isinstance(second, str | None) or not isinstance(id, str | int | None):
        raise StudyError(f'{place}: "text2" and "id" are text, where they are given')
    return NewText(place, str(number if id is None else id), text, second, numbered=id is None)


def read_pubtator_texts(path: Path) -> Iterator[NewText]:
    """Yield title and abstract joined by a line end, as in pubtator.read_abstracts; mentions are skipped."""
    title, id, location = None, "", ""
    expected = "expected 'PMID|t|title', then 'PMID|a|abstract' of one PMID"
    for number, line in read_lines(path):
        location, head = f"{show_path(path)}:{number}", HEAD.fullmatch(line)
        if head and head[2] == "t" and title is None:
            id, title = head[1], head[3]
        elif head and head[2] == "a" and title is not None and head[1] == id:
            yield NewText(location, id, f"{title}\n{head[3]}")
            title = None
        elif line.strip() and (title is not None or not line.startswith(f"{id}\t")):
            raise StudyError(f"{location}: {expected}")
    if title is not None:
        raise StudyError(f"{location}: {expected}: was the file cut off?")


def read_folder(path: Path) -> Iterator[NewText]:
    """Yield a document for each .txt file, even an empty one; its id is the file's name without .txt."""
    for file in sorted(path.glob("*.txt")):
        yield NewText(show_path(file), file.stem, read_text(file))


READERS = {".jsonl": read_json_texts, ".csv": read_text_table, ".tsv": read_text_table}


# Output: predictions.


def to_cells(*values) -> str:
    """Format a row of a TSV table, with spaces for tabs and line ends in cells."""
    return "\t".join(" ".join(str(value).split()) for value in values) + "\n"


def to_json_line(record: dict) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"


def describe_entity(text: str, entity: Entity) -> dict:
    """Return an entity with its words as a dict with keys FIELDS."""
    words = text[entity.start : entity.end]
    return dict(zip(FIELDS, (*entity[:3], words, round(entity.probability, DIGITS)), strict=True))


def write_json_line(document: NewText, entities: Sequence[Entity]) -> str:
    records = [describe_entity(document.text, entity) for entity in entities]
    return to_json_line({"id": document.id, "text": document.text, "entities": records})


def write_rows(document: NewText, entities: Sequence[Entity]) -> str:
    return "".join(to_cells(document.id, *describe_entity(document.text, entity).values()) for entity in entities)


def write_pubtator(document: NewText, entities: Sequence[Entity]) -> str:
    """Format a PubTator record with its mentions, without concept ids (-); a text's first line is its title.

    Raises StudyError if the format cannot hold the id.
    """
    id = document.id
    if not re.fullmatch(r"[^|\s]+", id):
        raise StudyError(f"{document.where}: the id {id!r} has spaces or |, which PubTator cannot hold")
    title, _, abstract = document.text.partition("\n")
    lines = [f"{id}|t|{BREAKS.sub(' ', title)}", f"{id}|a|{BREAKS.sub(' ', abstract)}"]
    for entity in entities:
        start, end, kind, words, _ = describe_entity(document.text, entity).values()
        words = BREAKS.sub(" ", words)
        lines.append(f"{id}\t{start}\t{end}\t{words}\t{kind}\t-")
    return "\n".join([*lines, "", ""])


def write_brat(document: NewText, entities: Sequence[Entity]) -> str:
    """Format the lines of an .ann file: each entity, with its probability as a note."""
    lines = []
    for number, entity in enumerate(entities, start=1):
        start, end, kind, words, probability = describe_entity(document.text, entity).values()
        lines.append(f"T{number}\t{'_'.join(kind.split())} {start} {end}\t{words}\n")
        lines.append(f"#{number}\tAnnotatorNotes T{number}\tprobability {probability}\n")
    return "".join(lines)


def write_judged(document: NewText, prediction: dict) -> str:
    """Format a classifier's prediction for a document as a line of JSON."""
    texts = {"text": document.text} | ({"text2": document.second} if document.second else {})
    return to_json_line({"id": document.id} | texts | round_all(prediction))


def write_judged_row(document: NewText, prediction: dict) -> str:
    """Format it as a table row: id; label, comma-separated labels or number; each probability."""
    rounded = round_all(prediction)
    rates = rounded.pop("probabilities", {})
    (answer,) = rounded.values()
    if isinstance(answer, list):
        answer = ", ".join(answer)
    return to_cells(document.id, answer, *rates.values())


def round_all(prediction: dict) -> dict:
    """Round all numbers of a prediction to DIGITS."""
    rounded = dict(prediction)
    if "number" in prediction:
        rounded["number"] = round(prediction["number"], DIGITS)
    if "probabilities" in prediction:
        rounded["probabilities"] = {name: round(rate, DIGITS) for name, rate in prediction["probabilities"].items()}
    return rounded
