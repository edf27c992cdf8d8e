"""What pretraining minimises: masked pieces, pairs of segments, replaced pieces, and small shifts that mislead.

Every loss is a sum divided by `batch["counts"]` (targets, pieces, rows), so that the parts of a step, whether they
follow each other or lie on several processes, add up to the loss of the whole step.
"""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from lib.modeling import bodies
from lib.modeling.models import Electra
from lib.pretraining import masking
from lib.pretraining.settings import Pretraining

DISCRIMINATOR_WEIGHT = 50.0  # of the discriminator's loss beside the generator's (Clark et al. 2020, section 3.1)
NOISE, ADVERSARIAL_WEIGHT = 1e-5, 10.0  # Liu et al. 2020, section 4.1
SHIFT = 0.1  # the largest component of the shift of an embedded piece; those after the layer norm are about 1

ADVERSARIAL_PASSES = 8 / 3  # of the cost of a plain step: two more passes, one without gradients of the weights

Batch = dict[str, torch.Tensor]


def loss_of(plan: Pretraining) -> Callable[[nn.Module, Batch], torch.Tensor]:
    """The loss that a model is trained on."""
    if plan.architecture == "electra":
        return replaced_pieces
    return adversarial_pieces if plan.adversarial else masked_pieces


def masked_pieces(model: nn.Module, batch: Batch) -> torch.Tensor:
    """Loss of a BERT or an ALBERT: its masked pieces, and its pairs of segments where the batch has them.

    Mean cross-entropy over the pieces asked for, plus that over the pairs (Devlin et al. 2019, section 3.1; Lan et
    al. 2020, section 3.1). Logits are computed at the places asked for alone.
    """
    asked, first = hidden_states(model, batch)
    return piece_loss(bodies.predict_pieces(model, asked), batch) + pair_loss(model, first, batch)


