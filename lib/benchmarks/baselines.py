"""Baselines without an encoder: constant answers, dictionary, CRF, linear SVM, text similarity, word frequencies.

Each baseline takes training examples and the parts to predict, and returns predictions in the form that Dataset.score
takes. Baselines learn from the training examples only; one kind also uses unlabelled text. Settings are chosen on the
development set, or on a held-out tenth of training if the dataset has no development set.
"""

import re
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from lib.benchmarks import metrics
from lib.benchmarks.datasets import Dataset, hold_out
from lib.benchmarks.frequent_words import answer_by_frequency, answer_in_order
from lib.benchmarks.instances import Instance, Labelled, Pair, Relation, Sentence
from lib.benchmarks.word_classes import WordClasses
from lib.corpora import cleaning
from lib.errors import StudyError

VERSION = 1  # bumped when the same examples and settings yield different predictions
CHANCE, NO_PRETRAINING, UNLABELLED = "chance", "without pretraining", "unlabelled text"
PRINTED = "published without a transformer"  # of scores that page 15 lists beside ours
SHARE = 0.5  # least share of a dictionary entry's occurrences in training that are entities
LONGEST = 12  # words in the longest dictionary entry
TOKEN = r"\w+|[^\w\s]"
SIDE = 50  # characters of context on each side of a mention
REPEATED = re.compile(r"(.)\1+")
Parts = Sequence[Sequence[Instance]]
Classes = Mapping[str, Sequence[str]]  # lower-case word -> its classes


@dataclass(frozen=True)
class Baseline:
    """A baseline: its kind, method, task families, and how it predicts.

    `predict(dataset, train, parts, **point)` returns predictions for each part. `points` are the settings to choose
    from.
    """

    kind: str
    method: str
    families: tuple[str, ...]
    predict: Callable[..., list[list]]
    points: tuple[dict, ...] = ({},)
    text: str = ""  # fingerprint of the unlabelled text that it also learns from


def list_baselines(family: str, classes: WordClasses | None = None) -> list[Baseline]:
    """List the baselines for a task family; with word classes, add a CRF that uses them."""
    baselines = BASELINES
    if classes:
        tagger = partial(tag_by_crf, classes=classes.by_word)
        baselines = [*baselines, replace(CRF, kind=UNLABELLED, method="CRF with word classes", predict=tagger,
                                         text=classes.fingerprint)]  # fmt: skip
    return [baseline for baseline in baselines if family in baseline.families]


def run_baseline(baseline: Baseline, dataset: Dataset, train: list, dev: list, test: list) -> tuple[list, dict]:
    """Return predictions for the test set, and the chosen settings.

    `dev` is the dataset's own development set. If it is empty, settings are chosen on a held-out tenth of training.
    Raises StudyError if no training instance is left, or if no question to choose on has an answer.
    """
    first_point, *other_points = baseline.points
    train_part, held_out = train, dev
    if other_points and not dev:
        train_part, held_out = hold_out(dataset, train)
    if not train_part:
        raise StudyError(f"{dataset.title}: {len(train)} training instances are too few for {baseline.method}")
    if not other_points:
        return baseline.predict(dataset, train, [test], **first_point)[0], first_point
    if dataset.family == "questions":
        held_out = [one for one in held_out if one.gold]
        if not held_out:
            raise StudyError(f"{dataset.title}: no question to choose on has an answer, which {baseline.method} needs")
    parts = [held_out, test] if dev else [held_out]
    results = [(point, baseline.predict(dataset, train_part, parts, **point)) for point in baseline.points]
    best_point, predicted = max(results, key=lambda one: dataset.rank(held_out, one[1][0]))
    if dev:
        return predicted[1], best_point
    return baseline.predict(dataset, train, [test], **best_point)[0], best_point


def answer_always(dataset: Dataset, train: Sequence[Instance], parts: Parts) -> list[list]:
    """Predict the single answer that scores best on the training set."""
    answers = dict.fromkeys(instance.gold for instance in train)
    best_answer = max(answers, key=lambda answer: dataset.rank(train, [answer] * len(train)))
    return [[best_answer] * len(part) for part in parts]


def answer_equally(dataset: Dataset, train: Sequence[Pair], parts: Parts) -> list[list[float]]:
    """Predict 0 for every pair, which keeps candidates in file order and correlates with nothing."""
    return [[0.0] * len(part) for part in parts]


