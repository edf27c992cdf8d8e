"""Tests of the texts of datasets: model inputs, natural test texts and the index of test sentences."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from golden import write
from notebook_code import definitions

from lib.benchmarks import instances, registry
from lib.corpora import leakage
from lib.errors import StudyError
from lib.study import dataset_texts, open_study, paths

LAPTOP = open_study("laptop")
PAGE = definitions("22_input_lengths", "BLOCKS")
LONG = "One two three four five six seven eight nine ten eleven"  # long enough for the index
ANOTHER = LONG.replace("One", "Another")


@pytest.fixture
def folder(fresh, own_outputs, tmp_path, monkeypatch):
    """Return the laptop scale's data folder, which is empty, and redirect its outputs."""
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def tagged(*sentences: str) -> str:
    return "".join("".join(f"{word}\tO\n" for word in sentence.split()) + "\n" for sentence in sentences)


# A split as read by BLURB's models


def test_inputs_are_the_texts_of_a_split_in_order(folder):
    write(folder / "sts/biosses/blurb/dev.tsv", "pair_id\tsent1\tsent2\tscore\n1\tOne.\tTwo.\t2\n2\tA.\tB.\t3\n")
    assert PAGE.read_inputs(LAPTOP, "biosses", "dev") == ["One. Two.", "A. B."]
    with pytest.raises(StudyError, match=r"no \$STUDY_DATA/ner/jnlpba/test.tsv; ./run_all.sh data jnlpba"):
        PAGE.read_inputs(LAPTOP, "jnlpba", "test")


def test_empty_blocks_of_jnlpba_count_and_sentences_of_pico_end_after_full_stops(folder):
    write(folder / "ner/jnlpba/dev.tsv", "-DOCSTART-\tO\n\nAn\tO\nulcer\tB-DNA\n\n\nIt\tO\n-DOCSTART-\tO\n\nNo\tO\n")
    assert PAGE.read_inputs(LAPTOP, "jnlpba", "dev") == ["", "", "An ulcer", "", "It", "", "No"]
    lines = "-DOCSTART- (1)\n\nTwo NN O O\n\nparts NN O I-PAR\n. . O O\nOpen NN O O\n\n"
    write(folder / "ner/ebm-nlp/dev.txt", f"{lines}-DOCSTART- (2)\n\nEnd NN O O\n. . O O\n")
    assert PAGE.read_inputs(LAPTOP, "ebm-pico-scibert", "dev") == ["", "", "Two parts .", "Open", "", "End ."]


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


def test_all_folds_are_read_and_squad_has_its_development_set(folder):
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


def test_every_made_up_test_set_has_natural_texts(fresh, smoke_data):
    texts = dataset_texts.test_texts(open_study("smoke"))
    for key, dataset in registry.DATASETS.items():
        assert key in texts or "test" not in dataset.files or key.endswith("-blurb"), key
    for key, set_texts in texts.items():
        assert set_texts and len(set(set_texts)) == len(set_texts), key
        assert not any(instances.DUMMY.search(text) for text in set_texts), key


# The index


def read_index() -> pa.Table:
    return pq.read_table(paths.test_sentences("laptop") / "index.parquet")


def test_the_index_finds_every_test_sentence_and_contains_no_text(folder):
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


def test_the_index_is_written_again_only_when_a_test_set_changes(folder):
    empty = dataset_texts.write_index(LAPTOP)
    assert (empty["sentences"], empty["texts"]) == (0, {}) and read_index().schema.equals(leakage.INDEX)
    dataset_texts.test_texts.cache_clear()
    write(folder / "ner/bc2gm/test.tsv", tagged(LONG))
    first = dataset_texts.write_index(LAPTOP)
    path = paths.test_sentences("laptop") / "index.parquet"
    time = path.stat().st_mtime_ns
    dataset_texts.test_texts.cache_clear()
    write(folder / "ner/bc2gm/train.tsv", tagged(ANOTHER))  # not a test set
    assert dataset_texts.write_index(LAPTOP) == first
    assert path.stat().st_mtime_ns == time
    write(folder / "ner/s800/test.tsv", tagged(ANOTHER))
    assert dataset_texts.write_index(LAPTOP)["fingerprint"] != first["fingerprint"]
    assert read_index().num_rows == 2


def test_a_damaged_test_set_leaves_no_index(folder):
    write(folder / "ner/bc2gm/test.tsv", "secret\n")
    with pytest.raises(StudyError, match=r"^\$STUDY_DATA/ner/bc2gm/test\.tsv:1: ") as error:
        dataset_texts.write_index(LAPTOP)
    assert "secret" not in str(error.value)
    assert not paths.test_sentences("laptop").exists()


def test_test_sets_that_differ_from_the_record_are_named(folder):
    write(folder / "ner/jnlpba/test.tsv", tagged(LONG))
    write(folder / "ner/bc2gm/test.tsv", tagged(ANOTHER))
    assert dataset_texts.compare_sets(LAPTOP) == ""  # nothing recorded
    dataset_texts.write_index(LAPTOP)
    assert dataset_texts.count_sets(LAPTOP) == [{"dataset": "bc2gm", "texts": 1}, {"dataset": "jnlpba", "texts": 1}]
    recorded = paths.recorded(paths.table("laptop", "test-sets"))
    write(recorded, "dataset,texts\nbc2gm,1\njnlpba,1\n")
    assert dataset_texts.compare_sets(LAPTOP) == ""
    write(recorded, "dataset,texts\nmednli,1\njnlpba,1\nddi,4\n")
    note = "2 test sets are at hand, and the record was made with 3: without ddi, mednli; with bc2gm. Other documents"
    assert dataset_texts.compare_sets(LAPTOP).startswith(note)


# Real data: counts only, so that no text is printed


def test_real_inputs(real_data):
    """Page 22's inputs of JNLPBA and PICO, counted in the files; BLURB's scripts count empty blocks as instances."""
    keys = [key for key in PAGE.BLOCKS if not LAPTOP.why_missing(key)]
    sizes = {key: [len(PAGE.read_inputs(LAPTOP, key, split)) for split in ("dev", "test")] for key in keys}
    # JNLPBA: 1,739 and 3,856 sentences, and two empty blocks for each of 200 and 404 document marks.
    expected = {"jnlpba": [2139, 4664], "ebm-pico-scibert": [12288, 2455]}
    assert sizes == {key: expected[key] for key in keys}
