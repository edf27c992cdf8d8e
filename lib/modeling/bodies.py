"""The forward pass of BERT, ALBERT and ELECTRA for training: the weights of `transformers`, without wasted work.

The library's modules hold and save the weights, and losses and gradients are equal (tests/test_objectives.py), but the
last layer and the output layer are computed only at the positions to predict. In masked language modelling those are
15%, and the output layer is most of a small model's work.
"""

import math
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional


class Layer(NamedTuple):
    """The modules of one Transformer layer, with the same names for all architectures."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    attended: nn.Linear
    attended_norm: nn.LayerNorm
    widen: nn.Linear
    narrow: nn.Linear
    norm: nn.LayerNorm


def knows(body: nn.Module) -> bool:
    """Return whether `encode_body` can compute a body: BERT, ALBERT or ELECTRA with absolute positions."""
    config = body.config
    return (
        type(body).__name__ in ("BertModel", "AlbertModel", "ElectraModel")
        and config.hidden_act in ACTIVATIONS
        and getattr(config, "position_embedding_type", "absolute") == "absolute"
        and getattr(config, "inner_group_num", 1) == 1
        and not getattr(config, "is_decoder", False)
    )


def is_albert(body: nn.Module) -> bool:
    return body.config.model_type == "albert"


def list_layers(body: nn.Module) -> list[Layer]:
    """List the layers of a BertModel, ElectraModel or AlbertModel in the order in which they are applied."""
    if is_albert(body):  # its few groups of weights are shared among layers
        shared_layers = []
        for group in body.encoder.albert_layer_groups:
            block = group.albert_layers[0]
            attention = block.attention
            layer = Layer(
                attention.query, attention.key, attention.value, attention.dense, attention.LayerNorm,
                block.ffn, block.ffn_output, block.full_layer_layer_norm,
            )  # fmt: skip
            shared_layers.append(layer)
        depth = body.config.num_hidden_layers
        return [shared_layers[i * len(shared_layers) // depth] for i in range(depth)]
    return [
        Layer(
            layer.attention.self.query, layer.attention.self.key, layer.attention.self.value,
            layer.attention.output.dense, layer.attention.output.LayerNorm,
            layer.intermediate.dense, layer.output.dense, layer.output.LayerNorm,
        )
        for layer in body.encoder.layer
    ]  # fmt: skip


def embed_tokens(body: nn.Module, input_ids: torch.Tensor, token_type_ids: torch.Tensor | None = None) -> torch.Tensor:
    """Embed tokens (sequences, length) as the input of the first layer, (sequences, length, hidden)."""
    tables = body.embeddings
    kinds = tables.token_type_embeddings.weight
    words = tables.word_embeddings(input_ids) + tables.position_embeddings.weight[: input_ids.shape[1]]
    words = words + (kinds[0] if token_type_ids is None else functional.embedding(token_type_ids, kinds))
    hidden = drop(tables.LayerNorm(words), body.config.hidden_dropout_prob, body.training)
    if is_albert(body):
        return body.encoder.embedding_hidden_mapping_in(hidden)
    return body.embeddings_project(hidden) if hasattr(body, "embeddings_project") else hidden


def drop(values: torch.Tensor, dropout: float, training: bool) -> torch.Tensor:
    """Apply dropout when `training`: set a share `dropout` of the values to zero and scale up the others.

    On a CPU torch draws a number for each value, which takes a ninth of a fine-tuning step. Here four values share a
    draw of 64 bits, and `dropout` is rounded to a multiple of 1/65,536.
    """
    if not training or not dropout or values.device.type != "cpu":
        return functional.dropout(values, dropout, training)
    count = values.numel()
    draws = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None)
    value_draws = draws.view(torch.int16)[:count].view(values.shape)
    lowest_kept = round(dropout * 2**16) - 2**15
    kept = (value_draws >= lowest_kept).to(values.dtype)
    return values * kept.mul_(1 / (1 - dropout))


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    dropout: float,
    training: bool,
) -> torch.Tensor:
    """Compute attention from (sequences, heads, m, width) tensors to the positions that are true in `mask`.

    On a CPU torch's fused kernel has no dropout. In bfloat16 its forward and backward pass also take 1.8 to 3.5 times
    as long as plain products, measured at 64 to 512 tokens with AVX-512; in float32 it is faster than these.
    """
    dropout, on_cpu = dropout if training else 0.0, query.device.type == "cpu"
    if not (on_cpu and (dropout or (training and query.dtype == torch.bfloat16))):
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return drop(scores.softmax(-1), dropout, training) @ value


def gather_states(hidden: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Gather the states (batch, length, n) at positions (batch, m): (batch, m, n)."""
    return hidden.gather(1, positions[:, :, None].expand(-1, -1, hidden.shape[-1]))


