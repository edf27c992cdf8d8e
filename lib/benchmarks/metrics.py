"""Metrics: pure functions of full gold and predictions, and a card of each for people (CARDS).

Scores are percent, 0 to 100, where a docstring does not say otherwise, and 0 where a divisor is 0. `gold` and
`predicted` have an item an instance: a sentence's tags, a pair's label, a document's labels. ValueError, with counts
and no text, where they are not equally long or empty, or hold labels that the metric does not know. The libraries
are imported where they are used, as they take seconds and whoever only wants CARDS does not need them.
"""

import math
import re
import string
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean

import numpy as np

PICO = {"PAR": "participants", "INT": "interventions", "OUT": "outcomes"}
Tags = Sequence[Sequence[str]]  # by sentence
Scores = dict[str, float]


def check_lengths(gold: Sequence, predicted: Sequence) -> None:
    """ValueError when there is nothing to score, or not a prediction for each gold instance."""
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} gold instances, {len(predicted)} predicted")
    if not len(gold):
        raise ValueError("0 gold instances: nothing to score")


def check_tags(gold: Tags, predicted: Tags) -> None:
    """check_lengths, and a predicted tag for each gold tag."""
    check_lengths(gold, predicted)
    for g, p in zip(gold, predicted, strict=True):
        if len(g) != len(p):
            raise ValueError(f"a sentence of {len(g)} gold tags has {len(p)} predicted")


def check_known(labels: Iterable, known: Collection) -> None:
    """ValueError with the number of labels that are not among the known ones."""
    if unknown := sum(label not in known for label in labels):
        raise ValueError(f"{unknown} labels are not of {', '.join(map(str, known))}")


def rates(right: int, predicted: int, gold: int) -> Scores:
    """Precision, recall and F1 from three counts: right items, predicted items, gold items."""
    return {
        "precision": 100 * right / predicted if predicted else 0.0,
        "recall": 100 * right / gold if gold else 0.0,
        "f1": 200 * right / (predicted + gold) if predicted + gold else 0.0,
    }


def class_rates(gold: Sequence[Hashable], predicted: Sequence[Hashable], label: Hashable) -> Scores:
    """Precision, recall and F1 of one class."""
    right = sum(g == p == label for g, p in zip(gold, predicted, strict=True))
    return rates(right, sum(p == label for p in predicted), sum(g == label for g in gold))


def set_rates(gold: Sequence[Collection[Hashable]], predicted: Sequence[Collection[Hashable]]) -> Scores:
    """Precision, recall and F1 over the members of all sets, a set an instance."""
    check_lengths(gold, predicted)
    gold, predicted = [set(g) for g in gold], [set(p) for p in predicted]
    right = sum(len(g & p) for g, p in zip(gold, predicted, strict=True))
    return rates(right, sum(map(len, predicted)), sum(map(len, gold)))


def entity_scores(gold: Tags, predicted: Tags) -> Scores:
    """Entity-level precision, recall and F1, micro-averaged, and the number of gold entities.

    BIO tags. An entity counts when both ends and the type agree. seqeval's default mode, which scores as conlleval
    does: an I without a B before it begins an entity. Lee Table 4, Gu Tables 3 and 6, Wada Table 7, Ozyurt Table 4.
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

    strict_spans of these sets gives entity_scores' rates; bootstrap_interval is some forty times faster with them.
    """
    from seqeval.metrics.sequence_labeling import get_entities

    return [set(get_entities(tags)) for tags in typed(sentences)]


