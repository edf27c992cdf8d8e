"""How fast the study is on this machine, all of it: python -m benchmarks.

One after the other, for about an hour, on a machine that should have nothing else to do; each says what it measures
against, prints its lines and writes its table into outputs/record/benchmarks/. Neither data nor weights are needed, but
for the plan of scale paper in `waiting`, which lists real files: without STUDY_DATA it says so and stays empty.
"""

import subprocess
import sys

MODULES = ("pretraining", "finetuning", "growth", "waiting")

if __name__ == "__main__":
    for module in MODULES:
        subprocess.run([sys.executable, "-m", f"benchmarks.{module}"], check=True)
