"""Metrics: pure functions of full gold and predictions, whose docstrings page 12 shows (METRICS).

Scores are percent, 0 to 100, where a docstring does not say otherwise, and 0 where a divisor is 0. `gold` and
`predicted` have an item an instance: a sentence's tags, a pair's label, a document's labels. ValueError, with counts
and no text, where they are not equally long or empty, or hold labels that the metric does not know. The libraries
are imported where they are used, as they take seconds and whoever only wants METRICS does not need them.
"""

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from statistics import fmean

from lib.benchmarks import answer_metrics
from lib.benchmarks.rates import Scores, check_known, check_lengths, class_rates, rates, rates_by_kind, set_rates

STEP = 2**-7  # between neighbouring numbers in bfloat16, as a share of the number
PICO = {"PAR": "participants", "INT": "interventions", "OUT": "outcomes"}
Tags = Sequence[Sequence[str]]  # by sentence


def check_tags(gold: Tags, predicted: Tags) -> None:
    """check_lengths, and a predicted tag for each gold tag."""
    check_lengths(gold, predicted)
    for g, p in zip(gold, predicted, strict=True):
        if len(g) != len(p):
            raise ValueError(f"a sentence of {len(g)} gold tags has {len(p)} predicted")


def entity_scores(gold: Tags, predicted: Tags) -> Scores:
    """Entity-level precision, recall and F1, micro over all entities of the test set, and how many gold ones there are.

    BIO tags. An entity is right when both ends and the type agree with gold. seqeval's default mode, which scores as
    conlleval does: an I without a B before it begins an entity. Printed in lee Table 4 (with precision and recall), gu
    Tables 3 and 6, wada Table 7 (BC5CDR), ozyurt Table 4.
    """
    from seqeval.metrics.sequence_labeling import precision_recall_fscore_support

    check_tags(gold, predicted)
    check_known((tag.partition("-")[0] for side in (gold, predicted) for tags in side for tag in tags), "BIO")
    precision, recall, f1, support = precision_recall_fscore_support(
        typed(gold), typed(predicted), average="micro", zero_division=0
    )
    return {"precision": 100 * float(precision), "recall": 100 * float(recall), "f1": 100 * float(f1),
            "gold entities": int(support)}  # fmt: skip


def typed(sentences: Tags) -> list[list[str]]:
    """Tags of a scheme without types (B, I) given one, which is what seqeval expects."""
    return [[f"{tag}-entity" if tag in ("B", "I") else tag for tag in tags] for tags in sentences]


def entity_sets(sentences: Tags) -> list[set[tuple]]:
    """The entities (type, first word, last word) of each sentence, found as entity_scores finds them.

    strict_spans of these sets gives entity_scores' rates.
    """
    from seqeval.metrics.sequence_labeling import get_entities

    return [set(get_entities(tags)) for tags in typed(sentences)]


def mention_sets(texts: Tags) -> list[set[tuple]]:
    """The mentions (type, places of its words) of each text, all parts of one together.

    B begins a mention; an I goes on with the last one of its type, next to it or not, or begins one where there is
    none: as standoff.tag_text writes mentions in parts. Tags cannot say more: where parts of two of a type alternate,
    as of words 0, 2 and 1, 3, they come as 0 and 1, 2, 3, in gold as in predictions.
    """
    found = []
    for tags in texts:
        mentions: list[tuple[str, list[int]]] = []
        for place, tag in enumerate(tags):
            letter, _, kind = tag.partition("-")
            of_kind = [places for other, places in mentions if other == kind]
            if letter == "I" and of_kind:
                of_kind[-1].append(place)
            elif letter != "O":
                mentions.append((kind, [place]))
        found.append({(kind, *places) for kind, places in mentions})
    return found


def entity_type_scores(gold: Tags, predicted: Tags) -> Scores:
    """entity_scores, and `macro f1`: the mean over types of each one's F1, of the types that gold or predictions have.

    No paper prints a macro average; lee, gu, wada and ozyurt print the micro one. Of data of one's own, where a rare
    type may be the one that counts.
    """
    scores = entity_scores(gold, predicted)
    by_type = rates_by_kind(entity_sets(gold), entity_sets(predicted), itemgetter(0))
    return scores | {"macro f1": average_f1(by_type.values())}


