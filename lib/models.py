"""Encoders: built from settings, or found by key, folder or hub name."""

from dataclasses import dataclass
from pathlib import Path

from transformers import (
    AutoConfig,
    AutoModelForTokenClassification,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from lib import params, paths, provenance, vocabularies
from lib.errors import StudyError, unknown

logging.set_verbosity_error()
logging.disable_progress_bar()

WEIGHTS = ("model.safetensors", "pytorch_model.bin")


@dataclass(frozen=True)
class Encoder:
    """A pretrained model: the key used in file names, a name for people, and where to load it from."""

    key: str
    title: str
    source: str
    fingerprint: str


def build_bert(body: params.Body, vocabulary_size: int, positions: int, dropout: float) -> BertForMaskedLM:
    """A BERT with random weights and a masked-language-modelling head."""
    return BertForMaskedLM(
        BertConfig(
            vocab_size=vocabulary_size,
            hidden_size=body.hidden,
            num_hidden_layers=body.layers,
            num_attention_heads=body.heads,
            intermediate_size=body.intermediate,
            max_position_embeddings=positions,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
        )
    )


def find(name: str, scale: str) -> Encoder:
    """The encoder of that name: a registered model, a folder in the save_pretrained layout, or a name on the hub.

    Raises StudyError for an unknown key (with the nearest names), a model not pretrained yet, or a folder without
    a model in it.
    """
    if name in params.keys("models"):
        folder = paths.model(scale, name)
        if not (folder / "config.json").exists():
            raise StudyError(f"model '{name}' is not pretrained at scale '{scale}': run ./run_all.sh {scale} {name}")
        return Encoder(name, params.load("models", name).title, str(folder), weights_fingerprint(folder))
    folder = Path(name).expanduser()
    if folder.is_dir():
        fingerprint = weights_fingerprint(folder)
        return Encoder(f"{folder.resolve().name}-{fingerprint[:6]}", folder.resolve().name, str(folder), fingerprint)
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        if "/" in name:
            raise StudyError(f"no folder {name} with a model in it")
        raise unknown("model", name, params.keys("models"))
    return Encoder(name.replace("/", "."), name, name, f"hub {name}")


def weights_fingerprint(folder: Path) -> str:
    """Fingerprint of a model folder; StudyError when its configuration or its weights are missing."""
    found = [folder / file for file in WEIGHTS if (folder / file).exists()]
    if not (folder / "config.json").exists() or not found:
        raise StudyError(f"{paths.show(folder)}: no config.json with {' or '.join(WEIGHTS)} beside it")
    return provenance.fingerprint([provenance.file_fingerprint(f) for f in (folder / "config.json", found[0])])


def load_tokenizer(encoder: Encoder) -> PreTrainedTokenizerBase:
    """The encoder's tokenizer, its casing checked. Words are encoded as if a space stood before them."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(encoder.source)
        if "Roberta" in type(tokenizer).__name__ or "GPT2" in type(tokenizer).__name__:
            tokenizer = AutoTokenizer.from_pretrained(encoder.source, add_prefix_space=True)
    except Exception as error:  # a damaged tokenizer.json raises a plain Exception
        raise StudyError(f"{encoder.title}: no tokenizer could be loaded: {first_line(error)}") from None
    vocabularies.check_casing(tokenizer, encoder.title)
    return tokenizer


def load_tagger(encoder: Encoder, labels: list[str], dropout: float) -> PreTrainedModel:
    """The encoder with dropout and one linear layer over each piece (Lee et al. 2020, section 3.3)."""
    try:
        config = AutoConfig.from_pretrained(
            encoder.source,
            num_labels=len(labels),
            id2label=dict(enumerate(labels)),
            label2id={label: i for i, label in enumerate(labels)},
        )
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            if hasattr(config, name):
                setattr(config, name, dropout)
        model, loading = AutoModelForTokenClassification.from_pretrained(
            encoder.source, config=config, output_loading_info=True
        )
    except Exception as error:  # the library raises many kinds for a missing, cut-off or foreign file
        raise StudyError(f"{encoder.title}: the model could not be loaded: {first_line(error)}") from error
    missing = [name for name in loading["missing_keys"] if not name.startswith(("classifier", "score"))]
    if missing:
        raise StudyError(
            f"{encoder.title}: {len(missing)} weights of the encoder are not in its file (the first: {missing[0]}), "
            "and would have been random"
        )
    return model


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def count_parameters(model: PreTrainedModel) -> dict[str, int]:
    """Parameters in all, and those outside the embedding tables."""
    everything = sum(p.numel() for p in model.parameters())
    tables = sum(p.numel() for n, p in model.named_parameters() if "embeddings" in n and p.ndim == 2)
    return {"parameters": everything, "body parameters": everything - tables}
