"""Fine-tuned models on disk: saved as a class of transformers if one predicts the same, and loaded with their task.

A folder has config.json, model.safetensors, the tokenizer, a card (README.md), and record.json, which holds what the
study needs to load the folder: the task, its settings, the names of its labels.
"""

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from accelerate import Accelerator
from safetensors.torch import load_model, save_model
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PreTrainedModel,
)

from lib import artefacts
from lib.benchmarks import bio
from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Instance
from lib.errors import StudyError
from lib.finetuning import predictions
from lib.finetuning.card import write_tuned_card
from lib.finetuning.examples import DatasetTask, Example
from lib.finetuning.protocol import FinetuningSettings
from lib.finetuning.spans import Spans
from lib.finetuning.splits import TASKS
from lib.finetuning.tagging import Tagging
from lib.finetuning.texts import Texts
from lib.modeling import bodies, heads, loading, models
from lib.places import show_path
from lib.training import training
from lib.vocabularies.tokenization import load_whole

# In config.json in place of a model_type, because transformers quotes it when it cannot open the head.
OWN = "opened by lib.finetuning.saved.load_saved (see README.md)"
CLASSES = {
    Tagging: AutoModelForTokenClassification,
    Texts: AutoModelForSequenceClassification,
    Spans: AutoModelForQuestionAnswering,
}
PROBLEMS = {"class": "single_label_classification", "labels": "multi_label_classification", "number": "regression"}
LAST = re.compile(r"(?:.*\.)?(?:classifier|out_proj|qa_outputs)\.(weight|bias)")  # last layer of the library's heads
POOLER = re.compile(r"classifier\.dense\.(weight|bias)")  # the pooler of models like RoBERTa
SAME = 1e-5  # tolerance between probabilities
TRIED = 4  # sequences on which the library's class has to agree
DATASET = ("key", "title", "family", "labels", "metric", "overlapping", "question_first", "language", "negative")


@dataclass(frozen=True)
class Saved:
    """A fine-tuned model loaded from disk, with its task."""

    folder: Path
    record: dict
    dataset: Dataset  # without its files
    task: DatasetTask
    model: nn.Module
    device: Accelerator

    @property
    def title(self) -> str:
        """The folder's name."""
        return self.folder.resolve().name

    def predict(self, instances: Sequence[Instance]) -> list:
        """Predict each instance in the form Dataset.score takes: tags, a label, labels, a number, or ranked answers."""
        sequences = self.task.encode(instances)
        outputs = predictions.predict(self.model, self.task, sequences, self.device)
        return self.task.decode(instances, sequences, outputs)


class Saving:
    """The folder of a dataset's best run: each run is offered when it ends, and the best one is kept.

    `description`: the encoder, dataset and protocol, by name, kept as `of`; a folder that holds anything else is
    rejected. `identity`: a fingerprint of settings and inputs; runs with another one do not count. Raises StudyError as
    check_free does.
    """

    def __init__(self, folder: Path, description: dict[str, str], identity: str):
        check_free(folder, description)
        self.folder, self.of, self.identity = Path(folder), description, identity

    @property
    def record(self) -> dict:
        """The record of the saved model; empty if none is saved or it has another identity."""
        saved_record = artefacts.read_record(self.folder) or {}
        return saved_record if saved_record.get("identity") == self.identity else {}

    def knows(self, fingerprint: str) -> bool:
        """Return whether a run has been offered."""
        return fingerprint in self.record.get("compared", {})

    def offer(
        self, run: dict, dev: float | None, model: nn.Module, task: DatasetTask, tried: Sequence[Example], longest: int
    ) -> None:
        """Save a run if it beats all earlier ones on the development set; if `dev` is None, keep the first run.

        `tried`: sequences on which the library's class has to predict the same; `longest`: the encoder's maximum
        length in tokens.
        """
        best = self.record
        compared = best.get("compared", {}) | {run["fingerprint"]: dev}
        if best and (dev is None or dev <= best["dev"]):
            artefacts.write_record(self.folder, best | {"compared": compared, "complete": False})
            return
        record = {"stage": "saved model", "of": self.of, "identity": self.identity, "fingerprint": run["fingerprint"],
                  "dev": dev, "compared": compared, "complete": False}  # fmt: skip
        with artefacts.whole_folder(self.folder) as temporary:
            record |= write_saved(temporary, model, task, tried, longest)
            artefacts.write_record(temporary, record)
            artefacts.write_text(temporary / "README.md", "The best of the runs so far; others are still being made.\n")

    def finish(self, result: dict, encoder: loading.Encoder | models.Checkpoint, more_facts: dict[str, str]) -> None:
        """Write the card from the record of all runs, and mark the folder complete."""
        record, revision = self.record, self.of["encoder"]
        facts = {"encoder": encoder.title, "revision": revision.split()[-1]}
        if revision.startswith("hub "):
            facts["hub"] = encoder.source
        artefacts.write_text(self.folder / "README.md", write_tuned_card(record, result, facts | more_facts))
        artefacts.write_record(self.folder, record | {"complete": True})


