"""The registered keys of every kind of settings, and what they stand for."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lib.corpora.rules import Cleaning, Selection
from lib.errors import StudyError, unknown
from lib.places import show_path
from lib.study import paths
from lib.study.papers import AnyTable, Paper, build_table
from lib.study.parsing import check_settings, parse_yaml, read_yaml, show_place
from lib.study.settings import (
    CorpusSettings,
    ModelSettings,
    Protocol,
    PublishedEncoder,
    Scale,
    SourceSettings,
    VocabularySettings,
    name_model,
)

KINDS = {
    "scales": Scale,
    "sources": SourceSettings,
    "selections": Selection,
    "cleaning": Cleaning,
    "corpora": CorpusSettings,
    "vocabularies": VocabularySettings,
    "models": ModelSettings,
    "encoders": PublishedEncoder,
    "protocols": Protocol,
    "tables": AnyTable,
}
FOLDERS = ("scales", "models")  # kinds of which each key has a file of its own
SINGULAR = {"corpora": "corpus", "vocabularies": "vocabulary"}
LIKE = ("scales", "models", "corpora")  # which may say `like`, a key: its settings stand before theirs
OWN = ("title", "papers", "released", "revision", "differs")  # of one alone, whatever is like it


@dataclass(frozen=True)
class Place:
    """Where the settings of one key stand: in a file of its own, or inside its kind's."""

    path: Path
    inside: tuple[str, ...] = ()  # the keys that lead there

    def __str__(self) -> str:
        return ", ".join((show_path(self.path), *self.inside))

    @property
    def where(self) -> str:
        """As errors name it, with its line."""
        return show_place(self.path, *self.inside) if self.inside else str(self)

    @property
    def content(self):
        found = parse_yaml(self.path)
        for key in self.inside:
            found = found[key]
        return found


def list_entries(kind: str) -> dict[str, Place]:
    """The registered keys of a kind, sorted, with where each stands."""
    if kind == "tables":  # those of a paper stand in its file, by their number
        found = {}
        for path in (paths.PARAMS / "papers").glob("*.yaml"):
            for number in read_yaml(path, Paper).tables:
                found[f"{path.stem}-{number}"] = Place(path, ("tables", number))
    elif kind in FOLDERS:
        folder = paths.PARAMS / kind
        return list_files(folder, folder.stat().st_mtime_ns)
    else:
        path = paths.PARAMS / f"{kind}.yaml"
        found = {key: Place(path, (key,)) for key in read_yaml(path, dict[str, dict])}
    return dict(sorted(found.items()))


@cache
def list_files(folder: Path, changed: int) -> dict[str, Place]:
    """The keys of a folder, sorted, each with its file. `changed`: when one came or went, so it is listed again."""
    return dict(sorted((path.stem, Place(path)) for path in folder.glob("*.yaml")))


def keys(kind: str) -> list[str]:
    """The registered keys of a kind."""
    return list(list_entries(kind))


def locate_settings(kind: str, key: str) -> Place:
    """Where the settings of one key stand; StudyError with the nearest names when there are none."""
    entries = list_entries(kind)
    if key not in entries:
        raise unknown(SINGULAR.get(kind, kind.removesuffix("s")), key, entries)
    return entries[key]


def list_setting_layers(kind: str, key: str, below: tuple[Place, ...] = ()) -> list[tuple[Place, dict]]:
    """What says the settings of one key, the last word last: where it stands, and what it says. Several where one is
    `like` another. StudyError when that one does not exist, or is like this one.
    """
    entry = locate_settings(kind, split_seed(key)[0] if kind == "models" else key)
    content = build_table(entry.path, entry.inside[-1]) if kind == "tables" else entry.content
    if kind not in LIKE or not isinstance(content, dict) or "like" not in content:
        return [(entry, content)]
    named = str(content["like"])
    try:
        other = locate_settings(kind, named)
    except StudyError as error:
        raise StudyError(f"{entry.where}: like: {error}") from None
    if not isinstance(other.content, dict) or other in (*below, entry):
        raise StudyError(f"{entry.where}: like: '{named}' is like this one; name one that says all")
    shared = [
        (place, {name: value for name, value in said.items() if name not in OWN})
        for place, said in list_setting_layers(kind, named, (*below, entry))
    ]
    return [*shared, (entry, {name: value for name, value in content.items() if name != "like"})]


@cache
def load(kind: str, key: str):
    """The settings of one key; StudyError with the nearest names when there is none, and for what is wrong in it.

    A model pretrained again, `pubmedbert.2`, has those of its key, continues a model of its own seed, and is not the
    published one.
    """
    layers = list_setting_layers(kind, key)
    content = layers[0][1]
    for _, more in layers[1:]:
        content = content | more
    settings = check_settings(layers[-1][0].where, content, KINDS[kind])
    seed = split_seed(key)[1] if kind == "models" else 1
    if seed == 1:
        return settings
    initial = settings.initial and name_model(settings.initial, seed)
    again = {"title": f"{settings.title}, pretraining {seed}", "initial": initial, "released": "", "as_released": False}
    return settings.model_copy(update=again)


def load_tables(*kinds: str) -> dict:
    """The published tables and figures of some kinds, or all, by key."""
    tables = {key: load("tables", key) for key in keys("tables")}
    return {key: table for key, table in tables.items() if not kinds or table.kind in kinds}


def split_seed(name: str) -> tuple[str, int]:
    """Key and seed of a registered model's name, `pubmedbert.2`; any other name is returned whole, with seed 1."""
    key, dot, seed = name.rpartition(".")
    if dot and re.fullmatch("[2-9]|[1-9][0-9]+", seed) and key in list_entries("models"):
        return key, int(seed)
    return name, 1


def is_model(name: str) -> bool:
    """Whether a name is a registered model's, of whatever seed."""
    return split_seed(name)[0] in list_entries("models")


def find_kind(name: str) -> str:
    """The kind of settings that a model's name has: `models`, which the study pretrains, or `encoders`; else empty."""
    return "models" if is_model(name) else "encoders" if name in keys("encoders") else ""


def explain(kind: str, key: str) -> list[dict]:
    """Rows `setting, value, from` for a page: each setting of a key, and the file that it came from.

    What stands inside another setting has a row of its own, named for both.
    """
    origin, rows = {}, []
    for entry, content in list_setting_layers(kind, key):
        origin |= dict.fromkeys(content, str(entry))
    for name, content in load(kind, key).model_dump().items():
        for setting, value in flatten_settings(name, content):
            rows.append({"setting": setting, "value": value, "from": origin.get(name, str(entry))})
    return rows


def flatten_settings(name: str, content) -> list[tuple[str, str]]:
    """A setting as names and values that a person reads: `families, relations, max_length` and `256`."""
    if isinstance(content, list) and any(isinstance(part, dict) for part in content):
        content = {str(number): part for number, part in enumerate(content, 1)}
    if isinstance(content, dict) and content:
        lines = []
        for inner, part in content.items():
            lines += flatten_settings(f"{name}, {inner}", part)
        return lines
    if content is None or content in ([], {}, ""):
        return [(name, "none")]
    if isinstance(content, list):
        return [(name, ", ".join(map(str, content)))]
    return [(name, str(content))]
