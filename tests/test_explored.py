"""What page 02 asks of an encoder, on small ones with random weights."""

import pytest
import torch
from notebook_code import definitions
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    BertConfig,
    BertForPreTraining,
    BertModel,
    ElectraConfig,
    ElectraForPreTraining,
)

from lib.modeling.loading import load_encoder
from lib.vocabularies.loading import load_wordpiece

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "pain", "##ful", "is", "the", "knee", ".", "arm", "leg"]
WORDS = ["the", "knee", "is", "painful", "."]
PAGE = definitions("02_explore_an_encoder")
SIZE = {"vocab_size": len(TOKENS), "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 16, "max_position_embeddings": 16, "embedding_size": 16}  # fmt: skip


@pytest.fixture
def make_encoder(tmp_path):
    def make(model):
        model.save_pretrained(tmp_path)
        load_wordpiece({token: number for number, token in enumerate(TOKENS)}, cased=False).save_pretrained(tmp_path)
        return load_encoder(tmp_path)

    return make


def test_all_tokens_of_a_word_are_hidden_and_the_first_is_guessed(make_encoder):
    encoder = make_encoder(BertForPreTraining(BertConfig(**SIZE)))
    ids, place = PAGE.hide(WORDS, 3, encoder.tokenizer)
    assert ([TOKENS[token] for token in ids], place) == (
        ["[CLS]", "the", "knee", "is", "[MASK]", "[MASK]", ".", "[SEP]"], 4,
    )  # fmt: skip
    head = PAGE.load_head(encoder)
    chances = head(input_ids=torch.tensor([ids])).logits[0, place].softmax(-1)
    said = PAGE.guess(head, encoder.tokenizer, WORDS, 3, most=2)
    assert (said["word"], said["tokens"]) == ("painful", 2) and said["right"] == pytest.approx(chances[5].item())
    first, chance = said["likeliest"].split(", ")[0].split()
    assert first == TOKENS[chances.argmax()] and float(chance) == pytest.approx(chances.max().item(), abs=0.005)


@pytest.mark.parametrize(
    ("model", "has_one"),
    [
        (AlbertForMaskedLM(AlbertConfig(**SIZE)), True),
        (BertModel(BertConfig(**SIZE)), False),
        (ElectraForPreTraining(ElectraConfig(**SIZE)), False),
    ],
    ids=["ALBERT", "a body alone", "ELECTRA"],
)
def test_an_encoder_that_was_saved_without_its_head_says_nothing(make_encoder, model, has_one):
    assert (PAGE.load_head(make_encoder(model)) is not None) == has_one


def test_a_word_is_the_mean_of_the_states_of_its_tokens(make_encoder):
    encoder = make_encoder(BertModel(BertConfig(**SIZE)))
    body = encoder.body(0.0).eval()
    one, other = PAGE.embed(body, encoder.tokenizer, ["knee", "painful"])
    with torch.inference_mode():
        states = body(input_ids=torch.tensor([[2, 5, 6, 3]])).last_hidden_state[0]
    mean = (states[1] + states[2]) / 2
    assert torch.allclose(other, mean / mean.norm(), atol=1e-6) and one.norm().item() == pytest.approx(1)
