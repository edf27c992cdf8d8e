"""One set under several papers' protocols: how many points are metric, label rule, division or fine-tuning, not model.

A line of the table is a pair: `difference` is the second value less the first, in points. Four kinds:
- metric: the same predictions, scored in two ways; also those of two answers that need no model.
- data: two versions of a set, without a model (lib/study/analysis/versions.py).
- runs: one model, fine-tuned and scored under two protocols.
- printed: one model in the tables of two papers.
"""

import itertools
from collections.abc import Iterable
from statistics import median

import pandas as pd

from lib.benchmarks import registry
from lib.study import open_study, params, published, repeated, results
from lib.study.analysis import definitions, facts, versions
from lib.study.analysis.definitions import subtract

COLUMNS = ["set", "kind", "what", "dataset", "protocol", "model", "first", "second", "unit", "first_value", "first_std",
           "second_value", "second_std", "difference", "difference_std", "n", "first_by_seed", "second_by_seed", "same",
           "differs", "note"]  # fmt: skip


def list_runs(scale: str) -> list[params.RunKey]:
    """The runs of tables and panels that enter a comparison: all are under a paper's own protocol."""
    tables = [key for key in params.keys("tables") if params.load("tables", key).kind == "scores"]
    planned = [run for key in tables for run in published.list_runs(key, scale)]
    planned += [run for run in params.load("scales", scale).panel_runs() if not open_study(scale).why_not(run[1])]
    own = list(dict.fromkeys(run for run in planned if run[2] in facts.comparisons().protocols))
    pairs = {run for pair in pair_runs(own) for run in pair}
    return [run for run in own if run in pairs or definitions.list_metrics(run[1])]


def pair_runs(runs: Iterable[params.RunKey]) -> list[tuple[params.RunKey, params.RunKey]]:
    """Runs of one model on one set under two protocols or on two versions, in the order of the protocols."""
    order = facts.comparisons().protocols
    groups: dict[tuple[str, str], list[params.RunKey]] = {}
    for run in sorted(runs, key=lambda run: order.index(run[2])):
        groups.setdefault((versions.name_set(run[1]), run[0]), []).append(run)
    return [pair for found in groups.values() for pair in itertools.combinations(found, 2)]


def build(scale: str) -> pd.DataFrame:
    """Every comparison, a line each: those that cannot be made have the reason in `note` and n = 0."""
    runs = list_runs(scale)
    lines = [*definitions.compare(runs, scale), *versions.compare(scale), *compare_runs(runs, scale)]
    return pd.DataFrame([*lines, *compare_printed()], columns=COLUMNS)


# The same model, fine-tuned


def compare_runs(runs: list[params.RunKey], scale: str) -> list[dict]:
    """A line for each model with two runs on one set; for a set of several versions that has none, why."""
    lines = [compare_two_runs(*pair, scale) for pair in pair_runs(runs)]
    has = {line["set"] for line in lines}
    empty = {"kind": "runs", "what": "score", "n": 0, "note": "no model is fine-tuned on it twice at this scale"}
    return lines + [{"set": name} | empty for name in facts.comparisons().sets if name not in has]


def compare_two_runs(first: params.RunKey, second: params.RunKey, scale: str) -> dict:
    line = {"set": versions.name_set(first[1]), "kind": "runs", "what": "score", "model": first[0]}
    line |= {"first": ", ".join(first[1:]), "second": ", ".join(second[1:]), "unit": "points", "note": ""}
    line |= {"same": "weights before fine-tuning, seeds", "differs": tell_apart(first[1:], second[1:], scale)}
    found = [results.read(scale, *run) for run in (first, second)]
    if None in found:
        return line | {"n": 0, "note": results.NOT_MADE}
    by_seed = [
        {seed: scores[result["main score"]] for seed, scores in results.by_seed(result).items()} for result in found
    ]
    return line | subtract(*by_seed)


def tell_apart(first: tuple[str, str], second: tuple[str, str], scale: str) -> str:
    """What differs between two datasets, each under a protocol: data, metric, and the settings that differ."""
    keys = first[0], second[0]
    parts = {
        "data": [registry.lookup(key).title for key in keys],
        "metric": [versions.metric_of(key) for key in keys],
    }
    said = [f"{name} ({' | '.join(pair)})" for name, pair in parts.items() if pair[0] != pair[1]]
    settings = [open_study(scale).protocol(*reversed(one)).model_dump() for one in (first, second)]
    names = [name.replace("_", " ") for name, value in settings[0].items() if value != settings[1][name]]
    return "; ".join([*said, f"fine-tuning ({', '.join(names)})"] if names else said)


# The same model, as printed


