"""Corpora and vocabularies over ten, a hundred and a thousand raw files: seconds and memory of each step.

    python -m benchmarks.growth [files ...] [--citations N]

The files are made-up MEDLINE XML with 60 citations each unless told otherwise, all from the same 5,000 words, so that
only the amount of text grows. Each step calls lib as the study's jobs do, in its own process: all raw files to rows,
one after another, without MeSH and test sentences; rows to a corpus; the corpus to a WordPiece vocabulary of 8,192; and
the corpus to packed tokens. `MiB` is a step's peak memory beyond the memory at its start. Writes
outputs/record/benchmarks/growth.csv if no number of files is given.
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
SIZE = 8_192  # tokens of the vocabulary


def read_files(folder: Path) -> None:
    for path in sorted((folder / "raw").glob("*.xml.gz")):
        rows.write_document_rows(medline.read_xml(path), folder / "rows" / f"{path.stem}.parquet")


def build_corpus(folder: Path) -> None:
    sources = [build.Rows(path, "made-up", path.name, 0, 0, 0) for path in sorted((folder / "rows").glob("*.parquet"))]
    rules = params.load("cleaning", params.load("corpora", "pubmed").cleaning)
    build.build_corpus(sources, folder / "documents.parquet", rules)


def train_vocabulary(folder: Path) -> None:
    tokenizer = learning.train_vocabulary(lambda: read_texts(folder), "wordpiece", SIZE, cased=False)
    tokenizer.save_pretrained(folder / "vocabulary")


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
    """Return a step's seconds, and its peak memory in MiB beyond the memory at its start."""
    memory_before, start = read_memory("VmRSS"), time.perf_counter()
    STEPS[step](folder)
    seconds = time.perf_counter() - start
    return seconds, max(0.0, read_memory("VmHWM") - memory_before)


def read_memory(name: str) -> float:
    """Return a memory figure of this process in MiB, by its name in /proc/self/status."""
    return int(re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))[1]) / 1024


def grow(count: int, citations: int) -> list[dict]:
    """Return a record for each step over `count` files."""
    records = []
    with tempfile.TemporaryDirectory(prefix="study-") as folder_name:
        folder = Path(folder_name)
        for subfolder in ("raw", "rows"):
            (folder / subfolder).mkdir()
        for number in range(count):
            write_citations(folder / "raw" / f"{number:04}.xml.gz", citations, 10_000_000 + number * citations)
        for step in STEPS:
            seconds, memory = paired.run_apart(measure, step, folder)
            records.append({"step": step, "files": count, "seconds": seconds, "MiB": round(memory, 1)})
        megabytes = sum(len(text.encode()) for text in read_texts(folder)) / 1e6
    for record in records:
        record |= {"MB": round(megabytes, 1), "seconds a MB": round(record["seconds"] / megabytes, 4)}
        record["seconds"] = round(record["seconds"], 2)
        print(record, flush=True)
    return [record | paired.describe_machine() for record in records]


def main() -> None:
    parser = paired.make_parser(__doc__, citations=60)
    parser.add_argument("files", nargs="*", type=int)
    options = parser.parse_args()
    records = [record for count in options.files or FILES for record in grow(count, options.citations)]
    if not options.files:
        results.write_csv(paired.OUTPUT / "growth.csv", records)


if __name__ == "__main__":
    main()
