"""Corpora and vocabularies over ten, a hundred and a thousand raw files: seconds and memory of each step.

    python -m benchmarks.growth [files ...] [--citations N]

The files are MEDLINE XML made up here, 60 citations each unless told otherwise, from the same 5,000 words, so that text
grows and nothing else. Steps run as the study's jobs call lib, each in a process of its own: every file to rows, one
after the other, without MeSH and test sentences; rows to a corpus; the corpus to a WordPiece vocabulary of 8,192; and
its tokens packed. `MiB` is the highest memory in use beyond what was in use at the start. Writes
outputs/record/benchmarks/growth.csv when no number of files is named.
"""

import re
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from transformers import AutoTokenizer

from benchmarks import paired
from benchmarks.medline import write_citations
from lib.corpora import build, medline, rows
from lib.pretraining import tokens
from lib.study import params, results
from lib.vocabularies import learning

FILES = (10, 100, 1000)
SIZE = 8_192  # of the vocabulary


def read_files(folder: Path) -> None:
    for path in sorted((folder / "raw").glob("*.xml.gz")):
        rows.write_document_rows(medline.read_xml(path), folder / "rows" / f"{path.stem}.parquet")


def build_corpus(folder: Path) -> None:
    made = [build.Rows(path, "made-up", path.name, 0, 0, 0) for path in sorted((folder / "rows").glob("*.parquet"))]
    rules = params.load("cleaning", params.load("corpora", "pubmed").cleaning)
    build.build_corpus(made, folder / "documents.parquet", rules)


def train_vocabulary(folder: Path) -> None:
    made = learning.train_vocabulary(lambda: read_texts(folder), "wordpiece", SIZE, cased=False)
    made.save_pretrained(folder / "vocabulary")


def pack_tokens(folder: Path) -> None:
    tokens.pack(read_texts(folder), AutoTokenizer.from_pretrained(folder / "vocabulary"), folder / "tokens")


def read_texts(folder: Path) -> Iterator[str]:
    return (document.text for document in build.read_corpus(folder / "documents.parquet"))


STEPS: dict[str, Callable[[Path], None]] = {
    "raw files to rows": read_files,
    "rows to a corpus": build_corpus,
    "a vocabulary": train_vocabulary,
    "packed tokens": pack_tokens,
}


def measure(step: str, folder: Path) -> tuple[float, float]:
    """Seconds of a step, and MiB of memory at most beyond those at its start."""
    before, begun = read_memory("VmRSS"), time.perf_counter()
    STEPS[step](folder)
    seconds = time.perf_counter() - begun
    return seconds, max(0.0, read_memory("VmHWM") - before)


def read_memory(name: str) -> float:
    """A line of this process's memory in MiB, by its name in /proc."""
    return int(re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))[1]) / 1024


def grow(count: int, citations: int) -> list[dict]:
    """The lines of so many files, one for each step."""
    lines = []
    with tempfile.TemporaryDirectory(prefix="study-") as name:
        folder = Path(name)
        for part in ("raw", "rows"):
            (folder / part).mkdir()
        for number in range(count):
            write_citations(folder / "raw" / f"{number:04}.xml.gz", citations, 10_000_000 + number * citations)
        for step in STEPS:
            seconds, memory = paired.run_apart(measure, step, folder)
            lines.append({"step": step, "files": count, "seconds": seconds, "MiB": round(memory, 1)})
        size = sum(len(text.encode()) for text in read_texts(folder)) / 1e6
    for line in lines:
        line |= {"MB": round(size, 1), "seconds a MB": round(line["seconds"] / size, 4)}
        line["seconds"] = round(line["seconds"], 2)
        print(line, flush=True)
    return [line | paired.describe_machine() for line in lines]


def main() -> None:
    parser = paired.make_parser(__doc__, citations=60)
    parser.add_argument("files", nargs="*", type=int)
    words = parser.parse_args()
    lines = [line for count in words.files or FILES for line in grow(count, words.citations)]
    if not words.files:
        results.write_csv(paired.OUTPUT / "growth.csv", lines)


if __name__ == "__main__":
    main()
