"""Pretraining on a small special corpus (the core) and a large general one (the satellite): two ways to mix them.

Wada et al. 2020, section 2.2 and Figure 3. The original implementation splits all text into files, in each of which the
core has the same small share as in the whole, and pairs segments within a file. Simultaneous pretraining splits core
and satellite into chunks of one size and makes a file from one of each: the core's chunks repeat, each time with new
partners.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lib.pretraining.random_numbers import REPEAT, REST, make_keys, permute
from lib.pretraining.tokens import Text, Tokens

FILE_TOKENS = 1_000_000  # tokens of a file, about 5 MB of English; the paper does not give the size of its files
METHODS = ("split files", "simultaneous")


@dataclass(frozen=True)
class CorpusFiles:
    """All of a text once an epoch, in a number of files; a random segment comes from the file of its block.

    Each file has an equal part of each side of the text: of the whole text, or of its core and its satellites. Methods
    take and return arrays with one entry per sequence; `width` is the number of tokens of a sequence.
    """

    text: Text
    sides: tuple[int, ...] = ()  # the places, in order, where the text's further sides begin
    files: int = 1

    @property
    def bounds(self) -> np.ndarray:
        return np.array([0, *self.sides, len(self.text)])

    def count(self, width: int) -> int:
        """Return the number of blocks in an epoch."""
        return int((np.diff(self.bounds) // width).sum())

    def place(self, epochs: np.ndarray, blocks: np.ndarray, width: int) -> np.ndarray:
        """Return the place of each block's first token."""
        blocks_before = np.cumsum([0, *(np.diff(self.bounds) // width)])
        side = np.searchsorted(blocks_before, blocks, "right") - 1
        return self.bounds[side] + (blocks - blocks_before[side]) * width

    def pool(self, epochs: np.ndarray, blocks: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Return where the stretches for a block's random segment begin and end; each (sequences, stretches)."""
        places = self.place(epochs, blocks, width)
        begins, lengths = self.bounds[:-1], np.diff(self.bounds)
        side = np.searchsorted(self.bounds, places, "right") - 1
        offset = places - begins[side]
        file = (offset * self.files // lengths[side])[:, None]
        low = begins + lengths * file // self.files
        high = begins + lengths * (file + 1) // self.files
        return low, high


@dataclass(frozen=True)
class Simultaneous:
    """Files of one chunk of the core and one of the satellite; every chunk of the satellite occurs once an epoch.

    The core's chunks come in a new order at each repeat. Text that does not fill a chunk is left out, a different part
    each time. A random segment comes from either chunk of its file with equal chance. Methods as in CorpusFiles.
    """

    text: Text  # the core comes first
    core: int  # its number of tokens
    file_tokens: int
    seed: int

    def chunks(self, width: int) -> tuple[int, int, int]:
        """Return the blocks in a chunk, the chunks of the core and the chunks of the satellite."""
        core, satellite = self.core // width, (len(self.text) - self.core) // width
        if not core or not satellite:
            return 0, 0, 0
        core_chunks = -(-core // max(1, self.file_tokens // (2 * width)))
        size = min(core // core_chunks, satellite)
        return size, core // size, satellite // size

    def count(self, width: int) -> int:
        size, _, satellite_chunks = self.chunks(width)
        return 2 * size * satellite_chunks

    def find_chunks(self, epochs: np.ndarray, files: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the places where the chunks of core and satellite begin in some files of some epochs."""
        size, core_chunks, satellite_chunks = self.chunks(width)
        files_before = epochs * satellite_chunks + files
        repeats, turns = np.divmod(files_before, core_chunks)
        core_chunk = permute(turns, core_chunks, make_keys(self.seed, REPEAT, repeats))
        core_blocks = self.core // width
        satellite_blocks = (len(self.text) - self.core) // width
        # Blocks that fill no chunk: some are left out at the beginning, the others at the end.
        core_skipped = make_keys(self.seed, REST, 0, repeats) % np.uint64(core_blocks % size + 1)
        satellite_skipped = make_keys(self.seed, REST, 1, epochs) % np.uint64(satellite_blocks % size + 1)
        core_block = core_chunk * size + core_skipped.astype(np.int64)
        satellite_block = files * size + satellite_skipped.astype(np.int64)
        return core_block * width, self.core + satellite_block * width

    def place(self, epochs: np.ndarray, blocks: np.ndarray, width: int) -> np.ndarray:
        size = self.chunks(width)[0]
        files, block_in_file = np.divmod(blocks, 2 * size)
        core, satellite = self.find_chunks(epochs, files, width)
        return np.where(block_in_file < size, core, satellite) + block_in_file % size * width

    def pool(self, epochs: np.ndarray, blocks: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
        size = self.chunks(width)[0]
        low = np.stack(self.find_chunks(epochs, blocks // (2 * size), width), axis=1)
        return low, low + size * width


Layout = CorpusFiles | Simultaneous  # the stretches of a text in an epoch, and the pools of random segments


def arrange(
    method: str,
    core: Sequence[Tokens],
    satellites: Sequence[Tokens],
    *,
    seed: int = 0,
    file_tokens: int = FILE_TOKENS,
) -> Layout:
    """Lay corpora out for Blocks: "as they are" (all are satellites), "split files" or "simultaneous"."""
    text = Text([*core, *satellites])
    core_tokens = sum(len(corpus.ids) for corpus in core)
    match method:
        case "as they are":
            return CorpusFiles(text)
        case "split files":
            return CorpusFiles(text, (core_tokens,), max(1, round(len(text) / file_tokens)))
        case "simultaneous":
            return Simultaneous(text, core_tokens, file_tokens, seed)
    raise ValueError(method)
