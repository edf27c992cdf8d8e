"""Rename the outdated keys of older results; nothing is computed again.

    python tools/stamp.py [FOLDER ...]    folders of scales; none: all below outputs/

Only keys that do not affect the identity of a result are renamed. Measured values stay as they are.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lib import artefacts  # noqa: E402

RENAMED = {"setting": "protocol"}


def rename_keys(path: Path) -> bool:
    """Rename the outdated keys of a result file, and return whether it had any."""
    result = artefacts.read_json(path)
    renamed = {RENAMED.get(name, name): value for name, value in result.items()}
    if renamed != result:
        artefacts.write_json(path, renamed)
    return renamed != result


if __name__ == "__main__":
    everywhere = sorted([*(ROOT / "outputs").glob("*/"), *(ROOT / "outputs/record").glob("*/")])
    for folder in map(Path, sys.argv[1:]) if sys.argv[1:] else everywhere:
        print(f"{folder.name}: {sum(map(rename_keys, folder.glob('results/*.json')))} results renamed")
