"""A user's folder as a dataset: its form and task are detected, its parts read and checked before anything is trained.

    own = read_own_folder(Path("notes"))
    print(*own.notes, sep="\\n")
    train = own.dataset.load("train")

The folder holds a train part and optionally dev and test: files in one form whose names contain these words
(`train.tsv`, `notes.dev.jsonl`), or folders of BRAT files. Alternatively it holds one undivided file, or undivided BRAT
files. lib/benchmarks/own_tables.py describes tables and their columns. A missing part is cut off the training part by
document.
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

WORDS = {  # word in a file name -> part
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("dev", "devel", "development", "valid", "validation", "val"), "dev"),
    **dict.fromkeys(("test", "testing"), "test"),
}
BRAT, PUBTATOR, CONLL, TABLE = "BRAT", "PubTator", "CoNLL", "a table"
READERS = {BRAT: brat.read_brat, PUBTATOR: pubtator.read_all_kinds, CONLL: conll.read_any}
TABLES = ".csv", ".tsv", ".jsonl"
UNREADABLE = ".json", ".xlsx", ".xls", ".parquet", ".zip"
SHOWN = 12  # labels that a note lists
SHARES = {"dev": 0.1, "test": 0.2}  # shares of the documents of an undivided part
SEED = 0  # of the order in which documents are assigned to parts
VERSION = 1  # bumped when the same folder yields other instances or another division


@dataclass(frozen=True)
class OwnData:
    """A folder of data, read and checked.

    `parts`: a row for each part. `notes`: what to know before training, in sentences. `division`: the part of each
    document, if the folder does not define it.
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
    """Return a fingerprint of the files read, their names and their division."""
    paths = {path for split in dataset.files for path in dataset.paths(split)}
    files = list_data_files(paths)
    fingerprints = [[str(file.relative_to(dataset.folder)), provenance.file_fingerprint(file)] for file in files]
    return provenance.fingerprint(dataset.files, fingerprints, VERSION)


def read_own_folder(folder: Path) -> OwnData:
    """Read and check all data of a folder. Raises StudyError if a model cannot be trained and tested on it."""
    dataset, form = describe_folder(folder)
    left_out: Counter = Counter()
    instances = {}
    for split in dataset.files:  # count a file only once if several parts share it
        is_shared = any(dataset.files[split] == dataset.files[other] for other in instances)
        instances[split] = dataset.load(split, left_out=Counter() if is_shared else left_out)
    check_learnable(dataset, instances["train"])
    check_scorable(dataset, instances["test"])
    dataset = replace(dataset, labels=join_some(list_labels(instances["train"])) or "a number")
    notes = [f"{dataset.title}: {form}, {describe_own_task(dataset)}"]
    notes += [f"not read: {name}" for name in list_unread(dataset)]
    notes += [f"left out: {number:,} {kind}" for kind, number in left_out.items() if number]
    division = []
    cut_splits = [split for split in instances if split != "train" and dataset.files[split] == dataset.files["train"]]
    if cut_splits:
        notes.append(describe_division(dataset, cut_splits, instances))
        for split in ("train", *cut_splits):
            names = dict.fromkeys(map(name_instance, instances[split]))
            division += [(name, split) for name in names]
    parts = [summarise_part(dataset, split, instances[split]) for split in instances]
    notes += [f"{row['part']}: {row['instances']:,} {describe_instances(dataset)}, {row['labels']}" for row in parts]
    notes += compare_parts(instances)
    return OwnData(dataset, form, parts, notes, division)


def describe_folder(folder: Path) -> tuple[Dataset, str]:
    """Detect a folder's dataset and form from file names and first lines, without checking the data."""
    folder = Path(folder)
    if not folder.is_dir():
        raise StudyError(f"{show_path(folder)}: no such folder; --data takes one with train, dev and test files")
    paths = find_parts(folder)
    forms = {split: find_form(paths[split]) for split in SPLITS if split in paths}
    if len(set(forms.values())) > 1:
        description = ", ".join(f"{show_path(paths[split])} is {form}" for split, form in forms.items())
        raise StudyError(f"{description}: give all parts in one form")
    form = forms["train"]
    names = {split: str(path.relative_to(folder)) for split, path in paths.items()}
    files = {split: (name.replace("{", "{{").replace("}", "}}"),) for split, name in names.items()}  # for Dataset.paths
    missing = tuple(split for split in SHARES if split not in paths)
    files = {split: files.get(split, files["train"]) for split in SPLITS}
    family, metric, reader = "tagging", "entity-type-f1", READERS.get(form)
    if form == TABLE:
        columns = own_tables.find_columns(paths["train"])
        family, metric = own_tables.FAMILIES[columns]
        reader = partial(own_tables.read_instances, columns=columns)
    divider = partial(divide, parts=("train", *missing), place=show_path(paths["train"])) if missing else None
    title = folder.resolve().name
    dataset = Dataset(
        "own", title, family, "", metric, reader, files, access="own", divide=divider, version=VERSION, folder=folder
    )
    return dataset, form


