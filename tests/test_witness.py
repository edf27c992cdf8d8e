"""Tests that nothing that decides a number has changed, and that tools/witness.py notices changes."""

import gzip
import shutil
import zipfile

import pytest

from lib import artefacts
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


def write_record(folder, table="F1,78.71,as printed", steps=381, commit="b", f1=78.71):
    """Write a record with a table and a run for each scale, and return its digests."""
    run = {"fingerprint": "a", "commit": commit, "scores": {"f1": f1}, "steps": steps}
    for scale in witness.SCALES:
        artefacts.write_text(folder / scale / "tables" / "lee-4.csv", f"row,ours,note\n{table}\n")
        artefacts.write_json(folder / scale / "results" / "m--d--lee.json", {"runs": [run]})
    return witness.witness_record(folder)


def test_a_number_that_changes_is_named_and_words_are_free(tmp_path):
    before = write_record(tmp_path)
    assert witness.compare(before, write_record(tmp_path, table="F1,78.71,as in the preprint", commit="c")) == []
    changes = [
        ({"table": "F1,78.72,as printed"}, "laptop/lee-4: ours"),
        ({"steps": 382}, "laptop/m--d--lee"),
        ({"f1": 78.710000001}, "laptop/m--d--lee"),
    ]
    for change, place in changes:
        lines = witness.compare(before, write_record(tmp_path, **change))
        assert len(lines) == len(witness.SCALES) and any(line.startswith(place) for line in lines)
    shutil.rmtree(tmp_path / "two-hours" / "tables")
    with pytest.raises(AssertionError, match="no committed tables or results of scale 'two-hours'"):
        witness.witness_record(tmp_path)


@pytest.mark.parametrize(
    ("before", "now", "same", "forgotten"),
    [
        ("9 rows ab12, version 1", "9 rows ab12, version 1", True, False),
        ("9 rows ab12, version 1", "9 rows cd34, version 1", False, True),
        ("9 rows ab12, version 1", "9 rows cd34, version 2", False, False),
        ("9 rows ab12", "9 rows cd34", False, False),  # a table has no version
        ("5.371606 5.040519, version 1", "5.371661 5.040519, version 1", True, False),  # rounding of another processor
        ("5.371606 5.040519, version 1", "5.372806 5.040519, version 1", False, True),
    ],
)
def test_numbers_that_change_without_their_version_are_found(before, now, same, forgotten):
    assert (witness.compare({"place": before}, {"place": now}) == []) == same
    assert witness.list_forgotten({"place": before}, {"place": now}) == (["place"] if forgotten else [])
