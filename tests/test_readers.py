"""Every reader: what was written comes back, whatever the text; damage is a StudyError or a shorter file, no more."""

import bz2
import csv
import gzip
import io
import json
import tarfile
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from xml.sax.saxutils import escape, quoteattr

import pyarrow.parquet as pq
import pytest
from conftest import each
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.corpora import leakage, rows
from lib.corpora.readers import READERS
from lib.corpora.records import Document, Heading, read_year
from lib.errors import StudyError
from lib.study import documents, params, paths
from lib.study.study import read_mesh

FEW = settings(max_examples=30, deadline=None, derandomize=True)
PACKED = {"plain": bytes, "gzip": lambda content: gzip.compress(content, mtime=0), "bzip2": bz2.compress}

# Made-up text: letters of all scripts, and what has a meaning in one format or another.
WORD = st.text(st.characters(exclude_categories=("C", "Z")) | st.sampled_from("<>&'\"%#é白"), min_size=1, max_size=8)
PLAIN_WORD = st.text(st.characters(categories=("Lu", "Ll", "Lo")), min_size=1, max_size=8)
NUMBER = st.integers(1, 99_999_999).map(str)
YEAR = st.just(0) | st.integers(1900, 2030)


def lines(words=WORD, least: int = 1):
    return st.lists(words, min_size=least, max_size=12).map(" ".join)


TEXT, MAYBE = lines(), lines(least=0)


# How each format is written: a strategy of (documents, content) pairs, where `content` is what the file holds.


def mark_up(text: str, folded: bool) -> str:
    """XML of a text, with inline markup around its first word, and other white space where it does not count."""
    first, _, rest = text.partition(" ")
    rest = escape(rest).replace(" ", " \n\t " if folded else " ")
    return f"<b><i>{escape(first)}</i></b> {rest}" if rest else escape(first)


@st.composite
def headings(draw):
    """A heading and its XML, in the forms that NLM's exports have had."""
    name = draw(TEXT)
    ui = draw(st.sampled_from(["", "D000818", "D006801"]))
    flags = draw(st.lists(st.booleans(), min_size=1, max_size=3))
    first, *others = ["NY"[flag] for flag in flags]
    attributes = [f'MajorTopicYN="{first}"']
    if ui:
        attributes.insert(draw(st.integers(0, 1)), f'UI="{ui}"')
    attributes += draw(st.sampled_from([[], ['Type="Geographic"']]))
    space = draw(st.sampled_from(["", "\n  "]))
    xml = f"{space}<DescriptorName {' '.join(attributes)}>{escape(name)}</DescriptorName>{space}"
    xml += "".join(f'<QualifierName UI="Q000032" MajorTopicYN="{flag}">use</QualifierName>{space}' for flag in others)
    return Heading(ui, name, any(flags)), f"<MeshHeading>{xml}</MeshHeading>{space}"


@st.composite
def citations(draw):
    """A citation, a chapter of a book or a deletion, and its XML."""
    version = draw(st.integers(1, 3))
    document = Document(id=draw(NUMBER), version=version)
    pmid = f'<PMID Version="{version}">{document.id}</PMID>'
    kind = draw(st.sampled_from(["article", "article", "article", "book", "deletion"]))
    if kind == "deletion":
        return replace(document, deleted=True), f"<DeleteCitation>{pmid}</DeleteCitation>"
    document.title, document.year = draw(MAYBE), draw(YEAR)
    document.language = draw(st.sampled_from(["", "eng", "ger"]))
    sections = draw(st.lists(st.tuples(st.sampled_from(["", "AIM", "UNLABELLED", "<&>"]), MAYBE), max_size=3))
    document.text = " ".join(f"{s}: {t}" if s not in ("", "UNLABELLED") else t for s, t in sections if t)
    folded = draw(st.booleans())
    title = f"<ArticleTitle>{mark_up(document.title, folded)}</ArticleTitle>"
    abstract = "".join(
        f"<AbstractText{f' Label={quoteattr(label)}' if label else ''}>{mark_up(text, folded)}</AbstractText>"
        for label, text in sections
    )
    abstract = f"<Abstract>{abstract}<CopyrightInformation>All</CopyrightInformation></Abstract>" if sections else ""
    language = f"<Language>{document.language}</Language>" if document.language else ""
    date = draw(st.sampled_from(["<Year>{}</Year><Month>Mar</Month>", "<MedlineDate>{} Dec-1950 Jan</MedlineDate>"]))
    date = f"<PubDate>{date.format(document.year)}</PubDate>" if document.year else ""
    if kind == "book":
        book = f"<Book>{date}<BookTitle>Made up</BookTitle></Book>"
        xml = f"<BookDocument>{pmid}{book}{title}{language}{abstract}</BookDocument>"
        return document, f"<PubmedBookArticle>{xml}</PubmedBookArticle>"
    names = '<AuthorList CompleteYN="Y"><Author><LastName>X</LastName></Author></AuthorList>'
    names = draw(st.sampled_from(["", names, "<AuthorList/>"]))
    found = draw(st.none() | st.lists(headings(), max_size=4))
    document.mesh = tuple(heading for heading, _ in found or ())
    mesh_xml = "" if found is None else f"<MeshHeadingList>{''.join(xml for _, xml in found)}</MeshHeadingList>"
    return document, (
        f'<PubmedArticle><MedlineCitation Status="MEDLINE">{pmid}<Article PubModel="Print"><Journal><JournalIssue>'
        f"{date}</JournalIssue></Journal>{title}{abstract}{names}{language}</Article>{mesh_xml}<CommentsCorrectionsList>"
        '<CommentsCorrections><PMID Version="1">7</PMID></CommentsCorrections></CommentsCorrectionsList>'
        '</MedlineCitation><PubmedData><ArticleIdList><ArticleId IdType="pubmed">7</ArticleId></ArticleIdList>'
        "</PubmedData></PubmedArticle>"
    )


XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
PUBMED = (
    XML + '<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle//EN" "https://dtd.nlm.nih.gov/pubmed.dtd">\n'
    "<PubmedArticleSet>\n{}</PubmedArticleSet>\n"
)


@st.composite
def pubmed_xml(draw):
    found = draw(st.lists(citations(), min_size=1, max_size=5))
    return [d for d, _ in found], PUBMED.format("".join(f"{xml}\n" for _, xml in found)).encode()


def wrap(tag: str, text: str, width: int) -> str:
    """A field of the MEDLINE format, a few words a line."""
    words = text.split()
    rows = [" ".join(words[i : i + width]) for i in range(0, len(words), width)] or [""]
    return f"{tag:<4}- " + "\n      ".join(rows) + "\n"


@st.composite
def medline_text(draw):
    found, content = [], draw(st.sampled_from(["", "\n"]))
    names = lines(PLAIN_WORD)
    for _ in range(draw(st.integers(1, 4))):
        mesh_terms = tuple(Heading(name=draw(names), major=draw(st.booleans())) for _ in range(draw(st.integers(0, 3))))
        document = Document(draw(NUMBER), draw(TEXT), draw(MAYBE), language="eng", year=draw(YEAR), mesh=mesh_terms)
        width = draw(st.integers(1, 5))
        date = f"DP  - {document.year} Mar-Apr\n" if document.year else ""
        content += f"PMID- {document.id}\n{date}{wrap('TI', document.title, width)}LA  - eng\nAU  - Made U\n"
        content += wrap("AB", document.text, width) if document.text else ""
        for heading in mesh_terms:
            # A qualifier may be the major topic in place of the descriptor.
            forms = ["*{}", "*{}/use", "{}/use/*trends"] if heading.major else ["{}", "{}/use"]
            content += f"MH  - {draw(st.sampled_from(forms)).format(heading.name)}\n"
        content += "\n"
        found.append(document)
    return found, content.encode()


@st.composite
def tables(draw, identifiers=NUMBER):
    found = [Document(draw(identifiers), draw(MAYBE), draw(MAYBE)) for _ in range(draw(st.integers(1, 5)))]
    end = draw(st.sampled_from(["\n", "\r\n"]))
    rows = [f"{d.id}\t{d.title}\t{d.text}" for d in found]
    return found, ("pmid\ttitle\tabstract" + end + "".join(row + end for row in rows)).encode()


@st.composite
def ohsumed(draw):
    found, content = draw(tables(NUMBER.map("ohsumed:{}:C01,C14".format)))
    for document in found:
        document.id, document.trees = document.id.removesuffix(":C01,C14"), ("C01", "C14")
    return found, content


@st.composite
def abstract_lines(draw):
    found = draw(st.lists(TEXT, min_size=1, max_size=5))
    return [Document(text=text) for text in found], "\n\n".join(found).encode() + b"\n"


def json_lines(draw, records: list[dict]) -> bytes:
    ascii_only = draw(st.booleans())
    return "".join(json.dumps(record, ensure_ascii=ascii_only) + "\n" for record in records).encode()


@st.composite
def europepmc(draw):
    names = st.builds(Heading, st.just(""), TEXT, st.booleans())
    found = [
        Document(draw(NUMBER), draw(MAYBE), draw(MAYBE), year=draw(YEAR), mesh=tuple(draw(st.lists(names, max_size=3))))
        for _ in range(draw(st.integers(1, 4)))
    ]
    records = [
        {"pmid": d.id, "title": d.title or None, "abstract": d.text, "license": "cc by", "year": str(d.year or "")}
        | ({"mesh": [{"descriptor": h.name, "major": "NY"[h.major]} for h in d.mesh]} if d.mesh else {})
        for d in found
    ]
    return found, json_lines(draw, records)


