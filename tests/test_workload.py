"""Tests of the work that a scale's budget comes to, from its files and from finished runs."""

import math

import pandas as pd
import pytest
from made_runs import make_runs
from notebook_code import definitions

from lib import artefacts
from lib.benchmarks import conll
from lib.benchmarks.datasets import Dataset
from lib.finetuning.protocol import FinetuningSettings
from lib.modeling.loading import load_encoder
from lib.running import plan, workload
from lib.study import open_study, params, results

PAGE = definitions("92_plan")
LAPTOP = open_study("laptop")


@pytest.fixture
def lines(monkeypatch):
    """Return a plan of three runs: two models on one dataset, one of them finished, and a model on another."""
    runs = [("pubmedbert", "gad", "gu"), ("bert-general", "gad", "gu"), ("pubmedbert", "hoc", "gu")]
    finished = {runs[0]: {"main score": "f1", "runs": make_runs([60.0, 62.0, 64.0], seconds=120)}}
    monkeypatch.setattr(results, "read_result", lambda scale, *run: finished.get(run))
    table = pd.DataFrame(PAGE.plan_finetuning(LAPTOP, runs))
    return table.assign(**{"minutes planned": table["minutes each"] * table["runs planned"]})


def test_planned_minutes_follow_from_finished_runs(lines):
    gad, hoc = lines.to_dict("records")
    assert (gad["kind"], gad["runs planned"], gad["runs made"]) == ("fine-tuning: relations", 6, 3)
    assert (gad["minutes each"], gad["minutes planned"], gad["minutes taken"]) == (2.0, 12.0, 6.0)
    assert gad["sd"] == pytest.approx(2.0) and gad["error"] == pytest.approx(2 * math.sqrt(2 / 3))
    assert hoc["runs made"] == hoc["minutes taken"] == 0 and math.isnan(hoc["minutes planned"])


def test_minutes_of_pretraining_follow_from_the_speed_of_finished_models(monkeypatch):
    records = {"bert-general": {"tokens": 60_000, "seconds": 60}, "bert-general-half": {"tokens": 100, "seconds": 0}}
    monkeypatch.setattr(artefacts, "read_record", lambda folder: records.get(folder.name))
    done, quick, waiting = PAGE.plan_pretraining(LAPTOP, ["bert-general", "bert-general-half", "pubmedbert"])
    assert (done["runs made"], done["minutes taken"]) == (1, 1.0)
    assert (quick["runs made"], quick["minutes taken"]) == (1, 0.0)
    assert waiting["runs made"] == 0 and waiting["minutes each"] == PAGE.count_tokens(LAPTOP, "pubmedbert") / 60_000


def test_the_tokens_of_a_model_are_its_own_share():
    whole = params.load("scales", "laptop").pretraining.recipe.tokens
    assert PAGE.count_tokens(LAPTOP, "bert-random") == 0
    assert PAGE.count_tokens(LAPTOP, "bert-general") == pytest.approx(whole, rel=0.01)
    assert PAGE.count_tokens(LAPTOP, "bert-general-pubmed") == pytest.approx(whole / 2, rel=0.01)


def test_the_tokens_that_fine_tuning_reads(bert, tmp_path):
    (tmp_path / "train.tsv").write_text("pain\tB\npain\tO\nfever\tO\n\n" * 300)
    notes = Dataset("mine", "My notes", "tagging", "pains", "entity-f1", conll.read_conll, {"train": ("train.tsv",)})
    arguments = load_encoder(bert), notes.at(tmp_path)
    settings = FinetuningSettings(epochs=[2, 4], batch_size=[16], learning_rate=[1e-3], warmup=0.1, weight_decay=0.0,
                                  dropout=0.1, max_length=32)  # fmt: skip
    assert workload.count_read_tokens(*arguments, settings) == 3 * 300 * 5  # three words, [CLS] and [SEP]
    assert workload.count_read_tokens(*arguments, settings.model_copy(update={"steps": 10})) == 10 * 16 * 5
    assert workload.count_read_tokens(*arguments, settings.model_copy(update={"train_instances": 20})) == 3 * 20 * 5


def test_hours_are_unknown_without_the_vocabulary_that_counts_words(monkeypatch, tmp_path):
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    text = workload.describe_downloads(plan.Plan("released", ["lee-1"]))
    assert "0 trainings; hours cannot be told without vocabulary 'bert-cased': not at hand" in text
