"""Tests of saved models on new text: offsets in the original text, the same entities as transformers, and files."""

import functools
import io
import itertools
import json
import os
import re
import shutil

import pytest
import torch
from conftest import each
from golden import write, write_files
from hypothesis import given, settings
from hypothesis import strategies as st
from test_saved import work_on
from tqdm import tqdm
from transformers import AutoModelForTokenClassification, pipeline

from lib.benchmarks import pubtator, registry, standoff
from lib.errors import StudyError
from lib.finetuning import formats, new_text, saved
from lib.finetuning.texts import add_markers
from lib.running import cli, labelling
from lib.study import paths

ABSTRACT = "1|t|Symptoms of gratix.\n1|a|It improved after it. It came back.\n1\t12\t18\tgratix\tDisease\tD1\n\n"
ODD = ["aB.", " ", "\u2028", "\n", "\r", "e\u0301", "é", "\u0301", "😀", "x-1", "M.", "\u1100\u1161", "±", "\x00",
       "\u0958"]  # fmt: skip


@pytest.fixture(scope="module")
def keep(bert, tmp_path_factory):
    """Return a function that fine-tunes on a made-up dataset, once per choice, and returns the saved model's folder."""
    folders = {}

    def give(key: str, **choice):
        name = f"{key} {choice}"
        if name not in folders:
            folder = tmp_path_factory.mktemp("work")
            work_on(folder, bert, key, folds=1, **choice).run([1], folder / "saved")
            folders[name] = folder / "saved"
        return folders[name]

    return give


@pytest.fixture(scope="module")
def tagger(keep):
    return keep("ncbi-disease")


def read_test(key: str) -> list:
    return registry.lookup(key).at(paths.MADE_UP).load("test")


@functools.cache
def tag_every_word(folder) -> saved.Saved:
    """Load a saved tagger and make it begin an entity at every word."""
    model = saved.load_saved(folder)
    with torch.no_grad():
        model.model.score.bias[:] = torch.tensor([0.0, 99.0, 0.0])
    return model


def test_the_pipeline_of_transformers_finds_the_same_entities(tagger, tmp_path):
    folder = shutil.copytree(tagger, tmp_path / "random")
    library_model = AutoModelForTokenClassification.from_pretrained(folder)
    torch.nn.init.normal_(library_model.classifier.weight, generator=torch.Generator().manual_seed(0))  # varied tags
    library_model.save_pretrained(folder)
    texts = [" ".join(sentence.words) for sentence in read_test("ncbi-disease")][:20]
    ours = new_text.tag_texts(saved.load_saved(folder), texts)
    predictions = pipeline("token-classification", str(folder), aggregation_strategy="first")(texts)
    expected = [[(group["start"], group["end"], group["entity_group"]) for group in of_text] for of_text in predictions]
    assert [[entity[:3] for entity in of_text] for of_text in ours] == expected
    assert sum(map(len, ours)) > 20
    scores = [group["score"] for of_text in predictions for group in of_text]
    assert [entity.probability for of_text in ours for entity in of_text] == pytest.approx(scores, abs=1e-4)


@given(st.lists(st.sampled_from(ODD), max_size=40))
@settings(max_examples=60, deadline=None)
def test_every_word_is_read_once_with_its_offsets_in_the_original_text(tagger, pieces):
    text = "".join(pieces)
    (entities,) = new_text.tag_texts(tag_every_word(tagger), [text])
    composed = pubtator.compose_letters(text)
    if composed == new_text.compose_text(text)[0]:  # except where more than marks compose, as in Hangul
        words = [pubtator.compose_letters(text[entity.start : entity.end]) for entity in entities]
        assert words == standoff.WORD.findall(composed)
    assert all(entity.start < entity.end for entity in entities)
    assert all(previous.end <= following.start for previous, following in itertools.pairwise(entities))
    between = zip([0, *(span.end for span in entities)], [*(span.start for span in entities), len(text)], strict=True)
    assert not any(text[end:start].strip() for end, start in between)


def test_offsets_in_a_text_that_is_read_in_parts(tagger):
    text = "pain and fever, " * 400 + "é" * 300 + ". More pain (here)."
    (entities,) = new_text.tag_texts(tag_every_word(tagger), [text])
    assert [text[entity.start : entity.end] for entity in entities] == standoff.WORD.findall(text)


