"""The graph: targets, and what changes of code or prose mean for it."""

import json

import pytest

from lib import provenance
from lib.benchmarks import registry
from lib.errors import StudyError
from lib.study import open_study, params, stages


def test_a_table_needs_its_runs_and_no_more():
    jobs = stages.plan("smoke", stages.targets("smoke", ["lee-4"]))
    names = {job.name for job in jobs.values()}
    assert "30_finetune_words--bert-general--ncbi-disease--lee" in names
    assert "23_pretrain--bert-random" in names
    assert not any(name.startswith(("01_", "00_", "12_")) for name in names)
    order = list(jobs)
    for job in jobs.values():
        assert all(order.index(i) < order.index(job.output) for i in job.inputs if i in jobs)


@pytest.mark.parametrize(
    ("word", "outputs"),
    [
        ("bert-general", ["models/bert-general/record.json"]),
        ("pubmed", ["corpora/pubmed/record.json"]),
        ("pubmed-cased", ["vocabularies/pubmed-cased/record.json"]),
        ("bert-general.2", ["models/bert-general.2/record.json"]),
        ("bio-electra", ["models/bio-electra/record.json"]),  # a published vocabulary too
        ("01", ["tables/claims.csv"]),
        ("01_scoreboard", ["tables/claims.csv"]),
        ("lee-4", ["tables/lee-4.csv"]),
        ("gu-1", ["tables/pieces.csv"]),  # whose page makes all tables of terms
        ("lee-1", ["tables/corpora.csv"]),  # one page has the sizes of all papers' corpora
    ],
)
def test_words_of_the_command_line(word, outputs):
    assert stages.targets("smoke", [word]) == outputs


def test_unknown_targets_name_the_nearest():
    with pytest.raises(StudyError, match="unknown target 'lee-44': did you mean lee-4"):
        stages.targets("smoke", ["lee-44"])


def test_a_model_pretrained_again_continues_one_of_its_own_seed():
    jobs = stages.plan("smoke", stages.targets("smoke", ["biobert-1m.12"]))
    assert [job.keys["model"] for job in jobs.values() if job.stage.name == "pretrain"] == [
        *(f"{key}.12" for key in ("bert-general-half", "biobert-1m")),
    ]


def test_the_graph_fans_out_over_source_files(monkeypatch, tmp_path):
    """1,200 files of PubMed's baseline are 1,200 jobs that need nothing from each other."""
    folder = tmp_path / "corpora" / "pubmed-baseline"
    folder.mkdir(parents=True)
    for number in range(1200):
        (folder / f"pubmed26n{number:04}.xml.gz").touch()
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    jobs = stages.plan("paper", stages.targets("paper", ["pubmed-gu"]))
    files = [job for job in jobs.values() if job.stage.name == "documents"]
    assert len(files) == 1200 and all(job.inputs == ["test-sentences/record.json"] for job in files)
    assert jobs["test-sentences/record.json"].inputs == []
    assert jobs["corpora/pubmed-gu/record.json"].inputs == [job.output for job in files]
    command = stages.command("paper", files[7])
    assert command == "python -SP lib/study/submit.py lib.study.documents paper pubmed-baseline pubmed26n0007.xml.gz"
    before = stages.state("paper", files[7])
    (folder / "pubmed26n0008.xml.gz").write_text("more")
    assert stages.state("paper", files[7]) == before  # another file changes nothing
    (folder / "pubmed26n0007.xml.gz").write_text("more")
    assert stages.state("paper", files[7]) != before


def test_a_corpus_without_text_is_not_planned(monkeypatch, tmp_path):
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    jobs = stages.plan("laptop", stages.whole_study("laptop"))
    assert not [job for job in jobs.values() if job.keys.get("corpus") == "mimic"]
    assert "needs credentials" in open_study("laptop").corpus("mimic").why_not


def test_tables_of_text_and_vocabularies_need_no_model():
    for table in ("lee-1", "wada-2", "gu-1", "gu-8"):
        jobs = stages.plan("smoke", stages.targets("smoke", [table]))
        assert not {job.stage.name for job in jobs.values()} & {"pretrain", "finetune"}


def test_a_notebook_that_makes_several_tables_has_a_copy_for_each():
    jobs = stages.plan("smoke", stages.targets("smoke", ["lee-1", "gu-3", "lee-3", "lee-4"])).values()
    names = {job.name for job in jobs if job.stage.name in ("table", "sizes")}
    assert names == {"11_corpus_sizes", "13_dataset_counts--gu-3", "13_dataset_counts--lee-3", "40_biobert--lee-4"}


def test_a_dataset_outside_the_budget_or_not_at_hand_is_not_planned(monkeypatch, tmp_path):
    jobs = stages.plan("smoke", stages.whole_study("smoke")).values()
    planned = {job.keys["dataset"] for job in jobs if "dataset" in job.keys}
    assert planned == set(params.load("scales", "smoke").datasets)
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    assert all(open_study("laptop").why_not(key) for key in registry.DATASETS)


def test_keys_come_back_from_a_path():
    stage = stages.STAGES["finetune"]
    keys = {"model": "bert-general-pubmed", "dataset": "bc5cdr-chem", "setting": "lee"}
    assert stage.match(stage.path(**keys)) == keys
    assert stage.match("results/a--b.json") is None


@pytest.fixture
def notebook(tmp_path):
    """A notebook with a cell of prose and a cell of code that imports one lib module."""
    path = tmp_path / "n.ipynb"

    def write(prose="Some prose.", code="from lib import metrics", outputs=None):
        cells = [
            {"cell_type": "markdown", "metadata": {}, "source": prose},
            {"cell_type": "code", "metadata": {}, "source": code, "outputs": outputs or [], "execution_count": None},
        ]
        path.write_text(json.dumps({"cells": cells}))
        return provenance.notebook_fingerprint(path)

    return write


def test_prose_and_outputs_do_not_count_and_code_does(notebook):
    before = notebook()
    assert notebook(prose="Other prose.") == before
    assert notebook(outputs=[{"output_type": "stream", "text": "x"}]) == before
    assert notebook(code="from lib.benchmarks import metrics\nmetrics") != before


@pytest.fixture
def library(notebook, tmp_path, monkeypatch):
    """A lib of three modules, a imports b, c stands alone; and a notebook that imports a."""
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    (tmp_path / "lib").mkdir()

    def write(**modules):
        for name, source in modules.items():
            (tmp_path / "lib" / f"{name}.py").write_text(source)
        provenance.read_module.cache_clear()
        return notebook(code="from lib import a")

    write(a='"""Doc."""\nfrom lib import b\nx = b.y', b="y = 1  # why", c="z = 1")
    yield write
    provenance.read_module.cache_clear()


def test_modules_imported_directly_or_not_count_and_others_do_not(library):
    before = library()
    assert library(c="z = 2") == before
    assert library(b="y = 1  # another reason") == before
    assert library(a='"""Another doc."""\nfrom lib import b\nx = b.y') == before
    changed = library(b="y = 2")
    assert changed != before
    assert library(a="from lib.b import y\nx = y") != changed
