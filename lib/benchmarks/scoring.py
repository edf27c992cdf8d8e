"""What predictions on a dataset are worth, by its metric."""

from statistics import fmean

from lib.benchmarks import metrics, questions, registry
from lib.benchmarks.instances import Instance


def main_score(key: str) -> str:
    """The name of the number that ranks models on a dataset."""
    metric = registry.lookup(key).metric
    return metrics.CARDS[metric].main or metric


def score_all(key: str, instances: list[Instance], predicted: list) -> dict[str, float]:
    """Every number of a dataset's metric, by name; errors as in lib/benchmarks/metrics.py.

    `predicted`: for each instance its tags, label, labels or number; of ranking the score of each candidate; of
    questions the ranked answers, spans of their passages. BioASQ's batches are scored one by one and averaged (Lee et
    al. 2020, Table 6).
    """
    metric = registry.lookup(key).metric
    gold = [instance.gold for instance in instances]
    match metric:
        case "ranking-mrr":
            return metrics.ranking_scores(list(map(int, gold)), predicted, [pair.group for pair in instances])
        case "strict-span-f1":
            return metrics.strict_spans(metrics.entity_sets(gold), metrics.entity_sets(predicted))
        case "squad":
            texts = [questions.read_answers(*one) for one in zip(instances, predicted, strict=True)]
            return metrics.squad_scores(gold, [next(iter(ranked), "") for ranked in texts])
        case "bioasq-factoid":
            batches: dict[str, list[tuple]] = {}
            for one, right, ranked in zip(instances, gold, predicted, strict=True):
                batches.setdefault(one.batch, []).append((right, questions.read_answers(one, ranked)))
            found = [metrics.bioasq_factoid(*zip(*batch, strict=True)) for batch in batches.values()]
            return {name: fmean(scores[name] for scores in found) for name in found[0]}
    scores = score(key, gold, predicted)
    return scores if isinstance(scores, dict) else {metric: scores}


def score(key: str, gold: list, predicted: list) -> metrics.Scores | float:
    """What a dataset's metric makes of gold and predictions in the form that it takes; errors as in metrics.py."""
    card = metrics.CARDS[registry.lookup(key).metric]
    options = {"negative": registry.lookup(key).negative} if card.function is metrics.relation_scores else {}
    return card.function(gold, predicted, **options)
