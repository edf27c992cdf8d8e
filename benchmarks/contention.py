"""Training beside a process that keeps one core busy, on one thread and on all.

    python -m benchmarks.contention [--steps N] [--repetitions N]

BERT-mini's pretraining steps of 32 x 128 tokens, on one thread and on as many as there are cores, alone and beside an
endless loop. Threads meet after each operation; those that are early spin for a while and then sleep, which wakes up
later. With GOMP_SPINCOUNT=1000 they sleep sooner. Each run is a process of its own; shown is the median. Writes
outputs/record/benchmarks/contention.csv.
"""

import argparse
import os
import statistics
import subprocess
import sys

from benchmarks.pretraining import OUTPUT, describe_device
from lib import provenance
from lib.study import results

SPINS = ("", "1000")  # of GOMP_SPINCOUNT; empty: OpenMP's own
RUN = """
import sys, torch
from benchmarks.pretraining import CASES, Side, measure_speed
torch.set_num_threads(int(sys.argv[1]))
print(measure_speed(CASES["mini-8192"], Side("study"), int(sys.argv[2]))["speed"])
"""


def measure(threads: int, spins: str, busy: bool, steps: int) -> float:
    """Tokens a second of one run."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    environment |= {"GOMP_SPINCOUNT": spins} if spins else {}
    beside = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if busy else None
    try:
        command = [sys.executable, "-c", RUN, str(threads), str(steps)]
        return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    finally:
        if beside:
            beside.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=2, help="that are timed")
    parser.add_argument("--repetitions", type=int, default=3)
    words = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    settings = [(threads, spins, busy) for threads in (1, cores) for spins in SPINS for busy in (False, True)]
    speeds: dict[tuple, list[float]] = {one: [] for one in settings}
    for _ in range(words.repetitions):
        for one in settings:
            speeds[one].append(measure(*one, words.steps))
            print(*one, round(speeds[one][-1]), flush=True)
    where = {"unit": "tokens/s", "device": describe_device(), "commit": provenance.commit()}
    lines = []
    for (threads, spins, busy), found in speeds.items():
        line = {
            "threads": threads,
            "spins": spins or "as OpenMP has it",
            "beside": "a busy core" if busy else "nothing",
        }
        lines.append(line | {"speed": round(statistics.median(found))} | where)
    results.write_csv(OUTPUT / "contention.csv", lines)


if __name__ == "__main__":
    main()
