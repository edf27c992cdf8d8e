"""Corpora and vocabularies over ten, a hundred and a thousand raw files: seconds and memory of each step.

    python -m benchmarks.growth [files ...] [--citations N]

The files are made-up MEDLINE XML with 60 citations each unless told otherwise, all from the same 5,000 words, so that
only the amount of text grows. Each step calls lib as the study's jobs do, in its own process: all raw files to rows,
one after another, without MeSH and test sentences; rows to a corpus; the corpus to a WordPiece vocabulary of 8,192; and
the corpus to packed tokens. `MiB` is a step's peak memory beyond the memory at its start. Writes
outputs/record/benchmarks/growth.csv if no number of files is given.
"""

import gzip
import random
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from transformers import AutoTokenizer

from benchmarks import paired
from lib.corpora import build, leakage, medline, rows
from lib.corpora.mesh import Mesh
from lib.pretraining import tokens
from lib.study import params, results
from lib.vocabularies import learning

FILES = (10, 100, 1000)
SIZE = 8_192  # tokens of the vocabulary

# A citation with the elements of real ones. `{n}` becomes n random words, and PMID the citation's own.
DATE = "<Year>2015</Year><Month>03</Month><Day>02</Day>"
SECTION = '<AbstractText Label="{1}" NlmCategory="{1}">{50} <i>{3}</i> {8}</AbstractText>'
AUTHOR = (
    '<Author ValidYN="Y"><LastName>{1}</LastName><ForeName>{1}</ForeName><Initials>A</Initials>'
    "<AffiliationInfo><Affiliation>{12}</Affiliation></AffiliationInfo></Author>"
)
HEADING = (
    '<MeshHeading><DescriptorName UI="D000000" MajorTopicYN="N">{1}</DescriptorName>'
    '<QualifierName UI="Q000000" MajorTopicYN="Y">{1}</QualifierName></MeshHeading>'
)
REFERENCE = (
    '<Reference><Citation>{9}</Citation><ArticleIdList><ArticleId IdType="pubmed">1000000</ArticleId></ArticleIdList>'
    "</Reference>"
)
CITATION = (
    '<PubmedArticle><MedlineCitation Status="MEDLINE" Owner="NLM"><PMID Version="1">PMID</PMID>'
    f"<DateCompleted>{DATE}</DateCompleted><DateRevised>{DATE}</DateRevised>"
    '<Article PubModel="Print"><Journal><ISSN IssnType="Print">0000-0000</ISSN><JournalIssue>'
    f"<Volume>1</Volume><Issue>2</Issue><PubDate>{DATE}</PubDate></JournalIssue><Title>{{4}}</Title>"
    "<ISOAbbreviation>J</ISOAbbreviation></Journal><ArticleTitle>{13}</ArticleTitle>"
    f"<Pagination><MedlinePgn>1-9</MedlinePgn></Pagination><Abstract>{4 * SECTION}</Abstract>"
    f'<AuthorList CompleteYN="Y">{5 * AUTHOR}</AuthorList><Language>eng</Language>'
    '<PublicationTypeList><PublicationType UI="D016428">Journal Article</PublicationType>'
    "</PublicationTypeList></Article><MedlineJournalInfo><Country>X</Country><MedlineTA>J</MedlineTA>"
    f"<NlmUniqueID>1</NlmUniqueID></MedlineJournalInfo><MeshHeadingList>{12 * HEADING}</MeshHeadingList>"
    f'</MedlineCitation><PubmedData><History><PubMedPubDate PubStatus="pubmed">{DATE}</PubMedPubDate></History>'
    '<ArticleIdList><ArticleId IdType="pubmed">PMID</ArticleId></ArticleIdList>'
    f"<ReferenceList>{10 * REFERENCE}</ReferenceList></PubmedData></PubmedArticle>\n"
)


