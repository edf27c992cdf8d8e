"""The model card of a saved fine-tuned model: Markdown, with the front matter that the hub reads."""

import math
import statistics

import yaml

from lib.benchmarks import registry
from lib.benchmarks.datasets import LOWEST
from lib.finetuning.protocol import describe_settings
from lib.finetuning.runs import average_folds

TASKS = {  # family -> the hub's name for the task
    "tagging": "token-classification", "pico": "token-classification", "questions": "question-answering",
    "similarity": "sentence-similarity", "ranking": "text-ranking",
}  # fmt: skip
DOES = {
    "tagging": "Finds {labels} in text.",
    "pico": "Finds {labels} in abstracts of trials.",
    "relations": "Says of two entities of a sentence: {labels}.",
    "similarity": "Says how similar two sentences are, {labels}.",
    "inference": "Says of two sentences: {labels}.",
    "documents": "Labels texts: {labels}.",
    "answers": "Answers a question about a text: {labels}.",
    "ranking": "Says {labels} a question.",
    "questions": "Finds the answer of a question in a text.",
}
MENTIONS = {  # value of `mentions` -> how a relation's text is written
    "dummies": "a dummy such as `@GENE$` for each of the two mentions",
    "markers": "`[E1] ` and ` [/E1]` around the first mention, `[E2] ` and ` [/E2]` around the second",
    "original": "as it is",
}
OWN = "transformers has no class that predicts the same; the study's own code opens it:"
BESIDE = "The study's own code, with the task:"
PIPELINE = """\
```python
from transformers import pipeline

model = pipeline("{task}", "FOLDER"{option})
```"""
LOADER = """\
```python
from lib.finetuning import saved

model = saved.load_saved("FOLDER")  # model.predict(instances)
```"""
RESTRICTED = ("> The data stand behind a registration or an agreement. What it says of models made from them holds for "
              "this one.")  # fmt: skip


def write_tuned_card(record: dict, result: dict, facts: dict[str, str]) -> str:
    """Return the card of a saved model.

    `record`: from lib/finetuning/saved.py; `result`: from Finetuning.run; `facts`: encoder (its title), revision (its
    commit on the hub or the fingerprint of its files), and protocol, scale and more if they are known.
    """
    (saved_run,) = (run for run in result["runs"] if run["fingerprint"] == record["fingerprint"])
    task, seeds = record["task"], average_folds(result).values()
    seed_scores = {name: [scores[name] for scores in seeds] for name in saved_run["scores"]}
    dataset = task["dataset"]
    title = f"{facts['encoder']} on {dataset['title']}"
    meta = {
        "language": dataset["language"],
        "library_name": "transformers" if record["class"] else "study",
        "pipeline_tag": TASKS.get(dataset["family"], "text-classification"),
        "tags": ["biomedical", dataset["key"]],
        "model-index": [{"name": title, "results": [list_results(record, saved_run, seed_scores, facts)]}],
    }
    if "hub" in facts:
        meta["base_model"] = facts["hub"]
    origin = f"seed {saved_run['seed']}" + (
        f", fold {saved_run['fold']}" if len({run["fold"] for run in result["runs"]}) > 1 else ""
    )
    origin += f", {describe_choice(record, result['main score'])}"
    rows = {name: value for name, value in facts.items() if name != "hub"}
    rows |= {"dataset": f"{dataset['title']} (`{dataset['key']}`)", "saved": origin,
             "settings": describe_settings(result["chosen on dev"]) + f", head {task['settings']['head']}",
             "sequences": f"{task['max_length']} tokens at most", "trained on": saved_run["device"],
             "commit": saved_run["commit"], "fingerprint": saved_run["fingerprint"]}  # fmt: skip
    parts = [
        f"---\n{yaml.safe_dump(meta, sort_keys=False, allow_unicode=True)}---",
        f"# {title}",
        DOES[dataset["family"]].format(labels=dataset["labels"]),
        "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]),
        "## Scores",
        describe_scores(saved_run, seed_scores),
        "## To open it",
        describe_loading(record),
    ]
    entry = registry.DATASETS.get(dataset["key"])
    return "\n\n".join([*parts, *([RESTRICTED] if entry and entry.access != "public" else [])]) + "\n"


def describe_choice(record: dict, score: str) -> str:
    """Return why this run's model was saved."""
    if record["dev"] is None:
        return "the first: there is no development set to choose on"
    dev = "undefined" if record["dev"] == LOWEST else f"{record['dev']:.2f}"
    if len(record["compared"]) == 1:
        return f"the only run ({score} {dev} on the development set)"
    return f"the best of {len(record['compared'])} on the development set ({score} {dev})"


def list_results(record: dict, run: dict, lines: dict[str, list[float]], facts: dict[str, str]) -> dict:
    """Return an entry of the front matter's `model-index`; undefined scores are left out."""
    dataset, settings = record["task"]["dataset"], record["task"]["settings"]
    metrics = [
        {"type": name, "value": round(run["scores"][name], 2), "name": name,
         "args": {"mean": round_score(statistics.fmean(values)), "standard deviation": round_score(deviation(values)),
                  "seeds": len(values)}}
        for name, values in lines.items() if not math.isnan(run["scores"][name])
    ]  # fmt: skip
    files = {name: value for name, value in run["inputs"].items() if name not in ("model", "first")}
    return {
        "task": {"type": TASKS.get(dataset["family"], "text-classification"), "name": dataset["labels"]},
        "dataset": {"name": dataset["title"], "type": dataset["key"], "split": "test",
                    "revision": files.get("test 1", ""),
                    "args": {"files": files, "protocol": facts.get("protocol", ""), "settings": settings}},
        "metrics": metrics,
    }  # fmt: skip


def round_score(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 2)


def deviation(values: list[float]) -> float:
    """Return the standard deviation over seeds, NaN for a single seed or if a score is undefined."""
    return math.nan if len(values) < 2 or any(map(math.isnan, values)) else statistics.stdev(values)


def describe_scores(run: dict, lines: dict[str, list[float]]) -> str:
    """Return a table of test scores: this model's, and the mean and standard deviation over seeds."""
    rows = ["| score | this model | mean over seeds | standard deviation | seeds |", "|---|---|---|---|---|"]
    for name, values in lines.items():
        numbers = run["scores"][name], statistics.fmean(values), deviation(values)
        cells = " | ".join("n/a" if math.isnan(number) else f"{number:.2f}" for number in numbers)
        rows.append(f"| {name} | {cells} | {len(values)} |")
    return "\n".join(["On the test set, which nothing was chosen on.", "", *rows])


def describe_loading(record: dict) -> str:
    """Return how to load the model, and the format of the texts that it takes."""
    task = record["task"]
    family, settings = task["dataset"]["family"], task["settings"]
    parts = [OWN]
    if record["class"]:
        hub_task = TASKS.get(family, "")
        if hub_task not in ("token-classification", "question-answering"):
            hub_task = "text-classification"
        option = ', aggregation_strategy="first"' if hub_task == "token-classification" else ""
        parts = [f"It is a `{record['class']}` of transformers:", PIPELINE.format(task=hub_task, option=option), BESIDE]
    parts += [LOADER]
    if family == "relations":
        parts += [f"How the text of a relation is written: {MENTIONS[settings['mentions']]}."]
    if task["dataset"]["language"] == "ja":
        parts += ["Texts are cut into words by MeCab with the IPA dictionary, with spaces between them."]
    if settings["scheme"] != "BIO" and family in ("tagging", "pico"):
        parts += [f"Its tags are those of {settings['scheme']}, which pipelines do not join into entities."]
    return "\n\n".join(parts)
