"""Counts over batches, to check that sequences are masked and paired as described."""

from collections import Counter

import numpy as np

from lib.pretraining import masking
from lib.pretraining.blocks import Blocks


def measure_batches(batches: Blocks, steps: int) -> list[dict]:
    """Measure the batches of the first steps; return rows `what, measured, wanted`, as shares unless they say count."""
    totals = Counter()
    for step in range(min(steps, len(batches))):
        batch = {name: tensor.numpy() for name, tensor in batches[step].items()}
        totals.update(count_masked(batches, step, batch))
        if batches.pairs != "none":
            segments = batches.cut(*batches.order(batches.list_sequences(step)))
            first_documents, _ = batches.text.find_documents(segments.first)
            second_documents, _ = batches.text.find_documents(segments.second)
            totals["true"] += int((batch["pair"] == 0).sum())
            totals["same document"] += int(((first_documents == second_documents) & (segments.pair == 1)).sum())
    chosen, whole_words = totals["asked"], batches.masking.kind != "word-piece"
    masked_share = totals["masked"] / chosen if chosen else np.nan
    unchanged_share = totals["unchanged"] / chosen if chosen else np.nan
    rows = [
        ("pieces asked for", chosen / totals["maskable"], totals["wanted"] / totals["maskable"]),
        ("of these, hidden", masked_share, batches.masking.masked),
        ("of these, replaced by a random piece", 1 - masked_share - unchanged_share, batches.masking.replaced),
        ("of these, left as they are", unchanged_share, 1 - batches.masking.masked - batches.masking.replaced),
        ("words asked for in part (count)", totals["split"], 0 if whole_words else None),
        ("padding", totals["padding"] / totals["places"], None if batches.pairs != "none" else 0),
    ]
    if batches.pairs != "none":
        rows.append(("pairs that follow each other in the text", totals["true"] / totals["sequences"], 0.5))
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
    padding = int((~batch["attention_mask"]).sum()) if "attention_mask" in batch else 0
    return {
        "sequences": len(original),
        "places": original.size,
        "padding": padding,
        "maskable": int(maskable.sum()),
        "wanted": int(wanted.sum()),
        "asked": len(rows),
        "masked": int((inputs == inventory.mask).sum()),
        "unchanged": int((inputs == targets).sum()),
        "split": int(((chosen_counts > 0) & (chosen_counts < word_sizes)).sum()),
    }
