"""The same predictions under several definitions of a score, and answers that need no model; BioALBERT's entities."""

import itertools
import math
from collections import Counter
from collections.abc import Callable
from statistics import fmean, stdev

import pandas as pd

from lib.benchmarks import baselines, datasets, metrics, registry
from lib.errors import StudyError, unknown
from lib.finetuning import runs
from lib.places import show_path
from lib.study import open_study, params, paths, results
from lib.study.analysis import facts, findings, versions

ENTITIES, WORDS, WORDS_AND_O = "F1 of entities", "F1 of words, without O", "F1 of words, with O"
Definition = Callable[[datasets.Dataset, list, list], float]
DEFINITIONS: dict[str, Definition] = {  # of a dataset's gold and predicted
    ENTITIES: lambda _, *both: metrics.entity_scores(*both)["f1"],
    WORDS: lambda _, *both: metrics.token_scores(*both, outside=False)["f1"],
    WORDS_AND_O: lambda _, *both: metrics.token_scores(*both, outside=True)["f1"],
    "micro F1 of positive types":
        lambda dataset, *both: metrics.relation_scores(*both, negative=dataset.negative)["f1"],
    "F1 of the positive class": lambda _, *both: metrics.binary_scores(*both)["f1"],
    "accuracy": lambda _, *both: metrics.accuracy(*both),
    "F1 of no": lambda _, *both: metrics.answer_class_scores(*both)["f1 (no)"],
    "micro F1 of labels": lambda _, *both: metrics.multilabel_scores(*both)["f1"],
    "micro F1 of labels, labelled documents": lambda _, *both: metrics.multilabel_scores(*labelled(*both))["f1"],
    "example-based F1": lambda _, *both: metrics.example_scores(*both)["f1"],
    "example-based F1, labelled documents": lambda _, *both: metrics.example_scores(*labelled(*both))["f1"],
}  # fmt: skip
# Predicted answers are spans, and gold ones are texts that stay in their dataset: these are in the record of a run.
RECORDED = {"mean reciprocal rank": "mrr", "lenient accuracy": "lenient accuracy"}
MOST_FREQUENT, LOOK_UP = "always the most frequent label", "each word's most frequent tag"
NO_MODEL = (MOST_FREQUENT, LOOK_UP)
BySeed = dict[int, float]


def labelled(gold: list, predicted: list) -> tuple[list, list]:
    """Gold and predicted of the documents that have a label."""
    kept = [(g, p) for g, p in zip(gold, predicted, strict=True) if g]
    return [g for g, _ in kept], [p for _, p in kept]


def list_metrics(key: str) -> list[facts.MetricPair]:
    """The ways to score predictions on a dataset that are compared; none where all labels are positive."""
    dataset = registry.lookup(key)
    return [
        pair
        for pair in facts.comparisons().metrics
        if pair.of == dataset.metric and key in (pair.datasets or [key]) and dataset.negative
    ]


def subtract(first: BySeed, second: BySeed) -> dict:
    """Both values, and the second less the first, over the seeds that have both: means, deviations, each seed."""
    seeds = [seed for seed in sorted(first.keys() & second.keys()) if not math.isnan(first[seed] + second[seed])]
    if not seeds:
        return {"unit": "points", "n": 0, "note": "no seed has both values"}
    pair = [[values[seed] for seed in seeds] for values in (first, second)]
    several = {"first": pair[0], "second": pair[1], "difference": [b - a for a, b in zip(*pair, strict=True)]}
    found = {"unit": "points", "n": len(seeds)}
    for name, values in several.items():
        value, std = (name, f"{name}_std") if name == "difference" else (f"{name}_value", f"{name}_std")
        found |= {value: round(fmean(values), 2) + 0.0}
        found |= {std: round(stdev(values), 2)} if len(values) > 1 else {}
    for name in ("first", "second"):
        found[f"{name}_by_seed"] = " ".join(f"{value:.2f}" for value in several[name])
    return found


def compare(runs: list[params.RunKey], scale: str) -> list[dict]:
    """A line for each run and each two ways to score it, and for the answers that need no model.

    StudyError for a definition that params/comparisons.yaml names and that does not exist.
    """
    for name in (name for pair in facts.comparisons().metrics for name in (pair.first, pair.second)):
        if name not in DEFINITIONS | RECORDED:
            raise unknown("definition of a score", name, DEFINITIONS | RECORDED)
    printed = [key for key, dataset in registry.DATASETS.items() if dataset.results and list_metrics(key)]
    lines = [line for run in runs if list_metrics(run[1]) for line in compare_run(run, scale)]
    return lines + [line for key in printed if not open_study(scale).why_missing(key)
                    for line in compare_no_model(key, scale)]  # fmt: skip


