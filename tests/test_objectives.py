"""Tests of pretraining losses: they equal the library's, add up over parts of a batch, and can be learned."""

import pytest
import torch

from lib.modeling import models
from lib.modeling.shape import Body
from lib.pretraining import masking, objectives
from lib.training import optimizers
from lib.training.optimization import Optimization

BODY = Body(layers=2, hidden=32, heads=4, intermediate=64, embedding=16)
PIECES, LENGTH, MASK = 60, 16, 4
LOSSES = {
    "bert": objectives.masked_tokens,
    "electra": objectives.replaced_tokens,
    "adversarial": objectives.adversarial_tokens,
}


def make_batch(rows: int = 6, pairs: bool = False, padded: bool = False) -> objectives.Batch:
    """Return random text with three positions to predict in each row; one slot of the first row is unused."""
    generator = torch.Generator().manual_seed(0)
    text = torch.randint(5, PIECES, (rows, LENGTH), generator=generator)
    positions = torch.stack([1 + torch.randperm(8, generator=generator)[:3].sort().values for _ in range(rows)])
    targets = text.gather(1, positions)
    targets[0, 2], positions[0, 2] = masking.IGNORED, 0
    inputs = text.scatter(1, positions, torch.where(targets == masking.IGNORED, text[:, :1], MASK))
    batch = {"input_ids": inputs, "positions": positions, "targets": targets}
    pieces = rows * LENGTH
    if padded:
        batch["attention_mask"] = torch.arange(LENGTH) < torch.tensor([LENGTH, *[12] * (rows - 1)])[:, None]
        batch["input_ids"] = torch.where(batch["attention_mask"], inputs, 0)
        pieces -= int((~batch["attention_mask"]).sum())
    if pairs:
        batch["token_type_ids"] = (torch.arange(LENGTH) > 9).long().expand(rows, -1)
        batch["pair"] = torch.arange(rows) % 2
    return batch | {"counts": torch.tensor([3.0 * rows - 1, pieces, rows])}


def make(architecture: str, pairs: bool = False, dropout: float = 0.0, noise: float = 0.0):
    """Return a model; `noise` moves its weights, because zero biases and unit norms would hide mistakes."""
    torch.manual_seed(0)
    model = models.build_model(architecture, BODY, PIECES, LENGTH, dropout, pairs).eval()
    for parameter in model.parameters():
        parameter.data.add_(noise * torch.randn_like(parameter))
    return model


def labels(batch) -> torch.Tensor:
    """Return the target of every position in the form that the library takes."""
    targets = torch.full_like(batch["input_ids"], masking.IGNORED)
    chosen = batch["targets"] != masking.IGNORED
    rows = torch.arange(len(targets))[:, None].expand_as(chosen)
    targets[rows[chosen], batch["positions"][chosen]] = batch["targets"][chosen]
    return targets


def library_inputs(batch) -> dict:
    inputs = {"input_ids": batch["input_ids"], "token_type_ids": batch.get("token_type_ids")}
    return inputs | ({"attention_mask": batch["attention_mask"].long()} if "attention_mask" in batch else {})


@pytest.mark.parametrize("architecture", ["bert", "albert"])
@pytest.mark.parametrize("pairs", [True, False])
def test_the_loss_and_gradient_of_masked_tokens_equal_the_librarys(architecture, pairs):
    model, batch = make(architecture, pairs, noise=0.1), make_batch(pairs=pairs, padded=pairs)
    name = "next_sentence_label" if architecture == "bert" else "sentence_order_label"
    pair_labels = {name: batch["pair"]} if pairs else {}
    expected = model(**library_inputs(batch), labels=labels(batch), **pair_labels).loss
    expected.backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    loss = objectives.masked_tokens(model, batch)
    loss.backward()
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-5)
    for name, parameter in model.named_parameters():
        if name in gradients:
            torch.testing.assert_close(parameter.grad, gradients[name], rtol=1e-3, atol=1e-5, msg=name)


def test_the_loss_of_replaced_tokens_equals_the_librarys_two_losses():
    model, batch = make("electra", noise=0.1), make_batch(padded=True)
    torch.manual_seed(5)
    loss = objectives.replaced_tokens(model, batch)
    generated = model.generator(**library_inputs(batch), labels=labels(batch))
    torch.manual_seed(5)
    logits = objectives.bodies.gather_states(generated.logits, batch["positions"])
    inputs, replaced = objectives.corrupt(logits, batch)
    judged = model.discriminator(**library_inputs(batch) | {"input_ids": inputs}, labels=replaced)
    torch.testing.assert_close(loss, generated.loss + 50 * judged.loss, rtol=1e-4, atol=1e-4)


