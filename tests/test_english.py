"""The prose of notebooks, README and docs: constructions that native readers stumbled over stay out."""

import re

import nbformat

from lib.study import paths

STUMBLED_OVER = [
    r"what needs no", r"holds? to be", r"what learns from", r"one of all of them", r"the likeness of",
    r"a (?:line|row) a ", r"lies? below what", r"[Ww]hat [\w ]{3,30} is what",
]  # fmt: skip
PROSE = re.compile("|".join(STUMBLED_OVER))
CODE = re.compile(r"```.*?```", re.DOTALL)


def test_prose_is_plain():
    texts = {}
    for path in paths.NOTEBOOKS.glob("*.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        texts[path.name] = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    for path in (paths.ROOT / "README.md", *paths.ROOT.glob("docs/*.md")):
        texts[path.name] = CODE.sub("", path.read_text(encoding="utf-8"))
    assert len(texts) > 50
    assert [(name, match[0]) for name, text in texts.items() for match in PROSE.finditer(text)] == []
