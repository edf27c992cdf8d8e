"""Loading any encoder: fourteen families load completely; what is not a usable encoder is refused in one line."""

import io
import json
import re
import shutil

import pytest
import sentencepiece
import torch
from conftest import each
from safetensors.torch import load_file, save_file
from small_encoders import FAMILIES, SIZE, T5, make, make_t5, make_tokenizer
from tokenizers import normalizers
from transformers import AutoConfig, AutoModel, AutoTokenizer, FunnelBaseModel, FunnelConfig, FunnelModel

from lib.errors import StudyError
from lib.modeling import loading
from lib.study import open_study, requests
from lib.study.encoders import find_model
from lib.vocabularies.special_tokens import find_frame

LENGTHS = {"roberta": 64, "mpnet": 64, "ibert": 64, "lilt": 64, "xlnet": 2048}  # the others take 66 tokens
TOKENIZER = "tokenizer.json", "tokenizer_config.json"
BIAS = "embeddings.LayerNorm.bias"
OWN_CODE = {"auto_map": {"AutoConfig": "code.Config", "AutoModel": "code.Model"}, "model_type": "mine"}


@pytest.fixture
def folder(bert, tmp_path):
    """A copy of the folder of a small BERT, for tests that change it."""
    return shutil.copytree(bert, tmp_path / "my-bert")


@each("kind", FAMILIES)
def test_every_family_loads_all_weights_with_the_given_dropout(tmp_path, kind):
    model = make(tmp_path / kind, kind, FAMILIES[kind])
    encoder = loading.load_encoder(tmp_path / kind)
    assert (encoder.title, encoder.max_length) == (kind, LENGTHS.get(kind, 66))
    body = encoder.body(0.37)
    assert body.training is False and 0.37 in {m.p for m in body.modules() if isinstance(m, torch.nn.Dropout)}
    loaded = body.state_dict()
    assert all(torch.equal(tensor, loaded[name]) for name, tensor in model.state_dict().items())


# By family: the file that holds its SentencePiece model, and its options for special pieces.
PIECES = {
    "albert": ("spiece.model", {"bos_piece": "[CLS]", "eos_piece": "[SEP]"}),
    "xlm-roberta": ("sentencepiece.bpe.model", {"pad_id": -1, "unk_id": 0, "bos_id": 1, "eos_id": 2}),
    "xlnet": ("spiece.model", {"control_symbols": "<sep>,<cls>"}),
}


@each("kind", PIECES)
def test_a_sentencepiece_model_suffices_as_a_tokenizer(tmp_path, kind):
    name, options = PIECES[kind]
    model, ids = io.BytesIO(), {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}
    texts = iter(["Aspirin relieves pain", "Many patients with Crohn and fever", "Crohn and Many"] * 9)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=texts, model_writer=model, vocab_size=90, hard_vocab_limit=False, minloglevel=2,
        **ids | options,
    )  # fmt: skip
    size = FAMILIES.get(kind, FAMILIES["roberta"] | {"pad_token_id": 1})
    AutoModel.from_config(AutoConfig.for_model(kind, vocab_size=90, **size)).save_pretrained(tmp_path / kind)
    (tmp_path / kind / name).write_bytes(model.getvalue())
    (tmp_path / kind / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    tokenizer = loading.load_encoder(tmp_path / kind).tokenizer
    frame, text = find_frame(tokenizer), tokenizer("pain", add_special_tokens=False)["input_ids"]
    assert frame.join(text, text)[0] == tokenizer("pain", "pain")["input_ids"]
    assert tokenizer.unk_token_id not in text
    tokens, _ = frame.join(text)
    assert frame.locate(tokens) == (len(tokens) - 1 if kind == "xlnet" else 0)
    assert tokens[frame.locate(tokens)] == tokenizer.cls_token_id


def test_the_t5_encoder_is_read_at_its_only_special_token(tmp_path):
    make_t5(tmp_path / "t5")
    encoder = loading.load_encoder(tmp_path / "t5")
    frame = find_frame(encoder.tokenizer)
    assert (encoder.architecture, encoder.max_length, encoder.new_weights) == ("T5EncoderModel", 2048, ())
    assert frame.join([7, 8], [9]) == ([7, 8, 3, 9, 3], 3) and frame.capacity(10, pair=True) == 8
    assert frame.locate([7, 8, 3]) == 2


def test_added_words_get_new_embeddings(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["tevilolol", "babrer"])
    tokenizer.save_pretrained(folder)
    encoder = loading.load_encoder(folder)
    assert encoder.describe().endswith("77 tokens, up to 66 at once; new weights: 2 embeddings of added words")
    assert len(encoder.body(0.0).get_input_embeddings().weight) == 77


def test_a_tokenizer_needs_no_padding_token(folder):
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"pad_token": None}))
    tokenizer = loading.load_encoder(folder).tokenizer
    assert tokenizer.pad_token_id is None and find_frame(tokenizer).padding == 0


