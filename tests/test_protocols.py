"""One model under two protocols, ours and as printed; the page's sentences and figure."""

import pandas as pd
import pytest

from lib.errors import StudyError
from lib.study import params, parsing, results, stages
from lib.study.analysis import definitions, facts, figures, protocols, versions
from lib.study.analysis.definitions import ENTITIES, WORDS


@pytest.mark.parametrize("scale", ["smoke", "laptop"])
def test_the_page_asks_for_no_run_of_its_own(scale):
    """Of what it reads, all is made for tables and panels anyway."""
    others = [path for path in stages.whole_study(scale) if "protocols" not in path and "claims" not in path]
    tables = [stages.STAGES["table"].path(table=key) for key in params.keys("tables")]
    planned = stages.plan(scale, [*others, *tables])
    needed = stages.STAGES["protocols"].inputs(scale, {})
    assert set(needed) <= {*planned, "data/meta.json"}
    if scale == "smoke":  # where it does not depend on the data at hand
        assert any("bioalbert-base1--ncbi-disease--naseem" in path for path in needed)
        assert not any("gu-bilstm" in path for path in needed)


def test_runs_of_one_model_on_one_set_are_paired_in_the_order_of_the_protocols():
    runs = [
        ("m", "hoc-blue", "wada"),
        ("m", "hoc", "gu"),
        ("n", "hoc", "gu"),
        ("m", "bc2gm", "gu"),
        ("m", "bc2gm", "lee"),
    ]
    assert protocols.pair_runs(runs) == [
        (("m", "bc2gm", "lee"), ("m", "bc2gm", "gu")),
        (("m", "hoc", "gu"), ("m", "hoc-blue", "wada")),
    ]


@pytest.fixture
def scores(monkeypatch):
    """The scores of runs that exist: (model, dataset, protocol) -> those of seeds 1 and 2."""
    known = {}

    def read(scale, *run):
        if run not in known:
            return None
        runs = [{"seed": seed, "scores": {"f1": value}} for seed, value in enumerate(known[run], 1)]
        return {"main score": "f1", "runs": runs}

    monkeypatch.setattr(results, "read", read)
    return known


def test_a_line_says_what_differs_between_two_runs(scores):
    runs = ("m", "hoc", "gu"), ("m", "hoc-blue", "wada")
    assert protocols.compare_two_runs(*runs, "paper")["note"] == "the run failed or has not been made"
    scores |= {runs[0]: (80.0, 82.0), runs[1]: (85.0, 85.0)}
    line = protocols.compare_two_runs(*runs, "paper")
    assert (line["set"], line["first"], line["second"]) == ("HoC", "hoc, gu", "hoc-blue, wada")
    assert (line["first_value"], line["second_value"], line["difference"], line["difference_std"]) == (81, 85, 4, 1.41)
    assert line["differs"].startswith(
        "data (Hallmarks of Cancer, BLURB's division | Hallmarks of Cancer, documents with a hallmark); "
        "metric (Multilabel micro F1 | Example-based F1); fine-tuning (epochs, batch size, "
    )
    assert protocols.tell_apart(("bc2gm", "gu"), ("bc2gm", "gu"), "paper") == ""
    assert protocols.tell_apart(("bc2gm", "lee"), ("bc2gm", "lee-bioes"), "paper") == "fine-tuning (scheme)"


def test_sets_without_two_runs_are_named():
    lines = protocols.compare_runs([("m", "hoc", "gu")], "smoke")
    assert [line["set"] for line in lines] == list(facts.comparisons().sets) and {line["n"] for line in lines} == {0}


# In print


@pytest.fixture(scope="module")
def printed() -> pd.DataFrame:
    return pd.DataFrame(protocols.compare_printed(), columns=protocols.COLUMNS)


def find(printed, known: str, model: str, first: str, second: str) -> dict:
    rows = printed[(printed["set"] == known) & (printed["model"] == model)].to_dict("records")
    (line,) = [row for row in rows if row["first"].startswith(first) and row["second"].startswith(second)]
    return line


def test_printed_scores_of_one_model(printed):
    line = find(printed, "BC5 chemical", "BERT cased", "lee-4", "gu-6")
    assert (line["first"], line["second"]) == ("lee-4: BERT (Wiki+Books)", "gu-6: BERT cased")
    assert (line["first_value"], line["second_value"], line["difference"]) == (88.01, 89.99, 1.98)
    line = find(printed, "ChemProt", "BERT uncased", "gu-6", "wada-7")
    assert line["difference"] == pytest.approx(29.8 - 71.86) and "as BLUE has them" in line["differs"]
    assert find(printed, "GAD", "BERT cased", "lee-5", "ozyurt-6")["difference"] == pytest.approx(79.91 - 79.33)
    assert find(printed, "BIOSSES", "BioBERT", "gu-6", "wada-7")["what"] == "Pearson"
    assert len(printed) == 57 and set(printed["what"]) == {"F1", "Pearson"}


def test_what_a_paper_quotes_is_not_another_protocol(printed):
    assert not printed["second"].str.startswith("naseem").any()
    assert not printed["second"].str.startswith("wada-8").any()  # the same paper again


