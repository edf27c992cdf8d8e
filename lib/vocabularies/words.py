"""How a vocabulary tokenizes words and texts: into which tokens, and how many."""

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from lib.errors import StudyError
from lib.vocabularies.learning import all_cores
from lib.vocabularies.special_tokens import rename_special
from lib.vocabularies.tokenization import MARKS, encode_texts

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

WORD = re.compile(r"[^\W\d_]{3,}")  # runs of letters; shorter ones are mostly symbols and units
WITHIN_WORDS = {*string.ascii_letters, *string.punctuation} - {*"'<=>"}  # for ALBERT, which leaves out these four
TEXTS_TOGETHER = 2_000  # texts counted at once
MOST_UNKNOWN = 0.01  # the largest share of unknown tokens in a vocabulary's own text
# The largest share of a dataset's words that may be unknown. Measured: 0.0002 for published vocabularies of its
# language, 0.11 for one of 400 tokens, 0.9 for one of another language.
KNOWN_TOO_LITTLE = 0.25


def cut_term(tokenizer: "PreTrainedTokenizerBase", term: str) -> list[str]:
    """Return the tokens of a term without the marks of word starts and continuations: `nal`, `oxo`, `ne`."""
    return [bare for token in tokenizer.tokenize(term) if (bare := MARKS.sub("", token))]


def tokens_of_words(tokenizer: "PreTrainedTokenizerBase", words: Iterable[str]) -> dict[str, list[int]]:
    """Return the token ids of each distinct word, without special tokens.

    A word without any token becomes the unknown token, or token 0 if the vocabulary has none.
    """
    distinct = sorted(set(words))
    encoded = encode_texts(tokenizer, distinct)["input_ids"]
    return {word: ids or [tokenizer.unk_token_id or 0] for word, ids in zip(distinct, encoded, strict=True)}


def count_by_word(tokenizer: "PreTrainedTokenizerBase", words: Sequence[str]) -> list[int]:
    """Return the number of tokens of each word, at least one; 1 means that the vocabulary keeps it whole."""
    token_ids = tokens_of_words(tokenizer, words)
    return [len(token_ids[word]) for word in words]


def measure_words(tokenizer: "PreTrainedTokenizerBase", texts: Iterable[str], name: str) -> tuple[float, float]:
    """Return the share of words in some texts that are unknown, and the share cut into three tokens or more.

    Words are separated by spaces. A word is unknown if it has an unknown token, or no token at all. Raises StudyError
    if the share of unknown words exceeds KNOWN_TOO_LITTLE.
    """
    words = Counter(word for text in texts for word in text.split())
    tokens = encode_texts(tokenizer, list(words))["input_ids"]
    total = max(1, words.total())
    counts_and_ids = list(zip(words.values(), tokens, strict=True))
    unknown_share = sum(n for n, ids in counts_and_ids if not ids or tokenizer.unk_token_id in ids) / total
    cut_share = sum(n for n, ids in counts_and_ids if len(ids) > 2) / total
    if unknown_share > KNOWN_TOO_LITTLE:
        raise StudyError(
            f"{name}: {unknown_share:.0%} of its words hold a token that the vocabulary does not know: take an encoder "
            "of its language, or set the casing of its tokenizer right"
        )
    return unknown_share, cut_share


def count_tokens(
    tokenizer: "PreTrainedTokenizerBase", texts: Sequence[str], strip_accents: bool | None = None
) -> list[int]:
    """Count the tokens of each text, on every core; special tokens do not count, and an empty text has none.

    `strip_accents`: used in place of the setting of BERT's normalizer; the tokenizer itself stays as it is.
    """
    backend, counts = rename_special(tokenizer), []
    if strip_accents is not None:
        backend.normalizer.strip_accents = strip_accents
    with all_cores():
        for start in range(0, len(texts), TEXTS_TOGETHER):
            batch = texts[start : start + TEXTS_TOGETHER]
            counts += [len(encoded.ids) for encoded in backend.encode_batch_fast(batch, add_special_tokens=False)]
    return counts


def count_unknown(tokenizer: "PreTrainedTokenizerBase", texts: Iterable[str]) -> tuple[float, Counter[str]]:
    """Return the share of unknown tokens in some texts, and counts of the letters in them that have no token.

    Letters are as the tokenizer sees them: in lower case if it lower-cases.
    """
    texts, vocabulary, normalizer = iter(texts), tokenizer.get_vocab(), tokenizer.backend_tokenizer.normalizer
    token_count, unknown_count, letters = 0, 0, Counter()
    with all_cores():
        while batch := list(islice(texts, TEXTS_TOGETHER)):
            encoded = encode_texts(tokenizer, batch, offsets=True)
            for text, ids, spans in zip(batch, encoded["input_ids"], encoded["offset_mapping"], strict=True):
                token_count += len(ids)
                for start, end in (span for id, span in zip(ids, spans, strict=True) if id == tokenizer.unk_token_id):
                    unknown_count += 1
                    word = text[start:end]
                    letters.update(normalizer.normalize_str(word) if normalizer else word)
    missing_letters = {
        letter: count for letter, count in letters.items() if letter not in vocabulary and not letter.isspace()
    }
    return unknown_count / max(1, token_count), Counter(missing_letters)


def check_unknown(tokenizer: "PreTrainedTokenizerBase", texts: Iterable[str], name: str) -> float:
    """Return the share of unknown tokens in a vocabulary's own text. Raises StudyError if it exceeds MOST_UNKNOWN."""
    share, letters = count_unknown(tokenizer, texts)
    if share > MOST_UNKNOWN:
        lacking = ", ".join(f"{letter} ({number})" for letter, number in letters.most_common(8))
        raise StudyError(
            f"{name}: {100 * share:.1f}% of the tokens of its own text are unknown, more than {MOST_UNKNOWN:.0%}; the "
            f"commonest letters that it lacks: {lacking or 'none, its words are too long'}; let it keep more letters "
            "(lib/vocabularies/learning.py), or clean its text"
        )
    return share


def continuation_flags(tokenizer: "PreTrainedTokenizerBase") -> list[bool]:
    """Return for each token id whether the token continues a word.

    WordPiece marks continuations (##); unigram and BPE mark where a word begins. Among tokens without a mark, ALBERT
    treats English letters, with or without punctuation, as a continuation; a digit or another alphabet begins a word,
    and so does a single punctuation mark (google-research/albert, create_pretraining_data.py). In BPE, letters and
    digits continue a word.
    """
    special = set(tokenizer.all_special_tokens)
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    tokens = ["" if token in special else token for token, _ in vocabulary]
    match type(tokenizer.backend_tokenizer.model).__name__:
        case "Unigram":
            return [goes_on_in_albert(token) for token in tokens]
        case "BPE":
            return [MARKS.sub("", token) == token and token.isalnum() for token in tokens]
    return [token.startswith("##") for token in tokens]


def goes_on_in_albert(token: str) -> bool:
    """Return whether ALBERT treats a SentencePiece token as a continuation; one with the word-start mark is not."""
    return WITHIN_WORDS.issuperset(token) and (len(token) > 1 or token.isalpha())