def check_free(folder: Path, description: dict[str, str]) -> None:
    """Raise StudyError if a folder holds anything but a saved model of `description`."""
    folder = Path(folder)
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        record = artefacts.read_record(folder) if folder.is_dir() else None
        if not record or record.get("of") != description:
            raise StudyError(f"{show_path(folder)}: something else lies there; move it away, or save elsewhere")


def is_complete(folder: Path, identity: str) -> bool:
    """Return whether a folder holds the best model of all runs of an identity (Finetuning.identify_saved)."""
    record = artefacts.read_record(Path(folder)) or {}
    return record.get("identity") == identity and record["complete"]


def write_saved(folder: Path, model: nn.Module, task: DatasetTask, tried: Sequence[Example], longest: int) -> dict:
    """Write weights, configuration and tokenizer, and return the part of the record that is needed to load them."""
    model = model.to("cpu").eval()
    library = to_library(model, task, tried)
    if library is not None:
        library.save_pretrained(folder)
    else:
        config = {"model_type": OWN, "head": type(model).__name__, **name_labels(task)}
        artefacts.write_json(folder / "config.json", config | {"encoder": model.config.to_dict()})
        save_model(model, str(folder / "model.safetensors"), metadata={"format": "pt"})
    share_weights(folder)
    tokenizer = copy.deepcopy(task.tokenizer)
    tokenizer.model_max_length = longest
    tokenizer.save_pretrained(folder)
    task_record = {"settings": task.settings.model_dump(), "names": task.names, "max_length": task.max_length}
    task_record["dataset"] = {name: getattr(task.dataset, name) for name in DATASET}
    return {"class": type(library).__name__ if library is not None else "", "task": task_record}


def share_weights(folder: Path) -> None:
    """Give the weights the permissions of the configuration, because safetensors lets only the owner read them."""
    (folder / "model.safetensors").chmod((folder / "config.json").stat().st_mode & 0o777)


def name_labels(task: DatasetTask) -> dict:
    """Return `id2label` and `label2id` of a configuration; untyped entities get a type, which pipelines need."""
    names = task.names
    if isinstance(task, Tagging):
        names = [bio.add_type(name) for name in task.labels]
    numbers = range(len(names))
    return {"id2label": dict(zip(numbers, names, strict=True)), "label2id": dict(zip(names, numbers, strict=True))}


def to_library(model: nn.Module, task: DatasetTask, tried: Sequence[Example]) -> PreTrainedModel | None:
    """Return a model of the library's own class with the same weights, or None if none predicts the same.

    Predictions have to agree within SAME on the first TRIED sequences of `tried`.
    """
    config = copy.deepcopy(model.config)
    config.dtype = torch.float32
    if isinstance(model, heads.Classifier):
        config.problem_type = PROBLEMS[model.target]
    if task.names:
        config.update(name_labels(task))
    else:
        config.num_labels = model.score.out_features
    try:
        with torch.random.fork_rng(devices=[]):  # so that drawing first weights does not affect later random numbers
            library = CLASSES[type(task)].from_config(config).float().eval()
    except ValueError:  # no such class of this architecture
        return None
    pairs = pair_weights(model, library)
    if pairs is None:
        return None
    with torch.no_grad():
        for ours, theirs in pairs:
            theirs.copy_(ours)
    return library if agree(model, library, task, tried[:TRIED]) else None


