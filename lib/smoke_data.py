"""Made-up data in the real formats, so that the whole study runs without any download.

An invented language of medicine: drugs and diseases have names of their own morphology, part of which only the
context gives away. The names, their sentences and every number computed from them mean nothing.
"""

import gzip
import io
import random
import tarfile
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import escape

from lib import artefacts, paths, provenance

NOTICE = "Made-up text of an invented language of medicine. No patient, drug or finding in it exists.\n"

CORPORA = [  # every file of text that is written, so that the graph is known before there is any
    "corpora/pubmed/made-up.tsv.gz", "corpora/pubmed-xml/made-up.xml.gz", "corpora/pubmed-xml/made-up.medline.gz",
    "corpora/pmc/made-up.tar.gz", "corpora/wiki/enwiki-made-up.txt.gz", "corpora/books/made-up.txt.gz",
    "corpora/ja/made-up.txt.gz", "corpora/ja/jawiki-made-up.txt.gz",
]  # fmt: skip
TREES = {"disease": "C01", "drug": "D01", "device": "E01", "humans": "B01.050.150.900.649.801.400.112.400.400",
         "industry": "J01"}  # fmt: skip

ONSETS = "b br c cl d dr f fl g gr k l m n p pl pr r s st t tr v z".split()  # noqa: SIM905
VOWELS = ["a", "e", "i", "o", "u"]
CODAS = ["", "", "n", "r", "l", "x"]
SUFFIXES = {
    "drug": ["olol", "umab", "idine", "statin", "azole"],
    "disease": ["itis", "osis", "emia", "oma", "algia"],
}

# {drug}, {disease} and {device} stand for a name; {any} for a name of any kind, so that only knowing it helps.
MEDICAL = [
    "Patients with {disease} received {drug} for {number} weeks .",
    "Treatment with {drug} reduced the severity of {disease} in {number} patients .",
    "We gave {number} mg of {drug} daily to subjects who suffered from {disease} .",
    "The risk of {disease} was higher without {drug} .",
    "A dose of {drug} was well tolerated and relieved {disease} .",
    "Symptoms of {disease} improved after {drug} was given by mouth .",
    "{drug} inhibits the enzyme and prevents {disease} .",
    "Severe {disease} was diagnosed before oral {drug} was prescribed .",
    "The {device} was calibrated by the technician before each session .",
    "Images were taken with the {device} and stored for analysis .",
]
AMBIGUOUS = [
    "The role of {any} was examined in {number} cases .",
    "We reviewed all reports of {any} from this hospital .",
    "{any} and {any} were recorded at each visit .",
    "No change was seen with regard to {any} .",
    "Data on {any} , {any} and {any} are given in the table .",
    "Interest in {any} has grown since the first report .",
]
GENERAL = [
    "The town of {place} lies on the river and has {number} houses .",
    "{place} was founded by a merchant who traded wool and salt .",
    "In the spring the people of {place} hold a market near the old bridge .",
    "The road from {place} to {place} crosses the hills .",
    "She wrote {number} letters from {place} before the winter .",
    "The doctor of the town wrote that {drug} is a medicine against {disease} .",
    "A farmer found the {device} in the river and sold it .",
]
JAPANESE = [
    "患者は{}日間の治療を受けた。",
    "発熱と咳のため{}号室に入院した。",
    "町の病院には医師が{}人いる。",
    "この町には古い橋が{}本ある。",
    "春には川のそばで市が{}回開かれる。",
]


class Lexicon:
    """Invented names of each kind; the same for the same seed."""

    def __init__(self, seed: int):
        rng = random.Random(seed)
        taken: set[str] = set()

        def invent(ending: str) -> str:
            while True:
                name = "".join(rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(2)) + rng.choice(CODAS)
                name = name.rstrip("aeiou" if ending else "") + ending
                if name not in taken:
                    taken.add(name)
                    return name

        # Every second drug and disease has a telling suffix; the others, and all devices, look alike.
        self.names = {
            kind: [invent(rng.choice(SUFFIXES[kind]) if i % 2 else "") for i in range(60)]
            for kind in ("drug", "disease")
        }
        self.names["device"] = [invent("") for _ in range(60)]
        self.names["place"] = [invent("").capitalize() for _ in range(60)]


