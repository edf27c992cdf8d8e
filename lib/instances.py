"""The texts that BLURB's models read, one string an instance, and the natural texts of the test sets."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lib import datasets, paths, relations
from lib.errors import StudyError, unknown
from lib.records import read_lines

DOCUMENT = "-DOCSTART-"
# How many blocks end at a word of a tagged file; an empty string is a blank line. Unlike in lib/conll.py, empty blocks
# count as instances: with its marks and blank lines, JNLPBA has the mean length that BLURB prints only so.
BREAKS = {"": 1, DOCUMENT: 1}
CUT = re.compile(r"@[A-Z-]+\$|\n")  # a dummy, or what joins the units of one row


@dataclass(frozen=True)
class Source:
    """Files below the data folder, which may have .gz after the name, and what makes strings of their paths."""

    files: tuple[str, ...]
    read: Callable[..., list[str]]
    punkt: bool = False  # whether it needs NLTK's sentence splitter


@dataclass(frozen=True)
class InstanceSet:
    """A set of BLURB: its title, its row in Gu et al.'s Table 8, and where each split comes from."""

    title: str
    row: str
    sources: dict[str, Source]


def read_blocks(path: Path, breaks: dict[str, int] = BREAKS) -> list[str]:
    """Blocks of a tagged file, empty ones too, their words joined by spaces; StudyError for a malformed line."""
    blocks, block = [], []
    for number, line in read_lines(path):
        word, tag, _ = line.partition("\t" if "\t" in line else " ")  # EBM-NLP has spaces
        if not line.strip() or line.startswith(DOCUMENT):
            word = DOCUMENT if line.strip() else ""
        elif word and tag:
            block.append(word)
        else:
            raise StudyError(f"{paths.show(path)}:{number}: expected a word and its tag; fetch the file again")
        for _ in range(breaks.get(word, 0)):
            blocks.append(" ".join(block))
            block = []
    return [*blocks, " ".join(block)] if block else blocks


def read_table(path: Path, columns: str, take: str, header: bool = False, glue: str = " ") -> list[str]:
    """Some of the named columns of a tab-separated file, glued; StudyError for another header or number of columns."""
    names = columns.split()
    rows = relations.read_columns(path, len(names))
    if header and next(rows, ("", []))[1] != names:
        raise StudyError(f"{paths.show(path)}:1: expected the header {', '.join(names)}; fetch the file again")
    return [glue.join(cells[names.index(name)] for name in take.split()) for _, cells in rows]


def read_json_lines(path: Path, take: str) -> list[str]:
    """Fields of a JSON object a line, joined by a space; StudyError with the line when it is not one that has them."""
    texts = []
    for number, line in read_lines(path):
        try:
            record = json.loads(line)
            texts.append(" ".join(record[name] for name in take.split()))
        except (ValueError, KeyError, TypeError):
            raise StudyError(f"{paths.show(path)}:{number}: expected JSON with {take}; fetch the file again") from None
    return texts


# BLURB rewrites EBM-NLP first: a sentence ends only after a ".", and a document mark has a blank line after it.
PICO = partial(read_blocks, breaks={".": 1, DOCUMENT: 2})
GAD = partial(read_table, columns="index sentence label", take="sentence", header=True)
HOC = partial(read_table, columns="labels sentence index", take="sentence", header=True)
BIOSSES = partial(read_table, columns="pair_id sent1 sent2 score", take="sent1 sent2", header=True)
BIOASQ = partial(read_table, columns="id question snippets label", take="question snippets")
PUBMEDQA = partial(read_json_lines, take="sentence1 sentence2")
DDI_PAIRS = partial(read_table, columns="id sentence label", take="sentence")
ABSTRACTS = partial(read_table, columns="pmid title abstract", take="title abstract", glue="\n")


def by_split(folder: str, read: Callable[[Path], list[str]] = read_blocks, form: str = "tsv") -> dict[str, Source]:
    """A source for each split of a set whose files are named for them."""
    return {split: Source((f"{folder}/{split}.{form}",), read) for split in datasets.SPLITS}


def chemprot(split: str) -> Source:
    files = tuple(f"re/chemprot/{relations.CHEMPROT[split].format(what)}" for what in ("abstracts", "entities"))
    return Source(files, lambda path, _: [p.text for p in relations.read_chemprot(path.parents[1], split)], punkt=True)


def ddi(split: str) -> Source:
    files = ("re/ddi/DDICorpus-2013.zip", f"re/ddi/splits/{split}_files.tsv")
    return Source(files, lambda *files: [pair.text for pair in relations.read_ddi(*files)])


