"""Tagging: sentences to rows of pieces with the labels of their words, and predictions back to one tag a word."""

from collections.abc import Sequence

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Sentence
from lib.finetuning.examples import Batch, Example, Frame, pad
from lib.finetuning.settings import FinetuningSettings
from lib.modeling import heads
from lib.vocabularies.words import pieces_of_words

LETTERS = {"BIO": "BI", "BIOUL": "BILU", "IO": "I"}  # of a scheme, besides O
PLAIN = {"U": "B", "L": "I"}  # letters of BIOUL -> those of BIO


def respell(tags: Sequence[str], scheme: str) -> list[str]:
    """BIO tags in another scheme; an I without a B before it begins an entity, as conlleval has it.

    BIOUL: B, I and L (last) for entities of several words, U for those of one (Gu et al. 2021, 2.4.2, has U and L the
    other way round); Lee et al. 2020 call it BIOES. IO: neighbours of one type become one entity.
    """
    out = []
    for place, tag in enumerate(tags):
        letter, kind = split_tag(tag)
        if letter != "O":
            begins = letter == "B" or place == 0 or split_tag(tags[place - 1]) not in (("B", kind), ("I", kind))
            ends = place + 1 == len(tags) or split_tag(tags[place + 1]) != ("I", kind)
            letter = {"BIO": "IB"[begins], "IO": "I", "BIOUL": ("IL"[ends], "BU"[ends])[begins]}[scheme]
        out.append(join_tag(letter, kind))
    return out


def to_bio(tags: Sequence[str]) -> list[str]:
    """Tags of any scheme, as predicted, in BIO's letters."""
    return [join_tag(PLAIN.get(letter, letter), kind) for letter, kind in map(split_tag, tags)]


def split_tag(tag: str) -> tuple[str, str]:
    """Letter and type, which may be empty."""
    letter, _, kind = tag.partition("-")
    return letter, kind


def join_tag(letter: str, kind: str) -> str:
    return f"{letter}-{kind}" if kind else letter


class Tagging:
    """The task of named entities and of PICO elements: to label the words of a dataset, under a scheme.

    Elements that overlap have a layer of labels each: a word has one label in every layer. Other sets have one layer.
    """

    def __init__(
        self,
        dataset: Dataset,
        settings: FinetuningSettings,
        tokenizer: PreTrainedTokenizerBase,
        train: Sequence[Sentence],
        max_length: int,
    ):
        self.settings, self.tokenizer, self.frame, self.max_length = settings, tokenizer, Frame(tokenizer), max_length
        tags = {part for sentence in train for tag in sentence.tags for part in tag.split("|")} - {"O"}
        kinds = sorted({split_tag(tag)[1] for tag in tags})
        self.overlapping = dataset.overlapping
        self.cut = 0  # sentences with a word longer than a row, of those encoded last
        self.layers = kinds if dataset.overlapping else [""]
        kinds = [""] if dataset.overlapping else kinds
        self.labels = ["O", *(join_tag(letter, kind) for kind in kinds for letter in LETTERS[settings.scheme])]
        self.numbers = {label: number for number, label in enumerate(self.labels)}

    def build(self, encoder: PreTrainedModel, train: Sequence[Sentence]) -> heads.Tagger:
        return heads.Tagger(encoder, len(self.layers), len(self.labels), self.settings.head, self.settings.dropout)

    def label(self, sentence: Sentence) -> list[list[int]]:
        """For each word the number of its label in each layer; a type that training lacks is none (O)."""
        if self.overlapping:
            held = [tag.split("|") for tag in sentence.tags]
            layers = [["I" if f"I-{kind}" in tags else "O" for tags in held] for kind in self.layers]
        else:
            layers = [sentence.tags]
        spelt = [[self.numbers.get(tag, 0) for tag in respell(tags, self.settings.scheme)] for tags in layers]
        return [list(word) for word in zip(*spelt, strict=True)]

    def encode(self, sentences: Sequence[Sentence]) -> list[Example]:
        """Each sentence in as few rows of at most `max_length` pieces as it takes, cut between words.

        Every word is in exactly one row, so no gold tag is lost to the length limit. Of a word that alone is longer
        than a row, the first pieces are kept. `places`: of the words' first pieces; `target`: their labels.
        """
        pieces_of = pieces_of_words(self.tokenizer, (word for s in sentences for word in s.words))
        room = self.frame.room(self.max_length, pair=False)
        self.cut = sum(any(len(pieces_of[word]) > room for word in s.words) for s in sentences)
        rows = []
        for number, sentence in enumerate(sentences):
            parts: list[tuple[list, list, list]] = [([], [], [])]
            for word, label in zip(sentence.words, self.label(sentence), strict=True):
                of_word = pieces_of[word][:room]
                if len(parts[-1][0]) + len(of_word) > room:
                    parts.append(([], [], []))
                pieces, places, labels = parts[-1]
                places.append(len(pieces) + 1)
                labels.append(label)
                pieces += of_word
            rows += [Example(number, *self.frame.join(pieces), places, labels) for pieces, places, labels in parts]
        return rows

    def collate(self, examples: Sequence[Example]) -> Batch:
        """A padded batch for heads.Tagger."""
        words = max(len(example.places) for example in examples)
        places = np.zeros((len(examples), words), dtype=np.int64)
        there = np.zeros_like(places, dtype=bool)
        labels = np.zeros((len(examples), words, len(self.layers)), dtype=np.int64)
        for row, example in enumerate(examples):
            n = len(example.places)
            places[row, :n], there[row, :n], labels[row, :n] = example.places, True, example.target
        extra = {"places": places, "words": there, "labels": labels}
        return pad(examples, self.frame.padding) | {name: torch.from_numpy(array) for name, array in extra.items()}

    def read(self, found: torch.Tensor, examples: Sequence[Example]) -> list[list[list[int]]]:
        """Of each row the labels of its words, from what the head gives for a batch."""
        return [labels[: len(e.places)] for labels, e in zip(found.tolist(), examples, strict=True)]

    def decode(
        self, sentences: Sequence[Sentence], examples: Sequence[Example], found: Sequence[list[list[int]]]
    ) -> list[list[str]]:
        """One tag for each word of each sentence in BIO's letters, put together from the sentence's rows."""
        words: list[list[list[int]]] = [[] for _ in sentences]
        for example, labels in zip(examples, found, strict=True):
            words[example.instance] += labels
        if self.overlapping:
            return [
                ["|".join(f"I-{kind}" for kind, label in zip(self.layers, word, strict=True) if label) or "O"
                 for word in sentence]
                for sentence in words
            ]  # fmt: skip
        return [to_bio([self.labels[label] for (label,) in sentence]) for sentence in words]
