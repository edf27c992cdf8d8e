"""Beside the encoders: three classifiers of Japanese documents, and ranking by the cosine of sentence embeddings.

The classifiers are those of Wada et al. 2020, section 4.3: words by MeCab, the first 128 of them, settings found by
Optuna. Their files lie where those of encoders do, with the baseline's key in the place of the model's.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from lib import artefacts, provenance
from lib.benchmarks.datasets import Dataset, hold_out
from lib.benchmarks.instances import Labelled, Pair
from lib.corpora import cleaning
from lib.errors import unknown
from lib.finetuning import tuning
from lib.finetuning.examples import Batch, BucketedBatches, Example, Template, cut_evenly, pad
from lib.finetuning.texts import class_of
from lib.modeling import heads
from lib.modeling.loading import Encoder
from lib.progress import Progress
from lib.study import paths
from lib.study.settings import BASELINES_VERSION as VERSION
from lib.training import optimizers, training
from lib.training.optimization import Optimization
from lib.vocabularies.tokenization import encode_texts

if TYPE_CHECKING:
    from lib.study import Study

WORDS = 128  # of a document (section 4.3)
VECTORS = 300  # wide, as in Kim 2014; of FastText, trained on the clinical corpus as in section 4.3
CORPUS = "ja-clinical"
WINDOWS = (3, 4, 5)  # words that a filter sees (Kim 2014, section 3.1)
BUCKETS = 100_000  # of parts of words; gensim's two million would take two gigabytes
SPACES: dict[str, dict[str, list]] = {  # what Optuna chooses from; the paper does not print its own
    "tfidf-svm": {"C": [0.01, 0.1, 1.0, 10.0, 100.0], "words": [1, 2], "sublinear": [True, False]},
    "cnn": {"learning_rate": [3e-4, 1e-3, 3e-3], "width": [50, 100, 200], "dropout": [0.3, 0.5], "epochs": [5, 10, 20]},
    "bilstm": {"learning_rate": [3e-4, 1e-3, 3e-3], "width": [50, 100, 150], "dropout": [0.3, 0.5],
               "epochs": [5, 10, 20]},
}  # fmt: skip
TITLES = {"tfidf-svm": "TF-IDF + SVM", "cnn": "CNN", "bilstm": "biLSTM with self-attention"}
TRIALS = 20
Vectors = Callable[[tuple[str, ...]], np.ndarray]


class Cnn(nn.Module):
    """Filters of three widths over words, the highest value of each (Kim 2014, section 2)."""

    def __init__(self, vectors: torch.Tensor, classes: int, width: int, dropout: float):
        super().__init__()
        self.words = nn.Embedding.from_pretrained(vectors, freeze=False, padding_idx=0)
        self.filters = nn.ModuleList(nn.Conv1d(vectors.shape[1], width, size) for size in WINDOWS)
        self.dropout = nn.Dropout(dropout)
        self.score = heads.linear(width * len(WINDOWS), classes)

    def forward(self, batch: Batch) -> torch.Tensor:
        words = functional.pad(self.words(batch["input_ids"]), (0, 0, 0, max(WINDOWS) - 1)).transpose(1, 2)
        highest = [functional.relu(filters(words)).amax(2) for filters in self.filters]
        return self.score(self.dropout(torch.cat(highest, 1)))

    def loss(self, batch: Batch) -> torch.Tensor:
        return functional.cross_entropy(self(batch), batch["labels"])


class AttentiveLstm(nn.Module):
    """A biLSTM whose states several rows of attention weigh; rows that agree cost (Lin et al. 2017, section 2)."""

    ROWS, INNER, PENALTY = 10, 100, 1.0

    def __init__(self, vectors: torch.Tensor, classes: int, width: int, dropout: float):
        super().__init__()
        self.words = nn.Embedding.from_pretrained(vectors, freeze=False, padding_idx=0)
        self.recurrent = heads.Recurrent(vectors.shape[1], width)
        self.inner = nn.Linear(2 * width, self.INNER, bias=False)
        self.rows = nn.Linear(self.INNER, self.ROWS, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.score = heads.linear(2 * width * self.ROWS, classes)

    def attend(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores of the classes, and the attention (documents, words, rows)."""
        ids = batch["input_ids"]
        mask = batch.get("attention_mask", torch.ones_like(ids, dtype=torch.bool))
        states = self.recurrent(self.dropout(self.words(ids)), mask)[0]
        scores = self.rows(self.inner(states).tanh())
        weights = scores.masked_fill(~mask[..., None], -1e9).softmax(1)
        weighed = weights.transpose(1, 2) @ states
        return self.score(self.dropout(weighed.flatten(1))), weights

    def forward(self, batch: Batch) -> torch.Tensor:
        return self.attend(batch)[0]

    def loss(self, batch: Batch) -> torch.Tensor:
        scores, weights = self.attend(batch)
        same = weights.transpose(1, 2) @ weights - torch.eye(self.ROWS, device=weights.device)
        penalty = self.PENALTY * same.pow(2).sum((1, 2)).mean()
        return functional.cross_entropy(scores, batch["labels"]) + penalty


