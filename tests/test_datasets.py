"""An unregistered dataset with its files in a folder, and its errors; folds and held-out documents."""

import gzip
import math
from collections import Counter
from dataclasses import replace

import pytest
from golden import write_files

from lib.benchmarks import conll
from lib.benchmarks.datasets import TRAIN_TEST, Dataset, by_split, fill_undefined, hold_out, take_fold
from lib.benchmarks.instances import Labelled, Pair, Sentence
from lib.benchmarks.registry import DATASETS
from lib.errors import StudyError

FILES = by_split("notes", splits=TRAIN_TEST)
QUESTIONS = [Labelled(str(i), (f"Q{i % 3}", f"D{i // 3}"), (f"label{i % 2}",)) for i in range(60)]  # three a document
NOTES = Dataset("mine", "My notes", "tagging", "drugs", "entity-f1", conll.read_conll, FILES)


@pytest.fixture
def notes(tmp_path):
    files = {"notes/train.tsv": "Aspirin\tB\nhelps\tO\n", "notes/test.tsv.gz": gzip.compress(b"Iron\tB\n")}
    return NOTES.at(write_files(tmp_path, files))


def test_files_are_read_from_its_folder_compressed_or_not(notes):
    assert notes.splits == ["train", "test"] and notes.missing == {}
    assert notes.load("train") == [Sentence(["Aspirin", "helps"], ["B", "O"])]
    test = notes.load("test")
    assert [instance.gold for instance in test] == [("B",)]
    assert notes.main_score == "f1" and [notes.score(test, [[tag]])["f1"] for tag in "BO"] == [100, 0]


def test_what_a_reader_leaves_out_is_counted(notes):
    def read(path, left_out=None):
        if left_out is not None:
            left_out["short words"] += 1
        return conll.read_conll(path)

    notes.load("train", left_out=(left_out := Counter()))
    assert not notes.leaves_out and not left_out
    counting = replace(notes, read=read)
    assert counting.load("train", left_out=left_out) == counting.load("train") == notes.load("train")
    assert counting.leaves_out and left_out == {"short words": 1}


def test_an_undefined_score_is_never_chosen():
    assert [fill_undefined(score) for score in (math.nan, -100.0, 3.5)] == [-100.0, -100.0, 3.5]
    assert [fill_undefined(score, 0.0) for score in (math.nan, -100.0)] == [0.0, -100.0]


def test_each_fold_has_its_file(tmp_path):
    for fold in (1, 2):
        (tmp_path / f"{fold}.tsv").write_text(f"{fold}\tO\n")
    folded = Dataset("f", "Folds", "tagging", "x", "entity-f1", conll.read_conll, {"test": ("{fold}.tsv",)}, folds=2)
    assert folded.parts == [("test", 1), ("test", 2)]
    assert [folded.at(tmp_path).load(*part)[0].words for part in folded.parts] == [["1"], ["2"]]


def test_errors_name_the_dataset_and_what_is_wrong(notes, tmp_path):
    for load, message in (
        (lambda: NOTES.load("train"), "My notes: say where its files lie: .at(folder)"),
        (lambda: notes.load("dev"), "My notes has no dev split: it has train, test"),
        (lambda: notes.load("test", 2), "My notes has no fold 2: it has 1"),
        (lambda: NOTES.at(tmp_path / "a").load("test"), "My notes: no test.tsv"),
    ):
        with pytest.raises(StudyError) as error:
            load()
        assert str(error.value) == message
    with pytest.raises(StudyError, match="unknown metric 'entity-f': did you mean entity-f1"):
        replace(NOTES, metric="entity-f")
    with pytest.raises(StudyError, match="unknown metric 'token-f1'"):  # only page 12 shows it
        replace(NOTES, metric="token-f1")
    (tmp_path / "notes/train.tsv").unlink()
    assert notes.splits == ["test"] and notes.missing == {"train": "My notes: no train.tsv"}
    (tmp_path / "notes/train.tsv").write_text("\n")
    with pytest.raises(StudyError, match=r"train\.tsv: no sentences in the file$"):
        notes.load("train")


def test_folds_have_equal_shares_of_labels_and_keep_rare_ones(recwarn):
    documents = [Labelled(str(i), (f"A{i}",), ("rare" if i < 2 else "common",)) for i in range(20)]
    tests = [take_fold(documents, "test", fold) for fold in range(1, 6)]
    assert sorted((d for part in tests for d in part), key=lambda d: int(d.id)) == documents
    assert [sum(d.labels == ("rare",) for d in part) for part in tests].count(1) == 2
    assert {len(part) for part in tests} == {4}
    assert take_fold(documents, "train", 1) == [d for d in documents if d not in tests[0]]
    assert not recwarn


def test_questions_of_one_document_stay_in_one_fold():
    for fold in range(1, 6):
        train, test = (take_fold(QUESTIONS, split, fold) for split in ("train", "test"))
        assert len(train) + len(test) == 60
        assert not {d.sentences[-1] for d in train} & {d.sentences[-1] for d in test}
    with pytest.raises(StudyError, match="no fold 1 of 5 of 1 documents; the commonest label has 8 instances"):
        take_fold(QUESTIONS[:3] * 4, "test", 1)


def test_whole_documents_are_held_out():
    rest, held_out = hold_out(DATASETS["jmed-crade"], QUESTIONS)
    assert (len(rest), len(held_out)) == (54, 6)
    assert not {d.sentences[-1] for d in rest} & {d.sentences[-1] for d in held_out}
    candidates = [Pair(str(i), f"Q{i // 7}", f"S{i}", "0", group=f"Q{i // 7}") for i in range(70)]
    rest, held_out = hold_out(DATASETS["bioasq-reranker"], candidates)
    assert len(held_out) == 7 and len({pair.group for pair in held_out}) == 1


def test_too_few_documents_for_the_folds_are_refused():
    documents = [Labelled(str(i), (f"A{i}",), ("x",)) for i in range(8)]
    with pytest.raises(StudyError, match="no fold 1 of 9 of 8 documents"):
        take_fold(documents, "test", 1, folds=9)
    with pytest.raises(StudyError, match="no fold 1 of 5 of 0 documents"):
        take_fold([], "train", 1)