def average_f1(scores: Collection[Scores]) -> float:
    return fmean(one["f1"] for one in scores) if scores else 0.0


def token_scores(gold: Tags, predicted: Tags, outside: bool, average: str = "micro") -> Scores:
    """Precision, recall and F1 per word.

    No paper says so; a candidate for naseem Table 7, NER: its Table 6 counts words (S800 dev: 22,217 are words). A word
    is right when its whole tag is, with B or I and type. `outside`: with `O` as one of the classes; the micro
    average is then the accuracy. Without, words that are `O` on both sides count for nothing. `average`: `micro` over
    words, or `weighted`, the mean over tags weighted by their gold words, as in scikit-learn's classification report.
    """
    from sklearn.metrics import precision_recall_fscore_support

    check_tags(gold, predicted)
    words = [list(chain.from_iterable(side)) for side in (gold, predicted)]
    tags = sorted({*words[0], *words[1]} - (set() if outside else {"O"}))
    if not tags:
        return rates(0, 0, 0)
    *values, _ = precision_recall_fscore_support(*words, labels=tags, average=average, zero_division=0)
    return {name: 100 * float(value) for name, value in zip(("precision", "recall", "f1"), values, strict=True)}


def strict_spans(gold: Sequence[Collection[Hashable]], predicted: Sequence[Collection[Hashable]]) -> Scores:
    """Precision, recall and F1 over mentions, micro over all of the test set; equal ones of a document count once.

    A mention is anything hashable, such as its type and all its (start, end) parts; it is right when it is equal, so a
    mention in parts needs every part. Printed in wada 3.2.2 and Table 7 (ShARe/CLEFE, whose mentions may be in
    parts).
    """
    return set_rates(gold, predicted)


def pico_scores(gold: Tags, predicted: Tags) -> Scores:
    """`f1`: the mean of the word-level F1 of participants, interventions and outcomes, which are beside it.

    A word's tag is `O` or elements joined by `|`: `I-INT|I-PAR`. Each element is scored on its own, over the words of
    all abstracts together, as EBM-NLP's own program does; a word of two elements counts for both. Printed in gu 2.3.2,
    Tables 3 and 6 (EBM PICO).
    """
    check_tags(gold, predicted)
    gold_words = [elements(tag) for tag in chain.from_iterable(gold)]
    predicted_words = [elements(tag) for tag in chain.from_iterable(predicted)]
    check_known(chain.from_iterable(gold_words + predicted_words), PICO)
    by_element = rates_by_kind(gold_words, predicted_words)
    f1s = {f"f1 ({name})": by_element.get(key, rates(0, 0, 0))["f1"] for key, name in PICO.items()}
    return {"f1": fmean(f1s.values())} | f1s


def elements(tag: str) -> set[str]:
    return set() if tag == "O" else {part[2:] for part in tag.split("|")}


def relation_scores(gold: Sequence[str], predicted: Sequence[str], negative: str | None = "false") -> Scores:
    """Precision, recall and F1, micro over the positive types: all labels but `negative`; None: over every label.

    A pair is right when its type is; pairs without a relation on both sides count for nothing. Printed in gu Tables 3
    and 6 (ChemProt, DDI), wada 3.2.3 and Table 7 and naseem Table 7 (also i2b2), lee Table 5 and ozyurt Table 6
    (ChemProt).
    """
    check_lengths(gold, predicted)
    right = sum(g == p != negative for g, p in zip(gold, predicted, strict=True))
    return rates(right, sum(p != negative for p in predicted), sum(g != negative for g in gold))


