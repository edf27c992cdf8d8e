"""The cost of pretraining: work, hours, energy and efficiency by hand, and what the printed settings imply."""

import pandas as pd
import pytest

from lib.errors import StudyError
from lib.study import params, parsing, paths, results
from lib.study.analysis import compare, facts, figures, hardware


@pytest.fixture(scope="module")
def printed() -> pd.DataFrame:
    """The printed runs alone: at this scale nothing is pretrained for comparison."""
    return hardware.build_table("paper")


def find(table: pd.DataFrame, model: str, reading: str = "") -> pd.Series:
    (row,) = table[(table["model"] == model) & (table["reading"] == reading)].to_dict("records")
    return row


def test_every_model_of_a_paper_stands_there_once_besides_other_readings():
    named = [key for run in facts.hardware().runs if not run.reading for key in run.days]
    wanted = [key for key in params.keys("models") if params.load("models", key).papers]
    assert sorted(named) == sorted(wanted)
    assert {run.device for run in facts.hardware().runs} - {None} <= set(facts.hardware().devices)
    for run in facts.hardware().runs:
        phases = [params.load("models", key).published.phases for key in run.days]
        assert "steps" not in run.changes or all(len(found) == 1 for found in phases)


def test_work_by_hand():
    work = hardware.count_work("bert-general-pubmed")
    assert (work["steps"], work["tokens"]) == (200_000, 200_000 * 256 * 512)
    # Six operations for each of 85 million weights, and attention over 512 pieces in twelve layers; less in the last.
    per_token = 6 * 85e6 + 12 * 3 * 4 * 512 * 768
    assert work["flops"] / work["tokens"] == pytest.approx(per_token, rel=0.04)
    half, whole = hardware.count_work("pubmedbert-half"), hardware.count_work("pubmedbert")
    assert whole["tokens"] == 8192 * (56_250 * 128 + 6250 * 512)
    assert whole["flops"] == pytest.approx(2 * half["flops"])
    assert hardware.count_work("pubmedbert-adversarial")["flops"] == pytest.approx(8 / 3 * whole["flops"])
    fewer = hardware.count_work("bio-electra", {"steps": 900_000, "batch_size": 32})
    assert fewer["flops"] == pytest.approx(hardware.count_work("bio-electra")["flops"] / 4)


def test_hours_energy_and_efficiency_by_hand(printed):
    row = find(printed, "bert-general-pubmed")
    assert (row["hours"], row["device_hours"]) == (120, 960)  # 5 days of 8 V100
    assert row["kwh"] == 288  # of 300 W
    assert row["efficiency"] == pytest.approx(row["flops"] / (960 * 3600 * 15.7e12), rel=1e-3)  # four digits
    assert row["efficiency"] == pytest.approx(0.267, abs=0.001)
    faster = find(printed, "bert-general-pubmed", "in float16")
    assert faster["efficiency"] == pytest.approx(row["efficiency"] * 15.7 / 125, rel=1e-3)
    assert hardware.cost_today(3600 * 0.4 * 989.4e12) == pytest.approx({"hours_today": 1, "kwh_today": 0.7})


def test_what_is_not_printed_is_empty_with_its_reason(printed):
    row = find(printed, "tohoku-bert-clinical")
    assert pd.isna([row["tokens"], row["flops"], row["hours"], row["kwh"], row["hours_today"]]).all()
    assert "n/a, steps: " in row["note"] and "n/a, time: " in row["note"]
    row = find(printed, "oubiobert")
    assert row["tokens"] == 7038 * 65_536 * 128 + 1563 * 32_768 * 512 and pd.isna(row["hours"])
    row = find(printed, "bert-uncased")
    assert row["device_hours"] == 16 * 96 and pd.isna(row["kwh"]) and "n/a, energy: " in row["note"]
    for line in printed[printed["hours"].isna()].to_dict("records"):
        assert "n/a, time: " in line["note"]


def test_table_3_of_bioalbert_cannot_be_right_for_its_large_models(printed):
    """With the batches of 1,024 that it prints for all, the machine would have computed more than it can."""
    for number, days in enumerate((2.83, 3.88, 4.62, 4.67), 1):
        text = find(printed, f"bioalbert-large{number}")
        table = find(printed, f"bioalbert-large{number}", "batches of 1,024 for all, as in table 3")
        assert text["hours"] == table["hours"] == pytest.approx(24 * days, rel=1e-3)
        assert text["efficiency"] < 1 < table["efficiency"] == pytest.approx(4 * text["efficiency"], rel=1e-3)


def test_text_and_table_of_bioalbert_give_the_days_of_biobert_to_each_other(printed):
    days = {
        reading: [find(printed, key, f"the days in BioALBERT's {reading}")["hours"] / 24
                  for key in ("bert-general-pubmed", "biobert-pubmed-pmc")]
        for reading in ("text", "table")
    }  # fmt: skip
    assert days == {"text": [10, 23], "table": [23, 10]}


def test_a_row_that_the_table_of_times_lacks_is_an_error():
    (run, *_) = [run for run in facts.hardware().runs if run.table]
    wrong = run.model_copy(update={"days": {"biobert-1m": "BioBERT Base9"}})
    with pytest.raises(StudyError, match="biobert-1m: table 8 of naseem-bioalbert has 0 rows 'BioBERT Base9'"):
        hardware.read_days("biobert-1m", wrong)


