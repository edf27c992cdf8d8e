"""Metrics: pure functions of gold and predicted labels, whose docstrings page 12 shows (METRICS).

Scores are percentages, 0 to 100, unless a docstring says otherwise, and 0 if a divisor is 0. `gold` and `predicted`
have one item per instance: a sentence's tags, a pair's label, a document's labels. Metrics raise ValueError, with
counts and no text, if the two are empty, differ in length, or hold labels that the metric does not know. Libraries are
imported inside functions because they take seconds and METRICS alone does not need them.
"""

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from statistics import fmean

from lib.benchmarks import answer_metrics, bio
from lib.benchmarks.rates import Scores, check_known, check_lengths, class_rates, rates, rates_by_kind, set_rates

STEP = 2**-7  # relative distance between neighbouring bfloat16 numbers
PICO = {"PAR": "participants", "INT": "interventions", "OUT": "outcomes"}
Tags = Sequence[Sequence[str]]  # one item per sentence


def check_tags(gold: Tags, predicted: Tags) -> None:
    """Apply check_lengths, and raise ValueError unless each sentence has a predicted tag for each gold tag."""
    check_lengths(gold, predicted)
    for gold_tags, predicted_tags in zip(gold, predicted, strict=True):
        if len(gold_tags) != len(predicted_tags):
            raise ValueError(f"a sentence of {len(gold_tags)} gold tags has {len(predicted_tags)} predicted")


def entity_scores(gold: Tags, predicted: Tags) -> Scores:
    """Entity-level precision, recall and F1, micro-averaged over the test set, and the number of gold entities.

    Tags are BIO. An entity is right if both boundaries and the type match gold. Scoring uses seqeval's default mode,
    which agrees with conlleval: an I without a B before it begins an entity. Printed in lee Table 4 (with precision and
    recall), gu Tables 3 and 6, wada Table 7 (BC5CDR), ozyurt Table 4.
    """
    from seqeval.metrics.sequence_labeling import precision_recall_fscore_support

    check_tags(gold, predicted)
    check_known((bio.split_tag(tag)[0] for side in (gold, predicted) for tags in side for tag in tags), ("B", "I", "O"))
    typed = ([[bio.add_type(tag) for tag in tags] for tags in side] for side in (gold, predicted))
    precision, recall, f1, support = precision_recall_fscore_support(*typed, average="micro", zero_division=0)
    return {"precision": 100 * float(precision), "recall": 100 * float(recall), "f1": 100 * float(f1),
            "gold entities": int(support)}  # fmt: skip


def entity_sets(sentences: Tags) -> list[set[tuple]]:
    """Return the entities (type, first word, last word) of each sentence, found as in entity_scores.

    strict_spans of these sets gives the rates of entity_scores.
    """
    return [set(bio.locate_entities(tags)) for tags in sentences]


def mention_sets(texts: Tags) -> list[set[tuple]]:
    """Return the mentions (type, positions of their words) of each text, with all parts of a mention together.

    B begins a mention. An I continues the last mention of its type, adjacent or not, or begins one if there is none,
    because standoff.tag_text writes mentions in parts this way. Tags cannot say more: if the parts of two mentions of
    one type alternate, such as words 0, 2 and words 1, 3, they are read as 0 and 1, 2, 3, in gold and predictions
    alike.
    """
    sets = []
    for tags in texts:
        mentions, latest = [], {}  # latest: the last mention of each type
        for position, tag in enumerate(tags):
            letter, kind = bio.split_tag(tag)
            if letter == "O":
                continue
            if letter != "I" or kind not in latest:
                latest[kind] = [kind]
                mentions.append(latest[kind])
            latest[kind].append(position)
        sets.append({tuple(mention) for mention in mentions})
    return sets


def entity_type_scores(gold: Tags, predicted: Tags) -> Scores:
    """The scores of entity_scores, and `macro f1`: the mean F1 over the types in gold or predictions.

    No paper prints a macro average; lee, gu, wada and ozyurt print the micro one. It is for the user's own data, where
    a rare type may matter most.
    """
    scores = entity_scores(gold, predicted)
    by_type = rates_by_kind(entity_sets(gold), entity_sets(predicted), itemgetter(0))
    return scores | {"macro f1": average_f1(by_type.values())}


