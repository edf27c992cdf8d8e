"""What a vocabulary makes of words."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lib.vocabularies.loading import MARKS

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def tokens_of_words(tokenizer: "PreTrainedTokenizerBase", words: Iterable[str]) -> dict[str, list[int]]:
    """Token ids of each distinct word, without special ones; a word of no known token becomes the unknown token."""
    distinct = sorted(set(words))
    encoded = tokenizer(distinct, add_special_tokens=False)["input_ids"] if distinct else []
    return {w: ids or [tokenizer.unk_token_id] for w, ids in zip(distinct, encoded, strict=True)}


def continuation_flags(tokenizer: "PreTrainedTokenizerBase") -> list[bool]:
    """For each piece id, whether the piece continues a word.

    WordPiece marks that (##); unigram and BPE mark where a word begins, and then letters and digits without that mark
    continue one, while punctuation stands alone.
    """
    pieces = [piece for piece, _ in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])]
    if any(MARKS.sub("", piece) != piece and not piece.startswith("##") for piece in pieces):
        special = set(tokenizer.all_special_tokens)
        return [MARKS.sub("", piece) == piece and piece.isalnum() and piece not in special for piece in pieces]
    return [piece.startswith("##") for piece in pieces]
