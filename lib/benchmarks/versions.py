"""Two versions of one set, without any model: what they share, where their labels differ, what that is in points."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from lib import provenance
from lib.benchmarks import baselines, counting, datasets, leaks, metrics, registry
from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Instance, Labelled, Sentence
from lib.corpora import leakage

SETS = {  # the datasets that are versions of one set; any other is a set of its own
    "BC5 chemical": ["bc5cdr-chem", "bc5cdr-chem-pubtator"],
    "BC5 disease": ["bc5cdr-disease", "bc5cdr-disease-pubtator"],
    "NCBI disease": ["ncbi-disease", "ncbi-disease-pubtator"],
    "JNLPBA": ["jnlpba", "jnlpba-biobert"],
    "ChemProt": ["chemprot", "chemprot-blurb", "chemprot-blue", "chemprot-lim", "chemprot-bioelectra",
                 "chemprot-scibert"],
    "DDI": ["ddi", "ddi-blurb"],
    "GAD": ["gad", "gad-biobert", "gad-bioelectra"],
    "HoC": ["hoc", "hoc-blue"],
}  # fmt: skip
NEGATIVE = (*counting.NEGATIVE, "no")
SHARED = "instances that the other has too"
ELSEWHERE = "instances in another split of the other"
AGREE = "shared instances with the first's label"
ANSWERS = "the first's labels as answers"
TRIVIAL = "trivial answer"
Splits = dict[str, Sequence[Instance]]  # of a version, by name
Keyed = Iterable[tuple[Hashable, Hashable]]  # instances as what each is found again by, and its label


def name_set(dataset: str) -> str:
    """The set that a registered dataset is a version of; its own title where there is no other version."""
    return next((name for name, keys in SETS.items() if dataset in keys), registry.lookup(dataset).title)


def by_text(instance: Instance) -> str:
    """What an instance is found again by in another version: its plain words, hashed."""
    return provenance.fingerprint(leaks.words_of(instance))


def by_ids(instance: Instance) -> str:
    """The same of an instance whose text hides other names: the ids in its id, whichever mention is named first."""
    return provenance.fingerprint(sorted(instance.id.split(".")))


def plain_label(instance: Instance) -> Hashable:
    """An instance's label in a form that does not depend on how its text is cut into words."""
    return plain_tags(instance) if isinstance(instance, Sentence) else instance.gold


def plain_tags(sentence: Sentence) -> tuple[str, ...]:
    """B, I or O for each plain word (leakage.plain_words) of a sentence, whatever it was cut into; types are dropped.

    A word that is several plain words has B for the first of them, and one that is none (punctuation) leaves its B to
    the next.
    """
    found, begins = [], False
    for word, tag in zip(sentence.words, sentence.tags, strict=True):
        begins = tag[0] == "B" or begins and tag[0] == "I"
        for _ in leakage.plain_words(word):
            found.append("O" if tag[0] == "O" else "B" if begins else "I")
            begins = False
    return tuple(found)


def match(first: Keyed, second: Keyed) -> list[tuple]:
    """Labels of the instances that two versions share, in pairs.

    Of a key that stands several times, as often as in both, and equal labels are put together first.
    """
    labels = defaultdict(Counter), defaultdict(Counter)
    for instances, known in zip((first, second), labels, strict=True):
        for key, label in instances:
            known[key][label] += 1
    pairs = []
    for key, ours in labels[0].items():
        theirs = labels[1].get(key, Counter())
        equal = ours & theirs
        pairs += [(label, label) for label in equal.elements()]
        pairs += zip((ours - equal).elements(), (theirs - equal).elements(), strict=False)
    return pairs


def measure(
    sets: tuple[Dataset, Dataset],
    loaded: tuple[Splits, Splits],
    identify: Callable[[Instance], Hashable] = by_text,
    split: str = "test",
) -> Iterator[dict]:
    """What two versions have in common, a line a measure: sizes, shared instances of a split, labels, trivial answers.

    Columns: what, unit, n (instances that it stands on), first_value, second_value, difference, note. `loaded`: the
    splits at hand of each.
    """
    yield from measure_sizes(loaded)
    yield from measure_shared(sets[1], loaded, identify, split)
    if all("train" in splits for splits in loaded):
        yield measure_trivial(sets, loaded, split)


def make_line(what: str, unit: str, first: float, second: float, n: int, note: str = "") -> dict:
    """A line of `measure`, rounded to two places."""
    values = {"first_value": round(first, 2), "second_value": round(second, 2)}
    return {"what": what, "unit": unit, "n": n, **values, "difference": round(second - first, 2) + 0.0, "note": note}


def measure_sizes(loaded: tuple[Splits, Splits]) -> Iterator[dict]:
    """Instances and positives of every split that both have at hand."""
    for split in datasets.SPLITS:
        if all(split in splits for splits in loaded):
            found = [splits[split] for splits in loaded]
            total = sum(map(len, found))
            yield make_line(f"instances, {split}", "instances", *map(len, found), total)
            yield make_line(f"positives, {split}", "%", *map(share_positives, found), total)


def share_positives(instances: Sequence[Instance]) -> float:
    """% of instances with a positive label: a relation, yes, any label of a document; of tags, of words in entities."""
    if isinstance(instances[0], Sentence):
        found = [tag != "O" for sentence in instances for tag in sentence.tags]
    elif isinstance(instances[0], Labelled):
        found = [bool(document.labels) for document in instances]
    else:
        found = [instance.label not in NEGATIVE for instance in instances]
    return 100 * sum(found) / len(found)


def measure_shared(
    second: Dataset, loaded: tuple[Splits, Splits], identify: Callable[[Instance], Hashable], split: str
) -> Iterator[dict]:
    """How much of one version's split is in the other's, or in its other splits, and whether the labels agree."""
    tests = [[(identify(one), plain_label(one)) for one in splits[split]] for splits in loaded]
    others = [{identify(one) for name in splits if name != split for one in splits[name]} for splits in loaded]
    shared, total = match(*tests), sum(map(len, tests))
    yield make_line(SHARED, "%", *(100 * len(shared) / len(test) for test in tests), total)
    seen = [sum(key in known for key, _ in test) for test, known in zip(tests, reversed(others), strict=True)]
    yield make_line(ELSEWHERE, "%", *(100 * n / len(test) for n, test in zip(seen, tests, strict=True)), total)
    if shared:
        agree = 100 * sum(a == b for a, b in shared) / len(shared)
        yield make_line(AGREE, "%", 100, agree, len(shared))
        answers, gold = (list(labels) for labels in zip(*shared, strict=True))
        worth = second.score_labels(gold, answers)[second.main_score]
        note = f"{metrics.METRICS[second.metric].title}, on the shared instances"
        yield make_line(ANSWERS, "points", 100, worth, len(shared), note)


def measure_trivial(sets: tuple[Dataset, Dataset], loaded: tuple[Splits, Splits], split: str) -> dict:
    """What always the best answer of training scores; of tags, each word's most frequent one in training."""
    values = []
    for dataset, splits in zip(sets, loaded, strict=True):
        answer = baselines.tag_by_word if dataset.family == "tagging" else baselines.answer_always
        predicted = answer(dataset, splits["train"], [splits[split]])[0]
        values.append(dataset.score(splits[split], predicted)[dataset.main_score])
    note = " and ".join(dict.fromkeys(metrics.METRICS[dataset.metric].title for dataset in sets))
    return make_line(TRIVIAL, "points", *values, sum(len(splits[split]) for splits in loaded), note)
