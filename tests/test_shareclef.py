"""Tests of ShARe/CLEF 2013 in the forms of its release, on made-up notes, as the real ones need an agreement.

test_formats.py tests reading each form and the errors for bad files.
"""

from collections import Counter
from pathlib import Path

import pytest
from conftest import each
from golden import KNOWTATOR, NOTE, PIPES, read_share_clef, write_files

from lib.benchmarks import counting, registry, shareclef
from lib.benchmarks.instances import Sentence
from lib.benchmarks.standoff import Annotation
from lib.errors import StudyError

MENTIONS = [
    Annotation("Disorder", ((0, 6), (16, 23))),
    Annotation("Disorder", ((29, 33),)),
]


def write(folder: Path, annotations=PIPES, name="note", end=".pipe.txt") -> Path:
    return write_files(folder, {f"notes/{name}.txt": NOTE, f"gold/{name}{end}": annotations})


def read_mentions(folder: Path, *names) -> list[Annotation]:
    notes = shareclef.read_marked_notes(folder / "notes", folder / "gold", *names)
    return [mention for _, _, mentions in notes for mention in mentions]


def test_both_forms_keep_the_parts_of_a_mention(tmp_path):
    assert read_mentions(write(tmp_path / "pipes")) == MENTIONS
    assert read_mentions(write(tmp_path / "xml", KNOWTATOR, end=".txt.knowtator.xml")) == MENTIONS


@each(("text", "length"), [("[****]", 6), ("[**2001-1-1**]", 14), ("||||", 4)])
def test_blanked_text_keeps_its_offsets(text, length):
    blanked = shareclef.blank(f"a {text} b")
    assert len(blanked) == length + 4
    assert blanked.split() in (["a", "b"], ["a", "PATTERN", "b"], ["a", "ATTERN", "b"])


def test_overlaps_are_counted(tmp_path):
    folder = write(tmp_path, PIPES + "note.txt||Disease_Disorder||C0000003||0||15\n")
    sentences = read_share_clef(folder, left_out=(left_out := Counter()))
    assert counting.entities(sentences) == 2 and left_out == {"mentions that overlap a longer one": 1}
    assert len(read_mentions(folder)) == 3


def test_a_list_names_the_notes_of_a_split(tmp_path):
    write(tmp_path, "", name="other")
    folder, names = write(tmp_path), tmp_path / "dev.txt"
    assert {sentence.document for sentence in read_share_clef(folder)} == {"note", "other"}
    names.write_text("note\n\n")
    assert read_mentions(folder, names) == MENTIONS
    assert {sentence.document for sentence in read_share_clef(folder, names)} == {"note"}
    names.write_text("note\nIn secret it was given.\n")
    with pytest.raises(StudyError, match=r"no note for 1 of 2 names(?!.*secret)"):
        read_share_clef(folder, names)


def test_a_mention_in_parts_is_right_if_every_part_is(tmp_path):
    dataset, sentences = registry.lookup("share-clef-2013"), read_share_clef(write(tmp_path))
    tags = [tag for sentence in sentences for tag in sentence.tags]
    assert tags.count("B-Disorder") == 2 and "O" in tags[tags.index("B-Disorder") : tags.index("I-Disorder")]
    first_parts = [["O" if tag.startswith("I") else tag for tag in sentence.tags] for sentence in sentences]
    assert dataset.score(sentences, first_parts)["f1"] == 50  # one mention of two
    assert dataset.score(sentences, [sentence.tags for sentence in sentences])["f1"] == 100
    rows = (("left", "B-Disorder", "a"), ("arm", "I-Disorder", "a"), ("x", "O", "b"))
    split_mention = [Sentence([word], [tag], document) for word, tag, document in rows]
    assert dataset.score(split_mention, [["B-Disorder"], ["O"], ["O"]])["f1"] == 0
    assert dataset.score(split_mention, [["B-Disorder"], ["I-Disorder"], ["O"]])["f1"] == 100
