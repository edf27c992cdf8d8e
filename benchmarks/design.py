"""The measurement before it runs: which claims the scale's panels can test, and with what power.

    STUDY_DATA=... python -m benchmarks.design [draws]

Lists each claim about recipes whose runs the panels of scale `weekend` include, with its datasets, its pretrainings per
side and the paper's effect on these datasets. Power is how often the claim would hold if the true effect were the
paper's, one point or four points: by its own interval, and as the first claim of Holm's correction, where it must
survive the correction for all claims. Scores scatter as in benchmarks/verdict_rule.py: as measured on recipes that were
pretrained three times each (outputs/record/benchmarks/pretraining-spread.csv).

Writes outputs/record/benchmarks/design.csv and the tables of docs/measurement.md.
"""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd

from benchmarks import verdict_rule
from lib import statistics
from lib.running import record
from lib.study import claims, open_study, pairs, params, paths, results

SCALE = "weekend"
PAGE = paths.ROOT / "docs" / "measurement.md"
ASSUMED = (1.0, 4.0)  # effects in points, besides the paper's


def list_parts(study) -> list[tuple[str, pairs.Pairs, pd.DataFrame]]:
    """List the recipe comparisons that the panels include on two or more datasets, with claim key and cells.

    A claim is left out unless the panels include all its parts.
    """
    runs, comparisons = {*study.budget.panel_runs()}, []
    for claim in claims.CLAIMS:
        parts, covered = claim.test.parts, []
        for part in parts:
            if not isinstance(part, pairs.Pairs) or part.unit != "recipe":
                continue
            cells = pairs.find_cells(part, pairs.list_compared_cells(part, study))
            keys = cells[["model", "dataset", "protocol"]].itertuples(index=False, name=None)
            cells = cells[[key in runs for key in keys]]
            cells = cells[cells.groupby("place")["name"].transform("nunique") == len(part.names)]
            if cells["place"].nunique() > 1:
                covered.append((claim.key, part, cells))
        comparisons += covered if len(covered) == len(parts) else []
    return comparisons


def find_power(part: pairs.Pairs, sets: int, pretrainings: int, effect: float, family: int, draws: int) -> list[float]:
    """Return how often a comparison holds over draws: by its own interval, and as the first of `family` claims."""
    rng, counts = np.random.default_rng(0), np.zeros(2)
    spread, seeds = verdict_rule.SPREADS[verdict_rule.MEASURED], verdict_rule.measure_seeds()
    for _ in range(draws):
        sides = verdict_rule.draw(rng, (sets, pretrainings, 1), True, spread, seeds)
        estimate = statistics.estimate_difference(*(side.tolist() for side in sides), True)
        judgement = statistics.judge(replace(estimate, effect=estimate.effect + effect), part.relation, part.margin)
        holds = judgement["verdict"] == "holds"
        counts += holds, holds and judgement["p"] * family < statistics.SIGNIFICANT
    return [round(float(share), 2) for share in counts / draws]


def tabulate(draws: int) -> pd.DataFrame:
    """Return a row for each comparison and assumed effect."""
    study, rows = open_study(SCALE), []
    family = sum(claim.test.by_interval for claim in claims.CLAIMS)
    for key, part, cells in list_parts(study):
        printed = pairs.subtract_printed(part, cells).mean()
        dataset_count, pretrainings = cells["place"].nunique(), study.budget.pretrainings
        for source, effect in [("the paper's", printed), *(("assumed", points) for points in ASSUMED)]:
            if pd.notna(effect):
                power_alone, power_first = find_power(part, dataset_count, pretrainings, effect, family, draws)
                relation = pairs.ASKED[part.relation].format(part.margin)
                sides = " against ".join(part.names)
                rows.append({"claim": key, "sides": sides, "asked": relation, "datasets": dataset_count,
                             "pretrainings": pretrainings, "effect": round(effect, 2), "whose": source,
                             "power": power_alone, f"power, first of {family}": power_first})  # fmt: skip
    return pd.DataFrame(rows)


def describe(table: pd.DataFrame) -> str:
    """Return the page's Markdown: the scale's recipes and panels, then the power of each comparison."""
    budget, recipes = params.load("scales", SCALE), []
    for key in budget.models:
        model = params.load("models", key)
        tokens = f"{budget.pretraining.recipe.tokens * model.share / 1e6:.0f}M"
        recipes.append({"recipe": key, "vocabulary": model.vocabulary, "text": " and ".join(model.corpora),
                        "masked": model.masking, "continues": model.initial or "", "tokens": tokens,
                        "pretrained": f"{budget.pretrainings} times"})  # fmt: skip
    panels = [{"protocol": panel.protocol, "models": ", ".join(panel.models), "datasets": ", ".join(panel.datasets)}
              for panel in budget.panels]  # fmt: skip
    frames = (pd.DataFrame(recipes), pd.DataFrame(panels), table)
    return "\n\n".join(frame.to_markdown(index=False, disable_numparse=True) for frame in frames)


def main(draws: int = 4000) -> None:
    table = tabulate(draws)
    results.write_csv(paths.recorded(paths.output("benchmarks", "design.csv")), table)
    record.write_between(PAGE, "design", lambda: describe(table))
    print(table.to_string(index=False))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
