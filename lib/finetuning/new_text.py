"""Apply a saved fine-tuned model to new text: find entities, classify texts and pairs."""

import re
import statistics
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch

from lib.benchmarks import bio, pubtator, standoff
from lib.benchmarks.instances import DUMMY, Instance, Labelled, Mention, Pair, Relation, Sentence
from lib.errors import StudyError
from lib.finetuning import predictions
from lib.finetuning.saved import Saved
from lib.finetuning.tagging import Tagging
from lib.finetuning.texts import Texts
from lib.modeling import heads

COMMANDS = {Tagging: "tag", Texts: "classify"}  # task of a model -> command of run_all.sh that accepts it
PAIRS = ("similarity", "inference", "answers", "ranking")  # families with two texts
SPACE = re.compile(r"[^\S\n]")  # replaced, because sentencex fails on some multi-byte spaces
BOTH = re.compile("-|other", re.IGNORECASE)  # in a dummy that stands for both mentions
MARK = re.compile(r"\[E([12])\] ?| ?\[/E([12])\]")  # with the space that lib/finetuning/texts.py puts inside
TOKENS = 512  # in a batch on a CPU: 1.6 times as fast as 4,096 with a hidden size of 384


class Entity(NamedTuple):
    """An entity's position in the text as given, its type, and the mean probability of its words' tags."""

    start: int
    end: int  # one past the last character
    type: str
    probability: float


def tag_texts(model: Saved, texts: Sequence[str]) -> list[list[Entity]]:
    """Find the entities of each text, in text order.

    The model reads one sentence at a time, as in training, and in parts if it is too long. A line end ends a sentence.
    Raises StudyError if the model is not a tagger.
    """
    check_task(model, "tag")
    sentences, owners = [], []  # an owner: the number of the text, and the position in it of each word of the sentence
    for number, text in enumerate(texts):
        for words, spans in cut_words(text):
            sentences.append(Sentence(words, ["O"] * len(words)))
            owners.append((number, spans))
    sequences = model.task.encode(sentences)
    ratings = predictions.predict(
        lambda batch: rate_tags(model.model, batch), model.task, sequences, model.device, TOKENS
    )
    ratings_of_sentences = [[] for _ in sentences]
    for sequence, word_ratings in zip(sequences, ratings, strict=True):
        ratings_of_sentences[sequence.instance] += word_ratings
    entities_of_texts = [[] for _ in texts]
    for (number, spans), word_ratings in zip(owners, ratings_of_sentences, strict=True):
        entities_of_texts[number] += find_entities(model.task, spans, word_ratings)
    return [sorted(entities) for entities in entities_of_texts]


def cut_words(text: str) -> Iterator[tuple[list[str], list[tuple[int, int]]]]:
    """Yield the words of each sentence in composed letters (NFC), and their positions in the text as given."""
    composed, offsets = compose_text(text)
    for spans in standoff.find_words(SPACE.sub(" ", composed)):
        words, given_spans = [], []
        for start, end in spans:
            words.append(composed[start:end])
            given_start = offsets[start]
            given_spans.append((given_start, max(offsets[end], given_start + 1)))
        yield words, given_spans


def check_task(model: Saved, command: str) -> None:
    """Raise StudyError if the command `tag` or `classify` does not accept a saved model."""
    right_command, dataset = COMMANDS.get(type(model.task)), model.dataset
    if right_command != command:
        hint = f"./run_all.sh {right_command} takes it" if right_command else "lib.finetuning.saved.load_saved opens it"
        kind = "tagger" if command == "tag" else "classifier"
        raise StudyError(f"{model.title}: no {kind} but a model of {dataset.family} ({dataset.title}); {hint}")


def compose_text(text: str) -> tuple[str, Sequence[int]]:
    """Return a text in composed letters (NFC), as the study's readers do, and its characters' offsets in the original.

    The last offset is the end of the text.
    """
    if unicodedata.is_normalized("NFC", text):
        return text, range(len(text) + 1)
    starts = [i for i, letter in enumerate(text) if i == 0 or not unicodedata.combining(letter)]
    parts, offsets = [], []
    for start, end in pairwise([*starts, len(text)]):
        original = text[start:end]
        composed = pubtator.compose_letters(original)
        if len(composed) > len(original):  # because NFC decomposes some characters
            composed = original
        parts.append(composed)
        offsets.append(start)
        # Marks that are not composed are the last ones of the letter.
        for remaining in range(len(composed) - 1, 0, -1):
            offsets.append(max(start, end - remaining))
    return "".join(parts), [*offsets, len(text)]


