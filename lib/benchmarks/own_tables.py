"""Tables of the user's texts: CSV, TSV or JSON lines, whose column names determine the task.

| columns | task |
|---|---|
| text, label | one of several classes |
| text, labels | any number of labels, separated by `;` or, in JSON, a list |
| text, text2, label | two texts, one of several classes |
| text, text2, score | two texts, a number: how similar they are |

A column `document` names the document of a row; rows of one document stay together if a file is divided. Other columns
are not read. Malformed input raises StudyError, which names file and line and quotes no text.
"""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from lib.benchmarks.instances import Labelled, Pair
from lib.benchmarks.tabular import strip_quotes
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import Cells, name_cells, read_csv_cells, read_first_line, read_json_lines, read_lines

ANSWERS = "label", "labels", "score"
COLUMNS = "text", "text2", *ANSWERS, "document"
FAMILIES = {  # columns -> family, metric
    ("text", "label"): ("documents", "class-f1"),
    ("text", "labels"): ("documents", "label-f1"),
    ("text", "text2", "label"): ("inference", "class-f1"),
    ("text", "text2", "score"): ("similarity", "pearson"),
}  # fmt: skip
FORMS = " or ".join(", ".join(columns) for columns in FAMILIES)
Row = Mapping[str, object]


def find_columns(path: Path) -> tuple[str, ...]:
    """Return the columns that determine a table's task, a key of FAMILIES. Raises StudyError for other columns."""
    _, first_row = next(read_table_cells(path), ("", None))
    if first_row is None:
        raise StudyError(f"{show_path(path)}: no rows in the file")
    location = f"{show_path(path)}:1"
    columns = tuple(name for name in COLUMNS[:-1] if name in first_row)
    if columns in FAMILIES:
        return columns
    if columns == ("text", "score"):
        raise StudyError(
            f"{location}: no task of the study predicts a number of one text; name the column label to take its values "
            "as classes, or add a column text2 to compare two texts"
        )
    header = ", ".join(name for name in first_row if isinstance(name, str)) or "none"
    raise StudyError(f"{location}: expected the columns {FORMS}; found {header}: rename or delete columns")


def read_instances(path: Path, columns: tuple[str, ...]) -> list[Labelled | Pair]:
    """Read the instances of a table with these columns; ids are row numbers. Raises StudyError if it is malformed."""
    instances: list[Labelled | Pair] = []
    for number, (location, row) in enumerate(read_table_cells(path), start=1):
        if missing := [name for name in columns if name not in row]:
            raise StudyError(f"{location}: no {' and '.join(missing)}, which the other rows or files have")
        texts = [read_word(location, row, name) for name in columns if name.startswith("text")]
        document, answer = format_value(row.get("document")), read_answer(location, row, columns[-1])
        if len(texts) == 1:
            instances.append(Labelled(str(number), (texts[0],), answer, document))
        else:
            label = answer[0] if isinstance(answer, tuple) else answer
            instances.append(Pair(str(number), *texts, label, document))
    if not instances:
        raise StudyError(f"{show_path(path)}: no rows in the file")
    if columns[-1] == "label":
        refuse_scores(path, instances)
    return instances


def read_answer(place: str, row: Row, column: str) -> tuple[str, ...] | float:
    """Return labels as a tuple, or a score."""
    if column == "score":
        try:
            score = float(str(row[column]))
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise StudyError(f"{place}: the score is not a number")
        return score
    if column == "label":
        return (read_word(place, row, column),)
    labels = row[column] if isinstance(row[column], list) else parse_list(format_value(row[column]))
    if isinstance(row[column], dict) or not all(isinstance(label, str | int) for label in labels):
        raise StudyError(f"{place}: expected labels separated by ; or a JSON list of them")
    return tuple(sorted({str(label).strip() for label in labels} - {""}))


def format_value(value: object) -> str:
    """Return a cell as text, including a JSON number such as 0; null gives an empty string."""
    return "" if value is None else str(value).strip()


def parse_list(written: str) -> list:
    """Parse the labels of one cell: a JSON list, or separated by `;`."""
    if written.lstrip().startswith("["):
        try:
            return json.loads(written)
        except ValueError:
            return [None]
    return written.split(";")


def read_word(place: str, row: Row, name: str) -> str:
    """Return the text of a cell. Raises StudyError if it is blank or, in JSON, a list or an object."""
    value = row[name]
    if isinstance(value, list | dict):
        raise StudyError(f"{place}: expected a text or a number under {name}")
    if value is None or not (text := str(value).strip()):
        raise StudyError(f"{place}: {name} is blank: fill it or delete the row")
    return text


def refuse_scores(path: Path, instances: list[Labelled | Pair]) -> None:
    """Raise StudyError if all labels are numbers and some are not whole, because they look like scores."""
    labels = {instance.label if isinstance(instance, Pair) else instance.labels[0] for instance in instances}
    try:
        numbers = [float(label) for label in labels]
    except ValueError:
        return
    if any(number % 1 for number in numbers):
        raise StudyError(
            f"{show_path(path)}: its labels are {len(labels)} numbers, not all of them whole; name the column score to "
            "have a number predicted of two texts, or write the classes in words"
        )


def read_table_cells(path: Path) -> Iterator[tuple[str, dict]]:
    """Yield `file:line` and the cells of each row by column.

    JSON lines name their columns; other tables have a header, whose case is ignored. A CSV is separated by semicolons
    if its first line has more of them than commas.
    """
    name = path.name.removesuffix(".gz").lower()
    if name.endswith(".jsonl"):
        yield from read_json_lines(path, blank=True)
        return
    if name.endswith(".csv"):
        first_line = read_first_line(path)
        rows = read_csv_cells(path, delimiter=";" if first_line.count(";") > first_line.count(",") else ",")
    else:
        rows = read_tsv(path)
    location, header = next(rows, ("", []))
    names = [cell.strip().lower() for cell in header]
    if len(set(names)) < len(names):
        raise StudyError(f"{location}: a column stands there twice")
    yield from name_cells(names, rows)


def read_tsv(path: Path) -> Cells:
    """Yield the non-blank lines of a TSV as rows; a cell that is quoted as a whole loses its quotes."""
    for number, line in read_lines(path):
        if line.strip():
            yield f"{show_path(path)}:{number}", list(map(strip_quotes, line.split("\t")))