def make_sentence(rng: random.Random, templates: list[str], names: dict[str, list[str]]) -> list[tuple[str, str]]:
    """A sentence as (word, kind) pairs; kind is empty for words that are no name."""
    words = []
    for word in rng.choice(templates).split():
        kind = word.strip("{}")
        if word == "{number}":
            words.append((str(rng.randint(2, 99)), ""))
        elif word.startswith("{"):
            kind = rng.choice(["drug", "disease", "device"]) if kind == "any" else kind
            name = rng.choice(names[kind])
            if kind == "disease" and rng.random() < 0.2:
                words.append((rng.choice(["chronic", "acute"]), kind))
            words.append((name, kind))
        else:
            words.append((word, ""))
    return words


def make_examples(n: int, seed: int = 20) -> list[str]:
    """Made-up sentences to show in place of real ones, drug names in brackets."""
    rng, names = random.Random(seed), Lexicon(seed).names
    sentences = [make_sentence(rng, MEDICAL, names) for _ in range(n)]
    return [" ".join(f"[{word}]" if kind == "drug" else word for word, kind in s) for s in sentences]


def make_text(rng: random.Random, templates: list[str], names: dict, sentences: int) -> str:
    return (
        " ".join(" ".join(word for word, _ in make_sentence(rng, templates, names)) for _ in range(sentences))
        .replace(" .", ".")
        .replace(" ,", ",")
    )


