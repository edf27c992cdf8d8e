"""The command line as people type it: words in any order, paths relative to their folder, missing data named early."""

import os
import re
import subprocess
import sys
from collections import defaultdict
from types import SimpleNamespace

import pytest
from conftest import each

from lib import errors
from lib.errors import StudyError
from lib.study import cli, downloads, graph, paths, plan


@pytest.fixture
def asked(monkeypatch) -> list:
    """The parsed options of each call of the command line, which then runs nothing."""
    calls = []
    monkeypatch.setattr(cli, "run_targets", lambda options: calls.append(options) or 0)
    return calls


@each(
    "words",
    [
        "smoke --again pubmedbert --cores 3",
        "--again smoke pubmedbert --cores=3",
        "--cores 3 smoke --again pubmedbert",
        "smoke pubmedbert --cores 3 --again",
    ],
)
def test_options_and_targets_stand_in_any_order(asked, words):
    assert cli.main(words.split()) == 0
    options = asked.pop()
    assert (options.words, options.again, options.cores) == (["smoke", "pubmedbert"], True, 3)


@each(
    ("words", "message"),
    [
        ("smokey", "unknown scale or target 'smokey': did you mean smoke"),
        ("laptop", "STUDY_DATA names .*nowhere, which is not there"),
        ("--again", "--again makes anew what is named: ./run_all.sh smoke pubmedbert --again"),
    ],
)
def test_words_that_lead_nowhere_are_one_line(monkeypatch, capsys, words, message):
    monkeypatch.setenv("STUDY_DATA", "nowhere")
    assert cli.main(words.split()) == 1
    assert re.fullmatch(f"error: {message}.*\n", capsys.readouterr().err)


@each("word", ["report", "record"])
def test_what_runs_no_job_refuses_a_dry_run_and_the_status(monkeypatch, capsys, word):
    monkeypatch.setattr(cli, "the_only_study", lambda: pytest.fail("it was done"))
    for option in ("--dry-run", "--status"):
        assert cli.main(["laptop", word, option]) == 1
        assert capsys.readouterr().err == f"error: '{word}' takes neither --dry-run nor --status\n"


def test_a_run_that_was_forced_goes_on_without_the_force(monkeypatch, capsys, tmp_path):
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
    names = {"./mine": str(tmp_path / "mine"), "bert-general": "bert-general", "some/body": "some/body", "./no": "./no"}
    names |= {word: word for word in ("~no-such-user/x", 300 * "x")}
    assert {word: cli.name_encoder(word) for word in names} == names
    assert cli.as_path("~no-such-user/x") == tmp_path / "~no-such-user/x"
    cli.main(["--profile", "profiles/slurm"])  # the study's own profile, which is not in this folder
    assert asked.pop().profile == "profiles/slurm"


def test_a_data_folder_that_is_not_there_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(StudyError, match="STUDY_DATA names .*nowhere, which is not there"):
        paths.require_data("laptop")
    monkeypatch.setenv("STUDY_DATA", "")
    monkeypatch.setattr(paths, "real_data", lambda: tmp_path / "data")
    with pytest.raises(StudyError, match="no folder data of real data .*run ./run_all.sh data"):
        paths.require_data("laptop")


def test_what_real_data_lack_is_said_before_anything_starts(monkeypatch, tmp_path):
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    whole, table = plan.Plan("laptop"), plan.Plan("laptop", ["lee-4"])
    with pytest.raises(StudyError, match="lacks files: ./run_all.sh data vocab .*--partial goes on"):
        cli.check_targets(whole, partial=False)
    cli.check_targets(whole, partial=True)
    needed = cli.find_groups(table)
    assert {"vocab", "ncbi-disease", "bc2gm"} <= needed and not needed & {"hoc", "squad", "biosses"}
    for source in (source for name in needed for source in downloads.load_manifest()[name].sources):
        for entry in source.files:
            (tmp_path / entry.path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / entry.path).touch()
    missing, manifest = {*downloads.list_missing(tmp_path)}, downloads.load_manifest()
    made_here = {name for name, group in manifest.items() if any(entry.conversion for entry in group.made)}
    assert not needed & missing and made_here and made_here <= missing


