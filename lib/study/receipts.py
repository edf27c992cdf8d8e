"""Receipts: the output files of jobs in the graph; each names what a job made below outputs/<scale>/.

Snakemake deletes the declared output of a job before rerunning it, and when it fails or is killed. The artefact itself
is a separate file, and stays until another replaces it. A receipt lists each artefact with a fingerprint of its
content: Snakemake compares small files by their bytes, so the next run repeats the jobs that read it only if its
content has changed.
"""

import ast
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from pathlib import Path

from lib import artefacts, provenance
from lib.errors import StudyError
from lib.study import paths

MACHINE = {"commit", "versions", "device", "seconds", "seconds of the start"}  # may differ for the same content
IDENTITY = {"stage", "version", "settings", "inputs", "fingerprint"}  # of a record: what something is made from
CONTENT = ("*.parquet", "*.safetensors", "config.json", "tokenizer.json", "vocab.txt")  # of a folder with a record


def write_receipt(receipt: Path, *made: Path) -> None:
    """Write what a job made, one line each: the fingerprint of its content, and its path."""
    lines = [f"{fingerprint_content(path)}  {path.relative_to(paths.ROOT)}\n" for path in made]
    artefacts.write_text(receipt, "".join(lines))


def fingerprint_content(path: Path) -> str:
    """Return the fingerprint of a file's content, without times, commits and machines.

    For a record it includes the files beside it, unless the record has their `content`, which is not read again. For a
    folder it covers all files.
    """
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        return provenance.fingerprint([[str(f.relative_to(path)), provenance.file_fingerprint(f)] for f in files])
    if path.suffix != ".json":
        return provenance.file_fingerprint(path)
    entries = drop_names(artefacts.read_json(path), MACHINE)
    if path.name != "record.json":
        return provenance.fingerprint(entries)
    entries = {name: value for name, value in entries.items() if name not in IDENTITY}
    files = [] if "content" in entries else sorted(file for pattern in CONTENT for file in path.parent.glob(pattern))
    return provenance.fingerprint(entries, [[file.name, provenance.file_fingerprint(file)] for file in files])


def drop_names(content, names: set[str]):
    """Drop the entries with these names from JSON, at any depth."""
    if isinstance(content, dict):
        return {name: drop_names(value, names) for name, value in content.items() if name not in names}
    return [drop_names(item, names) for item in content] if isinstance(content, list) else content


def name(scale: str, stage: str, keys: Iterable[str]) -> str:
    """Return the name of a job's receipt in the graph: its path from the repository's root."""
    return f"outputs/{scale}/done/{stage}/{'--'.join(keys)}"


def read_job_settings(receipt: str) -> dict | None:
    """Return the settings of a job's last run, as Snakemake keeps them between runs; None if there are none.

    They are one of the job's parameters, each stored as a Python literal. None too for a receipt with a long name,
    which Snakemake keeps elsewhere.
    """
    path = paths.ROOT / ".snakemake" / "metadata" / urlsafe_b64encode(receipt.encode()).decode()
    try:
        parameters = artefacts.read_json(path)["params"]
    except (OSError, StudyError):  # not there, or being written
        return None
    return next((ast.literal_eval(parameter) for parameter in parameters if parameter.startswith("{")), None)


def forget_deleted(scale: str) -> None:
    """Delete the receipts of artefacts that somebody has deleted, so that these are made again."""
    for receipt in paths.output(scale, "done").glob("*/*"):
        outputs = [line.rpartition("  ")[2] for line in receipt.read_text(encoding="utf-8").splitlines()]
        if not all((paths.ROOT / output).exists() for output in outputs):
            receipt.unlink()
