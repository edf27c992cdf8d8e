"""Relation sets from their own formats: drug interactions, genes with diseases; what ChemProt's share with them."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from pathlib import Path

from lxml import etree

from lib.benchmarks.instances import BREAKS, Marked, Mention, Relation
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import AGAIN, read_columns, read_lines, read_members, refuse_entities, split_lines

# Folders of a split list -> folders of the zip, which has the test set of another task too.
DDI = {"train_dataset": "DDICorpus/Train", "test_dataset": "DDICorpus/Test/Test for DDI Extraction task"}
DDI_FILE = re.compile(r"(train_dataset|test_dataset)(/(?:DrugBank|MedLine)/[^/\\]+\.xml)")
DDI_TYPES = ("mechanism", "effect", "advise", "int")
DDI_LABELS = ("DDI-false", *(f"DDI-{kind}" for kind in DDI_TYPES))
OFFSETS = re.compile(r"[0-9]{1,9}-[0-9]{1,9}(;[0-9]{1,9}-[0-9]{1,9})*")
KINDS = {
    "@CHEMICAL$": "CHEMICAL", "@DISEASE$": "DISEASE", "@DRUG$": "DRUG", "@GENE$": "GENE",
    "BC6ENTC": "CHEMICAL", "BC6ENTG": "GENE", "bc6entc": "CHEMICAL", "bc6entg": "GENE",
}  # fmt: skip
MARKERS = ("[E1]", "[/E1]"), ("[E2]", "[/E2]")
Splitter = Callable[[str], Iterable[str]]


@cache
def load_punkt() -> Splitter:
    """NLTK's English sentence splitter; StudyError when NLTK does not have its parameters."""
    try:
        from nltk.tokenize.punkt import PunktTokenizer  # here, as it takes two seconds and only ChemProt needs it

        return PunktTokenizer("english").tokenize
    except (ImportError, LookupError):
        raise StudyError("ChemProt needs NLTK's punkt: python -m nltk.downloader punkt_tab") from None


def leave(relation: Relation) -> Marked:
    """The original text, with spaces for line ends and tabs. Source: Gu et al. 2021, 3.3 and Table 14."""
    first, second = relation.first, relation.second
    return Marked(BREAKS.sub(" ", relation.text), (first.start, first.end), (second.start, second.end))


def frame(relation: Relation) -> Marked:
    """The original text with a start and an end marker around each mention; `first` and `second` include them.

    Of mentions that overlap, the markers stand in the order of the mentions' ends. Source: as in leave; the paper does
    not print its markers.
    """
    marks = []
    for mention, (start, end) in zip((relation.first, relation.second), MARKERS, strict=True):
        marks += [(mention.start, start, f"{start} "), (mention.end, end, f" {end}")]
    text, places = leave(relation).text, {}
    # From the right, so that what is not yet marked keeps its place; at one place the later mention's first.
    for at, name, mark in sorted(reversed(marks), key=lambda item: item[0], reverse=True):
        places = {other: place + len(mark) for other, place in places.items()} | {name: at + mark.index(name)}
        text = text[:at] + mark + text[at:]
    return Marked(text, *((places[start], places[end] + len(end)) for start, end in MARKERS))


def find_dummies(where: str, text: str, dummies: tuple[str, str], alone: tuple[str, ...]) -> tuple[Mention, Mention]:
    """The two mentions of a masked text, without ids, in text order; StudyError when it does not have both dummies.

    `alone`: dummies of which one may stand for both mentions.
    """
    found = list(any_of(*dummies, *alone).finditer(text))
    if len(found) == 1 and found[0][0] in alone:
        first, second = (Mention("", KINDS[name], *found[0].span()) for name in dummies)
    elif sorted(match[0] for match in found) == sorted(dummies):
        first, second = (Mention("", KINDS[match[0]], *match.span()) for match in found)
    else:
        raise StudyError(f"{where}: expected {dummies[0]} and {dummies[1]}, found {len(found)} dummies; {AGAIN}")
    return first, second


@cache
def any_of(*words: str) -> re.Pattern:
    return re.compile("|".join(map(re.escape, words)))


