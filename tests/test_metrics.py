"""Entity scores, counted by hand and against conlleval's rules written down independently."""

import random

import pytest

from lib import metrics


def conlleval_chunks(tags: list[str]) -> set[tuple[int, int, str]]:
    """Entities after conlleval: one begins at B, or at I after O or after another type."""
    found, start, kind = set(), None, None
    for i, tag in enumerate([*tags, "O"]):
        prefix, _, type_ = tag.partition("-")
        if start is not None and (prefix in ("B", "O") or type_ != kind):
            found.add((start, i, kind))
            start = None
        if start is None and prefix in ("B", "I"):
            start, kind = i, type_
    return found


def test_counted_by_hand():
    gold = [["B-D", "I-D", "O", "B-D"], ["O", "B-D"]]
    predicted = [["B-D", "I-D", "O", "O"], ["B-D", "B-D"]]
    scores = metrics.entity_scores(gold, predicted)  # 3 gold, 3 predicted, 2 of them right
    assert scores == {
        "precision": pytest.approx(200 / 3),
        "recall": pytest.approx(200 / 3),
        "f1": pytest.approx(200 / 3),
        "gold entities": 3,
    }


def test_both_ends_and_the_type_must_agree():
    assert metrics.entity_scores([["B-D", "I-D", "O"]], [["B-D", "O", "O"]])["f1"] == 0
    assert metrics.entity_scores([["B-D", "O"]], [["B-C", "O"]])["f1"] == 0


def test_an_i_without_a_b_begins_an_entity():
    assert metrics.entity_scores([["O", "B-D", "I-D"]], [["O", "I-D", "I-D"]])["f1"] == 100


def test_tags_without_types():
    assert metrics.entity_scores([["B", "I", "O", "B"]], [["B", "I", "O", "O"]])["recall"] == 50


def test_nothing_predicted_is_zero_not_an_error():
    assert metrics.entity_scores([["B-D"]], [["O"]])["f1"] == 0


def test_unequal_lengths_are_refused():
    with pytest.raises(ValueError, match="2 gold tags has 1"):
        metrics.entity_scores([["O", "O"]], [["O"]])
    with pytest.raises(ValueError):
        metrics.entity_scores([["O"]], [])


def test_equal_to_conlleval_on_random_tags():
    rng = random.Random(0)
    tags = ["O", "O", "B-D", "I-D", "B-C", "I-C"]
    for _ in range(200):
        gold, predicted = ([rng.choices(tags, k=12) for _ in range(4)] for _ in range(2))
        chunks = [[conlleval_chunks(s) for s in side] for side in (gold, predicted)]
        right = sum(len(g & p) for g, p in zip(*chunks, strict=True))
        total_gold, total_predicted = (sum(map(len, side)) for side in chunks)
        scores = metrics.entity_scores(gold, predicted)
        assert scores["gold entities"] == total_gold
        assert scores["precision"] == pytest.approx(100 * right / max(1, total_predicted))
        assert scores["recall"] == pytest.approx(100 * right / max(1, total_gold))
