"""How much of an encoder's attention from one word of a sentence lies on each of its words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from lib.errors import StudyError
from lib.modeling.loading import Encoder
from lib.vocabularies.loading import MARKS, find_frame
from lib.vocabularies.words import tokens_of_words

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PENULTIMATE = -2  # layer


def lay_out(words: Sequence[str], tokenizer: "PreTrainedTokenizerBase") -> tuple[list[int], list[int]]:
    """A sequence of tokens with the special ones around it, and the number in `words` of the word that each belongs to.

    `words` begins with [CLS] and ends with [SEP], which stand for what the tokenizer puts before and after a text.
    """
    tokens_of, frame = tokens_of_words(tokenizer, words[1:-1]), find_frame(tokenizer)
    tokens = [frame.before, *(tokens_of[word] for word in words[1:-1]), frame.after]
    owners = [number for number, of_word in enumerate(tokens) for _ in of_word]
    return [token for of_word in tokens for token in of_word], owners


def cut_words(words: Sequence[str], tokenizer: "PreTrainedTokenizerBase") -> list[list[str]]:
    """The tokens of each word of `lay_out`, without the marks of where a word begins or goes on."""
    sequence, owners = lay_out(words, tokenizer)
    tokens: list[list[str]] = [[] for _ in words]
    for token, owner in zip(tokenizer.convert_ids_to_tokens(sequence), owners, strict=True):
        tokens[owner].append(MARKS.sub("", token))
    return tokens


def sum_by_word(attention: Sequence[float], owners: Sequence[int]) -> list[float]:
    """The attention on each word: the sum over its tokens. `owners`: as from `lay_out`."""
    return np.bincount(owners, weights=attention).tolist()


def measure(encoder: Encoder, words: Sequence[str], asked: str) -> list[float]:
    """How much of the attention from a word's first token lies on each word, summing to one; `words`: as of `lay_out`.

    Mean over the heads of the penultimate layer (Gu et al. 2021, figure 3). StudyError for a model with one layer, and
    for more tokens than it takes.
    """
    body = encoder.body(dropout=0.0).eval()
    if body.config.num_hidden_layers < 2:
        raise StudyError(f"{encoder.title}: it has one layer, and none is the last but one")
    body.set_attn_implementation("eager")  # the others do not give their weights
    sequence, owners = lay_out(words, encoder.tokenizer)
    if len(sequence) > encoder.max_length:
        raise StudyError(f"{encoder.title}: it takes {encoder.max_length} tokens, and the sentence has {len(sequence)}")
    with torch.inference_mode():
        layers = body(input_ids=torch.tensor([sequence]), output_attentions=True).attentions
    weights = layers[PENULTIMATE][0].mean(0)[owners.index(words.index(asked))]
    return sum_by_word(weights.tolist(), owners)
