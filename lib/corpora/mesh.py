"""MeSH: from the headings of a citation to tree numbers, and from tree numbers to a choice of citations."""

from collections import defaultdict
from functools import cache
from pathlib import Path

from lib.corpora.records import Heading, read_lines
from lib.corpora.settings import Selection
from lib.errors import StudyError
from lib.places import show_path
from lib.study import params, paths

# The two releases at hand, with their columns; a descriptor has the tree numbers of both.
FILES = {
    "corpora/mesh/mesh2017-tree.tsv.gz": ("Tree Number", "Desc Ui", "Term"),
    "corpora/mesh/mesh2015-tree-numbers.tsv.gz": ("mesh_tree_number", "mesh_id", "mesh_name"),
}
BRANCHES = {"A": "anatomy", "B": "organisms", "C": "diseases", "D": "chemicals and drugs", "E": "procedures"}


@cache
def load(scale: str) -> dict[str, tuple[str, ...]]:
    """Tree numbers of every descriptor, by its UI and by its name in lower case; StudyError for a malformed table."""
    found = defaultdict(set)
    for path in files(scale):
        columns = FILES[str(path.relative_to(paths.data(scale)))]
        positions = None
        for number, line in read_lines(path):
            cells = [cell.strip('"') for cell in line.split("\t")]
            if positions is None:
                if missing := set(columns) - set(cells):
                    raise StudyError(f"{show_path(path)}:1: no column {', '.join(sorted(missing))}")
                positions = [cells.index(column) for column in columns]
                continue
            if len(cells) <= max(positions):
                raise StudyError(f"{show_path(path)}:{number}: too few columns: was the file cut off?")
            tree, ui, name = (cells[i] for i in positions)
            found[ui].add(tree)
            found[name.lower()].add(tree)
    return {key: tuple(sorted(trees)) for key, trees in found.items()}


def files(scale: str) -> list[Path]:
    """The tables of descriptors that are in the data folder."""
    return [path for name in FILES if (path := paths.data(scale) / name).is_file()]


def tree_numbers(heading: Heading, scale: str) -> tuple[str, ...]:
    """The tree numbers of a heading; none for one that the tables do not know, such as a check tag."""
    table = load(scale)
    return table.get(heading.ui) or table.get(heading.name.lower(), ())


def names_by_branch(scale: str) -> dict[str, list[str]]:
    """The names of all descriptors of each branch in BRANCHES, in order."""
    found = defaultdict(set)
    for key, trees in load(scale).items():
        if not (key[:1] == "D" and key[1:].isdigit()):  # a UI
            for tree in trees:
                found[tree[0]].add(key)
    return {title: sorted(found[letter]) for letter, title in BRANCHES.items() if found[letter]}


def is_below(trees, branches) -> bool:
    """Whether any tree number stands at or below any branch: C04.557 below C04 and C, but not below C0."""
    return any(
        tree == branch or tree.startswith(f"{branch}.") or (len(branch) == 1 and tree.startswith(branch))
        for tree in trees
        for branch in branches
    )


def selects(rule: Selection, trees: set[str], major: set[str]) -> bool:
    """Whether a citation with these tree numbers (`major`: those of its major headings) is chosen by a rule."""
    if rule.complement_of:
        return not selects(params.load("selections", rule.complement_of), trees, major)
    return (
        bool(trees)
        and all(is_below(trees, branches) for branches in rule.each_of)
        and (not rule.major_of or is_below(major, rule.major_of))
        and not is_below(trees, rule.none_of)
    )
