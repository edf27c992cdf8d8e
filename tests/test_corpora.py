"""Readers of raw text, what is left out and that it is counted."""

import gzip

import pytest

from lib import corpora
from lib.errors import StudyError


def write(path, text: str):
    path.write_bytes(gzip.compress(text.encode()))
    return path


def test_citations(tmp_path):
    path = write(tmp_path / "a.tsv.gz", "pmid\ttitle\tabstract\n1\tT\tA b.\n2\tOnly a title\t\n")
    assert list(corpora.read_citations(path)) == [corpora.Document("1", "T A b."), corpora.Document("2", "")]


@pytest.mark.parametrize(
    ("text", "message"),
    [("pmid\ttitle\n", "a.tsv.gz:1: expected 3 columns"), ("x\ty\tz\n", ":1: expected the header"),
     ("pmid\ttitle\tabstract\n1\tT\n", ":2: expected 3 columns, found 2")],
)  # fmt: skip
def test_malformed_citations(tmp_path, text, message):
    with pytest.raises(StudyError, match=message):
        list(corpora.read_citations(write(tmp_path / "a.tsv.gz", text)))


def test_paragraphs_are_documents_and_books_come_in_parts(tmp_path):
    long = "\n".join(["word " * 400] * 5)
    path = write(tmp_path / "a.txt.gz", f"Title\nText.\n\n# novel\n{long}\n")
    documents = list(corpora.read_paragraphs(path))
    assert documents[0] == corpora.Document("", "Title\nText.")
    assert [d.id for d in documents[1:]] == ["novel#0", "novel#1"]
    assert sum(len(d.text.split()) for d in documents[1:]) == 2000


def test_pubmed_xml(tmp_path):
    xml = (
        "<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>7</PMID><Article><ArticleTitle>On <i>in vitro</i> use"
        "</ArticleTitle><Abstract><AbstractText Label='AIM'>To <b>see</b>.</AbstractText>"
        "<AbstractText>Seen.</AbstractText></Abstract></Article></MedlineCitation></PubmedArticle><PubmedArticle><MedlineCitation><PMID>8</PMID><Article>"
        "<ArticleTitle>No abstract</ArticleTitle></Article></MedlineCitation></PubmedArticle></PubmedArticleSet>"
    )
    documents = list(corpora.read_pubmed_xml(write(tmp_path / "a.xml.gz", xml)))
    assert documents == [corpora.Document("7", "On in vitro use AIM: To see. Seen."), corpora.Document("8", "")]


def test_damaged_files_name_the_file(tmp_path):
    whole = gzip.compress(b"pmid\ttitle\tabstract\n" + b"1\tT\tA\n" * 9999)
    cut = tmp_path / "cut.tsv.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StudyError, match="cut.tsv.gz: .*truncated or damaged"):
        list(corpora.read_citations(cut))
    broken = write(tmp_path / "broken.xml.gz", "<PubmedArticleSet>\n<PubmedArticle></PubmedArticleSet>")
    with pytest.raises(StudyError, match=r"broken.xml.gz:2: not well-formed"):
        list(corpora.read_pubmed_xml(broken))
    (tmp_path / "plain.xml.gz").write_text("<not gzip/>")
    with pytest.raises(StudyError, match="truncated or damaged"):
        list(corpora.read_pubmed_xml(tmp_path / "plain.xml.gz"))
    flipped = bytearray(whole)
    flipped[200:260] = b"x" * 60
    (tmp_path / "flipped.tsv.gz").write_bytes(flipped)
    with pytest.raises(StudyError, match="flipped.tsv.gz"):
        list(corpora.read_citations(tmp_path / "flipped.tsv.gz"))
    latin = tmp_path / "latin.txt.gz"
    latin.write_bytes(gzip.compress("naïve".encode("latin-1")))
    with pytest.raises(StudyError, match="not UTF-8"):
        list(corpora.read_paragraphs(latin))


def test_entities_are_not_expanded(tmp_path):
    bomb = (
        "<!DOCTYPE x [<!ENTITY a 'boom'><!ENTITY b '&a;&a;&a;'>]><PubmedArticleSet><PubmedArticle><MedlineCitation>"
        "<PMID>1</PMID><Article><ArticleTitle>&b;</ArticleTitle><Abstract><AbstractText>x</AbstractText></Abstract>"
        "</Article></MedlineCitation></PubmedArticle></PubmedArticleSet>"
    )
    (document,) = corpora.read_pubmed_xml(write(tmp_path / "a.xml.gz", bomb))
    assert "boom" not in document.text


def test_a_document_with_a_test_sentence_is_found_whatever_its_tokenisation():
    sentence = "Effects of 5 - HT ( serotonin ) on the isolated heart of the young adult rat .".split()  # noqa: SIM905
    test_sentences = corpora.TestSentences([sentence, ["Too", "short", "."]])
    text = "Title. Effects of 5-HT (serotonin) on the isolated heart of the young adult rat. More."
    assert test_sentences.are_in(text)
    assert not test_sentences.are_in(text.replace("adult rat", "adult rats"))
    assert not test_sentences.are_in("Too short.")


def test_everything_read_is_kept_or_counted(smoke_data):
    record = corpora.build("pubmed", "smoke")
    for row in record["files"]:
        reasons = ("file left out", "without text", "same id", "same beginning", "benchmark test")
        assert row["read"] == row["kept"] + sum(row[reason] for reason in reasons)
    table, xml = record["files"]
    assert (table["without text"], table["same id"], table["same beginning"]) == (5, 5, 5)
    assert table["benchmark test"] == 20
    assert xml["read"] == xml["kept"] == 300
    kept = list(corpora.iterate("pubmed", "smoke"))
    assert len(kept) == record["documents"]
    assert corpora.build("pubmed", "smoke") == record
