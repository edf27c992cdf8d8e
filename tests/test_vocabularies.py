"""Vocabularies: deterministic training, pieces, casing."""

import json

import pytest
from transformers import BertTokenizer

from lib import vocabularies
from lib.errors import StudyError

TEXT = ["Aspirin and Naloxone reduce the risk of Thrombosis .", "The risk of aspirin is low ."] * 20


@pytest.fixture
def tokenizer(tmp_path):
    vocabularies.train_wordpiece(lambda: TEXT, 120, cased=True).save_model(str(tmp_path))
    return BertTokenizer(vocab=str(tmp_path / "vocab.txt"), do_lower_case=False)


def test_training_is_deterministic_and_has_the_special_pieces_first(tmp_path):
    texts = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        vocabularies.train_wordpiece(lambda: TEXT, 120, cased=True).save_model(str(tmp_path / name))
        texts.append((tmp_path / name / "vocab.txt").read_text())
    assert texts[0] == texts[1]
    assert texts[0].split()[:5] == vocabularies.SPECIAL


def test_a_word_always_has_a_piece(tokenizer):
    pieces = vocabularies.pieces_of_words(tokenizer, ["Aspirin", "\u200b", "Ω", "Aspirin"])
    assert pieces["\u200b"] == pieces["Ω"] == [tokenizer.unk_token_id]
    assert tokenizer.convert_ids_to_tokens(pieces["Aspirin"]) == tokenizer.tokenize("Aspirin")


def test_continuation_flags_follow_the_ids(tokenizer):
    flags = vocabularies.continuation_flags(tokenizer)
    assert all(tokenizer.convert_ids_to_tokens(i).startswith("##") == flag for i, flag in enumerate(flags))


@pytest.mark.parametrize("cased", [True, False])
def test_casing_that_does_not_fit_is_refused(tmp_path, cased):
    vocabularies.train_wordpiece(lambda: TEXT, 120, cased=cased).save_model(str(tmp_path))
    right = BertTokenizer(vocab=str(tmp_path / "vocab.txt"), do_lower_case=not cased)
    vocabularies.check_casing(right, "right")
    wrong = BertTokenizer(vocab=str(tmp_path / "vocab.txt"), do_lower_case=cased)
    with pytest.raises(StudyError, match="set do_lower_case to (false|true)"):
        vocabularies.check_casing(wrong, "wrong")


def test_casing_survives_saving(tmp_path, tokenizer):
    tokenizer.save_pretrained(tmp_path / "saved")
    loaded = BertTokenizer.from_pretrained(tmp_path / "saved")
    assert loaded.tokenize("Aspirin") == tokenizer.tokenize("Aspirin") != loaded.tokenize("aspirin")
    assert json.loads((tmp_path / "saved" / "tokenizer_config.json").read_text())["do_lower_case"] is False
