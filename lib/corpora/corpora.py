"""A corpus: the rows of its sources, duplicates and test documents taken out, chosen and cleaned as a paper does."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from lib import artefacts, provenance
from lib.corpora import cleaning, documents, leakage, mesh
from lib.corpora.records import Document
from lib.errors import StudyError
from lib.places import show_path
from lib.study import params, paths

SCHEMA = pa.schema([("id", pa.string()), ("source", pa.string()), ("text", pa.string())])
VERSION = 1  # raised when the same rows and rules give another corpus
PART_WORDS = 1000  # a longer text is cut into parts of about this length, so that no document is a whole novel
PHRASE = 5  # a test sentence in more documents is a phrase, such as a notice of competing interests, and no leak
# Why a record is left out, in the order in which the reasons are looked at.
REASONS = ("too long", "file left out", "withdrawn", "newer version", "without text", "near duplicate", "test text",
           "not selected", "PMID", "too few words", "nothing left", "not in the part")  # fmt: skip
COLUMNS = ("id", "version", "deleted", "characters", "test texts")  # what the choice between records needs


def sources(key: str, scale: str) -> list[str]:
    """The sources that a corpus is made of at a scale, in the order in which they are read."""
    corpus = params.load("corpora", key)
    return corpus.sources if params.load("scales", scale).text == "full" else corpus.samples


def source_files(key: str, scale: str) -> list[tuple[str, str]]:
    """The (source, file name) pairs of a corpus that are in the data folder, in the order in which they are read."""
    return [(source, file) for source in sources(key, scale) for file in documents.raw_files(source, scale)]


def why_not(key: str, scale: str) -> str:
    """Why a corpus cannot be built, or an empty string when it can."""
    if source_files(key, scale):
        return ""
    return f"no text at hand: {params.load('sources', sources(key, scale)[0]).missing}"


def access(key: str) -> str:
    """`credentialed` when any of a corpus's sources is, else `public`."""
    corpus = params.load("corpora", key)
    kinds = {params.load("sources", source).access for source in (*corpus.sources, *corpus.samples)}
    return "credentialed" if "credentialed" in kinds else "public"


def build(key: str, scale: str) -> dict:
    """Write a corpus's documents.parquet unless it is there already; returns the record.

    Of the records of one PMID the newest version is kept, and of equal ones the last read (an update file comes
    after the baseline). Of near-duplicate texts the first is kept. Then go: documents that hold a sentence of a
    benchmark's test set, those that are not selected, what the cleaning rules drop, and of a corpus that is a part of
    another, what is not in it. All is counted by file.
    """
    corpus = params.load("corpora", key)
    files = source_files(key, scale)
    if not files:
        raise StudyError(f"corpus '{key}': {why_not(key, scale)}")
    rules = params.load("cleaning", corpus.cleaning)
    selection = params.load("selections", corpus.selection) if corpus.selection else None
    identity = provenance.record(
        "corpora",
        VERSION,
        {
            "cleaning": rules.model_dump(exclude={"title", "where", "differs"}),
            "selection": selection and selection.model_dump(exclude={"title", "where", "differs"}),
            "left out": {s: params.load("sources", s).leave_out for s, _ in files},
            "part": corpus.part,
        },
        {f"{source}/{file}": provenance.file_fingerprint(rows_path(scale, source, file)) for source, file in files},
    )

    def write(new: Path) -> dict:
        path = new / "documents.parquet"
        with pq.ParquetWriter(path, SCHEMA) as out:
            counts = [
                copy_file(source, file, scale, reasons, selection, rules, corpus.part, out)
                for (source, file), reasons in zip(files, judge_records(files, scale), strict=True)
            ]
        totals = pd.DataFrame(counts)[["read", "kept", "words", "bytes", "unknown headings", *REASONS]].sum()
        if not totals["kept"]:
            raise StudyError(f"corpus '{key}': nothing is left after cleaning")
        # What is trained on a corpus is trained again when its text changes, and not when only its making does.
        content = {"content": provenance.file_fingerprint(path)}
        return {"files": counts} | {name: int(total) for name, total in totals.items()} | content

    return artefacts.cached(paths.corpus(scale, key), identity, write)


def rows_path(scale: str, source: str, file: str):
    """The rows of one raw file; StudyError when they have not been made."""
    path = paths.documents(scale, source, file) / "documents.parquet"
    if not path.exists():
        raise StudyError(f"{file} has not been read at scale '{scale}': run ./run_all.sh {scale} 01")
    return path


