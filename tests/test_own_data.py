"""Tests of a folder of the user's own data: the forms it reads, its counts and notes, and its errors."""

import math
from pathlib import Path

import pytest
from conftest import each
from golden import write, write_files
from made_runs import make_runs, write_result

from lib import artefacts
from lib.benchmarks import confusion, metrics, own_data
from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Labelled, Pair, Sentence
from lib.errors import StudyError
from lib.running import cli, plan
from lib.study import open_study, own_sets, paths, result_files

CONLL = "Aspirin\tB-Drug\nhelps\tO\n\nGout\tB-Disease\n"
ROWS = "text,label\n" + "".join(f"text {n},{'ab'[n % 2]}\n" for n in range(20))
TEXT = "Aspirin helps gout.\nIt is old.\n"
MARKED = "T1\tDrug 0 7\tAspirin\nT2\tDisease 14 18\tgout\n"
MORE = "R1\tTreats Arg1:T1 Arg2:T2\nT3\tDrug 0 7;14 18\tAspirin gout\nT4\tDrug 0 4\tAspi\n#1\tNote T1\tsure\n"
PUBTATOR = "d1|t|Gold and gout\nd1|a|It hurts.\nd1\t0\t4\tGold\tDrug\nd1\t9\t13\tgout\tDisease\tD2\n"
RELATION = "d1\tAssociation\tD1\tD2\tNovel\n"
TAGS = Dataset("tags", "Tags", "tagging", "", "entity-type-f1", list, {})


def parts(name: str, content: str) -> dict[str, str]:
    return {name.format(part): content for part in ("train", "dev", "test")}


def fingerprint(data: own_data.OwnData) -> str:
    return own_data.fingerprint_data(data.dataset)


def read(folder: Path, files: dict[str, str]) -> own_data.OwnData:
    return own_data.read_own_folder(write_files(folder, files))


def load(own: own_data.OwnData, split: str = "train") -> list:
    return own.dataset.load(split)


def test_tagged_words(tmp_path):
    marked = "-DOCSTART- -X- O O\n\nAspirin NN x B-Drug\nhelps VB x O\n\nGout NN x B-Disease\n"
    data = read(tmp_path, {"train.txt": CONLL, "dev.txt": CONLL, "test.txt": marked})
    for split in ("train", "test"):
        assert [(sentence.words, sentence.tags) for sentence in load(data, split)] == [
            (["Aspirin", "helps"], ["B-Drug", "O"]),
            (["Gout"], ["B-Disease"]),
        ]
    assert data.form == own_data.CONLL and data.dataset.family == "tagging" and data.division == []
    assert data.notes[0] == f"{tmp_path.name}: CoNLL, entities to be tagged (Disease, Drug)"


def test_brat(tmp_path):
    document_files = {"a.txt": TEXT, "a.ann": MARKED}
    files = {f"{part}/{name}": item for part in ("train", "valid", "test") for name, item in document_files.items()}
    data = read(tmp_path / "parts", files)
    assert load(data, "dev")[0] == Sentence(["Aspirin", "helps", "gout", "."], ["B-Drug", "O", "B-Disease", "O"], "a")
    flat = {f"{name}.{suffix}": item for name in "abcd" for suffix, item in (("txt", TEXT), ("ann", MARKED + MORE))}
    aside = {"annotation.conf": "[entities]", "README.txt": "What it is.", "._a.txt": "\0", ".DS_Store": "x"}
    data = read(tmp_path / "flat", flat | aside | {"x.xlsx": "x", "more/a.ann": MARKED})
    assert {"not read: more", "not read: x.xlsx"} <= {*data.notes} and load(data)
    (tmp_path / "flat/.stats_cache").write_text("x")
    assert fingerprint(own_data.read_own_folder(tmp_path / "flat")) == fingerprint(data)
    assert {item.document for item in load(data)} | {item.document for item in load(data, "test")} < {*"abcd"}
    left_out = [note for note in data.notes if note.startswith("left out")]
    kinds = "relations", "entities in several parts", "comments", "mentions that overlap a longer one"
    assert left_out == [f"left out: 4 {item}" for item in kinds]
    assert [part for _, part in data.division] == ["train", "train", "dev", "test"]


