"""Tests of the readers of raw text: files are read as written; damage gives StudyError or fewer documents."""

import bz2
import csv
import gzip
import io
import json
import re
import tracemalloc
from typing import NamedTuple
from xml.sax.saxutils import escape

import golden
import pyarrow.parquet as pq
import pytest
from conftest import each
from golden import citation

from lib.corpora.readers import READERS
from lib.corpora.records import Document, Heading
from lib.errors import StudyError
from lib.study import documents, open_study, params, paths

PACKED = {"plain": bytes, "gzip": lambda content: gzip.compress(content, mtime=0), "bzip2": bz2.compress}
XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
PUBMED = (
    XML + '<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle//EN" "https://dtd.nlm.nih.gov/pubmed.dtd">\n'
    "<PubmedArticleSet>\n{}</PubmedArticleSet>\n"
)


JATS = (
    XML + '<!DOCTYPE article PUBLIC "-//NLM//DTD JATS//EN" "JATS-archivearticle1.dtd">\n<article xml:lang="en"><front>'
    '<article-meta><article-id pub-id-type="pmid">7</article-id><article-id pub-id-type="pmc">{id}</article-id>'
    "<title-group><article-title>{title}</article-title></title-group><pub-date><year>{year}</year></pub-date>"
    "{abstract}</article-meta></front>{body}<back><ref-list><ref>No text</ref></ref-list></back></article>"
)


def archive_of(articles: list[str]) -> bytes:
    """Return a tar archive of the articles and of other files without text."""
    members = {}
    for number, article in enumerate(articles):
        members[f"made-up/PMC{number}.nxml"] = article
        members[f"made-up/figure{number}.jpg"] = "no text"
    return gzip.decompress(golden.tarred(members))


PAGE = "<page><title>{}</title><ns>{}</ns><id>{}</id>{}<revision><id>3</id><text>{}</text></revision></page>\n"
DUMP = '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" xml:lang="en"><siteinfo/>\n{}</mediawiki>\n'


def wiki_dump(pages) -> bytes:
    """Return a Wikipedia dump of pages given as (title, namespace, id, redirect, wikitext)."""
    xml_pages = [
        PAGE.format(escape(title), namespace, page_id, "<redirect/>" if redirect else "", escape(text))
        for title, namespace, page_id, redirect, text in pages
    ]
    return DUMP.format("".join(xml_pages)).encode()


def note_table(rows: list[list[str]]) -> bytes:
    table = io.StringIO()
    csv.writer(table, quoting=csv.QUOTE_ALL).writerows([["ROW_ID", "CATEGORY", "ISERROR", "TEXT"], *rows])
    return table.getvalue().encode()


