"""Tests of claims and their verdicts: small examples of each kind, the names in every claim, the committed record."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from conftest import each

from lib import statistics
from lib.benchmarks.definitions import ENTITIES, WORDS, WORDS_AND_O
from lib.corpora.mesh import Mesh
from lib.errors import StudyError
from lib.study import (
    claim_tests,
    claims,
    open_study,
    page_jobs,
    pairs,
    params,
    paths,
    published,
    results,
    tables,
    trends,
)
from lib.study.claim_tests import exact, faster, follows
from lib.study.claims import Claim
from lib.study.pairs import Pairs, all_of, paired, paired_runs
from lib.study.study import Study
from lib.study.trends import Trend, trend
from lib.study.verdicts import Judgement
from lib.study.vocabularies import Vocabulary

NAN = float("nan")
LAPTOP = Study("laptop")


def make_runs(scores: dict[tuple[str, str, str], tuple[float, float]], score="f1") -> pd.DataFrame:
    """Return runs of seeds 1 and 2 in the form of Study.results. `scores`: (model, dataset, protocol) -> by seed."""
    return pd.DataFrame(
        dict(
            zip(tables.RUN[:3], run, strict=True),
            score=score,
            pretraining=1,
            seed=seed,
            fold=0,
            value=value,
            device="a CPU",
            jackknife=(),
        )
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
def test_columns_or_rows_are_compared_by_set(across):
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
        (paired("lee-4", ("A", "B"), relation="equals", margin=0.5), "fails"),
        (paired("lee-4", ("A", "B"), only=["w", "x", "y"]), "holds"),  # the claim is about these only
        (paired("lee-4", ("A", "B"), only=["x", "z"]), "undecided"),  # only one of its datasets has run
        (paired("lee-4", ("A", "B"), ("A", "C")), "undecided"),  # one of its pairs has not run
        (paired("lee-4", ("A", "B"), ahead=3), "holds"),
        (paired("lee-4", ("A", "B"), ahead=4), "undecided"),
        (paired("lee-4", ("A", "C")), "n/a"),
        (all_of(paired("lee-4", ("A", "B")), paired("lee-4", ("B", "A"), relation="as good as", margin=3)), "holds"),
        (all_of(paired("lee-4", ("A", "B")), paired("lee-4", ("B", "A"))), "fails"),
        (all_of(paired("lee-4", ("A", "B")), paired("lee-4", ("A", "C"))), "undecided"),
        (all_of(paired("lee-4", ("B", "A")), paired("lee-4", ("A", "C"))), "fails"),
        (paired("lee-4", *[("B", "A")] * 50), "points the other way"),  # one of so many fails by chance more often
    ],
)
def test_a_comparison_is_decided_when_all_of_it_has_run(test, verdict):
    judgement = test.decide(make_study())
    assert judgement.verdict == verdict and (judgement.p == 1) == (verdict == "undecided")
    assert ("ahead on 3 datasets, 4 needed" in judgement.note) == (test.parts[0].ahead == 4)


def test_sets_on_which_a_side_is_no_better_than_chance_are_shown_and_not_pooled():
    """B's seeds score 79.9 and 80.1, and their interval starts at 78.73; A's differ more, and theirs starts at 73.9."""
    judgement = paired("lee-4", ("A", "B")).decide(make_study(chance={"w": 73.0, "x": 79.0, "y": 73.0}))
    assert judgement.n_sets == 2 and judgement.effect == pytest.approx(1.5) and judgement.paper_effect_here == 1.5
    assert judgement.note.endswith("2 of 4 datasets (w, y); left out, as a side is no better than chance: x (+1.50)")
    at_chance = paired("lee-4", ("A", "B")).decide(make_study(chance=dict.fromkeys("wxy", 79.0)))
    assert (at_chance.verdict, at_chance.n_sets, at_chance.n) == ("undecided", 0, 12) and np.isnan(at_chance.effect)


@each(("names", "sets"), [(("A", "B"), 3), (("B", "A"), 2)])
def test_the_side_of_which_a_claim_says_so_may_be_no_better_than_chance(names, sets):
    """On dataset x, B's seeds score no better than chance, but A's do better."""
    study = make_study(chance={"w": 10.0, "x": 79.5, "y": 10.0})
    runs = study.results()
    study.results = lambda: runs.assign(value=runs["value"].where(runs["model"] == "b", runs["seed"] * 0.1 + 90))
    assert paired("lee-4", names).decide(study).n_sets == 2
    assert paired("lee-4", names, at_chance="than").decide(study).n_sets == sets


def test_sides_that_were_not_computed_alike_are_no_pair():
    study = make_study()
    runs = study.results()
    study.results = lambda: runs.assign(device=runs["model"].map({"a": "a GPU", "b": "a CPU"}))
    judged = paired("lee-4", ("A", "B")).decide(study)
    assert judged.verdict == "undecided" and judged.note.endswith("; not a fair comparison: run on a CPU and a GPU")


@each(
    ("models", "fair"),
    [(("pubmedbert", "pubmedbert-half"), True),  # both start from PubMed vectors
     (("bert-general-pubmed", "pubmedbert"), False),  # the first continues BERT, which has vectors of its own text
     (("bert-general-pubmed", "bert-general"), True),  # neither starts from PubMed vectors
     (("pubmedbert-general-first", "pubmedbert"), True)],  # text that only one side was trained on does not count
)  # fmt: skip
def test_sides_start_from_vectors_of_the_same_texts(models, fair):
    study, (part,) = make_study(), paired("lee-4", ("A", "B")).parts
    keys = dict(zip("ab", models, strict=True))
    study.published(0)["model"] = study.published(0)["model"].replace(keys)
    runs = study.results().replace({"model": keys})
    study.results, study.model, study.corpus = lambda: runs, LAPTOP.model, LAPTOP.corpus
    judgement = pairs.judge_pairs(part, study, pairs.tabulate_pairs(part, study))
    assert judgement.verdict == ("holds" if fair else "undecided")
    assert fair == (not judgement.note.endswith("only one side starts from word vectors of pubmed-gu"))


def test_checkpoints_on_few_sets_are_judged_by_seeds_and_test_documents_where_these_were_kept():
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
    assert pairs.find_samples(part, cells, study) == [] and "draws" not in test.decide(study).note


def test_a_test_set_in_folds_is_drawn_fold_by_fold():
    study, (part,) = make_study(), paired("lee-4", ("A", "B")).parts
    cells, runs = pairs.find_cells(part, study.published("")), study.results().query("dataset == 'w'")
    jackknives = {"a": (2.0, 1.0, 1.0, 0.0), "b": (0.0,) * 4}
    runs = runs.assign(jackknife=runs["model"].map(jackknives))
    study.results = lambda: pd.concat([runs, runs.assign(fold=1)])
    ((variance, freedom),) = pairs.find_samples(part, cells, study)
    assert (variance, freedom) == (pytest.approx(2 * 3 / 4 * 2 / 2**2), 6)


def test_pretrainings_that_not_every_set_has_do_not_count():
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


def test_parts_are_said_and_one_decides():
    judgement = paired("lee-4", ("A", "B"), ("B", "A"), ("C", "A")).decide(make_study())
    assert judgement.note == (
        "part 2 decides; part 1: +1.50 points, points that way, tested: above 0, on 3 of 4 datasets (w, x, y); "
        "part 2: -1.50 points, points the other way, tested: above 0, on 3 of 4 datasets (w, x, y); "
        "part 3: not run"
    )
    assert judgement.paper_effect == -1.75 and judgement.effect == pytest.approx(-1.5) and judgement.part == 2
    judgement = paired("lee-4", ("A", "B"), ("A", "C"), ("B", "C"), ("A", "C")).decide(make_study())
    assert judgement.note.endswith("3 of 4 datasets (w, x, y); parts 2 to 4: not run")


def test_what_is_not_run_says_why():
    """Covers a side that no scale can pretrain, one outside the budget, and one that another page runs."""
    notes = [claims.judge_one(LAPTOP, key)["note"] for key in ("wada-uth-no-better", "gu-clinical-notes-no-help")]
    assert notes[0].endswith("run: pretrained on hospital records that are not public (uth-bert)")
    assert notes[1].endswith("outside the budget of scale 'laptop' (clinicalbert, bluebert-pubmed-mimic)")
    assert "page 31 does it" in claims.judge_one(LAPTOP, "ozyurt-sbert-worst")["note"]


def test_where_only_means_are_printed_the_effect_is_theirs():
    """Table 8 prints ouBioBERT's total, clinical and biomedical scores, but none on a single dataset."""
    total, clinical = claims.find_claim("wada-simpt-alone").test.parts
    source = pairs.tabulate_pairs(total, LAPTOP)  # one table for both
    effects = [pairs.judge_pairs(part, LAPTOP, source).paper_effect for part in (total, clinical)]
    assert effects == pytest.approx([83.9 - 83.6, 80.6 - 80.2])
    subset = replace(total, only=("DDI", "HoC"))  # no mean over these is printed
    assert np.isnan(pairs.judge_pairs(subset, LAPTOP, source).paper_effect)


