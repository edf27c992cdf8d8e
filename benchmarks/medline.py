"""MEDLINE XML to rows: the study's reader against pubmed_parser, on a generated file of 30,000 citations, one core.

    pip install pubmed_parser==0.5.1
    python -m benchmarks.medline [citations] [repetitions]

The two sides alternate. Each run has its own process and reports its seconds and peak memory.
Writes outputs/record/benchmarks/medline.csv.
"""

import gzip
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from lib import provenance
from lib.study import paths, results

READERS = {  # side -> its import, and an expression for the citations of a path
    "ours": ("from lib.corpora import medline", "medline.read_xml(Path(sys.argv[1]))"),
    "peer": ("import pubmed_parser", "pubmed_parser.parse_medline_xml(sys.argv[1])"),
}
# VmHWM rather than ru_maxrss, because ru_maxrss starts from what the parent used.
PROGRAM = """
import json, re, sys, time
from pathlib import Path
{imported}
begun = time.process_time()
rows = sum(1 for _ in {citations})
seconds = time.process_time() - begun
memory = int(re.search("VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
print(json.dumps([rows, seconds, memory]))
"""

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


def write_citations(path: Path, count: int, first: int = 10_000_000) -> None:
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


def time_reader(name: str, path: Path, count: int) -> tuple[float, float]:
    """Return citations per second of processor time and peak memory in MiB.

    They are those of one run in a fresh process on one core.
    """
    imported, citations = READERS[name]
    program = PROGRAM.format(imported=imported, citations=citations)
    process = subprocess.run(
        [sys.executable, "-c", program, path], stdout=subprocess.PIPE, check=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    rows, seconds, memory = json.loads(process.stdout.splitlines()[-1])
    if rows != count:
        raise SystemExit(f"{name} read {rows} of {count} citations")
    return count / seconds, memory


def main(count: int = 30_000, repetitions: int = 5) -> None:
    runs = {name: [] for name in READERS}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "citations.xml.gz"
        write_citations(path, count)
        for _ in range(repetitions):
            for name, measurements in runs.items():
                measurements.append(time_reader(name, path, count))
    records = []
    for column, (quantity, unit) in enumerate((("MEDLINE XML to rows", "citations/s"), ("highest memory", "MiB"))):
        ours, peer = (statistics.median(run[column] for run in measurements) for measurements in runs.values())
        records.append(
            {"what": f"{quantity}, {count} citations", "ours": round(ours, 1), "peer": round(peer, 1),
             "ratio": round(ours / peer, 2), "unit": unit, "device": "CPU, one core", "commit": provenance.commit()}
        )  # fmt: skip
        print(records[-1])
    results.write_csv(paths.output("record", "benchmarks", "medline.csv"), records)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
