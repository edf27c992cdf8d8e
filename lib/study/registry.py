"""The registered keys of every kind of settings: a directory listing is the registry of its kind."""

import re
from functools import cache
from pathlib import Path

from lib.corpora.settings import Cleaning, Selection
from lib.errors import StudyError, unknown
from lib.places import show_path
from lib.study import paths
from lib.study.papers import AnyTable
from lib.study.parsing import check_settings, parse_yaml
from lib.study.settings import Corpus, Model, Protocol, Scale, Source, Vocabulary

KINDS = {
    "scales": Scale,
    "sources": Source,
    "selections": Selection,
    "cleaning": Cleaning,
    "corpora": Corpus,
    "vocabularies": Vocabulary,
    "models": Model,
    "protocols": Protocol,
    "tables": AnyTable,
}
SINGULAR = {"corpora": "corpus", "vocabularies": "vocabulary"}
LIKE = ("models", "corpora")  # whose files may say `like`, the key of another: that one's settings stand before theirs
OWN = ("title", "papers", "released", "differs")  # of one alone, whatever is like it


def keys(kind: str) -> list[str]:
    """The registered keys of a kind."""
    return sorted(path.stem for path in (paths.PARAMS / kind).glob("*.yaml"))


def locate(kind: str, key: str) -> Path:
    """The file of one key; StudyError with the nearest names when there is none."""
    if key not in keys(kind):
        raise unknown(SINGULAR.get(kind, kind.removesuffix("s")), key, keys(kind))
    return paths.PARAMS / kind / f"{key}.yaml"


def list_layers(kind: str, key: str) -> list[tuple[Path, dict]]:
    """The files that say the settings of one key, each with what it says, the last word last: two where one is `like`
    another. StudyError when that one does not exist, or is like a third.
    """
    path = locate(kind, split_seed(key)[0] if kind == "models" else key)
    content = parse_yaml(path)
    if kind not in LIKE or not isinstance(content, dict) or "like" not in content:
        return [(path, content)]
    try:
        other = locate(kind, str(content["like"]))
    except StudyError as error:
        raise StudyError(f"{show_path(path)}: like: {error}") from None
    before = parse_yaml(other)
    if not isinstance(before, dict) or "like" in before:
        raise StudyError(f"{show_path(path)}: like: '{other.stem}' is like another itself; name one that says all")
    shared = {name: value for name, value in before.items() if name not in OWN}
    return [(other, shared), (path, {name: value for name, value in content.items() if name != "like"})]


@cache
def load(kind: str, key: str):
    """The settings of one key; StudyError with the nearest names when there is none, and for what is wrong in it.

    A model pretrained again, `pubmedbert.2`, has those of its key, continues a model of its own seed, and is not the
    published one.
    """
    layers = list_layers(kind, key)
    content = layers[0][1] if len(layers) == 1 else layers[0][1] | layers[1][1]
    settings = check_settings(show_path(layers[-1][0]), content, KINDS[kind])
    seed = split_seed(key)[1] if kind == "models" else 1
    if seed == 1:
        return settings
    initial = settings.initial and name_model(settings.initial, seed)
    again = {"title": f"{settings.title}, pretraining {seed}", "initial": initial, "released": ""}
    return settings.model_copy(update=again)


def name_model(key: str, seed: int = 1) -> str:
    """A model's name in files and tables: its key, and the seed of its pretraining where it is not the first."""
    return key if seed == 1 else f"{key}.{seed}"


def split_seed(name: str) -> tuple[str, int]:
    """Key and seed of a registered model's name, `pubmedbert.2`; any other name is returned whole, with seed 1."""
    key, dot, seed = name.rpartition(".")
    if dot and re.fullmatch("[2-9]|[1-9][0-9]+", seed) and key in keys("models"):
        return key, int(seed)
    return name, 1


def is_model(name: str) -> bool:
    """Whether a name is a registered model's, of whatever seed."""
    return split_seed(name)[0] in keys("models")


def explain(kind: str, key: str) -> list[dict]:
    """Rows `setting, value, from` for a page: each setting of a key, and the file that it came from.

    What stands inside another setting has a row of its own, named for both.
    """
    settings, layers = load(kind, key), list_layers(kind, key)
    origin = {name: show_path(path) for path, content in layers for name in content}
    return [
        {"setting": setting, "value": value, "from": origin.get(name, show_path(layers[-1][0]))}
        for name, content in settings.model_dump().items()
        for setting, value in flatten(name, content)
    ]


def flatten(name: str, content) -> list[tuple[str, str]]:
    """A setting as names and values that a person reads: `families, relations, max_length` and `256`."""
    if isinstance(content, list) and any(isinstance(part, dict) for part in content):
        content = {str(number): part for number, part in enumerate(content, 1)}
    if isinstance(content, dict) and content:
        return [line for inner, part in content.items() for line in flatten(f"{name}, {inner}", part)]
    if content is None or content in ([], {}, ""):
        return [(name, "none")]
    return [(name, ", ".join(map(str, content)) if isinstance(content, list) else str(content))]
