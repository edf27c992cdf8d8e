"""Tests of operations by formula against a count of those computed, and of the machine's own rate."""

import pytest
import torch
from conftest import each
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode
from transformers import (
    AlbertConfig,
    AlbertForPreTraining,
    AlbertModel,
    BertConfig,
    BertForPreTraining,
    BertModel,
    ElectraConfig,
    ElectraForMaskedLM,
    ElectraForPreTraining,
)

from lib.modeling import bodies, costs, models

ROWS, LENGTH, PREDICTED, PIECES = 3, 24, 5, 40
SIZES = {"vocab_size": PIECES, "num_attention_heads": 2, "max_position_embeddings": LENGTH}
BERT = BertConfig(**SIZES, hidden_size=16, num_hidden_layers=3, intermediate_size=56)
ALBERT = AlbertConfig(**SIZES, hidden_size=16, num_hidden_layers=4, intermediate_size=48, embedding_size=6)
WIDE_ALBERT = AlbertConfig(**SIZES, hidden_size=16, num_hidden_layers=2, intermediate_size=48, embedding_size=16)
ELECTRA = ElectraConfig(**SIZES, hidden_size=16, num_hidden_layers=3, intermediate_size=64, embedding_size=8)
GENERATOR = ElectraConfig(**SIZES, hidden_size=4, num_hidden_layers=3, intermediate_size=16, embedding_size=8)
UNPROJECTED = ElectraConfig(**SIZES, hidden_size=8, num_hidden_layers=1, intermediate_size=16, embedding_size=8)
INPUT_IDS = torch.randint(PIECES, (ROWS, LENGTH))


def predict(config) -> torch.Tensor:
    """Return the logits of every token at the positions to predict, (rows, predicted, pieces)."""
    kinds = {"bert": BertForPreTraining, "albert": AlbertForPreTraining, "electra": ElectraForMaskedLM}
    model = kinds[config.model_type](config)
    positions = torch.arange(PREDICTED).expand(ROWS, -1)
    return bodies.predict_tokens(model, bodies.encode_body(model.base_model, INPUT_IDS, positions))


def judge(config) -> torch.Tensor:
    """Return the logit that each token was replaced, (rows, length)."""
    model = ElectraForPreTraining(config)
    return model.discriminator_predictions(bodies.encode_body(model.base_model, INPUT_IDS))


def count(run, config) -> float:
    """Count the operations of a forward and a backward pass for one row."""
    # The counter does not know the CPU's fused attention; the plain one is two products.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        run(config).sum().backward()
    return counter.get_total_flops() / ROWS


def test_training_flops_equal_those_counted():
    for config in (BERT, ALBERT, WIDE_ALBERT, GENERATOR, UNPROJECTED):
        assert costs.training_flops(config, LENGTH, PREDICTED) == count(predict, config)
    both = count(predict, GENERATOR) + count(judge, ELECTRA)
    assert costs.training_flops(ELECTRA, LENGTH, PREDICTED, GENERATOR) == both


@each(("kind", "shared"), [(BertModel, {}), (AlbertModel, {}), (AlbertModel, {"num_hidden_groups": 2})])
def test_flops_by_weights_equal_the_formula_without_attention(kind, shared):
    config = kind.config_class(vocab_size=PIECES, hidden_size=128, num_hidden_layers=6, intermediate_size=512,
                               num_attention_heads=2, **shared)  # fmt: skip
    body = kind(config, add_pooling_layer=False)
    weights = models.count_parameters(body)["body parameters"]
    assert costs.weights_flops(body, weights, 10) == pytest.approx(10 * 3 * costs.body_flops(config, 1, 1), rel=0.02)


def test_the_machines_rate_is_measured_once():
    device = torch.device("cpu")
    rate = costs.matrix_rate(device, torch.float32)
    assert 1e8 < rate < 1e14
    assert costs.matrix_rate(device, torch.float32) == rate
