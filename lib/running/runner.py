"""Execution of one notebook: its parameters, a title of its own, and a copy that is whole or marked failed."""

import fcntl
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import papermill
from jupyter_client.manager import AsyncKernelManager
from nbformat import NotebookNode
from papermill.engines import NBClientEngine, NotebookExecutionManager, papermill_engines
from traitlets.config import Config

from lib import artefacts, parent, progress
from lib.errors import StudyError, explain_error
from lib.places import show_path
from lib.running.submit import name_copy
from lib.study import params, paths, receipts

if TYPE_CHECKING:
    from lib.running.warm import Kernel

LOCK_SECONDS = 30  # how long a killed run may take to release its lock


def run(
    scale: str,
    notebook: str,
    name: str,
    parameters: dict,
    expected: Iterable[Path] = (),
    kernel: "Kernel | None" = None,
) -> Path:
    """Execute a notebook of the study and write the copy to outputs/<scale>/notebooks/<name>.ipynb.

    The copy stays under outputs/<scale>/running/ until it is whole; a failed copy moves to failed/ instead. `kernel`:
    one that the warm parent has forked; otherwise a new one is started. Raises StudyError for a notebook that fails
    (with its message), for example because it does not have one of the parameters (lib/study/pages.py), and for one
    that ends without having written `expected`.
    """
    source = paths.NOTEBOOKS / f"{notebook}.ipynb"
    running = paths.output(scale, "running", f"{name}.ipynb")
    running.parent.mkdir(parents=True, exist_ok=True)
    prepare_environment(scale, running.with_suffix(".progress"))
    with hold_lock(running.with_suffix(".lock"), name):
        problem = execute(with_title(source, name.removeprefix(notebook)), running, parameters, kernel)
        if problem is None and (missing := [show_path(path) for path in expected if not path.exists()]):
            problem = f"the notebook ended without writing {', '.join(missing)}"
        target = paths.output(scale, "notebooks" if problem is None else "failed", f"{name}.ipynb")
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(running, target)
        if problem is None:
            paths.output(scale, "failed", target.name).unlink(missing_ok=True)
        for leftover in (".progress", ".lock"):
            running.with_suffix(leftover).unlink(missing_ok=True)
    if problem is not None:
        raise StudyError(problem)
    return target


def list_parameters(source: Path) -> dict[str, str]:
    """Return the types of a notebook's parameters, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            name: parameter["inferred_type_name"] for name, parameter in papermill.inspect_notebook(str(source)).items()
        }


def prepare_environment(scale: str, progress_file: Path) -> None:
    """Set the environment variables that the kernel inherits."""
    threads = str(params.load("scales", scale).threads)
    os.environ |= {
        "OMP_NUM_THREADS": threads,
        "TOKENIZERS_PARALLELISM": "false",
        progress.FILE: str(progress_file),
    }


@contextmanager
def hold_lock(path: Path, name: str) -> Iterator[None]:
    """Hold the lock of a run, whose file a finished run deletes. Raises StudyError if another process holds it."""
    for _ in range(LOCK_SECONDS * 2):
        with open(path, "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.5)
                continue
            if os.fstat(lock.fileno()).st_nlink:  # else the file was deleted while this process waited
                yield
                return
    raise StudyError(f"{name} is already running in another process")


def with_title(source: Path, keys: str) -> NotebookNode:
    """Return the notebook with its keys in the title, so that copies can be told apart; a table gives its own title."""
    notebook, key = nbformat.read(source, as_version=4), keys.strip("-")
    if key:
        first, *others = notebook.cells[0].source.splitlines()
        title = params.load("tables", key).title if key in params.keys("tables") else first.removeprefix("# ")
        notebook.cells[0].source = "\n".join([f"# {key.replace('--', ' · ')}: {title}", *others])
    return notebook


class Copy(NotebookExecutionManager):
    """The copy of a running notebook, saved before each code cell and while a long one prints.

    papermill saves at both ends of every cell, which takes half of its own work or more.
    """

    saves = True

    def cell_start(self, cell: NotebookNode, *place, **given) -> None:
        self.saves = cell.cell_type == "code"
        super().cell_start(cell, *place, **given)

    def cell_complete(self, cell: NotebookNode, *place, **given) -> None:
        self.saves = False
        super().cell_complete(cell, *place, **given)

    def notebook_complete(self, **given) -> None:
        self.saves = True
        super().notebook_complete(**given)

    def save(self, **given) -> None:
        if self.saves:  # whole, so that a stopped run leaves the outputs of the cells before
            with artefacts.whole_file(Path(self.output_path)) as temporary:
                nbformat.write(self.nb, temporary)
            self.last_save_time = self.now()


class Engine(NBClientEngine):
    """papermill's engine with a copy that is saved less often."""

    @classmethod
    def execute_notebook(cls, nb, kernel_name, output_path, progress_bar, **options) -> NotebookNode:
        copy = Copy(nb, output_path, progress_bar=progress_bar)
        copy.notebook_start()
        try:
            cls.execute_managed_notebook(copy, kernel_name, **options)
        finally:
            copy.notebook_complete()
        return copy.nb


