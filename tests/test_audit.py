"""The audit: numbers with their rounding by hand, every kind of line, and what the papers' own tables come to."""

import pandas as pd
import pytest
import yaml
from conftest import each

from lib.errors import StudyError
from lib.study import params, paths, results, stages
from lib.study.analysis import audit, compare, facts, printed, scoreboard
from lib.study.analysis.printed import Number, read_number


@pytest.fixture(scope="module")
def lines() -> pd.DataFrame:
    return audit.build(facts.load_audit())


def number(text: str, spread: float | None = None) -> Number:
    found = read_number(text)
    return Number(found.value, found.low, found.high, found.places, spread)


def bounds(found: Number) -> tuple[float, float, float]:
    return tuple(round(value, 6) for value in (found.value, found.low, found.high))


def make_audit(text: str) -> facts.Audit:
    """Checked facts: what is not given is empty."""
    empty = {"counted": [], "f1": [], "averages": [], "differences": [], "statements": [],
             "repeated": {"models": {}, "datasets": {}, "metrics": {}, "notes": []}}  # fmt: skip
    return params.check_settings("audit.yaml", empty | yaml.safe_load(text), facts.Audit)


def state(**changes) -> str:
    """A statement on Table 4 of BioBERT as YAML: averages above the state of the art."""
    cells = {"table": "lee-4", "rows": ["Average"], "metrics": ["F1"]}
    statement = {"paper": "lee-biobert", "where": "abstract", "what": "a gain", "printed": "1.86",
                 "operation": "difference", "of": [cells | {"columns": ["BioBERT (+PubMed+PMC)"]}],
                 "than": [cells | {"columns": ["State-of-the-art"]}]}  # fmt: skip
    return yaml.safe_dump({"statements": [statement | changes]}, sort_keys=False)


# Numbers


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.80", (0.8, 0.795, 0.805)), ("8", (8, 7.5, 8.5)), ("-1.95", (-1.95, -1.955, -1.945))],
)  # fmt: skip
def test_a_number_of_a_text_is_uncertain_by_half_a_unit(text, expected):
    assert bounds(read_number(text)) == expected
    assert str(read_number(text)) == text


def test_cells_have_the_places_of_their_metric_and_counts_are_exact():
    tables = printed.read_tables(counted=["lee-3"])
    assert bounds(tables["gu-10"]["BIOSSES", "PubMed", "Pearson"]) == (92.3, 92.295, 92.305)  # 92.30
    assert bounds(tables["wada-7"]["SciBERT (Sci: SciVocab)", "Total", "macro average"]) == (82.0, 81.95, 82.05)
    assert str(tables["naseem-7"]["MedSTS", "Base2", "Pearson"]) == "85.00"
    assert bounds(tables["lee-3"]["BC2GM", "train", "annotations/sentences/questions"]) == (12573, 12573, 12573)
    assert tables["ozyurt-5"]["BioASQ 5b reranking", "BERT Base", "MRR"].spread == 0.007
    assert sum(map(len, tables.values())) == len(pd.read_csv(paths.PUBLISHED / "scores.csv"))


@pytest.mark.parametrize(
    ("operation", "of", "than", "expected"),
    [
        ("mean", "80.0 82.5", "", (81.25, 81.2, 81.3)),
        ("sum", "2.5 0.8", "", (3.3, 3.2, 3.4)),
        ("difference", "80.0 82.0", "79.0", (2, 1.9, 2.1)),
        ("smallest difference", "80.0 82.0", "79.5 79.0", (0.5, 0.4, 0.6)),
        ("largest difference", "80.0 82.0", "79.5 79.0", (3, 2.9, 3.1)),
        ("ratio", "110", "14", (7.857143, 7.551724, 8.185185)),
        ("gain", "100", "62.5", (60, 59.072742, 60.928743)),
        ("share", "3", "3 1", (75, 50, 116.666667)),
        ("wins", "81 79 80", "80", (1, 1, 2)),  # 80 and 80 may be either way
        ("wins", "80", "79 78 80.4", (2, 2, 3)),
    ],
)
def test_operations(operation, of, than, expected):
    sides = [[read_number(text) for text in side.split()] for side in (of, than)]
    assert bounds(printed.OPERATIONS[operation](*sides)) == expected