@st.composite
def mesh_sample(draw):
    names = lines(st.sampled_from(["Humans", "Alzheimer's", "Iron,", "Dietary"]))
    trees = st.sampled_from(["C04.557", "B01", "D12.776.543"])
    found, records = [], []
    for _ in range(draw(st.integers(1, 4))):
        mesh_terms, numbers = draw(st.lists(names, max_size=3)), draw(st.lists(trees, max_size=3))
        document = Document(draw(NUMBER), draw(MAYBE), draw(MAYBE), trees=tuple(numbers))
        found.append(replace(document, mesh=tuple(Heading(name=name) for name in mesh_terms)))
        record = {"pmid": document.id, "Title": document.title, "abstractText": document.text}
        records.append(record | {"meshMajor": repr(mesh_terms), "meshid": repr([[number] for number in numbers])})
    return found, json_lines(draw, records)


JATS = (
    XML + '<!DOCTYPE article PUBLIC "-//NLM//DTD JATS//EN" "JATS-archivearticle1.dtd">\n<article xml:lang="en"><front>'
    '<article-meta><article-id pub-id-type="pmid">7</article-id><article-id pub-id-type="pmc">{id}</article-id>'
    "<title-group><article-title>{title}</article-title></title-group><pub-date><year>{year}</year></pub-date>"
    "{abstract}</article-meta></front>{body}<back><ref-list><ref>No text</ref></ref-list></back></article>"
)


