"""Load any pretrained encoder from a folder or the hub, or reject it with a one-line error."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForTextEncoding,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from lib import provenance
from lib.errors import StudyError
from lib.modeling import heads
from lib.vocabularies.special_tokens import find_frame
from lib.vocabularies.tokenization import check_casing, load_whole

logging.set_verbosity_error()
logging.disable_progress_bar()

SHORTEST = 8  # minimum tokens of a sequence to fine-tune on
LONGEST = 2048  # tokens; no protocol needs more
TRIED = 6  # text tokens of the sequence that a model is tried on
WEIGHTS = "model.safetensors", "pytorch_model.bin"
INDEX = ".index.json"  # suffix of the file that maps weights to files if there are several
FOREIGN = {"*.msgpack": "Flax", "*.h5": "TensorFlow", "*.ckpt*": "TensorFlow", "*.onnx": "ONNX", "*.gguf": "llama.cpp"}
POINTER = b"version https://git-lfs"  # first bytes of a Git LFS pointer
NUMBERED = re.compile(r"\b\d+\b")  # the layer number in a weight's name
# A tokenizer's files besides sentencepiece's *.model; all of them affect tokenization.
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "added_tokens.json", "special_tokens_map.json",
              "tokenizer_config.json")  # fmt: skip
# Names of the dropout of states and of attention in the configurations of BERT, DistilBERT and XLNet, Funnel,
# ModernBERT, T5.
DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "hidden_dropout", "attention_dropout",
            "embedding_dropout", "mlp_dropout", "dropout_rate")  # fmt: skip


@dataclass(frozen=True)
class Encoder:
    """A pretrained bidirectional encoder and its tokenizer."""

    title: str
    source: str  # a folder, or a name on the hub
    revision: str  # on the hub
    fingerprint: str  # of the folder's files, or the name and its commit on the hub
    tokenizer: PreTrainedTokenizerBase
    max_length: int  # tokens of the longest sequence that it accepts, at most LONGEST
    architecture: str
    parameters: int
    new_weights: tuple[str, ...] = ()  # missing from its file: a pooler's, embeddings of added words

    def load(self) -> "Encoder":
        """Return itself, so that an Encoder can be used where a Checkpoint can."""
        return self

    def body(self, dropout: float) -> PreTrainedModel:
        """Load the model without its pretraining heads, in float32; new weights are drawn each time."""
        body = load_body(self.source, self.title, dropout, self.revision)[0]
        make_room(body, self.tokenizer)
        return body

    def describe(self) -> str:
        """Return a one-line description."""
        note = f"; new weights: {', '.join(sorted({name.split('.')[0] for name in self.new_weights}))}"
        return (
            f"{self.title}: {self.architecture}, {self.parameters / 1e6:.1f} million parameters; "
            f"{len(self.tokenizer):,} tokens, up to {self.max_length} at once{note if self.new_weights else ''}"
        )

    def length(self, longest: int) -> int:
        """Return the maximum sequence length in tokens, at most `longest`. Raises StudyError if it is too short."""
        length = min(longest, self.max_length)
        if length < SHORTEST:
            raise StudyError(f"{self.title}: sequences of {length} tokens are too short to fine-tune on")
        return length


def load_encoder(source: str | Path, title: str = "", revision: str = "main") -> Encoder:
    """Load an encoder from a folder (`save_pretrained`), or from the hub by name and revision.

    Raises StudyError in one line if it is not a usable encoder: files missing or damaged, no vocabulary, a decoder,
    code of its own, weights that would be random or left out, padding that changes its output. Only a pooler and
    embeddings of words added to the tokenizer may be new.
    """
    source = str(source)
    title = title or Path(source).name
    is_folder = Path(source).is_dir()
    fingerprint = fingerprint_folder(Path(source), title) if is_folder else ""
    with torch.random.fork_rng(devices=[]):  # so that drawing new weights does not affect later random numbers
        body, new_names = load_body(source, title, 0.0, revision)
    if not is_folder:
        fingerprint = f"hub {source} {body.config._commit_hash}"
    tokenizer = load_tokenizer(source, title, revision)
    with in_one_line(f"{title}: it does not read text as an encoder does"), torch.random.fork_rng(devices=[]):
        check_vocabulary(body, tokenizer, title)
        if added := make_room(body, tokenizer):
            new_names = [*new_names, f"{added} embeddings of added words"]
        longest = try_out(body, tokenizer, title)
    architecture, parameters = type(body).__name__, body.num_parameters()
    return Encoder(title, source, revision, fingerprint, tokenizer, longest, architecture, parameters, tuple(new_names))


def fingerprint_folder(folder: Path, title: str) -> str:
    """Return a fingerprint of configuration, weights and tokenizer. Raises StudyError if the model is incomplete."""
    if not (folder / "config.json").exists():
        if (folder / "adapter_config.json").exists():
            raise StudyError(f"{title}: an adapter alone; merge it into its model, and save that")
        folders = [path.parent.name for path in sorted(folder.glob("*/config.json"))]
        advice = f"the folder {folders[0]} in it, which has one" if folders else "a folder as save_pretrained writes it"
        raise StudyError(f"{title}: no config.json in it; give {advice}")
    weight_files = list_weights(folder, title)
    tokenizer_files = sorted(
        path.name for path in folder.iterdir() if path.name in TOKENIZERS or path.suffix == ".model"
    )
    if not tokenizer_files:
        raise StudyError(f"{title}: no tokenizer in it (tokenizer.json or vocab.txt); save it beside the model")
    for name in ("config.json", *weight_files, *tokenizer_files):
        with open(folder / name, "rb") as file:
            if file.read(len(POINTER)) == POINTER:
                raise StudyError(f"{title}: {name} is a pointer of Git LFS, not the file; run git lfs pull there")
    return fingerprint_files(folder, [*weight_files, *tokenizer_files])


def weights_fingerprint(folder: Path, title: str) -> str:
    """Return a fingerprint of a model that was pretrained here. Raises StudyError if its weights are missing.

    The tokenizer is left out: it follows from the vocabulary, on which the pretraining depends.
    """
    return fingerprint_files(folder, list_weights(folder, title))


def fingerprint_files(folder: Path, names: list[str]) -> str:
    """Return a fingerprint of a model's configuration and other files."""
    return provenance.fingerprint([provenance.file_fingerprint(folder / name) for name in ("config.json", *names)])


