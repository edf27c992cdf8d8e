"""Corpus files made from public files: each conversion by name, and how its records are written.

A conversion takes paths and contents of public files, in order, and yields records: (id, title, abstract) for a table,
the lines of a text, an object for JSON lines, a name and its content for an archive.
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
from itertools import islice
from pathlib import Path, PurePosixPath

from lxml import etree

Files = Iterable[tuple[str, bytes]]
SHORTEST = 40  # words; shorter abstracts are left out
KEY = 160  # letters and digits that identify an abstract
LICENCE = re.compile(rb"creativecommons\.org/(licenses/[a-z-]+|publicdomain/zero)/")
FREE = {b"licenses/by": "cc-by", b"publicdomain/zero": "cc-0"}
BY = re.compile(rb"Creative\s+Commons\s+Attribution\s+Licen[cs]e")
HEADING = re.compile(r"[A-Z]+(\.[^.:]*)?:*")  # section headings of the plain full texts, and table cells of letters
NO_PROSE = ("table-wrap", "fig", "ref-list", "supplementary-material", "disp-formula")
TEI = "{http://www.tei-c.org/ns/1.0}"


def flat(text: str | None) -> str:
    return " ".join((text or "").split())


def flat_element(element: etree._Element) -> str:
    return flat("".join(element.itertext()))


def parse_csv(content: bytes) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV by column name in lower case."""
    csv.field_size_limit(sys.maxsize)
    for row in csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")):
        yield {name.lower(): cell or "" for name, cell in row.items() if name is not None}


def take_tables(files: Files) -> Iterator[tuple]:
    """Read citations from CSVs by the names of their columns."""
    for _, content in files:
        for row in parse_csv(content):
            abstract = row["abstract"] if "abstract" in row else row["medical_abstract"]
            yield row.get("pmid") or row.get("pubmedid", ""), row.get("title", ""), abstract


def read_plain_abstracts(files: Files) -> Iterator[tuple]:
    """Read one abstract a file; abstracts already reduced to their content words are left out."""
    for _, content in files:
        text = content.decode("utf-8", "replace")
        if re.search(r"\b(the|of|and)\b", text, re.IGNORECASE):
            yield "", "", text


def take_ohsumed(files: Files) -> Iterator[tuple]:
    """Read one citation a file, with the title on the first line; the folders that hold it are its MeSH categories."""
    citations: dict[str, tuple[bytes, set]] = {}
    for path, content in files:
        *_, category, number = path.split("/")
        citations.setdefault(number, (content, set()))[1].add(category)
    for number, (content, categories) in citations.items():
        title, _, abstract = content.decode("utf-8", "replace").partition("\n")
        yield f"ohsumed:{number}:{','.join(sorted(categories))}", title, abstract


def take_pubtator(files: Files) -> Iterator[tuple]:
    """Read the title and abstract lines of PubTator files."""
    for _, content in files:
        title = ""
        for line in content.decode("utf-8-sig").split("\n"):
            identifier, kind, text = [*line.split("|", 2), "", ""][:3]
            if kind == "t":
                title = text
            elif kind == "a":
                yield identifier, title, text


def read_annotated(files: Files) -> Iterator[tuple]:
    """Read the citations of corona-ml from a compressed JSON list."""
    for _, content in files:
        for record in json.loads(gzip.decompress(content)):
            yield str(record["pubmed_id"] or ""), record["title"], record["abstract"]


def read_questions(files: Files) -> Iterator[tuple]:
    """Read PubMedQA: the question as title, its contexts and long answer as abstract."""
    for _, content in files:
        for pmid, record in json.loads(content).items():
            yield pmid, record["QUESTION"], " ".join([*record["CONTEXTS"], record["LONG_ANSWER"]])


