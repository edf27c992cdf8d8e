"""Participants, interventions and outcomes of trials' abstracts, from EBM-NLP's own release.

Source: Nye et al. 2018; the README of the release. Gu et al. 2021 (section 2.3.2) use it with its overlaps.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from itertools import groupby
from pathlib import Path

from lib.benchmarks.instances import Sentence
from lib.errors import StudyError, unknown
from lib.places import show_path
from lib.reading import AGAIN, find_file, read_lines

ELEMENTS = {"INT": "interventions", "OUT": "outcomes", "PAR": "participants"}  # in the order of a joined tag
FOLDERS = {"train": "train", "dev": "train", "test": "test/gold"}
FILE = re.compile(r"([0-9]+)[._]AGGREGATED\.ann(?:\.gz)?")  # a dot in release 2.00, a low line in 1.00
BREAKS = re.compile(r"[ \t\r]+")  # a word may hold other kinds of space


def read(folder: Path, split: str, dev: Collection[str] | None = None) -> list[Sentence]:
    """Sentences of `train`, `dev` or `test` of a release's folder, with the tag of each word I-INT, I-OUT, I-PAR or O.

    A word of several elements has them joined in that order, `I-INT|I-PAR`. A sentence ends only after a word ".", and
    at the end of an abstract. Words are those of `documents/PMID.tokens`; their labels, one a word, 0 or not, those
    of `annotations/aggregated/starting_spans/ELEMENT/{train,test/gold}/PMID.AGGREGATED.ann`; between words and between
    labels are line ends, spaces or commas (labels alone). `dev`: PMIDs of the training set that are the development
    set, by default those of `dev.txt` in the folder, one a line, and none where it is not there: the release has none,
    and its scripts draw a fifth of the training set anew in each run. An abstract that lacks the labels of an element
    is not read, nor a training one that is in the test set: left_out names them. StudyError for a missing or empty
    file, other labels, more or fewer labels than words, a PMID of `dev` that is no training abstract.
    """
    found = find_documents(folder, split)
    if dev is None:
        own = folder / "dev.txt"
        dev = [line.strip() for _, line in read_lines(own) if line.strip()] if own.is_file() else ()
    wanted = set(found["INT"]) - set(left_out(folder, split))
    if split != "test":
        if astray := sorted(set(dev) - wanted):
            raise StudyError(f"{show_path(folder)}: PMID {astray[0]} of dev is no training abstract; check the list")
        wanted = set(dev) if split == "dev" else wanted - set(dev)
    if not wanted:
        raise StudyError(
            f"{show_path(folder)}: no abstracts in {split}; EBM-NLP has no dev of its own, give its PMIDs"
        )
    return [
        sentence
        for pmid in sorted(wanted, key=int)
        for sentence in read_document(folder, pmid, {short: files[pmid] for short, files in found.items()})
    ]


def left_out(folder: Path, split: str) -> list[str]:
    """PMIDs with the labels of some element but not of all, and training ones in the test set; errors as in read."""
    found = find_documents(folder, split)
    every = set().union(*found.values())
    lacking = every - set.intersection(*(set(files) for files in found.values()))
    test = set() if split == "test" else set().union(*find_documents(folder, "test").values())
    return sorted(lacking | (every & test), key=int)


def find_documents(folder: Path, split: str) -> dict[str, dict[str, Path]]:
    """The files of labels of a split, by element and PMID; StudyError for another split, or an element without any."""
    if split not in FOLDERS:
        raise unknown("split", split, FOLDERS)
    documents = {}
    for short, name in ELEMENTS.items():
        place = folder / "annotations/aggregated/starting_spans" / name / FOLDERS[split]
        files = [(FILE.fullmatch(path.name), path) for path in sorted(place.glob("*"))]
        documents[short] = {match[1]: path for match, path in files if match}
        if not documents[short]:
            raise StudyError(f"no labels in {show_path(place)}; set STUDY_DATA to a folder that holds EBM-NLP")
        if len(documents[short]) != sum(match is not None for match, _ in files):
            raise StudyError(f"{show_path(place)}: two files of one PMID; leave one of them out")
    return documents


def read_document(folder: Path, pmid: str, labels: dict[str, Path]) -> list[Sentence]:
    """The sentences of an abstract; errors as in read."""
    words = read_cells(find_file(folder / f"documents/{pmid}.tokens"), BREAKS)
    marked = {short: read_labels(path, len(words)) for short, path in labels.items()}
    sentences, start = [], 0
    for number, word in enumerate(words, start=1):
        if word == "." or number == len(words):
            tags = [
                "|".join(f"I-{short}" for short in ELEMENTS if marked[short][at]) or "O" for at in range(start, number)
            ]
            sentences.append(Sentence(words[start:number], tags, pmid))
            start = number
    return sentences


def read_labels(path: Path, expected: int) -> list[bool]:
    labels = read_cells(path, re.compile(r"[ \t\r,]+"))
    if not all(re.fullmatch(r"[0-9]", label) for label in labels):
        raise StudyError(f"{show_path(path)}: expected labels 0 to 9; {AGAIN}")
    if len(labels) != expected:
        raise StudyError(f"{show_path(path)}: {len(labels)} labels for {expected} words; {AGAIN}")
    return [label != "0" for label in labels]


def read_cells(path: Path, breaks: re.Pattern) -> list[str]:
    """What stands between breaks and line ends; StudyError for an empty file."""
    cells = [cell for _, line in read_lines(path) for cell in breaks.split(line) if cell]
    if not cells:
        raise StudyError(f"{show_path(path)}: empty file; {AGAIN}")
    return cells


def collapse(sentences: Iterable[Sentence]) -> list[Sentence]:
    """The same sentences with one tag a word: where elements overlap, that of the shorter span stays.

    So does SciBERT's form of the set (Gu et al. 2021, section 2.3.2). A span is a run of words of one element in one
    document, over sentences too; of two of one length, outcomes stay before interventions before participants, as in
    the release's scripts.
    """
    collapsed = []
    for document, group in groupby(sentences, key=lambda sentence: sentence.document):
        parts = list(group)
        tags = collapse_tags([tag for part in parts for tag in part.tags])
        start = 0
        for part in parts:
            end = start + len(part.tags)
            collapsed.append(Sentence(part.words, tags[start:end], document))
            start = end
    return collapsed


def collapse_tags(tags: list[str]) -> list[str]:
    found = [[] if tag == "O" else tag.split("|") for tag in tags]
    lengths: list[dict[str, int]] = [{} for _ in tags]
    for element in ("I-OUT", "I-INT", "I-PAR"):  # the first stays where lengths are equal
        at = 0
        for inside, run in groupby(found, key=lambda names, element=element: element in names):
            length = len(list(run))
            for i in range(at, at + length) if inside else ():
                lengths[i][element] = length
            at += length
    return [min(known, key=known.get) if known else "O" for known in lengths]


def count_words(sentences: Iterable[Sentence]) -> Counter[str]:
    """How many words each element has; a word of two elements counts in both."""
    return Counter(
        name for sentence in sentences for tag in sentence.tags if tag != "O" for name in tag[2:].split("|I-")
    )