@each(
    ("key", "choice", "kinds"),
    [
        ("ncbi-disease", {"head": "CRF"}, {"Disease"}),
        ("ncbi-disease", {"scheme": "BIOUL", "characters": True}, {"Disease"}),
        ("ebm-pico", {}, {"INT", "OUT", "PAR"}),
        ("jnlpba", {}, {"entity"}),  # its types are dropped
    ],
)
def test_taggers_find_the_entities_that_they_predict(keep, key, choice, kinds):
    model, sentences = saved.load_saved(keep(key, **choice)), read_test(key)[:30]
    torch.manual_seed(0)
    torch.nn.init.normal_(model.model.score.weight)  # so that every kind of tag occurs
    match_word = re.compile(standoff.WORD.pattern + r"\Z").match
    sentences = [instance for instance in sentences if all(map(match_word, instance.words))]
    predicted = model.predict(sentences)
    entity_lists = new_text.tag_texts(model, [" ".join(instance.words) for instance in sentences])
    assert {entity.type for entities in entity_lists for entity in entities} == kinds
    for sentence, tags, entities in zip(sentences, predicted, entity_lists, strict=True):
        marked = set()
        for entity in entities:
            assert 0 < entity.probability <= 1
            text = " ".join(sentence.words)
            first, last = text[: entity.start].count(" "), text[: entity.end].count(" ")
            marked |= set(range(first, last + 1))
        assert marked == {i for i, tag in enumerate(tags) if tag != "O"}


@each("key", ["mednli", "hoc", "biosses", "bioasq-reranker"])
def test_classifiers_give_the_labels_that_they_predict(keep, key):
    model, instances = saved.load_saved(keep(key)), read_test(key)[:8]
    if key == "hoc":
        inputs = [new_text.make_instance(model, " ".join(item.sentences)) for item in instances]
    else:
        inputs = [new_text.make_instance(model, item.first, item.second) for item in instances]
    predictions, expected = new_text.classify_instances(model, inputs), model.predict(instances)
    match key:
        case "biosses":
            assert [item["number"] for item in predictions] == pytest.approx(expected, abs=1e-6)
        case "hoc":
            assert [tuple(item["labels"]) for item in predictions] == expected
        case "bioasq-reranker":
            assert [item["probabilities"]["1"] for item in predictions] == pytest.approx(expected, abs=1e-6)
        case _:
            assert [item["label"] for item in predictions] == expected
            assert all(sum(item["probabilities"].values()) == pytest.approx(1) for item in predictions)


def test_relations_are_read_from_markers_or_dummies(keep):
    relations = read_test("ddi")[:8]
    for mentions in ("markers", "dummies"):
        model = saved.load_saved(keep("ddi", mentions=mentions, encoding="mentions"))
        texts = [(add_markers(item) if mentions == "markers" else item.dummify()).text for item in relations]
        instances = [new_text.make_instance(model, text) for text in texts]
        predictions = new_text.classify_instances(model, instances)
        assert [item["label"] for item in predictions] == model.predict(relations)
        assert [encoded.tokens for encoded in model.task.encode(instances)] == [
            encoded.tokens for encoded in model.task.encode(relations)
        ]
        with pytest.raises(StudyError, match=r"\[E1\]" if mentions == "markers" else "0 dummies in the text"):
            new_text.make_instance(model, "No mention here.")
    with pytest.raises(StudyError, match="1 dummies"):
        new_text.make_instance(model, "Of @DRUG$ alone.")


# The commands.


@pytest.fixture
def run(capsys, monkeypatch):
    """Return a function that runs a command with `text` as input and returns its exit status, stdout and stderr."""

    def give(*words, text: str | bytes = ""):
        content = text if isinstance(text, bytes) else text.encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        capsys.readouterr()
        status = cli.main([str(word) for word in words])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return give


@pytest.fixture
def every(monkeypatch, tagger):
    """Make the commands' tagger begin an entity at every word; return its folder."""
    model = tag_every_word(tagger)
    monkeypatch.setattr(saved, "load_saved", lambda folder: model)
    return tagger


def test_sentences_from_standard_input(run, every):
    status, out, err = run("tag", "--model", every, text="Ataxia is\n\n inherited.\n")
    first, second = map(json.loads, out.splitlines())
    assert (status, err) == (0, "") and (first["id"], second["id"]) == ("1", "3")
    assert first["entities"][0] == {"start": 0, "end": 6, "type": "Disease", "text": "Ataxia", "probability": 1.0}
    assert second["text"] == " inherited." and second["entities"][0]["start"] == 1


