"""Tests of claims and their verdicts: small examples of each kind, the names in every claim, the committed record."""

import html
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from conftest import each

from lib import statistics
from lib.benchmarks.definitions import ENTITIES, WORD_ACCURACY, WORDS
from lib.errors import StudyError
from lib.running import page_jobs
from lib.study import claim_tests, claims, open_study, pairs, params, paths, published, results, tables, trends
from lib.study.claim_tests import faster
from lib.study.claims import Claim
from lib.study.pairs import Pairs, all_of, paired
from lib.study.study import Study
from lib.study.trends import Trend, trend
from lib.study.verdicts import Judgement, decide_all

NAN = float("nan")
LAPTOP = Study("laptop")


def make_runs(scores: dict[tuple[str, str, str], tuple[float, float]], score="f1") -> pd.DataFrame:
    """Return runs of seeds 1 and 2 in the form of Study.results. `scores`: (model, dataset, protocol) -> by seed."""
    same = {"score": score, "pretraining": 1, "fold": 0, "device": "a CPU", "jackknife": ()}
    return pd.DataFrame(
        dict(zip(tables.RUN[:3], run, strict=True)) | same | {"seed": seed, "value": value}
        for run, values in scores.items()
        for seed, value in enumerate(values, 1)
    )


def make_study(across: str = "column", chance=None) -> SimpleNamespace:
    """Make a study whose table prints models A, B and C on datasets w to z; A and B have run on w, x and y."""
    printed = {"A": (9.0, 8.0, 7.0, 4.0), "B": (8.0, 5.0, 5.0, 3.0), "C": (0.0,) * 4}
    along = "row" if across == "column" else "column"
    cell = {"metric": "F1", "protocol": "p", "score": "f1", "group": 0, "is_mean": False} | dict.fromkeys(
        ("why_not", "substituted"), "")  # fmt: skip
    published = pd.DataFrame(
        cell | {across: model, along: name, "model": model.lower(), "dataset": name, "published": value}
        for model, values in printed.items()
        for name, value in zip("wxyz", values, strict=True)
    )
    scores = {("a", name, "p"): (80.9 + gap, 82.1 + gap) for name, gap in (("w", -0.1), ("x", 0), ("y", 0.1))}
    runs = make_runs(scores | {("b", name, "p"): (79.9, 80.1) for name in "wxy"})
    baselines = [{"dataset": name, "score": "f1", "chance": value, "without_pretraining": 80.5, "unlabelled_text": NAN}
              for name, value in ({"x": 10.0} | (chance or {})).items()]  # fmt: skip
    return SimpleNamespace(scale="laptop", budget=LAPTOP.budget, outside_budget=LAPTOP.outside_budget,
                           published=lambda _: published, results=lambda: runs,
                           baselines=lambda: pd.DataFrame(baselines))  # fmt: skip


@each("across", ["column", "row"])
def test_columns_or_rows_are_compared_by_dataset(across):
    judged = paired("lee-4", ("A", "B")).decide(make_study(across))
    assert (judged.effect, judged.n, judged.verdict) == (pytest.approx(1.5), 12, "holds") and judged.ci_low > 1.2
    assert judged.paper_effect == 1.75 and judged.paper_effect_here == 2  # all four datasets; those that ran
    assert judged.note == "tested: above 0, on 3 of 4 datasets (w, x, y)"
    assert (judged.n_sets, judged.n_pretrainings, judged.n_seeds) == (3, 1, 2)
    assert judged.below_baseline == "1 of 3"  # only x has a known baseline


