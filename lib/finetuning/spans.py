"""Questions answered with spans: a question and a window of a passage as a sequence, and from its spans ranked answers.

The numbers are those of BERT's code for SQuAD (Devlin et al. 2019, section 4.2), which BioBERT and Bio-ELECTRA use.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from transformers import PreTrainedModel

from lib.benchmarks import questions
from lib.benchmarks.instances import Answer, Question, Span
from lib.finetuning.examples import Batch, DatasetTask, Example, pad
from lib.modeling import heads
from lib.vocabularies.tokenization import encode_texts

VERSION = 2  # raised when the same scores give other answers
QUESTION = 64  # tokens of a question at most
STRIDE = 128  # tokens between the beginnings of two windows of a passage
BEST = 20  # beginnings and ends that are looked at, and spans that are kept of a sequence, and of a passage
LONGEST = 30  # tokens of an answer
KEPT = 5  # answers of a question: BioASQ looks at five


class Spans(DatasetTask):
    """The task of questions: to find where in its passages the answer of one stands. No answer has a name.

    `cut` counts questions that lose their end; passages lose nothing.
    """

    def build(self, encoder: PreTrainedModel, train: Sequence[Question]) -> heads.SpanFinder:
        return heads.SpanFinder(encoder)

    def encode(self, instances: Sequence[Question]) -> list[Example]:
        """Sequences of a question and a window of one of its passages; every token is in one of them at least.

        Windows overlap, so that an answer of up to LONGEST tokens is whole in one. `positions`: for each token of the
        window its passage and characters; `target`: the first and last position of the first answer that is whole in
        it, or twice that of [CLS] where there is none.
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
            capacity = self.template.capacity(self.max_length, pair=True) - len(question_tokens)
            for passage in range(len(question.passages)):
                ids, offsets = next(encodings)
                answers = [(span.start, span.end) for span in question.spans if span.passage == passage]
                for first in self.starts(len(ids), capacity):
                    window = range(first, min(first + capacity, len(ids)))
                    tokens, second = self.template.join(question_tokens, [ids[i] for i in window])
                    positions = [(passage, *offsets[i]) for i in window]
                    target = self.find_target(positions, answers, second) or (self.template.place(tokens),) * 2
                    sequences.append(Example(number, tokens, second, positions, target))
        return sequences

    @staticmethod
    def starts(length: int, capacity: int) -> range | list[int]:
        """Where the windows of a passage begin."""
        step = max(1, min(STRIDE, capacity - LONGEST) if capacity > 2 * LONGEST else capacity // 2)
        last = max(0, length - capacity)
        return [*range(0, last, step), last] if length else [0]

    @staticmethod
    def find_target(
        positions: list[tuple[int, int, int]], answers: list[tuple[int, int]], second: int
    ) -> tuple[int, int] | None:
        """The first and last position of the first answer that is whole in a sequence, or None."""
        for start, end in answers:
            inside = [i for i, (_, first, last) in enumerate(positions) if first < end and last > start]
            whole = inside and positions[inside[0]][1] <= start and positions[inside[-1]][2] >= end
            if whole:
                return second + inside[0], second + inside[-1]
        return None

    def collate(self, examples: Sequence[Example]) -> Batch:
        """A padded batch for heads.SpanFinder."""
        batch = pad(examples, self.template.padding)
        readable = np.zeros(batch["input_ids"].shape, dtype=bool)
        for i, example in enumerate(examples):
            window = range(example.second, example.second + len(example.positions))
            readable[i, [self.template.place(example.tokens), *window]] = True
        target = torch.tensor([example.target for example in examples])
        return batch | {"readable": torch.from_numpy(readable), "labels": target}

    def read(self, outputs: torch.Tensor, examples: Sequence[Example]) -> list[list[tuple[Span, float]]]:
        """Of each sequence its best spans with their scores, best first."""
        return [rank_spans(scores[e.second : e.second + len(e.positions)], e.positions)
                for scores, e in zip(outputs.cpu().numpy(), examples, strict=True)]  # fmt: skip

    def decode(
        self, instances: Sequence[Question], examples: Sequence[Example], spans: Sequence[list[tuple[Span, float]]]
    ) -> list[list[Answer]]:
        """Of each question the most probable answers of all its passages, no text twice (Lee et al. 2020, 4.4).

        Probabilities are among the spans of a passage, whose windows are scored alike: a window that holds no answer
        has low scores. Of a span in two windows the higher score counts, where BERT's code takes the window with more
        context.
        """
        of_passages: dict[tuple[int, int], dict[Span, float]] = defaultdict(dict)
        for example, ranked in zip(examples, spans, strict=True):
            for span, score in ranked:
                found = of_passages[example.instance, span.passage]
                found[span] = max(score, found.get(span, score))
        answers: list[list[Answer]] = [[] for _ in instances]
        for (number, _), found in of_passages.items():
            answers[number] += weigh_spans(found)
        return [keep_distinct(question, ranked) for question, ranked in zip(instances, answers, strict=True)]


def rank_spans(scores: np.ndarray, positions: list[tuple[int, int, int]]) -> list[tuple[Span, float]]:
    """The best spans of a sequence, with the sum of `scores` (tokens, 2) of their ends."""
    firsts = np.argsort(-scores[:, 0], kind="stable")[:BEST]
    lasts = np.argsort(-scores[:, 1], kind="stable")[:BEST]
    ranked = []
    for first in firsts:
        for last in lasts:
            if first <= last < first + LONGEST:
                ranked.append((-(scores[first, 0] + scores[last, 1]), first, last))
    ranked.sort()
    found = []
    for score, first, last in ranked[:BEST]:
        passage, start, _ = positions[first]
        _, _, end = positions[last]
        found.append((Span(passage, start, end), float(-score)))
    return found


def weigh_spans(scores: Mapping[Span, float]) -> list[Answer]:
    """The best spans of a passage, with probabilities among them."""
    best = sorted(scores.items(), key=lambda one: (-one[1], one[0]))[:BEST]
    weights = np.exp([score - best[0][1] for _, score in best])
    return [Answer(*span, float(weight)) for (span, _), weight in zip(best, weights / weights.sum(), strict=True)]


def keep_distinct(question: Question, answers: list[Answer]) -> list[Answer]:
    """The KEPT most probable answers of which no two read the same in lower case."""
    kept: dict[str, Answer] = {}
    for answer in sorted(answers, key=lambda answer: -answer.probability):
        kept.setdefault(questions.read_answers(question, [answer])[0].lower(), answer)
    return list(kept.values())[:KEPT]
