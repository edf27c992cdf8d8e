"""How often the rule for claims errs: simulated scores through lib/statistics.py, of no effect and of some.

    python -m benchmarks.verdict_rule [draws] [processes]

Each draw has the scores of two sides on so many datasets, pretrainings and seeds, and goes through estimate_difference,
judge and limit. What scatters: the effect from dataset to dataset and the sample of each test set, both for all runs of
a side alike; of a recipe, each pretraining on all datasets and on each; and seeds, by as much as each dataset has in
the record. Of a "checkpoint by documents" how far the sample of each test set scatters is estimated besides, as by a
jackknife over groups of documents. With no effect *holds* and *fails* are both wrong: for "as good as" and "equals"
that is an effect that lies on the margin. An effect moves an estimate and leaves its error as it is, so one draw serves
all effects.
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
    """Standard deviations in points; that of seeds is read from the record. Pretraining's are assumed, or each side has
    those of a recipe of the record that was pretrained three times."""

    sets: float = 1.5  # the median over pairs of models in the record on three sets or more
    heavy: bool = False  # effects on sets with the tails of t with 3 degrees of freedom
    sample: float = 0.7
    pretraining: float = 0.5
    pretraining_by_set: float = 0.5
    other: float = 1.0  # of the seeds of the one side: those of the other, as a share of it
    recipes: bool = False  # by side those of a recipe of gpu-minutes, in place of pretraining's and of seeds'


MEASURED = "pretraining as measured"
SPREADS = {
    "as measured": Spread(),
    "pretraining twice": Spread(pretraining=1.0, pretraining_by_set=1.0),
    "sets alike": Spread(sets=0.0),
    "heavy tails": Spread(sets=3.0, heavy=True),
    "sides unalike": Spread(other=0.3),
    MEASURED: Spread(recipes=True),
}


def measure_seeds() -> np.ndarray:
    """How far seeds scatter: of each dataset of the record the median over models, of the score that ranks them."""
    runs = results.read_table(paths.recorded(paths.output("laptop", "results.csv")))
    each = runs.groupby(["dataset", "model", "protocol", "score name"])["score"].std().dropna()
    return each.groupby("dataset").median().to_numpy()


@cache
def measure_pretrainings() -> np.ndarray:
    """How far the pretrainings of a recipe scatter, a line each: on all datasets alike, and on each by itself, which
    holds one seed of fine-tuning. Of the record of gpu-minutes, three pretrainings of each on three sets of entities,
    by an analysis of variance of two ways; each is an estimate with few degrees of freedom."""
    runs = results.read_table(paths.recorded(paths.output("gpu-minutes", "results.csv")))
    names = runs["model"].map(params.split_seed)
    runs = runs.assign(recipe=names.str[0], pretraining=names.str[1])
    found = []
    for _, own in runs.groupby("recipe"):
        wide = own.pivot_table(index="pretraining", columns="dataset", values="score")
        means = wide.mean(axis=1)
        beside = wide.sub(means, axis=0)
        by_set = ((beside - beside.mean()) ** 2).to_numpy().sum() / ((len(wide) - 1) * (wide.shape[1] - 1))
        found.append([max(0.0, means.var() - by_set / wide.shape[1]), by_set])
    return np.sqrt(found)


def draw(rng, shape: tuple[int, int, int], recipe: bool, spread: Spread, seeds: np.ndarray) -> list[np.ndarray]:
    """The scores of two sides that differ by nothing on the mean: datasets, pretrainings, seeds."""
    sets, pretrainings, _ = shape
    of_sets = spread.sets * (rng.standard_t(3, sets) if spread.heavy else rng.standard_normal(sets))
    if sets < statistics.SETS:  # the verdict speaks of these sets
        of_sets -= of_sets.mean()
    shift, noise = of_sets + spread.sample * rng.standard_normal(sets), rng.choice(seeds, sets)
    if spread.recipes:
        noise[:] = 0  # what was measured on each dataset holds a seed
    sides = []
    for added, share in ((shift, 1.0), (0 * shift, spread.other)):
        scores = added[:, None, None] + share * noise[:, None, None] * rng.standard_normal(shape)
        if recipe:
            of_all, of_each = spread.pretraining, spread.pretraining_by_set
            if spread.recipes:
                of_all, of_each = rng.choice(measure_pretrainings())
            scores += of_all * rng.standard_normal(pretrainings)[None, :, None]
            scores += of_each * rng.standard_normal((sets, pretrainings, 1))
        sides.append(scores)
    return sides


def draw_samples(rng, sets: int, spread: Spread) -> statistics.Samples:
    """What a jackknife finds of the samples of test documents: by dataset a variance, and its degrees of freedom."""
    freedom = jackknife.GROUPS - 1
    return [(variance, freedom) for variance in spread.sample**2 * rng.chisquare(freedom, sets) / freedom]


def simulate(setting: tuple, draws: int, seeds: np.ndarray) -> list[dict]:
    """A line for each effect of one setting: the shares of verdicts over so many draws."""
    unit, name, sets, pretrainings, runs, effects = setting
    rng = np.random.default_rng(0)
    counts = {asked: Counter() for asked in effects}
    for _ in range(draws):
        sides = draw(rng, (sets, pretrainings, runs), unit == "recipe", SPREADS[name], seeds)
        samples = draw_samples(rng, sets, SPREADS[name]) if unit == BY_DOCUMENTS else []
        found = statistics.estimate_difference(*(side.tolist() for side in sides), unit == "recipe", samples)
        for relation, effect in effects:
            moved = replace(found, effect=found.effect + effect)
            verdict = statistics.judge(moved, relation, 0.0 if relation == "beats" else MARGIN)["verdict"]
            counts[relation, effect][statistics.limit(verdict, unit == "recipe", pretrainings)] += 1
    lines = []
    for (relation, effect), counted in counts.items():
        line = {"unit": unit, "spread": name, "relation": relation, "sets": sets, "pretrainings": pretrainings}
        points = sum(counted[word] for word in statistics.POINTS.values())
        shares = {"share_holds": counted["holds"], "share_fails": counted["fails"], "share_points": points}
        line |= {"seeds": runs, "effect": effect, "draws": draws}
        lines.append(line | {share: round(number / draws, 4) for share, number in shares.items()})
    return lines


def list_settings() -> list[tuple]:
    """No effect on every number of datasets, pretrainings and seeds; effects, and other spreads, at three seeds.

    By documents only where that makes a difference; pretraining as measured with one seed, which that holds.
    """
    found = []
    units = "checkpoint", BY_DOCUMENTS, "recipe"
    for unit, name, sets, pretrainings, runs in product(units, SPREADS, SETS, PRETRAININGS, SEEDS):
        if unit == BY_DOCUMENTS and (sets >= statistics.SETS or runs < statistics.SEEDS):
            continue
        if name == MEASURED and unit != "recipe":
            continue
        wanted = runs == 1 if name == MEASURED else runs == 3 or name == "as measured"
        if (unit == "recipe" or pretrainings == 1) and wanted:
            effects = NO_EFFECT + EFFECTS * (runs == 3 and name == "as measured")
            found.append((unit, name, sets, pretrainings, runs, effects))
    return found


def main(draws: int = 10_000, processes: int = 1) -> None:
    settings = list_settings()
    with Pool(processes) as pool:
        found = pool.imap(partial(simulate, draws=draws, seeds=measure_seeds()), settings)
        lines = [line for part in found for line in part]
    table = pd.DataFrame(lines)
    results.write_csv(paths.recorded(paths.output("benchmarks", "verdict-rule.csv")), table)
    none = table[[(line.relation, line.effect) in NO_EFFECT for line in table.itertuples()]]
    wrong = (none["share_holds"] + none["share_fails"]).max()
    print(f"no effect, {len(none)} settings: at most {wrong:.2%} hold or fail")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
