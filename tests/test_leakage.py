"""Test sentences found whole in a text by hashes alone, and texts that are copies or nearly so."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.corpora import leakage

QUICK = settings(max_examples=25, deadline=None)
SENTENCE = "Effects of 5 - HT ( serotonin ) on the isolated heart of the young adult rat ."
TEN = "a b c d e f g h i j"
WORDS = st.lists(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), max_size=30)


def find(sentences: list[str], text: str) -> set[int]:
    return leakage.TestSentences(leakage.index_sentences(sentences)).find(leakage.plain_words(text))


def made_up(seed: int, size: int) -> list[str]:
    return [f"word{number}" for number in random.Random(seed).sample(range(100_000), size)]


# Plain words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("5-HT (serotonin), TNF_alpha.", ["5", "ht", "serotonin", "tnf", "alpha"]),
        ("Ärzte sahen 患者は", ["ärzte", "sahen", "患者は"]),
        (" ._-\n", []),
    ],
)
def test_plain_words(text, words):
    assert leakage.plain_words(text) == words


@QUICK
@given(st.text())
def test_plain_words_stay_as_they_are(text):
    words = leakage.plain_words(text)
    assert leakage.plain_words(" ".join(words)) == words


# Test sentences


def test_a_test_sentence_is_found_whatever_its_tokenisation():
    text = "Title. EFFECTS of 5-HT (serotonin) on the\nisolated heart of the young adult rat! More."
    assert len(find([SENTENCE, "Too short ."], text)) == 1
    assert find([SENTENCE], text) == find([SENTENCE], SENTENCE)


@pytest.mark.parametrize(
    "text",
    [
        SENTENCE.replace("rat .", "rats ."),
        SENTENCE.replace("rat .", ""),
        SENTENCE.replace("Effects of", "Effects on"),
        SENTENCE.replace("serotonin", ""),
        "",
    ],
)
def test_only_a_whole_test_sentence_counts(text):
    assert find([SENTENCE], text) == set()


def test_sentences_under_ten_words_are_left_out():
    nine = TEN.removesuffix(" j")
    assert leakage.index_sentences([nine, "", "."]).num_rows == 0
    assert find([nine], nine) == set()
    assert len(find([nine, TEN], f"x {TEN} y")) == 1


def test_two_test_sentences_with_one_beginning():
    both = [f"{TEN} one", f"{TEN} two"]
    assert find(both, f"{TEN} two") == {leakage.number(f"{TEN} two".split())}
    assert find(both, f"{TEN} three") == set()
    assert len(find([TEN], f"a b c a b {TEN}")) == 1  # a beginning that breaks off first


def test_a_sentence_within_another_is_found_with_it():
    assert find([TEN, f"{TEN} one"], f"{TEN} one") == {leakage.number(words.split()) for words in (TEN, f"{TEN} one")}


def test_an_index_holds_no_text(tmp_path):
    index = leakage.index_sentences([SENTENCE, SENTENCE.upper(), TEN])
    assert index.num_rows == 2  # two spellings of one sentence are one
    assert all(pa.types.is_integer(field.type) for field in index.schema)
    pq.write_table(index, tmp_path / "index.parquet")
    assert not any(word.encode() in (tmp_path / "index.parquet").read_bytes() for word in ("isolated", "serotonin"))
    again = leakage.TestSentences(pq.read_table(tmp_path / "index.parquet"))
    assert len(again.find(leakage.plain_words(SENTENCE))) == 1


def test_an_index_of_nothing():
    assert leakage.index_sentences([]).schema == leakage.INDEX
    assert find([], SENTENCE) == set()


@QUICK
@given(st.lists(WORDS, max_size=4), WORDS, st.data())
def test_what_is_found_is_what_stands_there(sentences, text, data):
    """Against the plain search for each sentence in the text."""
    for words in sentences:
        place = data.draw(st.integers(0, len(text)))
        text = text[:place] + (words if data.draw(st.booleans()) else words[:-1]) + text[place:]
    held = {
        leakage.number(words)
        for words in sentences
        if len(words) >= leakage.SENTENCE_WORDS
        and any(text[i : i + len(words)] == words for i in range(len(text)))
    }  # fmt: skip
    assert find([" ".join(words) for words in sentences], " ".join(text)) == held


# Copies


@pytest.mark.parametrize(
    ("size", "changed", "verdict"),
    [
        (200, [], "same"),
        (200, [0], "near"),  # 195 of 197 five-word shingles in common
        (200, [50, 100], "near"),  # 186 of 206
        (200, [40, 80, 120, 160], "near"),  # 176 of 216, 0.815
        (200, [33, 66, 99, 132, 165], ""),  # 171 of 221, 0.774
        (200, range(0, 200, 5), ""),  # no shingle in common
        (9, [], "same"),
        (9, [0], ""),  # too short to be told from a phrase
        (10, [0], ""),  # 5 of 7, 0.714
    ],
)
def test_copies_around_the_threshold(size, changed, verdict):
    """Over made-up texts: none beyond the threshold is judged near, and of those within it most are found."""
    verdicts = []
    for seed in range(20):
        words = made_up(seed, size)
        other = ["changed" if i in changed else word for i, word in enumerate(words)]
        verdicts.append(leakage.Copies([made_up(1000 + seed, size), words]).judge(other))
    assert verdicts.count(verdict) >= (20 if verdict != "near" else 12)
    assert set(verdicts) <= {verdict, ""}


@pytest.mark.parametrize(("cut", "least", "most"), [(4, 20, 40), (5, 20, 40), (6, 0, 0)])
def test_exactly_the_share_is_near(cut, least, most):
    """Of 25 shingles a text without its first 5 words has 20, a share of 0.8, and without 6 it has 19."""
    judged = [leakage.Copies([made_up(seed, 29)]).judge(made_up(seed, 29)[cut:]) for seed in range(40)]
    assert least <= judged.count("near") <= most
    assert "same" not in judged


def test_near_copies_are_found_as_often_as_is_said():
    """Of 100 pairs with 0.9 of their shingles in common 99 share a band: 180 of 200 here."""
    pairs = [(words, words[:-20]) for words in (made_up(seed, 204) for seed in range(100))]
    assert sum(leakage.Copies([whole]).judge(part) == "near" for whole, part in pairs) >= 95


def test_an_empty_text_and_an_empty_index():
    assert leakage.Copies([]).judge(TEN.split()) == ""
    assert leakage.Copies([[]]).judge([]) == "same"
    assert leakage.Copies([TEN.split()]).judge([]) == ""


@QUICK
@given(st.lists(WORDS, min_size=1, max_size=5), WORDS)
def test_a_text_is_the_same_as_itself_and_as_no_other(texts, other):
    known = leakage.Copies(texts)
    assert {known.judge(words) for words in texts} == {"same"}
    verdict = known.judge(other)
    assert (verdict == "same") == (other in texts)
    if verdict == "near":
        pairs = [(leakage.shingles(words), leakage.shingles(other)) for words in texts]
        assert max(len(a & b) / len(a | b) for a, b in pairs) >= leakage.NEAR


def test_shingles_are_runs_of_five_words():
    assert leakage.shingles(list("abcdef")) == {tuple("abcde"), tuple("bcdef")}
    assert leakage.shingles(["a", "b"]) == {("a", "b")}
    assert leakage.shingles([]) == {()}
