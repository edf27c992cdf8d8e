"""Fine-tuning of one encoder on one dataset under one paper's protocol, with every seed."""

import copy
import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
import transformers
from accelerate import Accelerator
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from lib import artefacts, provenance
from lib.benchmarks import datasets, questions
from lib.benchmarks.instances import Instance
from lib.errors import StudyError
from lib.finetuning import sequences, spans, tagging, tuning
from lib.finetuning.examples import BucketedBatches, Example, cut_evenly
from lib.finetuning.settings import Finetuning
from lib.modeling import loading, models
from lib.progress import Progress
from lib.study import open_study, params, paths, results
from lib.training import optimizers, training

FORMS = {
    "tagging": tagging.Tagging, "pico": tagging.Tagging, "relations": sequences.Sequences,
    "similarity": sequences.Sequences, "inference": sequences.Sequences, "documents": sequences.Sequences,
    "answers": sequences.Sequences, "ranking": sequences.Sequences, "questions": spans.Spans,
}  # fmt: skip
VERSION = 1  # raised when the same settings, examples and weights give other scores: rows, heads, the loop, metrics
HELD_OUT = 0.1  # of a training set, to choose settings on where there is no development set
LOWEST = -100.0  # below every score: stands for one that is undefined
FALLEN = 0.95  # a loss whose last tenth is more than this share of its beginning has not fallen
WORDS = ("tagging", "pico")  # families whose predictions are tags of words
Form = tagging.Tagging | sequences.Sequences | spans.Spans


def run(model: str, dataset: str, scale: str, setting: str) -> dict:
    """Choose between the protocol's candidates on the development set, then train and test with every seed and fold.

    `model`: registered key, folder or hub name; `setting`: key of the protocol. Returns the results record, also
    written to outputs/<scale>/results/. Each run's predictions are written as it ends, and a run whose predictions
    are there, made from the same settings, data, weights and code, is not repeated. The test set is read after the
    choice; each run's `reads` says which splits had been read, in order, when its predictions were written.
    """
    study = open_study(scale)
    row = study.dataset(dataset)
    checkpoint = models.find(model, scale)
    settings = study.protocol(setting, dataset)
    torch.set_num_threads(study.budget.threads)
    seeds = study.budget.seeds[: settings.runs]
    folds = range(1, min(row.folds, settings.folds or row.folds) + 1)
    job = Job(checkpoint, row, scale, setting, settings)
    chosen, tried = job.choose(seeds[0])
    runs = []
    for seed in seeds:
        for fold in folds:
            name = f"{seed}.{fold}" if row.folds > 1 else str(seed)
            what = f"seed {seed}" + (f", fold {fold} of {row.folds}" if row.folds > 1 else "")
            runs.append(job.train(chosen, seed, fold, name, "test", what))
    result = {
        "model": checkpoint.key,
        "model title": checkpoint.title,
        "dataset": dataset,
        "setting": setting,
        "scale": scale,
        "metric": row.metric,
        "main score": row.main_score,
        "chosen on dev": chosen,
        "candidates": tried,
        "runs": runs,
    }
    artefacts.write_json(paths.results(scale, checkpoint.key, dataset, setting), result)
    return result


@dataclass(frozen=True)
class Fitted:
    """What came of a training, and of what: candidate, seed and data."""

    made_from: tuple
    weights: dict[str, torch.Tensor]
    steps: int
    log: list[dict]


