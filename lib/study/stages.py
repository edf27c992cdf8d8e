"""The study as a graph: one row a stage, each one notebook; what a target needs follows from params/."""

import json
import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

from lib import provenance
from lib.benchmarks import baselines, datasets, definitions, registry, versions
from lib.corpora import rows
from lib.errors import StudyError, unknown
from lib.study import claims, corpora, documents, hardware, open_study, params, paths, published, scores, vocabularies
from lib.study.analysis import attention, facts, samples, texts
from lib.vocabularies import training

ON_GPUS = ("gpu", "paper")  # scales whose jobs ask for GPUs
KEY = r"[a-z0-9][a-z0-9.]*(?:-[a-z0-9.]+)*"  # `--` joins keys, so a key holds single hyphens only
FINETUNING = {  # family -> the notebook that fine-tunes
    **dict.fromkeys(("tagging", "pico"), "30_finetune_words"),
    **dict.fromkeys(("relations", "similarity", "documents", "inference", "answers", "ranking"), "31_finetune_texts"),
    "questions": "32_finetune_answers",
}
BASELINE = "15_japanese_baselines"
MODULES = {"texts": "lib.study.analysis.texts", "documents": "lib.study.documents"}  # what does a job of no notebook
# A table -> the one that its job is named by, which writes both.
BESIDE = {
    "step-times": "naseem-8",
    **dict.fromkeys(("gu-1", "wada-1", "ozyurt-text"), "pieces"),
    **dict.fromkeys(("lee-1", "naseem-2", "wada-2", "gu-5"), "corpora"),
}
WILDCARDS = {"file": r"[^/]+"}  # a raw file's own name


@dataclass(frozen=True)
class Stage:
    """A kind of job. `output` is its JSON or CSV below outputs/<scale>/, with a {wildcard} for each key.

    Snakemake deletes what a job declares as output before it runs it again, and when it fails or is killed. So what the
    graph has as output is an empty receipt; the artefact lies beside it and stays until another takes its place.
    """

    name: str
    notebook: Callable[[dict], str]  # empty for a job that has none: the module of its name does it
    output: str
    inputs: Callable[[str, dict], list[str]]  # (scale, keys) -> outputs of other stages that it reads
    settings: Callable[[str, dict], object]  # (scale, keys) -> what it is done again for when it changes

    def path(self, **keys: str) -> str:
        return self.output.format(**keys)

    @property
    def receipt(self) -> str:
        """The receipt of a job below outputs/<scale>/, with the same wildcards."""
        return "/".join(["done", self.name, "--".join(re.findall(r"\{\w+\}", self.output)) or "all"])

    def match(self, path: str) -> dict[str, str] | None:
        """The keys in a path that this stage writes, or None."""
        pattern = re.sub(r"\\\{(\w+)\\\}", lambda m: f"(?P<{m[1]}>{WILDCARDS.get(m[1], KEY)})", re.escape(self.output))
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
        shared = self.stage.name != "table" or self.notebook in shared_notebooks()
        return "--".join([self.notebook or self.stage.name, *(self.keys.values() if shared else ())])


def made_up(scale: str) -> list[str]:
    return ["data/meta.json"] if params.load("scales", scale).made_up else []


def raw_state(scale: str, files) -> list:
    """Name, size and time of raw files: enough to see that one has changed. Made-up data are an input instead."""
    if made_up(scale):
        return []
    return [[f.name, f.stat().st_size, f.stat().st_mtime_ns] for f in files]


@cache
def shared_notebooks() -> set[str]:
    """The notebooks that make more than one table."""
    names = [params.load("tables", key).notebook for key in params.keys("tables")]
    return {name for name in names if names.count(name) > 1}


def document_settings(scale: str, keys: dict) -> list:
    source = params.load("sources", keys["source"])
    if made_up(scale):
        return [source.model_dump(include={"reader", "language"}), rows.VERSION]
    files = [documents.raw_file(keys["source"], keys["file"], scale), *open_study(scale).mesh_tables]
    return [source.model_dump(include={"reader", "language"}), rows.VERSION, raw_state(scale, files)]