def find_parts(folder: Path) -> dict[str, Path]:
    """Return the files or folders of train, dev and test that exist; train alone if the folder is undivided."""
    entries = sorted(path for path in folder.iterdir() if not brat.ASIDE.fullmatch(path.name))
    parts: dict[str, Path] = {}
    for path in entries:
        words = (word.removesuffix("set") for word in re.split(r"[^a-z]+", path.name.lower()))
        words = {WORDS[word] for word in words if word in WORDS}
        for part in words:
            if part in parts:
                raise StudyError(f"{show_path(folder)}: {parts[part].name} and {path.name} are both {part}: leave one")
            parts[part] = path
    if parts and "train" not in parts:
        raise StudyError(f"{show_path(folder)}: no train file beside {', '.join(sorted(parts))}: add one to learn from")
    if len(set(parts.values())) < len(parts):
        raise StudyError(f"{show_path(folder)}: a file's name says more than one of train, dev and test: rename it")
    if parts:
        return parts
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
    """Return the form of a file, from its name and its first non-blank line; BRAT for a folder."""
    if path.is_dir():
        return BRAT
    name = path.name.removesuffix(".gz").lower()
    if name.endswith(UNREADABLE):
        raise StudyError(f"{show_path(path)}: not a form that is read; save it as {', '.join(TABLES)} or CoNLL")
    first_line = next((line for _, line in read_lines(path) if line.strip()), None)
    if first_line is None:
        raise StudyError(f"{show_path(path)}: empty file")
    if name.endswith((".csv", ".jsonl")):
        return TABLE
    if pubtator.HEAD.fullmatch(first_line):
        return PUBTATOR
    has_text_column = "text" in [cell.strip().strip('"').lower() for cell in first_line.split("\t")]
    return TABLE if has_text_column and name.endswith(".tsv") else CONLL


def divide(instances: list[Instance], split: str, fold: int, parts: tuple[str, ...], place: str = "") -> list[Instance]:
    """Return one of the `parts` that a training part is cut into by document; any other split is returned whole.

    SEED sets the order in which documents are assigned. Raises StudyError if there are fewer documents than parts.
    """
    if split not in parts:
        return instances
    names = name_documents(instances)
    documents = list(dict.fromkeys(names))
    if len(documents) < len(parts):
        raise StudyError(f"{place}: {len(documents)} documents are too few for {', '.join(parts)}: give each part")
    order = [documents[i] for i in np.random.default_rng(SEED).permutation(len(documents))]
    part_of = dict.fromkeys(documents, parts[0])
    for part in parts[1:]:
        size = max(1, round(SHARES[part] * len(documents)))
        part_of |= dict.fromkeys(order[:size], part)
        order = order[size:]
    return [instance for instance, name in zip(instances, names, strict=True) if part_of[name] == split]


def name_documents(instances: Sequence[Instance]) -> list[str]:
    """Return each instance's document, or its text if the files name none, so that equal texts stay together."""
    return [
        document_of(instance) or (instance.first if isinstance(instance, Pair) else instance.inputs[0])
        for instance in instances
    ]


def document_of(instance: Instance) -> str:
    return instance.group if isinstance(instance, Pair) else instance.document


def name_instance(instance: Instance) -> str:
    """Return an instance's name in the division: its document, else a sentence's words or a row number."""
    return document_of(instance) or (instance.inputs[0] if isinstance(instance, Sentence) else f"row {instance.id}")


def describe_division(dataset: Dataset, divided: list[str], loaded: dict[str, list[Instance]]) -> str:
    """Describe which parts were cut off the training part, and by which unit."""
    unit, warning = "row", ""
    if any(map(document_of, loaded["train"])):
        unit = "document"
    elif dataset.family == "tagging":
        unit, warning = "sentence", "; without -DOCSTART- lines, sentences of one document can be in two parts"
    counts = []
    for split in ("train", *divided):
        documents = set(name_documents(loaded[split]))
        counts.append(f"{len(documents):,} for {split}")
    missing = " and no ".join(divided)
    return f"no {missing} part: train is divided by {unit} (seed {SEED}): {', '.join(counts)}{warning}"


def list_labels(instances: Iterable[Instance]) -> list[str]:
    """List the entity types, classes or labels of the instances; numbers have none."""
    return sorted(count_labels(instances))


