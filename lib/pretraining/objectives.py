"""Pretraining losses: masked tokens, pairs of segments, replaced tokens, and small adversarial shifts.

Every loss is a sum divided by `batch["counts"]` (targets, tokens, sequences), so that the parts of a step, computed in
turn or on several processes, add up to the loss of the whole step. A step has no targets, and no loss on them, if every
word is longer than the number of tokens to mask.
"""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from lib.modeling import bodies, heads
from lib.modeling.heads import Batch
from lib.modeling.models import Electra
from lib.pretraining import masking
from lib.pretraining.plan import Pretraining

DISCRIMINATOR_WEIGHT = 50.0  # of the discriminator's loss, relative to the generator's (Clark et al. 2020, section 3.1)
NOISE, ADVERSARIAL_WEIGHT = 1e-5, 10.0  # Liu et al. 2020, section 4.1
SHIFT = 0.1  # largest component of an embedded token's shift; its own components, layer-normed, are about 1

ADVERSARIAL_PASSES = 8 / 3  # times the cost of a plain step: two more passes, one without gradients of the weights


def loss_of(plan: Pretraining) -> Callable[[nn.Module, Batch], torch.Tensor]:
    """Return the training loss for a plan."""
    if plan.architecture == "electra":
        return replaced_tokens
    return adversarial_tokens if plan.adversarial else masked_tokens


def masked_tokens(model: nn.Module, batch: Batch) -> torch.Tensor:
    """Return the loss of BERT or ALBERT: masked tokens, and pairs of segments if the batch has them.

    Mean cross-entropy over the tokens to predict, plus that over the pairs (Devlin et al. 2019, section 3.1; Lan et al.
    2020, section 3.1). Logits are computed only at the positions to predict.
    """
    states, cls_states = hidden_states(model, batch)
    return token_loss(bodies.predict_tokens(model, states), batch) + pair_loss(model, cls_states, batch)


