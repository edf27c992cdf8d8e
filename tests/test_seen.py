"""Scores on entities whose name was seen in training and on the others, checked by hand."""

import pytest

from lib.benchmarks import metrics, seen
from lib.benchmarks.instances import Sentence

TRAIN = [Sentence(["type", "2", "diabetes", "and", "gout"], ["B", "I", "I", "O", "B"])]
TEST = [
    Sentence(["Gout", "or", "gout", "or", "lupus"], ["B", "O", "B", "O", "B"]),
    Sentence(["no", "gout"], ["O", "B"]),
]


def test_names_are_counted_as_written():
    assert seen.find_names(TRAIN) == {"type 2 diabetes", "gout"}
    assert seen.count_names(TRAIN, TEST) == {"entities": 4, "entities_seen": 2, "names": 3, "names_seen": 1}


def test_scores_by_seen_and_unseen_names():
    """Right: one gout of two, and lupus. Wrong: `gout` and `Gout` missed, `or` predicted. Only `gout` is known."""
    tags = [["O", "B", "B", "O", "B"], ["O", "O"]]
    scores = seen.score_seen(TEST, tags, seen.find_names(TRAIN))
    # known names: 1 right, 1 predicted, 2 gold; others: 1 right, 2 predicted, 2 gold
    assert (scores["f1_seen"], scores["f1_unseen"]) == pytest.approx((200 / 3, 50))
    assert scores["f1"] == pytest.approx(metrics.entity_scores([sentence.tags for sentence in TEST], tags)["f1"])
