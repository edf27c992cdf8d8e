"""What stages and pages watch for changes: settings, versions, raw files, printed numbers, tables.

A change reruns the jobs that watch it. The code of lib is not watched: each computation has a version, which is raised
by hand. `--again` reruns anything.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from lib import provenance
from lib.benchmarks import registry
from lib.study import claims, params, paths

if TYPE_CHECKING:
    from lib.study import Study


def dump(kind: str, *named: str, **options) -> list:
    """Return the settings of the named keys, or of all registered ones."""
    return [params.load(kind, key).model_dump(**options) for key in named or params.keys(kind)]


def budget(study: "Study", *named: str) -> dict:
    """Return the named settings of a scale, or all of them."""
    return study.budget.model_dump(include=set(named) or None)


def raw_files_state(files: Iterable[Path]) -> list:
    """Return name, size and time of raw files: enough to see that one has changed."""
    return [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in files]


def readers() -> dict[str, int]:
    """Return the version of every dataset's reader, which is raised when the same files are read differently."""
    return {key: dataset.version for key, dataset in registry.DATASETS.items()}


def dataset_files(study: "Study") -> list:
    """Return the state of the datasets' files and the versions of their readers."""
    return [raw_files_state(registry.files(study.data)), readers()]


def vocabulary_files(study: "Study") -> list:
    return raw_files_state(sorted(study.data.glob("vocab/*.txt")))


def printed() -> list[str]:
    """Return fingerprints of the papers' numbers and claims, so that pages that show them follow a correction."""
    return [provenance.file_fingerprint(path) for path in sorted(paths.PUBLISHED.glob("*.csv"))]


def judged() -> list:
    """Return what pages that show verdicts watch: the version of the claims' tests, the papers' numbers and claims."""
    return [claims.VERSION, *printed()]


def recorded_tables(scale: str, *named: str) -> list[str]:
    """Return fingerprints of the named tables that a scale has in the record."""
    files = [paths.recorded(paths.table(scale, name)) for name in named]
    return [provenance.file_fingerprint(file) for file in files if file.exists()]


def measured() -> list[str]:
    """Return fingerprints of the committed measurements of benchmarks/."""
    return [provenance.file_fingerprint(file) for file in sorted(paths.output("record", "benchmarks").glob("*.csv"))]


def dump_tables(*kinds: str) -> list:
    """Return the settings of the published tables and figures of some kinds."""
    return dump("tables", *params.load_tables(*kinds))


def timed(study: "Study") -> dict:
    """Return what decides the size of a scale's models and steps, and how steps are computed."""
    names = ("bodies", "vocabulary_size", "sequence_length", "precision", "threads", "pretraining", "made_up")
    return budget(study, *names)
