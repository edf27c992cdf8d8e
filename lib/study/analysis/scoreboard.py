"""The scoreboard: what the papers claim, the test of each claim, and its verdict."""

import numpy as np
import pandas as pd

from lib.study import params, paths, results
from lib.study.analysis import attention, cells, compare, curves, definitions, pieces

COLUMNS = ["claim", "paper", "statement", "test", "effect", "ci_low", "ci_high", "n", "p", "verdict", "note"]
SIGNIFICANT = 0.05  # what a corrected p must be below
FEWEST = 3  # points of a curve that make a trend
ASKED = {"beats": "above 0", "as good as": "above -{:g}", "equals": "within {:g} of 0"}
OPEN = {"verdict": "undecided", "p": 1.0}  # what has not been tested in full
ONE_MODEL = "one pretraining of each model"  # which no interval holds
PRETRAININGS = 1  # of each model
# Of each side, below which a claim about recipes of pretraining at most points: the intervals here leave out the chance
# of pretraining (page 00).
FEWEST_PRETRAININGS = 3
POINTS = {"holds": "points that way", "fails": "points the other way"}
VERDICTS = {
    "holds": "hold", "fails": "fail", "points that way": "point that way",
    "points the other way": "point the other way", "undecided": "undecided", "n/a": "not measured here (n/a)",
}  # fmt: skip


def limit_verdict(test: params.ClaimTest, verdict: str) -> str:
    """A verdict as far as the number of pretrainings bears it: of recipes that were trained once, one that points."""
    recipes = isinstance(test, params.TrendTest | params.DefinitionsTest) or (
        isinstance(test, params.PairedTest) and not test.same_weights
    )
    return POINTS.get(verdict, verdict) if recipes and PRETRAININGS < FEWEST_PRETRAININGS else verdict


def decide_paired(test: params.PairedTest, scale: str) -> dict:
    """A claim of paired comparisons, as many as it has parts.

    A part is undecided while one of its pairs has not been run, or while only one of its several sets has; so is a
    claim that would hold, but is ahead on fewer sets than it speaks of.
    """
    judged, notes = [], []
    for number, part in enumerate(test.parts, 1):
        every = pair_differences(part, scale)
        ran = {place: values for place, values in every.items() if values}
        if ran:
            one = compare.judge_difference(list(ran.values()), part.relation, part.margin)
            pairs, sets = ({place[i] for place in ran} for i in (0, 1))
            of_pairs, of_sets = ({place[i] for place in every} for i in (0, 1))
            if len(pairs) < len(of_pairs) or len(sets) == 1 < len(of_sets):
                one |= OPEN
            judged.append(one | {"part": number})
            where = ", ".join(dict.fromkeys(place for _, place in ran))
            where += f", {len(sets)} of {len(of_sets)} sets"
            where += f", {len(pairs)} of {len(of_pairs)} pairs" if len(of_pairs) > 1 else ""
            where += "".join(f", {instead}" for instead in cells.list_substitutions(part, scale))
            said = f"asked to be {ASKED[part.relation].format(part.margin)}: {where}"
            notes.append(f"part {number}: {one['effect']:+.2f} points, {limit_verdict(test, one['verdict'])}, {said}")
        else:
            notes.append(f"part {number}: no pair has been run")
    if not judged:
        return {"note": "no pair of runs has been made"}
    decided = decide_parts(judged, len(test.parts))
    deciding = decided.pop("part")
    notes = [f"points, {said}"] if len(test.parts) == 1 else [f"points, of part {deciding}", *notes]
    if test.ahead:
        ahead = sum(np.mean(values) > 0 for values in ran.values())
        notes.append(f"ahead on {ahead} of the {test.ahead} sets that it speaks of")
        if ahead < test.ahead and decided["verdict"] == "holds":
            decided |= OPEN
    return decided | {"note": join_notes(notes, test.untested)}


def join_notes(notes: list[str], untested: str) -> str:
    """What was compared, what else the claim says, and what no interval holds."""
    return "; ".join([*notes, *([f"not tested: {untested}"] if untested else []), ONE_MODEL])


def decide_parts(judged: list[dict], parts: int) -> dict:
    """A claim of several parts, those that could be judged: it holds when every part does, and fails when one does.

    Effect, interval and p are those of the part that decides: the first that fails, else that with the highest p.
    """
    failed = [one for one in judged if one["verdict"] == "fails"]
    decisive = failed[0] if failed else max(judged, key=lambda one: one["p"])
    return decisive | (OPEN if len(judged) < parts and not failed else {})


