"""Fine-tuning of one encoder on one dataset: settings chosen on the development set, then every seed."""

import copy
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
import transformers
from accelerate import Accelerator
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from lib import artefacts, provenance
from lib.benchmarks import questions
from lib.benchmarks.datasets import Dataset, hold_out
from lib.benchmarks.instances import Instance
from lib.errors import StudyError, unknown
from lib.finetuning import runs, sequences, spans, tagging, tuning
from lib.finetuning.examples import BucketedBatches, Example, cut_evenly
from lib.finetuning.settings import FinetuningSettings
from lib.modeling import loading, models
from lib.progress import Progress
from lib.training import optimizers, training
from lib.training.settings import Machine

FORMS = {
    "tagging": tagging.Tagging, "pico": tagging.Tagging, "relations": sequences.Sequences,
    "similarity": sequences.Sequences, "inference": sequences.Sequences, "documents": sequences.Sequences,
    "answers": sequences.Sequences, "ranking": sequences.Sequences, "questions": spans.Spans,
}  # fmt: skip
VERSION = 1  # raised when the same settings, examples and weights give other scores: rows, heads, the loop, metrics
LOWEST = -100.0  # below every score: stands for one that is undefined
FALLEN = 0.95  # a loss whose last tenth is more than this share of its beginning has not fallen
WORDS = ("tagging", "pico")  # families whose predictions are tags of words
Form = tagging.Tagging | sequences.Sequences | spans.Spans


@dataclass(frozen=True)
class First:
    """A dataset to be fine-tuned on before, once for all runs, and the file in which the weights are kept."""

    dataset: Dataset
    settings: FinetuningSettings
    path: Path
    seed: int

    @property
    def base(self) -> str:
        """Its training split, or its development split where only that is at hand."""
        return next(iter(self.dataset.splits), "train")


def finetune(
    encoder: loading.Encoder | models.Checkpoint,
    dataset: Dataset,
    settings: FinetuningSettings,
    seeds: Sequence[int],
    folder: Path,
    machine: Machine | None = None,
    first: First | None = None,
) -> dict:
    """Choose between candidates on the development set, then train and test with every seed and fold.

    Each run's predictions are written to `folder` as it ends; one that is there, made from the same settings, data,
    weights and version, is not repeated. Returns what was chosen, among what, and a record of each run. StudyError as
    in Dataset.load and load_encoder.
    """
    folder = Path(folder)
    place = {"place": lambda run: folder / f"{run}.parquet", "search_file": folder / "search.sqlite"}
    return Finetuning(encoder, dataset, settings, machine=machine or Machine(), first=first, **place).run(seeds)


@dataclass(frozen=True)
class Fitted:
    """What came of a training, and of what: candidate, seed and data."""

    made_from: tuple
    weights: dict[str, torch.Tensor]
    steps: int
    log: list[dict]


