"""Fine-tuning of one encoder on one dataset under one paper's protocol, with every seed."""

import json
import statistics
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import torch
import transformers

from lib import artefacts, datasets, metrics, models, optimizers, params, paths, provenance, tagging, training
from lib.errors import StudyError
from lib.progress import Progress


def run(model: str, dataset: str, scale: str, setting: str) -> dict:
    """Choose between the protocol's candidates on the development set, then train and test with every seed.

    `model`: registered key, folder or hub name; `setting`: key of the protocol. Returns the results record, also
    written to outputs/<scale>/results/. Each run's predictions are written as it ends, and a run whose predictions
    are there, made from the same settings, data, weights and code, is not repeated.
    """
    datasets.lookup(dataset)
    encoder = models.find(model, scale)
    protocol = params.load_protocol(setting, scale)
    budget = params.load("scales", scale)
    splits = {split: datasets.load(dataset, split, scale) for split in datasets.SPLITS}
    inputs = {
        "model": encoder.fingerprint,
        "code": provenance.code_fingerprint("finetuning", without="datasets"),
    } | {split: provenance.fingerprint([asdict(instance) for instance in found]) for split, found in splits.items()}
    torch.set_num_threads(budget.threads)
    job = Job(encoder, dataset, scale, setting, protocol, budget, splits, inputs)

    candidates = protocol.candidates()
    tried = []
    if len(candidates) > 1:
        for number, candidate in enumerate(candidates):
            outcome = job.train(candidate, budget.seeds[0], f"try-{number}", "dev", f"candidate {number + 1}")
            tried.append(candidate | {"dev f1": outcome["scores"]["f1"]})
        chosen = candidates[max(range(len(tried)), key=lambda i: tried[i]["dev f1"])]
    else:
        chosen = candidates[0]
    runs = [
        job.train(chosen, seed, str(seed), "test", f"seed {seed} ({i + 1} of {len(budget.seeds)})")
        for i, seed in enumerate(budget.seeds)
    ]
    result = {
        "model": encoder.key,
        "model title": encoder.title,
        "dataset": dataset,
        "setting": setting,
        "scale": scale,
        "metric": datasets.lookup(dataset).metric,
        "chosen on dev": chosen,
        "candidates": tried,
        "runs": runs,
    }
    artefacts.write_json(paths.results(scale, encoder.key, dataset, setting), result)
    return result


class Job:
    """What the runs of one encoder on one dataset share."""

    def __init__(self, encoder, dataset, scale, setting, protocol, budget, splits, inputs):
        self.encoder, self.dataset, self.scale, self.setting = encoder, dataset, scale, setting
        self.protocol, self.budget, self.splits, self.inputs = protocol, budget, splits, inputs
        self.labels = tagging.list_labels(splits["train"])  # of all of it: a budget may train on a part
        splits["train"] = splits["train"][: protocol.train_sentences]
        unseen = sorted({t for s in (*splits["dev"], *splits["test"]) for t in s.tags} - set(self.labels))
        if unseen:
            raise StudyError(f"{dataset}: tags {', '.join(unseen)} of dev or test do not occur in train")
        self.device = training.accelerator(budget.precision)
        self.tokenizer = models.load_tokenizer(encoder)

    def train(self, candidate: dict, seed: int, run_name: str, split: str, what: str) -> dict:
        """Train once and score once on `split`; the run's record, read from its predictions where they exist."""
        settings = self.protocol.model_dump(exclude={"title", "differs", "where", *candidate})
        settings |= candidate | {"seed": seed, "split": split}
        settings |= {"precision": self.budget.precision, "threads": self.budget.threads}
        record = provenance.record(settings, self.inputs)
        path = paths.predictions(self.scale, self.encoder.key, self.dataset, self.setting, run_name)
        existing = read_run(path)
        if existing and existing["fingerprint"] == record["fingerprint"]:
            return existing

        transformers.set_seed(seed)
        model = models.load_tagger(self.encoder, self.labels, self.protocol.dropout)
        check_vocabulary(model, self.tokenizer, self.encoder.title)
        length = tagging.check_length(model, self.protocol.max_length, self.encoder.title)
        padding = self.tokenizer.pad_token_id
        windows = {
            name: tagging.make_windows(self.splits[name], self.labels, self.tokenizer, length)
            for name in ("train", split)
        }
        batches = tagging.TaggingBatches(
            windows["train"], padding, batch_size=candidate["batch_size"], epochs=candidate["epochs"], seed=seed
        )
        log = training.train(
            model,
            batches,
            tagging.tagging_loss,
            device=self.device,
            settings=self.protocol.optimization(),
            rate_of=lambda step: (
                candidate["learning_rate"] * optimizers.slanted_triangle(step, len(batches), self.protocol.warmup)
            ),
            seed=seed,
            progress=Progress(f"{self.encoder.key} on {self.dataset}, {what}"),
        )
        gold = [sentence.tags for sentence in self.splits[split]]
        predicted = tagging.predict(model, windows[split], len(gold), self.labels, padding, self.device)
        sizes = models.count_parameters(model)
        record |= sizes | {
            "seed": seed,
            "scores": metrics.entity_scores(gold, predicted),
            "sentences": {s: len(self.splits[s]) for s in ("train", split)},
            "windows": {s: len(w) for s, w in windows.items()},
            "steps": len(batches),
            "log": log,
            "tokens": log[-1]["tokens"],
            "seconds": round(log[-1]["seconds"]),
            "FLOPs": 6 * sizes["body parameters"] * log[-1]["tokens"],
            "device": training.describe_device(self.device),
        }
        write_predictions(path, gold, predicted, record)
        return record


