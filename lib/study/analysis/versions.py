"""Two versions of one set, without any model: what they share, where their labels differ, what that is in points."""

from collections import Counter, defaultdict
from collections.abc import Iterable

import pandas as pd

from lib import provenance
from lib.benchmarks import baselines, datasets, metrics, registry
from lib.benchmarks.instances import Instance, Labelled, Sentence
from lib.corpora import leakage
from lib.study import open_study
from lib.study.analysis import counts, facts, findings

SHARED = "instances that the other has too"
ELSEWHERE = "instances in another split of the other"
AGREE = "shared instances with the first's label"
ANSWERS = "the first's labels as answers"
TRIVIAL = "trivial answer"
HALF = 50  # % of a test set in another split, from which it is said


def name_set(dataset: str) -> str:
    """The set that a dataset is a version of; its own title where there is no other version."""
    sets = facts.comparisons().sets
    return next((name for name, versions in sets.items() if dataset in versions), registry.lookup(dataset).title)


def compare(scale: str) -> list[dict]:
    """Lines of all pairs of versions: `what` in `unit`, of the first and of the second."""
    return [line for pair in facts.comparisons().versions for line in compare_pair(pair, scale)]


def compare_pair(pair: facts.VersionPair, scale: str) -> list[dict]:
    """The lines of one pair, of the first fold where a set has several; one line with the reason where it cannot be."""
    keys = pair.first, pair.second
    titles = [registry.lookup(key).title for key in keys]
    line = {"set": name_set(pair.first), "kind": "data", "first": pair.first, "second": pair.second, "n": 0}
    line |= {"same": f"instances, by their {pair.by}", "differs": " | ".join(titles), "note": ""}
    for key in keys:
        if reason := counts.why_not(key, pair.split, scale):
            return [line | {"what": "all", "unit": "", "note": reason}]
    sets = [open_study(scale).dataset(key) for key in keys]
    loaded = [{split: findings.load(one.key, split, scale) for split in one.splits} for one in sets]
    folds = {key: registry.lookup(key).folds for key in keys}
    notes = [f"{key}: the first of {several} folds" for key, several in folds.items() if several > 1]
    notes += [f"of the {pair.split} split"] if pair.split != "test" else []
    notes += [pair.note] if pair.note else []
    measured = [*measure_sizes(loaded), *measure_shared(pair, loaded), *measure_trivial(keys, loaded, pair.split)]
    return [line | one | {"note": "; ".join([*([one["note"]] if "note" in one else []), *notes])} for one in measured]


def make_line(what: str, unit: str, first: float, second: float, n: int, note: str = "") -> dict:
    """What is measured of both versions; `n`: the instances that it stands on."""
    values = {"first_value": round(first, 2), "second_value": round(second, 2)}
    values |= {"difference": round(second - first, 2) + 0.0}  # never -0
    return {"what": what, "unit": unit, "n": n} | values | ({"note": note} if note else {})


def measure_sizes(loaded: list[dict[str, list[Instance]]]) -> Iterable[dict]:
    """Instances and positives of every split that both have at hand."""
    for split in datasets.SPLITS:
        if all(split in splits for splits in loaded):
            sizes = [len(splits[split]) for splits in loaded]
            shares = [share_positives(splits[split]) for splits in loaded]
            yield make_line(f"instances, {split}", "instances", *sizes, sum(sizes))
            yield make_line(f"positives, {split}", "%", *shares, sum(sizes))


def share_positives(instances: list[Instance]) -> float:
    """% of instances with a positive label: a relation, yes, any label of a document; of tags, of words in entities."""
    if isinstance(instances[0], Sentence):
        found = [tag != "O" for sentence in instances for tag in sentence.tags]
    elif isinstance(instances[0], Labelled):
        found = [bool(document.labels) for document in instances]
    else:
        found = [instance.label not in (*counts.NEGATIVE, "no") for instance in instances]
    return 100 * sum(found) / len(found)


