"""The jobs that a command line asks for, and the jobs that each reads. The Snakefile says how one is done."""

import json
from collections.abc import Iterable
from functools import cached_property
from itertools import chain

from lib import provenance
from lib.errors import unknown
from lib.study import claims, contrasts, open_study, params, paths, published, receipts, requests, state, vocabularies
from lib.study.keys import flatten_settings
from lib.study.page_jobs import BASELINE_PAGE, PAGES, Keys, each

ON_GPUS = ("gpu", "paper", "released", "released-quick")  # scales whose jobs ask for GPUs
KEY = r"[a-z0-9][a-z0-9.]*(?:-[a-z0-9.]+)*"  # `--` joins keys, so a key holds single hyphens only
STAGES = ("texts", "documents", "corpus", "vocabulary", "pretrain", "tuning", "finetune", "table", "evaluation",
          "explored", "page")  # fmt: skip
NOTEBOOKS = {  # stage -> the notebook that does its jobs; of a table, a page and a run it follows from their keys
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
    """The jobs that words of a command line come to; StudyError with the nearest names for an unknown word.

    Words are keys of tables, models, corpora and vocabularies, names or numbers of notebooks, and encoders that are
    being evaluated; without any it is the whole study.
    """

    def __init__(self, scale: str, words: Iterable[str] = ()):
        self.scale, self.study = scale, open_study(scale)
        self.asked: dict[str, Keys] = {stage: [] for stage in STAGES}
        for found in map(self.find, words) if words else [self.whole]:
            for stage, keys in found.items():
                self.asked[stage] += keys

    @property
    def whole(self) -> dict[str, Keys]:
        """The last jobs of the study: all others are on the way to them.

        With made-up data also page 02, which elsewhere is for whoever has a sentence and an encoder. With public
        weights alone what shows scores.
        """
        budget = self.study.budget
        if budget.weights == "released":
            return {"page": each(["01_results_in_brief", "04_printed_numbers", "33_all_benchmarks"])}
        return {"page": each(PAGES), "explored": each(budget.list_models()[:1] if budget.made_up else [])}

    def find(self, word: str) -> dict[str, Keys]:
        """The jobs that one word stands for, by stage."""
        if word in {path.stem for path in paths.evaluations(self.scale).glob("*.json")}:
            return {"evaluation": [tuple(word.split("--"))]}
        if word in params.keys("tables"):
            notebook = params.load("tables", word).notebook
            return {"page": [(notebook,)]} if notebook in PAGES else {"table": [(word,)]}
        if params.is_model(word):
            of_model = [job for job in self.planned if job[0] == word]
            found = {"pretrain": made} if (made := self.registered(word)) else {"finetune": of_model}
        else:
            found = {}
            if word in params.keys("corpora"):
                found["corpus"] = [(word,)]
            if word in params.keys("vocabularies") and not params.load("vocabularies", word).file:
                found["vocabulary"] = [(word,)]  # a published one has nothing to be made
            for stage, keys in self.whole_jobs.items():
                for job in keys:
                    notebook = self.notebook(stage, *job)
                    if word in (notebook, notebook[:2]):
                        found.setdefault(stage, []).append(job)
        if not found:
            raise unknown("target", word, chain(*list_targets(self.scale).values()))
        return found

    @cached_property
    def whole_jobs(self) -> dict[str, Keys]:
        """Those of the whole study, whatever is asked for: a notebook's name stands for its jobs among them."""
        return Plan(self.scale).jobs

    @cached_property
    def jobs(self) -> dict[str, Keys]:
        """Every job that is asked for or on the way there, once, by stage.

        All of them, and not the last alone: one that failed leaves a hole behind tables that still stand.
        """
        found: dict[str, Keys] = {stage: [] for stage in STAGES}

        def add(jobs: dict[str, Keys]) -> None:
            for stage, keys in jobs.items():
                for one in keys:
                    if one not in found[stage]:
                        found[stage].append(one)
                        add(self.reads(stage, *one))

        add(self.asked)
        return found

    def reads(self, stage: str, *keys: str) -> dict[str, Keys]:
        """The jobs that a job reads, by stage."""
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
                if model in params.BASELINES:  # whose word vectors are of a corpus
                    return {"corpus": [("ja-clinical",)]}
                runs = self.runs_in(model, protocol, family)
                searched = [run for run in runs if self.study.protocol(protocol, run[1]).trials]
                return {"pretrain": self.registered(model), "tuning": searched}
            case "table", table:
                runs = self.runs_of_tables.get(table)  # None: one without scores, which no baselines stand beside
                return {} if runs is None else {"finetune": self.jobs_of(runs), "page": [(BASELINE_PAGE,)]}
            case "page", page:
                return PAGES[page].reads(self)
            case "explored", model:
                common = vocabularies.choose_common(self.study)
                return {
                    "pretrain": self.registered(model),
                    "vocabulary": self.trained(vocabulary.key for vocabulary in common),
                }
            case "evaluation", model, protocol:
                return {"finetune": self.evaluated(model, protocol)}
        return {}

    def notebook(self, stage: str, *keys: str) -> str:
        """The notebook that does a job, or an empty string for one without."""
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
        """All that a job is done again for, besides the jobs that it reads, by name: settings, or their fingerprint.

        In the order of the names, so that YAML in another order redoes nothing.
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
        """What a job would be done again for, a line each: a setting, what it was and what it is now.

        Empty where the job has not been done, or before its settings were kept.
        """
        before = receipts.read_job_settings(receipts.name(self.scale, stage, keys))
        if before is None:
            return []
        then = dict(flatten_settings("", before))
        now = dict(flatten_settings("", self.state(stage, *keys)))
        changed = []
        for name in then | now:
            old, new = then.get(name, "none"), now.get(name, "none")
            if old != new:
                changed.append((name.removeprefix(", "), old, new))
        return changed

    def table_key(self, table: str) -> str:
        """What a notebook of several tables is told, as its command line says it; one of one table needs nothing."""
        notebooks = [table.notebook for table in params.load_tables().values()]
        return f"table={table}" if notebooks.count(params.load("tables", table).notebook) > 1 else ""

    def trained(self, named: Iterable[str]) -> Keys:
        """Those of some vocabularies that are trained here, and can be."""
        found = map(self.study.vocabulary, named)
        return each(one.key for one in found if one.corpora and not one.why_not_trained and not one.released)

    def registered(self, model: str) -> Keys:
        """A model that the study pretrains; somebody's encoder lies elsewhere, and baselines are not pretrained."""
        return [(model,)] if params.is_model(model) and not params.is_released(model, self.scale) else []

    @cached_property
    def runs_of_tables(self) -> dict[str, list[params.RunKey]]:
        return {key: published.list_table_runs(self.study, key) for key in params.load_tables("scores", "curves")}

    @cached_property
    def planned(self) -> dict[tuple[str, ...], list[params.RunKey]]:
        """Every run of the study that can be made here, by its job: a model's on a family of tasks under a protocol.

        Whatever a command line asks for, a job makes all of its runs, so that its page stays the same.
        """
        named = [*chain(*self.runs_of_tables.values()), *self.study.budget.panel_runs()]
        named += [*claims.list_claim_runs(self.study), *contrasts.list_contrast_runs(self.study)]
        found: dict[tuple[str, ...], list[params.RunKey]] = {}
        for run in dict.fromkeys(named):
            if not self.study.why_not(run[1], run[2]) and not params.why_no_weights(run[0], self.scale):
                found.setdefault(self.name_job(run), []).append(run)
        return found

    def name_job(self, run: params.RunKey) -> tuple[str, str, str]:
        """The job that makes a run: model, protocol and family of tasks."""
        model, dataset, protocol = run
        return model, protocol, self.study.dataset(dataset).family

    def runs_in(self, model: str, protocol: str, family: str) -> list[params.RunKey]:
        """The runs of a job: those that are planned, and those that were asked for of an encoder that is evaluated."""
        asked = [run for run in self.requested(model, protocol) if self.name_job(run)[2] == family]
        return list(dict.fromkeys([*self.planned.get((model, protocol, family), []), *asked]))

    def requested(self, model: str, protocol: str) -> list[params.RunKey]:
        """The runs that were asked for of somebody's encoder and can be made; none where nothing was."""
        if not paths.evaluation(self.scale, model, protocol).exists():
            return []
        chosen = requests.read_request(self.scale, model, protocol)["datasets"]
        return [(model, dataset, protocol) for dataset in chosen if not self.study.why_missing(dataset, protocol)]

    def jobs_of(self, runs: Iterable[params.RunKey]) -> Keys:
        """The jobs of those of some runs that can be made here."""
        return [job for job in dict.fromkeys(map(self.name_job, runs)) if job in self.planned]

    def evaluated(self, model: str, protocol: str) -> Keys:
        """The jobs of the runs that were asked for of somebody's encoder, and of those that it is compared with."""
        runs = self.requested(model, protocol)
        for other in requests.read_request(self.scale, model, protocol)["compared"]:
            runs += self.requested(other, protocol)
        return list(dict.fromkeys(map(self.name_job, runs)))


def list_targets(scale: str) -> dict[str, list[str]]:
    """What can be asked for by name, by kind."""
    plan = Plan(scale)
    notebooks = set()
    for stage, keys in plan.jobs.items():
        notebooks |= {plan.notebook(stage, *one) for one in keys}
    named = {kind: params.keys(kind) for kind in ("tables", "models", "corpora", "vocabularies")}
    return {"notebooks": sorted(filter(None, notebooks)), **named, "other": ["report"]}
