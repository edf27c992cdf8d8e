"""Raw sources named in params/downloads.yaml: fetched, verified, and stored whole or not at all."""

import gzip
import os
import re
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated
from urllib.parse import quote, urlsplit

from pydantic import Field

from lib import artefacts, fetching, repositories
from lib.corpora import made, readers
from lib.errors import StudyError, unknown
from lib.places import show_path
from lib.settings import Settings
from lib.study import params, parsing, paths

OUTCOMES = ("there", "fetched", "made", "failed", "to be copied", "to be got by hand", "not to be had", "only planned")


# No part begins with a dot, so that no path leaves the data folder or clashes with a temporary file.
Below = Annotated[str, Field(pattern=r"^(\w[\w.-]*/)*\w[\w.-]*$")]
Url = Annotated[str, Field(pattern="^https://")]
Checksum = Annotated[str, Field(pattern="^(sha256:[0-9a-f]{64}|blob:[0-9a-f]{40})$")]  # blob: git's id of the content


class Download(Settings):
    """A file that is fetched unchanged; `checksum` and `bytes` describe it as fetched, even if we store it as .gz."""

    path: Below
    file: str  # its path in the repository
    checksum: Checksum
    bytes: int | None = None
    gzip: bool = False  # the source is uncompressed, and we compress it
    urls: list[Url] = []  # official sites that hold the same bytes


class Repository(Settings):
    """Files of one commit of a public repository."""

    repository: str = Field(pattern="^[^/]+/[^/]+$")
    commit: str = Field(pattern="^[0-9a-f]{40}$")
    licence: str
    files: list[Download]


class Made(Settings):
    """A packed file that was made from others; `checksum` and `bytes` describe its unpacked content."""

    path: Below
    checksum: Checksum
    bytes: int
    licence: str
    origins: list[repositories.RepositoryFiles] = []
    how: str
    conversion: str | None = None  # from lib/corpora/made.py; None: the file has to be copied
    without: list[Below] = []  # files whose citations are excluded
    part: int = 0  # the number of the part, if the texts are divided
    part_words: int | None = None  # size of each part


class Steps(Settings):
    """A dataset that has to be obtained by hand."""

    path: Below | None  # where the steps put it; None: it cannot be obtained
    licence: str
    steps: list[str]


class FullSize(Settings):
    """A source at the papers' full size, too large to fetch unless asked for by name."""

    path: Below
    url: Url
    pattern: str | None = None  # of file names on the page at `url`, each with a .md5 file; None: fetched by hand
    size: str
    as_of: str
    note: str


class Group(Settings):
    """Sources that are requested by one name."""

    title: str
    sources: list[Repository] = []
    made: list[Made] = []
    by_hand: Steps | None = None
    plan: FullSize | None = None

    def entries(self) -> list[Download | Made]:
        return [file for source in self.sources for file in source.files] + self.made

    def licence(self) -> str:
        """Return the licences that the sources state, each once."""
        stated = [*self.sources, *self.made, *([self.by_hand] if self.by_hand else [])]
        return "; ".join(dict.fromkeys(source.licence for source in stated))

    def paths(self) -> list[str]:
        return [entry.path for entry in [*self.entries(), self.by_hand, self.plan] if entry and entry.path]


class Manifest(Settings):
    groups: dict[str, Group]


def load_manifest() -> dict[str, Group]:
    """Read the groups of the manifest. Raises StudyError if two entries have the same path."""
    file = paths.PARAMS / "downloads.yaml"
    groups = parsing.read_yaml(file, Manifest).groups
    entries = Counter(entry.path for group in groups.values() for entry in group.entries())
    twice = [path for path, n in entries.items() if n > 1]
    if twice:
        raise StudyError(f"{show_path(file)}: {', '.join(twice)}: named twice; keep one entry")
    return groups


def choose_groups(groups: dict[str, Group], names: list[str]) -> dict[str, Group]:
    """Select groups by name; a top folder (ner) selects all groups in it, and no names select every group."""
    names_of = {}  # group -> its own name, and its top folders
    for key, group in groups.items():
        names_of[key] = {key, *(path.split("/")[0] for path in group.paths())}
    known = set().union(*names_of.values())
    for name in names:
        if name not in known:
            raise unknown("data source", name, known)
    if not names:
        return groups
    return {key: group for key, group in groups.items() if names_of[key] & set(names)}