def count_labels(instances: Iterable[Instance]) -> Counter:
    """Count how often each entity type, class or label occurs."""
    counts: Counter = Counter()
    for instance in instances:
        if isinstance(instance, Sentence):
            counts.update(kind or "entity" for kind, _, _ in entity_sets([instance.tags])[0])
        elif isinstance(instance, Labelled):
            counts.update(instance.labels)
        elif isinstance(instance.label, str):
            counts[instance.label] += 1
    return counts


def check_learnable(dataset: Dataset, train: Sequence[Instance]) -> None:
    """Raise StudyError if the training part has nothing to tell apart."""
    location = show_path(dataset.paths("train")[0])
    if dataset.family == "similarity":
        if len({instance.label for instance in train}) == 1:
            raise StudyError(f"{location}: all scores of the training part are equal: there is nothing to learn")
        return
    labels = list_labels(train)
    if not labels:
        raise StudyError(f"{location}: the training part has no entity or label: there is nothing to learn")
    if dataset.metric == "class-f1" and len(labels) == 1:
        raise StudyError(f"{location}: the training part has one label only: there is nothing to learn")


def check_scorable(dataset: Dataset, test: Sequence[Instance]) -> None:
    """Raise StudyError if the test part gives no score: it has no entity or label, or all its scores are equal."""
    is_numeric = dataset.family == "similarity"
    if (len({instance.label for instance in test}) == 1) if is_numeric else not list_labels(test):
        missing = "scores that differ" if is_numeric else "entity or label"
        raise StudyError(f"{show_path(dataset.paths('test')[0])}: the test part has no {missing}: it gives no score")


def describe_own_task(dataset: Dataset) -> str:
    """Describe the task in words."""
    descriptions = {
        "entity-type-f1": "entities to be tagged",
        "class-f1": "one class for each " + ("text" if dataset.family == "documents" else "pair of texts"),
        "label-f1": "any number of labels for each text",
        "pearson": "a number for each pair of texts: how similar they are",
    }
    return f"{descriptions[dataset.metric]} ({dataset.labels})"


def describe_instances(dataset: Dataset) -> str:
    return {"tagging": "sentences", "documents": "texts"}.get(dataset.family, "pairs")


def list_unread(dataset: Dataset) -> list[str]:
    """List the files and table columns in the folder that are not read."""
    files = set().union(*dataset.files.values())
    used_names = {Path(file).parts[0] for file in files if file != "."}
    if "." in files:  # a BRAT folder that is not divided into parts
        used_names |= {path.name for path in dataset.folder.iterdir() if path.suffix in (".txt", ".ann")}
    names = [path.name for path in sorted(dataset.folder.iterdir())]
    unread = [name for name in names if name not in used_names and not brat.ASIDE.fullmatch(name)]
    if getattr(dataset.read, "func", None) is own_tables.read_instances:
        unread += [f"column {name}" for name in own_tables.list_unread_columns(dataset.paths("train")[0])]
    return unread


def summarise_part(dataset: Dataset, split: str, instances: Sequence[Instance]) -> dict:
    """Summarise a part: its file, documents, instances, and the count of each label."""
    documents = set(filter(None, map(document_of, instances)))
    labels = join_some([f"{label} {count:,}" for label, count in sorted(count_labels(instances).items())])
    if dataset.family == "similarity":
        scores = [instance.label for instance in instances]
        labels = f"scores of {min(scores):g} to {max(scores):g}"
    file = ", ".join(dataset.files[split])
    return {"part": split, "file": file, "documents": len(documents) or None, "instances": len(instances),
            "labels": labels}  # fmt: skip


def compare_parts(loaded: dict[str, list[Instance]]) -> list[str]:
    """Describe in sentences which texts the parts share, and which labels training lacks."""
    texts = {split: [" ".join(instance.inputs) for instance in instances] for split, instances in loaded.items()}
    notes = []
    for split, other in (("dev", "train"), ("test", "train"), ("test", "dev")):
        known_texts = set(texts[other])
        repeats = sum(text in known_texts for text in texts[split])
        if repeats:
            notes.append(f"{repeats:,} of {len(texts[split]):,} texts of {split} stand in {other} too, word for word")
    known_labels = count_labels(loaded["train"])
    for split in ("dev", "test"):
        counts = count_labels(loaded[split])
        new_labels = [f"{label} ({counts[label]:,})" for label in sorted(counts) if label not in known_labels]
        if new_labels:
            notes.append(f"{split} has labels that train lacks and no model can find: {join_some(new_labels)}")
    return notes


def join_some(names: list[str]) -> str:
    """Join names into one string, at most SHOWN of them."""
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else "")
