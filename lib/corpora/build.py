"""Corpora: rows of raw files, without duplicates and test documents, selected and cleaned as in a paper."""

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

SCHEMA = pa.schema({"id": "string", "source": "string", "text": "string"})
VERSION = 1  # increased when the same rows and rules give a different corpus
PART_WORDS = 1000  # a longer text is cut into parts of about this length, so that no document is a whole novel
PHRASE = 5  # a test sentence in more documents is a stock phrase, such as a notice of competing interests, not a leak
# Reasons for leaving out a record, in order of precedence.
REASONS = ("too long", "file left out", "withdrawn", "newer version", "without text", "near duplicate", "test text",
           "not selected", "PMID", "too few words", "nothing left", "not in the part")  # fmt: skip
COLUMNS = ("id", "version", "deleted", "characters", "test texts")  # needed to choose between records
Choice = Callable[[Collection[str], Collection[str]], bool]  # by a citation's tree numbers and the major ones


@dataclass(frozen=True)
class Rows:
    """The rows of one raw file, as written and counted by rows.write_document_rows."""

    path: Path
    source: str
    file: str
    counts: dict[str, int]
    left_out: str | None = None  # why the whole file is left out


def build_corpus(
    files: Sequence[Rows],
    path: Path,
    rules: Cleaning,
    chooses: Choice | None = None,
    part: float = 1.0,
    until: str = "",
) -> list[dict]:
    """Write the documents to keep to a Parquet file and return the counts of each raw file.

    Among records of one PMID the newest version is kept, and among equal versions the last one read, because an update
    file comes after the baseline. Among near-duplicate texts the first is kept. Removed next: documents that contain a
    sentence of a benchmark's test set, citations that are not selected or entered PubMed after the day `until`, texts
    that the cleaning rules drop, and texts outside `part`, the share of the corpus to keep.
    """
    with pq.ParquetWriter(path, SCHEMA) as writer:
        return [
            copy_file(file, reasons, rules, chooses, part, until, writer)
            for file, reasons in zip(files, judge_records(files), strict=True)
        ]


def read_corpus(path: Path) -> Iterator[Document]:
    """Yield the documents of a corpus, in order. Raises StudyError if the file is damaged."""
    try:
        for batch in read_batches(path, ["id", "text"]):
            for row in batch.to_pylist():
                yield Document(**row)
    except (OSError, pa.ArrowInvalid) as error:
        raise StudyError(f"{show_path(path)}: damaged ({error}); delete it and run again") from None


