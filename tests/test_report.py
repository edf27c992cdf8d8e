"""The report's choice of pages."""

import fcntl

import pandas as pd

from lib import artefacts
from lib.study import claims, paths, report, results


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
    assert report.describe_findings("laptop", pd.DataFrame([paired, counted, open_one]))[2:] == [
        "- BioBERT, *holds*: A beats B. Effect 1.7 (95% 0.9 to 2.25), n = 12: one pretraining of each model.",
        "- BioBERT, *does not hold*: sums are right. Effect 90, n = 10: % that follow.",
    ]


def test_what_a_scale_gives_its_models_is_said():
    _, said = report.describe_budget("laptop")
    assert "4 layers" in said and "4.0 million tokens" in said and "2,000 examples" in said and "each other" in said
    assert "each other" not in report.describe_budget("two-hours")[1]  # whose scores are held against a printed model's
    assert len(report.describe_budget("paper")) == len(report.describe_budget("smoke")) == 1


def test_a_scale_writes_its_own_summary_where_its_marks_are(tmp_path, monkeypatch):
    marked = {scale: f"<!-- {scale}: generated -->\n{{}}\n<!-- /{scale} -->" for scale in ("laptop", "two-hours")}
    pages = {"README.md": "laptop", "docs/small.md": "two-hours", "docs/other.md": "gpu"}
    for name, scale in pages.items():
        artefacts.write_text(tmp_path / name, f"before\n{marked.get(scale, '').format('old')}\nafter")
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(report, "summarise", lambda scale: [f"of {scale}"])
    for scale in ("laptop", "smoke"):  # smoke has no marks
        report.update_summaries(scale)
    assert [(tmp_path / name).read_text() for name in pages] == [
        f"before\n{marked['laptop'].format('of laptop')}\nafter",
        f"before\n{marked['two-hours'].format('old')}\nafter",
        "before\n\nafter",
    ]


def test_a_bar_stands_first_and_an_empty_scoreboard_does_not(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "output", tmp_path.joinpath)
    line = {"protocol": "small-encoder", "dataset": "ncbi-disease", "model": "small-encoder", "score": "f1",
            "ours": 79.0, "ours_std": 0.5, "n_seeds": 3, "note": ""}  # fmt: skip
    results.write_csv(paths.table("two-hours", "panels"), [line])
    judged = pd.DataFrame([{"claim": "a", "paper": "lee-biobert", "verdict": "n/a", "n": 0}])
    (said,) = report.describe_findings("two-hours", judged)
    assert "NCBI-disease, F1" in said and "79.00 ± 0.50 over 3 seeds, *reached*" in said
    assert report.describe_findings("laptop", judged)[0] == claims.describe(judged)


def test_papers_have_a_section_once_something_of_theirs_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "output", tmp_path.joinpath)
    assert "## Claims and cells" not in report.make_papers("two-hours", {})
    results.write_csv(paths.table("two-hours", "gu-1"), [{"published": 1, "ours": 1, "verdict": "agrees"}])
    assert "## Claims and cells" in report.make_papers("two-hours", {})
