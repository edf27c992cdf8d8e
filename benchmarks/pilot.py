"""Which settings of fine-tuning suit small encoders: scores on development sets, from which a scale's own were set.

    python -m benchmarks.pilot laptop|two-hours [dataset ...]

One registered model of the scale is fine-tuned with the scale's first seed, once for each candidate: what it says
replaces the protocol's and the scale's settings. Two run beside each other. No test set is read: where a set has no
development split, a tenth of its training set is held out, as in the study. Seconds are of training alone.

Needs the model (./run_all.sh SCALE MODEL) and the folder of real data. Writes
outputs/record/benchmarks/pilot.csv; of it the lines of the scale and the datasets that are named.
"""

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

import torch

from benchmarks import paired
from lib import provenance
from lib.errors import StudyError
from lib.study import open_study

FEW_LARGE, MORE_SMALL = {"learning_rate": 5.0e-4, "batch_size": 16}, {"learning_rate": 2.0e-4, "batch_size": 4}
SMALL = [MORE_SMALL | {"learning_rate": rate} for rate in (5.0e-4, 2.0e-4, 1.0e-4)]
HEADS = [(5.0e-4, "linear"), (2.0e-4, "linear"), (5.0e-4, "CRF"), (5.0e-4, "biLSTM")]
RATES = (5.0e-4, 3.0e-4, 2.0e-4, 1.0e-4)
ENCODINGS = [(1.0e-4, "first token"), (1.0e-4, "mentions"), (3.0e-4, "mentions")]
TRIED = {  # scale -> model, protocol and, of each dataset, the candidates
    "laptop": ("pubmedbert", "gu", {
        "ncbi-disease": [FEW_LARGE, MORE_SMALL],
        "ddi": [FEW_LARGE, *SMALL],
        "gad": [FEW_LARGE, MORE_SMALL],
        "biosses": [FEW_LARGE, *SMALL[1:]],
        "hoc": [FEW_LARGE, *SMALL],
    }),
    "two-hours": ("small-encoder", "small-encoder", {
        "ncbi-disease": [{"epochs": 5, "learning_rate": rate, "head": head} for rate, head in HEADS],
        "linnaeus": [{"epochs": 3, "learning_rate": rate} for rate in (5.0e-4, 2.0e-4, 1.0e-4, 5.0e-5)],
        "gad-bioelectra": [{"epochs": 3, "learning_rate": rate, "encoding": encoding} for rate, encoding in ENCODINGS],
        "chemprot-bioelectra": [
            *({"epochs": 3, "learning_rate": rate, "train_instances": 6000} for rate in RATES),
            *({"epochs": 6, "learning_rate": rate} for rate in (3.0e-4, 1.0e-4)),
        ],
    }),
}  # fmt: skip


def try_candidate(scale: str, dataset: str, changes: dict) -> dict:
    """The line of one candidate."""
    key, protocol, _ = TRIED[scale]
    study = open_study(scale)
    row, budget = study.dataset(dataset), study.budget
    torch.set_num_threads(budget.threads)
    lists = {name: [changes[name]] for name in ("epochs", "batch_size", "learning_rate") if name in changes}
    settings = study.protocol(protocol, dataset).model_copy(update=changes | lists)
    work = study.finetuning(key, dataset, protocol)
    work.settings = settings
    (candidate,) = settings.candidates()
    split = "dev" if "dev" in row.files else "held out"
    what = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in changes.items())
    run = work.train(candidate, budget.seeds[0], 1, f"pilot-{provenance.fingerprint(changes)}", split, what)
    score = row.main_score
    return {
        "scale": scale, "model": key, "dataset": dataset, "protocol": protocol, "tried": what, "steps": run["steps"],
        "score": score, "on dev": round(run["scores"][score], 2), "collapsed": run["collapsed"],
        "seconds": run["seconds"], "device": run["device"], "commit": run["commit"],
    }  # fmt: skip


def main() -> None:
    parser = paired.make_parser(__doc__)
    parser.add_argument("scale", choices=TRIED)
    parser.add_argument("datasets", nargs="*")
    words = parser.parse_args()
    candidates = TRIED[words.scale][2]
    named = words.datasets or list(candidates)
    paired.check(parser, named, candidates)
    tried = [(words.scale, dataset, changes) for dataset in named for changes in candidates[dataset]]
    try:
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
            lines = list(pool.map(try_candidate, *zip(*tried, strict=True)))
    except StudyError as error:
        sys.exit(f"error: {error}")
    paired.write_lines("pilot", lines, keys=("scale", "dataset"))


if __name__ == "__main__":
    main()