def compare_run(run: params.RunKey, scale: str) -> list[dict]:
    """The lines of one run's predictions."""
    model, dataset, protocol = run
    pairs = list_metrics(dataset)
    line = {"dataset": dataset, "protocol": protocol, "model": model}
    result = results.read(scale, *run)
    try:
        if result is None:
            raise StudyError(results.NOT_MADE)
        values = score_runs(result, {name for pair in pairs for name in (pair.first, pair.second)}, scale)
    except StudyError as error:
        return [describe_metric(pair, line) | {"n": 0, "note": str(error)} for pair in pairs]
    return [describe_metric(pair, line) | subtract(values[pair.first], values[pair.second]) for pair in pairs]


def describe_metric(pair: facts.MetricPair, line: dict) -> dict:
    line = line | {"set": versions.name_set(line["dataset"]), "kind": "metric", "what": "score of the predictions"}
    line |= {"same": "model, fine-tuning, test set, predictions", "differs": f"metric: {pair.papers}"}
    return line | {"first": pair.first, "second": pair.second, "unit": "points", "note": ""}


def score_runs(result: dict, names: set[str], scale: str) -> dict[str, BySeed]:
    """What a result's runs score by each definition, means over folds; errors as in read_predictions."""
    dataset = registry.lookup(result["dataset"])
    found: dict[str, dict[int, list[float]]] = {name: {} for name in names}
    for run in result["runs"]:
        both = read_predictions(result, run, scale) if names - set(RECORDED) else ([], [])
        for name in names:
            value = run["scores"][RECORDED[name]] if name in RECORDED else DEFINITIONS[name](dataset, *both)
            found[name].setdefault(run["seed"], []).append(value)
    return {name: {seed: fmean(values) for seed, values in seeds.items()} for name, seeds in found.items()}


def read_predictions(result: dict, run: dict, scale: str) -> tuple[list, list]:
    """Gold and predicted of one run; StudyError where they are not on this machine, or are another run's."""
    folds = registry.lookup(result["dataset"]).folds
    name = f"{run['seed']}.{run['fold']}" if folds > 1 else str(run["seed"])  # as Finetuning.run names them
    path = paths.predictions(scale, result["model"], result["dataset"], result["setting"], name)
    if not path.exists():
        raise StudyError("the predictions are not on this machine; only scores are committed")
    if (runs.read(path) or {}).get("fingerprint") != run["fingerprint"]:
        raise StudyError(f"{show_path(path)}: predictions of another run than the scores")
    return runs.read_predictions(path)


def compare_no_model(key: str, scale: str) -> list[dict]:
    """The lines of two answers that need no model: the most frequent label of training; of words, the tag of each."""
    dataset = registry.lookup(key)
    if dataset.family == "questions":
        return []
    train, test = (findings.load(key, split, scale) for split in ("train", "test"))
    gold = [instance.gold for instance in test]
    if dataset.family == "tagging":
        (by_word,) = baselines.tag_by_word(dataset, train, [test])
        answers = {MOST_FREQUENT: [["O"] * len(tags) for tags in gold], LOOK_UP: by_word}
    else:
        ((best, _),) = Counter(one.gold for one in train).most_common(1)
        answers = {MOST_FREQUENT: [best] * len(test)}
    lines = []
    for model, predicted in answers.items():
        for pair in list_metrics(key):
            both = ({0: DEFINITIONS[name](dataset, gold, predicted)} for name in (pair.first, pair.second))
            line = {"dataset": key, "protocol": "", "model": model}
            lines.append(describe_metric(pair, line) | subtract(*both))
    return lines


