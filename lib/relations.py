"""Relation sets from their original files: every pair of mentions in one sentence, dummies in the mentions' places."""

import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from lxml import etree

from lib import paths
from lib.errors import StudyError, unknown
from lib.records import read_lines, refuse_entities

CHEMPROT = {
    "train": "chemprot_training/chemprot_training_{}.tsv",
    "dev": "chemprot_development/chemprot_development_{}.tsv",
    "test": "chemprot_test_gs/chemprot_test_{}_gs.tsv",
}
# Folders of a split list -> folders of the zip, which has the test set of another task too.
DDI = {"train_dataset": "DDICorpus/Train", "test_dataset": "DDICorpus/Test/Test for DDI Extraction task"}
AGAIN = "fetch the file again"
Splitter = Callable[[str], Iterable[str]]


class Pair(NamedTuple):
    id: str
    text: str  # the sentence, with dummies in the places of the two mentions


class Mention(NamedTuple):
    id: str
    kind: str  # CHEMICAL, GENE or DRUG
    start: int
    end: int  # one past the last character


def find_file(path: Path) -> Path:
    """The path of a file or of its gzip form; StudyError when neither is there."""
    form = path if path.is_file() else path.with_name(f"{path.name}.gz")
    if not form.is_file():
        raise StudyError(f"no file {paths.show(path)}; set STUDY_DATA to a folder that holds it")
    return form


def read_columns(path: Path, width: int) -> Iterator[tuple[str, list[str]]]:
    """`file:line` and the cells of every line of a tab-separated file; StudyError for a line of another width."""
    path = find_file(path)
    for number, line in read_lines(path):
        where, cells = f"{paths.show(path)}:{number}", line.split("\t")
        if len(cells) != width:
            raise StudyError(f"{where}: expected {width} columns, found {len(cells)}; {AGAIN}")
        yield where, cells


@cache
def load_punkt() -> Splitter:
    """NLTK's English sentence splitter; StudyError when NLTK does not have its parameters."""
    try:
        from nltk.tokenize.punkt import PunktTokenizer  # here, as it takes two seconds and only ChemProt needs it

        return PunktTokenizer("english").tokenize
    except (ImportError, LookupError):
        raise StudyError("ChemProt needs NLTK's punkt: python -m nltk.downloader punkt_tab") from None


def mask(text: str, one: Mention, other: Mention, both: str) -> str:
    """A sentence with `@KIND$` for each of two mentions, or `both` for two that overlap."""
    first, second = sorted((one, other), key=lambda mention: mention.start)
    middle = both if first.end > second.start else f"@{first.kind}${text[first.end : second.start]}@{second.kind}$"
    return re.sub(r"[\n\t\r]", " ", text[: first.start] + middle + text[max(first.end, second.end) :])


def read_chemprot(folder: Path, split: str, split_sentences: Splitter | None = None) -> list[Pair]:
    """Every chemical x gene pair of one sentence of ChemProt, as BLURB makes them.

    A text is title TAB abstract, cut into sentences and then at the tab; a mention across a cut is in no pair. Ids are
    `pmid.Tx.Ty` in text order, the gene first where both begin at one place. The splitter decides how many pairs there
    are: NLTK's punkt, the default, makes BLURB's. StudyError for a file that is not there, a malformed line, an entity
    that is not at its offsets, a splitter that changes the text. Source: Gu et al. 2021; BLURB's development split.
    """
    if split not in CHEMPROT:
        raise unknown("split", split, CHEMPROT)
    split_sentences = split_sentences or load_punkt()
    rows = read_columns(folder / CHEMPROT[split].format("abstracts"), 3)
    texts = {pmid: f"{title}\t{abstract}" for _, (pmid, title, abstract) in rows}
    mentions: dict[str, list[Mention]] = {pmid: [] for pmid in texts}
    for where, (pmid, id, kind, start, end, words) in read_columns(folder / CHEMPROT[split].format("entities"), 6):
        if kind not in ("CHEMICAL", "GENE-Y", "GENE-N") or not (start.isdecimal() and end.isdecimal()):
            raise StudyError(f"{where}: expected CHEMICAL, GENE-Y or GENE-N and two offsets; {AGAIN}")
        if not words or texts.get(pmid, "")[int(start) : int(end)] != words:
            raise StudyError(f"{where}: document {pmid} has no entity {id} at {start} to {end}; {AGAIN}")
        mentions[pmid].append(Mention(id, kind.split("-")[0], int(start), int(end)))
    return [pair for pmid in texts for pair in chemprot_pairs(pmid, texts[pmid], mentions[pmid], split_sentences)]