def hidden_states(
    model: nn.Module, batch: Batch, shift: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The last hidden states at the places asked for, and at [CLS] where the batch has pairs."""
    positions, pairs = batch["positions"], "pair" in batch
    if pairs:
        positions = functional.pad(positions, (1, 0))  # place 0 is [CLS]
    hidden = bodies.encode(
        model.base_model, batch["input_ids"], positions, batch.get("token_types"), batch.get("padding"), shift
    )
    return (hidden[:, 1:], hidden[:, 0]) if pairs else (hidden, None)


def piece_loss(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Cross-entropy of logits (rows, places, vocabulary) at the places asked for, summed, over their number."""
    summed = functional.cross_entropy(
        logits.flatten(0, 1).float(), batch["targets"].flatten(), ignore_index=masking.UNASKED, reduction="sum"
    )
    return summed / batch["counts"][0]


def pair_loss(model: nn.Module, first: torch.Tensor | None, batch: Batch) -> torch.Tensor | float:
    """Cross-entropy of the pairs of segments, summed, over the rows; 0 for a batch without pairs."""
    if first is None:
        return 0.0
    logits = bodies.judge_pair(model, first).float()
    return functional.cross_entropy(logits, batch["pair"], reduction="sum") / batch["counts"][2]


def replaced_pieces(model: Electra, batch: Batch) -> torch.Tensor:
    """ELECTRA's loss: its generator's on masked pieces, plus 50 times its discriminator's (Clark et al. 2020).

    The discriminator sees pieces drawn by the generator at the places asked for, and says of every piece whether it
    was replaced; a draw that is the right piece counts as not replaced.
    """
    asked, _ = hidden_states(model.generator, batch)
    logits = bodies.predict_pieces(model.generator, asked)
    inputs, replaced = corrupt(logits.detach(), batch)
    errors = functional.binary_cross_entropy_with_logits(judge(model, inputs, batch), replaced, reduction="none")
    if "padding" in batch:
        errors = errors.masked_fill(batch["padding"], 0.0)
    return piece_loss(logits, batch) + DISCRIMINATOR_WEIGHT * errors.sum() / batch["counts"][1]


def judge(model: Electra, inputs: torch.Tensor, batch: Batch) -> torch.Tensor:
    """The discriminator's logit of each piece of `inputs` having been replaced, (rows, length)."""
    discriminator = model.discriminator
    hidden = bodies.encode(
        discriminator.base_model, inputs, token_types=batch.get("token_types"), padding=batch.get("padding")
    )
    return bodies.judge_pieces(discriminator, hidden).float()


def corrupt(logits: torch.Tensor, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """The text with pieces drawn from `logits` where it is asked for, and 1.0 where that changed a piece.

    Both (rows, length). Drawn by adding Gumbel noise, so that no probability is computed.
    """
    uniform = torch.rand_like(logits, dtype=torch.float32).clamp_(1e-20, 1 - 1e-7)
    drawn = (logits.float() - torch.log(-torch.log(uniform))).argmax(-1)
    asked, places = batch["targets"] != masking.UNASKED, batch["positions"]
    right = torch.where(asked, batch["targets"], batch["input_ids"].gather(1, places))
    text = batch["input_ids"].scatter(1, places, right)
    inputs = text.scatter(1, places, torch.where(asked, drawn, right))
    return inputs, (inputs != text).float()


def adversarial_pieces(model: nn.Module, batch: Batch) -> torch.Tensor:
    """The loss of masked pieces, and how far a small shift of the embedded pieces, chosen to mislead, moves it.

    Liu et al. 2020 (ALUM, algorithm 1, one step): from a little noise, the gradient of the divergence between the
    predictions with and without it gives the direction of the shift; the divergence that the shift causes, both ways,
    is added ten times. The shift's size is ours: the paper prints 1e-5, which moves nothing, and the released code
    divides each piece's shift by its largest component, which makes it 1. Three passes in place of one.
    """
    asked, first = hidden_states(model, batch)
    logits = bodies.predict_pieces(model, asked)
    wanted = batch["targets"] != masking.UNASKED
    plain = logits[wanted].float()

    def predict(shift: torch.Tensor) -> torch.Tensor:
        return bodies.predict_pieces(model, hidden_states(model, batch, shift)[0])[wanted].float()

    noise = NOISE * torch.randn(*batch["input_ids"].shape, model.config.hidden_size, device=plain.device)
    noise.requires_grad_()
    (slope,) = torch.autograd.grad(divergence(predict(noise), plain.detach()), noise)
    shift = SHIFT * slope / (slope.abs().amax(-1, keepdim=True) + torch.finfo(slope.dtype).tiny)
    moved = predict(shift)
    both_ways = divergence(moved, plain.detach()) + divergence(plain, moved.detach())
    adversarial = ADVERSARIAL_WEIGHT * both_ways / batch["counts"][0]
    return piece_loss(logits, batch) + pair_loss(model, first, batch) + adversarial


def divergence(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Kullback-Leibler divergence of predictions from target predictions, both logits, summed over places."""
    ours, theirs = functional.log_softmax(logits, -1), functional.log_softmax(target, -1)
    return functional.kl_div(ours, theirs, reduction="sum", log_target=True)


def measure(model: nn.Module, batch: Batch) -> dict[str, tuple[float, float]]:
    """What held-out text shows of a model, by name: a sum over the batch, and what to divide its total by.

    `held-out loss`: cross-entropy at the pieces asked for (ELECTRA: its generator's); `pairs right`; ELECTRA's
    `replaced found` and `kept cleared`: shares of the pieces that its discriminator judges rightly.
    """
    predictor = model.generator if isinstance(model, Electra) else model
    asked, first = hidden_states(predictor, batch)
    logits = bodies.predict_pieces(predictor, asked)
    targets = float(batch["counts"][0])
    found = {"held-out loss": (piece_loss(logits, batch).item() * targets, targets)}
    if first is not None:
        right = bodies.judge_pair(predictor, first).argmax(-1) == batch["pair"]
        found["pairs right"] = (right.sum().item(), len(right))
    if isinstance(model, Electra):
        inputs, replaced = corrupt(logits, batch)
        said = judge(model, inputs, batch) > 0
        real = ~batch["padding"] if "padding" in batch else torch.ones_like(said)
        for name, which in (("replaced found", replaced == 1), ("kept cleared", (replaced == 0) & real)):
            found[name] = ((said == (replaced == 1))[which].sum().item(), which.sum().item())
    return found
