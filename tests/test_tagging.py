"""Tests of tagging: no gold tag is lost, however long the sentence and whatever the scheme."""

import pytest
import torch

from lib.benchmarks import metrics, registry
from lib.benchmarks.instances import Sentence
from lib.finetuning import tagging
from lib.study import open_study
from lib.vocabularies.learning import train_vocabulary

BIO = [
    ["O", "B-D", "I-D", "I-D", "O"],
    ["B-D", "B-D", "I-D", "O", "B-C"],
    ["I-D", "O", "B-C", "I-D", "O"],  # an I without its B begins an entity
    ["B", "I", "O", "B", "O"],
]


@pytest.fixture(scope="module")
def tokenizer():
    texts = ["aspirin relieves pain in w x y z"] * 20
    return train_vocabulary(lambda: texts, "wordpiece", 60, cased=False)


@pytest.fixture(scope="module")
def sentences():
    filler = ["w", "x", "y", "z"]
    return [
        Sentence(["aspirin", "relieves", "pain"], ["B-Drug", "O", "O"]),
        # Its entity lies far beyond a sequence of 16 tokens.
        Sentence(filler * 15 + ["aspirin", "z"], ["O"] * 60 + ["B-Drug", "O"]),
        Sentence(["aspirin" * 9, "w"], ["B-Drug", "O"]),  # a single word longer than a sequence
    ]


def make_task(tokenizer, sentences, scheme="BIO", dataset="ncbi-disease", length=16):
    settings = open_study("paper").protocol("gu", dataset).model_copy(update={"scheme": scheme})
    return tagging.Tagging(registry.lookup(dataset), settings, tokenizer, sentences, length)


@pytest.mark.parametrize(
    ("scheme", "spelt"),
    [
        ("BIO", [["O", "B-D", "I-D", "I-D", "O"], ["B-D", "B-D", "I-D", "O", "B-C"],
                 ["B-D", "O", "B-C", "B-D", "O"], ["B", "I", "O", "B", "O"]]),
        ("BIOUL", [["O", "B-D", "I-D", "L-D", "O"], ["U-D", "B-D", "L-D", "O", "U-C"],
                   ["U-D", "O", "U-C", "U-D", "O"], ["B", "L", "O", "U", "O"]]),
        ("IO", [["O", "I-D", "I-D", "I-D", "O"], ["I-D", "I-D", "I-D", "O", "I-C"],
                ["I-D", "O", "I-C", "I-D", "O"], ["I", "I", "O", "I", "O"]]),
    ],
)  # fmt: skip
def test_schemes_by_hand(scheme, spelt):
    assert [tagging.respell(tags, scheme) for tags in BIO] == spelt


def test_every_scheme_leads_back_to_the_same_entities():
    for scheme in ("BIO", "BIOUL"):
        restored = [tagging.to_bio(tagging.respell(tags, scheme)) for tags in BIO]
        assert metrics.entity_scores(BIO, restored)["f1"] == 100
    merged = [tagging.to_bio(tagging.respell(tags, "IO")) for tags in BIO]
    assert metrics.entity_sets(merged)[1] == {("D", 0, 2), ("C", 4, 4)}  # adjacent entities of one type merge
    assert metrics.entity_sets(merged)[0] == metrics.entity_sets(BIO)[0]


@pytest.mark.parametrize("scheme", ["BIO", "BIOUL", "IO"])
def test_every_gold_tag_survives_the_limit(tokenizer, sentences, scheme):
    task = make_task(tokenizer, sentences, scheme)
    sequences = task.encode(sentences)
    assert task.cut == 1  # the word longer than a sequence loses its end, which is counted
    assert all(len(sequence.tokens) <= 16 for sequence in sequences) and len(sequences) > len(sentences)
    predicted = task.decode(sentences, sequences, [sequence.target for sequence in sequences])
    gold = [sentence.tags for sentence in sentences]
    scores = metrics.entity_scores(gold, predicted)
    assert (scores["f1"], scores["gold entities"]) == (100, 3)


