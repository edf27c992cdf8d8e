"""Small encoders with random weights, saved in folders, and small tokenizers."""

import torch
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors, trainers
from tokenizers import models as tokenizer_models
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast, T5Config, T5EncoderModel

from lib.modeling.shape import Body
from lib.vocabularies.learning import train_vocabulary
from lib.vocabularies.special_tokens import SPECIAL
from lib.vocabularies.tokenization import load_wordpiece

BODY = Body(layers=2, hidden=32, heads=2, intermediate=64, embedding=16)
SIZE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
        "max_position_embeddings": 66}  # fmt: skip
FAMILIES = {
    "bert": SIZE, "albert": SIZE | {"embedding_size": 16}, "electra": SIZE | {"embedding_size": 16},
    "roberta": SIZE | {"pad_token_id": 0, "type_vocab_size": 1}, "big_bird": SIZE | {"attention_type": "original_full"},
    "mpnet": SIZE, "deberta-v2": SIZE, "modernbert": SIZE | {"pad_token_id": 0},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64, "max_position_embeddings": 66},
    "xlnet": {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 64},
    "squeezebert": SIZE | {"embedding_size": 32},
    "convbert": SIZE | {"embedding_size": 16, "head_ratio": 1}, "ibert": SIZE | {"pad_token_id": 0},
    "lilt": SIZE | {"hidden_size": 48, "pad_token_id": 0},
}  # fmt: skip
T5 = {"d_model": 32, "d_ff": 64, "num_layers": 2, "num_heads": 2, "d_kv": 16}


def make_tokenizer(framed: bool = True) -> PreTrainedTokenizerFast:
    """Return a lower-case tokenizer; if `framed`, it puts [CLS] and [SEP] around a text."""
    tokenizer = Tokenizer(tokenizer_models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special_tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=special_tokens, show_progress=False)
    tokenizer.train_from_iterator(["aspirin relieves pain in most patients with fever and cough"] * 9, trainer)
    if framed:
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special_tokens, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def make_wordpiece(*tokens: str):
    """Return BERT's cased tokenizer of the special tokens and these, with the ids 0, 1, 2 and so on."""
    return load_wordpiece({token: number for number, token in enumerate([*SPECIAL, *tokens])}, cased=True)


TEXTS = ["who was it that gave iron and zinc to all", "a b c d e @DRUG$ @GENE$ w x y z", "aspirin relieves pain in it",
         "Aspirin and naloxone reduce the risk of thrombosis", "the risk of aspirin is low"]  # fmt: skip


def learn_tokenizer():
    """Return an uncased tokenizer with every word of TEXTS as a token; it cuts others into letters."""
    return train_vocabulary(lambda: TEXTS * 20, "wordpiece", 200, cased=False)


def make(folder, kind: str, size: dict, framed: bool = True, tokenizer=None):
    """Save a small model with random weights and its tokenizer, and return the model."""
    tokenizer = tokenizer or make_tokenizer(framed)
    torch.manual_seed(0)
    model = AutoModel.from_config(AutoConfig.for_model(kind, vocab_size=len(tokenizer), **size))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model


def make_t5(folder) -> None:
    """Save a small encoder of T5 with random weights and its tokenizer, which puts [SEP] after a text."""
    tokenizer = make_tokenizer(framed=False)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A [SEP]", pair="$A [SEP] $B:1 [SEP]:1", special_tokens=[("[SEP]", 3)]
    )
    torch.manual_seed(0)
    T5EncoderModel(T5Config(vocab_size=len(tokenizer), **T5)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
