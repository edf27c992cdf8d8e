"""The whole study in a small copy: run, killed, resumed, edited, failed, rendered."""

import ast
import html
import json
import os
import re
import shutil
import signal
import time
from urllib.parse import unquote

import nbformat
import pandas as pd
import pytest
from conftest import each, finish, jobs_started, outputs_in
from golden import write

from lib.running import cli, report, warm

EVERYTHING = 31  # notebooks in the tiny study


def processes_in(folder) -> list[int]:
    """Processes that run in a folder, or below it."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/cwd").startswith(str(folder)):
                found.append(int(pid))
        except OSError:
            continue
    return found


def read_scores(path) -> list[dict]:
    return [run["scores"] for run in json.loads(path.read_text())["runs"]]


def artefacts_of(study) -> dict[str, int]:
    """When each expensive file was written, without those of unfinished work and its checkpoints."""
    files = [path for kind in ("*.safetensors", "*.parquet", "vocab.txt") for path in study.outputs.rglob(kind)]
    return {str(path): path.stat().st_mtime_ns for path in files if not re.search(r"[.](tmp|partial)", str(path))}


def test_it_runs_from_raw_text_to_a_table_and_a_report(finished_study):
    assert len(jobs_started(finished_study.first_output)) == EVERYTHING
    assert "Report: outputs/smoke/report/index.html" in finished_study.first_output
    assert max(pd.read_csv(finished_study.outputs / "results.csv")["score"]) > 0
    table = (finished_study.outputs / "tables" / "lee-4.csv").read_text()
    assert table.count("made-up data: not a finding") == 6  # two models, one dataset, three metrics
    assert not list((finished_study.outputs).rglob("*.tmp"))
    record = json.loads((finished_study.outputs / "models" / "bert-general" / "record.json").read_text())
    printing = "from lib.study import open_study; print(open_study('smoke').model('bert-general').count_work())"
    work = ast.literal_eval(finished_study.run_code(printing))
    assert work["tokens"] == record["tokens"] > 0
    assert work["flops"] == pytest.approx(record["FLOPs"])


def test_a_second_run_finds_nothing_to_do(whole_study):
    begun = time.monotonic()
    output = whole_study.run()
    assert "Nothing to do" in output and "Report, unchanged" in output
    assert jobs_started(output) == []
    assert time.monotonic() - begun < 60  # the promise is 8 s on a quiet machine; this only catches a rerun


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="counts orphans in /proc")
def test_killed_it_leaves_no_orphans_and_resumes_to_the_same_numbers(finished_study, study, monkeypatch):
    for made in ("models", "predictions", "results", "tokens", "vectors"):  # what follows the vocabularies
        shutil.rmtree(study.outputs / made)
    (study.outputs / "tables/lee-4.csv").unlink()
    finished = artefacts_of(study)
    for wait_for in ("23_pretrain--bert-general", "30_finetune_words"):
        with monkeypatch.context() as patch:
            if wait_for.startswith("23"):  # a warm parent of the study's own, which is killed with it
                patch.delenv(warm.ADDRESS, raising=False)
            process = study.start("lee-4")
        for line in process.stdout:
            if f" start   {wait_for}" in line:
                break
        if wait_for.startswith("23"):
            refused = study.run("lee-4", fails=True)  # takes a few seconds, in which the first one works on
            assert f"a study is already running in this folder (process {process.pid})" in refused
        process.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + 10
        while processes_in(study.folder) and time.monotonic() < deadline:
            time.sleep(0.5)
        assert processes_in(study.folder) == []
        process.stdout.close()
        process.wait()
        assert finished.items() <= artefacts_of(study).items()  # nothing that was whole was made again
        finished = artefacts_of(study)
    assert re.search(r"^pretrain +[12] of 2 done$", status := study.run("--status", "lee-4"), re.M)
    assert re.search(r"^interrupted +30_finetune_words", status, re.M)
    study.run_without_report("lee-4")
    assert len(finished) >= 3
    assert finished.items() <= artefacts_of(study).items()
    for name in ("tables/lee-4.csv", "models/bert-random/model.safetensors", "models/bert-general/model.safetensors"):
        assert (study.outputs / name).read_bytes() == (finished_study.outputs / name).read_bytes()
    for path in (study.outputs / "results").glob("*.json"):
        assert read_scores(path) == read_scores(finished_study.outputs / "results" / path.name)
    assert not list(study.outputs.rglob("*.tmp"))


def test_prose_and_saving_redo_nothing_code_and_settings_redo_what_depends(study):
    path = study.folder / "notebooks" / "23_pretrain.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].source += "\n\nA new remark."
    notebook.cells[2].execution_count = 7
    nbformat.write(notebook, path)
    study.edit_text("lib/benchmarks/metrics.py", '"""Metrics: pure', '"""Metrics, all of them: pure')
    output = study.run()
    assert jobs_started(output) == []
    assert "Report: " in output  # the page takes the new prose
    page = (study.outputs / "report" / "23_pretrain--bert-general.html").read_text()
    assert "A new remark." in page and "bert-general: What does a model learn" in page

    # The version of fine-tuning: it would be done again, and what reads it; no model.
    study.edit_text("lib/finetuning/protocol.py", "VERSION = 2", "VERSION = 99")
    planned = set(re.findall(r"^(?:local)?rule (\w+):", study.run("--dry-run", "--verbose"), re.M))
    assert planned == {"all", "finetune", "table", "page", "explored"}
    study.edit_text("lib/finetuning/protocol.py", "VERSION = 99", "VERSION = 2")

    # A code cell: this notebook again and those that follow it, but what is finished is found, and nothing retrains.
    before = artefacts_of(study)
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[-2].source += "\nprint('more')"
    nbformat.write(notebook, path)
    again = {name.split("--")[0] for name in jobs_started(study.run_without_report("lee-4"))}
    assert again == {"23_pretrain", "30_finetune_words", "40_biobert"}
    assert artefacts_of(study) == before


def test_changed_settings_are_told_with_their_values_before_and_now(study):
    printing = """
