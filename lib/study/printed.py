"""The papers' printed numbers with their rounding bounds, and the numbers recomputed from them."""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import product
from statistics import fmean, harmonic_mean

import pandas as pd

from lib.errors import StudyError, unknown
from lib.study import params, paths, results

EPSILON = 1e-9  # tolerance for floating-point error


@dataclass(frozen=True)
class Number:
    """A printed number, or one computed from printed numbers, with the bounds that rounding allows."""

    value: float
    low: float
    high: float
    places: int = 0  # as printed
    spread: float | None = None  # standard deviation over runs, if printed

    @classmethod
    def read(cls, text: str) -> "Number":
        """Parse a number as printed, uncertain by half a unit in its last place.

        Raises StudyError for anything else.
        """
        if not isinstance(text, str) or not re.fullmatch(r"-?\d+(\.\d+)?", text):
            raise StudyError(
                f"{text!r} is no printed number: give its digits in quotes, '0.80', since its places count"
            )
        value, places = float(text), len(text.partition(".")[2])
        return cls(value, value - 0.5 * 10**-places, value + 0.5 * 10**-places, places)

    def __sub__(self, other: "Number") -> "Number":
        return Number(self.value - other.value, self.low - other.high, self.high - other.low)

    def __truediv__(self, other: "Number") -> "Number":
        """Divide positive numbers."""
        return Number(self.value / other.value, self.low / other.high, self.high / other.low)

    def percent(self, less: float = 0.0) -> "Number":
        """Return a ratio in %, minus `less`."""
        return Number(100 * self.value - less, 100 * self.low - less, 100 * self.high - less)

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    def __str__(self) -> str:
        return f"{self.value:.{self.places}f}"


Numbers = pd.DataFrame | pd.Series | list[Number] | Number
Names = Collection[str]


def flatten(numbers: Numbers) -> list[Number]:
    """List numbers one by one, those of a frame row by row. Raises StudyError for a cell that is not printed."""
    flat = numbers.to_numpy().ravel() if isinstance(numbers, pd.DataFrame | pd.Series) else numbers
    flat = [flat] if isinstance(flat, Number) else list(flat)
    if not all(isinstance(number, Number) for number in flat):
        raise StudyError(f"a cell is not printed, of {len(flat)} that are asked for: leave it out with dropna")
    return flat


def rising(function: Callable[[list[float]], float], numbers: Numbers) -> Number:
    """Apply a function that rises with each of its arguments to the values and to both bounds."""
    flat = flatten(numbers)
    return Number(
        function([number.value for number in flat]),
        function([number.low for number in flat]),
        function([number.high for number in flat]),
    )


def mean(numbers: Numbers) -> Number:
    return rising(fmean, numbers)


def total(numbers: Numbers) -> Number:
    return rising(sum, numbers)


def highest(numbers: Numbers) -> Number:
    return rising(max, numbers)


def lowest(numbers: Numbers) -> Number:
    return rising(min, numbers)


def f1(precision: Number, recall: Number) -> Number:
    return rising(harmonic_mean, [precision, recall])


def wins(ours: Numbers, theirs: Numbers) -> Number:
    """Count the numbers above their counterparts: as printed (value), certainly (low) and possibly (high).

    A single number is compared with each on the other side. Raises StudyError if the sides differ in length or rows.
    """
    frames = [side for side in (ours, theirs) if isinstance(side, pd.DataFrame | pd.Series)]
    if len(frames) == 2 and not frames[0].index.equals(frames[1].index):
        rows = [", ".join(side.index) for side in frames]
        raise StudyError(f"numbers of other rows: {' and '.join(rows)}")
    first, second = flatten(ours), flatten(theirs)
    if 1 in (len(first), len(second)):
        pairs = list(product(first, second))
    elif len(first) == len(second):
        pairs = list(zip(first, second, strict=True))
    else:
        raise StudyError(f"{len(first)} numbers on one side, {len(second)} on the other")
    return Number(
        sum(a.value > b.value for a, b in pairs),
        sum(a.low > b.high - EPSILON for a, b in pairs),
        sum(a.high > b.low + EPSILON for a, b in pairs),
    )


@cache
def read_scores() -> pd.DataFrame:
    """Read every cell of published/scores.csv: its table (lee-4), row, column, metric and `number`.

    A cell is uncertain by half a unit in its last place. The file drops trailing zeros (86.10), so a cell has the most
    decimal places that its metric has in the table. Counts are exact.
    """
    scores = pd.read_csv(paths.PUBLISHED / "scores.csv", dtype=str, keep_default_na=False)
    author = scores["paper"].str.split("-").str[0]
    scores["table"] = author + "-" + scores["table"]
    decimals = scores["value"].str.partition(".")[2].str.rstrip("0")
    scores["places"] = decimals.str.len().groupby([scores["table"], scores["metric"]]).transform("max")
    scores["exact"] = scores["table"].isin(params.load_tables("counts"))
    scores["number"] = [read_cell(cell) for cell in scores.to_dict("records")]
    return scores[["table", "row", "column", "metric", "number"]]