def check_label(where: str, label: str, known: Iterable[str]) -> str:
    """A label that is known; StudyError with the known ones for another."""
    if label not in known:
        raise StudyError(f"{where}: unknown label, expected one of {', '.join(known)}; {AGAIN}")
    return label


def read_ddi(corpus: Path, split_list: Path) -> list[Relation]:
    """Every drug pair of the DDI corpus in the files of a split list.

    `corpus`: the zip of XML files. `split_list`: names such as `train_dataset/DrugBank/x.xml`, separated by commas or
    line ends. Labels are `DDI-false` and the four types; a pair that is `true` without a type is false. (There is one
    in the training files, DDI-DrugBank.d236.s29.p0.) A mention in pieces reaches from its first to its last character.
    BLURB took another release, the one in zhangyijia1979/hierarchical-RNNs-model-for-DDI-extraction: that pair is
    false there, DDI-DrugBank.d266.s0.p1 and p2 have each other's labels, and the texts of eight MedLine documents
    differ by a character or two, so that mentions stand beside their offsets, which is refused here. Masked all the
    same, it gives BLURB's three files byte for byte. StudyError for a damaged archive or bad XML, a mention that is
    not at its offsets (in pieces: outside the sentence), a pair of an unknown mention, an id that comes twice.
    Source: Herrero-Zazo et al. 2013; BLURB's division (Gu et al. 2021, 2.3.3).
    """
    found: dict[str, Relation] = {}
    for where, document, sentence in ddi_sentences(corpus, split_list):
        text, drugs = sentence.get("text", ""), read_drugs(where, sentence)
        for pair in sentence.iterfind("pair"):
            id, ends = pair.get("id", ""), {pair.get("e1", ""), pair.get("e2", "")}
            true, kind = pair.get("ddi"), pair.get("type")
            if not id or id in found:
                raise StudyError(f"{where}: pair {id or len(found) + 1} has no id of its own; {AGAIN}")
            if len(ends) != 2 or not ends <= drugs.keys():
                raise StudyError(f"{where}: pair {id} names an unknown entity; {AGAIN}")
            if true not in ("true", "false") or kind not in (None, *DDI_TYPES):
                expected = f"expected ddi true or false, and the type {', '.join(DDI_TYPES)} or none"
                raise StudyError(f"{where}: pair {id}: {expected}; {AGAIN}")
            label = f"DDI-{kind}" if true == "true" and kind else "DDI-false"
            first, second = sorted((drugs[pair.get("e1")], drugs[pair.get("e2")]), key=lambda drug: drug.start)
            found[id] = Relation(id, text, first, second, label, document=document)
    if not found:
        raise StudyError(f"{show_path(split_list)}: no pair in its files; {AGAIN}")
    return list(found.values())


def read_drugs(where: str, sentence: etree._Element) -> dict[str, Mention]:
    """The mentions of a sentence by id; errors as in read_ddi."""
    text, drugs = sentence.get("text", ""), {}
    for number, entity in enumerate(sentence.iterfind("entity"), start=1):
        here = f"{where}: sentence {sentence.get('id', '')}, entity {number}"
        id, offsets = entity.get("id", ""), entity.get("charOffset", "")
        if not id or id in drugs:
            raise StudyError(f"{here}: no id of its own; {AGAIN}")
        if not OFFSETS.fullmatch(offsets):
            raise StudyError(f"{here}: expected a charOffset such as 3-7 or 3-7;9-12; {AGAIN}")
        numbers = [int(number) for number in re.findall("[0-9]+", offsets)]
        drug = Mention(id, "DRUG", numbers[0], numbers[-1] + 1)
        # The text of a mention in pieces has its white space changed in four of 47 cases.
        whole = len(numbers) > 2 or text[drug.start : drug.end] == entity.get("text")
        if numbers != sorted(numbers) or drug.end > len(text) or not whole:
            raise StudyError(f"{here}: does not stand at its offsets; {AGAIN}")
        drugs[id] = drug
    return drugs


def read_ddi_sentences(corpus: Path, split_list: Path) -> list[str]:
    """The sentences of the files of a split list, those without drugs too, but not the blank ones; as read_ddi."""
    texts = (sentence.get("text", "") for _, _, sentence in ddi_sentences(corpus, split_list))
    return [text for text in texts if text.strip()]


