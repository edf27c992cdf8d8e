"""Which fine-tuning settings suit small encoders: the development scores from which those of a scale were chosen.

    python -m benchmarks.pilot laptop|two-hours [dataset ...]

Fine-tunes one registered model of the scale with the scale's first seed, once for each candidate, whose values replace
the settings of protocol and scale. Two runs go in parallel. No test set is read: if a dataset has no development split,
a tenth of its training set is held out, as in the study. Seconds are those of training alone.

Needs the model (./run_all.sh SCALE MODEL) and the folder of real data. Writes outputs/record/benchmarks/pilot.csv,
replacing the rows of the scale and datasets that are named.
"""

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

import torch

from benchmarks import paired
from lib import provenance
from lib.errors import StudyError
from lib.finetuning.protocol import SEARCHED
from lib.study import open_study

FEW_LARGE, MORE_SMALL = {"learning_rate": 5.0e-4, "batch_size": 16}, {"learning_rate": 2.0e-4, "batch_size": 4}
SMALL = [MORE_SMALL | {"learning_rate": rate} for rate in (5.0e-4, 2.0e-4, 1.0e-4)]
HEADS = [(5.0e-4, "linear"), (2.0e-4, "linear"), (5.0e-4, "CRF"), (5.0e-4, "biLSTM")]
RATES = (5.0e-4, 3.0e-4, 2.0e-4, 1.0e-4)
ENCODINGS = [(1.0e-4, "first token"), (1.0e-4, "mentions"), (3.0e-4, "mentions")]
TRIED = {  # scale -> model, protocol, and the candidates for each dataset
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
    """Fine-tune with one candidate and return its row."""
    model, protocol, _ = TRIED[scale]
    study = open_study(scale)
    benchmark, budget = study.dataset(dataset), study.budget
    torch.set_num_threads(budget.threads)
    candidate_lists = {name: [changes[name]] for name in SEARCHED if name in changes}
    settings = study.protocol(protocol, dataset).model_copy(update=changes | candidate_lists)
    finetuning = study.finetuning(model, dataset, protocol)
    finetuning.settings = settings
    (candidate,) = settings.candidates()
    split = finetuning.splits.choice
    description = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in changes.items())
    run = finetuning.train(
        candidate, budget.seeds[0], 1, f"pilot-{provenance.fingerprint(changes)}", split, description
    )
    score = benchmark.main_score
    return {
        "scale": scale, "model": model, "dataset": dataset, "protocol": protocol, "tried": description,
        "steps": run["steps"], "score": score, "on dev": round(run["scores"][score], 2), "collapsed": run["collapsed"],
        "seconds": run["seconds"], "device": run["device"], "commit": run["commit"],
    }  # fmt: skip


def main() -> None:
    parser = paired.make_parser(__doc__)
    parser.add_argument("scale", choices=TRIED)
    parser.add_argument("datasets", nargs="*")
    options = parser.parse_args()
    candidates = TRIED[options.scale][2]
    datasets = options.datasets or list(candidates)
    paired.check(parser, datasets, candidates)
    trials = [(options.scale, dataset, changes) for dataset in datasets for changes in candidates[dataset]]
    try:
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
            rows = list(pool.map(try_candidate, *zip(*trials, strict=True)))
    except StudyError as error:
        sys.exit(f"error: {error}")
    paired.write_lines("pilot", rows, keys=("scale", "dataset"))


if __name__ == "__main__":
    main()