def tag_by_word(dataset: Dataset, train: Sequence[Sentence], parts: Parts) -> list[list[list[str]]]:
    """Tag each word with its most frequent tag in training, or O if it is new."""
    tag_counts = defaultdict(Counter)
    for sentence in train:
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            tag_counts[word][tag] += 1
    commonest_tags = {word: counts.most_common(1)[0][0] for word, counts in tag_counts.items()}
    return [[[commonest_tags.get(word, "O") for word in sentence.words] for sentence in part] for part in parts]


def tag_by_dictionary(dataset: Dataset, train: Sequence[Sentence], parts: Parts) -> list[list[list[str]]]:
    """Tag the longest matches of lower-cased training entities, if at least SHARE of their occurrences are entities."""
    kind_counts, sentences = defaultdict(Counter), []
    for sentence in train:
        words = [word.lower() for word in sentence.words]
        (entities,) = metrics.entity_sets([sentence.tags])
        spans = sorted((first, last + 1) for _, first, last in entities)
        sentences.append((words, set(spans)))
        for first, end in spans:
            if end - first <= LONGEST:
                kind_counts[tuple(words[first:end])][sentence.tags[first][1:]] += 1
    hits, occurrences = Counter(), Counter()
    for words, spans in sentences:
        for first in range(len(words)):
            for end in range(first + 1, min(first + LONGEST, len(words)) + 1):
                entry = tuple(words[first:end])
                if entry in kind_counts:
                    hits[entry] += (first, end) in spans
                    occurrences[entry] += 1
    entries = {entry: counts.most_common(1)[0][0] for entry, counts in kind_counts.items()
               if hits[entry] >= SHARE * occurrences[entry]}  # fmt: skip
    return [[match_entries(sentence.words, entries) for sentence in part] for part in parts]


def match_entries(words: Sequence[str], entries: dict[tuple[str, ...], str]) -> list[str]:
    """Tag the longest dictionary entries in a sentence, from left to right."""
    lower_words, tags, first = [word.lower() for word in words], ["O"] * len(words), 0
    while first < len(words):
        for end in range(min(first + LONGEST, len(words)), first, -1):
            kind = entries.get(tuple(lower_words[first:end]))
            if kind is not None:
                tags[first:end] = [f"B{kind}", *[f"I{kind}"] * (end - first - 1)]
                first = end
                break
        else:
            first += 1
    return tags


def tag_by_crf(
    dataset: Dataset, train: Sequence[Sentence], parts: Parts, l2: float, classes: Classes | None = None
) -> list[list[list[str]]]:
    """Tag with a linear-chain CRF over token_features; overlapping tags get one CRF per element and are joined.

    Uses python-crfsuite: L-BFGS, 100 iterations, features seen at least twice. Raises StudyError if python-crfsuite is
    not installed, or if training has no words, because crfsuite would then end the process.
    """
    if not dataset.overlapping:
        return fit_crf([sentence.tags for sentence in train], train, parts, l2, classes)
    elements = sorted({name for sentence in train for tag in sentence.tags if tag != "O" for name in tag.split("|")})
    predicted = []
    for element in elements or ["O"]:
        tags = [[element if element in tag.split("|") else "O" for tag in sentence.tags] for sentence in train]
        predicted.append(fit_crf(tags, train, parts, l2, classes))
    return [[list(map(join_tags, *sentences)) for sentences in zip(*part, strict=True)]
            for part in zip(*predicted, strict=True)]  # fmt: skip


def join_tags(*tags: str) -> str:
    """Return the tags of a word, one for each element, as one tag."""
    return "|".join(tag for tag in tags if tag != "O") or "O"


def fit_crf(
    tags: list[list[str]], train: Sequence[Sentence], parts: Parts, l2: float, classes: Classes | None
) -> list[list[list[str]]]:
    try:
        import pycrfsuite
    except ImportError:
        raise StudyError(
            "a CRF needs python-crfsuite, which is pinned for Python 3.11 on Linux alone: pip install python-crfsuite"
        ) from None
    if not any(tags):
        raise StudyError("a CRF needs a sentence to learn from, and the training set has none")
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params({"c1": 0.0, "c2": l2, "max_iterations": 100, "feature.minfreq": 2})
    for sentence, sentence_tags in zip(train, tags, strict=True):
        trainer.append(token_features(sentence.words, classes), sentence_tags)
    with tempfile.TemporaryDirectory() as folder:
        trainer.train(str(Path(folder) / "crf"))
        tagger = pycrfsuite.Tagger()
        tagger.open(str(Path(folder) / "crf"))
        return [[tagger.tag(token_features(sentence.words, classes)) for sentence in part] for part in parts]


