"""A folder of anybody's data as a dataset: its form and task found, its parts read and checked before anything is made.

    own = read_own_folder(Path("notes"))
    print(*own.notes, sep="\\n")
    train = own.dataset.load("train")

The folder holds a train part and, where there are such, dev and test: files in one form whose names have these words
(`train.tsv`, `notes.dev.jsonl`), or folders of BRAT's files; or one file, or BRAT's files, without a division.
Tables and their columns: lib/benchmarks/own_tables.py. A part that is missing is cut off the training part by document.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from lib import provenance
from lib.benchmarks import brat, conll, own_tables, pubtator
from lib.benchmarks.datasets import SPLITS, Dataset, list_data_files
from lib.benchmarks.instances import Instance, Labelled, Pair, Sentence
from lib.benchmarks.metrics import entity_sets
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import read_lines

WORDS = {  # of a file's name -> the part that it is
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("dev", "devel", "development", "valid", "validation", "val"), "dev"),
    **dict.fromkeys(("test", "testing"), "test"),
}
BRAT, PUBTATOR, CONLL, TABLE = "BRAT", "PubTator", "CoNLL", "a table"
READERS = {BRAT: brat.read_brat, PUBTATOR: pubtator.read_all_kinds, CONLL: conll.read_any}
TABLES = ".csv", ".tsv", ".jsonl"
UNREADABLE = ".json", ".xlsx", ".xls", ".parquet", ".zip"
ASIDE = re.compile(r"(?i)\..*|(?:readme|licen[cs]e|citation)\b.*|.*\.(?:md|pdf|conf|py|ya?ml)")  # what is no data
SHOWN = 12  # labels that a note names
SHARES = {"dev": 0.1, "test": 0.2}  # of the documents of an undivided part
SEED = 0  # of the order in which documents are dealt out
VERSION = 1  # raised when the same folder gives other instances, or another division


@dataclass(frozen=True)
class OwnData:
    """A folder that was read and checked.

    `parts`: a row for each part; `notes`: what there is to know before training, in sentences; `division`: the part of
    each document, where the folder does not say it.
    """

    dataset: Dataset
    form: str
    parts: list[dict]
    notes: list[str]
    division: list[tuple[str, str]]

    @property
    def fingerprint(self) -> str:
        return fingerprint_data(self.dataset)


def fingerprint_data(dataset: Dataset) -> str:
    """Of the files that are read, their names and how they are divided."""
    paths = {path for split in dataset.files for path in dataset.paths(split)}
    files = list_data_files(paths)
    named = [[str(file.relative_to(dataset.folder)), provenance.file_fingerprint(file)] for file in files]
    return provenance.fingerprint(dataset.files, named, VERSION)


def read_own_folder(folder: Path) -> OwnData:
    """The data of a folder, all of it read and checked; StudyError for what cannot be trained and tested on."""
    dataset, form = describe_folder(folder)
    left_out: Counter = Counter()
    loaded = {}
    for split in dataset.files:  # a file of several parts is counted once
        again = any(dataset.files[split] == dataset.files[other] for other in loaded)
        loaded[split] = dataset.load(split, left_out=Counter() if again else left_out)
    check_learnable(dataset, loaded["train"])
    check_scorable(dataset, loaded["test"])
    dataset = replace(dataset, labels=say_some(list_labels(loaded["train"])) or "a number")
    notes = [f"{dataset.title}: {form}, {say_task(dataset)}"]
    notes += [f"not read: {name}" for name in list_unread(dataset)]
    notes += [f"left out: {number:,} {what}" for what, number in left_out.items() if number]
    division = []
    divided = [split for split in loaded if split != "train" and dataset.files[split] == dataset.files["train"]]
    if divided:
        notes.append(say_division(dataset, divided, loaded))
        for split in ("train", *divided):
            names = dict.fromkeys(map(say_name, loaded[split]))
            division += [(name, split) for name in names]
    parts = [summarise_part(dataset, split, loaded[split]) for split in loaded]
    notes += [f"{row['part']}: {row['instances']:,} {say_instances(dataset)}, {row['labels']}" for row in parts]
    notes += compare_parts(loaded)
    return OwnData(dataset, form, parts, notes, division)


def describe_folder(folder: Path) -> tuple[Dataset, str]:
    """The dataset of a folder, and its form, by the names of its files and their first lines; nothing is checked."""
    folder = Path(folder)
    if not folder.is_dir():
        raise StudyError(f"{show_path(folder)}: no such folder; --data takes one with train, dev and test files")
    found = find_parts(folder)
    forms = {split: find_form(found[split]) for split in SPLITS if split in found}
    if len(set(forms.values())) > 1:
        said = ", ".join(f"{show_path(found[split])} is {form}" for split, form in forms.items())
        raise StudyError(f"{said}: give all parts in one form")
    form = forms["train"]
    names = {split: str(path.relative_to(folder)) for split, path in found.items()}
    files = {split: (name.replace("{", "{{").replace("}", "}}"),) for split, name in names.items()}  # as Dataset.paths
    lacking = tuple(split for split in SHARES if split not in found)
    files = {split: files.get(split, files["train"]) for split in SPLITS}
    family, metric, reader = "tagging", "entity-type-f1", READERS.get(form)
    if form == TABLE:
        columns = own_tables.find_columns(found["train"])
        family, metric = own_tables.FAMILIES[columns]
        reader = partial(own_tables.read_instances, columns=columns)
    divider = partial(divide, parts=("train", *lacking), where=show_path(found["train"])) if lacking else None
    title = folder.resolve().name
    dataset = Dataset(
        "own", title, family, "", metric, reader, files, access="own", divide=divider, version=VERSION, folder=folder
    )
    return dataset, form


def find_parts(folder: Path) -> dict[str, Path]:
    """The files or folders of train, dev and test, as far as a folder has them; train alone where it is not divided."""
    entries = sorted(path for path in folder.iterdir() if not ASIDE.fullmatch(path.name))
    found: dict[str, Path] = {}
    for path in entries:
        words = (word.removesuffix("set") for word in re.split(r"[^a-z]+", path.name.lower()))
        words = {WORDS[word] for word in words if word in WORDS}
        for part in words:
            if part in found:
                raise StudyError(f"{show_path(folder)}: {found[part].name} and {path.name} are both {part}: leave one")
            found[part] = path
    if found and "train" not in found:
        raise StudyError(f"{show_path(folder)}: no train file beside {', '.join(sorted(found))}: add one to learn from")
    if len(set(found.values())) < len(found):
        raise StudyError(f"{show_path(folder)}: a file's name says more than one of train, dev and test: rename it")
    if found:
        return found
    if any(path.suffix == ".ann" for path in entries):
        return {"train": folder}
    files = [path for path in entries if path.is_file()]
    if len(files) != 1:
        raise StudyError(
            f"{show_path(folder)}: {len(files)} files, of which none is named train; name them train, dev and test "
            f"({', '.join(TABLES)}, CoNLL or PubTator), or leave one, which is then divided"
        )
    return {"train": files[0]}


def find_form(path: Path) -> str:
    """The form of a file, by its name and its first line with a sign; of a folder BRAT."""
    if path.is_dir():
        return BRAT
    name = path.name.removesuffix(".gz").lower()
    if name.endswith(UNREADABLE):
        raise StudyError(f"{show_path(path)}: not a form that is read; save it as {', '.join(TABLES)} or CoNLL")
    first = next((line for _, line in read_lines(path) if line.strip()), None)
    if first is None:
        raise StudyError(f"{show_path(path)}: empty file")
    if name.endswith((".csv", ".jsonl")):
        return TABLE
    if pubtator.HEAD.fullmatch(first):
        return PUBTATOR
    headed = "text" in [cell.strip().lower() for cell in first.split("\t")]
    return TABLE if headed and name.endswith(".tsv") else CONLL


def divide(instances: list[Instance], split: str, fold: int, parts: tuple[str, ...], where: str = "") -> list[Instance]:
    """The instances of one of the `parts` that a training part is cut into, by document; any other split is whole.

    Documents are dealt out in an order that SEED decides. StudyError for fewer documents than parts.
    """
    if split not in parts:
        return instances
    names = name_documents(instances)
    documents = list(dict.fromkeys(names))
    if len(documents) < len(parts):
        raise StudyError(f"{where}: {len(documents)} documents are too few for {', '.join(parts)}: give each part")
    order = [documents[i] for i in np.random.default_rng(SEED).permutation(len(documents))]
    part_of = dict.fromkeys(documents, parts[0])
    for part in parts[1:]:
        number = max(1, round(SHARES[part] * len(documents)))
        part_of |= dict.fromkeys(order[:number], part)
        order = order[number:]
    return [one for one, name in zip(instances, names, strict=True) if part_of[name] == split]


def name_documents(instances: Sequence[Instance]) -> list[str]:
    """The document of each instance: as the files name it, else its text, so that equal texts stay together."""
    return [document_of(one) or (one.first if isinstance(one, Pair) else one.inputs[0]) for one in instances]


def document_of(one: Instance) -> str:
    return one.group if isinstance(one, Pair) else one.document


def say_name(one: Instance) -> str:
    """What a division calls an instance: its document, else its row or, of a sentence, its words."""
    return document_of(one) or (one.inputs[0] if isinstance(one, Sentence) else f"row {one.id}")


def say_division(dataset: Dataset, divided: list[str], loaded: dict[str, list[Instance]]) -> str:
    """Which parts were cut off the training part, and by what."""
    unit, warning = "row", ""
    if any(map(document_of, loaded["train"])):
        unit = "document"
    elif dataset.family == "tagging":
        unit, warning = "sentence", "; without -DOCSTART- lines, sentences of one document can be in two parts"
    counts = []
    for split in ("train", *divided):
        documents = set(name_documents(loaded[split]))
        counts.append(f"{len(documents):,} for {split}")
    lacking = " and no ".join(divided)
    return f"no {lacking} part: train is divided by {unit} (seed {SEED}): {', '.join(counts)}{warning}"


def list_labels(instances: Iterable[Instance]) -> list[str]:
    """The types of entities, classes or labels of some instances; none of numbers."""
    return sorted(count_labels(instances))


def count_labels(instances: Iterable[Instance]) -> Counter:
    """How often each type of entity, class or label stands in some instances."""
    counts: Counter = Counter()
    for one in instances:
        if isinstance(one, Sentence):
            counts.update(kind or "entity" for kind, _, _ in entity_sets([one.tags])[0])
        elif isinstance(one, Labelled):
            counts.update(one.labels)
        elif isinstance(one.label, str):
            counts[one.label] += 1
    return counts


def check_learnable(dataset: Dataset, train: Sequence[Instance]) -> None:
    """StudyError where training has nothing to tell apart."""
    where = show_path(dataset.paths("train")[0])
    if dataset.family == "similarity":
        if len({one.label for one in train}) == 1:
            raise StudyError(f"{where}: all scores of the training part are equal: there is nothing to learn")
        return
    labels = list_labels(train)
    if not labels:
        raise StudyError(f"{where}: the training part has no entity or label: there is nothing to learn")
    if dataset.metric == "class-f1" and len(labels) == 1:
        raise StudyError(f"{where}: the training part has one label only: there is nothing to learn")


def check_scorable(dataset: Dataset, test: Sequence[Instance]) -> None:
    """StudyError where nothing in the test part can be found."""
    number = dataset.family == "similarity"
    if (len({one.label for one in test}) == 1) if number else not list_labels(test):
        what = "scores that differ" if number else "entity or label"
        raise StudyError(f"{show_path(dataset.paths('test')[0])}: the test part has no {what}: it gives no score")


def say_task(dataset: Dataset) -> str:
    """The task, in words."""
    said = {
        "entity-type-f1": "entities to be tagged",
        "class-f1": "one class for each " + ("text" if dataset.family == "documents" else "pair of texts"),
        "label-f1": "any number of labels for each text",
        "pearson": "a number for each pair of texts: how similar they are",
    }
    return f"{said[dataset.metric]} ({dataset.labels})"


def say_instances(dataset: Dataset) -> str:
    return {"tagging": "sentences", "documents": "texts"}.get(dataset.family, "pairs")


def list_unread(dataset: Dataset) -> list[str]:
    """What lies in the folder and is not read, of its files and of a table's columns."""
    files = set().union(*dataset.files.values())
    unread = []
    if "." not in files:  # the folder itself, of which all is read
        used = {Path(file).parts[0] for file in files}
        names = [path.name for path in sorted(dataset.folder.iterdir())]
        unread = [name for name in names if name not in used and not ASIDE.fullmatch(name)]
    if getattr(dataset.read, "func", None) is own_tables.read_instances:
        unread += [f"column {name}" for name in own_tables.list_unread_columns(dataset.paths("train")[0])]
    return unread


