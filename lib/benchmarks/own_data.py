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

from lib import provenance
from lib.benchmarks import brat, conll, own_tables, pubtator
from lib.benchmarks.datasets import SEED, SPLITS, Dataset, draw_parts, list_data_files
from lib.benchmarks.instances import Instance, Labelled, Pair, Sentence
from lib.benchmarks.metrics import entity_sets
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import read_first_line

WORDS = {  # word in a file name -> part
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("dev", "devel", "development", "valid", "validation", "val"), "dev"),
    **dict.fromkeys(("test", "testing"), "test"),
}
BRAT, PUBTATOR, CONLL, TABLE = "BRAT", "PubTator", "CoNLL", "a table"
READERS = {BRAT: brat.read_brat, PUBTATOR: pubtator.read_all_kinds, CONLL: conll.read_any}
TABLES = ".csv", ".tsv", ".jsonl"
UNREADABLE = ".json", ".xlsx", ".xls", ".parquet", ".zip"
UNITS = {"tagging": "sentences", "documents": "texts"}  # family -> what its instances are, if not pairs
SHOWN = 12  # labels that a note lists
SHARES = {"dev": 0.1, "test": 0.2}  # shares of the documents of an undivided part
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


def fingerprint_data(dataset: Dataset) -> str:
    """Return a fingerprint of the files read, their names and their division."""
    files = list_data_files(path for split in dataset.files for path in dataset.paths(split))
    fingerprints = [[str(file.relative_to(dataset.folder)), provenance.file_fingerprint(file)] for file in files]
    return provenance.fingerprint(dataset.files, fingerprints, VERSION)


def read_own_folder(folder: Path) -> OwnData:
    """Read and check all data of a folder. Raises StudyError if a model cannot be trained and tested on it."""
    dataset, form = describe_folder(folder)
    cut_splits = [split for split in SHARES if dataset.files[split] == dataset.files["train"]]
    left_out: Counter = Counter()
    instances = {}
    for split in dataset.files:  # count a file only once if several parts share it
        instances[split] = dataset.load(split, left_out=Counter() if split in cut_splits else left_out)
    check_part(dataset, "train", instances["train"])
    check_part(dataset, "test", instances["test"])
    dataset = replace(dataset, labels=join_some(sorted(count_labels(instances["train"]))) or "a number")
    notes = [f"{dataset.title}: {form}, {describe_own_task(dataset)}"]
    notes += [f"not read: {name}" for name in list_unread(dataset, form)]
    notes += [f"left out: {number:,} {kind}" for kind, number in left_out.items() if number]
    division = []
    if cut_splits:
        notes.append(describe_division(dataset, cut_splits, instances))
        for split in ("train", *cut_splits):
            division += [(name, split) for name in dict.fromkeys(map(name_instance, instances[split]))]
    parts = [summarize_part(dataset, split, instances[split]) for split in instances]
    unit = UNITS.get(dataset.family, "pairs")
    notes += [f"{row['part']}: {row['instances']:,} {unit}, {row['labels']}" for row in parts]
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
    missing = tuple(split for split in SHARES if split not in paths)
    names = {split: str(paths.get(split, paths["train"]).relative_to(folder)) for split in SPLITS}
    files = {split: (name.replace("{", "{{").replace("}", "}}"),) for split, name in names.items()}  # for Dataset.paths
    family, metric, reader = "tagging", "entity-type-f1", READERS.get(form)
    if form == TABLE:
        columns = own_tables.find_columns(paths["train"])
        family, metric = own_tables.FAMILIES[columns]
        reader = partial(own_tables.read_instances, columns=columns)
    divider = partial(divide, parts=("train", *missing), place=show_path(paths["train"])) if missing else None
    dataset = Dataset("own", folder.resolve().name, family, "", metric, reader, files, access="own", divide=divider,
                      version=VERSION, folder=folder)  # fmt: skip
    return dataset, form


def find_parts(folder: Path) -> dict[str, Path]:
    """Return the files or folders of train, dev and test that exist; train alone if the folder is undivided."""
    entries = sorted(path for path in folder.iterdir() if not brat.ASIDE.fullmatch(path.name))
    parts: dict[str, Path] = {}
    for path in entries:
        words = (word.removesuffix("set") for word in re.split(r"[^a-z]+", path.name.lower()))
        for part in {WORDS[word] for word in words if word in WORDS}:
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
    first_line = read_first_line(path)
    if not first_line:
        raise StudyError(f"{show_path(path)}: empty file")
    if name.endswith((".csv", ".jsonl")):
        return TABLE
    if pubtator.HEAD.fullmatch(first_line):
        return PUBTATOR
    has_text_column = "text" in [cell.strip().strip('"').lower() for cell in first_line.split("\t")]
    return TABLE if has_text_column and name.endswith(".tsv") else CONLL


def divide(instances: list[Instance], split: str, fold: int, parts: tuple[str, ...], place: str) -> list[Instance]:
    """Return one of the `parts` that a training part is cut into by document; any other split is returned whole.

    Raises StudyError if there are fewer documents than parts.
    """
    if split not in parts:
        return instances
    names = name_documents(instances)
    document_count = len(set(names))
    if document_count < len(parts):
        raise StudyError(f"{place}: {document_count} documents are too few for {', '.join(parts)}: give each part")
    part_of = draw_parts(names, {part: SHARES[part] for part in parts[1:]})
    return [instance for instance, name in zip(instances, names, strict=True) if part_of[name] == split]