def apply_layer(
    layer: Layer, hidden: torch.Tensor, queried: torch.Tensor, mask: torch.Tensor | None, config, training: bool
) -> torch.Tensor:
    """Apply one layer to the states `queried` (batch, m, hidden), which attend to all states `hidden`."""

    def heads(x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (config.num_attention_heads, -1)).transpose(1, 2)

    dropout = config.hidden_dropout_prob
    attention = attend(
        heads(layer.query(queried)), heads(layer.key(hidden)), heads(layer.value(hidden)), mask,
        config.attention_probs_dropout_prob, training,
    )  # fmt: skip
    attended = layer.attended(attention.transpose(1, 2).flatten(2))
    queried = layer.attended_norm(queried + drop(attended, dropout, training))
    wide = ACTIVATIONS[config.hidden_act](layer.widen(queried))
    return layer.norm(queried + drop(layer.narrow(wide), dropout, training))


ACTIVATIONS = {
    "gelu": functional.gelu,
    "gelu_new": lambda x: functional.gelu(x, approximate="tanh"),
}


def encode_body(
    body: nn.Module,
    input_ids: torch.Tensor,
    positions: torch.Tensor | None = None,
    token_type_ids: torch.Tensor | None = None,
    attention_mask: torch.Tensor | None = None,
    shift: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the last hidden states at `positions` (sequences, m), or at all positions: (sequences, m, hidden).

    `token_type_ids`: (sequences, length), zeros if None; `attention_mask`: (sequences, length), bool, false at padding,
    or None if no sequence is padded; `shift`: (sequences, length, hidden), added to the input of the first layer.
    """
    hidden = embed_tokens(body, input_ids, token_type_ids)
    if shift is not None:
        hidden = hidden + shift
    mask = None if attention_mask is None else attention_mask[:, None, None, :]
    *lower, last = list_layers(body)
    for layer in lower:
        hidden = apply_layer(layer, hidden, hidden, mask, body.config, body.training)
    queried = hidden if positions is None else gather_states(hidden, positions)
    return apply_layer(last, hidden, queried, mask, body.config, body.training)


def predict_tokens(model: nn.Module, hidden: torch.Tensor) -> torch.Tensor:
    """Return the logits of all tokens of the vocabulary from the last hidden states (…, hidden)."""
    if hasattr(model, "generator_lm_head"):
        return model.generator_lm_head(model.generator_predictions(hidden))
    return (model.cls.predictions if hasattr(model, "cls") else model.predictions)(hidden)


def pool(body: nn.Module, first: torch.Tensor) -> torch.Tensor:
    """Apply the body's pooler to the last hidden state of [CLS], (sequences, hidden); without one, return the state."""
    pooler = getattr(body, "pooler", None)
    if pooler is None:
        return first
    if isinstance(pooler, nn.Linear):  # ALBERT and BigBird keep its activation in a separate module
        return (body.pooler_activation if is_albert(body) else body.activation)(pooler(first))
    return pooler(first[:, None])


def judge_pair(model: nn.Module, first: torch.Tensor) -> torch.Tensor:
    """Return the two logits of a segment pair (0: in order) from [CLS]'s last hidden state, (sequences, hidden)."""
    body = model.base_model
    return (model.sop_classifier if is_albert(body) else model.cls.seq_relationship)(pool(body, first))
