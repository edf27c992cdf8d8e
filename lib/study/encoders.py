"""Pretrained models by name: a registered key, a folder, or a name on the hub."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lib import artefacts
from lib.errors import StudyError, unknown
from lib.modeling import loading
from lib.modeling.models import Checkpoint
from lib.places import show_path
from lib.study import params, paths

if TYPE_CHECKING:
    from lib.study import Study

LONGEST = 80  # letters of a folder's name in a key, because file names also hold settings and have at most 255


def find_model(study: "Study", name: str) -> Checkpoint:
    """Return the model of a name: a registered model, a folder in the save_pretrained layout, or a name on the hub.

    A registered model is the one pretrained at the scale. At a scale that takes public weights, and for a published
    encoder, it is the public one: in $RELEASED, below its name on the hub, or on the hub if there is no such folder.

    Raises StudyError for an unknown key (with the nearest names), a model not pretrained yet or without public weights,
    a folder without a model in it, or the key of a user's encoder whose folders have other weights now.
    """
    scale = study.scale
    if params.is_released(name, scale):
        return find_released(study, name)
    if params.is_model(name):
        folder, settings = paths.model(scale, name), params.load("models", name)
        if not (folder / "config.json").exists():
            raise StudyError(f"model '{name}' is not pretrained at scale '{scale}': run ./run_all.sh {scale} {name}")
        fingerprint = loading.weights_fingerprint(folder, show_path(folder))
        return Checkpoint(name, settings.title, str(folder), fingerprint)
    evaluations = sorted(paths.evaluations(scale).glob("*.json"))
    sources = [artefacts.read_json(path)["source"] for path in evaluations if path.stem.split("--")[0] == name]
    if any(Path(source).is_absolute() for source in sources):  # the key of a user's folder
        return find_evaluated(name, sources)
    if sources:  # that of a name on the hub
        name = sources[0]
    folder = Path(os.path.expanduser(name))
    if os.path.isdir(folder):
        return find_in_folder(folder)
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        if "/" in name:
            raise StudyError(f"no folder {name} with a model in it")
        raise unknown("model", name, [*params.keys("models"), *params.keys("encoders")])
    return Checkpoint(paths.to_key(name.replace("/", ".")), name, name, "")


def find_evaluated(key: str, folders: list[str]) -> Checkpoint:
    """Return the model of a key from the folders it was evaluated in. Raises StudyError if none of them has it now."""
    folders = list(dict.fromkeys(folders))
    for folder in filter(Path.is_dir, map(Path, folders)):
        with suppress(StudyError):  # one that no longer has a model in it
            if (found := find_in_folder(folder)).key == key:
                return found
    raise StudyError(
        f"'{key}' is no longer in {' or '.join(folders)}: it was moved, or its weights have changed: run ./run_all.sh "
        "evaluate again"
    )


def find_in_folder(folder: Path) -> Checkpoint:
    """Return the model in a folder, with a key made from the folder's name and its content."""
    title = folder.resolve().name
    fingerprint = loading.fingerprint_folder(folder, title)
    return Checkpoint(paths.to_key(f"{title[:LONGEST]}-{fingerprint[:6]}"), title, str(folder), fingerprint)


def list_at_hand(study: "Study") -> list[str]:
    """List the registered models that have weights at a scale: pretrained here, or public."""
    return [name for name in (*params.keys("models"), *params.keys("encoders")) if has_weights(study, name)]


def has_weights(study: "Study", name: str) -> bool:
    """Return whether a registered model was pretrained at a scale or, if the scale takes public weights, has some."""
    if params.is_released(name, study.scale):
        return not params.why_no_weights(name, study.scale)
    return (paths.model(study.scale, name) / "config.json").exists()


def find_released(study: "Study", name: str) -> Checkpoint:
    """Return a registered model's public weights. Raises StudyError if there are none, or if $RELEASED lacks them."""
    settings = params.load(params.find_kind(name), name)
    if why_not := params.why_no_weights(name, study.scale):
        raise StudyError(f"model '{name}': {why_not}")
    folder = paths.released(settings.released)
    if folder is None:
        return Checkpoint(name, settings.title, settings.released, "", settings.revision or "main")
    return Checkpoint(name, settings.title, str(folder), loading.fingerprint_folder(folder, settings.released))