@each(
    ("test", "verdict"),
    [
        (paired("lee-4", ("B", "A")), "fails"),
        (paired("lee-4", ("B", "A"), relation="as good as", margin=3), "holds"),
        (paired("lee-4", ("A", "B"), only=["w", "x", "y"]), "holds"),  # the claim is about these only
        (paired("lee-4", ("A", "B"), only=["x", "z"]), "undecided"),  # only one of its datasets has run
        (paired("lee-4", ("A", "B"), ("A", "C")), "undecided"),  # one of its pairs has not run
        (paired("lee-4", ("A", "B"), ahead=3), "holds"),
        (paired("lee-4", ("A", "B"), ahead=4), "undecided"),
        (paired("lee-4", ("A", "C")), "n/a"),
        (all_of(paired("lee-4", ("A", "B")), paired("lee-4", ("B", "A"), relation="as good as", margin=3)), "holds"),
        (all_of(paired("lee-4", ("B", "A")), paired("lee-4", ("A", "C"))), "fails"),
        (paired("lee-4", *[("B", "A")] * 50), "points the other way"),  # one of so many fails by chance more often
    ],
)
def test_a_comparison_is_decided_when_all_of_it_has_run(test, verdict):
    judgement = test.decide(make_study())
    assert judgement.verdict == verdict and (judgement.p == 1) == (verdict == "undecided")


def test_verdicts_are_counted_in_words():
    judged = pd.DataFrame({"verdict": ["fails", "undecided", "points that way", "points that way", "n/a", "n/a"]})
    words = "1 fails, 2 point that way, 1 is undecided, 2 are not measured here (n/a)"
    assert claims.describe_counts(judged) == words


def test_the_first_failing_part_decides_or_else_the_weakest():
    strong, weak = (Judgement(n=6, p=p, verdict="holds") for p in (0.01, 0.04))
    fails = Judgement(n=6, p=0.02, verdict="fails")
    assert decide_all([strong, weak, strong]) == replace(weak, part=2)
    assert decide_all([weak, fails]) == replace(fails, part=2, p=0.04)  # corrected for two parts
    note = paired("lee-4", ("A", "B"), ("A", "C")).decide(make_study()).note
    assert note.startswith("undecided because some parts did not run; part 1: +1.50 points, points that way")


def test_datasets_on_which_a_side_is_at_chance_are_named_but_not_pooled():
    """B's seeds score 79.9 and 80.1, and their interval starts at 78.73; A's differ more, and theirs starts at 73.9."""
    judgement = paired("lee-4", ("A", "B")).decide(make_study(chance={"w": 73.0, "x": 79.0, "y": 73.0}))
    assert judgement.n_sets == 2 and judgement.effect == pytest.approx(1.5) and judgement.paper_effect_here == 1.5
    assert judgement.note.endswith("2 of 4 datasets (w, y); left out, as a side is no better than chance: x (+1.50)")
    at_chance = paired("lee-4", ("A", "B")).decide(make_study(chance=dict.fromkeys("wxy", 79.0)))
    assert (at_chance.verdict, at_chance.n_sets, at_chance.n) == ("undecided", 0, 12) and np.isnan(at_chance.effect)


@each(("names", "sets"), [(("A", "B"), 3), (("B", "A"), 2)])
def test_the_worse_side_may_be_at_chance_if_the_claim_says_so(names, sets):
    """On dataset x, B's seeds score no better than chance, but A's do better."""
    study = make_study(chance={"w": 10.0, "x": 79.5, "y": 10.0})
    runs = study.results()
    study.results = lambda: runs.assign(value=runs["value"].where(runs["model"] == "b", runs["seed"] * 0.1 + 90))
    assert paired("lee-4", names).decide(study).n_sets == 2
    assert paired("lee-4", names, than_at_chance=True).decide(study).n_sets == sets


def test_runs_on_different_devices_are_not_a_fair_comparison():
    study = make_study()
    runs = study.results()
    study.results = lambda: runs.assign(device=runs["model"].map({"a": "a GPU", "b": "a CPU"}))
    judged = paired("lee-4", ("A", "B")).decide(study)
    assert judged.verdict == "undecided" and judged.note.endswith("; not a fair comparison: run on a CPU and a GPU")


