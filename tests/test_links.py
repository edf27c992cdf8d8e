"""Tests of prose and of pages that GitHub renders: their links lead somewhere, README is short, prose is plain."""

import re

import nbformat

from lib.running import record
from lib.study import params, paths

PAGES = [paths.ROOT / "README.md", *sorted((paths.ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
# Constructions that native readers stumbled over.
STUMBLED_OVER = [
    r"what needs no", r"holds? to be", r"what learns from", r"one of all of them", r"the likeness of",
    r"a (?:line|row) a ", r"lies? below what", r"[Ww]hat [\w ]{3,30} is what",
]  # fmt: skip
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def name_anchor(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_every_link_leads_somewhere():
    followed, dead = 0, []
    for page in PAGES:
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            name, _, anchor = link.partition("#")
            if name.startswith(("http:", "https:")):
                continue
            target, followed = (page.parent / name).resolve() if name else page, followed + 1
            anchors = map(name_anchor, HEADING.findall(target.read_text(encoding="utf-8"))) if anchor else [anchor]
            if not target.exists() or anchor not in anchors:
                dead.append(f"{page.name}: {link}")
    assert followed > 10 and not dead


def test_pages_of_the_record_lead_to_each_other_or_to_their_sources():
    followed, dead = 0, []
    for page in paths.output("record").glob("*/notebooks/*.ipynb"):
        text = page.read_text(encoding="utf-8")
        for link in {*re.findall(r"\]\(([\w./-]+\.ipynb)\)", text), *re.findall(r'href=\\"([\w./-]+\.ipynb)\\"', text)}:
            followed += 1
            if not (page.parent / link).exists():
                dead.append(f"{page.parent.parent.name}/{page.stem}: {link}")
    assert followed > 100 and not dead


def test_introductions_of_tables_link_to_notebooks():
    links = [name for table in params.load_tables().values() for name in LINK.findall(table.intro)]
    assert links and all((paths.NOTEBOOKS / name).exists() for name in links)


def test_readme_is_short():
    text = (paths.ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.encode()) <= 8000
    summary = record.summarize_scale("laptop")
    assert summary in text and record.list_findings() in text  # README is up to date with the record
    assert len(re.findall(r"[\w.,:%]+", summary)) <= 120


def test_prose_is_plain():
    texts = {path.name: re.sub("```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL) for path in PAGES}
    for path in paths.NOTEBOOKS.glob("*.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        texts[path.name] = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    assert len(texts) > 50
    found = re.compile("|".join(STUMBLED_OVER))
    assert [(name, match[0]) for name, text in texts.items() for match in found.finditer(text)] == []
