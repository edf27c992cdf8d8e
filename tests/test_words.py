"""How a vocabulary tokenizes words and texts, and how pages 21 and 22 judge it."""

import pandas as pd
import pytest
from notebook_code import definitions
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from lib.errors import StudyError
from lib.vocabularies import words


class Spaces:
    """A tokenizer that marks the start of words, as SentencePiece does."""

    def tokenize(self, term):
        return ["\u2581", "nal", "oxone"]


def test_terms_are_written_as_the_papers_print_them(tokenizer):
    as_printed = definitions("21_medical_terms").as_printed
    assert as_printed(tokenizer, "Risk") == "✓" and as_printed(tokenizer, "ab") == "a-b"
    assert as_printed(Spaces(), "naloxone") == "nal-oxone"


def test_a_cut_is_judged_by_what_is_printed():
    judge_cut = definitions("21_medical_terms").judge_cut
    for printed, ours in (("cut", "a-b"), ("Rec-A", "rec-a"), ("✓", "✓")):
        assert judge_cut(printed, ours) == "agrees"
    for printed, ours in (("cut", "✓"), ("rec-a", "re-ca"), ("✓", "a-b"), ("a-b", "✓")):
        assert judge_cut(printed, ours) == "differs"


def test_a_word_counts_at_least_one_token(tokenizer):
    assert words.count_by_word(tokenizer, ["risk", "ΩΩ", "risk", "\u200b", "ab"]) == [1, 1, 1, 1, 2]
    assert words.tokens_of_words(tokenizer, ["\u200b"]) == {"\u200b": [tokenizer.unk_token_id]}


def test_counting_tokens_leaves_the_tokenizer_unchanged(tokenizer):
    before = tokenizer.backend_tokenizer.to_str()
    assert words.count_tokens(tokenizer, ["Risk of", "", "ab"]) == [2, 0, 2]
    assert words.count_tokens(tokenizer, ["risk"] * (words.TEXTS_TOGETHER + 1)) == [1] * (words.TEXTS_TOGETHER + 1)
    stripped, kept = (words.count_tokens(tokenizer, ["abé"], strip_accents=strip) for strip in (True, False))
    assert stripped == [3] and kept == [1]  # é is unknown, which makes the whole word unknown
    assert tokenizer.backend_tokenizer.to_str() == before


LENGTHS = pd.DataFrame(
    {"row": "BIOSSES", "split": ["train"] * 3 + ["dev"] + ["test"] * 2, "text": [1, 2, 3, 4, 5, 4],
     "Wiki+Books vocab": [2, 0, 1, 1, 3, 1], "PubMed vocab": [2, 0, 1, 1, 3, 1]}
)  # fmt: skip
PRINTED = pd.DataFrame(
    {"paper": "gu-pubmedbert", "table": "8", "row": "BIOSSES", "metric": "m", "value": [1.3, 9.9],
     "column": ["Wiki+Books vocab", "PubMed vocab"]}
)  # fmt: skip
AT_HAND = dict.fromkeys(PRINTED["column"], "")


def test_mean_lengths_include_empty_instances():
    fill = definitions("22_input_lengths").fill
    cells = fill(PRINTED, LENGTHS, {"BIOSSES": ""}, AT_HAND)
    assert cells["ours"].tolist() == [1.333, 1.333] and cells["verdict"].tolist() == ["agrees", "differs"]
    assert cells["note"].unique().tolist() == ["mean of 6 instances of train, dev, test"]
    cells = fill(PRINTED, LENGTHS[3:], {"BIOSSES": "the train split is not at hand"}, AT_HAND)
    assert (cells["verdict"] == "n/a").all() and cells["ours"].notna().all()
    assert cells["note"][0] == "mean of 3 instances of dev, test; the train split is not at hand"
    cells = fill(PRINTED, LENGTHS[:0], {"BIOSSES": "no file"}, AT_HAND | {"PubMed vocab": "no vocabulary"})
    assert cells["ours"].isna().all() and cells["note"].tolist() == ["no file", "no vocabulary"]


def test_two_instances_fewer_with_as_many_tokens():
    means = pd.DataFrame({"ours": [20.0, 30.0]}, index=["BC5-chem", "DDI"])
    lengths = pd.DataFrame({"row": ["BC5-chem"] * 10 + ["DDI"]})
    assert definitions("22_input_lengths").join_broken(means, lengths)["ours"].tolist() == [25.0, 30.0]


def test_shares_of_unknown_and_cut_words(tokenizer):
    assert words.measure_words(tokenizer, ["Aspirin and naloxone reduce", "the risk"], "mine") == (0.0, 0.0)
    assert words.measure_words(tokenizer, ["the risk of aspirin is low " * 5, "Ω stoa"], "mine") == (1 / 32, 1 / 32)
    with pytest.raises(StudyError, match="^mine: 50% of its words hold a token that the voc"):
        words.measure_words(tokenizer, ["Ω risk"], "mine")
    # A vocabulary without an unknown token leaves nothing of an unknown word.
    backend = Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    without_unknown = PreTrainedTokenizerFast(tokenizer_object=backend)
    assert words.measure_words(without_unknown, ["ab ab ab Ω"], "mine") == (0.25, 0.0)
