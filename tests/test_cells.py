"""Which runs fill which cell, whatever a table's rows and columns are; pairs of them."""

import numpy as np
import pandas as pd
import pytest

from lib.study import params, results
from lib.study.analysis import cells, compare, scoreboard
from lib.study.study import Study


@pytest.fixture
def scores(monkeypatch):
    """The scores of runs that exist: (model, dataset, protocol) -> those of seeds 1 and 2."""
    known = {}

    def read(scale, *run):
        if run not in known:
            return None
        names = ("f1", "pearson", "accuracy", "precision", "recall")
        pairs = zip((1, 2), known[run], strict=True)
        return {"runs": [{"seed": seed, "scores": dict.fromkeys(names, value)} for seed, value in pairs]}

    monkeypatch.setattr(results, "read", read)
    monkeypatch.setattr(cells, "find_obstacle", lambda *_: "")
    return known


def one(table, row, column):
    (line,) = table[(table["row"] == row) & (table["column"] == column)].to_dict("records")
    return line


def test_rows_and_columns_may_be_models_datasets_or_protocols(scores):
    scores["pubmedbert", "bc5cdr-chem", "gu-bilstm"] = (80.0, 82.0)
    scores["pubmedbert", "ddi", "gu-markers"] = (60.0, 62.0)
    scores["bluebert-pubmed", "biosses", "wada"] = (70.0, 74.0)
    line = one(cells.build("gu-12", "laptop"), "BC5-chem", "Bi-LSTM")
    assert (line["ours"], line["n_seeds"]) == (81.0, 2) and line["ours_std"] == pytest.approx(2**0.5, abs=0.01)
    assert one(cells.build("gu-14", "laptop"), "entity markers / [CLS]", "DDI")["ours"] == 61.0
    assert one(cells.build("wada-7", "paper"), "BlueBERT (W + BC/ P: BaseVocab)", "BIOSSES")["ours"] == 72.0
    assert one(cells.build("gu-12", "laptop"), "BC5-chem", "Linear layer")["note"] == results.NOT_MADE


def test_a_mean_over_groups_needs_every_set(scores):
    sets = [["a", "b"], ["c"]]
    cell = cells.Cell("mean", "model", "macro average", 1.0, np.nan, "m", sets, "p", "", "")
    assert cell.runs == [("m", "a", "p"), ("m", "b", "p"), ("m", "c", "p")]
    scores |= {("m", "a", "p"): (10.0, 20.0), ("m", "b", "p"): (30.0, 40.0)}
    assert cells.read_scores(cell, "f1", "laptop") is None
    scores["m", "c", "p"] = (60.0, 60.0)
    assert cells.read_scores(cell, "f1", "laptop") == {1: 40.0, 2: 45.0}  # (20 + 60) / 2, (30 + 60) / 2


def test_what_cannot_be_run_says_why(monkeypatch):
    monkeypatch.setattr(Study, "why_not", lambda _, key, protocol: "not at hand" if key == "mednli" else "")
    assert cells.find_obstacle("pubmedbert", [["mednli"]], "paper") == "not at hand"
    assert cells.find_obstacle("pubmedbert", [["mednli", "biosses"]], "paper") == "a mean of 2 sets; missing: mednli"
    assert "Semantic Scholar" in cells.find_obstacle("scibert-cased", [["biosses"]], "paper")
    assert cells.find_obstacle("roberta", [["biosses"]], "smoke") == "outside the budget of scale 'smoke'"
    assert cells.find_obstacle("", [["biosses"]], "paper") == "no run is assigned to this cell"
    assert cells.find_obstacle("tfidf-svm", [["jmed-crade"]], "smoke") == ""


def change_scale(monkeypatch, **changes):
    """Let the scale laptop have other settings."""
    load, changed = params.load, params.load("scales", "laptop").model_copy(update=changes)
    monkeypatch.setattr(params, "load", lambda *named: changed if named == ("scales", "laptop") else load(*named))


def test_panels_fill_cells_of_models_that_are_not_compared(monkeypatch):
    monkeypatch.setattr(Study, "why_not", lambda *_: "")
    panel = params.Panel(protocol="gu", models=["pubmedbert-half"], datasets=["gad", "ddi"])
    change_scale(monkeypatch, compared=["bert-general"], panels=[panel])
    outside = "outside the budget of scale 'laptop'"
    assert cells.find_obstacle("bert-general", [["hoc"]], "laptop", "lee") == ""
    assert cells.find_obstacle("pubmedbert-half", [["gad"], ["ddi"]], "laptop", "gu") == ""
    assert cells.find_obstacle("pubmedbert-half", [["gad", "hoc"]], "laptop", "gu") == outside
    assert cells.find_obstacle("pubmedbert-half", [["gad"]], "laptop", "gu-bilstm") == outside


