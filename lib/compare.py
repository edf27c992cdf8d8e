"""Ours beside the papers': tables, verdicts, and the sentences that say what was found."""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from lib import artefacts, corpora, datasets, params, paths, pieces, results
from lib.errors import unknown

RESAMPLES = 10_000


def judge_cell(published: float, ours: list[float]) -> str:
    """`agrees` when the printed value lies in the 95% t-interval of our mean over seeds, else `below` or `above`.

    Fewer than two seeds give no interval: `n/a`.
    """
    if len(ours) < 2 or np.isnan(published):
        return "n/a"
    mean, half = np.mean(ours), stats.t.ppf(0.975, len(ours) - 1) * stats.sem(ours)
    return "agrees" if abs(mean - published) <= half else "below" if mean < published else "above"


def judge_difference(differences: list[list[float]], seed: int = 0) -> dict:
    """Whether `better` beats `than`: the mean paired difference, its 95% bootstrap interval, and the verdict.

    `differences`: for each dataset, one difference a seed. Resampled over datasets, and over seeds within each.
    The claim `holds` when the whole interval is above zero, `fails` when it is below, else it is `undecided`.
    """
    rng = np.random.default_rng(seed)
    means = np.empty((RESAMPLES, len(differences)))
    picks = rng.integers(0, len(differences), means.shape)
    for i, of_dataset in enumerate(differences):
        drawn = rng.integers(0, len(of_dataset), (*means.shape, len(of_dataset)))
        means[picks == i] = np.asarray(of_dataset)[drawn].mean(-1)[picks == i]
    low, high = np.percentile(means.mean(axis=1), [2.5, 97.5])
    return {
        "effect": float(np.mean([np.mean(d) for d in differences])),
        "ci_low": float(low),
        "ci_high": float(high),
        "n": sum(map(len, differences)),
        "verdict": judge_interval(low, high),
    }


def judge_interval(low: float, high: float) -> str:
    """`holds` when a whole interval is above zero, `fails` when it is below, else `undecided`."""
    return "holds" if low > 0 else "fails" if high < 0 else "undecided"


def build_table(key: str, scale: str) -> pd.DataFrame:
    """A published table with our numbers beside it: the columns that only we have, then one line a printed cell.

    `ours` is empty and `note` says why where a cell could not be run.
    """
    table = params.load("tables", key)
    made_up = params.load("scales", scale).made_up
    lines = []
    for column, model in table.ours_only.items():
        for row, dataset in table.rows.items():
            for metric in table.metrics:
                cell = {"value": np.nan, "metric": metric}
                line = {"paper": table.paper, "table": table.table, "row": row, "column": column, "metric": metric}
                lines.append(line | fill_cell(table, scale, made_up, model, dataset, cell, "not in the paper", True))
    for cell in results.read_published(table.paper, table.table).to_dict("records"):
        line = {name: cell[name] for name in ("paper", "table", "row", "column", "metric")}
        line |= {"published": cell["value"], "published_std": cell["std"]}
        why = table.not_run.get(cell["column"]) or table.not_run.get(cell["row"])
        model, dataset = table.columns.get(cell["column"]), table.rows.get(cell["row"])
        lines.append(line | fill_cell(table, scale, made_up, model, dataset, cell, why))
    return pd.DataFrame(lines, columns=results.COLUMNS)


def fill_cell(table, scale, made_up, model, dataset, cell, note=None, run_anyway=False) -> dict:
    """Our part of one line: mean and standard deviation over seeds, verdict and note."""
    empty = {"ours": np.nan, "ours_std": np.nan, "n_seeds": 0, "verdict": "n/a"}
    if note and not run_anyway:
        return empty | {"note": note}
    if model is None or dataset is None:
        return empty | {"note": "no run is assigned to this cell"}
    why_not = datasets.why_not(dataset, scale)
    if why_not:
        return empty | {"note": why_not}
    result = results.read(scale, model, dataset, table.protocol)
    if result is None:
        return empty | {"note": "the run failed or has not been made"}
    values = [scores[table.metrics[cell["metric"]]] for scores in results.by_seed(result).values()]
    return {
        "ours": round(float(np.mean(values)), 2),
        "ours_std": round(float(np.std(values, ddof=1)), 2) if len(values) > 1 else np.nan,
        "n_seeds": len(values),
        "verdict": "n/a" if made_up else judge_cell(cell["value"], values),
        "note": results.MADE_UP if made_up else note or "",
    }


