"""Tests of the forward pass that skips positions: hidden states equal the library's; dropout and attention.

test_objectives.py compares heads and gradients with the library's.
"""

import pytest
import torch
from small_encoders import BODY

from lib.modeling import bodies, models

PIECES, LENGTH, ROWS = 50, 12, 5
PADDING = torch.arange(LENGTH) >= torch.tensor([12, 9, 12, 5, 7])[:, None]


def test_dropout_is_applied_in_training_only():
    body = models.build_model("bert", BODY, PIECES, LENGTH, dropout=0.5).base_model
    ids, positions = torch.randint(5, PIECES, (ROWS, LENGTH)), torch.tensor([[1, 4, 9]] * ROWS)
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