def corpus_inputs(scale: str, key: str) -> list[str]:
    return [STAGES["documents"].path(source=source, file=file) for source, file in open_study(scale).corpus(key).files]


def corpus_settings(scale: str, keys: dict) -> list:
    corpus = params.load("corpora", keys["corpus"])
    selections = [params.load("selections", key).model_dump() for key in params.keys("selections")]
    left_out = [params.load("sources", s).leave_out for s, _ in open_study(scale).corpus(keys["corpus"]).files]
    return [corpus.model_dump(), params.load("cleaning", corpus.cleaning).model_dump(), selections, left_out]


def vocabulary_output(keys: Iterable[str], scale: str) -> list[str]:
    """The outputs of those vocabularies that are trained here, and can be."""
    found = map(open_study(scale).vocabulary, keys)
    return [STAGES["vocabulary"].path(vocabulary=one.key) for one in found if one.corpora and not one.why_not_trained]


def list_amplified(scale: str) -> list[str]:
    return [vocabulary.key for vocabulary in vocabularies.at_hand(scale) if vocabulary.settings.amplify]


def pretraining_settings(scale: str, keys: dict) -> list:
    model = params.load("models", keys["model"])
    budget = params.load("scales", scale).model_dump(include={"precision", "threads", "seeds", "pretraining"})
    return [model.model_dump(), params.load_pretraining(keys["model"], scale).model_dump(), budget]


def finetuning_settings(scale: str, keys: dict) -> list:
    budget = params.load("scales", scale).model_dump(include={"seeds", "precision", "threads"})
    dataset, files = open_study(scale).dataset(keys["dataset"]), []
    if not made_up(scale):
        files = datasets.list_files(file for part in dataset.parts for file in dataset.paths(*part))
    return [open_study(scale).protocol(keys["setting"], dataset.key).model_dump(), budget, raw_state(scale, files)]


def model_inputs(scale: str, keys: dict) -> list[str]:
    """A model's vocabulary, its text, and the model that it continues."""
    model = params.load("models", keys["model"])
    return [
        *vocabulary_output([model.vocabulary], scale),
        *(STAGES["corpus"].path(corpus=corpus) for corpus in model.corpora),
        *([STAGES["pretrain"].path(model=model.initial)] if model.initial else []),
    ]


def table_inputs(scale: str, keys: dict) -> list[str]:
    """What the cells of a table that can be tried at this scale are made from."""
    table = params.load("tables", keys["table"])
    match table.kind:
        case "lengths" | "counts":
            return made_up(scale)
        case "times":
            return []
    return [*finetuned(published.list_runs(keys["table"], scale), scale), STAGES["floors"].path()]


def finetuned(runs: list[params.RunKey], scale: str) -> list[str]:
    """The results of those runs, by model, dataset and protocol, that can be made here."""
    can = [run for run in runs if not open_study(scale).why_not(run[1], run[2])]
    return [STAGES["finetune"].path(model=m, dataset=d, setting=p) for m, d, p in can]


def pretrained(model: str) -> list[str]:
    """A model of the study's own, which it pretrains, or the text of a baseline's word vectors; somebody's encoder lies
    elsewhere."""
    if model in params.BASELINES:
        return [STAGES["corpus"].path(corpus="ja-clinical")]
    return [STAGES["pretrain"].path(model=model)] if params.is_model(model) else []


def tuned(scale: str, keys: dict) -> list[str]:
    """The search that comes before the runs of a protocol that has one."""
    settings = open_study(scale).protocol(keys["setting"], keys["dataset"])
    if keys["model"] in params.BASELINES:
        return []
    return [STAGES["tuning"].path(**keys)] if settings.trials else []


def evaluation_inputs(scale: str, keys: dict) -> list[str]:
    """The runs of an encoder that can be made."""
    return [
        STAGES["finetune"].path(dataset=dataset, **keys)
        for dataset in scores.read_request(scale, **keys)["datasets"]
        if not open_study(scale).why_missing(dataset, keys["setting"])
    ]


