"""Tests of the forward pass that skips unrequested positions: values and gradients equal the library's."""

import pytest
import torch
from conftest import each
from transformers import AlbertForPreTraining, BertForPreTraining, ElectraForMaskedLM, ElectraForPreTraining

from lib.modeling import bodies, models
from lib.modeling.shape import Body

BODY = Body(layers=3, hidden=32, heads=4, intermediate=64, embedding=16)
PIECES, LENGTH, ROWS = 50, 12, 5


def make(architecture: str, dropout: float = 0.0, pairs: bool = True):
    torch.manual_seed(0)
    model = models.build_model(architecture, BODY, PIECES, LENGTH, dropout, pairs)
    for parameter in model.parameters():  # because zero biases and unit norms would hide mistakes
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    return model


def make_inputs():
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, PIECES, (ROWS, LENGTH), generator=generator)
    positions = torch.stack([torch.randperm(LENGTH, generator=generator)[:3].sort().values for _ in range(ROWS)])
    types = (torch.arange(LENGTH) > 6).long().expand(ROWS, -1)
    padding = torch.arange(LENGTH) >= torch.tensor([12, 9, 12, 5, 7])[:, None]
    return ids, positions, types, padding


def library_states(body, ids, types, padding):
    return body(input_ids=ids, token_type_ids=types, attention_mask=(~padding).long()).last_hidden_state


@each("architecture", ["bert", "albert", "electra"])
def test_it_equals_the_library_at_the_places_asked_for(architecture):
    model = make(architecture)
    ids, positions, types, padding = make_inputs()
    for part in (model.generator, model.discriminator) if architecture == "electra" else (model,):
        body = part.base_model
        expected = bodies.gather_states(library_states(body, ids, types, padding), positions)
        states = bodies.encode_body(body, ids, positions, types, ~padding)
        torch.testing.assert_close(states, expected, rtol=1e-4, atol=1e-5)
        all_states = bodies.encode_body(body, ids)
        torch.testing.assert_close(all_states, body(input_ids=ids).last_hidden_state, rtol=1e-4, atol=1e-5)


def test_gradients_equal_the_library_s():
    model = make("bert")
    ids, positions, types, padding = make_inputs()
    bodies.gather_states(library_states(model.bert, ids, types, padding), positions).square().sum().backward()
    expected = {name: parameter.grad.clone() for name, parameter in model.bert.encoder.named_parameters()}
    model.zero_grad()
    bodies.encode_body(model.bert, ids, positions, types, ~padding).square().sum().backward()
    for name, parameter in model.bert.encoder.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name], rtol=1e-3, atol=1e-4, msg=name)


@each(("architecture", "kind"), [("bert", BertForPreTraining), ("albert", AlbertForPreTraining)])
def test_heads_equal_the_library_s(architecture, kind):
    model = make(architecture).eval()  # because ALBERT's pair classifier has its own dropout
    assert isinstance(model, kind)
    ids, positions, types, padding = make_inputs()
    library = model(input_ids=ids, token_type_ids=types, attention_mask=(~padding).long())
    requested = torch.cat([torch.zeros(ROWS, 1, dtype=torch.long), positions], 1)
    hidden = bodies.encode_body(model.base_model, ids, requested, types, ~padding)
    pairs = library.seq_relationship_logits if architecture == "bert" else library.sop_logits
    torch.testing.assert_close(bodies.judge_pair(model, hidden[:, 0]), pairs, rtol=1e-4, atol=1e-5)
    expected = bodies.gather_states(library.prediction_logits, positions)
    torch.testing.assert_close(bodies.predict_tokens(model, hidden[:, 1:]), expected, rtol=1e-4, atol=1e-5)


def test_electra_s_heads_equal_the_library_s():
    model = make("electra")
    ids, positions, types, padding = make_inputs()
    assert isinstance(model.generator, ElectraForMaskedLM) and isinstance(model.discriminator, ElectraForPreTraining)
    hidden = bodies.encode_body(model.generator.base_model, ids, positions, types, ~padding)
    inputs = {"input_ids": ids, "token_type_ids": types, "attention_mask": (~padding).long()}
    expected = bodies.gather_states(model.generator(**inputs).logits, positions)
    torch.testing.assert_close(bodies.predict_tokens(model.generator, hidden), expected, rtol=1e-4, atol=1e-5)
    hidden = bodies.encode_body(model.discriminator.base_model, ids, None, types, ~padding)
    judged = model.discriminator.discriminator_predictions(hidden)
    torch.testing.assert_close(judged, model.discriminator(**inputs).logits, rtol=1e-4, atol=1e-5)


def test_dropout_is_on_in_training_alone():
    model = make("bert", dropout=0.5)
    ids, positions, *_ = make_inputs()
    model.eval()
    assert torch.equal(bodies.encode_body(model.bert, ids, positions), bodies.encode_body(model.bert, ids, positions))
    model.train()
    first, second = (bodies.encode_body(model.bert, ids, positions) for _ in range(2))
    assert not torch.equal(first, second)


def test_dropout_loses_its_share_and_scales_the_others():
    torch.manual_seed(3)
    values = torch.ones(1001, 333, requires_grad=True)  # not a multiple of four
    dropped = bodies.drop(values, 0.3, training=True)
    dropped.sum().backward()
    assert dropped.unique().tolist() == pytest.approx([0.0, 1 / 0.7])
    assert (dropped == 0).float().mean().item() == pytest.approx(0.3, abs=0.005)
    assert torch.equal(values.grad, dropped)
    # Columns scatter as for independent draws: no pattern.
    assert (dropped == 0).float().mean(0).std().item() == pytest.approx((0.3 * 0.7 / 1001) ** 0.5, rel=0.2)
    torch.manual_seed(3)
    assert torch.equal(bodies.drop(values, 0.3, training=True), dropped)


def test_attention_with_dropout_is_attention_where_nothing_was_lost(monkeypatch):
    torch.manual_seed(4)
    query, key, value = torch.randn(3, ROWS, 2, LENGTH, 8)
    mask = ~make_inputs()[-1][:, None, None, :]
    monkeypatch.setattr(bodies, "drop", lambda values, lost, training: values)
    for attended in (mask, None):
        expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=attended)
        torch.testing.assert_close(bodies.attend(query, key, value, attended, 0.1, training=True), expected)
