"""Tests of the texts of datasets: model inputs, natural test texts and the index of test sentences."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from golden import write
from notebook_code import definitions

from lib import provenance
from lib.benchmarks import datasets, instances, registry
from lib.corpora import leakage
from lib.errors import StudyError
from lib.study import dataset_texts, open_study, paths

LAPTOP = open_study("laptop")
PAGE = definitions("22_input_lengths", "BLOCKS")
LONG = "One two three four five six seven eight nine ten eleven"  # long enough for the index
ANOTHER = LONG.replace("One", "Another")


@pytest.fixture(autouse=True)
def fresh():
    """Clear the cache of test texts before and after each test."""
    dataset_texts.test_texts.cache_clear()
    yield
    dataset_texts.test_texts.cache_clear()


@pytest.fixture
def folder(own_outputs, tmp_path, monkeypatch):
    """Return the laptop scale's data folder, which is empty, and redirect its outputs."""
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def tagged(*sentences: str) -> str:
    return "".join("".join(f"{word}\tO\n" for word in sentence.split()) + "\n" for sentence in sentences)


# A split as read by BLURB's models


def test_inputs_are_the_texts_of_a_split_in_order(folder):
    write(folder / "sts/biosses/blurb/dev.tsv", "pair_id\tsent1\tsent2\tscore\n1\tOne.\tTwo.\t2\n2\tA.\tB.\t3\n")
    assert PAGE.read_inputs(LAPTOP, "biosses", "dev") == ["One. Two.", "A. B."]
    write(folder / "re/gad/blurb/test.tsv", "index\tsentence\tlabel\n0\t@GENE$ in @DISEASE$.\t1\n")
    assert PAGE.read_inputs(LAPTOP, "gad", "test") == ["@GENE$ in @DISEASE$."]


def test_empty_blocks_of_jnlpba_count_and_sentences_of_pico_end_after_full_stops(folder):
    write(folder / "ner/jnlpba/dev.tsv", "-DOCSTART-\tO\n\nAn\tO\nulcer\tB-DNA\n\n\nIt\tO\n-DOCSTART-\tO\n\nNo\tO\n")
    assert PAGE.read_inputs(LAPTOP, "jnlpba", "dev") == ["", "", "An ulcer", "", "It", "", "No"]
    lines = "-DOCSTART- (1)\n\nTwo NN O O\n\nparts NN O I-PAR\n. . O O\nOpen NN O O\n\n"
    write(folder / "ner/ebm-nlp/dev.txt", f"{lines}-DOCSTART- (2)\n\nEnd NN O O\n. . O O\n")
    assert PAGE.read_inputs(LAPTOP, "ebm-pico-scibert", "dev") == ["", "", "Two parts .", "Open", "", "End ."]


def test_inputs_that_are_not_there(folder):
    with pytest.raises(StudyError, match="unknown dataset 'jnlbpa': did you mean jnlpba"):
        PAGE.read_inputs(LAPTOP, "jnlbpa", "test")
    for key in ("jnlpba", "bc2gm"):
        with pytest.raises(StudyError, match=rf"no \$STUDY_DATA/ner/{key}/test.tsv; ./run_all.sh data {key}"):
            PAGE.read_inputs(LAPTOP, key, "test")


# Test texts


def test_test_texts_are_natural(folder):
    assert dataset_texts.test_texts(LAPTOP) == {} and dataset_texts.test_files(LAPTOP) == []
    dataset_texts.test_texts.cache_clear()
    write(folder / "ner/jnlpba/test.tsv", "-DOCSTART-\tO\n\nAn\tO\nulcer\tO\n\n")
    for part, text in (("abstracts", "7\tA title.\tAn abstract.\n"), ("entities", ""), ("relations", "")):
        write(folder / f"re/chemprot/chemprot_test_gs/chemprot_test_{part}_gs.tsv", text)
    write(folder / "re/gad/blurb/test.tsv", "index\tsentence\tlabel\n0\t@GENE$ and the risk of @DISEASE$ here.\t1\n")
    write(folder / "sts/biosses/blurb/test.tsv", "pair_id\tsent1\tsent2\tscore\n1\tOne.\tTwo.\t2\n2\tOne.\tSix.\t1\n")
    write(folder / "qa/bioasq-7b-yesno-blurb/test.tsv", "id\tQ?\tSnippets.\tyes\n")
    write(folder / "ner/bc2gm/train.tsv", tagged("No test set"))
    expected = {
        "jnlpba": ["An ulcer"],
        "chemprot": ["A title.", "An abstract."],  # from the abstracts, because the pairs hold only some sentences
        "chemprot-blue": ["A title.", "An abstract."],
        "gad": ["and the risk of", "here."],
        "biosses": ["One.", "Two.", "Six."],
        "bioasq-7b-yesno": ["Q?", "Snippets."],
    }
    assert dataset_texts.test_texts(LAPTOP) == expected
    # One file per dataset, but three for ChemProt, shared by its two forms.
    assert len(dataset_texts.test_files(LAPTOP)) == 7