class Job:
    """What the runs of one encoder on one dataset share: instances, rows of pieces, the tokenizer, the device.

    Each split is read and cut into pieces once, for all seeds and candidates. `base`: the split that is trained on.
    """

    def __init__(
        self,
        checkpoint: models.Checkpoint,
        row: datasets.Dataset,
        scale: str,
        setting: str,
        settings: Finetuning,
        base: str = "train",
    ):
        self.checkpoint, self.row, self.scale, self.setting = checkpoint, row, scale, setting
        self.settings, self.base, self.budget = settings, base, params.load("scales", scale)
        self.reads: list[str] = []
        self.instances: dict[tuple[str, int], list[Instance]] = {}
        self.rows: dict[tuple[str, int], list[Example]] = {}
        self.cut: dict[tuple[str, int], int] = {}
        self.forms: dict[int, Form] = {}
        self.last: Fitted | None = None  # of the candidate tried last
        self.best: Fitted | None = None  # of the best candidate so far, which one of the runs would train again
        self.highest = -math.inf

    @cached_property
    def device(self) -> Accelerator:
        return training.accelerator(self.budget.precision)

    @cached_property
    def encoder(self) -> loading.Encoder:
        """Loaded when a run first needs it, and not for results that are there."""
        return self.checkpoint.load()

    @cached_property
    def inputs(self) -> dict[str, str]:
        """Fingerprints of all that a run depends on besides its settings; of the data, of the files, unread."""
        return self.row.fingerprints() | {"model": self.checkpoint.fingerprint or self.encoder.fingerprint}

    def read(self, split: str, fold: int) -> list[Instance]:
        """The instances of a split. `rest` and `held out` are parts of the training set, where no other is for dev."""
        key = (split, fold)
        if key not in self.instances:
            if split in ("rest", "held out"):
                self.instances["rest", fold], self.instances["held out", fold] = hold_out(self.read(self.base, fold))
            else:
                found = self.row.load(split, fold)
                self.reads.append(split if self.row.folds == 1 else f"{split} {fold}")
                if split == self.base:
                    if self.row.family == "questions":  # the others cannot be learnt (Lee et al. 2020, section 3.3)
                        found = questions.answerable(found)
                    found = found[: self.settings.train_instances]
                self.instances[key] = found
        return self.instances[key]

    def form(self, fold: int) -> Form:
        """The dataset's form, which knows the labels of the training set."""
        if fold not in self.forms:
            tokenizer = copy.deepcopy(self.encoder.tokenizer)  # a form may add markers to it
            length = self.encoder.length(self.settings.max_length)
            train = self.read(self.base, fold)
            self.forms[fold] = FORMS[self.row.family](self.row, self.settings, tokenizer, train, length)
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
        return form.build(self.encoder.body(self.settings.dropout), self.read(self.base, fold))

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
        main = f"dev {self.row.main_score}"
        return {name: best[name] for name in candidates[0]}, [
            {name: value for name, value in one.items() if name != "score"} | {main: one["score"]} for one in tried
        ]

    def try_out(self, candidate: dict, seed: int) -> float:
        """A candidate's score on the development set, LOWEST where it is undefined; the best one's weights stay."""
        split = "dev" if "dev" in self.row.files else "held out"
        words = [f"{name.replace('_', '-')}-{value}" for name, value in candidate.items()]
        self.last = None
        run = self.train(candidate, seed, 1, ".".join(["try", *words]), split, say_settings(candidate))
        score = run["scores"][self.row.main_score]
        score = LOWEST if math.isnan(score) else score
        if self.last and score > self.highest:
            self.highest, self.best = score, self.last
        return score

    def search(self, seed: int) -> list[dict]:
        """The trials of Optuna, the best first."""
        space = {name: getattr(self.settings, name) for name in ("epochs", "batch_size", "learning_rate")}
        place = self.where_searched(seed)
        return tuning.search(space, lambda point: self.try_out(point, seed), self.settings.trials, *place, seed)

    def where_searched(self, seed: int) -> tuple[Path, str]:
        """The file with Optuna's studies, and the name of this one, which settings, data and versions decide."""
        state = provenance.fingerprint(
            VERSION, self.settings.model_dump(exclude={"trials", "runs", "folds"}), self.inputs, seed
        )
        return paths.tuning(self.scale, self.checkpoint.key, self.row.key, self.setting), state

    def train(self, candidate: dict, seed: int, fold: int, name: str, split: str, what: str) -> dict:
        """Train once and score once on `split`; the run's record, read from its predictions where they exist."""
        machine = {"precision": training.resolve(self.budget.precision), "threads": self.budget.threads}
        place = {"seed": seed, "fold": fold, "split": split}
        record = provenance.record(
            "fine-tuning", VERSION, resolve_settings(self.settings, candidate) | place | machine, self.inputs
        )
        path = paths.predictions(self.scale, self.checkpoint.key, self.row.key, self.setting, name)
        existing = read_run(path)
        if existing and existing["fingerprint"] == record["fingerprint"]:
            return existing

        part = ("rest" if split == "held out" else self.base, fold)
        made_from = (*candidate.items(), seed, *part)
        transformers.set_seed(seed)
        model = self.build(fold)
        before = self.start_from(self.settings.first_on, model) if self.settings.first_on else ""
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
            "scores": self.row.score(tested, predicted),
            "collapsed": find_collapse(self.row.family, predicted, log),
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
        write_predictions(path, self.row.family, tested, predicted, record)
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
            progress=Progress(f"{self.checkpoint.key} on {self.row.key}, {what}"),
        )
        return len(batches), log

    def start_from(self, key: str, model: torch.nn.Module) -> str:
        """Give `model` the weights that it has after another dataset, trained once for all seeds; says on what.

        On the other set's training split, or on its development split where only that is at hand.
        """
        study = open_study(self.scale)
        row, settings = study.dataset(key), study.protocol(self.setting, key)
        base = next(iter(row.splits), "train")
        other = Job(self.checkpoint, row, self.scale, self.setting, settings, base)
        candidate, seed = settings.candidates()[0], self.budget.seeds[0]
        path = paths.intermediate(self.scale, self.checkpoint.key, key, self.setting)
        fingerprint = provenance.fingerprint(VERSION, settings.model_dump(), candidate, seed, base, other.inputs)
        with artefacts.locked(path):
            if read_fingerprint(path) != fingerprint:
                transformers.set_seed(seed)
                first = other.build(1)
                other.fit(first, candidate, seed, (base, 1), f"before {self.row.key}")
                with artefacts.whole_file(path) as temporary:
                    save_file(first.state_dict(), temporary, metadata={"fingerprint": fingerprint})
        model.load_state_dict(load_file(path))
        return f"{key}, its {base} split, with " + say_settings(candidate)


