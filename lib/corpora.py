"""Raw text of many formats to one table of documents, with everything that was left out counted."""

import gzip
import hashlib
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from lxml import etree

from lib import artefacts, datasets, params, paths, provenance
from lib.errors import StudyError, unknown

SCHEMA = pa.schema([("id", pa.string()), ("file", pa.string()), ("text", pa.string())])
PART_WORDS = 1000  # a book is cut into parts of about this length, so that a document is never a whole novel
SENTENCE_WORDS = 10  # a test sentence shorter than this may stand in an unrelated text


@dataclass(frozen=True)
class Document:
    """A text with the identifier it had at its source (empty where it had none)."""

    id: str
    text: str


def read_citations(path: Path) -> Iterator[Document]:
    """Citations of a gzip table `pmid TAB title TAB abstract` with a header; the text is title and abstract."""
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 3:
            raise StudyError(f"{paths.show(path)}:{number}: expected 3 columns, found {len(columns)}")
        if number == 1:
            if columns != ["pmid", "title", "abstract"]:
                raise StudyError(f"{paths.show(path)}:1: expected the header 'pmid title abstract'")
            continue
        pmid, title, abstract = columns
        yield Document(pmid, f"{title} {abstract}".strip() if abstract.strip() else "")


def read_paragraphs(path: Path) -> Iterator[Document]:
    """Documents of a gzip text: a paragraph a line, a blank line between documents, `# id` on top where known.

    A document longer than about PART_WORDS words comes in parts, cut between paragraphs.
    """
    identifier, part, lines, words = "", 0, [], 0
    at_start = True  # of a document, where `# ` marks its identifier and is no text

    def finish() -> Iterator[Document]:
        nonlocal part, lines, words
        if lines:
            yield Document(f"{identifier}#{part}" if identifier else "", "\n".join(lines))
            part, lines, words = part + 1, [], 0

    for line in read_lines(path):
        if not line.strip():
            yield from finish()
            identifier, part, at_start = "", 0, True
        elif line.startswith("# ") and at_start:
            identifier, at_start = line[2:].strip(), False
        else:
            at_start = False
            lines.append(line)
            words += len(line.split())
            if words >= PART_WORDS:
                yield from finish()
    yield from finish()


def read_pubmed_xml(path: Path) -> Iterator[Document]:
    """Citations of a PubMed XML file (.xml.gz): PMID, title and abstract with its section labels."""
    try:
        with gzip.open(path) as file:
            events = etree.iterparse(
                file, tag="PubmedArticle", resolve_entities=False, no_network=True, huge_tree=False
            )
            for _, article in events:
                title = article.find(".//ArticleTitle")
                sections = []
                for section in article.iterfind(".//Article/Abstract/AbstractText"):
                    text = flat_text(section)
                    label = section.get("Label")
                    sections.append(f"{label}: {text}" if label and text else text)
                abstract = " ".join(filter(None, sections))
                text = f"{flat_text(title)} {abstract}".strip() if abstract else ""
                yield Document(article.findtext(".//PMID") or "", text)
                article.clear()
                while article.getprevious() is not None:
                    del article.getparent()[0]
    except etree.XMLSyntaxError as error:
        raise StudyError(f"{paths.show(path)}:{error.lineno}: not well-formed XML: {error.msg}") from None
    except (EOFError, OSError, zlib.error) as error:
        raise StudyError(f"{paths.show(path)}: truncated or damaged gzip file ({error})") from None


READERS = {"citations": read_citations, "paragraphs": read_paragraphs, "pubmed-xml": read_pubmed_xml}


def read_lines(path: Path) -> Iterator[str]:
    """Lines of a gzip text without their ends; StudyError for a damaged file or bytes that are not UTF-8."""
    number = 0
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
            for line in file:
                number += 1
                yield line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise StudyError(f"{paths.show(path)}: after line {number}: not UTF-8 text ({error.reason})") from None
    except (EOFError, OSError) as error:
        raise StudyError(f"{paths.show(path)}: after line {number}: truncated or damaged gzip file ({error})") from None


def flat_text(element) -> str:
    """The text of an XML element without its markup, white space folded."""
    return "" if element is None else " ".join("".join(element.itertext()).split())


def plain_words(text: str) -> list[str]:
    """Lower-case runs of letters and digits: what two tokenisations of one text have in common."""
    return re.findall(r"[^\W_]+", text.lower())


class TestSentences:
    """Sentences of the benchmarks' test sets, to find the documents that they were taken from."""

    __test__ = False

    def __init__(self, sentences: list[list[str]]):
        """`sentences`: lists of words. Those under SENTENCE_WORDS plain words are not used."""
        self.starts: dict[str, set[str]] = {}
        for words in sentences:
            plain = plain_words(" ".join(words))
            if len(plain) >= SENTENCE_WORDS:
                self.starts.setdefault(" ".join(plain[:SENTENCE_WORDS]), set()).add(" ".join(plain))

    def are_in(self, text: str) -> bool:
        """Whether a whole test sentence stands in the text."""
        plain = plain_words(text)
        for i in range(len(plain) - SENTENCE_WORDS + 1):
            candidates = self.starts.get(" ".join(plain[i : i + SENTENCE_WORDS]))
            if candidates:
                rest = " ".join(plain[i:]) + " "
                if any(rest.startswith(sentence + " ") for sentence in candidates):
                    return True
        return False


