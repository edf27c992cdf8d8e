"""What systems without a transformer score, as printed: params/systems.yaml."""

from functools import cache

from pydantic import Field, field_validator, model_validator

from lib.benchmarks import registry
from lib.errors import StudyError, unknown
from lib.settings import Settings
from lib.study import paths, results
from lib.study.parsing import read_yaml

KIND = "published without a transformer"  # beside the kinds of lib/benchmarks/baselines.py, which are measured
CELL = ("paper", "table", "row", "column", "metric")  # of published/scores.csv


class SystemSource(Settings):
    said: str
    url: str = Field(pattern="^https://")


class System(Settings):
    """A system, and what it scores on datasets: as printed, or the cell of a paper that quotes it."""

    method: str
    source: str
    of: str = ""
    scores: dict[str, float | list[str]] = Field(min_length=1)

    @field_validator("scores")
    @classmethod
    def check(cls, scores):
        for dataset, score in scores.items():
            if dataset not in registry.DATASETS:
                raise ValueError(str(unknown("dataset", dataset, registry.DATASETS)))
            if isinstance(score, float) and not 1 < score <= 100:
                raise ValueError(f"{dataset}: a score is in percent")
            if isinstance(score, list) and len(score) != len(CELL):
                raise ValueError(f"{dataset}: a cell is {', '.join(CELL)}")
        return scores


class Systems(Settings):
    sources: dict[str, SystemSource]
    systems: list[System]

    @model_validator(mode="after")
    def check(self):
        if missing := {system.source for system in self.systems} - {*self.sources}:
            raise ValueError(str(unknown("source", sorted(missing)[0], self.sources)))
        return self


@cache
def read_systems() -> Systems:
    """What is printed of systems without a transformer."""
    return read_yaml(paths.PARAMS / "systems.yaml", Systems)


def list_rows() -> list[dict]:
    """A row for each system and dataset, as of lib/benchmarks/baseline_scores.py, with its source, in the registry's
    order."""
    known, order = read_systems(), list(registry.DATASETS)
    rows = [
        {"dataset": dataset, "metric": registry.lookup(dataset).main_score, "kind": KIND, "method": system.method,
         "score": find_score(score), "note": system.of,
         "source": f"{known.sources[system.source].said}, {known.sources[system.source].url}"}
        for system in known.systems
        for dataset, score in system.scores.items()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: order.index(row["dataset"]))


def find_score(score: float | list[str]) -> float:
    """A score as it stands in params/systems.yaml, or in the cell that it names; StudyError where no cell is so."""
    if isinstance(score, float):
        return score
    paper, table, row, column, metric = score
    cells = results.read_published(paper, table)
    found = cells[(cells["row"] == row) & (cells["column"] == column) & (cells["metric"] == metric)]
    if len(found) != 1:
        where = f"params/systems.yaml: table {table} of {paper}"
        raise StudyError(f"{where} has {len(found)} cells {row}, {column}, {metric}")
    return float(found["value"].iloc[0])
