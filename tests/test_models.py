"""Finding and loading encoders: keys, folders, hub names, and what is wrong with them."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoTokenizer, BertTokenizer

from lib import finetuning, models, params, vocabularies
from lib.errors import StudyError

BODY = params.Body(layers=1, hidden=32, heads=2, intermediate=64)


@pytest.fixture
def folder(tmp_path):
    """A small model in the save_pretrained layout."""
    texts = ["Aspirin relieves Pain in Patients ."] * 20
    vocabularies.train_wordpiece(lambda: texts, 90, cased=True).save_model(str(tmp_path))
    tokenizer = BertTokenizer(vocab=str(tmp_path / "vocab.txt"), do_lower_case=False)
    torch.manual_seed(0)
    models.build_bert(BODY, len(tokenizer), 32, 0.1).save_pretrained(tmp_path / "my-model")
    tokenizer.save_pretrained(tmp_path / "my-model")
    return tmp_path / "my-model"


def test_a_folder_loads_here_and_with_the_auto_classes(folder):
    encoder = models.find(str(folder), "smoke")
    assert encoder.key.startswith("my-model-")
    tagger = models.load_tagger(encoder, ["O", "B-D", "I-D"], 0.1)
    assert tagger.config.id2label[1] == "B-D"
    plain = AutoModel.from_pretrained(folder)
    assert AutoTokenizer.from_pretrained(folder).tokenize("Aspirin") != ["aspirin"]
    for (name, a), b in zip(plain.encoder.named_parameters(), tagger.bert.encoder.parameters(), strict=True):
        assert torch.equal(a, b), name


@pytest.mark.parametrize(
    ("name", "message"),
    [("bert-genral", "unknown model 'bert-genral': did you mean bert-general"), ("./nowhere/model", "no folder"),
     ("/nowhere/model", "no folder")],
)  # fmt: skip
def test_names_that_lead_nowhere(name, message):
    with pytest.raises(StudyError, match=message):
        models.find(name, "smoke")


def test_a_model_that_is_not_pretrained_says_how(monkeypatch, tmp_path):
    monkeypatch.setattr(models.paths, "output", lambda *parts: tmp_path.joinpath(*parts))
    with pytest.raises(StudyError, match="run ./run_all.sh laptop bert-general"):
        models.find("bert-general", "laptop")


def test_a_hub_name_has_a_key_that_can_be_a_file_name():
    assert models.find("somebody/some-bert", "smoke").key == "somebody.some-bert"


def test_missing_and_truncated_files(folder):
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StudyError, match="my-model: the model could not be loaded"):
        models.load_tagger(models.find(str(folder), "smoke"), ["O"], 0.1)
    weights.unlink()
    with pytest.raises(StudyError, match="no config.json with model.safetensors"):
        models.find(str(folder), "smoke")


def test_weights_that_do_not_fit_are_refused_not_made_up(folder):
    state = load_file(folder / "model.safetensors")
    save_file(
        {f"encoder.{name}": tensor for name, tensor in state.items()}, folder / "model.safetensors", {"format": "pt"}
    )
    with pytest.raises(StudyError, match="weights of the encoder are not in its file"):
        models.load_tagger(models.find(str(folder), "smoke"), ["O"], 0.1)


def test_a_tokenizer_that_lower_cases_a_cased_vocabulary_is_refused(folder):
    BertTokenizer(vocab=str(folder.parent / "vocab.txt"), do_lower_case=True).save_pretrained(folder)
    with pytest.raises(StudyError, match="the vocabulary is cased"):
        models.load_tokenizer(models.find(str(folder), "smoke"))


def test_a_vocabulary_larger_than_the_model_is_refused(folder):
    encoder = models.find(str(folder), "smoke")
    tagger, tokenizer = models.load_tagger(encoder, ["O"], 0.1), models.load_tokenizer(encoder)
    tokenizer.add_tokens(["newword"])
    with pytest.raises(StudyError, match="the model only"):
        finetuning.check_vocabulary(tagger, tokenizer, "my-model")