def decide_trend(test: params.TrendTest, scale: str) -> dict:
    """A claim that scores rise with pretraining, or that gains fall with the size of the fine-tuning set.

    Tested is the slope on the logarithm of the axis, of curves through three points or more: the claim holds when the
    whole interval is above zero, or below for a fall. Where the axis is along rows each point is a dataset, and points
    are what is resampled. That a curve also *levels off* (lee-corpus-size, lee-steps) is not tested: it would take
    more points near the end than the figures have. Nor is that gains are *large*: only that smaller sets gain more.
    """
    judged, notes, sign = [], [], -1 if test.falls else 1
    for part in test.parts:
        table, found = params.load("tables", part.table), curves.read_curves(part.table, scale)
        turned = {
            name: [(x, [sign * value for value in values]) for x, values in points]
            for name, points in found.items()
            if name in (part.only or found) and len({x for x, _ in points}) >= FEWEST
        }
        if not turned:
            notes.append(f"{part.table}: no curve of {FEWEST} points or more has been run")
            continue
        if table.along == "rows":
            (points,) = turned.values()
            judged.append(compare.judge_cloud(points))
        else:
            judged.append(compare.judge_trend(list(turned.values())))
        count = sum(map(len, turned.values()))
        way = "fewer" if test.falls else "more"
        notes.append(f"{part.table}: points for ten times {way} {table.axis}; {', '.join(turned)}, {count} points")
    if not judged:
        return {"note": "; ".join(notes)}
    return decide_parts(judged, len(test.parts)) | {"note": join_notes(notes, test.untested)}


def pair_differences(part: params.Part, scale: str) -> dict[tuple[int, str], list[float]]:
    """The better minus the other, a list over seeds for each pair and place: an empty one where one was not run."""
    if part.table:
        found = [cells.paired_differences(part.table, part.metric, *pair, scale) for pair in part.pairs]
    else:
        found = [cells.run_differences(*pair, part.datasets, scale) for pair in part.runs]
    return {
        (number, place): values
        for number, of_pair in enumerate(found)
        for place, values in of_pair.items()
        if not part.only or place in part.only
    }


def decide_cells(test: params.CellsTest, scale: str) -> dict:
    """A claim that is a table of pieces: it holds when every printed cell comes out, and fails when one does not."""
    found = results.find_table(paths.table(scale, test.table))
    if found is None:
        return {"note": f"{test.table} has not been made"}
    tried = found[found["published"].notna() & (found["verdict"] != "n/a")]
    if tried.empty:
        return {"note": f"no cell of {test.table} can be tried"}
    agree = (tried["verdict"] == "agrees").sum()
    verdict = "holds" if agree == len(tried) else "fails"
    return {"effect": 100 * agree / len(tried), "n": len(tried), "verdict": verdict,
            "note": f"{agree} of {len(tried)} printed cells that can be tried come out, in %"}  # fmt: skip


def decide_shorter(test: params.ShorterTest, scale: str) -> dict:
    """A claim that inputs are shorter on every dataset: the difference in pieces, paired by dataset."""
    found = results.find_table(paths.table(scale, test.table))
    if found is None:
        return {"note": f"{test.table} has not been made"}
    wide = found[found["verdict"] != "n/a"].pivot(index="row", columns="column", values="ours")
    if wide.empty:
        return {"note": f"no row of {test.table} can be tried"}
    differences = (wide[test.than] - wide[test.better]).tolist()
    judged = compare.judge_difference([[difference] for difference in differences])
    del judged["p"]  # decided by every set, not by the mean
    shorter, rows = sum(d > 0 for d in differences), found["row"].nunique()
    judged["verdict"] = "fails" if shorter < len(differences) else "holds" if len(wide) == rows else "undecided"
    note = f"pieces saved an input; shorter on {shorter} of the {len(wide)} sets that are whole at hand, of {rows}"
    return judged | {"note": note}