def write(seed: int = 20) -> Path:
    """Write the whole data folder of the smoke scale; the same bytes for the same seed. Returns the folder."""
    rng = random.Random(seed)
    names = Lexicon(seed).names
    folder = paths.data("smoke")
    with artefacts.whole_folder(folder) as new:
        (new / "README.md").write_text(NOTICE)
        test_texts = []
        # Fine-tuning sees a third of the names, the test set mostly others: what pretraining knows must help.
        seen = {kind: rng.sample(all_names, len(all_names) // 3) for kind, all_names in names.items()}
        for key, kind, entity in (("bc5cdr-chem", "drug", "Chemical"), ("ncbi-disease", "disease", "Disease")):
            for split, size, known in (("train", 150, seen), ("dev", 100, names), ("test", 200, names)):
                # The opening makes each sentence unique, so that no pretraining text holds it by chance.
                sentences = [
                    [(word, "") for word in f"In series {split} {number} ,".split()]
                    + make_sentence(rng, MEDICAL + 2 * AMBIGUOUS, known)
                    for number in range(size)
                ]
                write_conll(new / "ner" / key / f"{split}.tsv", sentences, kind, entity)
                if split == "test":
                    test_texts += [" ".join(word for word, _ in s) for s in sentences if len(s) > 12]
        write_corpora(new / "corpora", rng, names, test_texts)
        artefacts.write_json(
            new / "meta.json",
            {"made up": NOTICE.strip(), "seed": seed, "code": provenance.code_fingerprint("smoke_data")},
        )
    return folder


def write_conll(path: Path, sentences: list, kind: str, entity: str) -> None:
    """Tag the names of one kind, BIO; two words of one name in a row are one entity."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    for sentence in sentences:
        before = ""
        for word, found in sentence:
            tag = "O" if found != kind else f"I-{entity}" if before == kind else f"B-{entity}"
            before = found
            lines.append(f"{word}\t{tag}")
        lines.append("")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_corpora(folder: Path, rng: random.Random, names: dict, test_texts: list[str]) -> None:
    """Text in every format that is read, with the faults that real files have."""

    def medical(n: int) -> str:
        return make_text(rng, MEDICAL, names, n)

    rows = [(str(9_999_000 + i), medical(1), medical(16 if i % 2 else 8)) for i in range(1500)]
    rows += [(rows[i][0], "An older version", medical(8)) for i in range(5)]  # a PMID that came before
    rows += [("", rows[i][1], rows[i][2]) for i in range(5, 10)]  # the same text again, without PMID
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
    write_articles(folder / "pmc/made-up.tar.gz", [make_full_text(medical, i) for i in range(60)])
    for name, documents in (("wiki/enwiki-made-up.txt.gz", 900), ("books/made-up.txt.gz", 300)):
        texts = ["\n".join(make_text(rng, GENERAL, names, 5) for _ in range(3)) + "\n" for _ in range(documents)]
        write_gzip(folder / name, "\n".join(texts))
    for name, templates in (("ja/made-up.txt.gz", JAPANESE[:3]), ("ja/jawiki-made-up.txt.gz", JAPANESE[2:])):
        texts = ["".join(rng.choice(templates).format(rng.randint(1, 99)) for _ in range(5)) for _ in range(120)]
        write_gzip(folder / name, "\n\n".join(texts) + "\n")


def write_mesh(path: Path, names: dict) -> dict[str, list[tuple[str, str]]]:
    """A table of descriptors with tree numbers, in the form of the real one; the (UI, name) pairs of each kind."""
    ids: dict[str, list[tuple[str, str]]] = {}
    lines = ['"Tree Number"\t"Desc Ui"\t"Term"']
    known = {"humans": ["Humans"], "industry": ["Wool Trade"]} | {k: names[k] for k in ("disease", "drug", "device")}
    for kind, terms in known.items():
        for i, term in enumerate(terms):
            ids.setdefault(kind, []).append((f"D{len(lines):06}", term.capitalize()))
            tree = TREES[kind] if kind == "humans" else f"{TREES[kind]}.{i:03}"
            lines.append(f'"{tree}"\t"D{len(lines):06}"\t"{term.capitalize()}"')
    write_gzip(path, "\n".join(lines) + "\n")
    return ids


def choose_headings(rng: random.Random, ids: dict) -> list[tuple[str, str, bool]]:
    """Headings of one citation, (UI, name, major): half are on a disease of humans, some on industry."""
    kinds = rng.choice([("disease", "device", "humans"), ("disease", "drug", "humans"), ("drug",), ("industry",)])
    return [(*rng.choice(ids[kind]), i == 0) for i, kind in enumerate(kinds)]


def make_article(pmid: int, medical: Callable[[int], str], headings: list, version: int = 1) -> str:
    """A PubmedArticle element with labelled sections, inline markup and MeSH headings."""
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
    """A citation in MEDLINE display format."""
    abstract = medical(8).replace(". ", ".\n      ")
    mesh = "".join(f"MH  - {'*' if major else ''}{name}\n" for _, name, major in headings)
    return f"PMID- {pmid}\nDP  - 2018 Mar\nTI  - {medical(1)}\nLA  - eng\nAB  - {abstract}\n{mesh}"


def make_full_text(medical: Callable[[int], str], number: int) -> str:
    """A JATS article with two sections, a table and a reference."""
    sections = "".join(f"<sec><title>Part</title><p>{escape(medical(12))}</p></sec>" for _ in range(2))
    return (
        f'<article><front><article-meta><article-id pub-id-type="pmc">{number + 1}</article-id><title-group>'
        f"<article-title>{escape(medical(1))}</article-title></title-group><abstract><p>{escape(medical(4))}</p>"
        f"</abstract></article-meta></front><body>{sections}<table-wrap><p>Numbers</p></table-wrap></body>"
        "<back><ref-list><ref><mixed-citation>A reference</mixed-citation></ref></ref-list></back></article>"
    )


def write_articles(path: Path, articles: list[str]) -> None:
    """A tar archive of full texts, the same bytes each time."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        for number, article in enumerate(articles):
            member = tarfile.TarInfo(f"PMC{number + 1}.nxml")
            member.size = len(article.encode())
            archive.addfile(member, io.BytesIO(article.encode()))
    write_gzip(path, tar.getvalue())


def write_gzip(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


if __name__ == "__main__":
    print(f"made-up data written to {paths.show(write())}")