CITATIONS = PUBMED.format(
    '<PubmedArticle><!-- no --><MedlineCitation Status="MEDLINE"><?no?><PMID Version="1">1</PMID>'
    '<Article PubModel="Print"><Journal>'
    "<JournalIssue><PubDate><MedlineDate>1998 Dec-1999 Jan</MedlineDate></PubDate></JournalIssue></Journal>"
    "<ArticleTitle><b><i>Iron</i></b> &lt;&amp; \n\t gold</ArticleTitle><Abstract><AbstractText Label='AIM'>Seen "
    "here<!-- no -->.<?no </AuthorList> ?></AbstractText><AbstractText Label='METHODS'/>"
    '<AbstractText Label="UNLABELLED">Two <sup>3</sup>.</AbstractText><AbstractText>白 é.</AbstractText>'
    '<CopyrightInformation>All</CopyrightInformation></Abstract><AuthorList CompleteYN="Y"><Author><LastName>X'
    "</LastName></Author></AuthorList><Language>eng</Language></Article><MeshHeadingList>"
    '<MeshHeading><!--</Article><MeshHeading>--><DescriptorName UI="D006801" MajorTopicYN="N">Humans</DescriptorName>'
    "</MeshHeading>\n  <MeshHeading>"
    '\n<DescriptorName MajorTopicYN="N" UI="D000818" Type="Geographic">Animals</DescriptorName> <QualifierName '
    'UI="Q000032" MajorTopicYN="Y">use</QualifierName>\n</MeshHeading><MeshHeading><DescriptorName MajorTopicYN="Y">'
    "Iron &amp; gold</DescriptorName></MeshHeading></MeshHeadingList><CommentsCorrectionsList><CommentsCorrections>"
    '<PMID Version="1">7</PMID></CommentsCorrections></CommentsCorrectionsList></MedlineCitation><PubmedData>'
    '<History><PubMedPubDate PubStatus="medline"><Year>2001</Year><Month>1</Month><Day>1</Day></PubMedPubDate>'
    '<PubMedPubDate PubStatus="entrez"><Year>1998</Year><Month>12</Month><Day>5</Day><Hour>9</Hour></PubMedPubDate>'
    '</History><ArticleIdList><ArticleId IdType="pubmed">7</ArticleId></ArticleIdList></PubmedData></PubmedArticle>\n'
    '<DeleteCitation><PMID Version="2">2</PMID></DeleteCitation>\n<PubmedBookArticle><BookDocument><PMID Version="1">3'
    "</PMID><Book><PubDate><Year>2001</Year><Month>Mar</Month></PubDate><BookTitle>Made up</BookTitle></Book>"
    "<ArticleTitle>A chapter</ArticleTitle></BookDocument></PubmedBookArticle>\n" + citation(4, "Last.")
).encode()  # fmt: skip
HEADINGS = (Heading("D006801", "Humans"), Heading("D000818", "Animals", True), Heading("", "Iron & gold", True))
MEDLINE_FILE = (
    b"\nPMID- 1\nDP  - 1950 Mar-Apr\nTI  - Iron and\n      gold of many\n      words\nLA  - eng\nAU  - Made U\n"
    b"AB  - Seen here,\n      and then no more.\nMH  - Humans\nMH  - Iron/use\nMH  - *Gold/use\n"
    b"MH  - Zinc/use/*trends\n\nPMID- 2\nTI  - Two\n"
)
CITED = [Document("1", "Iron", "Seen here."), Document("2", "", "é"), Document("3")]
TABLE = "pmid\ttitle\tabstract\n1\tIron\tSeen here.\r\n2\t\té\n3\t\t\n"
EUROPEPMC = (
    '{"pmid": "1", "title": "Iron", "abstract": "Seen here.", "license": "cc by", "year": "1998", "mesh": '
    '[{"descriptor": "Humans", "major": "N"}, {"descriptor": "Gold", "major": "Y"}]}\n'
    '{"pmid": "2", "title": null, "abstract": "\\u767d", "year": ""}\n'
)
MESH_SAMPLE = [
    {"pmid": "1", "Title": "Iron", "abstractText": "Seen here.", "meshid": "[['C04.557'], ['B01']]",
     "meshMajor": repr(["Humans", "Alzheimer's Disease", "Iron, Dietary"])},
    {"pmid": "2", "Title": "", "abstractText": "白", "meshMajor": "[]", "meshid": "[]"},
]  # fmt: skip
ARTICLES = [
    JATS.format(id=1, title="<b><i>Iron</i></b> &amp; \n gold", year=1998, abstract="<abstract><p>Seen here.</p>"
                "<p>Two.</p></abstract>", body="<body><sec><title>Head</title><p>é \n x</p></sec></body>"),
    JATS.format(id=2, title="Two", year="", abstract="", body=""),
]  # fmt: skip
PAGES = [("Iron", 0, 1, False, "'''Seen''' here.\n\n[[Page|Two]] words"), ("Talk", 1, 2, False, "no"),
         ("Gold", 0, 3, True, "no"), ("白 &", 0, 4, False, "Last")]  # fmt: skip
NOTES = [["1", 'Note, "any"', "", 'Seen here.\n\n  "Two"'], ["2", "", "1", "wrong"], ["3", "", "", ""]]


class Format(NamedTuple):
    """A hand-written file, its documents, and whether an uncompressed file that was cut can pass for a shorter one.

    `ends`: a file cut between two documents can. `shortens`: a file cut within a document can too, and the text of
    that document differs.
    """

    content: bytes
    documents: list[Document]
    name: str = "made-up"
    ends: bool = False
    shortens: bool = False


