"""The special tokens of a vocabulary: their names, and what stands around one text or two."""

import json
from typing import TYPE_CHECKING, NamedTuple

from tokenizers import Tokenizer, processors

from lib.errors import StudyError

if TYPE_CHECKING:  # importing transformers takes seconds
    from transformers import PreTrainedTokenizerBase

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]  # in BERT's order, so that padding is 0


def wrap(tokenizer: Tokenizer) -> "PreTrainedTokenizerBase":
    """Wrap a trained tokenizer for transformers, with BERT's special tokens around one text or two."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **put_special(tokenizer))


def put_special(tokenizer: Tokenizer) -> dict:
    """Put BERT's special tokens around one text or two; return the arguments that describe them to transformers."""
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
    )
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    return dict(zip(names, SPECIAL, strict=True)) | {"model_input_names": inputs}


def rename_special(tokenizer: "PreTrainedTokenizerBase") -> Tokenizer:
    """Return a copy whose special tokens have the same ids, but names that no text contains.

    It is not enough to tell the tokenizer not to look for special tokens (split_special_tokens): a unigram vocabulary
    has them among its pieces, and would still find them.
    """
    content = json.loads(tokenizer.backend_tokenizer.to_str()) | {"truncation": None, "padding": None}
    names = {name: f"\0{name}" for name in tokenizer.all_special_tokens}
    model, vocabulary = content["model"], content["model"]["vocab"]
    if isinstance(vocabulary, dict):
        model["vocab"] = {names.get(token, token): token_id for token, token_id in vocabulary.items()}
    else:
        model["vocab"] = [[names.get(token, token), score] for token, score in vocabulary]
    if "unk_token" in model:
        model["unk_token"] = names.get(model["unk_token"], model["unk_token"])
    for added_token in content["added_tokens"]:
        added_token["content"] = names.get(added_token["content"], added_token["content"])
    return Tokenizer.from_str(json.dumps(content))


class Frame(NamedTuple):
    """The special tokens before, between and after the texts of a sequence.

    `place`: the position of the special token that represents a whole sequence, normally [CLS]; counted from the end if
    negative.
    """

    before: list[int]
    between: list[int]
    after: list[int]
    place: int
    padding: int

    def capacity(self, max_length: int, pair: bool) -> int:
        """Return how many text tokens fit."""
        return max_length - len(self.before) - len(self.after) - (len(self.between) if pair else 0)

    def join(self, first: list[int], second: list[int] | None = None) -> tuple[list[int], int]:
        """Return the sequence and the position where its second text begins (0 if there is none)."""
        if second is None:
            return [*self.before, *first, *self.after], 0
        prefix = [*self.before, *first, *self.between]
        return [*prefix, *second, *self.after], len(prefix)

    def locate(self, tokens: list[int]) -> int:
        """Return the position of the token that represents a sequence."""
        return self.place % len(tokens)


def find_frame(tokenizer: "PreTrainedTokenizerBase", title: str = "") -> Frame:
    """Return what a tokenizer puts around one text or two; BERT's [CLS] and [SEP] if it puts nothing.

    A text is read at [CLS], or at the first special token if there is none, as in T5. Raises StudyError if there is no
    special token at all.
    """
    encoded = tokenizer("a", "a")
    ids, owners = encoded["input_ids"], encoded.sequence_ids()
    first_text = [place for place, owner in enumerate(owners) if owner == 0]
    second_text = [place for place, owner in enumerate(owners) if owner == 1]
    before = ids[: first_text[0]]
    between = ids[first_text[-1] + 1 : second_text[0]]
    after = ids[second_text[-1] + 1 :]
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    if not before and not after:
        if cls is None or sep is None:
            raise StudyError(
                f"{title}: its tokenizer puts no special token around a text; set cls_token and sep_token in "
                "tokenizer_config.json"
            )
        before, between, after = [cls], [sep], [sep]
    places = [*range(len(before)), *range(-len(after), 0)]
    special_ids = [*before, *after]
    place = places[special_ids.index(cls)] if cls in special_ids else places[0]
    padding = tokenizer.pad_token_id or 0  # any token will do, because padding is masked
    return Frame(before, between, after, place, padding)