def decide_whole(test: params.WholeTest, scale: str) -> dict:
    """A claim that one vocabulary keeps more medical words whole: the difference in %, resampled over words."""
    found = pieces.whole_words(test.better, test.than, scale)
    values, shares = np.array([-100, 0, 100]), np.array([found.count(v) for v in (-1, 0, 1)]) / len(found)
    # Drawing words with replacement is drawing how many fall into each of the three groups.
    means = np.random.default_rng(0).multinomial(len(found), shares, compare.RESAMPLES) @ values / len(found)
    note = f"% of the distinct words of MeSH's terms kept whole, {test.better} against {test.than}"
    return {"effect": float(shares @ values), "n": len(found), "note": note} | compare.judge_means(means)


def decide_shares(test: params.SharesTest, scale: str) -> dict:
    """A claim that a way of mixing corpora shows more of the core, and more pairs: it holds when every case does."""
    counts = results.find_table(paths.table(scale, "wada-figure-3"))
    if counts is None or counts.empty:
        return {"note": "the instances have not been counted"}
    wide = counts.pivot(index=["core", "satellite"], columns="method", values=["core share", "distinct pairs"])
    gains = wide.xs("simultaneous", axis=1, level=1) - wide.xs("split files", axis=1, level=1)
    note = f"% of core text more, mean of {len(wide)} cases"
    for name, said in (("core share", "more core text"), ("distinct pairs", "more distinct pairs of documents")):
        less = [core for core, _ in gains.index[gains[name] <= 0]]
        note += f"; {said} in {len(wide) - len(less)}" + (f", not with the core {', '.join(less)}" if less else "")
    verdict = "holds" if (gains > 0).all(axis=None) else "fails"
    return {"effect": 100 * gains["core share"].mean(), "n": len(wide), "verdict": verdict, "note": note}


def decide_sizes(test: params.SizesTest, scale: str) -> dict:
    """A claim of numbers of parameters: it holds when each, rounded as printed, comes out."""
    found = results.find_table(paths.table(scale, "parameters"))
    if found is None:
        return {"note": "the parameters have not been counted"}
    counted = found.set_index("model")["counted, millions"]
    right = {
        model: float(f"{counted[model]:.{len(str(printed).rstrip('0'))}g}") == printed
        for model, printed in test.printed.items()
    }
    said = ", ".join(f"{model} {counted[model]:.1f} for {printed}" for model, printed in test.printed.items())
    verdict = "holds" if all(right.values()) else "fails"
    return {"effect": 100 * sum(right.values()) / len(right), "n": len(right), "verdict": verdict,
            "note": f"% that round to the number printed; counted in millions: {said}"}  # fmt: skip


def decide_shattered(test: params.ShatteredTest, scale: str) -> dict:
    """A claim that one vocabulary cuts fewer of the printed words than another: it holds when each example shows it."""
    table = results.find_table(paths.table(scale, "gu-figure-3"))
    found = pd.DataFrame() if table is None else attention.count_shattered(table)
    named = found[found["vocabulary"].isin([test.better, test.than])] if len(found) else found
    if not len(named) or named["vocabulary"].nunique() < 2:
        return {"note": "the two vocabularies have not been compared"}
    cut = named.pivot(index="example", columns="vocabulary", values="cut")
    words = named.drop_duplicates("example")["printed words"].sum()
    fewer = cut[test.than] - cut[test.better]
    note = (
        f"% of the printed words, cut by {test.than} ({cut[test.than].sum()} of {words}) and not by {test.better} "
        f"({cut[test.better].sum()}); fewer in {(fewer > 0).sum()} of {len(cut)} examples"
    )
    verdict = "holds" if (fewer > 0).all() else "fails"
    return {"effect": 100 * fewer.sum() / words, "n": int(words), "verdict": verdict, "note": note}


def decide_times(test: params.TimesTest, scale: str) -> dict:
    """A claim of speed: the median over repetitions of how many times as fast, resampled over the repetitions.

    It holds when the interval of every model that it names lies above the ratio of the test or, where that has a
    margin, within that of the ratio; it fails when one does elsewhere.
    """
    times = results.find_table(paths.table(scale, test.table))
    if times is None or not {*test.better, test.than} <= set(times["model"]):
        return {"note": "the models have not been timed"}
    wide = times.pivot(index="repetition", columns="model", values="seconds")
    found = {better: judge_ratios((wide[test.than] / wide[better]).to_numpy(), test) for better in test.better}
    asked = f"within {test.margin:g} of {test.ratio:g}" if test.margin else f"above {test.ratio:g}"
    said = ", ".join(f"{better} {one['effect']:.2f}" for better, one in found.items())
    note = f"times as fast as {test.than}, asked to be {asked}: {said}; medians of {len(wide)} paired repetitions"
    return decide_parts(list(found.values()), len(found)) | {"note": f"{note}, {times['device'].iloc[0]}"}


