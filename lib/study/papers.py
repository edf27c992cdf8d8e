"""The papers' tables: what fills their cells, and what their printed names stand for."""

import csv
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from lib.errors import StudyError, unknown
from lib.settings import Settings
from lib.study import paths
from lib.study.parsing import check_settings, read_yaml, show_place


class Table(Settings):
    """A published table; what fills its cells depends on its kind."""

    title: str
    paper: str
    table: str
    notebook: str
    intro: str = ""  # what a page of several tables says of this one, in Markdown
    not_run: dict[str, str] = {}  # a printed row or column that we cannot run -> why


class Run(Settings):
    """What a table, a row or a column sets for the runs behind its cells; together they define each run."""

    model: str = ""
    dataset: str = ""
    mean_of: list[list[str]] = []  # several datasets: groups, whose means are averaged
    protocol: str = ""
    differs: str = ""  # how the dataset differs from the paper's


class ScoreTable(Table):
    """Scores of fine-tuned models, and the runs that fill each cell."""

    kind: Literal["scores"]
    all: Run  # for every cell, unless its row or column overrides it
    rows: dict[str, Run]
    columns: dict[str, Run]
    ours_only: dict[str, Run] = {}  # our columns without a printed counterpart
    metrics: dict[str, str] = {}  # the paper's metric -> our score, where it is not the dataset's main one
    highest: float = 100  # its scores are printed from 0 to this


class CurveTable(Table):
    """A figure without printed values, drawn from the runs of other tables with columns of its own."""

    kind: Literal["curves"]
    of: dict[str, str] = Field(min_length=1)  # score table -> metric, as printed; empty: each row's own
    rows: list[str] = []  # of these tables; empty: every row that is a single dataset
    columns: dict[str, Run]  # settings that override those of the tables' column of that name, if any
    than: str = ""  # a column of the tables over which gains are shown; empty: scores are shown
    axis: Literal["text", "steps", "training instances"] | None = None  # None: a bar for each score
    along: Literal["columns", "rows"] = "columns"  # of the axis; the other side gives the curves
    sizes: str = ""  # the table of counts that prints the training set sizes


class Measure(Settings):
    """A number from a corpus's record, in the paper's unit."""

    of: Literal["words", "bytes"]
    unit: float = Field(gt=0)


class CorpusRow(Settings):
    """Our corpus behind a row of the paper, or only those of its sources that match the row."""

    corpus: str
    sources: list[str] = []


class CorpusTable(Table):
    """Sizes of corpora."""

    kind: Literal["corpora"]
    rows: dict[str, CorpusRow]
    columns: dict[str, Measure]


class TermTable(Table):
    """Terms, kept whole or split into tokens; the cells are in published/vocabulary_terms.csv."""

    kind: Literal["terms"]
    columns: dict[str, str]  # the paper's vocabulary -> ours
    ours_only: list[str] = []


class LengthColumn(Settings):
    vocabulary: str
    strip_accents: bool


class LengthTable(Table):
    """Mean input lengths in word pieces."""

    kind: Literal["lengths"]
    rows: dict[str, str]  # the paper's row -> dataset
    columns: dict[str, LengthColumn]


class CountNote(Settings):
    """What is known of the printed counts in some rows and columns."""

    rows: list[str]
    columns: list[str] = []  # empty: all
    why: str


class OtherCount(CountNote):
    """Another way to count, which gives the printed numbers; empty fields are as in the row."""

    rule: str = ""
    dataset: str = ""
    split: str = ""  # `all`: every one
    sums: bool = False  # it gives the sum of the row's cells


class CountTable(Table):
    """Sizes of datasets. Notebook 13 has the rules of counting, by name."""

    kind: Literal["counts"]
    columns: dict[str, str] = {"train": "train", "dev": "dev", "test": "test"}  # the paper's column -> our split
    rows: dict[str, str]  # the paper's row -> dataset
    by_task: dict[str, str] = {}  # a family of tasks -> its rule; others: instances
    by_row: dict[str, str] = {}  # a row -> its rule, where it is not that of its task
    whole: list[str] = []  # rows without a fixed split: `train` has all instances
    others: list[OtherCount] = []  # for a cell with two, the later one
    remarks: list[CountNote] = []  # where no way gives the printed number


class TimeTable(Table):
    """Days of pretraining, beside the seconds per step of the same architectures on one machine."""

    kind: Literal["times"]
    rows: dict[str, str]  # the paper's row -> model


AnyTable = Annotated[
    ScoreTable | CurveTable | CorpusTable | TermTable | LengthTable | CountTable | TimeTable,
    Field(discriminator="kind"),
]


class Name(Run):
    """What a printed row or column stands for; each kind of table uses the fields it needs."""

    vocabulary: str = ""
    corpus: str = ""
    sources: list[str] = []  # those of the corpus that match the name; empty: all
    not_run: str = ""  # why nothing stands for it


class Paper(Settings):
    """A file of params/papers/: what each name that a paper prints stands for, and the paper's tables.

    The rows and columns of each table follow from published/.
    """

    paper: str  # its key in published/
    title: str  # what pages call it: its model
    position: int  # among the papers, on pages
    all: Run = Run()  # for every table of scores without an `all` of its own
    metrics: dict[str, str] = {}  # a metric as printed -> our score, where it is not the dataset's main one
    names: dict[str, Name]
    tables: dict[str, dict]  # number -> a table without what follows from `names`; its own `names` take precedence