def rate_tags(tagger: heads.Tagger, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return each word's predicted label and its probability, (sequences, words, layers, 2)."""
    scores = tagger.scores(batch)
    if tagger.crf:
        labels = tagger.crf.decode(scores, batch["words"])
        probabilities = tagger.crf.marginals(scores, batch["words"])
    else:
        labels = scores.argmax(-1)
        probabilities = scores.softmax(-1)
    label_probabilities = probabilities.gather(-1, labels[..., None])[..., 0]
    return torch.stack([labels.to(probabilities.dtype), label_probabilities], -1)


def find_entities(task: Tagging, spans: Sequence[tuple[int, int]], ratings: Sequence) -> Iterator[Entity]:
    """Yield the entities of a sentence.

    `spans`: the positions of its words in the text; `ratings`: of its words by rate_tags, (words, layers, 2).
    """
    for layer, layer_type in enumerate(task.layers):
        labels, probabilities = [], []
        for word_ratings in ratings:
            number, probability = word_ratings[layer]
            labels.append(task.labels[int(number)])
            probabilities.append(probability)
        for kind, first, last in bio.locate_entities(bio.to_bio(labels)):
            start, end = spans[first][0], spans[last][1]
            mean_probability = statistics.fmean(probabilities[first : last + 1])
            # A CRF's may be 1.000001.
            yield Entity(start, end, layer_type or kind, min(1.0, mean_probability))


def classify_instances(model: Saved, instances: Sequence[Instance]) -> list[dict]:
    """Classify instances (from make_instance): {label, probabilities}, {labels, probabilities} or {number} for each.

    Probabilities are by name. With `labels` they are independent, and labels of 0.5 or more are predicted.
    """
    task = model.task
    sequences = task.encode(instances)
    ratings = predictions.predict(model.model, task, sequences, model.device, TOKENS)
    if task.target == "number":
        return [{"number": number} for number in ratings]
    named_rates = [dict(zip(task.names, rates, strict=True)) for rates in ratings]
    if task.target == "class":
        return [{"label": max(rates, key=rates.get), "probabilities": rates} for rates in named_rates]
    predicted = task.decode(instances, sequences, ratings)
    return [{"labels": [*labels], "probabilities": rates} for labels, rates in zip(predicted, named_rates, strict=True)]


def make_instance(model: Saved, text: str, second: str | None = None) -> Instance:
    """Make an instance for a classifier from a text, or from two.

    A relation's text has to show its two mentions as in the model's training: by dummies, or by [E1] ... [/E1] and [E2]
    ... [/E2]. Raises StudyError if it does not, or if a second text is missing or not expected.
    """
    task = model.task
    reads_pairs = task.dataset.family in PAIRS or task.dataset.question_first
    if reads_pairs and not (second and second.strip()):
        raise StudyError(f"no second text, and {model.title} reads pairs: give it under text2")
    if not reads_pairs and second:
        raise StudyError(f"a second text, and {model.title} reads one: leave out text2")
    if task.dataset.family == "relations":
        return read_dummies(text) if task.settings.mentions == "dummies" else read_marks(text)
    if task.dataset.family == "documents":
        return Labelled("", (text, second) if second else (text,), () if task.target == "labels" else ("",))
    return Pair("", text, second, 0.0 if task.target == "number" else "")


def read_dummies(text: str) -> Relation:
    """Read a relation from a text with two dummies, or with one for both mentions, such as @CHEM-GENE$.

    Raises StudyError if the text has others.
    """
    mentions = [Mention("", match[0].strip("@$"), *match.span()) for match in DUMMY.finditer(text)]
    if len(mentions) != 2 and not (len(mentions) == 1 and BOTH.search(mentions[0].kind)):
        raise StudyError(
            f"{len(mentions)} dummies in the text: write one such as @GENE$ in the place of each of the two mentions, "
            "by the names that the model was trained on"
        )
    return Relation("", text, mentions[0], mentions[-1], "", masked=True)


def read_marks(text: str) -> Relation:
    """Read a relation from a text with markers around its two mentions, and remove the markers.

    Raises StudyError if one is missing, repeated or out of order.
    """
    bare_text, offsets, end = "", {}, 0
    for match in MARK.finditer(text):
        bare_text += text[end : match.start()]
        end = match.end()
        offsets.setdefault(match[0].strip(), len(bare_text))
    bare_text += text[end:]
    first = Mention("", "", offsets.get("[E1]", -1), offsets.get("[/E1]", -1))
    second = Mention("", "", offsets.get("[E2]", -1), offsets.get("[/E2]", -1))
    in_order = 0 <= first.start < first.end and first.start <= second.start < second.end
    if len(MARK.findall(text)) != 4 or not in_order:
        raise StudyError("expected the first mention as [E1] ... [/E1] and the second as [E2] ... [/E2], each once")
    return Relation("", bare_text, first, second, "")
