"""Tests of corpora built from raw files: counts of left-out records, versions, deletions, near-duplicates, leaks."""

import gzip
import itertools
import random
import shutil
from collections import Counter

import pyarrow.parquet as pq
import pytest
from conftest import each, outputs_in, write_index
from golden import citation, write_files

from lib.corpora import build as building
from lib.corpora import leakage, rows
from lib.errors import StudyError
from lib.study import dataset_texts, documents, open_study, params, paths

SMOKE = open_study("smoke")
WORDS = [f"word{i}" for i in range(5000)]


def write(folder, files: dict[str, str]) -> None:
    """Replace the contents of a folder by raw files, gzipped."""
    shutil.rmtree(folder, ignore_errors=True)
    write_files(folder, {name: gzip.compress(content.encode()) for name, content in files.items()})


def read_all(key: str) -> None:
    """Read the raw files of a corpus."""
    for source, file in SMOKE.corpus(key).files:
        documents.read_raw_file(SMOKE, source, file)


def build(key: str) -> dict:
    read_all(key)
    return SMOKE.corpus(key).build()


def reasons(record: dict) -> dict[str, int]:
    """Return the nonzero counts of left-out records by reason."""
    return {reason: record[reason] for reason in building.REASONS if record[reason]}


def kept(key: str) -> list[tuple[str, str]]:
    return [(text.id, text.text) for text in SMOKE.corpus(key).documents()]


def table(*rows: tuple[str, str, str]) -> str:
    return "pmid\ttitle\tabstract\n" + "".join("\t".join(row) + "\n" for row in rows)


def prose(seed: int, words: int = 60) -> str:
    """Return made-up text that resembles that of no other seed."""
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def deletion(pmid: int, version: int = 1) -> str:
    return f'<DeleteCitation><PMID Version="{version}">{pmid}</PMID></DeleteCitation>'


def pubmed(*records: str) -> str:
    return f"<PubmedArticleSet>{''.join(records)}</PubmedArticleSet>"


