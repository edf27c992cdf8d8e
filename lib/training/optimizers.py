"""The papers' optimizers and learning-rate schedules."""

from collections.abc import Mapping

import torch

from lib.training.optimization import Optimization, Phase

EPSILON = 1e-6  # as in BERT's, ALBERT's, ELECTRA's and NVIDIA's code


def rate(phase: Phase, step: int) -> float:
    """Return the learning rate at a step of a pretraining phase, counted from 0."""
    shape = {"linear": slanted_triangle, "square root": square_root_decay}[phase.decay]
    return phase.learning_rate * shape(step, phase.steps, phase.warmup, phase.end)


def slanted_triangle(step: int, steps: int, warmup: float, end: float = 0.0) -> float:
    """Return the share of the peak learning rate at a step: linear warm-up over a share of the steps, linear decay.

    It decays to `end`, which it would reach at the step after the last: a phase that begins there, without warm-up,
    continues it like one schedule over both. In Google's code decay starts at the first step, so that the rate drops
    when the warm-up ends, BERT's by 1%.
    """
    warmup_steps = round(warmup * steps)
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    return end + (1 - end) * (steps - step) / (steps - warmup_steps)


def square_root_decay(step: int, steps: int, warmup: float, end: float = 0.0) -> float:
    """Return the share of the peak learning rate at a step in NVIDIA's pretraining with LAMB.

    ouBioBERT follows it (Wada et al. 2020, section 4.1): linear warm-up, then the square root of the remaining share
    of all steps. The share drops at once from 1 to sqrt(1 - warmup) when the warm-up ends. At the last step it is
    `end`, in NVIDIA's code 0 (class PolyWarmUpScheduler in PyTorch/LanguageModeling/BERT/schedulers.py of
    NVIDIA/DeepLearningExamples).
    """
    progress = (step + 1) / steps
    return progress / warmup if progress < warmup else end + (1 - end) * (1 - progress) ** 0.5


def make_optimizer(
    model: torch.nn.Module, settings: Optimization, learning_rate: float, shares: Mapping[str, float] | None = None
) -> torch.optim.Optimizer:
    """Return AdamW or LAMB over a model's parameters; shared parameters are counted once.

    Biases and layer norms do not decay, as in BERT, and LAMB does not adapt their steps (see `Lamb`). `shares`: factors
    on the learning rate by parameter name; each parameter group keeps its own as `share`.
    """
    shares, adamw, groups = shares or {}, settings.optimizer == "adamw", []
    for share in sorted({1.0, *shares.values()}):
        parameters = [p for name, p in model.named_parameters() if shares.get(name, 1.0) == share]
        matrices = [p for p in parameters if p.ndim >= 2]
        vectors = [p for p in parameters if p.ndim < 2]
        rate_of_group = {"lr": learning_rate * share, "share": share}
        groups += [
            {"params": matrices, "weight_decay": settings.weight_decay, "adapted": not adamw} | rate_of_group,
            {"params": vectors, "weight_decay": 0.0, "adapted": False} | rate_of_group,
        ]
    betas = tuple(settings.betas)
    if adamw:
        return torch.optim.AdamW(groups, lr=learning_rate, betas=betas, eps=EPSILON, fused=True)
    return Lamb(groups, lr=learning_rate, betas=betas)


class Lamb(torch.optim.Optimizer):
    """LAMB (You et al. 2020, Large batch optimization for deep learning: training BERT in 76 minutes, Algorithm 2).

    Adam's step r, with bias correction, plus the weight decay is scaled to the norm of the weights w: each tensor
    moves by lr * |w| * (r + decay * w) / |r + decay * w|, or by lr * (r + decay * w) if either norm is 0. (The
    paper's phi is the identity here, as in the implementations named below.)

    A group with `adapted` false takes the step unscaled. The algorithm as printed makes no such exception. The paper's
    own implementation (TensorFlow Addons), ALBERT's and NVIDIA's (FusedLAMB of apex) make it for parameters that do not
    decay, and so does `make_optimizer`, because a bias that starts at 0 would hardly grow. ALBERT's also does not
    correct the bias of the moments. Epsilon is the same in all three. ALBERT's and NVIDIA's first clip the gradient's
    global norm to 1, which the training loop does here.
    """

    def __init__(self, groups, lr: float, betas: tuple[float, float]):
        defaults = {"lr": lr, "betas": betas, "eps": EPSILON, "weight_decay": 0.0, "adapted": True, "step": 0}
        super().__init__(groups, defaults)

    @torch.no_grad()
    def step(self, closure=None) -> None:
        """Update every parameter that has a gradient; `closure` is part of torch's signature and not used."""
        for group in self.param_groups:
            group["step"] += 1
            for weight in group["params"]:
                if weight.grad is not None:
                    self.update(weight, group)

    def update(self, weight: torch.Tensor, group: dict) -> None:
        state, step = self.state[weight], group["step"]
        momentum, memory = group["betas"]
        if not state:
            state |= {name: torch.zeros_like(weight) for name in ("mean", "square")}
        state["mean"].lerp_(weight.grad, 1 - momentum)
        state["square"].mul_(memory).addcmul_(weight.grad, weight.grad, value=1 - memory)
        mean_correction, square_correction = 1 - momentum**step, 1 - memory**step
        # In place in one tensor, because on a CPU allocation costs as much as computation.
        change = (state["square"] / square_correction).sqrt_().add_(group["eps"])
        torch.div(state["mean"], change, out=change).div_(mean_correction)
        if group["weight_decay"]:
            change.add_(weight, alpha=group["weight_decay"])
        if group["adapted"]:
            weight_norm, change_norm = weight.norm(), change.norm()
            # Without .item(), which makes a GPU wait.
            change.mul_(torch.where((weight_norm > 0) & (change_norm > 0), weight_norm / change_norm, 1.0))
        weight.add_(change, alpha=-group["lr"])