def archive_of(articles: list[str]) -> bytes:
    """A tar archive of articles, and of other files, which are no text."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for number, article in enumerate(articles):
            for name, content in ((f"PMC{number}.nxml", article.encode()), (f"figure{number}.jpg", b"no text")):
                member = tarfile.TarInfo(f"made-up/{name}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return archive.getvalue()


@st.composite
def jats(draw):
    found, articles = [], []
    for number in range(draw(st.integers(1, 3))):
        abstract, head, body = draw(st.lists(TEXT, max_size=2)), draw(TEXT), draw(st.lists(TEXT, max_size=3))
        text = "\n".join([*abstract, *([head, *body] if body else [])])
        found.append(Document(f"PMC{number}", draw(MAYBE), text, language="en", year=draw(YEAR)))
        folded = draw(st.booleans())
        paragraphs = [[f"<p>{mark_up(t, folded)}</p>" for t in part] for part in (abstract, body)]
        articles.append(
            JATS.format(
                id=number,
                title=mark_up(found[-1].title, folded),
                year=found[-1].year or "",
                abstract=f"<abstract>{''.join(paragraphs[0])}</abstract>",
                body=f"<body><sec><title>{escape(head)}</title>{''.join(paragraphs[1])}</sec></body>" if body else "",
            )
        )
    return found, archive_of(articles)


PAGE = "<page><title>{}</title><ns>{}</ns><id>{}</id>{}<revision><id>3</id><text>{}</text></revision></page>\n"
DUMP = '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" xml:lang="en"><siteinfo/>\n{}</mediawiki>\n'


def wiki_dump(pages) -> bytes:
    """A dump of (title, namespace, id, redirect, wikitext) pages."""
    rows = [PAGE.format(escape(t), ns, i, "<redirect/>" if to else "", escape(text)) for t, ns, i, to, text in pages]
    return DUMP.format("".join(rows)).encode()


@st.composite
def wikipedia_xml(draw):
    found, pages = [], []
    paragraph = lines(PLAIN_WORD)
    for number in range(draw(st.integers(1, 4))):
        texts = draw(st.lists(paragraph, min_size=1, max_size=3))
        wikitext = "\n\n".join(draw(st.sampled_from(["{}", "'''{}'''", "[[Page|{}]]"])).format(text) for text in texts)
        kind = draw(st.sampled_from(["article", "article", "talk", "redirect"]))
        pages.append((draw(TEXT), 1 if kind == "talk" else 0, number, kind == "redirect", wikitext))
        if kind == "article":
            found.append(Document(str(number), pages[-1][0], "\n".join(texts)))
    return found, wiki_dump(pages)


@st.composite
def paragraphs(draw):
    found = []
    for _ in range(draw(st.integers(1, 4))):
        identifier, texts = draw(st.just("") | NUMBER), draw(st.lists(TEXT, min_size=1, max_size=3))
        if not identifier:
            texts[0] = texts[0].lstrip("# ") or "x"
        found.append(Document(identifier, text="\n".join(texts)))
    return found, "\n\n".join((f"# {d.id}\n" if d.id else "") + d.text for d in found).encode() + b"\n"


def note_table(rows: list[list[str]]) -> bytes:
    table = io.StringIO()
    csv.writer(table, quoting=csv.QUOTE_ALL).writerows([["ROW_ID", "CATEGORY", "ISERROR", "TEXT"], *rows])
    return table.getvalue().encode()


@st.composite
def notes(draw):
    found, rows = [], []
    for _ in range(draw(st.integers(1, 4))):
        texts, wrong = draw(st.lists(TEXT, max_size=3)), draw(st.sampled_from(["", "", "1"]))
        found.append(Document(draw(NUMBER), text="" if wrong else "\n".join(texts)))
        rows.append([found[-1].id, 'Note, "any"', wrong, "\n\n  ".join(texts)])
    return found, note_table(rows)


@dataclass(frozen=True)
class Format:
    """How a format is written, and whether a plain file of it that was cut can pass for a shorter one.

    `ends`: it can, between two documents. `shortens`: also within one, which then comes back shorter than it was.
    """

    strategy: Callable
    name: str = "made-up"
    ends: bool = False
    shortens: bool = False


FORMATS = {
    "pubmed-xml": Format(pubmed_xml),
    "medline-text": Format(medline_text, ends=True, shortens=True),
    "citations": Format(tables, ends=True, shortens=True),
    "ohsumed": Format(ohsumed, ends=True, shortens=True),
    "abstract-lines": Format(abstract_lines, ends=True, shortens=True),
    "europepmc": Format(europepmc, ends=True),
    "mesh-sample": Format(mesh_sample, ends=True),
    "jats": Format(jats, name="made-up.tar"),
    "wikipedia-xml": Format(wikipedia_xml),
    "paragraphs": Format(paragraphs, ends=True, shortens=True),
    "mimic-notes": Format(notes, ends=True, shortens=True),
}
every_format = pytest.mark.parametrize("reader", FORMATS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("raw")


@pytest.fixture
def data(tmp_path, monkeypatch):
    """The data folder of the smoke scale, empty, and an index of no test sentence."""
    monkeypatch.setattr(paths, "output", lambda scale, *parts: tmp_path.joinpath("outputs", scale, *parts))
    params.load.cache_clear()
    paths.test_sentences("smoke").mkdir(parents=True)
    pq.write_table(leakage.index_sentences([]), paths.test_sentences("smoke") / "index.parquet")
    yield paths.data("smoke")
    read_mesh.cache_clear()


def write(folder, name: str, content: str | bytes, pack: str = "plain"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(PACKED[pack](content.encode() if isinstance(content, str) else content))
    return path


def read(reader: str, path) -> tuple[list[Document], str]:
    """The documents up to the end or the first StudyError, and its message; any other exception is a failure."""
    found = []
    try:
        for document in READERS[reader](path):
            found.append(document)
    except StudyError as error:
        assert path.name in str(error)
        return found, str(error)
    return found, ""


def test_every_reader_is_tested():
    assert FORMATS.keys() == READERS.keys()


@every_format
@FEW
@given(draw=st.data())
def test_what_was_written_comes_back(folder, reader, draw):
    expected, content = draw.draw(FORMATS[reader].strategy())
    path = write(folder, FORMATS[reader].name, content, draw.draw(st.sampled_from(list(PACKED))))
    assert read(reader, path) == (expected, "")


def is_shortened(document: Document, whole: Document) -> bool:
    """Whether a document is a beginning of another one: each field of it, in any order of the fields."""
    return (
        whole.id.startswith(document.id)
        and whole.title.startswith(document.title)
        and whole.text.startswith(document.text)
        and whole.language.startswith(document.language)
        and document.year in (0, whole.year)
        and all(ours.name in theirs.name for ours, theirs in zip(document.mesh, whole.mesh, strict=False))
    ) or document.text == "#"  # of "# id", the mark of an identifier in the paragraph format


@every_format
@FEW
@given(draw=st.data())
def test_a_file_that_was_cut_anywhere(folder, reader, draw):
    form = FORMATS[reader]
    expected, content = draw.draw(form.strategy())
    pack = draw.draw(st.sampled_from(list(PACKED)))
    packed = PACKED[pack](content)
    cut = draw.draw(st.integers(min(3, len(packed) - 1), len(packed) - 1))
    found, message = read(reader, write(folder, form.name, packed[:cut]))
    if pack != "plain":
        assert message
    if pack == "plain" and form.shortens and found:
        last = expected[len(found) - 1]
        assert found[-1] == last or is_shortened(found.pop(), last)
    assert found == expected[: len(found)]
    if not message and not form.ends:  # but zeros may be missing after an archive, and white space after XML
        assert found == expected and not packed[cut:].strip(b"\0\n")


@every_format
def test_a_gzip_file_of_one_or_two_bytes(tmp_path, reader):
    for size in (1, 2):
        path = write(tmp_path, FORMATS[reader].name, gzip.compress(b"x")[:size])
        assert read(reader, path)[1].startswith(f"{path.name}: cut off or damaged")


@every_format
@FEW
@given(draw=st.data())
def test_a_file_with_damaged_bytes(folder, reader, draw):
    """A StudyError, or documents that can be stored: damage within a text cannot be told from text."""
    _, content = draw.draw(FORMATS[reader].strategy())
    packed = bytearray(PACKED[draw.draw(st.sampled_from(list(PACKED)))](content))
    for _ in range(draw.draw(st.integers(1, 3))):
        packed[draw.draw(st.integers(0, len(packed) - 1))] ^= draw.draw(st.integers(1, 255))
    found, _ = read(reader, write(folder, FORMATS[reader].name, bytes(packed)))
    for document in found:
        for text in (document.id, document.title, document.text, document.language, *document.trees):
            assert text.encode().decode() == text
        for heading in document.mesh:
            assert (heading.ui + heading.name).encode()
        assert (type(document.year), type(document.version), type(document.deleted)) == (int, int, bool)


# Damage that has a message of its own.


@every_format
def test_an_empty_file(tmp_path, reader):
    for pack in PACKED:
        assert read(reader, write(tmp_path, "empty", b"", pack))[0] == []


@each("key", params.keys("sources"))
@each("pack", ["plain", "gzip"])
def test_a_source_file_without_documents_is_an_error(data, key, pack):
    pattern = params.load("sources", key).files.replace("[!j]", "a")
    path = write(data, pattern.replace("*", "a"), b"", pack)
    with pytest.raises(StudyError, match=rf"^(.*, )?{path.name}:"):
        documents.read(key, path.name, "smoke")
    if params.load("sources", key).reader == "paragraphs":
        with pytest.raises(StudyError, match="no documents in the file"):
            documents.read(key, path.name, "smoke")


@every_format
def test_a_gzip_file_without_its_end(tmp_path, reader):
    path = write(tmp_path, FORMATS[reader].name, gzip.compress(whole_file(reader))[:-4])
    assert read(reader, path)[1].startswith(f"{path.name}: cut off or damaged")


@every_format
def test_text_that_is_not_utf_8(tmp_path, reader):
    """Latin-1 in every format; JATS and Wikipedia's dumps too say UTF-8 of themselves, or nothing."""
    content = whole_file(reader)
    assert read(reader, write(tmp_path, FORMATS[reader].name, content))[1] == ""
    position = content.index(b"here")
    damaged = content[:position] + b"h\xe9re" + content[position + 4 :]
    found, message = read(reader, write(tmp_path, FORMATS[reader].name, damaged))
    assert found == []
    assert message.startswith("made-up")
    if reader not in ("pubmed-xml", "jats", "wikipedia-xml", "mimic-notes"):
        line = content[:position].count(b"\n") + 1
        assert message == f"made-up:{line}: not UTF-8 text (invalid continuation byte); convert the file"