def test_the_key_of_a_folder_has_its_name_and_fingerprint(bert, tmp_path):
    """The folder may be a link, or have a long name with spaces."""
    model = find_model(open_study("smoke"), str(bert))
    assert re.fullmatch("my-bert-[0-9a-f]{6}", model.key) and model.load().fingerprint == model.fingerprint
    long, link = tmp_path / ("my best encoder " * 12).strip(), tmp_path / "link"
    shutil.copytree(bert, long)
    link.symlink_to(long)
    assert find_model(open_study("smoke"), str(link)).key == find_model(open_study("smoke"), str(long)).key
    model = find_model(open_study("smoke"), str(long))
    assert len(model.key) < 100 and model.key.endswith(model.fingerprint[:6]) and model.load().title == long.name


def test_the_key_of_an_evaluated_folder_opens_no_other_weights(folder, own_outputs, tmp_path):
    study = open_study("smoke")
    model = find_model(study, str(folder))
    requests.write_request("smoke", model, "gu", datasets=[])
    (tmp_path / "new").mkdir()
    moved = folder.rename(tmp_path / "new" / folder.name)
    requests.write_request("smoke", find_model(study, str(moved)), "blue", datasets=[])  # listed before that of gu
    assert find_model(study, model.key).source == str(moved)
    with open(moved / "config.json", "a") as file:
        file.write("\n")
    with pytest.raises(StudyError, match=f"'{model.key}' is no longer in .*my-bert: .* weights have changed"):
        find_model(study, model.key)


def test_half_precision_and_sharded_weights_load_as_the_same_model(bert, tmp_path):
    model = AutoModel.from_pretrained(bert)
    model.half().save_pretrained(tmp_path / "half")
    model.float().save_pretrained(tmp_path / "shards", max_shard_size="60KB")
    whole = loading.load_encoder(bert).body(0.0).state_dict()
    for name in ("half", "shards"):
        for file in TOKENIZER:
            shutil.copy(bert / file, tmp_path / name / file)
        loaded = loading.load_encoder(tmp_path / name).body(0.0).state_dict()
        assert all(tensor.dtype == torch.float32 for tensor in loaded.values() if tensor.is_floating_point())
        assert all(torch.allclose(loaded[key], tensor, atol=1e-3) for key, tensor in whole.items())
    next((tmp_path / "shards").glob("model-00002*")).unlink()
    with pytest.raises(StudyError, match="shards: no model-00002-of-.*safetensors in it; fetch the model again"):
        loading.load_encoder(tmp_path / "shards")


def test_pickled_weights_are_read_and_pickled_code_is_not_run(folder, tmp_path):
    pickled = folder / "pytorch_model.bin"  # the format from before safetensors
    torch.save(load_file(folder / "model.safetensors"), pickled)
    (folder / "model.safetensors").unlink()
    assert loading.load_encoder(folder).max_length == 66

    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "run"), "w"))

    torch.save({"embeddings.word_embeddings.weight": Trap()}, pickled)
    with pytest.raises(StudyError, match="my-bert: the model could not be loaded"):
        loading.load_encoder(folder)
    assert not (tmp_path / "run").exists()


def change_weights(folder, change):
    save_file(change(load_file(folder / "model.safetensors")), folder / "model.safetensors", {"format": "pt"})


def lose_tokenizer(folder):
    for name in TOKENIZER:
        (folder / name).unlink()


def shrink_embeddings(folder):
    model = AutoModel.from_pretrained(folder)
    model.resize_token_embeddings(40)
    model.save_pretrained(folder)


def empty_vocabulary(folder):
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text("{}")


def lower_case_no_more(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.backend_tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.save_pretrained(folder)


def change_config(**changes):
    def spoil(folder):
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | changes))

    return spoil


