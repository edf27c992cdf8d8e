"""The command line as people type it: words in any order, paths relative to their folder, missing data named early."""

import os
import re
import subprocess
import sys
from collections import defaultdict
from types import SimpleNamespace

import pytest
from conftest import each
from golden import write

from lib import errors
from lib.errors import StudyError
from lib.running import cli, graph, plan
from lib.study import downloads, paths


@pytest.fixture
def asked(monkeypatch) -> list:
    """The parsed options of each call of the command line, which then runs nothing."""
    calls = []
    monkeypatch.setattr(cli, "run_targets", lambda options: calls.append(options) or 0)
    return calls


def test_options_and_targets_stand_in_any_order(asked):
    for words in ("smoke --again pubmedbert --cores 3", "--cores=3 smoke pubmedbert --again"):
        assert cli.main(words.split()) == 0
        options = asked.pop()
        assert (options.words, options.again, options.cores) == (["smoke", "pubmedbert"], True, 3)


@each(
    ("words", "message"),
    [
        ("smokey", "unknown scale or target 'smokey': did you mean smoke"),
        ("laptop", "STUDY_DATA names .*nowhere, which is not there"),
        ("--again", "--again makes anew what is named: ./run_all.sh smoke pubmedbert --again"),
        ("laptop report --status", "'report' takes neither --dry-run nor --status"),
        ("laptop record --dry-run", "'record' takes neither --dry-run nor --status"),
    ],
)
def test_a_wrong_command_is_refused_in_one_line(monkeypatch, capsys, words, message):
    monkeypatch.setattr(cli, "the_only_study", lambda: pytest.fail("it was done"))
    monkeypatch.setenv("STUDY_DATA", "nowhere")
    assert cli.main(words.split()) == 1
    assert re.fullmatch(f"error: {message}.*\n", capsys.readouterr().err)


def test_a_stopped_run_with_again_is_resumed_without_it(monkeypatch, capsys, tmp_path):
    def stop(options):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "run_targets", stop)
    monkeypatch.setattr(cli.report, "build_report", lambda scale: (tmp_path, True))
    for again, words in (([], "the same command goes on from here"), (["--again"], "run it without --again to go on")):
        assert cli.main(["pubmedbert", *again]) == 130 and words in capsys.readouterr().err
        assert cli.finish("smoke", True, bool(again)) == 1 and words in capsys.readouterr().out