class Finetuning:
    """What the runs of one encoder on one dataset share: instances, rows of pieces, the tokenizer, the device.

    Each split is read and cut into pieces once, for all seeds and candidates. `place`: the file of a run's predictions,
    by the run's name; `search_file`: of Optuna's trials, where settings are searched; `base`: the split that is trained
    on.
    """

    def __init__(
        self,
        encoder: loading.Encoder | models.Checkpoint,
        dataset: Dataset,
        settings: FinetuningSettings,
        *,
        place: Callable[[str], Path],
        search_file: Path,
        machine: Machine,
        first: First | None = None,
        base: str = "train",
    ):
        if dataset.family not in FORMS:
            raise unknown("family", dataset.family, FORMS)
        self.encoder, self.dataset, self.settings, self.first, self.base = encoder, dataset, settings, first, base
        self.place, self.search_file, self.machine = place, search_file, machine
        self.reads: list[str] = []
        self.instances: dict[tuple[str, int], list[Instance]] = {}
        self.rows: dict[tuple[str, int], list[Example]] = {}
        self.cut: dict[tuple[str, int], int] = {}
        self.forms: dict[int, Form] = {}
        self.last: Fitted | None = None  # of the candidate tried last
        self.best: Fitted | None = None  # of the best candidate so far, which one of the runs would train again
        self.highest = -math.inf
        torch.set_num_threads(machine.threads)

    def run(self, seeds: Sequence[int]) -> dict:
        """Choose, then train and test with every seed and fold, or as many as the settings have.

        The test set is read after the choice; each run's `reads` says which splits had been read, in order, when its
        predictions were written.
        """
        row, seeds = self.dataset, seeds[: self.settings.runs]
        if not seeds:
            raise StudyError("no seed: give one for each run")
        chosen, tried = self.choose(seeds[0])
        made = []
        for seed in seeds:
            for fold in range(1, min(row.folds, self.settings.folds or row.folds) + 1):
                name = f"{seed}.{fold}" if row.folds > 1 else str(seed)
                what = f"seed {seed}" + (f", fold {fold} of {row.folds}" if row.folds > 1 else "")
                made.append(self.train(chosen, seed, fold, name, "test", what))
        return {"metric": row.metric, "main score": row.main_score, "chosen on dev": chosen, "candidates": tried,
                "runs": made}  # fmt: skip

    @cached_property
    def device(self) -> Accelerator:
        return training.accelerator(self.machine.precision)

    @cached_property
    def loaded(self) -> loading.Encoder:
        """The encoder, loaded when a run first needs it, and not for results that are there."""
        return self.encoder.load()

    @cached_property
    def inputs(self) -> dict[str, str]:
        """Fingerprints of all that a run depends on besides its settings; of the data, of the files, unread."""
        found = self.dataset.fingerprints() | {"model": self.encoder.fingerprint or self.loaded.fingerprint}
        if first := self.first:
            data = first.dataset.fingerprint_files(first.base), first.dataset.fingerprint_reader()
            found["first"] = provenance.fingerprint(*data, first.base, first.settings.model_dump(), first.seed)
        return found

    def read(self, split: str, fold: int) -> list[Instance]:
        """The instances of a split. `rest` and `held out` are parts of the training set, where no other is for dev."""
        key = (split, fold)
        if key not in self.instances:
            if split in ("rest", "held out"):
                self.instances["rest", fold], self.instances["held out", fold] = hold_out(self.read(self.base, fold))
            else:
                found = self.dataset.load(split, fold)
                self.reads.append(split if self.dataset.folds == 1 else f"{split} {fold}")
                if split == self.base:
                    if self.dataset.family == "questions":  # the others cannot be learnt (Lee et al. 2020, section 3.3)
                        found = questions.answerable(found)
                    found = found[: self.settings.train_instances]
                self.instances[key] = found
        return self.instances[key]

    def form(self, fold: int) -> Form:
        """The dataset's form, which knows the labels of the training set."""
        if fold not in self.forms:
            tokenizer = copy.deepcopy(self.loaded.tokenizer)  # a form may add markers to it
            length = self.loaded.length(self.settings.max_length)
            train = self.read(self.base, fold)
            self.forms[fold] = FORMS[self.dataset.family](self.dataset, self.settings, tokenizer, train, length)
        return self.forms[fold]

    def encode(self, split: str, fold: int) -> list[Example]:
        """The rows of a split."""
        key = (split, fold)
        if key not in self.rows:
            form = self.form(fold)
            self.rows[key] = form.encode(self.read(split, fold))
            self.cut[key] = form.cut
        return self.rows[key]

    def build(self, fold: int) -> torch.nn.Module:
        """The encoder with a new head."""
        form = self.form(fold)
        return form.build(self.loaded.body(self.settings.dropout), self.read(self.base, fold))

    def choose(self, seed: int) -> tuple[dict, list[dict]]:
        """The candidate with the best score on the development set, of the first fold; and those that were tried.

        All candidates, or as many of them as the settings have `trials`, proposed by Optuna.
        """
        candidates = self.settings.candidates()
        if len(candidates) == 1:
            return candidates[0], []
        if self.settings.trials:
            tried = self.search(seed)
        else:
            tried = [candidate | {"score": self.try_out(candidate, seed)} for candidate in candidates]
        best = max(tried, key=lambda one: one["score"])  # the first of equal ones
        main = f"dev {self.dataset.main_score}"
        return {name: best[name] for name in candidates[0]}, [
            {name: value for name, value in one.items() if name != "score"} | {main: one["score"]} for one in tried
        ]

    def try_out(self, candidate: dict, seed: int) -> float:
        """A candidate's score on the development set, LOWEST where it is undefined; the best one's weights stay."""
        split = "dev" if "dev" in self.dataset.files else "held out"
        words = [f"{name.replace('_', '-')}-{value}" for name, value in candidate.items()]
        self.last = None
        run = self.train(candidate, seed, 1, ".".join(["try", *words]), split, say_settings(candidate))
        score = run["scores"][self.dataset.main_score]
        score = LOWEST if math.isnan(score) else score
        if self.last and score > self.highest:
            self.highest, self.best = score, self.last
        return score

    def search(self, seed: int) -> list[dict]:
        """The trials of Optuna, the best first."""
        space = {name: getattr(self.settings, name) for name in ("epochs", "batch_size", "learning_rate")}
        name = self.name_search(seed)
        return tuning.search(
            space, lambda point: self.try_out(point, seed), self.settings.trials, self.search_file, name, seed
        )

    def name_search(self, seed: int) -> str:
        """The name of the search in its file, which settings, data and versions decide."""
        return provenance.fingerprint(
            VERSION, self.settings.model_dump(exclude={"trials", "runs", "folds"}), self.inputs, seed
        )

    def train(self, candidate: dict, seed: int, fold: int, name: str, split: str, what: str) -> dict:
        """Train once and score once on `split`; the run's record, read from its predictions where they exist."""
        machine = {"precision": training.resolve(self.machine.precision), "threads": self.machine.threads}
        place = {"seed": seed, "fold": fold, "split": split}
        record = provenance.record(
            "fine-tuning", VERSION, resolve_settings(self.settings, candidate) | place | machine, self.inputs
        )
        path = self.place(name)
        existing = runs.read(path)
        if existing and existing["fingerprint"] == record["fingerprint"]:
            return existing

        part = ("rest" if split == "held out" else self.base, fold)
        made_from = (*candidate.items(), seed, *part)
        transformers.set_seed(seed)
        model = self.build(fold)
        before = self.start_from_first(model) if self.settings.first_on else ""
        if self.best and self.best.made_from == made_from:  # the same training, to the last bit
            steps, log = self.best.steps, self.best.log
            model.to(self.device.device).load_state_dict(self.best.weights)
            model.eval()
        else:
            steps, log = self.fit(model, candidate, seed, part, what)
        if split != "test":
            weights = {key: tensor.clone() for key, tensor in model.state_dict().items()}
            self.last = Fitted(made_from, weights, steps, log)
        tested, rows, form = self.read(split, fold), self.encode(split, fold), self.form(fold)
        predicted = form.predict(tested, rows, look(model, form, rows, self.device))
        sizes = models.count_parameters(model)
        record |= sizes | {
            "seed": seed,
            "fold": fold,
            "first on": before,
            "reads": list(self.reads),
            "scores": self.dataset.score(tested, predicted),
            "collapsed": find_collapse(self.dataset.family, predicted, log),
            "instances": {name: len(self.read(name, fold)) for name in (part[0], split)},
            "rows": {name: len(self.encode(name, fold)) for name in (part[0], split)},
            "cut": {name: self.cut[name, fold] for name in (part[0], split)},
            "steps": steps,
            "log": log,
            "tokens": log[-1]["tokens"],
            "seconds": round(log[-1]["seconds"]),
            "FLOPs": 6 * sizes["body parameters"] * log[-1]["tokens"],
            "device": training.describe_device(self.device),
        }
        runs.write(path, self.dataset.family, tested, predicted, record)
        return record

    def fit(
        self, model: torch.nn.Module, candidate: dict, seed: int, part: tuple[str, int], what: str
    ) -> tuple[int, list[dict]]:
        """Train a model in place on a split of a fold; the number of steps, and the log."""
        rows = self.encode(*part)
        batches = BucketedBatches(
            rows,
            self.form(part[1]).collate,
            batch_size=candidate["batch_size"],
            epochs=self.settings.count_epochs(candidate, len(rows)),
            steps=self.settings.steps,
            seed=seed,
        )
        peak, warmup = candidate["learning_rate"], self.settings.warmup
        log = training.train(
            model,
            batches,
            lambda module, batch: module.loss(batch),
            device=self.device,
            settings=self.settings.optimization(),
            rate_of=lambda step: peak * optimizers.slanted_triangle(step, len(batches), warmup),
            seed=seed,
            progress=Progress(f"{self.encoder.title} on {self.dataset.title}, {what}"),
        )
        return len(batches), log

    def start_from_first(self, model: torch.nn.Module) -> str:
        """Give `model` the weights that it has after another dataset, trained once for all seeds; says on what."""
        first = self.first
        if not first:
            raise StudyError(f"the settings fine-tune on {self.settings.first_on} first, and no such dataset was given")
        base = first.base
        other = Finetuning(self.encoder, first.dataset, first.settings, place=self.place, search_file=self.search_file,
                           machine=self.machine, base=base)  # fmt: skip
        candidate = first.settings.candidates()[0]
        fingerprint = provenance.fingerprint(VERSION, self.inputs["first"], self.inputs["model"])
        with artefacts.locked(first.path):
            if read_fingerprint(first.path) != fingerprint:
                transformers.set_seed(first.seed)
                before = other.build(1)
                other.fit(before, candidate, first.seed, (base, 1), f"before {self.dataset.title}")
                with artefacts.whole_file(first.path) as temporary:
                    save_file(before.state_dict(), temporary, metadata={"fingerprint": fingerprint})
        model.load_state_dict(load_file(first.path))
        return f"{first.dataset.key}, its {base} split, with " + say_settings(candidate)