def test_sets_with_folds_are_read_in_all_and_squad_has_its_development_set(folder):
    for fold in range(1, 11):
        table = f"index\tsentence\tlabel\n0\t@GENE$ is {fold % 5} of @DISEASE$\t1\n"
        write(folder / f"re/euadr/{fold}/test.tsv", table)
    question = {"id": "1", "question": "Is it?", "answers": [{"text": "It", "answer_start": 0}]}
    squad = {"data": [{"paragraphs": [{"context": "It is.", "qas": [question]}]}]}
    write(folder / "qa/squad-v1.1-dev-derived/dev-v1.1.derived.json", json.dumps(squad))
    texts = dataset_texts.test_texts(LAPTOP)
    assert texts == {"euadr": [f"is {fold} of" for fold in (1, 2, 3, 4, 0)], "squad": ["Is it?", "It is."]}
    assert len(dataset_texts.test_files(LAPTOP)) == 11
    (folder / "re/euadr/10/test.tsv").unlink()
    assert dataset_texts.tests_at_hand(LAPTOP).keys() == {"squad"}  # a dataset that lacks a fold is left out


def test_made_up_sets_have_test_texts_without_dummies(smoke_data):
    texts = dataset_texts.test_texts(open_study("smoke"))
    with_test = {key for key, dataset in registry.DATASETS.items() if "test" in dataset.files}
    tested = {key for key in with_test if not key.endswith("-blurb")}
    assert tested <= set(texts) <= set(registry.DATASETS)
    assert all(dataset_texts.test_files(open_study("smoke"))) and paths.data("smoke") == smoke_data
    for key in texts:
        assert texts[key] and len(set(texts[key])) == len(texts[key])
        assert not any(instances.DUMMY.search(text) for text in texts[key])


# The index


def read_index() -> pa.Table:
    return pq.read_table(paths.test_sentences("laptop") / "index.parquet")


def test_the_index_finds_every_test_sentence_and_holds_no_text(folder):
    write(folder / "ner/bc2gm/test.tsv", tagged(f"{LONG} . {ANOTHER} .", "Too short"))
    write(folder / "ner/s800/test.tsv", tagged(LONG))
    record = dataset_texts.write_index(LAPTOP)
    index = read_index()
    assert index.num_rows == record["sentences"] == 2
    assert record["texts"] == {"bc2gm": 2, "s800": 1}
    assert not any(pa.types.is_string(kind) or pa.types.is_binary(kind) for kind in index.schema.types)
    written = b"".join(path.read_bytes() for path in paths.test_sentences("laptop").iterdir())
    assert b"eleven" not in written and b"Too short" not in written
    guard = leakage.TestSentences(index)
    assert len(guard.find(leakage.plain_words(f"{ANOTHER}. {LONG}."))) == 2


def test_the_index_is_made_again_only_when_a_test_set_changes(folder):
    write(folder / "ner/bc2gm/test.tsv", tagged(LONG))
    first = dataset_texts.write_index(LAPTOP)
    path = paths.test_sentences("laptop") / "index.parquet"
    content, time = path.read_bytes(), path.stat().st_mtime_ns
    dataset_texts.test_texts.cache_clear()
    write(folder / "ner/bc2gm/train.tsv", tagged(ANOTHER))  # not a test set
    assert dataset_texts.write_index(LAPTOP) == first
    assert path.stat().st_mtime_ns == time
    write(folder / "ner/s800/test.tsv", tagged(ANOTHER))
    assert dataset_texts.write_index(LAPTOP)["fingerprint"] != first["fingerprint"]
    assert read_index().num_rows == 2
    dataset_texts.test_texts.cache_clear()
    (folder / "ner/s800/test.tsv").unlink()
    assert dataset_texts.write_index(LAPTOP) == first | {"commit": provenance.commit()}
    assert path.read_bytes() == content


