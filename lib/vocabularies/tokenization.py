"""Vocabularies as tokenizers, published or trained here, with their casing checked."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lib import provenance
from lib.errors import StudyError
from lib.places import show_path
from lib.vocabularies.special_tokens import SPECIAL, rename_special

if TYPE_CHECKING:  # importing transformers takes seconds, and the graph needs only VERSION
    from transformers import PreTrainedTokenizerBase

MARKS = re.compile("^(##|\u2581|\u0120)")  # WordPiece: continuation; SentencePiece and byte-level BPE: word start

CASED = 0.002  # share of tokens with capitals; published uncased vocabularies have 0.00004 or less, cased ones 0.2


def load_vocabulary(path: Path, cased: bool | None = None, language: str = "en") -> "PreTrainedTokenizerBase":
    """Load the tokenizer in a folder, or BERT's over a file of one token a line, for which `cased` must be given.

    A Japanese tokenizer reads words already cut (lib/vocabularies/japanese.py). Raises StudyError for a file without
    `cased`, and if the tokenizer's casing does not fit the vocabulary.
    """
    if path.is_dir():
        tokenizer = load_whole(path, show_path(path))
    elif cased is None:
        raise StudyError(f"{show_path(path)}: a list of tokens; say whether it is cased")
    else:
        tokens = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        tokenizer = load_wordpiece({token: number for number, token in enumerate(tokens)}, cased, language)
    check_casing(tokenizer, show_path(path))
    return tokenizer


def load_whole(source: Path | str, title: str, **options) -> "PreTrainedTokenizerBase":
    """Load the tokenizer of a folder or of a name on the hub; of BertJapaneseTokenizer, the part after MeCab.

    Raises StudyError if its words would differ from the study's.
    """
    from transformers import AutoTokenizer, BertJapaneseTokenizer

    tokenizer = AutoTokenizer.from_pretrained(source, **options)
    if not isinstance(tokenizer, BertJapaneseTokenizer):
        return tokenizer
    from lib.vocabularies.japanese import take_words

    return take_words(tokenizer, title)


def load_wordpiece(vocabulary: dict[str, int], cased: bool, language: str = "en") -> "PreTrainedTokenizerBase":
    """Build BERT's tokenizer from tokens with their ids; for Japanese, one of MeCab's words."""
    if language == "ja":
        from lib.vocabularies.japanese import JapaneseTokenizer

        return JapaneseTokenizer(vocabulary, cased)
    from transformers import BertTokenizer

    return BertTokenizer(vocab=vocabulary, do_lower_case=not cased, strip_accents=None)


def fingerprint_tokenizer(tokenizer: "PreTrainedTokenizerBase") -> str:
    """Return a hash of all that determines how a text is tokenized, wherever the vocabulary came from."""
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    return provenance.fingerprint({k: v for k, v in content.items() if k not in ("truncation", "padding")})


def encode_texts(tokenizer: "PreTrainedTokenizerBase", texts: Sequence[str], offsets: bool = False) -> dict[str, list]:
    """Return `input_ids` of each text without special tokens; with `offsets` also `offset_mapping`, in characters.

    Special tokens written in a text are read as text: [PAD] may stand for peripheral arterial disease.
    """
    if not texts:
        return {"input_ids": [], "offset_mapping": []}
    encoded = tokenizer(
        list(texts), add_special_tokens=False, return_offsets_mapping=offsets, return_attention_mask=False,
        return_token_type_ids=False, verbose=False,
    ).data  # fmt: skip
    special_ids = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    unknown_token = tokenizer.unk_token or SPECIAL[1]  # looked for in the text, because its id may stand for any word
    text_numbers = [
        number
        for number, (text, ids) in enumerate(zip(texts, encoded["input_ids"], strict=True))
        if unknown_token in text or not special_ids.isdisjoint(ids)
    ]
    if text_numbers:
        encodings = rename_special(tokenizer).encode_batch([texts[i] for i in text_numbers], add_special_tokens=False)
        for number, encoding in zip(text_numbers, encodings, strict=True):
            encoded["input_ids"][number] = encoding.ids
            if offsets:
                encoded["offset_mapping"][number] = encoding.offsets
    return encoded


def check_casing(tokenizer: "PreTrainedTokenizerBase", name: str) -> None:
    """Raise StudyError if a tokenizer lower-cases a cased vocabulary, or feeds capitals to an uncased one.

    Only tokens with English letters count. One-letter tokens do not count if there are longer ones: they are the
    alphabet, which byte-level vocabularies always contain in full.
    """
    special_tokens = set(tokenizer.all_special_tokens)
    tokens = [token for token in tokenizer.get_vocab() if token not in special_tokens and re.search("[A-Za-z]", token)]
    # without [unused1], or [CLS] if it is not declared special
    tokens = [token for token in tokens if not re.fullmatch(r"\[.+\]|<.+>", token)]
    longer_tokens = [token for token in tokens if len(MARKS.sub("", token)) > 1]
    counted = longer_tokens or tokens
    capitals = sum(re.search("[A-Z]", token) is not None for token in counted)
    normalizer = tokenizer.backend_tokenizer.normalizer
    lowercases = normalizer is not None and "abc" in normalizer.normalize_str("ABC")
    cased = capitals > CASED * len(counted)
    if lowercases and cased and longer_tokens:
        raise StudyError(
            f"{name}: the vocabulary is cased ({capitals} of {len(counted)} tokens hold capitals) but its tokenizer "
            "lower-cases: set do_lower_case to false in tokenizer_config.json, or lowercase in tokenizer.json"
        )
    if not lowercases and not cased:
        few = f"only {capitals} of {len(counted)} tokens of the vocabulary hold capitals"
        raise StudyError(
            f"{name}: {few if capitals else 'no token of the vocabulary holds a capital'}, but its tokenizer keeps "
            "them: set do_lower_case to true in tokenizer_config.json, or lowercase in tokenizer.json"
        )