def test_checkpoints_on_few_datasets_are_judged_by_seeds_and_test_documents_if_every_run_kept_them():
    """The jackknife drops the same documents from both sides, so what shifts both cancels in their difference."""
    study, test = make_study(), paired("lee-4", ("A", "B"), unit="checkpoint")
    jackknives = {"a": (82.0, 81.0, 80.0, 81.0), "b": (80.0, 80.0, 79.0, 81.0)}  # their differences: 2, 1, 1, 0
    runs = study.results()
    runs = pd.concat([runs, runs[runs["seed"] == 1].assign(seed=3, value=runs["value"] + 0.6)])
    study.results = lambda: runs.assign(jackknife=runs["model"].map(jackknives))
    (part,), judgement = test.parts, test.decide(study)
    cells = pairs.find_cells(part, study.published(""))
    assert pairs.find_samples(part, cells, study) == [(pytest.approx(3 / 4 * 2), 3)] * 3
    assert judgement.note.endswith("of 4 datasets (w, x, y); interval over seeds and test documents")
    gaps = runs["jackknife"].where((runs["model"] == "b") & (runs["dataset"] == "x"), runs["model"].map(jackknives))
    study.results = lambda: runs.assign(jackknife=gaps)
    assert pairs.find_samples(part, cells, study) == [] and "interval over" not in test.decide(study).note


def test_documents_are_sampled_fold_by_fold():
    study, (part,) = make_study(), paired("lee-4", ("A", "B")).parts
    cells, runs = pairs.find_cells(part, study.published("")), study.results().query("dataset == 'w'")
    runs = runs.assign(jackknife=runs["model"].map({"a": (2.0, 1.0, 1.0, 0.0), "b": (0.0,) * 4}))
    study.results = lambda: pd.concat([runs, runs.assign(fold=1)])
    ((variance, freedom),) = pairs.find_samples(part, cells, study)
    assert (variance, freedom) == (pytest.approx(2 * 3 / 4 * 2 / 2**2), 6)


def test_only_pretrainings_that_every_dataset_has_count():
    study = make_study()
    runs = study.results()
    second = runs.assign(pretraining=2, value=runs["value"] + 1)
    study.results = lambda: pd.concat([runs, second])
    assert paired("lee-4", ("A", "B")).decide(study).n_pretrainings == 2
    study.results = lambda: pd.concat([runs, second[second["dataset"] != "x"]])
    judgement = paired("lee-4", ("A", "B")).decide(study)
    assert (judgement.n_pretrainings, judgement.effect, judgement.n) == (1, pytest.approx(1.5), 12)


def test_a_side_may_be_the_mean_of_several():
    study = make_study()
    runs_of_b = study.results().query("model == 'b'")
    runs = pd.concat([study.results(), runs_of_b.assign(model="c", value=runs_of_b["value"] - 1)])
    study.results = lambda: runs
    judgement = paired("lee-4", ("A", "B", "C")).decide(study)
    assert judgement.effect == pytest.approx(2.0) and judgement.paper_effect == pytest.approx((28 - 21 / 2) / 4)


def test_runs_that_only_claims_compare_are_planned(monkeypatch):
    monkeypatch.setattr(published, "find_obstacle", lambda *_: "")
    planned = claims.list_claim_runs(LAPTOP)
    assert ("albert-base", "bc2gm", "gu") in planned  # gu replaces naseem at this scale


def test_curves_rise_or_fall(monkeypatch):
    points = [("a", step, seed, 60 + 2 * i + 0.2 * seed) for i, step in enumerate((1, 10, 100)) for seed in (0, 1)]
    points += [("b", *point[1:]) for point in points[:4]]
    seeds = pd.DataFrame(points, columns=["row", "x", "seed", "ours"])
    seeds = seeds.assign(column=seeds["x"], metric="F1", published=np.nan, published_x=np.nan)
    monkeypatch.setattr(trends, "list_curve_seeds", lambda part, _: seeds[seeds["row"].isin(part.only or ("a", "b"))])
    rises, falls = (trend(Trend("lee-figure-3", falls=falls)).decide(LAPTOP) for falls in (False, True))
    assert (rises.effect, rises.verdict, rises.n, rises.n_sets) == (pytest.approx(2), "holds", 6, 1)
    assert (falls.effect, falls.verdict) == (pytest.approx(-2), "fails")
    judgement = trend(Trend("lee-figure-3"), Trend("lee-figure-3", only=("b",))).decide(LAPTOP)
    assert judgement.verdict == "undecided" and judgement.note.endswith("lee-figure-3: no curve has 3 points")