def test_a_scale_may_run_one_thing_in_place_of_another(scores, monkeypatch):
    instead = params.Instead(models={"biobert-1m": "bert-general-pubmed"}, protocols={"wada": "gu"})
    change_scale(monkeypatch, compared=None, instead=instead)
    scores["bert-general-pubmed", "biosses", "gu"] = (70.0, 74.0)
    line = one(cells.build("wada-7", "laptop"), "BioBERT (W + BC/ P: BaseVocab)", "BIOSSES")
    assert line["ours"] == 72.0 and line["note"] == "bert-general-pubmed in place of biobert-1m, gu in place of wada"
    assert ("bert-general-pubmed", "biosses", "gu") in cells.list_runs("wada-7", "laptop")
    planned = params.Panel(protocol="wada", models=["medbert-en"], datasets=["biosses"])
    change_scale(monkeypatch, compared=None, instead=instead, panels=[planned])
    assert ("medbert-en", "biosses", "wada") in cells.list_runs("wada-7", "laptop")  # as the panel has it
    shown = cells.describe_runs("wada-7", "laptop").set_index("printed")["ours"]
    assert shown["BioBERT (W + BC/ P: BaseVocab)"] == "bert-general-pubmed"


def test_pairs_of_columns_and_of_rows(scores):
    scores |= {
        ("pubmedbert", "bc5cdr-chem", "gu"): (81.0, 82.0),
        ("pubmedbert", "bc5cdr-chem", "gu-bilstm"): (80.0, 80.0),
        ("medbert-en", "biosses", "wada"): (50.0, 50.0),
        ("medbert-en-core-only", "biosses", "wada"): (45.0, 46.0),
    }
    found = cells.paired_differences("gu-12", "", "Linear layer", "Bi-LSTM", "laptop")
    assert {place: values for place, values in found.items() if values} == {"BC5-chem": [1.0, 2.0]} and len(found) == 6
    rows = ("BERT (prop sP + W + BC: AmpVocab)", "BERT (sP: BaseVocab)")
    found = cells.paired_differences("wada-7", "", *rows, "paper")
    assert {place: values for place, values in found.items() if values} == {"BIOSSES": [5.0, 4.0]} and len(found) == 10
    better, than = (params.Run(model="pubmedbert", protocol=key) for key in ("gu", "gu-bilstm"))
    found = cells.run_differences(better, than, ["bc5cdr-chem", "ddi"], "laptop")
    assert found == {"bc5cdr-chem": [1.0, 2.0], "ddi": []}


def part(**settings):
    return {"table": "gu-12", "pairs": [["Linear layer", "Bi-LSTM"]]} | settings


def decide(*parts, **more):
    test = params.check_settings("a test", {"kind": "paired", "parts": list(parts)} | more, params.PairedTest)
    return scoreboard.decide_paired(test, "laptop")


def add_scores(scores, *datasets: str) -> None:
    """Two seeds of which the linear layer is ahead, by 1 and by 2 points."""
    for dataset in datasets:
        scores["pubmedbert", dataset, "gu"] = (81.0, 82.0)
        scores["pubmedbert", dataset, "gu-bilstm"] = (80.0, 80.0)


def test_a_claim_of_several_parts(scores):
    add_scores(scores, "bc5cdr-chem", "jnlpba")
    as_good = part(relation="as good as", margin=0.5)
    assert decide(part())["verdict"] == "holds" and decide(part())["effect"] == 1.5
    assert decide(part(), as_good)["verdict"] == "holds"
    assert decide(part(pairs=[["Bi-LSTM", "Linear layer"]]), as_good)["verdict"] == "fails"
    assert decide(part(), part(only=["DDI"]))["verdict"] == "undecided"  # the second has not been run
    assert decide(part(only=["DDI"])) == {"note": "no pair of runs has been made"}
    with pytest.raises(params.StudyError, match="a margin goes with"):
        decide(part(relation="equals"))
    with pytest.raises(params.StudyError, match="ahead counts the sets of one part"):
        decide(part(), as_good, ahead=2)


def test_one_set_of_several_decides_nothing(scores):
    add_scores(scores, "bc5cdr-chem")
    found = decide(part())
    assert (found["verdict"], found["p"], found["effect"]) == ("undecided", 1.0, 1.5)
    assert "BC5-chem, 1 of 6 sets" in found["note"]
    assert decide(part(only=["BC5-chem"]))["verdict"] == "holds"  # the claim speaks of no other
    add_scores(scores, "jnlpba")
    assert decide(part())["verdict"] == "holds"


def test_a_comparison_waits_for_all_its_pairs(scores):
    for dataset in ("bc5cdr-chem", "jnlpba"):
        scores["pubmedbert", dataset, "gu"] = (81.0, 82.0)
        scores["pubmedbert", dataset, "gu-io"] = (80.0, 80.0)
    schemes = {"table": "gu-13", "pairs": [["BIO", "IO"], ["BIO", "BIOUL"]]}
    found = decide(schemes)
    assert found["verdict"] == "undecided" and "2 of 3 sets, 1 of 2 pairs" in found["note"]
    assert decide(schemes | {"pairs": [["BIO", "IO"]]})["verdict"] == "holds"


