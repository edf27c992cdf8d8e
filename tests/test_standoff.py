"""Tests of tagging a text by the offsets of its mentions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.benchmarks import counting, standoff
from lib.benchmarks.instances import Mention, Sentence
from lib.benchmarks.standoff import Annotation
from lib.errors import StudyError


def mention(text: str, words: str, kind: str = "X") -> Mention:
    return Mention("", kind, text.index(words), text.index(words) + len(words))


def test_a_mention_has_no_spaces_around_it():
    for first, last, words in (("3", "8", "gout"), ("4", "8", "gout "), ("2", "9", "gout")):
        assert standoff.find_span("1", "of  gout now", first, last, words) == (4, 8)
    with pytest.raises(StudyError, match="1: the text has other words at 4 to 7"):
        standoff.find_span("1", "of  gout now", "4", "7", "gout")


def test_words_sentences_and_tags():
    text = "Heart failure, mild. It was not cured.\nNo pain"
    tagged = standoff.tag_text(text, [mention(text, "Heart failure"), mention(text, "pain", "Y")], "7")
    assert tagged == [
        Sentence(["Heart", "failure", ",", "mild", "."], ["B-X", "I-X", "O", "O", "O"], "7"),
        Sentence(["It", "was", "not", "cured", "."], ["O"] * 5, "7"),
        Sentence(["No", "pain"], ["O", "B-Y"], "7"),
    ]
    text = "anti-HIVab2"  # words are cut at the edges of mentions
    assert standoff.tag_text(text, [mention(text, "HIV")]) == [
        Sentence(["anti", "-", "HIV", "ab2"], ["O", "O", "B-X", "O"]),
    ]
    assert standoff.tag_text("ab", [Mention("", "X", 0, 1), Mention("", "X", 1, 2)])[0].tags == ["B-X", "B-X"]


def test_sentences_end_at_paragraphs_and_never_inside_a_mention():
    text = "He had it here. Pain of the leg was noted."
    assert len(standoff.tag_text(text, [])) == 2
    (sentence,) = standoff.tag_text(text, [mention(text, "here. Pain")])
    assert sentence.tags[3:6] == ["B-X", "I-X", "I-X"]
    text = "one\ntwo\n\nthree"
    assert len(standoff.tag_text(text, [])) == 3
    assert [s.words for s in standoff.tag_text(text, [], paragraph=standoff.BLANK_LINE)] == [["one", "two"], ["three"]]


def test_of_overlapping_mentions_the_longest_is_kept():
    long, short, apart = Mention("a", "X", 0, 9), Mention("b", "X", 6, 12), Mention("c", "X", 9, 12)
    assert standoff.keep_longest([short, apart, long]) == ([long, apart], [short])
    assert standoff.keep_longest([Mention("2", "X", 1, 4), Mention("1", "X", 0, 3)])[0] == [Mention("1", "X", 0, 3)]
    # A mention in parts is kept or lost whole.
    parts, whole = Annotation("X", ((0, 2), (8, 10))), Mention("b", "X", 0, 5)
    assert standoff.keep_longest([parts, whole]) == ([whole], [parts])
    assert standoff.tag_text("ab de ghij", [parts, whole])[0].tags == ["B-X", "I-X", "O"]


@pytest.mark.parametrize(
    ("start", "end", "fault"),
    [(-1, 2, "lies outside its text"), (0, 99, "lies outside its text"), (3, 3, "lies outside its text"),
     (1, 3, "holds no word")],
)  # fmt: skip
def test_mentions_outside_the_text_or_without_a_word_are_refused(start, end, fault):
    with pytest.raises(StudyError, match=f"document 7: a mention {fault}"):
        standoff.tag_text("a  secret", [Mention("", "X", start, end)], "7")


def test_a_splitter_that_changes_the_text_is_refused(monkeypatch):
    monkeypatch.setattr(standoff.cleaning, "split_sentences", lambda text: [text.upper()])
    with pytest.raises(StudyError, match="document 7: the splitter changed a sentence") as error:
        standoff.tag_text("secret", [], "7")
    assert "secret" not in str(error.value).lower()


@settings(max_examples=60, deadline=None)
@given(st.text("ab. ,\n\u00e9", max_size=40), st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=6))
def test_every_mention_is_tagged_or_lost_and_every_word_is_there(text, places):
    mentions = [Mention("", "X", start, start + length) for start, length in places if text[start : start + length]]
    mentions = [m for m in mentions if m.end <= len(text) and text[m.start : m.end].strip()]
    tagged = standoff.tag_text(text, mentions)
    assert counting.entities(tagged) + len(standoff.keep_longest(mentions)[1]) == len(mentions)
    assert "".join(word for s in tagged for word in s.words) == "".join(text.split())
    assert all(len(s.words) == len(s.tags) for s in tagged)