@pytest.fixture
def write(own_outputs):
    """Return a function that writes one of our tables."""
    return lambda name, rows, scale="laptop": results.write_csv(paths.table(scale, name), rows)


def test_every_model_has_to_be_faster(write):
    ratios = [1.1, 1.2, 1.3] * 4
    write("step-times", [{"model": model, "repetition": i, "seconds": seconds, "device": "a machine"}
                         for i, value in enumerate(ratios)
                         for model, seconds in (("a", 1.0), ("large", 100.0), ("b", value))])  # fmt: skip
    judged = faster("step-times", ["a"], "b").decide(LAPTOP)
    assert (judged.verdict, judged.n, judged.effect) == ("holds", 12, pytest.approx(1.2))
    assert faster("step-times", ["a", "large"], "b").decide(LAPTOP).verdict == "fails"
    assert faster("step-times", ["a"], "b", 2, margin=0.5).decide(LAPTOP).verdict == "fails"
    assert faster("step-times", ["a", "c"], "b").decide(LAPTOP).note == "models not timed yet"


def decide(key: str, scale: str = "laptop") -> Judgement:
    return claims.find_claim(key).test.decide(open_study(scale))


LENGTHS = [
    {"row": "x", "column": "Wiki+Books vocab", "ours": 30, "verdict": "agrees"},
    {"row": "y", "column": "Wiki+Books vocab", "ours": 40, "verdict": "differs"},
    {"row": "x", "column": "PubMed vocab", "ours": 20, "verdict": "agrees"},
    {"row": "y", "column": "PubMed vocab", "ours": 35, "verdict": "differs"},
]
CORE = {"core": "small", "satellite": "large"}
SHARES = [
    CORE | {"method": "split files", "core share": 0.1, "distinct pairs": 8},
    CORE | {"method": "simultaneous", "core share": 0.5, "distinct pairs": 9},
]
SIZES = [
    {"model": "albert-base", "counted, millions": 11.7},
    {"model": "albert-large", "counted, millions": 17.7},
    {"model": "bert-uncased", "counted, millions": 109.5},
    {"model": "bioalbert-large1", "counted, millions": 16.4},
]
PIECES = [
    {"example": example, "vocabulary": vocabulary, "count": count, "place": 0, "word": "agonist", "printed": True,
     "tokens": "a"}
    for example in ("one", "two") for vocabulary, count in (("bert-cased", 3), ("pubmedbert-uncased", 1))
]  # fmt: skip
TERMS = [{"published": "x", "verdict": verdict} for verdict in ("agrees", "agrees", "differs", "n/a")]


@each(
    ("claim", "table", "rows", "verdict", "effect"),
    [
        ("gu-vocab-whole", "gu-1", TERMS, "fails", 200 / 3),
        ("gu-shorter-input", "gu-8", LENGTHS, "holds", 7.5),
        ("gu-shorter-input", "gu-8", [*LENGTHS[:3], LENGTHS[3] | {"ours": 45}], "fails", 2.5),
        ("wada-core-share", "wada-figure-3", SHARES, "holds", 40),
        ("naseem-size", "parameters", SIZES, "holds", 100),
        ("gu-attention-shattering", "gu-figure-3", [*PIECES[:3], PIECES[3] | {"count": 3}], "fails", 50),
    ],
)
def test_claims_about_counts_hold_or_fail(write, claim, table, rows, verdict, effect):
    """The committed claims cover the other verdicts."""
    write(table, rows)
    assert (decide(claim).verdict, decide(claim).effect) == (verdict, pytest.approx(effect))


