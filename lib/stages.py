"""The study as a graph: one row a stage, each one notebook; what a target needs follows from params/."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from lib import corpora, datasets, params, paths, provenance
from lib.errors import StudyError, unknown

KEY = r"[a-z0-9][a-z0-9.]*(?:-[a-z0-9.]+)*"  # `--` joins keys, so a key holds single hyphens only


@dataclass(frozen=True)
class Stage:
    """A kind of job. `output` is its JSON or CSV below outputs/<scale>/, with a {wildcard} for each key."""

    name: str
    notebook: Callable[[dict], str]
    output: str
    inputs: Callable[[str, dict], list[str]]  # (scale, keys) -> outputs of other stages that it reads
    settings: Callable[[str, dict], object]  # (scale, keys) -> what it is done again for when it changes

    def path(self, **keys: str) -> str:
        return self.output.format(**keys)

    def match(self, path: str) -> dict[str, str] | None:
        """The keys in a path that this stage writes, or None."""
        pattern = re.sub(r"\\\{(\w+)\\\}", rf"(?P<\1>{KEY})", re.escape(self.output))
        found = re.fullmatch(pattern, path)
        return found.groupdict() if found else None


@dataclass(frozen=True)
class Job:
    """One run of a stage's notebook."""

    stage: Stage
    keys: dict[str, str]
    output: str
    inputs: list[str]
    notebook: str

    @property
    def name(self) -> str:
        """The name of the executed copy: the notebook and the keys that tell this run from its siblings."""
        return "--".join([self.notebook, *(value for key, value in self.keys.items() if key != "table")])


def made_up(scale: str) -> list[str]:
    return ["data/meta.json"] if params.load("scales", scale).made_up else []


def raw_state(scale: str, files) -> list:
    """Name, size and time of raw files: enough to see that one has changed. Made-up data are an input instead."""
    if made_up(scale):
        return []
    return [[f.name, f.stat().st_size, f.stat().st_mtime_ns] for f in files]


def corpus_settings(scale: str, keys: dict) -> list:
    corpus = params.load("corpora", keys["corpus"])
    if made_up(scale):
        return [corpus.model_dump()]
    files = [file for _, file in corpora.source_files(corpus, scale)] + list(corpora.test_files(scale).values())
    return [corpus.model_dump(), raw_state(scale, files)]


def pretraining_settings(scale: str, keys: dict) -> list:
    budget = params.load("scales", scale).model_dump(exclude={"title", "datasets", "finetuning"})
    return [params.load("models", keys["model"]).model_dump(), budget]


def tagging_settings(scale: str, keys: dict) -> list:
    budget = params.load("scales", scale).model_dump(include={"seeds", "precision", "threads"})
    files = [] if made_up(scale) else [datasets.split_file(keys["dataset"], s, scale) for s in datasets.SPLITS]
    return [params.load_protocol(keys["setting"], scale).model_dump(), budget, raw_state(scale, files)]


def model_inputs(scale: str, keys: dict) -> list[str]:
    model = params.load("models", keys["model"])
    return [
        STAGES["vocabulary"].path(vocabulary=model.vocabulary),
        *(STAGES["corpus"].path(corpus=corpus) for corpus in model.stages),
    ]


def table_inputs(scale: str, keys: dict) -> list[str]:
    """Results for every cell of the table that can be run at this scale, and the vocabularies that it shows."""
    table = params.load("tables", keys["table"])
    runs = [
        STAGES["tagging"].path(model=model, dataset=dataset, setting=table.protocol)
        for model in [*table.ours_only.values(), *table.columns.values()]
        for dataset in table.rows.values()
        if not datasets.why_not(dataset, scale)
    ]
    return runs + [STAGES["vocabulary"].path(vocabulary=v) for v in table.vocabularies]


def published() -> list[str]:
    """Fingerprints of the papers' numbers: what shows them is done again when one is corrected."""
    return [provenance.file_fingerprint(path) for path in sorted(paths.PUBLISHED.glob("*.csv"))]


def start_settings(scale: str, keys: dict) -> list:
    return [params.load("scales", scale).model_dump(), list_targets(scale), published()]


def dataset_settings(scale: str, keys: dict) -> list:
    at_hand = [key for key in datasets.DATASETS if not made_up(scale) and datasets.is_at_hand(key, scale)]
    files = [datasets.split_file(key, split, scale) for key in at_hand for split in datasets.SPLITS]
    return [params.load("scales", scale).datasets, raw_state(scale, files), published()]


def table_settings(scale: str, keys: dict) -> list:
    table = params.load("tables", keys["table"])
    models = [
        params.load("models", model).model_dump() for model in [*table.ours_only.values(), *table.columns.values()]
    ]
    return [table.model_dump(), models, params.load("scales", scale).title, published()]


