"""Tests of the CRF against enumerated label sequences, and of heads on each kind of encoder."""

import itertools
import re

import pytest
import torch
from conftest import each
from small_encoders import BODY, T5
from transformers import AutoConfig, AutoModel, FunnelConfig, FunnelModel, T5Config, T5EncoderModel

from lib.errors import StudyError
from lib.finetuning.tagging import spell
from lib.modeling import bodies, heads, models
from lib.modeling.crf import Crf

SIZE = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
LAYERS, LABELS = 2, 3


@pytest.fixture
def crf():
    torch.manual_seed(0)
    model = Crf(LAYERS, LABELS)
    for weight in model.parameters():
        torch.nn.init.normal_(weight)
    return model


def score(crf, scores, layer, path):
    """Return the score of one label sequence by definition."""
    total = crf.first[layer, path[0]] + crf.last[layer, path[-1]]
    total = total + sum(scores[position, layer, label] for position, label in enumerate(path))
    return total + sum(crf.steps[layer, previous, following] for previous, following in itertools.pairwise(path))


def enumerate_paths(crf, scores, layer, length) -> tuple[list[tuple], torch.Tensor]:
    """Return every label sequence of a length and its score."""
    paths = list(itertools.product(range(LABELS), repeat=length))
    return paths, torch.stack([score(crf, scores, layer, path) for path in paths])


def test_the_crf_agrees_with_enumeration_of_all_label_sequences(crf):
    scores, lengths = torch.randn(2, 4, LAYERS, LABELS), [4, 2]
    words = torch.arange(4)[None] < torch.tensor(lengths)[:, None]
    labels = torch.randint(LABELS, (2, 4, LAYERS))
    possible = torch.rand(2, 4, LAYERS, LABELS) < 0.6
    possible[..., 1] = True
    crf.requires_grad_(False)
    best, marginals = crf.decode(scores, words), crf.marginals(scores, words)
    expected, expected_of_any = 0.0, 0.0
    for (i, length), layer in itertools.product(enumerate(lengths), range(LAYERS)):
        paths, path_scores = enumerate_paths(crf, scores[i], layer, length)
        total = path_scores.logsumexp(0)
        assert tuple(best[i, :length, layer].tolist()) == paths[int(path_scores.argmax())]
        assert not best[i, length:, layer].any() and not marginals[i, length:, layer].any()
        for position, label in itertools.product(range(length), range(LABELS)):
            matching = path_scores[torch.tensor([path[position] == label for path in paths])]
            probability = float((matching.logsumexp(0) - total).exp())
            assert float(marginals[i, position, layer, label]) == pytest.approx(probability, abs=1e-5)
        expected += float(total - score(crf, scores[i], layer, labels[i, :length, layer].tolist()))
        allowed = [all(possible[i, position, layer, label] for position, label in enumerate(path)) for path in paths]
        expected_of_any += float(total - path_scores[torch.tensor(allowed)].logsumexp(0))
    tags = sum(lengths) * LAYERS
    assert float(crf.loss(scores, labels, words)) == pytest.approx(expected / tags, rel=1e-5)
    assert float(crf.loss_of_any(scores, possible, words)) == pytest.approx(expected_of_any / tags, rel=1e-5)


def make_encoder(kind: str):
    torch.manual_seed(0)
    return models.encoder_of(models.build_model(kind, BODY, 50, 16, 0.0)).eval()


@pytest.fixture
def batch():
    ids = torch.randint(5, 50, (2, 10), generator=torch.Generator().manual_seed(1))
    padding = torch.arange(10)[None] >= torch.tensor([10, 6])[:, None]
    return {"input_ids": ids.masked_fill(padding, 1), "attention_mask": ~padding}


def make_other(kind: str, **size):
    return AutoModel.from_config(AutoConfig.for_model(kind, vocab_size=50, **size))


