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
            own, _ = batches.text.find_documents(segments.first)
            other, _ = batches.text.find_documents(segments.second)
            totals["true"] += int((batch["pair"] == 0).sum())
            totals["same document"] += int(((own == other) & (segments.pair == 1)).sum())
    asked, whole = totals["asked"], batches.masking.kind != "word-piece"
    masked = totals["masked"] / asked if asked else np.nan
    unchanged = totals["unchanged"] / asked if asked else np.nan
    rows = [
        ("pieces asked for", asked / totals["maskable"], totals["wanted"] / totals["maskable"]),
        ("of these, hidden", masked, batches.masking.masked),
        ("of these, replaced by a random piece", 1 - masked - unchanged, batches.masking.replaced),
        ("of these, left as they are", unchanged, 1 - batches.masking.masked - batches.masking.replaced),
        ("words asked for in part (count)", totals["split"], 0 if whole else None),
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
    row, slot = np.nonzero(batch["targets"] != masking.IGNORED)
    place, target = batch["positions"][row, slot], batch["targets"][row, slot]
    seen = batch["input_ids"][row, place]
    original = batch["input_ids"].copy()
    original[row, place] = target
    maskable = ~inventory.special[original]
    wanted = masking.count_to_mask(maskable.sum(axis=1), batches.share_at(step), batches.masking.limit)
    begins = masking.begin_words(original, maskable, inventory)
    words = np.cumsum(begins).reshape(original.shape)  # numbered across all rows
    sizes = np.bincount(words[maskable])
    asked = np.bincount(words[row, place], minlength=len(sizes))
    padding = int((~batch["attention_mask"]).sum()) if "attention_mask" in batch else 0
    return {
        "sequences": len(original),
        "places": original.size,
        "padding": padding,
        "maskable": int(maskable.sum()),
        "wanted": int(wanted.sum()),
        "asked": len(row),
        "masked": int((seen == inventory.mask).sum()),
        "unchanged": int((seen == target).sum()),
        "split": int(((asked > 0) & (asked < sizes)).sum()),
    }