def panel_inputs(scale: str, keys: dict) -> list[str]:
    """The runs of the scale's panels that can be made, and what stands beside them."""
    return [*finetuned(params.load("scales", scale).panel_runs(), scale), STAGES["floors"].path()]


def scoreboard_inputs(scale: str, keys: dict) -> list[str]:
    """Every published table, and what else claims are judged by: tables, runs, vocabularies."""
    tests = [claim.test for claim in claims.CLAIMS if claim.test]
    named = [*params.keys("tables"), *(table for test in tests for table in test.tables)]
    tables = [f"tables/{table}.csv" for table in dict.fromkeys(BESIDE.get(table, table) for table in named)]
    compared = vocabulary_output([key for test in tests for key in test.vocabularies], scale)
    return tables + finetuned(claims.list_runs(open_study(scale)), scale) + compared


def cost_settings(scale: str, keys: dict) -> list:
    found = [params.load(kind, key) for kind in ("models", "vocabularies") for key in params.keys(kind)]
    found += [hardware.read(), params.load("scales", "paper")]
    return [[settings.model_dump() for settings in found], published_state()]


def attention_inputs(scale: str, keys: dict) -> list[str]:
    """The models whose attention is shown, and the vocabularies whose pieces are."""
    shown = vocabulary_output(list(facts.attention().vocabularies.values()), scale)
    return [*shown, *(STAGES["pretrain"].path(model=model) for model in attention.choose_models(scale))]


def attention_settings(scale: str, keys: dict) -> list:
    shown = facts.attention()
    found = [params.load("vocabularies", key).model_dump() for key in shown.vocabularies.values()]
    return [shown.model_dump(), found, raw_state(scale, sorted(paths.data(scale).glob("vocab/*.txt")))]


def timed_settings(scale: str) -> dict:
    """What of a scale decides the size of its models and their steps, and on what these are computed."""
    named = {"bodies", "vocabulary_size", "sequence_length", "precision", "threads", "pretraining", "made_up"}
    return params.load("scales", scale).model_dump(include=named)


def inference_settings(scale: str, keys: dict) -> list:
    return [timed_settings("paper"), timed_settings(scale)]


def sample_settings(scale: str, keys: dict) -> list:
    return [facts.samples().model_dump(), dataset_files(scale), samples.list_runs(scale)]


def published_state() -> list[str]:
    """Fingerprints of the papers' numbers: what shows them is done again when one is corrected."""
    return [provenance.file_fingerprint(path) for path in sorted(paths.PUBLISHED.glob("*.csv"))]


def start_settings(scale: str, keys: dict) -> list:
    return [params.load("scales", scale).model_dump(), list_targets(scale), published_state()]


def size_settings(scale: str, keys: dict) -> list:
    registered = [corpus.settings.model_dump() for corpus in corpora.list_whole(scale)]
    return [registered, [params.load("tables", t).model_dump() for t in tables_of("corpora")], published_state()]


def dataset_settings(scale: str, keys: dict) -> list:
    return [dataset_files(scale), [params.load("tables", t).model_dump() for t in tables_of("counts")]]


def dataset_files(scale: str) -> list:
    return [] if made_up(scale) else raw_state(scale, registry.files(paths.data(scale)))


def tables_of(kind: str) -> list[str]:
    return [key for key in params.keys("tables") if params.load("tables", key).kind == kind]


def score_tables() -> list[dict]:
    """What stands for each row and column of the tables of scores."""
    return [params.load("tables", key).model_dump() for key in tables_of("scores")]


def term_settings(scale: str, keys: dict) -> list:
    """Vocabularies, and the tables of terms."""
    named = [("vocabularies", params.keys("vocabularies")), ("tables", tables_of("terms"))]
    found = [params.load(kind, key).model_dump() for kind, found in named for key in found]
    return [found, raw_state(scale, sorted(paths.data(scale).glob("vocab/*.txt"))), published_state()]


