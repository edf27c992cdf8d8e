"""Pretraining to the same loss: the study's loop against the Trainer of `transformers`, on held-out text.

    python -m benchmarks.curves [--steps N] [--seeds N]

Each side trains BERT-tiny for 400 steps of 16 rows, with three seeds, without dropout and with the same learning rates.
The Trainer runs as in benchmarks/pretraining.py but in float32. Text and vocabulary are the study's at scale laptop and
must have been built. Writes outputs/record/benchmarks/pretraining-curves.csv; page 96 shows the final difference.
"""

import torch
from torch import nn
from transformers import TrainerCallback

from benchmarks import paired
from benchmarks.pretraining import TINY, make_batches, train_as_run_mlm
from lib import provenance
from lib.modeling import models
from lib.pretraining import blocks, objectives, tokens
from lib.progress import Progress
from lib.study import open_study, params, results
from lib.training import training

CORPUS, VOCABULARY, SCALE = "pubmed-gu", "pubmed-uncased", "laptop"
ROWS, LENGTH, RATE, TIMES = 16, 128, 2e-3, 8


class Look(TrainerCallback):
    """A callback that calls a function after chosen steps of the Trainer."""

    def __init__(self, function, steps: list[int]):
        self.function, self.steps = function, steps

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step in self.steps:
            self.function()


def follow_loss(side: str, steps: int, seed: int) -> list[tuple[int, float]]:
    """Train one side and return TIMES evenly spaced pairs of tokens seen and held-out loss."""
    study = open_study(SCALE)
    corpus, vocabulary = study.corpus(CORPUS), study.vocabulary(VOCABULARY)
    text, unseen = (tokens.Text([vocabulary.packed(corpus, split)]) for split in tokens.SPLITS)
    tokenizer, recipe = vocabulary.tokenizer(), params.load("scales", "laptop").pretraining.recipe
    held_out = make_batches(unseen, tokenizer, 32, 8, LENGTH)
    warmup = max(1, steps // 20)
    torch.manual_seed(seed)
    model = models.build_model("bert", TINY, len(tokenizer), LENGTH, 0.0)
    evaluated_steps = [round((number + 1) * steps / TIMES) for number in range(TIMES)]
    losses = []

    def look() -> dict:
        losses.append(measure_loss(model, held_out))
        return {}

    if side == "study":
        training.train(
            model,
            make_batches(text, tokenizer, ROWS, steps, LENGTH, seed),
            objectives.masked_tokens,
            device=training.accelerator("auto"),
            settings=recipe,
            rate_of=lambda step: RATE * min(step / warmup, (steps - step) / (steps - warmup)),  # as the Trainer's
            seed=seed,
            progress=Progress("benchmark"),
            evaluate=look,
            evaluations=evaluated_steps,
        )
    else:
        train_as_run_mlm(
            model, text, tokenizer, Look(look, evaluated_steps), LENGTH, max_steps=steps,
            per_device_train_batch_size=ROWS, seed=seed, learning_rate=RATE, warmup_steps=warmup,
            weight_decay=recipe.weight_decay,
            adam_beta1=recipe.betas[0], adam_beta2=recipe.betas[1], max_grad_norm=recipe.clip,
        )  # fmt: skip
    return [(step_count * ROWS * LENGTH, loss) for step_count, loss in zip(evaluated_steps, losses, strict=True)]


def measure_loss(model: nn.Module, batches: blocks.Blocks) -> float:
    """Return the mean loss over all masked tokens, in float32. The model ends in training mode."""
    model.eval()
    with torch.inference_mode():
        batch_losses = [objectives.measure_batch(model, batches[step])["held-out loss"] for step in range(len(batches))]
    model.train()
    return sum(total for total, _ in batch_losses) / sum(count for _, count in batch_losses)


def main() -> None:
    options = paired.make_parser(__doc__, steps=400, seeds=3).parse_args()
    rows, description = [], f"{CORPUS}, vocabulary {VOCABULARY}"
    for seed in range(1, options.seeds + 1):
        for side in ("study", "trainer"):
            for token_count, loss in paired.run_apart(follow_loss, side, options.steps, seed):
                rows.append({"side": side, "seed": seed, "tokens": token_count, "held-out loss": round(loss, 4),
                             "text": description, "commit": provenance.commit()})  # fmt: skip
            print(f"{side}, seed {seed}: loss {loss:.3f} after {token_count:,} tokens", flush=True)
    results.write_csv(paired.OUTPUT / "pretraining-curves.csv", rows)


if __name__ == "__main__":
    paired.start(main)