def spread(table: pd.DataFrame, metric: str, decimals: int = 2) -> pd.DataFrame:
    """A table as a person reads it: a row a dataset, the paper's value and ours side by side for each column."""
    rows = table[table["metric"] == metric]
    has_ours = set(rows.loc[rows["ours"].notna(), "column"])
    cells = {}
    for line in rows.to_dict("records"):
        row = cells.setdefault(line["row"], {})
        if not pd.isna(line["published"]):
            row[(line["column"], "paper")] = show_value(line["published"], decimals)
        if line["column"] in has_ours:
            row[(line["column"], "ours")] = show_ours(line, decimals)
    wide = pd.DataFrame.from_dict(cells, orient="index")
    wide.columns = pd.MultiIndex.from_tuples(wide.columns)
    return wide.fillna("")


def show_value(value: float | str, decimals: int = 2) -> str:
    return value if isinstance(value, str) else f"{value:.4f}" if 0 < value < 0.1 else f"{value:.{decimals}f}"


def show_ours(line: dict, decimals: int = 2) -> str:
    if pd.isna(line["ours"]):
        return "n/a"
    return show_value(line["ours"], decimals) + ("" if pd.isna(line["ours_std"]) else f" ± {line['ours_std']:.2f}")


def build_sizes(key: str, scale: str) -> pd.DataFrame:
    """A table of corpus sizes: what our corpora hold, in the paper's units, beside the printed cells."""
    table = params.load("tables", key)
    made_up = params.load("scales", scale).made_up
    lines = []
    for cell in results.read_published(table.paper, table.table).to_dict("records"):
        line = {name: cell[name] for name in ("paper", "table", "row", "column", "metric")}
        line |= {"published": cell["value"], "published_std": np.nan, "ours": np.nan, "ours_std": np.nan}
        line |= {"n_seeds": 0, "verdict": "n/a", "note": table.not_run.get(cell["row"], "")}
        if not line["note"]:
            row, measure = table.rows[cell["row"]], table.columns[cell["column"]]
            line["note"] = corpora.why_not(row.corpus, scale)
            if not line["note"]:
                files = corpora.built(row.corpus, scale)["files"]
                ours = sum(f[measure.of] for f in files if not row.sources or f["source"] in row.sources) / measure.unit
                share = f"a sample, {100 * ours / cell['value']:.2g}% of it"
                line |= {"ours": float(f"{ours:.3g}"), "note": results.MADE_UP if made_up else share}
        lines.append(line)
    return pd.DataFrame(lines, columns=results.COLUMNS)


def raw_to_kept(scale: str) -> pd.DataFrame:
    """Every corpus that is at hand: how many records were read, left out for each reason, and kept."""
    rows = []
    for key in params.keys("corpora"):
        if not corpora.why_not(key, scale):
            record = corpora.built(key, scale)
            rows.append(
                {
                    "corpus": key,
                    **{name: record[name] for name in ("read", *corpora.REASONS, "kept", "words", "unknown headings")},
                }
            )
    return pd.DataFrame(rows)


def describe_sizes(sizes: pd.DataFrame, scale: str) -> str:
    """How large our samples are, in one sentence (Markdown)."""
    at_hand = sizes[sizes["ours"].notna()]
    if params.load("scales", scale).made_up:
        return f"Made-up text stands for {len(at_hand)} of {len(sizes)} printed sizes; its amount means nothing."
    shares = 100 * at_hand["ours"] / at_hand["published"]
    said = f"At scale **{params.load('scales', scale).title}**: {len(at_hand)} of {len(sizes)} printed sizes have a "
    said += "counterpart here" + (f", of {shares.min():.2g}% to {shares.max():.2g}% of it." if len(at_hand) else ".")
    return said


def describe_pieces(branches: pd.DataFrame) -> str:
    """The shortest and the longest way to write each branch's terms, in sentences (Markdown)."""
    lines = []
    for branch, rows in branches.groupby("branch", sort=False):
        best, worst = (rows.loc[getattr(rows["pieces per term"], which)()] for which in ("idxmin", "idxmax"))
        lines.append(
            f"- {branch}: {best['pieces per term']:.2f} pieces a term with {best['vocabulary']}, "
            f"{worst['pieces per term']:.2f} with {worst['vocabulary']} ({best['terms']} terms)."
        )
    return "\n".join(lines)