def read_batches(path: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file, or some of their columns, in batches.

    There is no read-ahead, because it would hold all compressed data of a corpus in memory.
    """
    return pq.ParquetFile(path, pre_buffer=False).iter_batches(1000, columns=columns)


def judge_records(files: Sequence[Rows]) -> list[pd.Series]:
    """Return for each file why each of its rows is left out before selection and cleaning; empty for the other rows.

    Only identifiers and hashes are held in memory, about 160 bytes a record.
    """
    file_tables = [pq.read_table(file.path, columns=[*COLUMNS, "bands"]) for file in files]
    sizes = [len(file_table) for file_table in file_tables]
    table = pa.concat_tables(file_tables)
    rows = table.select(["version", "deleted", "characters"]).to_pandas()
    rows["id"], ids = pd.factorize(table["id"].to_pandas())
    reasons = pd.Series("", index=rows.index)
    left_out = np.repeat([file.left_out is not None for file in files], sizes)
    reasons[left_out] = "file left out"
    identified = rows[~left_out & (ids[rows["id"]] != "")]
    newest = find_newest(identified)
    reasons[identified.index[identified.index != newest]] = "newer version"
    withdrawn = rows["deleted"].to_numpy()[newest]
    reasons[identified.index[withdrawn]] = "withdrawn"
    reasons[(reasons == "") & (rows["characters"] == 0)] = "without text"
    candidates = np.flatnonzero(reasons == "")
    reasons[find_near_duplicates(table["bands"], candidates)] = "near duplicate"
    remaining = (reasons == "").to_numpy()
    reasons[find_test_texts(table["test texts"], remaining)] = "test text"
    ends = np.cumsum(sizes)
    return [reasons[end - size : end].reset_index(drop=True) for size, end in zip(sizes, ends, strict=True)]


def find_newest(rows: pd.DataFrame) -> np.ndarray:
    """Return for each row the index of the newest version of its record; of equal versions, the last row."""
    sorted_rows = rows.reset_index().sort_values(["id", "version", "index"])
    newest = sorted_rows.drop_duplicates("id", keep="last")
    return rows["id"].map(newest.set_index("id")["index"]).to_numpy(int)


def find_near_duplicates(bands: pa.ChunkedArray, candidates: np.ndarray) -> np.ndarray:
    """Return the candidate rows that share a band of hashes with an earlier candidate."""
    hashes = bands.combine_chunks().flatten().to_numpy().reshape(-1, leakage.BANDS)
    is_duplicate = np.zeros(len(candidates), bool)
    for band in hashes.T:
        is_duplicate |= pd.Series(band[candidates]).duplicated().to_numpy()
    return candidates[is_duplicate]


def find_test_texts(tests: pa.ChunkedArray, remaining: np.ndarray) -> pd.Index:
    """Return the rows that contain a test sentence found in at most PHRASE of the remaining rows."""
    tests = tests.combine_chunks()
    sentences = pd.Series(tests.flatten().to_numpy(), index=pc.list_parent_indices(tests).to_numpy())
    sentences = sentences[remaining[sentences.index]]
    rare_sentences = sentences[sentences.groupby(sentences).transform("size") <= PHRASE]
    return rare_sentences.index.unique()


def copy_file(
    file: Rows,
    reasons: pd.Series,
    rules: Cleaning,
    chooses: Choice | None,
    part: float,
    until: str,
    out: pq.ParquetWriter,
) -> dict:
    """Copy the documents to keep from one file; return the counts of read, left-out (by reason) and kept ones."""
    counts = {"source": file.source, "file": file.file, "read": 0, **dict.fromkeys(REASONS, 0)}
    counts |= {"kept": 0, "lines dropped": 0, "words": 0, "bytes": 0} | file.counts
    row_reasons = iter(reasons)  # one iterator for all batches
    for batch in read_batches(file.path):
        corpus_rows = []
        for row, reason in zip(batch.to_pylist(), row_reasons, strict=False):
            if not reason:
                entered_later = until and row["entered"] > until
                if entered_later or (chooses and not chooses(row["trees"], row["major trees"])):
                    reason = "not selected"
            if not reason:
                document = Document(row["id"], row["title"], row["text"], language=row["language"])
                text, reason, dropped_lines = cleaning.clean_document(document, rules)
                counts["lines dropped"] += dropped_lines
                if not reason and not is_in(part, text):
                    reason = "not in the part"
            if reason:
                counts[reason] += 1
                continue
            counts["kept"] += 1
            counts["words"] += len(text.split())
            counts["bytes"] += len(text.encode()) + 1
            corpus_rows += [{"id": row["id"], "source": file.source, "text": text_part} for text_part in cut_text(text)]
        if corpus_rows:
            out.write_table(pa.Table.from_pylist(corpus_rows, SCHEMA))
    return counts | {"why left out": file.left_out or ""}


def is_in(part: float, text: str) -> bool:
    """Return whether a text's hash puts it into a part of its corpus; every part contains all smaller ones."""
    return part == 1 or int(provenance.fingerprint(text), 16) < part * 2**64


def cut_text(text: str) -> Iterator[str]:
    """Cut a text between lines into parts of about PART_WORDS words."""
    lines, word_count = [], 0
    for line in text.split("\n"):
        lines.append(line)
        word_count += len(line.split())
        if word_count >= PART_WORDS:
            yield "\n".join(lines)
            lines, word_count = [], 0
    if lines:
        yield "\n".join(lines)
