"""Document classifiers without a pretrained encoder: an SVM, a CNN and a biLSTM with self-attention.

The baselines of Wada et al. 2020, section 4.3, on the first 128 words by MeCab.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from lib.benchmarks.instances import Labelled
from lib.corpora import cleaning
from lib.finetuning.examples import Batch, BucketedBatches, Example, compute_each, pad
from lib.finetuning.texts import class_of
from lib.modeling import heads
from lib.progress import Progress
from lib.training import optimizers, training
from lib.training.optimization import Optimization

WORDS = 128  # maximum of a document (section 4.3)
VECTORS = 300  # width, as in Kim 2014; vectors are FastText's, trained on the clinical corpus as in section 4.3
WINDOWS = (3, 4, 5)  # words under a filter (Kim 2014, section 3.1)
Vectors = Callable[[tuple[str, ...]], np.ndarray]


class Cnn(nn.Module):
    """A CNN with filters of three widths over words and max-pooling (Kim 2014, section 2)."""

    def __init__(self, vectors: torch.Tensor, classes: int, width: int, dropout: float):
        super().__init__()
        self.words = nn.Embedding.from_pretrained(vectors, freeze=False, padding_idx=0)
        self.filters = nn.ModuleList(nn.Conv1d(vectors.shape[1], width, size) for size in WINDOWS)
        self.dropout = nn.Dropout(dropout)
        self.score = heads.linear(width * len(WINDOWS), classes)

    def forward(self, batch: Batch) -> torch.Tensor:
        padding = (0, 0, 0, max(WINDOWS) - 1)  # so that a filter fits on the shortest document
        words = functional.pad(self.words(batch["input_ids"]), padding).transpose(1, 2)
        highest = [functional.relu(filters(words)).amax(2) for filters in self.filters]
        return self.score(self.dropout(torch.cat(highest, 1)))

    def loss(self, batch: Batch) -> torch.Tensor:
        return functional.cross_entropy(self(batch), batch["labels"])


class AttentiveLstm(nn.Module):
    """A biLSTM with several rows of self-attention; similar rows are penalized (Lin et al. 2017, section 2)."""

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
        """Return the scores of the classes, and the attention (documents, words, rows)."""
        mask = heads.mark_tokens(batch)
        states = self.recurrent(self.dropout(self.words(batch["input_ids"])), mask)[0]
        scores = self.rows(self.inner(states).tanh())
        weights = scores.masked_fill(~mask[..., None], -1e9).softmax(1)
        embeddings = weights.transpose(1, 2) @ states
        return self.score(self.dropout(embeddings.flatten(1))), weights

    def forward(self, batch: Batch) -> torch.Tensor:
        return self.attend(batch)[0]

    def loss(self, batch: Batch) -> torch.Tensor:
        scores, weights = self.attend(batch)
        overlap = weights.transpose(1, 2) @ weights - torch.eye(self.ROWS, device=weights.device)
        penalty = self.PENALTY * overlap.pow(2).sum((1, 2)).mean()
        return functional.cross_entropy(scores, batch["labels"]) + penalty


NETWORKS = {"cnn": Cnn, "bilstm": AttentiveLstm}


def predict_classes(
    key: str, point: dict, train: Sequence[Labelled], test: Sequence[Labelled], vectors: Vectors, seed: int
) -> list[str]:
    """Train a baseline with the settings `point` and predict the class of each test document.

    `vectors`: maps words to vectors (words, VECTORS), with which the networks are initialized.
    """
    texts = [[split_words(document)[:WORDS] for document in documents] for documents in (train, test)]
    labels = [class_of(document) for document in train]
    if key == "tfidf-svm":
        return predict_svm(point, *texts, labels)
    return predict_network(NETWORKS[key], point, *texts, labels, vectors, seed)


def split_words(document: Labelled) -> list[str]:
    """Return the words of a document, or of a question and its document."""
    return " ".join(map(cleaning.segment_japanese, document.sentences)).split()


def predict_svm(point: dict, train: list[list[str]], test: list[list[str]], labels: list[str]) -> list[str]:
    from sklearn.feature_extraction.text import TfidfVectorizer  # here, because the import takes seconds
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    words = TfidfVectorizer(
        preprocessor=list, tokenizer=list, token_pattern=None,  # texts are lists of words already
        ngram_range=(1, point["words"]), sublinear_tf=point["sublinear"],
    )  # fmt: skip
    return make_pipeline(words, LinearSVC(C=point["C"], random_state=0)).fit(train, labels).predict(test).tolist()


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
    words = sorted({word for text in train + test for word in text})
    word_ids = {word: number for number, word in enumerate(words, start=1)}
    table = np.vstack([np.zeros((1, VECTORS)), vectors(tuple(word_ids))]).astype(np.float32)
    device = training.accelerator("float32")
    torch.manual_seed(seed)
    model = network(torch.from_numpy(table), len(classes), point["width"], point["dropout"])
    train_sequences, test_sequences = (
        [Example(number, [word_ids[word] for word in text] or [0], target=0) for number, text in enumerate(texts)]
        for texts in (train, test)
    )
    targets = [classes.index(label) for label in labels]

    def collate(examples: Sequence[Example]) -> Batch:
        return pad(examples, 0) | {"labels": torch.tensor([targets[example.instance] for example in examples])}

    batches = BucketedBatches(train_sequences, collate, batch_size=32, epochs=point["epochs"], steps=None, seed=seed)
    training.train(
        model, batches, lambda module, batch: module.loss(batch), device=device, seed=seed,
        settings=Optimization(optimizer="adamw", weight_decay=0.0, betas=[0.9, 0.999], dropout=0.0),
        rate_of=lambda step: point["learning_rate"] * optimizers.slanted_triangle(step, len(batches), 0.1),
        progress=Progress(network.__name__),
    )  # fmt: skip

    def choose(examples: list[Example]) -> list[int]:
        batch = {name: tensor.to(device.device) for name, tensor in pad(examples, 0).items()}
        return model(batch).argmax(-1).tolist()

    return [classes[number] for number in compute_each(test_sequences, choose)]