def list_weights(folder: Path, title: str) -> list[str]:
    """List the names of the files with a model's weights. Raises StudyError if one is missing."""
    files = [name for weights in WEIGHTS for name in (weights, weights + INDEX) if (folder / name).exists()]
    if not files:
        raise StudyError(f"{title}: no {' or '.join(WEIGHTS)} in it; {find_elsewhere(folder)}")
    if not files[0].endswith(INDEX):
        return files[:1]
    try:
        names = sorted(set(json.loads((folder / files[0]).read_text(encoding="utf-8"))["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StudyError(f"{title}: {files[0]} is damaged; fetch the model again") from None
    if missing := [name for name in names if not (folder / name).exists()]:
        raise StudyError(f"{title}: no {missing[0]} in it; fetch the model again")
    return names


def find_elsewhere(folder: Path) -> str:
    """Return advice for a folder without readable weights: another library has them, or a subfolder does."""
    for pattern, library in FOREIGN.items():
        if paths := sorted(folder.glob(pattern)):
            return f"{paths[0].name} is of {library}: save the model by PyTorch as safetensors"
    if subfolder_paths := sorted(path for name in WEIGHTS for path in folder.glob(f"*/{name}")):
        return (
            f"the folder {subfolder_paths[0].parent.name} in it has them: give that, with config.json and "
            "the tokenizer in it"
        )
    return "fetch the model again"


def load_body(source: str, title: str, dropout: float, revision: str) -> tuple[PreTrainedModel, list[str]]:
    """Load the model without heads, in float32, and list the names of its new weights.

    Pickled weights are read as tensors only, so that no pickled code is run. Raises StudyError if it cannot be loaded,
    is an encoder-decoder, or its weights and config.json do not match.
    """
    with in_one_line(f"{title}: the model could not be loaded"):
        config = AutoConfig.from_pretrained(source, revision=revision, trust_remote_code=False)
        model_class = choose_class(config)
        if model_class is None:
            raise StudyError(f"{title}: an encoder-decoder; only encoders are fine-tuned here")
        for name in DROPOUTS:
            if isinstance(getattr(config, name, None), float | int):
                setattr(config, name, dropout)
        model, loading_info = model_class.from_pretrained(
            source, config=config, revision=revision, dtype=torch.float32, output_loading_info=True,
            trust_remote_code=False, ignore_mismatched_sizes=True,
        )  # fmt: skip
    if mismatched := sorted(loading_info["mismatched_keys"]):  # sorted, so that the error is always the same
        name, stored_shape, configured_shape = mismatched[0]
        raise StudyError(
            f"{title}: {name} is {tuple(stored_shape)} in its file, and {tuple(configured_shape)} by its config.json; "
            "take the config.json that was saved with it"
        )
    new_names = sorted(loading_info["missing_keys"])
    missing_weights = [name for name in new_names if not name.startswith("pooler")]
    if missing_weights:
        raise StudyError(
            f"{title}: {len(missing_weights)} weights of the encoder are not in its file (the first: "
            f"{missing_weights[0]}), and would have been random"
        )
    layer_weights = {NUMBERED.sub("#", name) for name in model.state_dict() if NUMBERED.search(name)}
    unused_weights = sorted(name for name in loading_info["unexpected_keys"] if is_layer(name, layer_weights))
    if unused_weights:
        raise StudyError(
            f"{title}: {len(unused_weights)} weights of its file are of layers that its config.json lacks (the first: "
            f"{unused_weights[0]}); take the config.json that was saved with it"
        )
    return model, new_names


def choose_class(config: PretrainedConfig) -> type | None:
    """Return the class that loads an encoder, or None for an encoder-decoder, unless only its encoder was saved."""
    encoder_only = any(name.endswith("EncoderModel") for name in config.architectures or ())
    if encoder_only and type(config) in AutoModelForTextEncoding._model_mapping:
        return AutoModelForTextEncoding
    return None if getattr(config, "is_encoder_decoder", False) else AutoModel


def is_layer(name: str, patterns: set[str]) -> bool:
    """Return whether a weight belongs to a layer like those of a model with weights `patterns` (# for numbers).

    Prefixes are tried too, because a file saved with heads puts the model's name before its weights' names.
    """
    parts = NUMBERED.sub("#", name).split(".")
    return "#" in parts and any(".".join(parts[i:]) in patterns for i in range(len(parts)))


def load_tokenizer(source: str, title: str, revision: str) -> PreTrainedTokenizerBase:
    """Load the tokenizer and check its casing. Words are encoded as if preceded by a space.

    Raises StudyError if it cannot be loaded, gives no offsets or has no vocabulary.
    """
    options = {"revision": revision, "trust_remote_code": False}
    with in_one_line(f"{title}: no tokenizer could be loaded"):
        tokenizer = load_whole(source, title, **options)
        if getattr(tokenizer, "add_prefix_space", None) is False:
            tokenizer = load_whole(source, title, add_prefix_space=True, **options)
    if not tokenizer.is_fast:
        raise StudyError(f"{title}: its tokenizer does not say where tokens stand in a text; save a tokenizer.json")
    if len(list_plain(tokenizer)) <= TRIED:
        raise StudyError(f"{title}: its tokenizer has no vocabulary; save tokenizer.json or vocab.txt beside the model")
    check_casing(tokenizer, title)
    return tokenizer


def list_plain(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """List the ids of the first few tokens that are not special."""
    special = set(tokenizer.all_special_ids)
    return [id for id in range(min(len(tokenizer), len(special) + TRIED + 1)) if id not in special]


def check_vocabulary(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, title: str) -> None:
    """Raise StudyError if the vocabulary has more tokens than the model has embeddings; added words do not count."""
    rows = len(model.get_input_embeddings().weight)
    vocabulary_size = tokenizer.vocab_size
    if vocabulary_size > rows:
        raise StudyError(f"{title}: the vocabulary has {vocabulary_size} tokens, the model only {rows} embeddings")


def make_room(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Add embeddings for tokens that were added to the tokenizer and lack one; return how many."""
    rows = len(model.get_input_embeddings().weight)
    added = max(tokenizer.get_vocab().values()) + 1 - rows
    if added > 0:
        model.resize_token_embeddings(rows + added)
    return max(0, added)


def try_out(body: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, title: str) -> int:
    """Try a model on a few sequences and return the length of the longest that it accepts.

    Sequences are read as in training, with padding and second texts, and with a backward pass from each task's head.
    Raises StudyError if the model is not a text encoder.
    """
    frame = find_frame(tokenizer, title)

    @torch.inference_mode()
    def read(ids: list[int], padded: int = 0) -> torch.Tensor:
        batch = {"input_ids": torch.tensor([ids + [frame.padding] * padded])}
        if padded:
            batch["attention_mask"] = torch.tensor([[True] * len(ids) + [False] * padded])
        states = heads.encode(body, batch)[0]
        if len(states) != len(ids) + padded:
            raise StudyError(
                f"{title}: {len(states)} states of {len(ids) + padded} tokens; it has to give one for each"
            )
        return states[: len(ids)]

    body.eval()
    *plain, other_id = list_plain(tokenizer)
    ids = [*frame.before, *plain, *frame.after]
    states, position = read(ids), frame.locate(ids)
    if not states.isfinite().all():
        raise StudyError(f"{title}: what it computes is not finite; is the file damaged?")
    first, last = len(frame.before), len(frame.before) + len(plain) - 1
    with_other_last = [*ids[:last], other_id, *ids[last + 1 :]]
    with_other_first = [*ids[:first], other_id, *ids[first + 1 :]]
    if torch.equal(states[0], read(with_other_last)[0]):
        if torch.equal(states[last], read(with_other_first)[last]):
            raise StudyError(f"{title}: its tokens see nothing of each other; does its attention need a GPU?")
        reason = "a decoder, or a model whose training diverged"
        raise StudyError(f"{title}: its first token sees nothing of what follows: {reason}")
    if not torch.allclose(states[position], read(ids, padded=7)[position], rtol=1e-3, atol=1e-3):
        raise StudyError(f"{title}: padding changes what it computes; it cannot be read in batches")
    step_back(body, [*frame.before, *plain, *frame.between], [*plain, *frame.after], frame.padding)
    limit = getattr(body.config, "max_position_embeddings", None) or LONGEST
    longest = min(limit, LONGEST) if limit > 0 else LONGEST
    for length in (longest, longest - 2):  # RoBERTa's kind counts positions from 2
        try:
            read((ids * length)[:length])
            return length
        except (IndexError, RuntimeError):
            continue
    raise StudyError(f"{title}: it takes no sequence of the {limit} tokens that its configuration names")


def step_back(body: PreTrainedModel, first: list[int], second: list[int], padding: int) -> None:
    """Run a backward pass from each task's head, on a pair of texts and on the first one alone, padded."""
    length = len(first) + len(second)
    attention_mask = torch.arange(length) < torch.tensor([[length], [len(first)]])
    batch = {
        "input_ids": torch.tensor([first + second, first + [padding] * len(second)]),
        "attention_mask": attention_mask,
        "token_type_ids": torch.tensor([[0] * len(first) + [1] * len(second), [0] * length]),
    }
    zeros = torch.zeros(2, 1, dtype=torch.long)
    words = torch.ones(2, 1, dtype=torch.bool)
    tagger = heads.Tagger(body, 1, 2, "linear", 0.1)
    classifier = heads.Classifier(body, 2, "class", 1, "linear", 0.1)
    finder = heads.SpanFinder(body)
    for head, head_inputs in (
        (tagger, {"positions": zeros, "words": words, "labels": zeros[..., None]}),
        (classifier, {"positions": zeros[..., None], "labels": zeros[:, 0]}),
        (finder, {"readable": attention_mask, "labels": zeros.expand(2, 2)}),
    ):
        head.train().loss(batch | head_inputs).backward()
    body.eval()


@contextmanager
def in_one_line(what: str) -> Iterator[None]:
    """Turn any exception raised inside into a one-line StudyError that begins with `what`; keep a StudyError."""
    try:
        yield
    except StudyError:
        raise
    except Exception as error:  # the library raises many kinds for a missing, cut-off or foreign file
        first_line, *_ = str(error).strip().splitlines() or [type(error).__name__]
        raise StudyError(f"{what}: {first_line}") from error