def ddi_sentences(corpus: Path, split_list: Path) -> Iterator[tuple[str, str, etree._Element]]:
    """The sentences of the files of a split list, each with its place and its document; errors as in read_ddi."""
    members = []
    for number, line in read_lines(split_list):
        for name in filter(None, (part.strip() for part in line.split(","))):
            if not (form := DDI_FILE.fullmatch(name)):
                raise StudyError(f"{show_path(split_list)}:{number}: expected names such as "
                                 f"train_dataset/DrugBank/x.xml; {AGAIN}")  # fmt: skip
            members.append(DDI[form[1]] + form[2])
    if not members:
        raise StudyError(f"{show_path(split_list)}: empty file; {AGAIN}")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    contents = read_members(corpus, members)
    for member in members:
        where = f"{show_path(corpus)}: {member}"
        try:
            root = etree.fromstring(contents[member], parser)
        except (etree.XMLSyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None) or 1
            raise StudyError(f"{where}:{line}: not well-formed XML; {AGAIN}") from None
        refuse_entities(where, root.getroottree())
        sentences = root.findall("sentence")
        if root.tag != "document" or not sentences:
            raise StudyError(f"{where}: not a document with sentences; {AGAIN}")
        yield from ((where, root.get("id", ""), sentence) for sentence in sentences)


def read_ddi_table(path: Path) -> list[Relation]:
    """BLURB's form of the DDI corpus, with `@DRUG$` twice or `@DRUG-DRUG$`; errors as in read_masked."""
    return read_masked(path, ("@DRUG$", "@DRUG$"), "@DRUG-DRUG$", DDI_LABELS)


def read_masked(path: Path, dummies: tuple[str, str], both: str, labels: Collection[str]) -> list[Relation]:
    """BLURB's tables: pair id, text with two dummies or one for `both` mentions, label; no header.

    StudyError for a line of another form, an unknown label, an id that comes twice. Source: BLURB's scripts.
    """
    found: dict[str, Relation] = {}
    for where, (id, text, label) in read_columns(path, 3):
        check_label(where, label, labels)
        ends = find_dummies(where, text, dummies, (both,))
        if not id or id in found:
            raise StudyError(f"{where}: no id of its own; {AGAIN}")
        found[id] = Relation(id, text, *ends, label, masked=True, document=id.rsplit(".", 2)[0])
    return list(found.values())


def read_gad(path: Path) -> list[Relation]:
    """GAD or EU-ADR in BioBERT's, BLURB's or Bio-ELECTRA's files: text with `@GENE$` and `@DISEASE$`, label 0 or 1.

    Three columns under the header `index sentence label`, or two without header, when the id is the number of the row
    from 0. Every text of every known file has each dummy once; another number is an error. Rows repeat: GAD has 5,330
    of which 5,122 are distinct. StudyError for another width, an unknown label, an index that comes twice.
    Source: Lee et al. 2020, Table 3; Gu et al. 2021, 2.3.3; Ozyurt 2020, Table 1.
    """
    return parse_gad(show_path(path), read_lines(path))


def read_gad_archive(archive: Path, member: str) -> list[Relation]:
    """One file of BioBERT's ten folds, such as `GAD/1/test.tsv`, as read_gad; StudyError for a damaged archive too."""
    where = f"{show_path(archive)}: {member}"
    return parse_gad(where, split_lines(where, read_members(archive, [member])[member]))


def parse_gad(name: str, lines: Iterable[tuple[int, str]]) -> list[Relation]:
    found: dict[str, Relation] = {}
    width = 2
    for number, line in lines:
        where, cells = f"{name}:{number}", line.split("\t")
        if number == 1 and cells == ["index", "sentence", "label"]:
            width = 3
            continue
        if len(cells) != width:
            raise StudyError(f"{where}: expected {width} columns, found {len(cells)}; {AGAIN}")
        *index, text, label = cells
        id = index[0] if index else str(number - 1)
        check_label(where, label, ("0", "1"))
        if not id or id in found:
            raise StudyError(f"{where}: no index of its own; {AGAIN}")
        found[id] = Relation(id, text, *find_dummies(where, text, ("@GENE$", "@DISEASE$"), ()), label, masked=True)
    if not found:
        raise StudyError(f"{name}: empty file; {AGAIN}")
    return list(found.values())