FORMATS = {
    "pubmed-xml": Format(CITATIONS, [
        Document("1", "Iron <& gold", "AIM: Seen here. Two 3. 白 é.", language="eng", mesh=HEADINGS,
                 entered="1998-12-05"),
        Document("2", version=2, deleted=True), Document("3", "A chapter"), Document("4", "", "Last."),
    ]),
    "medline-text": Format(MEDLINE_FILE, [
        Document("1", "Iron and gold of many words", "Seen here, and then no more.", language="eng",
                 mesh=(Heading(name="Humans"), Heading(name="Iron"), Heading(name="Gold", major=True),
                       Heading(name="Zinc", major=True))),
        Document("2", "Two"),
    ], ends=True, shortens=True),
    "citations": Format(TABLE.encode(), CITED, ends=True, shortens=True),
    "ohsumed": Format(
        b"pmid\ttitle\tabstract\nohsumed:1:C01,C14\tT\tSeen here.\nohsumed:2:C02\t\tx\n",
        [Document("ohsumed:1", "T", "Seen here.", trees=("C01", "C14")),
         Document("ohsumed:2", "", "x", trees=("C02",))],
        ends=True, shortens=True,
    ),
    "abstract-lines": Format("Seen here.\n\n é \n".encode(), [Document(text="Seen here."), Document(text="é")],
                             ends=True, shortens=True),
    "europepmc": Format(EUROPEPMC.encode(), [
        Document("1", "Iron", "Seen here.", mesh=(Heading("", "Humans"), Heading("", "Gold", True))),
        Document("2", "", "白"),
    ], ends=True),
    "mesh-sample": Format("".join(json.dumps(record) + "\n" for record in MESH_SAMPLE).encode(), [
        Document("1", "Iron", "Seen here.", trees=("C04.557", "B01"),
                 mesh=tuple(Heading("", name) for name in ("Humans", "Alzheimer's Disease", "Iron, Dietary"))),
        Document("2", "", "白"),
    ], ends=True),
    "jats": Format(archive_of(ARTICLES), [
        Document("PMC1", "Iron & gold", "Seen here.\nTwo.\nHead\né x", language="en"),
        Document("PMC2", "Two", language="en"),
    ], name="made-up.tar"),
    "wikipedia-xml": Format(wiki_dump(PAGES), [Document("1", "Iron", "Seen here.\nTwo words"),
                                               Document("4", "白 &", "Last")]),
    "paragraphs": Format("# 1\nSeen here.\nTwo\n\nno id\n\n# 2\n\n# 3\né\n# no id\n".encode(), [
        Document("1", text="Seen here.\nTwo"), Document(text="no id"), Document("2"), Document("3", text="é\n# no id"),
    ], ends=True, shortens=True),
    "mimic-notes": Format(b"\xef\xbb\xbf" + note_table(NOTES), [
        Document("1", text='Seen here.\n"Two"'), Document("2"), Document("3"),
    ], ends=True, shortens=True),
}  # fmt: skip


def write(folder, name: str, content: str | bytes, pack: str = "plain"):
    return golden.write(folder / name, PACKED[pack](content.encode() if isinstance(content, str) else content))


def read(reader: str, path) -> tuple[list[Document], str]:
    """Return the documents read up to any StudyError, and its message; any other exception fails the test."""
    docs = []
    try:
        for document in READERS[reader](path):
            docs.append(document)
    except StudyError as error:
        assert path.name in str(error)
        return docs, str(error)
    return docs, ""


def test_every_reader_is_tested():
    assert FORMATS.keys() == READERS.keys()


# Decompression is the same for all (lib/reading.py): one reader of lines and one of XML show it.
FORMS = [(reader, "plain") for reader in FORMATS] + [
    (reader, pack) for reader in ("abstract-lines", "pubmed-xml") for pack in PACKED if pack != "plain"
]


@each(("reader", "pack"), FORMS)
def test_documents_are_read_as_written(tmp_path, reader, pack):
    form = FORMATS[reader]
    assert read(reader, write(tmp_path, form.name, form.content, pack)) == (form.documents, "")


