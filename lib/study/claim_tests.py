"""Tests of claims that compare no table of scores: counts, timings, recomputed numbers, and tests of a single claim."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lib import statistics
from lib.benchmarks.definitions import ENTITIES, WORD_ACCURACY, WORDS
from lib.study import params, paths, published, results, tables
from lib.study.verdicts import About, Judgement, Test, decide_all
from lib.vocabularies.words import WORD, count_by_word

if TYPE_CHECKING:
    from lib.study import Study

SIZES = {"albert-base": 12, "albert-large": 18, "bioalbert-large1": 16, "bert-uncased": 110}  # millions, as printed
CUT = "bert-cased", "pubmedbert-uncased"  # the vocabularies of BioBERT and PubMedBERT, as published
WHOLE = "focused-other-amplified", "focused-other-uncased"  # the better vocabulary by the claim, and the other


def by_table(
    name: str,
    decide: Callable[[pd.DataFrame], Judgement],
    missing: str = "",
    about: About = "text",
    by_interval: bool = False,
) -> Test:
    """Build a test of one of our tables. `missing`: the note if it has not been made."""

    def decide_by_table(study: "Study") -> Judgement:
        table = study.find_table(name)
        if table is None or table.empty:
            return Judgement(note=missing or f"{name} not made yet")
        return decide(table)

    return Test(decide_by_table, tables=(name,), about=about, by_interval=by_interval)


def decide_whole_terms(cells: pd.DataFrame) -> Judgement:
    """Judge whether every printed cell of PubMedBERT's table of terms is reproduced, among those that can be tested."""
    testable = cells[cells["published"].notna() & (cells["verdict"] != "n/a")]
    if testable.empty:
        return Judgement(note="no cell of gu-1 can be tested")
    agree = (testable["verdict"] == "agrees").sum()
    note = f"% of printed cells reproduced, {agree} of the {len(testable)} that can be tested"
    return decide_share(agree, len(testable), agree == len(testable), note)


def decide_share(part: int, of: int, holds: bool, note: str) -> Judgement:
    """Judge a claim about an exact count, without an interval; the effect is a share in %."""
    return Judgement(effect=100 * part / of, n=int(of), verdict="holds" if holds else "fails", note=note)


def follows(paper: str, *kinds: str) -> Test:
    """Build the test that a paper's derived numbers follow from its printed cells, allowing for rounding.

    `kinds`: the kinds of audit lines that the claim is about.
    """

    def decide(lines: pd.DataFrame) -> Judgement:
        lines = lines[(lines["paper"] == paper) & lines["kind"].isin(kinds)]
        follow = (lines["excused_by_rounding"] == "yes").sum()
        averaging = (lines["verdict"] == "averaging").sum()
        note = f"% of {len(lines)} printed numbers that follow, allowing for rounding; {len(lines) - follow} do not"
        note += f"; averaging over runs explains {averaging}" if averaging else ""
        return decide_share(follow, len(lines), follow == len(lines), note)

    return by_table("audit", decide, about="arithmetic")


def faster(table: str, models: list[str], than: str, ratio=1.0, margin=0.0) -> Test:
    """Build the test that each of `models` is `ratio` times as fast as `than`, by a table of paired timings.

    The ratio, a median over repetitions, has to be exceeded or, with a margin, met within it, by all models.
    """
    missing = "models not timed yet"

    def decide(times: pd.DataFrame) -> Judgement:
        if not {*models, than} <= set(times["model"]):
            return Judgement(note=missing)
        wide = times.pivot(index="repetition", columns="model", values="seconds")
        repetitions = len(wide)
        judgements = []
        speeds = []
        for model in models:
            ratios = wide[than] / wide[model]
            judged = statistics.judge_median(ratios.tolist(), ratio, margin)
            judgement = Judgement(**judged, n=repetitions)
            judgements.append(judgement)
            speeds.append(f"{model} {judgement.effect:.2f}")
        condition = f"within {margin:g} of {ratio:g}" if margin else f"above {ratio:g}"
        device = times["device"].iloc[0]
        basis = f"medians of {repetitions} paired repetitions, {device}"
        note = f"speed, {than} being 1; tested: {condition}; {', '.join(speeds)}; {basis}"
        decisive = decide_all(judgements)
        return replace(decisive, note=note)

    return by_table(table, decide, missing, by_interval=True)


