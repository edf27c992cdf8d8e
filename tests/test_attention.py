"""Tests of attention per word, by hand, and of the printed examples under the published vocabularies."""

import math

import pandas as pd
import pytest
import torch
from notebook_code import definitions
from small_encoders import SIZE, make

from lib.errors import StudyError
from lib.modeling import loading
from lib.study import claim_tests, open_study

CELLS = definitions("54_attention", "PENULTIMATE")
WORDS = ["[CLS]", "aspirin", "riskthe", "low", "[SEP]"]
EXAMPLE = {"sentence": "aspirin riskthe low", "asked": "riskthe", "printed": ["aspirin", "riskthe"]}


def make_encoder(folder, tokenizer, layers: int) -> loading.Encoder:
    make(folder, "bert", SIZE | {"hidden_size": 8, "num_hidden_layers": layers}, tokenizer=tokenizer)
    return loading.load_encoder(folder)


def test_attention_is_that_of_the_penultimate_layer_from_the_first_token(tmp_path, tokenizer):
    encoder = make_encoder(tmp_path / "model", tokenizer, layers=2)
    sequence, owners = CELLS.lay_out(WORDS, tokenizer)
    assert owners[:3] == [0, 1, 2] and owners[-2:] == [3, 4] and owners.count(2) > 1
    body = encoder.body(0.0).eval()
    with torch.inference_mode():  # the first of two layers, head by head
        hidden = body.embeddings(torch.tensor([sequence]))[0]
        self_attention = body.encoder.layer[0].attention.self
        query, key = self_attention.query(hidden)[owners.index(2)], self_attention.key(hidden)
        heads = [(key[:, h : h + 4] @ query[h : h + 4] / math.sqrt(4)).softmax(0) for h in (0, 4)]
    expected = [0.0] * len(WORDS)
    for owner, share in zip(owners, (sum(heads) / 2).tolist(), strict=True):
        expected[owner] += share
    attention = CELLS.measure(encoder, WORDS, "riskthe")
    assert attention == pytest.approx(expected, abs=1e-5) and sum(attention) == pytest.approx(1, abs=1e-5)
    table = CELLS.describe_attention(EXAMPLE, encoder, "somebody's")
    assert table["word"].tolist() == WORDS and table["attention"].tolist() == pytest.approx(expected, abs=1e-4)
    assert table["printed"].tolist() == [False, True, True, False, False]
    assert table.loc[table["asked"], "place"].tolist() == [2]


def test_a_model_with_too_few_positions_or_layers_is_refused(tmp_path, tokenizer):
    with pytest.raises(StudyError, match="it takes 66 tokens, and the sentence has 72"):
        CELLS.measure(make_encoder(tmp_path / "model", tokenizer, 2), ["[CLS]", *["risk"] * 70, "[SEP]"], "risk")
    with pytest.raises(StudyError, match="it has one layer"):
        CELLS.measure(make_encoder(tmp_path / "model", tokenizer, layers=1), WORDS, "low")


def test_split_and_unknown_words_are_counted_once_per_vocabulary():
    table = pd.DataFrame(
        [["a", 1, "box", True, "v", "box", 1], ["a", 2, "serine", True, "v", "se-rine", 2],
         ["a", 3, "ESX", True, "v", "[UNK]", 1], ["a", 4, "cells", False, "v", "ce-lls", 2]],
        columns=["example", "place", "word", "printed", "vocabulary", "tokens", "count"],
    )  # fmt: skip
    two_models = pd.concat([table, table.assign(attention=0.5)])
    (row,) = claim_tests.count_shattered(two_models).to_dict("records")
    assert (row["printed words"], row["cut"], row["in tokens"]) == (3, 2, "se-rine, [UNK]")


def test_made_up_data_are_shown_with_no_published_vocabulary():
    notes = [part["note"].item() for part in CELLS.describe_example(open_study("smoke"), EXAMPLE, {})]
    assert notes == ["published vocabularies are not shown beside made-up data"] * 2


def test_the_general_vocabulary_shatters_the_printed_words(real_data):
    words = ["epithelial", "serine", "ESX", "agonist"]
    example = {"sentence": " ".join(words), "asked": "[CLS]", "printed": words}
    table = pd.concat(CELLS.describe_example(open_study("laptop"), example, {})).assign(example="all")
    cut = claim_tests.count_shattered(table).set_index("vocabulary")["in tokens"]
    assert cut.to_dict() == {"bert-cased": "e-pit-hel-ial, se-rine, E-S-X, ago-nist", "pubmedbert-uncased": "es-x"}