NETWORKS = {"cnn": Cnn, "bilstm": AttentiveLstm}


def run_classifier(study: "Study", key: str, dataset: str, setting: str) -> dict:
    """Tune one of the classifiers on a tenth of the first fold's training set, then train and test it on every fold.

    Returns the results record, also written to outputs/<scale>/results/, in the form of Study.finetune. StudyError for
    an unknown baseline.
    """
    if key not in SPACES:
        raise unknown("baseline", key, SPACES)
    data, settings, budget = study.dataset(dataset), study.protocol(setting, dataset), study.budget
    torch.set_num_threads(budget.threads)
    seed, trials = budget.seeds[0], budget.finetuning.trials or TRIALS
    vectors = partial(look_up_vectors, study, seed)
    rest, held = hold_out(data.load("train"))
    gold = [class_of(one) for one in held]

    def try_out(point: dict) -> float:
        predicted = predict_classes(key, point, rest, held, vectors, seed)
        return 100 * float(np.mean([one == other for one, other in zip(gold, predicted, strict=True)]))

    path = paths.tuning(study.scale, key, dataset, setting)
    text = (artefacts.read_record(paths.corpus(study.scale, CORPUS)) or {}).get("content", "")
    name = provenance.fingerprint(VERSION, data.fingerprints(), text, seed)
    tried = tuning.search(SPACES[key], try_out, trials, path, name, seed)
    chosen = {name: tried[0][name] for name in SPACES[key]}
    runs = []
    for fold in range(1, min(data.folds, settings.folds or data.folds) + 1):
        train, test = (data.load(split, fold) for split in ("train", "test"))
        begun = time.monotonic()
        predicted = [(name,) for name in predict_classes(key, chosen, train, test, vectors, seed)]
        sizes = {"train": len(train), "test": len(test)}
        runs.append({
            "seed": seed, "fold": fold, "settings": chosen, "scores": data.score(test, predicted),
            "collapsed": "one answer only" if len(set(predicted)) == 1 else "", "instances": sizes, "rows": sizes,
            "cut": {"test": sum(len(split_words(one)) > WORDS for one in test)},
            "seconds": round(time.monotonic() - begun), "commit": provenance.commit(),
        })  # fmt: skip
    result = {
        "model": key, "model title": TITLES[key], "dataset": dataset, "setting": setting, "scale": study.scale,
        "metric": data.metric, "main score": data.main_score, "chosen on dev": chosen,
        "candidates": [{("dev accuracy" if name == "score" else name): v for name, v in t.items()} for t in tried],
        "runs": runs,
    }  # fmt: skip
    artefacts.write_json(paths.results(study.scale, key, dataset, setting), result)
    return result


def predict_classes(
    key: str, point: dict, train: Sequence[Labelled], test: Sequence[Labelled], vectors: Vectors, seed: int
) -> list[str]:
    """The class of each test document, by a baseline trained with one point of its space.

    `vectors`: of words (words, VECTORS), from which the networks start.
    """
    texts = [[split_words(one)[:WORDS] for one in part] for part in (train, test)]
    labels = [class_of(one) for one in train]
    if key == "tfidf-svm":
        return predict_svm(point, *texts, labels)
    return predict_network(NETWORKS[key], point, *texts, labels, vectors, seed)


def split_words(document: Labelled) -> list[str]:
    """The words of a document, or of a question and the document that it is asked of."""
    return " ".join(map(cleaning.segment_japanese, document.sentences)).split()


def predict_svm(point: dict, train: list[list[str]], test: list[list[str]], labels: list[str]) -> list[str]:
    from sklearn.feature_extraction.text import TfidfVectorizer  # here, as it takes seconds
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    def join(text: list[str]) -> list[str]:
        return join_neighbours(text, point["words"])

    words = TfidfVectorizer(analyzer=join, sublinear_tf=point["sublinear"])
    return make_pipeline(words, LinearSVC(C=point["C"], random_state=0)).fit(train, labels).predict(test).tolist()