# The made-up data of the smoke scale.


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Return a folder of outputs for which every raw file of the made-up data has been read."""
    top = tmp_path_factory.mktemp("outputs")
    with outputs_in(top):
        params.load.cache_clear()
        dataset_texts.write_index(SMOKE)
        for key in params.keys("corpora"):
            read_all(key)
    return top


PARTS = ("pubmed-1", "pubmed-3", "pubmed-10", "pubmed-30")


@pytest.fixture
def made_up_files(fresh, outputs):
    with outputs_in(outputs):
        yield


def test_everything_read_is_kept_or_counted_once(made_up_files):
    keys = [key for key in params.keys("corpora") if not SMOKE.corpus(key).why_not]
    assert {"pubmed", "pmc", "wiki-books", "ja-clinical", "pubmed-focused", "pubmed-gu"} <= set(keys)
    records = {key: SMOKE.corpus(key).build() for key in keys}
    for key, record in records.items():
        for row in record["files"]:
            assert row["read"] == row["kept"] + sum(row[reason] for reason in building.REASONS), (key, row["file"])
            assert row["read"] == pq.read_metadata(rows_of(row["source"], row["file"])).num_rows
        for name in ("read", "kept", "words", "bytes", *building.REASONS):
            assert record[name] == sum(row[name] for row in record["files"])
        assert record["words"] == sum(len(text.split()) for _, text in kept(key))
        assert record["bytes"] == sum(len(text.encode()) + 1 for _, text in kept(key))

    shares = [records[key]["kept"] / records["pubmed"]["kept"] for key in PARTS]
    assert shares == pytest.approx([0.01, 0.03, 0.1, 0.3], rel=0.5) and shares == sorted(shares)
    for key in PARTS:
        assert records[key]["not in the part"] == records["pubmed"]["kept"] - records[key]["kept"]
    kept_documents = [set(kept(key)) for key in (*PARTS, "pubmed")]
    assert all(smaller < larger for smaller, larger in itertools.pairwise(kept_documents))

    # The two parts of PubMed are disjoint and together make up all of it.
    focused, other = kept("pubmed-focused"), kept("pubmed-other")
    assert focused and other and Counter(focused + other) == Counter(kept("pubmed"))
    assert records["pubmed-focused"]["kept"] + records["pubmed-focused"]["not selected"] == records["pubmed"]["kept"]
    assert 0 < records["pubmed-small"]["kept"] < records["pubmed-focused"]["kept"]


def rows_of(source: str, file: str):
    return paths.documents("smoke", source, file) / "documents.parquet"


def test_a_corpus_is_built_once_and_always_the_same(made_up_files):
    record = SMOKE.corpus("pubmed").build()
    path = paths.corpus("smoke", "pubmed") / "documents.parquet"
    content, modified = path.read_bytes(), path.stat().st_mtime_ns
    assert build("pubmed") == record
    assert path.stat().st_mtime_ns == modified  # the file is not rewritten
    (path.parent / "record.json").unlink()
    assert build("pubmed") == record
    assert path.read_bytes() == content


def test_no_kept_document_contains_a_test_sentence(made_up_files):
    SMOKE.corpus("pubmed").build()
    test_sentences = leakage.TestSentences(pq.read_table(documents.index_path(SMOKE)))
    assert len(test_sentences.starts) > 100
    assert not any(test_sentences.find(leakage.plain_words(text)) for _, text in kept("pubmed"))


# Versions and deletions: files are read in the order of their names.


@each(
    ("files", "expected", "left_out"),
    [
        # A later file's record of the same version replaces the earlier one.
        ([[(1, "a", 1)], [(1, "b", 1)]], {"1": "b"}, {"newer version": 1}),
        # A newer version stays, even if an older one comes after it.
        ([[(1, "a", 1), (1, "c", 3)], [(1, "b", 2)]], {"1": "c"}, {"newer version": 2}),
        # A deletion removes earlier records and is counted with them; a deletion of an unseen PMID is counted too.
        ([[(1, "a", 1), (2, "b", 1)], [(1, None, 1)]], {"2": "b"}, {"withdrawn": 2}),
        ([[(1, "a", 1)], [(2, None, 1)]], {"1": "a"}, {"withdrawn": 1}),
        ([[(1, "a", 1), (2, "z", 1)], [(1, "b", 2)], [(1, None, 2)]], {"2": "z"}, {"withdrawn": 3}),
        # A record that comes back after its deletion is kept.
        ([[(1, "a", 1)], [(1, None, 1)], [(1, "b", 1)]], {"1": "b"}, {"newer version": 2}),
        # A newer version without text does not bring the older one back.
        ([[(1, "a", 1), (2, "b", 1)], [(1, "", 2)]], {"2": "b"}, {"newer version": 1, "without text": 1}),
    ],
)
def test_versions_and_deletions(raw_data, files, expected, left_out):
    texts = {letter: prose(i) for i, letter in enumerate("abcz")} | {"": ""}
    contents = {
        f"corpora/pubmed-xml/update-{number}.xml.gz": pubmed(
            *(deletion(p, v) if name is None else citation(p, texts[name], version=v) for p, name, v in records)
        )
        for number, records in enumerate(files)
    }
    write(raw_data, contents)
    record = build("pubmed")
    assert dict(kept("pubmed")) == {pmid: texts[name] for pmid, name in expected.items()}
    assert reasons(record) == left_out


# Dates: later records are left out where the sources are the papers' own, and never from samples.


def test_citations_that_entered_pubmed_after_the_paper_are_left_out(raw_data, monkeypatch):
    days = [(2019, 1, 31), (2019, 2, 1), (2018, 12, 1), ()]
    records = (citation(number, prose(number), entered=day) for number, day in enumerate(days, 1))
    write(raw_data, {"corpora/pubmed-xml/a.xml.gz": pubmed(*records)})
    assert build("pubmed")["kept"] == 4
    last_day = open_study("paper").corpus("pubmed").until
    assert last_day == "2019-01-31"
    monkeypatch.setattr(type(SMOKE.corpus("pubmed")), "until", last_day)
    assert reasons(build("pubmed")) == {"not selected": 1} and {pmid for pmid, _ in kept("pubmed")} == {"1", "3", "4"}


# Reasons, in order.


def test_a_left_out_file_affects_no_other_file(raw_data):
    """Its records are counted, but replace no others and make no others duplicates."""
    excluded = next(iter(params.load("sources", "pubmed-tables").leave_out))
    write(raw_data, {
        f"corpora/pubmed/{excluded}": table(("1", "T", prose(1)), ("2", "T", prose(2))),
        "corpora/pubmed/z.tsv.gz": table(("1", "T", prose(3)), ("", "T", prose(2))),
    })  # fmt: skip
    record = build("pubmed")
    assert reasons(record) == {"file left out": 2}
    assert kept("pubmed") == [("1", f"T {prose(3)}"), ("", f"T {prose(2)}")]
    assert {row["file"] for row in record["files"] if row["why left out"]} == {excluded}


def test_too_long_records_are_counted(raw_data, monkeypatch):
    monkeypatch.setattr(rows, "LONGEST", 1000)
    longest = prose(1, 200)[: 1000 - len("T")]
    write(raw_data, {
        "corpora/pubmed/a.tsv.gz": table(("1", "T", longest), ("2", "T", longest + "x"), ("3", "T", prose(3))),
        "corpora/pubmed/b.tsv.gz": table(("4", "T", prose(4, 300))),  # none of its records is kept
        "corpora/pubmed/c.tsv.gz": table(("5", "T", prose(5))),
    })  # fmt: skip
    record = build("pubmed")
    assert (record["read"], record["kept"], reasons(record)) == (5, 3, {"too long": 2})
    assert [pmid for pmid, _ in kept("pubmed")] == ["1", "3", "5"]


@each("copies", [building.PHRASE - 1, building.PHRASE])
def test_a_test_sentence_in_many_documents_is_a_phrase(raw_data, copies):
    """Near-duplicates are removed first, so they do not count towards a phrase."""
    test, rare = prose(1, 12), prose(2, 12)
    write_index(test, rare)
    citations = [(str(i), "", f"{prose(10 + i, 200)} {test} {prose(99)}") for i in range(copies)]
    citations += [("", "", text) for _, _, text in citations]  # duplicates of them
    write(raw_data, {
        "corpora/pubmed/a.tsv.gz": table(*citations),
        "corpora/pubmed/b.tsv.gz": table(("99", "", f"{prose(3)} {test} {prose(4)} {rare}"), ("98", "", prose(5))),
    })  # fmt: skip
    record = build("pubmed")
    if copies + 1 <= building.PHRASE:
        assert reasons(record) == {"near duplicate": copies, "test text": copies + 1}
    else:  # the rare sentence still counts
        assert reasons(record) == {"near duplicate": copies, "test text": 1}
        assert [pmid for pmid, _ in kept("pubmed")] == [*map(str, range(copies)), "98"]


# Long texts, bad files.


def test_a_long_text_is_cut_into_parts(raw_data):
    lines = [prose(i, 1 + 37 * i % 300) for i in range(60)]
    write(raw_data, {"corpora/books/a.txt.gz": "# novel\n" + "\n".join(lines) + "\n\n# short\n" + prose(99)})
    record = build("wiki-books")
    parts = [text for name, text in kept("wiki-books") if name == "novel"]
    assert "\n".join(parts) == "\n".join(lines)
    for part in parts[:-1]:
        assert len(part.split()) >= building.PART_WORDS > len(part.rpartition("\n")[0].split())
    assert (record["kept"], len(kept("wiki-books"))) == (2, len(parts) + 1)


def test_a_missing_step_is_named(raw_data):
    write(raw_data, {})
    corpus = SMOKE.corpus("pubmed")
    with pytest.raises(StudyError, match="corpus 'pubmed': no text at hand"):
        corpus.build()
    write(raw_data, {"corpora/pubmed/a.tsv.gz": table(("1", "T", ""))})
    with pytest.raises(StudyError, match=r"source 'pubmed-tables' has no file .*none\.tsv\.gz"):
        documents.read_raw_file(SMOKE, "pubmed-tables", "none.tsv.gz")
    documents.index_path(SMOKE).unlink()
    with pytest.raises(StudyError, match="no index of test sentences at scale 'smoke': run ./run_all.sh smoke 10"):
        read_all("pubmed")
    assert not paths.documents("smoke", "pubmed-tables", "a.tsv.gz").exists()
    with pytest.raises(StudyError, match=r"a\.tsv\.gz has not been read at scale 'smoke'"):
        corpus.build()
    write_index()
    read_all("pubmed")
    with pytest.raises(StudyError, match="corpus 'pubmed': nothing is left after cleaning"):
        corpus.build()
    assert not paths.corpus("smoke", "pubmed").exists()
    with pytest.raises(StudyError, match="corpus 'pubmed' is not built at scale 'smoke'"):
        next(corpus.documents())


def test_documents_are_read_again_when_the_test_sentences_change(raw_data):
    sentence = prose(1, 12)
    write(raw_data, {"corpora/pubmed/a.tsv.gz": table(("1", "T", f"{prose(2)} {sentence}"))})
    matches = []
    for sentences in ([], [sentence], [sentence]):
        write_index(*sentences)
        documents.read_raw_file(SMOKE, "pubmed-tables", "a.tsv.gz")
        matches += pq.read_table(rows_of("pubmed-tables", "a.tsv.gz"))["test texts"].to_pylist()
    number = leakage.number_sentence(leakage.plain_words(sentence))
    assert matches == [[], [number], [number]]


def test_a_damaged_raw_file_leaves_nothing(raw_data):
    path = raw_data / "corpora/pubmed/a.tsv.gz"
    write(raw_data, {"corpora/pubmed/a.tsv.gz": table(*[(str(i), "T", prose(i, 5)) for i in range(2000)])})
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(StudyError, match=r"a\.tsv\.gz: cut off or damaged"):
        read_all("pubmed")
    leftovers = paths.documents("smoke", "pubmed-tables", "a.tsv.gz").parent.iterdir()
    assert not [path for path in leftovers if path.suffix != ".lock"]


def test_a_damaged_corpus(raw_data):
    write(raw_data, {"corpora/pubmed/a.tsv.gz": table(*[(str(i), "T", prose(i)) for i in range(50)])})
    build("pubmed")
    path = paths.corpus("smoke", "pubmed") / "documents.parquet"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(StudyError, match=r"documents\.parquet: damaged"):
        list(SMOKE.corpus("pubmed").documents())


def test_languages_and_headings_reach_the_rows(raw_data):
    headings = "MH  - *Lupus/therapy\nMH  - Gold\nMH  - Unheard of\n"
    tree = ["Tree Number\tDesc Ui\tTerm", "C17.300\tD008180\tLupus", "C20.111\tD008180\tLupus", "J01\tD006046\tGold"]
    write(raw_data, {
        "corpora/ja/a.txt.gz": "患者は治療を受けた。\n",
        "corpora/pubmed-xml/a.medline.gz": f"PMID- 1\nLA  - ger\nAB  - Text.\n{headings}",
        "corpora/mesh/mesh2017-tree.tsv.gz": "\n".join(tree) + "\n",
    })  # fmt: skip
    documents.read_raw_file(SMOKE, "ja-clinical", "a.txt.gz")
    assert pq.read_table(rows_of("ja-clinical", "a.txt.gz"))["language"].to_pylist() == ["ja"]
    assert documents.read_raw_file(SMOKE, "medline-text", "a.medline.gz")["unknown headings"] == 1
    (row,) = pq.read_table(rows_of("medline-text", "a.medline.gz")).to_pylist()
    assert row["language"] == "ger"
    assert (row["trees"], row["major trees"]) == (["C17.300", "C20.111", "J01"], ["C17.300", "C20.111"])
