"""Write the lists of docs/tree.md: each notebook's question and the first paragraph of each module's docstring.

python tools/tree.py
"""

import ast
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lib.running import record  # noqa: E402

PAGE = ROOT / "docs" / "tree.md"


def describe_tree() -> str:
    """Return the lists as Markdown."""
    parts = ["## Notebooks", "\n".join(map(describe_notebook, sorted(ROOT.glob("notebooks/*.ipynb"))))]
    packages = sorted(path.parent for path in ROOT.glob("lib/*/__init__.py"))
    for folder in (ROOT / "lib", *packages, ROOT / "tools", ROOT / "benchmarks"):
        lines = [line for path in sorted(folder.glob("*.py")) if (line := describe_module(path))]
        init = folder / "__init__.py"
        heading = [f"## {folder.relative_to(ROOT)}/", *([read_docstring(init)] if init.exists() else [])]
        parts += [*heading, "\n".join(lines)]
    return "\n\n".join(parts)


def describe_notebook(path: Path) -> str:
    """Return a notebook's line; its title is its question."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    title = "".join(cells[0]["source"]).splitlines()[0].removeprefix("# ")
    return f"- [{path.stem}](../notebooks/{path.name}): {title}"


def describe_module(path: Path) -> str:
    """Return a module's line; empty for `__init__` and `__main__`."""
    return "" if path.name.startswith("__") else f"- `{path.name}`: {read_docstring(path)}"


def read_docstring(path: Path) -> str:
    """Return the first paragraph of a module's docstring, on one line."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(docstring.split("\n\n")[0].split())


if __name__ == "__main__":
    record.write_between(PAGE, "tree", describe_tree)