def binary_scores(gold: Sequence[Hashable], predicted: Sequence[Hashable], positive: Hashable = "1") -> Scores:
    """Precision, recall and F1 of the positive one of two classes; pairs without a relation on both sides count for
    nothing.

    ValueError for more than two labels, or for two of which none is `positive`. Printed in lee Table 5 (GAD, EU-ADR:
    means of ten folds), naseem Table 7 (the same), ozyurt Table 6 (GAD). gu Tables 3 and 6 and naseem Table 6 say micro
    F1: over positive types, as for ChemProt, it is this; over both classes it would be the accuracy.
    """
    check_lengths(gold, predicted)
    labels = {*gold, *predicted}
    if len(labels | {positive}) > 2:
        raise ValueError(f"{len(labels)} labels in {len(gold)} instances: expected two, one of them the positive")
    return class_rates(gold, predicted, positive)


def answer_class_scores(gold: Sequence[str], predicted: Sequence[str]) -> Scores:
    """Precision, recall and F1 with `yes` as the positive class, and again with `no`.

    Printed in ozyurt Table 3 (BioASQ 8b yes/no).
    """
    check_lengths(gold, predicted)
    check_known(chain(gold, predicted), ("yes", "no"))
    return {f"{name} ({answer})": value for answer in ("yes", "no")
            for name, value in class_rates(gold, predicted, answer).items()}  # fmt: skip


def pearson(gold: Sequence[float], predicted: Sequence[float]) -> float:
    """Pearson's r between gold and predicted values, times 100; nan, undefined, where gold is constant, the predictions
    are, or nearly, or one value is nan.

    One number for the test set, which in BIOSSES is 20 pairs. Printed in gu Table 6 (BIOSSES), wada 3.2.1 and Table 7
    (BIOSSES, MedSTS), naseem Table 7.
    """
    from scipy.stats import pearsonr

    check_lengths(gold, predicted)
    if len(set(gold)) == 1 or is_constant(gold, predicted):
        return math.nan
    return 100 * float(pearsonr(gold, predicted).statistic)


def is_constant(gold: Sequence[float], predicted: Sequence[float]) -> bool:
    """Whether predictions differ by no more than rounding in bfloat16 may make, and correlate as noise does.

    Their standard deviation is at most STEP of their mean size and a tenth of gold's. This gives up predictions in
    float32 that differ by so little and are right, as these cannot be told from noise.
    """
    import numpy as np

    return bool(np.std(predicted) <= min(STEP * np.mean(np.abs(predicted)), np.std(gold) / 10))


def accuracy(gold: Sequence[Hashable], predicted: Sequence[Hashable]) -> float:
    """The share of instances with the right label; for one label an instance, micro F1 over all classes is the same.

    Printed in gu Table 6 (PubMedQA, BioASQ yes/no), wada 3.2.5 and Table 7 (MedNLI), as micro F1 Table 6 (DocClsJp),
    naseem Table 7 (MedNLI).
    """
    check_lengths(gold, predicted)
    return 100 * fmean(g == p for g, p in zip(gold, predicted, strict=True))


def class_scores(gold: Sequence[Hashable], predicted: Sequence[Hashable]) -> Scores:
    """The accuracy, and `macro f1`: the mean over the classes of gold and predictions of each one's F1.

    As scikit-learn's f1_score with average="macro". No paper prints a macro average over classes (gu prints the
    accuracy); of data of one's own.
    """
    right = accuracy(gold, predicted)
    by_class = [class_rates(gold, predicted, one) for one in {*gold, *predicted}]
    return {"accuracy": right, "macro f1": average_f1(by_class)}


def multilabel_scores(gold: Sequence[Collection[str]], predicted: Sequence[Collection[str]]) -> Scores:
    """Precision, recall and F1, micro over all documents and the ten labels.

    A document without labels is an instance too: what is predicted for it is wrong. Printed in gu 2.3.5 and Table 6
    (HoC, 371 documents).
    """
    return set_rates(gold, predicted)


def label_scores(gold: Sequence[Collection[str]], predicted: Sequence[Collection[str]]) -> Scores:
    """multilabel_scores, and `macro f1`: the mean over labels of each one's F1, of those that gold or predictions have.

    No paper prints a macro average (gu prints the micro one, of HoC); of data of one's own.
    """
    by_label = rates_by_kind(gold, predicted)
    return multilabel_scores(gold, predicted) | {"macro f1": average_f1(by_label.values())}


