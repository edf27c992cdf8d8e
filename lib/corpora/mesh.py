"""MeSH: the tree numbers of a citation's headings, and the selection of citations by tree numbers."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from lib.corpora.records import Heading
from lib.corpora.rules import Selection
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import name_cells, read_csv_cells

# Columns with tree number, UI and name in the tables of two releases.
COLUMNS = ("Tree Number", "Desc Ui", "Term"), ("mesh_tree_number", "mesh_id", "mesh_name")
BRANCHES = {"A": "anatomy", "B": "organisms", "C": "diseases", "D": "chemicals and drugs", "E": "procedures"}


@dataclass(frozen=True)
class Mesh:
    """Tree numbers of every descriptor, by its UI and by its name in lower case."""

    trees: dict[str, tuple[str, ...]]

    @classmethod
    def read(cls, tables: Iterable[Path]) -> "Mesh":
        """Read the descriptors of several releases and merge their tree numbers.

        Raises StudyError if a table is malformed.
        """
        trees_by_key = defaultdict(set)
        for path in tables:
            rows = read_csv_cells(path, delimiter="\t")
            _, header = next(rows, ("", []))
            columns = min(COLUMNS, key=lambda columns: len({*columns} - {*header}))
            if missing := sorted({*columns} - {*header}):
                raise StudyError(f"{show_path(path)}:1: no column {', '.join(missing)}")
            for _, row in name_cells(header, rows):
                tree, ui, name = (row[column] for column in columns)
                trees_by_key[ui].add(tree)
                trees_by_key[name.lower()].add(tree)
        return cls({key: tuple(sorted(trees)) for key, trees in trees_by_key.items()})

    def tree_numbers(self, heading: Heading) -> tuple[str, ...]:
        """Return the tree numbers of a heading; none if the tables lack it, as they lack check tags."""
        return self.trees.get(heading.ui) or self.trees.get(heading.name.lower(), ())

    def names_by_branch(self) -> dict[str, list[str]]:
        """Return the sorted names of all descriptors of each branch in BRANCHES."""
        names = defaultdict(set)
        for key, trees in self.trees.items():
            if not (key[:1] == "D" and key[1:].isdigit()):  # a UI
                for tree in trees:
                    names[tree[0]].add(key)
        return {title: sorted(names[letter]) for letter, title in BRANCHES.items() if names[letter]}


def is_below(trees, branches) -> bool:
    """Return whether any tree number is at or below any branch: C04.557 is below C04 and C, but not below C0."""
    return any(
        tree == branch or tree.startswith(f"{branch}.") or (len(branch) == 1 and tree.startswith(branch))
        for tree in trees
        for branch in branches
    )


def selects(rule: Selection, trees: Collection[str], major: Collection[str]) -> bool:
    """Return whether a rule selects a citation with these tree numbers (`major`: those of its major headings)."""
    return (
        bool(trees)
        and all(is_below(trees, branches) for branches in rule.each_of)
        and (not rule.major_of or is_below(major, rule.major_of))
        and not is_below(trees, rule.none_of)
    )