def chemprot_pairs(pmid: str, text: str, mentions: list[Mention], split_sentences: Splitter) -> Iterator[Pair]:
    end = 0
    for sentence in (part for found in split_sentences(text) for part in found.split("\t")):
        start = text.find(sentence, end)
        if start < 0:
            raise StudyError(f"ChemProt document {pmid}: the splitter changed a sentence; use one that only cuts")
        end = start + len(sentence)
        inside = [Mention(id, kind, a - start, z - start) for id, kind, a, z in mentions if start <= a and z <= end]
        for chemical in (m for m in inside if m.kind == "CHEMICAL"):
            for gene in (m for m in inside if m.kind == "GENE"):
                first, second = (chemical, gene) if chemical.start < gene.start else (gene, chemical)
                yield Pair(f"{pmid}.{first.id}.{second.id}", mask(sentence, first, second, "@CHEM-GENE$"))


def read_ddi(corpus: Path, split_list: Path) -> list[Pair]:
    """Every drug pair of the DDI corpus in the files of a split list, as BLURB makes them.

    `corpus`: the zip of XML files. `split_list`: names such as `train_dataset/DrugBank/x.xml`, separated by commas or
    line ends. A mention in pieces reaches from its first to its last character. StudyError for a file that is not
    there, bad XML, an offset outside the sentence, a pair of an unknown entity. Source: as for read_chemprot.
    """
    pairs = []
    for where, sentence in ddi_sentences(corpus, split_list):
        text, drugs = sentence.get("text", ""), {}
        for entity in sentence.iterfind("entity"):
            offsets = [int(number) for number in re.findall(r"\d+", entity.get("charOffset", ""))] or [0, -1]
            drug = Mention(entity.get("id"), "DRUG", offsets[0], offsets[-1] + 1)
            if not drug.start < drug.end <= len(text):
                raise StudyError(f"{where}: entity {drug.id} lies outside its sentence; {AGAIN}")
            drugs[drug.id] = drug
        for pair in sentence.iterfind("pair"):
            if not {pair.get("e1"), pair.get("e2")} <= drugs.keys():
                raise StudyError(f"{where}: pair {pair.get('id')} names an unknown entity; {AGAIN}")
            ends = drugs[pair.get("e1")], drugs[pair.get("e2")]
            pairs.append(Pair(pair.get("id"), mask(text, *ends, "@DRUG-DRUG$")))
    return pairs


def ddi_sentences(corpus: Path, split_list: Path) -> Iterator[tuple[str, etree._Element]]:
    """The sentences of the files of a split list, each with the place that a message names; errors as in read_ddi."""
    names = [name.strip() for _, line in read_lines(find_file(split_list)) for name in line.split(",")]
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    where = paths.show(corpus)
    try:
        with zipfile.ZipFile(find_file(corpus)) as files:
            for name in filter(None, names):
                where = f"{paths.show(corpus)}: {name}"
                top, _, rest = name.partition("/")
                root = etree.fromstring(files.read(f"{DDI.get(top, top)}/{rest}"), parser)
                refuse_entities(where, root.getroottree())
                yield from ((where, sentence) for sentence in root.iterfind("sentence"))
    except (KeyError, zipfile.BadZipFile, etree.XMLSyntaxError) as error:
        raise StudyError(f"{where}: {error.args[0]}; {AGAIN}") from None
