"""Counts over batches, to check that sequences are masked and paired as described."""

from collections import Counter

import numpy as np

from lib.pretraining import masking
from lib.pretraining.blocks import Blocks


def measure_batches(batches: Blocks, steps: int) -> list[dict]:
    """Measure the batches of the first steps; return rows `what, measured, wanted`, as shares unless they say count."""
    paired = batches.pairs != "none"
    totals = Counter()
    for step in range(min(steps, len(batches))):
        batch = {name: tensor.numpy() for name, tensor in batches[step].items()}
        totals.update(count_masked(batches, step, batch))
        if paired:
            segments = batches.cut(*batches.order(batches.list_sequences(step)))
            first_documents, _ = batches.text.find_documents(segments.first)
            second_documents, _ = batches.text.find_documents(segments.second)
            totals["true"] += int((batch["pair"] == 0).sum())
            totals["same document"] += int(((first_documents == second_documents) & (segments.pair == 1)).sum())

    def share(part: str, whole: str) -> float:
        return totals[part] / totals[whole] if totals[whole] else np.nan

    settings, masked, unchanged = batches.masking, share("masked", "asked"), share("unchanged", "asked")
    rows = [
        ("tokens selected for prediction", share("asked", "maskable"), share("wanted", "maskable")),
        ("of these, replaced by [MASK]", masked, settings.masked),
        ("of these, replaced by a random token", 1 - masked - unchanged, settings.replaced),
        ("of these, unchanged", unchanged, 1 - settings.masked - settings.replaced),
        ("words selected in part (count)", totals["split"], None if settings.kind == "word-piece" else 0),
        ("padding", share("padding", "places"), None if paired else 0),
    ]
    if paired:
        rows.append(("pairs of consecutive segments", share("true", "sequences"), 0.5))
    if batches.pairs == "next sentence":
        rows.append(("random segments of the same document (count)", totals["same document"], 0))
    return [dict(zip(("what", "measured", "wanted"), row, strict=True)) for row in rows]


def count_masked(batches: Blocks, step: int, batch: dict[str, np.ndarray]) -> dict[str, int]:
    """Count the sequences, tokens and words of a step's batch: what is masked, and what could be."""
    inventory = batches.inventory
    rows, slots = np.nonzero(batch["targets"] != masking.IGNORED)
    positions, targets = batch["positions"][rows, slots], batch["targets"][rows, slots]
    inputs = batch["input_ids"][rows, positions]
    original = batch["input_ids"].copy()
    original[rows, positions] = targets
    maskable = ~inventory.special[original]
    wanted = masking.count_to_mask(maskable.sum(axis=1), batches.share_at(step), batches.masking.limit)
    word_starts = masking.begin_words(original, maskable, inventory)
    word_numbers = np.cumsum(word_starts).reshape(original.shape)  # numbered across all rows
    word_sizes = np.bincount(word_numbers[maskable])
    chosen_counts = np.bincount(word_numbers[rows, positions], minlength=len(word_sizes))
    return {
        "sequences": len(original),
        "places": original.size,
        "padding": original.size - int(batch["counts"][1]),
        "maskable": int(maskable.sum()),
        "wanted": int(wanted.sum()),
        "asked": len(rows),
        "masked": int((inputs == inventory.mask).sum()),
        "unchanged": int((inputs == targets).sum()),
        "split": int(((chosen_counts > 0) & (chosen_counts < word_sizes)).sum()),
    }