def pair_weights(model: nn.Module, library: PreTrainedModel) -> list[tuple[torch.Tensor, torch.Tensor]] | None:
    """Pair our weights with each of the library's class.

    Returns None if one has no counterpart of its shape, or if our head is more than a linear layer.
    """
    weights, prefix = model.state_dict(), f"{library.base_model_prefix}."
    if any(not name.startswith(("encoder.", "score.")) for name in weights):
        return None  # a CRF, an LSTM
    pairs = []
    for name, theirs in library.state_dict().items():
        if name.startswith(prefix):
            ours = weights.get(f"encoder.{name.removeprefix(prefix)}")
        elif match := POOLER.fullmatch(name):
            ours = weights.get(f"encoder.pooler.dense.{match[1]}")
        else:
            match = LAST.fullmatch(name)
            ours = weights[f"score.{match[1]}"] if match else None
        if ours is None or ours.shape != theirs.shape:
            return None
        pairs.append((ours, theirs))
    return pairs


@torch.inference_mode()
def agree(model: nn.Module, library: PreTrainedModel, task: DatasetTask, tried: Sequence[Example]) -> bool:
    """Return whether both models predict the same for some sequences, at the positions that the head reads."""
    batch = task.collate(tried)
    output = library(**heads.select_inputs(library, batch) | {"attention_mask": heads.mark_tokens(batch).long()})
    match model:
        case heads.Tagger():
            words = batch["words"]
            ours = model.scores(batch)[:, :, 0][words].softmax(-1)
            theirs = bodies.gather_states(output.logits, batch["positions"])[words].softmax(-1)
        case heads.SpanFinder():
            readable = batch["readable"]
            ours = model(batch).softmax(1)[readable]
            theirs = torch.stack([output.start_logits, output.end_logits], -1)
            theirs = theirs.masked_fill(~readable[..., None], -1e9).softmax(1)[readable]
        case _:
            logits = output.logits[:, 0] if model.target == "number" else output.logits
            ours, theirs = (torch.tensor(task.read(scores, tried)) for scores in (model(batch), logits))
    return torch.allclose(ours, theirs, rtol=SAME, atol=SAME)


def load_saved(folder: str | Path) -> Saved:
    """Load a model of any task from a folder; it computes in float32.

    Raises StudyError in one line if the folder is missing, was not written by the study, or is damaged.
    """
    folder = Path(folder)
    title = folder.resolve().name
    if not folder.is_dir():
        raise StudyError(f"no folder {show_path(folder)}; give one that evaluate --save has made")
    record = artefacts.read_record(folder)
    if not record or record.get("stage") != "saved model":
        raise StudyError(f"{title}: no fine-tuned model of ours; give a folder that evaluate --save has made")
    task_record = record["task"]
    dataset = Dataset(read=lambda *_: [], files={}, **task_record["dataset"])
    # Class weights are needed only for training.
    settings = FinetuningSettings(**task_record["settings"]).model_copy(update={"weighted": False})
    with loading.in_one_line(f"{title}: damaged, or not whole"):
        tokenizer = load_whole(folder, title)
        task = TASKS[dataset.family](dataset, settings, tokenizer, [], task_record["max_length"], task_record["names"])
        model = (load_library if record["class"] else load_own)(folder, task)
    device = training.accelerator("float32")
    return Saved(folder, record, dataset, task, model.to(device.device).eval(), device)


def load_own(folder: Path, task: DatasetTask) -> nn.Module:
    """Load a model whose head has no class in the library."""
    config = AutoConfig.for_model(**artefacts.read_json(folder / "config.json")["encoder"])
    model = task.build(loading.choose_class(config).from_config(config).float(), [])
    load_model(model, folder / "model.safetensors")
    return model


def load_library(folder: Path, task: DatasetTask) -> nn.Module:
    """Load a model of the library's class into our own."""
    library, loading_info = CLASSES[type(task)].from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True, trust_remote_code=False
    )
    body_class = type(library.base_model)  # not that of AutoModel, which for T5 has a decoder too
    model = task.build(body_class(library.config), [])
    pairs = pair_weights(model, library)
    if loading_info["missing_keys"] or pairs is None:
        raise ValueError("its weights are not those of its configuration")
    with torch.no_grad():
        for ours, theirs in pairs:
            ours.copy_(theirs)
    return model