def hidden_states(
    model: nn.Module, batch: Batch, shift: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return the last hidden states at the positions to predict, and at [CLS] if the batch has pairs."""
    positions, pairs = batch["positions"], "pair" in batch
    if pairs:
        positions = functional.pad(positions, (1, 0))  # position 0 is [CLS]
    hidden = bodies.encode_body(
        model.base_model, batch["input_ids"], positions, batch.get("token_type_ids"), batch.get("attention_mask"), shift
    )
    return (hidden[:, 1:], hidden[:, 0]) if pairs else (hidden, None)


def token_loss(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Sum the cross-entropy of logits (sequences, positions, vocabulary) at the targets; divide by their number."""
    loss = functional.cross_entropy(
        logits.flatten(0, 1).float(), batch["targets"].flatten(), ignore_index=masking.IGNORED, reduction="sum"
    )
    return loss / count_targets(batch)


def count_targets(batch: Batch) -> torch.Tensor:
    """Return the divisor of a sum over targets: their number, or a process's part of it; 1 if there are none."""
    return torch.where(batch["counts"][0] > 0, batch["counts"][0], 1.0)


def pair_loss(model: nn.Module, first: torch.Tensor | None, batch: Batch) -> torch.Tensor | float:
    """Return the summed cross-entropy of the pairs of segments, over the number of sequences; 0 without pairs."""
    if first is None:
        return 0.0
    logits = bodies.judge_pair(model, first).float()
    return functional.cross_entropy(logits, batch["pair"], reduction="sum") / batch["counts"][2]


def replaced_tokens(model: Electra, batch: Batch) -> torch.Tensor:
    """Return ELECTRA's loss: the generator's on masked tokens plus 50 times the discriminator's (Clark et al. 2020).

    The discriminator sees tokens drawn by the generator at the positions to predict, and judges of every token whether
    it was replaced; a draw that equals the original token counts as not replaced.
    """
    states, _ = hidden_states(model.generator, batch)
    logits = bodies.predict_tokens(model.generator, states)
    inputs, replaced = corrupt(logits.detach(), batch)
    discriminator_logits = judge_replaced(model, inputs, batch)
    losses = functional.binary_cross_entropy_with_logits(discriminator_logits, replaced, reduction="none")
    if "attention_mask" in batch:
        losses = losses.masked_fill(~batch["attention_mask"], 0.0)
    return token_loss(logits, batch) + DISCRIMINATOR_WEIGHT * losses.sum() / batch["counts"][1]


def judge_replaced(model: Electra, inputs: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return the discriminator's logit that each token of `inputs` was replaced, (sequences, length)."""
    discriminator = model.discriminator
    hidden = bodies.encode_body(
        discriminator.base_model, inputs, None, batch.get("token_type_ids"), batch.get("attention_mask")
    )
    return discriminator.discriminator_predictions(hidden).float()


def corrupt(logits: torch.Tensor, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Fill the positions to predict with draws from `logits`; return the text, and 1.0 where that changed a token.

    Both (sequences, length). Gumbel noise makes the draws without computing probabilities.
    """
    uniform = torch.rand_like(logits, dtype=torch.float32).clamp_(1e-20, 1 - 1e-7)
    draws = (logits.float() - torch.log(-torch.log(uniform))).argmax(-1)
    masked, positions, targets = batch["input_ids"], batch["positions"], batch["targets"]
    predicted = targets != masking.IGNORED
    original_ids = torch.where(predicted, targets, masked.gather(1, positions))
    original = masked.scatter(1, positions, original_ids)
    filled_ids = torch.where(predicted, draws, original_ids)
    inputs = original.scatter(1, positions, filled_ids)
    return inputs, (inputs != original).float()


def adversarial_tokens(model: nn.Module, batch: Batch) -> torch.Tensor:
    """Return the loss of masked tokens, plus the effect of a small shift of the embedded tokens, chosen to mislead.

    Liu et al. 2020 (ALUM, algorithm 1, one step): the gradient of the divergence between predictions with and without a
    little noise gives the direction of the shift; the divergence that the shift causes, both ways, is added ten times.
    The size of the shift is the study's own: 1e-5, as the paper prints, has no effect, and the released code divides
    each token's shift by its largest component, which makes it 1. Three passes replace one, and in bfloat16 there is a
    fourth: bfloat16 does not resolve the noise, so the direction is found in float32. Dropout is the same in each pair
    that is compared.
    """
    tokens, predicted = batch["input_ids"], batch["targets"] != masking.IGNORED
    noise = NOISE * torch.randn(*tokens.shape, model.config.hidden_size, device=tokens.device)
    noise.requires_grad_()
    seed = int(torch.randint(2**62, ()))

    def predict(shift: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor | None]:
        torch.manual_seed(seed)
        states, cls_states = hidden_states(model, batch, shift)
        return bodies.predict_tokens(model, states), cls_states

    logits, cls_states = predict()
    plain_logits = logits[predicted].float()
    reference = plain_logits.detach()
    with torch.autocast(tokens.device.type, enabled=False):
        if logits.dtype != torch.float32:
            with torch.no_grad():
                reference = predict()[0][predicted]
        (gradient,) = torch.autograd.grad(divergence(predict(noise)[0][predicted], reference), noise)
    shift = SHIFT * gradient / (gradient.abs().amax(-1, keepdim=True) + torch.finfo(gradient.dtype).tiny)
    shifted_logits = predict(shift)[0][predicted].float()
    divergences = divergence(shifted_logits, plain_logits.detach()) + divergence(plain_logits, shifted_logits.detach())
    adversarial_loss = ADVERSARIAL_WEIGHT * divergences / count_targets(batch)
    return token_loss(logits, batch) + pair_loss(model, cls_states, batch) + adversarial_loss


def divergence(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return the Kullback-Leibler divergence of predictions from target predictions (logits), summed over positions."""
    log_probabilities, target_log_probabilities = functional.log_softmax(logits, -1), functional.log_softmax(target, -1)
    return functional.kl_div(log_probabilities, target_log_probabilities, reduction="sum", log_target=True)


def measure_batch(model: nn.Module, batch: Batch) -> dict[str, tuple[float, float]]:
    """Measure a model on a held-out batch: by name, a sum over the batch and the number to divide its total by.

    `held-out loss`: cross-entropy at the tokens to predict (ELECTRA: its generator's); `pair accuracy`; for ELECTRA
    `replaced-token recall` and `original-token recall`: shares of the replaced and of the other tokens that its
    discriminator judges correctly.
    """
    predictor = model.generator if isinstance(model, Electra) else model
    states, cls_states = hidden_states(predictor, batch)
    logits = bodies.predict_tokens(predictor, states)
    target_count = float(batch["counts"][0])
    measures = {"held-out loss": (token_loss(logits, batch).item() * target_count, target_count)}
    if cls_states is not None:
        correct = bodies.judge_pair(predictor, cls_states).argmax(-1) == batch["pair"]
        measures["pair accuracy"] = (correct.sum().item(), len(correct))
    if isinstance(model, Electra):
        inputs, replaced = corrupt(logits, batch)
        judged_replaced = judge_replaced(model, inputs, batch) > 0
        is_token = heads.mark_tokens(batch)
        subsets = {"replaced-token recall": replaced == 1, "original-token recall": (replaced == 0) & is_token}
        for name, subset in subsets.items():
            measures[name] = ((judged_replaced == (replaced == 1))[subset].sum().item(), subset.sum().item())
    return measures
