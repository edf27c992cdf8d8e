"""Requests of `evaluate` for an encoder, kept in a file that its jobs and pages read."""

from pathlib import Path
from typing import TYPE_CHECKING

from lib import artefacts
from lib.errors import StudyError
from lib.study import params, paths

if TYPE_CHECKING:
    from lib.modeling.models import Checkpoint

# Defaults of a request: datasets; where the encoder comes from; keys of the encoders compared with it; how its
# vocabulary tokenizes each dataset's words (workload.share_cut); for the user's own data, how many instances of each
# split are longer than a sequence (workload.count_cut); and a folder to save models in.
REQUEST = {"datasets": [], "source": "", "compared": [], "words": {}, "cut": {}, "save": ""}


def find_request(scale: str, model: str, protocol: str) -> dict:
    """Read the request for an encoder; the defaults if there is none."""
    path = paths.evaluation(scale, model, protocol)
    return REQUEST | (artefacts.read_json(path) if path.exists() else {})


def read_request(scale: str, model: str, protocol: str) -> dict:
    """Read the request for an encoder, with its source and datasets. Raises StudyError if there is none."""
    if not paths.evaluation(scale, model, protocol).exists():
        raise StudyError(
            f"'{model}' has not been evaluated under {protocol} at scale '{scale}': run ./run_all.sh evaluate --model "
            f"{model if params.is_model(model) else 'FOLDER_OR_HUB_NAME'} --protocol {protocol} --scale {scale}"
        )
    return find_request(scale, model, protocol)


def write_request(scale: str, encoder: "Checkpoint", protocol: str, **asked) -> None:
    """Write the request for an encoder: its `datasets`, and further entries of REQUEST."""
    folder = Path(encoder.source)
    request = REQUEST | asked | {"source": str(folder.resolve()) if folder.is_dir() else encoder.source}
    artefacts.write_json(paths.evaluation(scale, encoder.key, protocol), request)


def name_save_folder(scale: str, model: str, dataset: str, protocol: str) -> Path | None:
    """Return where to save an encoder's best model on a dataset, as `evaluate --save` requested.

    None if nothing was requested.
    """
    request = find_request(scale, model, protocol)
    return Path(request["save"], dataset) if request["save"] and dataset in request["datasets"] else None
