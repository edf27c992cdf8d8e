"""Tests of tagging: no gold tag is lost, however long the sentence and whatever the scheme."""

from conftest import each

from lib.benchmarks import bio, metrics, registry
from lib.benchmarks.instances import Sentence
from lib.finetuning import tagging
from lib.study import open_study

BIO = [
    ["O", "B-D", "I-D", "I-D", "O"],
    ["B-D", "B-D", "I-D", "O", "B-C"],
    ["I-D", "O", "B-C", "I-D", "O"],  # an I without its B begins an entity
    ["B", "I", "O", "B", "O"],
]


SENTENCES = [
    Sentence(["aspirin", "relieves", "pain"], ["B-Drug", "O", "O"]),
    # Its entity lies far beyond a sequence of 16 tokens.
    Sentence([*"wxyz"] * 15 + ["aspirin", "z"], ["O"] * 60 + ["B-Drug", "O"]),
    Sentence(["aspirin" * 9, "w"], ["B-Drug", "O"]),  # a single word longer than a sequence
]


def make_task(tokenizer, sentences, scheme="BIO", dataset="ncbi-disease", length=16):
    settings = open_study("paper").protocol("gu", dataset).model_copy(update={"scheme": scheme})
    return tagging.Tagging(registry.lookup(dataset), settings, tokenizer, sentences, length)


def predict_gold(task, sentences) -> list[list[str]]:
    """Return the tags that the task reads from a perfect head's output."""
    sequences = task.encode(sentences)
    return task.decode(sentences, sequences, [sequence.target for sequence in sequences])


def test_schemes_by_hand_and_back():
    spelt = {
        "BIO": [["O", "B-D", "I-D", "I-D", "O"], ["B-D", "B-D", "I-D", "O", "B-C"],
                ["B-D", "O", "B-C", "B-D", "O"], ["B", "I", "O", "B", "O"]],
        "BIOUL": [["O", "B-D", "I-D", "L-D", "O"], ["U-D", "B-D", "L-D", "O", "U-C"],
                  ["U-D", "O", "U-C", "U-D", "O"], ["B", "L", "O", "U", "O"]],
        "IO": [["O", "I-D", "I-D", "I-D", "O"], ["I-D", "I-D", "I-D", "O", "I-C"],
               ["I-D", "O", "I-C", "I-D", "O"], ["I", "I", "O", "I", "O"]],
    }  # fmt: skip
    for scheme, expected in spelt.items():
        assert [bio.respell(tags, scheme) for tags in BIO] == expected
    for scheme in ("BIO", "BIOUL"):
        restored = [bio.to_bio(tags) for tags in spelt[scheme]]
        assert metrics.entity_scores(BIO, restored)["f1"] == 100
    merged = [bio.to_bio(tags) for tags in spelt["IO"]]
    assert metrics.entity_sets(merged)[1] == {("D", 0, 2), ("C", 4, 4)}  # adjacent entities of one type merge
    assert metrics.entity_sets(merged)[0] == metrics.entity_sets(BIO)[0]


@each("scheme", ["BIO", "BIOUL", "IO"])
def test_every_gold_tag_survives_the_length_limit(tokenizer, scheme):
    task = make_task(tokenizer, SENTENCES, scheme)
    sequences = task.encode(SENTENCES)
    assert task.cut == 1  # the word longer than a sequence loses its end, which is counted
    assert all(len(sequence.tokens) <= 16 for sequence in sequences) and len(sequences) > len(SENTENCES)
    scores = metrics.entity_scores([sentence.tags for sentence in SENTENCES], predict_gold(task, SENTENCES))
    assert (scores["f1"], scores["gold entities"]) == (100, 3)
    batch = task.collate(sequences[:3])
    assert task.read(batch["labels"], sequences[:3]) == [sequence.target for sequence in sequences[:3]]


def test_labels_are_at_first_tokens_only(tokenizer):
    task = make_task(tokenizer, SENTENCES, length=32)
    batch = task.collate(task.encode(SENTENCES[:1]))
    assert batch["words"].sum() == 3
    tokens = tokenizer.convert_ids_to_tokens(batch["input_ids"][0][batch["positions"][0]])
    assert [token[0] for token in tokens] == ["a", "r", "p"] and not any(piece.startswith("##") for piece in tokens)


def test_a_type_that_training_lacks_cannot_be_found(tokenizer):
    task = make_task(tokenizer, SENTENCES)
    new_sentences = [Sentence(["w", "x"], ["B-Gene", "B-Drug"])]
    assert predict_gold(task, new_sentences) == [["O", "B-Drug"]]


def test_a_type_may_contain_a_bar(tokenizer):
    sentences = [Sentence(["w", "x"], ["B-Gene|Protein", "I-Gene|Protein"])]
    task = make_task(tokenizer, sentences)
    assert task.labels == ["O", "B-Gene|Protein", "I-Gene|Protein"]
    assert predict_gold(task, sentences) == [sentences[0].tags]


def test_overlapping_elements_have_a_layer_each(tokenizer):
    sentences = [Sentence(["w", "x", "y", "z"], ["I-INT", "I-INT|I-PAR", "I-PAR", "O"]), Sentence(["w"], ["I-OUT"])]
    task = make_task(tokenizer, sentences, dataset="ebm-pico")
    assert (task.layers, task.labels) == (["INT", "OUT", "PAR"], ["O", "B", "I"])
    assert task.encode(sentences)[0].target == [[1, 0, 0], [2, 0, 1], [0, 0, 2], [0, 0, 0]]
    assert predict_gold(task, sentences) == [sentence.tags for sentence in sentences]


def test_types_that_were_not_annotated_are_neither_learnt_nor_excluded(tokenizer):
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
