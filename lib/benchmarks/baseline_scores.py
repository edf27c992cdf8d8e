"""Scores of a dataset without an encoder: by chance, and by the baselines."""

import math
import time
from pathlib import Path
from statistics import fmean

from lib import artefacts, provenance, statistics
from lib.benchmarks import baselines, jackknife, metrics, seen
from lib.benchmarks.baselines import Baseline
from lib.benchmarks.datasets import Dataset, choose_training, fill_undefined
from lib.benchmarks.word_classes import WordClasses
from lib.errors import StudyError

VERSION = 4  # bumped when the same predictions yield other rows
COLUMNS = ["dataset", "split", "metric", "kind", "method", "score", "ci_low", "ci_high", "settings", "train", "test",
           "folds", "seconds", "note"]  # fmt: skip
SEEN = ["dataset", "entities", "entities_seen", "names", "names_seen", "kind", "method", "f1", *seen.SCORES]


def measure_dataset(
    dataset: Dataset, folder: Path, classes: WordClasses | None = None, limit: int | None = None
) -> list[dict]:
    """Return the rows of one dataset, one per method, with the keys COLUMNS.

    Entity metrics add the keys SEEN, metrics in WITH_MACRO add `macro f1`. `limit`: how many training instances are
    used, chosen as for an encoder; None: all. Scores are cached below `folder`, but the reasons for missing ones are
    not.
    """
    row, rows = {"dataset": dataset.key, "split": "test", "metric": dataset.main_score}, []
    for method in baselines.list_baselines(dataset.family, classes):
        method_folder = folder / method.method.replace(" ", "-")
        settings = {"points": method.points, "method": baselines.VERSION, "text": method.text, "limit": limit}
        try:
            identity = provenance.record("baselines", VERSION, settings, dataset.fingerprints())
            result = artefacts.cached(
                method_folder, identity, lambda new, method=method: {"row": score_baseline(method, dataset, limit)}
            )
            cells = result["row"] | {"note": dataset.differs}
        except StudyError as error:
            cells = {"note": f"n/a: {error}"}
        rows.append(row | {"kind": method.kind, "method": method.method} | cells)
    return rows


def score_baseline(method: Baseline, dataset: Dataset, limit: int | None) -> dict:
    """Return the mean score over folds, its 95% interval over draws of test documents, the settings chosen, and sizes.

    Entity metrics add scores by whether training has an entity's name, metrics in WITH_MACRO add `macro f1`. Raises
    StudyError if the method cannot run.
    """
    start, fold_results, variances, extra_scores = time.monotonic(), [], [], {}
    for fold in range(1, dataset.folds + 1):
        train, test = (dataset.load(split, fold) for split in ("train", "test"))
        if limit:
            train = choose_training(dataset.family, train, limit)
        dev = [] if "dev" not in dataset.splits or dataset.repeats_test else dataset.load("dev", fold)
        predicted, point = baselines.run_baseline(method, dataset, train, dev, test)
        scores = dataset.score(test, predicted)
        score = fill_undefined(scores[dataset.main_score], 0.0)  # constant predictions are reported as uncorrelated
        fold_results.append((score, point, len(train), len(test)))
        variances.append(jackknife.find_variance(jackknife.leave_documents_out(dataset, test, predicted)))
    if dataset.metric in metrics.ENTITIES:  # no entity dataset has folds
        extra_scores = seen.count_names(train, test) | seen.score_seen(test, predicted, seen.find_names(train))
    if dataset.metric in metrics.WITH_MACRO:  # no folds here either
        extra_scores["macro f1"] = round(scores["macro f1"], 4)
    fold_scores, points, train_sizes, test_sizes = zip(*fold_results, strict=True)
    mean, (variance, freedom) = fmean(fold_scores), statistics.add_variances(variances)
    interval = statistics.judge(statistics.Estimate(mean, math.sqrt(variance) / dataset.folds, freedom))
    settings = dict.fromkeys(", ".join(f"{k} {v}" for k, v in point.items()) for point in points)
    return extra_scores | {
        "score": round(mean, 4),
        "ci_low": round(interval["ci_low"], 4),
        "ci_high": round(interval["ci_high"], 4),
        "settings": "; ".join(settings),
        "train": round(fmean(train_sizes)),
        "test": round(fmean(test_sizes)),
        "folds": dataset.folds,
        "seconds": round(time.monotonic() - start),
    }
