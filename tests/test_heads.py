"""Tests of the CRF against enumerated label sequences, and of heads on each kind of encoder."""

import itertools
import re

import pytest
import torch
from conftest import each
from small_encoders import T5
from transformers import (
    BertConfig,
    BertModel,
    FunnelConfig,
    FunnelModel,
    RobertaConfig,
    RobertaModel,
    T5Config,
    T5EncoderModel,
    XLMConfig,
    XLMModel,
)

from lib.errors import StudyError
from lib.finetuning.tagging import spell
from lib.modeling import bodies, heads, models
from lib.modeling.crf import Crf
from lib.modeling.shape import Body
from lib.progress import Progress
from lib.training import training
from lib.training.optimization import Optimization

BODY = Body(layers=2, hidden=32, heads=2, intermediate=64, embedding=16)
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


def test_the_crf_agrees_with_every_sequence_written_out(crf):
    scores, lengths = torch.randn(2, 4, LAYERS, LABELS), [4, 2]
    words = torch.arange(4)[None] < torch.tensor(lengths)[:, None]
    labels = torch.randint(LABELS, (2, 4, LAYERS))
    with torch.inference_mode():
        best, marginals, expected = crf.decode(scores, words), crf.marginals(scores, words), 0.0
    crf.requires_grad_(False)
    for i, length in enumerate(lengths):
        for layer in range(LAYERS):
            paths = list(itertools.product(range(LABELS), repeat=length))
            all_scores = torch.stack([score(crf, scores[i], layer, path) for path in paths])
            assert tuple(best[i, :length, layer].tolist()) == paths[int(all_scores.argmax())]
            assert not best[i, length:, layer].any()
            for position, label in itertools.product(range(length), range(LABELS)):
                matching = torch.stack([all_scores[n] for n, path in enumerate(paths) if path[position] == label])
                probability = (matching.logsumexp(0) - all_scores.logsumexp(0)).exp()
                assert float(marginals[i, position, layer, label]) == pytest.approx(float(probability), abs=1e-5)
            assert not marginals[i, length:, layer].any()
            gold = score(crf, scores[i], layer, labels[i, :length, layer].tolist())
            expected += float(all_scores.logsumexp(0) - gold)
    assert float(crf.loss(scores, labels, words)) == pytest.approx(expected / (sum(lengths) * LAYERS), rel=1e-5)


def make_encoder(kind: str):
    torch.manual_seed(0)
    if kind == "roberta":
        return RobertaModel(RobertaConfig(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                                          intermediate_size=64, max_position_embeddings=20)).eval()  # fmt: skip
    return models.encoder_of(models.build_model(kind, BODY, 50, 16, 0.0)).eval()


@pytest.fixture
def batch():
    ids = torch.randint(5, 50, (2, 10), generator=torch.Generator().manual_seed(1))
    padding = torch.arange(10)[None] >= torch.tensor([10, 6])[:, None]
    return {"input_ids": ids.masked_fill(padding, 1), "attention_mask": ~padding}