def read_display(files: Files) -> Iterator[tuple]:
    """Read PubMed's display format `Abstract (text)`: the abstract is the longest paragraph of a record.

    The paragraphs are source, title, authors, their addresses and abstract. If none after the title and authors has 60
    words, the longest after the source is taken; a record without one of 60 words is left out.
    """

    def longest(paragraphs: list[str]) -> str:
        people_prefixes = ("Author information", "Collaborators:")
        return max((p for p in paragraphs if not p.startswith(people_prefixes)), key=len, default="")

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
    """Read each Europe PMC record with an abstract once; the path of a file begins with its repository."""

    def one(record: dict, name: str) -> str:
        return (record.get(name) or [""])[0]

    seen_keys = set()
    for path, content in files:
        try:
            json_value = json.loads(content)
        except ValueError:  # some files are empty
            continue
        for record in json_value if isinstance(json_value, list) else [json_value]:
            key = one(record, "pmid") or one(record, "pmcid") or one(record, "doi")
            if not key or key in seen_keys or not one(record, "abstractText"):
                continue
            seen_keys.add(key)
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
    """Return `cc-by` or `cc-0` if that is the first licence in the head of a JATS article, else an empty string."""
    head = article.partition(b"<body")[0]
    match = LICENCE.search(head)
    return FREE.get(match[1], "") if match else "cc-by" if BY.search(head) else ""


def number_of(path: str) -> int:
    """Return the number of the PMCID in a file's name."""
    return int(PurePosixPath(path).stem.removeprefix("PMC"))


def take_trials(files: Files) -> Iterator[list[str]]:
    """Read the plain full texts, of 500 words or more, of articles whose .nxml files give a free licence."""
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
    """Read the paragraphs of four words or more from JATS articles about health under a free licence."""
    health_words, seen_numbers = re.compile(rb"\b(?:patients?|disease|clinical|mice|human)\b"), set()
    for _, content in files:
        licence = read_licence(content)
        if not licence or len(health_words.findall(content.lower())) < 25:
            continue
        try:
            root = etree.fromstring(content, etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True))
        except etree.XMLSyntaxError:
            continue
        meta = root.find("front/article-meta")
        ids = {e.get("pub-id-type"): e.text for e in meta.iterfind("article-id")} if meta is not None else {}
        number = (ids.get("pmc") or ids.get("pmcid") or "").removeprefix("PMC")
        if not number or number in seen_numbers:
            continue
        seen_numbers.add(number)
        etree.strip_elements(root, *NO_PROSE)  # with the text that follows them, as in the study's own files
        title = list(map(flat_element, meta.iterfind("title-group/article-title")))
        parts = [*meta.iterfind("abstract"), *root.iterfind("body")]
        lines = [flat_element(paragraph) for part in parts for paragraph in part.iter("p")]
        lines = [line for line in lines if len(line.split()) >= 4]
        if count_words(lines) >= 1000:
            yield [f"# PMC{number} {licence}", *title, *lines]


def take_articles(files: Files) -> Iterator[list[str]]:
    """Read CRAFT's plain texts, named after their PMIDs."""
    for path, content in files:
        lines = (flat(line) for line in content.decode("utf-8-sig").split("\n"))
        yield [f"# PMID{PurePosixPath(path).stem}", *filter(None, lines)]


def take_first(files: Files) -> Iterator[tuple[str, bytes]]:
    """Yield the first 40 files."""
    for path, content in islice(files, 40):
        yield PurePosixPath(path).name, content


