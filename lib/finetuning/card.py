"""The model card of a saved fine-tuned model: Markdown, with the front matter that the hub reads."""

import math
import statistics

import yaml

from lib.benchmarks import registry
from lib.benchmarks.datasets import LOWEST
from lib.finetuning.protocol import say_settings
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
    (run,) = (one for one in result["runs"] if one["fingerprint"] == record["fingerprint"])
    about, seeds = record["task"], average_folds(result).values()
    lines = {name: [scores[name] for scores in seeds] for name in run["scores"]}
    dataset = about["dataset"]
    title = f"{facts['encoder']} on {dataset['title']}"
    meta = {
        "language": dataset["language"],
        "library_name": "transformers",
        "pipeline_tag": TASKS.get(dataset["family"], "text-classification"),
        "tags": ["biomedical", dataset["key"]],
        "model-index": [{"name": title, "results": [list_results(record, run, lines, facts)]}],
    }
    if not record["class"]:
        meta["library_name"] = "study"
    if "hub" in facts:
        meta["base_model"] = facts["hub"]
    seed = f"seed {run['seed']}" + (f", fold {run['fold']}" if len({one["fold"] for one in result["runs"]}) > 1 else "")
    seed += f", {say_choice(record, result['main score'])}"
    rows = {name: value for name, value in facts.items() if name != "hub"}
    rows |= {"dataset": f"{dataset['title']} (`{dataset['key']}`)", "saved": seed,
             "settings": say_settings(result["chosen on dev"]) + f", head {about['settings']['head']}",
             "sequences": f"{about['max_length']} tokens at most", "trained on": run["device"],
             "commit": run["commit"], "fingerprint": run["fingerprint"]}  # fmt: skip
    parts = [
        f"---\n{yaml.safe_dump(meta, sort_keys=False, allow_unicode=True)}---",
        f"# {title}",
        DOES[dataset["family"]].format(labels=dataset["labels"]),
        "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]),
        "## Scores",
        say_scores(run, lines),
        "## To open it",
        say_how(record),
    ]
    known = registry.DATASETS.get(dataset["key"])
    return "\n\n".join([*parts, *([RESTRICTED] if known and known.access != "public" else [])]) + "\n"


def say_choice(record: dict, score: str) -> str:
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
    """Return the standard deviation over seeds, NaN for a single seed."""
    return statistics.stdev(values) if len(values) > 1 else math.nan


def say_scores(run: dict, lines: dict[str, list[float]]) -> str:
    """Return a table of test scores: this model's, and the mean and standard deviation over seeds."""
    rows = ["| score | this model | mean over seeds | standard deviation | seeds |", "|---|---|---|---|---|"]
    for name, values in lines.items():
        numbers = run["scores"][name], statistics.fmean(values), deviation(values)
        shown = " | ".join("n/a" if math.isnan(number) else f"{number:.2f}" for number in numbers)
        rows.append(f"| {name} | {shown} | {len(values)} |")
    return "\n".join(["On the test set, which nothing was chosen on.", "", *rows])


def say_how(record: dict) -> str:
    """Return how to load the model, and the format of the texts that it takes."""
    about = record["task"]
    family, settings = about["dataset"]["family"], about["settings"]
    lines = [OWN]
    if record["class"]:
        task = TASKS.get(family, "")
        if task not in ("token-classification", "question-answering"):
            task = "text-classification"
        option = ', aggregation_strategy="first"' if task == "token-classification" else ""
        lines = [f"It is a `{record['class']}` of transformers:", PIPELINE.format(task=task, option=option), BESIDE]
    lines += [LOADER]
    if family == "relations":
        lines += [f"How the text of a relation is written: {MENTIONS[settings['mentions']]}."]
    if about["dataset"]["language"] == "ja":
        lines += ["Texts are cut into words by MeCab with the IPA dictionary, with spaces between them."]
    if settings["scheme"] != "BIO" and family in ("tagging", "pico"):
        lines += [f"Its tags are those of {settings['scheme']}, which pipelines do not join into entities."]
    return "\n\n".join(lines)