def decide_shorter_inputs(lengths: pd.DataFrame) -> Judgement:
    """Judge whether inputs are shorter with PubMed's vocabulary on every dataset, by paired differences in tokens."""
    wide = lengths[lengths["verdict"] != "n/a"].pivot(index="row", columns="column", values="ours")
    if wide.empty:
        return Judgement(note="no row of gu-8 can be tested")
    differences = (wide["Wiki+Books vocab"] - wide["PubMed vocab"]).tolist()
    judged = statistics.judge(statistics.estimate_mean(differences)) | {"n": len(differences)}
    del judged["p"]  # the verdict rests on every dataset, not on the mean
    shorter, n_datasets = sum(d > 0 for d in differences), lengths["row"].nunique()
    if shorter < len(differences):
        judged["verdict"] = "fails"
    else:
        judged["verdict"] = "holds" if len(wide) == n_datasets else "undecided"
    note = f"tokens saved per input; shorter on {shorter} of the {len(wide)} datasets we have in full, of {n_datasets}"
    return Judgement(**judged, note=note)


def decide_whole_words(study: "Study") -> Judgement:
    """Judge whether an amplified vocabulary keeps more medical words whole.

    The effect is the difference in % of the distinct words of MeSH's terms; its interval is over words.
    """
    names = (name for branch in study.mesh.names_by_branch().values() for name in branch)
    words = sorted({word for name in names for word in WORD.findall(name)})
    if not words:
        return Judgement(note="no tables of MeSH at hand")
    if unbuilt := [key for key in WHOLE if not paths.find(study.vocabulary(key).folder).is_dir()]:
        return Judgement(note=f"vocabulary '{unbuilt[0]}' not built yet")
    better, than = WHOLE
    whole, other_whole = (np.array(count_by_word(study.vocabulary(key).tokenizer(), words)) == 1 for key in WHOLE)
    differences = 100 * (whole.astype(int) - other_whole)  # 100 or -100 for a word that only one of them keeps whole
    judged = statistics.judge(statistics.estimate_mean(differences.tolist()))
    note = f"% more of the distinct words of MeSH's terms kept whole, {better} against {than}"
    return Judgement(**judged, n=len(differences), note=note)


def decide_core_share(counts: pd.DataFrame) -> Judgement:
    """Judge whether simultaneous pretraining reads more of the core than split files do, in every case.

    Both the share of core text and the number of distinct pairs of documents have to be larger.
    """
    wide = counts.pivot(index=["core", "satellite"], columns="method", values=["core share", "distinct pairs"])
    gains = wide.xs("simultaneous", axis=1, level=1) - wide.xs("split files", axis=1, level=1)
    note = f"percentage points more core text, mean of {len(wide)} cases"
    for measure, wording in (("core share", "more core text"), ("distinct pairs", "more distinct document pairs")):
        cores = [core for core, _ in gains.index[gains[measure] <= 0]]
        note += f"; {wording} in {len(wide) - len(cores)}"
        if cores:
            note += f", not with core {', '.join(cores)}"
    verdict = "holds" if (gains > 0).all(axis=None) else "fails"
    return Judgement(effect=100 * gains["core share"].mean(), n=len(wide), verdict=verdict, note=note)


def decide_sizes(parameters: pd.DataFrame) -> Judgement:
    """Judge whether models built as described have the printed numbers of parameters, rounded to the printed digits."""
    counts = parameters.set_index("model")["counted, millions"]
    correct, sizes = 0, []
    for model, printed in SIZES.items():
        digits = len(str(printed).rstrip("0"))
        correct += float(f"{counts[model]:.{digits}g}") == printed
        sizes.append(f"{model} {counts[model]:.1f} (printed {printed})")
    note = f"% of sizes that round to the printed one, in millions: {', '.join(sizes)}"
    return decide_share(correct, len(SIZES), correct == len(SIZES), note)


NOT_COMPARED = "vocabularies not compared yet"


