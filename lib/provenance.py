"""Where an artefact came from: fingerprints of settings, data and code, and the record kept with it."""

import ast
import hashlib
import importlib.metadata
import json
import platform
import subprocess
from collections.abc import Collection
from functools import cache
from pathlib import Path

from lib import paths
from lib.errors import StudyError

VERSIONS_SHOWN = ("torch", "transformers", "tokenizers", "numpy", "seqeval")


# Modules that cannot change a number: what they pass on is fingerprinted by value, or is only shown.
NEUTRAL = {"artefacts", "datasets", "errors", "figures", "pages", "params", "paths", "pretrained", "progress",
           "provenance", "smoke_corpora", "smoke_language"}  # fmt: skip


def to_json(content) -> str:
    return json.dumps(content, sort_keys=True, ensure_ascii=False)


def fingerprint(*parts) -> str:
    """A short hash of anything JSON can hold."""
    return hashlib.sha256(to_json(parts).encode()).hexdigest()[:16]


def file_fingerprint(path: Path) -> str:
    """A short hash of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def code_fingerprint(*modules: str, without: str = "") -> str:
    """A hash of what the named lib modules, and those they import, compute.

    NEUTRAL modules are left out unless named, and `without`, a module whose products are fingerprinted by content;
    each with all that only it imports.
    Taken from the syntax tree without docstrings: a comment or a docstring can change, and nothing is redone.
    """
    left_out = NEUTRAL - set(modules) | {without}
    return fingerprint([[name, module_code(name)] for name in sorted(reachable_modules(modules, left_out))])


def notebook_fingerprint(notebook: Path) -> str:
    """A hash of a notebook's code cells and of every lib module they import, directly or not. Prose is free."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        modules = {name for source in sources for name in imported_modules(ast.parse(source))}
    except (OSError, ValueError, KeyError, SyntaxError) as error:
        raise StudyError(f"{paths.show(notebook)}: not a notebook of plain Python cells: {error}") from None
    return fingerprint(sources, [[name, module_code(name)] for name in sorted(reachable_modules(modules))])


def imported_modules(tree: ast.AST) -> set[str]:
    """The lib modules that a piece of code imports."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "lib":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lib."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("lib.")}
    return found


def reachable_modules(modules, without: Collection[str] = ()) -> set[str]:
    """The named lib modules and all that they import, directly or not, except through those `without`."""
    found, waiting = set(), list(modules)
    while waiting:
        name = waiting.pop()
        if name not in found and name not in without:
            found.add(name)
            waiting += modules_of(name)
    return found


@cache
def modules_of(name: str) -> set[str]:
    return imported_modules(module_tree(name))


@cache
def module_tree(name: str) -> ast.Module:
    tree = ast.parse((paths.ROOT / "lib" / f"{name}.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = body[1:]
    return tree


@cache
def module_code(name: str) -> str:
    return ast.dump(module_tree(name))


@cache
def commit() -> str:
    """The repository's commit, with `+changes` when the working tree differs; `unknown` outside git."""
    try:

        def git(*words):
            return subprocess.run(["git", *words], cwd=paths.ROOT, capture_output=True, text=True, check=True).stdout

        changed = "+changes" if git("status", "--porcelain", "--", "lib", "notebooks", "params") else ""
        return git("rev-parse", "--short=12", "HEAD").strip() + changed
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on."""
    return {"python": platform.python_version()} | {n: importlib.metadata.version(n) for n in VERSIONS_SHOWN}


def record(settings: dict, inputs: dict[str, str], **facts) -> dict:
    """The record kept with an artefact: settings, fingerprints of inputs, commit, versions, and facts measured."""
    return {
        "fingerprint": fingerprint(settings, inputs),
        "settings": settings,
        "inputs": inputs,
        "commit": commit(),
        "versions": versions(),
        **facts,
    }
