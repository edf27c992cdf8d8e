"""Tests of corpus files made from public ones: what each conversion takes; a file is made correctly or not at all."""

import gzip
import hashlib
import json
import subprocess
import tarfile

import pytest
import yaml
from conftest import each, keep_calls
from golden import write_files

from lib import repositories
from lib.corpora import made
from lib.errors import StudyError
from lib.study import documents, downloads, open_study, params, paths

LONG = " ".join(f"word{i}" for i in range(60))
BY = '<license href="https://creativecommons.org/licenses/by/4.0/"/>'
NC = '<license href="https://creativecommons.org/licenses/by-nc/4.0/"/>'
SAID = "<license>under the Creative Commons\nAttribution Licence</license>"


def article(number: int, licence: str, words: int) -> bytes:
    """Return a JATS article about patients."""
    prose = f"<p>{'the patients <b>spoke</b> ' * (words // 3)}<fig>Gone</fig> gone too</p><p>Too few words</p>"
    meta = f'<article-id pub-id-type="pmc">{number}</article-id><title-group><article-title>A &lt;b</article-title>'
    front = f"<front><article-meta>{meta}</title-group>{licence}</article-meta></front>"
    return f"<article>{front}<body><title>No</title>{prose}</body></article>".encode()


def of_json(content) -> bytes:
    return json.dumps(content).encode()


EUROPEPMC = {"pmid": ["1"], "title": [" A  <i>title</i>"], "abstractText": ["One<b>two</b> &lt;"], "pubYear": ["2017"],
             "meshHeadingList": [{"meshHeading": [{"descriptorName": ["Rice"], "majorTopic_YN": ["Y"]}]}]}  # fmt: skip
DISPLAY = f"1. J. 2018.\n\nA\ntitle.\n\nA B(1).\n\nAuthor information: \n{LONG}{LONG}\n\n{LONG}\n\nPMID: 7  [x]\n\n\n"
SQUAD = {"data": [{"title": "T", "paragraphs": [{"context": "a[SEP]b"}, {"context": "a[SEP]b"}]}]}


@each(
    ("conversion", "files", "found"),
    [
        ("tables", {"a.csv": b"\xef\xbb\xbfpubmedID,title,abstract\n1,A,B\n", "b.csv": b"x,medical_abstract\n3,C\n"},
         [("1", "A", "B"), ("", "", "C")]),
        ("abstracts", {"1": b"Of mice", "2": b"mice men NUMBER"}, [("", "", "Of mice")]),
        ("ohsumed", {"d/test/C01/7": b"A\n b", "d/test/C02/8": b"C", "d/training/C14/7": b"A\n b"},
         [("ohsumed:7:C01,C14", "A", " b"), ("ohsumed:8:C02", "C", "")]),
        ("pubtator", {"p": b"7|t|A | title\n7|a|B\n7\t0\t3\tA\tGene\n\n"}, [("7", "A | title", "B")]),
        ("annotated", {"a": gzip.compress(of_json([{"pubmed_id": None, "title": "A", "abstract": "B"}]))},
         [("", "A", "B")]),
        ("questions", {"q": of_json({"7": {"QUESTION": "Q?", "CONTEXTS": ["a", "b"], "LONG_ANSWER": "c"}})},
         [("7", "Q?", "a b c")]),
        ("display", {"p": (DISPLAY + DISPLAY.replace(LONG, "short").replace("1.", "2.", 1)).encode()},
         [("7", "A\ntitle.", LONG)]),
        ("mesh-sample", {"m": b",Title,abstractText,meshMajor,pmid,meshid,meshroot,A\n0,T,a,m,1,i,r,0\n"},
         [{"pmid": "1", "Title": "T", "abstractText": "a", "meshMajor": "m", "meshid": "i", "meshroot": "r"}]),
        ("europepmc", {"o/n/a": of_json(EUROPEPMC), "o/n/b": of_json([EUROPEPMC, {"pmid": ["2"]}]), "o/n/c": b""},
         [{"abstract": "One two <", "doi": "", "from": "o/n", "license": "", "pmcid": "", "pmid": "1", "year": "2017",
           "mesh": [{"descriptor": "Rice", "major": "Y"}], "title": "A <i>title</i>"}]),
        ("trials", {f"x/PMC{n}.nxml": article(n, licence, 9) for n, licence in ((20, BY), (3, SAID), (4, NC), (5, BY))}
         | {f"t/PMC{n}.txt": f"TITLE: A\n\n ABSTRACT.AIM:\n{LONG * w}\nNS\nBODY.A.B:".encode()
            for n, w in ((20, 9), (3, 9), (4, 9), (5, 1))},
         [["# PMC3 cc-by", "TITLE: A", LONG * 9, "BODY.A.B:"], ["# PMC20 cc-by", "TITLE: A", LONG * 9, "BODY.A.B:"]]),
        ("full-texts", {"a/fulltext.xml": article(1, BY, 1200), "b/fulltext.xml": article(1, BY, 1500),
                        "c/fulltext.xml": article(2, NC, 1200), "d/fulltext.xml": article(3, BY, 600),
                        "e/fulltext.xml": article(4, BY, 1200) + b"<"},
         [["# PMC1 cc-by", "A <b", ("the patients spoke " * 400).strip()]]),
        ("articles", {"t/7.txt": b"A\n\n B  c\n"}, [["# PMID7", "A", "B c"]]),
        ("first-40", {f"n/{i}": b"x" for i in range(50)}, [(f"{i}", b"x") for i in range(40)]),
        ("sample-60", {f"n/PMC{i}.nxml": article(i, BY, 3) for i in (*range(121, 0, -1), 999)},
         [(f"PMC{i}.nxml", article(i, BY, 3)) for i in range(1, 121, 2)]),
        ("sample-60", {f"n/PMC{i}.nxml": article(i, BY, 3) for i in (2, 1)},
         [(f"PMC{i}.nxml", article(i, BY, 3)) for i in (1, 2)]),
        ("extract", {f"{i}": f'<doc id="{i}" title="T">\nT\n\n {LONG * 3} &lt;br&gt;\n</doc>\n<doc>\nS\n</doc>'.encode()
                     for i in range(4)}, [["T", LONG * 3]] * 2),
        ("novels", {"l/E1.xml": b'<TEI xmlns="http://www.tei-c.org/ns/1.0"><text><front><p>no</p></front><body>'
                    b"<head>A</head><p>B\n c</p><lg><l>D</l></lg><note>no</note></body></text></TEI>"},
         [["# E1", "A", "B c", "D"]]),
        ("examinations", {"e": b'{"problem_text": "Q", "choices": ["a", "b"]}\n'}, [["Q", "a\nb"]]),
        ("contexts", {"c": of_json(SQUAD), "d": of_json(SQUAD)}, [["# T", "a[SEP]b"]]),
        ("separated", {"c": of_json(SQUAD)}, [["a\nb"]]),
        ("reports", {"r": "question\n\"Is 「x」 so?\n「a\n\nb」\"\n\"Or?\n「a\n\nb」\"\n".encode()}, [["a", "b"]]),
    ],
)  # fmt: skip
def test_conversions(conversion, files, found):
    assert list(made.CONVERSIONS[conversion](files.items())) == found