def name_documents(instances: Sequence[Instance]) -> list[str]:
    """Return each instance's document, or its text if the files name none, so that equal texts stay together."""
    return [
        instance.document or (instance.first if isinstance(instance, Pair) else instance.inputs[0])
        for instance in instances
    ]


def name_instance(instance: Instance) -> str:
    """Return an instance's name in the division: its document, else a sentence's words or a row number."""
    return instance.document or (instance.inputs[0] if isinstance(instance, Sentence) else f"row {instance.id}")


def describe_division(dataset: Dataset, divided: list[str], loaded: dict[str, list[Instance]]) -> str:
    """Describe which parts were cut off the training part, and by which unit."""
    unit, warning = "row", ""
    if any(instance.document for instance in loaded["train"]):
        unit = "document"
    elif dataset.family == "tagging":
        unit, warning = "sentence", "; without -DOCSTART- lines, sentences of one document can be in two parts"
    counts = [f"{len(set(name_documents(loaded[split]))):,} for {split}" for split in ("train", *divided)]
    return f"no {' and no '.join(divided)} part: train is divided by {unit} (seed {SEED}): {', '.join(counts)}{warning}"


def count_labels(instances: Iterable[Instance]) -> Counter:
    """Count how often each entity type, class or label occurs; numbers have none."""
    counts: Counter = Counter()
    for instance in instances:
        if isinstance(instance, Sentence):
            counts.update(kind for kind, _, _ in entity_sets([instance.tags])[0])
        elif isinstance(instance, Labelled):
            counts.update(instance.labels)
        elif isinstance(instance.label, str):
            counts[instance.label] += 1
    return counts


def check_part(dataset: Dataset, split: str, instances: Sequence[Instance]) -> None:
    """Raise StudyError if the training part has nothing to tell apart, or if the test part gives no score."""
    labels, fault = count_labels(instances), ""
    if dataset.family == "similarity":
        if len({instance.label for instance in instances}) == 1:
            fault = "no scores that differ"
    elif not labels:
        fault = "no entity or label"
    elif split == "train" and dataset.metric == "class-f1" and len(labels) == 1:
        fault = "one label only"
    if fault:
        part, result = ("training", "there is nothing to learn") if split == "train" else ("test", "it gives no score")
        raise StudyError(f"{show_path(dataset.paths(split)[0])}: the {part} part has {fault}: {result}")


def describe_own_task(dataset: Dataset) -> str:
    """Describe the task in words."""
    descriptions = {
        "entity-type-f1": "entities to be tagged",
        "class-f1": "one class for each " + ("text" if dataset.family == "documents" else "pair of texts"),
        "label-f1": "any number of labels for each text",
        "pearson": "a number for each pair of texts: how similar they are",
    }
    return f"{descriptions[dataset.metric]} ({dataset.labels})"


def list_unread(dataset: Dataset, form: str) -> list[str]:
    """List the files and table columns in the folder that are not read."""
    files = set().union(*dataset.files.values())
    used_names = {Path(file).parts[0] for file in files - {"."}}
    if "." in files:  # a BRAT folder that is not divided into parts
        used_names |= {path.name for path in dataset.folder.iterdir() if path.suffix in (".txt", ".ann")}
    names = sorted(path.name for path in dataset.folder.iterdir())
    unread = [name for name in names if name not in used_names and not brat.ASIDE.fullmatch(name)]
    if form == TABLE:
        _, first_row = next(own_tables.read_table_cells(dataset.paths("train")[0]))
        unread += [f"column {name}" for name in first_row if name not in own_tables.COLUMNS]
    return unread


def summarize_part(dataset: Dataset, split: str, instances: Sequence[Instance]) -> dict:
    """Summarise a part: its file, documents, instances, and the count of each label."""
    documents = {instance.document for instance in instances} - {""}
    labels = join_some([f"{label} {count:,}" for label, count in sorted(count_labels(instances).items())])
    if dataset.family == "similarity":
        scores = [instance.label for instance in instances]
        labels = f"scores of {min(scores):g} to {max(scores):g}"
    return {"part": split, "file": dataset.files[split][0], "documents": len(documents) or None,
            "instances": len(instances), "labels": labels}  # fmt: skip


def compare_parts(loaded: dict[str, list[Instance]]) -> list[str]:
    """Describe in sentences which texts the parts share, and which labels training lacks."""
    texts = {split: [" ".join(instance.inputs) for instance in instances] for split, instances in loaded.items()}
    notes = []
    for split, other in (("dev", "train"), ("test", "train"), ("test", "dev")):
        known_texts = set(texts[other])
        if repeats := sum(text in known_texts for text in texts[split]):
            notes.append(f"{repeats:,} of {len(texts[split]):,} texts of {split} stand in {other} too, word for word")
    known_labels = count_labels(loaded["train"])
    for split in ("dev", "test"):
        counts = count_labels(loaded[split])
        if new := [f"{label} ({counts[label]:,})" for label in sorted(counts) if label not in known_labels]:
            notes.append(f"{split} has labels that train lacks and no model can find: {join_some(new)}")
    return notes


def join_some(names: list[str]) -> str:
    """Join names into one string, at most SHOWN of them."""
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else "")