def test_a_claim_of_so_many_sets_has_to_be_ahead_on_them(scores):
    add_scores(scores, "bc5cdr-chem", "jnlpba")
    assert decide(part(), ahead=2)["verdict"] == "holds"
    found = decide(part(), ahead=3, untested="the rest")
    assert found["verdict"] == "undecided" and found["p"] == 1.0
    assert "ahead on 2 of the 3 sets that it speaks of; not tested: the rest" in found["note"]


def test_a_verdict_that_does_not_survive_correction_is_undecided(monkeypatch):
    judged = {"effect": 1.0, "ci_low": 0.1, "ci_high": 2.0, "n": 3, "verdict": "holds", "note": "three sets"}
    ps = [0.04]
    decide = dict.fromkeys(scoreboard.DECIDE, lambda *_: judged | {"p": ps[0]})
    monkeypatch.setattr(scoreboard, "DECIDE", decide)
    claims = scoreboard.judge("laptop").dropna(subset="p")
    assert (claims["verdict"] == "undecided").all() and claims["note"].str.startswith("not after correction").all()
    ps[0] = 0.0001
    claims = scoreboard.judge("laptop").dropna(subset="p")
    assert len(claims) > 20 and set(claims["verdict"]) == {"holds", "points that way"}


def test_a_claim_about_recipes_that_were_pretrained_once_at_most_points(monkeypatch):
    """Of the same weights fine-tuned in two ways it may hold; which claims are of that kind their runs tell."""
    tests = params.claim_tests()
    said = {claim: scoreboard.limit_verdict(test, "holds") for claim, test in tests.items()}
    assert said["gu-scratch-beats-continual"] == said["lee-steps"] == said["naseem-ner-gain"] == "points that way"
    assert said["gu-linear-head"] == said["gu-blurb-arithmetic"] == said["naseem-size"] == "holds"
    assert scoreboard.limit_verdict(tests["wada-small-only-worst"], "fails") == "points the other way"
    assert scoreboard.limit_verdict(tests["gu-half-compute"], "undecided") == "undecided"
    for claim, test in tests.items():
        if test.kind == "paired":
            pairs = [pair for part in test.parts for pair in part.runs]
            one = {pair[0].model == pair[1].model for pair in pairs}
            assert one in ({test.same_weights}, set()), claim
    monkeypatch.setattr(scoreboard, "PRETRAININGS", scoreboard.FEWEST_PRETRAININGS)
    assert scoreboard.limit_verdict(tests["lee-steps"], "holds") == "holds"


def test_the_verdicts_of_a_scoreboard_are_counted_in_words():
    claims = pd.DataFrame({"verdict": ["holds", "points that way", "points that way", "n/a"]})
    assert scoreboard.describe(claims) == (
        "Of 4 claims in five papers: 1 hold, 0 fail, 2 point that way, 0 point the other way, 0 undecided, "
        "1 not measured here (n/a)."
    )


def test_every_table_of_scores_is_read_without_a_run(monkeypatch):
    monkeypatch.setattr(results, "read", lambda *_: None)
    for key in params.keys("tables"):
        table = params.load("tables", key)
        if table.kind == "scores":
            built = cells.build(key, "laptop")
            assert built["ours"].isna().all() and (built["note"] != "").all()
            assert not compare.spread(built, table.shown).empty
            assert "No cell of this table was run" in cells.describe(built, table.shown, "laptop")
            assert cells.count_reasons(built)["cells"].sum() == built["published"].notna().sum()


def test_a_comparison_says_what_its_runs_have_in_place_of_what_it_asks_for(scores):
    """At laptop one paper's protocol stands for those of three."""
    tests = params.claim_tests()
    (part_of_naseem,) = tests["naseem-beats-albert"].parts
    assert cells.list_substitutions(part_of_naseem, "laptop") == ["gu in place of naseem"]
    assert cells.list_substitutions(tests["gu-tagging-scheme"].parts[0], "laptop") == []
    for dataset in ("bc5cdr-chem", "ncbi-disease"):
        scores["bioalbert-base1", dataset, "gu"] = (65.0, 66.0)
        scores["albert-base", dataset, "gu"] = (56.0, 57.0)
    note = scoreboard.decide_paired(tests["naseem-beats-albert"], "laptop")["note"]
    assert "2 of 12 sets, gu in place of naseem;" in note


def test_substitutions_are_read_from_the_notes_of_a_table():
    notes = ["not in the paper; gu in place of wada", "bert-general in place of biobert-1m, gu in place of wada", "x"]
    lines = pd.DataFrame({"ours": [1.0, 2.0, 3.0], "note": notes})
    assert compare.read_substitutions(lines) == ["gu in place of wada", "bert-general in place of biobert-1m"]
    assert compare.read_substitutions(lines.assign(ours=np.nan)) == []