@each("kind", ["bert", "roberta"])  # other kinds: test_bodies.py
def test_states_are_the_librarys(kind, batch):
    encoder, positions = make_encoder(kind), torch.tensor([[0, 3], [0, 5]])
    with torch.no_grad():
        whole = encoder(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"].long()).last_hidden_state
        states = heads.encode(encoder, batch, positions)
    assert torch.allclose(states, bodies.gather_states(whole, positions), atol=1e-5)


def test_a_body_that_is_not_computed_here_is_left_to_the_library(batch):
    encoder = BertModel(BertConfig(vocab_size=50, hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
                                   intermediate_size=64, hidden_act="relu")).eval()  # fmt: skip
    assert not bodies.knows(encoder) and bodies.knows(make_encoder("bert"))
    assert heads.encode(encoder, batch, torch.zeros(2, 1, dtype=torch.long)).shape == (2, 1, 32)


@each("kind", ["linear", "biLSTM", "CRF"])
@each("characters", [False, True])
def test_the_tagger_labels_each_word_in_each_layer(kind, characters, batch):
    tagger = heads.Tagger(make_encoder("bert"), LAYERS, LABELS, kind, 0.0, characters).eval()
    words = torch.tensor([[True] * 3, [True, True, False]])
    batch |= {"positions": torch.tensor([[1, 2, 4], [1, 3, 0]]), "words": words}
    if characters:
        batch["letters"] = torch.from_numpy(spell([["p53", "Of", "x"], ["ABC", "of"]]))
    batch["labels"] = torch.ones(2, 3, LAYERS, dtype=torch.long)
    assert tagger(batch).shape == (2, 3, LAYERS)
    loss = tagger.loss(batch)
    batch["labels"][1, 2] = 2  # a position without a word
    assert torch.equal(tagger.loss(batch), loss)
    loss.backward()
    assert all(weight.grad is not None for name, weight in tagger.named_parameters() if "pooler" not in name)


def test_of_several_possible_labels_any_will_do(crf):
    crf.requires_grad_(False)
    scores, lengths = torch.randn(2, 4, LAYERS, LABELS), [4, 2]
    words = torch.arange(4)[None] < torch.tensor(lengths)[:, None]
    possible = torch.rand(2, 4, LAYERS, LABELS) < 0.6
    possible[..., 1] = True
    expected = 0.0
    for (i, length), layer in itertools.product(enumerate(lengths), range(LAYERS)):
        paths = list(itertools.product(range(LABELS), repeat=length))
        path_scores = torch.stack([score(crf, scores[i], layer, path) for path in paths])
        allowed = [all(possible[i, position, layer, label] for position, label in enumerate(path)) for path in paths]
        expected += float(path_scores.logsumexp(0) - path_scores[torch.tensor(allowed)].logsumexp(0))
    loss = float(crf.loss_of_any(scores, possible, words))
    assert loss == pytest.approx(expected / (sum(lengths) * LAYERS), rel=1e-5)


@each("kind", ["linear", "CRF"])
def test_one_possible_label_is_a_label(kind, batch):
    tagger = heads.Tagger(make_encoder("bert"), LAYERS, LABELS, kind, 0.0).eval()
    batch["positions"] = torch.tensor([[1, 2, 4], [1, 3, 0]])
    batch["words"] = torch.tensor([[True] * 3, [True, True, False]])
    batch["labels"] = torch.randint(LABELS, (2, 3, LAYERS))
    loss = tagger.loss(batch)
    possible = batch["labels"][..., None] == torch.arange(LABELS)
    assert torch.allclose(tagger.loss(batch | {"possible": possible}), loss)


def test_letters_tell_words_apart_that_a_vocabulary_does_not(batch):
    tagger = heads.Tagger(make_encoder("bert"), 1, LABELS, "CRF", 0.0, characters=True).eval()
    batch |= {"positions": torch.tensor([[1, 1], [1, 1]]), "words": torch.ones(2, 2, dtype=torch.bool)}
    batch["letters"] = torch.from_numpy(spell([["WAS", "was"], ["was", "was"]]))
    (first, second), (same, again) = tagger.scores(batch)
    assert not torch.equal(first, second) and torch.equal(same, again)


def test_the_letters_of_a_word_end_with_it_or_at_the_limit():
    letters = spell([["aα", "x" * 99], ["b"]])
    assert letters.shape == (2, 2, heads.LETTERS)
    assert letters[0, 0].tolist() == [97, heads.KINDS] + [0] * (heads.LETTERS - 2)
    assert (letters[0, 1] == 120).all() and not letters[1, 1].any()


@each(("target", "outputs"), [("class", 3), ("labels", 3), ("number", 1)])
@each(("spans", "kind"), [(1, "linear"), (2, "linear"), (1, "biLSTM")])
def test_the_classifier_ends_in_each_kind_of_target(target, outputs, spans, kind, batch):
    classifier = heads.Classifier(make_encoder("electra"), outputs, target, spans, kind, 0.0).eval()
    targets = {"class": torch.tensor([0, 2]), "labels": torch.ones(2, 3), "number": torch.tensor([0.5, 2.0])}
    batch |= {"positions": torch.zeros(2, spans, 1, dtype=torch.long), "labels": targets[target]}
    assert classifier(batch).shape == ((2,) if target == "number" else (2, outputs))
    assert torch.isfinite(classifier.loss(batch))


def test_a_mention_is_the_highest_value_of_its_pieces(batch):
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


def test_weights_of_classes_count(batch):
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


def test_spans_stand_where_they_may(batch):
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
    body = models.encoder_of(models.build_model(kind, BODY, 50, 16, 0.0))
    tagger = heads.Tagger(body, 1, 3, "CRF", 0.0)
    shares = heads.share_rates(tagger, 2.0, 100.0, 0.8)
    assert shares.keys() == {name for name, _ in tagger.named_parameters()}
    assert shares["encoder.embeddings.word_embeddings.weight"] == min(shares.values()) == 0.8 ** (layers + 2)
    in_layers = sorted({share for name, share in shares.items() if "layer" in name and re.search(r"\.[01]\.", name)})
    assert in_layers == pytest.approx([0.8 ** (layers + 1 - number) for number in range(layers)])
    assert (shares["score.weight"], shares["crf.steps"]) == (2.0, 100.0)
    assert set(heads.share_rates(tagger, 1.0, 1.0, 1.0).values()) == {1.0}


def test_the_rate_falls_over_the_blocks_of_t5_and_not_over_their_sublayers():
    tagger = heads.Tagger(T5EncoderModel(T5Config(vocab_size=50, **T5)), 1, 3, "linear", 0.0)
    shares = heads.share_rates(tagger, 1.0, 1.0, 0.5)
    assert shares["encoder.shared.weight"] == 0.5**4 and shares["encoder.encoder.final_layer_norm.weight"] == 0.5
    in_blocks = [
        {share for name, share in shares.items() if name.startswith(f"encoder.encoder.block.{block}.")}
        for block in (0, 1)
    ]
    assert in_blocks == [{0.5**3}, {0.5**2}]


def test_the_rate_falls_over_the_layers_in_funnels_blocks_and_then_over_its_decoder():
    sizes = {"block_sizes": [2, 1], "num_decoder_layers": 1, "d_model": 32, "n_head": 2, "d_head": 16, "d_inner": 64}
    tagger = heads.Tagger(FunnelModel(FunnelConfig(vocab_size=50, **sizes)), 1, 3, "linear", 0.0)
    shares = heads.share_rates(tagger, 1.0, 1.0, 0.5)
    layers = ("encoder.blocks.0.0.", "encoder.blocks.0.1.", "encoder.blocks.1.0.", "decoder.layers.0.")
    in_layers = [{share for name, share in shares.items() if name.startswith(f"encoder.{layer}")} for layer in layers]
    assert in_layers == [{0.5**5}, {0.5**4}, {0.5**3}, {0.5**2}]
    assert shares["encoder.embeddings.word_embeddings.weight"] == 0.5**6


def test_the_rate_falls_over_both_halves_of_xlms_layers():
    encoder = XLMModel(XLMConfig(vocab_size=50, emb_dim=32, n_layers=2, n_heads=2))
    shares = heads.share_rates(heads.Tagger(encoder, 1, 3, "linear", 0.0), 1.0, 1.0, 0.5)
    in_layers = [{share for name, share in shares.items() if f".{layer}." in name} for layer in range(2)]
    assert in_layers == [{0.5**3}, {0.5**2}] and shares["encoder.embeddings.weight"] == 0.5**4


def test_a_decay_over_layers_that_have_no_names_is_refused():
    tagger = heads.Tagger(models.encoder_of(models.build_model("bert", BODY, 50, 16, 0.0)), 1, 3, "linear", 0.0)
    tagger.encoder.encoder = torch.nn.Identity()
    with pytest.raises(StudyError, match="BertModel names no layers over which the rate could fall"):
        heads.share_rates(tagger, 1.0, 1.0, 0.8)


def test_a_crf_with_its_own_rate_learns_what_may_not_follow(tmp_path):
    """At the encoder's rate the O-to-I transition stays near 0; the encoder's weights hardly move at either rate."""
    transitions = {}
    for crf_rate in (1.0, 200.0):
        torch.manual_seed(0)
        tagger = heads.Tagger(models.encoder_of(models.build_model("bert", BODY, 50, 16, 0.0)), 1, 3, "CRF", 0.0)
        start = tagger.encoder.get_input_embeddings().weight.detach().clone()
        log = training.train(
            tagger, Taught(), lambda module, batch: module.loss(batch), device=training.accelerator("float32"), seed=1,
            settings=Optimization(optimizer="adamw", weight_decay=0.0, betas=[0.9, 0.999], dropout=0.0),
            rate_of=lambda step: 5e-5, progress=Progress("test"), folder=tmp_path / str(crf_rate), fingerprint="x",
            shares=heads.share_rates(tagger, 1.0, crf_rate, 1.0),
        )  # fmt: skip
        change = (tagger.encoder.get_input_embeddings().weight - start).abs().max()
        transitions[crf_rate] = tagger.crf.steps[0, 0, 2].item()
        assert len(log) == len(Taught()) and change < 60 * 5e-5
    assert -0.01 < transitions[1.0] < 0 and transitions[200.0] < -0.3, transitions


class Taught:
    """Sentences of made-up tokens with valid sequences of the tags O, B and I."""

    def __len__(self):
        return 60

    def shape(self, step):
        return 8, 6

    def __getitem__(self, key):
        step, part, parts = key
        tags = torch.tensor([[0, 1, 2, 2, 0, 0], [1, 2, 0, 0, 1, 0], [0, 0, 1, 2, 0, 1], [0, 1, 0, 1, 2, 0]] * 2)
        ids = torch.randint(50, tags.shape, generator=torch.Generator().manual_seed(step))
        positions = torch.arange(6).expand_as(tags)
        batch = {"input_ids": ids, "positions": positions, "words": tags >= 0, "labels": tags[..., None]}
        return {name: value[part::parts] for name, value in batch.items()}
