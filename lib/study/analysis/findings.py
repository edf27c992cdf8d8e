"""The audit of the datasets: leaks and oddities, each a row that says which published results it touches."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import chain

import pandas as pd
import pyarrow.parquet as pq

from lib.benchmarks import baselines, metrics, registry
from lib.benchmarks.instances import Instance, Pair, Question
from lib.corpora import cleaning, leakage
from lib.study import documents, open_study, params
from lib.study.analysis import texts

COLUMNS = ["finding", "dataset", "where", "count", "of", "share", "score", "touches", "note"]
SHOWN = 1.0  # % of a test set that two datasets have in common, from which the pair is listed
DIRECTIONS = (("test", "train"), ("test", "dev"), ("dev", "train"))


def line(finding: str, key: str, where: str, count: int, of: int, score: float = float("nan"), note: str = "") -> dict:
    """A row of the table of leaks."""
    share = round(100 * count / of, 2) if of else float("nan")
    touches = ", ".join(registry.lookup(key).results) or "none"
    return dict(zip(COLUMNS, (finding, key, where, count, of, share, round(score, 2), touches, note), strict=True))


@cache
def load(key: str, split: str, scale: str, fold: int = 1) -> list[Instance]:
    return open_study(scale).dataset(key).load(split, fold)


def words_of(instance: Instance) -> list[str]:
    """The plain words of all that a model reads of an instance."""
    return leakage.plain_words(" ".join(instance.inputs))


def at_hand(scale: str) -> Iterator[tuple[str, list[str]]]:
    """Every dataset with the splits of it that can be read."""
    for key in registry.DATASETS:
        if found := open_study(scale).dataset(key).splits:
            yield key, found


def find_copies(scale: str) -> Iterator[dict]:
    """Instances of one split that stand in another one, word for word or nearly so, of all folds."""
    for key, splits in at_hand(scale):
        folds = range(1, registry.lookup(key).folds + 1)
        for later, earlier in DIRECTIONS:
            if not {later, earlier} <= set(splits):
                continue
            judged = Counter()
            for fold in folds:
                known = leakage.Copies([words_of(i) for i in load(key, earlier, scale, fold)])
                judged += Counter(known.judge(words_of(i)) for i in load(key, later, scale, fold))
            of = judged.total()
            where = f"{later} in {earlier}" + (f", {len(folds)} folds" if len(folds) > 1 else "")
            yield line("same text in two splits", key, where, judged["same"], of)
            yield line("near copy in two splits", key, where, judged["near"], of)


def find_equal_splits(scale: str) -> Iterator[dict]:
    """Development sets that are the test set again."""
    for key, splits in at_hand(scale):
        if {"dev", "test"} <= set(splits):
            dev, test = (Counter((*words_of(i), i.gold) for i in load(key, s, scale)) for s in ("dev", "test"))
            if dev == test:
                yield line("dev is test", key, "dev and test", test.total(), test.total())


def find_contradictions(scale: str) -> Iterator[dict]:
    """Instances whose text stands with another label too, and the best accuracy that any function of the text has."""
    for key, splits in at_hand(scale):
        labels = defaultdict(Counter)
        for instance in chain.from_iterable(load(key, split, scale) for split in splits):
            labels[" ".join(instance.inputs)][instance.gold] += 1
        several = [found for found in labels.values() if len(found) > 1]
        total = sum(found.total() for found in labels.values())
        lost = sum(found.total() - max(found.values()) for found in several)
        count = sum(found.total() for found in several)
        yield line("labels that contradict", key, "all splits", count, total, 100 * (1 - lost / total),
                   "score: the most that a function of the text gets right, in %")  # fmt: skip


@cache
def sentences_of(key: str, split: str, scale: str) -> frozenset[str]:
    """The plain sentences of a split, of all folds, that are long enough to tell where they come from."""
    dataset = open_study(scale).dataset(key)
    if dataset.natural:
        found = dataset.natural(*dataset.paths(split))
    else:
        loaded = chain.from_iterable(load(key, split, scale, fold) for fold in range(1, dataset.folds + 1))
        found = [text for instance in loaded for text in instance.natural]
    if dataset.family not in ("tagging", "pico"):
        found = [sentence for text in dict.fromkeys(found) for sentence in cleaning.split_sentences(text)]
    plain = (leakage.plain_words(text) for text in found)
    return frozenset(" ".join(words) for words in plain if len(words) >= leakage.SENTENCE_WORDS)


def find_shared(scale: str) -> Iterator[dict]:
    """Sentences of one dataset's test set that stand in another dataset; pairs that share SHOWN % or more.

    Test sets of one origin, such as the forms of ChemProt, are the same on purpose and left out.
    """
    known = dict(at_hand(scale))
    for key, splits in known.items():
        test = sentences_of(key, "test", scale) if "test" in splits else frozenset()
        for other, others in known.items():
            same = other.split("-")[0] == key.split("-")[0]
            for split in [s for s in others if other != key and not (same and s == "test")]:
                common = len(test & sentences_of(other, split, scale))
                if test and 100 * common / len(test) >= SHOWN:
                    yield line("sentences of a test set in another dataset", key, f"test in {other}, {split}", common,
                               len(test))  # fmt: skip


def find_shared_questions(scale: str) -> Iterator[dict]:
    """Questions of one test set that stand in another dataset."""
    asked = {
        (key, split): {
            " ".join(leakage.plain_words(text)) for text in map(question_of, load(key, split, scale)) if text
        }
        for key, splits in at_hand(scale)
        for split in splits
    }
    for (key, split), test in asked.items():
        for (other, part), found in asked.items():
            if split == "test" and key != other and (common := len(test & found)):
                yield line("questions of a test set in another dataset", key, f"test in {other}, {part}", common,
                           len(test))  # fmt: skip


def question_of(instance: Instance) -> str:
    match instance:
        case Question():
            return instance.question
        case Pair() if isinstance(instance.label, str):
            return instance.first
    return ""


def find_in_pretraining(scale: str) -> Iterator[dict]:
    """Documents of the raw corpora with a sentence of a test set: those that corpora leave out."""
    files = dict.fromkeys(file for key in params.keys("corpora") for file in open_study(scale).corpus(key).files)
    holders = Counter()
    total = 0
    for source, file in files:
        column = pq.read_table(documents.rows_path(scale, source, file), columns=["test texts"])["test texts"]
        total += len(column)
        holders.update(tuple(found) for found in column.to_pylist() if found)
    for key in texts.test_texts(scale):
        plain = map(leakage.plain_words, texts.test_sentences(key, scale))
        numbers = {leakage.number(words) for words in plain if len(words) >= leakage.SENTENCE_WORDS}
        count = sum(n for held, n in holders.items() if numbers.intersection(held))
        yield line("test sentences in the raw corpora", key, "documents", count, total,
                   note=f"of {len(numbers)} sentences of {leakage.SENTENCE_WORDS} words or more")  # fmt: skip


def find_given_away(scale: str) -> Iterator[dict]:
    """How far the answer can be told from the second text alone, without the question or the first sentence."""
    from sklearn.feature_extraction.text import CountVectorizer  # here, as it takes seconds and one stage needs it
    from sklearn.metrics import f1_score
    from sklearn.naive_bayes import ComplementNB  # which rare classes do not overwhelm
    from sklearn.pipeline import make_pipeline

    for key, splits in at_hand(scale):
        if registry.lookup(key).family not in ("answers", "inference") or not {"train", "test"} <= set(splits):
            continue
        train, test = (load(key, split, scale) for split in ("train", "test"))
        opening = sum(words[:1] == [i.label] for i in (*train, *test) for words in [leakage.plain_words(i.second)])
        guess = make_pipeline(CountVectorizer(ngram_range=(1, 2), min_df=2), ComplementNB())
        guess.fit([i.second for i in train], [i.label for i in train])
        gold, guessed = [i.label for i in test], list(guess.predict([i.second for i in test]))
        right = sum(g == p for g, p in zip(gold, guessed, strict=True))
        majority = Counter(i.label for i in train).most_common(1)[0][0]
        means = [100 * f1_score(gold, p, average="macro", zero_division=0) for p in (guessed, [majority] * len(gold))]
        note = f"mean F1 of the labels {means[0]:.1f}, and {means[1]:.1f} with always '{majority}', whose accuracy is "
        note += f"the score; {opening} of all texts begin with their label"
        yield line("answer given away by the text", key, "test", right, len(test), metrics.accuracy(gold, [majority] *
                   len(gold)), note)  # fmt: skip


def find_balance(scale: str) -> Iterator[dict]:
    """How often the most frequent label stands, and what always the same answer scores in the dataset's own metric."""
    for key, splits in at_hand(scale):
        if not {"train", "test"} <= set(splits):
            continue
        dataset = registry.lookup(key)
        train, test = (load(key, split, scale) for split in ("train", "test"))
        chance = [one for one in baselines.list_baselines(dataset.family) if one.kind == baselines.CHANCE]
        if chance:
            predicted = chance[0].predict(dataset, train, [test])[0]
            score = dataset.score(test, predicted)[dataset.main_score]
        if dataset.family in ("tagging", "pico"):
            tags = Counter(tag for sentence in test for tag in sentence.tags)
            yield line("most frequent label", key, "test, words", tags["O"], tags.total(), score,
                       "O; score: F1 of each word with its most frequent training tag")  # fmt: skip
        elif dataset.family == "questions":
            lost = sum(not question.spans for question in test)
            yield line("most frequent label", key, "test, questions", lost, len(test), note="cannot be answered from "
                       "the passages; no answer is frequent")  # fmt: skip
        elif dataset.family == "ranking":
            wrong = sum(pair.label == "0" for pair in test)
            yield line("most frequent label", key, "test, candidates", wrong, len(test), score,
                       "no answer; score: the order of the file")  # fmt: skip
        elif dataset.family != "similarity":
            common, count = Counter(i.gold for i in test).most_common(1)[0]
            note = f"{show_label(common)}; score: always {show_label(predicted[0])}"
            if dataset.access == "credentialed":
                note = "score: always the same label"  # whose name may be text, where a file has other columns
            yield line("most frequent label", key, "test", count, len(test), score, note)