def document_outputs(scale: str) -> list[str]:
    """The documents of every corpus that can be built."""
    files = dict.fromkeys(file for key in params.keys("corpora") for file in open_study(scale).corpus(key).files)
    return [STAGES["documents"].path(source=source, file=file) for source, file in files]


def table_settings(scale: str, keys: dict) -> list:
    table = params.load("tables", keys["table"])
    named, others = [], []
    if table.kind in ("scores", "curves"):
        named = published.list_models(keys["table"], scale)
    if table.kind == "curves":
        others = [params.load("tables", key).model_dump() for key in (*table.of, table.sizes) if key]
    if table.kind == "times":
        named, others = list(table.rows.values()), [timed_settings(scale)]
        others.append(hardware.read().model_dump())
    registered = [params.load("models", key).model_dump() for key in named if params.is_model(key)]
    budget = params.load("scales", scale).model_dump(include={"compared", "instead", "panels"})
    models = [budget, *registered, *others] if named else []
    files = []
    if table.kind == "lengths":
        files = sorted(paths.data(scale).glob("vocab/*.txt"))
    if table.kind in ("counts", "lengths") and not made_up(scale):
        files += registry.files(paths.data(scale))
    return [table.model_dump(), models, raw_state(scale, files), params.load("scales", scale).title, published_state()]