def token_features(words: Sequence[str], classes: Classes | None = None) -> list[list[str]]:
    """Return the features of each word of a sentence.

    A word has its own features, the words and shapes of its neighbours, word pairs and runs of shapes. With `classes`,
    it also has the classes of itself and of two neighbours on each side.
    """
    shapes, lower_words = [shape(word) for word in words], [word.lower() for word in words]
    last, features = len(words) - 1, []
    for position, word in enumerate(words):
        current_features = list(word_features(word))
        for step in (-3, -2, -1, 1, 2, 3):
            neighbour = position + step
            if 0 <= neighbour <= last:
                current_features.append(f"{step}={lower_words[neighbour]}")
                if abs(step) < 3:
                    current_features += [f"{step}s={shapes[neighbour]}", f"{step}e={lower_words[neighbour][-3:]}"]
            elif abs(step) == 1:
                current_features.append(f"{step}=edge")
        if position:
            current_features.append(f"-1,0={lower_words[position - 1]} {lower_words[position]}")
        if position < last:
            current_features.append(f"0,1={lower_words[position]} {lower_words[position + 1]}")
        if 0 < position < last:
            current_features.append(f"s3={' '.join(shapes[position - 1 : position + 2])}")
        for step in range(-2, 3) if classes else ():
            if 0 <= position + step <= last:
                current_features += [
                    f"{step}k={word_class}" for word_class in classes.get(lower_words[position + step], ())
                ]
        features.append(current_features)
    return features


@lru_cache(maxsize=100_000)
def word_features(word: str) -> tuple[str, ...]:
    """List a word's spelling features: both cases, shapes, affixes of 2-5 letters, trigrams, digit, hyphen, capital."""
    lower, delimited = word.lower(), f"^{word.lower()}$"
    collapsed_shape = REPEATED.sub(r"\1", shape(word))
    features = [f"w={word}", f"l={lower}", f"s={shape(word)}", f"c={collapsed_shape}"]
    features += [f"p{n}={lower[:n]}" for n in range(2, 6) if len(lower) >= n]
    features += [f"e{n}={lower[-n:]}" for n in range(2, 6) if len(lower) >= n]
    features += sorted({f"t={delimited[i : i + 3]}" for i in range(len(delimited) - 2)})
    if any(letter.isdigit() for letter in word):
        features.append("digit")
    if "-" in word:
        features.append("hyphen")
    if word.isupper():
        features.append("capitals")
    elif word[:1].isupper():
        features.append("capital")
    return tuple(features)


def shape(word: str) -> str:
    """Return a word with A for capitals, a for other letters and 0 for digits."""
    return "".join("A" if c.isupper() else "a" if c.isalpha() else "0" if c.isdigit() else c for c in word)


def classify_texts(
    dataset: Dataset,
    train: Sequence[Relation | Pair | Labelled],
    parts: Parts,
    C: float,
    balanced: bool,
    letters: bool = False,
) -> list[list]:
    """Classify with a linear SVM over TF-IDF of the texts from list_fields; with multiple labels, one SVM per label."""
    from scipy.sparse import hstack  # imported here because it takes seconds
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.preprocessing import MultiLabelBinarizer
    from sklearn.svm import LinearSVC

    fields = [[list_fields(item, dataset.language, letters) for item in part] for part in (train, *parts)]
    columns: list[list] = [[] for _ in fields]
    for name, ngrams in fields[0][0]:
        options = {"analyzer": "char_wb"} if name.endswith("letters") else {"token_pattern": TOKEN}
        vectorizer = TfidfVectorizer(ngram_range=ngrams, sublinear_tf=True, **options)
        texts = [[item[name, ngrams] for item in part] for part in fields]
        try:
            vectorizer.fit(texts[0])
        except ValueError:  # no instance has text in this field
            continue
        for column, part in zip(columns, texts, strict=True):
            column.append(vectorizer.transform(part))
    train_matrix, *part_matrices = (hstack(column).tocsr() for column in columns)
    svm = LinearSVC(C=C, class_weight="balanced" if balanced else None, random_state=0)
    gold = [item.gold for item in train]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the limit of a thousand iterations is part of the method
        if dataset.multilabel:
            binarizer = MultiLabelBinarizer()
            indicators = binarizer.fit_transform(gold)
            n_labels = indicators.shape[1]
            if not n_labels:  # possible in a small part of a dataset
                return [[()] * len(part) for part in parts]
            classifier = OneVsRestClassifier(svm).fit(train_matrix, indicators)
            predicted = [classifier.predict(part).reshape(-1, n_labels) for part in part_matrices]  # flat for one label
            return [binarizer.inverse_transform(part) for part in predicted]
        classes = sorted(set(gold))
        if len(classes) == 1:  # possible in a small part of a dataset
            return [classes * len(part) for part in parts]
        svm.fit(train_matrix, [classes.index(label) for label in gold])
    return [[classes[number] for number in svm.predict(part)] for part in part_matrices]