def test_a_table_asks_for_its_datasets_whether_at_hand_or_not(own_outputs, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    scores, counts = plan.Plan("laptop", ["lee-4"]), plan.Plan("laptop", ["gu-3"])
    entities = {"ncbi-disease", "bc5cdr-chem", "bc5cdr-disease", "bc2gm", "jnlpba-biobert", "linnaeus", "s800"}
    assert cli.find_groups(scores) == {"vocab", *entities}
    assert {"vocab", "chemprot", "ebm-nlp-blurb", "biosses"} <= cli.find_groups(counts)
    cli.check_targets(scores, partial=True)
    assert "lee-4: left out: bc2gm: BC2GM: no $STUDY_DATA/ner/bc2gm/train.tsv; " in capsys.readouterr().out


def test_of_a_models_fine_tunings_all_data_are_asked_for():
    """Planned fine-tuning jobs cannot tell which data are needed, because they cover only the data at hand."""
    assert cli.find_groups(SimpleNamespace(asked=defaultdict(list, finetune=[("pubmedbert", "gu")]))) is None


def test_every_end_says_how_many_are_done_and_about_how_long_the_rest_takes(monkeypatch):
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
    jobid: 4
    reason: Params have changed since last execution

rule pretrain:
    output: outputs/laptop/done/pretrain/bert-general
    jobid: 3
    reason: Missing output files: outputs/laptop/done/pretrain/bert-general
    wildcards: model=bert-general

rule table:
    output: outputs/laptop/done/table/lee-4
    jobid: 1
    reason: Input files updated by another job: outputs/laptop/done/finetune/x
    wildcards: table=lee-4

localrule all:
    input: outputs/laptop/done/table/lee-4
    reason: Input files updated by another job: outputs/laptop/done/table/lee-4
"""


def test_a_dry_run_says_what_how_many_why_and_about_how_long(monkeypatch):
    changes = [
        ("size", "8192", "4096"),
        ("cells", "0e52ff6912b7b02c", "1"),
        ("x, files", "[a]", "[b]"),
        ("told", "y" * 41, "z"),
    ]
    monkeypatch.setattr(plan.Plan, "changes", lambda *job: changes)
    description = graph.describe_plan(plan.Plan("laptop", ["lee-4"]), DRY)
    (seconds,) = {graph.measure_pages("laptop")["40_biobert"]}
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in description.splitlines()]
    assert cells[0] == ["stage", "jobs", "why", "about"]
    assert cells[2:5] == [
        ["vocabulary", "1", f"size: 8192 -> 4096; its cells changed; its files changed; told: {'y' * 37}... -> z", ""],
        ["pretrain", "1", "not made yet", ""],
        ["table", "1", "what it reads is made again", graph.format_time(seconds)],
    ]
    time = graph.format_time(seconds)
    estimate = f"1 of them about {time} one after the other, by earlier runs of the same notebooks"
    assert cells[5][0] == f"3 jobs; {estimate}"
    assert graph.describe_plan(plan.Plan("laptop", ["lee-4"]), "").startswith("Nothing to do")


def test_a_damaged_copy_does_not_stop_a_dry_run(monkeypatch, tmp_path):
    (tmp_path / "40_biobert--a.ipynb").write_text('{"metadata": {"papermill": {"duration": 3.0}}}')
    (tmp_path / "40_biobert--b.ipynb").write_text('{"metadata": {"pap')
    monkeypatch.setattr(paths, "find_all", lambda *where: sorted(tmp_path.iterdir()))
    assert graph.measure_pages("laptop") == {"40_biobert": 3.0}


def test_a_lack_of_memory_is_one_line_also_while_packages_are_imported():
    for error in ("MemoryError()", "ImportError('x.so: failed to map segment from shared object')", "ValueError('v')"):
        process = subprocess.run(
            [sys.executable, "-c", f"import lib; raise {error}"], cwd=paths.ROOT, capture_output=True, text=True
        )
        expected = [f"error: {errors.TOO_LITTLE_MEMORY}"]
        assert (process.stderr.splitlines() == expected) == (not error.startswith("Value")), process.stderr


def test_a_lack_of_memory_of_a_gpu_keeps_its_words_and_names_what_needs_less():
    for message in ("OutOfMemoryError: CUDA out of memory. Tried to", "AcceleratorError: CUDA error: out of memory"):
        explanation = errors.explain_error(message)
        assert explanation.startswith(message) and "micro_batch" in explanation and "--cores" not in explanation


def test_an_error_in_a_notebook_is_one_line():
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell()
    with capture_output() as captured:
        shell.run_cell("from lib.study import requests; requests.read_request('smoke', 'bert-general', 'gus')")
    assert "Traceback" not in captured.stdout
    assert captured.stdout.splitlines()[-1].startswith(
        "error: 'bert-general' has not been evaluated under gus at scale"
    )
    assert "--model bert-general --protocol gus --scale smoke" in captured.stdout
