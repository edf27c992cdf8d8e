"""What a vocabulary makes of words and texts: the tokens that they are cut into, and how many."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tokenizers import Tokenizer

from lib.vocabularies.loading import MARKS
from lib.vocabularies.training import all_cores

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

WORD = re.compile(r"[^\W\d_]{3,}")  # of letters; shorter ones are mostly symbols and units
TEXTS_TOGETHER = 2_000  # counted at once


def cut(tokenizer: "PreTrainedTokenizerBase", term: str) -> list[str]:
    """The tokens of a term, without the marks of where a word begins or goes on: `nal`, `oxo`, `ne`."""
    return [bare for token in tokenizer.tokenize(term) if (bare := MARKS.sub("", token))]


def tokens_of_words(tokenizer: "PreTrainedTokenizerBase", words: Iterable[str]) -> dict[str, list[int]]:
    """Token ids of each distinct word, without special ones; a word of no known token becomes the unknown token."""
    distinct = sorted(set(words))
    encoded = tokenizer(distinct, add_special_tokens=False)["input_ids"] if distinct else []
    return {w: ids or [tokenizer.unk_token_id] for w, ids in zip(distinct, encoded, strict=True)}


def count_by_word(tokenizer: "PreTrainedTokenizerBase", words: Sequence[str]) -> list[int]:
    """The number of tokens of each word, at least one; 1: the vocabulary keeps it whole."""
    found = tokens_of_words(tokenizer, words)
    return [len(found[word]) for word in words]


def count_tokens(
    tokenizer: "PreTrainedTokenizerBase", texts: Sequence[str], strip_accents: bool | None = None
) -> list[int]:
    """The number of tokens of each text, on every core; special ones do not count, and an empty text has none.

    `strip_accents`: of BERT's normalizer, whatever the tokenizer has, which stays as it is.
    """
    backend, counts = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str()), []
    if strip_accents is not None:
        backend.normalizer.strip_accents = strip_accents
    with all_cores():
        for start in range(0, len(texts), TEXTS_TOGETHER):
            batch = texts[start : start + TEXTS_TOGETHER]
            counts += [len(encoded.ids) for encoded in backend.encode_batch_fast(batch, add_special_tokens=False)]
    return counts


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
