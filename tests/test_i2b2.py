"""i2b2/VA 2010 in the folders of its release, on notes written here: the real ones need an agreement."""

from pathlib import Path

import pytest
from conftest import each
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.benchmarks import counting, i2b2
from lib.benchmarks.instances import Mention, Relation, Sentence
from lib.errors import StudyError

TEXT = "Secret pain after the MRI .\n\nSecret aspirin helps his pain , no rash .\n"
CONCEPTS = (
    'c="secret pain" 1:0 1:1||t="problem"\nc="the mri" 1:3 1:4||t="test"\n'
    'c="secret aspirin" 3:0 3:1||t="treatment"\nc="his pain" 3:3 3:4||t="problem"\nc="rash" 3:7 3:7||t="problem"\n'
)
RELATIONS = 'c="secret aspirin" 3:0 3:1||r="TrAP"||c="his pain" 3:3 3:4\n'


def write(folder: Path, text=TEXT, concepts=CONCEPTS, relations=RELATIONS, name="note", concept="concept") -> Path:
    for place, content in (
        (f"txt/{name}.txt", text),
        (f"{concept}/{name}.con", concepts),
        (f"rel/{name}.rel", relations),
    ):
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def test_concepts_are_tagged(tmp_path):
    assert i2b2.read_concepts(write(tmp_path)) == [
        Sentence(
            ["Secret", "pain", "after", "the", "MRI", "."],
            ["B-problem", "I-problem", "O", "B-test", "I-test", "O"],
            "note",
        ),
        Sentence(
            ["Secret", "aspirin", "helps", "his", "pain", ",", "no", "rash", "."],
            ["B-treatment", "I-treatment", "O", "B-problem", "I-problem", "O", "O", "B-problem", "O"],
            "note",
        ),
    ]


def test_relations_are_all_pairs_of_a_line(tmp_path):
    found = i2b2.read_relations(write(tmp_path))
    first, line = TEXT.splitlines()[0], TEXT.splitlines()[2]
    aspirin, pain, rash = (
        Mention("l2", "TREATMENT", 0, 14),
        Mention("l3", "PROBLEM", 21, 29),
        Mention("l4", "PROBLEM", 35, 39),
    )
    pair = Mention("l0", "PROBLEM", 0, 11), Mention("l1", "TEST", 18, 25)
    assert found == [
        Relation("note.l0.l1", first, *pair, "false", document="note"),
        Relation("note.l2.l3", line, aspirin, pain, "TrAP", document="note"),
        Relation("note.l2.l4", line, aspirin, rash, "false", document="note"),
        Relation("note.l3.l4", line, pain, rash, "false", document="note"),
    ]
    assert [r.text[m.start : m.end] for r in found[1:2] for m in (r.first, r.second)] == ["Secret aspirin", "his pain"]


def test_pairs_of_types_that_nothing_relates(tmp_path):
    concepts = 'c="a" 1:0 1:0||t="test"\nc="b" 1:1 1:1||t="treatment"\nc="d" 1:3 1:3||t="test"\n'
    relations = 'c="d" 1:3 1:3||r="TeCP"||c="b" 1:1 1:1\n'
    folder = write(tmp_path, "a b c d\n", concepts, relations)
    assert [r.label for r in i2b2.read_relations(folder)] == ["false", "false", "TeCP"]


def test_a_pair_may_have_several_relations_in_either_order(tmp_path):
    other = 'c="his pain" 3:3 3:4||r="TrIP"||c="secret aspirin" 3:0 3:1\n'
    found = i2b2.read_relations(write(tmp_path, relations=RELATIONS + other))
    assert [(r.id, r.label) for r in found[1:3]] == [("note.l2.l3", "TrAP"), ("note.l2.l3.1", "TrIP")]


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
    folders = write(tmp_path / "beth"), write(tmp_path / "partners", name="other")
    (folders[0] / "rel/note.rel").unlink()
    assert {s.document for s in i2b2.read_concepts(*folders)} == {"note", "other"}
    with pytest.raises(StudyError, match="note lacks one of"):
        i2b2.read_relations(*folders)


def test_names_and_files_that_do_not_match(tmp_path):
    folders = write(tmp_path / "beth"), write(tmp_path / "partners")
    with pytest.raises(StudyError, match="another folder has a file of this name"):
        i2b2.read_concepts(*folders)
    write(tmp_path / "beth", name="second")
    (tmp_path / "beth/concept/second.con").unlink()
    with pytest.raises(StudyError, match=r"second lacks one of \.txt, \.con and \.rel"):
        i2b2.read_concepts(folders[0])
    with pytest.raises(StudyError, match=r"no \.txt files in"):
        i2b2.read_concepts(tmp_path / "nowhere")


