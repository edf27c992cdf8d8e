"""ShARe/CLEF 2013 in the forms of its release, on notes written here: the real ones need an agreement."""

from collections import Counter
from pathlib import Path

import pytest
from conftest import each
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.benchmarks import counting, shareclef
from lib.benchmarks.instances import Sentence
from lib.benchmarks.standoff import Annotation
from lib.errors import StudyError

NOTE = "Atrium secretly dilated.\n\nNo\npain [**2001-1-1**] now.\n"
LINE = "note.txt||Disease_Disorder||C0000001||0||6||16||23\nnote.txt||Disease_Disorder||CUI-less||29||33\n"
XML = """<?xml version="1.0" encoding="UTF-8"?>
<annotations textSource="note.txt">
<annotation><mention id="m1"/><annotator id="x">secret</annotator><span start="0" end="6"/><span start="16" end="23"/>
<spannedText>secret</spannedText></annotation>
<classMention id="m1"><hasSlotMention id="s1"/><mentionClass id="Disease_Disorder">secret</mentionClass></classMention>
<stringSlotMention id="s1"><mentionSlot id="CUI"/><stringSlotMentionValue value="C0000001"/></stringSlotMention>
<annotation><mention id="m2"/><span start="29" end="33"/></annotation>
<classMention id="m2"><mentionClass id="Disease_Disorder">secret</mentionClass></classMention>
</annotations>
"""
MENTIONS = [
    Annotation("C0000001", "Disorder", ((0, 6), (16, 23)), "note"),
    Annotation("CUI-less", "Disorder", ((29, 33),), "note"),
]


def write(folder: Path, note=NOTE, annotations=LINE, name="note", end=".pipe.txt") -> tuple[Path, Path]:
    for place, content in ((f"notes/{name}.txt", note), (f"gold/{name}{end}", annotations)):
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / "notes", folder / "gold"


def read_mentions(*given) -> list[Annotation]:
    return [mention for _, mentions in shareclef.read_notes(*given).values() for mention in mentions]


def count_overlaps(*folders) -> int:
    shareclef.read(*folders, left_out=(left_out := Counter()))
    return left_out["mentions that overlap a longer one"]


@pytest.mark.parametrize(
    ("annotations", "end"),
    [(LINE, ".pipe.txt"), (LINE, ".txt"), (XML, ".txt.knowtator.xml")],
    ids=["pipe", "txt", "xml"],
)
def test_mentions_keep_their_parts_and_all_are_tagged(tmp_path, annotations, end):
    folders = write(tmp_path, annotations=annotations, end=end)
    assert read_mentions(*folders) == MENTIONS
    assert shareclef.read(*folders) == [
        Sentence(["Atrium", "secretly", "dilated", "."], ["B-Disorder", "O", "I-Disorder", "O"], "note"),
        Sentence(["No", "pain", "PATTERN", "now", "."], ["O", "B-Disorder", "O", "O", "O"], "note"),
    ]
    assert not count_overlaps(*folders)


@pytest.mark.parametrize(
    ("text", "length"), [("[****]", 6), ("[**a**]", 7), ("[**2001-1-1**]", 14), ("||||", 4), ("___", 3)]
)
def test_blanks_keep_the_offsets(text, length):
    found = shareclef.blank(f"a {text} b")
    assert len(found) == length + 4
    assert found.split() in (["a", "b"], ["a", "PATTERN", "b"], ["a", "ATTERN", "b"])


def test_overlaps_are_counted(tmp_path):
    folders = write(tmp_path, annotations=LINE + "note.txt||Disease_Disorder||C0000003||0||15\n")
    assert count_overlaps(*folders) == 1
    assert counting.entities(shareclef.read(*folders)) == 2
    assert len(read_mentions(*folders)) == 3


def test_notes_can_be_named(tmp_path):
    write(tmp_path, name="other", annotations="")
    folders = write(tmp_path)
    assert {s.document for s in shareclef.read(*folders)} == {"note", "other"}
    assert {s.document for s in shareclef.read(*folders, ["other"])} == {"other"}
    assert read_mentions(*folders, ["note"]) == MENTIONS
    (tmp_path / "dev.txt").write_text("note\n\n")
    assert read_mentions(*folders, tmp_path / "dev.txt") == MENTIONS
    with pytest.raises(StudyError, match="no note for 1 of 2 names; check their list"):
        shareclef.read(*folders, ["note", "third"])


def test_files_that_do_not_match(tmp_path):
    folders = write(tmp_path)
    (folders[1] / "other.pipe.txt").write_text("")
    with pytest.raises(StudyError, match=r"other\.pipe\.txt: no note of this name"):
        shareclef.read(*folders)
    (folders[1] / "other.pipe.txt").rename(folders[1] / "note.txt")
    with pytest.raises(StudyError, match="the note has annotations in another file too"):
        shareclef.read(*folders)
    for path in folders[1].iterdir():
        path.unlink()
    with pytest.raises(StudyError, match=r"note\.txt: no annotations in gold"):
        shareclef.read(*folders)
    with pytest.raises(StudyError, match=r"no \.txt files in nowhere"):
        shareclef.read(tmp_path / "nowhere", folders[1])