def join_neighbours(words: list[str], most: int) -> list[str]:
    """Words, pairs of neighbours and so on, up to `most` words."""
    return [" ".join(words[i : i + n]) for n in range(1, most + 1) for i in range(len(words) - n + 1)]


def predict_network(
    network: Callable[..., nn.Module],
    point: dict,
    train: list[list[str]],
    test: list[list[str]],
    labels: list[str],
    vectors: Vectors,
    seed: int,
) -> list[str]:
    classes = sorted(set(labels))
    known = {word: number for number, word in enumerate(sorted({w for text in train + test for w in text}), start=1)}
    table = np.vstack([np.zeros((1, VECTORS)), vectors(tuple(known))]).astype(np.float32)
    device = training.accelerator("float32")
    torch.manual_seed(seed)
    model = network(torch.from_numpy(table), len(classes), point["width"], point["dropout"])
    trained_on, tested_on = (
        [Example(number, [known[word] for word in text] or [0], 0, [], 0) for number, text in enumerate(part)]
        for part in (train, test)
    )
    targets = [classes.index(label) for label in labels]

    def collate(some: Sequence[Example]) -> Batch:
        return pad(some, 0) | {"labels": torch.tensor([targets[one.instance] for one in some])}

    batches = BucketedBatches(trained_on, collate, batch_size=32, epochs=point["epochs"], steps=None, seed=seed)
    training.train(
        model, batches, lambda module, batch: module.loss(batch), device=device, seed=seed,
        settings=Optimization(optimizer="adamw", weight_decay=0.0, betas=[0.9, 0.999], dropout=0.0),
        rate_of=lambda step: point["learning_rate"] * optimizers.slanted_triangle(step, len(batches), 0.1),
        progress=Progress(network.__name__),
    )  # fmt: skip
    best: dict[int, str] = {}
    with torch.inference_mode():
        for numbers in cut_evenly(tested_on):
            batch = pad([tested_on[i] for i in numbers], 0)
            batch = {name: tensor.to(device.device) for name, tensor in batch.items()}
            best |= {i: classes[c] for i, c in zip(numbers, model(batch).argmax(-1).tolist(), strict=True)}
    return [best[number] for number in range(len(tested_on))]


@cache
def look_up_vectors(study: "Study", seed: int, words: tuple[str, ...]) -> np.ndarray:
    """FastText vectors (Bojanowski et al. 2017) of words, trained on the clinical corpus; also of words it lacks."""
    trained = train_vectors(study, seed)
    return np.array([trained[word] for word in words])


@cache
def train_vectors(study: "Study", seed: int):
    from gensim.models import FastText

    documents = study.corpus(CORPUS).documents()
    lines = [line.split() for document in documents for line in document.text.split("\n")]
    return FastText(lines, vector_size=VECTORS, sg=1, min_count=1, bucket=BUCKETS, workers=1, seed=seed, epochs=3).wv


def rank_by_likeness(encoder: Encoder, dataset: Dataset) -> dict[str, float]:
    """The scores of ranking a test set's candidates by the cosine of their vectors with the question's.

    A sentence's vector is the mean of the encoder's last states (Reimers & Gurevych 2019, section 3; Ozyurt 2020,
    section 2.2). Nothing is trained.
    """
    body = encoder.body(dropout=0.0).eval()
    pairs: list[Pair] = dataset.load("test")
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.first, pair.second)))
    embedded = embed_texts(body, encoder.tokenizer, texts, encoder.length(128))
    vectors = dict(zip(texts, embedded, strict=True))
    likeness = [float(vectors[pair.first] @ vectors[pair.second]) for pair in pairs]
    return dataset.score(pairs, likeness)


def embed_texts(body, tokenizer, texts: list[str], length: int) -> Iterable[np.ndarray]:
    """The mean of the last states of each text, of length 1."""
    template = Template(tokenizer)
    capacity = template.capacity(length, pair=False)
    sequences = [
        Example(number, template.join(ids[:capacity])[0], 0, [], None)
        for number, ids in enumerate(encode_texts(tokenizer, texts)["input_ids"])
    ]
    vectors: list = [None] * len(sequences)
    with torch.inference_mode():
        for numbers in cut_evenly(sequences):
            batch = pad([sequences[number] for number in numbers], tokenizer.pad_token_id)
            mask = batch.get("attention_mask", torch.ones_like(batch["input_ids"], dtype=torch.bool))
            states = heads.encode(body, batch) * mask[..., None]
            means = functional.normalize(states.sum(1) / mask.sum(1, keepdim=True), dim=1)
            for number, mean in zip(numbers, means.numpy(), strict=True):
                vectors[number] = mean
    return vectors
