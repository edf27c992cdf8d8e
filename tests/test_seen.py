"""Entities whose name was seen in training, by hand."""

import pytest

from lib.benchmarks import metrics, seen
from lib.benchmarks.instances import Sentence

TRAIN = [Sentence(["type", "2", "diabetes", "and", "gout"], ["B", "I", "I", "O", "B"])]
TEST = [
    Sentence(["Gout", "or", "gout", "or", "lupus"], ["B", "O", "B", "O", "B"]),
    Sentence(["no", "gout"], ["O", "B"]),
]


def test_names_are_counted_as_they_are_written():
    assert seen.find_names(TRAIN) == {"type 2 diabetes", "gout"}
    assert seen.count_names(TRAIN, TEST) == {"entities": 4, "entities_seen": 2, "names": 3, "names_seen": 1}


def test_scores_are_split_by_the_name_of_an_entity():
    """Right: one gout of two, and lupus; wrong: a gout and an or, of which only the first has a known name."""
    tags = [["O", "B", "B", "O", "B"], ["O", "O"]]
    found = seen.score_seen(TEST, tags, seen.find_names(TRAIN))
    # of known names 1 right, 1 predicted, 2 gold; of others 1 right, 2 predicted, 2 gold
    assert (found["f1_seen"], found["f1_unseen"]) == pytest.approx((200 / 3, 50))
    assert found["f1"] == pytest.approx(metrics.entity_scores([one.tags for one in TEST], tags)["f1"])
