"""Tests of EBM-NLP's own release, on made-up files, as the real data are at hand only in SciBERT's form.

test_formats.py tests reading the form and the errors for bad files.
"""

from collections import Counter

import pytest
from golden import EBM_NLP, abstract, write_files

from lib.benchmarks import counting, pico
from lib.benchmarks.instances import Sentence
from lib.errors import StudyError


def test_words_are_counted_for_each_of_their_elements(tmp_path):
    folder = write_files(tmp_path, EBM_NLP)
    assert pico.read_elements(folder, "test") == [Sentence(["test", "."], ["I-INT", "O"], "11")]
    assert counting.element_words(pico.read_elements(folder, "train")) == {"PAR": 5, "INT": 1, "OUT": 3}


def test_dev_txt_lists_the_development_set(tmp_path):
    folder = write_files(tmp_path, EBM_NLP)
    with pytest.raises(StudyError, match="no abstracts in dev"):
        pico.read_elements(folder, "dev")
    write_files(folder, {"dev.txt": "10\n\n"})
    assert {sentence.document for sentence in pico.read_elements(folder, "dev")} == {"10"}
    assert {sentence.document for sentence in pico.read_elements(folder, "train")} == {"9"}
    write_files(folder, {"dev.txt": "10\n11\n"})
    with pytest.raises(StudyError, match="PMID 11 of dev is no training abstract"):
        pico.read_elements(folder, "train")


def test_release_1_has_other_file_names_and_commas(tmp_path):
    first = abstract("9", "a b", name="{}_AGGREGATED.ann", glue=",", INT="01", PAR="00", OUT="00")
    second = abstract("11", "b", "test/gold", INT="1", PAR="0", OUT="0")
    write_files(tmp_path, first | second | {"documents/9.tokens": "a b \n"})
    assert pico.read_elements(tmp_path, "train") == [Sentence(["a", "b"], ["O", "I-INT"], "9")]


def test_incomplete_and_test_abstracts_are_left_out_and_counted(tmp_path):
    folder = write_files(tmp_path, EBM_NLP)
    write_files(folder, abstract("8", "a", INT="1", PAR="0"))
    write_files(folder, abstract("11", "test .", INT="10", PAR="00", OUT="00"))
    sentences = pico.read_elements(folder, "train", left_out=(left_out := Counter()))
    assert {sentence.document for sentence in sentences} == {"9", "10"}
    assert list(left_out.values()) == [1, 1]  # 8 has no outcomes, 11 is in the test set
    pico.read_elements(folder, "test", left_out=(left_out := Counter()))
    assert not left_out.total()
