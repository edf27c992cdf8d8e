"""Receipts: what the graph has as output of a job, a file that names what the job made below outputs/<scale>/.

Snakemake deletes what a job declares as output before it runs it again, and when it fails or is killed. The artefact
itself lies beside its receipt, and stays until another takes its place.
"""

from collections.abc import Iterable
from pathlib import Path

from lib import artefacts
from lib.study import paths


def write(receipt: Path, *made: Path) -> None:
    """Say what a job made."""
    artefacts.write_text(receipt, "".join(f"{path.relative_to(paths.ROOT)}\n" for path in made))


def name(scale: str, stage: str, keys: Iterable[str]) -> str:
    """The receipt of a job, as the graph calls it: from the repository's root."""
    return f"outputs/{scale}/done/{stage}/{'--'.join(keys)}"


def forget(scale: str) -> None:
    """Take away the receipts of what somebody has deleted, so that it is made again."""
    for receipt in paths.output(scale, "done").glob("*/*"):
        if not all((paths.ROOT / made).exists() for made in receipt.read_text(encoding="utf-8").splitlines()):
            receipt.unlink()