def test_downloads_name_all_conversions():
    conversions = {entry.conversion for group in downloads.load_manifest().values() for entry in group.made} - {None}
    assert conversions == set(made.CONVERSIONS)


def test_each_new_citation_is_taken_once():
    rows = [("1", "A&amp;B", f" {LONG}"), ("1", "", f"x{LONG}"), ("2", "", LONG.upper()), ("3", "", "few words"),
            ("4", "", f"y {LONG}"), ("", "", f"z {LONG}"), ("5", "", f"w {LONG}"), ("", "", f"v {LONG}")]  # fmt: skip
    citations = made.choose_citations(rows, {"5"}, {made.find_key(f"z, {LONG}")})
    assert list(citations) == [("1", "A&B", LONG), ("4", "", f"y {LONG}"), ("", "", f"v {LONG}")]


def test_parts_of_a_corpus():
    texts = [["# many words here", "a b"], ["c"], ["d e f"], ["g"]]
    assert [list(made.take_part(texts, i, 3)) for i in range(3)] == [texts[:2], texts[2:3], texts[3:]]


def test_written_files_are_always_the_same(tmp_path):
    forms = {"a.tsv.gz": [("1", "A", "B")], "a.txt.gz": [["a", "b"], ["c"]], "a.jsonl.gz": [{"b": "é"}]}
    for name, records in forms.items():
        made.write_records(records, tmp_path / name, name)
    assert [gzip.decompress((tmp_path / name).read_bytes()).decode() for name in forms] == [
        "pmid\ttitle\tabstract\n1\tA\tB\n",
        "a\nb\n\nc\n",
        '{"b": "é"}\n',
    ]
    for name in ("one.tar.gz", "two.tar.gz"):
        made.write_records([("n", b"content")], tmp_path / name, name)
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()
    with tarfile.open(tmp_path / "one.tar.gz") as archive:
        assert archive.extractfile("n").read() == b"content"


