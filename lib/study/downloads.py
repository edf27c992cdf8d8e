"""The raw sources that params/downloads.yaml names: fetched, checked, and whole under their name or not there."""

import gzip
import hashlib
import os
import re
import time
import zlib
from collections import Counter
from pathlib import Path
from typing import Annotated
from urllib.parse import quote, urlsplit

import requests
import urllib3
from pydantic import Field

from lib import artefacts
from lib.errors import StudyError, unknown
from lib.places import show_path
from lib.settings import Settings
from lib.study import making, parsing, paths, repositories
from lib.study.repositories import Unreachable

ATTEMPTS = 4  # of one mirror
PAUSE = 2.0  # seconds before the second attempt, doubled before each further one
TIMEOUT = (20, 60)  # seconds to connect, and between two pieces of an answer
BLOCK = 1 << 20
NO_CONNECTION = {
    urllib3.exceptions.NameResolutionError: "no such name",
    urllib3.exceptions.NewConnectionError: "no connection",
    urllib3.exceptions.ConnectTimeoutError: "no answer",
    urllib3.exceptions.ProxyError: "the proxy refuses",
}
OUTCOMES = ("there", "fetched", "made", "failed", "to be copied", "to be got by hand", "not to be had", "only planned")


# No part begins with a dot, so that no path leaves the data folder or meets a temporary file.
Below = Annotated[str, Field(pattern=r"^(\w[\w.-]*/)*\w[\w.-]*$")]
Url = Annotated[str, Field(pattern="^https://")]
Checksum = Annotated[str, Field(pattern="^(sha256:[0-9a-f]{64}|blob:[0-9a-f]{40})$")]  # blob: git's id of a content


class Download(Settings):
    """A file that is fetched as it is; checksum and bytes are those of the content, also where we store it as .gz."""

    path: Below
    file: str  # its path in the repository
    checksum: Checksum
    bytes: int | None = None
    gzip: bool = False  # the source is plain
    urls: list[Url] = []  # official sites that hold the same bytes


class Repository(Settings):
    """Files of one commit of a public repository."""

    repository: str = Field(pattern="^[^/]+/[^/]+$")
    commit: str = Field(pattern="^[0-9a-f]{40}$")
    licence: str
    files: list[Download]


class Made(Settings):
    """A packed file that was made from others; checksum and bytes are those of the content."""

    path: Below
    checksum: Checksum
    bytes: int
    licence: str
    origins: list[repositories.RepositoryFiles] = []
    how: str
    conversion: str | None = None  # of lib/corpora/made.py; None: the file has to be copied
    without: list[Below] = []  # files whose citations are left out
    part: int = 0  # of the texts, when they are cut
    part_words: int | None = None  # of each part


class Steps(Settings):
    """A set that only a person can get."""

    path: Below | None  # what the steps end with; None: there is nothing to get
    licence: str
    steps: list[str]


class FullSize(Settings):
    """A source of the papers' full size, too big to be fetched unasked."""

    path: Below
    url: Url
    pattern: str | None = None  # names on the page at `url`, each with a .md5 beside it; None: fetched by hand
    size: str
    as_of: str
    note: str


class Group(Settings):
    """What can be asked for by one name."""

    title: str
    sources: list[Repository] = []
    made: list[Made] = []
    by_hand: Steps | None = None
    plan: FullSize | None = None

    def entries(self) -> list[Download | Made]:
        return [file for source in self.sources for file in source.files] + self.made

    def licence(self) -> str:
        """The licences that its sources state."""
        stated = [*self.sources, *self.made, *([self.by_hand] if self.by_hand else [])]
        return "; ".join(dict.fromkeys(source.licence for source in stated))

    def paths(self) -> list[str]:
        return [e.path for e in [*self.entries(), self.by_hand, self.plan] if e and e.path]


class Manifest(Settings):
    groups: dict[str, Group]


