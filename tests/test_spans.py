"""Questions and passages as sequences, and answers ranked by the heads' scores."""

import numpy as np
import pytest
import torch

from lib.benchmarks import questions, registry
from lib.benchmarks.instances import Answer, Question, Span
from lib.finetuning import spans
from lib.finetuning.spans import LONGEST, rank_spans
from lib.study import open_study


def make_task(tokenizer, length=64):
    key = "bioasq-7b-factoid"
    return spans.Spans(registry.lookup(key), open_study("paper").protocol("lee", key), tokenizer, [], length)


def ask(*passages: str, answers=("Iron",)) -> Question:
    return Question("1", "who was it", passages, answers, questions.find_spans(passages, answers), "b1")


def read_target(question, sequence) -> str:
    first, last = (sequence.positions[position - sequence.second] for position in sequence.target)
    return question.passages[first[0]][first[1] : last[2]]


def test_the_target_is_the_answer(tokenizer):
    question = ask("a iron b", "c d", "Iron e zinc")
    sequences = make_task(tokenizer).encode([question])
    assert len(sequences) == 3 and sequences[1].target == (0, 0)  # [CLS]: not in this passage
    assert [read_target(question, sequences[number]) for number in (0, 2)] == ["iron", "Iron"]
    tokens = tokenizer.convert_ids_to_tokens(sequences[0].tokens)
    assert tokens[0] == "[CLS]" and tokens.count("[SEP]") == 2 and tokens[sequences[0].second - 1] == "[SEP]"


@pytest.mark.parametrize("before", [0, 57, 58, 59, 300])
def test_every_gold_answer_survives_the_limit(tokenizer, before):
    question = ask("a " * before + "iron" + " b" * 100)
    sequences = make_task(tokenizer, length=80).encode([question])
    assert all(len(sequence.tokens) <= 80 for sequence in sequences)
    with_answer = [sequence for sequence in sequences if sequence.target != (0, 0)]
    assert with_answer and all(read_target(question, sequence) == "iron" for sequence in with_answer)
    positions = {position for sequence in sequences for position in sequence.positions}
    assert len(positions) == before + 101  # no token of the passage is lost


def test_truncated_questions_are_counted(tokenizer):
    task = make_task(tokenizer, length=32)
    task.encode([ask("a iron b"), Question("2", "who " * 30, ("iron",), ("iron",), (Span(0, 0, 4),))])
    assert task.cut == 1


def test_the_longest_answer_is_whole_in_some_sequence(tokenizer):
    words = " ".join(["iron"] * LONGEST)
    for before in range(0, 200, 7):
        passage = "a " * before + words + " b" * 90
        question = Question("1", "who", (passage,), (words,), (Span(0, 2 * before, 2 * before + len(words)),))
        assert any(sequence.target != (0, 0) for sequence in make_task(tokenizer, length=128).encode([question]))


def test_spans_are_ranked_by_the_sum_of_their_ends():
    positions = [(0, 0, 1), (0, 2, 3), (0, 4, 5)]
    scores = np.log(np.array([[0.7, 0.1], [0.2, 0.6], [0.1, 0.3]]))
    ranked = rank_spans(scores, positions)
    assert [(a.start, a.end) for a, _ in ranked] == [(0, 3), (0, 5), (2, 3), (0, 1), (2, 5), (4, 5)]
    assert rank_spans(np.empty((0, 2)), []) == []
    weighed = spans.weigh_spans(dict(ranked))
    assert [(a.start, a.end) for a in weighed] == [(a.start, a.end) for a, _ in ranked]
    assert sum(a.probability for a in weighed) == pytest.approx(1)
    assert weighed[0].probability / weighed[1].probability == pytest.approx(2)


def test_answers_of_all_passages_are_merged_and_no_text_comes_twice(tokenizer):
    question, task = ask("a iron b", "Iron e zinc"), make_task(tokenizer)
    sequences = task.encode([question])
    candidates = [[(Span(0, 2, 6), 9.0), (Span(0, 7, 8), 7.0)], [(Span(1, 7, 11), 4.0), (Span(1, 0, 4), 3.5)]]
    (ranked,) = task.decode([question], sequences, candidates)
    assert questions.read_answers(question, ranked) == ["iron", "zinc", "b"]  # within each passage: 0.88, 0.62
    assert registry.lookup("bioasq-7b-factoid").score([question], [ranked])["mrr"] == 100


def test_a_window_sure_of_no_answer_does_not_win(tokenizer):
    task = make_task(tokenizer, length=32)
    question = ask("a " * 40 + "iron")
    sequences = task.encode([question])
    assert len(sequences) > 2 and sequences[0].target == (0, 0) != sequences[-1].target
    scores = torch.full((len(sequences), 32, 2), -4.0)
    scores[:, 0] = 6.0  # no answer
    scores[0, sequences[0].second] = 1.0  # in a window that is sure of none, one span stands out
    first, last = sequences[-1].target
    scores[-1, 0], scores[-1, first, 0], scores[-1, last, 1] = -4.0, 5.0, 5.0
    scores[-1, first - 1, 0] = 4.5  # here two spans are likely
    windows = task.read(scores, sequences)
    probabilities = [spans.weigh_spans(dict(window))[0].probability for window in (windows[0], windows[-1])]
    assert probabilities[0] > probabilities[1]  # within each window
    (ranked,) = task.decode([question], sequences, windows)
    assert questions.read_answers(question, ranked)[0] == "iron"


def test_batches_of_bioasq_are_averaged():
    def make(batch):
        return Question("1", "who", ("iron",), ("iron",), (Span(0, 0, 4),), batch)

    right, wrong = [Answer(0, 0, 4, 1.0)], [Answer(0, 0, 3, 1.0)]
    scores = registry.lookup("bioasq-4b-factoid").score([make("1"), make("2"), make("2"), make("2")],
                                [right, wrong, wrong, right])  # fmt: skip
    assert scores["mrr"] == pytest.approx((100 + 100 / 3) / 2)


def test_answers_are_in_the_passage_only(tokenizer):
    task = make_task(tokenizer)
    sequences = task.encode([ask("a iron b", "c")])
    batch = task.collate(sequences)
    for sequence, readable in zip(sequences, batch["readable"], strict=True):
        passage = range(sequence.second, sequence.second + len(sequence.positions))
        assert readable.nonzero()[:, 0].tolist() == [0, *passage]
    assert batch["labels"].tolist() == [list(sequence.target) for sequence in sequences]
    ranked = task.read(torch.zeros(*batch["input_ids"].shape, 2), sequences)
    assert [len(answers) for answers in ranked] == [6, 1]