# The fields of a name that each kind of table needs, and the sides whose names are looked up; a table defines its other
# side itself.
NEEDED = {
    "scores": tuple(Run.model_fields),
    "corpora": ("corpus", "sources"),
    "counts": ("dataset",),
    "lengths": ("dataset",),
    "times": ("model",),
    "terms": ("vocabulary",),
    "curves": (),
}
SIDES = {"scores": ("row", "column"), "terms": ("column",)}  # of all other kinds: the rows


@cache
def read_printed(folder: Path) -> dict[tuple[str, str], dict[str, dict[str, None]]]:
    """Read the rows, columns and metrics of each table in published/, as printed, by paper and number.

    They are the keys of a dict, which keeps each name once and in order. pandas is not used because it is slow to
    import and every process of the study reads settings.
    """
    sides = {
        "scores.csv": {"row": "row", "column": "column", "metric": "metric"},
        "vocabulary_terms.csv": {"row": "term", "column": "vocabulary", "metric": "category"},
    }
    tables = {}
    for file, columns in sides.items():
        with (folder / file).open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                table = tables.setdefault((row["paper"], row["table"]), {side: {} for side in columns})
                for side, column in columns.items():
                    table[side][row[column]] = None
    return tables


@cache
def read_all(folder: Path) -> list[Paper]:
    """Read the papers of params/papers/, in the order of pages."""
    return sorted((read_yaml(path, Paper) for path in folder.glob("*.yaml")), key=lambda paper: paper.position)


def read_paper(path: Path) -> Paper:
    """Read a file of params/papers/.

    Raises StudyError, with the line and the nearest name, for a name that the paper does not print.
    """
    paper = read_yaml(path, Paper)
    names, metrics = set(), set()
    for entry in paper.tables.values():
        names.update(entry.get("ours", []))
    for (key, _), table in read_printed(paths.PUBLISHED).items():
        if key == paper.paper:
            names.update(table["row"], table["column"])
            metrics.update(table["metric"])
    check_printed(path, ("names",), paper.names, names)
    check_printed(path, ("metrics",), paper.metrics, metrics)
    return paper


def check_printed(path: Path, inside: tuple[str, ...], names: Iterable[str], printed: Collection[str]) -> None:
    """Check that names are printed. `inside`: the keys of the settings that hold them.

    Raises StudyError, with the line and the nearest name, for a name that is not.
    """
    for name in names:
        if name not in printed:
            raise StudyError(f"{show_place(path, *inside, name)}: {unknown('printed name', name, printed)}")


def build_table(path: Path, number: str) -> dict:
    """Build the settings of one table of a file of params/papers/, complete with rows and columns, as in its schema.

    Raises StudyError, with the line and the nearest names, for a name that is not printed, and for a printed name that
    has no entry.
    """
    paper, inside = read_paper(path), ("tables", number)
    location = show_place(path, *inside)
    entry = {"kind": "scores", "table": number.replace("-", " ")} | paper.tables[number] | {"paper": paper.paper}
    kind, own_names = entry["kind"], check_settings(location, entry.pop("names", {}), dict[str, Name])
    if kind not in NEEDED:
        raise StudyError(f"{location}: {unknown('kind of table', str(kind), NEEDED)}")
    if kind == "curves":  # whose values are not printed
        return entry
    printed = read_printed(paths.PUBLISHED).get((paper.paper, entry["table"]))
    if printed is None:
        raise StudyError(f"{location}: published/ has no table {entry['table']} of {paper.paper}")
    check_printed(path, (*inside, "names"), own_names, [*printed["row"], *printed["column"]])
    for side in ("row", "column"):
        check_printed(path, (*inside, f"{side}s"), entry.get(f"{side}s", {}), printed[side])
    names = paper.names | own_names
    filled = {"not_run": {}}
    for side in SIDES.get(kind, ("row",)):
        filled[f"{side}s"] = {}
        for name in printed[side]:
            meaning = look_up(name, names, kind, location)
            filled["not_run" if names[name].not_run else f"{side}s"][name] = meaning
    match kind:
        case "scores":
            entry.setdefault("all", paper.all.model_dump(exclude_defaults=True))
            filled["metrics"] = {name: score for name, score in paper.metrics.items() if name in printed["metric"]}
            filled["ours_only"] = {name: look_up(name, names, kind, location) for name in entry.pop("ours", [])}
        case "terms":
            filled["ours_only"] = entry.pop("ours", [])
    if twice := filled.keys() & entry.keys():
        raise StudyError(
            f"{location}, {sorted(twice)[0]}: follows from names, metrics and ours of the paper; leave it out"
        )
    return entry | filled


def look_up(name: str, names: dict[str, Name], kind: str, place: str) -> dict | str:
    """Return what a name stands for in a kind of table, or why nothing does. Raises StudyError if neither is given."""
    if name not in names:
        raise StudyError(f"{place}: nothing says what a printed name stands for: {unknown('name', name, names)}")
    if names[name].not_run:
        return names[name].not_run
    meaning = names[name].model_dump(exclude_defaults=True, include=set(NEEDED[kind]))
    if not meaning:
        raise StudyError(f"{place}: '{name}' says none of {', '.join(NEEDED[kind])}, for a table of {kind}")
    return meaning if kind in ("scores", "corpora") else meaning[NEEDED[kind][0]]