def test_f1_between_the_bounds_of_precision_and_recall():
    found = printed.f1(number("88.44"), number("91.53"))
    assert found.value == pytest.approx(2 * 88.44 * 91.53 / 179.97)
    assert (found.low, found.high) == pytest.approx((2 * 88.435 * 91.525 / 179.96, 2 * 88.445 * 91.535 / 179.98))


@pytest.mark.parametrize(
    ("stated", "found", "verdict"),
    [
        ("90.34", (90.335, 90.33, 90.34), "agrees"),  # a tie may be rounded up or down
        ("90.33", (90.335, 90.33, 90.34), "agrees"),
        ("76.66", (76.6533, 76.6483, 76.6583), "rounding"),
        ("76.67", (76.6533, 76.6483, 76.6583), "differs"),
        ("82.8", (82.9, 82.85, 82.95), "differs"),  # one unit: no number rounds to both
    ],
)
def test_verdicts(stated, found, verdict):
    judged = audit.judge(read_number(stated), Number(*found))
    assert judged["verdict"] == verdict
    assert judged["excused_by_rounding"] == ("no" if verdict == "differs" else "yes")
    assert judged["difference"] == round(float(stated) - found[0], 4)


def test_counts_are_not_rounded_and_cells_that_may_be_equal_excuse_them():
    assert audit.judge(read_number("17"), Number(17, 17, 17), exact=True)["rounding"] == 0
    assert audit.judge(read_number("17"), Number(16, 16, 17), exact=True)["verdict"] == "rounding"
    assert audit.judge(read_number("17"), Number(16, 16, 16), exact=True)["verdict"] == "differs"


def test_the_mean_f1_of_runs_lies_below_the_f1_of_their_means():
    # Runs with precision 81 and 79 and recall 79 and 81: each F1 is 79.9875, the F1 of the means is 80.
    below = audit.average_below(number("80", spread=1.0), number("80", spread=1.0))
    assert below == pytest.approx(0.0125)
    found = printed.f1(number("80.00"), number("80.00"))
    assert audit.judge(number("79.98"), found, averaging=below)["verdict"] == "averaging"
    assert audit.judge(number("79.98"), found)["verdict"] == "differs"
    assert audit.judge(number("80.02"), found, averaging=below)["verdict"] == "differs"
    assert audit.average_below(number("80"), number("80")) == 0


# Names


