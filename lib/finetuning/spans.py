"""Extractive question answering: each sequence is a question and a window of a passage; its spans give ranked answers.

The constants are from BERT's code for SQuAD (Devlin et al. 2019, section 4.2), which BioBERT uses. ELECTRA's code,
which Bio-ELECTRA uses, has the same, and a head that predicts the last token from the first, which is not built here.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from scipy.special import softmax
from transformers import PreTrainedModel

from lib.benchmarks import questions
from lib.benchmarks.instances import Answer, Question, Span
from lib.finetuning.examples import Batch, DatasetTask, Example, pad
from lib.finetuning.texts import find_tokens
from lib.modeling import heads
from lib.vocabularies.tokenization import encode_texts

VERSION = 2  # raised when the same scores give other answers
QUESTION = 64  # maximum tokens of a question
STRIDE = 128  # tokens between the starts of two windows of a passage
BEST = 20  # first and last tokens considered in a sequence, and spans kept per sequence and per passage
LONGEST = 30  # maximum tokens of an answer
KEPT = 5  # maximum answers to a question, because BioASQ scores five


class Spans(DatasetTask):
    """The task of finding a question's answer in its passages; it has no label names.

    `cut`: the number of questions that were truncated; passages never are.
    """

    def build(self, encoder: PreTrainedModel, train: Sequence[Question]) -> heads.SpanFinder:
        return heads.SpanFinder(encoder)

    def encode(self, instances: Sequence[Question]) -> list[Example]:
        """Encode each question with each window of its passages as a sequence; every token is in at least one window.

        Windows overlap, so that an answer of up to LONGEST tokens is whole in one (if windows are at least twice as
        long). `positions`: the passage and character offsets of each token in the window; `target`: the first and last
        position of the first answer that is whole in the window, or the position of [CLS] twice if there is none.
        """
        question_ids = encode_texts(self.tokenizer, [q.question for q in instances])["input_ids"]
        passages = [passage for q in instances for passage in q.passages]
        encoded = encode_texts(self.tokenizer, passages, offsets=True)
        encodings = iter(zip(encoded["input_ids"], encoded["offset_mapping"], strict=True))
        longest = min(QUESTION, self.max_length // 2)
        self.cut = sum(len(ids) > longest for ids in question_ids)
        sequences = []
        for number, question in enumerate(instances):
            question_tokens = question_ids[number][:longest]
            capacity = self.frame.capacity(self.max_length, pair=True) - len(question_tokens)
            for passage in range(len(question.passages)):
                ids, offsets = next(encodings)
                answers = [(span.start, span.end) for span in question.spans if span.passage == passage]
                for first in self.starts(len(ids), capacity):
                    window = range(first, min(first + capacity, len(ids)))
                    tokens, second = self.frame.join(question_tokens, [ids[i] for i in window])
                    positions = [(passage, *offsets[i]) for i in window]
                    target = self.find_target(positions, answers, second) or (self.frame.locate(tokens),) * 2
                    sequences.append(Example(number, tokens, second, positions, target))
        return sequences

    @staticmethod
    def starts(length: int, capacity: int) -> range | list[int]:
        """Return the starts of a passage's windows."""
        step = max(1, min(STRIDE, capacity - LONGEST) if capacity > 2 * LONGEST else capacity // 2)
        last = max(0, length - capacity)
        return [*range(0, last, step), last] if length else [0]

    @staticmethod
    def find_target(
        positions: list[tuple[int, int, int]], answers: list[tuple[int, int]], second: int
    ) -> tuple[int, int] | None:
        """Return the first and last position of the first answer that is whole in a window, or None."""
        for start, end in answers:
            tokens = find_tokens([(first, last) for _, first, last in positions], (start, end))
            whole = tokens and positions[tokens[0]][1] <= start and positions[tokens[-1]][2] >= end
            if whole:
                return second + tokens[0], second + tokens[-1]
        return None

    def collate(self, examples: Sequence[Example]) -> Batch:
        """Return a padded batch for heads.SpanFinder."""
        batch = pad(examples, self.frame.padding)
        readable = np.zeros(batch["input_ids"].shape, dtype=bool)
        for i, example in enumerate(examples):
            window = range(example.second, example.second + len(example.positions))
            readable[i, [self.frame.locate(example.tokens), *window]] = True
        target = torch.tensor([example.target for example in examples])
        return batch | {"readable": torch.from_numpy(readable), "labels": target}

    def read(self, outputs: torch.Tensor, examples: Sequence[Example]) -> list[list[tuple[Span, float]]]:
        """Return each sequence's best spans with their scores, best first."""
        ranked = []
        for scores, example in zip(outputs.cpu().numpy(), examples, strict=True):
            window = scores[example.second :][: len(example.positions)]
            ranked.append(rank_spans(window, example.positions))
        return ranked

    def decode(
        self, instances: Sequence[Question], examples: Sequence[Example], spans: Sequence[list[tuple[Span, float]]]
    ) -> list[list[Answer]]:
        """Return each question's most probable distinct answers over all its passages (Lee et al. 2020, 4.4).

        Probabilities are normalised over the spans of a passage, because scores are comparable between its windows: a
        window without an answer has low scores. If a span is in two windows the higher score counts, whereas BERT's
        code takes the window with more context.
        """
        scores_of_passages: dict[tuple[int, int], dict[Span, float]] = defaultdict(dict)
        for example, ranked in zip(examples, spans, strict=True):
            for span, score in ranked:
                scores = scores_of_passages[example.instance, span.passage]
                scores[span] = max(score, scores.get(span, score))
        answers: list[list[Answer]] = [[] for _ in instances]
        for (number, _), scores in scores_of_passages.items():
            answers[number] += weigh_spans(scores)
        return [keep_distinct(question, ranked) for question, ranked in zip(instances, answers, strict=True)]


def rank_spans(scores: np.ndarray, positions: list[tuple[int, int, int]]) -> list[tuple[Span, float]]:
    """Return the best spans of a sequence with their scores: `scores` (tokens, 2) of first plus last token."""
    firsts = np.argsort(-scores[:, 0], kind="stable")[:BEST]
    lasts = np.argsort(-scores[:, 1], kind="stable")[:BEST]
    candidates = []
    for first in firsts:
        for last in lasts:
            if first <= last < first + LONGEST:
                candidates.append((-(scores[first, 0] + scores[last, 1]), first, last))
    candidates.sort()
    spans = []
    for score, first, last in candidates[:BEST]:
        passage, start, _ = positions[first]
        _, _, end = positions[last]
        spans.append((Span(passage, start, end), float(-score)))
    return spans


def weigh_spans(scores: Mapping[Span, float]) -> list[Answer]:
    """Return the best spans of a passage with probabilities that sum to 1."""
    best = sorted(scores.items(), key=lambda one: (-one[1], one[0]))[:BEST]
    probabilities = softmax([score for _, score in best]).tolist()
    return [Answer(*span, rate) for (span, _), rate in zip(best, probabilities, strict=True)]


def keep_distinct(question: Question, answers: list[Answer]) -> list[Answer]:
    """Return the KEPT most probable answers whose lower-cased texts differ."""
    answer_of_text: dict[str, Answer] = {}
    for answer in sorted(answers, key=lambda answer: -answer.probability):
        answer_of_text.setdefault(questions.read_answers(question, [answer])[0].lower(), answer)
    return list(answer_of_text.values())[:KEPT]
