"""How long a person waits for anything but training: the study on made-up data, its plan, its tables, its tests.

    python -m benchmarks.waiting [what ...] [--before COMMIT]

Each wait is measured in a fresh clone of the last commit, in the current environment, on all cores of a machine that
should be otherwise idle; `before` is the same in a clone of an older commit. A run of the study ends with its report;
the second finds nothing to do. The plan of scale paper needs STUDY_DATA. The tables are all score tables, over 100,000
made-up runs, three to a file. Writes outputs/record/benchmarks/study.csv, keeping the rows that were not requested.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import paired
from lib.benchmarks import registry
from lib.places import ROOT
from lib.study import params

RUNS, SEEDS = 100_000, (1, 2, 3)
TABLES = """
from lib.study import open_study, params, tables
study = open_study("paper")
runs = study.results()
for key in params.load_tables("scores"):
    tables.summarize_cells(tables.by_seed(study.published(key), runs))
print(len(runs.drop_duplicates(["model", "pretraining", "dataset", "protocol", "seed"])))
"""
FIRST, AGAIN = "the study on made-up data", "the same, nothing to do"
WAITS = {  # wait -> the arguments of ./run_all.sh, and the seconds that it may take
    FIRST: ((), None),
    AGAIN: ((), 8.0),
    "the plan of scale paper": (("paper", "--dry-run"), 30.0),
    "the tests": (("test",), None),
    f"all tables of {RUNS:,} runs": (None, 10.0),  # last, because no other may find these runs
}


def make_clone(commit: str, folder: Path) -> Path:
    """Clone the repository at a commit into a folder, and return the folder."""
    subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, folder], check=True)
    subprocess.run(["git", "-C", folder, "checkout", "--quiet", commit], check=True)
    return folder


def write_runs(folder: Path) -> None:
    """Write RUNS made-up runs at scale paper: every model on every dataset, pretrained as often as it takes."""
    pairs = [(model, key) for model in params.keys("models") for key in registry.DATASETS]
    folder.mkdir(parents=True)
    for number in range(-(-RUNS // len(SEEDS))):
        model, dataset = pairs[number % len(pairs)]
        name = params.name_model(model, 1 + number // len(pairs))
        score = registry.lookup(dataset).main_score
        run = {"fold": 0, "instances": {"train": 1000}, "device": "", "scores": {score: 80.0}}
        result = {"model": name, "dataset": dataset, "protocol": "gu", "main score": score}
        result["runs"] = [run | {"seed": seed} for seed in SEEDS]
        (folder / f"{name}--{dataset}--gu.json").write_text(json.dumps(result), encoding="utf-8")


def wait(clone: Path, words: tuple[str, ...] | None) -> float:
    """Return the seconds that a command of the study takes in a clone. `words` None: its tables.

    Raises RuntimeError if the command fails.
    """
    command = ["-c", TABLES] if words is None else ["-m", "lib.running.cli", *words]
    start = time.perf_counter()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if words != ("test",):  # tests run copies of lib, which this would hide
        environment["PYTHONPATH"] = str(clone)
    process = subprocess.run([sys.executable, *command], cwd=clone, env=environment, capture_output=True, text=True)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: {process.stdout[-1000:]}{process.stderr[-1000:]}")
    return round(time.perf_counter() - start, 1)


def measure(asked: list[str], commit: str) -> dict[str, float]:
    """Return the seconds of each requested wait in a clone of a commit. Those that fail are reported and left out."""
    seconds = {}
    with tempfile.TemporaryDirectory(prefix="study-") as folder:
        clone = make_clone(commit, Path(folder) / "study")
        first = {FIRST} if AGAIN in asked else set()  # without a finished study there is everything to do
        for name in sorted({*asked} | first, key=[*WAITS].index):
            if WAITS[name][0] is None:
                write_runs(clone / "outputs" / "paper" / "results")
            try:
                seconds[name] = wait(clone, WAITS[name][0])
            except RuntimeError as error:
                print(f"{name}, {commit}: failed, {error}", flush=True)
            else:
                print(f"{name}, {commit}: {seconds[name]} s", flush=True)
    return {name: seconds[name] for name in asked if name in seconds}


def main() -> None:
    parser = paired.make_parser(__doc__)
    parser.add_argument("what", nargs="*", help=f"of {'; '.join(WAITS)}")
    parser.add_argument("--before", metavar="COMMIT", help="measured too")
    options = parser.parse_args()
    paired.check(parser, options.what, WAITS)
    waits = options.what or list(WAITS)
    before = measure(waits, options.before) if options.before else {}
    after = measure(waits, "HEAD")
    rows = [
        {"what": name, "before": before.get(name), "after": after.get(name), "target": WAITS[name][1], "unit": "s"}
        | paired.describe_machine()
        for name in waits
    ]
    paired.write_lines("study", rows)


if __name__ == "__main__":
    main()
