"""Which way imports go in lib: what is below both layers, then the science, package after package, then the study."""

import ast
import subprocess
import sys
from collections import defaultdict

from lib.study import paths

# Each may import what stands before it, and the modules that lie in lib itself.
SCIENCE = ["corpora", "vocabularies", "modeling", "training", "pretraining", "benchmarks", "finetuning"]


def find_package(module: str) -> str:
    """The package of a module, '' for one that lies in lib itself."""
    name = module.removeprefix("lib").strip(".").split(".")[0]
    return name if name and (paths.ROOT / "lib" / name).is_dir() else ""


def list_imports(module: str) -> set[str]:
    """The modules of lib that a module imports, anywhere in it."""
    tree = ast.parse((paths.ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "lib":
            for name in (f"{node.module}.{alias.name}" for alias in node.names):
                is_module = (paths.ROOT / f"{name.replace('.', '/')}.py").exists()
                found.add(name if is_module else node.module)
    return found


def test_imports_go_one_way():
    wrong = defaultdict(set)
    files = [path.relative_to(paths.ROOT) for path in (paths.ROOT / "lib").rglob("*.py") if path.stem != "__init__"]
    for module in (".".join(path.with_suffix("").parts) for path in files):
        package = find_package(module)
        if package in ("", *SCIENCE):
            allowed = {"", *SCIENCE[: SCIENCE.index(package) + 1]} if package else {""}
            for name in list_imports(module):
                if find_package(name) not in allowed:
                    wrong[name].add(module.removeprefix("lib."))
    assert not wrong


def list_loaded(program: str, names: tuple[str, ...]) -> str:
    """Which of these libraries a program has loaded at its end."""
    program = f"import sys; {program}; print([name for name in {names} if sys.modules.get(name)])"
    command = [sys.executable, "-c", program]
    return subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=True).stdout.strip()


def test_the_command_line_waits_for_no_large_library():
    """Every process of the study begins so. lark builds the grammar that lib/__init__.py leaves out."""
    large = ("torch", "transformers", "scipy", "sphinx", "matplotlib", "lark")
    assert list_loaded("import lib.study.cli", large) == "[]"


def test_a_study_opens_without_any_large_library():
    large = ("torch", "transformers", "tokenizers", "scipy", "sklearn", "pandas", "pyarrow", "matplotlib")
    program = "from lib.study import open_study; study = open_study('laptop'); study.dataset('bc2gm').splits"
    assert list_loaded(program, large) == "[]"
