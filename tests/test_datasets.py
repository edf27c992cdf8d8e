"""A dataset of a reader's own: nothing registered, its files below a folder, one line for what is wrong."""

import gzip
from collections import Counter
from dataclasses import replace

import pytest

from lib.benchmarks import conll
from lib.benchmarks.datasets import TRAIN_TEST, Dataset, by_split
from lib.benchmarks.instances import Sentence
from lib.errors import StudyError

NOTES = Dataset("mine", "My notes", "tagging", "drugs", "entity-f1", conll.read, by_split("notes", splits=TRAIN_TEST))


@pytest.fixture
def notes(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/train.tsv").write_text("Aspirin\tB\nhelps\tO\n")
    (tmp_path / "notes/test.tsv.gz").write_bytes(gzip.compress(b"Iron\tB\n"))
    return NOTES.at(tmp_path)


def test_its_files_are_read_where_they_lie(notes):
    assert notes.splits == ["train", "test"] and notes.missing == {}
    assert notes.load("train") == [Sentence(["Aspirin", "helps"], ["B", "O"])]
    test = notes.load("test")
    assert [one.gold for one in test] == [("B",)]
    assert notes.main_score == "f1" and [notes.score(test, [[tag]])["f1"] for tag in "BO"] == [100, 0]


def test_what_its_reader_leaves_out_is_counted(notes):
    def read(path, left_out=None):
        if left_out is not None:
            left_out["short words"] += 1
        return conll.read(path)

    notes.load("train", left_out=(left_out := Counter()))
    assert not notes.leaves_out and not left_out
    counting = replace(notes, read=read)
    assert counting.load("train", left_out=left_out) == counting.load("train") == notes.load("train")
    assert counting.leaves_out and left_out == {"short words": 1}


def test_a_set_in_folds(tmp_path):
    for fold in (1, 2):
        (tmp_path / f"{fold}.tsv").write_text(f"{fold}\tO\n")
    folded = Dataset("f", "Folds", "tagging", "x", "entity-f1", conll.read, {"test": ("{fold}.tsv",)}, folds=2)
    assert folded.parts == [("test", 1), ("test", 2)]
    assert [folded.at(tmp_path).load(*part)[0].words for part in folded.parts] == [["1"], ["2"]]


def test_one_line_says_what_is_wrong(notes, tmp_path):
    for wrong, message in (
        (lambda: NOTES.load("train"), "My notes: say where its files lie: .at(folder)"),
        (lambda: notes.load("dev"), "My notes has no dev split: it has train, test"),
        (lambda: notes.load("test", 2), "My notes has no fold 2: it has 1"),
        (lambda: NOTES.at(tmp_path / "a").load("test"), "My notes: no test.tsv"),
    ):
        with pytest.raises(StudyError) as error:
            wrong()
        assert str(error.value) == message
    with pytest.raises(StudyError, match="unknown metric 'entity-f': did you mean entity-f1"):
        replace(NOTES, metric="entity-f")
    (tmp_path / "notes/train.tsv").unlink()
    assert notes.splits == ["test"] and notes.missing == {"train": "My notes: no train.tsv"}
    (tmp_path / "notes/train.tsv").write_text("\n")
    with pytest.raises(StudyError, match="train.tsv: no sentences in the file; fetch the file again"):
        notes.load("train")