def token_scores(gold: Tags, predicted: Tags, outside: bool, average: str = "micro") -> Scores:
    """Precision, recall and F1 per word: what BioALBERT's NER scores may be (Naseem Table 7).

    A word is right when its whole tag is, with B or I and type. `outside`: with `O` as one of the classes; the micro
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
    """Precision, recall and F1 over the mentions of each document, micro-averaged; equal mentions of one count once.

    A mention is anything hashable, such as its type and all its (start, end) parts; it counts when it is equal, so a
    mention in pieces needs every piece. Wada 3.2.2, ShARe/CLEFE in Table 7.
    """
    return set_rates(gold, predicted)


def pico_scores(gold: Tags, predicted: Tags) -> Scores:
    """`f1`: the mean of the word-level F1 of participants, interventions and outcomes, which are beside it.

    A word's tag is `O` or elements joined by `|`: `I-INT|I-PAR`. Each element is scored on its own, over the words of
    all abstracts together; a word of two elements counts for both. Gu 2.3.2, Tables 3 and 6.
    """
    check_tags(gold, predicted)
    words = [[elements(tag) for tags in side for tag in tags] for side in (gold, predicted)]
    check_known(chain.from_iterable(words[0] + words[1]), PICO)
    each = {
        name: class_rates(*([key in word for word in side] for side in words), True)["f1"] for key, name in PICO.items()
    }
    return {"f1": fmean(each.values())} | {f"f1 ({name})": value for name, value in each.items()}


def elements(tag: str) -> set[str]:
    return set() if tag == "O" else {part[2:] for part in tag.split("|")}


def relation_scores(gold: Sequence[str], predicted: Sequence[str], negative: str | None = "false") -> Scores:
    """Precision, recall and F1, micro-averaged over the positive types: all labels but `negative`.

    None: every label counts. ValueError when no instance has the negative label, which is then spelt otherwise. Gu
    Table 6 and Wada 3.2.3 (ChemProt, DDI, i2b2), Lee Table 5 and Ozyurt Table 6 (ChemProt).
    """
    check_lengths(gold, predicted)
    if negative is not None and negative not in {*gold, *predicted}:
        raise ValueError(f"none of {len(gold)} instances has the negative label: give this set's, or None")
    right = sum(g == p != negative for g, p in zip(gold, predicted, strict=True))
    return rates(right, sum(p != negative for p in predicted), sum(g != negative for g in gold))


def binary_scores(gold: Sequence[Hashable], predicted: Sequence[Hashable], positive: Hashable = "1") -> Scores:
    """Precision, recall and F1 of the positive one of two classes.

    ValueError for more than two labels, or for two of which none is `positive`. Lee Table 5 (GAD, EU-ADR), Ozyurt
    Table 6 (GAD), Gu Table 6 (GAD, called micro F1; CARDS has why it is this).
    """
    check_lengths(gold, predicted)
    labels = {*gold, *predicted}
    if len(labels | {positive}) > 2:
        raise ValueError(f"{len(labels)} labels in {len(gold)} instances: expected two, one of them the positive")
    return class_rates(gold, predicted, positive)


def answer_class_scores(gold: Sequence[str], predicted: Sequence[str]) -> Scores:
    """Precision, recall and F1 of the class `yes`, and of the class `no`. Ozyurt Table 3."""
    check_lengths(gold, predicted)
    check_known(chain(gold, predicted), ("yes", "no"))
    return {f"{name} ({answer})": value for answer in ("yes", "no")
            for name, value in class_rates(gold, predicted, answer).items()}  # fmt: skip


def pearson(gold: Sequence[float], predicted: Sequence[float]) -> float:
    """Pearson's r times 100; nan, undefined, where all gold or all predicted values are the same or one is nan.

    Gu Table 6 and Naseem Table 7 (BIOSSES), Wada Table 7 (BIOSSES, MedSTS).
    """
    from scipy.stats import pearsonr

    check_lengths(gold, predicted)
    if len(set(gold)) == 1 or len(set(predicted)) == 1:
        return math.nan
    return 100 * float(pearsonr(gold, predicted).statistic)


def accuracy(gold: Sequence[Hashable], predicted: Sequence[Hashable]) -> float:
    """Instances with the right label. Gu Table 6 (PubMedQA, BioASQ yes/no), Wada and Naseem Table 7 (MedNLI)."""
    check_lengths(gold, predicted)
    return 100 * fmean(g == p for g, p in zip(gold, predicted, strict=True))


def multilabel_scores(gold: Sequence[Collection[str]], predicted: Sequence[Collection[str]]) -> Scores:
    """Precision, recall and F1, micro-averaged over (document, label) pairs. Gu 2.3.5, Table 6 (HoC).

    A document without labels is an instance too: what is predicted for it is wrong.
    """
    return set_rates(gold, predicted)


def example_scores(gold: Sequence[Collection[str]], predicted: Sequence[Collection[str]]) -> Scores:
    """Means over documents of precision and of recall, and the harmonic mean of the two means as F1.

    Nothing predicted has precision 0. A document without gold labels has 1 for both when nothing is predicted, else 0
    for both; BLUE's set has none. Wada 3.2.4, Table 7 (HoC), after BLUE's script (Peng et al. 2019).
    """
    check_lengths(gold, predicted)
    pairs = [(set(g), set(p)) for g, p in zip(gold, predicted, strict=True)]
    precision = 100 * fmean(len(g & p) / len(p) if p else not g for g, p in pairs)
    recall = 100 * fmean(len(g & p) / len(g) if g else not p for g, p in pairs)
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {"precision": precision, "recall": recall, "f1": f1}


def bioasq_factoid(gold: Sequence[Collection[str]], predicted: Sequence[Sequence[str]]) -> Scores:
    """BioASQ's strict accuracy, lenient accuracy and mean reciprocal rank (`mrr`) of ranked answers.

    `gold`: for each question every string that is right; `predicted`: its answers, best first, of which five count. An
    answer is right when it is equal in lower case, which is all that the official evaluation normalises. No answer is
    a wrong one; the official program leaves out questions that a submission lacks. Call it for each batch and average,
    as Lee Table 6 does; Naseem Table 7 has the lenient accuracy.
    """
    check_lengths(gold, predicted)
    check_answers(gold)
    ranks = []
    for right, ranked in zip(gold, predicted, strict=True):
        right = {answer.lower() for answer in right}
        ranks.append(next((n for n, answer in enumerate(ranked[:5], start=1) if answer.lower() in right), math.inf))
    return {
        "strict accuracy": 100 * fmean(rank == 1 for rank in ranks),
        "lenient accuracy": 100 * fmean(rank <= 5 for rank in ranks),
        "mrr": 100 * fmean(1 / rank for rank in ranks),
    }


def check_answers(gold: Sequence[Collection[str]]) -> None:
    if without := sum(not answers for answers in gold):
        raise ValueError(f"{without} of {len(gold)} questions have no gold answer")


def squad_scores(gold: Sequence[Collection[str]], predicted: Sequence[str]) -> Scores:
    """SQuAD v1.1's exact match and F1: for each question the best over its gold answers. Ozyurt Table 2.

    F1 is of the words that two normalised answers share, each as often as in both.
    """
    check_lengths(gold, predicted)
    check_answers(gold)
    pairs = [
        ([normalise_answer(g) for g in answers], normalise_answer(p))
        for answers, p in zip(gold, predicted, strict=True)
    ]
    return {
        "exact match": 100 * fmean(p in answers for answers, p in pairs),
        "f1": fmean(max(word_f1(g, p) for g in answers) for answers, p in pairs),
    }


def normalise_answer(text: str) -> str:
    """Lower case, then without ASCII punctuation, then without articles, then single spaces (SQuAD v1.1)."""
    bare = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", bare).split())


def word_f1(gold: str, predicted: str) -> float:
    g, p = Counter(gold.split()), Counter(predicted.split())
    return rates((g & p).total(), p.total(), g.total())["f1"]


def ranking_scores(labels: Sequence[int], scores: Sequence[float], groups: Sequence[Hashable]) -> Scores:
    """Mean reciprocal rank, 0 to 1, of each question's first right candidate by falling score. Ozyurt Table 5.

    An item a candidate: 1 for right or 0, its score, its question. A question without a right one adds 0 and counts.
    Of equal scores the earlier candidate is first, as in the authors' program. ValueError for a score that is nan.
    """
    check_lengths(labels, scores)
    check_lengths(labels, groups)
    check_known(labels, (0, 1))
    if undefined := sum(map(math.isnan, scores)):
        raise ValueError(f"{undefined} of {len(scores)} scores are nan")
    ranked = defaultdict(list)
    for _, label, group in sorted(zip(scores, labels, groups, strict=True), key=lambda item: -item[0]):
        ranked[group].append(label)
    return {"mrr": fmean(1 / (1 + found.index(1)) if 1 in found else 0.0 for found in ranked.values())}


def benchmark_total(scores: Mapping[str, float], groups: Mapping[str, Collection[str]]) -> float:
    """The mean over groups of the mean over a group's datasets; a single group gives the plain mean.

    BLURB score: a group a task type (Gu 2.3, last row of Table 6). BLUE total, and its clinical and biomedical scores:
    one group each (Wada 3.2, Tables 7 and 8). ValueError for a dataset without a score, and for no datasets.
    """
    if not groups or not all(groups.values()):
        raise ValueError(f"{len(groups)} groups, of which {sum(not group for group in groups.values())} empty")
    if missing := sorted({name for group in groups.values() for name in group} - scores.keys()):
        raise ValueError(f"no score of {', '.join(missing)}")
    return fmean(fmean(scores[name] for name in group) for group in groups.values())


def bootstrap_interval(
    metric: Callable[[list, list], float], gold: Sequence, predicted: Sequence, resamples: int = 1000, seed: int = 0
) -> tuple[float, float]:
    """The middle 95% of a metric over resamples of the instances: 2.5th and 97.5th percentile.

    `metric`: gold and predicted to one number, in whose unit the ends are. A resample of as many instances is drawn
    with replacement, gold and prediction together. Resamples where the metric is undefined (nan) are left out; (nan,
    nan) when it is in all. The same seed gives the same interval.
    """
    check_lengths(gold, predicted)
    draws = np.random.default_rng(seed).integers(len(gold), size=(resamples, len(gold))).tolist()
    values = np.array([metric([gold[i] for i in draw], [predicted[i] for i in draw]) for draw in draws])
    values = values[~np.isnan(values)]
    if not len(values):
        return math.nan, math.nan
    low, high = np.percentile(values, (2.5, 97.5))
    return float(low), float(high)


@dataclass(frozen=True)
class Card:
    """A metric for people: what is counted, over what it is averaged, and which paper prints it where."""

    title: str
    definition: str
    averaging: str
    papers: str
    function: Callable
    main: str = "f1"  # the value of its result that ranks models; empty where the result is one number


CARDS = {
    "entity-f1": Card(
        "Entity-level F1",
        "An entity is right when both ends and the type agree with gold. Scored as conlleval does.",
        "Micro: all entities of the test set together.",
        "lee Table 4 (with precision and recall), gu Tables 3 and 6, wada Table 7 (BC5CDR), ozyurt Table 4.",
        entity_scores,
    ),
    "token-f1": Card(
        "Word-level F1",
        "A word is right when its whole tag is, with B or I. `O` is a class or is left out; which, is always said.",
        "Micro over words (with `O`: the accuracy), or the mean over tags weighted by gold words.",
        "No paper says so. A candidate for naseem Table 7, NER: its Table 6 counts words (S800 dev: 22,217 are words).",
        token_scores,
    ),
    "strict-span-f1": Card(
        "Strict F1 over spans",
        "A mention is right when all its pieces are, character by character. Equal mentions of a document count once.",
        "Micro: all mentions of the test set together.",
        "wada 3.2.2 and Table 7 (ShARe/CLEFE, whose mentions may be in pieces).",
        strict_spans,
    ),
    "pico-macro-f1": Card(
        "PICO macro F1, word level",
        "F1 of the words of participants, of interventions and of outcomes. A word of two elements counts for both.",
        "Micro over all words of the test set for each element, then the mean of the three.",
        "gu 2.3.2, Tables 3 and 6 (EBM PICO). That the abstracts are pooled follows EBM-NLP's own program.",
        pico_scores,
    ),
    "relation-micro-f1": Card(
        "Relation micro F1",
        "A pair is right when its type is. Pairs without a relation on both sides count for nothing.",
        "Micro over the positive types.",
        "gu Tables 3 and 6 (ChemProt, DDI), wada 3.2.3 and Table 7 (also i2b2), lee Table 5, ozyurt Table 6.",
        relation_scores,
    ),
    "binary-f1": Card(
        "F1 of the positive class",
        "Pairs with a relation found and missed; pairs without one on both sides count for nothing.",
        "None: one class. lee reports ten-fold cross-validation.",
        "lee Table 5 (GAD, EU-ADR), ozyurt Table 6 (GAD). gu Tables 3 and 6 say micro F1 for GAD: over positive types, "
        "as for ChemProt, it is this; over both classes it would be the accuracy.",
        binary_scores,
    ),
    "pearson": Card(
        "Pearson correlation",
        "Pearson's r between gold and predicted similarity, times 100. Undefined for predictions that are all equal.",
        "None: one number for the test set, which in BIOSSES is 20 pairs.",
        "gu Table 6 (BIOSSES), wada 3.2.1 and Table 7 (BIOSSES, MedSTS), naseem Table 7.",
        pearson,
        "",
    ),
    "accuracy": Card(
        "Accuracy",
        "Instances with the right label. For one label an instance, micro F1 over all classes is the same number.",
        "Over instances.",
        "gu Table 6 (PubMedQA, BioASQ yes/no), wada 3.2.5 and Table 7 (MedNLI), as micro F1 Table 6 (DocClsJp), naseem "
        "Table 7 (MedNLI).",
        accuracy,
        "",
    ),
    "multilabel-micro-f1": Card(
        "Multilabel micro F1",
        "Each label of each document is found, missed or wrong. Documents without labels stay in.",
        "Micro over documents and the ten labels.",
        "gu 2.3.5 and Table 6 (HoC, 371 documents).",
        multilabel_scores,
    ),
    "example-f1": Card(
        "Example-based F1",
        "Precision and recall of each document's labels. F1 is the harmonic mean of their means, not the mean of F1s.",
        "Over documents.",
        "wada 3.2.4 and Table 7 (HoC, 315 documents, each with a label), naseem Table 7 (the same documents). BLUE's "
        "program prints precision and recall under each other's name; F1 does not change.",
        example_scores,
    ),
    "answer-class-f1": Card(
        "F1 of yes and of no",
        "Precision, recall and F1 with yes as the positive class, and again with no.",
        "None: two classes, side by side.",
        "ozyurt Table 3 (BioASQ 8b yes/no).",
        answer_class_scores,
        "f1 (no)",
    ),
    "bioasq-factoid": Card(
        "BioASQ factoid measures",
        "Strict: the first answer is right. Lenient: one of the first five is. MRR: one over the rank of the first "
        "right one, or 0. Right is equal to a gold answer or its synonym in lower case.",
        "Over questions, then over the five batches of a year.",
        "lee Table 6 (all three), naseem Table 7 (lenient).",
        bioasq_factoid,
        "mrr",
    ),
    "squad": Card(
        "SQuAD exact match and F1",
        "Answers in lower case without punctuation and articles: equal, and the F1 of their words.",
        "Over questions, each with its best gold answer.",
        "ozyurt Table 2 (BioASQ 8b factoid).",
        squad_scores,
    ),
    "ranking-mrr": Card(
        "Mean reciprocal rank",
        "One over the rank of a question's first right candidate; 0 without one. From 0 to 1. Ties keep file order.",
        "Over questions.",
        "ozyurt Table 5.",
        ranking_scores,
        "mrr",
    ),
    "blurb-score": Card(
        "BLURB score",
        "The mean of six task types. Metrics of different kinds are averaged as they are.",
        "Over the datasets of a task type, then over task types.",
        "gu 2.3, Tables 6, 7, 9, 10 and 11. naseem Table 7 calls the plain mean over one task's sets BLURB.",
        benchmark_total,
        "",
    ),
    "blue-total": Card(
        "BLUE total, clinical and biomedical score",
        "The mean of ten datasets; of the four clinical ones; of the six biomedical ones.",
        "Over datasets.",
        "wada 3.2, Tables 7 and 8.",
        benchmark_total,
        "",
    ),
    "bootstrap-interval": Card(
        "95% bootstrap interval",
        "How far a score would move with another test set of this size; not the spread between seeds.",
        "Percentiles over resamples of the test set's instances.",
        "None of the five papers; the study's own.",
        bootstrap_interval,
        "",
    ),
}
