"""Any pretrained encoder, from a folder or the hub: loaded whole, or refused in one line."""

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModel, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from lib import provenance
from lib.errors import StudyError
from lib.vocabularies.loading import check_casing, load_whole

logging.set_verbosity_error()
logging.disable_progress_bar()

SHORTEST = 8  # tokens of a sequence to fine-tune on
LONGEST = 2048  # no protocol asks for more
TRIED = 6  # tokens of the sequence that a model is tried on
INDEX = "model.safetensors.index.json"  # which file holds which weight, where there are several
# What a tokenizer is saved in, besides *.model of sentencepiece. All of it decides how texts are cut.
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "added_tokens.json", "special_tokens_map.json",
              "tokenizer_config.json")  # fmt: skip
# What configurations call the dropout of states and of attention, in BERT, DistilBERT and XLNet, Funnel, ModernBERT.
DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "hidden_dropout", "attention_dropout",
            "embedding_dropout", "mlp_dropout")  # fmt: skip


@dataclass(frozen=True)
class Encoder:
    """A pretrained model that reads in both directions, and its tokenizer."""

    title: str
    source: str  # a folder, or a name on the hub
    revision: str  # on the hub
    fingerprint: str  # of the folder's files, or the name and its commit on the hub
    tokenizer: PreTrainedTokenizerBase
    max_length: int  # tokens of the longest sequence that it takes, at most LONGEST
    architecture: str
    parameters: int
    new_weights: tuple[str, ...] = ()  # that its file lacks: a pooler's

    def load(self) -> "Encoder":
        """Itself, as a Checkpoint gives its encoder."""
        return self

    def body(self, dropout: float) -> PreTrainedModel:
        """The model without the heads that it was pretrained with, in float32; new weights are drawn each time."""
        return load_body(self.source, self.title, dropout, self.revision)[0]

    def describe(self) -> str:
        """What it is, in a line."""
        new = f"; new weights: {', '.join(sorted({name.split('.')[0] for name in self.new_weights}))}"
        return (
            f"{self.title}: {self.architecture}, {self.parameters / 1e6:.1f} million parameters; "
            f"{len(self.tokenizer):,} tokens, up to {self.max_length} at once{new if self.new_weights else ''}"
        )

    def length(self, longest: int) -> int:
        """Tokens of the longest sequence where a protocol asks for `longest`; StudyError where that is too short."""
        length = min(longest, self.max_length)
        if length < SHORTEST:
            raise StudyError(f"{self.title}: sequences of {length} tokens are too short to fine-tune on")
        return length


def load_encoder(source: str | Path, title: str = "", revision: str = "main") -> Encoder:
    """The encoder in a folder (`save_pretrained`), or of a name on the hub, at a revision.

    StudyError in one line when it is none: files missing or damaged, no vocabulary, a decoder, code of its own,
    weights that would have been random, padding that changes what it says. Only a pooler may be new.
    """
    source = str(source)
    title = title or Path(source).name
    here = Path(source).is_dir()
    fingerprint = fingerprint_folder(Path(source), title) if here else ""
    with torch.random.fork_rng(devices=[]):  # new weights are drawn, and what follows is not to depend on that
        body, new = load_body(source, title, 0.0, revision)
    if not here:
        fingerprint = f"hub {source} {body.config._commit_hash}"
    tokenizer = load_tokenizer(source, title, revision)
    check_vocabulary(body, tokenizer, title)
    longest = try_out(body, tokenizer, title)
    architecture, parameters = type(body).__name__, body.num_parameters()
    return Encoder(title, source, revision, fingerprint, tokenizer, longest, architecture, parameters, tuple(new))


def fingerprint_folder(folder: Path, title: str) -> str:
    """Fingerprint of configuration, weights and tokenizer; StudyError for what is no whole model."""
    if not (folder / "config.json").exists():
        if (folder / "adapter_config.json").exists():
            raise StudyError(f"{title}: an adapter alone; merge it into its model, and save that")
        raise StudyError(f"{title}: no config.json in it; give a folder as save_pretrained writes it")
    weights = list_weights(folder, title)
    tokenizer = sorted(path.name for path in folder.iterdir() if path.name in TOKENIZERS or path.suffix == ".model")
    if not tokenizer:
        raise StudyError(f"{title}: no tokenizer in it (tokenizer.json or vocab.txt); save it beside the model")
    return fingerprint_files(folder, [*weights, *tokenizer])


def weights_fingerprint(folder: Path, title: str) -> str:
    """Fingerprint of a model that was pretrained here; StudyError where its weights are missing.

    Its tokenizer follows from the vocabulary, which its pretraining depends on.
    """
    return fingerprint_files(folder, list_weights(folder, title))


def fingerprint_files(folder: Path, names: list[str]) -> str:
    """Fingerprint of a model's configuration and other files."""
    return provenance.fingerprint([provenance.file_fingerprint(folder / name) for name in ("config.json", *names)])


