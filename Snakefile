# The study as a graph: one rule per stage (lib/stages.py), each one notebook run by papermill (lib/runner.py).
# Started by ./run_all.sh, which gives the scale and the targets.
from pathlib import Path

from lib import params, smoke_data, stages

SCALE = config["scale"]
BUDGET = params.load("scales", SCALE)
PROCESSES = {"pretrain": BUDGET.processes or 1}  # of a job; of other stages one
# What a job asks a cluster for; on one machine such jobs take turns. A profile may ask for more (set-resources).
GPUS = {"pretrain": PROCESSES["pretrain"], "finetune": 1} if SCALE in stages.ON_GPUS else {}
# Tables that a stage of their own writes are not those of the stage `table`.
NO_OTHER = "(?!(" + "|".join(Path(s.output).stem for s in stages.STAGES.values() if "{" not in s.output) + ")[.]csv)"


def job(stage, wildcards):
    return stages.job_of(SCALE, stage.path(**wildcards))


# Every output on the way, not the last ones alone: a job that failed leaves a hole behind tables that still stand.
rule all:
    input:
        [f"outputs/{SCALE}/{output}" for output in stages.plan(SCALE, stages.targets(SCALE, config["targets"]))],


rule made_up_data:
    output:
        "outputs/smoke/data/meta.json",
    params:
        state=smoke_data.VERSION,
    shell:
        "exec python -m lib.smoke_data"


for stage in stages.STAGES.values():

    rule:
        name:
            stage.name
        input:
            lambda wildcards, stage=stage: [f"outputs/{SCALE}/{path}" for path in job(stage, wildcards).inputs],
        output:
            f"outputs/{SCALE}/{stage.output}",
        wildcard_constraints:
            source=stages.KEY, file=stages.WILDCARDS["file"], corpus=stages.KEY, vocabulary=stages.KEY,
            model=stages.KEY, dataset=stages.KEY, setting=stages.KEY,
            table=NO_OTHER + stages.KEY,
        params:
            command=lambda wildcards, stage=stage: stages.command(SCALE, job(stage, wildcards)),
            state=lambda wildcards, stage=stage: stages.state(SCALE, job(stage, wildcards)),
        threads: BUDGET.threads * PROCESSES.get(stage.name, 1)
        resources:
            **({"gpu": GPUS[stage.name]} if stage.name in GPUS else {}),
        shell:
            "exec {params.command}"