def test_pubtator(tmp_path):
    data = read(tmp_path, {"CDR_TrainingSet.txt": PUBTATOR + RELATION, "dev.txt": PUBTATOR, "test.txt": PUBTATOR})
    assert load(data)[0].tags == ["B-Drug", "O", "B-Disease"] and load(data)[0].document == "d1"
    assert "left out: 1 relations" in data.notes


@each(
    ("name", "content", "first", "family", "metric"),
    [
        ("{}.csv", 'text,label\n"a, b",x\nc,y\n', Labelled("1", ("a, b",), ("x",)), "documents", "class-f1"),
        ("{}.tsv", 'Text\tLabel\n"a"\t1\nc\t0\n', Labelled("1", ("a",), ("1",)), "documents", "class-f1"),
        ("{}.tsv", "text\tlabels\na\ty; x\nb\t\n", Labelled("1", ("a",), ("x", "y")), "documents", "label-f1"),
        ("{}.csv", 'text,labels\na,"[""x"", ""y""]"\n', Labelled("1", ("a",), ("x", "y")), "documents", "label-f1"),
        ("{}.CSV", "text,text2,label\na,b,x\nb,c,y\n\n", Pair("1", "a", "b", "x"), "inference", "class-f1"),
        ("{}.csv", "text,text2,score\na,b,1.5\nb,c,2\n", Pair("1", "a", "b", 1.5), "similarity", "pearson"),
        ("{}.jsonl", '{"text": "a", "label": 1}\n{"text": "b", "label": 0}\n', Labelled("1", ("a",), ("1",)),
         "documents", "class-f1"),
        ("{}.jsonl", '{"text": "a", "labels": 0, "document": 0}\n\n', Labelled("1", ("a",), ("0",), "0"),
         "documents", "label-f1"),
    ],
)  # fmt: skip
def test_columns_of_a_table_decide_the_task(tmp_path, name, content, first, family, metric):
    data = read(tmp_path, parts(name, content))
    assert load(data)[0] == first and (data.dataset.family, data.dataset.metric) == (family, metric)
    scores = data.dataset.score(load(data), [instance.gold for instance in load(data)])
    assert all(math.isclose(score, 100) for score in scores.values())


