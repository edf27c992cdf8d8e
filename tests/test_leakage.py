"""Tests of leakage: whole test sentences found in a text by hashes alone, and texts that are copies or nearly so."""

import random
import unicodedata

import pyarrow as pa
import pyarrow.parquet as pq
from conftest import each

from lib.corpora import leakage

SENTENCE = "Effects of 5 - HT ( serotonin ) on the isolated heart of the young adult rat ."
TEN = "a b c d e f g h i j"


def find(sentences: list[str], text: str) -> set[int]:
    return leakage.TestSentences(leakage.index_sentences(sentences)).find(leakage.plain_words(text))


def made_up(seed: int, size: int) -> list[str]:
    return [f"word{number}" for number in random.Random(seed).sample(range(100_000), size)]


@each(
    ("text", "words"),
    [
        ("5-HT (serotonin), TNF_alpha.", ["5", "ht", "serotonin", "tnf", "alpha"]),
        ("Ärzte sahen 患者は", ["ärzte", "sahen", "患者は"]),
        (" ._-\n", []),
    ],
)
def test_plain_words(text, words):
    assert leakage.plain_words(text) == words


# Test sentences


def test_a_test_sentence_is_found_whatever_its_tokenisation():
    text = "Title. EFFECTS of 5-HT (serotonin) on the\nisolated heart of the young adult rat! More."
    assert len(find([SENTENCE, "Too short ."], text)) == 1
    assert find([SENTENCE], text) == find([SENTENCE], SENTENCE)
    assert find([], SENTENCE) == set()


def test_a_test_sentence_is_found_however_its_letters_are_encoded():
    sentence = "Naïve patients with Sjögren syndrome had specific findings in the first office visit ."
    forms = [unicodedata.normalize("NFD", sentence), sentence.replace("ffi", "\ufb03").replace("fi", "\ufb01")]
    forms += [sentence.replace("syn", f"syn{unseen}") for unseen in "\u00ad\u200b\u2060\ufeff"]
    forms += [forms[0].replace("\u0308", "\u200b\u0308")]
    assert [len(find([sentence], form)) for form in forms] == [len(find([form], sentence)) for form in forms] == [1] * 7


def test_a_japanese_test_sentence_is_found_although_no_spaces_separate_its_words():
    sentence = "患者は白血病の治療を受けて三か月後に回復した。"
    assert find([sentence], f"前文。{sentence}後文。") == find([sentence], " ".join(sentence)) != set()
    assert find([sentence], sentence.replace("三", "四")) == set()
    assert leakage.index_sentences(["胸水貯留はありません。"]).num_rows == 0  # a phrase, about six words
    (number,) = leakage.index_sentences([sentence])["number"].to_pylist()
    assert number == leakage.number_sentence(leakage.plain_words(sentence))


@each(
    ("old", "new"),
    [("rat .", "rats ."), ("rat .", ""), ("Effects of", "Effects on"), ("serotonin", ""), (SENTENCE, "")],
)
def test_only_a_whole_test_sentence_counts(old, new):
    assert find([SENTENCE], SENTENCE.replace(old, new)) == set()


def test_sentences_under_ten_words_are_left_out():
    nine = TEN.removesuffix(" j")
    assert leakage.index_sentences([nine, "", "."]).num_rows == 0
    assert len(find([nine, TEN], f"x {TEN} y")) == 1


def test_test_sentences_that_begin_alike_are_told_apart():
    first, second = f"{TEN} one", f"{TEN} two"
    assert find([first, second], second) == {leakage.number_sentence(second.split())}
    assert find([first, second], f"{TEN} three") == set()
    assert find([TEN, first], first) == {leakage.number_sentence(words.split()) for words in (TEN, first)}
    assert len(find([TEN], f"a b c a b {TEN}")) == 1  # a false start comes first


def test_an_index_holds_no_text(tmp_path):
    index = leakage.index_sentences([SENTENCE, SENTENCE.upper(), TEN])
    assert index.num_rows == 2  # two spellings of one sentence count once
    assert all(pa.types.is_integer(field.type) for field in index.schema)
    pq.write_table(index, tmp_path / "index.parquet")
    again = leakage.TestSentences(pq.read_table(tmp_path / "index.parquet"))
    assert len(again.find(leakage.plain_words(SENTENCE))) == 1


# Copies


@each(
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
    """On made-up texts, none below the threshold is judged near, and most of those above it are found."""
    verdicts = []
    for seed in range(20):
        words = made_up(seed, size)
        copy = ["changed" if i in changed else word for i, word in enumerate(words)]
        verdicts.append(leakage.Copies([made_up(1000 + seed, size), words]).judge(copy))
    assert verdicts.count(verdict) >= (20 if verdict != "near" else 12)
    assert set(verdicts) <= {verdict, ""}


@each(("cut", "least", "most"), [(4, 20, 40), (5, 20, 40), (6, 0, 0)])
def test_exactly_the_share_is_near(cut, least, most):
    """Of 25 shingles, a text without its first 5 words keeps 20, a share of 0.8; without 6 it keeps 19."""
    verdicts = [leakage.Copies([made_up(seed, 29)]).judge(made_up(seed, 29)[cut:]) for seed in range(40)]
    assert least <= verdicts.count("near") <= most
    assert "same" not in verdicts


def test_an_empty_text_and_an_empty_index():
    assert leakage.Copies([]).judge(TEN.split()) == ""
    assert leakage.Copies([[]]).judge([]) == "same"
    assert leakage.Copies([TEN.split()]).judge([]) == ""