def whole_file(reader: str) -> bytes:
    """A file of one document, which has the text `here`."""
    article = JATS.format(id=1, title="T", year=2020, abstract="<abstract><p>here</p></abstract>", body="")
    return {
        "pubmed-xml": PUBMED.format(citation(1, "here")).encode(),
        "medline-text": b"PMID- 1\nTI  - T\nAB  - here\n",
        "citations": b"pmid\ttitle\tabstract\n1\tT\there\n",
        "ohsumed": b"pmid\ttitle\tabstract\nohsumed:1:C01\tT\there\n",
        "abstract-lines": b"here\n",
        "europepmc": b'{"abstract": "here"}\n',
        "mesh-sample": b'{"pmid": "1", "Title": "T", "abstractText": "here", "meshMajor": "[]", "meshid": "[]"}\n',
        "jats": archive_of([article]),
        "wikipedia-xml": wiki_dump([("T", 0, 1, False, "here")]),
        "paragraphs": b"# 1\nhere\n",
        "mimic-notes": note_table([["1", "", "", "here"]]),
    }[reader]


def citation(pmid: int, text: str, title: str = "T") -> str:
    abstract = f"<Abstract><AbstractText>{text}</AbstractText></Abstract>" if text else ""
    return (
        f'<PubmedArticle><MedlineCitation><PMID Version="1">{pmid}</PMID><Article><Journal><Title>J</Title></Journal>'
        f"<ArticleTitle>{title}</ArticleTitle>{abstract}</Article></MedlineCitation></PubmedArticle>\n"
    )


BOMB = "<!DOCTYPE x [<!ENTITY a 'boom'>" + "".join(
    f"<!ENTITY {name} '{f'&{inner};' * 10}'>" for inner, name in zip("abcdefgh", "bcdefghi", strict=True)
)
ENTITIES = {
    "billion laughs": (BOMB + "]>", "&i;"),
    "in an attribute": (BOMB + "]>", ""),
    "external": ("<!DOCTYPE x [<!ENTITY i SYSTEM 'file:///etc/hostname'>]>", "&i;"),
    "parameter": ("<!DOCTYPE x [<!ENTITY % p SYSTEM 'file:///etc/hostname'> %p;]>", ""),
    "not declared": ("", "&i;"),
}


