"""Hallmarks of Cancer: abstracts and the hallmarks of their sentences."""

import re
from collections import Counter
from pathlib import Path

from lib.benchmarks.instances import Labelled, split_lines
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import decode_text, read_members, read_names

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
NAME = re.compile(r"([0-9]+)\.txt")


def read_hoc(corpus: Path, split_list: Path) -> list[Labelled]:
    """Read the abstracts of Hallmarks of Cancer in a list, each with all hallmarks of its sentences, or none.

    `corpus`: a tar with text/<pmid>.txt, one sentence per line, and labels/<pmid>.txt, where `<` precedes the labels of
    each sentence, `AND` separates labels, and `--` precedes a finer level; NULL is no label. `split_list`: <pmid>.txt,
    separated by commas. Raises StudyError if the archive is damaged, a member points outside, a file is missing, is not
    UTF-8 or has an unknown label, a name is repeated, or a document has more or fewer annotations than sentences.
    Source: Baker et al. 2016; Gu et al. 2021, section 2.3.5, takes whole abstracts.
    """
    pmids = [match[1] for match in read_names(split_list, NAME, "8829650.txt")]
    members = read_members(corpus, [f"{kind}/{pmid}.txt" for pmid in pmids for kind in ("text", "labels")])
    documents = []
    for pmid in pmids:
        location = f"{show_path(corpus)}: document {pmid}"
        text = decode_text(f"{location}, text", members[f"text/{pmid}.txt"])
        labels = decode_text(f"{location}, labels", members[f"labels/{pmid}.txt"])
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


def read_hoc_labelled_only(corpus: Path, split_list: Path, left_out: Counter | None = None) -> list[Labelled]:
    """Read as in read_hoc, without the abstracts that have no hallmark: the 1,580 of BLUE (Peng et al. 2019)."""
    documents = read_hoc(corpus, split_list)
    labelled = [document for document in documents if document.labels]
    if left_out is not None:
        left_out["abstracts without a hallmark"] += len(documents) - len(labelled)
    return labelled