def test_each_substitution_is_named_once():
    substituted = ["a in place of x, p in place of q", "p in place of q", "c in place of y"]
    cells = pd.DataFrame({"row": ["A", "B", "C"], "column": "", "why_not": "", "substituted": substituted})
    part = SimpleNamespace(names=("A", "B"))
    assert pairs.describe_substitutions(part, cells) == "a in place of x, p in place of q"


def test_runs_that_no_table_prints(monkeypatch):
    """At scale laptop one protocol replaces those of three papers, as the note says; some table prints each cell."""
    monkeypatch.setattr(published, "find_obstacle", lambda *_: "")
    sets = ["bc5cdr-chem", "ncbi-disease"]
    sides = {"bioalbert-base1": (65, 66), "albert-base": (56, 57)}
    runs = make_runs({(model, name, "gu"): values for model, values in sides.items() for name in sets})
    monkeypatch.setattr(Study, "results", lambda _: runs)
    monkeypatch.setattr(Study, "baselines", lambda _: results.read_baselines("smoke").iloc[:0])
    test = paired_runs(("bioalbert-base1", "naseem"), ("albert-base", "naseem"), [*sets, "bc2gm"])
    judgement = test.decide(LAPTOP)
    assert judgement.effect == 9
    assert judgement.note.endswith("2 of 3 datasets (bc5cdr-chem, ncbi-disease), with gu in place of naseem")
    assert judgement.substituted == "gu in place of naseem"
    assert ("albert-base", "bc2gm", "gu") in claims.list_claim_runs(LAPTOP)
    judgement = claims.find_claim("ozyurt-small-comparable").test.decide(LAPTOP)  # printed in tables 2, 3 and 6
    assert judgement.paper_effect == pytest.approx(np.mean([67.48 - 70.25, 69.84 - 51.71, -5.58, 80.96 - 79.91]))
    claim = claims.find_claim("gu-scratch-beats-continual")  # one side in table 9, the other in table 6
    judgement = claim.test.decide(LAPTOP)
    printed = results.read_published("gu-pubmedbert", "6").pivot(index="row", columns="column", values="value")
    gap = (printed["PubMedBERT uncased"] - printed["BioBERT cased"]).drop("BLURB score").mean()
    assert judgement.paper_effect == pytest.approx(gap) and judgement.n == 0