@each("reader", ["pubmed-xml", "jats", "wikipedia-xml"])
@each("kind", ENTITIES)
def test_entities_are_refused_and_never_expanded(tmp_path, reader, kind):
    declared, used = ENTITIES[kind]
    attribute = ' x="&i;"' if kind == "in an attribute" else ""
    content = {
        "pubmed-xml": f"{declared}<PubmedArticleSet{attribute}>{citation(1, f'a {used} b')}</PubmedArticleSet>",
        "jats": f"{declared}<article{attribute}><front><article-meta><abstract><p>a {used} b</p></abstract>"
        "</article-meta></front></article>",
        "wikipedia-xml": f"{declared}<mediawiki{attribute}>{PAGE.format('T', 0, 1, '', f'a {used} b')}</mediawiki>",
    }[reader]
    path = write(tmp_path, "made-up.xml", content)
    tracemalloc.start()
    found, message = read(reader, path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == []
    assert "made-up.xml" in message
    assert "boom" not in message
    assert peak < 1 << 20
    if kind in ("billion laughs", "external"):  # the parser may find out first
        assert "entities of its own" in message or "Maximum entity amplification" in message


# PubMed's XML.


@FEW
@given(draw=st.data())
def test_comments_and_instructions_change_nothing(folder, draw):
    expected, xml = draw.draw(citations())
    places = [i for i in range(1, len(xml)) if xml[i - 1 : i + 1] == "><"]
    place = draw.draw(st.sampled_from(places))
    extra = draw.draw(st.sampled_from(["<!-- x -->", "<!--</Article><MeshHeading>-->", "<?x </AuthorList> ?>"]))
    for text in (xml, xml[:place] + extra + xml[place:]):
        assert read("pubmed-xml", write(folder, "one.xml", PUBMED.format(text))) == ([expected], "")


def test_a_citation_without_abstract_and_one_without_title(tmp_path):
    path = write(tmp_path, "a.xml", PUBMED.format(citation(1, "") + citation(2, "x", title="")))
    assert read("pubmed-xml", path)[0] == [Document("1", "T"), Document("2", "", "x")]


@each(
    ("damage", "message"),
    [
        (("<ArticleTitle>two", "<ArticleTitle two"), r"a\.xml:\d+: not well-formed XML after citation 1: "),
        (("<ArticleTitle>two", "<i>two"), r"a\.xml:\d+: not well-formed XML after citation 1: "),
        (("<ArticleTitle>two", "<ArticleTitle>\x01two"), r"a\.xml:\d+: not well-formed XML after citation 1: "),
        (("two", "&two;"), r"a\.xml:\d+: (not well-formed XML after citation 1: |&two; is declared elsewhere)"),
        (('<PMID Version="1">2</PMID>', ""), r"citation 2 \(PMID unknown\): an element is missing \('PMID'\)"),
        (('<PMID Version="1">2', '<PMID Version="x">2'), r"citation 2 \(PMID 2\)"),
        (("<Journal><Title>J</Title></Journal><ArticleTitle>two", "<ArticleTitle>two"), r"missing \('Journal'\)"),
        (('<PubmedArticle><MedlineCitation><PMID Version="1">1<', "<PubmedBrticle><PMID>1<"), "after citation 0"),
        (('<PubmedArticle><MedlineCitation><PMID Version="1">2<', "<PubmedBrticle><PMID>2<"), "after citation 1"),
        (('<PubmedArticle><MedlineCitation><PMID Version="1">3<', "<PubmedBrticle><PMID>3<"), "after citation 2"),
        (("</PubmedArticleSet>", ""), r"a\.xml:\d+: not well-formed XML after citation 3"),
        (("<PubmedArticleSet>", "<html>"), "a document of <html>, expected PubmedArticleSet or "),
        (("UTF-8", "ISO-8859-1"), None),  # it is read as what it says it is
        (('encoding="UTF-8"', "encoding='no-such'"), r"a\.xml:\d+: not well-formed XML after citation 0: .*encoding"),
    ],
)
def test_damaged_pubmed_xml_names_file_and_citation(tmp_path, damage, message):
    content = PUBMED.format("".join(citation(i, "x", title) for i, title in enumerate(("one", "two", "three"), 1)))
    assert damage[0] in content
    found, error = read("pubmed-xml", write(tmp_path, "a.xml", content.replace(*damage, 1)))
    if message is None:  # the records themselves are whole
        assert len(found) == 3
    else:
        with pytest.raises(StudyError, match=message):
            raise StudyError(error)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not well-formed XML after citation 0"),
        (b"<html><p>Too many requests</p></html>", "a document of <html>, expected PubmedArticleSet or"),
        (b"<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>1</PMID>", "not well-formed XML after citation 0"),
    ],
)
def test_what_is_no_pubmed_xml(tmp_path, content, message):
    assert message in read("pubmed-xml", write(tmp_path, "a.xml", content))[1]


def test_a_set_of_no_citations_is_no_damage(tmp_path):
    assert read("pubmed-xml", write(tmp_path, "a.xml", PUBMED.format(""))) == ([], "")