@each(
    ("text", "message"),
    [
        ("counted: [lee-33]", "unknown table in params/audit.yaml, counted 'lee-33': did you mean lee-3"),
        ("f1: [{table: lee-4, precision: precision, recall: recal, f1: F1}]",
         "unknown metric of lee-4 in params/audit.yaml, f1 of lee-4 'recal': did you mean recall"),
        ("f1: [{table: lee-4, precision: precision, recall: recall, f1: F1, but: [Averages]}]",
         "unknown row of lee-4 .*'Averages': did you mean Average"),
        ("averages: [{tables: [lee-4], name: Avarage}]", "unknown row or column of lee-4 .*'Avarage'"),
        ("averages: [{tables: [gu-6], name: BLURB score, groups: [[BC5-chemical]]}]",
         "averages of gu-6, BLURB score 'BC5-chemical': did you mean BC5-chem"),
        ("differences: [{table: naseem-7, column: difference over SOTA, than: STOA}]", "'STOA': did you mean SOTA"),
        (state(of=[{"table": "lee-44"}]), "unknown table in .*lee-biobert, abstract: a gain 'lee-44'"),
        (state(of=[{"table": "lee-4", "rows": ["Averge"]}]), "unknown row of lee-4 .*a gain 'Averge'"),
        (state(of=[{"table": "lee-4", "columns": ["BERT"]}]), "unknown column of lee-4 .*a gain 'BERT'"),
        (state(of=[{"table": "lee-4", "metrics": ["f1"]}]), "unknown metric of lee-4 .*a gain 'f1'"),
        (state(of=[{"table": "lee-4", "but": ["x"]}]), "unknown row or column of lee-4 .*a gain 'x'"),
        (state(of=[{"table": "gu-6", "rows": ["DDI", "HoC"], "metrics": ["Pearson"]}]),
         "a gain: 'DDI' stands for no cell of gu-6"),
        (state(operation="wins", than=[{"table": "lee-4", "metrics": ["F1"]}], of=[{"table": "lee-4"}]),
         "a gain: 150 numbers on one side, 50 on the other"),
        (state(paper="lee-bert"), "unknown paper in params/audit.yaml 'lee-bert'"),
        ("repeated: {models: {m: {lee-44: {name: x}}}, datasets: {}, metrics: {}, notes: []}",
         "unknown table in params/audit.yaml, repeated, m 'lee-44'"),
        ("repeated: {models: {m: {lee-4: {name: BERT}}}, datasets: {}, metrics: {}, notes: []}",
         "unknown row or column of lee-4 .*'BERT'"),
        ("repeated: {models: {m: {lee-4: {name: Average, datasets: [d]}}}, datasets: {}, metrics: {}, notes: []}",
         "unknown dataset in params/audit.yaml, repeated, m 'd'"),
        ("repeated: {models: {}, datasets: {d: {le: BC2GM}}, metrics: {}, notes: []}", "unknown table or paper .*'le'"),
        ("repeated: {models: {}, datasets: {d: {lee: BC2}}, metrics: {}, notes: []}", "row or column of lee .*'BC2'"),
        ("repeated: {models: {}, datasets: {}, metrics: {F1: [F2]}, notes: []}", "unknown metric .*'F2'"),
        ("repeated: {models: {}, datasets: {}, metrics: {}, notes: [{between: [lee, gu], models: [m], note: n}]}",
         "unknown model in params/audit.yaml, repeated, the note 'n' 'm'"),
    ],
)  # fmt: skip
def test_unknown_names_are_refused_with_their_entry(text, message):
    with pytest.raises(StudyError, match=message):
        audit.build(make_audit(text))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"printed": 1.86}, "printed: .*valid string.*1.86"),  # a float does not know its places
        ({"printed": "1.86%"}, "printed: .*match pattern"),
        ({"operation": "median"}, "operation: .*'wins'"),
        ({"than": []}, "'difference' does not go with `than`, or lacks it"),
        ({"operation": "sum"}, "'sum' does not go with `than`"),
        ({"rows": {"Average": "1.86"}}, "either one number that is printed, or one a row"),
        ({"printed": None, "rows": {"DDI": "1"}, "of": [{"number": "1", "paper": "p", "where": "w"}]},
         "numbers of rows follow from cells"),
    ],
)  # fmt: skip
def test_faults_of_a_statement_are_named(changes, message):
    with pytest.raises(StudyError, match=f"audit.yaml: statements.0.*{message}"):
        make_audit(state(**changes))


# Kinds of lines


def test_a_statement():
    (line,) = audit.build(make_audit(state())).to_dict("records")
    assert line == {
        "paper": "lee-biobert", "where": "abstract", "kind": "difference", "what": "a gain", "printed": "1.86",
        "recomputed": 1.86, "difference": 0.0, "rounding": 0.015, "excused_by_rounding": "yes", "verdict": "agrees",
        "note": "",
    }  # fmt: skip


def test_a_statement_on_numbers_of_another_paper():
    given = [{"number": "2", "paper": "gu-pubmedbert", "where": "section 1"}]
    (line,) = audit.build(make_audit(state(of=given, operation="mean", than=[]))).to_dict("records")
    assert (line["kind"], line["recomputed"], line["verdict"]) == ("two papers", 2.0, "rounding")


@pytest.mark.parametrize(("least", "verdict"), [("9", "agrees"), ("10", "differs")])
def test_words_that_say_at_least(least, verdict):
    sides = [[{"table": "lee-4", "columns": [name], "metrics": ["F1"], "but": ["Average"]}]
             for name in ("BioBERT (+PubMed)", "BERT (Wiki+Books)")]  # fmt: skip
    text = state(printed=least, operation="wins", of=sides[0], than=sides[1], at_least=True)
    (line,) = audit.build(make_audit(text)).to_dict("records")
    assert (line["recomputed"], line["verdict"], line["note"]) == (9, verdict, "at least")


