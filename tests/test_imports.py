"""The structure of lib: the direction of imports, names used twice, the density of functions.

The modules directly in lib come first, then the packages in the order of PACKAGES; each imports only what comes before
it.
"""

import ast
from collections import Counter, defaultdict
from functools import cache
from graphlib import TopologicalSorter

from conftest import run_python

from lib.study import paths

# Each may import those before it and the modules directly in lib. The last two are the study, the others the science.
PACKAGES = ["corpora", "vocabularies", "modeling", "training", "pretraining", "benchmarks", "finetuning", "study",
            "running"]  # fmt: skip


DENSEST = 12  # mean number of syntax tree nodes per line of code


def list_modules() -> list[str]:
    """List the modules of lib, except `__init__.py` files."""
    files = [path.relative_to(paths.ROOT) for path in (paths.ROOT / "lib").rglob("*.py") if path.stem != "__init__"]
    return [".".join(path.with_suffix("").parts) for path in files]


@cache
def read_tree(module: str) -> ast.Module:
    return ast.parse((paths.ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))


def find_package(module: str) -> str:
    """Return the package of a module, '' for one directly in lib."""
    name = module.removeprefix("lib").strip(".").split(".")[0]
    return name if name and (paths.ROOT / "lib" / name).is_dir() else ""


def list_imports(module: str) -> set[str]:
    """List the modules of lib that a module imports, at once, later or for its types."""
    modules, tree = set(), read_tree(module)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "lib":
            for name in (f"{node.module}.{alias.name}" for alias in node.names):
                is_module = (paths.ROOT / f"{name.replace('.', '/')}.py").exists()
                modules.add(name if is_module else node.module)
    return modules


def test_imports_go_one_way():
    wrong = defaultdict(set)
    for module in list_modules():
        package = find_package(module)
        allowed = {"", *PACKAGES[: PACKAGES.index(package) + 1]} if package else {""}
        for name in list_imports(module):
            if find_package(name) not in allowed:
                wrong[name].add(module.removeprefix("lib."))
    assert not wrong


def test_no_modules_import_each_other_and_hardly_two_share_a_name():
    imports = {module: list_imports(module) for module in list_modules()}
    TopologicalSorter(imports).prepare()
    names = Counter(module.split(".")[-1] for module in list_modules())
    assert {name for name, count in names.items() if count > 1} == {"plan", "settings"}


def test_hardly_two_functions_share_a_name():
    defined = Counter()
    for module in list_modules():
        top = read_tree(module).body
        defined.update({node.name for node in top if isinstance(node, ast.FunctionDef | ast.ClassDef)})
    assert {name for name, count in defined.items() if count > 1} == {"main", "table"}


def test_no_function_is_denser_than_a_reader_takes_in():
    dense = {}
    for module in list_modules():
        for function in ast.walk(read_tree(module)):
            if isinstance(function, ast.FunctionDef):
                lines = Counter(node.lineno for node in ast.walk(function) if isinstance(node, ast.expr | ast.stmt))
                if len(lines) > 5 and lines.total() > DENSEST * len(lines):
                    dense[f"{module}.{function.name}"] = round(lines.total() / len(lines), 1)
    assert not dense


LOADED = """
import sys
from lib.study import open_study
open_study("laptop").dataset("bc2gm").splits
both = ("torch", "transformers", "scipy", "matplotlib")
print([name for name in (*both, "tokenizers", "sklearn", "pandas", "pyarrow") if sys.modules.get(name)])
import lib.running.cli
print([name for name in (*both, "sphinx", "lark") if sys.modules.get(name)])
"""


def test_a_study_opens_and_the_command_line_begins_without_large_libraries():
    """Every process of the study starts like this. lark would build the grammar that lib/__init__.py avoids."""
    assert run_python(LOADED) == "[]\n[]\n"
