"""Tests of classifiers of Japanese documents."""

import numpy as np
import pytest
import torch
from conftest import each

from lib.finetuning import document_classifiers
from lib.study import classifiers, open_study, params, paths


def draw_vectors(words: tuple[str, ...]) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(len(words), document_classifiers.VECTORS))


@pytest.fixture
def study(smoke_data, monkeypatch):
    """The study of made-up data, with random vectors in place of FastText's."""
    monkeypatch.setattr(classifiers, "look_up_vectors", lambda study, seed, words: draw_vectors(words))
    return open_study("smoke")


POINTS = {
    "tfidf-svm": {"C": 10.0, "words": 2, "sublinear": True},
    "cnn": {"learning_rate": 1e-3, "width": 50, "dropout": 0.3, "epochs": 20},
    "bilstm": {"learning_rate": 1e-3, "width": 50, "dropout": 0.3, "epochs": 20},
}


@each("key", params.BASELINES)
def test_training_documents_are_learnt(study, key):
    documents = study.dataset("jmed-smdis").load("train")[:12]
    labels = [document.labels[0] for document in documents]
    assert len(set(labels)) > 1
    assert document_classifiers.predict_classes(key, POINTS[key], documents, documents, draw_vectors, 1) == labels


def test_a_baseline_is_tuned_then_run_on_every_fold(study, monkeypatch):
    key = "cnn"
    space = {name: [value] for name, value in POINTS[key].items()} | {"epochs": [1, 2]}
    monkeypatch.setitem(classifiers.SPACES, key, space)
    result = classifiers.run_classifier(study, key, "jmed-smdis", "wada")
    assert [run["fold"] for run in result["runs"]] == [1, 2]  # as many folds as the scale's budget has
    assert len(result["candidates"]) == params.load("scales", "smoke").finetuning.trials
    assert paths.results("smoke", key, "jmed-smdis", "wada").exists()


def test_attention_is_on_words_alone_and_equal_rows_are_penalised():
    torch.manual_seed(0)
    network = document_classifiers.AttentiveLstm(torch.randn(9, 8), 3, 4, 0.0).eval()
    ids = torch.tensor([[1, 2, 3, 4], [5, 6, 0, 0]])
    batch = {"input_ids": ids, "attention_mask": ids != 0, "labels": torch.tensor([0, 1])}
    scores, weights = network.attend(batch)
    assert torch.allclose(weights.sum(1), torch.ones(2, network.ROWS)) and not weights[1, 2:].any()
    plain = torch.nn.functional.cross_entropy(scores, batch["labels"])
    assert network.loss(batch) > plain  # because attention rows of random weights are alike
    alone = network({"input_ids": ids[1:, :2]})
    assert torch.allclose(alone, scores[1:], atol=1e-5)


def test_a_document_may_be_shorter_than_a_filter():
    network = document_classifiers.Cnn(torch.randn(5, 8), 3, 4, 0.0).eval()
    assert network({"input_ids": torch.tensor([[1]])}).shape == (1, 3)
