"""Tests of leakage: whole test sentences found in a text by hashes alone, and texts that are copies or nearly so."""

import random
import unicodedata

from conftest import each

from lib.corpora import leakage

SENTENCE = "Effects of 5 - HT ( serotonin ) on the isolated heart of the young adult rat ."
TEN = "a b c d e f g h i j"


def find(sentences: list[str], text: str) -> set[int]:
    return leakage.TestSentences(leakage.index_sentences(sentences)).find(leakage.plain_words(text))


def made_up(seed: int, size: int) -> list[str]:
    return [f"word{number}" for number in random.Random(seed).sample(range(100_000), size)]


def test_plain_words():
    assert leakage.plain_words("5-HT (serotonin), TNF_alpha.") == ["5", "ht", "serotonin", "tnf", "alpha"]
    assert leakage.plain_words("Ärzte sahen 患者は ._-\n") == ["ärzte", "sahen", "患者は"]


# Test sentences


def test_a_test_sentence_is_found_in_any_tokenisation():
    text = "Title. EFFECTS of 5-HT (serotonin) on the\nisolated heart of the young adult rat! More."
    assert len(find([SENTENCE, "Too short ."], text)) == 1
    assert find([SENTENCE], text) == find([SENTENCE], SENTENCE)
    assert find([], SENTENCE) == set()
    assert leakage.index_sentences([SENTENCE, SENTENCE.upper()]).num_rows == 1


def test_a_test_sentence_is_found_in_any_encoding():
    sentence = "Naïve patients with Sjögren syndrome had specific findings in the first office visit ."
    forms = [unicodedata.normalize("NFD", sentence), sentence.replace("ffi", "\ufb03").replace("fi", "\ufb01")]
    forms += [sentence.replace("syn", f"syn{unseen}") for unseen in "\u00ad\u200b\u2060\ufeff"]
    forms += [forms[0].replace("\u0308", "\u200b\u0308")]
    for form in forms:
        assert len(find([sentence], form)) == len(find([form], sentence)) == 1


def test_a_japanese_test_sentence_is_found_without_spaces():
    sentence = "患者は白血病の治療を受けて三か月後に回復した。"
    assert find([sentence], f"前文。{sentence}後文。") == find([sentence], " ".join(sentence)) != set()
    assert find([sentence], sentence.replace("三", "四")) == set()
    assert leakage.index_sentences(["胸水貯留はありません。"]).num_rows == 0  # a phrase, about six words
    (number,) = leakage.index_sentences([sentence])["number"].to_pylist()
    assert number == leakage.number_sentence(leakage.plain_words(sentence))


@each(("old", "new"), [("rat .", "rats ."), ("rat .", ""), ("Effects of", "Effects on"), ("serotonin", "")])
def test_only_a_whole_test_sentence_counts(old, new):
    assert find([SENTENCE], SENTENCE.replace(old, new)) == set()


def test_sentences_under_ten_words_are_left_out():
    nine = TEN.removesuffix(" j")
    assert leakage.index_sentences([nine, "", "."]).num_rows == 0
    assert len(find([nine, TEN], f"x {TEN} y")) == 1


def test_test_sentences_with_the_same_beginning_are_distinguished():
    first, second = f"{TEN} one", f"{TEN} two"
    assert find([first, second], second) == {leakage.number_sentence(second.split())}
    assert find([first, second], f"{TEN} three") == set()
    assert find([TEN, first], first) == {leakage.number_sentence(words.split()) for words in (TEN, first)}
    assert len(find([TEN], f"a b c a b {TEN}")) == 1  # a false start comes first


# Sketches


def shares_a_band(one: list[str], other: list[str]) -> bool:
    return bool((leakage.sketch(one) == leakage.sketch(other)).any())


def test_sketches_of_near_duplicates_share_a_band():
    """Error rates by the Jaccard index of the shingles: at 0.95, 0.02% of pairs are missed; at 1/3, 0.1% are found."""
    missed, false_matches = 0, 0
    for seed in range(400):
        words, half, other = (made_up(number + seed, 200) for number in (0, 1000, 2000))
        missed += not shares_a_band(words, [*words[: seed % 200], "changed", *words[seed % 200 + 1 :]])
        false_matches += shares_a_band(words[:100] + half[:100], words[:100] + other[:100])
        assert not shares_a_band(words, other) and not shares_a_band(words, sorted(words))
    assert missed <= 3 and false_matches <= 5
    assert not shares_a_band(list("abcde") * 20, list("edcba") * 20)


def test_the_sketch_of_a_long_text_covers_all_of_it():
    beginning = made_up(1, 4200)
    assert not shares_a_band(beginning, [*beginning, *made_up(2, 40_000)])


# Copies


@each(
    ("size", "changed", "verdict"),
    [
        (200, [], "same"),
        (200, [40, 80, 120, 160], "near"),  # 176 of 216 five-word shingles in common, 0.815
        (200, [33, 66, 99, 132, 165], ""),  # 171 of 221, 0.774
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


@each(("cut", "least", "most"), [(5, 20, 40), (6, 0, 0)])
def test_a_similarity_of_exactly_the_threshold_is_near(cut, least, most):
    """Of 25 shingles, a text without its first 5 words keeps 20, a share of 0.8; without 6 it keeps 19."""
    verdicts = [leakage.Copies([made_up(seed, 29)]).judge(made_up(seed, 29)[cut:]) for seed in range(40)]
    assert least <= verdicts.count("near") <= most
    assert "same" not in verdicts
