"""What a person waits for beside training: the study on made-up data, its plan, its tables, its tests.

    python -m benchmarks.waiting [what ...] [--before COMMIT]

Each runs in a fresh clone of the last commit, in the environment that is there, on every core of a machine that should
have nothing else to do; `before` is the same in a clone of an older commit. A run of the study ends with its report;
the second finds nothing to do. The plan of scale paper needs STUDY_DATA. The tables are all those of scores, of 100,000
made-up runs, three to a file. Writes outputs/record/benchmarks/study.csv, where what was not asked for stays.
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
    tables.summarise_cells(tables.by_seed(study.published(key), runs))
print(len(runs.drop_duplicates(["model", "pretraining", "dataset", "protocol", "seed"])))
"""
WAITS = {  # what is waited for -> the words after ./run_all.sh, and the seconds that it may take
    "the study on made-up data": ((), None),
    "the same, nothing to do": ((), 8.0),
    "the plan of scale paper": (("paper", "--dry-run"), 30.0),
    "the tests": (("test",), None),
    f"all tables of {RUNS:,} runs": (None, 10.0),  # last, as no other is to find these runs
}


def make_clone(commit: str, folder: Path) -> Path:
    """A clone of the repository at a commit, made anew."""
    subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, folder], check=True)
    subprocess.run(["git", "-C", folder, "checkout", "--quiet", commit], check=True)
    return folder


def write_runs(folder: Path) -> None:
    """Results of RUNS made-up runs at scale paper: every model on every dataset, pretrained as often as it takes."""
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
    """Seconds that a command of the study takes in a clone; for no words, its tables. RuntimeError where it fails."""
    new = (clone / "lib" / "study" / "cli.py").exists()
    command = ["-c", TABLES] if words is None else ["-m", "lib.study.cli" if new else "lib.study", *words]
    begun = time.perf_counter()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if words != ("test",):  # tests run copies of lib, which this would hide
        environment["PYTHONPATH"] = str(clone)
    done = subprocess.run([sys.executable, *command], cwd=clone, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return round(time.perf_counter() - begun, 1)


def measure(asked: list[str], commit: str) -> dict[str, float]:
    """Seconds of what is asked for in a clone of a commit; what fails in it is left out, and said."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="study-") as folder:
        clone = make_clone(commit, Path(folder) / "study")
        for name in sorted(asked, key=[*WAITS].index):
            if WAITS[name][0] is None:
                write_runs(clone / "outputs" / "paper" / "results")
            try:
                found[name] = wait(clone, WAITS[name][0])
            except RuntimeError as error:
                print(f"{name}, {commit}: failed, {error}", flush=True)
            else:
                print(f"{name}, {commit}: {found[name]} s", flush=True)
    return found


def main() -> None:
    parser = paired.make_parser(__doc__)
    parser.add_argument("what", nargs="*", help=f"of {'; '.join(WAITS)}")
    parser.add_argument("--before", metavar="COMMIT", help="measured too")
    words = parser.parse_args()
    paired.check(parser, words.what, WAITS)
    asked = words.what or list(WAITS)
    before = measure(asked, words.before) if words.before else {}
    after = measure(asked, "HEAD")
    lines = [
        {"what": name, "before": before.get(name), "after": after.get(name), "target": WAITS[name][1], "unit": "s"}
        | paired.describe_machine()
        for name in asked
    ]
    paired.write_lines("study", lines)


if __name__ == "__main__":
    main()
