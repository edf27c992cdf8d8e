"""Installation of an environment's packages, with nothing but Python: torch by pip, then the lock by uv.

uv takes seconds where pip takes minutes. The output of an installer is shown only if it fails.

python lib/installing.py TORCH_VERSION, with the Python of the environment
"""

import ast
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
# Without --use-pep517, pip before 23.1 builds seqeval from source with whatever is installed, and fails.
# -P: modules in the current folder, a logging.py for instance, are not imported.
RUN = [sys.executable, "-P", "-m"]
PIP = [*RUN, "pip", "install", "--disable-pip-version-check", "--use-pep517"]
UV = [*RUN, "uv", "pip", "install", "--python", sys.executable, "--no-deps"]
AS_OPTIONS = {"index-url": "--default-index", "extra-index-url": "--index", "find-links": "--find-links",
              "trusted-host": "--allow-insecure-host"}  # fmt: skip
AS_VARIABLES = {"cert": "SSL_CERT_FILE", "client-cert": "SSL_CLIENT_CERT", "timeout": "UV_HTTP_TIMEOUT",
                "default-timeout": "UV_HTTP_TIMEOUT", "proxy": "ALL_PROXY"}  # fmt: skip


class Failed(Exception):
    """An installer failed; the message is its output."""


def parse_pip_settings(listed: str) -> dict[str, list[str]]:
    """Parse `pip config list` into values by option: of several values the one that pip uses, split at white space."""
    entries = re.findall(r"^(\S+)=('.*'|\".*\")$", listed, re.M)
    values_of = {name: ast.literal_eval(value).split() for name, value in entries}
    return {
        name.removeprefix(section): values
        for section in ("global.", "install.", ":env:.")  # a later one overrides an earlier one
        for name, values in values_of.items()
        if name.startswith(section) and values  # pip ignores empty ones
    }


def translate(settings: dict[str, list[str]]) -> tuple[list[str], dict[str, str]]:
    """Translate pip's indexes and folders, which uv does not read, into options and environment variables of uv."""
    options = []
    for name, option in AS_OPTIONS.items():
        for value in settings.get(name, ()):
            options += [option, value]
    if settings.get("no-index", ["0"])[0].lower() in ("1", "true", "yes", "on"):
        options.append("--no-index")
    if settings.get("extra-index-url"):  # the choice that pip makes; hashes restrict what may be installed
        options += ["--index-strategy", "unsafe-best-match"]
    variables = {AS_VARIABLES[name]: values[0] for name, values in settings.items() if name in AS_VARIABLES}
    return options, variables


def find_pin(name: str) -> str:
    """Return the lines of one package in the lock, with its hashes."""
    return re.search(rf"^{name}==(.*\\\n)*.*\n", LOCK.read_text(encoding="utf-8"), re.M)[0]


def call(command: list[str], variables: dict[str, str] | None = None) -> str:
    """Run an installer and return its output. Raises Failed if it exits with an error."""
    result = subprocess.run(
        command, env=os.environ | (variables or {}), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if result.returncode:
        raise Failed(result.stdout)
    return result.stdout


def install_torch(version: str) -> None:
    """Install what $TORCH specifies, else the release in use, as a CPU build if the index has one."""
    if os.environ.get("TORCH"):
        call([*PIP, *shlex.split(os.environ["TORCH"])])
    elif not find_version("torch").startswith(version):
        try:
            call([*PIP, f"torch=={version}+cpu"])
        except Failed:
            call([*PIP, f"torch=={version}"])


def find_version(package: str) -> str:
    """Return the version of an installed package, or an empty string."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def install_lock() -> None:
    """Install the lock and the study itself by uv, or by pip if uv is not available or fails."""
    project = ["--editable", str(ROOT)]
    try:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as pin_file:
            pin_file.write(find_pin("uv"))
            pin_file.flush()
            call([*PIP, "--no-deps", "--require-hashes", "-r", pin_file.name])
        options, variables = translate(parse_pip_settings(call([*RUN, "pip", "config", "list"])))
        call([*UV, *options, "--require-hashes", "-r", str(LOCK)], variables)
        call([*UV, *options, *project], variables)
    except Failed as failure:
        reason = (str(failure).splitlines() or ["no word"])[-1]
        print(f"by pip, which takes minutes, as uv could not do it ({reason}) ...", end=" ", flush=True)
        call([*PIP, "--require-hashes", "-r", str(LOCK)])
        call([*PIP, "--no-deps", *project])


def install(version: str) -> int:
    packages = len(re.findall(r"^\S+==", LOCK.read_text(encoding="utf-8"), re.M))
    stages = {
        os.environ.get("TORCH") or f"torch {version}": lambda: install_torch(version),
        f"the {packages} packages of {LOCK.name}": install_lock,
    }
    for number, (title, stage) in enumerate(stages.items(), 1):
        start = time.monotonic()
        print(f"Installing, {number} of {len(stages)}: {title} ...", end=" ", flush=True)
        try:
            stage()
        except Failed as failure:
            print(f"failed\n{failure}\nerror: {title} could not be installed (see above)", file=sys.stderr)
            return 1
        print(f"{time.monotonic() - start:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(install(*sys.argv[1:]))
