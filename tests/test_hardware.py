"""Tests of pretraining cost: work, hours, energy and MFU by hand, and what the printed settings imply."""

import pytest
from notebook_code import definitions

from lib.errors import StudyError
from lib.running import page_jobs
from lib.study import hardware, open_study, params, parsing

PAGE = definitions("92_cost")
PAPERS = open_study("paper")
PRINTED = hardware.read_hardware()


def cost(model: str, reading: str = "") -> dict:
    """Return the row of a printed model on page 92."""
    (run,) = [run for run in PRINTED.runs if model in run.days and run.reading == reading]
    return PAGE.cost_printed(model, run, PRINTED, PAPERS)


def count_work(model: str, **changes: int) -> dict[str, float]:
    return PAPERS.model(model).count_work(**changes)


def test_every_model_of_a_paper_stands_there_once_besides_other_readings():
    listed = [key for run in PRINTED.runs if not run.reading for key in run.days]
    expected = [key for key in params.keys("models") if params.load("models", key).papers]
    assert sorted(listed) == sorted(expected)
    assert {run.device for run in PRINTED.runs} - {None} <= set(PRINTED.devices)
    for run in PRINTED.runs:
        phases = [params.load("models", key).published.phases for key in run.days]
        assert "steps" not in run.changes or all(len(model_phases) == 1 for model_phases in phases)


def test_the_page_waits_on_the_one_that_makes_its_table_of_our_models():
    (waited,) = page_jobs.PAGES["92_cost"].reads(open_study("laptop"))["page"]
    assert page_jobs.split_tables(["pretrained"])["page"] == [waited]


def test_work_by_hand():
    work = count_work("bert-general-pubmed")
    assert (work["steps"], work["tokens"]) == (200_000, 200_000 * 256 * 512)
    # Six operations for each of 85 million weights, and attention over 512 tokens in twelve layers, less in the last.
    per_token = 6 * 85e6 + 12 * 3 * 4 * 512 * 768
    assert work["flops"] / work["tokens"] == pytest.approx(per_token, rel=0.04)
    half, whole = count_work("pubmedbert-half"), count_work("pubmedbert")
    assert whole["tokens"] == 8192 * (56_250 * 128 + 6250 * 512)
    assert whole["flops"] == pytest.approx(2 * half["flops"])
    assert count_work("pubmedbert-adversarial")["flops"] == pytest.approx(8 / 3 * whole["flops"])
    fewer = count_work("bio-electra", steps=900_000, batch_size=32)
    assert fewer["flops"] == pytest.approx(count_work("bio-electra")["flops"] / 4)


def test_hours_energy_and_mfu_by_hand():
    row = cost("bert-general-pubmed")
    assert (row["hours"], row["device_hours"]) == (120, 960)  # 5 days of 8 V100
    assert row["kwh"] == 288  # 300 W each
    assert row["mfu"] == pytest.approx(row["flops"] / (960 * 3600 * 15.7e12))
    assert row["mfu"] == pytest.approx(0.267, abs=0.001)
    assert cost("bert-general-pubmed", "in float16")["mfu"] == pytest.approx(row["mfu"] * 15.7 / 125)
    today = PAGE.cost_today(3600 * 0.4 * 989.4e12, PRINTED)
    assert today == pytest.approx({"hours_today": 1, "kwh_today": 0.7})


def test_what_is_not_printed_is_empty_with_its_reason():
    row = cost("tohoku-bert-clinical")
    assert not {"tokens", "flops", "hours", "kwh", "hours_today"} & set(row)
    assert "n/a, steps: " in row["note"] and "n/a, time: " in row["note"]
    row = cost("oubiobert")
    assert row["tokens"] == 7038 * 65_536 * 128 + 1563 * 32_768 * 512 and "hours" not in row
    row = cost("bert-uncased")
    assert row["device_hours"] == 16 * 96 and "kwh" not in row and "n/a, energy: " in row["note"]


def test_table_3_of_bioalbert_cannot_be_right_for_its_large_models():
    """Its batches of 1,024 for every model would imply an MFU above 1."""
    for number, days in enumerate((2.83, 3.88, 4.62, 4.67), 1):
        text = cost(f"bioalbert-large{number}")
        table = cost(f"bioalbert-large{number}", "batches of 1,024 for all, as in table 3")
        assert text["hours"] == table["hours"] == pytest.approx(24 * days)
        assert text["mfu"] < 1 < table["mfu"] == pytest.approx(4 * text["mfu"])


def test_text_and_table_of_bioalbert_give_the_days_of_biobert_to_each_other():
    days = {
        reading: [cost(key, f"the days in BioALBERT's {reading}")["hours"] / 24
                  for key in ("bert-general-pubmed", "biobert-pubmed-pmc")]
        for reading in ("text", "table")
    }  # fmt: skip
    assert days == {"text": [10, 23], "table": [23, 10]}


def test_a_row_that_the_table_of_times_lacks_is_an_error():
    (run, *_) = [run for run in PRINTED.runs if run.table]
    wrong_run = run.model_copy(update={"days": {"biobert-1m": "BioBERT Base9"}})
    with pytest.raises(StudyError, match="biobert-1m: table 8 of naseem-bioalbert has 0 rows 'BioBERT Base9'"):
        hardware.read_days("biobert-1m", wrong_run)


OURS = {"model": "pubmedbert", "tokens": 1000, "FLOPs": 7.2e15, "seconds": 36, "seconds of the start": 4}


def test_ours_have_an_mfu_where_the_rate_is_known_and_never_an_energy():
    row = PAGE.cost_ours(OURS | {"device": "2 processes of NVIDIA H200, bfloat16"}, PRINTED, ["Said before."])
    assert (row["device"], row["devices"], row["device_hours"]) == ("NVIDIA H200", 2, 0.02)
    assert row["mfu"] == pytest.approx(7.2e15 / (36 * 2 * 989.4e12)) and "kwh" not in row
    assert row["note"] == "Said before. n/a, energy: not measured. Without the 4 s of its start."
    quick = PAGE.cost_ours(OURS | {"device": "NVIDIA H200, bfloat16", "seconds": 0}, PRINTED)
    assert quick["mfu"] is None and "less than half a second" in quick["note"]
    row = PAGE.cost_ours(OURS | {"device": "1 CPU thread(s), float32"}, PRINTED)
    assert row["devices"] == 1 and row["mfu"] is None
    assert row["note"].startswith("n/a, MFU: no rate of '1 CPU thread(s)' in float32 is known.")
    with pytest.raises(StudyError, match="pubmedbert: unknown form of device 'a laptop'"):
        PAGE.cost_ours(OURS | {"device": "a laptop"}, PRINTED)


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
        ("days: {m: 1}", "days need the device"),
        ("days: {m: Base1}, device: a, devices: 2, precision: float32", "rows of days need the table"),
        ("days: {m: 1}, device: a, devices: 2, precision: float32, changes: {length: 9}", "are another reading"),
        ("days: {m: 1}, device: a, devices: 2, precision: float16", "devices has no rate of 'a' in float16"),
    ],
)
def test_faults_in_the_file_are_named(tmp_path, run, message):
    path = tmp_path / "hardware.yaml"
    path.write_text(HEAD + "runs: [{paper: p, where: w, " + run + "}]")
    with pytest.raises(StudyError, match=message):
        parsing.read_yaml(path, hardware.Hardware)