def load_manifest() -> dict[str, Group]:
    """The groups of the manifest; StudyError when two entries claim one path."""
    file = paths.PARAMS / "downloads.yaml"
    groups = parsing.read_yaml(file, Manifest).groups
    entries = Counter(entry.path for group in groups.values() for entry in group.entries())
    twice = [path for path, n in entries.items() if n > 1]
    if twice:
        raise StudyError(f"{show_path(file)}: {', '.join(twice)}: named twice; keep one entry")
    return groups


def choose_groups(groups: dict[str, Group], names: list[str]) -> dict[str, Group]:
    """The groups of these names, where a top folder (ner) stands for all groups in it; without names all of them."""
    names_of = {}  # a group -> its own name, and its top folders
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
    """Get what is missing of the named groups (all, without names); 0 when all that can be fetched is there.

    `files`: how many to fetch of each list that a page holds; None: all.
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
            for e in source.files:
                where = addresses(source, e)
                counts[attempt(bring, folder / e.path, where, e.checksum, e.bytes, e.gzip, hosts)] += 1
        counts += bring_made(name, group.made, folder, hosts)
        if group.by_hand:
            counts[show_steps(name, group, folder, in_full=name in names)] += 1
        if group.plan and name in names and group.plan.pattern:
            counts += fetch_listed(group.plan, folder / group.plan.path, hosts, files)
        elif group.plan:
            counts[show_plan(name, group, folder)] += 1
    if counts["failed"] and any(hosts.values()):
        print(f"FAILED   {no_way(hosts)}; what was fetched stays")
    print(", ".join(f"{counts[what]} {what}" for what in OUTCOMES if counts[what]))
    return 1 if counts["failed"] else 0


def list_missing(folder: Path) -> list[str]:
    """The groups of which a file that can be fetched is not in a data folder, packed or not."""

    def is_there(file: Download) -> bool:
        plain = file.path.removesuffix(".gz")
        return (folder / plain).exists() or (folder / f"{plain}.gz").exists()

    groups = load_manifest().items()
    files = {name: [file for source in group.sources for file in source.files] for name, group in groups}
    return [name for name, of in files.items() if not all(map(is_there, of))]


def attempt(action, *words) -> str:
    """What the action says that it did, or failed and a line with the reason: the other files go on.

    Of files without a host that answers one line speaks at the end.
    """
    try:
        return action(*words)
    except Unreachable:
        return "failed"
    except StudyError as error:
        reason = str(error)
    except OSError as error:
        reason = f"{show_path(words[0])}: {error.strerror or error}"
    print(f"FAILED   {reason}", flush=True)
    return "failed"


def addresses(source: Repository, file: Download) -> list[str]:
    """Where a file is found: first what can never change, as the commit is part of the address."""
    name, where = quote(file.file), f"{source.repository}/{source.commit}"
    mirror = f"https://cdn.jsdelivr.net/gh/{source.repository}@{source.commit}/{name}"
    return [f"https://raw.githubusercontent.com/{where}/{name}", mirror, *file.urls]


def bring(
    path: Path, urls: list[str], checksum: str, size: int | None = None, compress=False, hosts: dict | None = None
) -> str:
    """See that a file is there and right: there or fetched; StudyError when it is neither.

    `hosts`: those that were asked, with why no connection is made: they are not asked again. Empty: it has answered.
    """
    if path.exists():
        check_there(path, checksum, compress)
        return "there"
    download(urls, path, checksum, size, compress, hosts)
    print(f"fetched  {show_path(path)} ({path.stat().st_size / 1e6:.1f} MB)", flush=True)
    return "fetched"


def check_there(path: Path, checksum: str, compressed=False) -> None:
    """StudyError when a file that is there is not the one that the study expects; it is kept."""
    try:
        got = digest(path, checksum.split(":")[0], compressed)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        got = f"a damaged gzip file ({error})"
    if got != checksum:
        raise StudyError(
            f"{show_path(path)}: not the file of the study, and kept (expected {checksum}, got {got}): "
            "move it away and run again"
        )


def digest(path: Path, kind: str, compressed=False) -> str:
    """Checksum of a file's content, as `kind:hexadecimal digits`."""
    with gzip.open(path) if compressed else open(path, "rb") as file:
        if kind != "blob":
            return f"{kind}:{hashlib.file_digest(file, kind).hexdigest()}"
        hasher = hashlib.sha1(b"blob %d\0" % file.seek(0, os.SEEK_END))
        file.seek(0)
        return f"blob:{hashlib.file_digest(file, lambda: hasher).hexdigest()}"


