"""The papers' printed numbers, each with the bounds that its rounding leaves, and what follows from them."""

import itertools
import statistics
from collections.abc import Callable, Collection
from dataclasses import dataclass

import pandas as pd

from lib.errors import StudyError, unknown
from lib.study import paths, results
from lib.study.analysis import facts

EPSILON = 1e-9  # what floats lose
PAPERS = {paper.split("-")[0]: paper for paper in results.PAPERS}  # short name -> key


@dataclass(frozen=True)
class Number:
    """A printed number, or one that follows from such, and the bounds between which rounding leaves it."""

    value: float
    low: float
    high: float
    places: int = 0  # as printed
    spread: float | None = None  # standard deviation over runs, where one is printed

    def __sub__(self, other: "Number") -> "Number":
        return Number(self.value - other.value, self.low - other.high, self.high - other.low)

    def __truediv__(self, other: "Number") -> "Number":
        """Of positive numbers."""
        return Number(self.value / other.value, self.low / other.high, self.high / other.low)

    def percent(self, of: float = 0.0) -> "Number":
        """A ratio in %, less `of`."""
        return Number(100 * self.value - of, 100 * self.low - of, 100 * self.high - of)

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    def __str__(self) -> str:
        return f"{self.value:.{self.places}f}"


Numbers = list[Number]
Table = dict[tuple[str, str, str], Number]  # (row, column, metric) -> cell, in the order of the paper


def combine(numbers: Numbers, function: Callable[[list[float]], float]) -> Number:
    """A function that rises with each of its numbers."""
    return Number(*(function([getattr(number, bound) for number in numbers]) for bound in ("value", "low", "high")))


def mean(numbers: Numbers) -> Number:
    return combine(numbers, statistics.fmean)


def f1(precision: Number, recall: Number) -> Number:
    return combine([precision, recall], statistics.harmonic_mean)


def pair(of: Numbers, than: Numbers) -> list[tuple[Number, Number]]:
    """Numbers one by one, or each with the only one of the other side; ValueError when they do not fit."""
    if len(of) == 1 or len(than) == 1:
        return list(itertools.product(of, than))
    return list(zip(of, than, strict=True))


def subtract_each(of: Numbers, than: Numbers) -> Numbers:
    return [a - b for a, b in pair(of, than)]


def count_wins(of: Numbers, than: Numbers) -> Number:
    """How many are above their counterparts: as printed, for certain, and possibly."""
    pairs = pair(of, than)
    return Number(
        sum(a.value > b.value for a, b in pairs),
        sum(a.low > b.high - EPSILON for a, b in pairs),
        sum(a.high > b.low + EPSILON for a, b in pairs),
    )


OPERATIONS: dict[str, Callable[[Numbers, Numbers], Number]] = {  # as params/audit.yaml explains them
    "mean": lambda of, than: mean(of),
    "sum": lambda of, than: combine(of, sum),
    "difference": lambda of, than: mean(of) - mean(than),
    "smallest difference": lambda of, than: combine(subtract_each(of, than), min),
    "largest difference": lambda of, than: combine(subtract_each(of, than), max),
    "ratio": lambda of, than: mean(of) / mean(than),
    "gain": lambda of, than: (mean(of) / mean(than)).percent(of=100),
    "share": lambda of, than: (combine(of, sum) / combine(than, sum)).percent(),
    "wins": count_wins,
}


def read_number(text: str) -> Number:
    """A number as a text prints it: uncertain by half a unit of its last place."""
    value, places = float(text), len(text.partition(".")[2])
    return Number(value, value - 0.5 * 10**-places, value + 0.5 * 10**-places, places)


