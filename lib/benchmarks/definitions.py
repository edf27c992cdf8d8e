"""Definitions that a printed score may follow: the same predictions scored by each, and who prints which."""

from functools import partial

from lib.benchmarks import metrics
from lib.benchmarks.datasets import Dataset

ENTITIES, WORDS, WORD_ACCURACY = "entity F1", "word F1", "word accuracy"
RELATIONS, POSITIVE, ACCURACY, NO = "micro F1 of positive types", "F1 of the positive class", "accuracy", "F1 of no"
LABELS, BY_EXAMPLE = "micro F1 of labels", "example-based F1"
LABELLED = "labelled documents"
METRIC_OF = {  # definition -> its metric
    ENTITIES: metrics.entity_scores,
    WORDS: partial(metrics.token_scores, outside=False),
    WORD_ACCURACY: partial(metrics.token_scores, outside=True),
    RELATIONS: metrics.relation_scores,
    POSITIVE: metrics.binary_scores,
    ACCURACY: metrics.accuracy,
    NO: metrics.answer_class_scores,
    LABELS: metrics.multilabel_scores,
    BY_EXAMPLE: metrics.example_scores,
}
# From the record of a run, because gold answers are texts that stay in their dataset, and predicted ones are spans.
RECORDED = {"mean reciprocal rank": "mrr", "lenient accuracy": "lenient accuracy"}
UNSAID = "lee-4, gu-6, wada-7 and ozyurt-4 count entities; naseem-7 does not say"
# Metric -> its own definition, another one, and which papers print which.
PAIRS = {
    "entity-f1": [(ENTITIES, WORDS, UNSAID), (ENTITIES, WORD_ACCURACY, UNSAID)],
    "relation-micro-f1": [
        (RELATIONS, ACCURACY, "the accuracy is the micro F1 of all labels; naseem-7 does not say which labels it "
         "counts")
    ],
    "binary-f1": [
        (POSITIVE, ACCURACY, "lee-5 and ozyurt-6 name precision and recall, so of one class; gu-6 and naseem-7 say "
         "micro F1, which of both classes is the accuracy")
    ],
    "multilabel-micro-f1": [
        (LABELS, f"{LABELS}, {LABELLED}", "gu-6 keeps the documents without a label; wada-7 and naseem-7 do not"),
        (LABELS, BY_EXAMPLE, "gu-6 counts labels of all documents together; wada-7 takes means over documents"),
        (LABELS, f"{BY_EXAMPLE}, {LABELLED}", "gu-6 against wada-7, documents and metric"),
    ],
    "example-f1": [
        (BY_EXAMPLE, LABELS, "wada-7 takes means over documents; gu-6 counts labels of all documents together")
    ],
    "accuracy": [(ACCURACY, NO, "gu-6 has the accuracy; ozyurt-3 the F1 of each answer")],
    "answer-class-f1": [(NO, ACCURACY, "ozyurt-3 has the F1 of each answer; gu-6 the accuracy")],
    "bioasq-factoid": [
        ("mean reciprocal rank", "lenient accuracy", "lee-6 has both; naseem-7 the lenient accuracy alone")
    ],
}  # fmt: skip


def score_by(definition: str, dataset: Dataset, gold: list, predicted: list) -> float:
    """Return the score of predictions by a definition of PAIRS; LABELLED in it leaves out documents without a label."""
    name, _, restriction = definition.partition(", ")
    if restriction:
        gold, predicted = keep_labelled(gold, predicted)
    options = {"negative": dataset.negative} if name == RELATIONS else {}
    scores = METRIC_OF[name](gold, predicted, **options)
    return scores if name == ACCURACY else scores["f1 (no)" if name == NO else "f1"]


def keep_labelled(gold: list, predicted: list) -> tuple[list, list]:
    """Keep the gold and predicted labels of documents that have a label."""
    labelled = [(g, p) for g, p in zip(gold, predicted, strict=True) if g]
    return [g for g, _ in labelled], [p for _, p in labelled]


def list_pairs(dataset: Dataset) -> list[tuple[str, str, str]]:
    """Return the pairs of definitions to score a dataset's predictions by, and who prints which.

    Empty if all labels are positive, or if the second definition is for another dataset.
    """
    if not dataset.negative or dataset.metric == "accuracy" and dataset.key != "bioasq-7b-yesno":
        return []
    return PAIRS.get(dataset.metric, [])
