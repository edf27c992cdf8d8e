"""The origin of artefacts: versions of stages, fingerprints of settings and data, and the record kept with each."""

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
    """Return a short hash of anything that JSON can hold."""
    return hashlib.sha256(to_json(parts).encode()).hexdigest()[:16]


def file_fingerprint(path: Path) -> str:
    """Return a short hash of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def code_fingerprint(notebook: Path) -> str:
    """Return a hash of a notebook's code cells, without its prose. Raises StudyError if they are not Python."""
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
    """Return the repository's commit, with `+changes` if lib, notebooks or params differ from it.

    Outside git: $STUDY_COMMIT, else `unknown`.
    """
    try:

        def git(*words):
            return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout

        suffix = "+changes" if git("status", "--porcelain", "--", "lib", "notebooks", "params") else ""
        return git("rev-parse", "--short=12", "HEAD").strip() + suffix
    except (OSError, subprocess.CalledProcessError):
        return os.environ.get("STUDY_COMMIT", "unknown")  # set if the code came without its repository (tools/gpu.py)


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that results depend on."""
    return {"python": platform.python_version()} | {n: importlib.metadata.version(n) for n in VERSIONS_SHOWN}


def identify(stage: str, version: int, settings: dict, inputs: dict[str, str]) -> dict:
    """Return all that determines an artefact, and its fingerprint.

    `version`: of the stage's code, increased by hand when the same settings and inputs give other numbers
    (tools/witness.py notices if this was forgotten); `settings`: resolved, so `bfloat16` and not `auto`; `inputs`:
    fingerprints of content, never of code, so that moving a module makes nothing stale. Raises TypeError for what JSON
    cannot hold.
    """
    return {
        "stage": stage,
        "version": version,
        "settings": settings,
        "inputs": inputs,
        "fingerprint": fingerprint(stage, version, settings, inputs),
    }


def record(stage: str, version: int, settings: dict, inputs: dict[str, str]) -> dict:
    """Return the record kept with an artefact: its identity, and the commit and versions that made it."""
    return identify(stage, version, settings, inputs) | {"commit": commit(), "versions": versions()}