def test_a_claim_about_a_table_that_has_not_been_made_is_not_judged(own_outputs):
    without_outputs = Study("laptop")
    about_tables = [claim.test for claim in claims.CLAIMS if claim.test.tables and not claim.test.parts]
    judged = [test.decide(without_outputs) for test in about_tables]
    assert len(judged) > 10 and {(judgement.verdict, judgement.n) for judgement in judged} == {("n/a", 0)}


def test_the_summary_lists_the_measured_claims_about_recipes():
    row = dict.fromkeys(claims.COLUMNS, 0) | {
        "statement": "more is more", "paper": "gu-pubmedbert", "claim": "gu-half-compute",
        "unit": "recipe", "n_sets": 3, "verdict": "holds", "effect": 1.5, "p": 0.01, "note": "two parts",
    }  # fmt: skip
    (summary,) = claims.list_recipes(pd.DataFrame([row, row | {"n_sets": 0}, row | {"unit": "checkpoint"}]))
    assert "*more is more* (PubMedBERT / BLURB): **holds on these sets**, +1.50 points" in summary


def make_answers(found: dict[str, list[tuple[float, float]]]) -> SimpleNamespace:
    """Make a study with runs on yes/no questions. `found`: model -> the recalls of yes and of no of each seed."""
    runs = [make_runs({(model, "q", "p"): [recalls[side] for recalls in seeds]}, score)
            for model, seeds in found.items() for side, score in enumerate(claim_tests.RECALLS)]  # fmt: skip
    cells = [{"model": model, "dataset": "q", "protocol": "p", "score": score}
             for model in found for score in claim_tests.RECALLS]  # fmt: skip
    return SimpleNamespace(published=lambda _: pd.DataFrame(cells), results=lambda: pd.concat(runs))


@each(
    ("found", "verdict"),
    [
        ({"a": [(100, 0), (95, 40)], "b": [(95, 40)] * 2}, "holds"),
        ({"a": [(95, 40)] * 10}, "undecided"),  # ten runs cannot rule out that one in twenty does
        ({"a": [(95, 40)] * 80}, "fails"),
        ({"a": [(0, 100), (95, 40)]}, "undecided"),  # the first always answers no
        ({"a": [(100, 0)] * 4, "b": [(95, 40)] * 4}, "undecided"),  # model a has learnt nothing
    ],
)
def test_some_but_not_all_runs_of_a_model_always_answer_yes(found, verdict):
    judgement = claim_tests.decide_one_class(make_answers(found))
    seeds = [recalls for runs in found.values() for recalls in runs]
    assert judgement.verdict == verdict and judgement.n == len(seeds)
    assert judgement.effect == pytest.approx(100 * seeds.count((100, 0)) / len(seeds))


@pytest.fixture
def judge_entity_gain(write):
    """Return a function that writes a table of tag scores at a scale and judges the claim on it.

    `runs`: (model, protocol, dataset) -> the scores of two seeds by entity. Their word F1 is 4 and 2 points higher,
    their word accuracy 36 and 34.
    """

    def judge(scale: str, runs: dict[tuple[str, str, str], tuple[float, float]]) -> Judgement:
        rows = []
        for (model, protocol, dataset), (first, second) in runs.items():
            for name, gain in ((WORDS, 4), (WORD_ACCURACY, 36)):
                rows.append({
                    "kind": "metric", "model": model, "protocol": protocol, "dataset": dataset, "n": 2,
                    "first": ENTITIES, "second": name, "first_value": (first + second) / 2,
                    "first_by_seed": f"{first} {second}", "second_by_seed": f"{first + gain} {second + gain - 2}",
                })  # fmt: skip
        write("protocols", rows, scale)
        return decide("naseem-ner-gain", scale)

    return judge