def fetch_groups(names: list[str], files: int | None = None) -> int:
    """Fetch the missing files of the named groups (all without names); return 1 if a file failed, else 0.

    `files`: how many files to fetch of each listing page; None: all.
    """
    chosen = choose_groups(load_manifest(), names)
    folder = paths.data("laptop")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StudyError(f"{show_path(folder)}: no data folder can be made there ({error.strerror})") from None
    counts, hosts = Counter(), {}
    for name, group in chosen.items():
        for source in group.sources:
            for file in source.files:
                expected = file.checksum, file.bytes, file.gzip
                counts += attempt(fetching.bring, folder / file.path, addresses(source, file), *expected, hosts)
        counts += bring_made(name, group.made, folder, hosts)
        if group.by_hand:
            counts[show_steps(name, group, folder, in_full=name in names)] += 1
        if group.plan and name in names and group.plan.pattern:
            counts += attempt(fetch_listed, folder / group.plan.path, group.plan, hosts, files)
        elif group.plan:
            counts[show_plan(name, group, folder)] += 1
    if counts["failed"] and any(hosts.values()):
        print(f"FAILED   {fetching.no_way(hosts)}; what was fetched stays")
    print(", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome]))
    return 1 if counts["failed"] else 0


def list_missing(folder: Path) -> list[str]:
    """List the groups that lack a file in a data folder, packed or not, which can be fetched or made here."""
    missing = []
    for name, group in load_manifest().items():
        fetched = [file.path for source in group.sources for file in source.files]
        for path in [*fetched, *(entry.path for entry in group.made if entry.conversion)]:
            plain = path.removesuffix(".gz")
            if not (folder / plain).exists() and not (folder / f"{plain}.gz").exists():
                missing.append(name)
    return list(dict.fromkeys(missing))


def attempt(action: Callable[..., str | Counter], path: Path, *words) -> Counter:
    """Count the outcomes of an action on a path; after an error print the reason and count one failure.

    Unreachable hosts are not reported here: fetch_groups prints one line for all of them at the end.
    """
    try:
        outcome = action(path, *words)
        return outcome if isinstance(outcome, Counter) else Counter([outcome])
    except fetching.Unreachable:
        return Counter(failed=1)
    except StudyError as error:
        reason = str(error)
    except OSError as error:
        reason = f"{show_path(path)}: {error.strerror or error}"
    print(f"FAILED   {reason}", flush=True)
    return Counter(failed=1)


def addresses(source: Repository, file: Download) -> list[str]:
    """List the URLs of a file, first those that never change because they contain the commit."""
    name, root = quote(file.file), f"{source.repository}/{source.commit}"
    mirror = f"https://cdn.jsdelivr.net/gh/{source.repository}@{source.commit}/{name}"
    return [f"https://raw.githubusercontent.com/{root}/{name}", mirror, *file.urls]


def fetch_listed(folder: Path, plan: FullSize, hosts: dict[str, str], first: int | None) -> Counter:
    """Fetch the files that a page lists, or only the `first` of them in order of name, and count the outcomes.

    Raises StudyError if the page does not come or lists none.
    """
    names = sorted(set(re.findall(plan.pattern, fetching.read_url(plan.url, hosts))))
    if not names:
        raise StudyError(f"{plan.url}: names no file like {plan.pattern}; see whether the page has moved")
    counts = Counter()
    for name in names[:first]:
        counts += attempt(fetching.bring_by_md5, folder / name, plan.url + name, hosts)
    return counts


def bring_made(name: str, entries: list[Made], folder: Path, hosts: dict[str, str]) -> Counter:
    """Check the derived files that are there and make the others; one line lists those that have to be copied."""
    counts, to_copy = Counter(), []
    for entry in entries:
        if entry.conversion or (folder / entry.path).exists():
            counts += attempt(make_files, folder / entry.path, entry, folder, hosts)
        else:
            to_copy.append(entry.path)
    if to_copy:
        counts["to be copied"] = len(to_copy)
        print(
            f"to copy  {name}: {', '.join(to_copy)}: made from other files "
            f"(params/downloads.yaml says how); copy from a holder of the reference files into {show_path(folder)}"
        )
    return counts


def make_files(path: Path, entry: Made, folder: Path, hosts: dict[str, str]) -> str:
    """Check a derived file, or make it if it is missing; return `there` or `made`.

    Raises StudyError if the file is wrong or cannot be made.
    """
    host = urlsplit(repositories.HOST).netloc
    if path.exists():
        fetching.check_there(path, entry.checksum, compressed=True)
        return "there"
    try:
        with artefacts.whole_file(path) as new:
            write_made(path, new, entry, folder, reachable=not hosts.get(host))
            if fetching.digest(new, "sha256", compressed=True) != entry.checksum:
                with gzip.open(new) as content:
                    size = content.seek(0, os.SEEK_END)
                raise StudyError(
                    f"{show_path(path)}: made of its public files, but not what the study has "
                    f"({size:,} bytes unpacked instead of {entry.bytes:,}): not kept; copy it from a holder"
                )
    except fetching.Unreachable:
        hosts[host] = "no connection"
        raise
    print(f"made     {show_path(path)} ({path.stat().st_size / 1e6:.1f} MB)", flush=True)
    return "made"


def write_made(path: Path, new: Path, entry: Made, folder: Path, reachable: bool) -> None:
    """Write the derived file `path` to `new` with its conversion. Raises StudyError if it cannot be made.

    The public files are kept in `raw/`; if their host is not `reachable`, those already there are used.
    """
    ids, keys = set(), set()
    for excluded in entry.without:
        if not (folder / excluded).exists():
            group = excluded.split("/")[0]
            raise StudyError(f"{show_path(path)}: needs {excluded}: run ./run_all.sh data {group}")
        for document in readers.READERS[find_reader(excluded)](folder / excluded):
            ids.add(document.id)
            keys.add(made.find_key(document.text))
    files = (
        (f"{origin.repository}/{name}", content)
        for origin in entry.origins
        for name, content in repositories.read_files(folder / "raw", origin, reachable)
    )
    records = made.CONVERSIONS[entry.conversion](files)
    if entry.path.endswith(".tsv.gz"):
        records = made.choose_citations(records, ids - {""}, keys - {""})
    if entry.part_words:
        records = made.take_part(records, entry.part, entry.part_words)
    try:
        made.write_records(records, new, entry.path)
    except (KeyError, ValueError, TypeError, SyntaxError) as error:  # SyntaxError: from lxml, for XML
        raise StudyError(f"{show_path(path)}: a public file has another form ({error!r:.100})") from None


def find_reader(path: str) -> str:
    """Return the reader of the first source whose pattern matches a path."""
    sources = [params.load("sources", key) for key in params.keys("sources")]
    return next(source.reader for source in sources if fnmatch(path, source.files))


def show_steps(name: str, group: Group, folder: Path, in_full: bool) -> str:
    """Print what a person has to do, unless it is done; return the outcome."""
    target = folder / group.by_hand.path if group.by_hand.path else None
    if target and (any(target.iterdir()) if target.is_dir() else target.exists()):
        return "there"
    goal = f"to be put into {show_path(target)}" if target else "not to be had"
    print(f"by hand  {name}: {group.title}: {goal}{'' if in_full else f'; how: ./run_all.sh data {name}'}")
    for number, step in enumerate(group.by_hand.steps if in_full else [], 1):
        print(f"         {number}. {step}")
    return "to be got by hand" if target else "not to be had"


def show_plan(name: str, group: Group, folder: Path) -> str:
    plan = group.plan
    how = f"./run_all.sh data {name} fetches it, with --files N a part" if plan.pattern else "to be fetched by hand"
    print(f"plan     {name}: {group.title}: {plan.size} ({plan.as_of}); {how}")
    print(f"         {plan.url} into {show_path(folder / plan.path)}. {plan.note}")
    return "only planned"
