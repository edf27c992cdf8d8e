"""Corpus files that the study made from public ones: each conversion by name, and how its records become a file.

A conversion gets path and content of public files, in order, and yields records: of a table (id, title, abstract), of a
text its lines, of JSON lines an object, of an archive a name and its content.
"""

import csv
import gzip
import html
import io
import json
import re
import sys
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

from lxml import etree

from lib.errors import StudyError

Files = Iterable[tuple[str, bytes]]
SHORTEST = 40  # words of an abstract
KEY = 160  # letters and digits by which an abstract is known again
LICENCE = re.compile(rb"creativecommons\.org/(licenses/[a-z-]+|publicdomain/zero)/")
FREE = {b"licenses/by": "cc-by", b"publicdomain/zero": "cc-0"}
BY = re.compile(rb"Creative\s+Commons\s+Attribution\s+Licen[cs]e")
HEADING = re.compile(r"[A-Z]+(\.[^.:]*)?:*")  # of a section of the plain full texts, and cells of a table's letters
NO_PROSE = ("table-wrap", "fig", "ref-list", "supplementary-material", "disp-formula")
TEI = "{http://www.tei-c.org/ns/1.0}"


def flat(text: str | None) -> str:
    return " ".join((text or "").split())


def parse_csv(content: bytes) -> Iterator[dict[str, str]]:
    """The rows of a CSV, by the names of its columns in small letters."""
    csv.field_size_limit(sys.maxsize)
    for row in csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")):
        yield {name.lower(): cell or "" for name, cell in row.items() if name is not None}


def take_tables(files: Files) -> Iterator[tuple]:
    """Citations of CSVs whose columns are named after what they hold."""
    for _, content in files:
        for row in parse_csv(content):
            abstract = row["abstract"] if "abstract" in row else row["medical_abstract"]
            yield row.get("pmid") or row.get("pubmedid", ""), row.get("title", ""), abstract


def read_plain_abstracts(files: Files) -> Iterator[tuple]:
    """An abstract a file; those that were already reduced to their content words are left out."""
    for _, content in files:
        text = content.decode("utf-8", "replace")
        if re.search(r"\b(the|of|and)\b", text, re.IGNORECASE):
            yield "", "", text


def take_ohsumed(files: Files) -> Iterator[tuple]:
    """A citation a file, its title the first line; the folders that hold it are its MeSH categories."""
    found: dict[str, tuple[bytes, set]] = {}
    for path, content in files:
        *_, category, number = path.split("/")
        found.setdefault(number, (content, set()))[1].add(category)
    for number, (content, categories) in found.items():
        title, _, abstract = content.decode("utf-8", "replace").partition("\n")
        yield f"ohsumed:{number}:{','.join(sorted(categories))}", title, abstract


def take_pubtator(files: Files) -> Iterator[tuple]:
    """The title and abstract lines of PubTator files."""
    for _, content in files:
        title = ""
        for line in content.decode("utf-8-sig").split("\n"):
            identifier, kind, text = [*line.split("|", 2), "", ""][:3]
            if kind == "t":
                title = text
            elif kind == "a":
                yield identifier, title, text


def read_annotated(files: Files) -> Iterator[tuple]:
    """The citations of corona-ml, a packed JSON list."""
    for _, content in files:
        for record in json.loads(gzip.decompress(content)):
            yield str(record["pubmed_id"] or ""), record["title"], record["abstract"]


def read_questions(files: Files) -> Iterator[tuple]:
    """PubMedQA: the question for a title, its contexts and long answer for an abstract."""
    for _, content in files:
        for pmid, record in json.loads(content).items():
            yield pmid, record["QUESTION"], " ".join([*record["CONTEXTS"], record["LONG_ANSWER"]])


def read_display(files: Files) -> Iterator[tuple]:
    """PubMed's display format `Abstract (text)`: the abstract is the longest paragraph of a record.

    Paragraphs are where it was published, title, authors, their addresses and the abstract; without an abstract of 60
    words the longest of the first ones stands for it.
    """

    def longest(paragraphs: list[str]) -> str:
        of_people = ("Author information", "Collaborators:")
        return max((p for p in paragraphs if not p.startswith(of_people)), key=len, default="")

    for _, content in files:
        for record in re.split(r"\n\n\n+(?=\d+\. )", content.decode("utf-8-sig").replace("\r", "")):
            paragraphs = re.split(r"\n\s*\n", record.strip())
            if len(paragraphs) < 4:
                continue
            abstract = longest(paragraphs[3:])
            if len(abstract.split()) < 60:
                abstract = longest(paragraphs[1:])
            if len(abstract.split()) >= 60:
                pmid = re.search(r"PMID: (\d+)", record)
                yield pmid[1] if pmid else "", paragraphs[1], abstract


def take_mesh_sample(files: Files) -> Iterator[dict]:
    names = ("pmid", "Title", "abstractText", "meshMajor", "meshid", "meshroot")
    for _, content in files:
        for row in parse_csv(content):
            yield {name: row[name.lower()] for name in names}