def test_curves_rise_or_fall(monkeypatch):
    points = [("a", step, seed, 60 + 2 * i + 0.2 * seed) for i, step in enumerate((1, 10, 100)) for seed in (0, 1)]
    points += [("b", *point[1:]) for point in points[:4]]
    seeds = pd.DataFrame(points, columns=["row", "x", "seed", "ours"])
    seeds = seeds.assign(column=seeds["x"], metric="F1", published=np.nan, published_x=np.nan)
    monkeypatch.setattr(trends, "list_curve_seeds", lambda part, _: seeds[seeds["row"].isin(part.only or ("a", "b"))])
    rises, falls = (trend(Trend("lee-figure-3", falls=falls)).decide(LAPTOP) for falls in (False, True))
    assert (rises.effect, rises.verdict, rises.n) == (pytest.approx(2), "holds", 6) and rises.n_sets == 1
    assert rises.note == "lee-figure-3: points for ten times more steps; a, 3 points on the curve"
    assert (falls.effect, falls.verdict) == (pytest.approx(-2), "fails") and "ten times fewer steps" in falls.note
    assert trend(Trend("lee-figure-3", only=("b",))).decide(LAPTOP).note == ("lee-figure-3: no curve has 3 points")
    judgement = trend(Trend("lee-figure-3"), Trend("lee-figure-3", only=("b",))).decide(LAPTOP)
    assert judgement.verdict == "undecided" and judgement.note.endswith("has 3 points")
    # Along rows each point is a dataset; the printed slope fits 15 gains to the logarithms of 15 dataset sizes.
    monkeypatch.undo()
    judgement = trend(Trend("lee-figure-4", only=("BioBERT (+PubMed+PMC)",), falls=True)).decide(LAPTOP)
    printed = LAPTOP.published("lee-figure-4").query("column == 'BioBERT (+PubMed+PMC)' and side == ''")
    slope = np.polyfit(np.log10(printed["published_x"]), printed["published"], 1)[0]
    assert judgement.paper_effect == pytest.approx(-slope)