@each(
    ("part", "content", "message"),
    [
        ("text", "", r"note\.txt: empty file"),
        ("text", "\n \n", r"note\.txt: empty file"),
        ("text", b"a \xff\n", r"note\.txt:1: not UTF-8"),
        ("concepts", "secret\n", r"note\.con:1: expected a concept"),
        ("concepts", CONCEPTS[:-4], r"note\.con:5: expected a concept"),
        ("concepts", 'c="secret pain" 1:0 1:1||t="secret"\n', r"note\.con:1: expected a concept of type problem"),
        ("concepts", 'c="secret" 1:0 1:1||t="problem"\n', r"con:1: words 0 to 1 of line 1 are not the concept's text"),
        ("concepts", 'c="secret pain" 1:0 2:1||t="problem"\n', "are not in the text"),
        ("concepts", 'c="secret pain" 0:0 0:1||t="problem"\n', "words 0 to 1 of line 0 are not in the text"),
        ("concepts", 'c="secret pain" 9:0 9:1||t="problem"\n', "of line 9 are not in the text"),
        ("concepts", 'c="secret pain" 1:1 1:0||t="problem"\n', "words 1 to 0 of line 1 are not in the text"),
        ("concepts", 'c="secret pain" 1:0 1:99||t="problem"\n', "are not in the text"),
        ("concepts", f'c="secret pain" 1:{"9" * 5000} 1:1||t="problem"\n', "expected a concept"),
        ("concepts", 2 * 'c="secret pain" 1:0 1:1||t="problem"\n', r"con:2: the concept is on an earlier line"),
        ("relations", "secret\n", r"note\.rel:1: expected a relation"),
        ("relations", RELATIONS.replace("TrAP", "secret"), r"rel:1: expected a relation of label TrIP"),
        ("relations", RELATIONS.replace("his pain", "secret"), r"rel:1: words 3 to 4 of line 3 are not"),
        ("relations", RELATIONS.replace('"his pain" 3:3', '"pain" 3:4'), r"rel:1: expected two concepts of one line"),
        (
            "relations",
            RELATIONS.replace('"his pain" 3:3 3:4', '"the mri" 1:3 1:4'),
            "expected two concepts of one line",
        ),
        ("relations", RELATIONS.replace('"his pain" 3:3 3:4', '"secret aspirin" 3:0 3:1'), "expected two concepts"),
    ],
)
def test_malformed_files_name_file_and_line_and_quote_nothing(tmp_path, part, content, message):
    with pytest.raises(StudyError, match=message) as error:
        i2b2.read_relations(write(tmp_path, **{part: content}))
    assert "secret" not in str(error.value).lower()


def test_an_empty_first_word_is_no_concept(tmp_path):
    with pytest.raises(StudyError, match="words 0 to 1 of line 1 are not in the text"):
        i2b2.read_concepts(write(tmp_path, " a\n", 'c="a" 1:0 1:1||t="problem"\n', ""))


def test_overlapping_concepts_are_not_tagged(tmp_path):
    folder = write(tmp_path, concepts=CONCEPTS + 'c="pain" 1:1 1:1||t="problem"\n')
    with pytest.raises(StudyError, match=r"note\.con: concept l5 overlaps another"):
        i2b2.read_concepts(folder)
    assert len(i2b2.read_relations(folder)) == 4 + 2


word = st.text('abc."|é', min_size=1, max_size=4)
line = st.lists(st.tuples(word, st.sampled_from(["O", *i2b2.TYPES])), min_size=1, max_size=6)


@settings(max_examples=25, deadline=None)
@given(st.lists(line, min_size=1, max_size=4))
def test_what_is_written_is_read(tmp_path_factory, lines):
    made = [Sentence([w for w, _ in pairs], [k if k == "O" else f"B-{k}" for _, k in pairs], "note") for pairs in lines]
    places = [
        (f'c="{w.lower()}" {number}:{i} {number}:{i}', kind, number)
        for number, pairs in enumerate(lines, 1)
        for i, (w, kind) in enumerate(pairs)
        if kind != "O"
    ]
    related = [(one[0], other[0]) for one, other in zip(places, places[1:], strict=False) if one[2] == other[2]]
    folder = write(
        tmp_path_factory.mktemp("a"),
        "".join(" ".join(s.words) + "\n" for s in made),
        "".join(f'{place}||t="{kind}"\n' for place, kind, _ in places),
        "".join(f'{one}||r="PIP"||{other}\n' for one, other in related),
    )
    assert i2b2.read_concepts(folder) == made
    relations = i2b2.read_relations(folder)
    counts = [sum(kind != "O" for _, kind in pairs) for pairs in lines]
    assert len(relations) == sum(n * (n - 1) // 2 for n in counts)
    assert sum(relation.label == "PIP" for relation in relations) == len(related)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(["text", "concepts", "relations"]), st.integers(0, 120), st.binary(max_size=6))
def test_any_bytes_give_relations_or_a_study_error(tmp_path_factory, part, kept, more):
    whole = {"text": TEXT, "concepts": CONCEPTS, "relations": RELATIONS}[part].encode()
    folder = write(tmp_path_factory.mktemp("a"), **{part: whole[:kept] + more})
    try:
        assert i2b2.read_concepts(folder)
        assert isinstance(i2b2.read_relations(folder), list)
    except StudyError as error:
        assert "note" in str(error)