def read_cell(cell: dict) -> Number:
    value, places = float(cell["value"]), cell["places"]
    half = 0.0 if cell["exact"] else 0.5 * 10**-places
    spread = float(cell["std"]) if cell["std"] else None
    return Number(value, value - half, value + half, places, spread)


def read(table: str, metric: str = "", rows: Names = (), columns: Names = (), but: Names = ()) -> pd.DataFrame:
    """Return a printed table as Numbers, with its rows and columns in their order, or those that are given.

    `but`: rows and columns to leave out. A cell that is not printed is NaN. Raises StudyError, with the nearest names,
    for a name that the table does not have, and if cells have several metrics and none is named.
    """
    scores = read_scores()
    require("table", [table], scores["table"])
    cells = scores[scores["table"] == table]
    if metric:
        require(f"metric of {table}", [metric], cells["metric"])
        cells = cells[cells["metric"] == metric]
    if cells.duplicated(["row", "column"]).any():
        raise StudyError(f"{table} prints several metrics in a cell: name one of {', '.join(cells['metric'].unique())}")
    require(f"row of {table}", rows, cells["row"])
    require(f"column of {table}", columns, cells["column"])
    require(f"row or column of {table}", but, [*cells["row"], *cells["column"]])
    wide = cells.pivot(index="row", columns="column", values="number").rename_axis(index=None, columns=None)
    kept_rows = [row for row in list(rows) or cells["row"].unique() if row not in but]
    kept_columns = [column for column in list(columns) or cells["column"].unique() if column not in but]
    return wide.loc[kept_rows, kept_columns]


def require(kind: str, names: Names, known: Iterable[str]) -> None:
    """Check that names are known. Raises StudyError, with the nearest names, for one that is not."""
    for name in names:
        if name not in set(known):
            raise unknown(kind, name, set(known))


def read_one(table: str, row: str, column: str, metric: str = "") -> Number:
    """Return a printed cell. Raises StudyError as `read` does."""
    return read(table, metric, rows=[row], columns=[column]).iat[0, 0]


def paper_of(table: str) -> str:
    """Return the paper of a table. Raises StudyError, with the nearest names, if there is none."""
    papers = {paper.split("-")[0]: paper for paper in results.list_papers()}  # as tables name them -> key
    require("paper in the name of a table", [table.split("-")[0]], papers)
    return papers[table.split("-")[0]]


def judge_number(stated: Number, recomputed: Number, exact: bool = False, averaging: float = 0.0) -> dict:
    """Compare a printed number with the recomputed one, for a line of the audit.

    `agrees`: the recomputed number rounds to the printed one. `rounding`: it can, within the rounding of the cells that
    it is computed from. `averaging`: it can if it is lowered by up to `averaging`. `differs`: it cannot. `exact`: the
    number is a count of comparisons and so not itself rounded. The column `rounding` is half the width of the range
    that rounding allows.
    """
    half = 0.0 if exact else stated.half
    # Unless `exact`, the ends are excluded, since they need every cell at its own bound at once.
    edge = EPSILON if exact else -EPSILON
    low, high = recomputed.low - half - edge, recomputed.high + half + edge
    if abs(stated.value - recomputed.value) <= half + EPSILON:
        verdict = "agrees"
    elif low < stated.value < high:
        verdict = "rounding"
    else:
        verdict = "averaging" if low - averaging < stated.value < high else "differs"
    return {
        "printed": str(stated),
        "recomputed": round(recomputed.value, 4),
        "difference": round(stated.value - recomputed.value, 4),
        "rounding": round(recomputed.half + half, 4),
        "excused_by_rounding": "yes" if verdict in ("agrees", "rounding") else "no",
        "verdict": verdict,
    }


def check(
    paper: str, where: str, what: str, stated: str | Number, recomputed: Number, *,
    kind: str = "text", exact: bool = False, averaging: float = 0.0, note: str = "",
) -> dict:  # fmt: skip
    """Make a line of the audit: a stated number beside the recomputed one. Raises StudyError for an unknown paper."""
    require("paper", [paper], results.list_papers())
    stated = stated if isinstance(stated, Number) else Number.read(stated)
    judged = judge_number(stated, recomputed, exact, averaging)
    return {"paper": paper, "where": where, "kind": kind, "what": what} | judged | {"note": note}


def count(
    paper: str, where: str, what: str, stated: str, ours: Numbers, theirs: Numbers, *,
    at_least: bool = False, note: str = "",
) -> dict:  # fmt: skip
    """Make a line on how many numbers exceed others. `at_least`: `stated` is the least that the text allows."""
    recomputed, least = wins(ours, theirs), Number.read(stated).value
    if at_least:
        note = f"at least; {note}" if note else "at least"
    line = check(paper, where, what, stated, recomputed, exact=True, note=note)
    if at_least and least <= recomputed.high:
        line["verdict"] = "agrees" if least <= recomputed.value else "rounding"
        line["excused_by_rounding"] = "yes"
    return line
