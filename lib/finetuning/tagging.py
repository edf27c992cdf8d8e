"""The tagging task: sentences to token sequences with word labels, and predictions back to one tag per word."""

from collections.abc import Sequence

import numpy as np
import torch
from transformers import PreTrainedModel

from lib.benchmarks.bio import SCHEMES, join_tag, keep_types, respell, split_tag, to_bio
from lib.benchmarks.instances import Sentence
from lib.finetuning.examples import Batch, DatasetTask, Example, pad
from lib.modeling import heads
from lib.vocabularies.words import tokens_of_words


def spell(sentences: Sequence[Sequence[str]]) -> np.ndarray:
    """Return the Unicode code points of words' letters, (sentences, words, letters), padded with 0.

    A word keeps its first heads.LETTERS letters; code points above heads.KINDS are replaced by it.
    """
    codes = np.zeros((len(sentences), max(map(len, sentences)), heads.LETTERS), dtype=np.int64)
    for i, words in enumerate(sentences):
        for j, word in enumerate(words):
            letters = [min(ord(letter), heads.KINDS) for letter in word[: heads.LETTERS]]
            codes[i, j, : len(letters)] = letters
    return codes


class Tagging(DatasetTask):
    """The task of labelling words with named entities or PICO elements, in a tagging scheme.

    If elements overlap, each type has its own layer of labels: a word has one label in every layer. Other datasets have
    one layer. `cut`: the number of sentences with a word longer than a sequence.
    """

    def list_names(self, train: Sequence[Sentence]) -> list[str]:
        """List the types of the tags, sorted; the type is empty for tags without one."""
        tags = {tag for sentence in train for tag in sentence.tags}
        if self.dataset.overlapping:
            tags = {layer_tag for tag in tags for layer_tag in tag.split("|")}
        return sorted({split_tag(tag)[1] for tag in tags - {"O"}})

    def prepare(self, train: Sequence[Sentence]) -> None:
        self.layers, kinds = [""], self.names
        if self.dataset.overlapping:
            self.layers, kinds = self.names, [""]
        self.partial = any(sentence.annotated is not None for sentence in train)
        letters = SCHEMES[self.settings.scheme]
        self.labels = ["O", *(join_tag(letter, kind) for kind in kinds for letter in letters)]
        self.numbers = {label: number for number, label in enumerate(self.labels)}

    def build(self, encoder: PreTrainedModel, train: Sequence[Sentence]) -> heads.Tagger:
        shape, settings = (len(self.layers), len(self.labels)), self.settings
        return heads.Tagger(encoder, *shape, settings.head, settings.dropout, settings.characters)

    def label(self, sentence: Sentence) -> list[list[int]]:
        """Return for each word the number of its label in each layer; types that training lacks become O."""
        if self.dataset.overlapping:
            tags_of_words = [tag.split("|") for tag in sentence.tags]
            layers = [["I" if f"I-{kind}" in tags else "O" for tags in tags_of_words] for kind in self.layers]
        else:
            layers = [sentence.tags]
        numbers_of_layers = []
        for tags in layers:
            respelt_tags = respell(tags, self.settings.scheme)
            numbers_of_layers.append([self.numbers.get(tag, 0) for tag in respelt_tags])
        return [list(numbers) for numbers in zip(*numbers_of_layers, strict=True)]

    def encode(self, sentences: Sequence[Sentence]) -> list[Example]:
        """Encode each sentence in as few sequences of at most `max_length` tokens as possible, split between words.

        Every word is in exactly one sequence, so no gold tag is lost to the length limit. A word longer than a sequence
        keeps its first tokens. `positions`: the positions of the words' first tokens; `target`: their labels.
        """
        tokens_of = tokens_of_words(self.tokenizer, (word for s in sentences for word in s.words))
        capacity = self.frame.capacity(self.max_length, pair=False)
        self.cut = sum(any(len(tokens_of[word]) > capacity for word in s.words) for s in sentences)
        sequences = []
        for number, sentence in enumerate(sentences):
            parts: list[tuple[list, list, list, list]] = [([], [], [], [])]
            for word, label in zip(sentence.words, self.label(sentence), strict=True):
                word_tokens = tokens_of[word][:capacity]
                if len(parts[-1][0]) + len(word_tokens) > capacity:
                    parts.append(([], [], [], []))
                tokens, positions, labels, words = parts[-1]
                words.append(word)
                positions.append(len(self.frame.before) + len(tokens))
                labels.append(label)
                tokens += word_tokens
            for tokens, positions, labels, words in parts:
                spellings = words if self.settings.characters else ()
                example = Example(number, *self.frame.join(tokens), positions, labels, spellings, sentence.annotated)
                sequences.append(example)
        return sequences

    def collate(self, examples: Sequence[Example]) -> Batch:
        """Return a padded batch for heads.Tagger."""
        words = max(len(example.positions) for example in examples)
        positions = np.zeros((len(examples), words), dtype=np.int64)
        mask = np.zeros_like(positions, dtype=bool)
        labels = np.zeros((len(examples), words, len(self.layers)), dtype=np.int64)
        for i, example in enumerate(examples):
            count = len(example.positions)
            positions[i, :count] = example.positions
            mask[i, :count] = True
            labels[i, :count] = example.target
        arrays = {"positions": positions, "words": mask, "labels": labels}
        if self.settings.characters:
            arrays["letters"] = spell([example.words for example in examples])
        if self.partial:
            arrays["possible"] = self.find_possible(examples, labels)
        return pad(examples, self.frame.padding) | {name: torch.from_numpy(array) for name, array in arrays.items()}

    def join_layers(self, labels: Sequence[int]) -> str:
        """Return the tag of a word from its labels in all layers, such as I-Population|I-Outcome."""
        tags = [f"I-{kind}" for kind, label in zip(self.layers, labels, strict=True) if label]
        return "|".join(tags) or "O"

    def find_possible(self, examples: Sequence[Example], labels: np.ndarray) -> np.ndarray:
        """Return a mask of the labels that a word may have, (sentences, words, 1, labels).

        They are its own label and, if that is O, all labels of types that were not annotated in its sentence.
        """
        possible = labels[..., None] == np.arange(len(self.labels))
        for i, example in enumerate(examples):
            if example.annotated is not None:
                unannotated = [split_tag(label)[1] not in ("", *example.annotated) for label in self.labels]
                possible[i] |= (labels[i] == 0)[..., None] & unannotated
        return possible

    def read(self, outputs: torch.Tensor, examples: Sequence[Example]) -> list[list[list[int]]]:
        """Return the labels of each sequence's words from the head's output for a batch."""
        return [labels[: len(e.positions)] for labels, e in zip(outputs.tolist(), examples, strict=True)]

    def decode(
        self, sentences: Sequence[Sentence], examples: Sequence[Example], labels: Sequence[list[list[int]]]
    ) -> list[list[str]]:
        """Return one tag per word of each sentence in BIO's letters, joined from the sentence's sequences.

        If only some types were annotated in a sentence, others are dropped, because they cannot be scored.
        """
        labels_of_sentences: list[list[list[int]]] = [[] for _ in sentences]
        for example, word_labels in zip(examples, labels, strict=True):
            labels_of_sentences[example.instance] += word_labels
        if self.dataset.overlapping:
            return [[self.join_layers(word) for word in sentence] for sentence in labels_of_sentences]
        tags = [to_bio([self.labels[label] for (label,) in sentence]) for sentence in labels_of_sentences]
        return [
            keep_types(sentence_tags, sentence.annotated)
            for sentence_tags, sentence in zip(tags, sentences, strict=True)
        ]