def judge_ratios(ratios: np.ndarray, test: params.TimesTest) -> dict:
    """The median of how many times as fast one is, a ratio a repetition, and whether it is as a test asks."""
    drawn = np.random.default_rng(0).choice(ratios, (compare.RESAMPLES, len(ratios)))
    relation = "equals" if test.margin else "beats"
    judged = compare.judge_means(np.median(drawn, axis=1) - test.ratio, relation, test.margin)
    judged |= {bound: judged[bound] + test.ratio for bound in ("ci_low", "ci_high")}
    return {"effect": float(np.median(ratios)), "n": len(ratios)} | judged


def decide_audited(test: params.AuditedTest, scale: str) -> dict:
    """A claim that printed numbers follow from printed cells: it holds when each does, rounding allowed."""
    lines = results.find_table(paths.table(scale, "audit"))
    if lines is None:
        return {"note": "the printed numbers have not been audited"}
    lines = lines[(lines["paper"] == test.paper) & lines["kind"].isin(test.lines)]
    follow = (lines["excused_by_rounding"] == "yes").sum()
    averaging = (lines["verdict"] == "averaging").sum()
    note = f"% of {len(lines)} printed numbers that follow, rounding allowed; {len(lines) - follow} do not"
    note += f", which averaging over runs explains in {averaging}" if averaging else ""
    verdict = "holds" if follow == len(lines) else "fails"
    return {"effect": 100 * follow / len(lines), "n": len(lines), "verdict": verdict, "note": note}


def decide_definitions(test: params.DefinitionsTest, scale: str) -> dict:
    """A claim that NER gains so much over the state of the art, whose paper does not say what its scores count.

    The rule, set before any result. At a scale that trains models as published: ours minus what is printed of the
    model, by set and seed, both as entity F1. The claim `holds` when it is as good as printed, the whole interval above
    minus the margin, and `fails` when it lies below; `undecided` otherwise. At other scales models are too small to be
    held against a printed score, and the claim is `undecided`; the effect is then what another definition gives to the
    same predictions: F1 of words with O as a class minus F1 of entities, in points, resampled over sets and seeds. Of
    the predictions of the model under the protocol; where there are none, of the model and protocol with the most sets,
    and of several the one with the highest entity F1.
    """
    table, compared = params.load("tables", test.table), results.find_table(paths.table(scale, "protocols"))
    if compared is None:
        return {"note": "no predictions of its named entities have been scored"}
    lines = definitions.choose_entities(compared)
    lines = lines[lines["dataset"].isin(run.dataset for run in table.rows.values())]
    if lines.empty:
        return {"note": "no predictions of its named entities have been scored"}
    runs = dict(list(lines.groupby(["model", "protocol"], sort=False)))
    ranks = {name: (part["dataset"].nunique(), part["first_value"].mean()) for name, part in runs.items()}
    run = cells.settle(params.Run(model=test.model, protocol=test.protocol), scale)
    asked = (run.model, run.protocol)
    chosen = asked if asked in runs else max(ranks, key=ranks.get)
    found = dict(list(runs[chosen].groupby("second")))
    gaps = {name: compare.judge_difference(definitions.list_differences(part)) for name, part in found.items()}
    without, counted, entities = gaps[definitions.WORDS], gaps[definitions.WORDS_AND_O], found[definitions.WORDS_AND_O]
    where = f"{' under '.join(chosen)} on {', '.join(entities['dataset'])}"
    note = (
        f"{where}: {entities['first_value'].mean():.2f} by entity, "
        f"by word {without['effect']:+.2f} without O ({without['ci_low']:+.2f} to {without['ci_high']:+.2f}), "
        f"{counted['effect']:+.2f} with O"
    )
    if params.load("scales", scale).pretraining.recipe is None and chosen == asked:
        return hold_against_print(test, entities, note)
    del counted["p"]  # of another verdict
    return counted | {"verdict": "undecided", "note": f"{note}, which is the effect; not the paper's size of model"}