def judge_records(files: list[tuple[str, str]], scale: str) -> list[pd.Series]:
    """For each file, the reason to leave out each of its rows as far as other rows decide it; empty for the rest.

    Only identifiers and hashes are held in memory, about a hundred bytes a record.
    """
    frames = []
    for number, (source, file) in enumerate(files):
        table = pq.read_table(rows_path(scale, source, file), columns=[*COLUMNS, "bands"])
        frame = table.select(COLUMNS).to_pandas()
        bands = table["bands"].combine_chunks().flatten().to_numpy().reshape(-1, leakage.BANDS)
        frame["left out"] = file in params.load("sources", source).leave_out
        frames.append(frame.assign(file=number, **{f"band {i}": bands[:, i] for i in range(leakage.BANDS)}))
    rows = pd.concat(frames, ignore_index=True)
    reason = pd.Series("", index=rows.index)
    reason[rows["left out"]] = "file left out"
    known = rows[~rows["left out"] & (rows["id"] != "")]
    newest = known.reset_index().sort_values(["id", "version", "index"]).drop_duplicates("id", keep="last")
    newest_of_each = known["id"].map(newest.set_index("id")["index"]).to_numpy(int)
    reason[known.index[known.index != newest_of_each]] = "newer version"
    reason[known.index[rows["deleted"].to_numpy()[newest_of_each]]] = "withdrawn"
    reason[(reason == "") & (rows["characters"] == 0)] = "without text"
    candidates = rows[reason == ""]
    duplicate = pd.Series(False, index=candidates.index)
    for i in range(leakage.BANDS):
        duplicate |= candidates[f"band {i}"].duplicated()
    reason[candidates.index[duplicate]] = "near duplicate"
    found = rows.loc[reason == "", "test texts"].explode().dropna()
    telling = found[found.groupby(found).transform("size") <= PHRASE]
    reason[telling.index.unique()] = "test text"
    of_file = dict(list(reason.groupby(rows["file"])))  # a file of which nothing could be read has no rows
    return [of_file.get(number, reason[:0]).reset_index(drop=True) for number in range(len(files))]


def copy_file(source, file, scale, reasons, selection, rules, part, out) -> dict:
    """Copy what is kept of one file; returns the counts of what was read, left out (by reason) and kept."""
    record = artefacts.read_record(paths.documents(scale, source, file))
    counts = {"source": source, "file": file, "read": record["read"], **dict.fromkeys(REASONS, 0)}
    counts |= {"too long": record["too long"], "kept": 0, "lines dropped": 0, "words": 0, "bytes": 0}
    counts["unknown headings"] = record["unknown headings"]
    position = 0
    for batch in pq.ParquetFile(rows_path(scale, source, file)).iter_batches(1000):
        kept = []
        for row in batch.to_pylist():
            reason, text = reasons[position], ""
            position += 1
            if not reason and selection and not mesh.selects(selection, row["trees"], row["major trees"]):
                reason = "not selected"
            if not reason:
                document = Document(row["id"], row["title"], row["text"], language=row["language"])
                text, reason, dropped = cleaning.clean(document, rules)
                counts["lines dropped"] += dropped
                if not reason and not is_in(part, text):
                    reason = "not in the part"
            if reason:
                counts[reason] += 1
                continue
            counts["kept"] += 1
            counts["words"] += len(text.split())
            counts["bytes"] += len(text.encode()) + 1
            kept += [{"id": row["id"], "source": source, "text": piece} for piece in cut(text)]
        if kept:
            out.write_table(pa.Table.from_pylist(kept, SCHEMA))
    return counts | {"why left out": params.load("sources", source).leave_out.get(file, "")}


def is_in(part: float, text: str) -> bool:
    """Whether a text belongs to a part of its corpus: by its hash, so that every part holds all smaller ones."""
    return part == 1 or int(provenance.fingerprint(text), 16) < part * 2**64


def cut(text: str) -> Iterator[str]:
    """A text in parts of about PART_WORDS words, cut between lines."""
    part, words = [], 0
    for line in text.split("\n"):
        part.append(line)
        words += len(line.split())
        if words >= PART_WORDS:
            yield "\n".join(part)
            part, words = [], 0
    if part:
        yield "\n".join(part)


def list_whole() -> list[str]:
    """The registered corpora that are not a part of another."""
    return [key for key in params.keys("corpora") if params.load("corpora", key).part == 1]


def built(key: str, scale: str) -> dict:
    """The record of a corpus that is built; StudyError when it is not."""
    record = artefacts.read_record(paths.corpus(scale, key))
    if record is None:
        raise StudyError(f"corpus '{key}' is not built at scale '{scale}': run ./run_all.sh {scale} {key}")
    return record


def iterate(key: str, scale: str) -> Iterator[Document]:
    """The kept documents of a built corpus, in order; StudyError when it is not built or damaged."""
    built(key, scale)
    path = paths.corpus(scale, key) / "documents.parquet"
    try:
        for batch in pq.ParquetFile(path).iter_batches(columns=["id", "text"]):
            for row in batch.to_pylist():
                yield Document(**row)
    except (OSError, pa.ArrowInvalid) as error:
        raise StudyError(f"{show_path(path)}: damaged ({error}); delete it and run again") from None