def read_tables(counted: Collection[str] = ()) -> dict[str, Table]:
    """Every table of published/scores.csv, by paper and number (lee-4).

    A cell is uncertain by half a unit of its last place. The file does not keep zeros at the end (86.10), so the places
    are the most that the metric has in the table. `counted`: tables of counts, which are exact.
    """
    scores = pd.read_csv(paths.PUBLISHED / "scores.csv", dtype=str, keep_default_na=False)
    scores["key"] = scores["paper"].str.split("-").str[0] + "-" + scores["table"]
    places = scores["value"].str.partition(".")[2].str.rstrip("0").str.len()
    scores["places"] = places.groupby([scores["key"], scores["metric"]]).transform("max")
    tables: dict[str, Table] = {}
    for cell in scores.to_dict("records"):
        value, half = float(cell["value"]), 0.0 if cell["key"] in counted else 0.5 * 10 ** -cell["places"]
        spread = float(cell["std"]) if cell["std"] else None
        number = Number(value, value - half, value + half, cell["places"], spread)
        tables.setdefault(cell["key"], {})[cell["row"], cell["column"], cell["metric"]] = number
    return tables


def paper_of(key: str) -> str:
    """The paper of a table."""
    return PAPERS[key.split("-")[0]]


def names_in(table: Table) -> list[list[str]]:
    """Rows, columns and metrics of a table, in its order."""
    return [list(dict.fromkeys(names)) for names in zip(*table, strict=True)]


def require(kind: str, names: Collection[str], known: Collection[str], entry: str) -> None:
    """StudyError naming the entry for a name that is not known, with the nearest that are."""
    for name in names:
        if name not in known:
            raise unknown(f"{kind} in {entry}", name, known)


def find_table(tables: dict[str, Table], key: str, entry: str) -> Table:
    require("table", [key], tables, entry)
    return tables[key]


def find_cell(table: Table, row: str, column: str, metric: str, entry: str) -> Number:
    """The cell of a row and column with this metric, or with the only one that they have; StudyError without one."""
    if (row, column, metric) in table:
        return table[row, column, metric]
    found = [number for key, number in table.items() if key[:2] == (row, column)]
    if len(found) != 1:
        raise StudyError(f"{entry}: {row}, {column} has {len(found)} cells, none of them {metric}")
    return found[0]


def select(tables: dict[str, Table], wanted: list[facts.Cells | facts.Given], entry: str) -> Numbers:
    """The numbers that an entry names, in its order: rows, then columns, then metrics.

    StudyError for a table, row, column or metric that is not there, and for a name that stands for no cell.
    """
    found: Numbers = []
    for cells in wanted:
        if isinstance(cells, facts.Given):
            found.append(read_number(cells.number))
        else:
            found += take(cells.take, select_cells(find_table(tables, cells.table, entry), cells, entry))
    return found


def select_cells(table: Table, cells: facts.Cells, entry: str) -> Table:
    """The cells of a table that an entry names."""
    rows, columns, metrics = names_in(table)
    require(f"row of {cells.table}", cells.rows, rows, entry)
    require(f"column of {cells.table}", cells.columns, columns, entry)
    require(f"metric of {cells.table}", cells.metrics, metrics, entry)
    require(f"row or column of {cells.table}", cells.but, rows + columns, entry)
    named = itertools.product(cells.rows or rows, cells.columns or columns, cells.metrics or metrics)
    found = {key: table[key] for key in named if key in table and not {*key} & {*cells.but}}
    for name in (*cells.rows, *cells.columns, *cells.metrics):
        if not any(name in key for key in found):
            raise StudyError(f"{entry}: '{name}' stands for no cell of {cells.table}")
    return found


def take(how: str, cells: Table) -> Numbers:
    """The cells themselves, their mean, or one number for each row and metric."""
    if how == "each":
        return list(cells.values())
    if how == "mean":
        return [mean(list(cells.values()))]
    rows: dict[tuple[str, str], Numbers] = {}
    for (row, _, metric), number in cells.items():
        rows.setdefault((row, metric), []).append(number)
    return [combine(numbers, max if how == "highest of each row" else sum) for numbers in rows.values()]
