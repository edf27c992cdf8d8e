# The study as a graph of jobs, one rule per stage. A job is a notebook run by papermill (lib/running/runner.py) or a step
# of lib. ./run_all.sh starts the graph and gives it the scale and the targets.
#
# A job's output here is its receipt, outputs/<scale>/done/<stage>/<keys>, which names what it made. Texts, weights and
# results are not outputs, because Snakemake deletes outputs before it reruns a job and when a job fails.
from lib.running.page_jobs import PAGES
from lib.running.plan import KEY, ON_GPUS, Plan
from lib.study import receipts

plan = Plan(config["scale"], config["targets"])  # every job that the targets need, by stage
budget = plan.study.budget
STEP = "exec python -SP lib/running/submit.py "
RUN = f"{STEP}lib.running.runner {plan.scale} {{output}} {{params.notebook}} "  # rules add what it makes, and its keys


def done(jobs):  # the receipts of jobs
    return [receipts.name(plan.scale, stage, one) for stage, keys in jobs.items() for one in keys]


def receipt(stage, *keys):  # the receipt of any job of a stage, by the wildcards of its keys
    return receipts.name(plan.scale, stage, [f"{{{key}}}" for key in keys])


def read(stage):  # the receipts of the jobs that a job reads
    return lambda wildcards: done(plan.reads(stage, *wildcards))


def job(stage):  # its notebook, and the settings, versions and files whose change reruns it
    return {
        "notebook": lambda wildcards: plan.notebook(stage, *wildcards),
        "state": lambda wildcards: plan.state(stage, *wildcards),
    }


def gpus(number):  # on one machine, jobs that request a GPU take turns; a profile may request more (set-resources)
    return {"gpu": number} if plan.scale in ON_GPUS else {}


wildcard_constraints:
    source=KEY, file=r"[^/]+", corpus=KEY, vocabulary=KEY, model=KEY, dataset=KEY,
    protocol=KEY, family=KEY, table=KEY, page=r"\w+",


rule all:
    input:
        done(plan.jobs),


rule texts:  # hash the sentences of every test set: no corpus keeps a document that contains one
    output:
        receipts.name(plan.scale, "texts", ["all"]),
    params:
        state=plan.state("texts", "all"),
    shell:
        STEP + f"lib.study.dataset_texts {plan.scale} {{output}}"


rule documents:  # turn one raw file into rows: PubMed's 1,200 files are 1,200 parallel jobs
    input:
        read("documents"),
    output:
        receipt("documents", "source", "file"),
    params:
        **job("documents"),
    threads: budget.threads
    shell:
        STEP + f"lib.study.documents {plan.scale} {{wildcards.source}} {{wildcards.file:q}} {{output:q}}"


rule corpus:  # select, clean and deduplicate documents of its files; count everything left out
    input:
        read("corpus"),
    output:
        receipt("corpus", "corpus"),
    params:
        **job("corpus"),
    threads: budget.threads
    shell:
        RUN + "corpora/{wildcards.corpus}/record.json corpus={wildcards.corpus}"


rule vocabulary:
    input:
        read("vocabulary"),
    output:
        receipt("vocabulary", "vocabulary"),
    params:
        **job("vocabulary"),
    threads: budget.threads
    shell:
        RUN + "vocabularies/{wildcards.vocabulary}/record.json vocabulary={wildcards.vocabulary}"


rule pretrain:  # pretrain a model from its text, its vocabulary and any model that it continues
    input:
        read("pretrain"),
    output:
        receipt("pretrain", "model"),
    params:
        **job("pretrain"),
    threads: budget.threads * (budget.processes or 1)
    resources:
        **gpus(budget.processes or 1),
    shell:
        RUN + "models/{wildcards.model}/record.json model={wildcards.model}"


rule tuning:  # the settings search of a protocol that has one
    input:
        read("tuning"),
    output:
        receipt("tuning", "model", "dataset", "protocol"),
    params:
        **job("tuning"),
        made=lambda wildcards: "--".join(wildcards),
    threads: budget.threads
    shell:
        RUN + "tuning/{params.made}.json model={wildcards.model} dataset={wildcards.dataset} "
        "protocol={wildcards.protocol}"


rule finetune:  # a model on a family of tasks under a protocol: every dataset, seed and fold, each saved separately
    input:
        read("finetune"),
    output:
        receipt("finetune", "model", "protocol", "family"),
    params:
        **job("finetune"),
        made=lambda wildcards: [f"results/{'--'.join(run)}.json" for run in plan.runnable.runs_in(*wildcards)],
        datasets=lambda wildcards: ",".join(dataset for _, dataset, _ in plan.runnable.runs_in(*wildcards)),
    threads: budget.threads
    resources:
        **gpus(1),
    shell:
        RUN + "{params.made} model={wildcards.model} protocol={wildcards.protocol} datasets={params.datasets}"


rule table:  # a published table or figure with our results beside it
    input:
        read("table"),
    output:
        receipt("table", "table"),
    params:
        **job("table"),
        key=lambda wildcards: plan.table_key(wildcards.table),
    threads: budget.threads
    shell:
        RUN + "tables/{wildcards.table}.csv {params.key}"


rule page:  # pages that take no key, the first to the last; lib/running/page_jobs.py lists them and what they read
    input:
        read("page"),
    output:
        receipt("page", "page"),
    params:
        **job("page"),
        made=lambda wildcards: [f"tables/{name}.csv" for name in PAGES[wildcards.page].tables],
    threads: budget.threads
    shell:
        RUN + "{params.made}"


rule explored:  # what an encoder makes of a sentence: page 02
    input:
        read("explored"),
    output:
        receipt("explored", "model"),
    params:
        **job("explored"),
    threads: budget.threads
    shell:
        RUN + "explored/{wildcards.model}.csv model={wildcards.model}"


rule evaluation:  # a user's encoder on a paper's benchmarks: ./run_all.sh evaluate
    input:
        read("evaluation"),
    output:
        receipt("evaluation", "model", "protocol"),
    params:
        **job("evaluation"),
    threads: budget.threads
    shell:
        RUN + "evaluations/{wildcards.model}--{wildcards.protocol}.csv model={wildcards.model} "
        "protocol={wildcards.protocol}"
