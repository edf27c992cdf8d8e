"""Documents and their labels: Hallmarks of Cancer, DocClsJp, and JMED-LLM in its place."""

import csv
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from lib.benchmarks.instances import Labelled
from lib.errors import StudyError, unknown
from lib.places import show_path
from lib.reading import AGAIN, read_lines, read_members, split_lines

HALLMARKS = {  # as the corpus writes them -> as the study does, in the order of BLURB's 0 to 9
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
POSTED = re.compile(r"([^\n]+)\n「(.*)」\s*", re.DOTALL)  # what JMED-LLM asks, and the document that it asks it of


def read_hoc(corpus: Path, split_list: Path) -> list[Labelled]:
    """The abstracts of Hallmarks of Cancer that a list names, each with all hallmarks of its sentences, or none.

    `corpus`: tar with text/<pmid>.txt, a sentence a line, and labels/<pmid>.txt, where `<` stands before the labels of
    each sentence, `AND` between two of them, `--` before a finer level; NULL is no label. `split_list`: <pmid>.txt,
    separated by commas. StudyError for a damaged archive, a member that points outside, a file that is not there, not
    UTF-8, or has an unknown label, a name that comes twice, labels for more or fewer sentences than there are. Source:
    Baker et al. 2016; Gu et al. 2021, section 2.3.5, takes whole abstracts.
    """
    pmids = read_split_list(split_list)
    members = read_members(corpus, [f"{kind}/{pmid}.txt" for pmid in pmids for kind in ("text", "labels")])
    documents = []
    for pmid in pmids:
        at = f"{show_path(corpus)}: document {pmid}"
        text, labels = (
            "\n".join(line for _, line in split_lines(f"{at}, {kind}", members[f"{kind}/{pmid}.txt"]))
            for kind in ("text", "labels")
        )
        sentences = tuple(line.strip() for line in text.split("\n") if line.strip())
        before, *annotations = labels.split("<")
        if not sentences or before.strip() or len(annotations) != len(sentences):
            raise StudyError(f"{at}: {len(sentences)} sentences and {len(annotations)} annotations; {AGAIN}")
        names = {label.split("--")[0].strip() for found in annotations for label in found.split("AND")}
        if not names <= HALLMARKS.keys() | {"", "NULL"}:
            raise StudyError(f"{at}: a label that is none of the ten hallmarks; {AGAIN}")
        documents.append(Labelled(pmid, sentences, tuple(own for name, own in HALLMARKS.items() if name in names)))
    return documents


def read_hoc_labelled_only(corpus: Path, split_list: Path) -> list[Labelled]:
    """As read_hoc, without the abstracts that have no hallmark: the 1,580 of BLUE (Peng et al. 2019)."""
    return [document for document in read_hoc(corpus, split_list) if document.labels]


def read_docclsjp(path: Path) -> list[Labelled]:
    """Japanese articles with one of 22 categories of disease: ouBioBERT's DocClsJp, which is not public.

    CSV with the columns id, text, label, in a form of the study's own. StudyError for a missing column, a malformed
    row, an id that comes twice, an empty text or label. Source: Wada et al. 2020, section 3.1.
    """
    documents = {}
    for at, row in read_table(path, ("id", "text", "label")):
        if not all(row[name].strip() for name in ("id", "text", "label")) or row["id"] in documents:
            raise StudyError(f"{at}: an id that came before, or an empty id, text or label; fill in the file")
        documents[row["id"]] = Labelled(row["id"], (row["text"],), (row["label"],))
    return list(documents.values())


def read_jmed(path: Path) -> list[Labelled]:
    """Japanese documents of JMED-LLM with the right one of the options: CRADE, RRTNM or SMDIS.

    CSV with tag, question, optionA and further, answer (a letter). A question is one line and a document in 「」; they
    are the two `sentences`, since one document is asked of up to eight times. The label is the option in words. Ids are
    running numbers from 1. StudyError for a missing column, a malformed row, an answer without an option. Source:
    JMED-LLM (sociocom), datasets.
    """
    documents = []
    for number, (at, row) in enumerate(read_table(path, ("tag", "question", "optionA", "answer")), start=1):
        parts, option = POSTED.fullmatch(row["question"]), row.get(f"option{row['answer']}", "")
        if not parts or not parts[2].strip() or not option.strip():
            raise StudyError(f"{at}: expected a question over a document in 「」, and the letter of an option; {AGAIN}")
        documents.append(Labelled(str(number), (parts[1], parts[2]), (option,)))
    return documents


def take_fold(instances: list[Labelled], split: str, fold: int, folds: int = 5) -> list[Labelled]:
    """The train or test part of a set without a division: `fold` of 1 to `folds`, labels in equal shares, in order.

    scikit-learn's StratifiedKFold, shuffled with seed 0; every instance is in one test part, and a label rarer than
    there are folds in some of them only. Where documents come several times (JMED-LLM asks several things of one) it
    is StratifiedGroupKFold, which keeps them together and labels in nearly equal shares. StudyError for another split,
    a fold outside, labels that are all rarer, or documents fewer, than there are folds.
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold  # here, as it takes seconds

    if split not in ("train", "test"):
        raise unknown("split", split, ("train", "test"))
    labels = ["|".join(instance.labels) for instance in instances]
    documents = [instance.sentences[-1] for instance in instances]
    commonest, distinct = max(Counter(labels).values(), default=0), len(set(documents))
    if not 1 <= fold <= folds or not 2 <= folds <= min(commonest, distinct):
        raise StudyError(f"no fold {fold} of {folds} of {len(labels)} documents, {commonest} of the commonest label")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of labels rarer than folds
        cutter = StratifiedKFold if distinct == len(documents) else StratifiedGroupKFold
        cut = cutter(folds, shuffle=True, random_state=0)
        parts = list(cut.split(labels, labels, None if cutter is StratifiedKFold else documents))[fold - 1]
    return [instances[place] for place in parts[split == "test"]]


def read_split_list(path: Path) -> list[str]:
    """The PMIDs of a list of <pmid>.txt, separated by commas; StudyError for another name, or one that comes twice."""
    names = [name.strip() for _, line in read_lines(path) for name in line.split(",") if name.strip()]
    if not names:
        raise StudyError(f"{show_path(path)}: no names in the list; {AGAIN}")
    for number, name in enumerate(names, start=1):
        if not re.fullmatch(r"[0-9]+\.txt", name):
            raise StudyError(f"{show_path(path)}: name {number} is not of the form <pmid>.txt; {AGAIN}")
    if len(set(names)) < len(names):
        raise StudyError(f"{show_path(path)}: {len(names) - len(set(names))} names come again; {AGAIN}")
    return [name.removesuffix(".txt") for name in names]


def read_table(path: Path, needed: tuple[str, ...]) -> Iterator[tuple[str, dict[str, str]]]:
    """The rows of a CSV with a header, each with its last line; StudyError for a missing column or a malformed row."""
    where, names, number = show_path(path), [], 0
    reader = csv.reader((f"{line}\n" for _, line in read_lines(path)), strict=True)
    try:
        for number, cells in enumerate(reader):
            at = f"{where}:{reader.line_num}"
            if not number:
                names = cells
                if not set(needed) <= set(names) or len(set(names)) < len(names):
                    raise StudyError(f"{at}: expected the columns {', '.join(needed)}, each once")
            elif len(cells) != len(names):
                raise StudyError(f"{at}: expected {len(names)} columns, found {len(cells)}; {AGAIN}")
            else:
                yield at, dict(zip(names, cells, strict=True))
    except csv.Error as error:
        raise StudyError(f"{where}:{reader.line_num}: not CSV ({error}); was the file cut off? {AGAIN}") from None
    if not number:
        raise StudyError(f"{where}: no rows in the file; {AGAIN}")
