"""Definitions that a printed score may follow: the same predictions scored by each, and who prints which."""

from collections.abc import Callable

from lib.benchmarks import metrics
from lib.benchmarks.datasets import Dataset

ENTITIES, WORDS, WORD_ACCURACY = "entity F1", "word F1", "word accuracy"
RELATIONS, POSITIVE, ACCURACY, NO = "micro F1 of positive types", "F1 of the positive class", "accuracy", "F1 of no"
LABELS, BY_EXAMPLE = "micro F1 of labels", "example-based F1"
LABELLED = "labelled documents"
DEFINITIONS: dict[str, Callable[[Dataset, list, list], float]] = {  # called with a dataset, gold and predicted
    ENTITIES: lambda _, *both: metrics.entity_scores(*both)["f1"],
    WORDS: lambda _, *both: metrics.token_scores(*both, outside=False)["f1"],
    WORD_ACCURACY: lambda _, *both: metrics.token_scores(*both, outside=True)["f1"],
    RELATIONS: lambda dataset, *both: metrics.relation_scores(*both, negative=dataset.negative)["f1"],
    POSITIVE: lambda _, *both: metrics.binary_scores(*both)["f1"],
    ACCURACY: lambda _, *both: metrics.accuracy(*both),
    NO: lambda _, *both: metrics.answer_class_scores(*both)["f1 (no)"],
    LABELS: lambda _, *both: metrics.multilabel_scores(*both)["f1"],
    f"{LABELS}, {LABELLED}": lambda _, *both: metrics.multilabel_scores(*keep_labelled(*both))["f1"],
    BY_EXAMPLE: lambda _, *both: metrics.example_scores(*both)["f1"],
    f"{BY_EXAMPLE}, {LABELLED}": lambda _, *both: metrics.example_scores(*keep_labelled(*both))["f1"],
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
    "bioasq-factoid": [(*RECORDED, "lee-6 has both; naseem-7 the lenient accuracy alone")],
}  # fmt: skip
OF_ONE = {"accuracy": "bioasq-7b-yesno"}  # metric -> the only dataset that its second definition is for


def keep_labelled(gold: list, predicted: list) -> tuple[list, list]:
    """Keep the gold and predicted labels of documents that have a label."""
    labelled = [(g, p) for g, p in zip(gold, predicted, strict=True) if g]
    return [g for g, _ in labelled], [p for _, p in labelled]


def list_pairs(dataset: Dataset) -> list[tuple[str, str, str]]:
    """Return the pairs of definitions to score a dataset's predictions by, and who prints which.

    Empty if all labels are positive, or if the second definition is for another dataset.
    """
    if not dataset.negative or OF_ONE.get(dataset.metric, dataset.key) != dataset.key:
        return []
    return PAIRS.get(dataset.metric, [])
