"""How often the rule for claims errs: simulated scores through lib/statistics.py, without an effect and with one.

    python -m benchmarks.verdict_rule [draws] [processes]

Each draw simulates the scores of two sides on some number of datasets, pretrainings and seeds, and passes them through
estimate_difference, judge and limit. Scores scatter by dataset (the effect, and the sample of each test set; both are
common to all runs of a side), by pretraining for a recipe (over all datasets, and on each), and by seed, as much as on
the datasets of the record. For a "checkpoint by documents", the variance from the sample of each test set is estimated
too, as by a jackknife over groups of documents.

Without an effect, *holds* and *fails* are both wrong; for "as good as" and "equals", no effect is one that lies on the
margin. An effect shifts an estimate and leaves its error unchanged, so one draw serves all effects.
Writes outputs/record/benchmarks/verdict-rule.csv.
"""

import sys
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from multiprocessing import Pool

import numpy as np
import pandas as pd

from lib import statistics
from lib.benchmarks import jackknife
from lib.study import params, paths, results

MARGIN = 1.0
NO_EFFECT = [("beats", 0.0), ("as good as", -MARGIN), ("equals", MARGIN)]
EFFECTS = [("beats", 1.0), ("beats", 2.0), ("beats", 4.0), ("as good as", 0.0), ("equals", 0.0)]
BY_DOCUMENTS = "checkpoint by documents"
SETS, PRETRAININGS, SEEDS = range(1, 14), range(1, 6), range(1, 6)


@dataclass(frozen=True)
class Spread:
    """Standard deviations in points. That of seeds is read from the record.

    Those of pretraining are assumed, or each side has those of a recipe that was pretrained three times.
    """

    sets: float = 1.5  # the median over pairs of models that the record has on three sets or more
    heavy: bool = False  # effects on sets follow t with 3 degrees of freedom
    sample: float = 0.7
    pretraining: float = 0.5
    pretraining_by_set: float = 0.5
    other: float = 1.0  # spread of the other side's seeds, as a share of the first side's
    recipes: bool = False  # each side scatters like a measured recipe, which replaces pretraining's and seeds'


MEASURED = "pretraining as measured"
SPREADS = {
    "as measured": Spread(),
    "pretraining doubled": Spread(pretraining=1.0, pretraining_by_set=1.0),
    "same effect everywhere": Spread(sets=0.0),
    "heavy tails": Spread(sets=3.0, heavy=True),
    "unequal variances": Spread(other=0.3),
    MEASURED: Spread(recipes=True),
}


def measure_seeds() -> np.ndarray:
    """Return the standard deviation over seeds on each dataset of the record.

    It is the median over models and protocols, in the score that ranks models.
    """
    runs = results.read_table(paths.recorded(paths.output("laptop", "results.csv")))
    each = runs.groupby(["dataset", "model", "protocol", "score name"])["score"].std().dropna()
    return each.groupby("dataset").median().to_numpy()


@cache
def measure_pretrainings() -> np.ndarray:
    """Return two standard deviations over the pretrainings of each recipe: common to all datasets, and on each dataset.

    The second includes the scatter of one fine-tuning seed. Both come from a two-way analysis of variance of an earlier
    measurement (docs/measurement.md), three pretrainings of each recipe on three NER datasets; each has few degrees of
    freedom.
    """
    runs = results.read_table(paths.recorded(paths.output("benchmarks", "pretraining-spread.csv")))
    names = runs["model"].map(params.split_seed)
    runs = runs.assign(recipe=names.str[0], pretraining=names.str[1])
    variances = []
    for _, recipe_runs in runs.groupby("recipe"):
        scores = recipe_runs.pivot_table(index="pretraining", columns="dataset", values="score")
        means = scores.mean(axis=1)
        deviations = scores.sub(means, axis=0)
        by_set = ((deviations - deviations.mean()) ** 2).to_numpy().sum() / ((len(scores) - 1) * (scores.shape[1] - 1))
        variances.append([max(0.0, means.var() - by_set / scores.shape[1]), by_set])
    return np.sqrt(variances)