def choose_entities(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines of a table of comparisons that score a model's tags of entities in two ways."""
    wanted = (lines["kind"] == "metric") & (lines["first"] == ENTITIES) & (lines["n"] > 0)
    return lines[wanted & ~lines["model"].isin(NO_MODEL)]


def list_differences(lines: pd.DataFrame) -> list[list[float]]:
    """The second values less the first, for each line a list over seeds."""
    pairs = (
        [read_seeds(line[f"{which}_by_seed"]) for which in ("first", "second")] for line in lines.to_dict("records")
    )
    return [[b - a for a, b in zip(*pair, strict=True)] for pair in pairs]


def read_seeds(text: str | float) -> list[float]:
    """The values of a line by seed; one alone has been read as a number."""
    return [float(value) for value in str(text).split()]


def summarise(lines: pd.DataFrame) -> pd.DataFrame:
    """Scores of the same predictions, a row a dataset, protocol and pair of definitions: means over models."""
    rows = []
    found = lines[(lines["kind"] == "metric") & (lines["n"] > 0) & ~lines["model"].isin(NO_MODEL)]
    for keys, group in found.groupby(["dataset", "protocol", "first", "second"], sort=False):
        row = dict(zip(("dataset", "protocol", "first", "second"), keys, strict=True))
        row |= {"models": len(group), "first score": group["first_value"].mean()}
        row |= {"second score": group["second_value"].mean(), "difference": group["difference"].mean()}
        row |= {"sd over seeds": group["difference_std"].mean(), "differs": group["differs"].iloc[0]}
        rows.append(row)
    return pd.DataFrame(rows)


def place_printed(lines: pd.DataFrame) -> pd.DataFrame:
    """Printed scores of named entities beside what each definition makes of predictions, a row a set.

    Ours are means over the models that were run on it.
    """
    beside = facts.comparisons().beside
    if beside.table not in params.keys("tables"):
        return pd.DataFrame()
    table = params.load("tables", beside.table)
    printed = results.read_published(table.paper, table.table).set_index(["row", "column"])["value"]
    rows = []
    for name, run in table.rows.items():
        found = lines[(lines["kind"] == "metric") & (lines["dataset"] == run.dataset) & (lines["n"] > 0)]
        if found.empty or ENTITIES not in set(found["first"]):
            continue
        row = {"printed as": name, "dataset": run.dataset} | {c: printed[name, c] for c in beside.columns}
        for who in (*NO_MODEL, "ours"):
            some = found[found["model"] == who] if who in NO_MODEL else found[~found["model"].isin(NO_MODEL)]
            for definition in (ENTITIES, WORDS, WORDS_AND_O):
                row[f"{who}: {definition}"] = read_definition(some, definition)
        rows.append(row)
    return pd.DataFrame(rows)


def read_definition(lines: pd.DataFrame, name: str) -> float:
    """The mean of what lines score by one definition."""
    values = [line["first_value"] for line in lines.to_dict("records") if line["first"] == name]
    values = values or [line["second_value"] for line in lines.to_dict("records") if line["second"] == name]
    return round(fmean(values), 2) if values else math.nan


def describe(lines: pd.DataFrame) -> list[str]:
    """What another metric does to the same predictions: of models where some are at hand, else of the look-up."""
    found = lines[(lines["kind"] == "metric") & (lines["model"] != MOST_FREQUENT)]
    runs = found[found["model"] != LOOK_UP]
    said = [f"{(runs['n'] > 0).sum()} of {len(runs)} pairs of scores of one run's predictions could be made."]
    made = found[found["n"] > 0]
    for (first, second), group in made.groupby(["first", "second"], sort=False):
        models = group[group["model"] != LOOK_UP]
        whose, some = ("the look-up's tags", group) if models.empty else (f"{len(models)} runs", models)
        far = some["difference"]
        said.append(
            f"{second} less {first}: {far.mean():+.2f} points on average over {some['dataset'].nunique()} sets "
            f"({whose}), from {far.min():+.2f} to {far.max():+.2f}."
        )
    return said


def describe_placed(placed: pd.DataFrame) -> list[str]:
    """How near definitions come to printed scores that do not say what they count."""
    if placed.empty:
        return []
    beside = facts.comparisons().beside
    base, *columns = beside.columns
    printed = ", ".join(f"{column} {(placed[column] - placed[base]).mean():+.2f}" for column in columns)
    said = [f"Over the {len(placed)} sets at hand {beside.table} prints, less {base} ({placed[base].mean():.2f}): "
            f"{printed} points."]  # fmt: skip
    for who, definition in itertools.product((MOST_FREQUENT, LOOK_UP, "ours"), (ENTITIES, WORDS, WORDS_AND_O)):
        scored = placed[placed[f"{who}: {definition}"].notna()]
        if len(scored) and (who != MOST_FREQUENT or definition == WORDS_AND_O):
            gain = scored[f"{who}: {definition}"] - scored[base]
            said.append(
                f"{who[0].upper()}{who[1:]}, by {definition}: "
                f"{gain.mean():+.2f} points over that {base}, above it on {(gain > 0).sum()} of {len(scored)} sets."
            )
    floor = f"{MOST_FREQUENT}: {WORDS_AND_O}"
    for column in columns:
        under = placed[placed[column] < placed[floor]]["printed as"].tolist()
        said.append(
            f"{column} is printed below what {MOST_FREQUENT} scores by {WORDS_AND_O} on {len(under)} of {len(placed)} "
            f"sets{': ' if under else ''}{', '.join(under)}."
        )
    return said