def test_models_of_one_table(printed):
    gad = printed[(printed["set"] == "GAD") & printed["first"].str.startswith("gu-6")]
    found = protocols.differences_within(gad)  # nine models of gu-6 and four of ozyurt-6
    assert len(found) == 36 + 6
    biosses = printed[(printed["set"] == "BC4CHEMD")]
    assert len(protocols.differences_within(biosses)) == 6 + 6  # four models each, the state of the art left out


def test_the_spread_in_print_in_words(printed):
    said = protocols.describe_printed(printed)
    assert said[0].startswith("One model in the tables of two papers: 2.00 points apart (median of 57 pairs of scores)")
    assert said[1] == "The most, -47.78: BIOSSES, wada-7: BERT (W + BC: BaseVocab) less gu-6: BERT uncased."
    assert "JNLPBA, printed: 5.03 points apart (median of 2 pairs, up to 5.34)." in said
    assert protocols.describe_printed(printed[:0]) == ["No two papers print a score of one model on one set."]


# The page


def test_rows_of_the_figure(printed, scores):
    runs = ("m", "jnlpba", "gu"), ("m", "jnlpba-biobert", "lee")
    scores |= {runs[0]: (70.0, 71.0), runs[1]: (75.0, 75.0)}
    metric = {"kind": "metric", "first": ENTITIES, "second": WORDS, "unit": "points", "n": 1, "difference": 3.0}
    data = {"kind": "data", "what": versions.TRIVIAL, "first": "hoc", "second": "hoc-blue", "unit": "points", "n": 2}
    lines = [metric | {"model": "m"}, metric | {"model": definitions.MOST_FREQUENT}, data | {"difference": 1.0}]
    lines += [protocols.compare_two_runs(*runs, "paper"), data | {"unit": "%", "difference": 9.0}]
    table = pd.concat([pd.DataFrame(lines, columns=protocols.COLUMNS), printed[:2]])
    shown = protocols.differences(table)
    assert shown["label"].tolist() == [
        "F1 of words, without O less F1 of entities", "hoc-blue less hoc: trivial answer",
        "JNLPBA: jnlpba-biobert, lee less jnlpba, gu", "BC5 chemical: wada-7 less gu-6",
        "BC5 disease: wada-7 less gu-6",
    ]  # fmt: skip
    axes = figures.draw_differences(shown).axes
    assert [axis.get_title() for axis in axes] == ["metric", "data", "runs", "printed"]
    assert [label.get_text() for label in axes[3].get_yticklabels()] == shown["label"].tolist()[:2:-1]
    said = protocols.describe_runs(table)[0]
    assert said.startswith(
        "One model under two protocols, ours: 4.50 points apart (median of 1 pairs of 1); most, +4.50: m,"
    )


def test_two_versions_in_words():
    line = {"kind": "data", "first": "jnlpba", "second": "jnlpba-biobert", "unit": "%", "n": 10, "note": ""}
    values = {
        versions.SHARED: (99, 98),
        versions.ELSEWHERE: (100, 3),
        versions.AGREE: (100, 55),
        versions.ANSWERS: (100, 84),
    }
    lines = [
        line | {"what": what, "first_value": a, "second_value": b, "difference": b - a}
        for what, (a, b) in values.items()
    ]
    missing = {"kind": "data", "first": "a", "second": "b", "n": 0, "note": "not at hand", "what": "all"}
    said = versions.describe(pd.DataFrame([*lines, missing], columns=protocols.COLUMNS))
    assert said == [
        "jnlpba and jnlpba-biobert (99.0% and 98.0% shared): 55.0% of the shared instances have the same label, and "
        "the labels of the one score 84.00 as answers to the other.",
        "100.0% of the test set of jnlpba stand in another split of jnlpba-biobert.",
        "a and b: n/a, not at hand.",
    ]
    assert len(versions.show(pd.DataFrame([*lines, missing], columns=protocols.COLUMNS))) == 4


def test_a_study_without_any_data_still_has_the_printed_scores(monkeypatch, tmp_path):
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    table = protocols.build("gpu")
    assert table.columns.tolist() == protocols.COLUMNS
    assert table[table["n"] > 0]["kind"].unique().tolist() == ["printed"]
    assert (table.loc[table["n"] == 0, "note"] != "").all()
    assert "n/a" in protocols.describe(table, "gpu")


# Faults in the file

REST = "protocols: [lee], metrics: [], scores: [], beside: {table: t, columns: [c]}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sets: {one: [a, b], other: [b]}, versions: []", "a dataset is a version of one set only"),
        ("sets: {one: [a, b], other: [c]}, versions: [{first: a, second: c}]", "a and c are not of one set"),
        ("sets: {one: [a, b]}, versions: [{first: a, second: b, by: name}]", "versions.0.by: .*'text' or 'ids'"),
    ],
)
def test_faults_in_the_file_are_named(tmp_path, text, message):
    path = tmp_path / "comparisons.yaml"
    path.write_text("{" + f"{text}, {REST}" + "}")
    with pytest.raises(StudyError, match=f"comparisons.yaml: .*{message}"):
        parsing.read_yaml(path, facts.Comparisons)