def draw(rng, shape: tuple[int, int, int], recipe: bool, spread: Spread, seeds: np.ndarray) -> list[np.ndarray]:
    """Draw two sides' scores without a mean difference, shaped (datasets, pretrainings, seeds)."""
    sets, pretrainings, _ = shape
    set_effects = spread.sets * (rng.standard_t(3, sets) if spread.heavy else rng.standard_normal(sets))
    if sets < statistics.SETS:  # the verdict is about these sets only, so their mean effect must be 0
        set_effects -= set_effects.mean()
    shift, noise = set_effects + spread.sample * rng.standard_normal(sets), rng.choice(seeds, sets)
    if spread.recipes:
        noise[:] = 0  # the measured deviation on each dataset includes that of a seed
    sides = []
    for effects, share in ((shift, 1.0), (0 * shift, spread.other)):
        scores = effects[:, None, None] + share * noise[:, None, None] * rng.standard_normal(shape)
        if recipe:
            common_spread, set_spread = spread.pretraining, spread.pretraining_by_set
            if spread.recipes:
                common_spread, set_spread = rng.choice(measure_pretrainings())
            scores += common_spread * rng.standard_normal(pretrainings)[None, :, None]
            scores += set_spread * rng.standard_normal((sets, pretrainings, 1))
        sides.append(scores)
    return sides


def draw_samples(rng, sets: int, spread: Spread) -> statistics.Samples:
    """Draw each dataset's jackknife variance over samples of test documents, with its degrees of freedom."""
    freedom = jackknife.GROUPS - 1
    return [(variance, freedom) for variance in spread.sample**2 * rng.chisquare(freedom, sets) / freedom]


def simulate(setting: tuple, draws: int, seeds: np.ndarray) -> list[dict]:
    """Return a row for each effect of one setting: the shares of verdicts over all draws."""
    unit, name, sets, pretrainings, runs, effects = setting
    rng = np.random.default_rng(0)
    counts = {hypothesis: Counter() for hypothesis in effects}
    for _ in range(draws):
        sides = draw(rng, (sets, pretrainings, runs), unit == "recipe", SPREADS[name], seeds)
        samples = draw_samples(rng, sets, SPREADS[name]) if unit == BY_DOCUMENTS else []
        estimate = statistics.estimate_difference(*(side.tolist() for side in sides), unit == "recipe", samples)
        for relation, effect in effects:
            shifted = replace(estimate, effect=estimate.effect + effect)
            verdict = statistics.judge(shifted, relation, 0.0 if relation == "beats" else MARGIN)["verdict"]
            counts[relation, effect][statistics.limit(verdict, unit == "recipe", pretrainings)] += 1
    rows = []
    for (relation, effect), verdicts in counts.items():
        row = {"unit": unit, "spread": name, "relation": relation, "sets": sets, "pretrainings": pretrainings}
        points = sum(verdicts[word] for word in statistics.POINTS.values())
        shares = {"share_holds": verdicts["holds"], "share_fails": verdicts["fails"], "share_points": points}
        row |= {"seeds": runs, "effect": effect, "draws": draws}
        rows.append(row | {share: round(number / draws, 4) for share, number in shares.items()})
    return rows


def list_settings() -> list[tuple]:
    """List the settings to simulate.

    The spread "as measured" has every number of datasets, pretrainings and seeds without an effect, and three seeds
    with one. Other spreads have no effect and three seeds; pretraining as measured has one seed, which its spread
    includes. "By documents" is left out where it changes nothing.
    """
    settings = []
    units = "checkpoint", BY_DOCUMENTS, "recipe"
    for unit, name, sets, pretrainings, runs in product(units, SPREADS, SETS, PRETRAININGS, SEEDS):
        if unit == BY_DOCUMENTS and (sets >= statistics.SETS or runs < statistics.SEEDS):
            continue
        if name == MEASURED and unit != "recipe":
            continue
        is_simulated = runs == 1 if name == MEASURED else runs == 3 or name == "as measured"
        if (unit == "recipe" or pretrainings == 1) and is_simulated:
            effects = NO_EFFECT + EFFECTS * (runs == 3 and name == "as measured")
            settings.append((unit, name, sets, pretrainings, runs, effects))
    return settings


def main(draws: int = 10_000, processes: int = 1) -> None:
    settings = list_settings()
    with Pool(processes) as pool:
        results_by_setting = pool.imap(partial(simulate, draws=draws, seeds=measure_seeds()), settings)
        rows = [row for setting_rows in results_by_setting for row in setting_rows]
    table = pd.DataFrame(rows)
    results.write_csv(paths.recorded(paths.output("benchmarks", "verdict-rule.csv")), table)
    no_effect = table[[(row.relation, row.effect) in NO_EFFECT for row in table.itertuples()]]
    worst_share = (no_effect["share_holds"] + no_effect["share_fails"]).max()
    print(f"no effect, {len(no_effect)} settings: at most {worst_share:.2%} hold or fail")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
