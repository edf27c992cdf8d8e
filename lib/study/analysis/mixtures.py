"""What two ways to mix a small corpus with a large one show of both, counted (wada, Figure 3)."""

import numpy as np
import pandas as pd

from lib.pretraining.blocks import Blocks
from lib.pretraining.masking import Masking
from lib.pretraining.mixing import METHODS, Layout, arrange
from lib.pretraining.random_numbers import make_keys
from lib.progress import Progress
from lib.study import params, vocabularies

KINDS = ("core with core", "core with satellite", "satellite with satellite")  # by the number of satellite documents
COUNTED_STEP = 4096  # rows counted at once
COLUMNS = [
    "core", "satellite", "vocabulary", "method", "core pieces", "satellite pieces", "instances", "core share",
    "core seen", "satellite seen", "random pairs", "distinct pairs", *KINDS,
]  # fmt: skip


def compare(scale: str, uses: int, instances: int) -> pd.DataFrame:
    """Count the instances of both methods for each vocabulary that amplifies a core and can be had; a row each.

    As many instances of both as the original implementation makes of all text when it uses each document `uses`
    times, but at most `instances`.
    """
    length = min(128, params.load("scales", scale).sequence_length)
    amplified = [one for one in vocabularies.at_hand(scale) if one.settings.amplify]
    progress, lines = Progress("mixtures counted"), []
    for one in amplified:
        core = [corpus for corpus in one.corpora if corpus.key in one.settings.amplify]
        satellites = [corpus for corpus in one.corpora if corpus not in core]
        packed = [list(map(one.packed, corpora)) for corpora in (core, satellites)]
        pieces = sum(len(text.ids) for text in packed[0])
        for method in METHODS:
            layout = arrange(method, *packed)
            wanted = min(instances, uses * (len(layout.text) // (length - 3)))
            counts = count_instances(
                layout, one.tokenizer(), core=pieces, instances=wanted, length=length,
                duplicates=uses if method == "split files" else None,
            )  # fmt: skip
            lines.append(
                {"core": " + ".join(corpus.key for corpus in core),
                 "satellite": " + ".join(corpus.key for corpus in satellites),
                 "vocabulary": one.key, "method": method, "core pieces": pieces,
                 "satellite pieces": len(layout.text) - pieces} | counts
            )  # fmt: skip
            progress.update(len(lines), len(amplified) * len(METHODS))
    return pd.DataFrame(lines, columns=COLUMNS)


def count_instances(
    layout: Layout, tokenizer, *, core: int, instances: int, length: int, duplicates: int | None
) -> dict[str, float]:
    """What the first instances of next-sentence prediction are made of; `core`: pieces of the text's core.

    The share of core text in all pieces, how often a piece of each side is seen on average, and the random pairs: how
    many, and how many distinct pairs of documents they are, by the sides that the two come from.
    """
    blocks = Blocks(
        layout, tokenizer, length=length, batch_size=COUNTED_STEP, steps=-(-instances // COUNTED_STEP),
        masking=Masking("word-piece", 0.15), pairs="next sentence", duplicates=duplicates,
    )  # fmt: skip
    seen, pairs, kinds = np.zeros(2, np.int64), [], []
    for step in range(len(blocks)):
        rows = blocks.list_sequences(step)
        segments = blocks.cut(*blocks.order(rows[rows < instances]))
        both = np.stack([segments.first, segments.second])
        lengths = np.stack([segments.first_length, segments.second_length])
        seen += [lengths[both < core].sum(), lengths[both >= core].sum()]
        random = both[:, segments.pair == 1]
        pairs.append(make_keys(*(layout.text.find_documents(places)[0] for places in random)))
        kinds.append((random >= core).sum(axis=0))
    distinct, first = np.unique(np.concatenate(pairs), return_index=True)
    of_kind = np.bincount(np.concatenate(kinds)[first], minlength=3)
    return {
        "instances": instances,
        "core share": seen[0] / seen.sum(),
        "core seen": seen[0] / core,
        "satellite seen": seen[1] / (len(layout.text) - core),
        "random pairs": sum(map(len, pairs)),
        "distinct pairs": len(distinct),
        **dict(zip(KINDS, of_kind.tolist(), strict=True)),
    }


def describe(table: pd.DataFrame, scale: str) -> str:
    """What the counts of both methods show, in sentences made from them (Markdown)."""
    if table.empty:
        return "- No vocabulary that amplifies a core can be had here, so there is nothing to count."
    lines, more = [], {"core share": 0, "distinct pairs": 0}
    cases = table.groupby("vocabulary", sort=False)
    for _, rows in cases:
        split, ours = (rows[rows["method"] == method].iloc[0] for method in METHODS)
        lines.append(
            f"- {split['core']} with {split['satellite']}, {split['instances']:,} instances of each method: "
            f"{split['core share']:.1%} of the text is core with split files, {ours['core share']:.1%} with "
            f"simultaneous pretraining; a piece of the core is seen {split['core seen']:.1f} and "
            f"{ours['core seen']:.1f} times; the random pairs are of {split['distinct pairs']:,} and "
            f"{ours['distinct pairs']:,} distinct pairs of documents, {with_core(split):,} and {with_core(ours):,} of "
            "them with a document of the core."
        )
        for name in more:
            more[name] += ours[name] > split[name]
    lines.append(
        f"- Simultaneous pretraining raises the share of core text in {more['core share']} of {len(cases)} cases, and "
        f"the number of distinct document pairs in {more['distinct pairs']} of {len(cases)}."
    )
    if params.load("scales", scale).made_up:
        lines.append("- The data are made up.")
    return "\n".join(lines)


def with_core(counts: pd.Series) -> int:
    """How many distinct pairs have core text in them."""
    return counts[KINDS[0]] + counts[KINDS[1]]
