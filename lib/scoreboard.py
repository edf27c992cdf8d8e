"""The scoreboard: what the papers claim, the test of each claim, and its verdict."""

import numpy as np
import pandas as pd

from lib import cells, compare, params, paths, pieces, results


def decide_paired(test: params.PairedTest, scale: str) -> dict:
    """A claim that one model beats another."""
    differences = cells.paired_differences(test.table, test.metric, test.better, test.than, scale)
    if not differences:
        return {"note": f"no dataset has been run for {test.table}"}
    sets = ", ".join(differences)
    note = f"{test.metric} points, one pretraining of each model, {len(differences)} sets: {sets}"
    return compare.judge_difference(list(differences.values())) | {"note": note}


def decide_cells(test: params.CellsTest, scale: str) -> dict:
    """A claim that is a table of pieces: it holds when every printed cell comes out, and fails when one does not."""
    found = results.read_table(paths.table(scale, test.table))
    tried = found[found["published"].notna() & (found["verdict"] != "n/a")]
    if tried.empty:
        return {"note": f"no cell of {test.table} can be tried"}
    agree = (tried["verdict"] == "agrees").sum()
    verdict = "holds" if agree == len(tried) else "fails"
    return {"effect": 100 * agree / len(tried), "n": len(tried), "verdict": verdict,
            "note": f"{agree} of {len(tried)} printed cells that can be tried come out, in %"}  # fmt: skip


def decide_shorter(test: params.ShorterTest, scale: str) -> dict:
    """A claim that inputs are shorter on every dataset: the difference in pieces, paired by dataset."""
    found = results.read_table(paths.table(scale, test.table))
    wide = found[found["verdict"] != "n/a"].pivot(index="row", columns="column", values="ours")
    if wide.empty:
        return {"note": f"no row of {test.table} can be tried"}
    differences = (wide[test.than] - wide[test.better]).tolist()
    judged = compare.judge_difference([[difference] for difference in differences])
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
    low, high = np.percentile(means, [2.5, 97.5])
    return {
        "effect": float(shares @ values), "ci_low": float(low), "ci_high": float(high), "n": len(found),
        "verdict": compare.judge_interval(low, high),
        "note": f"% of the distinct words of MeSH's terms kept whole, {test.better} against {test.than}",
    }  # fmt: skip


def decide_shares(test: params.SharesTest, scale: str) -> dict:
    """A claim that a way of mixing corpora shows more of the core, and more pairs: it holds when every case does."""
    path = paths.table(scale, "wada-figure-3")
    counts = pd.read_csv(path) if path.exists() else pd.DataFrame()
    if counts.empty:
        return {"note": "the instances have not been counted"}
    wide = counts.pivot(index=["core", "satellite"], columns="method", values=["core share", "distinct pairs"])
    gains = wide.xs("simultaneous", axis=1, level=1) - wide.xs("split files", axis=1, level=1)
    more = (gains > 0).sum()
    note = (
        f"% of core text more, mean of {len(wide)} cases; more core text in {more['core share']}, more distinct pairs "
        f"of documents in {more['distinct pairs']}"
    )
    verdict = "holds" if (gains > 0).all(axis=None) else "fails"
    return {"effect": 100 * gains["core share"].mean(), "n": len(wide), "verdict": verdict, "note": note}


def decide_sizes(test: params.SizesTest, scale: str) -> dict:
    """A claim of numbers of parameters: it holds when each, rounded as printed, comes out."""
    path = paths.table(scale, "parameters")
    if not path.exists():
        return {"note": "the parameters have not been counted"}
    counted = pd.read_csv(path).set_index("model")["counted, millions"]
    right = {
        model: float(f"{counted[model]:.{len(str(printed).rstrip('0'))}g}") == printed
        for model, printed in test.printed.items()
    }
    said = ", ".join(f"{model} {counted[model]:.1f} for {printed}" for model, printed in test.printed.items())
    verdict = "holds" if all(right.values()) else "fails"
    return {"effect": 100 * sum(right.values()) / len(right), "n": len(right), "verdict": verdict,
            "note": f"% that round to the number printed; counted in millions: {said}"}  # fmt: skip


DECIDE = {
    "paired": decide_paired,
    "cells": decide_cells,
    "shorter": decide_shorter,
    "whole": decide_whole,
    "shares": decide_shares,
    "sizes": decide_sizes,
}


def judge(scale: str) -> pd.DataFrame:
    """The scoreboard: every claim of the papers with its test, effect, interval and verdict."""
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
    return pd.DataFrame(lines).round({"effect": 2, "ci_low": 2, "ci_high": 2})


def describe(claims: pd.DataFrame) -> str:
    """The scoreboard in one sentence (Markdown)."""
    counts = claims["verdict"].value_counts()
    names = {"holds": "hold", "fails": "fail", "undecided": "undecided", "n/a": "not measured here (n/a)"}
    said = [f"{counts.get(verdict, 0)} {name}" for verdict, name in names.items()]
    return f"Of {len(claims)} claims in five papers: {', '.join(said)}."