def measure_shared(pair: facts.VersionPair, loaded: list[dict[str, list[Instance]]]) -> Iterable[dict]:
    """How much of one version's split is in the other's, or in its other splits, and whether the labels agree."""
    tests = [[(identify(i, pair.by), plain_label(i)) for i in splits[pair.split]] for splits in loaded]
    shared = match(*tests)
    share = [100 * len(shared) / len(test) for test in tests]
    yield make_line(SHARED, "%", *share, sum(map(len, tests)))
    others = [
        {identify(i, pair.by) for split, found in splits.items() if split != pair.split for i in found}
        for splits in loaded
    ]
    seen = [[key in known for key, _ in test] for test, known in zip(tests, reversed(others), strict=True)]
    share = [100 * sum(test) / len(test) for test in seen]
    yield make_line(ELSEWHERE, "%", *share, sum(map(len, tests)))
    if shared:
        first, second = zip(*shared, strict=True)
        agree = 100 * sum(a == b for a, b in shared) / len(shared)
        yield make_line(AGREE, "%", 100, agree, len(shared))
        yield make_line(ANSWERS, "points", 100, score_labels(pair.second, second, first), len(shared),
                        f"{metric_of(pair.second)}, on the shared instances")  # fmt: skip


def identify(instance: Instance, by: str) -> str:
    """What an instance is found again by in another version: a hash of its plain words, or of the ids in its id."""
    if by == "ids":
        return provenance.fingerprint(sorted(instance.id.split(".")))  # chemical first, or what is first in the text
    return provenance.fingerprint(findings.words_of(instance))


def plain_label(instance: Instance):
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


def match(first: Iterable[tuple], second: Iterable[tuple]) -> list[tuple]:
    """Labels of the instances that two versions share, in pairs; instances are a key and a label each.

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


def score_labels(key: str, gold: Iterable, predicted: Iterable) -> float:
    """What labels are worth as predictions, by the number that ranks models on a dataset."""
    dataset = registry.lookup(key)
    return dataset.score_labels(list(gold), list(predicted))[dataset.main_score]


def metric_of(key: str) -> str:
    return metrics.METRICS[registry.lookup(key).metric].title


def measure_trivial(keys: tuple[str, str], loaded: list[dict[str, list[Instance]]], split: str) -> Iterable[dict]:
    """What always the best answer of training scores; of tags, each word's most frequent one in training."""
    if not all("train" in splits for splits in loaded):
        return
    values = []
    for key, splits in zip(keys, loaded, strict=True):
        dataset = registry.lookup(key)
        train, test = splits["train"], splits[split]
        answer = baselines.tag_by_word if dataset.family == "tagging" else baselines.answer_always
        values.append(dataset.score(test, answer(dataset, train, [test])[0])[dataset.main_score])
    note = " and ".join(dict.fromkeys(map(metric_of, keys)))
    yield make_line(TRIVIAL, "points", *values, sum(len(splits[split]) for splits in loaded), note)


def show(lines: pd.DataFrame) -> pd.DataFrame:
    """Two versions of a set, a row a measure: of the first, of the second."""
    found = lines[(lines["kind"] == "data") & (lines["n"] > 0)]
    return found[["set", "first", "second", "what", "unit", "first_value", "second_value", "difference", "n", "note"]]


def describe(lines: pd.DataFrame) -> list[str]:
    """What two versions of a set share, and what their labels are worth to each other."""
    found = lines[lines["kind"] == "data"]
    alike, said = [], []
    for (first, second), group in found[found["n"] > 0].groupby(["first", "second"], sort=False):
        rows = {row["what"]: row for row in group.to_dict("records")}
        shared, seen = rows[SHARED], rows[ELSEWHERE]
        overlap = f"{first} and {second} ({shared['first_value']:.1f}% and {shared['second_value']:.1f}% shared)"
        if ANSWERS not in rows:
            said.append(f"{overlap}: no instance in common.")
        elif rows[AGREE]["difference"] == 0:
            alike.append(overlap)
        else:
            agree, worth = (rows[what]["second_value"] for what in (AGREE, ANSWERS))
            said.append(f"{overlap}: {agree:.1f}% of the shared instances have the same label, and the labels of the "
                        f"one score {worth:.2f} as answers to the other.")  # fmt: skip
        for one, other, share in ((first, second, seen["first_value"]), (second, first, seen["second_value"])):
            if share > HALF:
                said.append(f"{share:.1f}% of the test set of {one} stand in another split of {other}.")
    if alike:
        said.insert(0, f"The labels of shared instances never differ between {'; '.join(alike)}.")
    missing = found[found["n"] == 0].drop_duplicates(["first", "second"])
    return said + [f"{line['first']} and {line['second']}: n/a, {line['note']}." for line in missing.to_dict("records")]