def resolve_settings(settings: FinetuningSettings, candidate: dict) -> dict:
    """The settings of one run: of a protocol, what was chosen of it, and what AdamW computes with."""
    optimizer = settings.optimization().model_dump(include={"optimizer", "betas", "clip"})
    return (
        settings.model_dump(exclude={*candidate, "runs", "folds", "trials"})
        | candidate
        | optimizer
        | {"epsilon": optimizers.EPSILON}
    )


def look(model: torch.nn.Module, form: Form, rows: Sequence[Example], device: Accelerator) -> list:
    """What the head says of each row, as the form reads it."""
    found: list = [None] * len(rows)
    with torch.inference_mode(), device.autocast():
        for numbers in cut_evenly(rows):
            chosen = [rows[number] for number in numbers]
            batch = {name: tensor.to(device.device) for name, tensor in form.collate(chosen).items()}
            for number, one in zip(numbers, form.read(model(batch), chosen), strict=True):
                found[number] = one
    return found


def find_collapse(family: str, predicted: Sequence, log: list[dict]) -> str:
    """Why a run is one that learnt nothing, or an empty string.

    It says the same of every test instance (of every word: O), or the mean loss of the last tenth of its log is more
    than FALLEN of that of the first.
    """
    if family in WORDS:
        said = {tag for tags in predicted for tag in tags}
    else:
        said = {str(round(one, 3) if isinstance(one, float) else one) for one in predicted}
    if len(said) == 1 and len(predicted) > 1:
        return "one answer only"
    tenth = max(1, len(log) // 10)
    first, last = (statistics.mean(row["loss"] for row in part) for part in (log[:tenth], log[-tenth:]))
    return "the loss did not fall" if last > FALLEN * first else ""


def read_fingerprint(path: Path) -> str | None:
    """The fingerprint kept with weights, or None where there are none, or damaged ones."""
    try:
        with safe_open(path, "pt") as file:
            return file.metadata()["fingerprint"]
    except (OSError, SafetensorError):
        return None


def say_settings(candidate: dict) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in candidate.items())
