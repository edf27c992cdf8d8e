"""The jobs that a command line needs, and the jobs that each job reads. The Snakefile says how each is run."""

import json
from collections.abc import Iterable
from functools import cached_property
from itertools import chain

from lib import provenance
from lib.errors import StudyError, unknown
from lib.study import (
    claims,
    contrasts,
    open_study,
    own_sets,
    params,
    paths,
    published,
    receipts,
    requests,
    state,
    vocabularies,
)
from lib.study.page_jobs import BASELINE_PAGE, PAGES, Jobs, Keys, each

ON_GPUS = ("gpu", "paper", "released", "released-quick")  # scales whose jobs request GPUs
KEY = r"[a-z0-9][a-z0-9.]*(?:-[a-z0-9.]+)*"  # `--` joins keys, so a key holds single hyphens only
STAGES = (*state.STAGES, "page")
NOTEBOOKS = {  # stage -> the notebook that does its jobs; for tables, pages and fine-tuning the keys decide
    "corpus": "10_corpora",
    "vocabulary": "20_vocabularies",
    "pretrain": "23_pretrain",
    "tuning": "32_tuning",
    "evaluation": "02_evaluate",
    "explored": "02_explore_an_encoder",
}
FINETUNING = {  # family -> the notebook that fine-tunes
    **dict.fromkeys(("tagging", "pico"), "30_finetune_words"),
    **dict.fromkeys(("relations", "similarity", "documents", "inference", "answers", "ranking"), "31_finetune_texts"),
    "questions": "32_finetune_answers",
}
BASELINE = "15_japanese_baselines"


