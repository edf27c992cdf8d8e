"""Where an artefact came from: versions of stages, fingerprints of settings and data, the record kept with it."""

import ast
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
from functools import cache
from pathlib import Path

from lib.errors import StudyError
from lib.places import ROOT, show_path

VERSIONS_SHOWN = ("torch", "transformers", "tokenizers", "numpy", "seqeval")


def to_json(content) -> str:
    return json.dumps(content, sort_keys=True, ensure_ascii=False)


def fingerprint(*parts) -> str:
    """A short hash of anything JSON can hold."""
    return hashlib.sha256(to_json(parts).encode()).hexdigest()[:16]


def file_fingerprint(path: Path) -> str:
    """A short hash of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def code_fingerprint(notebook: Path) -> str:
    """A hash of a notebook's code cells; prose is free. StudyError where they are not Python."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        for source in sources:
            ast.parse(source)
    except (OSError, ValueError, KeyError, SyntaxError) as error:
        raise StudyError(f"{show_path(notebook)}: not a notebook of plain Python cells: {error}") from None
    return fingerprint(sources)


@cache
def commit() -> str:
    """The repository's commit, with `+changes` when the working tree differs; outside git what $STUDY_COMMIT says, or
    `unknown`."""
    try:

        def git(*words):
            return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout

        changed = "+changes" if git("status", "--porcelain", "--", "lib", "notebooks", "params") else ""
        return git("rev-parse", "--short=12", "HEAD").strip() + changed
    except (OSError, subprocess.CalledProcessError):
        return os.environ.get("STUDY_COMMIT", "unknown")  # set where it came without its repository (tools/gpu.py)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on."""
    return {"python": platform.python_version()} | {n: importlib.metadata.version(n) for n in VERSIONS_SHOWN}


def identify(stage: str, version: int, settings: dict, inputs: dict[str, str]) -> dict:
    """What an artefact follows from, and the fingerprint of all that.

    `version`: of the stage's code, raised by hand when the same settings and inputs give other numbers
    (tools/witness.py notices when it was forgotten); `settings`: as resolved, `bfloat16` and not `auto`; `inputs`:
    fingerprints of content. Never of code: moving a module makes nothing stale. TypeError for what JSON cannot hold.
    """
    return {
        "stage": stage,
        "version": version,
        "settings": settings,
        "inputs": inputs,
        "fingerprint": fingerprint(stage, version, settings, inputs),
    }


def record(stage: str, version: int, settings: dict, inputs: dict[str, str]) -> dict:
    """The record kept with an artefact: its identity, and the commit and versions that made it."""
    return identify(stage, version, settings, inputs) | {"commit": commit(), "versions": versions()}