def describe_cells(table: pd.DataFrame, scale: str) -> str:
    """How many printed cells come out, in one sentence (Markdown)."""
    printed = table[table["published"].notna()]
    tried = printed[printed["verdict"] != "n/a"]
    agree = (tried["verdict"] == "agrees").sum()
    if tried.empty:
        return f"None of the {len(printed)} printed cells can be tried at scale **{scale}**."
    said = f"Of {len(printed)} printed cells {len(tried)} can be tried here, and {agree} come out exactly as printed."
    differ = [f"{line['row']} ({line['column']})" for line in tried[tried["verdict"] == "differs"].to_dict("records")]
    return said + (f" Not reached: {', '.join(differ)}." if differ else "")


def paired_differences(test: params.PairedTest, scale: str) -> dict[str, list[float]]:
    """`better` minus `than`, by dataset and then by seed, over the rows that both have run."""
    table = params.load("tables", test.table)
    models = table.columns | table.ours_only
    for column in (test.better, test.than):
        if column not in models:
            raise unknown(f"column of {test.table} in params/claims.yaml", column, models)
    found = {}
    for row, dataset in table.rows.items():
        if datasets.why_not(dataset, scale):
            continue
        both = [results.read(scale, models[column], dataset, table.protocol) for column in (test.better, test.than)]
        if all(both):
            scores = [{run["seed"]: run["scores"][table.metrics[test.metric]] for run in r["runs"]} for r in both]
            found[row] = [scores[0][seed] - scores[1][seed] for seed in sorted(scores[0].keys() & scores[1].keys())]
    return found


def decide_paired(test: params.PairedTest, scale: str) -> dict:
    """A claim that one model beats another."""
    differences = paired_differences(test, scale)
    if not differences:
        return {"note": f"no dataset has been run for {test.table}"}
    sets = ", ".join(differences)
    note = f"{test.metric} points, one pretraining of each model, {len(differences)} sets: {sets}"
    return judge_difference(list(differences.values())) | {"note": note}


def decide_cells(test: params.CellsTest, scale: str) -> dict:
    """A claim that is a table of pieces: it holds when every printed cell comes out, and fails when one does not."""
    cells = results.read_table(paths.table(scale, test.table))
    tried = cells[cells["published"].notna() & (cells["verdict"] != "n/a")]
    if tried.empty:
        return {"note": f"no cell of {test.table} can be tried"}
    agree = (tried["verdict"] == "agrees").sum()
    verdict = "holds" if agree == len(tried) else "fails"
    return {"effect": 100 * agree / len(tried), "n": len(tried), "verdict": verdict,
            "note": f"{agree} of {len(tried)} printed cells that can be tried come out, in %"}  # fmt: skip


def decide_shorter(test: params.ShorterTest, scale: str) -> dict:
    """A claim that inputs are shorter on every dataset: the difference in pieces, paired by dataset."""
    cells = results.read_table(paths.table(scale, test.table))
    wide = cells[cells["verdict"] != "n/a"].pivot(index="row", columns="column", values="ours")
    if wide.empty:
        return {"note": f"no row of {test.table} can be tried"}
    differences = (wide[test.than] - wide[test.better]).tolist()
    judged = judge_difference([[difference] for difference in differences])
    shorter, rows = sum(d > 0 for d in differences), cells["row"].nunique()
    judged["verdict"] = "fails" if shorter < len(differences) else "holds" if len(wide) == rows else "undecided"
    note = f"pieces saved an input; shorter on {shorter} of the {len(wide)} sets that are whole at hand, of {rows}"
    return judged | {"note": note}