def test_documents_in_every_input_format(run, every, tmp_path):
    write_files(tmp_path, {
        "one.jsonl": '{"id": "d", "text": "No\\nfever"}\n\n', "one.tsv": 'text\tid\n"No fever\td\n',
        "one.CSV": 'Id;Text;more\nd;"No ""x"", fever";\n\n', "notes/d.txt": b"\xef\xbb\xbfNo\r\nfever",
    })  # fmt: skip
    entities = {}
    for name in ("one.jsonl", "one.tsv", "one.CSV", "notes"):
        status, out, _ = run("tag", "--model", every, tmp_path / name, "--format", "tsv")
        header, *lines = [line.split("\t") for line in out.splitlines()]
        assert status == 0 and header == ["id", *formats.FIELDS] and all(line[0] == "d" for line in lines)
        entities[name] = [(*map(int, line[1:3]), line[4]) for line in lines]
    assert entities["one.jsonl"] == [(0, 2, "No"), (3, 8, "fever")]
    assert entities["one.tsv"] == [(0, 1, '"'), (1, 3, "No"), (4, 9, "fever")]
    assert entities["one.CSV"][-1] == (8, 13, "fever") and entities["notes"] == [(0, 2, "No"), (4, 9, "fever")]


def test_ids_are_unique_across_files(run, every, tmp_path):
    files = {
        "a.csv": "text\nfever\n",
        "c.jsonl": '\n{"text": "fever"}\n{"text": "pain", "id": "d:2"}\n',
        "x.txt": "\nfever\n",
        "other/x.txt": "fever\n\nfever\n",
    }
    write_files(tmp_path, files)
    status, out, _ = run("tag", "--model", every, *(tmp_path / name for name in files))
    ids = [json.loads(line)["id"] for line in out.splitlines()]
    assert status == 0 and ids == ["a-1", "c-1", "d:2", "x-2", "x_2-1", "x_2-3"]
    assert json.loads(run("tag", "--model", every, tmp_path / "c.jsonl")[1].splitlines()[0])["id"] == "1"


def test_a_pipe_given_as_a_file(run, every):
    pipe, end = os.pipe()  # as in `tag <(zcat in.gz)`
    os.write(end, b'{"text": "fever"}\n')
    os.close(end)
    status, out, err = run("tag", "--model", every, f"/dev/fd/{pipe}")
    os.close(pipe)
    assert (status, err) == (0, "") and json.loads(out)["text"] == "fever"


def test_the_output_is_no_input_and_no_compressed_file(run, tmp_path):
    note = write(tmp_path / "notes" / "a.txt", "fever")
    for path in (tmp_path / "notes", note):
        _, _, err = run("tag", path, "-o", tmp_path / "notes" / ".." / "notes" / "a.txt")
        assert err.startswith("error: a.txt: the input")
    _, _, err = run("tag", tmp_path / "notes", "-o", tmp_path / "out.tsv.gz")
    assert err.startswith("error: out.tsv.gz: the output is not compressed")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.txt", "notes"]


def test_pubtator_output_is_read_back_with_its_offsets(run, every, tmp_path):
    (tmp_path / "in.txt").write_text(ABSTRACT + ABSTRACT.replace("1|", "2|").replace("1\t", "2\t"))
    options = ["--format", "pubtator", "-o", tmp_path / "out" / "found.txt"]
    assert run("tag", "--model", every, tmp_path / "in.txt", *options) == (0, "", "")
    first, second = pubtator.read_abstracts(tmp_path / "out" / "found.txt")
    assert (first.pmid, second.pmid) == ("1", "2") and first.text.count("\n") == 1
    assert [first.text[mention.start : mention.end] for mention in first.mentions] == standoff.WORD.findall(first.text)


def test_brat_output_is_a_new_folder_of_texts_and_entities(run, every, tmp_path):
    text = "Fever\r\nand pain"
    write_files(tmp_path / "notes", {"a.txt": text, "b.txt": ""})
    command = ["tag", "--model", every, tmp_path / "notes", "--format", "brat"]
    assert run(*command, "-o", tmp_path / "out")[0] == 0
    lines = [line.split("\t") for line in (tmp_path / "out" / "a.ann").read_text().splitlines()]
    assert lines[0] == ["T1", "Disease 0 5", "Fever"] and lines[1][:2] == ["#1", "AnnotatorNotes T1"]
    assert lines[4] == ["T3", "Disease 11 15", "pain"]
    assert (tmp_path / "out" / "a.txt").read_bytes() == text.encode() and not (tmp_path / "out" / "b.ann").read_bytes()
    assert "something lies there" in run(*command, "-o", tmp_path / "out")[2]
    assert "with -o" in run(*command)[2]