@pytest.fixture
def write(own_outputs):
    """Return a function that writes one of our tables."""
    return lambda name, rows, scale="laptop": results.write_csv(paths.table(scale, name), rows)


def test_printed_cells_come_out_or_do_not(write):
    test = exact("gu-1")
    assert test.decide(LAPTOP).note == "gu-1 not made yet"
    rows = [{"published": "x", "verdict": verdict} for verdict in ("agrees", "agrees", "n/a")]
    write("gu-1", rows)
    assert (test.decide(LAPTOP).verdict, test.decide(LAPTOP).n) == ("holds", 2)
    write("gu-1", [*rows, {"published": "x", "verdict": "differs"}])
    assert test.decide(LAPTOP).verdict == "fails" and test.decide(LAPTOP).effect == pytest.approx(200 / 3)
    write("gu-1", rows[2:])
    assert test.decide(LAPTOP) == Judgement(note="no cell of gu-1 can be tested")


def test_printed_numbers_follow_or_do_not(write):
    test = follows("wada-oubiobert", "average", "difference")
    assert test.decide(LAPTOP).note == "audit not made yet"
    row = {"paper": "wada-oubiobert", "kind": "average", "excused_by_rounding": "yes", "verdict": "rounding"}
    others = [row | {"paper": "lee-biobert", "excused_by_rounding": "no"}, row | {"kind": "F1", "verdict": "differs"}]
    write("audit", [row, *others])
    assert (test.decide(LAPTOP).verdict, test.decide(LAPTOP).n) == ("holds", 1)
    write("audit", [row, row | {"kind": "difference", "excused_by_rounding": "no", "verdict": "averaging"}])
    judgement = test.decide(LAPTOP)
    assert (judgement.verdict, judgement.effect) == ("fails", 50)
    assert judgement.note.endswith("1 do not; averaging over runs explains 1")


@each(
    ("ratios", "ratio", "margin", "verdict"),
    [
        ([1.1, 1.2, 1.3] * 4, 1.0, 0.0, "holds"),
        ([0.8, 0.9, 0.7] * 4, 1.0, 0.0, "fails"),
        ([0.8, 1.2] * 6, 1.0, 0.0, "undecided"),
        ([7.9, 8.1, 8.5] * 4, 8.0, 1.6, "holds"),
        ([4.0, 4.5, 5.0] * 4, 8.0, 1.6, "fails"),
        ([12.0, 12.5, 13.0] * 4, 8.0, 1.6, "fails"),
        ([6.0, 8.0] * 6, 8.0, 1.6, "undecided"),
    ],
)
def test_claims_of_speed(write, ratios, ratio, margin, verdict):
    write("step-times", [{"model": model, "repetition": i, "seconds": seconds, "device": "a machine"}
                         for i, value in enumerate(ratios)
                         for model, seconds in (("a", 1.0), ("large", 100.0), ("b", value))])  # fmt: skip
    judged = faster("step-times", ["a"], "b", ratio, margin).decide(LAPTOP)
    assert (judged.verdict, judged.n, judged.effect) == (verdict, len(ratios), pytest.approx(np.median(ratios)))
    assert min(ratios) <= judged.ci_low <= judged.effect <= judged.ci_high <= max(ratios) and "a machine" in judged.note
    assert faster("step-times", ["a", "large"], "b").decide(LAPTOP).verdict == "fails"  # each model has to be faster
    assert faster("step-times", ["a", "c"], "b").decide(LAPTOP).note == "models not timed yet"