def summarise_part(dataset: Dataset, split: str, instances: Sequence[Instance]) -> dict:
    """A part in numbers: its file, documents, instances, and how often it has each label."""
    documents = set(filter(None, map(document_of, instances)))
    labels = say_some([f"{label} {number:,}" for label, number in sorted(count_labels(instances).items())])
    if dataset.family == "similarity":
        numbers = [one.label for one in instances]
        labels = f"scores of {min(numbers):g} to {max(numbers):g}"
    file = ", ".join(dataset.files[split])
    return {"part": split, "file": file, "documents": len(documents) or None, "instances": len(instances),
            "labels": labels}  # fmt: skip


def compare_parts(loaded: dict[str, list[Instance]]) -> list[str]:
    """What parts share, and what training lacks, in sentences."""
    texts = {split: [" ".join(one.inputs) for one in instances] for split, instances in loaded.items()}
    notes = []
    for split, other in (("dev", "train"), ("test", "train"), ("test", "dev")):
        known_texts = set(texts[other])
        number = sum(text in known_texts for text in texts[split])
        if number:
            notes.append(f"{number:,} of {len(texts[split]):,} texts of {split} stand in {other} too, word for word")
    known_labels = count_labels(loaded["train"])
    for split in ("dev", "test"):
        counts = count_labels(loaded[split])
        new = [f"{label} ({counts[label]:,})" for label in sorted(counts) if label not in known_labels]
        if new:
            notes.append(f"{split} has labels that train lacks and no model can find: {say_some(new)}")
    return notes


def say_some(names: list[str]) -> str:
    """Names in a row, SHOWN of them at most."""
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else "")
