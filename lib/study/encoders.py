"""Pretrained models by name: a registered key, a folder, or a name on the hub."""

import re
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
    or a folder without a model in it.
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
    evaluations = {path.stem.split("--")[0]: path for path in paths.evaluations(scale).glob("*.json")}
    if name in evaluations:  # the key of a user's encoder
        name = artefacts.read_json(evaluations[name])["source"]
    folder = Path(name).expanduser()
    if folder.is_dir():
        title = folder.resolve().name
        fingerprint = loading.fingerprint_folder(folder, title)
        return Checkpoint(to_key(f"{title[:LONGEST]}-{fingerprint[:6]}"), title, str(folder), fingerprint)
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        if "/" in name:
            raise StudyError(f"no folder {name} with a model in it")
        raise unknown("model", name, [*params.keys("models"), *params.keys("encoders")])
    return Checkpoint(to_key(name.replace("/", ".")), name, name, "")


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


def to_key(name: str) -> str:
    """Turn a name into a key of the graph: lower case, with a hyphen for each run of signs other than dots."""
    return re.sub("[^a-z0-9.]+", "-", name.lower()).strip("-.")
