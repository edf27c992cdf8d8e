"""Models to pretrain, built from settings or continued from others, and pretrained models."""

from dataclasses import dataclass
from pathlib import Path

from torch import nn
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    AlbertForPreTraining,
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    ElectraConfig,
    ElectraForMaskedLM,
    ElectraForPreTraining,
    PretrainedConfig,
    PreTrainedModel,
)

from lib.errors import StudyError
from lib.modeling import loading
from lib.modeling.shape import Body


@dataclass(frozen=True)
class Checkpoint:
    """A pretrained model that is not loaded yet: its key for file names, its title and its source."""

    key: str
    title: str
    source: str
    fingerprint: str  # empty for a model on the hub, whose commit is known only after loading
    revision: str = "main"  # on the hub

    def load(self) -> loading.Encoder:
        """Load the encoder. Raises StudyError as load_encoder does."""
        return loading.load_encoder(self.source, self.title, self.revision)


class Electra(nn.Module):
    """A generator and a discriminator that share embeddings (Clark et al. 2020, section 3.2)."""

    def __init__(self, generator: ElectraForMaskedLM, discriminator: ElectraForPreTraining):
        super().__init__()
        self.generator, self.discriminator = generator, discriminator
        generator.electra.embeddings = discriminator.electra.embeddings
        generator.generator_lm_head.weight = discriminator.get_input_embeddings().weight
        self.config = discriminator.config

    def get_input_embeddings(self) -> nn.Embedding:
        return self.discriminator.get_input_embeddings()

    def get_output_embeddings(self) -> nn.Linear:
        return self.generator.get_output_embeddings()

    def save_pretrained(self, folder: Path) -> None:
        self.discriminator.save_pretrained(folder)
        self.generator.save_pretrained(Path(folder) / GENERATOR)


GENERATOR = "generator"  # the folder of ELECTRA's generator, inside the discriminator's
GENERATOR_SHARE = 4  # it is a quarter as wide (Clark et al. 2020, table 6, the small model)

CLASSES = {  # architecture, whether there is a pair objective -> the class with pretraining heads
    ("bert", False): BertForMaskedLM,
    ("bert", True): BertForPreTraining,
    ("albert", False): AlbertForMaskedLM,
    ("albert", True): AlbertForPreTraining,
}


def configure(
    architecture: str, body: Body, vocabulary_size: int, positions: int, dropout: float
) -> tuple[PretrainedConfig, PretrainedConfig | None]:
    """Return the configuration of a BERT, ALBERT or ELECTRA to pretrain, and that of ELECTRA's generator or None.

    `positions`: the maximum input length. ALBERT has narrow embeddings (Lan et al. 2020, section 3.1); ELECTRA's
    generator is a quarter as wide as its discriminator.
    """
    size = {
        "vocab_size": vocabulary_size,
        "max_position_embeddings": positions,
        "num_hidden_layers": body.layers,
        "hidden_size": body.hidden,
        "num_attention_heads": body.heads,
        "intermediate_size": body.intermediate,
        "hidden_dropout_prob": dropout,
        "attention_probs_dropout_prob": dropout,
    }
    match architecture:
        case "bert":
            return BertConfig(**size), None
        case "albert":
            special_ids = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}  # as in our vocabularies
            size |= {"embedding_size": body.embedding, "hidden_act": "gelu", "classifier_dropout_prob": 0.1}
            return AlbertConfig(**size, **special_ids), None
        case "electra":
            size["embedding_size"] = body.embedding
            generator_size = {
                "hidden_size": body.hidden // GENERATOR_SHARE,
                "num_attention_heads": max(1, body.heads // GENERATOR_SHARE),
                "intermediate_size": body.intermediate // GENERATOR_SHARE,
            }
            return ElectraConfig(**size), ElectraConfig(**size | generator_size)
    raise ValueError(architecture)


def build_model(
    architecture: str, body: Body, vocabulary_size: int, positions: int, dropout: float, pairs: bool = False
) -> nn.Module:
    """Build a model with random weights and its pretraining heads, as configured by `configure`.

    `pairs`: add a head for segment pairs. ALBERT shares one layer's weights among all layers.
    """
    config, generator = configure(architecture, body, vocabulary_size, positions, dropout)
    if generator is not None:
        return Electra(ElectraForMaskedLM(generator), ElectraForPreTraining(config))
    return CLASSES[architecture, pairs](config)


def encoder_of(model: nn.Module) -> PreTrainedModel:
    """Return a model's encoder without heads; for ELECTRA, the discriminator's."""
    return getattr(model, "discriminator", model).base_model


def continue_from(model: nn.Module, source: str, same_vocabulary: bool, title: str, revision: str = "main") -> None:
    """Load into `model` the weights of a pretrained model of the same architecture.

    With another vocabulary, token embeddings and the output layer are left out. Heads missing from the saved model
    are initialised anew. Raises StudyError if the model cannot be loaded or weights have another shape.
    """
    modules = {"": model.discriminator, GENERATOR: model.generator} if isinstance(model, Electra) else {"": model}
    for folder, module in modules.items():
        with loading.in_one_line(f"{title}: cannot be continued"):
            weights = type(module).from_pretrained(source, subfolder=folder, revision=revision).state_dict()
        own_weights = module.state_dict()
        if not same_vocabulary:
            weights = {name: weights[name] for name in weights if "word_embeddings" not in name and not is_output(name)}
        mismatches = [
            name
            for name, tensor in weights.items()
            if name not in own_weights or own_weights[name].shape != tensor.shape
        ]
        if mismatches:
            name = mismatches[0]
            our_shape = tuple(own_weights[name].shape) if name in own_weights else "none"
            raise StudyError(
                f"{title}: {name} is {tuple(weights[name].shape)} there and {our_shape} here: another size of model"
            )
        module.load_state_dict(weights, strict=False)


def is_output(name: str) -> bool:
    """Return whether a weight belongs to the output layer over the vocabulary."""
    return name.endswith(("decoder.weight", "decoder.bias", "predictions.bias")) or "generator_lm_head" in name


def count_parameters(model: PreTrainedModel) -> dict[str, int]:
    """Count all parameters and those outside the embedding tables."""
    total = sum(p.numel() for p in model.parameters())
    tables = sum(table.numel() for table in {m.weight for m in model.modules() if isinstance(m, nn.Embedding)})
    return {"parameters": total, "body parameters": total - tables}
