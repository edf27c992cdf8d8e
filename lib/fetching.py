"""Downloads of public files: the right bytes under their name, or no file and the reason for each mirror."""

import gzip
import hashlib
import os
import re
import tempfile
import time
import zlib
from pathlib import Path
from urllib.parse import urlsplit

import requests
import urllib3

from lib import artefacts
from lib.errors import StudyError
from lib.places import show_path

ATTEMPTS = 4  # per mirror
PAUSE = 2.0  # seconds before the second attempt, doubled before each further one
TIMEOUT = (20, 60)  # seconds to connect, and to wait for more of an answer
BLOCK = 1 << 20
NO_CONNECTION = {
    urllib3.exceptions.NameResolutionError: "no such name",
    urllib3.exceptions.NewConnectionError: "no connection",
    urllib3.exceptions.ConnectTimeoutError: "no answer",
    urllib3.exceptions.ProxyError: "the proxy refuses",
}


class Unreachable(StudyError):
    """No connection can be made: there is no network, or it blocks outgoing connections."""


def bring(
    path: Path, urls: list[str], checksum: str, size: int | None = None, compress=False, hosts: dict | None = None
) -> str:
    """Make sure that a file exists and is right; return "there" or "fetched".

    Raises StudyError, with the reason for each mirror, if it is neither. `hosts`: hosts already tried, with the reason
    why no connection is made; these are not tried again. An empty reason means that the host has answered.
    """
    if not path.exists():
        with artefacts.locked(path.with_name("downloads")):
            if not path.exists():  # else another process fetched it while this one waited
                fetch_file(path, urls, checksum, size, compress, {} if hosts is None else hosts)
                return "fetched"
    check_there(path, checksum, compress)
    return "there"


def fetch_file(path: Path, urls: list[str], checksum: str, size: int | None, compress: bool, hosts: dict) -> None:
    """Fetch a file whole from the first mirror that has it. Raises StudyError with the reason for each mirror."""
    with artefacts.whole_file(path) as temporary:
        if failures := fetch_first(urls, temporary, checksum, size, hosts):
            reasons = [f"{urlsplit(url).netloc}: {reason}" for url, reason in zip(urls, failures, strict=True)]
            explanation = f"{'; '.join(reasons)}. Run again, or put the file there by hand"
            raise StudyError(f"{show_path(path)}: {explanation}")
        if compress:
            compress_file(temporary)
    print(f"fetched  {show_path(path)} ({path.stat().st_size / 1e6:.1f} MB)", flush=True)


def compress_file(path: Path) -> None:
    """Replace a file by its gzip form, without name and time, so that the bytes are always the same."""
    content = path.read_bytes()
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as gzip_file:
        gzip_file.write(content)


def bring_by_md5(path: Path, url: str, hosts: dict[str, str]) -> str:
    """Make sure that a file exists and is right, as `bring` does, by the checksum in the .md5 file beside it."""
    checksums = re.findall(r"\b[0-9a-f]{32}\b", read_url(url + ".md5", hosts))
    if len(checksums) != 1:
        raise StudyError(f"{url}.md5: holds no checksum; run again later")
    return bring(path, [url], f"md5:{checksums[0]}", hosts=hosts)


def check_there(path: Path, checksum: str, compressed=False) -> None:
    """Raise StudyError if an existing file is not the one that the study expects; the file is kept."""
    try:
        actual = digest(path, checksum.split(":")[0], compressed)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        actual = f"a damaged gzip file ({error})"
    if actual != checksum:
        raise StudyError(
            f"{show_path(path)}: not the file of the study, and kept (expected {checksum}, got {actual}): "
            "move it away and run again"
        )


def digest(path: Path, kind: str, compressed=False) -> str:
    """Return the checksum of a file's content as `kind:hexadecimal digits`."""
    with gzip.open(path) if compressed else open(path, "rb") as file:
        if kind != "blob":
            return f"{kind}:{hashlib.file_digest(file, kind).hexdigest()}"
        hasher = hashlib.sha1(b"blob %d\0" % file.seek(0, os.SEEK_END))
        file.seek(0)
        return f"blob:{hashlib.file_digest(file, lambda: hasher).hexdigest()}"


def fetch_first(
    urls: list[str], target: Path, checksum: str | None, size: int | None, hosts: dict[str, str]
) -> list[str]:
    """Write a file from the first mirror with the right bytes; return why each failed, empty once one has not.

    Without a `checksum` every answer is right. Raises Unreachable if no mirror can be connected to.
    """
    reasons = []
    for url in urls:
        reason = hosts.get(urlsplit(url).netloc) or transfer(url, target, checksum, size, hosts)
        if not reason:
            return []
        reasons.append(reason)
    if urls and all(hosts[urlsplit(url).netloc] for url in urls):
        raise Unreachable(no_way(hosts))
    return reasons


def no_way(hosts: dict[str, str]) -> str:
    unreachable = [f"{host} ({reason})" for host, reason in hosts.items() if reason]
    return f"no way to {', '.join(unreachable)}: run again with a network"


def transfer(url: str, target: Path, checksum: str | None, size: int | None, hosts: dict[str, str]) -> str:
    """Write the answer of one mirror to `target`; return why this failed, or an empty string.

    A host that has never answered is given up after a second attempt, because more would only wait.
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
            cause = error.args[0] if error.args else error
            cause = getattr(cause, "reason", cause)  # of nested errors, the one that says what happened
            fault = next((fault for kind, fault in NO_CONNECTION.items() if isinstance(cause, kind)), "")
            reason = fault or str(cause)
            if not fault:
                hosts[host] = ""
            elif attempt and host not in hosts:
                hosts[host] = fault
                break
            continue
        hosts[host] = ""
        actual = checksum and digest(target, checksum.split(":")[0])
        return "" if actual == checksum else f"wrong checksum, expected {checksum}, got {actual}"
    return reason


def receive(url: str, target: Path, size: int | None) -> None:
    """Send one request and write the answer to a file.

    Raises HTTPError if this mirror does not have the file, and any other error if another attempt may help.
    """
    # Without `identity` a server may compress the transfer, and lengths would count compressed bytes.
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


def read_url(url: str, hosts: dict[str, str]) -> str:
    """Return the text at a URL, with as many attempts as a file gets. Raises StudyError if it does not come."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page"
        if failures := fetch_first([url], page, None, None, hosts):
            raise StudyError(f"{url}: {failures[0]}; run again later")
        return page.read_text(encoding="utf-8", errors="replace")
