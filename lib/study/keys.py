"""The registered keys of every kind of settings, and their settings."""

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
FOLDERS = ("scales", "models")  # kinds with a file for each key
SINGULAR = {"corpora": "corpus", "vocabularies": "vocabulary"}
LIKE = ("scales", "models", "corpora")  # kinds whose settings may build on those of a `like` key
OWN = ("title", "papers", "released", "revision", "differs")  # settings that are not taken over from a `like` key


@dataclass(frozen=True)
class Place:
    """The location of one key's settings: a file of its own, or a place inside the file of its kind."""

    path: Path
    inside: tuple[str, ...] = ()  # the keys that lead there

    def __str__(self) -> str:
        return ", ".join((show_path(self.path), *self.inside))

    @property
    def where(self) -> str:
        """The location as errors name it, with its line."""
        return show_place(self.path, *self.inside) if self.inside else str(self)

    @property
    def content(self):
        data = parse_yaml(self.path)
        for key in self.inside:
            data = data[key]
        return data


def list_entries(kind: str) -> dict[str, Place]:
    """Return the registered keys of a kind, sorted, each with its location."""
    if kind == "tables":  # a paper's tables are in its file, by number
        entries = {}
        for path in (paths.PARAMS / "papers").glob("*.yaml"):
            for number in read_yaml(path, Paper).tables:
                entries[f"{path.stem}-{number}"] = Place(path, ("tables", number))
    elif kind in FOLDERS:
        folder = paths.PARAMS / kind
        return list_files(folder, folder.stat().st_mtime_ns)
    else:
        path = paths.PARAMS / f"{kind}.yaml"
        entries = {key: Place(path, (key,)) for key in read_yaml(path, dict[str, dict])}
    return dict(sorted(entries.items()))


@cache
def list_files(folder: Path, changed: int) -> dict[str, Place]:
    """Return the keys of a folder, sorted, each with its file.

    `changed`: the folder's modification time, so that a changed folder is listed again.
    """
    return dict(sorted((path.stem, Place(path)) for path in folder.glob("*.yaml")))


def keys(kind: str) -> list[str]:
    """List the registered keys of a kind."""
    return list(list_entries(kind))


def locate_settings(kind: str, key: str) -> Place:
    """Return the location of one key's settings. Raises StudyError with the nearest names if the key is unknown."""
    entries = list_entries(kind)
    if key not in entries:
        raise unknown(SINGULAR.get(kind, kind.removesuffix("s")), key, entries)
    return entries[key]


def list_setting_layers(kind: str, key: str, below: tuple[Place, ...] = ()) -> list[tuple[Place, dict]]:
    """Return the layers of one key's settings, each with its location; later layers override earlier ones.

    A key that is `like` another has more than one layer. Raises StudyError if the other does not exist or is itself
    `like` this one.
    """
    entry = locate_settings(kind, split_seed(key)[0] if kind == "models" else key)
    content = build_table(entry.path, entry.inside[-1]) if kind == "tables" else entry.content
    if kind not in LIKE or not isinstance(content, dict) or "like" not in content:
        return [(entry, content)]
    other_key = str(content["like"])
    try:
        other = locate_settings(kind, other_key)
    except StudyError as error:
        raise StudyError(f"{entry.where}: like: {error}") from None
    if not isinstance(other.content, dict) or other in (*below, entry):
        raise StudyError(f"{entry.where}: like: '{other_key}' is like this one; name one that says all")
    inherited = [
        (place, {name: value for name, value in layer.items() if name not in OWN})
        for place, layer in list_setting_layers(kind, other_key, (*below, entry))
    ]
    return [*inherited, (entry, {name: value for name, value in content.items() if name != "like"})]


@cache
def load(kind: str, key: str):
    """Return the settings of one key.

    A model pretrained again, such as `pubmedbert.2`, has the settings of its key, but continues a model of its own seed
    and is not the published one. Raises StudyError with the nearest names if the key is unknown, and for settings that
    are not valid.
    """
    layers = list_setting_layers(kind, key)
    content = layers[0][1]
    for _, layer in layers[1:]:
        content = content | layer
    settings = check_settings(layers[-1][0].where, content, KINDS[kind])
    seed = split_seed(key)[1] if kind == "models" else 1
    if seed == 1:
        return settings
    initial = settings.initial and name_model(settings.initial, seed)
    changes = {
        "title": f"{settings.title}, pretraining {seed}",
        "initial": initial,
        "released": "",
        "as_released": False,
    }
    return settings.model_copy(update=changes)


def load_tables(*kinds: str) -> dict:
    """Load the published tables and figures of some kinds, or of all, by key."""
    tables = {key: load("tables", key) for key in keys("tables")}
    return {key: table for key, table in tables.items() if not kinds or table.kind in kinds}


def split_seed(name: str) -> tuple[str, int]:
    """Split a registered model's name, `pubmedbert.2`, into key and seed; return other names whole, with seed 1."""
    key, dot, seed = name.rpartition(".")
    if dot and re.fullmatch("[2-9]|[1-9][0-9]+", seed) and key in list_entries("models"):
        return key, int(seed)
    return name, 1


def is_model(name: str) -> bool:
    """Return whether a name is a registered model's, with any seed."""
    return split_seed(name)[0] in list_entries("models")


def find_kind(name: str) -> str:
    """Return the kind of a model's name: `models` (which the study pretrains) or `encoders`; else empty."""
    return "models" if is_model(name) else "encoders" if name in keys("encoders") else ""


def explain(kind: str, key: str) -> list[dict]:
    """Return rows `setting, value, from` for a page: each setting of a key, and the file that it comes from.

    A nested setting has a row of its own, named for both levels.
    """
    origin, rows = {}, []
    for entry, content in list_setting_layers(kind, key):
        origin |= dict.fromkeys(content, str(entry))
    for name, content in load(kind, key).model_dump().items():
        for setting, value in flatten_settings(name, content):
            rows.append({"setting": setting, "value": value, "from": origin.get(name, str(entry))})
    return rows


def flatten_settings(name: str, content) -> list[tuple[str, str]]:
    """Return a setting as readable names and values, such as `families, relations, max_length` and `256`."""
    if isinstance(content, list) and any(isinstance(value, dict) for value in content):
        content = {str(number): value for number, value in enumerate(content, 1)}
    if isinstance(content, dict) and content:
        rows = []
        for key, value in content.items():
            rows += flatten_settings(f"{name}, {key}", value)
        return rows
    if content is None or content in ([], {}, ""):
        return [(name, "none")]
    if isinstance(content, list):
        return [(name, ", ".join(map(str, content)))]
    return [(name, str(content))]
