"""How a vocabulary tokenizes words and texts, and how pages 21 and 22 judge it."""

import pandas as pd
import pytest
from notebook_code import definitions
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from lib.errors import StudyError
from lib.study import open_study
from lib.vocabularies import words
from lib.vocabularies.learning import train_vocabulary

TEXTS = ["Aspirin and naloxone reduce the risk of thrombosis", "the risk of aspirin is low"] * 20


@pytest.fixture(scope="module")
def tokenizer():
    return train_vocabulary(lambda: TEXTS, "wordpiece", 80, cased=False)


class Spaces:
    """A tokenizer that marks the start of words, as SentencePiece does."""

    def tokenize(self, term):
        return ["\u2581", "nal", "oxone"]


def test_terms_are_written_as_the_papers_print_them(tokenizer):
    as_printed = definitions("21_medical_terms").as_printed
    assert as_printed(tokenizer, "Risk") == "✓" and as_printed(tokenizer, "ab") == "a-b"
    assert as_printed(Spaces(), "naloxone") == "nal-oxone"


def test_any_cut_agrees_where_none_is_printed_and_capitals_do_not_count():
    judge_cut = definitions("21_medical_terms").judge_cut
    judged = [judge_cut(*pair) for pair in (("cut", "a-b"), ("Rec-A", "rec-a"), ("✓", "✓"))]
    assert judged == ["agrees"] * 3
    judged = [judge_cut(*pair) for pair in (("cut", "✓"), ("rec-a", "re-ca"), ("✓", "a-b"), ("a-b", "✓"))]
    assert judged == ["differs"] * 4


def test_a_word_counts_at_least_one_token(tokenizer):
    assert words.count_by_word(tokenizer, ["risk", "ΩΩ", "risk", "\u200b", "ab"]) == [1, 1, 1, 1, 2]


def test_texts_are_counted_whole_and_the_tokenizer_stays_as_it_was(tokenizer):
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


def test_lengths_are_means_over_all_instances_and_empty_ones_count():
    fill = definitions("22_input_lengths").fill
    cells = fill(PRINTED, LENGTHS, {"BIOSSES": ""}, AT_HAND)
    assert cells["ours"].tolist() == [1.333, 1.333] and cells["verdict"].tolist() == ["agrees", "differs"]
    assert cells["note"].unique().tolist() == ["mean of 6 instances of train, dev, test"]
    cells = fill(PRINTED, LENGTHS[3:], {"BIOSSES": "the train split is not at hand"}, AT_HAND)
    assert (cells["verdict"] == "n/a").all() and cells["ours"].notna().all()
    assert cells["note"][0] == "mean of 3 instances of dev, test; the train split is not at hand"
    cells = fill(PRINTED, LENGTHS[:0], {"BIOSSES": "no file"}, AT_HAND | {"PubMed vocab": "no vocabulary"})
    assert cells["ours"].isna().all() and cells["note"].tolist() == ["no file", "no vocabulary"]


def test_broken_sentences_are_two_instances_less_of_as_many_tokens():
    means = pd.DataFrame({"ours": [20.0, 30.0]}, index=["BC5-chem", "DDI"])
    lengths = pd.DataFrame({"row": ["BC5-chem"] * 10 + ["DDI"]})
    assert definitions("22_input_lengths").join_broken(means, lengths)["ours"].tolist() == [25.0, 30.0]


def test_all_of_mesh(real_data):
    sizes = {branch: len(names) for branch, names in open_study("laptop").mesh.names_by_branch().items()}
    assert list(sizes) == ["anatomy", "organisms", "diseases", "chemicals and drugs", "procedures"]
    assert 4_000 < sizes["diseases"] < 6_000 and sum(sizes.values()) > 20_000


def test_what_a_vocabulary_makes_of_the_words_of_a_dataset_is_shared_out(tokenizer):
    assert words.measure_words(tokenizer, TEXTS, "mine") == (0.0, 0.0)
    unknown, cut = words.measure_words(tokenizer, ["the risk of aspirin is low " * 5, "Ω stoa"], "mine")
    assert unknown == 1 / 32 and cut == 1 / 32
    with pytest.raises(StudyError, match="^mine: 50% of its words hold a token that the voc"):
        words.measure_words(tokenizer, ["Ω risk"], "mine")


def test_a_word_of_which_a_vocabulary_without_an_unknown_token_leaves_nothing_is_unknown():
    backend = Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
    assert words.measure_words(tokenizer, ["ab ab ab Ω"], "mine") == (0.25, 0.0)
