"""Tests of downloads: whatever the server does, a file arrives complete and correct or not at all."""

import gzip
import hashlib
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml
from conftest import each, keep_calls
from golden import write

from lib import fetching
from lib.errors import StudyError
from lib.study import downloads, params, paths

CONTENT = b"".join(b"%06d\n" % i for i in range(30_000))
SHA256 = "sha256:" + hashlib.sha256(CONTENT).hexdigest()
BLOB = "blob:" + hashlib.sha1(b"blob %d\0" % len(CONTENT) + CONTENT).hexdigest()
MD5 = hashlib.md5(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """A server of CONTENT that misbehaves as the first part of the path says. `requests`: the requested paths."""

    requests: list[str]

    def url(self, how: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{how}/file"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        earlier_paths = list(self.server.requests)
        self.server.requests.append(self.path)
        behaviour = self.path.split("/")[1]
        body, length = CONTENT, None
        if behaviour == "missing":
            return self.send_error(404)
        if behaviour.startswith("busy-") and self.path not in earlier_paths:
            return self.send_error(503)
        if behaviour == "wrong":
            body = CONTENT.swapcase().replace(b"1", b"2")
        if behaviour == "busy-listing":
            page = "/".join(self.path.split("/")[2:])
            names = "".join(f'<a href="pubmed26n000{i}.xml.gz{e}">x</a>' for i in (1, 2) for e in ("", ".md5"))
            body = names.encode() if not page else f"MD5(x)= {MD5}\n".encode() if page.endswith("md5") else CONTENT
        if behaviour == "always-breaks" or (behaviour == "breaks-once" and self.path not in earlier_paths):
            body, length = body[: len(body) // 2], len(body)
        if behaviour == "too-long":
            length = len(body) + 100
        if behaviour == "too-short":
            length = len(body) - 100
        self.send_response(200)
        self.send_header("Content-Length", str(length or len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(fetching, "PAUSE", 0)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Server(("127.0.0.1", 0), Handler)
    server.requests = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def study(server, tmp_path, monkeypatch):
    """Return a function that writes a manifest whose files come from the server, each as its `file` says.

    The function has the empty data `folder` and the `server` as attributes.
    """
    monkeypatch.setattr(paths, "PARAMS", tmp_path)
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(downloads, "addresses", lambda source, file: [server.url(how) for how in file.file.split("+")])

    def write(**groups) -> None:
        content = {"groups": {name: {"title": name} | group for name, group in groups.items()}}
        (tmp_path / "downloads.yaml").write_text(yaml.safe_dump(content))

    write.folder, write.server = tmp_path / "data", server
    return write


def source(*files: dict) -> dict:
    return {"sources": [{"repository": "a/b", "commit": "0" * 40, "licence": "MIT", "files": list(files)}]}


def entry(path: str, how: str = "good", **changes) -> dict:
    return {"path": path, "file": how, "checksum": SHA256, "bytes": len(CONTENT)} | changes


def visible(folder) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.name[0] != ".")


def test_a_file_is_fetched_once_however_many_ask_for_it(server, tmp_path):
    arguments = (tmp_path / "new" / "file", [server.url("good")], SHA256, len(CONTENT))
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: fetching.bring(*arguments), range(8)))
    assert sorted(statuses) == ["fetched", *["there"] * 7] and fetching.bring(*arguments) == "there"
    assert arguments[0].read_bytes() == CONTENT and len(server.requests) == 1
    assert not list(tmp_path.rglob("*.tmp"))


@each(
    ("mirrors", "checksum", "size", "asked"),
    [
        ("breaks-once", SHA256, len(CONTENT), 2),
        ("breaks-once", BLOB, None, 2),
        ("busy-once", f"md5:{MD5}", None, 2),
        ("missing wrong good", SHA256, len(CONTENT), 3),
    ],
)
def test_a_file_arrives_over_broken_connections_and_from_the_next_mirror(
    server, tmp_path, mirrors, checksum, size, asked
):
    server.requests.clear()
    fetching.bring(tmp_path / "file", [server.url(how) for how in mirrors.split()], checksum, size)
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert len(server.requests) == asked
    assert list(dict.fromkeys(address.split("/")[1] for address in server.requests)) == mirrors.split()


def test_of_a_file_that_no_mirror_has_nothing_is_left_and_every_reason_is_told(server, tmp_path):
    with pytest.raises(StudyError, match="127.0.0.1:.*Run again"):
        fetching.bring(tmp_path / "file", [server.url("always-breaks")], SHA256, len(CONTENT))
    assert len(server.requests) == fetching.ATTEMPTS
    with pytest.raises(StudyError, match=f"127.0.0.1.*status 404.*expected {SHA256}, got sha256:[0-9a-f]{{64}}"):
        fetching.bring(tmp_path / "file", [server.url("missing"), server.url("wrong")], SHA256, len(CONTENT))
    assert not list(tmp_path.glob("*file*"))


@each("how", ["too-long", "too-short"])
@each("size", [len(CONTENT), None])
def test_a_file_arrives_whole_though_a_server_gives_the_wrong_length(server, tmp_path, how, size):
    server.requests.clear()
    fetching.bring(tmp_path / "file", [server.url(how), server.url("good")], SHA256, size)
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert any("/good/" in address for address in server.requests) or (how == "too-long" and size is None)


def test_gzip_is_stored_the_same_every_time_and_its_content_checked(server, tmp_path):
    path = tmp_path / "file.gz"
    assert fetching.bring(path, [server.url("good")], SHA256, len(CONTENT), True) == "fetched"
    stored = path.read_bytes()
    assert gzip.decompress(stored) == CONTENT
    assert stored[3] == 0 and stored[4:8] == bytes(4)  # no file name and no time in the header
    for checksum in (SHA256, BLOB):
        assert fetching.bring(path, [], checksum, len(CONTENT), True) == "there"
    path.write_bytes(stored[: len(stored) // 2])
    with pytest.raises(StudyError, match="damaged gzip file"):
        fetching.bring(path, [], SHA256, len(CONTENT), True)


def test_the_command_goes_on_after_a_failure_and_counts(study, capsys):
    copied = {"path": "one/made", "checksum": SHA256, "bytes": 1, "licence": "MIT", "how": "joined"}
    steps = {"by_hand": {"path": "two/secret", "licence": "on request", "steps": ["Ask.", "Wait."]}}
    study(
        one=source(entry("one/a", "missing"), entry("one/b"), entry("one/c.gz", gzip=True)) | {"made": [copied]},
        secret=steps,
    )
    assert downloads.fetch_groups([]) == 1
    output = capsys.readouterr().out
    assert "FAILED   $STUDY_DATA/one/a: 127.0.0.1" in output and str(study.folder) not in output
    assert "to copy  one: one/made" in output and "data secret" in output and "Wait." not in output
    assert output.splitlines()[-1] == "2 fetched, 1 failed, 1 to be copied, 1 to be got by hand"
    assert visible(study.folder) == ["one/b", "one/c.gz"]

    study(one=source(entry("one/b")) | {"made": [copied]}, secret=steps)
    (study.folder / "one/made").write_bytes(gzip.compress(CONTENT))
    assert downloads.fetch_groups(["secret", "one"]) == 0
    output = capsys.readouterr().out
    assert "2. Wait." in output and output.splitlines()[-1] == "2 there, 1 to be got by hand"
    write(study.folder / "two/secret/notes", "")
    assert downloads.fetch_groups(["two"]) == 0
    assert capsys.readouterr().out == "1 there\n"


def test_without_a_network_each_host_is_asked_twice_and_one_line_says_so(study, monkeypatch, capsys):
    closed = [f"http://127.0.0.1:{port}/file" for port in (1, 2)]  # no server listens there
    monkeypatch.setattr(
        downloads, "addresses", lambda source, file: closed if "b" in file.path else [study.server.url("good")]
    )
    requested = keep_calls(monkeypatch, fetching, "receive", lambda url, *rest: url)
    study(one=source(entry("one/b1"), entry("one/b2")), two=source(entry("two/b3"), entry("two/a")))
    assert downloads.fetch_groups([]) == 1
    *_, failed, counts = capsys.readouterr().out.splitlines()
    expected = "FAILED   no way to 127.0.0.1:1 (no connection), 127.0.0.1:2 (no connection): run again with a network"
    assert failed.startswith(expected) and counts == "1 fetched, 3 failed"
    assert requested == [closed[0], closed[0], closed[1], closed[1], study.server.url("good")]
    assert visible(study.folder) == ["two/a"]


@each("lost", [[1], [2, 3]])
def test_a_connection_that_fails_now_and_then_is_made_again(server, tmp_path, monkeypatch, lost):
    """A first connection is retried once, and one to a host that has answered more often."""
    requested, receive, hosts = [], fetching.receive, {}

    def lose(url, *rest):
        requested.append(url)
        if len(requested) in lost:
            url = "http://127.0.0.1:1/file"
        return receive(url, *rest)

    monkeypatch.setattr(fetching, "receive", lose)
    for name in "ab":
        fetching.bring(tmp_path / name, [server.url("good")], SHA256, len(CONTENT), hosts=hosts)
    assert len(requested) == 2 + len(lost) and not any(hosts.values())


def test_another_file_under_the_name_is_kept(study, capsys):
    study(one=source(entry("one/a"), entry("one/b")))
    write(study.folder / "one/a", "mine")
    assert downloads.fetch_groups([]) == 1
    output = capsys.readouterr().out
    assert "FAILED   $STUDY_DATA/one/a: not the file" in output and "move it away" in output
    assert (study.folder / "one/a").read_text() == "mine" and visible(study.folder) == ["one/a", "one/b"]
    assert len(study.server.requests) == 1


def test_a_listed_source_is_fetched_only_when_asked_for(study, monkeypatch, capsys):
    plan = {"path": "corpora/all", "url": "https://x/", "pattern": r"pubmed\d{2}n\d{4}\.xml\.gz", "size": "9 GB"}
    study(everything={"plan": plan | {"as_of": "2020", "note": "Large."}}, small=source(entry("corpora/b")))
    assert downloads.fetch_groups(["corpora"]) == 0
    output = capsys.readouterr().out
    assert "9 GB (2020); ./run_all.sh data everything fetches it" in output and "1 fetched, 1 only planned" in output
    groups = downloads.load_manifest()
    url = study.server.url("busy-listing").removesuffix("file")
    local_plan = groups["everything"].plan.model_copy(update={"url": url})
    local_groups = {"everything": groups["everything"].model_copy(update={"plan": local_plan})}
    monkeypatch.setattr(downloads, "load_manifest", lambda: local_groups)  # of a server that is busy at first
    for first, last in ((1, "1 fetched"), (None, "1 there, 1 fetched"), (None, "2 there"), (1, "1 there")):
        assert downloads.fetch_groups(["everything"], first) == 0
        assert capsys.readouterr().out.splitlines()[-1] == last
    assert visible(study.folder / "corpora/all") == ["pubmed26n0001.xml.gz", "pubmed26n0002.xml.gz"]
    with pytest.raises(StudyError, match="^http://127.0.0.1:[0-9]+/missing/file: status 404; run again later$"):
        fetching.read_url(study.server.url("missing"), {})


@each("path", ["../a", "/etc/a", "a/..", ".a.part", ""])
def test_a_path_outside_the_data_folder_is_refused(study, path):
    study(one=source(entry(path)))
    with pytest.raises(StudyError, match="downloads.yaml: groups.one.sources.0.files.0.path"):
        downloads.fetch_groups([])


def test_an_unknown_name_another_protocol_and_a_path_named_twice_are_refused(study):
    study(one=source(entry("a", urls=["http://x/a"])))
    with pytest.raises(StudyError, match="https"):
        downloads.load_manifest()
    study(one=source(entry("a")), two=source(entry("a")))
    with pytest.raises(StudyError, match="a: named twice"):
        downloads.load_manifest()
    study(pubmed=source(entry("a")))
    with pytest.raises(StudyError, match="unknown data source 'pubmet': did you mean pubmed"):
        downloads.fetch_groups(["pubmet"])


def all_files() -> list[tuple[str, str, int | None, bool]]:
    groups = downloads.load_manifest().values()
    files = [file for group in groups for source in group.sources for file in source.files]
    copies = [copy for group in groups for copy in group.made]
    return [(file.path, file.checksum, file.bytes, file.gzip) for file in files] + [
        (copy.path, copy.checksum, copy.bytes, True) for copy in copies
    ]


def test_the_manifest_describes_every_file_and_knows_every_folder_of_the_corpora():
    for path, checksum, size, compressed in all_files():
        assert not compressed or path.endswith(".gz"), path
        assert size or checksum.startswith("blob:"), path
    groups = downloads.load_manifest().values()
    for repository in [repository for group in groups for repository in group.sources]:
        for file in repository.files:
            assert all(re.fullmatch(r"https://[\w./@%()-]+", url) for url in downloads.addresses(repository, file))
    assert all(group.paths() or group.by_hand for group in groups)
    folders = {path.rsplit("/", 1)[0] for group in groups for path in group.paths()}
    folders |= {group.plan.path for group in groups if group.plan}
    for key in params.keys("sources"):
        assert params.load("sources", key).files.rsplit("/", 1)[0] in folders, key


def test_the_real_data_are_those_of_the_manifest(real_data):
    entries = all_files()
    for path, checksum, size, compressed in entries:
        if (real_data / path).exists():
            fetching.check_there(real_data / path, checksum, compressed)
            if not compressed and size:
                assert (real_data / path).stat().st_size == size, path
    sources = [params.load("sources", key) for key in params.keys("sources")]
    known_paths = {f"{source.files.rsplit('/', 1)[0]}/{name}" for source in sources for name in source.leave_out}
    known_paths |= {path for path, *_ in entries}
    for folder in ("corpora", "vocab"):
        for path in visible(real_data / folder):
            assert path == "README.md" or f"{folder}/{path}" in known_paths or path.startswith("mimic/"), path