def list_weights(folder: Path, title: str) -> list[str]:
    """The names of the files with a model's weights; StudyError where one is not there."""
    if (folder / INDEX).exists():
        try:
            names = sorted(set(json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"].values()))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise StudyError(f"{title}: {INDEX} is damaged; fetch the model again") from None
    else:
        names = ["model.safetensors" if (folder / "model.safetensors").exists() else "pytorch_model.bin"]
    missing = [name for name in names if not (folder / name).exists()]
    if missing:
        wanted = missing[0].replace("pytorch_model.bin", "model.safetensors or pytorch_model.bin")
        raise StudyError(f"{title}: no {wanted} in it; fetch the model again")
    return names


def load_body(source: str, title: str, dropout: float, revision: str = "main") -> tuple[PreTrainedModel, list[str]]:
    """The model without heads, in float32, and the names of the weights that are new in it.

    Pickled weights are read as tensors alone: nothing that is pickled beside them is run.
    """
    try:
        config = AutoConfig.from_pretrained(source, revision=revision, trust_remote_code=False)
        if getattr(config, "is_encoder_decoder", False):
            raise StudyError(f"{title}: an encoder-decoder; only encoders are fine-tuned here")
        for name in DROPOUTS:
            if isinstance(getattr(config, name, None), float | int):
                setattr(config, name, dropout)
        model, loading = AutoModel.from_pretrained(
            source, config=config, revision=revision, dtype=torch.float32, output_loading_info=True,
            trust_remote_code=False,
        )
    except StudyError:
        raise
    except Exception as error:  # the library raises many kinds for a missing, cut-off or foreign file
        raise StudyError(f"{title}: the model could not be loaded: {first_line(error)}") from error
    new = sorted(loading["missing_keys"])
    lost = [name for name in new if not name.startswith("pooler")]
    if lost:
        raise StudyError(
            f"{title}: {len(lost)} weights of the encoder are not in its file (the first: {lost[0]}), and would have "
            "been random"
        )
    return model, new


def load_tokenizer(source: str, title: str, revision: str = "main") -> PreTrainedTokenizerBase:
    """The tokenizer, its casing checked. Words are encoded as if a space stood before them."""
    given = {"revision": revision, "trust_remote_code": False}
    try:
        tokenizer = load_whole(source, title, **given)
        if getattr(tokenizer, "add_prefix_space", None) is False:
            tokenizer = load_whole(source, title, add_prefix_space=True, **given)
    except StudyError:
        raise
    except Exception as error:  # a damaged tokenizer.json raises a plain Exception
        raise StudyError(f"{title}: no tokenizer could be loaded: {first_line(error)}") from None
    if not tokenizer.is_fast:
        raise StudyError(f"{title}: its tokenizer does not say where tokens stand in a text; save a tokenizer.json")
    if len(list_plain(tokenizer)) <= TRIED:
        raise StudyError(f"{title}: its tokenizer has no vocabulary; save tokenizer.json or vocab.txt beside the model")
    check_casing(tokenizer, title)
    return tokenizer


def list_plain(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The ids of the tokens that stand for text, the first few of them."""
    special = set(tokenizer.all_special_ids)
    return [id for id in range(min(len(tokenizer), len(special) + TRIED + 1)) if id not in special]


def check_vocabulary(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, title: str) -> None:
    """StudyError when the tokenizer can name a token that the model has no embedding for."""
    rows = model.get_input_embeddings().num_embeddings
    named = tokenizer.vocab_size  # without markers that are added for relations, for which the model makes room
    if named > rows:
        raise StudyError(f"{title}: the vocabulary has {named} tokens, the model only {rows} embeddings")


@torch.inference_mode()
def try_out(body: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, title: str) -> int:
    """Try a model on a few sequences; the longest that it takes. StudyError for one that is no encoder of text."""

    def first_state(ids: list[int], padding: int = 0) -> torch.Tensor:
        there = torch.tensor([[1] * len(ids) + [0] * padding])
        batch = torch.tensor([ids + [tokenizer.pad_token_id or 0] * padding])
        states = body(input_ids=batch, attention_mask=there).last_hidden_state[0]
        if len(states) != batch.shape[1]:
            raise StudyError(f"{title}: {len(states)} states of {batch.shape[1]} tokens; it has to give one for each")
        return states[0]

    body.eval()
    *plain, other = list_plain(tokenizer)
    start, *end = tokenizer("")["input_ids"] or [plain[0]]
    ids = [start, *plain, *end]
    try:
        state = first_state(ids)
        if not state.isfinite().all():
            raise StudyError(f"{title}: what it computes is not finite; is the file damaged?")
        if torch.equal(state, first_state([start, *plain[:-1], other, *end])):
            raise StudyError(f"{title}: its first token sees nothing of what follows: a decoder, not an encoder")
        if not torch.allclose(state, first_state(ids, padding=7), rtol=1e-3, atol=1e-3):
            raise StudyError(f"{title}: padding changes what it computes; it cannot be read in batches")
        limit = getattr(body.config, "max_position_embeddings", None) or LONGEST
        longest = min(limit, LONGEST) if limit > 0 else LONGEST
        for length in (longest, longest - 2):  # RoBERTa's kind counts positions from 2
            try:
                first_state((ids * length)[:length])
                return length
            except (IndexError, RuntimeError):
                continue
    except (AttributeError, TypeError, ValueError) as error:
        raise StudyError(f"{title}: it does not read text as an encoder does ({first_line(error)})") from error
    raise StudyError(f"{title}: it takes no sequence of the {limit} tokens that its configuration names")


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