def tune(model: str, dataset: str, scale: str, setting: str) -> dict:
    """Search the settings of a protocol that has `trials`; the record, also written to outputs/<scale>/tuning/.

    Several workers may call this at once for one model and dataset, and share the trials. StudyError for a protocol
    that searches nothing.
    """
    study = open_study(scale)
    settings = study.protocol(setting, dataset)
    if not settings.trials:
        raise StudyError(f"params/protocols/{setting}.yaml has no trials: it tries all of its candidates")
    seed = study.budget.seeds[0]
    torch.set_num_threads(study.budget.threads)
    job = Job(models.find(model, scale), study.dataset(dataset), scale, setting, settings)
    chosen, trials = job.choose(seed)
    path, name = job.where_searched(seed)
    record = {
        "model": job.checkpoint.key, "dataset": dataset, "setting": setting, "scale": scale, "seed": seed,
        "score": f"dev {job.row.main_score}", "chosen on dev": chosen, "trials": trials,
        "shares of variance": tuning.weigh(tuning.load(path, name)), "commit": provenance.commit(),
    }  # fmt: skip
    artefacts.write_json(path.with_suffix(".json"), record)
    return record


def resolve_settings(settings: Finetuning, candidate: dict) -> dict:
    """The settings of one run: of a protocol, what was chosen of it, and what AdamW computes with."""
    optimizer = settings.optimization().model_dump(include={"optimizer", "betas", "clip"})
    return (
        settings.model_dump(exclude={*candidate, "runs", "folds", "trials"})
        | candidate
        | optimizer
        | {"epsilon": optimizers.EPSILON}
    )


def hold_out(instances: list[Instance]) -> tuple[list[Instance], list[Instance]]:
    """A training set without a tenth of it, and that tenth; the same for every model."""
    order = np.random.default_rng(0).permutation(len(instances)).tolist()
    held = set(order[: max(1, round(HELD_OUT * len(instances)))])
    parts = ([], [])
    for number, instance in enumerate(instances):
        parts[number in held].append(instance)
    return parts


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


def write_predictions(
    path: Path, family: str, instances: Sequence[Instance], predicted: Sequence, record: dict
) -> None:
    """Gold and predicted, a row an instance in the order of its files; the run's record in the file's metadata.

    Tags, labels, numbers, and for answers the passage and characters: never a text of the dataset. Gold answers are
    texts, and stay in their dataset.
    """
    columns = {"predicted": [[one._asdict() for one in ranked] for ranked in predicted] if family == "questions"
               else [list(one) if isinstance(one, tuple) else one for one in predicted]}  # fmt: skip
    if family != "questions":
        gold = [instance.gold for instance in instances]
        columns["gold"] = [list(one) if isinstance(one, tuple) else one for one in gold]
    table = pa.table(columns)
    with artefacts.whole_file(path) as temporary:
        pq.write_table(table.replace_schema_metadata({"record": json.dumps(record)}), temporary)


