"""Abstracts with mentions at offsets, from PubTator files: BC5CDR and NCBI-disease."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from lib.benchmarks import standoff
from lib.benchmarks.instances import Mention, Sentence
from lib.benchmarks.standoff import OFFSET
from lib.benchmarks.tabular import check_label
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import ends_with_line, read_lines

# The types of BC5CDR, and the four of NCBI-disease, which are all diseases (Dogan et al. 2014).
KINDS = {"Chemical": "CHEMICAL"} | dict.fromkeys(
    ("Disease", "SpecificDisease", "DiseaseClass", "Modifier", "CompositeMention"), "DISEASE"
)
HEAD = re.compile(r"([^|\t]+)\|([ta])\|(.*)", re.DOTALL)
BOTH_HEADS = re.compile(r"([^|\t\n]+)\|t\|(.*)\n\1\|a\|(.*)")  # title and abstract of one PMID


class Abstract(NamedTuple):
    """A title and an abstract, joined by a line end, and the mentions in them.

    `text`: in composed letters (NFC), whatever the file has. `mentions`: offsets are in characters of `text`, kinds are
    CHEMICAL and DISEASE, ids are as in the file (a MeSH or OMIM concept, several of them, or -1).
    """

    pmid: str
    text: str
    mentions: list[Mention]


def read_abstracts(path: Path, left_out: Counter | None = None) -> Iterator[Abstract]:
    """Yield the abstracts of a PubTator file in its order, including repeated ones.

    A record is `PMID|t|title`, `PMID|a|abstract`, lines `PMID TAB start TAB end TAB text TAB type TAB concept`, with
    the parts' names of a joined mention in a seventh column, and lines `PMID TAB CID TAB chemical TAB disease`; a blank
    line ends it. Offsets count the characters of the title, one character between, and the abstract. Raises StudyError
    with the line if a line has another form, a text is not at its offsets, a type is not in KINDS, a mention is
    repeated, the last line is cut off, or the file is empty.

    With `left_out`, any type is accepted and kept as it is, a mention needs no concept, and relations of any form are
    counted there.
    """
    empty, record = True, []
    for number, line in read_lines(path):
        if line.strip():
            record.append((f"{show_path(path)}:{number}", line))
        elif record:
            yield parse_abstract(record, left_out)
            empty, record = False, []
    if record:
        if not ends_with_line(path):
            raise StudyError(f"{record[-1][0]}: the last line has no end: was the file cut off? If not, end it")
        yield parse_abstract(record, left_out)
    elif empty:
        raise StudyError(f"{show_path(path)}: no abstracts in the file")


def parse_abstract(record: list[tuple[str, str]], left_out: Counter | None) -> Abstract:
    """Parse a record, given as its lines with their `file:line`. Raises StudyError as in read_abstracts."""
    head = BOTH_HEADS.fullmatch("\n".join(line for _, line in record[:2]))
    if not head:
        raise StudyError(f"{record[0][0]}: expected 'PMID|t|title' and 'PMID|a|abstract' of one PMID")
    pmid, title, abstract = head.groups()
    text, mentions = f"{title}\n{abstract}", []
    lenient = left_out is not None  # a user's file
    for location, line in record[2:]:
        cells = line.split("\t")
        if cells[0] != pmid:
            raise StudyError(f"{location}: expected a line of PMID {pmid}")
        if lenient and len(cells) > 2 and not OFFSET.fullmatch(cells[1]):
            left_out["relations"] += 1
            continue
        if len(cells) == 4 and cells[1] == "CID":  # chemical-induced disease relations: another task
            continue
        if lenient and len(cells) == 5:
            cells.append("")
        if len(cells) not in (6, 7):
            raise StudyError(f"{location}: expected a mention of 6 or 7 columns or a CID relation of 4")
        if not lenient:
            cells[4] = check_label(location, cells[4], KINDS)
        mention = parse_mention(location, cells, text)
        if mention in mentions:
            raise StudyError(f"{location}: the mention at {mention.start} to {mention.end} is there twice")
        mentions.append(mention)
    return Abstract(pmid, compose_letters(text), mentions)


def parse_mention(place: str, cells: list[str], text: str) -> Mention:
    _, first, last, words, kind, concept = cells[:6]
    start, end = standoff.find_span(place, text, first, last, words)
    before = compose_letters(text[:start])
    until = compose_letters(text[:end])
    return Mention(concept.strip(), kind, len(before), len(until))


def compose_letters(text: str) -> str:
    """Return a text with each letter and its marks as one character if possible (NFC)."""
    return unicodedata.normalize("NFC", text)


def read_sentences(path: Path, kind: str, left_out: Counter | None = None) -> list[Sentence]:
    """Read sentences tagged with the mentions of one kind, `Disease` or `Chemical`.

    A repeated record is left out: NCBI-disease's training file has PMID 8528200 twice, both the same. Mentions that
    overlap a longer one have no tag. Raises StudyError as in read_abstracts, and if two records of one PMID differ.
    """
    sentences = []
    for pmid, text, mentions in keep_first(path, read_abstracts(path), left_out):
        kind_mentions = [mention._replace(kind=kind) for mention in mentions if mention.kind == kind.upper()]
        sentences += standoff.tag_text(text, kind_mentions, pmid, left_out=left_out)
    return sentences


def read_all_kinds(path: Path, left_out: Counter | None = None) -> list[Sentence]:
    """Read sentences tagged with mentions of every type, from a user's file.

    Errors and `left_out` are as in read_sentences.
    """
    left_out, sentences = Counter() if left_out is None else left_out, []
    for pmid, text, mentions in keep_first(path, read_abstracts(path, left_out), left_out):
        sentences += standoff.tag_text(text, mentions, pmid, left_out=left_out)
    return sentences


def keep_first(path: Path, abstracts: Iterable[Abstract], left_out: Counter | None) -> list[Abstract]:
    """Return each abstract once. Raises StudyError if two records of one PMID differ."""
    by_pmid: dict[str, Abstract] = {}
    for abstract in abstracts:
        if by_pmid.setdefault(abstract.pmid, abstract) != abstract:
            raise StudyError(f"{show_path(path)}: two different records of PMID {abstract.pmid}")
        if left_out is not None:
            left_out["records that come again"] += by_pmid[abstract.pmid] is not abstract
    return [*by_pmid.values()]
