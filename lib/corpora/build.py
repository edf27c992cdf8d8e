"""A corpus: rows of raw files, duplicates and test documents taken out, chosen and cleaned as a paper does."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lib import provenance
from lib.corpora import cleaning, leakage
from lib.corpora.records import Document
from lib.corpora.rules import Cleaning
from lib.errors import StudyError
from lib.places import show_path

SCHEMA = pa.schema([("id", pa.string()), ("source", pa.string()), ("text", pa.string())])
VERSION = 1  # raised when the same rows and rules give another corpus
PART_WORDS = 1000  # a longer text is cut into parts of about this length, so that no document is a whole novel
PHRASE = 5  # a test sentence in more documents is a phrase, such as a notice of competing interests, and no leak
# Why a record is left out, in the order in which the reasons are looked at.
REASONS = ("too long", "file left out", "withdrawn", "newer version", "without text", "near duplicate", "test text",
           "not selected", "PMID", "too few words", "nothing left", "not in the part")  # fmt: skip
COLUMNS = ("id", "version", "deleted", "characters", "test texts")  # what the choice between records needs
Choice = Callable[[Collection[str], Collection[str]], bool]  # of a citation by its tree numbers and the major ones


@dataclass(frozen=True)
class Rows:
    """The rows of one raw file, as rows.write_document_rows writes and counts them."""

    path: Path
    source: str
    file: str
    read: int
    too_long: int
    unknown_headings: int
    left_out: str | None = None  # why none of them is to be kept


def build_corpus(
    files: Sequence[Rows],
    path: Path,
    rules: Cleaning,
    chooses: Choice | None = None,
    part: float = 1.0,
    until: str = "",
) -> list[dict]:
    """Write the documents that are kept to a Parquet file; the counts of each raw file.

    Of the records of one PMID the newest version is kept, and of equal ones the last read (an update file comes
    after the baseline). Of near-duplicate texts the first is kept. Then go: documents that hold a sentence of a
    benchmark's test set, those that are not chosen or entered PubMed after the day `until`, what the cleaning rules
    drop, and what is not in the part that is asked for.
    """
    with pq.ParquetWriter(path, SCHEMA) as out:
        return [
            copy_file(file, reasons, rules, chooses, part, until, out)
            for file, reasons in zip(files, judge_records(files), strict=True)
        ]


def read_corpus(path: Path) -> Iterator[Document]:
    """The documents of a corpus, in order; StudyError when the file is damaged."""
    try:
        for batch in read_batches(path, ["id", "text"]):
            for row in batch.to_pylist():
                yield Document(**row)
    except (OSError, pa.ArrowInvalid) as error:
        raise StudyError(f"{show_path(path)}: damaged ({error}); delete it and run again") from None


def read_batches(path: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file, or some columns of them, a few at a time: without reading ahead, which would hold all
    that is compressed of a corpus in memory."""
    return pq.ParquetFile(path, pre_buffer=False).iter_batches(1000, columns=columns)


def judge_records(files: Sequence[Rows]) -> list[pd.Series]:
    """For each file, the reason to leave out each of its rows as far as other rows decide it; empty for the rest.

    Only identifiers and hashes are held in memory, some 160 bytes a record.
    """
    tables = [pq.read_table(file.path, columns=[*COLUMNS, "bands"]) for file in files]
    sizes = [len(of_file) for of_file in tables]
    table = pa.concat_tables(tables)
    rows = table.select(["version", "deleted", "characters"]).to_pandas()
    rows["id"], found = pd.factorize(table["id"].to_pandas())
    reason = pd.Series("", index=rows.index)
    left_out = np.repeat([file.left_out is not None for file in files], sizes)
    reason[left_out] = "file left out"
    known = rows[~left_out & (found[rows["id"]] != "")]
    newest_of_each = find_newest(known)
    reason[known.index[known.index != newest_of_each]] = "newer version"
    withdrawn = rows["deleted"].to_numpy()[newest_of_each]
    reason[known.index[withdrawn]] = "withdrawn"
    reason[(reason == "") & (rows["characters"] == 0)] = "without text"
    candidates = np.flatnonzero(reason == "")
    reason[find_near_duplicates(table["bands"], candidates)] = "near duplicate"
    remaining = (reason == "").to_numpy()
    reason[find_test_texts(table["test texts"], remaining)] = "test text"
    ends = np.cumsum(sizes)
    return [reason[end - size : end].reset_index(drop=True) for size, end in zip(sizes, ends, strict=True)]