def test_one_number_a_row():
    sides = [[{"table": "naseem-7", "columns": [name]}] for name in ("Large1", "SOTA")]
    text = state(printed=None, rows={"HoC": "0.62", "BIOSSES": "0.40"}, of=sides[0], than=sides[1])
    found = audit.build(make_audit(text))
    assert found["what"].tolist() == ["HoC: a gain", "BIOSSES: a gain"]
    assert found["verdict"].tolist() == ["agrees", "differs"]


def test_averages_over_groups_and_with_weights():
    text = """
averages:
  - {tables: [gu-6], name: BLURB score, groups: [[EBM PICO], [ChemProt, DDI]]}
  - {tables: [wada-8], name: total, weights: {clinical: 4, biomedical: 6}}
"""
    found = audit.build(make_audit(text)).set_index("where")
    # (73.38 + (77.24 + 82.36) / 2) / 2
    assert found.loc["gu-6, BLURB score, PubMedBERT uncased, macro average", "recomputed"] == 76.59
    line = found.loc["wada-8, BlueBERT (W+BC/P/M: BaseVocab), total, macro average"]
    assert (line["recomputed"], line["verdict"]) == (81.54, "rounding")  # 0.4 * 81.0 + 0.6 * 81.9, printed as 81.6
    assert line["what"] == "mean of clinical (4 sets) and biomedical (6 sets)"


def test_what_is_printed_again_is_held_against_the_first_of_its_paper_and_of_each_other():
    text = """
repeated:
  models:
    PubMedBERT: {gu-6: {name: PubMedBERT uncased}, gu-10: {name: PubMed}, gu-11: {name: PubMedBERT},
                 naseem-7: {name: SOTA, datasets: [DDI]}}
    BERT: {gu-6: {name: BERT uncased}, wada-7: {name: "BERT (W + BC: BaseVocab)"}}
  datasets: {DDI: {gu: DDI, wada: DDI, naseem: DDI}, HoC: {gu: HoC}}
  metrics: {F1: [micro F1]}
  notes:
    - {between: [naseem, gu], note: quoted}
    - {between: [gu-6, wada-7], datasets: [HoC], note: another metric}
"""
    found = audit.build(make_audit(text))
    assert found[["where", "what", "printed", "recomputed", "kind", "note"]].to_numpy().tolist() == [
        ["gu-10, beside gu-6", "PubMedBERT on DDI, F1", "82.36", 82.36, "two tables", ""],
        ["gu-11, beside gu-6", "PubMedBERT on DDI, F1", "82.36", 82.36, "two tables", ""],
        ["naseem-7, beside gu-6", "PubMedBERT on DDI, F1", "82.36", 82.36, "two papers", "quoted"],
        ["gu-10, beside gu-6", "PubMedBERT on HoC, F1", "82.32", 82.32, "two tables", ""],
        ["gu-11, beside gu-6", "PubMedBERT on HoC, F1", "82.32", 82.32, "two tables", ""],
        ["wada-7, beside gu-6", "BERT on DDI, F1", "35.3", 80.04, "two papers", ""],
    ]


# The papers


def test_every_printed_average_and_f1_is_a_line(lines):
    kinds = lines.groupby(["paper", "kind"]).size()
    assert kinds["gu-pubmedbert", "average"] == 21
    assert kinds["lee-biobert", "average"] == 45 and kinds["lee-biobert", "F1"] == 9 * 5 + 3 * 5
    assert kinds["naseem-bioalbert", "average"] == 36 and kinds["wada-oubiobert", "average"] == 9 + 6
    assert kinds["ozyurt-bioelectra", "F1"] == 8 + 16 + 8 + 15
    assert list(lines.columns) == audit.COLUMNS and lines.notna().all(axis=None)
    assert not lines.duplicated(["paper", "where", "what"]).any()


