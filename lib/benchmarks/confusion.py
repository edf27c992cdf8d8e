"""Confusions of a model, per entity or per text, and its most frequent errors."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from operator import itemgetter

from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Instance, Sentence
from lib.benchmarks.metrics import entity_sets
from lib.benchmarks.rates import count_kinds, rates_by_kind
from lib.benchmarks.seen import list_entities

NONE = "none"  # no entity, or no label
SHOWN = 10  # errors listed
LETTERS = 200  # characters shown of a text
Pairs = list[tuple[str, str, str]]  # gold, predicted, and their text


def pair_labels(dataset: Dataset, instances: Sequence[Instance], predicted: Sequence) -> Pairs:
    """Pair gold with predicted: the type of each entity for tagging, labels for documents and pairs."""
    if dataset.family == "tagging":
        tagged_instances = zip(instances, predicted, strict=True)
        return [pair for instance, tags in tagged_instances for pair in pair_entities(instance, tags)]
    return [(format_labels(instance.gold), format_labels(answer), " / ".join(instance.inputs)[:LETTERS])
            for instance, answer in zip(instances, predicted, strict=True)]  # fmt: skip


def pair_entities(sentence: Sentence, tags: Sequence[str]) -> Pairs:
    """Pair each gold entity of a sentence with a prediction, or NONE, and the remaining predictions with NONE.

    A prediction is paired once: with the entity of the same words, else with one that it overlaps, as its type and
    `other bounds`.
    """
    gold, predicted = list_entities(sentence, sentence.tags), list_entities(sentence, tags)
    pairs, unpaired = [], sorted(predicted - gold, key=itemgetter(1))
    for entity in sorted(gold, key=itemgetter(1)):
        kind, first, last, words = entity
        overlaps = [other for other in unpaired if other[1] <= last and other[2] >= first]
        other_kind = NONE
        if entity in predicted:
            other_kind = kind
        elif overlaps:
            match = next((other for other in overlaps if other[1:3] == (first, last)), overlaps[0])
            unpaired.remove(match)
            other_kind = match[0] if match[1:3] == (first, last) else f"{match[0]}, other bounds"
        pairs.append((kind, other_kind, words))
    return pairs + [(NONE, kind, words) for kind, _, _, words in unpaired]


def format_labels(answer: str | float | Sequence[str]) -> str:
    """Return one label, several labels or a number as one string."""
    return str(answer) if isinstance(answer, str | float) else "; ".join(answer) or NONE


def count_pairs(pairs: Pairs) -> list[dict[str, object]]:
    """Return the confusion matrix: a row per gold label, a column per gold or predicted label."""
    counts = Counter((gold, predicted) for gold, predicted, _ in pairs)
    gold_labels = {gold for gold, _ in counts}
    labels = sorted(gold_labels - {NONE})
    none_label = [NONE] if NONE in gold_labels else []
    predicted_only = sorted({predicted for _, predicted in counts} - gold_labels)
    columns = [*labels, *predicted_only, *none_label]
    return [{"gold \\ predicted": gold} | {column: counts[gold, column] for column in columns}
            for gold in [*labels, *none_label]]  # fmt: skip


def list_errors(pairs: Pairs) -> list[dict[str, object]]:
    """List the most frequent errors: gold, predicted, how often, and in which texts most."""
    texts = defaultdict(Counter)
    for gold, predicted, text in pairs:
        if gold != predicted:
            texts[gold, predicted][text] += 1
    errors = sorted(texts.items(), key=lambda error: -error[1].total())[:SHOWN]
    return [
        {"gold": gold, "predicted": predicted, "times": counts.total(),
         "as in": " | ".join(f"{text} ({n})" if n > 1 else text for text, n in counts.most_common(3))}
        for (gold, predicted), counts in errors
    ]  # fmt: skip


def score_each(dataset: Dataset, instances: Sequence[Instance], predicted: Sequence) -> list[dict[str, object]]:
    """Return precision, recall and F1 of each type, class or label, with its number in gold."""
    gold, kind_of = [instance.gold for instance in instances], str
    if dataset.family == "tagging":
        gold, predicted, kind_of = entity_sets(gold), entity_sets(predicted), itemgetter(0)
    elif isinstance(gold[0], str):  # one label each
        gold, predicted = ([(label,) for label in side] for side in (gold, predicted))
    counts = count_kinds(gold, kind_of)
    scores = rates_by_kind(gold, predicted, kind_of)
    return [{"label": label, "gold": counts[label]} | scores[label] for label in scores]


def list_farthest(instances: Sequence[Instance], predicted: Sequence[float]) -> list[dict[str, object]]:
    """Return the predicted numbers farthest from gold."""
    rows = [
        {"gold": instance.gold, "predicted": number, "text": " / ".join(instance.inputs)[:LETTERS]}
        for instance, number in zip(instances, predicted, strict=True)
    ]
    return sorted(rows, key=lambda row: -abs(row["gold"] - row["predicted"]))[:SHOWN]
