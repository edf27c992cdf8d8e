"""Tests of each paper's cleaning rules and of the selection of citations by MeSH headings."""

import pytest
from conftest import each
from golden import write_files

from lib.corpora import cleaning, mesh
from lib.corpora.records import Document, Heading
from lib.errors import StudyError
from lib.study import open_study, params, paths
from lib.study.corpora import choose_rule

TITLE = "A made-up title."


def clean(key: str, text: str, title: str = TITLE, identifier: str = "1", language: str = "") -> tuple[str, str, int]:
    return cleaning.clean_document(Document(identifier, title, text, language=language), params.load("cleaning", key))


@each("key", ["lee", "wada", "gu"])
def test_text_is_unchanged(key):
    text = "One two.\nThree. " + "word " * 128 + "end"
    assert clean(key, text) == (f"{TITLE} {text}", "", 0)
    assert clean(key, text, title="") == clean(key, text, title=" ") == (text, "", 0)


def test_gu_drops_abstracts_under_128_words():
    """Words of the title do not count."""
    assert clean("gu", " ".join(["word"] * 127)) == ("", "too few words", 0)
    assert clean("gu", " ".join(["word"] * 128)) == (f"{TITLE} {'word ' * 128}".strip(), "", 0)
    assert clean("lee", "word") == (f"{TITLE} word", "", 0)


def test_naseem_keeps_one_sentence_of_20_characters_per_line():
    text = "This sentence\ngoes on over two lines.\n\n  It was 19 letters.\nThis one has twenty. No."
    cleaned = "This sentence goes on over two lines.\nThis one has twenty."
    assert clean("naseem", text, title="") == (cleaned, "", 2)
    assert clean("naseem", "x" * 19, title="") == ("", "nothing left", 1)
    assert clean("naseem", "x" * 20, title="") == ("x" * 20, "", 0)
    joined = "A title without end It was said twice over."
    assert clean("naseem", "It was said twice over.", title="A title without end") == (joined, "", 0)


def test_ozyurt_keeps_citations_above_ten_million_and_all_full_texts():
    text = "One sentence. And another."
    assert clean("ozyurt-abstracts", text, identifier="10000001") == (f"{TITLE}\nOne sentence.\nAnd another.", "", 0)
    for identifier in ("10000000", "", "PMC10000001"):
        assert clean("ozyurt-abstracts", text, identifier=identifier) == ("", "PMID", 0)
    full_text = "No end\nHead\nOne sentence.\nAnd another."
    assert clean("ozyurt-full-text", f"Head\n{text}", title="No end", identifier="PMC1") == (full_text, "", 0)


def test_japanese_text_is_split_into_sentences_and_words():
    sentences = ["患者は治療を受けた。", "回復した。"]
    assert cleaning.split_sentences("".join(sentences), "ja") == sentences
    text, reason, _ = clean("wada-japanese", "白血病の治療。\n\n患者。", title="", language="ja")
    assert (text, reason) == ("白血病 の 治療 。\n患者 。", "")
    assert cleaning.segment_japanese("白血病の治療，ﾃﾞｰﾀ１２　㎎") == "白血病 の 治療 , データ 12 mg"


@each("key", params.keys("cleaning"))
def test_an_empty_document_is_dropped_with_a_reason(key):
    reason = "too few words" if key == "gu" else "nothing left"
    assert clean(key, "", title="", identifier="10000001") == ("", reason, 0)


# MeSH.


@pytest.fixture
def tables(fresh, tmp_path, monkeypatch):
    """Write both tables of MeSH descriptors and return their folder."""
    monkeypatch.setattr(paths, "MADE_UP", tmp_path)
    terms = '"Tree Number"\t"Desc Ui"\t"Term"\n"C04.557"\t"D1"\t"Made-up Disease"\n"B01.050"\t"D2"\t"Humans"\n'
    numbers = "mesh_name\tmesh_id\tmesh_tree_number\nMade-up Disease\tD1\tC05.1\nWool\tD3\tJ01.1\n"
    files = {"mesh2017-tree.tsv.gz": terms, "mesh2015-tree-numbers.tsv.gz": numbers}
    return write_files(tmp_path / "corpora/mesh", files)


def test_headings_have_the_tree_numbers_of_both_releases(tables):
    descriptors = open_study("smoke").mesh
    for heading in (Heading("D1"), Heading(name="made-up disease"), Heading("D99", "Made-Up Disease")):
        assert descriptors.tree_numbers(heading) == ("C04.557", "C05.1")
    assert descriptors.tree_numbers(Heading("D99", "Unheard of")) == ()
    assert descriptors.names_by_branch() == {"organisms": ["humans"], "diseases": ["made-up disease"]}


@each(
    ("content", "message"),
    [("a\tb\n", r"mesh2017-tree\.tsv\.gz:1: no column Desc Ui, Term, Tree Number"),
     ("Tree Number\tDesc Ui\tTerm\nC04\tD1\n", r"mesh2017-tree\.tsv\.gz:2: expected 3 columns, found 2")],
)  # fmt: skip
def test_a_malformed_mesh_table(tables, content, message):
    (tables / "mesh2017-tree.tsv.gz").write_text(content)
    with pytest.raises(StudyError, match=message):
        _ = open_study("smoke").mesh


def test_tree_numbers_below_a_branch():
    for branches in (["C"], ["C04"], ["C04.557"], ["D", "C04"]):
        assert mesh.is_below({"E01", "C04.557"}, branches)
    for branches in (["C0"], ["C04.5"], ["C04.557.1"], []):
        assert not mesh.is_below({"E01", "C04.557"}, branches)
    assert not mesh.is_below(set(), ["C"])


HUMANS = "B01.050.150.900.649.801.400.112.400.400"


@each(
    ("trees", "major", "chosen"),
    [
        ({"C04.557"}, set(), {"focused"}),
        ({"C04.557", "J01.1"}, {"C04.557"}, {"other"}),  # industry
        ({"C22.1", "C04.557"}, {"C04.557"}, {"other"}),  # diseases of animals
        ({"E01.1"}, {"E01.1"}, {"other"}),
        (set(), set(), {"other"}),  # no headings
        ({"C04.557", "E01.1", HUMANS}, {"C04.557"}, {"focused", "small"}),
        ({"C04.557", "E01.1", HUMANS}, {"E01.1"}, {"focused"}),  # the disease is not a major topic
        ({"C04.557", "E01.1"}, {"C04.557"}, {"focused"}),  # not about humans
        ({"C04.557", HUMANS}, {"C04.557"}, {"focused"}),  # no procedure
    ],
)
def test_selected_citations(trees, major, chosen):
    assert {key for key in params.keys("selections") if choose_rule(key)(trees, major)} == chosen