def list_fields(
    instance: Relation | Pair | Labelled, language: str, letters: bool
) -> dict[tuple[str, tuple[int, int]], str]:
    """Return the texts that features are made of, keyed by field name and n-gram range.

    A relation gives its whole text with dummies, the text between and beside the dummies, and the two names. A pair
    gives each text. A document gives its whole text, with `letters` both as words and as letters. MeCab segments
    Japanese into words.
    """
    if isinstance(instance, Relation):
        text, (first, first_end), (second, second_end) = instance.dummify()
        between = text[first_end:second]
        left = text[max(0, first - SIDE) : first]
        right = text[second_end : second_end + SIDE]
        names = [instance.text[mention.start : mention.end] for mention in (instance.first, instance.second)]
        return {
            ("text", (1, 3)): text,
            ("between", (1, 3)): between,
            ("beside", (1, 2)): f"{left} | {right}",
            ("between, letters", (2, 4)): between,
            ("names, letters", (2, 4)): " ".join(names),
        }
    if isinstance(instance, Pair):
        return {("first", (1, 2)): instance.first, ("second", (1, 2)): instance.second}
    sentences = map(cleaning.segment_japanese, instance.sentences) if language == "ja" else instance.sentences
    text = " ".join(sentences)
    return {("text", (1, 1)): text, ("text, letters", (3, 5)): text} if letters else {("text", (1, 2)): text}


def compare_texts(dataset: Dataset, train: Sequence[Pair], parts: Parts) -> list[list[float]]:
    """Return the cosine of the two texts' TF-IDF vectors over character n-grams of two to five letters.

    The weights come from the compared texts only. Nothing is trained, because some similarity datasets are too small to
    learn weights from.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer  # imported here because it takes seconds

    scores = []
    for part in parts:
        vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
        vectorizer.fit([text for pair in part for text in (pair.first, pair.second)])
        first, second = (vectorizer.transform([getattr(pair, side) for pair in part]) for side in ("first", "second"))
        scores.append(np.asarray(first.multiply(second).sum(axis=1)).ravel().tolist())
    return scores


SVM = tuple({"C": C, "balanced": balanced} for C in (0.1, 1.0) for balanced in (False, True))
CRF = Baseline(NO_PRETRAINING, "CRF", ("tagging", "pico"), tag_by_crf, ({"l2": 0.1}, {"l2": 1.0}))
BASELINES = [
    Baseline(CHANCE, "best constant answer", ("relations", "inference", "documents", "answers"), answer_always),
    Baseline(CHANCE, "each word's most frequent tag", ("tagging", "pico"), tag_by_word),
    Baseline(CHANCE, "the order of the file", ("ranking",), answer_equally),
    Baseline(CHANCE, "the first words of the passages", ("questions",), answer_in_order),
    Baseline(CHANCE, "a constant has no correlation", ("similarity",), answer_equally),
    Baseline(NO_PRETRAINING, "dictionary of training", ("tagging",), tag_by_dictionary),
    CRF,
    Baseline(NO_PRETRAINING, "linear SVM", ("relations", "inference", "documents", "answers"), classify_texts, SVM),
    Baseline(NO_PRETRAINING, "linear SVM with letters", ("documents",), partial(classify_texts, letters=True), SVM),
    Baseline(NO_PRETRAINING, "cosine of TF-IDF", ("similarity", "ranking"), compare_texts),
    Baseline(NO_PRETRAINING, "most frequent words of the passages", ("questions",), answer_by_frequency,
             ({"power": 0.0}, {"power": 0.5}, {"power": 1.0})),
]  # fmt: skip