@each(
    ("name", "content", "message"),
    [
        ("a.txt", b"good\nb\xe9d\n", "a.txt:2: not UTF-8 text"),
        ("a.txt", b" \n\n", "a.txt: no text in it"),
        ("a.jsonl", b'{"text": "a"}\n{"id": 1}\n', 'a.jsonl:2: no text under "text"'),
        ("a.jsonl", b'{"text": "a \\ud800"}\n', "a.jsonl:1: half of a surrogate pair"),
        ("a.tsv", b"id\ttitle\n1\ta\n", "a.tsv:1: expected a column text in the header"),
        ("a.txt", b"1|t|A title\n2|a|An abstract\n", "a.txt:2: expected 'PMID|t|title'"),
        ("a.txt", b"1|t|A title\n", "was the file cut off"),
        ("folder/a.md", b"text", "folder: no .txt files"),
    ],
)
def test_malformed_input_gives_one_line_and_no_output(run, every, tmp_path, name, content, message):
    write(tmp_path / name, content)
    path = tmp_path / name if name.startswith("a") else tmp_path / "folder"
    for options in ([], ["-o", tmp_path / "out"]):
        status, out, err = run("tag", "--model", every, path, *options)
        assert status == 1 and out == "" and err.startswith("error: ") and message in err and err.count("\n") == 1
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [name.split("/")[0]]


def test_a_wrong_or_missing_model(run, keep, tagger, tmp_path, monkeypatch):
    pairs = keep("mednli")
    status, _, err = run("tag", "--model", pairs, text="a")
    assert status == 1 and "no tagger but a model of inference" in err and "classify takes it" in err
    assert "no classifier but a model of tagging" in run("classify", "--model", tagger, text="a")[2]
    assert "text2" in run("classify", "--model", pairs, text="a")[2]
    assert "no folder" in run("tag", "--model", tmp_path / "none", text="a")[2]
    assert "no tagger in it" in run("tag", "--model", tmp_path, text="a")[2]
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    for command in ("tag", "classify"):
        status, _, err = run(command, text="a")
        assert status == 1 and "evaluate --model ENCODER" in err and err.count("\n") == 1
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "diseases").symlink_to(tagger)
    (tmp_path / "model" / "pairs").symlink_to(pairs)
    assert run("tag", text="Ataxia.") == run("tag", "--model", tagger, text="Ataxia.")


def test_classes_of_pairs_as_json_lines_and_as_a_table(run, keep, tmp_path):
    (tmp_path / "pairs.jsonl").write_text('{"text": "A.", "text2": "B.", "id": 7}\n')
    status, out, _ = run("classify", "--model", keep("mednli"), tmp_path / "pairs.jsonl")
    result = json.loads(out)
    assert status == 0 and list(result) == ["id", "text", "text2", "label", "probabilities"] and result["id"] == "7"
    assert run("classify", "--model", keep("mednli"), tmp_path / "pairs.jsonl", "-o", tmp_path / "out.tsv")[0] == 0
    header, cells = [row.split("\t") for row in (tmp_path / "out.tsv").read_text().splitlines()]
    assert header == ["id", "label", *result["probabilities"]]
    assert cells == ["7", result["label"], *map(str, result["probabilities"].values())]


def test_documents_are_read_one_window_at_a_time(monkeypatch):
    monkeypatch.setattr(labelling, "WINDOW", 10)
    read_numbers = []
    documents = (read_numbers.append(number) or formats.NewText("", str(number), "four") for number in range(100))
    windows = labelling.follow(documents, tqdm(total=100, disable=True))
    assert [len(next(windows)), len(read_numbers), len(next(windows)), len(read_numbers)] == [3, 3, 3, 6]


def test_files_of_a_saved_model_have_default_permissions(tagger, keep):
    umask = os.umask(0)
    os.umask(umask)
    for folder in (tagger, keep("ncbi-disease", head="CRF")):
        assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o666 & ~umask}
