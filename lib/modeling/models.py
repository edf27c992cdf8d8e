"""Models to pretrain, built from settings or continued, and those that were pretrained."""

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
    """A pretrained model that is not loaded yet: its key in file names, a name for people, where it lies."""

    key: str
    title: str
    source: str
    fingerprint: str  # empty for one on the hub, whose commit is known when it is loaded
    revision: str = "main"  # on the hub

    def load(self) -> loading.Encoder:
        """The encoder; errors as in load_encoder."""
        return loading.load_encoder(self.source, self.title, self.revision)


class Electra(nn.Module):
    """A generator and a discriminator with one set of embeddings between them (Clark et al. 2020, section 3.2)."""

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


GENERATOR = "generator"  # the folder, inside a model's own, of what ELECTRA's encoder was trained against
GENERATOR_SHARE = 4  # it is a quarter as wide (Clark et al. 2020, table 6, the small model)

CLASSES = {  # architecture, with a pair objective or without -> the class with its heads
    ("bert", False): BertForMaskedLM,
    ("bert", True): BertForPreTraining,
    ("albert", False): AlbertForMaskedLM,
    ("albert", True): AlbertForPreTraining,
}


def configure(
    architecture: str, body: Body, vocabulary_size: int, positions: int, dropout: float
) -> tuple[PretrainedConfig, PretrainedConfig | None]:
    """The configuration of a model to pretrain, BERT, ALBERT or ELECTRA, and that of ELECTRA's generator or None.

    `positions`: the longest input. ALBERT has narrow embeddings (Lan et al. 2020, section 3.1); ELECTRA's generator is
    a quarter as wide.
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
            special = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}  # as in our vocabularies
            size |= {"embedding_size": body.embedding, "hidden_act": "gelu", "classifier_dropout_prob": 0.1}
            return AlbertConfig(**size, **special), None
        case "electra":
            size["embedding_size"] = body.embedding
            narrow = {
                "hidden_size": body.hidden // GENERATOR_SHARE,
                "num_attention_heads": max(1, body.heads // GENERATOR_SHARE),
                "intermediate_size": body.intermediate // GENERATOR_SHARE,
            }
            return ElectraConfig(**size), ElectraConfig(**size | narrow)
    raise ValueError(architecture)


def build_model(
    architecture: str, body: Body, vocabulary_size: int, positions: int, dropout: float, pairs: bool = False
) -> nn.Module:
    """A model with random weights and its heads for pretraining, as `configure` says.

    `pairs`: with a head for pairs of segments. ALBERT shares one layer's weights among all.
    """
    config, generator = configure(architecture, body, vocabulary_size, positions, dropout)
    if generator is not None:
        return Electra(ElectraForMaskedLM(generator), ElectraForPreTraining(config))
    return CLASSES[architecture, pairs](config)


def encoder_of(model: nn.Module) -> PreTrainedModel:
    """What is left of a model without its heads: of an ELECTRA, the discriminator's."""
    return getattr(model, "discriminator", model).base_model


def continue_from(model: nn.Module, source: str, same_vocabulary: bool, title: str, revision: str = "main") -> None:
    """Give `model` the weights of a pretrained one of its architecture, in place.

    With another vocabulary, all but the embeddings of tokens and the output bias. Heads that the other was saved
    without stay as they are. StudyError when weights of the body are missing or of another shape.
    """
    parts = {"": model.discriminator, GENERATOR: model.generator} if isinstance(model, Electra) else {"": model}
    for folder, part in parts.items():
        with loading.in_one_line(f"{title}: cannot be continued"):
            weights = type(part).from_pretrained(source, subfolder=folder, revision=revision).state_dict()
        own = part.state_dict()
        if not same_vocabulary:
            weights = {name: weights[name] for name in weights if "word_embeddings" not in name and not is_output(name)}
        wrong = [name for name, tensor in weights.items() if name not in own or own[name].shape != tensor.shape]
        if wrong:
            name = wrong[0]
            ours = tuple(own[name].shape) if name in own else "none"
            raise StudyError(
                f"{title}: {name} is {tuple(weights[name].shape)} there and {ours} here: another size of model"
            )
        part.load_state_dict(weights, strict=False)


def is_output(name: str) -> bool:
    """Whether a weight belongs to the output layer over the vocabulary."""
    return name.endswith(("decoder.weight", "decoder.bias", "predictions.bias")) or "generator_lm_head" in name


def count_parameters(model: PreTrainedModel) -> dict[str, int]:
    """Parameters in all, and those outside the embedding tables."""
    everything = sum(p.numel() for p in model.parameters())
    tables = sum(table.numel() for table in {m.weight for m in model.modules() if isinstance(m, nn.Embedding)})
    return {"parameters": everything, "body parameters": everything - tables}