@pytest.fixture
def public(tmp_path, monkeypatch):
    """Replace GitHub by a local repository with two abstracts and unwanted files, and return its commit."""
    files = {"d/1": f"The {LONG}", "d/2": f"Of {LONG}", "d/e/3": "no", "large": "no" * 999}
    repository = write_files(tmp_path / "host" / "a" / "b", files)
    for name, value in {"COUNT": "1", "KEY_0": "safe.bareRepository", "VALUE_0": "explicit"}.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)  # a user's git may find no bare repository
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["config", "uploadpack.allowFilter", "true"], ["add", "."], ["commit", "-qm", "a"]):
        subprocess.run(["git", "-C", repository, *identity, *command], check=True, capture_output=True)
    monkeypatch.setattr(repositories, "HOST", f"file://{tmp_path / 'host'}/")
    return subprocess.run(["git", "-C", repository, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()


def files_of(commit: str, *patterns: str, **changes) -> repositories.RepositoryFiles:
    return repositories.RepositoryFiles(repository="a/b", commit=commit, files=list(patterns), **changes)


def test_requested_files_of_a_repository_are_fetched_once(public, tmp_path, monkeypatch):
    raw, wanted = tmp_path / "raw", files_of(public, "d/2", "d/*")
    contents = list(repositories.read_files(raw, wanted))
    assert [path for path, _ in contents] == ["d/2", "d/1", "d/2"] and contents[1][1].startswith(b"The word0")
    assert sum(path.stat().st_size for path in raw.rglob("*.pack")) < 1500
    (tmp_path / "host").rename(tmp_path / "gone")
    assert list(repositories.read_files(raw, wanted)) == contents
    with pytest.raises(StudyError, match="^b: git: .*run again later$"):
        list(repositories.read_files(raw, files_of(public, "**/3")))
    (tmp_path / "gone").rename(tmp_path / "host")
    matches = list(repositories.read_files(raw, files_of(public, "**/[13]", leave_out=["d/1"])))
    assert matches == [("d/e/3", b"no")]
    with pytest.raises(StudyError, match="no file d/x"):
        list(repositories.read_files(raw, files_of(public, "d/x*")))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(StudyError, match="git is not installed"):
        list(repositories.read_files(raw, wanted))


def test_a_file_is_made_correctly_or_not_at_all(public, tmp_path, monkeypatch, capsys):
    expected = f"pmid\ttitle\tabstract\n\t\tThe {LONG}\n\t\tOf {LONG}\n"
    path, manifest = "corpora/pubmed/x.tsv.gz", {}
    monkeypatch.setattr(downloads, "load_manifest", lambda: manifest)
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))

    def fetch(**changes) -> list[str]:
        entry = {
            "path": path, "checksum": f"sha256:{hashlib.sha256(expected.encode()).hexdigest()}", "bytes": len(expected),
            "licence": "MIT", "how": "as it says", "conversion": "abstracts",
            "origins": [{"repository": "a/b", "commit": public, "files": ["d/*"]}],
        }  # fmt: skip
        groups = {"one": {"title": "one", "made": [entry | changes]}}
        (tmp_path / "downloads.yaml").write_text(yaml.safe_dump({"groups": groups}))
        manifest.update(downloads.parsing.read_yaml(tmp_path / "downloads.yaml", downloads.Manifest).groups)
        downloads.fetch_groups([])
        return capsys.readouterr().out.splitlines()

    corpora = tmp_path / "data" / "corpora"
    assert fetch(without=["corpora/pubmed/other.tsv.gz"])[0].endswith(
        "needs corpora/pubmed/other.tsv.gz: run ./run_all.sh data corpora"
    )
    failed, counts = fetch(checksum=f"sha256:{'0' * 64}")
    assert "x.tsv.gz: made of its public files, but not what the study has" in failed and counts == "1 failed"
    assert "another form" in fetch(conversion="questions")[0]
    assert not [file for file in corpora.rglob("*") if file.is_file()]
    assert fetch()[-1] == "1 made" and fetch() == ["1 there"]
    assert gzip.decompress((tmp_path / "data" / path).read_bytes()).decode() == expected
    (tmp_path / "data" / path).write_text("mine")
    assert "not the file of the study, and kept" in fetch()[0]


def test_without_a_network_git_is_called_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(repositories, "HOST", "http://127.0.0.1:1/")
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    calls = keep_calls(monkeypatch, repositories, "run_git", lambda where, *words: words)
    groups = downloads.load_manifest().values()
    entries = [entry for group in groups for entry in group.made if entry.conversion == "trials"]
    group = downloads.Group(title="a", made=entries)
    monkeypatch.setattr(downloads, "load_manifest", lambda: {"a": group})
    assert downloads.fetch_groups([]) == 1
    failed, counts = capsys.readouterr().out.splitlines()
    assert failed.startswith("FAILED   no way to 127.0.0.1:1 (no connection): run again with a network")
    assert counts == "4 failed" and sum("fetch" in words for words in calls) == 1


def test_a_scale_may_read_the_first_files_of_a_source(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "data", lambda scale: tmp_path)
    names = [f"pubmed26n000{number}.xml.gz" for number in (1, 2, 3)]
    write_files(tmp_path / "corpora/pubmed-baseline", dict.fromkeys(reversed(names), ""))
    study, budget = open_study("paper"), params.load("scales", "paper")
    assert documents.list_raw_files(study, "pubmed-baseline") == names
    monkeypatch.setattr(type(study), "budget", budget.model_copy(update={"first_files": {"pubmed-baseline": 2}}))
    assert documents.list_raw_files(study, "pubmed-baseline") == names[:2]
    monkeypatch.setattr(type(study), "budget", budget.model_copy(update={"first_files": {"pubmed-bseline": 2}}))
    with pytest.raises(StudyError, match="unknown source in first_files of scale 'paper' 'pubmed-bseline'"):
        documents.list_raw_files(study, "pubmed-baseline")