# Of those that bodies.py computes: test_bodies.py
@each("encoder", [make_other("roberta", **SIZE), make_other("bert", hidden_act="relu", **SIZE)])
def test_an_encoder_that_is_not_computed_here_is_left_to_the_library(encoder, batch):
    assert not bodies.knows(encoder) and bodies.knows(make_encoder("bert"))
    positions = torch.tensor([[0, 3], [0, 5]])
    with torch.no_grad():
        encoder.eval()
        whole = encoder(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"].long()).last_hidden_state
        states = heads.encode(encoder, batch, positions)
    assert torch.allclose(states, bodies.gather_states(whole, positions), atol=1e-5)


@each("kind", ["linear", "biLSTM", "CRF"])
@each("characters", [False, True])
def test_the_tagger_labels_each_word_in_each_layer(kind, characters, batch):
    tagger = heads.Tagger(make_encoder("bert"), LAYERS, LABELS, kind, 0.0, characters).eval()
    words = torch.tensor([[True] * 3, [True, True, False]])
    batch |= {"positions": torch.tensor([[1, 2, 4], [1, 3, 0]]), "words": words}
    if characters:
        batch["letters"] = torch.from_numpy(spell([["p53", "Of", "x"], ["ABC", "of"]]))
    batch["labels"] = torch.tensor([[[0, 1], [1, 2], [2, 0]], [[1, 1], [2, 0], [0, 0]]])
    assert tagger(batch).shape == (2, 3, LAYERS)
    loss = tagger.loss(batch)
    batch["labels"][1, 2] = 2  # a position without a word
    assert torch.equal(tagger.loss(batch), loss)
    possible = batch["labels"][..., None] == torch.arange(LABELS)
    assert torch.allclose(tagger.loss(batch | {"possible": possible}), loss)
    loss.backward()
    assert all(weight.grad is not None for name, weight in tagger.named_parameters() if "pooler" not in name)


def test_letters_distinguish_words_of_one_token(batch):
    tagger = heads.Tagger(make_encoder("bert"), 1, LABELS, "CRF", 0.0, characters=True).eval()
    batch |= {"positions": torch.tensor([[1, 1], [1, 1]]), "words": torch.ones(2, 2, dtype=torch.bool)}
    batch["letters"] = torch.from_numpy(spell([["WAS", "was"], ["was", "was"]]))
    (first, second), (same, again) = tagger.scores(batch)
    assert not torch.equal(first, second) and torch.equal(same, again)
    letters = spell([["aα", "x" * 99], ["b"]])
    assert letters.shape == (2, 2, heads.LETTERS)
    assert letters[0, 0].tolist() == [97, heads.KINDS] + [0] * (heads.LETTERS - 2)
    assert (letters[0, 1] == 120).all() and not letters[1, 1].any()


@each(
    ("target", "outputs", "spans", "kind"),
    [("class", 3, 2, "linear"), ("labels", 3, 1, "biLSTM"), ("number", 1, 1, "linear")],
)
def test_the_classifier_has_a_score_and_a_loss_for_each_kind_of_target(target, outputs, spans, kind, batch):
    classifier = heads.Classifier(make_encoder("electra"), outputs, target, spans, kind, 0.0).eval()
    targets = {"class": torch.tensor([0, 2]), "labels": torch.ones(2, 3), "number": torch.tensor([0.5, 2.0])}
    batch |= {"positions": torch.zeros(2, spans, 1, dtype=torch.long), "labels": targets[target]}
    assert classifier(batch).shape == ((2,) if target == "number" else (2, outputs))
    assert torch.isfinite(classifier.loss(batch))


def test_a_mention_is_the_maximum_over_its_tokens(batch):
    encoder = make_encoder("bert")
    classifier = heads.Classifier(encoder, 2, "class", 2, "linear", 0.0).eval()
    batch["positions"] = torch.tensor([[[1, 2], [4, 0]], [[3, 0], [1, 2]]])
    batch["absent"] = torch.tensor([[[False, False], [False, True]], [[False, True], [False, False]]])
    states = heads.encode(encoder, batch)
    expected = torch.stack([
        torch.cat([states[0, 1:3].amax(0), states[0, 4]]),
        torch.cat([states[1, 3], states[1, 1:3].amax(0)]),
    ])  # fmt: skip
    assert torch.allclose(classifier.encoding(batch), expected, atol=1e-6)


def test_classes_are_weighted_in_the_loss(batch):
    torch.manual_seed(0)
    weights = torch.tensor([1.0, 99.0])
    plain = heads.Classifier(make_encoder("bert"), 2, "class", 1, "linear", 0.0).eval()
    weighted = heads.Classifier(make_encoder("bert"), 2, "class", 1, "linear", 0.0, weights).eval()
    weighted.score.load_state_dict(plain.score.state_dict())
    weighted.encoder.load_state_dict(plain.encoder.state_dict())
    batch |= {"positions": torch.zeros(2, 1, 1, dtype=torch.long), "labels": torch.tensor([0, 1])}
    with torch.no_grad():
        losses = torch.nn.functional.cross_entropy(plain(batch), batch["labels"], reduction="none")
        assert float(weighted.loss(batch)) == pytest.approx(float((losses * weights).mean()), rel=1e-5)


def test_spans_are_at_readable_tokens_only(batch):
    finder = heads.SpanFinder(make_encoder("bert")).eval()
    readable = torch.zeros(2, 10, dtype=torch.bool)
    readable[:, [0, 4, 5]] = True
    batch |= {"readable": readable, "labels": torch.tensor([[4, 5], [0, 0]])}
    shares = finder(batch).softmax(1)
    assert torch.allclose(shares.sum(1), torch.ones(2, 2)) and not shares[~readable].any()
    expected = -finder(batch).log_softmax(1)[[0, 0, 1, 1], [4, 5, 0, 0], [0, 1, 0, 1]].mean()
    assert torch.allclose(finder.loss(batch), expected)


@each(("kind", "layers"), [("bert", 2), ("albert", 1), ("electra", 2)])
def test_the_rate_falls_from_the_head_to_the_embeddings_as_in_electras_code(kind, layers):
    tagger = heads.Tagger(make_encoder(kind), 1, 3, "CRF", 0.0)
    shares = heads.share_rates(tagger, 2.0, 100.0, 0.8)
    assert shares.keys() == {name for name, _ in tagger.named_parameters()}
    assert shares["encoder.embeddings.word_embeddings.weight"] == min(shares.values()) == 0.8 ** (layers + 2)
    in_layers = sorted({share for name, share in shares.items() if "layer" in name and re.search(r"\.[01]\.", name)})
    assert in_layers == pytest.approx([0.8 ** (layers + 1 - number) for number in range(layers)])
    assert (shares["score.weight"], shares["crf.steps"]) == (2.0, 100.0)
    assert set(heads.share_rates(tagger, 1.0, 1.0, 1.0).values()) == {1.0}


FUNNEL = {"block_sizes": [2, 1], "num_decoder_layers": 1, "d_model": 32, "n_head": 2, "d_head": 16, "d_inner": 64}


@each(
    ("encoder", "powers"),  # part of the names of parameters -> the power of the decay that all of them have
    [
        (T5EncoderModel(T5Config(vocab_size=50, **T5)),
         {"encoder.shared.": 4, ".block.0.": 3, ".block.1.": 2, "encoder.final_layer_norm.": 1}),
        (FunnelModel(FunnelConfig(vocab_size=50, **FUNNEL)),
         {"encoder.embeddings.word_embeddings.": 6, "encoder.blocks.0.0.": 5, "encoder.blocks.0.1.": 4,
          "encoder.blocks.1.0.": 3, "decoder.layers.0.": 2}),
        (make_other("xlm", emb_dim=32, n_layers=2, n_heads=2),
         {"encoder.embeddings.": 4, "attentions.0.": 3, "ffns.0.": 3, "attentions.1.": 2, "ffns.1.": 2}),
    ],
)  # fmt: skip
def test_the_rate_falls_over_layers_with_other_names(encoder, powers):
    shares = heads.share_rates(heads.Tagger(encoder, 1, 3, "linear", 0.0), 1.0, 1.0, 0.5)
    for part, power in powers.items():
        assert {share for name, share in shares.items() if part in name} == {0.5**power}, part


def test_a_decay_over_layers_without_names_is_refused():
    tagger = heads.Tagger(make_encoder("bert"), 1, 3, "linear", 0.0)
    tagger.encoder.encoder = torch.nn.Identity()
    with pytest.raises(StudyError, match="BertModel names no layers over which the rate could fall"):
        heads.share_rates(tagger, 1.0, 1.0, 0.8)
