"""The tagger that page 02 shows an encoder with: the one that ships, or a disease tagger that is trained once."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from lib import artefacts
from lib.study import paths

if TYPE_CHECKING:
    from lib.study import Study

SHIPPED = "encoder-14m"  # the encoder from which model/tagger was made
TAGGER = paths.ROOT / "model" / "tagger"
DATASET, PROTOCOL = "ncbi-disease", "lee"
CHOSEN = "nothing on the development set: one seed, the first settings of the protocol"


def keep_tagger(study: "Study", model: str) -> tuple[Path, bool]:
    """Return the folder of an encoder's tagger (lib/finetuning/saved.py), and whether it was trained now.

    The encoder that ships has the tagger that ships. For any other, a tagger is trained with the scale's first seed and
    the first candidate settings, and kept while weights, data, settings and version are the same. Raises StudyError if
    `model` is not an encoder, or if data are missing.
    """
    if model == SHIPPED:
        return TAGGER, False
    from lib.finetuning import saved  # here, because torch takes seconds
    from lib.finetuning.finetuning import Finetuning

    encoder, settings = study.encoder(model), study.protocol(PROTOCOL, DATASET).one_run()
    folder, seeds = paths.explored(study.scale, encoder.key), study.budget.seeds[:1]
    tagger = folder / "tagger"
    files = {"run_file": lambda run: folder / f"{run}.parquet", "search_file": folder / "search.sqlite"}
    finetuning = Finetuning(encoder, study.dataset(DATASET), settings, machine=study.machine, **files)
    with artefacts.locked(tagger):
        if saved.is_complete(tagger, finetuning.identify_saved(seeds)):
            return tagger, False
        shutil.rmtree(tagger, ignore_errors=True)  # made from other weights, data or settings
        finetuning.run(seeds, tagger, {"protocol": PROTOCOL, "scale": study.scale, "chosen": CHOSEN})
    return tagger, True