def decide(key: str, scale: str = "laptop") -> Judgement:
    return claims.find_claim(key).test.decide(open_study(scale))


def test_inputs_are_shorter_on_every_set_or_not(write):
    assert decide("gu-shorter-input").note == "gu-8 not made yet"
    sides = {"Wiki+Books vocab": (30, 40), "PubMed vocab": (20, 35)}
    cells = [{"row": row, "column": column, "ours": ours, "verdict": "agrees"}
             for column, values in sides.items() for row, ours in zip("xy", values, strict=True)]  # fmt: skip
    write("gu-8", cells)
    assert (decide("gu-shorter-input").verdict, decide("gu-shorter-input").effect) == ("holds", 7.5)
    write("gu-8", [cell | {"verdict": "n/a" if cell["row"] == "y" else "differs"} for cell in cells])
    assert decide("gu-shorter-input").verdict == "undecided"
    write("gu-8", [*cells[:3], cells[3] | {"ours": 45}])
    assert decide("gu-shorter-input").verdict == "fails" and np.isnan(decide("gu-shorter-input").p)


def test_a_summary_has_the_measured_claims_about_recipes_and_no_others():
    row = dict.fromkeys(claims.COLUMNS, 0) | {
        "statement": "more is more", "paper": "gu-pubmedbert", "claim": "gu-half-compute",
        "unit": "recipe", "n_sets": 3, "verdict": "holds", "effect": 1.5, "p": 0.01, "note": "two parts",
    }  # fmt: skip
    other_rows = [row | {"n_sets": 0}, row | {"unit": "checkpoint"}]
    (summary,) = claims.list_recipes(pd.DataFrame([row, *other_rows]))
    assert "*more is more* (PubMedBERT / BLURB): **holds on these sets**, +1.50 points" in summary
    assert summary.endswith("Corrected p 0.010; two parts.")
    assert claims.list_recipes(claims.read_verdicts(open_study("gpu"))) == []  # nothing is judged at this scale


def test_whole_words_are_compared_word_by_word(monkeypatch, write):
    words = [f"{first}{second}word" for first in "abcdefghij" for second in "abcdefghij"]
    counts = {claim_tests.WHOLE[0]: [1] * 90 + [2] * 10, claim_tests.WHOLE[1]: [2] * 60 + [1] * 40}
    monkeypatch.setattr(Mesh, "names_by_branch", lambda self: {"diseases": words})
    monkeypatch.setattr(Vocabulary, "tokenizer", lambda self: self.key)
    monkeypatch.setattr(claim_tests, "count_by_word", lambda key, found: counts[key] if found == words else [])
    assert decide("wada-amplified-terms").note == "vocabulary 'focused-other-amplified' not built yet"
    for key in claim_tests.WHOLE:
        Vocabulary(key, LAPTOP).folder.mkdir(parents=True)
    found = decide("wada-amplified-terms")
    assert (found.effect, found.n, found.verdict) == (50.0, 100, "holds")
    assert 30 < found.ci_low < 45 < 55 < found.ci_high < 70


def test_the_core_is_shown_more_in_every_case_or_not(write):
    row = {"core": "small", "satellite": "large"}
    rows = [row | {"method": "simultaneous", "core share": 0.5, "distinct pairs": 9},
            row | {"method": "split files", "core share": 0.1, "distinct pairs": 8}]  # fmt: skip
    write("wada-figure-3", rows)
    assert (decide("wada-core-share").verdict, decide("wada-core-share").effect) == ("holds", 40)
    write("wada-figure-3", [rows[0] | {"distinct pairs": 8}, rows[1]])
    judgement = decide("wada-core-share")
    assert judgement.verdict == "fails" and judgement.note.endswith("document pairs in 0, not with core small")