def hold_against_print(test: params.DefinitionsTest, entities: pd.DataFrame, note: str) -> dict:
    """Entity F1 of ours less what is printed of the model; its gain on the state of the art in the note."""
    table = params.load("tables", test.table)
    cells = results.read_published(table.paper, table.table).set_index(["row", "column"])["value"]
    rows = {run.dataset: name for name, run in table.rows.items() if run.dataset}
    printed, over = ([cells[rows[key], column] for key in entities["dataset"]] for column in (test.column, test.over))
    scores = [definitions.read_seeds(line["first_by_seed"]) for line in entities.to_dict("records")]
    gains = [[score - value for score in found] for found, value in zip(scores, printed, strict=True)]
    note += (
        f"; the effect is entity F1 less the {test.column} printed; over {test.over} "
        f"{entities['first_value'].mean() - np.mean(over):+.2f} points, printed {np.mean(printed) - np.mean(over):+.2f}"
    )
    return compare.judge_difference(gains, "as good as", test.margin) | {"note": note}


DECIDE = {
    "paired": decide_paired,
    "trend": decide_trend,
    "cells": decide_cells,
    "shorter": decide_shorter,
    "whole": decide_whole,
    "shares": decide_shares,
    "sizes": decide_sizes,
    "shattered": decide_shattered,
    "times": decide_times,
    "audited": decide_audited,
    "definitions": decide_definitions,
}


def judge(scale: str) -> pd.DataFrame:
    """The scoreboard: every claim of the papers with its test, effect, interval and verdict.

    `p` is corrected for the number of claims that are tested by resampling; a verdict that does not survive it is
    undecided.
    """
    tests = params.claim_tests()
    made_up = params.load("scales", scale).made_up
    lines = []
    for claim in results.read_claims().to_dict("records"):
        line = {name: claim[name] for name in ("claim", "paper", "statement", "test")}
        line |= {"effect": np.nan, "ci_low": np.nan, "ci_high": np.nan, "n": 0, "verdict": "n/a"}
        if claim["claim"] not in tests:
            lines.append(line | {"note": "not tested yet"})
            continue
        line |= DECIDE[tests[claim["claim"]].kind](tests[claim["claim"]], scale)
        if made_up:
            line |= {"verdict": "n/a", "note": results.MADE_UP}
        lines.append(line)
    tried = [line for line in lines if "p" in line]
    for line, p in zip(tried, compare.correct([line["p"] for line in tried]), strict=True):
        line["p"] = p
        if line["verdict"] in ("holds", "fails") and p >= SIGNIFICANT:
            line |= {"verdict": "undecided", "note": f"not after correction for {len(tried)} claims; {line['note']}"}
    for line in lines:
        if line["claim"] in tests:
            line["verdict"] = limit_verdict(tests[line["claim"]], line["verdict"])
    return pd.DataFrame(lines, columns=COLUMNS).round({"effect": 2, "ci_low": 2, "ci_high": 2, "p": 4})


def read(scale: str) -> pd.DataFrame:
    """The scoreboard as it was written; without verdicts before notebook 01 has run."""
    found = results.find_table(paths.table(scale, "claims"))
    return results.read_claims().assign(n=0, verdict="n/a", note="") if found is None else found


def describe_verdict(claim: dict) -> str:
    """A verdict as a sentence has it: that a claim holds is said of what of it was tested."""
    untested = getattr(params.claim_tests().get(claim["claim"]), "untested", "")
    said = {"fails": "does not hold"}.get(claim["verdict"], claim["verdict"])
    return f"{said} as far as tested" if untested and said in ("holds", "points that way") else said


def describe_effect(claim: dict) -> str:
    """A measured claim's effect, 95% interval and number of comparisons, and what they are of."""
    interval = f" (95% {claim['ci_low']:g} to {claim['ci_high']:g})" if pd.notna(claim["ci_low"]) else ""
    return f"Effect {claim['effect']:g}{interval}, n = {claim['n']}: {claim['note']}."


def describe(claims: pd.DataFrame) -> str:
    """The scoreboard in one sentence (Markdown)."""
    counts = claims["verdict"].value_counts()
    said = [f"{counts.get(verdict, 0)} {name}" for verdict, name in VERDICTS.items()]
    return f"Of {len(claims)} claims in five papers: {', '.join(said)}."
