"""The classifiers of Japanese documents that encoders are compared with: tuned by Optuna, then tested on every fold.

They are those of Wada et al. 2020, section 4.3. Their files lie where those of encoders do, with the baseline's key in
place of the model's.
"""

import time
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from lib import artefacts, provenance
from lib.benchmarks.datasets import hold_out
from lib.errors import unknown
from lib.finetuning import tuning
from lib.finetuning.document_classifiers import VECTORS, WORDS, predict_classes, split_words
from lib.finetuning.texts import class_of
from lib.study import paths
from lib.study.settings import BASELINES_VERSION as VERSION

if TYPE_CHECKING:
    from lib.study import Study

CORPUS = "ja-clinical"
BUCKETS = 100_000  # for character n-grams; gensim's default of two million would take two gigabytes
SPACES: dict[str, dict[str, list]] = {  # what Optuna searches; the paper does not print its own
    "tfidf-svm": {"C": [0.01, 0.1, 1.0, 10.0, 100.0], "words": [1, 2], "sublinear": [True, False]},
    "cnn": {"learning_rate": [3e-4, 1e-3, 3e-3], "width": [50, 100, 200], "dropout": [0.3, 0.5], "epochs": [5, 10, 20]},
    "bilstm": {"learning_rate": [3e-4, 1e-3, 3e-3], "width": [50, 100, 150], "dropout": [0.3, 0.5],
               "epochs": [5, 10, 20]},
}  # fmt: skip
TITLES = {"tfidf-svm": "TF-IDF + SVM", "cnn": "CNN", "bilstm": "biLSTM with self-attention"}
TRIALS = 20


def run_classifier(study: "Study", key: str, dataset: str, protocol: str) -> dict:
    """Tune a classifier on a held-out tenth of the first fold's training set, then train and test it on every fold.

    Returns the results record in the form of Study.finetune, also written to outputs/<scale>/results/. Raises
    StudyError if the baseline is unknown.
    """
    if key not in SPACES:
        raise unknown("baseline", key, SPACES)
    data, settings, budget = study.dataset(dataset), study.protocol(protocol, dataset), study.budget
    torch.set_num_threads(budget.threads)
    seed, trials = budget.seeds[0], budget.finetuning.trials or TRIALS
    vectors = partial(look_up_vectors, study, seed)
    rest, held = hold_out(data, data.load("train"))
    gold = [class_of(one) for one in held]

    def try_out(point: dict) -> float:
        predicted = predict_classes(key, point, rest, held, vectors, seed)
        return 100 * float(np.mean([one == other for one, other in zip(gold, predicted, strict=True)]))

    path = paths.tuning(study.scale, key, dataset, protocol)
    text = (artefacts.read_record(paths.corpus(study.scale, CORPUS)) or {}).get("content", "")
    name = provenance.fingerprint(VERSION, data.fingerprints(), text, seed)
    trial_records = tuning.search(SPACES[key], try_out, trials, path, name, seed)
    chosen = {name: trial_records[0][name] for name in SPACES[key]}
    runs = []
    for fold in range(1, min(data.folds, settings.folds or data.folds) + 1):
        train, test = (data.load(split, fold) for split in ("train", "test"))
        start_time = time.monotonic()
        predicted = [(name,) for name in predict_classes(key, chosen, train, test, vectors, seed)]
        sizes = {"train": len(train), "test": len(test)}
        runs.append({
            "seed": seed, "fold": fold, "settings": chosen, "scores": data.score(test, predicted),
            "collapsed": "one answer only" if len(set(predicted)) == 1 else "", "instances": sizes, "rows": sizes,
            "cut": {"test": sum(len(split_words(one)) > WORDS for one in test)},
            "seconds": round(time.monotonic() - start_time), "commit": provenance.commit(),
        })  # fmt: skip
    result = {
        "model": key, "model title": TITLES[key], "dataset": dataset, "protocol": protocol, "scale": study.scale,
        "metric": data.metric, "main score": data.main_score, "chosen on dev": chosen,
        "candidates": [
            {("dev accuracy" if name == "score" else name): value for name, value in trial.items()}
            for trial in trial_records
        ],
        "runs": runs,
    }  # fmt: skip
    artefacts.write_json(paths.results(study.scale, key, dataset, protocol), result)
    return result


@cache
def look_up_vectors(study: "Study", seed: int, words: tuple[str, ...]) -> np.ndarray:
    """Return FastText vectors (Bojanowski et al. 2017) trained on the clinical corpus, also for words it lacks."""
    vectors = train_vectors(study, seed)
    return np.array([vectors[word] for word in words])


@cache
def train_vectors(study: "Study", seed: int):
    from gensim.models import FastText

    documents = study.corpus(CORPUS).documents()
    lines = [line.split() for document in documents for line in document.text.split("\n")]
    return FastText(lines, vector_size=VECTORS, sg=1, min_count=1, bucket=BUCKETS, workers=1, seed=seed, epochs=3).wv
