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
    """For each token id, whether the token continues a word.

    WordPiece marks that (##); unigram and BPE mark where a word begins, and then letters and digits without that mark
    continue one, while punctuation stands alone.
    """
    tokens = [token for token, _ in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])]
    if any(MARKS.sub("", token) != token and not token.startswith("##") for token in tokens):
        special = set(tokenizer.all_special_tokens)
        return [MARKS.sub("", token) == token and token.isalnum() and token not in special for token in tokens]
    return [token.startswith("##") for token in tokens]
