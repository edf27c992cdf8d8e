"""Tests of the environment: one set of pinned versions for everybody, and a start that says what is missing."""

import os
import re
import runpy
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from lib import installing
from lib.study import paths

LOCK = (paths.ROOT / "requirements.lock").read_text()
START = (paths.ROOT / "run_all.sh").read_text()


def test_every_dependency_is_pinned_with_hashes_for_pip_and_conda_and_torch_is_not():
    project = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["project"]
    pinned = dict(re.findall(r"^([a-z0-9_.-]+)==([^ \\]+)", LOCK, re.M))
    assert set(project["dependencies"]) <= set(pinned)
    assert "torch" not in pinned and not [name for name in pinned if name.startswith("nvidia")]
    blocks = re.split(r"^(?=[a-z0-9_.-]+==)", LOCK, flags=re.M)[1:]
    assert all("--hash=sha256:" in block for block in blocks)
    assert "python-crfsuite==0.9.12 \\\n" in LOCK  # for every platform
    environment = yaml.safe_load((paths.ROOT / "environment.yml").read_text())
    (pip,) = [part["pip"] for part in environment["dependencies"] if isinstance(part, dict)]
    assert pip == ["-r requirements.lock"]
    (torch,) = [part for part in environment["dependencies"] if "torch" in part]
    assert torch.split("=")[1] == re.search(r"TORCH_VERSION=([\d.]+)", START)[1]
    assert environment["name"] in START


def start(folder, **environment):
    shutil.copy(paths.ROOT / "run_all.sh", folder)
    for name in ("requirements.lock", "pyproject.toml"):
        shutil.copy(paths.ROOT / name, folder)
    clean = {k: v for k, v in os.environ.items() if k not in ("CONDA_DEFAULT_ENV", "VIRTUAL_ENV")}
    return subprocess.run([folder / "run_all.sh"], env=clean | environment, capture_output=True, text=True)


def test_a_start_without_what_it_needs_is_refused_in_one_line(tmp_path):
    process = start(tmp_path, PYTHON="python0.0")
    expected = "error: no Python 3.11 to 3.13 found (tried python0.0): install one, or set PYTHON"
    assert process.returncode == 1 and process.stderr.splitlines() == [expected]

    fake = tmp_path / "python-without-venv"
    fake.write_text('#!/bin/sh\ncase "$*" in *venv*) exit 1;; esac\nexit 0\n')
    fake.chmod(0o755)
    process = start(tmp_path, PYTHON=str(fake))
    (line,) = process.stderr.splitlines()
    assert process.returncode == 1 and "has no venv module: install it" in line

    own = tmp_path / "conda" / "mine"  # an environment of conda is never emptied
    own.parent.mkdir()
    own.touch()
    process = start(tmp_path, CONDA_DEFAULT_ENV="biomedical-language-models", CONDA_PREFIX=str(own.parent))
    (line,) = process.stderr.splitlines()
    assert process.returncode == 1 and own.exists() and line.endswith("conda env update -f environment.yml")

    process = start(tmp_path, HOME=str(tmp_path / "nowhere"), PYTHON="python0.0")  # a home that cannot be written
    assert process.stderr.splitlines()[0].endswith("caches go below outputs/.home")
    assert (tmp_path / "outputs/.home").is_dir()


def test_an_environment_whose_python_is_gone_is_made_anew_with_the_torch_it_had(tmp_path):
    maker = tmp_path / "maker"  # a Python whose environments hold a copy of it
    maker.write_text("""#!/bin/sh
for last; do :; done
case "$*" in
    *"-m venv"*) rm -r "$last" && mkdir -p "$last/bin" && cp "$0" "$last/bin/python" ;;
    *installing.py*) echo "installed $TORCH" ;;
esac
""")
    maker.chmod(0o755)
    python, stamp = tmp_path / ".venv/bin/python", tmp_path / ".venv/study-stamp"
    python.parent.mkdir(parents=True)
    assert "installed torch==9" in start(tmp_path, PYTHON=str(maker), TORCH="torch==9").stdout
    assert "installed" not in start(tmp_path, PYTHON=str(maker)).stdout
    stamped = stamp.read_text()
    python.unlink()
    python.symlink_to(tmp_path / "gone")
    assert "installed torch==9" in start(tmp_path, PYTHON=str(maker)).stdout and stamp.read_text() == stamped


def test_modules_in_the_current_folder_do_not_stop_an_installer(tmp_path):
    (tmp_path / "logging.py").write_text("raise SystemExit('mine')")
    subprocess.run([*installing.PIP, "--help"], cwd=tmp_path, check=True, capture_output=True)
    calls = re.findall(r'"\$(?:python|maker)" .*-[mc] (?:pip|venv|\'import ensurepip)', START)
    assert len(calls) == 3 and all(" -P " in call for call in calls)


def test_the_tree_lists_every_notebook_and_module_and_names_what_is_there():
    tree = (paths.ROOT / "docs" / "tree.md").read_text()
    listed = tree.partition("<!-- tree: generated -->\n")[2].partition("\n<!-- /tree -->")[0]
    assert listed == runpy.run_path(str(paths.ROOT / "tools" / "tree.py"))["describe_tree"](), "run tools/tree.py"
    for name in re.findall(r"`((?:lib|notebooks|tests|tools|params|outputs/record)/[\w./-]*)`", tree):
        assert (paths.ROOT / name).exists(), name


def test_the_settings_of_pip_are_given_to_uv():
    settings = """global.cert='/etc/a.crt'
:env:.extra-index-url='https://c/simple'
global.extra-index-url='https://a/simple https://b/simple'
global.index-url='https://own/simple'
:env:.index-url=''
install.find-links='\\n/opt/wheels\\n/opt/more'
"""
    options, variables = installing.translate(installing.parse_pip_settings(settings))
    assert options == ["--default-index", "https://own/simple", "--index", "https://c/simple", "--find-links",
                       "/opt/wheels", "--find-links", "/opt/more", "--index-strategy",
                       "unsafe-best-match"]  # fmt: skip
    assert variables == {"SSL_CERT_FILE": "/etc/a.crt"}
    assert installing.translate({"no-index": ["true"]})[0] == ["--no-index"]


@pytest.mark.parametrize(("fails", "by"), [("none", "uv"), ("uv==", "pip"), ("-P -m uv", "pip"), ("-P -m pip", "")])
def test_pip_installs_where_uv_cannot_and_speaks_only_where_it_fails(monkeypatch, capsys, fails, by):
    calls = []

    def call(command, variables=None):
        calls.append(" ".join(command[1:]))
        pin = Path(command[-1]).read_text() if command[-1].endswith(".txt") else ""
        if calls[-1].startswith(fails) or pin.startswith(fails):
            raise installing.Failed("what the installer says")
        return ""

    monkeypatch.setattr(installing, "call", call)
    assert installing.install("2.13.0") == (not by)
    output, errors = capsys.readouterr()
    assert ("what the installer says" in errors) == (not by)
    lock_calls = [command for command in calls if command.endswith("requirements.lock")]
    assert all("--require-hashes" in command for command in lock_calls)
    assert not by or (f"-m {by} " in lock_calls[-1] and len(output.splitlines()) == 2)
    assert ("uv could not do it (what the installer says)" in output) == (by != "uv")