def take_europepmc(files: Files) -> Iterator[dict]:
    """Each record of Europe PMC once that has an abstract; its file's path begins with the repository."""

    def one(record: dict, name: str) -> str:
        return (record.get(name) or [""])[0]

    seen = set()
    for path, content in files:
        try:
            found = json.loads(content)
        except ValueError:  # some are empty
            continue
        for record in found if isinstance(found, list) else [found]:
            key = one(record, "pmid") or one(record, "pmcid") or one(record, "doi")
            if not key or key in seen or not one(record, "abstractText"):
                continue
            seen.add(key)
            headings = (record.get("meshHeadingList") or [{}])[0].get("meshHeading", [])
            yield {
                "abstract": flat(html.unescape(re.sub(r"<[^>]+>", " ", one(record, "abstractText")))),
                "doi": one(record, "doi"),
                "from": "/".join(path.split("/")[:2]),
                "license": one(record, "license"),
                "mesh": [{"descriptor": one(h, "descriptorName"), "major": one(h, "majorTopic_YN")} for h in headings],
                "pmcid": one(record, "pmcid"),
                "pmid": one(record, "pmid"),
                "title": flat(one(record, "title")),
                "year": one(record, "pubYear"),
            }


def read_licence(article: bytes) -> str:
    """`cc-by` or `cc-0` when the head of a JATS article gives it first; else empty."""
    head = article.partition(b"<body")[0]
    found = LICENCE.search(head)
    return FREE.get(found[1], "") if found else "cc-by" if BY.search(head) else ""


def number_of(path: str) -> int:
    """The number in a file's name that is a PMCID."""
    return int(PurePosixPath(path).stem.removeprefix("PMC"))


def take_trials(files: Files) -> Iterator[list[str]]:
    """The plain full texts of articles under a free licence, which their .nxml files say; of 500 words and more."""
    licences, texts = {}, {}
    for path, content in files:
        if path.endswith(".nxml"):
            licences[number_of(path)] = read_licence(content)
        else:
            texts[number_of(path)] = content
    for number, content in sorted(texts.items()):
        lines = [flat(line) for line in content.decode().split("\n")]
        lines = [line for line in lines if line and not HEADING.fullmatch(line)]
        if licences[number] and count_words(lines) >= 500:
            yield [f"# PMC{number} {licences[number]}", *lines]


def read_full_texts(files: Files) -> Iterator[list[str]]:
    """Paragraphs of four words and more of JATS articles under a free licence that speak of health."""
    health, seen = re.compile(rb"\b(?:patients?|disease|clinical|mice|human)\b"), set()
    for _, content in files:
        licence = read_licence(content)
        if not licence or len(health.findall(content.lower())) < 25:
            continue
        try:
            root = etree.fromstring(content, etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True))
        except etree.XMLSyntaxError:
            continue
        meta = root.find("front/article-meta")
        ids = {e.get("pub-id-type"): e.text for e in meta.iterfind("article-id")} if meta is not None else {}
        number = (ids.get("pmc") or ids.get("pmcid") or "").removeprefix("PMC")
        if not number or number in seen:
            continue
        seen.add(number)
        etree.strip_elements(root, *NO_PROSE)  # with what follows them in a paragraph, as the study took them
        title = [flat("".join(e.itertext())) for e in meta.iterfind("title-group/article-title")]
        parts = [*meta.iterfind("abstract"), *root.iterfind("body")]
        lines = [flat("".join(p.itertext())) for part in parts for p in part.iter("p")]
        lines = [line for line in lines if len(line.split()) >= 4]
        if count_words(lines) >= 1000:
            yield [f"# PMC{number} {licence}", *title, *lines]


def take_articles(files: Files) -> Iterator[list[str]]:
    """CRAFT's plain texts, named after their PMIDs."""
    for path, content in files:
        lines = (flat(line) for line in content.decode("utf-8-sig").split("\n"))
        yield [f"# PMID{PurePosixPath(path).stem}", *filter(None, lines)]


def take_first(files: Files) -> Iterator[tuple[str, bytes]]:
    """The first 40 files."""
    for (path, content), _ in zip(files, range(40), strict=False):
        yield PurePosixPath(path).name, content