def find_newest(rows: pd.DataFrame) -> np.ndarray:
    """For each row, the index of the newest version of its record; of equal versions the last row counts."""
    from_old_to_new = rows.reset_index().sort_values(["id", "version", "index"])
    newest = from_old_to_new.drop_duplicates("id", keep="last")
    return rows["id"].map(newest.set_index("id")["index"]).to_numpy(int)


def find_near_duplicates(bands: pa.ChunkedArray, candidates: np.ndarray) -> np.ndarray:
    """Those of the candidate rows that share a band of hashes with an earlier candidate."""
    hashes = bands.combine_chunks().flatten().to_numpy().reshape(-1, leakage.BANDS)
    duplicate = np.zeros(len(candidates), bool)
    for band in hashes.T:
        duplicate |= pd.Series(band[candidates]).duplicated().to_numpy()
    return candidates[duplicate]


def find_test_texts(tests: pa.ChunkedArray, remaining: np.ndarray) -> pd.Index:
    """The rows that hold a test sentence which stands in no more than PHRASE of the remaining rows."""
    tests = tests.combine_chunks()
    sentences = pd.Series(tests.flatten().to_numpy(), index=pc.list_parent_indices(tests).to_numpy())
    sentences = sentences[remaining[sentences.index]]
    telling = sentences[sentences.groupby(sentences).transform("size") <= PHRASE]
    return telling.index.unique()


def copy_file(
    file: Rows,
    reasons: pd.Series,
    rules: Cleaning,
    chooses: Choice | None,
    part: float,
    until: str,
    out: pq.ParquetWriter,
) -> dict:
    """Copy what is kept of one file; returns the counts of what was read, left out (by reason) and kept."""
    counts = {"source": file.source, "file": file.file, "read": file.read, **dict.fromkeys(REASONS, 0)}
    counts |= {"too long": file.too_long, "kept": 0, "lines dropped": 0, "words": 0, "bytes": 0}
    counts["unknown headings"] = file.unknown_headings
    in_order = iter(reasons)  # through all batches
    for batch in read_batches(file.path):
        kept = []
        for row, reason in zip(batch.to_pylist(), in_order, strict=False):
            if not reason and until and row["entered"] > until:
                reason = "not selected"
            if not reason and chooses and not chooses(row["trees"], row["major trees"]):
                reason = "not selected"
            if not reason:
                document = Document(row["id"], row["title"], row["text"], language=row["language"])
                text, reason, dropped = cleaning.clean_document(document, rules)
                counts["lines dropped"] += dropped
                if not reason and not is_in(part, text):
                    reason = "not in the part"
            if reason:
                counts[reason] += 1
                continue
            counts["kept"] += 1
            counts["words"] += len(text.split())
            counts["bytes"] += len(text.encode()) + 1
            kept += [{"id": row["id"], "source": file.source, "text": lines} for lines in cut_text(text)]
        if kept:
            out.write_table(pa.Table.from_pylist(kept, SCHEMA))
    return counts | {"why left out": file.left_out or ""}


def is_in(part: float, text: str) -> bool:
    """Whether a text belongs to a part of its corpus: by its hash, so that every part holds all smaller ones."""
    return part == 1 or int(provenance.fingerprint(text), 16) < part * 2**64


def cut_text(text: str) -> Iterator[str]:
    """A text in parts of about PART_WORDS words, cut between lines."""
    lines, words = [], 0
    for line in text.split("\n"):
        lines.append(line)
        words += len(line.split())
        if words >= PART_WORDS:
            yield "\n".join(lines)
            lines, words = [], 0
    if lines:
        yield "\n".join(lines)