def count_shattered(table: pd.DataFrame) -> pd.DataFrame:
    """Count, for each example of attention, the printed words that each vocabulary splits or does not know."""
    rows = []
    words = table[table["word"].notna()].drop_duplicates(["example", "vocabulary", "place"])
    printed = words[words["printed"].eq(True)]
    for (example, vocabulary), group in printed.groupby(["example", "vocabulary"], sort=False):
        cut = group[(group["count"] > 1) | (group["tokens"] == "[UNK]")]
        rows.append({"example": example, "vocabulary": vocabulary, "printed words": len(group), "cut": len(cut),
                     "in tokens": ", ".join(cut["tokens"])})  # fmt: skip
    return pd.DataFrame(rows, columns=["example", "vocabulary", "printed words", "cut", "in tokens"])


def decide_shattered(table: pd.DataFrame) -> Judgement:
    """Judge whether BERT's vocabulary splits more printed words than PubMedBERT's in each example of attention."""
    than, better = CUT
    counts = count_shattered(table)
    compared = counts[counts["vocabulary"].isin(CUT)]
    if compared["vocabulary"].nunique() < 2:
        return Judgement(note=NOT_COMPARED)
    cut = compared.pivot(index="example", columns="vocabulary", values="cut")
    words = compared.drop_duplicates("example")["printed words"].sum()
    fewer = cut[than] - cut[better]
    note = (
        f"% of {words} printed words, of which {than} splits {cut[than].sum()} and {better} {cut[better].sum()}; fewer "
        f"in {(fewer > 0).sum()} of {len(cut)} examples"
    )
    return decide_share(fewer.sum(), words, (fewer > 0).all(), note)


# On runs that always answer yes: the table of their models, the scores that show it, and the share of such runs in
# section 3.3.
ANSWERS, RECALLS, PRINTED = "ozyurt-3", ["recall (yes)", "recall (no)"], 2 / 40


def decide_one_class(study: "Study") -> Judgement:
    """Judge whether some runs of a model, but not all, answer yes to every question.

    The rule was set before any result. Such a run finds every yes and no no. The claim `holds` if some but not all runs
    of a model are such, since a model that never says no has learnt nothing. It `fails` if the exact 95% interval of
    their share lies below the paper's share, and is `undecided` otherwise.
    """
    from scipy import stats  # here, because importing it takes most of a second

    cells = study.published(ANSWERS)
    run_keys = cells.loc[cells["score"].isin(RECALLS), tables.RUN].drop_duplicates()
    runs = study.results().merge(run_keys, on=tables.RUN)
    if runs.empty:
        return Judgement(note=f"no run of {ANSWERS} yet")
    recalls = runs.pivot(index=["model", *tables.SEED, "fold"], columns="score", values="value")
    always = recalls[RECALLS].eq([100, 0]).all(axis=1)
    by_model = always.groupby("model").agg(["sum", "size"])
    share = always.mean()
    interval = stats.binomtest(int(always.sum()), len(always)).proportion_ci()
    shares = ", ".join(f"{model} {row['sum']} of {row['size']}" for model, row in by_model.iterrows())
    if by_model["sum"].between(1, by_model["size"] - 1).any():
        verdict = "holds"
    else:
        verdict = "fails" if interval.high < PRINTED else "undecided"
    return Judgement(
        effect=100 * share, ci_low=100 * interval.low, ci_high=100 * interval.high, n=len(always), n_sets=1,
        n_pretrainings=1, n_seeds=int(by_model["size"].min()), verdict=verdict,
        note=f"% of runs that answer yes to every question: {shares}",
    )  # fmt: skip


# On the gain in NER: the table, whose rows are datasets, its column of the model, and the column it is compared with.
TABLE, COLUMN, OVER = "naseem-7", "Base1", "SOTA"
OURS = params.Run(model="bioalbert-base1", protocol="naseem")
MARGIN = 1.0  # points


