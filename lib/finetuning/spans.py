"""Questions answered with a span: rows of a question and a stretch of a passage, and from their spans ranked answers.

The numbers are those of BERT's code for SQuAD (Devlin et al. 2019, section 4.2), which BioBERT and Bio-ELECTRA use.
"""

from collections.abc import Sequence

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from lib.benchmarks import questions
from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Answer, Question
from lib.finetuning.examples import Batch, Example, Frame, pad
from lib.finetuning.settings import FinetuningSettings
from lib.modeling import heads

QUESTION = 64  # pieces of a question at most
STRIDE = 128  # pieces between the beginnings of two rows of a passage
BEST = 20  # beginnings and ends that are looked at, and answers that are kept of a row
LONGEST = 30  # pieces of an answer
KEPT = 5  # answers of a question: BioASQ looks at five


class Spans:
    """Where in its passages the answer of a question stands."""

    def __init__(
        self,
        dataset: Dataset,
        settings: FinetuningSettings,
        tokenizer: PreTrainedTokenizerBase,
        train: Sequence[Question],
        max_length: int,
    ):
        self.tokenizer, self.frame, self.max_length = tokenizer, Frame(tokenizer), max_length
        self.cut = 0  # questions that lose their end, of those encoded last; passages lose nothing

    def build(self, encoder: PreTrainedModel, train: Sequence[Question]) -> heads.SpanFinder:
        return heads.SpanFinder(encoder)

    def encode(self, found: Sequence[Question]) -> list[Example]:
        """Rows of a question and a stretch of one of its passages; every piece is in one of them at least.

        Stretches overlap, so that an answer of up to LONGEST pieces is whole in one. `places`: for each piece of the
        stretch its passage and characters; `target`: the first and last place of the first answer that is whole in
        it, or 0 and 0, [CLS], where there is none.
        """
        asked = self.tokenizer([q.question for q in found], add_special_tokens=False)["input_ids"]
        flat = [passage for q in found for passage in q.passages]
        read = self.tokenizer(flat, add_special_tokens=False, return_offsets_mapping=True)
        texts = iter(zip(read["input_ids"], read["offset_mapping"], strict=True))
        longest = min(QUESTION, self.max_length // 2)
        self.cut = sum(len(pieces) > longest for pieces in asked)
        rows = []
        for number, question in enumerate(found):
            head = asked[number][:longest]
            room = self.frame.room(self.max_length, pair=True) - len(head)
            for passage in range(len(question.passages)):
                ids, offsets = next(texts)
                answers = [(span.start, span.end) for span in question.spans if span.passage == passage]
                for first in self.starts(len(ids), room):
                    stretch = range(first, min(first + room, len(ids)))
                    pieces, second = self.frame.join(head, [ids[place] for place in stretch])
                    places = [(passage, *offsets[place]) for place in stretch]
                    rows.append(Example(number, pieces, second, places, self.aim(places, answers, second)))
        return rows

    @staticmethod
    def starts(length: int, room: int) -> range | list[int]:
        """Where rows of a passage begin."""
        step = max(1, min(STRIDE, room - LONGEST) if room > 2 * LONGEST else room // 2)
        last = max(0, length - room)
        return [*range(0, last, step), last] if length else [0]

    @staticmethod
    def aim(places: list[tuple[int, int, int]], answers: list[tuple[int, int]], second: int) -> tuple[int, int]:
        """The first and last place of the first answer that is whole in a row, or 0 and 0."""
        for start, end in answers:
            inside = [i for i, (_, first, last) in enumerate(places) if first < end and last > start]
            whole = inside and places[inside[0]][1] <= start and places[inside[-1]][2] >= end
            if whole:
                return second + inside[0], second + inside[-1]
        return 0, 0

    def collate(self, examples: Sequence[Example]) -> Batch:
        """A padded batch for heads.SpanFinder."""
        batch = pad(examples, self.frame.padding)
        readable = np.zeros(batch["input_ids"].shape, dtype=bool)
        for row, example in enumerate(examples):
            readable[row, [0, *range(example.second, example.second + len(example.places))]] = True
        target = torch.tensor([example.target for example in examples])
        return batch | {"readable": torch.from_numpy(readable), "target": target}

    def read(self, found: torch.Tensor, examples: Sequence[Example]) -> list[list[Answer]]:
        """Of each row its best answers, best first, with probabilities among them."""
        return [rank(scores[e.second : e.second + len(e.places)], e.places)
                for scores, e in zip(found.cpu().numpy(), examples, strict=True)]  # fmt: skip

    def decode(
        self, asked: Sequence[Question], examples: Sequence[Example], found: Sequence[list[Answer]]
    ) -> list[list[Answer]]:
        """Of each question the most probable answers of all its passages, no text twice (Lee et al. 2020, 4.4)."""
        of_question: list[list[Answer]] = [[] for _ in asked]
        for example, answers in zip(examples, found, strict=True):
            of_question[example.instance] += answers
        return [keep_distinct(question, answers) for question, answers in zip(asked, of_question, strict=True)]


def rank(scores: np.ndarray, places: list[tuple[int, int, int]]) -> list[Answer]:
    """The best spans of a row by the sum of `scores` (pieces, 2) of their ends."""
    firsts, lasts = (np.argsort(-scores[:, side], kind="stable")[:BEST] for side in (0, 1))
    spans = [(scores[a, 0] + scores[b, 1], a, b) for a in firsts for b in lasts if a <= b < a + LONGEST]
    spans = sorted(spans, key=lambda span: (-span[0], span[1], span[2]))[:BEST]
    if not spans:
        return []
    weights = np.exp([score - spans[0][0] for score, _, _ in spans])
    return [
        Answer(places[a][0], places[a][1], places[b][2], float(weight))
        for (_, a, b), weight in zip(spans, weights / weights.sum(), strict=True)
    ]


def keep_distinct(question: Question, answers: list[Answer]) -> list[Answer]:
    """The KEPT most probable answers of which no two read the same in lower case."""
    kept: dict[str, Answer] = {}
    for answer in sorted(answers, key=lambda answer: -answer.probability):
        kept.setdefault(questions.read_answers(question, [answer])[0].lower(), answer)
    return list(kept.values())[:KEPT]
