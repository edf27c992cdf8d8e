"""The measurement before it runs: what the scale's panels can say of each claim that they serve, and with what power.

    STUDY_DATA=... python -m benchmarks.design [draws]

For each claim about a recipe whose runs the panels of scale `weekend` have: datasets, pretrainings a side, the paper's
effect on these datasets, and the power: how often the claim would hold if that, one point or four were the truth. By
its own interval, and with the correction for all claims as the first of them (Holm), where it must survive all.
Scatter is that of benchmarks/verdict_rule.py: of recipes as measured three times each at scale gpu-minutes.
Writes outputs/record/benchmarks/design.csv and the tables of docs/measurement.md.
"""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd

from benchmarks import verdict_rule
from lib import statistics
from lib.study import claims, open_study, pairs, params, paths, record, results

SCALE = "weekend"
PAGE = paths.ROOT / "docs" / "measurement.md"
ASSUMED = (1.0, 4.0)  # effects in points, besides the paper's


def list_parts(study) -> list[tuple[str, pairs.Pairs, pd.DataFrame]]:
    """The comparisons of recipes whose two sides the panels have, with their cells: those on two datasets or more, of
    claims of which the panels have every part."""
    runs, every = {*study.budget.panel_runs()}, []
    for claim in claims.CLAIMS:
        parts, found = claim.test.parts, []
        for part in parts:
            if not isinstance(part, pairs.Pairs) or part.unit != "recipe":
                continue
            cells = pairs.find_cells(part, pairs.list_compared_cells(part, study))
            keys = cells[["model", "dataset", "protocol"]].itertuples(index=False, name=None)
            cells = cells[[key in runs for key in keys]]
            cells = cells[cells.groupby("place")["name"].transform("nunique") == len(part.names)]
            if cells["place"].nunique() > 1:
                found.append((claim.key, part, cells))
        every += found if len(found) == len(parts) else []
    return every


def find_power(part: pairs.Pairs, sets: int, pretrainings: int, effect: float, family: int, draws: int) -> list[float]:
    """The shares of draws in which a comparison holds: by its own interval, and as the first of a family of claims."""
    rng, held = np.random.default_rng(0), np.zeros(2)
    spread, seeds = verdict_rule.SPREADS[verdict_rule.MEASURED], verdict_rule.measure_seeds()
    for _ in range(draws):
        sides = verdict_rule.draw(rng, (sets, pretrainings, 1), True, spread, seeds)
        found = statistics.estimate_difference(*(side.tolist() for side in sides), True)
        judged = statistics.judge(replace(found, effect=found.effect + effect), part.relation, part.margin)
        holds = judged["verdict"] == "holds"
        held += holds, holds and judged["p"] * family < statistics.SIGNIFICANT
    return [round(float(share), 2) for share in held / draws]


def tabulate(draws: int) -> pd.DataFrame:
    """A line for each comparison and assumed effect."""
    study, lines = open_study(SCALE), []
    family = sum(map(claims.is_corrected, claims.CLAIMS))
    for key, part, cells in list_parts(study):
        printed = pairs.subtract_printed(part, cells).mean()
        sets, pretrainings = cells["place"].nunique(), study.budget.pretrainings
        for whose, effect in [("the paper's", printed), *(("assumed", one) for one in ASSUMED)]:
            if pd.notna(effect):
                alone, first = find_power(part, sets, pretrainings, effect, family, draws)
                asked = pairs.ASKED[part.relation].format(part.margin)
                lines.append({"claim": key, "asked": asked, "datasets": sets, "pretrainings": pretrainings,
                              "effect": round(effect, 2), "whose": whose, "power": alone,
                              f"power, first of {family}": first})  # fmt: skip
    return pd.DataFrame(lines)


def describe(table: pd.DataFrame) -> str:
    """The design as the page has it: recipes, datasets and budget of the scale, then the power."""
    budget, recipes = params.load("scales", SCALE), []
    for key in budget.models:
        model = params.load("models", key)
        of = f"{budget.pretraining.recipe.tokens * model.share / 1e6:.0f}M"
        recipes.append({"recipe": key, "vocabulary": model.vocabulary, "text": " and ".join(model.corpora),
                        "masked": model.masking, "continues": model.initial or "", "tokens": of,
                        "pretrained": f"{budget.pretrainings} times"})  # fmt: skip
    panels = [{"protocol": panel.protocol, "models": ", ".join(panel.models), "datasets": ", ".join(panel.datasets)}
              for panel in budget.panels]  # fmt: skip
    parts = (pd.DataFrame(recipes), pd.DataFrame(panels), table)
    return "\n\n".join(part.to_markdown(index=False, disable_numparse=True) for part in parts)


def main(draws: int = 4000) -> None:
    table = tabulate(draws)
    results.write_csv(paths.recorded(paths.output("benchmarks", "design.csv")), table)
    record.write_between(PAGE, "design", lambda: describe(table))
    print(table.to_string(index=False))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