def source_files(corpus: params.Corpus, scale: str) -> list[tuple[params.Source, Path]]:
    """The raw files of a corpus with the source each belongs to; StudyError when a source has none."""
    found = []
    for source in corpus.sources:
        if source.reader not in READERS:
            raise unknown("reader", source.reader, READERS)
        files = sorted(paths.require_data(scale).glob(source.files))
        if not files:
            raise StudyError(f"no file matches {source.files} in {paths.show(paths.data(scale))}")
        found += [(source, file) for file in files]
    return found


def test_files(scale: str) -> dict[str, Path]:
    """The test files of every tagging dataset that is present, inside the budget or not."""
    folders = {key: paths.data(scale) / row.folder / "test.tsv" for key, row in datasets.DATASETS.items()}
    return {key: path for key, path in sorted(folders.items()) if path.is_file()}


def build(key: str, scale: str) -> dict:
    """Write a corpus's documents.parquet and meta.json unless they are there already; returns the record.

    Left out, in this order, each counted by file: documents without text, with an identifier already seen, with
    a beginning (160 letters and digits) already seen, and those that hold a sentence of a benchmark's test set.
    """
    corpus = params.load("corpora", key)
    files = source_files(corpus, scale)
    tests = test_files(scale)
    folder = paths.corpus(scale, key)
    record = provenance.record(
        corpus.model_dump(exclude={"title", "papers", "differs"}),
        {file.name: provenance.file_fingerprint(file) for _, file in files}
        | {f"test set {name}": provenance.file_fingerprint(path) for name, path in tests.items()}
        | {"code": provenance.code_fingerprint("corpora")},
    )
    if finished := artefacts.reuse(folder, record["fingerprint"]):
        return finished

    test_sentences = TestSentences([s.words for path in tests.values() for s in datasets.read_conll(path)])
    seen: set[bytes] = set()
    with artefacts.whole_folder(folder) as temporary:
        with pq.ParquetWriter(temporary / "documents.parquet", SCHEMA) as out:
            record["files"] = [copy_documents(source, file, seen, test_sentences, out) for source, file in files]
        record["documents"] = sum(row["kept"] for row in record["files"])
        record["words"] = sum(row["words"] for row in record["files"])
        if not record["documents"]:
            raise StudyError(f"corpus '{key}': nothing is left after cleaning")
        artefacts.write_record(temporary, record)
    return record


def copy_documents(source, file: Path, seen: set[bytes], test_sentences: TestSentences, out) -> dict:
    """Copy the documents to keep of one file; returns the counts of what was read, left out and kept."""
    counts = dict.fromkeys(
        ["read", "file left out", "without text", "same id", "same beginning", "benchmark test", "kept", "words"], 0
    )
    rows = []
    for document in READERS[source.reader](file):
        counts["read"] += 1
        identifier = short_hash(document.id)
        beginning = short_hash("".join(plain_words(document.text[:600]))[:160])
        if file.name in source.leave_out:
            counts["file left out"] += 1
        elif not document.text:
            counts["without text"] += 1
        elif document.id and identifier in seen:
            counts["same id"] += 1
        elif beginning in seen:
            counts["same beginning"] += 1
        elif test_sentences.are_in(document.text):
            counts["benchmark test"] += 1
        else:
            seen |= {identifier, beginning} if document.id else {beginning}
            counts["kept"] += 1
            counts["words"] += len(document.text.split())
            rows.append({"id": document.id, "file": file.name, "text": document.text})
            if len(rows) == 2000:
                out.write_table(pa.Table.from_pylist(rows, SCHEMA))
                rows = []
    if rows:
        out.write_table(pa.Table.from_pylist(rows, SCHEMA))
    if not counts["read"]:
        raise StudyError(f"{paths.show(file)}: no documents in the file")
    return {"file": file.name, **counts, "why left out": source.leave_out.get(file.name, "")}


def short_hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def built(key: str, scale: str) -> dict:
    """The record of a corpus that is built; StudyError when it is not."""
    record = artefacts.read_record(paths.corpus(scale, key))
    if record is None:
        raise StudyError(f"corpus '{key}' is not built at scale '{scale}': run ./run_all.sh {scale} {key}")
    return record


def iterate(key: str, scale: str) -> Iterator[Document]:
    """The kept documents of a built corpus, in order; StudyError when it is not built or damaged."""
    built(key, scale)
    path = paths.corpus(scale, key) / "documents.parquet"
    try:
        for batch in pq.ParquetFile(path).iter_batches(columns=["id", "text"]):
            for row in batch.to_pylist():
                yield Document(**row)
    except (OSError, pa.ArrowInvalid) as error:
        raise StudyError(f"{paths.show(path)}: damaged ({error}); delete it and run again") from None
