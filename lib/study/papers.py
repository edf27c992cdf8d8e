"""The papers' tables: of each kind of table, what fills its cells."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from lib.settings import Settings


class Table(Settings):
    """A published table; what fills its cells depends on its kind."""

    title: str
    paper: str
    table: str
    notebook: str
    not_run: dict[str, str] = {}  # a row or column of the paper that we cannot run -> why


class Run(Settings):
    """What a row, a column or all of a table says of the runs behind a cell; together they say everything."""

    model: str = ""
    dataset: str = ""
    mean_of: list[list[str]] = []  # datasets in place of one: the mean over groups of the mean over a group's sets
    protocol: str = ""


class ScoreTable(Table):
    """Scores of fine-tuned models: which runs fill which cell."""

    kind: Literal["scores"]
    all: Run  # of every cell where neither its row nor its column says otherwise
    rows: dict[str, Run]
    columns: dict[str, Run]
    ours_only: dict[str, Run] = {}  # columns of ours without a printed counterpart
    metrics: dict[str, str] = {}  # the paper's metric -> our score, where it is not the dataset's main one
    shown: str = ""  # the metric that is drawn and read first; none where each row has its own


class CurveTable(Table):
    """A figure whose values are not printed: scores of runs that are those of other tables, but for the columns."""

    kind: Literal["curves"]
    of: dict[str, str] = Field(min_length=1)  # tables of scores -> the metric, as printed; empty: each row's own
    rows: list[str] = []  # of these tables; empty: every one that is one dataset
    columns: dict[str, Run]  # what is set besides what the tables set in their column of that name, if they have one
    than: str = ""  # a column of the tables; what is shown is the gain over it, or nothing: the score itself
    axis: Literal["share of the text", "steps", "training instances"] | None = None  # None: a bar for each score
    along: Literal["columns", "rows"] = "columns"  # what the axis runs along: a curve for each row, or for each column
    sizes: str = ""  # the table of counts that prints the training instances
    said: str  # by the paper, of the figure


class Measure(Settings):
    """A number of a corpus's record, in the paper's unit."""

    of: Literal["words", "bytes"]
    unit: float = Field(gt=0)


class CorpusRow(Settings):
    """A corpus of ours, or those of its sources that stand for a row of the paper."""

    corpus: str
    sources: list[str] = []


class CorpusTable(Table):
    """Sizes of corpora."""

    kind: Literal["corpora"]
    rows: dict[str, CorpusRow]
    columns: dict[str, Measure]


class TermTable(Table):
    """Terms, whole or in pieces; the cells are in published/vocabulary_terms.csv."""

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
    other_vocabularies: dict[str, LengthColumn]  # what was tried in their place


class Count(Settings):
    """Another way to count a cell: what is not named is as in its row. Split `all` is every split together."""

    count: str = ""  # a name in lib/study/analysis/counts.py
    dataset: str = ""
    split: str = ""
    why: str


class CountRow(Settings):
    dataset: str
    count: str
    splits: dict[str, str] = {}  # column of the paper -> split, where it is not as in the other rows
    otherwise: dict[str, Count] = {}  # column of the paper -> what gives the printed number
    remarks: dict[str, str] = {}  # column of the paper -> what is known of a cell that nothing explains
    sum_of: Count | None = None  # what gives the sum of the row's printed numbers


class CountTable(Table):
    """Sizes of datasets."""

    kind: Literal["counts"]
    columns: dict[str, str]  # the paper's column -> our split
    rows: dict[str, CountRow]


class TimeTable(Table):
    """Days of pretraining, beside the seconds that a step of the same architectures takes on one machine."""

    kind: Literal["times"]
    rows: dict[str, str]  # the paper's row -> model
    beside: str  # the row that the others are compared with
    batch_size: int = Field(gt=0)  # rows in a timed step, the same for all
    repetitions: int = Field(gt=1)

    @model_validator(mode="after")
    def check(self):
        if self.beside not in self.rows:
            raise ValueError("beside names one of the rows")
        return self


AnyTable = Annotated[
    ScoreTable | CurveTable | CorpusTable | TermTable | LengthTable | CountTable | TimeTable,
    Field(discriminator="kind"),
]