@each(
    "annotations",
    [
        "secret\n",
        "note.txt||Disease_Disorder||C1\n",
        "note.txt||Disease_Disorder||C1||0\n",
        "note.txt||Disease_Disorder||C1||0||6||8\n",
        "secret.txt||Disease_Disorder||C1||0||6\n",
        "note.txt||secret||C1||0||6\n",
        "note.txt||Disease_Disorder||||0||6\n",
        "note.txt||Disease_Disorder||C1||0||secret\n",
        "note.txt||Disease_Disorder||C1||-1||6\n",
        "note.txt||Disease_Disorder||C1||0||999\n",
        f"note.txt||Disease_Disorder||C1||0||{'9' * 5000}\n",
        "note.txt||Disease_Disorder||C1||6||0\n",
        "note.txt||Disease_Disorder||C1||6||6\n",
        "note.txt||Disease_Disorder||C1||0||6||3||9\n",
        LINE[:-7],
    ],
)
def test_malformed_lines_name_file_and_line_and_quote_nothing(tmp_path, annotations):
    with pytest.raises(StudyError, match=r"note\.pipe\.txt:[12]: ") as error:
        shareclef.read(*write(tmp_path, annotations=annotations))
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ("", "not well-formed"),
        (XML[:-20], "xml:8: not well-formed"),
        (XML.replace('<mention id="m1"/>', ""), "xml:3: an annotation of no class"),
        (XML.replace('id="Disease_Disorder"', 'id="secret"'), "xml:3: expected the type Disease_Disorder"),
        (XML.replace('<span start="29" end="33"/>', ""), "xml:7: expected the type"),
        (XML.replace('end="33"', ""), "xml:7: expected"),
        (XML.replace('end="33"', 'end="333"'), "xml:7: offsets outside"),
        (XML.replace("<annotations ", '<!DOCTYPE annotations [<!ENTITY a "b">]><annotations '), "declares 1 entities"),
    ],
)
def test_malformed_xml(tmp_path, annotations, message):
    with pytest.raises(StudyError, match=message) as error:
        shareclef.read(*write(tmp_path, annotations=annotations, end=".txt.knowtator.xml"))
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(("note", "message"), [("", "empty file"), (" \n", "empty file"), (b"a\xff", "not UTF-8")])
def test_malformed_notes(tmp_path, note, message):
    with pytest.raises(StudyError, match=rf"note\.txt: {message}"):
        shareclef.read(*write(tmp_path, note=note))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text("abé", min_size=1, max_size=5), min_size=1, max_size=8), st.data(), st.booleans())
def test_what_is_written_is_read(tmp_path_factory, words, data, as_xml):
    starts = [sum(len(word) + 1 for word in words[:i]) for i in range(len(words))]
    numbers = data.draw(st.lists(st.sets(st.sampled_from(range(len(words))), min_size=1), max_size=3))
    made = [
        Annotation(
            f"C{n:07}", "Disorder", tuple((starts[i], starts[i] + len(words[i])) for i in sorted(parts)), "note"
        )
        for n, parts in enumerate(numbers)
    ]
    lines = ["||".join(["note.txt", "Disease_Disorder", m.id, *(str(e) for s in m.spans for e in s)]) for m in made]
    elements = [
        f'<annotation><mention id="{m.id}"/>{"".join(f"""<span start="{a}" end="{z}"/>""" for a, z in m.spans)}'
        f'</annotation><classMention id="{m.id}"><mentionClass id="Disease_Disorder"/><hasSlotMention id="s{m.id}"/>'
        f'</classMention><stringSlotMention id="s{m.id}"><stringSlotMentionValue value="{m.id}"/></stringSlotMention>'
        for m in made
    ]
    content = f"<annotations>{''.join(elements)}</annotations>" if as_xml else "".join(f"{one}\n" for one in lines)
    end = ".txt.knowtator.xml" if as_xml else ".pipe.txt"
    folders = write(tmp_path_factory.mktemp("a"), " ".join(words), content, end=end)
    assert read_mentions(*folders) == made
    tagged = shareclef.read(*folders)
    assert counting.entities(tagged) + count_overlaps(*folders) == len(made)
    assert [word for s in tagged for word in s.words] == words


@settings(max_examples=25, deadline=None)
@given(st.booleans(), st.integers(0, 900), st.binary(max_size=6), st.integers(0, 60))
def test_any_bytes_give_mentions_or_a_study_error(tmp_path_factory, as_xml, kept, more, cut):
    content = (XML if as_xml else LINE).encode()[:kept] + more
    end = ".txt.knowtator.xml" if as_xml else ".pipe.txt"
    folders = write(tmp_path_factory.mktemp("a"), NOTE[:cut], content, end=end)
    try:
        assert len(shareclef.read(*folders)) > 0
    except StudyError as error:
        assert "note" in str(error)
