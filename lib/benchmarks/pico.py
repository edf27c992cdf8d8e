"""Participants, interventions and outcomes in abstracts of trials, from EBM-NLP's own release.

Source: Nye et al. 2018; the README of the release. Gu et al. 2021 (section 2.3.2) use it with its overlaps.
"""

import re
from collections import Counter
from pathlib import Path

from lib.benchmarks.instances import Sentence
from lib.benchmarks.metrics import PICO
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import find_file, index_files, read_lines

FOLDERS = {"train": "train", "dev": "train", "test": "test/gold"}
FILE = re.compile(r"([0-9]+)[._]AGGREGATED\.ann(?:\.gz)?")  # a dot in release 2.00, an underscore in 1.00
BREAKS = re.compile(r"[ \t\r]+")  # a word may contain other kinds of space


def read_elements(folder: Path, split: str, left_out: Counter | None = None) -> list[Sentence]:
    """Read the sentences of `train`, `dev` or `test` in a release's folder, each word tagged I-INT, I-OUT, I-PAR or O.

    A word with several elements has them joined in alphabetical order: `I-INT|I-PAR`. A sentence ends only after a word
    "." and at the end of an abstract. Words are in `documents/PMID.tokens`. Their labels, one per word, 0 or not, are
    in `annotations/aggregated/starting_spans/ELEMENT/{train,test/gold}/PMID.AGGREGATED.ann`. Line ends or spaces
    separate words; line ends, spaces or commas separate labels.

    The development set is the training abstracts whose PMIDs are in the folder's `dev.txt`, one per line; there is none
    without this file. The release has no development set, and its scripts draw a fifth of the training set anew in each
    run. An abstract is left out if it lacks the labels of an element, and a training abstract if it is in the test set
    (those of `dev` are counted with the training set).

    Raises StudyError if a file is missing or empty, a label is not 0 to 9, there are more or fewer labels than words,
    or a PMID of `dev` is no training abstract.
    """
    files = find_documents(folder, split)
    dev_list = folder / "dev.txt"
    dev = {line.strip() for _, line in read_lines(dev_list) if line.strip()} if dev_list.is_file() else set()
    all_pmids = set().union(*files.values())
    complete = all_pmids.intersection(*files.values())
    test = set() if split == "test" else set().union(*find_documents(folder, "test").values())
    pmids = complete - test
    if left_out is not None and split != "dev":
        left_out["abstracts without the labels of an element"] += len(all_pmids - complete)
        left_out["training abstracts that are in the test set"] += len(all_pmids & test)
    if split != "test":
        if strays := sorted(dev - pmids):
            raise StudyError(f"{show_path(folder)}: PMID {strays[0]} of dev is no training abstract; check the list")
        pmids = dev if split == "dev" else pmids - dev
    if not pmids:
        raise StudyError(
            f"{show_path(folder)}: no abstracts in {split}; EBM-NLP has no dev of its own, give its PMIDs in dev.txt"
        )
    return [sentence for pmid in sorted(pmids, key=int) for sentence in read_document(folder, pmid, files)]


def find_documents(folder: Path, split: str) -> dict[str, dict[str, Path]]:
    """Return the label files of a split, by element and PMID.

    Raises StudyError if an element has no files, or two files have one PMID.
    """
    documents = {}
    for element, name in PICO.items():
        label_folder = folder / "annotations/aggregated/starting_spans" / name / FOLDERS[split]
        documents[element] = index_files(label_folder.glob("*"), FILE)
        if not documents[element]:
            raise StudyError(f"no labels in {show_path(label_folder)}; set STUDY_DATA to a folder that holds EBM-NLP")
    return documents


def read_document(folder: Path, pmid: str, files: dict[str, dict[str, Path]]) -> list[Sentence]:
    """Read the sentences of an abstract. Raises StudyError as in read_elements."""
    words = read_cells(find_file(folder / f"documents/{pmid}.tokens"), BREAKS)
    element_labels = {element: read_labels(paths[pmid], len(words)) for element, paths in files.items()}
    sentences, start = [], 0
    for end, word in enumerate(words, start=1):
        if word == "." or end == len(words):
            tags = [
                "|".join(f"I-{element}" for element in sorted(PICO) if element_labels[element][position]) or "O"
                for position in range(start, end)
            ]
            sentences.append(Sentence(words[start:end], tags, pmid))
            start = end
    return sentences


def read_labels(path: Path, expected: int) -> list[bool]:
    labels = read_cells(path, re.compile(r"[ \t\r,]+"))
    if not all(re.fullmatch(r"[0-9]", label) for label in labels):
        raise StudyError(f"{show_path(path)}: expected labels 0 to 9")
    if len(labels) != expected:
        raise StudyError(f"{show_path(path)}: {len(labels)} labels for {expected} words")
    return [label != "0" for label in labels]


def read_cells(path: Path, breaks: re.Pattern) -> list[str]:
    """Return the cells between breaks and line ends. Raises StudyError if the file is empty."""
    cells = [cell for _, line in read_lines(path) for cell in breaks.split(line) if cell]
    if not cells:
        raise StudyError(f"{show_path(path)}: empty file")
    return cells