def take_sample(files: Files) -> Iterator[tuple[str, bytes]]:
    """60 articles under a free licence, evenly over their PMCIDs."""
    free = sorted((number_of(path), path, content) for path, content in files if read_licence(content))
    for _, path, content in free[:: len(free) // 60][:60]:
        yield PurePosixPath(path).name, content


def read_extract(files: Files) -> Iterator[list[str]]:
    """Articles of 150 words and more in every third file of a Wikipedia extract."""
    for number, (_, content) in enumerate(files):
        for article in re.findall(r"<doc [^>]*>\n(.*?)</doc>", content.decode(), re.DOTALL) if number % 3 == 0 else ():
            lines = re.sub("<[^>]+>", "", html.unescape(article)).split("\n")
            lines = [line.strip() for line in lines if line.strip()]
            if count_words(lines) >= 150:
                yield lines


def read_novels(files: Files) -> Iterator[list[str]]:
    """Headings, paragraphs and verses of novels in TEI."""
    for path, content in files:
        body = etree.fromstring(content).find(f"{TEI}text/{TEI}body")
        elements = body.iter(f"{TEI}p", f"{TEI}head", f"{TEI}l")
        lines = (flat("".join(element.itertext())) for element in elements)
        yield [f"# {PurePosixPath(path).stem}", *filter(None, lines)]


def read_examinations(files: Files) -> Iterator[list[str]]:
    for _, content in files:
        for line in content.decode().splitlines():
            problem = json.loads(line)
            yield [problem["problem_text"], "\n".join(problem["choices"])]


def read_contexts(files: Files) -> Iterator[list[str]]:
    """The distinct paragraphs of question sets in SQuAD's form, under the title of their article."""
    seen = set()
    for _, content in files:
        for article in json.loads(content)["data"]:
            found = list(dict.fromkeys(p["context"] for p in article["paragraphs"] if p["context"] not in seen))
            seen.update(found)
            if found:
                yield [f"# {article['title']}", *found]


def read_separated(files: Files) -> Iterator[list[str]]:
    """The distinct contexts of JSQuAD, where `[SEP]` stands between title and paragraph."""
    found = (p["context"] for _, c in files for article in json.loads(c)["data"] for p in article["paragraphs"])
    for context in dict.fromkeys(found):
        yield [context.replace("[SEP]", "\n")]


def read_reports(files: Files) -> Iterator[list[str]]:
    """The distinct reports that the prompts of JMED-LLM quote."""
    quoted = (re.search(r"\n「(.*)」", row["question"], re.DOTALL) for _, c in files for row in parse_csv(c))
    for report in dict.fromkeys(match[1] for match in quoted if match):
        yield [line for line in report.split("\n") if line.strip()]


def count_words(lines: list[str]) -> int:
    return sum(len(line.split()) for line in lines)


CONVERSIONS: dict[str, Callable[[Files], Iterator]] = {
    "abstracts": read_plain_abstracts,
    "annotated": read_annotated,
    "articles": take_articles,
    "contexts": read_contexts,
    "display": read_display,
    "europepmc": take_europepmc,
    "examinations": read_examinations,
    "extract": read_extract,
    "first-40": take_first,
    "full-texts": read_full_texts,
    "mesh-sample": take_mesh_sample,
    "novels": read_novels,
    "ohsumed": take_ohsumed,
    "pubtator": take_pubtator,
    "questions": read_questions,
    "reports": read_reports,
    "sample-60": take_sample,
    "separated": read_separated,
    "tables": take_tables,
    "trials": take_trials,
}


def find_key(abstract: str) -> str:
    """What abstracts that are the same have in common."""
    return re.sub("[^a-z0-9]", "", abstract.lower())[:KEY]


def choose_citations(rows: Iterable[tuple], ids: set[str], keys: set[str]) -> Iterator[tuple]:
    """Each citation once, of those with an abstract long enough; `ids` and `keys`: of those that are elsewhere."""
    for row in rows:
        identifier, title, abstract = (flat(html.unescape(cell)) for cell in row)
        key = find_key(abstract)
        if len(abstract.split()) >= SHORTEST and identifier not in ids and key not in keys:
            ids |= {identifier} - {""}
            keys.add(key)
            yield identifier, title, abstract


def take_part(texts: Iterable[list[str]], number: int, words: int) -> Iterator[list[str]]:
    """One of the parts into which texts are cut, each closed by the text that brings it to so many words."""
    part = count = 0
    for lines in texts:
        if part == number:
            yield lines
        count += count_words([line for line in lines if not line.startswith("# ")])
        if count >= words:
            part, count = part + 1, 0
            if part > number:
                return


def write_records(records: Iterable, path: Path, name: str) -> None:
    """Write the records of a file of that name, packed, with the same bytes every day."""
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        if name.endswith(".tar.gz"):
            with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
                for member, content in records:
                    about = tarfile.TarInfo(member)
                    about.size = len(content)
                    archive.addfile(about, io.BytesIO(content))
            return
        for number, record in enumerate(records):
            packed.write(to_text(name, number, record).encode())


def to_text(name: str, number: int, record) -> str:
    if name.endswith(".tsv.gz"):
        return ("pmid\ttitle\tabstract\n" if not number else "") + "\t".join(record) + "\n"
    if name.endswith(".jsonl.gz"):
        in_order = "from" in record  # of names, as the records of Europe PMC were written
        return json.dumps(record, ensure_ascii=False, sort_keys=in_order) + "\n"
    if not name.endswith(".txt.gz"):
        raise StudyError(f"{name}: no form of a file that is made here")
    return ("\n" if number else "") + "\n".join(record) + "\n"