def read_run(path: Path) -> dict | None:
    """The record of a run, kept in its predictions, or None when there are none."""
    try:
        return json.loads(pq.read_metadata(path).metadata[b"record"])
    except (OSError, pa.ArrowInvalid):
        return None


def read_fingerprint(path: Path) -> str | None:
    """The fingerprint kept with weights, or None where there are none, or damaged ones."""
    try:
        with safe_open(path, "pt") as file:
            return file.metadata()["fingerprint"]
    except (OSError, SafetensorError):
        return None


def tabulate(result: dict) -> list[dict]:
    """The scores of every run, then mean and standard deviation over seeds, with and without collapsed runs."""
    rows = [
        {"seed": str(run["seed"])}
        | ({"fold": str(run["fold"])} if any(run["fold"] > 1 for run in result["runs"]) else {})
        | run["scores"]
        | {"instances": run["instances"]["test"], "rows": run["rows"]["test"], "cut": run["cut"]["test"]}
        | {"seconds": run["seconds"], "collapsed": run["collapsed"]}
        for run in result["runs"]
    ]
    sound = result | {"runs": [run for run in result["runs"] if not run["collapsed"]]}
    kinds = {"": result} | ({" of runs that did not collapse": sound} if len(sound["runs"]) < len(rows) else {})
    for kind, some in kinds.items():
        found = list(results.by_seed(some).values())
        if found:
            rows.append({"seed": f"mean{kind}"} | {n: statistics.mean(s[n] for s in found) for n in found[0]})
        if len(found) > 1:
            rows.append({"seed": f"sd{kind}"} | {n: statistics.stdev(s[n] for s in found) for n in found[0]})
    return rows


def say_settings(candidate: dict) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in candidate.items())


def describe(result: dict) -> str:
    """What the runs show, in sentences made from their numbers (Markdown)."""
    run, main = result["runs"][0], result["main score"]
    scores = [found[main] for found in results.by_seed(result).values()]
    base = next(name for name in run["instances"] if name != "test")
    collapsed = sum(bool(run["collapsed"]) for run in result["runs"])
    lines = [
        f"- {result['model title']} on {result['dataset']}: {main} {statistics.mean(scores):.2f} on the test set, "
        f"from {min(scores):.2f} to {max(scores):.2f} over {len(scores)} seeds.",
        f"- Trained on {run['instances'][base]} instances in {run['rows'][base]} rows, {run['steps']} steps, with "
        + say_settings(result["chosen on dev"])
        + (f", chosen on the development set among {len(result['candidates'])}." if result["candidates"] else "."),
        f"- All {run['instances']['test']} test instances are scored, in {run['rows']['test']} rows; "
        f"{run['cut']['test']} had to lose some of their text to the length limit.",
        f"- {collapsed} of {len(result['runs'])} runs collapsed.",
        f"- The splits were read in this order: {', '.join(run['reads'])}.",
    ]
    if any("trial" in one for one in result["candidates"]):
        lines.append("- The candidates were proposed by Optuna (notebook 29).")
    if run["first on"]:
        lines.append(f"- Trained first on {run['first on']}.")
    if params.load("scales", result["scale"]).made_up:
        lines.append("- The data are made up: these scores are not findings.")
    return "\n".join(lines)


def describe_search(record: dict) -> str:
    """What a search found, in sentences made from its numbers (Markdown)."""
    found = [trial[record["score"]] for trial in record["trials"]]
    shares = sorted(record["shares of variance"].items(), key=lambda item: -item[1])
    lines = [
        f"- The best of {len(found)} trials has {record['score']} {max(found):.2f}, the worst {min(found):.2f}, with "
        f"{say_settings(record['chosen on dev'])}."
    ]
    if shares:
        lines.append(f"- Most of the difference is due to the {shares[0][0].replace('_', ' ')} ({shares[0][1]:.0%}).")
    if params.load("scales", record["scale"]).made_up:
        lines.append("- The data are made up: these scores are not findings.")
    return "\n".join(lines)