def test_sizes_round_to_the_printed_ones_or_not(write):
    sizes = {"albert-base": 11.7, "albert-large": 17.7, "bioalbert-large1": 16.4, "bert-uncased": 109.5}
    write("parameters", [{"model": model, "counted, millions": size} for model, size in sizes.items()])
    assert decide("naseem-size").verdict == "holds"
    sizes["bioalbert-large1"] = 17.7
    write("parameters", [{"model": model, "counted, millions": size} for model, size in sizes.items()])
    assert (decide("naseem-size").verdict, decide("naseem-size").effect) == ("fails", 75)


def test_words_are_shattered_in_each_example_or_not(write):
    assert "not compared yet" in decide("gu-attention-shattering").note
    counts = {("one", "bert-cased"): 3, ("one", "pubmedbert-uncased"): 1, ("two", "bert-cased"): 2,
              ("two", "pubmedbert-uncased"): 1}  # fmt: skip
    rows = [{"example": example, "vocabulary": vocabulary, "place": 0, "word": "agonist", "printed": True,
             "count": count, "pieces": "a"} for (example, vocabulary), count in counts.items()]  # fmt: skip
    write("gu-figure-3", rows)
    assert (decide("gu-attention-shattering").verdict, decide("gu-attention-shattering").effect) == ("holds", 100)
    write("gu-figure-3", [*rows[:3], rows[3] | {"count": 2}])
    assert (decide("gu-attention-shattering").verdict, decide("gu-attention-shattering").effect) == ("fails", 50)


@pytest.fixture
def scored(write):
    """Return a function that writes a table of tag scores at a scale and judges the claim on it.

    `runs`: (model, protocol, dataset) -> scores of the seeds by entity, by word, and by word with O.
    """

    def decide_scored(scale: str, runs: dict[tuple[str, str, str], tuple[list, list, list]]) -> Judgement:
        rows = []
        for (model, protocol, dataset), (entities, *others) in runs.items():
            for name, values in zip((WORDS, WORDS_AND_O), others, strict=True):
                row = {"kind": "metric", "model": model, "protocol": protocol, "dataset": dataset, "n": len(values)}
                row |= {"first": ENTITIES, "second": name, "first_value": np.mean(entities)}
                seeds = {f"{side}_by_seed": " ".join(f"{value:.2f}" for value in scores)
                         for side, scores in (("first", entities), ("second", values))}  # fmt: skip
                rows.append(row | seeds)
        columns = ["kind", "model", "protocol", "dataset", "first", "n"]
        write("protocols", pd.DataFrame(rows) if rows else pd.DataFrame(columns=columns), scale)
        return decide("naseem-ner-gain", scale)

    return decide_scored


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
def test_some_runs_always_answer_yes_or_none_does(found, verdict):
    judgement = claim_tests.decide_one_class(make_answers(found))
    seeds = [recalls for runs in found.values() for recalls in runs]
    assert judgement.verdict == verdict and judgement.n == len(seeds)
    assert judgement.effect == pytest.approx(100 * seeds.count((100, 0)) / len(seeds))
    assert judgement.ci_low <= judgement.effect <= judgement.ci_high


def test_small_models_leave_the_gain_in_entities_open_and_say_how_far_definitions_are_apart(scored):
    judgement = scored("laptop", {
        ("bioalbert-base1", "gu", "ncbi-disease"): ([60.0, 62.0], [64.0, 64.0], [96.0, 96.0]),
        ("bioalbert-base1", "gu", "bc2gm"): ([50.0, 52.0], [54.0, 54.0], [92.0, 92.0]),
        ("bert-general", "lee", "jnlpba"): ([70.0, 72.0], [74.0, 74.0], [82.0, 82.0]),
    })  # fmt: skip
    assert judgement.verdict == "undecided" and np.isnan(judgement.p)
    assert judgement.effect == pytest.approx((35 + 41) / 2) and judgement.n == 4
    assert judgement.ci_low < judgement.effect < judgement.ci_high
    assert judgement.note.startswith("bioalbert-base1 under gu on ncbi-disease, bc2gm: 56.00 by entity, by word +3.00")