def test_small_models_leave_the_gain_in_entities_open(judge_entity_gain):
    judgement = judge_entity_gain("laptop", {
        ("bioalbert-base1", "gu", "ncbi-disease"): (60.0, 62.0),
        ("bioalbert-base1", "gu", "bc2gm"): (50.0, 52.0),
        ("bert-general", "lee", "jnlpba"): (70.0, 72.0),
    })  # fmt: skip
    assert judgement.verdict == "undecided" and np.isnan(judgement.p)
    assert judgement.effect == pytest.approx(35) and judgement.n == 4
    assert judgement.note.startswith("bioalbert-base1 under gu on ncbi-disease, bc2gm: entity F1 56.00; word F1 +3.00")
    assert judge_entity_gain("paper", {("pubmedbert", "naseem", "ncbi-disease"): (60.0, 62.0)}) == Judgement(
        note="no entities scored yet of bioalbert-base1 under naseem"
    )


@each(("entities", "verdict"), [((95.1, 95.5), "holds"), ((94.8, 95.0), "undecided"), ((88.0, 89.0), "fails")])
def test_models_of_the_papers_size_are_compared_with_its_scores(judge_entity_gain, entities, verdict):
    """Printed for Base1: 95.89 on NCBI-disease and 96.34 on BC2GM, 6.18 and 11.24 above the state of the art."""
    first, second = entities
    judgement = judge_entity_gain("paper", {
        ("bioalbert-base1", "naseem", "ncbi-disease"): entities,
        ("bioalbert-base1", "naseem", "bc2gm"): (first + 0.47, second + 0.47),
    })  # fmt: skip
    assert judgement.verdict == verdict and judgement.effect == pytest.approx((first + second) / 2 - 95.88)
    assert "points, printed +8.71" in judgement.note


# All claims


def check_pairs(part: Pairs, unit: str) -> None:
    """Check that a comparison has a margin if its relation needs one, existing rows or columns, and the right unit."""
    cells = pairs.list_compared_cells(part, LAPTOP)
    if part.metric:
        cells = cells[cells["metric"] == part.metric]
    assert (part.relation == "beats") == (part.margin == 0)
    assert not cells[~cells["is_mean"]].duplicated(["row", "column"]).any(), "a metric is needed"
    across, along = ("column", "row") if {*part.names} <= {*cells["column"]} else ("row", "column")
    assert {*part.names} <= {*cells[across]} and {*part.only} <= {*cells[along]}
    compared = cells[cells[across].isin(part.names)]
    assert (compared.groupby(along)["model"].nunique().max() == 1) == (part.unit == unit == "checkpoint")


@each("claim", claims.CLAIMS)
def test_a_claim_names_existing_tables_rows_and_models(claim):
    test = claim.test
    for table in test.tables:
        assert any(page_jobs.split_tables([table]).values())
    assert set(test.vocabularies) <= set(params.keys("vocabularies"))
    for part in test.parts:
        if isinstance(part, Trend):
            figure = params.load("tables", part.figure)
            assert figure.axis and {*part.only} <= {*(figure.columns if figure.along == "rows" else figure.rows)}
        else:
            check_pairs(part, test.unit)


def test_the_claims_are_those_of_the_published_list():
    assert [claim.key for claim in claims.CLAIMS] == results.read_claims()["claim"].tolist()
    with pytest.raises(StudyError, match="did you mean .*gu-whole-word"):
        claims.judge_one(LAPTOP, "gu-whole-words")


def test_the_first_claims_are_unchanged():
    """Compare with ../shared/published if it is there; one claim now cites another section of its paper."""
    path = paths.ROOT / "../shared/published/claims.csv"
    if not path.exists():
        pytest.skip("no ../shared/published")
    text = path.read_text(encoding="utf-8")
    lines = text.replace("ozyurt-inference,ozyurt-bioelectra,abstract", "ozyurt-inference,ozyurt-bioelectra,section 1")
    lines = lines.splitlines()
    assert [line for line in (paths.PUBLISHED / "claims.csv").read_text(encoding="utf-8").splitlines()
            if line in lines] == lines  # fmt: skip