class Plan:
    """The jobs for the words of a command line. Raises StudyError with the nearest names for an unknown word.

    Words are keys of tables, models, corpora and vocabularies, names or numbers of notebooks, and encoders under
    evaluation; no words stand for the whole study.
    """

    def __init__(self, scale: str, words: Iterable[str] = ()):
        self.scale, self.study = scale, open_study(scale)
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
            jobs = {"pretrain": pretraining} if (pretraining := self.registered(word)) else self.finetuned(word)
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
        if finetuning := [job for job in self.planned if job[0] == model]:
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
        match stage, *keys:
            case "documents", *_:
                return {"texts": [("all",)]}
            case "corpus", corpus:
                return {"documents": self.study.corpus(corpus).files}
            case "vocabulary", vocabulary:
                return {"corpus": each(params.load("vocabularies", vocabulary).corpora)}
            case "pretrain", model:
                settings = params.load("models", model)
                return {
                    "corpus": each(settings.corpora),
                    "vocabulary": self.trained([settings.vocabulary]),
                    "pretrain": self.registered(settings.initial or ""),
                }
            case "tuning", model, *_:
                return {"pretrain": self.registered(model)}
            case "finetune", model, protocol, family:
                if model in params.BASELINES:  # their word vectors are trained on it
                    return {"corpus": [("ja-clinical",)]}
                runs = self.runs_in(model, protocol, family)
                tuned_runs = [run for run in runs if self.study.protocol(protocol, run[1]).trials]
                return {"pretrain": self.registered(model), "tuning": tuned_runs}
            case "table", table:
                runs = self.runs_of_tables.get(table)  # None: a table without scores, so without baselines
                return {} if runs is None else {"finetune": self.jobs_of(runs), "page": [(BASELINE_PAGE,)]}
            case "page", page:
                return self.read_by_page(page)
            case "explored", model:
                common = vocabularies.choose_common(self.study)
                return {
                    "pretrain": self.registered(model),
                    "vocabulary": self.trained(vocabulary.key for vocabulary in common),
                }
            case "evaluation", model, protocol:
                return {"finetune": self.evaluated(model, protocol)}
        return {}

    def read_by_page(self, page: str) -> Jobs:
        """Return the jobs that a page without a key reads, by stage."""
        jobs = {}
        for kind, keys in PAGES[page].reads(self.study).items():
            match kind:
                case "runs":
                    jobs["finetune"] = self.jobs_of(keys)
                case "vocabularies":
                    jobs["vocabulary"] = self.trained(key for (key,) in keys)
                case stage:
                    jobs[stage] = keys
        return jobs

    def notebook(self, stage: str, *keys: str) -> str:
        """Return the notebook that does a job, or an empty string if there is none."""
        match stage:
            case "page":
                return keys[0]
            case "table":
                return params.load("tables", *keys).notebook
            case "finetune":
                model, _, family = keys
                return BASELINE if model in params.BASELINES else FINETUNING[family]
        return NOTEBOOKS.get(stage, "")

    def state(self, stage: str, *keys: str) -> dict:
        """Return what reruns a job when it changes, besides the jobs that it reads: settings or fingerprints by name.

        Names are sorted, so that reordering YAML reruns nothing.
        """
        notebook = self.notebook(stage, *keys)
        code = {"cells": provenance.code_fingerprint(paths.NOTEBOOKS / f"{notebook}.ipynb")} if notebook else {}
        if stage == "page":
            settings = PAGES[notebook].watches(self.study)
        else:
            settings = state.STAGES[stage](self.study, *(self.runs_in(*keys) if stage == "finetune" else keys))
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

    def trained(self, names: Iterable[str]) -> Keys:
        """Return those of the named vocabularies that are, and can be, trained here."""
        candidates = map(self.study.vocabulary, names)
        return each(
            vocabulary.key
            for vocabulary in candidates
            if vocabulary.corpora and not vocabulary.why_not_trained and not vocabulary.released
        )

    def registered(self, model: str) -> Keys:
        """Return a model's pretraining job; empty for external encoders, baselines and public weights."""
        return [(model,)] if params.is_model(model) and not params.is_released(model, self.scale) else []

    @cached_property
    def runs_of_tables(self) -> dict[str, list[params.RunKey]]:
        return {key: published.list_table_runs(self.study, key) for key in params.load_tables("scores", "curves")}

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

    @cached_property
    def planned(self) -> dict[tuple[str, ...], list[params.RunKey]]:
        """Every run of the study that can be made here, by its job: model, protocol and task family.

        A job makes all of its runs, whatever the command line asks for, so that its page stays the same.
        """
        runs = [*chain(*self.runs_of_tables.values()), *self.study.budget.panel_runs()]
        runs += [*claims.list_claim_runs(self.study), *contrasts.list_contrast_runs(self.study)]
        by_job = {}
        for run in dict.fromkeys(runs):
            if not self.study.why_not(run[1], run[2]) and not params.why_no_weights(run[0], self.scale):
                by_job.setdefault(self.name_job(run), []).append(run)
        return by_job

    def name_job(self, run: params.RunKey) -> tuple[str, str, str]:
        """Return the job that makes a run: model, protocol and task family."""
        model, dataset, protocol = run
        return model, protocol, self.study.dataset(dataset).family

    def runs_in(self, model: str, protocol: str, family: str) -> list[params.RunKey]:
        """List the runs of a job: the planned ones, and those requested for an encoder under evaluation."""
        job = model, protocol, family
        requested = [run for run in self.requested(model, protocol) if self.name_job(run) == job]
        return list(dict.fromkeys(self.planned.get(job, []) + requested))

    def requested(self, model: str, protocol: str) -> list[params.RunKey]:
        """List the runs requested for an encoder under evaluation that can be made.

        An earlier request may name a user's folder that has changed since; what else is asked for still runs.
        """
        datasets = requests.find_request(self.scale, model, protocol)["datasets"]
        datasets = [dataset for dataset in datasets if not own_sets.has_changed(self.scale, dataset)]
        return [(model, dataset, protocol) for dataset in datasets if not self.study.why_missing(dataset, protocol)]

    def jobs_of(self, runs: Iterable[params.RunKey]) -> Keys:
        """List the jobs of the given runs, leaving out those that cannot be made here."""
        return [job for job in dict.fromkeys(map(self.name_job, runs)) if job in self.planned]

    def evaluated(self, model: str, protocol: str) -> Keys:
        """List the jobs of the runs requested for an encoder and for those that it is compared with."""
        runs = self.requested(model, protocol)
        for other_model in requests.read_request(self.scale, model, protocol)["compared"]:
            runs += self.requested(other_model, protocol)
        return list(dict.fromkeys(map(self.name_job, runs)))


def list_targets(scale: str) -> dict[str, list[str]]:
    """List the valid target names, by kind."""
    plan = Plan(scale)
    notebooks = set()
    for stage, keys in plan.jobs.items():
        notebooks |= {plan.notebook(stage, *job) for job in keys}
    registered = {kind: params.keys(kind) for kind in ("tables", "models", "corpora")}
    trained = [key for key in params.keys("vocabularies") if not params.load("vocabularies", key).file]
    return {"notebooks": sorted(filter(None, notebooks)), **registered, "vocabularies": trained, "other": ["report"]}
