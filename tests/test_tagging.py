"""Windows and words: no gold entity is lost, however long the sentence."""

import pytest
import torch
from transformers import BertConfig, BertForTokenClassification, BertTokenizer

from lib import metrics, optimizers, params, tagging, training, vocabularies
from lib.conll import Sentence
from lib.progress import Progress


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabulary")
    vocabularies.train_wordpiece(lambda: ["aspirin relieves pain in w x y z"] * 20, 60, cased=True).save_model(
        str(folder)
    )
    return BertTokenizer(vocab=str(folder / "vocab.txt"), do_lower_case=False)


@pytest.fixture(scope="module")
def sentences():
    filler = ["w", "x", "y", "z"]
    return [
        Sentence(["aspirin", "relieves", "pain"], ["B-Drug", "O", "O"]),
        # The entity of this one lies far past a window of 16 pieces.
        Sentence(filler * 15 + ["aspirin", "z"], ["O"] * 60 + ["B-Drug", "O"]),
        Sentence(["aspirin" * 9, "w"], ["B-Drug", "O"]),  # a word that alone is longer than a window
    ]


def make_model(labels, tokenizer, seed=0):
    torch.manual_seed(seed)
    return BertForTokenClassification(
        BertConfig(vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
                   intermediate_size=64, max_position_embeddings=16, num_labels=len(labels))
    ).eval()  # fmt: skip


def test_every_word_is_in_exactly_one_window(tokenizer, sentences):
    labels = tagging.list_labels(sentences)
    windows = tagging.make_windows(sentences, labels, tokenizer, 16)
    assert all(len(window.pieces) <= 16 for window in windows)
    assert len(windows) > len(sentences)
    for i, sentence in enumerate(sentences):
        back = [labels[n] for window in windows if window.sentence == i for n in window.labels]
        assert back == sentence.tags


def test_an_entity_past_the_limit_is_scored(tokenizer, sentences):
    labels = tagging.list_labels(sentences)
    model = make_model(labels, tokenizer)
    windows = tagging.make_windows(sentences, labels, tokenizer, 16)
    device = training.accelerator("float32")
    predicted = tagging.predict(model, windows, len(sentences), labels, 0, device, batch_size=2)
    gold = [sentence.tags for sentence in sentences]
    assert [len(tags) for tags in predicted] == [len(tags) for tags in gold]
    assert metrics.entity_scores(gold, predicted)["gold entities"] == 3


def test_it_overfits_and_finds_the_entity_past_the_limit(tokenizer, sentences):
    labels = tagging.list_labels(sentences)
    model = make_model(labels, tokenizer)
    windows = tagging.make_windows(sentences, labels, tokenizer, 16)
    device = training.accelerator("float32")
    batches = tagging.TaggingBatches(windows, 0, batch_size=4, epochs=60, seed=1)
    training.train(
        model, batches, tagging.tagging_loss, device=device, seed=1, progress=Progress("test"),
        settings=params.Optimization(optimizer="adamw", weight_decay=0.0, betas=[0.9, 0.999], dropout=0.0),
        rate_of=lambda step: 1e-2 * optimizers.slanted_triangle(step, len(batches), 0.1),
    )  # fmt: skip
    predicted = tagging.predict(model, windows, len(sentences), labels, 0, device)
    assert predicted == [sentence.tags for sentence in sentences]


def test_batches_hold_every_window_once_an_epoch_and_pad_little(tokenizer, sentences):
    labels = tagging.list_labels(sentences)
    windows = tagging.make_windows(sentences * 20, labels, tokenizer, 16)
    batches = tagging.TaggingBatches(windows, 0, batch_size=8, epochs=2, seed=3)
    half = len(batches) // 2
    for epoch in (batches.plan[:half], batches.plan[half:]):
        assert sorted(i for batch in epoch for i in batch) == list(range(len(windows)))
    assert [list(b) for b in batches.plan[:half]] != [list(b) for b in batches.plan[half:]]
    made = [batches[step, 0, 1] for step in range(len(batches))]
    assert [tuple(b["input_ids"].shape) for b in made] == [batches.shape(step) for step in range(len(batches))]
    filled = sum(b["attention_mask"].sum().item() for b in made) / sum(b["input_ids"].numel() for b in made)
    assert filled > 0.9


def test_labels_are_ignored_except_on_first_pieces(tokenizer, sentences):
    labels = tagging.list_labels(sentences)
    windows = tagging.make_windows(sentences[:1], labels, tokenizer, 32)
    batch = tagging.make_batch(windows, 0)
    assert (batch["labels"] != tagging.IGNORED).sum() == 3
