"""Receipts: what the graph has as output of a job, a file that names what the job made below outputs/<scale>/.

Snakemake deletes what a job declares as output before it runs it again, and when it fails or is killed. The artefact
itself lies beside its receipt, and stays until another takes its place. Each is named with a fingerprint of its
content: Snakemake compares small files by their bytes, so what reads a job is done again by the next run where its
content has changed, and only there.
"""

import ast
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from pathlib import Path

from lib import artefacts, provenance
from lib.errors import StudyError
from lib.study import paths

MACHINE = {"commit", "versions", "device", "seconds", "seconds of the start"}  # that differ where the content does not
IDENTITY = {"stage", "version", "settings", "inputs", "fingerprint"}  # of a record: what is made from, not what is made
CONTENT = ("*.parquet", "*.safetensors", "config.json", "tokenizer.json", "vocab.txt")  # of a folder with a record


def write_receipt(receipt: Path, *made: Path) -> None:
    """Say what a job made, a line each: the fingerprint of its content, and where it lies."""
    lines = [f"{fingerprint_content(path)}  {path.relative_to(paths.ROOT)}\n" for path in made]
    artefacts.write_text(receipt, "".join(lines))


def fingerprint_content(path: Path) -> str:
    """Of a file's content, without times, commits and machines; of a record with that of the files beside it.

    A folder stands for all of its files. What a record says of its `content` is not read once more.
    """
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        return provenance.fingerprint([[str(f.relative_to(path)), provenance.file_fingerprint(f)] for f in files])
    if path.suffix != ".json":
        return provenance.file_fingerprint(path)
    said = drop_names(artefacts.read_json(path), MACHINE)
    if path.name != "record.json":
        return provenance.fingerprint(said)
    said = {name: value for name, value in said.items() if name not in IDENTITY}
    files = [] if "content" in said else sorted(file for kind in CONTENT for file in path.parent.glob(kind))
    return provenance.fingerprint(said, [[file.name, provenance.file_fingerprint(file)] for file in files])


def drop_names(content, names: set[str]):
    """JSON without what has one of these names, at any depth."""
    if isinstance(content, dict):
        return {name: drop_names(value, names) for name, value in content.items() if name not in names}
    return [drop_names(part, names) for part in content] if isinstance(content, list) else content


def name(scale: str, stage: str, keys: Iterable[str]) -> str:
    """The receipt of a job, as the graph calls it: from the repository's root."""
    return f"outputs/{scale}/done/{stage}/{'--'.join(keys)}"


def read_job_settings(receipt: str) -> dict | None:
    """The settings with which a job was done, as Snakemake keeps them between runs; None where it has none of it.

    They stand among its parameters, each as Python shows it. A receipt with a long name is kept elsewhere.
    """
    kept = paths.ROOT / ".snakemake" / "metadata" / urlsafe_b64encode(receipt.encode()).decode()
    try:
        told = artefacts.read_json(kept)["params"]
    except (OSError, StudyError):  # not there, or being written
        return None
    return next((ast.literal_eval(one) for one in told if one.startswith("{")), None)


def forget_deleted(scale: str) -> None:
    """Take away the receipts of what somebody has deleted, so that it is made again."""
    for receipt in paths.output(scale, "done").glob("*/*"):
        made = [line.rpartition("  ")[2] for line in receipt.read_text(encoding="utf-8").splitlines()]
        if not all((paths.ROOT / one).exists() for one in made):
            receipt.unlink()