def list_places(content: bytes, first: int = 3) -> range:
    """Return about eighty positions in a file, by default after the three bytes that identify its compression."""
    return range(first, len(content), 1 + len(content) // 80)


@each(("reader", "pack"), FORMS)
def test_a_truncated_file(tmp_path, reader, pack):
    form = FORMATS[reader]
    packed = PACKED[pack](form.content)
    first = 1 if pack == "gzip" else 3  # one byte identifies gzip, as no text starts with it
    for cut in list_places(packed, first):
        docs, message = read(reader, write(tmp_path, form.name, packed[:cut]))
        if pack != "plain":
            assert "cut off or damaged" in message
        intact = docs[:-1] if pack == "plain" and form.shortens else docs
        assert intact == form.documents[: len(intact)] and len(docs) <= len(form.documents)
        if not message and not form.ends:  # only trailing zeros or white space may be missing
            assert docs == form.documents and not packed[cut:].strip(b"\0\n")


@each(("reader", "pack"), FORMS)
def test_a_damaged_byte(tmp_path, reader, pack):
    """Damage gives StudyError or documents that can be stored: damage within a text looks like text."""
    for position in list_places(PACKED[pack](FORMATS[reader].content)):
        packed = bytearray(PACKED[pack](FORMATS[reader].content))
        packed[position] ^= 1 + 53 * position % 255
        docs, _ = read(reader, write(tmp_path, FORMATS[reader].name, bytes(packed)))
        for document in docs:
            for text in (document.id, document.title, document.text, document.language, *document.trees):
                assert text.encode().decode() == text
            for heading in document.mesh:
                assert (heading.ui + heading.name).encode()
            assert (type(document.version), type(document.deleted)) == (int, bool)


# Damage with its own message.


@each("key", params.keys("sources"))
def test_a_source_file_without_documents_is_an_error(raw_data, key):
    source = params.load("sources", key)
    path = write(raw_data, source.files.replace("[!j]", "a").replace("*", "a"), b"", "gzip")
    message = "no documents in the file" if source.reader == "paragraphs" else ""
    with pytest.raises(StudyError, match=rf"^(.*, )?{path.name}:.*{message}"):
        documents.read_raw_file(open_study("smoke"), key, path.name)


@each("reader", FORMATS)
def test_text_that_is_not_utf_8_is_refused(tmp_path, reader):
    """Every format refuses Latin-1 text; JATS files and Wikipedia dumps declare UTF-8 or nothing."""
    content = FORMATS[reader].content
    position = content.index(b"here")
    damaged = content[:position] + b"h\xe9re" + content[position + 4 :]
    docs, message = read(reader, write(tmp_path, FORMATS[reader].name, damaged))
    assert docs == []
    assert message.startswith("made-up")
    if reader not in ("pubmed-xml", "jats", "wikipedia-xml", "mimic-notes"):
        line = content[:position].count(b"\n") + 1
        assert message == f"made-up:{line}: not UTF-8 text (invalid continuation byte); convert the file"


BOMB = "<!DOCTYPE x [<!ENTITY a 'boom'>" + "".join(
    f"<!ENTITY {name} '{f'&{inner};' * 10}'>" for inner, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@each(
    "declared, attribute",
    [
        (BOMB + "]>", ""),
        (BOMB + "]>", ' x="&i;"'),
        ("<!DOCTYPE x [<!ENTITY i SYSTEM 'file:///etc/hostname'>]>", ""),
        ("<!DOCTYPE x [<!ENTITY % p SYSTEM 'file:///etc/hostname'> %p;]>", ""),
    ],
)
def test_entities_are_refused_and_never_expanded(tmp_path, declared, attribute):
    """JATS and Wikipedia files are parsed by the same function, records.iterate_xml."""
    content = f"{declared}<PubmedArticleSet{attribute}>{citation(1, 'a &i; b')}</PubmedArticleSet>"
    path = write(tmp_path, "a.xml", content)
    tracemalloc.start()
    docs, message = read("pubmed-xml", path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert docs == [] and "a.xml" in message and "boom" not in message
    assert peak < 1 << 20


# PubMed's XML.


@each(
    ("damage", "message"),
    [
        (("<ArticleTitle>two", "<i>two"), r"a\.xml:\d+: not well-formed XML after citation 1: "),
        (("two", "&two;"), r"a\.xml:\d+: &two; is declared elsewhere: refused"),
        (('<PMID Version="1">2</PMID>', ""), r"citation 2 \(PMID unknown\): an element is missing \('PMID'\)"),
        (('<PMID Version="1">2', '<PMID Version="x">2'), r"citation 2 \(PMID 2\)"),
        (("<PubmedArticleSet>", "<html>"), "a document of <html>, expected PubmedArticleSet or "),
        (("UTF-8", "ISO-8859-1"), "^$"),  # read in its declared encoding
    ],
)
def test_damaged_pubmed_xml_names_file_and_citation(tmp_path, damage, message):
    content = PUBMED.format("".join(citation(i, "x", title) for i, title in enumerate(("one", "two", "three"), 1)))
    assert damage[0] in content
    docs, error = read("pubmed-xml", write(tmp_path, "a.xml", content.replace(*damage, 1)))
    assert re.search(message, error), error
    assert error or len(docs) == 3


def test_an_empty_set_and_a_text_beyond_the_parsers_own_limit_are_read(tmp_path):
    assert read("pubmed-xml", write(tmp_path, "a.xml", PUBMED.format(""))) == ([], "")
    path = write(tmp_path, "long.xml", PUBMED.format(citation(1, "x" * 10_100_000) + citation(2, "Short.")))
    assert [len(document.text) for document in read("pubmed-xml", path)[0]] == [10_100_000, 6]


MEDLINE = "PMID- 1\nAB  - Made-up text\n" + "      goes on.\n" * 99 + "\n"
LONG = {
    "pubmed-xml": lambda number: PUBMED.format(citation(1, "Made-up text. " * 99) * number).encode(),
    "medline-text": lambda number: (MEDLINE * number).encode(),
    "jats": lambda number: archive_of([JATS.format(id=1, title="T", year=1, abstract="", body="")] * number),
}


@each("reader", LONG)
def test_memory_does_not_grow_with_the_file(tmp_path, reader):
    peaks = []
    for number in (1, 100, 1000):  # the first reading also loads modules
        path = write(tmp_path, FORMATS[reader].name, LONG[reader](number))
        tracemalloc.start()
        assert sum(1 for _ in READERS[reader](path)) == number
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert abs(peaks[2] - peaks[1]) < 1 << 19


def test_medline_text_and_xml_agree(tmp_path):
    languages = "".join(f"<Language>{language}</Language>" for language in ("eng", "jpn"))
    book = "<Book><PubDate><Year>1993</Year></PubDate><BookTitle>A book</BookTitle></Book>"
    xml = PUBMED.format(
        citation(1, "<b>Male, 6</b><b>Fever</b>, <b>10</b><sup>6</sup>.", "[Not Available].").replace(
            "</Article>", f"<VernacularTitle>Titre</VernacularTitle>{languages}</Article>"
        )
        + f"<PubmedBookArticle><BookDocument><PMID>2</PMID>{book}<Abstract><AbstractText>One. Two.</AbstractText>"
        "</Abstract></BookDocument></PubmedBookArticle>"
    )
    text = (
        "\nPMID- 1\nTI  - [Not Available].\nTT  - Titre\nAB  - Male, 6 Fever,\n\n      106.\nLA  - eng\nLA  - jpn\n\n"
        "PMID- 2\nDP  - 1993\nBTI - A book\nAB  - One.\n\n\n      Two.\n"
    )
    expected = [
        Document("1", "", "Male, 6 Fever, 106.", language="jpn"),
        Document("2", "A book", "One. Two."),
    ]
    assert read("pubmed-xml", write(tmp_path, "a.xml", xml)) == (expected, "")
    assert read("medline-text", write(tmp_path, "a.txt", text)) == (expected, "")


# The other formats.


@each(
    ("reader", "content", "message"),
    [
        ("medline-text", "TI  - T\nAB  - x\n\nPMID- 2\n", "a:3: the record that ends here has no PMID"),
        ("medline-text", "PMID- 1\nnot a field\n", "a:2: expected 'TAG - value' of the MEDLINE format, found 'not a"),
        ("citations", "x\ty\tz\n", "a:1: expected the header pmid, title, abstract"),
        ("ohsumed", "pmid\ttitle\tabstract\nohsumed:1\tT\tx\n", "a:2: no MeSH categories in the identifier"),
        ("europepmc", '{"pmid": 1}\n', "a:1: not a record of Europe PMC (TypeError: text expected, found int)"),
        ("europepmc", '{"title": "x\\ud800"}\n', "a:1: not a record of Europe PMC (UnicodeEncodeError"),
        ("mesh-sample", '{"pmid": "1", "Title": "T"}\n', "a:1: not a record of the sample (KeyError: "),
        ("mimic-notes", '"ROW_ID","TEXT"\n"1","x"\n', "a:1: expected the columns ROW_ID, ISERROR, TEXT, each once"),
        ("mimic-notes", "", "a: empty file"),
        ("jats", "", "a:1: not well-formed XML after article 0: "),
        ("jats", "<article><front/></article>", "a:1: no article-meta: not a JATS article"),
        ("jats", "<OAI-PMH><article/></OAI-PMH>", "a: a document of <OAI-PMH>, expected article or pmc-articleset"),
        ("wikipedia-xml", "<mediawiki>\n<page><ns>0</ns></page>\n<page>", "a:3: not well-formed XML after page 1: "),
    ],
)
def test_messages_about_malformed_files(tmp_path, reader, content, message):
    assert read(reader, write(tmp_path, "a", content))[1].startswith(message)


@each("change", [b"", b'"', b"\n", b"\xff"])
def test_no_message_quotes_a_note_however_the_file_is_damaged(tmp_path, change):
    content = note_table([[str(i), "Qzxv", "", 'Qzxv admitted, "Qzxv"\nQzxv é'] for i in range(2)])
    for position in range(len(content)):
        damaged = content[:position] + change + content[position + 1 :]
        _, message = read("mimic-notes", write(tmp_path, "NOTEEVENTS.csv", damaged))
        assert "Qz" not in message and "zxv" not in message


BODY = """<body><p>Seen <xref ref-type='bibr'>[1]</xref> in <italic>E. coli</italic><!-- no --><sup>2</sup>.</p>
<sec><title>Outer</title><p>One.<fig><caption><p>no</p></caption></fig> Two.</p>
<sec><title>Inner</title><p>One of:<list><list-item><label>1.</label><p>fever</p></list-item><list-item><p>10<sup>6
</sup> cells</p></list-item></list>Others not.</p><p>Said.<disp-quote><p>Yes.</p><p>No.</p></disp-quote></p>
<table-wrap><caption><title>no</title></caption><table><tr><td>no</td></tr></table></table-wrap></sec></sec>
<p>It ends<break/>it starts<disp-formula>no</disp-formula>where
(<inline-formula><alternatives><graphic/><tex-math>no</tex-math>x</alternatives></inline-formula>) is.</p>
<sec><title>Notes</title><supplementary-material><p>no</p></supplementary-material></sec>
<ref-list><title>no</title><ref>no</ref></ref-list></body><back><ack><p>no</p></ack></back>"""


def test_articles_keep_their_prose_with_blocks_separated(tmp_path):
    abstract = "<abstract><p>Ab.</p></abstract>"
    content = JATS.format(id=1, title="Of<break/>iron<xref>*</xref>", year="", abstract=abstract, body=BODY)
    (document,), message = read("jats", write(tmp_path, "a.nxml", content, "gzip"))
    assert (document.id, document.title, message) == ("PMC1", "Of iron*", "")
    assert document.text.split("\n") == [
        "Ab.", "Seen [1] in E. coli2.", "Outer", "One. Two.", "Inner", "One of: 1. fever 106 cells Others not.",
        "Said. Yes. No.", "It ends it starts where (x) is.", "Notes",
    ]  # fmt: skip


def test_article_sets_of_e_utilities_and_default_namespaces(tmp_path):
    articles = [article[article.index("<article xml") :] for article in ARTICLES]
    expected = FORMATS["jats"].documents
    article_set = XML + f"<pmc-articleset>{''.join(articles)}</pmc-articleset>"
    assert read("jats", write(tmp_path, "set.xml", article_set)) == (expected, "")
    for prefix in ("https://jats.nlm.nih.gov/ns/archiving/1.3/", "urn:x"):
        namespaced = articles[0].replace("<article ", f'<article xmlns="{prefix}" ')
        assert read("jats", write(tmp_path, "a.nxml", namespaced)) == (expected[:1], "")


def test_macos_metadata_files_are_read_as_empty_documents(raw_data):
    members = {"x/._PMC1.nxml": b"\0\5\x16\7", "x/PMC1.nxml": ARTICLES[0], "__MACOSX/x/._PMC1.xml": b"\0"}
    write(raw_data / "corpora" / "pmc", "a.tar.gz", golden.tarred(members))
    assert documents.read_raw_file(open_study("smoke"), "pmc-jats", "a.tar.gz")["read"] == 3
    rows = pq.read_table(paths.documents("smoke", "pmc-jats", "a.tar.gz") / "documents.parquet").to_pylist()
    assert [(row["id"], row["characters"] > 0) for row in rows] == [
        ("x/._PMC1.nxml", False), ("PMC1", True), ("__MACOSX/x/._PMC1.xml", False),
    ]  # fmt: skip


def test_an_archive_truncated_between_two_articles(tmp_path):
    """Python's tarfile mistakes the end of the file or a damaged header for the end of the archive."""
    content = archive_of([JATS.format(id=1, title="", year="", abstract="", body="").ljust(600)] * 2)
    assert (content[512:517], content[2560 + 512 : 2560 + 517]) == (b"<?xml", b"<?xml")
    for damaged in (content[:1536], content[:1536] + b"x" + content[1537:], content[:1600]):
        docs, message = read("jats", write(tmp_path, "a.tar.gz", damaged, "gzip"))
        assert len(docs) == 1
        assert message.startswith("a.tar.gz: cut off or damaged")


def test_tables_references_and_templates_are_left_out_of_wikipedia(tmp_path):
    wikitext = """{{Infobox|name=no}}
'''Town''' is a ''town'' on the [[River|river]].<ref>no</ref><ref name="x">no</ref><ref name="x"/>
[[File:no.jpg|thumb|no [[link]]]][[File:no.jpg|no]][[Category:No]]
{| class="no"
| no
|}
== History ==
It was &amp; is {{convert|1|no}}old.<!-- no --><math>no</math>
* A [http://example.org/no market].

=== Since 1900 ===
Nothing.
==References ==
{{reflist}} no
=== Printed ===
no
== Economy ==
Wool.
[[Category:No]]
[[de:No]]"""
    pages = [("Town", 0, 1, False, wikitext), ("Talk:Town", 1, 2, False, "no"), ("T", 0, 3, True, "#REDIRECT [[no]]")]
    (document,), message = read("wikipedia-xml", write(tmp_path, "a.xml", wiki_dump(pages)))
    assert (document.id, document.title, message) == ("1", "Town", "")
    assert document.text.split("\n") == [
        "Town is a town on the river.", "History", "It was & is old.", "A market.", "Since 1900", "Nothing.",
        "Economy", "Wool.",
    ]  # fmt: skip


def test_links_with_a_colon_keep_their_visible_words(tmp_path):
    wikitext = (
        "Of [[Escherichia coli O157:H7|E. coli O157:H7]], [[albumin:creatinine ratio]], [[wikt:uraemia|uraemia]], "
        "[[de:Harn|urine]] and [[Help:Ions|ions]].[[ category : No]][[Datei:no.jpg|no]][[kategorie:No]][[zh-yue:No]]"
    )
    names = "".join(f'<namespace key="{key}">{name}</namespace>'
                    for key, name in ((6, "Datei"), (12, "Hilfe"), (14, "Kategorie")))  # fmt: skip
    dump = wiki_dump([("T", 0, 1, False, wikitext)] * 2).decode()
    dump = dump.replace("<siteinfo/>", f"<siteinfo><namespaces><namespace key='0'/>{names}</namespaces></siteinfo>")
    docs, message = read("wikipedia-xml", write(tmp_path, "a.xml", dump))
    expected = "Of E. coli O157:H7, albumin:creatinine ratio, uraemia, urine and ions."
    assert [document.text for document in docs] == [expected] * 2 and not message


def test_a_wikipedia_article_with_many_references_is_read_fast(tmp_path):
    wikitext = "Text.<ref>{{cite|no}}</ref> <div>[[File:no.jpg]]</div>More.\n\n" * 2000
    (document,), _ = read("wikipedia-xml", write(tmp_path, "a.xml", wiki_dump([("T", 0, 1, False, wikitext)])))
    assert document.text == "\n".join(["Text. More."] * 2000)