def write_citations(path: Path, count: int, first: int) -> None:
    """Write a PubMed XML file of citations.

    `first`: the lowest PMID, which also seeds the text. Every file draws from the same 5,000 words.
    """
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghilmnoprstuvy", k=rng.randint(3, 11))) for _ in range(5000)]
    rng.seed(first)

    def draw(match: re.Match) -> str:
        text = " ".join(rng.choices(words, k=int(match[1])))
        return text if match[1] == "1" else f"{text.capitalize()}."

    with gzip.open(path, "wt", encoding="utf-8", compresslevel=6) as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n<PubmedArticleSet>\n')
        for pmid in range(first, first + count):
            file.write(re.sub(r"\{(\d+)\}", draw, CITATION).replace(">PMID<", f">{pmid}<"))
        file.write("</PubmedArticleSet>\n")


def read_files(folder: Path) -> None:
    no_tests = leakage.TestSentences(leakage.index_sentences([]))
    for path in sorted((folder / "raw").glob("*.xml.gz")):
        rows_path = folder / "rows" / f"{path.stem}.parquet"
        rows.write_document_rows(medline.read_xml(path), rows_path, Mesh({}), no_tests, language="")


def build_corpus(folder: Path) -> None:
    sources = [build.Rows(path, "made-up", path.name, {}) for path in sorted((folder / "rows").glob("*.parquet"))]
    rules = params.load("cleaning", params.load("corpora", "pubmed").cleaning)
    build.build_corpus(sources, folder / "documents.parquet", rules)


def train_vocabulary(folder: Path) -> None:
    tokenizer = learning.train_vocabulary(lambda: read_texts(folder), "wordpiece", SIZE, cased=False)
    tokenizer.save_pretrained(folder / "vocabulary")


def pack_tokens(folder: Path) -> None:
    tokens.pack(read_texts(folder), AutoTokenizer.from_pretrained(folder / "vocabulary"), folder / "tokens")


def read_texts(folder: Path) -> Iterator[str]:
    return (document.text for document in build.read_corpus(folder / "documents.parquet"))


STEPS: dict[str, Callable[[Path], None]] = {
    "raw files to rows": read_files,
    "rows to a corpus": build_corpus,
    "a vocabulary": train_vocabulary,
    "packed tokens": pack_tokens,
}


def measure(step: str, folder: Path) -> tuple[float, float]:
    """Return a step's seconds, and its peak memory in MiB beyond the memory at its start."""
    memory_before, start = read_memory("VmRSS"), time.perf_counter()
    STEPS[step](folder)
    seconds = time.perf_counter() - start
    return seconds, max(0.0, read_memory("VmHWM") - memory_before)


def read_memory(name: str) -> float:
    """Return a memory figure of this process in MiB, by its name in /proc/self/status."""
    return int(re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))[1]) / 1024


def grow(count: int, citations: int) -> list[dict]:
    """Return a record for each step over `count` files."""
    records = []
    with tempfile.TemporaryDirectory(prefix="study-") as folder_name:
        folder = Path(folder_name)
        for subfolder in ("raw", "rows"):
            (folder / subfolder).mkdir()
        for number in range(count):
            write_citations(folder / "raw" / f"{number:04}.xml.gz", citations, 10_000_000 + number * citations)
        for step in STEPS:
            seconds, memory = paired.run_apart(measure, step, folder)
            records.append({"step": step, "files": count, "seconds": seconds, "MiB": round(memory, 1)})
        megabytes = sum(len(text.encode()) for text in read_texts(folder)) / 1e6
    for record in records:
        record |= {"MB": round(megabytes, 1), "seconds a MB": round(record["seconds"] / megabytes, 4)}
        record["seconds"] = round(record["seconds"], 2)
        print(record, flush=True)
    return [record | paired.describe_machine() for record in records]


def main() -> None:
    parser = paired.make_parser(__doc__, citations=60)
    parser.add_argument("files", nargs="*", type=int)
    options = parser.parse_args()
    records = [record for count in options.files or FILES for record in grow(count, options.citations)]
    if not options.files:
        results.write_csv(paired.OUTPUT / "growth.csv", records)


if __name__ == "__main__":
    main()
