"""Predictions of two models beside each other: which instances each has right, and what a paper prints of such."""

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from lib.benchmarks import metrics, rates, registry
from lib.benchmarks.instances import Instance, Sentence
from lib.corpora import leakage
from lib.errors import StudyError
from lib.study import open_study, params, published, results
from lib.study.analysis import compare, facts

COUNTS = ["both", "only general", "only biomedical", "neither"]
KINDS = [(True, True), (True, False), (False, True), (False, False)]  # what COUNTS count: general, biomedical
COLUMNS = ["dataset", "protocol", "general", "biomedical", "seed", "instances", *COUNTS, "p", "note"]
SIGNIFICANT = 0.05


def why_not(model: str, dataset: str, protocol: str, scale: str) -> str:
    """Why a run is made neither for tables nor for panels of a scale, or an empty string."""
    if (model, dataset, protocol) in params.load("scales", scale).panel_runs():
        return open_study(scale).why_not(dataset, protocol)
    return published.find_obstacle(model, [[dataset]], scale, protocol)


def choose(scale: str) -> facts.Comparison | None:
    """The first comparison of params/samples.yaml that can be made, with the datasets on which it can; or None."""
    for one in facts.samples().comparisons:
        possible = [
            dataset
            for dataset in one.datasets
            if not any(why_not(model, dataset, one.protocol, scale) for model in (one.general, one.biomedical))
        ]
        if possible:
            return one.model_copy(update={"datasets": possible})
    return None


def list_runs(scale: str) -> list[params.RunKey]:
    """Model, dataset and protocol of every run that is compared."""
    one = choose(scale)
    return (
        [(model, key, one.protocol) for key in one.datasets for model in (one.general, one.biomedical)] if one else []
    )


def read_run(scale: str, model: str, dataset: str, protocol: str, seed: int, fold: int) -> tuple[list, list]:
    """Gold and predicted of every test instance; StudyError as in results.read_predictions."""
    result = results.read(scale, model, dataset, protocol)
    run = next(run for run in result["runs"] if (run["seed"], run["fold"]) == (seed, fold))
    return results.read_predictions(scale, result, run)


def list_folds(scale: str, one: facts.Comparison, dataset: str) -> dict[int, list[int]]:
    """The folds that both models were tested on, by seed; empty where one has not been run."""
    found = [results.read(scale, model, dataset, one.protocol) for model in (one.general, one.biomedical)]
    if not all(found):
        return {}
    runs = [{(run["seed"], run["fold"]) for run in result["runs"]} for result in found]
    folds: dict[int, list[int]] = {}
    for seed, fold in sorted(runs[0] & runs[1]):
        folds.setdefault(seed, []).append(fold)
    return folds


def judge(dataset: str, gold: Sequence, predicted: Sequence) -> list[bool]:
    """Whether each instance is right as a whole: all entities of a sentence and no other, all labels of a document."""
    rates.check_lengths(gold, predicted)
    if registry.lookup(dataset).family == "tagging":
        pairs = zip(metrics.entity_sets(gold), metrics.entity_sets(predicted), strict=True)
    else:
        pairs = ((set(g), set(p)) for g, p in zip(gold, predicted, strict=True))
    return [g == p for g, p in pairs]


def read_both(
    scale: str, one: facts.Comparison, dataset: str, seed: int, fold: int
) -> tuple[list, tuple[list, list], list[tuple[bool, bool]]]:
    """Gold, the predictions of both models, and whether each is right; StudyError when their gold differs."""
    runs = [read_run(scale, model, dataset, one.protocol, seed, fold) for model in (one.general, one.biomedical)]
    (gold, first), (other, second) = runs
    if gold != other:
        raise StudyError(f"{dataset}: the predictions of {one.general} and {one.biomedical} have different gold labels")
    return gold, (first, second), list(zip(judge(dataset, gold, first), judge(dataset, gold, second), strict=True))


def count_right(right: Sequence[tuple[bool, bool]]) -> dict[str, int]:
    """How many instances both have right, one alone, or neither. `right`: for each, of the general model and of the
    biomedical one."""
    found = Counter(right)
    return dict(zip(COUNTS, (found[kind] for kind in KINDS), strict=True))


def compute_mcnemar(only_one: int, only_other: int) -> float:
    """McNemar's exact two-sided p: how likely so uneven a split is where each is as likely to be the one that is right.

    1 where the two never differ.
    """
    from scipy.stats import binomtest  # here, as it takes most of a second

    return float(binomtest(only_one, only_one + only_other).pvalue) if only_one + only_other else 1.0


def build(scale: str) -> pd.DataFrame:
    """A line a dataset and seed: how many instances each of the two models has right, over all folds, with McNemar's
    p; a line with a note where a run has not been made."""
    one = choose(scale)
    lines = []
    for dataset in one.datasets if one else []:
        line = {"dataset": dataset, "protocol": one.protocol, "general": one.general, "biomedical": one.biomedical}
        folds = list_folds(scale, one, dataset)
        if not folds:
            lines.append(line | {"note": results.NOT_MADE})
        for seed, numbers in folds.items():
            right = [pair for fold in numbers for pair in read_both(scale, one, dataset, seed, fold)[2]]
            counts = count_right(right)
            p = compute_mcnemar(counts["only general"], counts["only biomedical"])
            lines.append(line | {"seed": seed, "instances": len(right)} | counts | {"p": p})
    table = pd.DataFrame(lines, columns=COLUMNS)
    tested = table["p"].notna()
    table.loc[tested, "p"] = compare.correct(table.loc[tested, "p"].tolist())
    return table.astype(dict.fromkeys(["seed", "instances", *COUNTS], "Int64"))