def take_sample(files: Files) -> Iterator[tuple[str, bytes]]:
    """Sample 60 articles under a free licence, evenly over their PMCIDs; take them all if there are fewer."""
    free_articles = sorted((number_of(path), path, content) for path, content in files if read_licence(content))
    for _, path, content in free_articles[:: max(1, len(free_articles) // 60)][:60]:
        yield PurePosixPath(path).name, content


def read_extract(files: Files) -> Iterator[list[str]]:
    """Read the articles of 150 words or more in every third file of a Wikipedia extract."""
    for _, content in islice(files, 0, None, 3):
        for article in re.findall(r"<doc [^>]*>\n(.*?)</doc>", content.decode(), re.DOTALL):
            lines = re.sub("<[^>]+>", "", html.unescape(article)).split("\n")
            lines = [line.strip() for line in lines if line.strip()]
            if count_words(lines) >= 150:
                yield lines


def read_novels(files: Files) -> Iterator[list[str]]:
    """Read the headings, paragraphs and verses of novels in TEI."""
    for path, content in files:
        body = etree.fromstring(content).find(f"{TEI}text/{TEI}body")
        elements = body.iter(f"{TEI}p", f"{TEI}head", f"{TEI}l")
        lines = map(flat_element, elements)
        yield [f"# {PurePosixPath(path).stem}", *filter(None, lines)]


def read_examinations(files: Files) -> Iterator[list[str]]:
    for _, content in files:
        for line in content.decode().splitlines():
            problem = json.loads(line)
            yield [problem["problem_text"], "\n".join(problem["choices"])]


def read_contexts(files: Files) -> Iterator[list[str]]:
    """Read the distinct paragraphs of question sets in SQuAD format, under the title of their article."""
    seen = set()
    for _, content in files:
        for article in json.loads(content)["data"]:
            contexts = list(dict.fromkeys(p["context"] for p in article["paragraphs"] if p["context"] not in seen))
            seen.update(contexts)
            if contexts:
                yield [f"# {article['title']}", *contexts]


def read_separated(files: Files) -> Iterator[list[str]]:
    """Read the distinct contexts of JSQuAD, where `[SEP]` separates title and paragraph."""
    contexts = (
        p["context"] for _, content in files for article in json.loads(content)["data"] for p in article["paragraphs"]
    )
    for context in dict.fromkeys(contexts):
        yield [context.replace("[SEP]", "\n")]


def read_reports(files: Files) -> Iterator[list[str]]:
    """Read the distinct reports quoted in the prompts of JMED-LLM."""
    matches = (
        re.search(r"\n「(.*)」", row["question"], re.DOTALL) for _, content in files for row in parse_csv(content)
    )
    for report in dict.fromkeys(match[1] for match in matches if match):
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
    """Return a key that copies of an abstract share."""
    return re.sub("[^a-z0-9]", "", abstract.lower())[:KEY]


def choose_citations(rows: Iterable[tuple], ids: set[str], keys: set[str]) -> Iterator[tuple]:
    """Yield new citations with an abstract of SHORTEST words or more; `ids` and `keys`, of known ones, are extended."""
    for row in rows:
        identifier, title, abstract = (flat(html.unescape(cell)) for cell in row)
        key = find_key(abstract)
        if len(abstract.split()) >= SHORTEST and identifier not in ids and key not in keys:
            ids |= {identifier} - {""}
            keys.add(key)
            yield identifier, title, abstract


def take_part(texts: Iterable[list[str]], number: int, words: int) -> Iterator[list[str]]:
    """Yield one part of the texts; the text that brings a part to `words` words closes it."""
    part = word_count = 0
    for lines in texts:
        if part == number:
            yield lines
        word_count += count_words([line for line in lines if not line.startswith("# ")])
        if word_count >= words:
            part, word_count = part + 1, 0
            if part > number:
                return


def write_records(records: Iterable, path: Path, name: str) -> None:
    """Write records to a compressed file in the format of `name`, with the same bytes on every run."""
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as gzip_file:
        if name.endswith(".tar.gz"):
            with tarfile.open(fileobj=gzip_file, mode="w", format=tarfile.USTAR_FORMAT) as archive:
                for member, content in records:
                    info = tarfile.TarInfo(member)
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))
            return
        for number, record in enumerate(records):
            gzip_file.write(to_text(name, number, record).encode())


def to_text(name: str, number: int, record) -> str:
    if name.endswith(".tsv.gz"):
        return ("pmid\ttitle\tabstract\n" if not number else "") + "\t".join(record) + "\n"
    if name.endswith(".jsonl.gz"):
        sort_names = "from" in record  # Europe PMC's records were written with sorted names
        return json.dumps(record, ensure_ascii=False, sort_keys=sort_names) + "\n"
    return ("\n" if number else "") + "\n".join(record) + "\n"