STAGES = {
    stage.name: stage
    for stage in [
        Stage("start", lambda k: "00_start_here", "tables/settings.csv", lambda s, k: [], start_settings),
        Stage("corpus", lambda k: "01_corpora", "corpora/{corpus}/meta.json", lambda s, k: made_up(s), corpus_settings),
        Stage(
            "vocabulary",
            lambda k: "02_vocabularies",
            "vocabularies/{vocabulary}/meta.json",
            lambda s, k: [
                STAGES["corpus"].path(corpus=c) for c in params.load("vocabularies", k["vocabulary"]).corpora
            ],
            lambda s, k: [
                params.load("vocabularies", k["vocabulary"]).model_dump(),
                params.load("scales", s).vocabulary_size,
                published(),
            ],
        ),
        Stage("datasets", lambda k: "03_datasets", "tables/datasets.csv", lambda s, k: made_up(s), dataset_settings),
        Stage("pretrain", lambda k: "10_pretrain", "models/{model}/meta.json", model_inputs, pretraining_settings),
        Stage(
            "tagging",
            lambda k: "20_finetune_tagging",
            "results/{model}--{dataset}--{setting}.json",
            lambda s, k: [STAGES["pretrain"].path(model=k["model"]), *made_up(s)],
            tagging_settings,
        ),
        Stage(
            "table",
            lambda k: params.load("tables", k["table"]).notebook,
            "tables/{table}.csv",
            table_inputs,
            table_settings,
        ),
        Stage(
            "scoreboard",
            lambda k: "90_scoreboard",
            "tables/claims.csv",
            lambda s, k: [STAGES["table"].path(table=t) for t in params.keys("tables")],
            lambda s, k: [{c: t.model_dump() for c, t in params.claim_tests().items()}, published()],
        ),
    ]
}


def job_of(scale: str, output: str) -> Job | None:
    """The job that writes an output, or None for made-up raw data."""
    # tables/claims.csv and its like are named outright, so they come before the patterns
    for stage in sorted(STAGES.values(), key=lambda stage: "{" in stage.output):
        keys = stage.match(output)
        if keys is not None:
            return Job(stage, keys, output, stage.inputs(scale, keys), stage.notebook(keys))
    if output == "data/meta.json":
        return None
    raise StudyError(f"no stage writes outputs/{scale}/{output}")


def plan(scale: str, outputs: list[str]) -> dict[str, Job]:
    """Every job that the outputs need, by output, in an order in which they can run."""
    jobs: dict[str, Job] = {}

    def add(output: str) -> None:
        if output not in jobs and (job := job_of(scale, output)):
            for needed in job.inputs:
                add(needed)
            jobs[output] = job

    for output in outputs:
        add(output)
    return jobs


def whole_study(scale: str) -> list[str]:
    """The last outputs of everything that the study holds at a scale."""
    return [STAGES["start"].path(), STAGES["datasets"].path(), STAGES["scoreboard"].path()]


def targets(scale: str, words: list[str]) -> list[str]:
    """The outputs that words of the command line stand for: table, model, corpus or vocabulary keys, or the number
    or name of a notebook. No word: the whole study. StudyError with the nearest names for an unknown one."""
    if not words:
        return whole_study(scale)
    jobs = plan(scale, whole_study(scale))
    found = []
    for word in words:
        named = [job.output for job in jobs.values() if word in (job.notebook, job.notebook.split("_")[0])]
        for kind, stage in (("tables", "table"), ("models", "pretrain"), ("corpora", "corpus"),
                            ("vocabularies", "vocabulary")):  # fmt: skip
            if word in params.keys(kind):
                (wildcard,) = re.findall(r"\{(\w+)\}", STAGES[stage].output)
                named.append(STAGES[stage].path(**{wildcard: word}))
        if not named:
            raise unknown("target", word, [name for names in list_targets(scale).values() for name in names])
        found += named
    return found


def list_targets(scale: str) -> dict[str, list[str]]:
    """What can be asked for by name, by kind."""
    return {
        "tables": params.keys("tables"),
        "notebooks": sorted({job.notebook for job in plan(scale, whole_study(scale)).values()}),
        "models": params.keys("models"),
        "corpora": params.keys("corpora"),
        "vocabularies": params.keys("vocabularies"),
        "other": ["report"],
    }


def state(scale: str, job: Job) -> str:
    """A fingerprint of all that a job is done again for besides its inputs: code cells, lib modules, settings."""
    code = provenance.notebook_fingerprint(paths.NOTEBOOKS / f"{job.notebook}.ipynb")
    return provenance.fingerprint(code, job.stage.settings(scale, job.keys))


def parameters(scale: str, job: Job) -> str:
    """The notebook's parameters as JSON. Text of a dataset is shown on the pages of made-up data only."""
    shown = {"show_text": params.load("scales", scale).made_up}
    wanted = (paths.NOTEBOOKS / f"{job.notebook}.ipynb").read_text(encoding="utf-8")
    return json.dumps({"scale": scale, **job.keys, **(shown if "show_text" in wanted else {})})
