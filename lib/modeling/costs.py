"""The cost of training in FLOPs, and the rate that the machine can reach."""

from functools import cache

import torch
from torch.nn.functional import linear
from torch.utils.benchmark import Timer
from transformers import PretrainedConfig, PreTrainedModel

MATRIX = {"cpu": (4096, 1024, 256), "cuda": (8192, 8192, 8192)}  # rows, inputs, outputs: large enough for full speed
SECONDS = 0.4  # minimum time of a measurement


def training_flops(
    config: PretrainedConfig, length: int, predicted: float, generator_config: PretrainedConfig | None = None
) -> float:
    """Return the FLOPs of a training step on one sequence: matrix products only, forward and backward.

    `length`: tokens in the sequence; `predicted`: those to predict. The output layer and the last layer's queries and
    feed-forward count only at those, as lib/modeling/bodies.py computes them. With a `generator_config`, `config` is
    ELECTRA's discriminator, which judges every position, and the generator counts as a masked language model. A
    product's backward pass counts as two products. The one position that a pair objective reads is left out.
    """
    if generator_config is not None:
        hidden = config.hidden_size
        judging_flops = body_flops(config, length, length) + 2 * length * hidden * (hidden + 1)
        return 3 * judging_flops + training_flops(generator_config, length, predicted)
    embedding = embedding_width(config)
    predicting_flops = 2 * predicted * embedding * (config.hidden_size + config.vocab_size)
    return 3 * (body_flops(config, length, predicted) + predicting_flops)


def body_flops(config: PretrainedConfig, length: int, predicted: float) -> float:
    """Return an encoder's forward FLOPs on one sequence, with the last hidden states at `predicted` positions only.

    Shared layers (ALBERT) count each time they are applied.
    """
    hidden, embedding = config.hidden_size, embedding_width(config)

    def layer(queries: float) -> float:
        keys_and_values = 4 * length * hidden**2
        queries_and_outputs = 4 * queries * hidden**2
        attention = 4 * queries * length * hidden
        return keys_and_values + queries_and_outputs + attention + 4 * queries * hidden * config.intermediate_size

    projected = config.model_type == "albert" or embedding != hidden
    projection = 2 * length * embedding * hidden if projected else 0
    return projection + (config.num_hidden_layers - 1) * layer(length) + layer(predicted)


def weights_flops(body: PreTrainedModel, weights: int, tokens: int) -> int:
    """Return the FLOPs of training any encoder on `tokens`: six per weight and token (Kaplan et al. 2020, section 2.1).

    `weights`: the number in body and head, without embedding tables, which are looked up. Shared layers (ALBERT) count
    each time they are applied; attention's products of two states are left out.
    """
    if body.config.model_type == "albert":
        groups = body.config.num_hidden_groups
        group_weights = sum(p.numel() for p in body.encoder.albert_layer_groups.parameters()) // groups
        weights += (body.config.num_hidden_layers - groups) * group_weights
    return 6 * weights * tokens


def embedding_width(config: PretrainedConfig) -> int:
    return getattr(config, "embedding_size", config.hidden_size)


@cache
def matrix_rate(device: torch.device, dtype: torch.dtype) -> float:
    """Return the median FLOP/s of a large matrix product with the current threads, after a warm-up.

    Measured once per process, over SECONDS.
    """
    rows, inputs, outputs = MATRIX.get(device.type, MATRIX["cpu"])  # other devices, such as mps, take the CPU's sizes
    x = torch.randn(rows, inputs, device=device, dtype=dtype)
    weights = torch.randn(outputs, inputs, device=device, dtype=dtype)
    names = {"linear": linear, "x": x, "weights": weights}
    timer = Timer("linear(x, weights)", globals=names, num_threads=torch.get_num_threads())
    return 2 * rows * inputs * outputs / timer.blocked_autorange(min_run_time=SECONDS).median