def test_relative_paths_count_from_where_the_person_stands(asked, monkeypatch, tmp_path):
    for folder in ("mine", "data", "bert-general", "profile"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STUDY_DATA", "data/../data")
    monkeypatch.setenv("HF_HOME", "hub")
    cli.main(["lee-4", "--profile", "profile"])
    assert asked.pop().profile == str(tmp_path / "profile")
    assert paths.data("laptop") == tmp_path / "data"
    assert os.environ["HF_HOME"] == str(tmp_path / "hub")
    cli.main(["--profile", "profiles/slurm"])  # the study's own profile, which is not in this folder
    assert asked.pop().profile == "profiles/slurm"
    assert cli.name_encoder("./mine") == str(tmp_path / "mine")
    for word in ("bert-general", "some/body", "./no", "~no-such-user/x", 300 * "x"):  # a key comes before a folder
        assert cli.name_encoder(word) == word
    assert cli.as_path("~no-such-user/x") == tmp_path / "~no-such-user/x"


def test_missing_real_data_are_named_before_anything_starts(monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        patch.setenv("STUDY_DATA", "")
        patch.setattr(paths, "real_data", lambda: tmp_path / "data")
        with pytest.raises(StudyError, match="no folder data of real data .*run ./run_all.sh data"):
            paths.require_data("laptop")
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    whole, table = plan.Plan("laptop"), plan.Plan("laptop", ["lee-4"])
    with pytest.raises(StudyError, match="lacks files: ./run_all.sh data vocab .*--partial goes on"):
        cli.check_targets(whole, partial=False)
    cli.check_targets(whole, partial=True)
    needed, manifest = cli.find_groups(table), downloads.load_manifest()
    for source in (source for name in needed for source in manifest[name].sources):
        for entry in source.files:
            write(tmp_path / entry.path, "")
    missing = {*downloads.list_missing(tmp_path)}
    made_here = {name for name, group in manifest.items() if any(entry.conversion for entry in group.made)}
    assert not needed & missing and made_here and made_here <= missing


def test_a_table_needs_its_datasets_whether_at_hand_or_not(own_outputs, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    scores, counts = plan.Plan("laptop", ["lee-4"]), plan.Plan("laptop", ["gu-3"])
    entities = {"ncbi-disease", "bc5cdr-chem", "bc5cdr-disease", "bc2gm", "jnlpba-biobert", "linnaeus", "s800"}
    assert cli.find_groups(scores) == {"vocab", *entities}
    assert {"vocab", "chemprot", "ebm-nlp-blurb", "biosses"} <= cli.find_groups(counts)
    cli.check_targets(scores, partial=True)
    assert "lee-4: left out: bc2gm: BC2GM: no $STUDY_DATA/ner/bc2gm/train.tsv; " in capsys.readouterr().out
    # Planned fine-tuning jobs cover only the data at hand, so they cannot tell which data are needed: all are.
    assert cli.find_groups(SimpleNamespace(asked=defaultdict(list, finetune=[("pubmedbert", "gu")]))) is None


@each(
    ("line", "news"),
    [
        ("Select jobs to execute...start   90_audit\n", "start   90_audit"),  # the two processes write to one pipe
        ("    threads: 1FAILED  12_datasets: no file x\n", "FAILED  12_datasets: no file x"),
        ("FAILED  texts: no file start\n", "FAILED  texts: no file start"),
        ("FAILED  dataset_texts smoke: its process\n", "FAILED  dataset_texts smoke: its process"),
        ("    output: outputs/smoke/notebooks/90_audit.ipynb\n", ""),
    ],
)
def test_news_of_jobs_are_found_also_behind_a_message_of_snakemake(line, news):
    assert graph.find_news(line) == news


def test_every_ended_job_tells_how_many_are_done_and_how_long_the_rest_takes(monkeypatch):
    now = iter([0.0, 0.0, 10.0, 40.0, 300.0])
    monkeypatch.setattr(graph.time, "monotonic", lambda: next(now))
    counter = graph.Counter("smoke")
    counter.count("total        5\n")  # includes the rule `all`
    assert counter.count("", "start   12_datasets") == ""
    assert counter.count("", "done    12_datasets (30 s)") == "; 1 of 4, about 2 min left"
    assert counter.count("", "FAILED  90_audit: no") == "; 2 of 4, about 5 min left"
    counter.count("3 of 5 steps (60%) done\n")  # also counts a job whose line was joined to another's
    assert counter.done == 3


DRY = """\
rule vocabulary:
    output: outputs/laptop/done/vocabulary/wiki-books-cased
    reason: Params have changed since last execution

rule table:
    output: outputs/laptop/done/table/lee-4
    reason: Input files updated by another job: outputs/laptop/done/finetune/x

localrule all:
    input: outputs/laptop/done/table/lee-4
    reason: Input files updated by another job: outputs/laptop/done/table/lee-4
"""


def test_a_dry_run_tells_what_how_many_why_and_how_long(monkeypatch, tmp_path):
    (tmp_path / "40_biobert--a.ipynb").write_text('{"metadata": {"papermill": {"duration": 3.0}}}')
    (tmp_path / "40_biobert--b.ipynb").write_text('{"metadata": {"pap')  # damaged: it does not count
    monkeypatch.setattr(paths, "find_all", lambda *where: sorted(tmp_path.iterdir()))
    changes = [("size", "8192", "4096"), ("cells", "0e52ff6912b7b02c", "1"), ("told", "y" * 41, "z")]
    monkeypatch.setattr(plan.Plan, "changes", lambda *job: changes)
    targets = plan.Plan("laptop", ["lee-4"])
    *table, summary = graph.describe_plan(targets, DRY).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    assert cells[0] == ["stage", "jobs", "why", "about"]
    assert cells[2:] == [
        ["vocabulary", "1", f"size: 8192 -> 4096; its cells changed; told: {'y' * 37}... -> z", ""],
        ["table", "1", "what it reads is made again", "3 s"],
    ]
    assert summary.startswith("2 jobs; 1 of them about 3 s one after the other")
    assert graph.describe_plan(targets, "").startswith("Nothing to do")


def test_lack_of_memory_is_one_line_also_during_imports():
    for error in ("ImportError('x.so: failed to map segment from shared object')", "ValueError('v')"):
        process = subprocess.run(
            [sys.executable, "-c", f"import lib; raise {error}"], cwd=paths.ROOT, capture_output=True, text=True
        )
        expected = [f"error: {errors.TOO_LITTLE_MEMORY}"]
        assert (process.stderr.splitlines() == expected) == (not error.startswith("Value")), process.stderr
    message = "AcceleratorError: CUDA error: out of memory"
    explanation = errors.explain_error(message)  # of a GPU: other advice
    assert explanation.startswith(message) and "micro_batch" in explanation and "--cores" not in explanation


def test_an_error_in_a_notebook_is_one_line():
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell()
    with capture_output() as captured:
        shell.run_cell("from lib.study import requests; requests.read_request('smoke', 'bert-general', 'gus')")
    assert "Traceback" not in captured.stdout
    last = captured.stdout.splitlines()[-1]
    assert last.startswith("error: 'bert-general' has not been evaluated under gus at scale")
    assert "--model bert-general --protocol gus --scale smoke" in last
