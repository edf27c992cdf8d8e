"""Hallmarks of Cancer: abstracts and the hallmarks of their sentences."""

import io
import re
from collections import Counter
from pathlib import Path

from lib.benchmarks.instances import Labelled, split_lines
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import decode_lines, read_lines, read_members

HALLMARKS = {  # name in the corpus -> name in the study, in the order of BLURB's 0 to 9
    "Activating invasion and metastasis": "invasion and metastasis",
    "Avoiding immune destruction": "immune destruction",
    "Cellular energetics": "cellular energetics",
    "Enabling replicative immortality": "replicative immortality",
    "Evading growth suppressors": "growth suppressors",
    "Genomic instability and mutation": "genomic instability",
    "Inducing angiogenesis": "angiogenesis",
    "Resisting cell death": "cell death",
    "Sustaining proliferative signaling": "proliferative signaling",
    "Tumor promoting inflammation": "inflammation",
}


def read_hoc(corpus: Path, split_list: Path) -> list[Labelled]:
    """Read the abstracts of Hallmarks of Cancer in a list, each with all hallmarks of its sentences, or none.

    `corpus`: a tar with text/<pmid>.txt, one sentence per line, and labels/<pmid>.txt, where `<` precedes the labels of
    each sentence, `AND` separates labels, and `--` precedes a finer level; NULL is no label. `split_list`: <pmid>.txt,
    separated by commas. Raises StudyError if the archive is damaged, a member points outside, a file is missing, is not
    UTF-8 or has an unknown label, a name is repeated, or a document has more or fewer annotations than sentences.
    Source: Baker et al. 2016; Gu et al. 2021, section 2.3.5, takes whole abstracts.
    """
    pmids = read_split_list(split_list)
    members = read_members(corpus, [f"{kind}/{pmid}.txt" for pmid in pmids for kind in ("text", "labels")])
    documents = []
    for pmid in pmids:
        location = f"{show_path(corpus)}: document {pmid}"
        text = decode_member(f"{location}, text", members[f"text/{pmid}.txt"])
        labels = decode_member(f"{location}, labels", members[f"labels/{pmid}.txt"])
        sentences = tuple(split_lines([text]))
        preamble, *annotations = labels.split("<")
        if not sentences or preamble.strip() or len(annotations) != len(sentences):
            raise StudyError(f"{location}: {len(sentences)} sentences and {len(annotations)} annotations")
        label_names = {label.split("--")[0].strip() for annotation in annotations for label in annotation.split("AND")}
        if not label_names <= HALLMARKS.keys() | {"", "NULL"}:
            raise StudyError(f"{location}: a label that is none of the ten hallmarks")
        hallmarks = tuple(hallmark for name, hallmark in HALLMARKS.items() if name in label_names)
        documents.append(Labelled(pmid, sentences, hallmarks))
    return documents


def decode_member(place: str, content: bytes) -> str:
    """Decode a file of the archive. Raises StudyError as in decode_lines."""
    return "\n".join(line for _, line in decode_lines(place, io.BytesIO(content)))


def read_hoc_labelled_only(corpus: Path, split_list: Path, left_out: Counter | None = None) -> list[Labelled]:
    """Read as in read_hoc, without the abstracts that have no hallmark: the 1,580 of BLUE (Peng et al. 2019)."""
    documents = read_hoc(corpus, split_list)
    if left_out is not None:
        left_out["abstracts without a hallmark"] += sum(not document.labels for document in documents)
    return [document for document in documents if document.labels]


def read_split_list(path: Path) -> list[str]:
    """Read the PMIDs of a comma-separated list of <pmid>.txt. Raises StudyError if a name is malformed or repeated."""
    names = [name.strip() for _, line in read_lines(path) for name in line.split(",") if name.strip()]
    if not names:
        raise StudyError(f"{show_path(path)}: no names in the list")
    for number, name in enumerate(names, start=1):
        if not re.fullmatch(r"[0-9]+\.txt", name):
            raise StudyError(f"{show_path(path)}: name {number} is not of the form <pmid>.txt")
    if len(set(names)) < len(names):
        raise StudyError(f"{show_path(path)}: {len(names) - len(set(names))} names come again")
    return [name.removesuffix(".txt") for name in names]