def compare_printed() -> list[dict]:
    """A line for each two papers that print a score of one model on one set; numbers that are quoted are left out."""
    scores = list_ranked()
    own = scores[(scores["model"] != "") & (scores["set"] != "")]
    lines = []
    for (model, dataset, score), printings in own.groupby(["model", "set", "score"], sort=False):
        firsts = printings.drop_duplicates("paper").to_dict("records")
        for before, after in itertools.combinations(firsts, 2):
            differs = repeated.describe_differences(before["table"], after["table"], model, dataset)
            line = {"set": dataset, "kind": "printed", "what": score, "model": model, "note": ""}
            line |= {name: f"{cell['table']}: {cell['name']}" for name, cell in (("first", before), ("second", after))}
            line |= {"same": "model, by its name", "differs": differs}
            lines.append(line | subtract({0: before["number"].value}, {0: after["number"].value}))
    return lines


def list_ranked() -> pd.DataFrame:
    """The printed scores that models are ranked by, of the papers' own runs; columns as of repeated.list_scores."""
    scores = repeated.list_scores()
    return scores[scores["score"].isin(facts.comparisons().scores) & (scores["run"] != "")]


def differences_within(lines: pd.DataFrame) -> list[float]:
    """How far apart two models of one table are, on the sets and in the tables that lines of printed scores name."""
    places = {
        (line["set"], line[which].split(":")[0]) for line in lines.to_dict("records") for which in ("first", "second")
    }
    tables, found = dict(list(list_ranked().groupby(["set", "table"])["number"])), []
    for place in sorted(places):
        found += [abs(a.value - b.value) for a, b in itertools.combinations(tables[place], 2)]
    return found


# What a page shows


def list_sets() -> pd.DataFrame:
    """Which tables have scores on which version of a set, under which protocol and metric."""
    return pd.DataFrame(
        {"set": name, "dataset": key, "what it is": registry.lookup(key).title, "metric": versions.metric_of(key),
         "scores in": ", ".join(registry.lookup(key).results)}
        for name, keys in facts.comparisons().sets.items()
        for key in keys
    )  # fmt: skip


def differences(lines: pd.DataFrame) -> pd.DataFrame:
    """What a figure shows: the `label` of a comparison, its `kind`, and a `difference` in points for each model or set.

    Without the answers that are the same for every instance, of which one metric often makes nothing.
    """
    found = lines[(lines["unit"] == "points") & (lines["n"] > 0) & (lines["model"] != definitions.MOST_FREQUENT)]
    named = [name_comparison(line) for line in found.to_dict("records")]
    return found.assign(label=named)[["kind", "label", "difference"]].reset_index(drop=True)


def name_comparison(line: dict) -> str:
    first, second = line["first"], line["second"]
    match line["kind"]:
        case "metric":
            return f"{second} less {first}"
        case "data":
            return f"{second} less {first}: {line['what']}"
        case "printed":
            first, second = (name.split(":")[0] for name in (first, second))
    return f"{line['set']}: {second} less {first}"


def describe(lines: pd.DataFrame, scale: str) -> str:
    """What comes from protocol alone, in sentences made from the numbers (Markdown)."""
    warning = "The data are made up: only the last sentences, on how far printed scores are apart, are findings."
    said = [warning] if params.load("scales", scale).made_up else []
    said += [*definitions.describe(lines), *definitions.describe_placed(definitions.place_printed(lines))]
    said += [*versions.describe(lines), *describe_runs(lines), *describe_printed(lines)]
    return "\n".join(f"- {one}" for one in said)


def describe_runs(lines: pd.DataFrame) -> list[str]:
    """How far apart one model is under two protocols."""
    found = lines[(lines["kind"] == "runs") & lines["model"].notna()]
    made = found[found["n"] > 0]
    if made.empty:
        return [f"None of {len(found)} pairs of runs of one model under two protocols has been made."]
    far = made["difference"].abs()
    most = made.loc[far.idxmax()]
    return [
        f"One model under two protocols, ours: {far.median():.2f} points apart (median of {len(made)} pairs of "
        f"{len(found)}); most, {most['difference']:+.2f}: {most['model']}, {most['second']} less {most['first']}."
    ]


def describe_printed(lines: pd.DataFrame) -> list[str]:
    """How far apart one model is in print, beside how far apart models of one table are."""
    made = lines[lines["kind"] == "printed"].sort_values("difference", key=abs)
    if made.empty:
        return ["No two papers print a score of one model on one set."]
    within = differences_within(made)
    far, most = made["difference"].abs(), made.iloc[-1]
    said = [
        f"One model in the tables of two papers: {far.median():.2f} points apart (median of {len(made)} pairs of "
        f"scores); two models in one table, on the same sets: {median(within):.2f} (median of {len(within)} pairs).",
        f"The most, {most['difference']:+.2f}: {most['set']}, {most['second']} less {most['first']}.",
    ]
    for name in facts.comparisons().sets:
        apart = made.loc[made["set"] == name, "difference"].abs()
        if len(apart):
            said.append(f"{name}, printed: {apart.median():.2f} points apart (median of {len(apart)} pairs, up to "
                        f"{apart.max():.2f}).")  # fmt: skip
    return said