def decide_whole(test: params.WholeTest, scale: str) -> dict:
    """A claim that one vocabulary keeps more medical words whole: the difference in %, resampled over words."""
    found = pieces.whole_words(test.better, test.than, scale)
    values, shares = np.array([-100, 0, 100]), np.array([found.count(v) for v in (-1, 0, 1)]) / len(found)
    # Drawing words with replacement is drawing how many fall into each of the three groups.
    means = np.random.default_rng(0).multinomial(len(found), shares, RESAMPLES) @ values / len(found)
    low, high = np.percentile(means, [2.5, 97.5])
    return {
        "effect": float(shares @ values), "ci_low": float(low), "ci_high": float(high), "n": len(found),
        "verdict": judge_interval(low, high),
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


def decide_audited(test: params.AuditedTest, scale: str) -> dict:
    """A claim that printed numbers follow from printed cells: it holds when each does, rounding allowed."""
    path = paths.table(scale, "audit")
    if not path.exists():
        return {"note": "the printed numbers have not been audited"}
    lines = results.read_table(path)
    lines = lines[(lines["paper"] == test.paper) & lines["kind"].isin(test.lines)]
    follow = (lines["excused_by_rounding"] == "yes").sum()
    averaging = (lines["verdict"] == "averaging").sum()
    note = f"% of {len(lines)} printed numbers that follow, rounding allowed; {len(lines) - follow} do not"
    note += f", which averaging over runs explains in {averaging}" if averaging else ""
    verdict = "holds" if follow == len(lines) else "fails"
    return {"effect": 100 * follow / len(lines), "n": len(lines), "verdict": verdict, "note": note}


DECIDE = {
    "paired": decide_paired,
    "cells": decide_cells,
    "shorter": decide_shorter,
    "whole": decide_whole,
    "shares": decide_shares,
    "sizes": decide_sizes,
    "audited": decide_audited,
}


def judge_claims(scale: str) -> pd.DataFrame:
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


def describe_table(table: pd.DataFrame, metric: str, scale: str) -> str:
    """What the table shows, in sentences made from its numbers (Markdown)."""
    rows = table[table["metric"] == metric]
    ran = rows[rows["ours"].notna()]
    budget = params.load("scales", scale)
    if ran.empty:
        return f"No cell of this table was run at scale **{scale}**."
    printed = rows[rows["published"].notna()]
    covered = printed["ours"].notna().sum()
    lines = [f"Scale **{budget.title}**: {covered} of {len(printed)} printed {metric} cells have a number of "
             f"ours, each a mean over {ran['n_seeds'].min()} seeds."]  # fmt: skip
    if budget.made_up:
        lines.append("**The data are made up**, so no number on this page says anything about the paper.")
    means = {column: ran[ran["column"] == column].set_index("row")["ours"] for column in dict.fromkeys(ran["column"])}
    for column, ours in means.items():
        paper = printed[(printed["column"] == column) & printed["row"].isin(ours.index)]["published"]
        theirs = f"; the paper prints {paper.mean():.2f} on the same sets" if len(paper) else ""
        lines.append(f"{column}: {ours.mean():.2f} on average over {len(ours)} sets{theirs}.")
    columns = list(means)
    for other, base in zip(columns[1:], columns, strict=False):
        difference = (means[other] - means[base]).dropna()
        ahead = (difference > 0).sum()
        lines.append(
            f"{other} against {base}: {difference.mean():+.2f} points on average, "
            f"ahead on {ahead} of {len(difference)} sets."
        )
    return "\n".join(f"- {line}" for line in lines)


def describe_claims(claims: pd.DataFrame) -> str:
    """The scoreboard in one sentence (Markdown)."""
    counts = claims["verdict"].value_counts()
    names = {"holds": "hold", "fails": "fail", "undecided": "undecided", "n/a": "not measured here (n/a)"}
    said = [f"{counts.get(verdict, 0)} {name}" for verdict, name in names.items()]
    return f"Of {len(claims)} claims in five papers: {', '.join(said)}."


def describe_columns(key: str) -> pd.DataFrame:
    """Which model of ours stands for which column of a table, and how it differs from the paper's."""
    table = params.load("tables", key)
    models = {model: params.load("models", model) for model in (table.ours_only | table.columns).values()}
    return pd.DataFrame(
        {"column": column, "ours": model, "pretrained on": ", then ".join(params.list_texts(model)) or "nothing",
         "vocabulary": models[model].vocabulary, "differs from the paper": models[model].differs}
        for column, model in (table.ours_only | table.columns).items()
    )  # fmt: skip


def count_reasons(table: pd.DataFrame) -> pd.DataFrame:
    """How many printed cells have no number of ours, by reason."""
    empty = table[table["ours"].isna() & table["published"].notna()]
    return empty.groupby("note").size().rename("cells").reset_index().rename(columns={"note": "reason"})


def datasets_run(key: str, scale: str) -> list[str]:
    """The datasets of a table that can be run at this scale."""
    return [d for d in params.load("tables", key).rows.values() if not datasets.why_not(d, scale)]


def write_markdown(path: Path, table: pd.DataFrame) -> None:
    """Write a table as Markdown, for readers without the report: one of `spread`, lines of cells, or any other."""
    if table.columns.nlevels > 1:
        table = table.set_axis([f"{column}, {whose}" for column, whose in table.columns], axis=1)
    elif "published" in table:
        table = table[["row", "column", "published", "ours", "verdict", "note"]].set_index("row")
    text = table.astype(object).where(table.notna(), "").to_markdown(disable_numparse=True)
    artefacts.write_text(path, text + "\n")


def write_table(path: Path, rows) -> None:
    """Write rows as CSV, whole or not at all."""
    with artefacts.whole_file(path) as temporary:
        pd.DataFrame(rows).to_csv(temporary, index=False, lineterminator="\n")
