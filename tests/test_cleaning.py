"""Tests of each paper's cleaning rules and of the selection of citations by MeSH headings."""

from dataclasses import replace

import pytest
from conftest import each

from lib.corpora import cleaning, mesh
from lib.corpora.records import Document, Heading
from lib.errors import StudyError
from lib.study import open_study, params, paths
from lib.study.corpora import choose_rule
from lib.study.study import read_mesh

TITLE = "A made-up title."


def clean(key: str, text: str, title: str = TITLE, identifier: str = "1", language: str = "") -> tuple[str, str, int]:
    return cleaning.clean_document(Document(identifier, title, text, language=language), params.load("cleaning", key))


@each("key", ["lee", "wada", "gu"])
def test_text_as_it_comes(key):
    text = "One two.\nThree. " + "word " * 128 + "end"
    assert clean(key, text) == (f"{TITLE} {text}", "", 0)
    assert clean(key, text, title="") == clean(key, text, title=" ") == (text, "", 0)


def test_gu_drops_abstracts_under_128_words():
    """Words of the title do not count."""
    assert clean("gu", " ".join(["word"] * 127)) == ("", "too few words", 0)
    assert clean("gu", " ".join(["word"] * 128)) == (f"{TITLE} {'word ' * 128}".strip(), "", 0)
    assert clean("lee", "word") == (f"{TITLE} word", "", 0)


def test_naseem_has_a_sentence_of_20_characters_a_line():
    text = "This sentence\ngoes on over two lines.\n\n  It was 19 letters.\nThis one has twenty. No."
    assert (len("It was 19 letters."), len("This one has twenty.")) == (18, 20)
    assert clean("naseem", text, title="") == (
        "This sentence goes on over two lines.\nThis one has twenty.", "", 2,
    )  # fmt: skip
    assert clean("naseem", "x" * 19, title="") == ("", "nothing left", 1)
    assert clean("naseem", "x" * 20, title="") == ("x" * 20, "", 0)
    assert clean("naseem", "It was said twice over.", title="A title without end") == (
        "A title without end It was said twice over.", "", 0,
    )  # fmt: skip


@each(
    ("identifier", "reason"),
    [("10000000", "PMID"), ("10000001", ""), ("", "PMID"), ("PMC10000001", "PMID"), ("9999999", "PMID")],
)
def test_ozyurt_takes_citations_above_ten_million(identifier, reason):
    text, drop_reason, _ = clean("ozyurt-abstracts", "One sentence. And another.", identifier=identifier)
    assert drop_reason == reason
    assert text == ("" if reason else f"{TITLE}\nOne sentence.\nAnd another.")


def test_ozyurt_takes_full_texts_whatever_their_identifier():
    assert clean("ozyurt-full-text", "Head\nOne sentence. And another.", title="No end", identifier="PMC1") == (
        "No end\nHead\nOne sentence.\nAnd another.", "", 0,
    )  # fmt: skip


def test_japanese_is_cut_into_words():
    text, reason, _ = clean("wada-japanese", "白血病の治療。\n\n患者。", title="", language="ja")
    assert (text, reason) == ("白血病 の 治療 。\n患者 。", "")
    assert cleaning.segment_japanese("白血病の治療，ﾃﾞｰﾀ１２　㎎") == "白血病 の 治療 , データ 12 mg"


def test_sentences_of_each_language():
    assert cleaning.split_sentences("Dr. Doe gave 2.5 mg. It helped (p < 0.05).") == [
        "Dr. Doe gave 2.5 mg.", "It helped (p < 0.05).",
    ]  # fmt: skip
    assert cleaning.split_sentences("患者は治療を受けた。回復した。", "ja") == ["患者は治療を受けた。", "回復した。"]
    assert cleaning.split_sentences("") == []


@each("key", params.keys("cleaning"))
def test_a_document_without_text_has_a_reason(key):
    text, reason, dropped = clean(key, "", title="", identifier="10000001")
    assert (text, dropped) == ("", 0)
    assert reason == ("too few words" if key == "gu" else "nothing left")


# MeSH.


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Write both tables of MeSH descriptors and yield their folder."""
    monkeypatch.setattr(paths, "MADE_UP", tmp_path)
    folder = tmp_path / "corpora/mesh"
    folder.mkdir(parents=True)
    (folder / "mesh2017-tree.tsv.gz").write_text(
        '"Tree Number"\t"Desc Ui"\t"Term"\n"C04.557"\t"D1"\t"Made-up Disease"\n"B01.050"\t"D2"\t"Humans"\n'
    )
    (folder / "mesh2015-tree-numbers.tsv.gz").write_text(
        "mesh_name\tmesh_id\tmesh_tree_number\nMade-up Disease\tD1\tC05.1\nWool\tD3\tJ01.1\n"
    )
    yield folder
    read_mesh.cache_clear()


def test_headings_have_the_tree_numbers_of_both_releases(tables):
    for heading in (Heading("D1"), Heading(name="made-up disease"), Heading("D99", "Made-Up Disease")):
        assert open_study("smoke").mesh.tree_numbers(heading) == ("C04.557", "C05.1")
    assert open_study("smoke").mesh.tree_numbers(Heading("D99", "Unheard of")) == ()
    assert open_study("smoke").mesh.names_by_branch() == {"organisms": ["humans"], "diseases": ["made-up disease"]}


@each(
    ("content", "message"),
    [("a\tb\n", r"mesh2017-tree\.tsv\.gz:1: no column Desc Ui, Term, Tree Number"),
     ("Tree Number\tDesc Ui\tTerm\nC04\tD1\n", r"mesh2017-tree\.tsv\.gz:2: too few columns")],
)  # fmt: skip
def test_a_malformed_table_of_headings(tables, content, message):
    (tables / "mesh2017-tree.tsv.gz").write_text(content)
    with pytest.raises(StudyError, match=message):
        _ = open_study("smoke").mesh


@each(
    ("branches", "expected"),
    [(["C"], True), (["C04"], True), (["C04.557"], True), (["C0"], False), (["C04.5"], False), (["C04.557.1"], False),
     (["C4"], False), (["D", "C04"], True), ([], False)],
)  # fmt: skip
def test_what_is_below_a_branch(branches, expected):
    assert mesh.is_below({"C04.557"}, branches) is expected
    assert mesh.is_below({"E01", "C04.557"}, branches) is expected
    assert not mesh.is_below(set(), branches)


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
def test_which_citations_are_chosen(trees, major, chosen):
    assert {key for key in params.keys("selections") if choose_rule(key)(trees, major)} == chosen


def test_a_document_is_not_changed_by_cleaning():
    document = Document("1", TITLE, "One. Two.")
    before = replace(document)
    cleaning.clean_document(document, params.load("cleaning", "ozyurt-full-text"))
    assert document == before