def test_a_record_of_50_mb_is_read_and_counted_as_too_long(data):
    """No compression: what is measured is the reader."""
    sentence = "Made-up text without end. "
    content = PUBMED.format(citation(1, sentence * (50_000_000 // len(sentence))) + citation(2, "Short."))
    write(data, "corpora/pubmed-xml/long.xml.gz", content)
    record = documents.read("pubmed-xml", "long.xml.gz", "smoke")
    assert (record["read"], record["too long"]) == (2, 1)
    rows = pq.read_table(paths.documents("smoke", "pubmed-xml", "long.xml.gz") / "documents.parquet").to_pylist()
    assert [row["id"] for row in rows] == ["2"]


@pytest.mark.parametrize("length", [100, 101])
def test_the_longest_document(data, monkeypatch, length):
    monkeypatch.setattr(rows, "LONGEST", 100)
    write(data, "corpora/pubmed/a.tsv.gz", f"pmid\ttitle\tabstract\n1\tT\t{'x' * (length - 1)}\n2\tT\tx\n")
    assert documents.read("pubmed-tables", "a.tsv.gz", "smoke")["too long"] == (length > 100)


MEDLINE = wrap("PMID", "1", 1) + wrap("AB", "Made-up text " * 99, 9) + "\n"
LONG = {
    "pubmed-xml": lambda number: PUBMED.format(citation(1, "Made-up text. " * 99) * number).encode(),
    "medline-text": lambda number: (MEDLINE * number).encode(),
    "jats": lambda number: archive_of([JATS.format(id=1, title="T", year=1, abstract="", body="")] * number),
}


@pytest.mark.parametrize("reader", LONG)
def test_memory_does_not_grow_with_the_file(tmp_path, reader):
    peaks = []
    for number in (100, 1000):
        path = write(tmp_path, FORMATS[reader].name, LONG[reader](number))
        tracemalloc.start()
        assert sum(1 for _ in READERS[reader](path)) == number
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert abs(peaks[1] - peaks[0]) < 1 << 19


# The other formats.


def test_one_medline_record_of_many_lines(tmp_path):
    """Reading it takes time in proportion to its length."""
    path = write(tmp_path, "a.txt", "PMID- 1\nAB  - x\n" + "      made-up text of many lines\n" * 400_000)
    (document,), message = read("medline-text", path)
    assert (message, len(document.text)) == ("", 1 + 400_000 * len(" made-up text of many lines"))


@each(
    ("reader", "content", "message"),
    [
        ("medline-text", "TI  - T\nAB  - x\n\nPMID- 2\n", "a:3: the record that ends here has no PMID"),
        ("medline-text", "PMID- \nTI  - T\n", "a:2: the record that ends here has no PMID"),
        ("medline-text", "PMID- 1\nnot a field\n", "a:2: expected 'TAG - value' of the MEDLINE format, found 'not a"),
        ("medline-text", "      goes on\n", "a:1: expected 'TAG - value'"),
        ("citations", "pmid\ttitle\n", "a:1: expected 3 columns, found 2"),
        ("citations", "x\ty\tz\n", "a:1: expected the header pmid, title, abstract"),
        ("citations", "pmid\ttitle\tabstract\n1\tT\n", "a:2: expected 3 columns, found 2"),
        ("citations", "", "a: empty file"),
        ("ohsumed", "pmid\ttitle\tabstract\nohsumed:1\tT\tx\n", "a:2: no MeSH categories in the identifier"),
        ("europepmc", '{"pmid": "1"}\n{"pmid": "2", "abs', "a:2: not JSON"),
        ("europepmc", "[1]\n", "a:1: not a JSON object"),
        ("europepmc", '{"pmid": 1}\n', "a:1: not a record of Europe PMC (TypeError: text expected, found int)"),
        ("europepmc", '{"title": "x\\ud800"}\n', "a:1: not a record of Europe PMC (UnicodeEncodeError"),
        ("europepmc", '{"mesh": [{"major": "Y"}]}\n', "a:1: not a record of Europe PMC (KeyError: 'descriptor')"),
        ("europepmc", "[" * 99_999, "a:1: not JSON"),
        ("mesh-sample", '{"pmid": "1", "Title": "T"}\n', "a:1: not a record of the sample (KeyError: "),
        ("mesh-sample", '{"pmid": "1', "a:1: not JSON"),
        ("mimic-notes", '"ROW_ID","TEXT"\n"1","x"\n', "a: no column ISERROR: not NOTEEVENTS"),
        ("mimic-notes", "", "a: no column ISERROR, ROW_ID, TEXT: not NOTEEVENTS"),
        ("jats", "", "a:1: not well-formed XML: Document is empty"),
        ("jats", "<article><front/></article>", "a: no article-meta: not a JATS article"),
        ("jats", "<article>\n<front></article>", "a:2: not well-formed XML: "),
        ("wikipedia-xml", "", "a:0: not well-formed XML after page 0: no element found"),
        ("wikipedia-xml", "<mediawiki>\n<page><ns>0</ns></page>\n<page>", "a:3: not well-formed XML after page 1: "),
    ],
)
def test_what_is_said_of_malformed_files(tmp_path, reader, content, message):
    assert read(reader, write(tmp_path, "a", content))[1].startswith(message)


@pytest.mark.parametrize("year", ["²", "", "about 1998", "99999999999999", None])
def test_a_year_that_is_none_is_no_error(tmp_path, year):
    path = write(tmp_path, "a", json.dumps({"pmid": "1", "year": year}))
    expected = read_year(year or "")
    assert expected in (0, 1998, 9999)
    assert read("europepmc", path) == ([Document("1", year=expected)], "")
    path = write(tmp_path, "a.nxml", JATS.format(id=1, title="T", year=year or "", abstract="", body=""))
    assert read("jats", path) == ([Document("PMC1", "T", language="en", year=expected)], "")


def test_an_identifier_without_text_is_a_document_without_text(tmp_path):
    path = write(tmp_path, "a", "# 1\n\n# 2\ntext\n# no identifier\n\n# 3\n")
    assert read("paragraphs", path)[0] == [Document("1"), Document("2", text="text\n# no identifier"), Document("3")]


NOTE = "Qzxv admitted"


def test_notes_with_quotes_and_line_ends_and_one_marked_as_an_error(data):
    notes_read = [["1", "", "", f'{NOTE}, "stable"\n\n\n  left, "home"\n'], ["2", "", "1", NOTE]]
    path = write(data, "corpora/mimic/NOTEEVENTS.csv.gz", b"\xef\xbb\xbf" + note_table(notes_read), "gzip")
    expected = [Document("1", text=f'{NOTE}, "stable"\nleft, "home"'), Document("2")]
    assert read("mimic-notes", path) == (expected, "")
    record = documents.read("mimic", path.name, "smoke")
    rows = pq.read_table(paths.documents("smoke", "mimic", path.name) / "documents.parquet").to_pylist()
    assert (record["read"], [row["characters"] > 0 for row in rows]) == (2, [True, False])


@FEW
@given(draw=st.data())
def test_no_message_holds_text_of_a_note(folder, draw):
    """Whatever is wrong with the file."""
    packed = bytearray(note_table([[str(i), "Qzxv", "", f'{NOTE}, "Qzxv"\nQzxv é'] for i in range(20)]))
    for _ in range(draw.draw(st.integers(1, 5))):
        place = draw.draw(st.integers(30, len(packed) - 1))
        change = draw.draw(st.sampled_from([b"", b'"', b"\n", b",", b"\0", b"\xff", b"\r"]))
        packed[place : place + 1] = change
    _, message = read("mimic-notes", write(folder, "NOTEEVENTS.csv", bytes(packed)))
    assert "Qz" not in message and "zxv" not in message


def test_what_is_left_out_of_a_jats_article(tmp_path):
    body = (
        "<body><p>Seen <xref ref-type='bibr'>[1]</xref> in <italic>E. coli</italic><!-- no --><sup>2</sup>.</p>"
        "<sec><title>Outer</title><p>One.<fig><caption><p>no</p></caption></fig> Two.</p><sec><title>Inner</title>"
        "<p>A list: <list><list-item><p>item</p></list-item></list></p><table-wrap><caption><title>no</title></caption>"
        "<table><tr><td>no</td></tr></table></table-wrap><disp-formula>no</disp-formula></sec></sec>"
        "<sec><title>Notes</title><supplementary-material><p>no</p></supplementary-material></sec>"
        "<ref-list><title>no</title><ref>no</ref></ref-list></body><back><ack><p>no</p></ack></back>"
    )
    content = JATS.format(id=1, title="T<xref>*</xref>", year="", abstract="<abstract><p>Ab.</p></abstract>", body=body)
    (document,), message = read("jats", write(tmp_path, "a.nxml", content, "gzip"))
    assert document.text.split("\n") == [
        "Ab.", "Seen [1] in E. coli2.", "Outer", "One. Two.", "Inner", "A list: item", "Notes",
    ]  # fmt: skip
    assert (document.id, document.title, message) == ("PMC1", "T*", "")


def test_an_archive_that_was_cut_between_two_articles(tmp_path):
    """Python's tarfile takes the end of the file, and a damaged header, for the end of the archive."""
    content = archive_of([JATS.format(id=1, title="", year="", abstract="", body="").ljust(600)] * 2)
    assert (content[512:517], content[2560 + 512 : 2560 + 517]) == (b"<?xml", b"<?xml")
    for damaged in (content[:1536], content[:1536] + b"x" + content[1537:], content[:1600]):
        found, message = read("jats", write(tmp_path, "a.tar.gz", damaged, "gzip"))
        assert len(found) == 1
        assert message.startswith("a.tar.gz: cut off or damaged")


def test_what_is_left_out_of_wikipedia(tmp_path):
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
== References ==
{{reflist}} no
== See also ==
* [[no]]
==External links==
no
== Economy ==
Wool.
[[Category:No]]
[[de:No]]"""
    pages = [("Town", 0, 1, False, wikitext), ("Talk:Town", 1, 2, False, "no"), ("T", 0, 3, True, "#REDIRECT [[no]]")]
    for pack in PACKED:
        (document,), message = read("wikipedia-xml", write(tmp_path, "a.xml", wiki_dump(pages), pack))
        assert (document.id, document.title, message) == ("1", "Town", "")
        assert document.text.split("\n") == [
            "Town is a town on the river.", "History", "It was & is old.", "A market.", "Since 1900", "Nothing.",
            "Economy", "Wool.",
        ]  # fmt: skip


def test_a_wikipedia_article_of_many_references_takes_no_minutes(tmp_path):
    wikitext = "Text.<ref>{{cite|no}}</ref> <div>[[File:no.jpg]]</div>More.\n\n" * 2000
    (document,), _ = read("wikipedia-xml", write(tmp_path, "a.xml", wiki_dump([("T", 0, 1, False, wikitext)])))
    assert document.text == "\n".join(["Text. More."] * 2000)