def test_labels_are_on_first_tokens_alone(tokenizer, sentences):
    task = make_task(tokenizer, sentences, length=32)
    batch = task.collate(task.encode(sentences[:1]))
    assert batch["words"].sum() == 3
    tokens = tokenizer.convert_ids_to_tokens(batch["input_ids"][0][batch["positions"][0]])
    assert [token[0] for token in tokens] == ["a", "r", "p"] and not any(piece.startswith("##") for piece in tokens)


def test_what_the_head_gives_is_read_sequence_by_sequence(tokenizer, sentences):
    task = make_task(tokenizer, sentences)
    sequences = task.encode(sentences)[:3]
    batch = task.collate(sequences)
    assert task.read(batch["labels"], sequences) == [sequence.target for sequence in sequences]
    assert isinstance(batch["labels"], torch.Tensor)


def test_a_type_that_training_lacks_is_scored_and_cannot_be_found(tokenizer, sentences):
    task = make_task(tokenizer, sentences)
    new_sentences = [Sentence(["w", "x"], ["B-Gene", "B-Drug"])]
    sequences = task.encode(new_sentences)
    predicted = task.decode(new_sentences, sequences, [sequence.target for sequence in sequences])
    assert predicted == [["O", "B-Drug"]]
    assert metrics.entity_scores([new_sentences[0].tags], predicted)["recall"] == 50


def test_a_bar_in_a_type_is_a_letter_of_it(tokenizer):
    sentences = [Sentence(["w", "x"], ["B-Gene|Protein", "I-Gene|Protein"])]
    task = make_task(tokenizer, sentences)
    assert task.labels == ["O", "B-Gene|Protein", "I-Gene|Protein"]
    sequences = task.encode(sentences)
    assert task.decode(sentences, sequences, [sequence.target for sequence in sequences]) == [sentences[0].tags]


def test_elements_that_overlap_have_a_layer_each(tokenizer):
    sentences = [Sentence(["w", "x", "y", "z"], ["I-INT", "I-INT|I-PAR", "I-PAR", "O"]), Sentence(["w"], ["I-OUT"])]
    task = make_task(tokenizer, sentences, dataset="ebm-pico")
    assert (task.layers, task.labels) == (["INT", "OUT", "PAR"], ["O", "B", "I"])
    sequences = task.encode(sentences)
    assert sequences[0].target == [[1, 0, 0], [2, 0, 1], [0, 0, 2], [0, 0, 0]]
    predicted = task.decode(sentences, sequences, [sequence.target for sequence in sequences])
    assert predicted == [sentence.tags for sentence in sentences]


def test_a_type_that_was_not_looked_for_is_neither_learnt_nor_judged(tokenizer):
    sentences = [Sentence(["aspirin", "relieves", "pain"], ["B-Drug", "O", "O"], annotated=("Drug",)),
                 Sentence(["x", "pain"], ["O", "B-Symptom"], annotated=("Drug", "Symptom"))]  # fmt: skip
    task = make_task(tokenizer, sentences)
    assert task.labels == ["O", "B-Drug", "I-Drug", "B-Symptom", "I-Symptom"]
    possible = task.collate(task.encode(sentences))["possible"][:, :, 0]
    unconstrained = [True, False, False, True, True]
    assert possible[0].tolist() == [[False, True, False, False, False], unconstrained, unconstrained]
    assert possible[1, :2].tolist() == [[True, False, False, False, False], [False, False, False, True, False]]
    targets = [[[1], [0], [3]], [[1], [3]]]
    assert task.decode(sentences, task.encode(sentences), targets) == [["B-Drug", "O", "O"], ["B-Drug", "B-Symptom"]]
    fully_annotated = [Sentence(["x", "pain"], ["O", "B-Symptom"])]
    task = make_task(tokenizer, fully_annotated)
    assert "possible" not in task.collate(task.encode(fully_annotated))