def test_the_blurb_scores_agree_and_four_of_bioalberts_averages_do_not(lines):
    averages = lines[lines["kind"] == "average"]
    assert (averages[averages["paper"] == "gu-pubmedbert"]["verdict"] == "agrees").all()
    naseem = averages[averages["paper"] == "naseem-bioalbert"]
    assert (naseem["verdict"] != "agrees").sum() == 6
    wrong = naseem[naseem["verdict"] == "differs"]
    assert dict(zip(wrong["where"], zip(wrong["printed"], wrong["recomputed"], strict=True), strict=True)) == {
        "naseem-7, BLURB: Named Entity Recognition, SOTA, F1": ("84.61", 85.21),
        "naseem-7, BLURB: Relation Extraction, SOTA, micro F1": ("79.14", 81.414),
        "naseem-7, BLURB: Relation Extraction, Large3, micro F1": ("70.50", 70.476),
        "naseem-7, BLURB: Sentence Similarity, SOTA, Pearson": ("88.20", 88.55),
    }


def test_averaging_over_runs_explains_all_of_bio_electras_f1_but_one(lines):
    f1 = lines[(lines["paper"] == "ozyurt-bioelectra") & (lines["kind"] == "F1")]
    (wrong,) = f1[f1["verdict"] == "differs"].to_dict("records")
    assert (wrong["where"], wrong["printed"], wrong["recomputed"]) == ("ozyurt-7, BC4CHEMD, BERT", "90.40", 90.6546)
    again = lines[(lines["kind"] == "two tables") & (lines["paper"] == "ozyurt-bioelectra")]
    (wrong,) = again[again["verdict"] != "agrees"].to_dict("records")
    assert (wrong["what"], wrong["printed"], wrong["recomputed"]) == ("BERT cased on BC4CHEMD, recall", "89.96", 89.46)


def test_tally_and_sentences_come_from_the_lines(lines):
    counts = audit.tally(lines)
    assert counts["checked"].sum() == len(lines)
    assert (counts[[*audit.VERDICTS.values()]].sum(axis=1) == counts["checked"]).all()
    assert counts["paper"].drop_duplicates().tolist() == list(results.PAPERS.values())
    text = audit.describe(lines)
    assert "the best of 8 models above SOTA): 12.25 printed, 11.87 recomputed" in text
    assert f"Of {lines['kind'].isin(['two tables']).sum()} pairs of numbers that mean the same in two tables" in text
    shown = audit.list_exceptions(lines, "F1")
    assert set(shown["kind"]) == {"F1"} and "agrees" not in set(shown["verdict"])
    assert shown["verdict"].iloc[0] == "differs" and shown["verdict"].iloc[-1] == "rounding"
    assert "The 0" not in audit.describe(lines[lines["verdict"] == "agrees"])


def test_claims_are_decided_from_the_written_audit(lines, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "output", lambda scale, *parts: tmp_path.joinpath(scale, *parts))
    tests = {claim: test for claim, test in params.claim_tests().items() if test.kind == "audited"}
    assert (
        scoreboard.decide_audited(tests["wada-totals"], "laptop")["note"] == "the printed numbers have not been audited"
    )
    compare.write_table(paths.table("laptop", "audit"), lines)
    judged = {claim: scoreboard.decide_audited(test, "laptop") for claim, test in tests.items()}
    assert {claim: found["verdict"] for claim, found in judged.items()} == {
        "gu-blurb-arithmetic": "holds",
        "lee-averages": "fails",
        "wada-totals": "holds",
        "naseem-arithmetic": "fails",
        "ozyurt-arithmetic": "fails",
    }
    assert (judged["gu-blurb-arithmetic"]["effect"], judged["gu-blurb-arithmetic"]["n"]) == (100, 21)
    assert judged["lee-averages"]["note"] == "% of 110 printed numbers that follow, rounding allowed; 6 do not"
    assert judged["ozyurt-arithmetic"]["note"].endswith("17 do not, which averaging over runs explains in 15")
    for test in tests.values():
        assert {*test.lines} <= {*lines[lines["paper"] == test.paper]["kind"]}


def test_the_audit_needs_no_data():
    (job,) = stages.plan("smoke", stages.targets("smoke", ["90"])).values()
    assert (job.notebook, job.output, job.inputs) == ("90_audit", "tables/audit.csv", [])
    assert job.output in stages.job_of("smoke", "tables/claims.csv").inputs
