"""Tasks on whole texts: relations, pairs and documents as token sequences with a class, labels or a number."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from transformers import PreTrainedModel

from lib.benchmarks.instances import BREAKS, Instance, Labelled, Marked, Relation
from lib.corpora import cleaning
from lib.errors import StudyError
from lib.finetuning.examples import Batch, DatasetTask, Example, pad
from lib.modeling import heads, loading
from lib.vocabularies.tokenization import encode_texts

MARKERS = ("[E1]", "[/E1]"), ("[E2]", "[/E2]")
Encoding = tuple[list[int], list[tuple[int, int]]]  # token ids, and the character offsets of each


def keep_original(relation: Relation) -> Marked:
    """Return the original text, with spaces for line ends and tabs. Source: Gu et al. 2021, 3.3 and Table 14."""
    first, second = relation.first, relation.second
    return Marked(BREAKS.sub(" ", relation.text), (first.start, first.end), (second.start, second.end))


def add_markers(relation: Relation) -> Marked:
    """Return the original text with a start and an end marker around each mention; `first` and `second` include them.

    If mentions overlap, markers are placed in the order of their positions. Source: as in keep_original; the paper does
    not print its markers.
    """
    marks = []
    for mention, (start, end) in zip((relation.first, relation.second), MARKERS, strict=True):
        marks += [(mention.start, start, f"{start} "), (mention.end, end, f" {end}")]
    text = keep_original(relation).text
    marked, end, positions = "", 0, {}
    # Sorting is stable: of two marks at one position, the first mention's comes first.
    for offset, name, mark in sorted(marks, key=lambda item: item[0]):
        marked += text[end:offset]
        positions[name] = len(marked) + mark.index(name)
        marked += mark
        end = offset
    first, second = ((positions[opens], positions[closes] + len(closes)) for opens, closes in MARKERS)
    return Marked(marked + text[end:], first, second)


WRITTEN = {"dummies": Relation.dummify, "markers": add_markers, "original": keep_original}


class Texts(DatasetTask):
    """The task of judging whole texts: relations, pairs, documents and ranked candidates.

    The target is a number (similarity), labels (any of several) or a class. Ranking is by the probability of class 1.
    `names`: of labels or classes; `cut`: the number of instances whose text was truncated.
    """

    @property
    def target(self) -> str:
        if self.dataset.multilabel:
            return "labels"
        return "number" if self.dataset.family == "similarity" else "class"

    @property
    def reads_mentions(self) -> bool:
        """Whether a text is encoded by its two mentions, which only relations have, and not by its first token."""
        return self.dataset.family == "relations" and self.settings.encoding != "first token"

    def list_names(self, train: Sequence[Instance]) -> list[str]:
        match self.target:
            case "number":
                return []
            case "labels":
                return sorted({label for document in train for label in document.labels})
            case _:
                return sorted({class_of(instance) for instance in train})

    def prepare(self, train: Sequence[Instance]) -> None:
        mentions = self.settings.mentions
        self.numbers = {name: number for number, name in enumerate(self.names)}
        if self.dataset.family == "relations":
            if mentions != "dummies" and any(relation.masked for relation in train):
                raise StudyError(
                    f"{self.dataset.title} comes with dummies in its texts, so '{mentions}' cannot be run on it: "
                    "take a set with its original texts, or mentions: dummies"
                )
            if mentions == "markers":
                self.tokenizer.add_tokens([mark for pair in MARKERS for mark in pair], special_tokens=True)

    def build(self, encoder: PreTrainedModel, train: Sequence[Instance]) -> heads.Classifier:
        loading.make_room(encoder, self.tokenizer)
        weights = None
        if self.settings.weighted and self.target == "class":
            counts = Counter(class_of(instance) for instance in train)
            weights = torch.tensor([len(train) / len(counts) / counts[name] for name in self.names])
        outputs, spans = len(self.names) or 1, 2 if self.reads_mentions else 1
        return heads.Classifier(
            encoder, outputs, self.target, spans, self.settings.head, self.settings.dropout, weights
        )

    def encode(self, instances: Sequence[Instance]) -> list[Example]:
        """Encode each instance as one sequence. `positions`: the spans of its encoding; `target`: a number or a list.

        A text that is too long loses its end; in a pair, the longer text is shortened first. A relation's text loses
        the tokens farthest from its mentions, and those between them only if they are too far apart. `cut` counts all
        of these.
        """
        self.cut = 0
        texts = [self.write(instance) for instance in instances]
        firsts = self.split([text for text, _, _ in texts])
        seconds = iter(self.split([second_text for _, second_text, _ in texts if second_text is not None]))
        sequences = []
        for number, (instance, (_, second_text, mentions), first) in enumerate(
            zip(instances, texts, firsts, strict=True)
        ):
            second = None if second_text is None else next(seconds)
            tokens, start, positions = self.fit(first, second, mentions)
            sequences.append(Example(number, tokens, start, positions, self.target_of(instance)))
        return sequences

    def write(self, instance: Instance) -> tuple[str, str | None, list[tuple[int, int]]]:
        """Return the text, a second one or None, and the character offsets of a relation's mentions in the first."""
        match instance:
            case Relation():
                text, *mentions = WRITTEN[self.settings.mentions](instance)
                return text, None, mentions
            case Labelled(sentences=sentences):
                if self.dataset.language == "ja":
                    sentences = [cleaning.segment_japanese(sentence) for sentence in sentences]
                if self.dataset.question_first:
                    return sentences[0], sentences[1], []
                return " ".join(sentences), None, []
            case _:
                return instance.first, instance.second, []

    def split(self, texts: list[str]) -> list[Encoding]:
        """Tokenize each text, without special tokens."""
        encoded = encode_texts(self.tokenizer, texts, offsets=True)
        return list(zip(encoded["input_ids"], encoded["offset_mapping"], strict=True))

    def fit(
        self, first: Encoding, second: Encoding | None, mentions: list[tuple[int, int]]
    ) -> tuple[list[int], int, list[list[int]]]:
        """Fit texts to the maximum length: return tokens, start of the second text, and the spans of the encoding."""
        ids, offsets = first
        capacity = self.frame.capacity(self.max_length, second is not None)
        if second is not None:
            second_ids = second[0]
            self.cut += len(ids) + len(second_ids) > capacity
            length = max(capacity - len(second_ids), min(len(ids), (capacity + 1) // 2))
            ids = ids[:length]
            tokens, start = self.frame.join(ids, second_ids[: capacity - len(ids)])
            return tokens, start, [[self.frame.locate(tokens)]]
        spans = [find_tokens(offsets, mention) for mention in mentions]
        kept = keep_tokens(len(ids), capacity, spans)
        self.cut += len(kept) < len(ids)
        tokens, start = self.frame.join([ids[i] for i in kept])
        whole_span = [self.frame.locate(tokens)]
        if not self.reads_mentions:
            return tokens, start, [whole_span]
        position_of = {i: len(self.frame.before) + number for number, i in enumerate(kept)}
        positions = []
        for span in spans:
            positions.append([position_of[i] for i in span if i in position_of] or whole_span)
        if self.settings.encoding == "starts":
            positions = [span[:1] for span in positions]
        return tokens, start, positions

    def target_of(self, instance: Instance):
        """Return the target of an instance.

        A label that training lacks is dropped, and a class that it lacks becomes class 0: neither can be predicted.
        """
        match self.target:
            case "number":
                return float(instance.label)
            case "labels":
                return [float(name in instance.labels) for name in self.names]
            case _:
                return self.numbers.get(class_of(instance), 0)

    def collate(self, examples: Sequence[Example]) -> Batch:
        """Return a padded batch for heads.Classifier."""
        spans = len(examples[0].positions)
        longest = max(len(span) for example in examples for span in example.positions)
        positions = np.zeros((len(examples), spans, longest), dtype=np.int64)
        absent = np.ones_like(positions, dtype=bool)
        for i, example in enumerate(examples):
            for number, span in enumerate(example.positions):
                positions[i, number, : len(span)] = span
                absent[i, number, : len(span)] = False
        dtype = torch.long if self.target == "class" else torch.float
        target = torch.tensor([example.target for example in examples], dtype=dtype)
        batch = {"positions": torch.from_numpy(positions), "labels": target}
        if absent.any():
            batch["absent"] = torch.from_numpy(absent)
        return pad(examples, self.frame.padding) | batch

    def read(self, outputs: torch.Tensor, examples: Sequence[Example]) -> list:
        """Return each sequence's predicted number, or the probabilities of its labels or classes."""
        match self.target:
            case "number":
                return outputs.tolist()
            case "labels":
                return outputs.sigmoid().tolist()
            case _:
                return outputs.softmax(-1).tolist()

    def decode(self, instances: Sequence[Instance], examples: Sequence[Example], results: Sequence) -> list:
        """Return for each instance a number, the labels with probability >= 0.5, a class, or P(class 1) for ranking."""
        if self.target == "number":
            return list(results)
        if self.target == "labels":
            return [
                tuple(name for name, rate in zip(self.names, rates, strict=True) if rate >= 0.5) for rates in results
            ]
        if self.dataset.family == "ranking":
            right = self.numbers.get("1")  # None if no candidate of a small training set was right
            return [0.0 if right is None else rates[right] for rates in results]
        best = [self.names[int(np.argmax(rates))] for rates in results]
        return [(name,) for name in best] if self.dataset.family == "documents" else best


def class_of(instance: Instance) -> str:
    """Return the class of an instance that has one."""
    return instance.labels[0] if isinstance(instance, Labelled) else instance.label


def find_tokens(offsets: Sequence[tuple[int, int]], characters: tuple[int, int]) -> list[int]:
    """List the tokens that overlap a span of characters."""
    start, end = characters
    return [i for i, (first, last) in enumerate(offsets) if first < end and last > start]


def keep_tokens(length: int, capacity: int, spans: list[list[int]]) -> list[int]:
    """List which of `length` tokens to keep if `capacity` fit: the first ones, or a window around all spans.

    If the spans are too far apart, half the capacity goes to the tokens from the start of the first span on, and half
    to those up to the end of the last.
    """
    if length <= capacity:
        return list(range(length))
    positions = [i for span in spans for i in span]
    if not positions or max(positions) < capacity:
        return list(range(capacity))
    first, last = min(positions), max(positions) + 1
    if last - first <= capacity:
        start = min(max(0, first - (capacity - (last - first)) // 2), length - capacity)
        return list(range(start, start + capacity))
    half = capacity // 2
    return [*range(first, first + half), *range(last - (capacity - half), last)]