def show_label(label) -> str:
    return " and ".join(label) or "no label" if isinstance(label, tuple) else str(label)


FINDERS = (find_copies, find_equal_splits, find_shared, find_shared_questions, find_in_pretraining,
           find_contradictions, find_given_away, find_balance)  # fmt: skip


def gather(scale: str) -> pd.DataFrame:
    """Every finding on every dataset at hand, a row each."""
    return pd.DataFrame([row for find in FINDERS for row in find(scale)], columns=COLUMNS)


def describe(leaks: pd.DataFrame, scale: str) -> str:
    """The findings in sentences made from their numbers (Markdown)."""
    if params.load("scales", scale).made_up:
        return "The data are made up: nothing here is a finding."
    sentences = {
        "same text in two splits": "have texts of a later split in an earlier one",
        "near copy in two splits": "have near copies of them there",
        "dev is test": "have a development set that is the test set",
        "sentences of a test set in another dataset": f"share {SHOWN:.0f}% or more of their test sentences with "
        "another dataset",
        "test sentences in the raw corpora": "have test sentences in the text for pretraining",
        "labels that contradict": "give one text different labels",
    }
    lines = []
    for finding, said in sentences.items():
        rows = leaks[leaks["finding"] == finding]
        hit = rows[rows["count"] > 0]
        worst = hit.sort_values("share").iloc[-1] if len(hit) else None
        most = f"; most of all {worst['dataset']} ({worst['where']}): {worst['share']:.1f}%" if len(hit) else ""
        lines.append(f"- {hit['dataset'].nunique()} of {leaks['dataset'].nunique()} datasets at hand {said}{most}.")
    return "\n".join(lines)