STAGES = {
    stage.name: stage
    for stage in [
        Stage("start", lambda k: "00_start_here", "tables/settings.csv", lambda s, k: [], start_settings),
        Stage(
            "texts",
            lambda k: "",
            "test-sentences/record.json",
            lambda s, k: made_up(s),
            lambda s, k: [raw_state(s, texts.test_files(s)), texts.VERSION],
        ),
        Stage(
            "documents",
            lambda k: "",
            "documents/{source}/{file}/record.json",
            lambda s, k: [*made_up(s), STAGES["texts"].path()],
            document_settings,
        ),
        Stage(
            "corpus",
            lambda k: "10_corpora",
            "corpora/{corpus}/record.json",
            lambda s, k: corpus_inputs(s, k["corpus"]),
            corpus_settings,
        ),
        Stage(
            "vocabulary",
            lambda k: "20_vocabularies",
            "vocabularies/{vocabulary}/record.json",
            lambda s, k: [
                STAGES["corpus"].path(corpus=c) for c in params.load("vocabularies", k["vocabulary"]).corpora
            ],
            lambda s, k: [
                params.load("vocabularies", k["vocabulary"]).model_dump(),
                training.VERSION,
                params.load("scales", s).vocabulary_size,
            ],
        ),
        Stage(
            "sizes",
            lambda k: "11_corpus_sizes",
            "tables/corpora.csv",
            lambda s, k: [STAGES["corpus"].path(corpus=corpus.key) for corpus in corpora.list_whole(s)],
            size_settings,
        ),
        Stage(
            "terms",
            lambda k: "21_medical_terms",
            "tables/pieces.csv",
            lambda s, k: [*vocabulary_output(params.keys("vocabularies"), s), STAGES["corpus"].path(corpus="pubmed")],
            term_settings,
        ),
        Stage("datasets", lambda k: "12_datasets", "tables/datasets.csv", lambda s, k: made_up(s), dataset_settings),
        Stage(
            "leaks",
            lambda k: "14_leaks",
            "tables/leaks.csv",
            lambda s, k: [*made_up(s), *document_outputs(s)],
            lambda s, k: dataset_files(s),
        ),
        Stage(
            "floors",
            lambda k: "15_without_pretraining",
            "tables/floors.csv",
            lambda s, k: made_up(s),
            lambda s, k: [baselines.VERSION, params.load("scales", s).datasets, dataset_files(s)],
        ),
        Stage("own", lambda k: "26_own_data", "tables/own-data.csv", lambda s, k: [], lambda s, k: []),
        Stage("pretrain", lambda k: "23_pretrain", "models/{model}/record.json", model_inputs, pretraining_settings),
        Stage(
            "simultaneous",
            lambda k: "24_simultaneous_pretraining",
            "tables/wada-figure-3.csv",
            lambda s, k: vocabulary_output(list_amplified(s), s),
            lambda s, k: [],
        ),
        Stage(
            "pretrained",
            lambda k: "25_models_side_by_side",
            "tables/parameters.csv",
            lambda s, k: [STAGES["pretrain"].path(model=model) for model in params.load("scales", s).models],
            lambda s, k: [params.load("models", m).model_dump() for m in params.keys("models")],
        ),
        Stage(
            "cost",
            lambda k: "92_cost",
            "tables/cost.csv",
            lambda s, k: [STAGES["pretrained"].path()] if params.load("scales", s).models else [],
            cost_settings,
        ),
        Stage(
            "finetune",
            lambda k: BASELINE if k["model"] in params.BASELINES else FINETUNING[registry.lookup(k["dataset"]).family],
            "results/{model}--{dataset}--{setting}.json",
            lambda s, k: [*pretrained(k["model"]), *tuned(s, k), *made_up(s)],
            finetuning_settings,
        ),
        Stage(
            "tuning",
            lambda k: "32_tuning",
            "tuning/{model}--{dataset}--{setting}.json",
            lambda s, k: [*pretrained(k["model"]), *made_up(s)],
            finetuning_settings,
        ),
        Stage(
            "evaluation",
            lambda k: "02_evaluate",
            "evaluations/{model}--{setting}.csv",
            evaluation_inputs,
            lambda s, k: [scores.read_request(s, **k), published_state()],
        ),
        Stage(
            "explored",
            lambda k: "02_explore_an_encoder",
            "explored/{model}.csv",
            lambda s, k: [
                *made_up(s),
                *pretrained(k["model"]),
                *vocabulary_output([vocabulary.key for vocabulary in vocabularies.choose_common(s)], s),
            ],
            lambda s, k: finetuning_settings(s, {"dataset": "ncbi-disease", "setting": "lee"}),
        ),
        Stage(
            "audit",
            lambda k: "90_audit",
            "tables/audit.csv",
            lambda s, k: [],
            lambda s, k: [score_tables(), published_state()],
        ),
        Stage(
            "protocols",
            lambda k: "91_protocols",
            "tables/protocols.csv",
            lambda s, k: [*made_up(s), *finetuned(published.list_compared(s), s)],
            lambda s, k: [definitions.PAIRS, versions.SETS, score_tables(), dataset_files(s), published_state()],
        ),
        Stage(
            "panels",
            lambda k: "33_all_benchmarks",
            "tables/panels.csv",
            panel_inputs,
            lambda s, k: [[panel.model_dump() for panel in params.load("scales", s).panels], published_state()],
        ),
        Stage(
            "plan",
            lambda k: "92_plan",
            "tables/plan.csv",
            lambda s, k: [STAGES[name].path() for name in ("pretrained", "panels", "scoreboard")],
            lambda s, k: params.load("scales", s).model_dump(),
        ),
        Stage(
            "lessons",
            lambda k: "94_lessons",
            "tables/lessons.csv",
            lambda s, k: [STAGES["scoreboard"].path(), STAGES["leaks"].path()],
            lambda s, k: [
                params.load(kind, key).model_dump() for kind in ("models", "protocols") for key in params.keys(kind)
            ],
        ),
        Stage("attention", lambda k: "54_attention", "tables/gu-figure-3.csv", attention_inputs, attention_settings),
        Stage(
            "samples",
            lambda k: "71_bioalbert_samples",
            "tables/naseem-9.csv",
            lambda s, k: [*made_up(s), *finetuned(samples.list_runs(s), s)],
            sample_settings,
        ),
        Stage(
            "inference",
            lambda k: "93_bioelectra_inference",
            "tables/inference-times.csv",
            lambda s, k: [],
            inference_settings,
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
            lambda k: "01_scoreboard",
            "tables/claims.csv",
            scoreboard_inputs,
            lambda s, k: [claims.VERSION, published_state()],
        ),
    ]
}


