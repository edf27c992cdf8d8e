"""Tests of files with a word and its tag a line: document marks, comments, a cut last line; made-up and real files.

test_formats.py tests reading each form and the errors for bad files.
"""

import pytest
from golden import write

from lib.benchmarks import conll, counting, pico
from lib.errors import StudyError
from lib.study import paths


def test_document_marks_may_have_an_id(tmp_path):
    text = "no\tO\n\n-DOCSTART- (7)\n\na\tO\n\nb\tO\n-DOCSTART- (8)\nc\tO\n-DOCSTART-\tO\n\nd\tO\n"
    assert [sentence.document for sentence in conll.read_conll(write(tmp_path / "a", text))] == ["", "7", "7", "8", ""]


def test_comments_have_other_columns_than_the_rows(tmp_path):
    path = tmp_path / "a"
    for text in ("# a comment\na\tO\n# B_D\n#\n#\tO\n", "# a comment\na O\n# one more comment\n#\n# O\n"):
        assert [sentence.words for sentence in conll.read_conll(write(path, text))] == [["a", "#"]]
    for text in ("a\tO\n#\tB_D\nb\tO\n", "#\tB_D\na\tO\n", "a O\n# B_D\n"):
        with pytest.raises(StudyError, match=r"^a:[12]: .*another tag"):
            list(conll.read_conll(write(path, text)))


def test_a_last_line_that_may_be_cut_off_is_refused(tmp_path):
    whole = "a\tB-Disease\nb\tI-Disease"
    for text in (whole, "a\tB-X\n", whole[:-4] + "\n", "a\tO", "a\tB-X\n\nb\tB-X\nc\tU-X"):
        assert list(conll.read_conll(write(tmp_path / "a", text)))
    for cut in (4, 8):  # I-Dis, I
        with pytest.raises(StudyError, match="^a:2: .*cut off"):
            list(conll.read_conll(write(tmp_path / "a", whole[:-cut])))


def test_words_of_trials_have_tags_of_the_three_elements_or_none(tmp_path):
    for tag in ("I-OU", "I-INTX", "I-int", "I", "B"):
        with pytest.raises(StudyError, match="a: expected O, or tags of INT, OUT and PAR"):
            list(conll.read_pico(write(tmp_path / "a", f"heart NN O I-OUT\nrate NN O {tag}\n")))


def test_made_up_forms_of_ebm_nlp_agree():
    for split in ("train", "dev", "test"):
        instances = list(conll.read_pico(paths.MADE_UP / f"ner/ebm-nlp/{split}.txt"))
        original = pico.read_elements(paths.MADE_UP / "ner/ebm-nlp-original", split)
        assert {sentence.document for sentence in original} == {sentence.document for sentence in instances}
        assert counting.element_words(original)["INT"] == counting.element_words(instances)["INT"] > 10
        assert any("|" in tag for sentence in original for tag in sentence.tags)


def test_real_jnlpba_is_the_original(real_data):
    """The test set equals the original file, read by hand, without its document marks."""
    folder = real_data / "ner/jnlpba"
    text = (folder / "original/Genia4EReval1.iob2").read_text(encoding="utf-8")
    blocks = [[line.split("\t") for line in block.split("\n") if line] for block in text.split("\n\n")]
    original = [block for block in blocks if block and not block[0][0].startswith("###MEDLINE:")]
    sentences = conll.read_conll(folder / "test.tsv")
    is_equal = [[list(pair) for pair in zip(s.words, s.tags, strict=True)] for s in sentences] == original
    assert is_equal
