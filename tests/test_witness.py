"""Tests that nothing that decides a number has changed, and that tools/witness.py notices changes."""

import gzip
import json
import shutil
import zipfile

import pytest

from lib.study import paths
from tools import witness
from tools.made_up import __main__ as made_up


@pytest.mark.parametrize("stage", ["record", "made-up-examples", "pretraining", "losses", "scores"])
def test_nothing_moved(stage):
    assert witness.compare(witness.read(stage), witness.STAGES[stage]()) == []


def test_no_example_of_the_real_data_moved(real_data):
    assert witness.compare(witness.read("real-examples"), witness.of_real_data()) == []


def unpack(path) -> dict[str, bytes]:
    """Return the uncompressed content of a file, because compressed bytes depend on the version of zlib."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    return {"": gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()}


def test_the_made_up_files_are_those_that_the_tool_writes(tmp_path):
    made_up.write(tmp_path / "written")
    names = [{path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
             for folder in (tmp_path / "written", paths.MADE_UP)]  # fmt: skip
    assert names[0] == names[1]
    for name in names[1]:
        assert unpack(tmp_path / "written" / name) == unpack(paths.MADE_UP / name), name


@pytest.fixture
def record(tmp_path):
    """Write a record with a table and a run for each scale."""
    for scale in witness.SCALES:
        (tmp_path / scale / "tables").mkdir(parents=True)
        (tmp_path / scale / "results").mkdir()
        (tmp_path / scale / "tables" / "lee-4.csv").write_text("row,ours,note\nF1,78.71,as printed\n")
        run = {"fingerprint": "a", "commit": "b", "scores": {"f1": 78.71}, "steps": 381}
        (tmp_path / scale / "results" / "m--d--lee.json").write_text(json.dumps({"runs": [run]}))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "old", "new", "place"),
    [
        ("tables/lee-4.csv", "78.71", "78.72", "laptop/lee-4: ours"),
        ("tables/lee-4.csv", "as printed", "as in the preprint", None),
        ("results/m--d--lee.json", "78.71", "78.710000001", "laptop/m--d--lee"),
        ("results/m--d--lee.json", "381", "382", "laptop/m--d--lee"),
        ("results/m--d--lee.json", '"commit": "b"', '"commit": "c"', None),
    ],
)
def test_a_number_that_changes_is_named_and_words_are_free(record, name, old, new, place):
    before = witness.witness_record(record)
    path = record / "laptop" / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    lines = witness.compare(before, witness.witness_record(record))
    assert [line.split(": ", 2)[0] for line in lines] == ([place.split(": ")[0]] if place else [])
    assert all(line.startswith(place) for line in lines)


def test_a_record_that_is_not_where_it_is_looked_for_is_a_fault(record):
    shutil.rmtree(record / "two-hours" / "tables")
    with pytest.raises(AssertionError, match="no committed tables or results of scale 'two-hours'"):
        witness.witness_record(record)


@pytest.mark.parametrize(
    ("before", "now", "same", "forgotten"),
    [
        ("9 rows ab12, version 1", "9 rows ab12, version 1", True, False),
        ("9 rows ab12, version 1", "9 rows cd34, version 1", False, True),
        ("9 rows ab12, version 1", "9 rows cd34, version 2", False, False),
        ("9 rows ab12", "9 rows cd34", False, False),  # a table has no version
        ("5.371606 5.040519, version 1", "5.371661 5.040519, version 1", True, False),  # rounding of another processor
        ("5.371606 5.040519, version 1", "5.372806 5.040519, version 1", False, True),
        ("5.371606 5.040519, version 1", "5.371606, version 1", False, True),
    ],
)
def test_numbers_that_change_without_their_version_are_found(before, now, same, forgotten):
    assert (witness.compare({"place": before}, {"place": now}) == []) == same
    assert witness.list_forgotten({"place": before}, {"place": now}) == (["place"] if forgotten else [])
