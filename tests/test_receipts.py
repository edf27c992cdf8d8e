"""Tests of receipts: they identify the content of an artefact, without times, commits and machines."""

import pytest

from lib import artefacts
from lib.study import paths, receipts

MACHINE = {"commit": "1", "versions": {"torch": "2"}, "device": "1 CPU thread(s), float32", "seconds": 7}
RECORD = {"stage": "pretraining", "version": 1, "settings": {}, "inputs": {}, "fingerprint": "a", "tokens": 100}


def write_folder(folder, file="model.safetensors", text="weights", **changes):
    (folder / file).write_text(text, encoding="utf-8")
    (folder / "log.jsonl").write_text(str(changes))
    artefacts.write_record(folder, RECORD | MACHINE | changes)
    return receipts.fingerprint_content(folder / "record.json")


def test_of_a_folder_the_content_counts_and_not_when_and_of_what_it_was_made(tmp_path, monkeypatch):
    before = write_folder(tmp_path)
    assert write_folder(tmp_path, seconds=9, commit="2", device="1 x GPU", version=2, fingerprint="b") == before
    assert write_folder(tmp_path, text="others") != before
    assert write_folder(tmp_path, tokens=200) != before
    assert write_folder(tmp_path, "vocab.txt", "薬\n") != write_folder(tmp_path, "vocab.txt", "病\n")  # Japanese

    monkeypatch.setattr(receipts.provenance, "file_fingerprint", lambda path: pytest.fail(f"{path} was read"))
    fingerprints = [write_folder(tmp_path, content=content) for content in "xy"]  # of a corpus, known from its build
    assert fingerprints[0] != fingerprints[1]


def test_of_results_scores_and_identity_count(tmp_path):
    def write(**changes):
        run = {"fingerprint": "a", "scores": {"f1": 50.0}, "log": [{"loss": 1.0, "seconds": changes.get("seconds", 1)}]}
        artefacts.write_json(tmp_path / "r.json", {"runs": [run | MACHINE | changes], **MACHINE})
        return receipts.fingerprint_content(tmp_path / "r.json")

    before = write()
    assert write(seconds=9, commit="2", device="1 x GPU", versions={}) == before
    assert write(scores={"f1": 50.1}) != before and write(fingerprint="b") != before


def test_a_deleted_artefact_has_no_receipt(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    table = paths.table("smoke", "lee-4")
    artefacts.write_text(table, "row,ours\n")
    new, old = (tmp_path / receipts.name("smoke", "table", [key]) for key in ("lee-4", "lee-5"))
    receipts.write_receipt(new, table)
    before = new.read_text()
    artefacts.write_text(old, "outputs/smoke/tables/lee-4.csv\n")  # the form of receipts before fingerprints
    receipts.forget_deleted("smoke")
    assert new.exists() and old.exists()
    artefacts.write_text(table, "row,ours\nx,1\n")
    receipts.write_receipt(new, table)
    assert new.read_text() != before
    table.unlink()
    receipts.forget_deleted("smoke")
    assert not new.exists() and not old.exists()


def test_a_job_with_a_long_name_has_no_settings_that_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    assert receipts.read_job_settings(receipts.name("laptop", "documents", ["pubmed", "x" * 250])) is None
