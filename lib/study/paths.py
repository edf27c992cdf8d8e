"""Paths of the study's files, from their keys. `--` joins keys; a key never contains it."""

import os
import re
from pathlib import Path

from lib.benchmarks import registry
from lib.errors import StudyError
from lib.places import ROOT, real_data, show_path

PARAMS = ROOT / "params"
PUBLISHED = ROOT / "published"
NOTEBOOKS = ROOT / "notebooks"
MADE_UP = ROOT / "made-up"  # every dataset in its own format, with generated text


def output(scale: str, *parts: str) -> Path:
    """Return a path below outputs/<scale>/."""
    return ROOT.joinpath("outputs", scale, *parts)


def recorded(path: Path) -> Path:
    """Return the twin of a path below outputs/ in outputs/record/, which is committed."""
    return output("record", *path.relative_to(output("")).parts)


def find(path: Path) -> Path:
    """Return a file below outputs/<scale>/ if a run here made it, else its twin in the record, which may be missing."""
    return path if path.exists() else recorded(path)


def find_all(scale: str, folder: str, pattern: str) -> list[Path]:
    """List the files of a folder below outputs/<scale>/, plus those that only the record has, sorted by name."""
    folders = (output("record", scale, folder), output(scale, folder))
    files = {path.name: path for parent in folders for path in parent.glob(pattern)}
    return [files[name] for name in sorted(files)]


def data(scale: str) -> Path:
    """Return the folder of raw data: made up at scale smoke, else $STUDY_DATA or data/."""
    return MADE_UP if scale == "smoke" else real_data()


def require_data(scale: str) -> Path:
    """Return the folder of raw data. Raises StudyError that says how to get it if it is missing."""
    folder = data(scale)
    if not folder.is_dir():
        if study_data := os.environ.get("STUDY_DATA"):
            raise StudyError(f"STUDY_DATA names {study_data}, which is not there: ./run_all.sh data makes it")
        raise StudyError(
            f"no folder {show_path(folder)} of real data for scale '{scale}': run ./run_all.sh data, or set STUDY_DATA"
        )
    return folder


def test_sentences(scale: str) -> Path:
    return output(scale, "test-sentences")


def documents(scale: str, source: str, file: str) -> Path:
    return output(scale, "documents", source, file)


def corpus(scale: str, key: str) -> Path:
    return output(scale, "corpora", key)


def vocabulary(scale: str, key: str) -> Path:
    return output(scale, "vocabularies", key)


def tokens(scale: str, corpus_key: str, vocabulary_key: str) -> Path:
    return output(scale, "tokens", f"{corpus_key}--{vocabulary_key}")


def vectors(scale: str, corpora: list[str], vocabulary_key: str, width: int) -> Path:
    return output(scale, "vectors", f"{'--'.join(corpora)}--{vocabulary_key}--{width}")


def model(scale: str, key: str) -> Path:
    return output(scale, "models", key)


def released(repository: str) -> Path | None:
    """Return where public weights are on disk: a folder of this repository for ./, a hub name below $RELEASED.

    None for a hub name if $RELEASED is not set.
    """
    if repository.startswith("./"):
        return ROOT / repository
    return Path(os.environ["RELEASED"], repository) if os.environ.get("RELEASED") else None


def predictions(scale: str, model_key: str, dataset: str, protocol: str, run: str) -> Path:
    return output(scale, "predictions", f"{model_key}--{dataset}--{protocol}--{run}.parquet")


def intermediate(scale: str, model_key: str, dataset: str, protocol: str) -> Path:
    return output(scale, "intermediate", f"{model_key}--{dataset}--{protocol}.safetensors")


def tuning(scale: str, model_key: str, dataset: str, protocol: str) -> Path:
    return output(scale, "tuning", f"{model_key}--{dataset}--{protocol}.sqlite")


def results(scale: str, model_key: str, dataset: str, protocol: str) -> Path:
    return output(scale, "results", f"{model_key}--{dataset}--{protocol}.json")


def find_page(scale: str, model_key: str, dataset: str, protocol: str) -> Path | None:
    """Return the executed notebook of a run, which covers its task family under that protocol; None if missing."""
    family = registry.lookup(dataset).family
    return next(iter(find_all(scale, "notebooks", f"*--{model_key}--{protocol}--{family}.ipynb")), None)


def explored(scale: str, model_key: str) -> Path:
    """Return the folder where page 02 keeps what it made from an encoder."""
    return output(scale, "explored", model_key)


def evaluations(scale: str) -> Path:
    return output(scale, "evaluations")


def evaluation(scale: str, model_key: str, protocol: str) -> Path:
    return evaluations(scale) / f"{model_key}--{protocol}.json"


def result_file(scale: str, model_key: str, protocol: str) -> Path:
    """Return a result file's path, apart from the evaluations, where each JSON file is a command-line target."""
    return output(scale, "result-files", f"{model_key}--{protocol}.json")


def leaderboard(scale: str) -> Path:
    """Return the leaderboard's path, apart from the recorded tables, because it holds scores that others sent."""
    return output(scale, "leaderboard", "scores.csv")


def own_data(scale: str, key: str) -> Path:
    return output(scale, "own-data", key)


def own_baselines(scale: str, key: str) -> Path:
    return output(scale, "baselines", key, "baselines.csv")


def table(scale: str, key: str) -> Path:
    return output(scale, "tables", f"{key}.csv")


def figure(scale: str, key: str) -> Path:
    return output(scale, "figures", key)


def to_key(name: str) -> str:
    """Turn a name into a key of the graph: lower case, with a hyphen for each run of signs other than dots."""
    return re.sub("[^a-z0-9.]+", "-", name.lower()).strip("-.")