def average_f1(scores: Collection[Scores]) -> float:
    return fmean(kind_scores["f1"] for kind_scores in scores) if scores else 0.0


def token_scores(gold: Tags, predicted: Tags, outside: bool) -> Scores:
    """Precision, recall and F1 per word, micro-averaged over words.

    No paper says that it scores words. naseem Table 7 may do so for NER, because its Table 6 counts words (S800 dev:
    22,217 are words). A word is right if its whole tag is, with B or I and type. With `outside`, `O` is one of the
    classes, and the score is the accuracy; without it, words that are `O` on both sides are ignored.
    """
    check_tags(gold, predicted)
    words = (list(chain.from_iterable(side)) for side in (gold, predicted))
    return relation_scores(*words, negative=None if outside else "O")


def strict_spans(gold: Sequence[Collection[Hashable]], predicted: Sequence[Collection[Hashable]]) -> Scores:
    """Precision, recall and F1 over mentions, micro-averaged over the test set; duplicates in a document count once.

    A mention is any hashable value, such as its type with all its (start, end) parts. It is right if it equals a gold
    mention, so a mention in parts needs every part. Printed in wada 3.2.2 and Table 7 (ShARe/CLEFE, whose mentions may
    be in parts).
    """
    return set_rates(gold, predicted)


def pico_scores(gold: Tags, predicted: Tags) -> Scores:
    """`f1`: the mean word-level F1 of participants, interventions and outcomes, with the F1 of each.

    A word's tag is `O` or elements joined by `|`: `I-INT|I-PAR`. Each element is scored separately, over the words of
    all abstracts together, as in EBM-NLP's own program; a word with two elements counts for both. Printed in gu 2.3.2,
    Tables 3 and 6 (EBM PICO).
    """
    check_tags(gold, predicted)
    gold_words = [elements(tag) for tag in chain.from_iterable(gold)]
    predicted_words = [elements(tag) for tag in chain.from_iterable(predicted)]
    check_known(chain.from_iterable(gold_words + predicted_words), PICO)
    by_element = rates_by_kind(gold_words, predicted_words)
    f1s = {f"f1 ({name})": by_element.get(element, rates(0, 0, 0))["f1"] for element, name in PICO.items()}
    return {"f1": fmean(f1s.values())} | f1s


def elements(tag: str) -> set[str]:
    return set() if tag == "O" else {part[2:] for part in tag.split("|")}


def relation_scores(gold: Sequence[str], predicted: Sequence[str], negative: str | None = "false") -> Scores:
    """Precision, recall and F1, micro-averaged over all labels but `negative`; if that is None, over every label.

    A pair is right if its label is. Pairs that are negative on both sides are ignored. Printed in gu Tables 3 and 6
    (ChemProt, DDI), wada 3.2.3 and Table 7 and naseem Table 7 (also i2b2), lee Table 5 and ozyurt Table 6 (ChemProt).
    """
    check_lengths(gold, predicted)
    right = sum(g == p != negative for g, p in zip(gold, predicted, strict=True))
    return rates(right, sum(p != negative for p in predicted), sum(g != negative for g in gold))