def find_differences(scale: str, n: int = 3) -> list[dict]:
    """The first test instances of each dataset that one model alone has right, with what each says; of the first seed.

    They hold text of the datasets: what of it is shown is decided in lib/study/analysis/pages.py. Sets that are not
    public are left out.
    """
    one = choose(scale)
    rows = []
    for dataset in [key for key in (one.datasets if one else []) if registry.lookup(key).access == "public"]:
        for seed, (fold, *_) in list(list_folds(scale, one, dataset).items())[:1]:
            _, said, right = read_both(scale, one, dataset, seed, fold)
            chosen = [number for number, kind in enumerate(right) if kind[0] != kind[1]][:n]
            instances = open_study(scale).dataset(dataset).load("test", fold) if chosen else []
            for number in chosen:
                predicted = dict(zip((one.general, one.biomedical), (of[number] for of in said), strict=True))
                rows.append({"dataset": dataset, "instance": instances[number], "said": predicted})
    return rows


def look_up(scale: str) -> pd.DataFrame:
    """The printed samples: where each stands in the datasets at hand, and which of its words in bold are in a gold
    entity there. Made-up data have none of them, and restricted sets are not looked into."""
    rows = []
    for printed in facts.samples().printed:
        for dataset in printed.ours:
            line = {"printed as": printed.dataset, "dataset": dataset, "sample": printed.sample or "withheld"}
            line["better found by BioALBERT"] = ", ".join(printed.better)
            rows.append(line | find_sample(printed, dataset, scale))
    return pd.DataFrame(rows).fillna("")


def find_sample(printed: facts.PrintedSample, key: str, scale: str) -> dict[str, str]:
    """Where a printed sample stands in a dataset, and what is gold in it."""
    if printed.withheld or params.load("scales", scale).made_up:
        return {"note": printed.withheld or results.MADE_UP}
    if missing := open_study(scale).why_missing(key):
        return {"note": missing}
    dataset, words = open_study(scale).dataset(key), leakage.plain_words(printed.sample)
    found = {}
    for split in dataset.files:
        for instance in dataset.load(split):
            texts = [" ".join(instance.words)] if isinstance(instance, Sentence) else instance.sentences
            if any(holds(leakage.plain_words(text), words) for text in texts):
                found[split] = list_gold(instance, printed.better)
    if not found:
        return {"note": "not found in the dataset at hand"}
    return {"stands in": ", ".join(found), "of these in an entity": "; ".join(dict.fromkeys(found.values()))}


def holds(text: Sequence[str], words: Sequence[str]) -> bool:
    """Whether words stand in a text next to each other."""
    return any(text[place : place + len(words)] == words for place in range(len(text) - len(words) + 1))


def list_gold(instance: Instance, words: Sequence[str]) -> str:
    """Which of some words are tagged as in an entity; of a document, that it has labels for the whole alone."""
    if not isinstance(instance, Sentence):
        return "n/a: labels are of whole documents"
    inside = {word for word, tag in zip(instance.words, instance.tags, strict=True) if tag != "O"}
    return ", ".join(word for word in words if inside.issuperset(word.split())) or "none"


def describe(table: pd.DataFrame, printed: pd.DataFrame, scale: str) -> str:
    """What the predictions show, and what is known of the printed samples, in sentences (Markdown)."""
    lines = []
    for dataset, rows in table[table["p"].notna()].groupby("dataset", sort=False):
        share = {name: 100 * rows[name].sum() / rows["instances"].sum() for name in COUNTS}
        clear = rows[rows["p"] < SIGNIFICANT]
        ahead = (clear["only biomedical"] > clear["only general"]).sum()
        first = rows.iloc[0]
        lines.append(
            f"{dataset}: {first['biomedical']} alone has {share['only biomedical']:.1f}% of the instances right, "
            f"{first['general']} alone {share['only general']:.1f}%, both {share['both']:.1f}%; of {len(rows)} seeds, "
            f"the biomedical model is clearly ahead in {ahead}, the general one in {len(clear) - ahead}."
        )
    lines += [f"{line['dataset']}: n/a, {line['note']}." for line in table[table["note"].notna()].to_dict("records")]
    if table.empty:
        lines.append(f"No comparison can be made at scale **{scale}**.")
    for line in printed.to_dict("records"):
        if line.get("stands in"):
            lines.append(
                f"The printed sample of {line['printed as']} stands in {line['dataset']} ({line['stands in']}); "
                f"which of its words in bold are in a gold entity: {line['of these in an entity']}."
            )
    if params.load("scales", scale).made_up:
        lines.append(f"{results.MADE_UP.capitalize()}.")
    return "\n".join(f"- {line}" for line in lines)