def test_without_any_test_set_the_index_is_empty(folder):
    record = dataset_texts.write_index(LAPTOP)
    assert (record["sentences"], record["texts"]) == (0, {})
    assert read_index().schema.equals(leakage.INDEX)


def test_a_damaged_test_set_leaves_no_index(folder):
    write(folder / "ner/bc2gm/test.tsv", "secret\n")
    with pytest.raises(StudyError, match=r"^\$STUDY_DATA/ner/bc2gm/test\.tsv:1: ") as error:
        dataset_texts.write_index(LAPTOP)
    assert "secret" not in str(error.value)
    assert not paths.test_sentences("laptop").exists()


# Real data: counts only, so that no text is printed


# Train, dev and test: instances as in BLURB, and blocks counted when the files were collected.
INPUTS = {
    # 16,807, 1,739 and 3,856 sentences, and two empty blocks for each of 1,800, 200 and 404 document marks.
    "jnlpba": [20407, 2139, 4664],
    "hoc": [12119, 1798, 3547],
}


def test_real_inputs(real_data):
    at_hand = [key for key in INPUTS if not LAPTOP.why_missing(key)]
    if not at_hand:
        pytest.skip("none of the sets is in the data folder")
    for key in at_hand:
        assert [len(PAGE.read_inputs(LAPTOP, key, split)) for split in datasets.SPLITS] == INPUTS[key], key


def test_real_pico_blocks(real_data):
    """Every document mark and the blank line after it end a block."""
    split_inputs = {split: PAGE.read_inputs(LAPTOP, "ebm-pico-scibert", split) for split in ("dev", "test")}
    words = {split: sum(len(text.split()) for text in inputs) for split, inputs in split_inputs.items()}
    assert words == {"dev": 262127, "test": 51750}
    assert {split: len(inputs) for split, inputs in split_inputs.items()} == {"dev": 12288, "test": 2455}


def test_real_test_texts(real_data, monkeypatch):
    """One dataset of each kind has as many distinct texts as were counted when the datasets were collected."""
    expected = {"jnlpba": 3830, "chemprot": 1600, "biosses": 39, "hoc": 3543, "bioasq-7b-yesno": 280, "gad": 1198}
    if any(LAPTOP.dataset(key).paths("test") == [] for key in expected):
        pytest.skip("not every set is in the data folder")
    monkeypatch.setattr(registry, "DATASETS", {key: registry.DATASETS[key] for key in expected})
    texts = dataset_texts.test_texts(LAPTOP)
    assert {key: len(texts[key]) for key in texts} == expected
    assert sum(len(instances.DUMMY.findall(text)) for inputs in texts.values() for text in inputs) == 0


def test_test_sets_other_than_the_records_are_named(folder):
    write(folder / "ner/jnlpba/test.tsv", tagged(LONG))
    write(folder / "ner/bc2gm/test.tsv", tagged(ANOTHER))
    assert dataset_texts.count_sets(LAPTOP) == [] and dataset_texts.compare_sets(LAPTOP) == ""  # nothing recorded
    dataset_texts.write_index(LAPTOP)
    assert dataset_texts.count_sets(LAPTOP) == [{"dataset": "bc2gm", "texts": 1}, {"dataset": "jnlpba", "texts": 1}]
    recorded = paths.recorded(paths.table("laptop", "test-sets"))
    recorded.parent.mkdir(parents=True)
    recorded.write_text("dataset,texts\nbc2gm,1\njnlpba,1\n")
    assert dataset_texts.compare_sets(LAPTOP) == ""
    recorded.write_text("dataset,texts\nmednli,1\njnlpba,1\nddi,4\n")
    note = "2 test sets are at hand, and the record was made with 3: without ddi, mednli; with bc2gm. Other documents"
    assert dataset_texts.compare_sets(LAPTOP).startswith(note)