@each(
    ("entities", "verdict"),
    [([95.8, 96.0], "holds"), ([95.1, 95.5], "holds"), ([94.8, 95.0], "undecided"), ([88.0, 89.0], "fails")],
)
def test_models_of_the_papers_size_are_held_against_print(scored, entities, verdict):
    """Printed for Base1: 95.89 on NCBI-disease and 96.34 on BC2GM, 6.18 and 11.24 above the state of the art."""
    word_scores = [90.0] * 2, [98.0] * 2
    runs = {"ncbi-disease": (entities, *word_scores), "bc2gm": ([value + 0.47 for value in entities], *word_scores)}
    judgement = scored("paper", {("bioalbert-base1", "naseem", name): scores for name, scores in runs.items()})
    assert judgement.verdict == verdict and judgement.effect == pytest.approx(sum(entities) / 2 - 95.88)
    assert "points, printed +8.71" in judgement.note


@each("model", ["pubmedbert", "bert-random"])
def test_predictions_of_another_model_do_not_measure_the_gain_in_entities(scored, model):
    unmeasured = Judgement(note="no entities scored yet of bioalbert-base1 under naseem")
    assert decide("naseem-ner-gain", "gpu") == unmeasured
    assert scored("paper", {(model, "naseem", "ncbi-disease"): ([60.0], [64.0], [96.0])}) == unmeasured


# All claims


def check_pairs(part: Pairs, unit: str) -> None:
    """Check that a comparison names existing cells, has a margin if its relation needs one, and has the right unit."""
    cells = pairs.list_compared_cells(part, LAPTOP)
    if part.metric:
        cells = cells[cells["metric"] == part.metric]
    assert (part.relation == "beats") == (part.margin == 0)
    assert not cells[~cells["is_mean"]].duplicated(["row", "column"]).any(), "a metric is needed"
    across, along = ("column", "row") if {*part.names} <= {*cells["column"]} else ("row", "column")
    assert {*part.names} <= {*cells[across]} and {*part.only} <= {*cells[along]}
    compared = cells[cells[across].isin(part.names)]
    assert {*compared["model"]} <= {"", *params.keys("models"), *params.BASELINES}
    assert (compared.groupby(along)["model"].nunique().max() == 1) == (part.unit == unit == "checkpoint")


@each("claim", claims.CLAIMS)
def test_a_claim_names_what_is_there(claim):
    test = claim.test
    assert set(test.vocabularies) <= set(params.keys("vocabularies"))
    for table in test.tables:
        assert any(page_jobs.split_tables([table]).values())
    for part in test.parts:
        if isinstance(part, Trend):
            figure = params.load("tables", part.figure)
            assert figure.axis and {*part.only} <= {*(figure.columns if figure.along == "rows" else figure.rows)}
        else:
            check_pairs(part, test.unit)


def test_every_claim_of_the_papers_has_its_line():
    assert [claim.key for claim in claims.CLAIMS] == results.read_claims()["claim"].tolist()
    with pytest.raises(StudyError, match="did you mean .*gu-whole-word"):
        claims.judge_one(LAPTOP, "gu-whole-words")


def test_the_claims_that_the_study_began_with_are_all_there_unchanged():
    """Compare with ../shared/published if it is there; one claim now cites another section of its paper."""
    path = paths.ROOT / "../shared/published/claims.csv"
    if not path.exists():
        pytest.skip("no ../shared/published")
    text = path.read_text(encoding="utf-8")
    lines = text.replace("ozyurt-inference,ozyurt-bioelectra,abstract", "ozyurt-inference,ozyurt-bioelectra,section 1")
    lines = lines.splitlines()
    assert [line for line in (paths.PUBLISHED / "claims.csv").read_text(encoding="utf-8").splitlines()
            if line in lines] == lines  # fmt: skip


