"""The report's choice of pages."""

import fcntl

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
