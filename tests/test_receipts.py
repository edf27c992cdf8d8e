"""Tests of receipts: they identify the content of an artefact, without times, commits and machines."""

import pytest

from lib import artefacts
from lib.study import paths, receipts

RUN = {"fingerprint": "a", "scores": {"f1": 50.0}, "log": [{"loss": 1.0, "seconds": 0.5}]}
MACHINE = {"commit": "1", "versions": {"torch": "2"}, "device": "1 CPU thread(s), float32", "seconds": 7}
RECORD = {"stage": "pretraining", "version": 1, "settings": {}, "inputs": {}, "fingerprint": "a", "tokens": 100}


def write_model(folder, weights=b"weights", **changes):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.safetensors").write_bytes(weights)
    (folder / "log.jsonl").write_text(str(changes))
    artefacts.write_record(folder, RECORD | MACHINE | changes)
    return receipts.fingerprint_content(folder / "record.json")


def test_of_a_model_the_weights_count_and_not_when_and_of_what_they_were_made(tmp_path):
    before = write_model(tmp_path)
    assert write_model(tmp_path, seconds=9, commit="2", device="1 x GPU", version=2, fingerprint="b") == before
    assert write_model(tmp_path, weights=b"others") != before
    assert write_model(tmp_path, tokens=200) != before


def test_of_a_japanese_vocabulary_the_tokens_count(tmp_path):
    fingerprints = []
    for tokens in ("薬\n", "薬\n", "病\n"):
        (tmp_path / "vocab.txt").write_text(tokens, encoding="utf-8")
        artefacts.write_record(tmp_path, RECORD | MACHINE)
        fingerprints.append(receipts.fingerprint_content(tmp_path / "record.json"))
    assert fingerprints[0] == fingerprints[1] != fingerprints[2]


def test_of_results_scores_and_identity_count(tmp_path):
    def write(**changes):
        rows = [{"loss": 1.0, "seconds": changes.get("seconds", 0.5)}]
        artefacts.write_json(tmp_path / "r.json", {"runs": [RUN | MACHINE | {"log": rows} | changes], **MACHINE})
        return receipts.fingerprint_content(tmp_path / "r.json")

    before = write()
    assert write(seconds=9, commit="2", device="1 x GPU", versions={}) == before
    assert write(scores={"f1": 50.1}) != before and write(fingerprint="b") != before


def test_a_corpus_is_not_read_once_more(tmp_path, monkeypatch):
    (tmp_path / "documents.parquet").write_bytes(b"text")
    artefacts.write_record(tmp_path, RECORD | {"content": "x"})
    before = receipts.fingerprint_content(tmp_path / "record.json")
    artefacts.write_record(tmp_path, RECORD | {"content": "y"})
    assert receipts.fingerprint_content(tmp_path / "record.json") != before
    monkeypatch.setattr(receipts.provenance, "file_fingerprint", lambda path: pytest.fail(f"{path} was read"))
    receipts.fingerprint_content(tmp_path / "record.json")


def test_what_somebody_has_deleted_has_no_receipt(tmp_path, monkeypatch):
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
