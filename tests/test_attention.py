"""Attention on words by hand, and the words of the printed examples under the published vocabularies."""

import math

import pandas as pd
import pytest
import torch
from transformers import BertConfig, BertModel

from lib.errors import StudyError
from lib.study import open_study, params, paths
from lib.study.analysis import attention, facts, figures
from lib.study.vocabularies import load as load_registered
from lib.vocabularies.loading import load_wordpiece
from lib.vocabularies.training import train_wordpiece

TEXT = ["Aspirin and naloxone reduce the risk of thrombosis", "the risk of aspirin is low"] * 20
WORDS = ["[CLS]", "aspirin", "riskthe", "low", "[SEP]"]


@pytest.fixture
def tokenizer(tmp_path):
    train_wordpiece(lambda: TEXT, 80, cased=False).save_model(str(tmp_path))
    return load_wordpiece(tmp_path / "vocab.txt", cased=False)


@pytest.fixture
def outputs(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "output", lambda scale, *parts: tmp_path.joinpath(scale, *parts))
    (tmp_path / "laptop/tables").mkdir(parents=True)
    return tmp_path


def make_model(folder, tokenizer, layers: int) -> str:
    config = BertConfig(vocab_size=len(tokenizer), hidden_size=8, num_hidden_layers=layers, num_attention_heads=2,
                        intermediate_size=16, max_position_embeddings=32)  # fmt: skip
    torch.manual_seed(0)
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def test_the_attention_of_a_word_is_the_sum_over_its_tokens():
    assert attention.sum_by_word([0.125, 0.25, 0.5, 0.0625, 0.0625], [0, 1, 1, 2, 3]) == [0.125, 0.75, 0.0625, 0.0625]
    assert attention.sum_by_word([1.0], [0]) == [1.0]


def test_every_token_of_a_sequence_belongs_to_a_word(tokenizer):
    sequence, owners = attention.lay_out(WORDS, tokenizer)
    assert sequence[0] == tokenizer.cls_token_id and sequence[-1] == tokenizer.sep_token_id
    assert tokenizer.convert_ids_to_tokens(sequence)[2].startswith("risk")
    assert owners[:3] == [0, 1, 2] and owners[-2:] == [3, 4]
    assert owners.count(2) == len(tokenizer.tokenize("riskthe")) > 1


def test_attention_is_that_of_the_last_layer_but_one_from_the_first_token(tmp_path, tokenizer):
    folder = make_model(tmp_path / "model", tokenizer, layers=2)
    sequence, owners = attention.lay_out(WORDS, tokenizer)
    body = open_study("smoke").encoder(folder).load().body(0.0).eval()
    with torch.inference_mode():  # the first of two layers, one head after the other
        hidden = body.embeddings(torch.tensor([sequence]))[0]
        own = body.encoder.layer[0].attention.self
        query, key = own.query(hidden)[owners.index(2)], own.key(hidden)
        heads = [(key[:, h : h + 4] @ query[h : h + 4] / math.sqrt(4)).softmax(0) for h in (0, 4)]
    wanted = attention.sum_by_word((sum(heads) / 2).tolist(), owners)
    found = attention.measure(folder, WORDS, "riskthe", "smoke")
    assert found == pytest.approx(wanted, abs=1e-5) and sum(found) == pytest.approx(1, abs=1e-5)


def test_one_layer_is_not_enough(tmp_path, tokenizer):
    with pytest.raises(StudyError, match="it has one layer"):
        attention.measure(make_model(tmp_path / "model", tokenizer, layers=1), WORDS, "low", "smoke")


def test_words_of_several_tokens_and_unknown_ones_are_cut():
    table = pd.DataFrame(
        [["a", 1, "box", True, "v", "box", 1], ["a", 2, "serine", True, "v", "se-rine", 2],
         ["a", 3, "ESX", True, "v", "[UNK]", 1], ["a", 4, "cells", False, "v", "ce-lls", 2]],
        columns=["example", "place", "word", "printed", "vocabulary", "pieces", "count"],
    )  # fmt: skip
    twice = pd.concat([table, table.assign(attention=0.5)])  # a model with the same vocabulary
    (row,) = attention.count_shattered(twice).to_dict("records")
    assert (row["printed words"], row["cut"], row["in pieces"]) == (3, 2, "se-rine, [UNK]")


def test_models_that_a_scale_pretrains_are_shown():
    assert attention.choose_models("smoke") == ["bert-general-pubmed", "pubmedbert"]
    assert attention.choose_models("laptop") == ["bert-general-pubmed", "pubmedbert"]
    assert "not among its models" in attention.why_not("pubmedbert-pmc", "laptop")


def test_what_is_not_at_hand_has_a_line_with_the_reason(monkeypatch):
    monkeypatch.setattr(attention, "why_not", lambda model, scale: f"no {model}")
    table = attention.build("smoke")
    assert set(table["note"]) >= {"no pubmedbert", "published vocabularies are not shown beside made-up data"}
    assert table["attention"].isna().all()
    assert "n/a: no bert-general-pubmed." in attention.describe(table, "smoke")


@pytest.fixture
def published(real_data, monkeypatch) -> pd.DataFrame:
    monkeypatch.setattr(attention, "choose_models", lambda scale: [])
    load_registered.cache_clear()
    yield attention.build("laptop")
    load_registered.cache_clear()


def test_the_general_vocabulary_shatters_the_printed_words(published):
    cut = attention.count_shattered(published).set_index(["example", "vocabulary"])["in pieces"]
    assert cut["gene mention", "bert-cased"] == "e-pit-hel-ial, se-rine, E-S-X"
    assert cut["gene mention", "pubmedbert-uncased"] == "es-x"
    assert cut["AGONIST relation", "bert-cased"] == "ago-nist" and not cut["AGONIST relation", "pubmedbert-uncased"]


def test_the_figure_has_a_panel_for_each_example_and_model(published):
    lines = [published.assign(model=model, attention=0.1) for model in ("one", "other")]
    figure = figures.draw_attention(pd.concat(lines).drop_duplicates(["example", "model", "place"]))
    panels = figure.axes
    assert len(panels) == 4 and [label.get_text() for label in panels[2].get_yticklabels()][0] == "→ [CLS]"
    spread = attention.spread(published, "AGONIST relation")
    assert spread["pieces, pubmedbert-uncased"].tolist()[4] == "@-chemical-$"


def test_an_example_names_words_of_its_sentence():
    good = facts.attention().examples["AGONIST relation"].model_dump()
    for change in ({"printed": ["antagonist"]}, {"asked": "[SEP]"}):
        with pytest.raises(StudyError, match="words of the sentence"):
            params.check_settings("x", good | change, facts.AttentionExample)