def test_tokens_are_drawn_by_the_generators_probabilities():
    batch = make_batch(rows=400)
    unmasked = batch["positions"][:, :1]  # one chosen token of each sequence keeps its text
    batch["input_ids"] = batch["input_ids"].scatter(1, unmasked, batch["targets"][:, :1])
    logits = torch.full((400, 3, PIECES), -20.0)
    logits[..., 7], logits[..., 8] = 1.0, 0.0
    inputs, replaced = objectives.corrupt(logits, batch)
    chosen = labels(batch) != masking.IGNORED
    drawn = inputs[chosen]
    assert set(drawn.tolist()) == {7, 8}
    expected = torch.tensor([1.0, 0.0]).softmax(0)[0].item()
    assert (drawn == 7).float().mean().item() == pytest.approx(expected, abs=0.05)
    text = torch.where(chosen, labels(batch), batch["input_ids"])
    assert torch.equal(inputs[~chosen], text[~chosen])
    assert torch.equal(replaced == 1, inputs != text)
    assert (replaced[chosen] == 0).any()  # a draw that is right is not replaced


@pytest.mark.parametrize("architecture", ["bert", "electra"])
def test_the_losses_of_parts_add_up(monkeypatch, architecture):
    model, batch = make(architecture, pairs=architecture == "bert"), make_batch(pairs=architecture == "bert")
    loss_of = LOSSES[architecture]
    monkeypatch.setattr(torch, "rand_like", lambda logits, dtype: torch.full_like(logits, 0.5))  # no randomness
    halves = [{name: t[part::2] if name != "counts" else t for name, t in batch.items()} for part in (0, 1)]
    whole = loss_of(model, batch)
    torch.testing.assert_close(sum(loss_of(model, half) for half in halves), whole, rtol=1e-5, atol=1e-5)


def test_the_adversarial_shift_misleads_more_than_a_random_one(monkeypatch):
    model, batch = make("bert", noise=0.2), make_batch()  # at the initial weights all directions are alike
    plain = objectives.masked_tokens(model, batch)
    by_gradient = objectives.adversarial_tokens(model, batch) - plain
    grad = torch.autograd.grad
    monkeypatch.setattr(torch.autograd, "grad", lambda loss, noise: (torch.randn_like(grad(loss, noise)[0]),))
    at_random = [(objectives.adversarial_tokens(model, batch) - plain).item() for _ in range(8)]
    assert by_gradient.item() > 2 * max(at_random) > 0


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_the_adversarial_direction_is_that_of_the_noise_alone_in_bfloat16_too(monkeypatch, dropout):
    model, batch = make("bert", dropout=dropout, noise=0.05).train(), make_batch()
    gradients, grad = [], torch.autograd.grad

    def record(loss, noise):
        gradients.append((loss.item(), *grad(loss, noise)))
        return gradients[-1][1:]

    monkeypatch.setattr(torch.autograd, "grad", record)
    for half in (False, True):
        torch.manual_seed(3)
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            objectives.adversarial_tokens(model, batch)
    assert max(abs(divergence) for divergence, _ in gradients) < 1e-5  # 0.2 if dropout differed
    assert torch.cosine_similarity(*(slope.flatten() for _, slope in gradients), dim=0) > 0.99


def test_twenty_sequences_are_memorized_in_spite_of_the_shift():
    model, batch = make("bert").train(), make_batch(20, padded=True)
    settings = Optimization(optimizer="adamw", weight_decay=0.0, betas=[0.9, 0.98], dropout=0.0)
    optimizer = optimizers.make_optimizer(model, settings, 5e-3)
    torch.manual_seed(0)
    for _ in range(150):
        objectives.adversarial_tokens(model, batch).backward()
        optimizer.step()
        optimizer.zero_grad()
    measures = {name: total / count for name, (total, count) in objectives.measure_batch(model.eval(), batch).items()}
    assert measures["held-out loss"] < 0.2


@pytest.mark.parametrize("kind", LOSSES)
def test_a_step_without_targets_has_no_loss_on_tokens(kind):
    model, batch = make("bert" if kind == "adversarial" else kind), make_batch()
    batch["targets"].fill_(masking.IGNORED)
    batch["counts"][0] = 0
    loss = LOSSES[kind](model, batch)
    loss.backward()
    predictor = model.generator if kind == "electra" else model
    assert torch.isfinite(loss) and (kind == "electra" or loss == 0)  # its discriminator still has tokens to judge
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)
    assert all(not p.grad.any() for n, p in predictor.named_parameters() if p.grad is not None and "embed" not in n)
    assert objectives.measure_batch(model, batch)["held-out loss"] == (0, 0)


def test_one_target_among_two_processes_is_divided_by_one_half():
    batch = make_batch()
    logits, counts = torch.zeros(6, 3, PIECES), torch.tensor([1.0, 1.0, 1.0])
    once = objectives.token_loss(logits, batch | {"counts": counts})
    assert objectives.token_loss(logits, batch | {"counts": counts / 2}) == 2 * once > 0


def test_measures_are_divided_by_the_tokens_they_count():
    batch = make_batch(padded=True)
    measures = objectives.measure_batch(make("electra"), batch)
    assert measures["held-out loss"][1] == batch["counts"][0]
    assert measures["replaced-token recall"][1] + measures["original-token recall"][1] == batch["counts"][1]