def check_vocabulary(model, tokenizer, title: str) -> None:
    """StudyError when the tokenizer can name a piece that the model has no embedding for."""
    rows = model.get_input_embeddings().num_embeddings
    if len(tokenizer) > rows:
        raise StudyError(f"{title}: the vocabulary has {len(tokenizer)} pieces, the model only {rows} embeddings")


def write_predictions(path: Path, gold: list[list[str]], predicted: list[list[str]], record: dict) -> None:
    """Gold and predicted tags, a row a sentence, no words; the run's record in the file's metadata."""
    table = pa.table({"gold": gold, "predicted": predicted})
    with artefacts.whole_file(path) as temporary:
        pq.write_table(table.replace_schema_metadata({"record": json.dumps(record)}), temporary)


def read_run(path: Path) -> dict | None:
    """The record of a run, kept in its predictions, or None when there are none."""
    try:
        return json.loads(pq.read_metadata(path).metadata[b"record"])
    except (OSError, pa.ArrowInvalid):
        return None


def tabulate(result: dict) -> list[dict]:
    """The scores of every seed, then mean and standard deviation, as rows."""
    names = ("precision", "recall", "f1")
    rows = [
        {"seed": str(run["seed"])}
        | {name: run["scores"][name] for name in (*names, "gold entities")}
        | {"sentences": run["sentences"]["test"], "windows": run["windows"]["test"], "seconds": run["seconds"]}
        for run in result["runs"]
    ]
    means = {"seed": "mean"} | {name: statistics.mean(row[name] for row in rows) for name in names}
    if len(rows) < 2:
        return [*rows, means]
    return [*rows, means, {"seed": "sd"} | {name: statistics.stdev(row[name] for row in rows) for name in names}]


def describe(result: dict) -> str:
    """What the runs show, in sentences made from their numbers (Markdown)."""
    run = result["runs"][0]
    split = run["windows"]["test"] - run["sentences"]["test"]
    f1 = [r["scores"]["f1"] for r in result["runs"]]
    lines = [
        f"- {result['model title']} on {result['dataset']}: F1 {statistics.mean(f1):.2f} on the test set, "
        f"from {min(f1):.2f} to {max(f1):.2f} over {len(f1)} seeds.",
        f"- {run['scores']['gold entities']} gold entities were scored, all there are; "
        f"{split} more windows than sentences were needed for the length limit.",
        f"- Trained on {run['sentences']['train']} sentences, {run['steps']} steps, with "
        + ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in result["chosen on dev"].items())
        + (f", chosen on the development set among {len(result['candidates'])}." if result["candidates"] else "."),
    ]
    if params.load("scales", result["scale"]).made_up:
        lines.append("- The data are made up: these scores are not findings.")
    return "\n".join(lines)