def decide_entity_gain(study: "Study") -> Judgement:
    """Judge the printed gain of NER over the state of the art; the paper does not say what its scores count.

    The rule was set before any result. At a scale that trains models as published, the effect is our entity F1 minus
    the model's printed score, by dataset and seed. The claim `holds` if the whole interval lies above minus the margin,
    `fails` if it lies below, and is `undecided` otherwise. At other scales the models are too small to compare with a
    printed score, so the claim is `undecided`. The effect is then what another definition adds to the same predictions:
    word accuracy minus entity F1, in points, with the error over datasets. Predictions of other models are not used.
    """
    run, compared = published.substitute_run(study, OURS), study.find_table("protocols")
    not_scored = Judgement(note=f"no entities scored yet of {run.model} under {run.protocol}")
    if compared is None:
        return not_scored
    in_table = compared["dataset"].isin(row.dataset for row in params.load("tables", TABLE).rows.values())
    scored = (compared["kind"] == "metric") & (compared["first"] == ENTITIES) & (compared["n"] > 0)
    lines = compared[scored & in_table & (compared["model"] == run.model) & (compared["protocol"] == run.protocol)]
    if lines.empty:
        return not_scored
    by_definition = dict(list(lines.groupby("second")))
    gaps = {name: judge_by_set(list_differences(group)) for name, group in by_definition.items()}
    without_o, with_o, entities = gaps[WORDS], gaps[WORD_ACCURACY], by_definition[WORD_ACCURACY]
    note = (
        f"{run.model} under {run.protocol} on {', '.join(entities['dataset'])}: "
        f"entity F1 {entities['first_value'].mean():.2f}; word F1 {without_o.effect:+.2f} "
        f"({without_o.ci_low:+.2f} to {without_o.ci_high:+.2f}), word accuracy {with_o.effect:+.2f}"
    )
    if study.budget.pretraining.recipe is None:
        return hold_against_print(entities, note)
    with_o = replace(with_o, verdict="undecided", p=np.nan)  # p belongs to the verdict replaced here
    return replace(with_o, note=f"{note}, which is the effect; not the paper's size of model")


def list_differences(lines: pd.DataFrame) -> list[list[float]]:
    """Return the second minus the first values by seed, a list for each line of tables/protocols.csv."""
    differences = []
    for first, second in zip(lines["first_by_seed"], lines["second_by_seed"], strict=True):
        pairs = zip(read_seeds(first), read_seeds(second), strict=True)
        differences.append([b - a for a, b in pairs])
    return differences


def read_seeds(text: str | float) -> list[float]:
    """Return a line's values by seed; a single value has been parsed as a number."""
    return [float(value) for value in str(text).split()]


def hold_against_print(entities: pd.DataFrame, note: str) -> Judgement:
    """Compare our entity F1 with the model's printed scores; the note has our gain and the printed one over `OVER`."""
    table = params.load("tables", TABLE)
    printed = results.read_published(table.paper, table.table).set_index(["row", "column"])["value"]
    rows = {run.dataset: name for name, run in table.rows.items() if run.dataset}
    of_model = [printed[rows[key], COLUMN] for key in entities["dataset"]]
    over = [printed[rows[key], OVER] for key in entities["dataset"]]
    gains = []
    for by_seed, printed_score in zip(entities["first_by_seed"], of_model, strict=True):
        gains.append([score - printed_score for score in read_seeds(by_seed)])
    ours = np.mean(entities["first_value"]) - np.mean(over)
    theirs = np.mean(of_model) - np.mean(over)
    note += f"; the effect is entity F1 less the {COLUMN} printed"
    note += f"; over {OVER} {ours:+.2f} points, printed {theirs:+.2f}"
    return replace(judge_by_set(gains, "as good as", MARGIN), note=note)


def judge_by_set(differences: list[list[float]], relation: statistics.Relation = "beats", margin=0.0) -> Judgement:
    """Judge the mean over datasets of differences that are averaged over seeds, for a single pretraining."""
    estimate = statistics.estimate_mean([float(np.mean(values)) for values in differences])
    n_seeds = [len(values) for values in differences]
    return Judgement(
        **statistics.judge(estimate, relation, margin), n=sum(n_seeds), n_sets=len(n_seeds), n_pretrainings=1,
        n_seeds=min(n_seeds),
    )  # fmt: skip