papermill_engines.register("study", Engine)


def manager_of(kernel: "Kernel") -> type[AsyncKernelManager]:
    """Return a kernel manager for papermill that uses a waiting kernel instead of launching one."""

    class ForkedKernelManager(AsyncKernelManager):
        async def _async_launch_kernel(self, kernel_cmd: list[str], **options) -> None:
            kernel.start(self.connection_file, str(options.get("cwd") or os.getcwd()), options["env"])
            self.provisioner.process, self.provisioner.pid = kernel, kernel.pid
            self._reconcile_connection_info(self.provisioner.connection_info)

    return ForkedKernelManager


def execute(notebook: NotebookNode, running: Path, parameters: dict, kernel: "Kernel | None" = None) -> str | None:
    """Run the notebook, saving as it goes. Return the message of the error that stopped it, or None."""
    problem = None
    # Sockets are in a folder of this run's own, because kernels that start together would share the default names.
    with warnings.catch_warnings(), tempfile.TemporaryDirectory(prefix="study-") as sockets:
        warnings.simplefilter("ignore")
        transport = {"transport": "ipc", "ip": f"{sockets}/kernel"}
        try:
            papermill.execute_notebook(
                notebook,
                str(running),
                parameters=parameters,
                engine_name="study",
                kernel_name="python3",
                cwd=str(paths.NOTEBOOKS),
                progress_bar=False,
                config=Config({"KernelManager": transport}),
                **({"kernel_manager_class": manager_of(kernel)} if kernel else {}),
            )
        except papermill.PapermillExecutionError as error:
            problem = error.evalue if error.ename == "StudyError" else f"{error.ename}: {error.evalue}"
        except (RuntimeError, TimeoutError) as error:  # the kernel died, or did not answer
            problem = f"{type(error).__name__}: {error}"
            if "Kernel died" in problem:
                problem = "the kernel ended without a word: most often too little memory (--cores 1 needs less)"
    clean(running)
    return problem and explain_error(problem)


def clean(path: Path) -> None:
    """Remove the paths of this machine from an executed copy."""
    text = path.read_text(encoding="utf-8")
    replacements = {f"{paths.ROOT}/": "", str(paths.ROOT): ".", sys.prefix: "$PREFIX", str(Path.home()): "~"}
    if os.environ.get("STUDY_DATA"):
        replacements = {str(paths.real_data()): "$STUDY_DATA"} | replacements
    for local_path, replacement in replacements.items():
        if len(local_path) > 1:
            text = text.replace(local_path, replacement)
    notebook = nbformat.reads(text, as_version=4)
    for key in ("input_path", "output_path"):  # the whole notebook once more, and a path of this machine
        notebook.metadata.papermill.pop(key, None)
    nbformat.write(notebook, path)


def main(kernel: "Kernel | None" = None) -> int:
    """Run one notebook from the command line.

    `python -m lib.running.runner SCALE RECEIPT NOTEBOOK MADE ... [PARAMETER=VALUE ...]`, MADE below outputs/<scale>/.

    If there are parameters, the name of the executed copy includes the receipt's. Lists are separated by commas. Texts
    of datasets are shown only if they are made up.
    """
    parent.watch()
    scale, receipt, notebook, *words = sys.argv[1:]
    name = name_copy(receipt, notebook, words)
    outputs = [paths.output(scale, word) for word in words if "=" not in word]
    start_time = time.monotonic()
    parent.report(f"start   {name}")
    try:
        parameter_types, parameters = list_parameters(paths.NOTEBOOKS / f"{notebook}.ipynb"), {"scale": scale}
        if "show_text" in parameter_types:
            parameters["show_text"] = params.load("scales", scale).made_up
        for word in words:
            key, separator, value = word.partition("=")
            if separator:
                parameters[key] = value.split(",") if parameter_types.get(key) == "list" else value
        run(scale, notebook, name, parameters, outputs, kernel)
        receipts.write_receipt(Path(receipt), *outputs)
    except StudyError as error:
        parent.report(f"FAILED  {name}: {error}")
        return 1
    except Exception as error:
        parent.report(f"FAILED  {name}: {type(error).__name__}: {error}")
        raise
    parent.report(f"done    {name} ({time.monotonic() - start_time:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