def test_p_is_corrected_for_as_many_claims_as_page_00_says():
    rules = (paths.NOTEBOOKS / "00_start_here.ipynb").read_text(encoding="utf-8")
    assert f"{sum(claim.test.by_interval for claim in claims.CLAIMS)} claims that an interval decides" in rules


UNPRINTED = {"gu-cased-as-good", "lee-bio-beats-bioes", "lee-anonymise-beats-tags", "lee-squad-first",
             "naseem-beats-albert", "ozyurt-sample-efficiency"}  # fmt: skip


def test_each_comparison_holds_by_the_printed_scores():
    """So none has its sides swapped; of UNPRINTED, the papers print no scores."""
    parts = [(claim.key, part) for claim in claims.CLAIMS for part in claim.test.parts if isinstance(part, Pairs)]
    cells_by_table = {part.table: pairs.list_compared_cells(part, LAPTOP) for _, part in parts if part.table}
    unprinted = set()
    for key, part in parts:
        in_table = cells_by_table[part.table] if part.table else pairs.list_compared_cells(part, LAPTOP)
        cells = pairs.find_cells(part, in_table)
        by_set = pairs.subtract_printed(part, cells)
        printed = by_set.mean() if by_set.notna().any() else pairs.subtract_means(part, in_table, {*cells["dataset"]})
        low, high = statistics.find_bounds(part.relation, part.margin)
        assert np.isnan(printed) or low < printed < high and (by_set > 0).sum() >= part.ahead, (key, part.names)
        unprinted |= {key} if np.isnan(printed) else set()
    assert unprinted == UNPRINTED


@pytest.fixture
def five(monkeypatch):
    """Replace the claims by five with fixed judgements; the last is neither measured nor corrected."""
    holds = Judgement(effect=1.0, ci_low=0.1, ci_high=2.0, n=3, p=0.03, verdict="holds", note="three sets",
                      n_pretrainings=1)  # fmt: skip
    judged = {"gu-whole-word": holds, "lee-steps": replace(holds, p=0.0001), "naseem-size": replace(holds, p=NAN),
              "gu-tagging-scheme": replace(holds, p=0.001)}  # fmt: skip
    five_claims = [Claim(key, replace(claims.find_claim(key).test, decide=lambda _, one=one: one), "all of it")
                   for key, one in judged.items()]  # fmt: skip
    unmeasured = replace(claims.find_claim("naseem-mimic-hurts").test, decide=lambda _: Judgement(note="not run"))
    five_claims.append(Claim("naseem-mimic-hurts", replace(unmeasured, by_interval=False), "no notes"))
    monkeypatch.setattr(claims, "CLAIMS", tuple(five_claims))


def test_verdicts_are_corrected_for_the_number_of_claims_and_limited_by_that_of_pretrainings(five, monkeypatch):
    judged = claims.judge_claims(LAPTOP).set_index("claim")
    assert judged["verdict"].tolist() == ["points that way", "points that way", "holds", "holds", "n/a"]
    assert judged["p"].tolist()[:2] == [0.03, 0.0003] and np.isnan(judged.loc["naseem-size", "p"])
    assert judged.loc["naseem-mimic-hurts", ["note", "not_tested"]].tolist() == ["not run", "no notes"]
    alone = claims.judge_one(LAPTOP, "gu-whole-word")
    assert (alone["verdict"], alone["p"]) == ("points that way", 0.03)
    assert claims.judge_claims(open_study("smoke"))["verdict"].eq("n/a").all()  # made-up data

    # Every claim that an interval decides counts, measured or not.
    unmeasured = [Claim("lee-steps", replace(claims.find_claim("lee-steps").test, decide=lambda _: Judgement()))] * 100
    monkeypatch.setattr(claims, "CLAIMS", (*claims.CLAIMS, *unmeasured))
    judged = claims.judge_claims(LAPTOP).set_index("claim").loc["gu-tagging-scheme"]
    assert (judged["verdict"], judged["p"]) == ("points that way", 0.102)
    assert judged["note"].startswith("not significant after correction for 103 claims; three sets")


