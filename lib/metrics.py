"""Metrics: pure functions of full gold and predictions."""

from seqeval.metrics.sequence_labeling import precision_recall_fscore_support


def entity_scores(gold: list[list[str]], predicted: list[list[str]]) -> dict[str, float]:
    """Entity-level precision, recall and F1 in percent, micro-averaged, and the number of gold entities.

    `gold`, `predicted`: BIO tags by sentence, equally long. An entity counts when both ends and the type agree.
    seqeval's default mode, which scores as conlleval does: an I without a B before it begins an entity.
    """
    for g, p in zip(gold, predicted, strict=True):
        if len(g) != len(p):
            raise ValueError(f"a sentence of {len(g)} gold tags has {len(p)} predicted")
    precision, recall, f1, support = precision_recall_fscore_support(
        typed(gold), typed(predicted), average="micro", zero_division=0
    )
    return {"precision": 100 * float(precision), "recall": 100 * float(recall), "f1": 100 * float(f1),
            "gold entities": int(support)}  # fmt: skip


def typed(sentences: list[list[str]]) -> list[list[str]]:
    """Tags of a scheme without types (B, I) given one, which is what seqeval expects."""
    return [[f"{tag}-entity" if tag in ("B", "I") else tag for tag in tags] for tags in sentences]