from lib.running.plan import Plan
for stage, keys in (("pretrain", ("bert-general",)), ("finetune", ("bert-general", "lee", "tagging")),
                    ("vocabulary", ("wiki-books-cased",)), ("corpus", ("wiki-books",)), ("pretrain", ("bert-mini",))):
    print(Plan("smoke").changes(stage, keys))
"""
    study.edit_text("params/scales/smoke.yaml", "learning_rate: 3.0e-3", "learning_rate: 4.0e-3")
    study.edit_text("params/scales/smoke.yaml", "learning_rate: [5.0e-3]", "learning_rate: [5.0e-3, 6.0e-3]")
    study.edit_text("params/scales/smoke.yaml", "vocabulary_size: 400", "vocabulary_size: 300")
    assert study.run_code(printing).splitlines() == [
        "[('phases, 1, learning_rate', '0.003', '0.004')]",
        "[('ncbi-disease, learning_rate', '0.005', '0.005, 0.006')]",
        "[('size', '400', '300')]",
        "[]",
        "[]",
    ]


def test_again_makes_anew_what_is_named_and_what_follows_only_where_the_content_has_changed(study):
    """An edit of lib moves no identity: the weights would be found, and with them old scores and an old table."""
    weights, table = study.outputs / "models/bert-general/model.safetensors", study.outputs / "tables/lee-4.csv"
    results = study.outputs / "results/bert-general--ncbi-disease--lee.json"

    def read():
        return weights.read_bytes(), read_scores(results), table.read_text()

    before, made = read(), weights.stat().st_mtime_ns
    assert jobs_started(study.run_without_report("bert-general", "--again")) == ["23_pretrain--bert-general"]
    assert weights.stat().st_mtime_ns > made and read() == before  # anew, and the same
    study.edit_text("lib/training/optimizers.py", "return phase.learning_rate *", "return 0.1 * phase.learning_rate *")
    assert jobs_started(study.run_without_report("lee-4")) == []
    assert jobs_started(study.run_without_report("bert-general", "--again")) == ["23_pretrain--bert-general"]
    assert read()[0] != before[0] and read()[1:] == before[1:]
    again = jobs_started(study.run_without_report("lee-4"))
    assert again == ["30_finetune_words--bert-general--lee--tagging", "40_biobert"]
    assert all(now != then for now, then in zip(read(), before, strict=True))


def test_a_failure_is_one_message_kept_and_linked_and_mended(study):
    name = "30_finetune_words--bert-random--lee--tagging"
    data = study.folder / "made-up" / "ner" / "ncbi-disease" / "train.tsv"
    whole = data.read_text()
    data.write_text(whole.replace("\t", "", 1))
    study.edit_text("params/scales/smoke.yaml", "epochs: [3]", "epochs: [2]")
    made = {path: path.read_bytes() for path in (study.outputs / "results").glob("bert-random--ncbi-disease--*.json")}
    weights = study.outputs / "models" / "bert-general" / "model.safetensors"
    trained = weights.stat().st_mtime_ns
    output = study.run("lee-4", fails=True)
    assert made and all(path.read_bytes() == content for path, content in made.items())  # finished before: it stays
    assert re.search(rf"FAILED  {name}: .*train.tsv:1: expected", output) and "Traceback" not in output
    assert (study.outputs / "failed" / f"{name}.ipynb").exists()
    assert f"{name}--failed.html" in (study.outputs / "report" / "index.html").read_text()
    page = (study.outputs / "report" / f"{name}--failed.html").read_text()
    assert "FAILED: bert-random · lee · tagging: How well" in page
    assert "FAILED" in study.run("--status")
    data.write_text(whole)
    again = {name.split("--")[0] for name in jobs_started(study.run("lee-4"))}
    assert again == {"15_without_pretraining", "30_finetune_words", "40_biobert"}
    assert weights.stat().st_mtime_ns == trained
    assert not any(path.read_bytes() == content for path, content in made.items())
    assert not list((study.outputs / "failed").glob("*.ipynb"))
    assert "failed" not in (study.outputs / "report" / "index.html").read_text()


def test_list_and_dry_run(study):
    assert "lee-4" in study.run("--list")
    again = study.run("lee-4", "--again", "--dry-run", "--verbose")
    assert re.findall(r"^(?:local)?rule (\w+):", again, re.M) == ["table", "all"]
    assert "Nothing to do" in study.run("lee-4", "--dry-run")  # and asking has changed nothing
    (study.outputs / "models" / "bert-random" / "record.json").unlink()
    output = study.run("--dry-run")
    assert re.search(r"^\| pretrain +\| +1 \| not made yet", output, re.M)  # what is deleted is made again
    assert jobs_started(output) == []


def test_the_report_asks_no_other_host_and_shows_findings_first(finished_study):
    site = finished_study.outputs / "report"
    for page in site.glob("*.html"):
        text = page.read_text()
        loaded = re.findall(r"<(?:script|img|iframe)[^>]+src=\"([^\"]+)\"", text)
        loaded += re.findall(r"<link[^>]+rel=\"(?:stylesheet|preload)\"[^>]+href=\"([^\"]+)\"", text)
        assert loaded and not [address for address in loaded if address.startswith(("http", "//"))]
    _, index = (site / "index.html").read_text().split("<article", 1)  # the menu stands before it
    parts = ("What we see", 'class="figure"', "Made-up data", "Claims at a glance", "Claims one by one",
             "40_biobert.html")  # fmt: skip
    assert [*parts] == sorted(parts, key=index.index)
    copies = {path.stem for path in (finished_study.outputs / "notebooks").glob("*.ipynb")}
    lists = {name.split("--")[0] for name in copies}  # of a notebook that was run several times
    assert len(copies) == EVERYTHING
    assert copies - {report.FRONT} <= {path.stem for path in site.glob("[0-9]*.html")} <= copies | lists
    assert "<details" in (site / "40_biobert.html").read_text()


def test_every_link_of_the_report_leads_somewhere(finished_study):
    site = finished_study.outputs / "report"
    pages = {path.name: path.read_text() for path in site.glob("*.html")}
    anchors = {name: {*re.findall(r"\bid=\"([^\"]+)\"", text)} for name, text in pages.items()}
    followed, dead = 0, set()
    for name, text in pages.items():
        for address in re.findall(r"<a\b[^>]*\bhref=\"([^\"]+)\"", text):
            page, _, anchor = unquote(html.unescape(address)).partition("#")
            if not page.startswith(("http:", "https:", "mailto:")):
                page, followed = page or name, followed + 1
                if not (site / page).is_file() or (anchor and anchor not in anchors.get(page, ())):
                    dead.add((name, address))
    assert followed > 1000 and not dead


def test_nothing_written_names_the_machine(finished_study):
    places = [str(finished_study.folder), os.path.expanduser("~/")]
    for path in finished_study.outputs.rglob("*"):
        if path.suffix in (".ipynb", ".html", ".csv", ".json", ".svg") and path.parent.name != ".snakemake":
            text = path.read_text(errors="replace")
            assert not [place for place in places if place in text], path


def test_any_encoder_is_evaluated_by_papermill_or_with_one_command(study, tmp_path):
    """The documented commands, for a folder in the save_pretrained layout."""
    model = tmp_path / "Some_Body's Model"
    shutil.copytree(study.outputs / "models/bert-general", model)
    for name in ("record.json", "log.jsonl"):
        (model / name).unlink()
    ours = read_scores(study.outputs / "results/bert-general--ncbi-disease--lee.json")

    def run_papermill(notebook, *words):
        out = str(tmp_path / "out.ipynb")
        return study.start_python("-m", "papermill", f"notebooks/{notebook}.ipynb", out, "-p", *words)

    wrong = finish(run_papermill("40_biobert", "tabel", "x"), fails=True)
    assert "unknown parameter of this notebook 'tabel': did you mean table" in wrong
    finish(run_papermill("30_finetune_words", "model", str(model), "-y", "datasets: [ncbi-disease]"))
    (results,) = (study.outputs / "results").glob("some-body-s-model-*--ncbi-disease--lee.json")
    assert read_scores(results) == ours

    words = ["evaluate", "--model", str(model), "--scale", "smoke", "--protocol", "lee"]
    datasets = ["--datasets", "ncbi-disease", "biosses", "--compare", "bert-general", "nowhere/at/all"]
    output = study.run(*words, *datasets)
    assert "left out: nowhere/at/all: no folder nowhere/at/all" in output
    assert "Some_Body's Model: BertModel, 0.0 million parameters; 400 tokens, up to 32 at once" in output
    assert "lee at scale smoke: 2 of 2 sets at hand, 8 trainings" in output
    assert re.search(r"ncbi-disease: \d+.\d% of its words hold an unknown token, \d+.\d% are cut into three", output)
    assert "Report: outputs/smoke/report/index.html" in output
    (path,) = (study.outputs / "evaluations").glob("*.csv")
    key, _, protocol = path.stem.partition("--")
    assert re.fullmatch("some-body-s-model-[0-9a-f]{6}", key) and protocol == "lee"
    lines = pd.read_csv(path, keep_default_na=False).set_index("dataset")
    assert set(lines.index) == {"ncbi-disease", "biosses"} and (lines["n_seeds"] == 2).all()
    page = (study.outputs / "report" / f"02_evaluate--{path.stem}.html").read_text()
    assert "paper: BioBERT (+PubMed+PMC) (lee-4)" in page and "The encoder: <strong>Some_Body" in page
    assert "with an unknown token" in page and str(tmp_path) not in page
    side_by_side = page[page.index("Beside other encoders") : page.index("averages over datasets")]
    assert f">{key}<" in side_by_side and ">bert-general<" in side_by_side
    assert key not in (study.outputs / "results.csv").read_text()  # not part of the study
    assert {file.stem for file in (study.outputs / "result-files").glob("*.json")} == {path.stem, "bert-general--lee"}

    words += ["--datasets", "ncbi-disease", "--save", str(tmp_path / "saved")]
    output = study.run_without_report(*words)  # the scores are there, and the models are not
    assert "not saved yet, so every seed is trained, also where its score is there: ncbi-disease" in output
    job = f"30_finetune_words--{key}--{protocol}--tagging"
    assert job in jobs_started(output)
    record = json.loads((tmp_path / "saved/ncbi-disease/record.json").read_text())
    runs = json.loads(results.read_text())["runs"]
    assert record["complete"] and {*record["compared"]} == {run["fingerprint"] for run in runs}
    assert read_scores(results) == ours
    card = (tmp_path / "saved/ncbi-disease/README.md").read_text()
    assert "| protocol | lee |" in card and str(tmp_path) not in card
    assert jobs_started(study.run_without_report(*words)) == []
    assert not (model / "record.json").exists()  # nothing is written into the user's folder


def test_an_encoder_is_put_through_data_of_ones_own(study, tmp_path):
    rows = [f"{'babrer' if n % 2 else 'tevilolol'} in case {n},{'town' if n % 2 else 'drug'}" for n in range(24)]
    write(tmp_path / "mine/train.csv", "\n".join(["text,label", *rows]) + "\n")
    words = ["evaluate", "--model", "bert-general", "--data", str(tmp_path / "mine"), "--scale", "smoke"]
    output = study.run(*words, "--protocol", "lee")
    (own,) = (study.outputs / "own-data").glob("own-mine-*")
    assert "mine: a table, one class for each text (drug, town)" in output
    assert f"outputs/smoke/own-data/{own.name}/division.tsv" in output
    (line,) = pd.read_csv(study.outputs / "evaluations/bert-general--lee.csv").to_dict("records")
    assert line["dataset"] == own.name and line["score"] == "accuracy" and line["without_pretraining"] > 0
    page = (study.outputs / "report/02_evaluate--bert-general--lee.html").read_text()
    assert all(words in page for words in ("macro f1", "linear SVM", "gold (rows) and predicted", "0 of 17"))
    constant, *_ = pd.read_csv(study.outputs / "baselines" / own.name / "baselines.csv").to_dict("records")
    assert constant["macro f1"] == pytest.approx(100 * constant["score"] / (100 + constant["score"]), abs=0.01)
    assert own.name not in (study.outputs / "results.csv").read_text()
    (sent,) = (study.outputs / "result-files").glob("*.json")
    content = sent.read_text()
    assert own.name in content and "babrer" not in content and str(tmp_path) not in content
    output = study.run("leaderboard", str(sent.parent), "--scale", "smoke")
    assert "Scores: outputs/smoke/leaderboard/scores.csv\nReport: outputs/smoke/report/index.html" in output
    lines = pd.read_csv(study.outputs / "leaderboard/scores.csv").query("dataset == @own.name")
    assert lines["kind"].tolist()[0] == "encoder" and "best without pretraining" in [*lines["model"]]


@each(
    ("words", "message"),
    [
        (["--model", "nowhere/at/all"], "no folder nowhere/at/all"),
        (["--model", "bert-general", "--protocol", "gus"], "unknown protocol 'gus': did you mean gu"),
        (["--model", "bert-general", "--datasets", "ncbi-diseas"], "unknown dataset 'ncbi-diseas': did you mean ncbi"),
        (["--model", "bert-general", "--datasets", "chemprot-blurb"], "none of chemprot-blurb is at hand"),
        (["--model", "BARE"], "bare: no tokenizer in it (tokenizer.json or vocab.txt)"),
    ],
)
def test_a_wrong_evaluation_is_refused_before_anything_is_planned(finished_study, capsys, tmp_path, words, message):
    ours, bare = finished_study.outputs / "models/bert-general", tmp_path / "bare"
    shutil.copytree(ours, bare, ignore=shutil.ignore_patterns("vocab.txt", "tokenizer*"))
    words = [str(bare) if word == "BARE" else word for word in words]
    with outputs_in(finished_study.folder / "outputs"):
        assert cli.main(["evaluate", *words, "--scale", "smoke"]) == 1
    assert f"error: {message}" in capsys.readouterr().err
    assert not (finished_study.outputs / "evaluations").exists()