def test_the_family_of_claims_is_the_one_that_page_00_fixes():
    rules = (paths.NOTEBOOKS / "00_start_here.ipynb").read_text(encoding="utf-8")
    assert f"{sum(claim.test.by_interval for claim in claims.CLAIMS)} claims that an interval decides" in rules


UNPRINTED = {"gu-cased-as-good", "lee-bio-beats-bioes", "lee-anonymise-beats-tags", "lee-squad-first",
             "naseem-beats-albert", "ozyurt-sample-efficiency"}  # fmt: skip


def test_a_comparison_asks_for_what_its_paper_prints():
    """Each comparison holds by the printed scores, or nothing is printed; so none has its sides swapped."""
    parts = [(claim.key, part) for claim in claims.CLAIMS for part in claim.test.parts if isinstance(part, Pairs)]
    cells_by_table = {part.table: pairs.list_compared_cells(part, LAPTOP) for _, part in parts if part.table}
    unprinted = set()
    for key, part in parts:
        in_table = cells_by_table[part.table] if part.table else pairs.list_compared_cells(part, LAPTOP)
        cells = pairs.find_cells(part, in_table)
        by_set = pairs.subtract_printed(part, cells)
        printed = by_set.mean() if by_set.notna().any() else pairs.subtract_means(part, in_table, {*cells["dataset"]})
        low, high = statistics.BOUNDS[part.relation](part.margin)
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
    assert judged.loc["gu-whole-word", "note"] == "three sets"
    assert judged.loc["naseem-size", "note"] == "three sets"  # not about trained models
    assert judged.loc["naseem-mimic-hurts", ["note", "not_tested"]].tolist() == ["not run", "no notes"]
    alone = claims.judge_one(LAPTOP, "gu-whole-word")
    assert (alone["verdict"], alone["p"]) == ("points that way", 0.03)
    assert claims.judge_claims(open_study("smoke"))["verdict"].eq("n/a").all()  # made-up data


def test_what_does_not_survive_the_correction_points(five, monkeypatch):
    """The correction counts every claim that an interval decides, measured or not."""
    unmeasured = [Claim("lee-steps", replace(claims.find_claim("lee-steps").test, decide=lambda _: Judgement()))] * 100
    monkeypatch.setattr(claims, "CLAIMS", (*claims.CLAIMS, *unmeasured))
    judged = claims.judge_claims(LAPTOP).set_index("claim").loc["gu-tagging-scheme"]
    assert (judged["verdict"], judged["p"]) == ("points that way", 0.102)
    assert judged["note"].startswith("not significant after correction for 103 claims; three sets")


def test_the_verdicts_are_said_in_words(five):
    tallied = claims.tally(claims.judge_claims(LAPTOP)).set_index(["what", "paper"])
    total = tallied.loc[("claims about scores", "all")]
    assert total[["of", "hold", "point that way", "not measured here (n/a)"]].tolist() == [4, 1, 2, 1]
    counts = tallied["of"]
    assert len(counts) == 8 and counts["claims about scores", "all"] == 4  # per paper and kind of claim
    assert counts["claims about scores", "BioALBERT"] == counts[claims.KINDS["text"], "all"] == 1
    phrases = {("lee-steps", "holds"): "holds as far as tested", ("lee-steps", "fails"): "does not hold",
               ("gu-half-compute", "holds"): "holds",
               ("lee-steps", "points that way"): "points that way as far as tested",
               ("lee-steps", "points the other way"): "points the other way"}  # fmt: skip
    for (key, verdict), phrase in phrases.items():
        assert claims.describe_verdict({"claim": key, "verdict": verdict, "n_sets": 6}) == phrase
    few = {"claim": "gu-half-compute", "verdict": "fails", "n_sets": 5}
    assert claims.describe_verdict(few) == "does not hold on these sets"


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
    assert committed.loc["wada-amplified-terms", ["effect", "ci_low", "ci_high", "n"]].tolist() == (
        row[["effect", "ci_low", "ci_high", "n"]].tolist()
    )
