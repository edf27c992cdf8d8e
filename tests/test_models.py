"""Tests of finding, loading and building encoders: keys, folders, hub names, and errors."""

import pytest
import torch
from conftest import each
from safetensors.torch import load_file
from small_encoders import BODY

from lib.errors import StudyError
from lib.modeling import models
from lib.study import open_study, params
from lib.study.encoders import find_model


@each(
    ("name", "message"),
    [("bert-genral", "unknown model 'bert-genral': did you mean bert-general"), ("./nowhere/model", "no folder"),
     ("~no-such-user/model", "no folder"), (300 * "x", "unknown model")],
)  # fmt: skip
def test_an_unknown_model_is_refused(name, message):
    with pytest.raises(StudyError, match=message):
        find_model(open_study("smoke"), name)


def test_a_key_that_is_not_pretrained_and_a_name_on_the_hub(own_outputs):
    with pytest.raises(StudyError, match="run ./run_all.sh laptop bert-general"):
        find_model(open_study("laptop"), "bert-general")
    assert find_model(open_study("smoke"), "somebody/some-bert").key == "somebody.some-bert"  # can name a file


@each("architecture", ["bert", "albert", "electra"])
def test_a_model_continues_another_of_its_architecture(tmp_path, architecture):
    torch.manual_seed(1)
    models.build_model(architecture, BODY, 40, 16, 0.0, pairs=True).save_pretrained(tmp_path)
    saved = load_file(tmp_path / "model.safetensors")
    same, wider = (models.build_model(architecture, BODY, size, 16, 0.0, pairs=True) for size in (40, 50))
    before = wider.get_input_embeddings().weight.clone()
    models.continue_from(same, str(tmp_path), True, "the same")
    models.continue_from(wider, str(tmp_path), False, "another vocabulary")
    for model in (same, wider):
        state = getattr(model, "discriminator", model).state_dict()
        equal = {name for name, tensor in saved.items() if torch.equal(state[name], tensor)}
        token_weights = {name for name in saved if "word_embeddings" in name or models.is_output(name)}
        assert equal == (set(saved) if model is same else set(saved) - token_weights)
    assert torch.equal(wider.get_input_embeddings().weight, before)
    assert wider.get_output_embeddings().weight is wider.get_input_embeddings().weight
    larger = models.build_model(architecture, BODY.model_copy(update={"hidden": 64}), 40, 16, 0.0, pairs=True)
    with pytest.raises(StudyError, match="another size of model"):
        models.continue_from(larger, str(tmp_path), True, "larger")


@each(
    ("architecture", "size", "pieces", "millions"),
    [("bert", "base", 28996, 108.3), ("bert", "base", 30522, 109.5), ("albert", "base", 30000, 11.7),
     ("albert", "large", 30000, 17.7), ("electra", "small", 30522, 13.5)],
)  # fmt: skip
def test_bodies_have_the_published_numbers_of_parameters(architecture, size, pieces, millions):
    body = params.load("scales", "paper").bodies[size]
    with torch.device("meta"):
        model = models.build_model(architecture, body, pieces, 512, 0.1, pairs=True)
    body = getattr(model, "discriminator", model).base_model
    assert models.count_parameters(body)["parameters"] / 1e6 == pytest.approx(millions, abs=0.05)


def test_electra_s_generator_shares_the_embeddings_and_is_a_quarter_as_wide():
    model = models.build_model("electra", params.load("scales", "paper").bodies["small"], 50, 16, 0.0)
    generator, discriminator = model.generator, model.discriminator
    assert generator.electra.embeddings is discriminator.electra.embeddings
    assert generator.config.hidden_size * 4 == discriminator.config.hidden_size
    assert generator.get_output_embeddings().weight is discriminator.get_input_embeddings().weight
    assert len(generator.electra.encoder.layer) == len(discriminator.electra.encoder.layer) == 12
