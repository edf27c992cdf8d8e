"""Models beside each other, and benchmark totals."""

import pandas as pd
import pytest

from lib import artefacts
from lib.benchmarks import registry
from lib.study import params, paths
from lib.study.analysis import compare, panels

BLURB = ["bc5cdr-chem", "bc5cdr-disease", "ncbi-disease", "bc2gm", "jnlpba", "ebm-pico", "chemprot", "ddi", "gad",
         "biosses", "hoc", "pubmedqa", "bioasq-7b-yesno"]  # fmt: skip


@pytest.fixture
def outputs(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "output", lambda scale, *parts: tmp_path.joinpath(scale, *parts))
    return tmp_path


def write_result(dataset: str, scores: list[float], collapsed: str = "") -> None:
    name = registry.lookup(dataset).main_score
    runs = [
        {"seed": seed, "fold": 1, "scores": {name: score}, "collapsed": collapsed,
         "tokens": 10, "seconds": 2, "FLOPs": 5}
        for seed, score in enumerate(scores, 1)
    ]  # fmt: skip
    artefacts.write_json(paths.results("smoke", "m", dataset, "gu"), {"main score": name, "runs": runs})


def test_a_line_has_mean_spread_and_cost_or_the_reason(outputs):
    write_result("ddi", [60.0, 70.0], collapsed="one answer only")
    lines = panels.build("smoke", [("m", "ddi", "gu"), ("m", "gad", "gu")])
    first, second = lines.to_dict("records")
    assert (first["ours"], first["ours_std"], first["n_seeds"], first["collapsed"]) == (65.0, 7.07, 2, 2)
    assert (first["tokens"], first["seconds"], first["FLOPs"]) == (20, 4, 10)
    assert second["n_seeds"] == 0 and second["note"]
    wide = panels.spread(lines, "smoke")
    assert wide["m"].tolist() == ["65.00 ± 7.07", "n/a"] and "chance" not in wide


def test_what_needs_no_encoder_stands_beside_models_the_best_of_each_kind(outputs):
    write_result("ddi", [60.0])
    rows = [("ddi", "chance", 10.75), ("ddi", "without pretraining", 57.0), ("ddi", "without pretraining", 57.68),
            ("gad", "chance", 68.96), ("squad", None, None)]  # fmt: skip
    table = pd.DataFrame(rows, columns=["dataset", "kind", "score"]).assign(metric="f1")
    for scale in ("smoke", "laptop"):
        compare.write_table(paths.table(scale, "floors"), table)
    wide = panels.spread(panels.build("smoke", [("m", key, "gu") for key in ("ddi", "gad", "hoc")]), "smoke")
    assert list(wide)[-3:] == ["chance", "without pretraining", "printed"]
    assert wide["chance"].tolist() == ["10.75", "68.96", ""]
    assert wide["without pretraining"].tolist() == ["57.68", "", ""]
    assert panels.read_floors("paper") == panels.read_floors("laptop")  # of real data, whatever the scale
    paths.table("smoke", "floors").unlink()
    assert panels.read_floors("smoke") == {} != panels.read_floors("laptop")


def test_the_blurb_score_is_the_mean_over_task_types_and_says_what_is_missing(outputs):
    scores = {"bc5cdr-chem": 90.0, "bc2gm": 80.0, "biosses": 95.0}
    for key, score in scores.items():
        write_result(key, [score])
    lines = panels.build("smoke", [("m", key, "gu") for key in BLURB])
    found = panels.total(lines, "gu", "m")
    assert found["value"] is None and found["sets"] == 3
    assert sorted([*found["missing"], *scores]) == sorted(BLURB)
    said = panels.describe(lines, "smoke")
    assert f"- m: BLURB score n/a, without {', '.join(found['missing'])}." in said
    assert "- ddi under gu, n/a for m: " in said and "3 of 13 combinations" in said
    for key in found["missing"]:
        write_result(key, [70.0])
    lines = panels.build("smoke", [("m", key, "gu") for key in BLURB])
    # 5 sets of entities, 1 of PICO, 3 of relations, similarity, documents, 2 of answers
    expected = [(90 + 70 + 70 + 80 + 70) / 5, 70, 70, 95, 70, 70]
    assert panels.total(lines, "gu", "m")["value"] == round(sum(expected) / 6, 2)
    assert "- m: BLURB score 75.17." in panels.describe(lines, "smoke")
    assert panels.total(lines, "lee", "m") is None


def test_a_protocols_sets_are_those_its_paper_prints_scores_on():
    assert panels.choose("gu") == BLURB
    assert set(panels.choose("gu-io")) == set(panels.choose("gu"))
    assert {"bioasq-8b-factoid", "bioasq-reranker"} <= set(panels.choose("ozyurt"))
    for protocol in params.keys("protocols"):
        assert panels.choose(protocol)


@pytest.mark.parametrize(("score", "verdict"), [(78.31, "*not reached*, -0.01"), (78.32, "*reached*, +0.00")])
def test_scores_are_held_against_the_bar_of_their_scale(outputs, score, verdict):
    result = {"main score": "f1", "runs": [
        {"seed": seed, "fold": 1, "scores": {"f1": score + gap}, "collapsed": ""} for seed, gap in enumerate((-1, 0, 1))
    ]}  # fmt: skip
    artefacts.write_json(paths.results("two-hours", "small-encoder", "ncbi-disease", "small-encoder"), result)
    lines = panels.build("two-hours", params.load("scales", "two-hours").panel_runs())
    said = panels.describe_bar(lines, "two-hours")
    expected = f"Bio-ELECTRA prints 78.32 (its Table 4); small-encoder {score:.2f} ± 1.00 over 3 seeds, {verdict}."
    assert said[0] == f"- NCBI-disease, F1: {expected}" and said[0] in panels.describe(lines, "two-hours")
    assert len(said) == 5 and all("; small-encoder n/a, " in line for line in said[1:])  # which have not been run
    assert panels.describe_bar(lines, "smoke") == []


def test_what_is_printed_of_a_dataset_stands_beside_it():
    printed = panels.read_published("ncbi-disease", "lee")
    assert printed["BioBERT (+PubMed) (lee-4)"] == 89.94 and printed["State-of-the-art (lee-4)"] == 87.34
    assert not panels.read_published("mednli", "lee")