def find_stage(output: str) -> tuple[Stage, dict[str, str]] | None:
    """The stage that writes an output, and its keys; None for made-up raw data."""
    # tables/claims.csv and its like are named outright, so they come before the patterns
    for stage in sorted(STAGES.values(), key=lambda stage: "{" in stage.output):
        keys = stage.match(output)
        if keys is not None:
            return stage, keys
    if output == "data/meta.json":
        return None
    raise StudyError(f"no stage writes outputs/<scale>/{output}")


def job_of(scale: str, output: str) -> Job | None:
    """The job that writes an output, or None for made-up raw data."""
    found = find_stage(output)
    if found is None:
        return None
    stage, keys = found
    return Job(stage, keys, output, stage.inputs(scale, keys), stage.notebook(keys))


def receipt_of(output: str) -> str:
    """What tells the graph that an output is there: its job's receipt; made-up raw data have none."""
    found = find_stage(output)
    return found[0].receipt.format(**found[1]) if found else output


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


# The last stages of the study: all others are on the way to them.
WHOLE = ("start", "sizes", "terms", "datasets", "leaks", "floors", "simultaneous", "pretrained", "own",
         "attention", "samples", "inference", "audit", "protocols", "cost", "panels", "scoreboard", "plan",
         "lessons")  # fmt: skip


def whole_study(scale: str) -> list[str]:
    """The last outputs of everything that the study holds at a scale.

    With made-up data also page 02, which elsewhere is for whoever has a sentence and an encoder.
    """
    explored = params.load("scales", scale).models[:1] if made_up(scale) else []
    return [STAGES[name].path() for name in WHOLE] + [STAGES["explored"].path(model=model) for model in explored]


def targets(scale: str, words: list[str]) -> list[str]:
    """The outputs that words of the command line stand for: table, model, corpus or vocabulary keys, or the number
    or name of a notebook. No word: the whole study. StudyError with the nearest names for an unknown one."""
    if not words:
        return whole_study(scale)
    jobs = plan(scale, whole_study(scale))
    asked = {path.stem for path in paths.evaluations(scale).glob("*.json")}
    found = []
    for word in words:
        if word in asked:
            found.append(f"evaluations/{word}.csv")
            continue
        named = [job.output for job in jobs.values() if word in (job.notebook, job.notebook.split("_")[0])]
        for kind, stage in (("tables", "table"), ("models", "pretrain"), ("corpora", "corpus"),
                            ("vocabularies", "vocabulary")):  # fmt: skip
            published = kind == "vocabularies" and word in params.keys(kind) and params.load(kind, word).file
            known = params.is_model(word) if kind == "models" else word in params.keys(kind)
            if known and not published:  # which nothing has to be made for
                (wildcard,) = re.findall(r"\{(\w+)\}", STAGES[stage].output)
                named.append(STAGES[stage].path(**{wildcard: BESIDE.get(word, word)}))
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
    code = provenance.notebook_fingerprint(paths.NOTEBOOKS / f"{job.notebook}.ipynb") if job.notebook else ""
    return provenance.fingerprint(code, job.stage.settings(scale, job.keys))


def command(scale: str, job: Job) -> str:
    """The shell command that does a job. Text of a dataset is shown on the pages of made-up data only."""
    start = ["python", "-SP", "lib/study/submit.py"]
    if not job.notebook:
        return shlex.join([*start, MODULES[job.stage.name], scale, *job.keys.values()])
    shown = {"show_text": params.load("scales", scale).made_up}
    wanted = (paths.NOTEBOOKS / f"{job.notebook}.ipynb").read_text(encoding="utf-8")
    keys = {name: key for name, key in job.keys.items() if f"{name}: str" in wanted}  # most make one table
    parameters = json.dumps({"scale": scale, **keys, **(shown if "show_text" in wanted else {})})
    output = f"outputs/{scale}/{job.output}"
    return shlex.join([*start, "lib.study.runner", scale, job.notebook, job.name, parameters, output])
