# The study as a graph: one rule per stage (lib/study/stages.py), each one notebook run by papermill (lib/study/runner.py).
# Started by ./run_all.sh, which gives the scale and the targets.
from lib.made_up import smoke_data
from lib.study import params, stages

SCALE = config["scale"]
BUDGET = params.load("scales", SCALE)
PROCESSES = {"pretrain": BUDGET.processes or 1}  # of a job; of other stages one
# What a job asks a cluster for; on one machine such jobs take turns. A profile may ask for more (set-resources).
GPUS = {"pretrain": PROCESSES["pretrain"], "finetune": 1} if SCALE in stages.ON_GPUS else {}


def job(stage, wildcards):
    return stages.job_of(SCALE, stage.path(**wildcards))


def receipts(outputs):
    return [f"outputs/{SCALE}/{stages.receipt_of(output)}" for output in outputs]


# Every output on the way, not the last ones alone: a job that failed leaves a hole behind tables that still stand.
rule all:
    input:
        receipts(stages.plan(SCALE, stages.targets(SCALE, config["targets"]))),


rule made_up_data:
    output:
        "outputs/smoke/data/meta.json",
    params:
        state=smoke_data.VERSION,
    shell:
        "exec python -m lib.made_up.smoke_data"


for stage in stages.STAGES.values():

    rule:
        name:
            stage.name
        input:
            lambda wildcards, stage=stage: receipts(job(stage, wildcards).inputs),
        output:
            touch(f"outputs/{SCALE}/{stage.receipt}"),
        wildcard_constraints:
            source=stages.KEY, file=stages.WILDCARDS["file"], corpus=stages.KEY, vocabulary=stages.KEY,
            model=stages.KEY, dataset=stages.KEY, setting=stages.KEY, table=stages.KEY,
        params:
            command=lambda wildcards, stage=stage: stages.command(SCALE, job(stage, wildcards)),
            state=lambda wildcards, stage=stage: stages.state(SCALE, job(stage, wildcards)),
        threads: BUDGET.threads * PROCESSES.get(stage.name, 1)
        resources:
            **({"gpu": GPUS[stage.name]} if stage.name in GPUS else {}),
        shell:
            "exec {params.command}"