def test_verdicts_are_counted_and_described(five):
    tallied = claims.tally(claims.judge_claims(LAPTOP)).set_index(["what", "paper"])
    total = tallied.loc[("claims about scores", "all")]
    assert total[["of", "hold", "point that way", "not measured here (n/a)"]].tolist() == [4, 1, 2, 1]
    assert len(tallied) == 8 and tallied["of"]["claims about scores", "BioALBERT"] == 1  # per paper and kind of claim
    in_part, on_few = {"claim": "lee-steps", "n_sets": 6}, {"claim": "gu-half-compute", "n_sets": 5}
    assert claims.describe_verdict(in_part | {"verdict": "holds"}) == "holds as far as tested"
    assert claims.describe_verdict(in_part | {"verdict": "fails"}) == "does not hold"
    assert claims.describe_verdict(on_few | {"verdict": "fails"}) == "does not hold on these sets"


def test_the_committed_claims_follow_from_the_record(monkeypatch):
    """Judge all claims again without data, except the one on words of MeSH.

    That one keeps its recorded p, because the correction of all others counts it.
    """
    committed = results.read_table(paths.recorded(paths.table("laptop", "claims")))
    on_mesh = claims.find_claim("wada-amplified-terms")
    family = sum(claim.test.by_interval for claim in claims.CLAIMS)
    smaller = (committed["p"] < committed.set_index("claim").loc[on_mesh.key, "p"]).sum()  # no longer counted by Holm
    judgement = Judgement(p=committed.set_index("claim").loc[on_mesh.key, "p"] / (family - smaller))
    replacement = replace(on_mesh, test=replace(on_mesh.test, decide=lambda _: judgement))
    with_replacement = tuple(replacement if claim is on_mesh else claim for claim in claims.CLAIMS)
    monkeypatch.setattr(claims, "CLAIMS", with_replacement)
    monkeypatch.setenv("STUDY_DATA", "/nowhere")
    others, rebuilt = committed["claim"] != on_mesh.key, claims.judge_claims(LAPTOP)
    text_columns = ["unit", "below_baseline", "substituted", "not_tested"]
    rebuilt[text_columns] = rebuilt[text_columns].replace("", NAN)
    pd.testing.assert_frame_equal(committed[others], rebuilt[others], check_dtype=False)


def test_the_committed_claim_on_words_of_mesh_follows_from_the_data(real_data):
    committed = results.read_table(paths.recorded(paths.table("laptop", "claims"))).set_index("claim")
    row = claims.judge_one(LAPTOP, "wada-amplified-terms")
    columns = ["effect", "ci_low", "ci_high", "n", "verdict"]
    assert committed.loc["wada-amplified-terms", columns].tolist() == row[columns].tolist()


def test_a_table_lists_its_claims_and_folds_their_reasons_and_what_was_not_tested():
    """BIO against BIOES compares runs of lee-4. The figures have some of these too, but test text and steps."""
    shown, folded = html.unescape(claims.show_of(LAPTOP, "lee-4").data).split("<details>")
    for key in ("lee-beats-bert-ner", "lee-bio-beats-bioes"):
        claim = claims.judge_one(LAPTOP, key)
        assert claim["statement"] in shown and claim["note"] and claim["note"] not in shown
        assert claim["note"].split("; part")[0] in folded and claims.find_claim(key).not_tested in folded
    assert "BIOES" not in claims.show_of(LAPTOP, "lee-figure-2").data
    assert "no claim" in claims.show_of(LAPTOP, "naseem-2").data