def download(
    urls: list[str], path: Path, checksum: str, size: int | None = None, compress=False, hosts: dict | None = None
) -> None:
    """Fetch a file from the first mirror that gives the right bytes; StudyError with the reason of each."""
    with artefacts.locked(path.with_name("downloads")):
        if path.exists():  # another process fetched it while this one waited
            return
        with artefacts.whole_file(path) as temporary:
            fetch_first(urls, temporary, checksum, size, {} if hosts is None else hosts, show_path(path))
            if compress:
                content = temporary.read_bytes()
                with open(temporary, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
                    packed.write(content)  # no name, no time: the same bytes every day


def fetch_first(
    urls: list[str], target: Path, checksum: str, size: int | None, hosts: dict[str, str], name: str
) -> None:
    """Write what the first mirror with the right bytes gives; StudyError names the file and each mirror's reason."""
    reasons = []
    for url in urls:
        host = urlsplit(url).netloc
        reason = hosts.get(host) or transfer(url, target, checksum, size, hosts)
        if not reason:
            return
        reasons.append(f"{host}: {reason}")
    if urls and all(hosts[urlsplit(url).netloc] for url in urls):
        raise Unreachable(no_way(hosts))
    raise StudyError(f"{name}: {'; '.join(reasons)}. Run again, or put the file there by hand")


def no_way(hosts: dict[str, str]) -> str:
    refused = [f"{host} ({why})" for host, why in hosts.items() if why]
    return f"no way to {', '.join(refused)}: run again with a network"


def transfer(url: str, target: Path, checksum: str, size: int | None, hosts: dict[str, str]) -> str:
    """Write what one mirror gives; why it could not be done, or an empty string.

    A host that has never answered is given up after a second attempt: further ones would only wait.
    """
    reason, host = "", urlsplit(url).netloc
    for attempt in range(ATTEMPTS):
        time.sleep(PAUSE * 2 ** (attempt - 1) if attempt else 0)
        try:
            receive(url, target, size)
        except requests.HTTPError as error:
            hosts[host] = ""
            return str(error)
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            inner = error.args[0] if error.args else error
            inner = getattr(inner, "reason", inner)  # of nested errors, the one that says what happened
            why = next((why for kind, why in NO_CONNECTION.items() if isinstance(inner, kind)), "")
            reason = why or str(inner)
            if not why:
                hosts[host] = ""
            elif attempt and host not in hosts:
                hosts[host] = why
                break
            continue
        hosts[host] = ""
        got = digest(target, checksum.split(":")[0])
        return "" if got == checksum else f"wrong checksum, expected {checksum}, got {got}"
    return reason


def receive(url: str, target: Path, size: int | None) -> None:
    """One request, written to a file.

    An HTTPError says that this mirror does not have the file; any other error, that another attempt may help.
    """
    # Without identity a server may compress on the way, and lengths would count compressed bytes.
    with requests.get(url, headers={"Accept-Encoding": "identity"}, stream=True, timeout=TIMEOUT) as response:
        status, length = response.status_code, response.headers.get("Content-Length", "")
        if status in (408, 429) or status >= 500:
            raise requests.ConnectionError(f"status {status}")
        if status != 200:
            raise requests.HTTPError(f"status {status}")
        if size is not None and length.isdecimal() and int(length) != size:
            raise requests.HTTPError(f"offers {length} bytes, not {size}")
        with open(target, "wb") as file:
            for block in response.raw.stream(BLOCK, decode_content=False):
                file.write(block)
    if size is not None and target.stat().st_size < size:
        raise requests.ConnectionError(f"broke off after {target.stat().st_size} of {size} bytes")


def fetch_listed(plan: FullSize, folder: Path, hosts: dict[str, str], first: int | None) -> Counter:
    """Fetch what a page of links names, or the first of them, by name."""
    try:
        names = sorted(set(re.findall(plan.pattern, read_url(plan.url))))
        if not names:
            raise StudyError(f"{plan.url}: names no file like {plan.pattern}; see whether the page has moved")
    except StudyError as error:
        print(f"FAILED   {error}", flush=True)
        return Counter(failed=1)
    return Counter(attempt(bring_by_md5, folder / name, plan.url + name, hosts) for name in names[:first])


def bring_by_md5(path: Path, url: str, hosts: dict[str, str]) -> str:
    """The same as `bring` for a file whose checksum lies beside it."""
    found = re.findall(r"\b[0-9a-f]{32}\b", read_url(url + ".md5"))
    if len(found) != 1:
        raise StudyError(f"{url}.md5: holds no checksum; run again later")
    return bring(path, [url], f"md5:{found[0]}", hosts=hosts)


def read_url(url: str) -> str:
    try:
        response = requests.get(url, timeout=TIMEOUT)
        response.raise_for_status()
    except requests.RequestException as error:
        raise StudyError(f"{url}: {error}; run again later") from None
    return response.text


def bring_made(name: str, entries: list[Made], folder: Path, hosts: dict[str, str]) -> Counter:
    """Derived files: those that are there are checked, the others made; one line says what has to be copied."""
    counts, to_copy = Counter(), []
    for entry in entries:
        if entry.conversion or (folder / entry.path).exists():
            counts[attempt(make_files, folder / entry.path, entry, folder, hosts)] += 1
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
    """See that a derived file is there and right: there or made; StudyError when it is neither."""
    host = urlsplit(repositories.HOST).netloc

    def check(new: Path) -> None:
        if digest(new, "sha256", compressed=True) != entry.checksum:
            with gzip.open(new) as content:
                size = content.seek(0, os.SEEK_END)
            raise StudyError(
                f"{show_path(path)}: made of its public files, but not what the study has "
                f"({size:,} bytes unpacked instead of {entry.bytes:,}): not kept; copy it from a holder"
            )

    if path.exists():
        check_there(path, entry.checksum, compressed=True)
        return "there"
    try:
        making.make(path, entry, folder, check, reachable=not hosts.get(host))
    except Unreachable:
        hosts[host] = "no connection"
        raise
    print(f"made     {show_path(path)} ({path.stat().st_size / 1e6:.1f} MB)", flush=True)
    return "made"


def show_steps(name: str, group: Group, folder: Path, in_full: bool) -> str:
    """Print what a person has to do, unless it is done."""
    target = folder / group.by_hand.path if group.by_hand.path else None
    if target and (any(target.iterdir()) if target.is_dir() else target.exists()):
        return "there"
    goal = f"to be put into {show_path(target)}" if target else "not to be had"
    print(f"by hand  {name}: {group.title}: {goal}{'' if in_full else f'; how: ./run_all.sh data {name}'}")
    for i, step in enumerate(group.by_hand.steps if in_full else [], 1):
        print(f"         {i}. {step}")
    return "to be got by hand" if target else "not to be had"


def show_plan(name: str, group: Group, folder: Path) -> str:
    plan = group.plan
    how = f"./run_all.sh data {name} fetches it, with --files N a part" if plan.pattern else "to be fetched by hand"
    print(f"plan     {name}: {group.title}: {plan.size} ({plan.as_of}); {how}")
    print(f"         {plan.url} into {show_path(folder / plan.path)}. {plan.note}")
    return "only planned"
