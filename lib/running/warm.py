"""A warm parent process: it imports the notebooks' packages once, and every job and its kernel are forked from it.

Starting a kernel and importing torch take up most of a job that lasts seconds. The parent imports third-party packages
only, nothing from lib, so that the next job sees an edited module and one parent serves several copies of the study. It
computes nothing, because threads do not survive a fork and a library that has started some hangs in the child. Each job
is a child of the parent and forks its kernel first, before it has a thread of its own. Without a parent (on a cluster,
with GPUs, on systems other than Linux, with STUDY_WARM=no) a job is an ordinary process with the same results.

python -P lib/running/warm.py ADDRESS
"""

import contextlib
import gc
import importlib
import json
import os
import random
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

ADDRESS = "STUDY_WARM"  # environment variable: where a parent listens, or `no` if none is wanted
RUNNER = "lib.running.runner"  # the module whose jobs have a notebook, and so a kernel
IMPORTED = (
    "papermill", "ipykernel.kernelapp", "ipykernel.ipkernel", "matplotlib.pyplot",
    "seaborn", "scipy.stats", "pandas", "pyarrow.parquet", "pydantic", "yaml", "torch", "tokenizers", "accelerate",
    "transformers.models.bert.modeling_bert", "transformers.models.albert.modeling_albert",
    "transformers.models.electra.modeling_electra", "transformers.models.bert.tokenization_bert", "seqeval.metrics",
    "sklearn.svm", "sklearn.linear_model", "sklearn.feature_extraction.text", "optuna", "threadpoolctl",
)  # fmt: skip
# Read when packages are imported. Each child sets its threads from its own environment.
BEFORE_IMPORT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false",
                 "MPLBACKEND": "module://matplotlib_inline.backend_inline"}  # fmt: skip
SECONDS = 0.5  # between checks that the process that started the parent is alive


@contextlib.contextmanager
def start_parent(address: Path, environment: dict[str, str]) -> Iterator[dict[str, str]]:
    """Run a warm parent during this context; yield the environment in which jobs find it.

    If a parent is listening already, or none is wanted or possible, the environment is yielded unchanged.
    """
    if ADDRESS in environment or not sys.platform.startswith("linux"):
        yield environment
        return
    address.parent.mkdir(parents=True, exist_ok=True)
    address.unlink(missing_ok=True)  # left by a run that was killed
    command = [sys.executable, "-P", __file__, address.name]  # a socket's whole path may be too long for the system
    server = subprocess.Popen(command, cwd=address.parent, env=environment, stdin=subprocess.DEVNULL)
    try:
        while not address.exists() and server.poll() is None:
            time.sleep(0.01)
        yield environment | {ADDRESS: str(address)}
    finally:
        server.kill()
        server.wait()
        address.unlink(missing_ok=True)


def serve(address: str) -> None:
    """Fork a child for each requested job, until the process that started this one is gone."""
    starter = os.getppid()
    os.environ |= BEFORE_IMPORT
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with its starter, after the interrupted jobs
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children report their own status; nobody waits for them
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(128)
        listener.settimeout(SECONDS)
        ready = False
        while os.getppid() == starter:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            if not ready:  # only now, so that a run with nothing to do is spared it
                import_packages()
                ready = True
            if os.fork() == 0:
                listener.close()
                os._exit(answer(connection))
            connection.close()


def import_packages() -> None:
    warnings.filterwarnings("ignore", "IProgress not found")  # from tqdm, which takes this process for a notebook
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # keeps these pages shared: a child's garbage collector does not touch them


def answer(connection: socket.socket) -> int:
    """Do the job that a connection requests, in this child, and send its exit status back."""
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        connection.settimeout(None)
        _, pipes, *_ = socket.recv_fds(connection, 1, 3)
        for number, pipe in enumerate(pipes):
            os.dup2(pipe, number)
            os.close(pipe)
        with connection.makefile("rb") as file:
            request = json.loads(file.readline())
        module, *words = request["words"]
        kernel = Kernel() if module == RUNNER else None  # before this child has a thread
        threading.Thread(target=end_with, args=[connection], daemon=True).start()
        enter(request["folder"], request["environment"])
        sys.argv = [module, *words]
        if kernel:
            status = importlib.import_module(module).main(kernel)
        else:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
            status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        with contextlib.suppress(OSError):
            connection.sendall(bytes([status]))
    return status


def enter(folder: str, environment: dict[str, str]) -> None:
    """Make this child like a new process: folder, environment, module path, random states, threads."""
    import numpy
    import threadpoolctl
    import torch

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [*filter(None, environment.get("PYTHONPATH", "").split(os.pathsep)), folder]
    random.seed()
    numpy.random.seed()
    torch.seed()
    threads = int(environment.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))
    torch.set_num_threads(threads)
    threadpoolctl.threadpool_limits(threads)


def end_with(connection: socket.socket) -> None:
    """End this child at once when the process that requested its job is gone."""
    if not connection.recv(1):
        os._exit(1)


class Kernel:
    """A child that waits to become a notebook's kernel, with the methods that jupyter_client calls on a process."""

    stdin = stdout = stderr = None

    def __init__(self):
        orders, self.pipe = os.pipe()
        job = os.getpid()
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.pipe)
            become_kernel(orders, job)
        os.close(orders)

    def start(self, connection_file: str, folder: str, environment: dict[str, str]) -> None:
        with os.fdopen(self.pipe, "w") as pipe:
            json.dump({"connection": connection_file, "folder": folder, "environment": environment}, pipe)

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self) -> int:
        while self.poll() is None:
            time.sleep(0.01)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


def become_kernel(orders: int, job: int) -> None:
    """Wait for orders, then run a kernel until it is shut down or its job is gone; never return."""
    try:
        with os.fdopen(orders) as pipe:
            message = pipe.read()
        if message and os.getppid() == job:
            order = json.loads(message)
            os.setsid()  # so that an interrupt of the job does not reach the kernel
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            enter(order["folder"], order["environment"])
            from ipykernel.kernelapp import IPKernelApp

            IPKernelApp.launch_instance(argv=["-f", order["connection"], f"--IPKernelApp.parent_handle={job}"])
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
