"""MEDLINE XML to rows: the study's reader against pubmed_parser, on a generated file of 30,000 citations, one core.

    pip install pubmed_parser==0.5.1
    python -m benchmarks.medline [citations] [repetitions]

Each side runs in a process of its own, the two in turn, and reports seconds and the highest memory in use.
Writes outputs/record/benchmarks/medline.csv.
"""

import gzip
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

OURS = """
from pathlib import Path
from lib.corpora import medline
rows = sum(1 for _ in medline.read_xml(Path(sys.argv[1])))
"""
PEER = """
import pubmed_parser
rows = sum(1 for _ in pubmed_parser.parse_medline_xml(sys.argv[1]))
"""
# VmHWM and not ru_maxrss, which begins with what the parent used.
FRAME = """
import json, re, sys, time
{imports}
begun = time.process_time()
{run}
seconds = time.process_time() - begun
memory = int(re.search("VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
print(json.dumps([rows, seconds, memory]))
"""


def write_citations(path: Path, count: int, first: int = 10_000_000) -> None:
    """A PubMed XML file with the elements of real ones: dates, journal, authors, abstract, MeSH, references.

    `first`: the lowest PMID, from which the text follows; its words are the same 5,000 in every file.
    """
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghilmnoprstuvy", k=rng.randint(3, 11))) for _ in range(5000)]
    rng.seed(first)

    def text(n: int) -> str:
        return " ".join(rng.choices(words, k=n)).capitalize() + "."

    def author() -> str:
        return (
            f'<Author ValidYN="Y"><LastName>{rng.choice(words)}</LastName><ForeName>{rng.choice(words)}</ForeName>'
            f"<Initials>A</Initials><AffiliationInfo><Affiliation>{text(12)}</Affiliation></AffiliationInfo></Author>"
        )

    def heading() -> str:
        return (
            f'<MeshHeading><DescriptorName UI="D{rng.randint(0, 99999):06}" MajorTopicYN="N">{rng.choice(words)}'
            f'</DescriptorName><QualifierName UI="Q000000" MajorTopicYN="Y">{rng.choice(words)}</QualifierName>'
            "</MeshHeading>"
        )

    def reference() -> str:
        return (
            f"<Reference><Citation>{text(9)}</Citation><ArticleIdList>"
            f'<ArticleId IdType="pubmed">{rng.randint(1, 10**7)}</ArticleId></ArticleIdList></Reference>'
        )

    def citation(pmid: int) -> str:
        sections = "".join(
            f'<AbstractText Label="{label}" NlmCategory="{label}">{text(50)} <i>{text(3)}</i> {text(8)}</AbstractText>'
            for label in ("BACKGROUND", "METHODS", "RESULTS", "CONCLUSIONS")
        )
        date = "<Year>2015</Year><Month>03</Month><Day>02</Day>"
        return (
            f'<PubmedArticle><MedlineCitation Status="MEDLINE" Owner="NLM"><PMID Version="1">{pmid}</PMID>'
            f"<DateCompleted>{date}</DateCompleted><DateRevised>{date}</DateRevised>"
            f'<Article PubModel="Print"><Journal><ISSN IssnType="Print">0000-0000</ISSN><JournalIssue>'
            f"<Volume>1</Volume><Issue>2</Issue><PubDate>{date}</PubDate></JournalIssue><Title>{text(4)}</Title>"
            f"<ISOAbbreviation>J</ISOAbbreviation></Journal><ArticleTitle>{text(13)}</ArticleTitle>"
            f"<Pagination><MedlinePgn>1-9</MedlinePgn></Pagination><Abstract>{sections}</Abstract>"
            f'<AuthorList CompleteYN="Y">{"".join(author() for _ in range(5))}</AuthorList><Language>eng</Language>'
            '<PublicationTypeList><PublicationType UI="D016428">Journal Article</PublicationType>'
            "</PublicationTypeList></Article><MedlineJournalInfo><Country>X</Country><MedlineTA>J</MedlineTA>"
            "<NlmUniqueID>1</NlmUniqueID></MedlineJournalInfo><MeshHeadingList>"
            f"{''.join(heading() for _ in range(12))}</MeshHeadingList></MedlineCitation><PubmedData><History>"
            f'<PubMedPubDate PubStatus="pubmed">{date}</PubMedPubDate></History><ArticleIdList>'
            f'<ArticleId IdType="pubmed">{pmid}</ArticleId></ArticleIdList>'
            f"<ReferenceList>{''.join(reference() for _ in range(10))}</ReferenceList></PubmedData></PubmedArticle>\n"
        )

    with gzip.open(path, "wt", encoding="utf-8", compresslevel=6) as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n<PubmedArticleSet>\n')
        for i in range(count):
            file.write(citation(first + i))
        file.write("</PubmedArticleSet>\n")


def time_reader(code: str, path: Path) -> tuple[int, float, float]:
    """Rows, processor seconds and MiB of one run in a fresh process on one core."""
    *imports, run = code.strip().splitlines()
    program = FRAME.format(imports="\n".join(imports), run=run)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True, env=environment
    )
    return tuple(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    from lib import provenance
    from lib.study import paths, results

    count = int(sys.argv[1]) if len(sys.argv) > 1 else 30_000
    repetitions = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "citations.xml.gz"
        write_citations(path, count)
        runs = {"ours": [], "peer": []}
        for _ in range(repetitions):
            for name, code in (("ours", OURS), ("peer", PEER)):
                rows, seconds, memory = time_reader(code, path)
                if rows != count:
                    raise SystemExit(f"{name} read {rows} of {count} citations")
                runs[name].append((count / seconds, memory))
    lines = []
    for i, (what, unit) in enumerate((("MEDLINE XML to rows", "citations/s"), ("highest memory", "MiB"))):
        ours, peer = (statistics.median(run[i] for run in runs[name]) for name in ("ours", "peer"))
        lines.append(
            {"what": f"{what}, {count} citations", "ours": round(ours, 1), "peer": round(peer, 1),
             "ratio": round(ours / peer, 2), "unit": unit, "device": "CPU, one core", "commit": provenance.commit()}
        )  # fmt: skip
    results.write_csv(paths.output("record", "benchmarks", "medline.csv"), lines)
    for line in lines:
        print(line)


if __name__ == "__main__":
    main()
