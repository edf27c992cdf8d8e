"""Tests of page 02: what it shows of an encoder and the tagger it saves, with small random encoders."""

import re
from types import SimpleNamespace

import pytest
import torch
from conftest import each
from notebook_code import definitions
from test_saved import SETTINGS
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    AutoModelForTokenClassification,
    BertConfig,
    BertForPreTraining,
    BertModel,
    ElectraConfig,
    ElectraForPreTraining,
)

from lib import artefacts
from lib.errors import StudyError
from lib.finetuning.new_text import Entity
from lib.finetuning.protocol import FinetuningSettings
from lib.modeling.loading import load_encoder
from lib.running import anew
from lib.running.runnable import Runnable
from lib.study import exploring, open_study, paths
from lib.study.study import Study
from lib.vocabularies.tokenization import load_wordpiece

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
    ids, position = PAGE.hide(WORDS, 3, encoder.tokenizer)
    assert ([TOKENS[token] for token in ids], position) == (
        ["[CLS]", "the", "knee", "is", "[MASK]", "[MASK]", ".", "[SEP]"], 4,
    )  # fmt: skip
    head = PAGE.load_head(encoder)
    chances = head(input_ids=torch.tensor([ids])).logits[0, position].softmax(-1)
    row = PAGE.guess(head, encoder.tokenizer, WORDS, 3, most=2)
    assert (row["word"], row["tokens"]) == ("painful", 2) and row["right"] == pytest.approx(chances[5].item())
    best, chance = row["likeliest"].split(", ")[0].split()
    assert best == TOKENS[chances.argmax()] and float(chance) == pytest.approx(chances.max().item(), abs=0.005)


@each(
    ("model", "has_one"),
    [
        (AlbertForMaskedLM(AlbertConfig(**SIZE)), True),
        (BertModel(BertConfig(**SIZE)), False),
        (ElectraForPreTraining(ElectraConfig(**SIZE)), False),
    ],
)
def test_an_encoder_saved_without_its_head_guesses_no_words(make_encoder, model, has_one):
    assert (PAGE.load_head(make_encoder(model)) is not None) == has_one


def test_a_word_is_the_mean_of_the_states_of_its_tokens(make_encoder):
    encoder = make_encoder(BertModel(BertConfig(**SIZE)))
    body = encoder.body(0.0).eval()
    knee, painful = PAGE.embed(body, encoder.tokenizer, ["knee", "painful"])
    with torch.inference_mode():
        states = body(input_ids=torch.tensor([[2, 5, 6, 3]])).last_hidden_state[0]
    mean = (states[1] + states[2]) / 2
    assert torch.allclose(painful, mean / mean.norm(), atol=1e-6) and knee.norm().item() == pytest.approx(1)


def test_a_text_is_cut_into_words_that_the_encoder_can_read_at_once(make_encoder):
    encoder = make_encoder(BertModel(BertConfig(**SIZE)))
    assert PAGE.split("The arm. Painful\u00a0leg", encoder) == (
        ["The", "arm", ".", "Painful", "leg"], [(0, 3), (4, 7), (7, 8), (9, 16), (17, 20)],
    )  # fmt: skip
    for text, number in ((" \n", 0), ("leg " * 15, 15)):
        with pytest.raises(StudyError, match=f"text: {number} tokens; give a sentence of 1 to 14"):
            PAGE.split(text, encoder)


def test_entities_are_highlighted_in_escaped_text_and_their_words_have_their_type():
    entities = [Entity(0, 4, "Disease", 0.987), Entity(4, 7, "a<b", 1.0)]
    output = PAGE.highlight("gout<i> & pain", entities)
    assert output["text/plain"] == "[gout: Disease 0.99][<i>: a<b 1.00] & pain"
    assert re.sub(' style="[^"]*"', "", output["text/html"]) == (
        "<div><mark>gout <small>Disease 0.99</small></mark><mark>&lt;i&gt; <small>a&lt;b 1.00</small></mark>"
        " &amp; pain</div>"
    )
    colours = re.findall("(background|color): #", output["text/html"])
    assert colours == ["background", "color"] * 2  # both are set, so that no theme hides the word
    assert [PAGE.find_type(start, entities) for start in (0, 3, 4, 7)] == ["Disease", "Disease", "a<b", ""]


@pytest.fixture
def study(own_outputs, monkeypatch):
    """Return the smoke study with its own output folder and a few fine-tuning steps."""
    settings = FinetuningSettings(**SETTINGS | {"learning_rate": [2.0e-3, 1.0e-3]})
    monkeypatch.setattr(paths, "data", lambda scale: paths.MADE_UP)
    monkeypatch.setattr(Study, "protocol", lambda *_: settings)
    return open_study("smoke")


def test_the_tagger_is_trained_once_for_an_encoder_and_kept(study, make_encoder, tmp_path, monkeypatch):
    source = make_encoder(BertModel(BertConfig(**SIZE))).source
    folder, trained = exploring.keep_tagger(study, source)
    assert trained and folder.parent.parent == tmp_path / "outputs" / "smoke" / "explored"
    weights = (folder / "model.safetensors").read_bytes()
    assert exploring.keep_tagger(study, source) == (folder, False)
    assert type(AutoModelForTokenClassification.from_pretrained(folder)).__name__ == "BertForTokenClassification"
    card = (folder / "README.md").read_text()
    assert f"| chosen | {exploring.CHOSEN} |" in card and "the only run" in card and "learning rate 0.002" in card

    asked = {"explored": [(folder.parent.name,)]}
    again = SimpleNamespace(scale="smoke", runnable=Runnable("smoke"), asked=asked)
    anew.forget_targets(again)
    assert exploring.keep_tagger(study, source) == (folder, True)

    longer_settings = FinetuningSettings(**SETTINGS | {"steps": 4})
    monkeypatch.setattr(Study, "protocol", lambda *_: longer_settings)
    assert exploring.keep_tagger(study, source) == (folder, True)
    assert (folder / "model.safetensors").read_bytes() != weights


def test_the_tagger_that_ships_was_made_of_the_encoder_that_ships(study):
    folder, trained = exploring.keep_tagger(study, exploring.SHIPPED)
    encoder_fingerprint = artefacts.read_record(folder)["of"]["encoder"]
    assert not trained and encoder_fingerprint == study.encoder(exploring.SHIPPED).fingerprint
