"""Tests of the warm parent: its jobs run as in a process of their own, and end with their client."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import nbformat
import pytest
from notebook_code import write_question

from lib.running import graph, warm
from lib.study import paths

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks on Linux alone")
JOB = """
import json, os, random, sys, time

import numpy as np
import torch

def main():
    word = sys.argv[1]
    if word == "fail":
        raise ValueError("a fault")
    if word == "sleep":
        print(os.getpid(), flush=True)
        time.sleep(600)
    states = [random.random(), float(np.random.rand()), float(torch.rand(1))]
    print(json.dumps({"folder": os.getcwd(), "colour": os.environ.get("COLOUR"), "states": states,
                      "threads": torch.get_num_threads()}))
    return int(word)

if __name__ == "__main__":
    sys.exit(main())
"""
NO_PARENT = {warm.ADDRESS: "no"}
ASK = [sys.executable, "-SP", str(paths.ROOT / "lib/running/submit.py")]


@pytest.fixture
def environment() -> dict[str, str]:
    """Return an environment in which jobs find the parent shared by all tests."""
    assert warm.ADDRESS in os.environ
    return dict(os.environ)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a_job.py").write_text(JOB)
    return tmp_path


def ask(folder, environment, *words):
    return subprocess.run([*ASK, *words], cwd=folder, env=environment, capture_output=True, text=True)


def is_gone(pid: int, seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
        time.sleep(0.1)
    return not os.path.exists(f"/proc/{pid}")


def test_a_job_is_like_a_process_of_its_own(environment, folder):
    given = {"COLOUR": "green", "OMP_NUM_THREADS": "2"}
    states = []
    for place in (environment, environment, environment | NO_PARENT):
        result = ask(folder, place | given, "a_job", "3")
        output = json.loads(result.stdout)
        states.append({*output["states"]})
        assert (result.returncode, output["folder"]) == (3, str(folder))
        assert (output["colour"], output["threads"]) == ("green", 2)
    assert not states[0] & states[1]  # no two jobs draw the same random numbers
    result = ask(folder, environment, "a_job", "fail")
    assert result.returncode == 1 and "ValueError: a fault" in result.stderr


def test_an_edited_module_is_seen_by_the_next_job(environment, folder):
    (folder / "lib").mkdir()
    for number in (1, 2):  # two lengths, because the file times may be equal
        (folder / "lib" / "__init__.py").write_text(f"NUMBER = {'1' * number}\n")
        (folder / "lib" / "told.py").write_text("import lib\nprint(lib.NUMBER)\n")
        assert ask(folder, environment, "lib.told").stdout == "1" * number + "\n"


@pytest.mark.parametrize("victim", ["client", "who asked the client"])
def test_a_job_ends_with_who_asked_for_it(environment, folder, victim):
    """A killed Snakemake leaves its child processes, the clients, running."""
    through = [sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])"]
    command = [*(through if victim != "client" else []), *ASK, "a_job", "sleep"]
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    job = int(process.stdout.readline())
    assert os.path.exists(f"/proc/{job}")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert is_gone(job)


def test_a_job_that_is_killed_has_failed(environment, folder):
    process = subprocess.Popen([*ASK, "a_job", "sleep"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    os.kill(int(process.stdout.readline()), signal.SIGKILL)
    assert process.communicate()[0] == "FAILED  a_job sleep: its process was ended (too little memory?)\n"
    assert process.returncode == 1


def test_nothing_is_left_of_a_parent(folder):
    inherited = {name: value for name, value in os.environ.items() if name != warm.ADDRESS}
    (folder / "parent").touch()  # left by a killed parent
    with warm.start_parent(folder / "parent", inherited) as environment:
        assert (folder / "parent").is_socket()
    assert not (folder / "parent").exists()
    result = ask(folder, environment, "a_job", "0")  # without a parent the job runs in its own process
    assert result.returncode == 0


CODE = """\
import os, sys
import matplotlib.pyplot as plt
import torch
from IPython.display import HTML
print(os.getcwd().rsplit("/")[-1], torch.get_num_threads(), number)
print("to the log", file=sys.stderr)
display(HTML("<b>bold</b>"))
plt.plot([1, 2, number]);"""


def write_notebook(folder, *more: str) -> None:
    write_question(folder / "notebooks", 'scale: str = "smoke"\nplace: str = ""\nnumber: int = 3', CODE, *more)
    (folder / "params").symlink_to(paths.ROOT / "params")
    shutil.copytree(paths.ROOT / "lib", folder / "lib")  # because the study's root is the folder of its lib


def runner_of(place: str) -> list[str]:
    return ["lib.running.runner", "smoke", f"outputs/{place}", "42_question", "running", f"place={place}"]


def test_a_forked_kernel_runs_a_notebook_as_a_spawned_one_does(environment, tmp_path):
    write_notebook(tmp_path)
    copies = {}
    for place, variables in (("forked", environment), ("spawned", environment | NO_PARENT)):
        result = ask(tmp_path, variables | {"PYTHONPATH": str(tmp_path)}, *runner_of(place))
        assert result.returncode == 0, result.stdout + result.stderr
        copy = nbformat.read(tmp_path / f"outputs/smoke/notebooks/42_question--{place}.ipynb", 4)
        assert copy.metadata.papermill.end_time and copy.metadata.papermill.parameters.place == place
        copies[place] = [(cell.source.replace(place, ""), cell.get("outputs")) for cell in copy.cells]
    assert copies["forked"] == copies["spawned"]


def test_a_kernel_ends_with_its_job(environment, tmp_path):
    write_notebook(tmp_path, "import time\nopen('pids', 'w').write(f'{os.getpid()} {os.getppid()}')\ntime.sleep(600)")
    process = subprocess.Popen(
        [*ASK, *runner_of("killed")], cwd=tmp_path, env=environment | {"PYTHONPATH": str(tmp_path)}
    )
    while not (tmp_path / "notebooks/pids").exists() or not (tmp_path / "notebooks/pids").read_text():
        assert process.poll() is None
        time.sleep(0.1)
    kernel, runner = map(int, (tmp_path / "notebooks/pids").read_text().split())
    os.kill(runner, signal.SIGKILL)
    assert process.wait() != 0
    assert is_gone(kernel) and is_gone(runner)


def test_no_kernel_is_forked_on_gpus_or_a_cluster():
    for scale, options in (("gpu", []), ("smoke", ["--profile", "profiles/slurm"])):
        with graph.fork_jobs(scale, options, {"A": "b"}) as environment:
            assert environment == {"A": "b"}
