"""Files of one commit of a public repository, through git, which checks every byte against the commit's hash.

A repository is kept bare below `raw/` of the data folder and holds only the files requested.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import Field

from lib import artefacts
from lib.errors import StudyError
from lib.fetching import Unreachable
from lib.places import show_path
from lib.settings import Settings

HOST = "https://github.com/"
NO_CONNECTION = ("Could not resolve", "Failed to connect", "Couldn't connect", "timed out", "Connection refused")


class RepositoryFiles(Settings):
    """Files of one commit of a public repository: the sorted matches of each pattern, pattern by pattern."""

    repository: str = Field(pattern="^[^/]+/[^/]+$")
    commit: str = Field(pattern="^[0-9a-f]{40}$")
    files: list[str]  # patterns of paths, where * matches no /, and a leading **/ any folders
    leave_out: list[str] = []  # paths


def read_files(folder: Path, source: RepositoryFiles, reachable: bool = True) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of the files; those that are not below `folder` are fetched first.

    Raises StudyError if a pattern matches no path, or if git fails.
    """
    repository = folder / source.repository
    with artefacts.locked(repository):
        files = fetch_files(repository, source, reachable)
    with tempfile.TemporaryFile() as id_file:
        id_file.write("".join(f"{identifier}\n" for _, identifier in files).encode())
        id_file.seek(0)
        with subprocess.Popen(
            command(repository, "cat-file", "--batch", "--buffer"), stdin=id_file, stdout=subprocess.PIPE
        ) as git:
            for path, _ in files:
                header = git.stdout.readline().split()
                if len(header) != 3:
                    raise StudyError(f"{show_path(repository)}: {path} cannot be read; delete the folder and run again")
                yield path, git.stdout.read(int(header[2]))
                git.stdout.read(1)


def fetch_files(repository: Path, source: RepositoryFiles, reachable: bool) -> list[tuple[str, str]]:
    """Make sure that the kept repository has the files; return their paths and git's hashes of their contents."""
    if not repository.exists():
        with artefacts.whole_folder(repository) as new_folder:
            run_git(new_folder, "init", "--quiet", "--bare")
            run_git(new_folder, "remote", "add", "origin", HOST + source.repository)

    def get(*words: str, input_text: str = "") -> None:
        if not reachable:
            raise Unreachable(f"{show_path(repository)}: no connection")
        run_git(repository, "-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags",
            "--filter=blob:none", "--no-auto-gc", "--no-write-fetch-head", *words, input_text=input_text)  # fmt: skip

    if source.commit not in list_objects(repository):
        get("--depth=1", "origin", source.commit)
    files = [
        line.split("\t", 1) for line in run_git(repository, "ls-tree", "-r", "-z", source.commit).split("\0") if line
    ]
    files = [(path, metadata.split()[2]) for metadata, path in files if path not in source.leave_out]
    wanted_files = []
    for pattern in source.files:
        pattern_files = [(path, identifier) for path, identifier in files if matches(path, pattern)]
        if not pattern_files:
            raise StudyError(f"{source.repository}@{source.commit}: no file {pattern}")
        wanted_files += pattern_files
    if missing_ids := {identifier for _, identifier in wanted_files} - list_objects(repository):
        get("origin", "--stdin", input_text="\n".join(sorted(missing_ids)))
    return wanted_files


def matches(path: str, pattern: str) -> bool:
    """Return whether a path matches a pattern; a leading `**/` stands for any folders."""
    if pattern.startswith("**/"):
        return fnmatchcase(path, pattern[3:]) or fnmatchcase(path, f"*/{pattern[3:]}")
    return path.count("/") == pattern.count("/") and fnmatchcase(path, pattern)


def list_objects(repository: Path) -> set[str]:
    """List the objects that are present; with any other command, git would fetch the missing ones, one by one."""
    return set(
        run_git(repository, "cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)").split()
    )


def command(repository: Path, *words: str) -> list[str]:
    if shutil.which("git") is None:
        raise StudyError("git is not installed, and is needed for files that are made from public ones")
    return ["git", f"--git-dir={repository}", *words]  # git may be set to find no bare repository


def run_git(repository: Path, *words: str, input_text: str = "") -> str:
    """Run git and return its output. Raises StudyError with the last line of its error if it fails."""
    environment = os.environ | {"GIT_TERMINAL_PROMPT": "0"}  # GitHub asks for a password if a repository is gone
    result = subprocess.run(
        command(repository, *words),
        input=input_text,
        capture_output=True,
        text=True,
        env=environment,
        errors="surrogateescape",
    )
    if result.returncode:
        *_, last_line = result.stderr.strip().splitlines() or ["it does not say why"]
        error_type = Unreachable if any(reason in last_line for reason in NO_CONNECTION) else StudyError
        raise error_type(f"{show_path(repository)}: git: {last_line}; run again later")
    return result.stdout