@each(
    ("files", "message"),
    [
        ({"a.csv": ROWS, "b.csv": ROWS}, "2 files, of which none is named train"),
        ({"test.csv": ROWS}, "no train file beside test: add one"),
        ({"train.csv": ROWS, "train.tsv": ROWS}, "train.csv and train.tsv are both train: leave one"),
        ({"train-test.csv": ROWS}, "a file's name says more than one of train, dev and test: rename it"),
        ({"train.csv": ROWS, "test.txt": CONLL}, "train.csv is a table, test.txt is CoNLL: give all parts in one form"),
        ({"train.json": "[]"}, "train.json: not a form that is read; save it as"),
        ({"train.csv": ""}, "train.csv: empty file"),
        ({"train.csv": ROWS, "test.csv": "text,label\n"}, "test.csv: no rows in the file"),
        ({"train.csv": "sentence,class\na,b\n"}, "train.csv:1: expected the columns text, label or .*found sentence"),
        ({"train.csv": "text,score\na,1\n"}, "train.csv:1: no task of the study predicts a number of one text"),
        ({"train.csv": f"{ROWS} ,a\n"}, "train.csv:22: text is blank: fill it or delete the row"),
        ({"train.csv": "text,label\na,0.5\nb,1\n"}, "train.csv: its labels are 2 numbers, .* name the column score"),
        ({"train.csv": "text,text2,score\na,b,high\n"}, "train.csv:2: the score is not a number"),
        ({"train.csv": "text,label\na,x\nb,x\nc,x\n"}, "train.csv: the training part has one label only"),
        ({"train.csv": "text,label\na,x\nb,y\n"}, "train.csv: 2 documents are too few for train, dev, test: give each"),
        ({"train.csv": ROWS, "test.csv": "text,labels\na,x\n"}, "test.csv:2: no label, which the other rows"),
        ({"train.jsonl": '{"text": "a", "labels": {"x": 1}}'}, "train.jsonl:1: expected labels separated by ; or"),
        ({"train.txt": "Aspirin\tB-Drug\nhelps\n"}, "train.txt:2: expected a word and, in the last column, its tag"),
        ({"train.txt": CONLL, "test.txt": "a O\n"}, "test.txt: the test part has no entity or label"),
        ({"a.txt": TEXT, "a.ann": MARKED, "b.txt": TEXT}, "b.txt: no b.ann beside it; an empty file says"),
        ({"a.txt": TEXT, "a.ann": "T1\tDrug 1 7\tAspirin\n"}, "a.ann:1: the text has other words at 1 to 7; offsets"),
        ({"a.txt": TEXT, "a.ann": "Aspirin\n"}, "a.ann:1: expected a line of BRAT"),
        ({"train.txt": PUBTATOR.replace("d1\t0\t4", "d1\t1\t4")}, "train.txt:3: the text has other words at 1 to 4"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_with_file_line_and_advice(tmp_path, files, message):
    with pytest.raises(StudyError, match=message):
        read(tmp_path, files)


def test_documents_stay_together_in_a_division_that_stays_the_same(tmp_path):
    rows = "".join(f'{{"text": "t{n % 25}", "label": "{"ab"[n % 2]}", "document": "d{n % 10}"}}\n' for n in range(50))
    data = read(tmp_path, {"all.jsonl": rows})
    documents = {split: {instance.document for instance in load(data, split)} for split in ("train", "dev", "test")}
    assert {split: len(names) for split, names in documents.items()} == {"train": 7, "dev": 1, "test": 2}
    assert {name: split for split, names in documents.items() for name in names} == dict(data.division)
    assert len(data.division) == 10
    note = "no dev and no test part: train is divided by document (seed 0): 7 for train, 1 for dev, 2 for test"
    assert note in data.notes
    again = own_data.read_own_folder(tmp_path)
    assert (again.division, fingerprint(again)) == (data.division, fingerprint(data))
    assert fingerprint(data) != fingerprint(read(tmp_path, {"all.jsonl": rows.replace("t1", "u1")}))


def test_without_dev_equal_texts_stay_together_and_the_test_part_stays_whole(tmp_path):
    train = "text,label\n" + "".join(f"text {n % 10},{'ab'[n % 2]}\n" for n in range(40))
    data = read(tmp_path, {"train.csv": train, "test.csv": "text,label\nnew,a\nother,b\n"})
    texts = [{instance.inputs[0] for instance in load(data, split)} for split in ("train", "dev")]
    assert (len(texts[0]), len(texts[1]), texts[0] & texts[1]) == (9, 1, set()) and len(load(data, "test")) == 2


def test_texts_in_two_parts_and_labels_that_training_lacks_are_counted(tmp_path):
    dev, test = "text,label\ntext 1,b\nnew,a\n", "text,label\ntext 1,b\nnew,a\nother,c\n"
    data = read(tmp_path, {"train.csv": ROWS, "dev.csv": dev, "test.csv": test, "README.md": "x", "old.bak": "x"})
    assert data.notes[1:] == [
        "not read: old.bak",
        "train: 20 texts, a 10, b 10",
        "dev: 2 texts, a 1, b 1",
        "test: 3 texts, a 1, b 1, c 1",
        "1 of 2 texts of dev stand in train too, word for word",
        "1 of 3 texts of test stand in train too, word for word",
        "2 of 3 texts of test stand in dev too, word for word",
        "test has labels that train lacks and no model can find: c (1)",
    ]


def test_macro_f1_of_types_and_labels():
    gold, predicted = [["B-A", "B-B", "B-A"]], [["B-A", "O", "B-A"]]
    scores = metrics.entity_type_scores(gold, predicted)
    assert (scores["f1"], scores["macro f1"]) == (pytest.approx(80), 50)
    assert metrics.label_scores([("a",), ("a", "b")], [("a",), ("a",)])["macro f1"] == 50


def test_entities_are_paired_and_errors_counted():
    words = [*"abcdef"]
    gold = Sentence(words, ["B-X", "I-X", "B-Y", "B-X", "O", "O"])
    predicted = ["B-X", "O", "B-X", "B-X", "O", "B-Y"]
    pairs = confusion.pair_labels(TAGS, [gold], [predicted])
    assert pairs == [("X", "X, other bounds", "a b"), ("Y", "X", "c"), ("X", "X", "d"), ("none", "Y", "f")]
    row = {"gold \\ predicted": "X", "X": 1, "Y": 0, "X, other bounds": 1, "none": 0}
    assert confusion.count_pairs(pairs)[0] == row
    assert [(error["gold"], error["predicted"], error["as in"]) for error in confusion.list_errors(pairs)] == [
        ("X", "X, other bounds", "a b"), ("Y", "X", "c"), ("none", "Y", "f")
    ]  # fmt: skip
    type_scores = {
        row["label"]: (row["gold"], round(row["f1"])) for row in confusion.score_each(TAGS, [gold], [predicted])
    }
    assert type_scores == {"X": (2, 40), "Y": (1, 0)}


def test_the_key_of_a_folder_depends_on_its_content(own_outputs, tmp_path):
    key = own_sets.keep_own_data("smoke", read(tmp_path / "My Notes", {"all.csv": ROWS}))
    study = open_study("smoke")
    assert key.startswith("own-my-notes-") and study.dataset(key).key == key and study.dataset(key).labels == "a, b"
    assert study.protocol("gu", key).max_length == 64
    division = (paths.own_data("smoke", key) / "division.tsv").read_text().splitlines()
    assert division[0] == "document\tpart" and len(division) == 21 and "row 1\ttrain" in division
    (tmp_path / "My Notes/all.csv").write_text(ROWS.replace("text 3", "text three"))
    own_sets.open_folder.cache_clear()
    with pytest.raises(StudyError, match="files have changed since: run ./run_all.sh evaluate --data again"):
        study.dataset(key)


def test_a_changed_folder_stops_no_other_runs_of_an_encoder(own_outputs, tmp_path, monkeypatch):
    key, study = own_sets.keep_own_data("smoke", read(tmp_path / "mine", {"all.csv": ROWS})), open_study("smoke")
    artefacts.write_json(paths.evaluation("smoke", "some-bert", "gu"), {"datasets": [key, "gad"]})
    write(paths.results("smoke", "some-bert", key, "gu"), "{}")
    monkeypatch.setattr(study.__class__, "why_missing", lambda *_: "")
    graph, requested = plan.Plan("smoke", ["pubmed"]), [("some-bert", key, "gu"), ("some-bert", "gad", "gu")]
    assert graph.runnable.requested_runs("some-bert", "gu") == requested
    (tmp_path / "mine/all.csv").unlink()
    own_sets.open_folder.cache_clear()
    assert graph.runnable.requested_runs("some-bert", "gu") == requested[1:]
    assert result_files.describe_encoder(study, "some-bert", "gu", [key]) == {}


def test_bad_data_are_refused_before_anything_is_written(own_outputs, tmp_path, capsys):
    write(tmp_path / "mine/train.csv", "text,label\na\n")
    assert cli.main(["evaluate", "--model", "bert-general", "--data", str(tmp_path / "mine"), "--scale", "smoke"]) == 1
    message = "train.csv:2: expected 2 columns, found 1; is a quotation missing, or the file cut off?"
    assert capsys.readouterr().err == f"error: {message}\n"
    assert not (tmp_path / "outputs").exists()
    with pytest.raises(SystemExit):  # either a folder or registered datasets
        cli.main(["evaluate", "--model", "x", "--data", str(tmp_path), "--datasets", "bc2gm"])


def test_own_results_are_no_part_of_the_study(own_outputs):
    runs = make_runs([50.0], "accuracy", instances={"train": 9})
    write_result(("bert-general", "own-x-1", "gu"), runs, score="accuracy")
    study = open_study("smoke")
    assert study.results().empty and study.results(own=True)["value"].tolist() == [50.0]
