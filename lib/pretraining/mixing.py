"""Pretraining on a small special corpus (the core) and a large general one (the satellite): two ways to mix them.

Wada et al. 2020, section 2.2 and Figure 3. The original implementation cuts all text into files, each of which has as
small a part of the core as the whole has, and pairs segments within a file. Simultaneous pretraining cuts core and
satellite into chunks of one size, and makes a file of one of each: the chunks of the core come again and again, with
ever new partners.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lib.pretraining.blocks import Blocks, Files, Layout, permute
from lib.pretraining.masking import REPEAT, REST, Masking, make_keys
from lib.pretraining.tokens import Text, Tokens

FILE_PIECES = 1_000_000  # of a file: about 5 MB of English; the paper does not say what size theirs had
METHODS = ("split files", "simultaneous")
KINDS = ("core with core", "core with satellite", "satellite with satellite")  # by the number of satellite documents
COUNTED_STEP = 4096  # rows counted at once


@dataclass(frozen=True)
class Simultaneous:
    """Files of a chunk of the core and one of the satellite; in an epoch every chunk of the satellite comes once.

    The core's chunks come in a new order at each repeat. What does not fill a chunk is left out, another part of the
    text each time. A random segment comes from either chunk of the file with the same chance.
    """

    text: Text  # the core first
    core: int  # its pieces
    file_pieces: int
    seed: int

    def chunks(self, width: int) -> tuple[int, int, int]:
        """Blocks in a chunk; chunks of the core; chunks of the satellite."""
        core, satellite = self.core // width, (len(self.text) - self.core) // width
        if not core or not satellite:
            return 0, 0, 0
        core_chunks = -(-core // max(1, self.file_pieces // (2 * width)))
        size = min(core // core_chunks, satellite)
        return size, core // size, satellite // size

    def count(self, width: int) -> int:
        size, _, satellites = self.chunks(width)
        return 2 * size * satellites

    def find_chunks(self, epochs: np.ndarray, files: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
        """The places where the chunk of the core and that of the satellite begin in some files of some epochs."""
        size, core_chunks, satellite_chunks = self.chunks(width)
        repeats, turns = np.divmod(epochs * satellite_chunks + files, core_chunks)
        turns = permute(turns, core_chunks, make_keys(self.seed, REPEAT, repeats))
        core = turns * size + self.choose_rest(repeats, 0, self.core // width - core_chunks * size)
        blocks = (len(self.text) - self.core) // width
        satellite = files * size + self.choose_rest(epochs, 1, blocks - satellite_chunks * size)
        return core * width, self.core + satellite * width

    def choose_rest(self, times: np.ndarray, side: int, rest: int) -> np.ndarray:
        """How many of the blocks that fill no chunk are left out at the beginning, the others at the end."""
        return (make_keys(self.seed, REST, side, times) % np.uint64(rest + 1)).astype(np.int64)

    def place(self, epochs: np.ndarray, blocks: np.ndarray, width: int) -> np.ndarray:
        size = self.chunks(width)[0]
        files, number = np.divmod(blocks, 2 * size)
        core, satellite = self.find_chunks(epochs, files, width)
        return np.where(number < size, core, satellite) + number % size * width

    def pool(self, epochs: np.ndarray, blocks: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
        size = self.chunks(width)[0]
        low = np.stack(self.find_chunks(epochs, blocks // (2 * size), width), axis=1)
        return low, low + size * width


def arrange(
    method: str,
    core: Sequence[Tokens],
    satellites: Sequence[Tokens],
    *,
    seed: int = 0,
    file_pieces: int = FILE_PIECES,
) -> Layout:
    """Lay corpora out for Blocks: "as they are", "split files" or "simultaneous". As they are, all are satellites."""
    text = Text([*core, *satellites])
    pieces = sum(len(corpus.ids) for corpus in core)
    match method:
        case "as they are":
            return Files(text)
        case "split files":
            return Files(text, (pieces,), max(1, round(len(text) / file_pieces)))
        case "simultaneous":
            return Simultaneous(text, pieces, file_pieces, seed)
    raise ValueError(method)


def count_instances(
    layout: Layout, tokenizer, *, core: int, instances: int, length: int, duplicates: int | None
) -> dict[str, float]:
    """What the first instances of next-sentence prediction are made of; `core`: pieces of the text's core.

    The share of core text in all pieces, how often a piece of each side is seen on average, and the random pairs: how
    many, and how many distinct pairs of documents they are, by the sides that the two come from.
    """
    blocks = Blocks(
        layout, tokenizer, length=length, batch_size=COUNTED_STEP, steps=-(-instances // COUNTED_STEP),
        masking=Masking("word-piece", 0.15), pairs="next sentence", duplicates=duplicates,
    )  # fmt: skip
    seen, pairs, kinds = np.zeros(2, np.int64), [], []
    for step in range(len(blocks)):
        rows = blocks.list_rows(step)
        segments = blocks.cut(*blocks.order(rows[rows < instances]))
        both = np.stack([segments.first, segments.second])
        lengths = np.stack([segments.first_length, segments.second_length])
        seen += [lengths[both < core].sum(), lengths[both >= core].sum()]
        random = both[:, segments.pair == 1]
        pairs.append(make_keys(*(layout.text.find_documents(places)[0] for places in random)))
        kinds.append((random >= core).sum(axis=0))
    distinct, first = np.unique(np.concatenate(pairs), return_index=True)
    of_kind = np.bincount(np.concatenate(kinds)[first], minlength=3)
    return {
        "instances": instances,
        "core share": seen[0] / seen.sum(),
        "core seen": seen[0] / core,
        "satellite seen": seen[1] / (len(layout.text) - core),
        "random pairs": sum(map(len, pairs)),
        "distinct pairs": len(distinct),
        **dict(zip(KINDS, of_kind.tolist(), strict=True)),
    }
