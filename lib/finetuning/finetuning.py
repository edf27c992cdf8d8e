"""Fine-tune one encoder on one dataset: settings are chosen on the development set, then every seed is run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
import transformers
from accelerate import Accelerator
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_model, save_model

from lib import artefacts, provenance
from lib.benchmarks import jackknife, metrics, seen
from lib.benchmarks.datasets import Dataset, fill_undefined
from lib.benchmarks.instances import Instance
from lib.errors import StudyError
from lib.finetuning import predictions, runs, saved, spans, tuning
from lib.finetuning.examples import BucketedBatches
from lib.finetuning.protocol import SEARCHED, VERSION, FinetuningSettings, describe_settings
from lib.finetuning.splits import Splits
from lib.modeling import costs, heads, loading, models
from lib.progress import Progress
from lib.training import optimizers, training
from lib.training.optimization import Machine


@dataclass(frozen=True)
class First:
    """A dataset to fine-tune on first, once for all runs, and the file that keeps the resulting weights."""

    dataset: Dataset
    settings: FinetuningSettings
    path: Path
    seed: int

    @property
    def base(self) -> str:
        """The split to train on: the training split, or the development split if only that can be read."""
        return next(iter(self.dataset.splits), "train")


def finetune(
    encoder: loading.Encoder | models.Checkpoint,
    dataset: Dataset,
    settings: FinetuningSettings,
    seeds: Sequence[int],
    folder: Path,
    machine: Machine | None = None,
    save: Path | None = None,
) -> dict:
    """Choose settings on the development set, then train and test with every seed and fold.

    Each run's predictions are written to `folder` when it ends. A run with the same settings, data, weights and version
    is not repeated. `save`: a folder for the best run's model, as in Finetuning.run. Returns the chosen settings, the
    candidates and a record of each run. Raises StudyError as Dataset.load and load_encoder do.
    """
    folder = Path(folder)
    files = {"run_file": lambda run: folder / f"{run}.parquet", "search_file": folder / "search.sqlite"}
    return Finetuning(encoder, dataset, settings, machine=machine or Machine(), **files).run(seeds, save)


class Finetuning:
    """The runs of one encoder on one dataset, which share its splits and the device.

    `run_file`: maps a run's name to the file of its predictions; `search_file`: the file of Optuna's trials, if
    settings are searched; `base`: the split to train on. Raises StudyError if the dataset's family has no task.
    """

    def __init__(
        self,
        encoder: loading.Encoder | models.Checkpoint,
        dataset: Dataset,
        settings: FinetuningSettings,
        *,
        run_file: Callable[[str], Path],
        search_file: Path,
        machine: Machine,
        first: First | None = None,
        base: str = "train",
    ):
        self.encoder, self.dataset, self.settings, self.first = encoder, dataset, settings, first
        self.splits = Splits(encoder, dataset, settings, base)
        self.run_file, self.search_file, self.machine = run_file, search_file, machine
        self.checked = False  # whether all splits that the runs need have been read without error
        self.saving: saved.Saving | None = None
        torch.set_num_threads(machine.threads)

    def run(self, seeds: Sequence[int], save: Path | None = None, facts: dict[str, str] | None = None) -> dict:
        """Choose settings, then train and test with every seed and fold, up to the limits in the settings.

        Every split is read once and dropped before the first training, so that a damaged file is found early. The test
        set is read again only after the choice. Each run's `reads` lists the splits in the order in which they had been
        read for use when its predictions were written.

        `save`: a folder for the model of the first-fold run that is best on the development set, or of the first run
        without a development set (lib/finetuning/saved.py). Runs made without `save` are repeated. `facts`: further
        facts for the model card, by name.
        """
        dataset, seeds, facts = self.dataset, seeds[: self.settings.runs], facts or {}
        if not seeds:
            raise StudyError("no seed: give one for each run")
        if save:
            self.saving = saved.Saving(save, self.describe_saved(facts.get("protocol", "")), self.identify_saved(seeds))
        candidate, candidates = self.choose(seeds[0])
        records = []
        for seed in seeds:
            for fold in self.folds:
                description = f"seed {seed}" + (f", fold {fold} of {dataset.folds}" if dataset.folds > 1 else "")
                name = runs.name_run(seed, fold, dataset.folds)
                records.append(self.train(candidate, seed, fold, name, "test", description))
        result = {"metric": dataset.metric, "main score": dataset.main_score, "chosen on dev": candidate,
                  "candidates": candidates, "runs": records}  # fmt: skip
        if self.saving:
            self.saving.finish(result, self.encoder, facts)
        return result

    def describe_saved(self, protocol: str) -> dict[str, str]:
        """Return what a saved model is of: encoder, dataset, and protocol or an empty string."""
        return {"encoder": self.weights, "dataset": self.dataset.key, "protocol": protocol}

    def identify_saved(self, seeds: Sequence[int]) -> str:
        """Return a fingerprint of the runs from which the saved model is chosen: what decides their weights."""
        settings = self.settings.model_dump() | resolve_settings(self.settings, {}) | self.precision_and_threads
        return provenance.fingerprint(VERSION, settings, self.inputs, list(seeds[: self.settings.runs]))

    @property
    def folds(self) -> range:
        """The folds to train on: all, or as many as the settings allow."""
        return range(1, min(self.dataset.folds, self.settings.folds or self.dataset.folds) + 1)

    @property
    def weights(self) -> str:
        """The encoder's fingerprint."""
        return self.encoder.fingerprint or self.splits.loaded.fingerprint

    def read_predictions(self, run: dict) -> tuple[list[Instance], list]:
        """Return the test instances and the predictions of a finished run, in the form that Dataset.score takes."""
        path = self.run_file(runs.name_run(run["seed"], run["fold"], self.dataset.folds))
        return self.splits.read("test", run["fold"]), runs.read_predicted(path, self.dataset.family)

    @property
    def precision_and_threads(self) -> dict[str, str | int]:
        """The machine's settings that change the last bits of a run's weights."""
        return {"precision": training.resolve(self.machine.precision), "threads": self.machine.threads}

    @cached_property
    def device(self) -> Accelerator:
        return training.accelerator(self.machine.precision)

    @cached_property
    def inputs(self) -> dict[str, str]:
        """Fingerprints of everything that a run depends on besides its settings; data files are not parsed."""
        fingerprints = self.dataset.fingerprints() | {"model": self.weights}
        if self.dataset.family == "questions":
            fingerprints["answers"] = f"version {spans.VERSION}"
        if first := self.first:
            data = first.dataset.fingerprint_files(first.base), first.dataset.fingerprint_reader()
            fingerprints["first"] = provenance.fingerprint(*data, first.base, first.settings.model_dump(), first.seed)
        return fingerprints

    def build(self, fold: int) -> torch.nn.Module:
        """Build the encoder with a new head."""
        task = self.splits.task(fold)
        return task.build(self.splits.loaded.body(self.settings.dropout), self.splits.read(self.splits.base, fold))

    def choose(self, seed: int) -> tuple[dict, list[dict]]:
        """Return the candidate that scores best on the development set of the first fold, and all candidates tried.

        All are tried, or, if the settings have `trials`, that many proposed by Optuna.
        """
        candidates = self.settings.candidates()
        if len(candidates) == 1:
            return candidates[0], []
        if self.settings.trials:
            trials = self.search(seed)
        else:
            trials = [candidate | {"score": self.try_out(candidate, seed)} for candidate in candidates]
        best = max(trials, key=lambda trial: trial["score"])  # the first if scores tie
        for trial in trials:
            trial[f"dev {self.dataset.main_score}"] = trial.pop("score")
        return {name: best[name] for name in candidates[0]}, trials

    def try_out(self, candidate: dict, seed: int) -> float:
        """Return a candidate's score on the development set, LOWEST if it is undefined."""
        words = [f"{name.replace('_', '-')}-{value}" for name, value in candidate.items()]
        name = ".".join(["try", *words])
        run = self.train(candidate, seed, 1, name, self.splits.choice, describe_settings(candidate))
        return fill_undefined(run["scores"][self.dataset.main_score])

    def search(self, seed: int) -> list[dict]:
        """Run the Optuna search and return its trials, best first."""
        space = {name: getattr(self.settings, name) for name in SEARCHED}
        trials, name = self.settings.trials, self.name_search(seed)
        return tuning.search(space, lambda point: self.try_out(point, seed), trials, self.search_file, name, seed)

    def name_search(self, seed: int) -> str:
        """Return the name of the search in its file: a fingerprint of all that its scores depend on."""
        settings = self.settings.model_dump(exclude={"trials", "runs", "folds"})
        return provenance.fingerprint(VERSION, settings, self.precision_and_threads, self.inputs, seed)

    def train(self, candidate: dict, seed: int, fold: int, name: str, split: str, what: str) -> dict:
        """Train once, score once on `split` and return the run's record.

        If the run's predictions exist, the record is read from their file. If they were not scored, for example because
        the run was killed in between, they are scored without training again.
        """
        run = {"seed": seed, "fold": fold, "split": split}
        record = provenance.record(
            "fine-tuning",
            VERSION,
            resolve_settings(self.settings, candidate) | run | self.precision_and_threads,
            self.inputs,
        )
        path = self.run_file(name)
        old_record = runs.read_run(path)
        saving = self.saving if split == "test" and fold == 1 else None
        up_to_date = old_record and old_record["fingerprint"] == record["fingerprint"]
        if up_to_date and (saving is None or saving.knows(record["fingerprint"])):
            if "scores" in old_record and (split != "test" or "jackknife" in old_record):
                return old_record
            return self.judge(path, old_record, split, fold, runs.read_predicted(path, self.dataset.family))

        self.check_splits()
        part = ("rest" if split == "held out" else self.splits.base, fold)
        transformers.set_seed(seed)
        model = self.build(fold)
        first_training = self.start_from_first(model) if self.settings.first_on else ""
        steps, log = self.fit(model, candidate, seed, part, what)
        instances, predicted = self.predict(model, split, fold)
        sizes = models.count_parameters(model)
        record |= sizes | {
            "seed": seed,
            "fold": fold,
            "first on": first_training,
            "reads": list(self.splits.reads),
            "instances": {name: len(self.splits.read(name, fold)) for name in (part[0], split)},
            "rows": {name: len(self.splits.encode(name, fold)) for name in (part[0], split)},
            "cut": {name: self.splits.cut[name, fold] for name in (part[0], split)},
            "steps": steps,
            "log": log,
            "tokens": log[-1]["tokens"],
            "seconds": round(log[-1]["seconds"]),
            "FLOPs": costs.weights_flops(model.encoder, sizes["body parameters"], log[-1]["tokens"]),
            "device": training.describe_device(self.device),
        }
        runs.write_run(path, self.dataset.family, instances, predicted, record)
        record = self.judge(path, record, split, fold, predicted)
        if saving:
            task, sequences = self.splits.task(fold), self.splits.encode(split, fold)
            longest = self.splits.loaded.max_length
            saving.offer(record, self.score_on_dev(model, fold), model, task, sequences, longest)
        return record

    def score_on_dev(self, model: torch.nn.Module, fold: int) -> float | None:
        """Return a trained model's score on the development set, or None if there is none."""
        return self.dataset.rank(*self.predict(model, "dev", fold)) if self.splits.choice == "dev" else None

    def predict(self, model: torch.nn.Module, split: str, fold: int) -> tuple[list[Instance], list]:
        """Return the instances of a split and a trained model's predictions for them."""
        instances, sequences = self.splits.read(split, fold), self.splits.encode(split, fold)
        task = self.splits.task(fold)
        return instances, task.decode(instances, sequences, predictions.predict(model, task, sequences, self.device))

    def check_splits(self) -> None:
        """Read every split that the runs need, once. Raises StudyError as Dataset.load does."""
        if self.checked:
            return
        parts = [(split, fold) for split in (self.splits.base, "test") for fold in self.folds]
        if self.splits.choice == "dev" and (self.saving or len(self.settings.candidates()) > 1):
            parts.append(("dev", 1))
        for part in parts:
            if part not in self.splits.instances:
                self.dataset.load(*part)
        self.checked = True

    def judge(self, path: Path, record: dict, split: str, fold: int, predicted: Sequence) -> dict:
        """Score a run's predictions, and write the results into its record beside them.

        The predictions are on disk before, so that an error in scoring does not cost a training.
        """
        instances = self.splits.read(split, fold)
        gold = [instance.gold for instance in instances]
        record = record | {
            "scores": self.dataset.score(instances, predicted),
            "collapsed": predictions.find_collapse(self.dataset.family, gold, predicted, record["log"]),
        }
        if split == "test":
            record |= self.look_closer(fold, instances, predicted)
        runs.write_run(path, self.dataset.family, instances, predicted, record)
        return record

    def look_closer(self, fold: int, tested: Sequence[Instance], predicted: Sequence) -> dict:
        """Compute what is kept of a test besides its scores, because predictions may be absent where results are.

        The main score without each group of test documents (lib/benchmarks/jackknife.py) and, for entities, F1 of
        those whose name occurs in the whole training set and of the others.
        """
        jackknife_scores = jackknife.leave_documents_out(self.dataset, tested, predicted)
        details = {"jackknife": [round(score, 4) for score in jackknife_scores]}
        if self.dataset.metric in metrics.ENTITIES:
            train_names = seen.find_names(self.dataset.load(self.splits.base, fold))
            scores = seen.score_seen(tested, predicted, train_names)
            details |= {name: round(scores[name], 4) for name in seen.SCORES}
        return details

    def fit(
        self, model: torch.nn.Module, candidate: dict, seed: int, part: tuple[str, int], what: str
    ) -> tuple[int, list[dict]]:
        """Train a model in place on a split of a fold and return the number of steps and the log."""
        sequences = self.splits.encode(*part)
        batches = BucketedBatches(
            sequences,
            self.splits.task(part[1]).collate,
            batch_size=candidate["batch_size"],
            epochs=self.settings.count_epochs(candidate, len(sequences)),
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
            shares=heads.share_rates(model, self.settings.head_rate, self.settings.crf_rate, self.settings.layer_decay),
            rate_of=lambda step: peak * optimizers.slanted_triangle(step, len(batches), warmup),
            seed=seed,
            progress=Progress(f"{self.encoder.title} on {self.dataset.title}, {what}"),
        )
        return len(batches), log

    def start_from_first(self, model: torch.nn.Module) -> str:
        """Load into `model` the weights fine-tuned on the first dataset, trained once for all seeds.

        Returns a description of that training. Raises StudyError if no first dataset was given.
        """
        first = self.first
        if not first:
            raise StudyError(f"the settings fine-tune on {self.settings.first_on} first, and no such dataset was given")
        base = first.base
        first_finetuning = Finetuning(
            self.encoder,
            first.dataset,
            first.settings,
            run_file=self.run_file,
            search_file=self.search_file,
            machine=self.machine,
            base=base,
        )
        candidate = first.settings.candidates()[0]
        fingerprint = provenance.fingerprint(VERSION, self.inputs["first"], self.inputs["model"])
        with artefacts.locked(first.path):
            if read_fingerprint(first.path) != fingerprint:
                transformers.set_seed(first.seed)
                first_model = first_finetuning.build(1)
                first_finetuning.fit(first_model, candidate, first.seed, (base, 1), f"before {self.dataset.title}")
                with artefacts.whole_file(first.path) as temporary:
                    save_model(first_model, str(temporary), metadata={"fingerprint": fingerprint})
        load_model(model, first.path)
        return f"{first.dataset.key}, its {base} split, with " + describe_settings(candidate)


def resolve_settings(settings: FinetuningSettings, candidate: dict) -> dict:
    """Return the settings of one run: the protocol's, with the chosen candidate and the parameters of AdamW."""
    optimizer = settings.optimization().model_dump(include={"optimizer", "betas", "clip"})
    values = settings.model_dump(exclude={*candidate, "runs", "folds", "trials"}) | candidate
    return values | optimizer | {"epsilon": optimizers.EPSILON}


def read_fingerprint(path: Path) -> str | None:
    """Return the fingerprint stored with weights, or None if the file is missing or damaged."""
    try:
        with safe_open(path, "pt") as file:
            return file.metadata()["fingerprint"]
    except (OSError, SafetensorError):
        return None
