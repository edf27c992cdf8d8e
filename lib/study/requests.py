"""What `evaluate` asked for of an encoder, kept in a file from which its jobs and pages read it."""

from pathlib import Path
from typing import TYPE_CHECKING

from lib import artefacts
from lib.errors import StudyError
from lib.study import params, paths

if TYPE_CHECKING:
    from lib.modeling.models import Checkpoint

# What may be asked for of an encoder: the keys of others beside it, what its vocabulary makes of each dataset's words
# (workload.share_cut), of data of one's own how many instances of each part are longer than a sequence
# (workload.count_cut), and a folder to save models in.
REQUEST = {"compared": [], "words": {}, "cut": {}, "save": ""}


def read_request(scale: str, model: str, protocol: str) -> dict:
    """What was asked for of somebody's encoder, its source and datasets; StudyError where nothing was."""
    path = paths.evaluation(scale, model, protocol)
    if not path.exists():
        raise StudyError(
            f"'{model}' has not been evaluated under {protocol} at scale '{scale}': run ./run_all.sh evaluate --model "
            f"{model if params.is_model(model) else 'FOLDER_OR_HUB_NAME'} --protocol {protocol} --scale {scale}"
        )
    return REQUEST | artefacts.read_json(path)


def write_request(scale: str, encoder: "Checkpoint", protocol: str, **asked) -> None:
    """Keep what is asked for of an encoder: its `datasets`, and what else REQUEST has."""
    source = str(Path(encoder.source).resolve()) if Path(encoder.source).is_dir() else encoder.source
    artefacts.write_json(paths.evaluation(scale, encoder.key, protocol), REQUEST | asked | {"source": source})


def name_save_folder(scale: str, model: str, dataset: str, protocol: str) -> Path | None:
    """Where the best model of an encoder on a dataset is to be saved, as `evaluate --save` asked; None where nothing
    did."""
    if not paths.evaluation(scale, model, protocol).exists():
        return None
    request = read_request(scale, model, protocol)
    return Path(request["save"], dataset) if request["save"] and dataset in request["datasets"] else None
