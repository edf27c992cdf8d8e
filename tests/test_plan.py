"""Tests of the job graph: targets, and which changes of files, code or prose make jobs run again."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from conftest import change_settings, each
from golden import write_files

from lib import provenance
from lib.benchmarks import datasets, registry
from lib.errors import StudyError
from lib.finetuning import protocol
from lib.running import page_jobs, plan, stages
from lib.study import claims, open_study, params, paths


def list_jobs(*words: str, scale: str = "smoke") -> dict[str, list]:
    """Return the jobs of targets on the command line by stage, without empty stages."""
    return {stage: keys for stage, keys in plan.Plan(scale, words).jobs.items() if keys}


def test_a_table_needs_its_runs_and_no_more():
    jobs = list_jobs("lee-4")
    assert {*jobs["finetune"]} == {(model, "lee", "tagging") for model in ("bert-general", "bert-general-pubmed")}
    assert {*jobs["pretrain"]} == {("bert-general",), ("bert-general-half",), ("bert-general-pubmed",)}
    assert jobs["table"] == [("lee-4",)] and jobs["page"] == [(page_jobs.BASELINE_PAGE,)]


@each(
    ("word", "stage", "key"),
    [
        ("pubmed", "corpus", "pubmed"),
        ("pubmed-cased", "vocabulary", "pubmed-cased"),
        ("bert-general.2", "pretrain", "bert-general.2"),
        ("01", "page", "01_results_in_brief"),
        ("lee-4", "table", "lee-4"),
        ("gu-1", "page", "21_medical_terms"),  # one page makes all tables of terms
    ],
)
def test_a_word_of_the_command_line_stands_for_jobs(word, stage, key):
    assert plan.Plan("smoke").find(word) == {stage: [(key,)]}


def test_unknown_targets_name_the_nearest():
    with pytest.raises(StudyError, match="unknown target 'lee-44': did you mean lee-4"):
        list_jobs("lee-44")
    with pytest.raises(StudyError, match=r"unknown target 'bert-cased': did you mean (?!.*\bbert-cased)"):
        list_jobs("bert-cased")  # a published vocabulary, which is not trained
    with pytest.raises(StudyError, match="'bert-general-pubmed' cannot be run at scale 'released': its weights were"):
        list_jobs("bert-general-pubmed", scale="released")


def test_a_model_pretrained_again_continues_one_of_its_own_seed():
    assert {*list_jobs("biobert-1m.12")["pretrain"]} == {("bert-general-half.12",), ("biobert-1m.12",)}


def test_each_source_file_is_a_job_of_its_own(monkeypatch, tmp_path):
    folder = tmp_path / "corpora" / "pubmed-baseline"
    write_files(folder, {f"pubmed26n{number:04}.xml.gz": "" for number in range(10)})
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    graph = plan.Plan("paper", ["pubmed-gu"])
    files = graph.jobs["documents"]
    assert len(files) == 10 and graph.jobs["texts"] == [("all",)]
    before = graph.state("documents", *files[7])
    (folder / "pubmed26n0008.xml.gz").write_text("more")
    assert graph.state("documents", *files[7]) == before  # a change of another file makes no difference
    (folder / "pubmed26n0007.xml.gz").write_text("more")
    assert graph.state("documents", *files[7]) != before


def test_what_is_not_at_hand_or_outside_the_budget_is_not_planned(monkeypatch, tmp_path):
    planned = plan.Plan("smoke").runnable.planned.values()
    assert {dataset for runs in planned for _, dataset, _ in runs} <= {*params.load("scales", "smoke").datasets}
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    assert ("mimic",) not in plan.Plan("laptop").jobs["corpus"]
    assert "needs credentials" in open_study("laptop").corpus("mimic").why_not
    assert all(open_study("laptop").why_not(key) for key in registry.DATASETS)


def test_smoke_is_a_demonstration_of_a_hundred_jobs():
    assert sum(map(len, list_jobs().values())) <= 103  # pages 04, 05 and 96 only show what others make


def test_a_notebook_of_several_tables_gets_the_table_as_a_parameter():
    graph = plan.Plan("smoke", ["gu-3", "lee-4", "gu-6"])
    notebooks = [(graph.notebook("table", *key), graph.table_key(*key)) for key in graph.jobs["table"]]
    assert notebooks == [("13_dataset_counts", "table=gu-3"), ("40_biobert", "table=lee-4"), ("50_blurb", "")]


def test_snakemake_plans_the_same_jobs():
    targets = ["lee-4", "wada-6", "ozyurt-7", "pubmedbert", "94"]
    start = "from snakemake.cli import main; main()"
    options = ["--dry-run", "--forceall", "--quiet", "rules", "--nolock", "--config", "scale=smoke"]
    command = [sys.executable, "-c", start, *options, f"targets={json.dumps(targets)}"]
    process = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=True)
    counts = dict(re.findall(r"^(\w+) +(\d+)$", process.stdout + process.stderr, re.M))
    assert {stage: int(counts[stage]) for stage in counts.keys() & {*plan.STAGES}} == {
        stage: len(keys) for stage, keys in list_jobs(*targets).items()
    }


def test_a_change_of_code_counts_but_not_of_prose_or_outputs(tmp_path):
    def write(prose="Some prose.", code="from lib import metrics", outputs=()):
        cells = [
            {"cell_type": "markdown", "metadata": {}, "source": prose},
            {"cell_type": "code", "metadata": {}, "source": code, "outputs": [*outputs], "execution_count": None},
        ]
        (tmp_path / "n.ipynb").write_text(json.dumps({"cells": cells}))
        return provenance.code_fingerprint(tmp_path / "n.ipynb")

    before = write()
    assert write(prose="Other prose.") == before
    assert write(outputs=[{"output_type": "stream", "text": "x"}]) == before
    assert write(code="from lib.benchmarks import metrics\nmetrics") != before


def test_a_new_version_of_fine_tuning_reruns_fine_tuning_only(monkeypatch):
    graph = plan.Plan("smoke")
    jobs = [("finetune", "bert-general", "lee", "tagging"), ("pretrain", "bert-general"), ("table", "lee-4")]
    before = [graph.state(*job) for job in jobs]
    monkeypatch.setattr(protocol, "VERSION", 0)
    assert [graph.state(*job) == state for job, state in zip(jobs, before, strict=True)] == [False, True, True]


def test_a_new_version_of_the_claims_reruns_every_page_that_shows_verdicts(monkeypatch):
    graph, jobs = plan.Plan("smoke"), []
    for stage in ("table", "page"):
        for job in graph.jobs[stage]:
            code = (paths.NOTEBOOKS / f"{graph.notebook(stage, *job)}.ipynb").read_text()
            if re.search(r"claims\.(judge|show_of)", code):
                jobs.append((stage, *job))
    before = [graph.state(*job) for job in jobs]
    monkeypatch.setattr(claims, "VERSION", 0)
    assert len(jobs) > 20
    assert not [job for job, state in zip(jobs, before, strict=True) if graph.state(*job) == state]


def test_a_new_version_of_a_reader_reruns_what_reads_every_dataset(monkeypatch):
    graph = plan.Plan("smoke")
    jobs = [("texts", "all"), *(("page", key) for key in page_jobs.PAGES if key[:2] in ("12", "14", "15", "71", "91"))]
    before = [graph.state(*job) for job in jobs]
    monkeypatch.setitem(registry.DATASETS, "hoc", replace(registry.lookup("hoc"), version=9))
    assert len(jobs) == 6 and all(graph.state(*job) != state for job, state in zip(jobs, before, strict=True))


def test_other_public_weights_or_another_first_dataset_rerun_fine_tuning(monkeypatch):
    graph = plan.Plan("released", ["pubmed"])
    graph.runnable.planned = {("bert-general", "lee", "questions"): [("bert-general", "bioasq-7b-factoid", "lee")]}
    monkeypatch.setattr(stages, "raw_files_state", lambda files: [])
    monkeypatch.setattr(datasets.Dataset, "paths", lambda *part: [])
    job = "finetune", "bert-general", "lee", "questions"
    states = [graph.state(*job)]
    monkeypatch.setitem(registry.DATASETS, "squad", replace(registry.lookup("squad"), version=9))
    states.append(graph.state(*job))
    change_settings(monkeypatch, "models", "bert-general", revision="0" * 40)
    states.append(graph.state(*job))
    assert states[0] != states[1] != states[2]


def test_settings_in_another_order_are_the_same(monkeypatch):
    """Snakemake compares settings by their `repr`, so the order of a dictionary must not matter."""
    graph, order = plan.Plan("smoke"), [1]
    monkeypatch.setattr(stages.CorpusStage, "state", lambda *job: {"a": {key: 0 for key in "xy"[:: order[0]]}, "b": 1})
    before = str(graph.state("corpus", "wiki-books"))
    order[0] = -1
    assert str(graph.state("corpus", "wiki-books")) == before
