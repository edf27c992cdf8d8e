"""The tagger of several entity types, trained on datasets of one type each (tools/tagger.py)."""

import csv
import importlib.util
from collections import Counter

import pytest
import torch
from golden import write
from safetensors.torch import load_file

from lib.benchmarks import registry
from lib.benchmarks.instances import Sentence
from lib.finetuning import new_text, saved
from lib.study import paths

TOOL = paths.ROOT / "tools" / "tagger.py"


@pytest.fixture(scope="module")
def tagger():
    specification = importlib.util.spec_from_file_location("tagger", TOOL)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_a_sentence_of_two_sets_gets_the_entities_of_both(tagger):
    words = ["aspirin", "helps", "pain"]
    merged = list(tagger.merge([
        Sentence(words, ["O", "O", "B-Disease"], annotated=("Disease",)),
        Sentence(["pain"], ["B-Disease"], annotated=("Disease",)),
        Sentence(words, ["B-Chemical", "O", "O"], annotated=("Chemical",)),
        Sentence(words, ["O", "O", "O"], annotated=("Disease",)),  # a repeated sentence
    ]))  # fmt: skip
    assert merged == [Sentence(words, ["B-Chemical", "O", "B-Disease"], annotated=("Disease", "Chemical")),
                      Sentence(["pain"], ["B-Disease"], annotated=("Disease",))]  # fmt: skip


def test_sentences_left_out_of_training_are_counted(tagger, tmp_path):
    pain, mice, tested = "pain\tB\n\n", "mice\tB\n\n", "x\tO\n\n"
    empty = "a\tO\n\nb\tO\n\nc\tO\n\nd\tO\n\n"
    sets = {
        "ncbi-disease": {"train": pain + pain + tested, "dev": "cold\tB\n\n", "test": tested},
        "linnaeus": {"train": mice + empty, "dev": "moce\tB\n\n", "test": mice},
    }
    for key, parts in sets.items():
        for split, text in parts.items():
            write(tmp_path / "ner" / key / f"{split}.tsv", text)
    disease, species = (registry.lookup(key).at(tmp_path) for key in sets)
    left_out = Counter()
    train = tagger.join({"Disease": [disease], "Species": [species]}, left_out).load("train")
    assert left_out == {"of LINNAEUS without an entity": 3, "that also occur in a development or test set": 2,
                        "merged with an equal one": 1}  # fmt: skip
    assert [sentence.tags for sentence in train] == [["B-Disease"], ["O"]]  # pain, and a sentence of LINNAEUS
    assert len(train) + left_out.total() == len(disease.load("train")) + len(species.load("train"))


def test_a_tagger_is_made_scored_and_opened(tagger, bert, tmp_path, monkeypatch):
    monkeypatch.setenv("STUDY_DATA", str(paths.MADE_UP))
    folder = str(tmp_path / "tagger")
    assert tagger.main(["make", str(bert), folder, "--epochs", "1", "--threads", "1"]) == 0
    assert tagger.main(["score", folder]) == 0
    with open(tmp_path / "tagger" / "scores.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["dataset"] for row in rows] == [key for keys in tagger.SETS.values() for key in keys]
    weights = load_file(tmp_path / "tagger" / "model.safetensors")
    assert {weight.dtype for weight in weights.values()} == {torch.bfloat16}
    model = saved.load_saved(tmp_path / "tagger")
    assert {label.partition("-")[2] for label in model.task.labels} == {"", *tagger.SETS}
    assert len(new_text.tag_texts(model, ["Aspirin relieves pain.", ""])) == 2


TEXT = "BRCA1 mutations cause breast cancer in humans, which is treated with cisplatin."


def test_the_tagger_that_ships_finds_each_type():
    (entities,) = new_text.tag_texts(saved.load_saved(paths.ROOT / "model" / "tagger"), [TEXT])
    assert [(entity.type, TEXT[entity.start : entity.end]) for entity in entities] == [
        ("Gene", "BRCA1 mutations"), ("Disease", "breast cancer"), ("Species", "humans"), ("Chemical", "cisplatin"),
    ]  # fmt: skip


def test_the_score_in_its_card_is_that_of_the_weights(tagger, real_data):
    with open(paths.ROOT / "model" / "tagger" / "scores.csv", encoding="utf-8") as file:
        (row,) = (row for row in csv.DictReader(file) if row["dataset"] == "ncbi-disease")
    dataset = registry.lookup("ncbi-disease").at(real_data)
    test = tagger.read_as(dataset, "Disease", "test")
    model = saved.load_saved(paths.ROOT / "model" / "tagger")
    assert dataset.score(test, model.predict(test))["f1"] == pytest.approx(float(row["f1"]), abs=0.1)
