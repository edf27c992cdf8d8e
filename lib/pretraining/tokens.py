"""A corpus as one long array of token ids on disk, and several read as one, in constant memory."""

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path

import numpy as np

from lib import artefacts
from lib.errors import StudyError
from lib.places import show_path
from lib.vocabularies.learning import all_cores
from lib.vocabularies.tokenization import encode_texts

VERSION = 2  # increased when the same corpus and vocabulary give different ids
HELD_OUT = 50  # one document in so many never trains, so that the loss on unseen text can be measured
SPLITS = ("train", "held_out")


@dataclass(frozen=True)
class Tokens:
    """A split of a corpus: documents of at least two tokens, with [SEP] after each."""

    ids: np.ndarray  # (tokens,), on disk
    starts: np.ndarray  # (documents + 1,) int64, on disk: the first token of each document; last, len(ids)
    name: str  # for messages

    def fingerprint(self) -> str:
        """Return a hash of the content, all of which is read once."""
        content = hashlib.sha256(np.ascontiguousarray(self.starts))
        content.update(np.ascontiguousarray(self.ids))  # without a copy of what is on disk
        return content.hexdigest()[:16]


class Text:
    """Several corpora in a row; token indices (`places`) run through all of them."""

    def __init__(self, tokens: Sequence[Tokens]):
        self.name = ", ".join(t.name for t in tokens)
        self.ids = [np.asarray(t.ids) for t in tokens]  # plain arrays over the same memory are faster to index
        self.starts = [np.asarray(t.starts) for t in tokens]
        self.bounds = np.cumsum([0, *map(len, self.ids)])

    def __len__(self) -> int:
        return int(self.bounds[-1])

    def read(self, places: np.ndarray) -> np.ndarray:
        """Return the token ids at places of any shape, as int64."""
        if len(self.ids) == 1:
            return self.ids[0][places].astype(np.int64)
        token_ids = np.empty(places.shape, np.int64)
        for ids, (first, end) in zip(self.ids, pairwise(self.bounds), strict=True):
            inside = (places >= first) & (places < end)
            token_ids[inside] = ids[places[inside] - first]
        return token_ids

    def find_documents(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return, for the document of each place (n,), the places of its first token and of the [SEP] at its end."""
        first, end = np.empty((2, *places.shape), np.int64)
        corpus = np.searchsorted(self.bounds, places, "right") - 1
        for number, starts in enumerate(self.starts):
            inside = corpus == number
            offset = self.bounds[number]
            document = np.searchsorted(starts, places[inside] - offset, "right") - 1
            first[inside], end[inside] = starts[document] + offset, starts[document + 1] + offset - 1
        return first, end


def pack(texts: Iterable[str], tokenizer, folder: Path, hold_out: int = HELD_OUT) -> dict:
    """Write texts as token ids into `folder`, in the splits `train` and `held_out`; return the sizes.

    One document in `hold_out` is held out (0: none), chosen by its text alone. Documents of fewer than two tokens are
    left out and counted: they make no pair, and there is little to learn from them. The record that open_packed reads
    is written last, so that an unfinished folder is not taken for whole.
    """
    folder.mkdir(parents=True, exist_ok=True)
    dtype = np.uint16 if len(tokenizer) <= 2**16 else np.uint32
    counts = {"type": dtype.__name__, "left out": 0} | {split: {"pieces": 0, "documents": 0} for split in SPLITS}
    texts = iter(texts)
    with all_cores(), ExitStack() as open_files:
        names = [f"{split}.{content}" for split in SPLITS for content in ("ids", "starts")]
        files = {name: open_files.enter_context(open(folder / name, "wb")) for name in names}
        for split in SPLITS:
            files[f"{split}.starts"].write(np.int64(0).tobytes())
        while batch := list(islice(texts, 500)):
            encoded = encode_texts(tokenizer, batch)["input_ids"]
            for text, ids in zip(batch, encoded, strict=True):
                if len(ids) < 2:
                    counts["left out"] += 1
                    continue
                split = SPLITS[bool(hold_out) and hash_text(text) % hold_out == 0]
                files[f"{split}.ids"].write(np.array([*ids, tokenizer.sep_token_id], dtype=dtype).tobytes())
                counts[split]["pieces"] += len(ids) + 1
                counts[split]["documents"] += 1
                files[f"{split}.starts"].write(np.int64(counts[split]["pieces"]).tobytes())
    artefacts.write_record(folder, counts)
    return counts


def hash_text(text: str) -> int:
    """Return a 32-bit hash of a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big")


def open_packed(folder: Path, split: str = "train", name: str = "") -> Tokens:
    """Map one split of packed texts into memory; messages call it `name`, by default the folder's.

    Raises StudyError if it holds no document, or if one of its files is missing or not as long as the record says.
    """
    record = artefacts.read_record(folder)
    if record is None:
        raise StudyError(f"{show_path(folder)}: no packed text in it, or one that was not finished; pack it again")
    counts, name = record[split], name or folder.name
    if not counts["documents"]:
        raise StudyError(f"{name}, {split.replace('_', ' ')}: no document; the corpus is too small")
    ids = map_array(folder / f"{split}.ids", record["type"], counts["pieces"])
    starts = map_array(folder / f"{split}.starts", "int64", counts["documents"] + 1)
    return Tokens(ids, starts, name)


def map_array(path: Path, dtype: str, length: int) -> np.memmap:
    """Map a file of packed text into memory. Raises StudyError if it is missing or of another length."""
    expected = length * np.dtype(dtype).itemsize
    size = path.stat().st_size if path.is_file() else None
    if size != expected:
        problem = "missing" if size is None else f"{size:,} bytes where {expected:,} were written"
        raise StudyError(f"{show_path(path)}: {problem}; delete the folder {show_path(path.parent)} and run again")
    return np.memmap(path, dtype=dtype, mode="r")
