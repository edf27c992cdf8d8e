"""The report's choice of pages."""

import fcntl

import pandas as pd

from lib import paths, report


def test_a_copy_that_another_process_still_writes_is_no_page(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    running = paths.output("smoke", "running", "20_finetune.ipynb")
    running.parent.mkdir(parents=True)
    running.write_text("{half")
    with open(running.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert report.collect_pages("smoke") == {}
    assert report.collect_pages("smoke") == {running: "interrupted"}


def test_what_was_found_says_effect_interval_and_note():
    """A verdict never stands without what it was measured on."""
    paired = {"claim": "a", "paper": "lee-biobert", "statement": "A beats B", "verdict": "holds", "effect": 1.7,
              "ci_low": 0.9, "ci_high": 2.25, "n": 12, "note": "one pretraining of each model"}  # fmt: skip
    counted = {"claim": "b", "paper": "lee-biobert", "statement": "sums are right", "verdict": "fails", "effect": 90.0,
               "ci_low": None, "ci_high": None, "n": 10, "note": "% that follow"}  # fmt: skip
    open_one = paired | {"claim": "c", "statement": "C beats D", "verdict": "undecided"}
    assert report.describe_findings(pd.DataFrame([paired, counted, open_one]))[2:] == [
        "- BioBERT, *holds*: A beats B. Effect 1.7 (95% 0.9 to 2.25), n = 12: one pretraining of each model.",
        "- BioBERT, *does not hold*: sums are right. Effect 90, n = 10: % that follow.",
    ]
