"""Pretrained models by name: a registered key, a folder, a name on the hub."""

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

LONGEST = 80  # letters of a folder's name in a key: names of files hold settings besides, and have 255 at most


def find_model(study: "Study", name: str) -> Checkpoint:
    """The model of that name: a registered model, a folder in the save_pretrained layout, or a name on the hub.

    A registered model is the one that was pretrained at the scale, or where that takes public weights these, as of a
    published encoder: in $RELEASED, below its name on the hub, or without such a folder on the hub.

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
    asked = {path.stem.split("--")[0]: path for path in paths.evaluations(scale).glob("*.json")}
    if name in asked:  # the key of somebody's encoder
        name = artefacts.read_json(asked[name])["source"]
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
    """The registered models that have weights at a scale: pretrained here, or public."""
    return [name for name in (*params.keys("models"), *params.keys("encoders")) if has_weights(study, name)]


def has_weights(study: "Study", name: str) -> bool:
    """Whether a registered model was pretrained at a scale, or where that takes public weights, has some."""
    if params.is_released(name, study.scale):
        return not params.why_no_weights(name, study.scale)
    return (paths.model(study.scale, name) / "config.json").exists()


def find_released(study: "Study", name: str) -> Checkpoint:
    """A registered model's public weights; StudyError where there are none, or $RELEASED lacks them."""
    settings = params.load(params.find_kind(name), name)
    if why_not := params.why_no_weights(name, study.scale):
        raise StudyError(f"model '{name}': {why_not}")
    folder = paths.released(settings.released)
    if folder is None:
        return Checkpoint(name, settings.title, settings.released, "", settings.revision or "main")
    return Checkpoint(name, settings.title, str(folder), loading.fingerprint_folder(folder, settings.released))


def to_key(name: str) -> str:
    """A name as a key of the graph: lower case, single hyphens for other signs than dots."""
    return re.sub("[^a-z0-9.]+", "-", name.lower()).strip("-.")