def test_printed_ratios_beside_ours():
    ratios = hardware.compare_ratios().set_index("where")
    assert ratios.loc["Gu et al. 2021, table 9", "ours"].tolist() == pytest.approx([2, 1])
    assert ratios.loc["Gu et al. 2021, section 3.2", "ours"] == pytest.approx(1.6)
    small = ratios.loc["Ozyurt 2020, section 2.1"]
    assert small["tokens"] == pytest.approx(4e6 * 128 * 512 / (1.8e6 * 64 * 256)) and small["printed"] == 4
    shared = ratios.loc["Naseem et al. 2021, section 'ALBERT'"]
    assert shared["ours"] == pytest.approx(shared["FLOPs"] / shared["tokens"]) and 0.9 < shared["ours"] < 1


OURS = {"model": "pubmedbert", "pieces": 1000, "FLOPs": 7.2e15, "seconds": 36, "seconds of the start": 4}


def test_ours_have_an_efficiency_where_the_rate_is_known_and_never_an_energy():
    row = hardware.describe_ours(OURS | {"device": "2 processes of NVIDIA H200, bfloat16"}, ["Said before."])
    assert (row["device"], row["devices"], row["device_hours"]) == ("NVIDIA H200", 2, 0.02)
    assert row["efficiency"] == pytest.approx(7.2e15 / (36 * 2 * 989.4e12)) and "kwh" not in row
    assert row["note"] == "Said before. n/a, energy: not measured. Without the 4 s of its start."
    quick = hardware.describe_ours(OURS | {"device": "NVIDIA H200, bfloat16", "seconds": 0}, [])
    assert "efficiency" not in quick and "less than half a second" in quick["note"]
    row = hardware.describe_ours(OURS | {"device": "1 CPU thread(s), float32"}, [])
    assert row["devices"] == 1 and "efficiency" not in row
    assert row["note"].startswith("n/a, efficiency: no rate of '1 CPU thread(s)' in float32 is known.")
    with pytest.raises(StudyError, match="pubmedbert: unknown form of device 'a laptop'"):
        hardware.describe_ours(OURS | {"device": "a laptop"}, [])


@pytest.fixture
def small_page(tmp_path, monkeypatch) -> pd.DataFrame:
    """The table of a study that knows one printed model, made up one of its own, and has no ratios."""
    whole = facts.hardware()
    runs = [run for run in whole.runs if run.paper == "devlin-bert"]
    monkeypatch.setattr(facts, "hardware", lambda: whole.model_copy(update={"runs": runs, "ratios": []}))
    monkeypatch.setattr(paths, "output", lambda scale, *parts: tmp_path.joinpath(scale, *parts))
    compare.write_table(paths.table("smoke", "pretrained"), [OURS | {"device": "1 CPU thread(s), float32"}])
    return hardware.build_table("smoke")


def test_the_page_of_a_small_study(small_page):
    assert small_page["model"].tolist() == ["bert-general", "bert-uncased", "pubmedbert"]
    assert results.MADE_UP in small_page["note"].iloc[-1]
    said = hardware.describe(small_page, hardware.compare_ratios())
    assert "steps are known of 2 and a time of 2; 0 other readings" in said
    assert "below 10%: more was computed" in said and "bert-general: 9.0% of 16 x TPU v2 chip in bfloat16" in said
    assert "kWh:" not in said  # the power of that TPU is not known
    assert "Ours at this scale: 1 models in 0.0 hours" in said
    shown = hardware.show_costs(small_page)
    assert shown["efficiency"].iloc[0] == "9.0%" and pd.isna(shown["kwh"].iloc[0])
    assert len(hardware.list_facts()) == 2
    lines = figures.draw_costs(small_page, *hardware.rate_today()).axes[0].lines
    assert [line.get_markerfacecolor() == "none" for line in lines[:2]] == [True, False]


def test_the_page_says_what_cannot_be(printed):
    said = "\n".join([*hardware.describe_efficiency(printed), *hardware.describe_speed(printed)])
    assert "misunderstood (5)" in said and "bioalbert-large2, batches of 1,024 for all, as in table 3: 28" in said
    assert "hard to believe, above 60% (2). bioalbert-base2: 75" in said
    assert "takes 0.75 s by the days of bioalbert-base2 and 1.92 s by those of bioalbert-base4" in said
    assert "The printed days of bert-general-pubmed, 200,000 steps, differ: 5 (lee-biobert, section 4.1), 10" in said


HEAD = """
devices: {a: {title: A, rates: {float32: 1.0e+12}, watts: 100.0, source: s}}
today: {device: a, precision: float32, share: 0.4, why: w}
believable: {low: 0.1, high: 0.6, why: w}
ratios: []
"""


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("days: {m: 1}, device: a, devices: 2", "device, devices and precision go together"),
        ("days: {m: null}", "a model has days, or `missing` says why"),
        ("days: {m: 1}, missing: {time: w}", "a model has days, or `missing` says why"),
        ("days: {m: 1}", "days need the device"),
        ("days: {m: Base1}, device: a, devices: 2, precision: float32", "rows of days need the table"),
        ("days: {m: 1}, device: a, devices: 2, precision: float32, changes: {length: 9}", "are another reading"),
        ("days: {m: 1}, device: b, devices: 2, precision: float32", "devices has no rate of 'b' in float32"),
        ("days: {m: 1}, device: a, devices: 2, precision: float16", "devices has no rate of 'a' in float16"),
    ],
)
def test_faults_in_the_file_are_named(tmp_path, run, message):
    path = tmp_path / "hardware.yaml"
    path.write_text(HEAD + "runs: [{paper: p, where: w, " + run + "}]")
    with pytest.raises(StudyError, match=message):
        parsing.read_yaml(path, facts.Hardware)
