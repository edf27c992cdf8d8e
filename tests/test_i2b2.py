"""Tests of i2b2/VA 2010 in the folders of its release, on made-up notes, as the real ones need an agreement.

test_formats.py tests reading the form and the errors for bad files.
"""

from pathlib import Path

import pytest
from golden import CONCEPTS, I2B2_TEXT, RELATED, write_files

from lib.benchmarks import counting, i2b2
from lib.benchmarks.instances import Sentence
from lib.errors import StudyError


def write(folder: Path, text=I2B2_TEXT, concepts=CONCEPTS, related=RELATED, name="note", concept="concept") -> Path:
    files = {f"txt/{name}.txt": text, f"{concept}/{name}.con": concepts, f"rel/{name}.rel": related}
    return write_files(folder, files)


def test_every_pair_of_concepts_in_a_line_is_an_instance_for_each_relation(tmp_path):
    concepts = 'c="a" 1:0 1:0||t="test"\nc="b" 1:1 1:1||t="treatment"\nc="d" 1:3 1:3||t="test"\n'
    relations = 'c="d" 1:3 1:3||r="TeCP"||c="b" 1:1 1:1\n'
    folder = write(tmp_path / "unrelated", "a b c d\n", concepts, relations)
    assert [relation.label for relation in i2b2.read_relations(folder)] == ["false", "false", "TeCP"]
    other_order = 'c="his pain" 3:3 3:4||r="TrIP"||c="secret aspirin" 3:0 3:1\n'
    relations = i2b2.read_relations(write(tmp_path / "several", related=RELATED + other_order))
    assert [(r.id, r.label) for r in relations[1:3]] == [("note.l2.l3", "TrAP"), ("note.l2.l3.1", "TrIP")]
    overlapping = write(tmp_path / "overlapping", concepts=CONCEPTS + 'c="pain" 1:1 1:1||t="problem"\n')
    assert len(i2b2.read_relations(overlapping)) == 4 + 2  # though they cannot be tagged


def test_a_line_that_begins_with_a_space_has_an_empty_first_word(tmp_path):
    folder = write(tmp_path, " a  b \n", 'c="a b" 1:1 1:2||t="problem"\n', "")
    assert i2b2.read_concepts(folder) == [Sentence(["a", "b"], ["B-problem", "I-problem"], "note")]


def test_the_test_set_is_in_two_folders(tmp_path):
    reference, texts = write(tmp_path / "reference_standard_for_test_data", concept="concepts"), tmp_path / "test_data"
    (reference / "txt").rename(texts)
    assert counting.entities(i2b2.read_concepts(texts, reference)) == 5
    assert len(i2b2.read_relations(texts, reference)) == 4
    with pytest.raises(StudyError, match=r"no \.txt files in reference_standard"):
        i2b2.read_concepts(reference)


def test_folders_are_joined_and_concepts_need_no_relations(tmp_path):
    beth, partners = write(tmp_path / "beth"), write(tmp_path / "partners", name="other")
    (beth / "rel/note.rel").unlink()
    assert {sentence.document for sentence in i2b2.read_concepts(beth, partners)} == {"note", "other"}
    with pytest.raises(StudyError, match="note lacks one of"):
        i2b2.read_relations(beth, partners)
    write(tmp_path / "partners")
    with pytest.raises(StudyError, match="stands for the same as"):
        i2b2.read_concepts(beth, partners)
