"""Tests of optimizers: LAMB against its paper's update, which weights decay, and the schedules."""

import numpy as np
import pytest
import torch
from conftest import each
from transformers import BertConfig, BertForMaskedLM

from lib.training import optimizers
from lib.training.optimization import Optimization, Phase

TINY = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}


def make_settings(optimizer: str, **changes) -> Optimization:
    defaults = {"optimizer": optimizer, "weight_decay": 0.01, "betas": [0.9, 0.98], "dropout": 0.1}
    return Optimization(**defaults | changes)


def parameter(*values: float) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.tensor(values, dtype=torch.float64))


def names_of(model: torch.nn.Module, group: dict) -> set[str]:
    ids = {id(p) for p in group["params"]}
    return {name for name, p in model.named_parameters() if id(p) in ids}


def update_by_hand(weight, gradients, rate, betas, decay, epsilon, adapted):
    """Return weights updated by Algorithm 2 of You et al. 2020, line by line, with the identity as phi."""
    m, v, weight = np.zeros_like(weight), np.zeros_like(weight), weight.copy()
    for t, g in enumerate(gradients, start=1):
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        r = (m / (1 - betas[0] ** t)) / (np.sqrt(v / (1 - betas[1] ** t)) + epsilon)
        direction = r + decay * weight
        lengths = np.linalg.norm(weight), np.linalg.norm(direction)
        ratio = lengths[0] / lengths[1] if adapted and all(lengths) else 1.0
        weight = weight - rate * ratio * direction
    return weight


@each(("decay", "adapted"), [(0.0, True), (0.5, True), (0.01, False)])
def test_lamb_takes_the_step_of_its_paper(decay, adapted):
    rng = np.random.default_rng(0)
    starts = [rng.normal(size=(3, 4)), rng.normal(size=5), np.zeros(6)]
    gradients = [[rng.normal(size=start.shape) * 10.0**power for power in range(-6, 2)] for start in starts]
    weights = [torch.nn.Parameter(torch.from_numpy(start.copy())) for start in starts]
    group = {"params": weights, "weight_decay": decay, "adapted": adapted}
    optimizer = optimizers.Lamb([group], lr=0.05, betas=(0.9, 0.98))
    for step_gradients in zip(*gradients, strict=True):
        for weight, gradient in zip(weights, step_gradients, strict=True):
            weight.grad = torch.from_numpy(gradient.copy())
        optimizer.step()
    for weight, start, weight_gradients in zip(weights, starts, gradients, strict=True):
        expected = update_by_hand(start, weight_gradients, 0.05, (0.9, 0.98), decay, 1e-6, adapted)
        np.testing.assert_allclose(weight.detach().numpy(), expected, rtol=1e-12, atol=1e-15)


def test_lamb_takes_the_plain_step_where_a_norm_is_zero_and_none_without_a_gradient():
    zeros, no_change, unused = parameter(0.0, 0.0), parameter(3.0, 4.0), parameter(2.0)
    zeros.grad, no_change.grad = torch.ones_like(zeros), torch.zeros_like(no_change)
    optimizer = optimizers.Lamb([zeros, no_change, unused], lr=0.1, betas=(0.9, 0.999))
    optimizer.step()
    assert zeros.tolist() == pytest.approx([-0.1, -0.1], rel=1e-5)
    assert no_change.tolist() == [3.0, 4.0]
    assert unused.item() == 2.0 and unused not in optimizer.state