def binary_scores(gold: Sequence[Hashable], predicted: Sequence[Hashable], positive: Hashable = "1") -> Scores:
    """Precision, recall and F1 of the positive one of two classes; pairs that are negative on both sides are ignored.

    Raises ValueError if there are more than two labels, or two of which neither is `positive`. Printed in lee Table 5
    (GAD, EU-ADR: means of ten folds), naseem Table 7 (the same sets, one split), ozyurt Table 6 (GAD). gu Table 3 and
    the text of naseem say micro F1: over positive types, as for ChemProt, it is this score; over both classes it would
    be the accuracy.
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
    """Pearson's r between gold and predicted values, times 100.

    It is nan (undefined) if gold is constant, the predictions are constant or nearly so, or a value is nan. It is one
    number for the test set, which has 20 pairs in BIOSSES. Printed in gu Table 6 (BIOSSES), wada 3.2.1 and Table 7
    (BIOSSES, MedSTS), naseem Table 7.
    """
    from scipy.stats import pearsonr

    check_lengths(gold, predicted)
    if len(set(gold)) == 1 or is_constant(gold, predicted):
        return math.nan
    return 100 * float(pearsonr(gold, predicted).statistic)


def is_constant(gold: Sequence[float], predicted: Sequence[float]) -> bool:
    """Return whether predictions vary no more than bfloat16 rounding may cause, so that they correlate like noise.

    Their standard deviation is then at most STEP of their mean magnitude and at most a tenth of gold's. Correct float32
    predictions that vary so little are rejected too, because they cannot be told from noise.
    """
    import numpy as np

    return bool(np.std(predicted) <= min(STEP * np.mean(np.abs(predicted)), np.std(gold) / 10))


def accuracy(gold: Sequence[Hashable], predicted: Sequence[Hashable]) -> float:
    """The percentage of instances with the right label; with one label each, it equals micro F1 over all classes.

    Printed in gu Table 6 (PubMedQA, BioASQ yes/no), wada 3.2.5 and Table 7 (MedNLI), as micro F1 in Table 6 (DocClsJp),
    naseem Table 7 (MedNLI).
    """
    check_lengths(gold, predicted)
    return 100 * fmean(g == p for g, p in zip(gold, predicted, strict=True))


def class_scores(gold: Sequence[Hashable], predicted: Sequence[Hashable]) -> Scores:
    """The accuracy, and `macro f1`: the mean F1 over the classes in gold or predictions.

    Equals scikit-learn's f1_score with average="macro". No paper prints a macro average over classes (gu prints the
    accuracy); it is for the user's own data.
    """
    percentage = accuracy(gold, predicted)
    by_class = [class_rates(gold, predicted, label) for label in {*gold, *predicted}]
    return {"accuracy": percentage, "macro f1": average_f1(by_class)}


def multilabel_scores(gold: Sequence[Collection[str]], predicted: Sequence[Collection[str]]) -> Scores:
    """Precision, recall and F1, micro-averaged over all documents and labels.

    A document without labels is an instance too: any label predicted for it is wrong. Printed in gu 2.3.5 and Table 6
    (HoC, ten labels, 371 documents).
    """
    return set_rates(gold, predicted)


def label_scores(gold: Sequence[Collection[str]], predicted: Sequence[Collection[str]]) -> Scores:
    """The scores of multilabel_scores, and `macro f1`: the mean F1 over the labels in gold or predictions.

    No paper prints a macro average (gu prints the micro one, for HoC); it is for the user's own data.
    """
    by_label = rates_by_kind(gold, predicted)
    return multilabel_scores(gold, predicted) | {"macro f1": average_f1(by_label.values())}


def example_scores(gold: Sequence[Collection[str]], predicted: Sequence[Collection[str]]) -> Scores:
    """Precision and recall averaged over documents, and F1 as the harmonic mean of the two averages.

    Precision is 0 if nothing is predicted. For a document without gold labels, both are 1 if nothing is predicted, else
    0; BLUE's dataset has no such document. Printed in wada 3.2.4 and Table 7, naseem Table 7 (HoC, 315 documents),
    after BLUE's program (Peng et al. 2019), which prints precision and recall under each other's name.
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
    """The mean over groups of each group's mean over its datasets; a single group gives the plain mean.

    The BLURB score has six groups, one per task type (gu 2.3, Tables 6, 7, 9, 10 and 11); naseem Table 7 calls the
    plain mean over one task's datasets BLURB. The BLUE total (ten datasets), clinical score (four) and biomedical score
    (six) are one group each (wada 3.2, Tables 7 and 8).
    """
    return fmean(fmean(scores[name] for name in group) for group in groups.values())


@dataclass(frozen=True)
class Metric:
    """How a dataset is scored.

    The function's docstring says what is counted, over what it is averaged and where it is printed.
    """

    title: str
    function: Callable
    main: str = "f1"  # the score that ranks models; empty if the function returns one number
    of_datasets: bool = True  # False: no dataset is scored by it; page 12 explains it because papers print it


ENTITIES = "entity-f1", "entity-type-f1"  # keys of metrics that count entities
WITH_MACRO = "class-f1", "entity-type-f1", "label-f1"  # metrics for the user's own data that add `macro f1`
METRICS = {
    "entity-f1": Metric("Entity-level F1", entity_scores),
    "token-f1": Metric("Word-level F1", token_scores, of_datasets=False),
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
    "benchmark-total": Metric("BLURB score; BLUE total, clinical and biomedical score", benchmark_total, "", False),
}
