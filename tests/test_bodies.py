"""Tests of the forward pass that skips positions: hidden states equal the library's; dropout and attention.

test_objectives.py compares heads and gradients with the library's.
"""

import pytest
import torch

from lib.modeling import bodies, models
from lib.modeling.shape import Body

BODY = Body(layers=3, hidden=32, heads=4, intermediate=64, embedding=16)
PIECES, LENGTH, ROWS = 50, 12, 5
PADDING = torch.arange(LENGTH) >= torch.tensor([12, 9, 12, 5, 7])[:, None]


def make(architecture: str, dropout: float = 0.0):
    torch.manual_seed(0)
    model = models.build_model(architecture, BODY, PIECES, LENGTH, dropout, pairs=True)
    for parameter in model.parameters():  # because zero biases and unit norms would hide mistakes
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    return model


def make_inputs():
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, PIECES, (ROWS, LENGTH), generator=generator)
    positions = torch.stack([torch.randperm(LENGTH, generator=generator)[:3].sort().values for _ in range(ROWS)])
    return ids, positions


def test_dropout_is_applied_in_training_only():
    body, (ids, positions) = make("bert", dropout=0.5).base_model, make_inputs()
    body.eval()
    assert torch.equal(bodies.encode_body(body, ids, positions), bodies.encode_body(body, ids, positions))
    body.train()
    assert not torch.equal(bodies.encode_body(body, ids, positions), bodies.encode_body(body, ids, positions))


def test_dropout_zeroes_its_share_and_scales_the_rest():
    torch.manual_seed(3)
    values = torch.ones(1001, 333, requires_grad=True)  # not a multiple of four
    dropped = bodies.drop(values, 0.3, training=True)
    dropped.sum().backward()
    assert dropped.unique().tolist() == pytest.approx([0.0, 1 / 0.7])
    assert (dropped == 0).float().mean().item() == pytest.approx(0.3, abs=0.005)
    assert torch.equal(values.grad, dropped)
    # The shares of columns vary as those of independent draws.
    assert (dropped == 0).float().mean(0).std().item() == pytest.approx((0.3 * 0.7 / 1001) ** 0.5, rel=0.2)
    torch.manual_seed(3)
    assert torch.equal(bodies.drop(values, 0.3, training=True), dropped)


def test_attention_with_dropout_equals_torchs_where_nothing_is_dropped(monkeypatch):
    torch.manual_seed(4)
    query, key, value = torch.randn(3, ROWS, 2, LENGTH, 8)
    monkeypatch.setattr(bodies, "drop", lambda values, dropout, training: values)
    for mask in (~PADDING[:, None, None, :], None):
        expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        torch.testing.assert_close(bodies.attend(query, key, value, mask, 0.1, training=True), expected)