@each("name", ["adamw", "lamb"])
def test_biases_and_layer_norms_do_not_decay_and_shared_weights_come_once(name):
    generator, discriminator = (BertForMaskedLM(BertConfig(**TINY)) for _ in range(2))
    discriminator.set_input_embeddings(generator.get_input_embeddings())
    model = torch.nn.ModuleList([generator, discriminator])
    optimizer = optimizers.make_optimizer(model, make_settings(name, weight_decay=0.3, betas=[0.8, 0.95]), 0.2)
    assert isinstance(optimizer, {"adamw": torch.optim.AdamW, "lamb": optimizers.Lamb}[name])
    decayed, free = optimizer.param_groups
    assert (decayed["weight_decay"], free["weight_decay"]) == (0.3, 0.0)
    assert (decayed["adapted"], free["adapted"]) == (name == "lamb", False)
    for group in (decayed, free):
        assert (group["lr"], tuple(group["betas"]), group["eps"]) == (0.2, (0.8, 0.95), 1e-6)
    assert all("bias" in n or "LayerNorm" in n for n in names_of(model, free))
    assert not any("bias" in n or "LayerNorm" in n for n in names_of(model, decayed))
    parameters = [*decayed["params"], *free["params"]]
    assert len({id(p) for p in parameters}) == len(parameters) == len(list(model.parameters()))


def test_each_group_has_its_share_of_the_learning_rate():
    model = BertForMaskedLM(BertConfig(**TINY))
    shares = {name: 2.0 for name, _ in model.named_parameters() if name.startswith("cls.")}
    groups = optimizers.make_optimizer(model, make_settings("adamw"), 1e-3, shares).param_groups
    assert [(group["share"], group["lr"]) for group in groups] == [(1.0, 1e-3)] * 2 + [(2.0, 2e-3)] * 2
    assert {name for group in groups[2:] for name in names_of(model, group)} == shares.keys()
    assert sum(len(group["params"]) for group in groups) == len(list(model.parameters()))
    assert [group["weight_decay"] for group in groups] == [0.01, 0.0] * 2


def test_square_root_decay_has_the_rates_of_nvidias_first_phase():
    # 7,038 steps with a warm-up share of 0.2843: 2,000 steps of warm-up, then the root of the share of all steps left.
    rates = [optimizers.square_root_decay(step, 7038, 0.2843) for step in range(7038)]
    assert rates[999] == pytest.approx(0.5, abs=1e-3)
    assert rates[1999] == pytest.approx(1.0, abs=1e-3)
    assert rates[2001] == pytest.approx((1 - 2002 / 7038) ** 0.5)
    assert rates[-1] == 0.0


def make_phase(**changes) -> Phase:
    defaults = {"length": 128, "batch_size": 8, "learning_rate": 2e-3, "warmup": 0.1, "steps": 100}
    return Phase(**defaults | changes)


def test_a_phase_rises_to_its_peak_and_falls_to_its_end():
    phase = make_phase(end=0.2)
    rates = [optimizers.rate(phase, step) for step in (0, 4, 9, 55, 99)]
    assert rates == pytest.approx([2e-4, 1e-3, 2e-3, 0.6 * 2e-3, (0.2 + 0.8 / 90) * 2e-3])
    assert optimizers.rate(make_phase(warmup=0.0, end=0.2), 0) == 2e-3
    phase = make_phase(decay="square root", end=0.2)
    rates = [optimizers.rate(phase, step) for step in (0, 4, 74, 99)]
    assert rates == pytest.approx([2e-4, 1e-3, (0.2 + 0.8 * 0.5) * 2e-3, 0.2 * 2e-3])


@each(("steps", "rising", "first_steps"), [(20, 0, 1), (20, 18, 19), (300, 30, 150)])
def test_two_phases_may_follow_one_schedule(steps, rising, first_steps):
    remaining = (steps - first_steps) / (steps - rising)
    first = make_phase(steps=first_steps, warmup=rising / first_steps, end=remaining)
    second = make_phase(steps=steps - first_steps, warmup=0.0, learning_rate=first.learning_rate * remaining)
    rates = [optimizers.rate(phase, step) for phase in (first, second) for step in range(phase.steps)]
    whole = make_phase(steps=steps, warmup=rising / steps)
    assert rates == pytest.approx([optimizers.rate(whole, step) for step in range(steps)])
