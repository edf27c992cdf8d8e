"""Measure the study's speed on this machine: python -m benchmarks.

Runs the modules below one after another, for about an hour, on a machine that should be otherwise idle. Each names what
it compares with, prints its rows and writes its table into outputs/record/benchmarks/. No data or weights are needed,
except for the plan of scale paper in `waiting`, which lists real files: without STUDY_DATA it reports the failure and
leaves that time empty.
"""

import subprocess
import sys

MODULES = ("pretraining", "finetuning", "growth", "waiting")

if __name__ == "__main__":
    for module in MODULES:
        subprocess.run([sys.executable, "-m", f"benchmarks.{module}"], check=True)
