"""What a test set shares with other texts, and what it gives away, found in lists of instances.

Texts are compared by their plain words: lower-case runs of letters and digits.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Instance, Pair, Question
from lib.corpora import cleaning, leakage


def words_of(instance: Instance) -> list[str]:
    """The plain words of all that a model reads of an instance."""
    return leakage.plain_words(" ".join(instance.inputs))


def count_copies(later: Iterable[Instance], earlier: Iterable[Instance]) -> Counter[str]:
    """How many of the later instances stand in the earlier ones: `same`, `near` (leakage.Copies), or empty."""
    known = leakage.Copies([words_of(instance) for instance in earlier])
    return Counter(known.judge(words_of(instance)) for instance in later)


def are_equal(one: Iterable[Instance], other: Iterable[Instance]) -> bool:
    """Whether both hold the same texts with the same labels, in any order."""
    first, second = (Counter((*words_of(instance), instance.gold) for instance in found) for found in (one, other))
    return first == second


def count_contradictions(instances: Iterable[Instance]) -> tuple[int, int, float]:
    """Instances whose text stands with another label too, all of them, and the accuracy in % that no function of the
    text can pass."""
    labels = defaultdict(Counter)
    for instance in instances:
        labels[" ".join(instance.inputs)][instance.gold] += 1
    several = [found for found in labels.values() if len(found) > 1]
    total = sum(found.total() for found in labels.values())
    lost = sum(found.total() - max(found.values()) for found in several)
    return sum(found.total() for found in several), total, 100 * (1 - lost / total)


def long_sentences(dataset: Dataset, split: str) -> frozenset[str]:
    """The plain sentences of a split, of all folds, that are long enough to tell where they come from; errors as in
    Dataset.load."""
    texts = dataset.natural_texts(split)
    if dataset.family not in ("tagging", "pico"):  # whose texts are sentences
        texts = [sentence for text in texts for sentence in cleaning.split_sentences(text)]
    plain = map(leakage.plain_words, texts)
    return frozenset(" ".join(words) for words in plain if len(words) >= leakage.SENTENCE_WORDS)


def list_questions(instances: Iterable[Instance]) -> set[str]:
    """The plain words of each question that is asked in a set of questions, or of texts that may answer one."""
    asked = set()
    for instance in instances:
        if isinstance(instance, Question):
            asked.add(instance.question)
        elif isinstance(instance, Pair) and isinstance(instance.label, str):
            asked.add(instance.first)
    return {" ".join(leakage.plain_words(text)) for text in asked - {""}}


def guess_by_second(train: Sequence[Pair], test: Sequence[Pair]) -> list[str]:
    """The label of each test pair, guessed by naive Bayes on the words and pairs of words of its second text alone."""
    from sklearn.feature_extraction.text import CountVectorizer  # here, as it takes seconds
    from sklearn.naive_bayes import ComplementNB  # which rare classes do not overwhelm
    from sklearn.pipeline import make_pipeline

    guess = make_pipeline(CountVectorizer(ngram_range=(1, 2), min_df=2), ComplementNB())
    guess.fit([pair.second for pair in train], [pair.label for pair in train])
    return list(guess.predict([pair.second for pair in test]))


def begins_with_label(pair: Pair) -> bool:
    """Whether the second text begins with the word that is its label, such as yes."""
    return leakage.plain_words(pair.second)[:1] == [pair.label]
