"""Pretraining to the same loss: the study's loop against the Trainer of `transformers`, on held-out text.

    python -m benchmarks.curves [--steps N] [--seeds N]

BERT-tiny over 400 steps of 16 rows, three seeds a side, both without dropout and with the same learning rates, the
Trainer as in benchmarks/pretraining.py but in float32. Text and vocabulary are the study's at scale laptop, where they
have to be built. Writes outputs/record/benchmarks/pretraining-curves.csv; page 96 shows the difference at the end.
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
    """Calls a function after chosen steps of the Trainer."""

    def __init__(self, function, steps: list[int]):
        self.function, self.steps = function, steps

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step in self.steps:
            self.function()


def follow_loss(side: str, steps: int, seed: int) -> list[tuple[int, float]]:
    """The held-out loss after so many tokens, at TIMES places of a run."""
    study = open_study(SCALE)
    corpus, vocabulary = study.corpus(CORPUS), study.vocabulary(VOCABULARY)
    text, unseen = (tokens.Text([vocabulary.packed(corpus, split)]) for split in tokens.SPLITS)
    tokenizer, recipe = vocabulary.tokenizer(), params.load("scales", "laptop").pretraining.recipe
    held_out = make_batches(unseen, tokenizer, 32, 8, LENGTH)
    warmup = max(1, steps // 20)
    torch.manual_seed(seed)
    model = models.build_model("bert", TINY, len(tokenizer), LENGTH, 0.0)
    places = [round((number + 1) * steps / TIMES) for number in range(TIMES)]
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
            rate_of=lambda step: RATE * min(step / warmup, (steps - step) / (steps - warmup)),  # the Trainer's
            seed=seed,
            progress=Progress("benchmark"),
            evaluate=look,
            evaluations=places,
        )
    else:
        train_as_run_mlm(
            model, text, tokenizer, Look(look, places), LENGTH, max_steps=steps, per_device_train_batch_size=ROWS,
            seed=seed, learning_rate=RATE, warmup_steps=warmup, weight_decay=recipe.weight_decay,
            adam_beta1=recipe.betas[0], adam_beta2=recipe.betas[1], max_grad_norm=recipe.clip,
        )  # fmt: skip
    return [(place * ROWS * LENGTH, loss) for place, loss in zip(places, losses, strict=True)]


def measure_loss(model: nn.Module, batches: blocks.Blocks) -> float:
    """The mean over all masked tokens, in float32; the model goes on training."""
    model.eval()
    with torch.inference_mode():
        found = [objectives.measure_batch(model, batches[step])["held-out loss"] for step in range(len(batches))]
    model.train()
    return sum(total for total, _ in found) / sum(count for _, count in found)


def main() -> None:
    words = paired.make_parser(__doc__, steps=400, seeds=3).parse_args()
    lines, text = [], f"{CORPUS}, vocabulary {VOCABULARY}"
    for seed in range(1, words.seeds + 1):
        for side in ("study", "trainer"):
            for seen, loss in paired.run_apart(follow_loss, side, words.steps, seed):
                lines.append({"side": side, "seed": seed, "tokens": seen, "held-out loss": round(loss, 4),
                              "text": text, "commit": provenance.commit()})  # fmt: skip
            print(f"{side}, seed {seed}: loss {loss:.3f} after {seen:,} tokens", flush=True)
    results.write_csv(paired.OUTPUT / "pretraining-curves.csv", lines)


if __name__ == "__main__":
    paired.start(main)