def example_scores(gold: Sequence[Collection[str]], predicted: Sequence[Collection[str]]) -> Scores:
    """Means over documents of precision and of recall, and the harmonic mean of the two means as F1.

    Nothing predicted has precision 0. A document without gold labels has 1 for both when nothing is predicted, else 0
    for both; BLUE's set has none. Printed in wada 3.2.4 and Table 7 (HoC, 315 documents), naseem Table 7 (the same
    documents), after BLUE's program (Peng et al. 2019), which prints precision and recall under each other's name.
    """
    check_lengths(gold, predicted)
    precisions, recalls = [], []
    for gold_labels, predicted_labels in zip(map(set, gold), map(set, predicted), strict=True):
        right = len(gold_labels & predicted_labels)
        precisions.append(right / len(predicted_labels) if predicted_labels else not gold_labels)
        recalls.append(right / len(gold_labels) if gold_labels else not predicted_labels)
    precision = 100 * fmean(precisions)
    recall = 100 * fmean(recalls)
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {"precision": precision, "recall": recall, "f1": f1}


def benchmark_total(scores: Mapping[str, float], groups: Mapping[str, Collection[str]]) -> float:
    """The mean over groups of the mean over a group's datasets; a single group gives the plain mean.

    BLURB score: a group a task type, six in all (gu 2.3, Tables 6, 7, 9, 10 and 11; naseem Table 7 calls the plain mean
    over one task's sets BLURB). BLUE total of ten datasets, clinical score of four, biomedical of six: one group each
    (wada 3.2, Tables 7 and 8). ValueError for a dataset without a score, and for no datasets.
    """
    empty = sum(not group for group in groups.values())
    if not groups or empty:
        raise ValueError(f"{len(groups)} groups, of which {empty} empty")
    names = set(chain.from_iterable(groups.values()))
    if missing := sorted(names - scores.keys()):
        raise ValueError(f"no score of {', '.join(missing)}")
    means = [fmean(scores[name] for name in group) for group in groups.values()]
    return fmean(means)


@dataclass(frozen=True)
class Metric:
    """How a dataset is scored; what is counted, over what it is averaged and where it is printed: the docstring."""

    title: str
    function: Callable
    main: str = "f1"  # the value of its result that ranks models; empty where the result is one number


ENTITIES = "entity-f1", "entity-type-f1"  # keys of metrics that count entities
WITH_MACRO = "class-f1", "entity-type-f1", "label-f1"  # of data of one's own: those with a `macro f1` besides
METRICS = {
    "entity-f1": Metric("Entity-level F1", entity_scores),
    "token-f1": Metric("Word-level F1", token_scores),
    "strict-span-f1": Metric("Strict F1 over spans", strict_spans),
    "pico-macro-f1": Metric("PICO macro F1, word level", pico_scores),
    "relation-micro-f1": Metric("Relation micro F1", relation_scores),
    "binary-f1": Metric("F1 of the positive class", binary_scores),
    "pearson": Metric("Pearson correlation", pearson, ""),
    "accuracy": Metric("Accuracy", accuracy, ""),
    "multilabel-micro-f1": Metric("Multilabel micro F1", multilabel_scores),
    "example-f1": Metric("Example-based F1", example_scores),
    "class-f1": Metric("Accuracy and macro F1", class_scores, "accuracy"),
    "entity-type-f1": Metric("Entity-level F1, micro and macro over types", entity_type_scores),
    "label-f1": Metric("F1 of labels, micro and macro", label_scores),
    "answer-class-f1": Metric("F1 of yes and of no", answer_class_scores, "f1 (no)"),
    "bioasq-factoid": Metric("BioASQ factoid measures", answer_metrics.bioasq_factoid, "mrr"),
    "squad": Metric("SQuAD exact match and F1", answer_metrics.squad_scores),
    "ranking-mrr": Metric("Mean reciprocal rank", answer_metrics.ranking_scores, "mrr"),
    "benchmark-total": Metric("BLURB score; BLUE total, clinical and biomedical score", benchmark_total, ""),
}
