"""The jobs that a command line needs, with all that they depend on; lib/running/stages.py says what each reads."""

import json
from collections.abc import Iterable
from functools import cached_property
from itertools import chain

from lib import provenance
from lib.errors import StudyError, unknown
from lib.running.page_jobs import PAGES, Jobs, each
from lib.running.runnable import Runnable
from lib.running.stages import STAGES
from lib.study import params, paths, published, receipts

ON_GPUS = ("gpu", "paper", "released", "released-quick")  # scales whose jobs request GPUs
KEY = r"[a-z0-9][a-z0-9.]*(?:-[a-z0-9.]+)*"  # `--` joins keys, so a key holds single hyphens only


class Plan:
    """The jobs for the words of a command line. Raises StudyError with the nearest names for an unknown word.

    Words are keys of tables, models, corpora and vocabularies, names or numbers of notebooks, and encoders under
    evaluation; no words stand for the whole study.
    """

    def __init__(self, scale: str, words: Iterable[str] = ()):
        self.scale, self.runnable = scale, Runnable(scale)
        self.study = self.runnable.study
        self.asked: Jobs = {stage: [] for stage in STAGES}
        for jobs in map(self.find, words) if words else [self.whole]:
            for stage, keys in jobs.items():
                self.asked[stage] += keys

    @property
    def whole(self) -> Jobs:
        """The final jobs of the whole study; every other job leads to one of them.

        With made-up data they include page 02, which otherwise needs a user's sentence and encoder. With public weights
        only, they are the pages that show scores.
        """
        budget = self.study.budget
        if budget.weights == "released":
            return {"page": each(["01_results_in_brief", "04_printed_numbers", "33_all_benchmarks"])}
        return {"page": each(PAGES), "explored": each(budget.list_models()[:1] if budget.made_up else [])}

    def find(self, word: str) -> Jobs:
        """Return the jobs that one word stands for, by stage.

        Raises StudyError with the nearest names if there are none, or if public weights or data are missing.
        """
        if (paths.evaluations(self.scale) / f"{word}.json").exists():
            return {"evaluation": [tuple(word.split("--"))]}
        if word in params.keys("tables"):
            notebook = params.load("tables", word).notebook
            return {"page": [(notebook,)]} if notebook in PAGES else {"table": [(word,)]}
        if params.is_model(word):
            pretraining = self.runnable.pretrain_jobs(word)
            jobs = {"pretrain": pretraining} if pretraining else self.finetuned(word)
        else:
            jobs = {}
            if word in params.keys("corpora"):
                jobs["corpus"] = [(word,)]
            if word in params.keys("vocabularies") and not params.load("vocabularies", word).file:
                jobs["vocabulary"] = [(word,)]  # a published one is not trained
            for stage, keys in self.whole_jobs.items():
                for job in keys:
                    notebook = self.notebook(stage, *job)
                    if word in (notebook, notebook[:2]):
                        jobs.setdefault(stage, []).append(job)
        if not jobs:
            raise unknown("target", word, chain(*list_targets(self.scale).values()))
        return jobs

    def finetuned(self, model: str) -> Jobs:
        """Return the jobs of a model with public weights. Raises StudyError if it has none, or no data to be run on."""
        if finetuning := [job for job in self.runnable.planned if job[0] == model]:
            return {"finetune": finetuning}
        why_not = params.why_no_weights(model, self.scale) or "no data for its runs are at hand: see ./run_all.sh data"
        raise StudyError(f"model '{model}' cannot be run at scale '{self.scale}': {why_not}")

    @cached_property
    def whole_jobs(self) -> Jobs:
        """All jobs of the whole study, whatever was requested; notebook names are looked up in them."""
        return Plan(self.scale).jobs

    @cached_property
    def jobs(self) -> Jobs:
        """Every requested job and every job that it depends on, once each, by stage.

        Jobs on the way are listed too, because a table can exist although a job behind it failed.
        """
        all_jobs: Jobs = {stage: [] for stage in STAGES}

        def add(jobs: Jobs) -> None:
            for stage, keys in jobs.items():
                for job in keys:
                    if job not in all_jobs[stage]:
                        all_jobs[stage].append(job)
                        add(self.reads(stage, *job))

        add(self.asked)
        return all_jobs

    def reads(self, stage: str, *keys: str) -> Jobs:
        """Return the jobs that a job reads, by stage."""
        return STAGES[stage].reads(self.runnable, *keys)

    def notebook(self, stage: str, *keys: str) -> str:
        """Return the notebook that does a job, or an empty string if there is none."""
        return STAGES[stage].notebook(*keys)

    def state(self, stage: str, *keys: str) -> dict:
        """Return what reruns a job when it changes, besides the jobs that it reads: settings or fingerprints by name.

        Names are sorted, so that reordering YAML reruns nothing.
        """
        notebook = self.notebook(stage, *keys)
        code = {"cells": provenance.code_fingerprint(paths.NOTEBOOKS / f"{notebook}.ipynb")} if notebook else {}
        settings = STAGES[stage].state(self.runnable, *keys)
        settings = settings if isinstance(settings, dict) else {"settings": provenance.fingerprint(settings)}
        return json.loads(provenance.to_json(code | settings))

    def changes(self, stage: str, keys: Iterable[str]) -> list[tuple[str, str, str]]:
        """List the changes that would rerun a job: setting, old value and new value.

        Empty if the job has not run, or ran before settings were kept.
        """
        recorded = receipts.read_job_settings(receipts.name(self.scale, stage, keys))
        if recorded is None:
            return []
        old_settings = dict(params.flatten_settings("", recorded))
        new_settings = dict(params.flatten_settings("", self.state(stage, *keys)))
        differences = []
        for name in old_settings | new_settings:
            old, new = old_settings.get(name, "none"), new_settings.get(name, "none")
            if old != new:
                differences.append((name.removeprefix(", "), old, new))
        return differences

    def table_key(self, table: str) -> str:
        """Return the `table` parameter for a notebook of several tables; empty for a notebook of one table."""
        notebooks = [table.notebook for table in params.load_tables().values()]
        return f"table={table}" if notebooks.count(params.load("tables", table).notebook) > 1 else ""

    def datasets_of(self, table: str) -> dict[str, str]:
        """Return the datasets that a table shows at this scale, each with why it is left out, empty if it is not."""
        settings, budget = params.load("tables", table), self.study.budget
        if settings.kind in ("counts", "lengths"):
            return {dataset: self.study.why_missing(dataset) for dataset in settings.rows.values()}
        reasons = {}
        for line in published.list_lines(self.study, table) if settings.kind in ("scores", "curves") else []:
            model, dataset, protocol = line["model"], line["dataset"], line["protocol"]
            if not model or not dataset or budget.datasets is not None and dataset not in budget.datasets:
                continue
            if published.why_not_planned(self.study, model, [dataset], protocol):
                continue
            reasons[dataset] = reasons.get(dataset) or published.why_not_run(self.study, model, dataset, protocol)
            if first := self.study.protocol(protocol, dataset).first_on:
                reasons.setdefault(first, "")  # its reason is given for the dataset that is trained on next
        return reasons


def list_targets(scale: str) -> dict[str, list[str]]:
    """List the valid target names, by kind."""
    plan = Plan(scale)
    notebooks = set()
    for stage, keys in plan.jobs.items():
        notebooks |= {plan.notebook(stage, *job) for job in keys}
    registered = {kind: params.keys(kind) for kind in ("tables", "models", "corpora")}
    trained = [key for key in params.keys("vocabularies") if not params.load("vocabularies", key).file]
    return {"notebooks": sorted(filter(None, notebooks)), **registered, "vocabularies": trained, "other": ["report"]}
