"""Made-up pretraining text in every format that is read, with the faults that real files have."""

import random
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import escape

from tools.made_up.files import write_gzip, write_tar
from tools.made_up.language import GENERAL, JAPANESE, MEDICAL, make_text

TREES = {"disease": "C01", "drug": "D01", "device": "E01", "humans": "B01.050.150.900.649.801.400.112.400.400",
         "industry": "J01"}  # fmt: skip


def write(folder: Path, rng: random.Random, names: dict, test_texts: list[str]) -> None:
    """Write text in every format that is read, with the faults that real files have."""

    def medical(n: int) -> str:
        return make_text(rng, MEDICAL, names, n)

    rows = [(str(9_999_000 + i), medical(1), medical(16 if i % 2 else 8)) for i in range(1500)]
    rows += [(rows[i][0], "An older version", medical(8)) for i in range(5)]  # a repeated PMID
    rows += [("", rows[i][1], rows[i][2]) for i in range(5, 10)]  # a repeated text, without PMID
    rows += [(str(19_000_000 + i), "No abstract", "") for i in range(5)]
    rows += [(str(20_000_000 + i), medical(1), f"{medical(3)} {text}") for i, text in enumerate(test_texts[:20])]
    write_gzip(
        folder / "pubmed" / "made-up.tsv.gz",
        "pmid\ttitle\tabstract\n" + "".join("\t".join(row) + "\n" for row in rows),
    )
    ids = write_mesh(folder / "mesh/mesh2017-tree.tsv.gz", names)
    headings = [choose_headings(rng, ids) for _ in range(500)]
    articles = [make_article(30_000_000 + i, medical, headings[i]) for i in range(400)]
    articles.append(make_article(30_000_000, medical, headings[0], version=2))  # a newer version of the first
    articles.append('<DeleteCitation><PMID Version="1">30000001</PMID></DeleteCitation>\n')  # and one withdrawn
    write_gzip(
        folder / "pubmed-xml" / "made-up.xml.gz",
        '<?xml version="1.0" encoding="UTF-8"?>\n<PubmedArticleSet>\n' + "".join(articles) + "</PubmedArticleSet>\n",
    )
    records = [make_medline(31_000_000 + i, medical, headings[400 + i]) for i in range(100)]
    write_gzip(folder / "pubmed-xml" / "made-up.medline.gz", "\n".join(records))
    articles = {f"PMC{i + 1}.nxml": make_full_text(medical, i) for i in range(200)}
    write_tar(folder / "pmc/made-up.tar.gz", articles)
    for name, documents in (("wiki/enwiki-made-up.txt.gz", 900), ("books/made-up.txt.gz", 300)):
        texts = ["\n".join(make_text(rng, GENERAL, names, 5) for _ in range(3)) + "\n" for _ in range(documents)]
        write_gzip(folder / name, "\n".join(texts))
    for name, templates in (("ja/made-up.txt.gz", JAPANESE[:3]), ("ja/jawiki-made-up.txt.gz", JAPANESE[2:])):
        texts = ["".join(rng.choice(templates).format(rng.randint(1, 99)) for _ in range(5)) for _ in range(300)]
        write_gzip(folder / name, "\n\n".join(texts) + "\n")


def write_mesh(path: Path, names: dict) -> dict[str, list[tuple[str, str]]]:
    """Write a table of descriptors with tree numbers, as MeSH has it, and return each kind's (UI, name) pairs."""
    ids: dict[str, list[tuple[str, str]]] = {}
    lines = ['"Tree Number"\t"Desc Ui"\t"Term"']
    terms_by_kind = {"humans": ["Humans"], "industry": ["Wool Trade"]} | {
        k: names[k] for k in ("disease", "drug", "device")
    }
    for kind, terms in terms_by_kind.items():
        for i, term in enumerate(terms):
            ids.setdefault(kind, []).append((f"D{len(lines):06}", term.capitalize()))
            tree = TREES[kind] if kind == "humans" else f"{TREES[kind]}.{i:03}"
            lines.append(f'"{tree}"\t"D{len(lines):06}"\t"{term.capitalize()}"')
    write_gzip(path, "\n".join(lines) + "\n")
    return ids


def choose_headings(rng: random.Random, ids: dict) -> list[tuple[str, str, bool]]:
    """Draw the headings of one citation, (UI, name, major): half are on a human disease, some on industry."""
    kinds = rng.choice([("disease", "device", "humans"), ("disease", "drug", "humans"), ("drug",), ("industry",)])
    return [(*rng.choice(ids[kind]), i == 0) for i, kind in enumerate(kinds)]


def make_article(pmid: int, medical: Callable[[int], str], headings: list, version: int = 1) -> str:
    """Return a PubmedArticle element with labelled sections, inline markup and MeSH headings."""
    sections = "".join(
        f'<AbstractText Label="{label}">{escape(medical(2))} <i>{escape(medical(1))}</i></AbstractText>'
        for label in ("METHODS", "RESULTS", "CONCLUSIONS")
    )
    mesh = "".join(
        f'<MeshHeading><DescriptorName UI="{ui}" MajorTopicYN="{"Y" if major else "N"}">{name}</DescriptorName>'
        "</MeshHeading>"
        for ui, name, major in headings
    )
    return (
        f'<PubmedArticle><MedlineCitation><PMID Version="{version}">{pmid}</PMID><Article><Journal><JournalIssue>'
        f"<PubDate><Year>2019</Year></PubDate></JournalIssue></Journal><ArticleTitle>{escape(medical(1))}"
        f"</ArticleTitle><Abstract>{sections}</Abstract><Language>eng</Language></Article>"
        f"<MeshHeadingList>{mesh}</MeshHeadingList></MedlineCitation></PubmedArticle>\n"
    )


def make_medline(pmid: int, medical: Callable[[int], str], headings: list) -> str:
    """Return a citation in MEDLINE display format."""
    abstract = medical(8).replace(". ", ".\n      ")
    mesh = "".join(f"MH  - {'*' if major else ''}{name}\n" for _, name, major in headings)
    return f"PMID- {pmid}\nDP  - 2018 Mar\nTI  - {medical(1)}\nLA  - eng\nAB  - {abstract}\n{mesh}"


def make_full_text(medical: Callable[[int], str], number: int) -> str:
    """Return a JATS article with two sections, a table and a reference."""
    sections = "".join(f"<sec><title>Part</title><p>{escape(medical(12))}</p></sec>" for _ in range(2))
    return (
        f'<article><front><article-meta><article-id pub-id-type="pmc">{number + 1}</article-id><title-group>'
        f"<article-title>{escape(medical(1))}</article-title></title-group><abstract><p>{escape(medical(4))}</p>"
        f"</abstract></article-meta></front><body>{sections}<table-wrap><p>Numbers</p></table-wrap></body>"
        "<back><ref-list><ref><mixed-citation>A reference</mixed-citation></ref></ref-list></back></article>"
    )