def cut_weights(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"


def move_below(folder):
    subfolder = shutil.copytree(folder, folder / "0_Transformer")
    for file in subfolder.iterdir():
        (folder / file.name).unlink()


def lose_frame(folder):
    tokenizer = make_tokenizer(framed=False)
    tokenizer.cls_token = tokenizer.sep_token = None
    tokenizer.save_pretrained(folder)


@each(
    "spoil, message",
    [
        (change_config(num_hidden_layers=1), "16 weights of its file are of layers that its config.json lacks (the"),
        (change_config(hidden_size=64), "LayerNorm.bias is (32,) in its file, and (64,) by its config.json; take the"),
        (lambda folder: (folder / "model.safetensors").write_text(POINTER),
         "model.safetensors is a pointer of Git LFS, not the file; run git"),
        (lambda folder: (folder / "model.safetensors").rename(folder / "flax_model.msgpack"),
         "flax_model.msgpack is of Flax: save the model by PyTorch as safetensors"),
        (move_below, "no config.json in it; give the folder 0_Transformer in it, which has one"),
        (lose_frame, "puts no special token around a text; set cls_token and sep_token in tokenizer_config.json"),
        (cut_weights, "the model could not be loaded: "),
        (lambda folder: change_weights(folder, lambda weights: {f"model.{name}": weights[name] for name in weights}),
         "weights of the encoder are not in its file (the first: "),
        (lose_tokenizer, "no tokenizer in it (tokenizer.json or vocab.txt); save it beside the model"),
        (empty_vocabulary, "its tokenizer has no vocabulary"),
        (lower_case_no_more, "no token of the vocabulary holds a capital, but its tokenizer keeps them"),
        (lambda folder: (folder / "config.json").rename(folder / "adapter_config.json"),
         "an adapter alone; merge it into its model, and save that"),
        (change_config(**OWN_CODE), "the model could not be loaded: "),
        (lambda folder: change_weights(folder, lambda weights: weights | {BIAS: weights[BIAS] * float("nan")}),
         "what it computes is not finite"),
        (shrink_embeddings, "the vocabulary has 75 tokens, the model only 40 embeddings"),
        (lambda folder: (folder / "model.safetensors").unlink(), "no model.safetensors or pytorch_model.bin in it"),
    ],
)  # fmt: skip
def test_incomplete_or_damaged_encoders_are_refused_in_one_line(bert, tmp_path, spoil, message):
    folder = shutil.copytree(bert, tmp_path / "my-bert")
    spoil(folder)
    with pytest.raises(StudyError) as error:
        loading.load_encoder(folder)
    assert str(error.value).startswith("my-bert: ") and message in str(error.value)
    assert "\n" not in str(error.value)


@each(
    "kind, size, message",
    [
        ("gpt2", {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 66}, "a decoder, or a model whose"),
        ("t5", T5, "an encoder-decoder"),
        ("mra", SIZE | {"max_position_embeddings": 64}, "its tokens see nothing of each other"),
        ("canine", SIZE, "it does not read text as an encoder does: .*get_input_embeddings"),
    ],
)
def test_other_kinds_of_models_are_refused(tmp_path, kind, size, message):
    make(tmp_path / kind, kind, size, framed=False)
    with pytest.raises(StudyError, match=f"^{kind}: .*{message}"):
        loading.load_encoder(tmp_path / kind)


@each(
    "kind, message",
    [
        (FunnelBaseModel, "states of .* tokens; it has to give one for each"),
        (FunnelModel, "padding changes what it computes; it cannot be read in batches"),
    ],
)
def test_models_that_shorten_sequences_are_refused(tmp_path, kind, message):
    tokenizer, folder = make_tokenizer(), tmp_path / kind.__name__
    sizes = {"block_sizes": [1, 1], "d_model": 32, "n_head": 2, "d_head": 16, "d_inner": 64}
    kind(FunnelConfig(vocab_size=len(tokenizer), **sizes)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    with pytest.raises(StudyError, match=f"^{kind.__name__}: .*{message}"):
        loading.load_encoder(folder)


def test_new_weights_are_named_and_leave_the_random_state_alone(folder):
    change_weights(folder, lambda weights: {name: weights[name] for name in weights if "pooler" not in name})
    torch.manual_seed(3)
    before = torch.get_rng_state()
    description = loading.load_encoder(folder).describe()
    assert torch.equal(torch.get_rng_state(), before)
    assert description.endswith("; new weights: pooler")


def test_the_length_of_sequences_is_limited_by_the_encoder(bert):
    encoder = loading.load_encoder(bert)
    assert (encoder.length(512), encoder.length(16)) == (66, 16)
    with pytest.raises(StudyError, match="my-bert: sequences of 5 tokens are too short to fine-tune on"):
        encoder.length(5)


def test_the_fingerprint_includes_every_tokenizer_file(bert, folder):
    fingerprints = {loading.load_encoder(bert).fingerprint}
    assert loading.fingerprint_folder(folder, "x") in fingerprints
    for name in (*loading.TOKENIZERS, "spiece.model"):
        with open(folder / name, "a") as file:
            file.write(" ")
        fingerprints.add(loading.fingerprint_folder(folder, "x"))
    assert len(fingerprints) == 2 + len(loading.TOKENIZERS)