SETS = {
    "bc5cdr-chem": InstanceSet("BC5CDR, chemical", "BC5-chem", by_split("ner/bc5cdr-chem")),
    "bc5cdr-disease": InstanceSet("BC5CDR, disease", "BC5-disease", by_split("ner/bc5cdr-disease")),
    "ncbi-disease": InstanceSet("NCBI-disease", "NCBI-disease", by_split("ner/ncbi-disease")),
    "bc2gm": InstanceSet("BC2GM", "BC2GM", by_split("ner/bc2gm")),
    "jnlpba": InstanceSet("JNLPBA", "JNLPBA", by_split("ner/jnlpba")),
    "ebm-pico": InstanceSet("EBM-NLP", "EBM PICO", by_split("ner/ebm-nlp", PICO, "txt")),
    "chemprot": InstanceSet("ChemProt", "ChemProt", {split: chemprot(split) for split in datasets.SPLITS}),
    # BLURB's own files where they are public; the corpus gives the same pairs, but for two texts of another release.
    "ddi": InstanceSet("DDI 2013", "DDI", by_split("re/ddi/blurb", DDI_PAIRS) | {"train": ddi("train")}),
    "gad": InstanceSet("GAD", "GAD", by_split("re/gad/blurb", GAD)),
    "biosses": InstanceSet("BIOSSES", "BIOSSES", by_split("sts/biosses/blurb", BIOSSES)),
    "hoc": InstanceSet("Hallmarks of Cancer, sentences", "HoC", by_split("doccls/hoc/blurb", HOC)),
    "pubmedqa": InstanceSet("PubMedQA", "PubMedQA", by_split("qa/pubmedqa/blurb", PUBMEDQA, "jsonl")),
    "bioasq": InstanceSet("BioASQ 7b, yes/no", "BioASQ", by_split("qa/bioasq-7b-yesno-blurb", BIOASQ)),
}
TAGGED = {key: row.folder for key, row in datasets.DATASETS.items() if row.family == "tagging"}
# Texts to keep the documents of test sets out of pretraining. Of two sources of a set, the later counts if at hand.
TEST = [
    *((key, Source((f"{folder}/test.tsv",), read_blocks)) for key, folder in TAGGED.items()),
    ("jnlpba", SETS["jnlpba"].sources["test"]),
    ("ebm-pico", Source(("ner/ebm-nlp/test.txt",), read_blocks)),
    ("chemprot", Source(chemprot("test").files[:1], ABSTRACTS)),
    ("ddi", SETS["ddi"].sources["test"]),
    ("ddi", Source(ddi("test").files, lambda *files: [s.get("text", "") for _, s in relations.ddi_sentences(*files)])),
    ("gad", SETS["gad"].sources["test"]),
    ("biosses", Source(SETS["biosses"].sources["test"].files, partial(BIOSSES, glue="\n"))),
    ("hoc", SETS["hoc"].sources["test"]),
    ("pubmedqa", Source(SETS["pubmedqa"].sources["test"].files, partial(PUBMEDQA, take="sentence2"))),
    ("bioasq", Source(SETS["bioasq"].sources["test"].files, partial(BIOASQ, take="snippets"))),
]


def find(source: Source, scale: str) -> list[Path]:
    """The paths of a source's files; StudyError when one of them, or the sentence splitter, is not at hand."""
    found = [relations.find_file(paths.data(scale) / file) for file in source.files]
    if source.punkt:
        relations.load_punkt()
    return found


def missing(source: Source, scale: str) -> str:
    try:
        find(source, scale)
    except StudyError as error:
        return str(error)
    return ""


def read(source: Source, scale: str) -> list[str]:
    found = source.read(*find(source, scale))
    if not any(found):
        raise StudyError(f"{source.files[0]}: no text in the file; fetch it again")
    return found


def reasons(key: str, scale: str) -> dict[str, str]:
    """What keeps each split of a set from being read; StudyError for an unknown set."""
    if key not in SETS:
        raise unknown("set of instances", key, SETS)
    return {split: missing(source, scale) for split, source in SETS[key].sources.items()}


def splits(key: str, scale: str) -> list[str]:
    """The splits of a set that can be read."""
    return [split for split, reason in reasons(key, scale).items() if not reason]


def why_not(key: str, scale: str) -> str:
    """Why some split of a set cannot be read, or an empty string when all can."""
    found = {split: reason for split, reason in reasons(key, scale).items() if reason}
    reason = next(iter(found.values()), "")
    return f"{' and '.join(found)} split not at hand: {reason}" if len(found) in (1, 2) else reason


def texts(key: str, split: str, scale: str) -> list[str]:
    """The instances of one split, in order; StudyError when it is unknown or cannot be read."""
    if split not in (known := reasons(key, scale)):
        raise unknown("split", split, known)
    return read(SETS[key].sources[split], scale)


def tests_at_hand(scale: str) -> dict[str, Source]:
    return {key: source for key, source in TEST if not missing(source, scale)}


def test_files(scale: str) -> list[Path]:
    """The files that test_texts reads, for its fingerprint."""
    return [path for source in tests_at_hand(scale).values() for path in find(source, scale)]


def files(scale: str) -> list[Path]:
    """Every file of SETS that is at hand."""
    named = {file for known in SETS.values() for source in known.sources.values() for file in source.files}
    found = (paths.data(scale) / f"{name}{end}" for name in sorted(named) for end in ("", ".gz"))
    return [path for path in found if path.is_file()]


def test_texts(scale: str) -> dict[str, list[str]]:
    """Every test set at hand in sentences, titles, abstracts and snippets, cut into fragments at dummies (@GENE$)."""
    return {
        key: [part.strip() for text in read(source, scale) for part in CUT.split(text) if part.strip()]
        for key, source in tests_at_hand(scale).items()
    }
