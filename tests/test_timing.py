"""Tests of timing: turns, shares and days, by hand. No test depends on how long anything takes."""

import itertools
import sys
import time

import pandas as pd
import pytest
import torch
from notebook_code import definitions

from benchmarks import finetuning, paired
from lib.errors import StudyError
from lib.study import open_study
from lib.study.corpora import Corpus

CELLS = definitions("93_speed", "LIMIT", "FEWEST")
BERT, ALBERT, LARGE = "bert-general-pubmed", "bioalbert-base1", "bioalbert-large1"
SECONDS = {BERT: [2.0, 4.0, 2.0], ALBERT: [1.0, 1.0, 2.0]}
TIMES = pd.DataFrame(
    {"model": model, "repetition": number, "seconds": seconds, "device": "1 CPU thread(s), float32"}
    for model, values in SECONDS.items()
    for number, seconds in enumerate(values, 1)
)
FACTS = pd.DataFrame({"model": [BERT, ALBERT], "parameters": [100, 25], "tokens": [1000] * 2, "FLOPs": [4e9, 3e9]})


def test_models_take_turns_and_the_first_round_is_not_counted(monkeypatch):
    done, clock, waits = [], itertools.count(), []
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(clock)))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waits.append(len(done)))
    works = {"a": lambda: done.append("a"), "b": lambda: (done.append("b"), next(clock))}
    times = CELLS.take_turns(works, 2, torch.device("cuda"))
    assert "".join(done) == "ba" + "ab" + "ba"
    assert waits == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6]  # synchronized before and after each
    assert times.to_dict("list") == {"model": ["a", "b", "b", "a"], "repetition": [1, 1, 2, 2],
                                     "seconds": [1.0, 2.0, 2.0, 1.0]}  # fmt: skip


def test_no_repetition_begins_after_the_limit_once_there_are_enough(monkeypatch):
    clock = itertools.count(step=CELLS.LIMIT)
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    assert len(CELLS.take_turns({"a": lambda: None}, 20, torch.device("cpu"))) == CELLS.FEWEST


def test_medians_and_shares_by_hand():
    summary = CELLS.summarise(TIMES, FACTS).set_index("model")
    assert summary.loc[BERT, ["seconds", "fastest", "slowest", "repetitions"]].tolist() == [2.0, 2.0, 4.0, 3]
    assert (summary.loc[BERT, "tokens a second"], summary.loc[BERT, "GFLOP/s"]) == (500, 2)
    share = CELLS.find_share(TIMES, FACTS, ALBERT, BERT)  # the repetitions have 1/2, 1/4 and 1
    assert share == {"seconds": 0.5, "FLOPs": 0.75, "parameters": 0.25}


def test_the_days_of_a_run_follow_from_its_speed(monkeypatch):
    monkeypatch.setattr(Corpus, "why_not", property(lambda corpus: "no text" if corpus.key == "mimic" else ""))
    model = open_study("laptop").model(LARGE)
    tokens = model.count_work()["tokens"]
    assert tokens == 976 * 16 * 128  # half of four million, in whole steps
    assert CELLS.count_days(model, 0.008)["ours"] == pytest.approx(0.008 * tokens / 86_400, rel=0.005)
    assert CELLS.count_days(open_study("smoke").model(LARGE), 0.008)["note"] == "made-up data: not a finding"
    without_text = CELLS.count_days(open_study("laptop").model("bioalbert-base3"), 0.008)  # counted all the same
    assert without_text["ours"] > 0 and without_text["note"].endswith("; its text is not at hand")


def test_steps_and_passes_of_models_are_timed_on_equally_many_tokens():
    study, pair = open_study("smoke"), ("bert-uncased", "bio-electra")
    times = CELLS.time_steps(study, [BERT, ALBERT, LARGE], 8, 5)
    assert times.groupby("repetition").size().eq(3).all() and (times["seconds"] > 0).all()
    facts = pd.DataFrame(CELLS.describe_step(study.model(key), 8) for key in times["model"].unique())
    by_model = facts.set_index("model")
    assert set(by_model["tokens"]) == {8 * 64}
    assert by_model.loc[ALBERT, "parameters"] == by_model.loc[LARGE, "parameters"] < by_model.loc[BERT, "parameters"]
    assert by_model.loc[ALBERT, "FLOPs"] < by_model.loc[BERT, "FLOPs"] < by_model.loc[LARGE, "FLOPs"]
    times = CELLS.time_passes(study, pair, study.budget, 1, 16, 2)
    assert len(times) == 4 and CELLS.describe_pass(study.model(pair[0]), 1, 16)["tokens"] == 16
    assert len(CELLS.draw_times(times, "seconds").axes[0].patches) == 2


def test_ratios_are_paired_by_repetition():
    ours, peer = [30.0, 20.0, 10.0], [10.0, 10.0, 2.0]  # ratios 3, 2 and 5
    assert paired.compare(ours, peer, "words/s") == {
        "ours": 20.0, "peer": 10.0, "ratio": 3.0, "lowest": 2.0, "highest": 5.0, "repetitions": 3, "unit": "words/s",
    }  # fmt: skip
    assert paired.share(ours, peer, 40.0) == {"ours_share": 0.5, "peer_share": 0.25}


def test_the_first_epoch_is_timed_separately():
    starts = [0.0, 2.0, 4.0, 5.0, 6.0, 7.0]  # steps of three epochs, two each; the last one ends at 8
    assert finetuning.split_epochs([*starts, 8.0], 40) == {"first epoch": 10, "later epochs": 20}


def test_rows_of_other_cases_and_devices_are_kept_when_a_case_fails(monkeypatch, tmp_path):
    def measure(case, *_) -> list[dict]:
        if case is finetuning.CASES["mini-32"]:
            raise StudyError("too slow")
        return [{"what": case.title, "device": "CPU"}]

    monkeypatch.setattr(finetuning, "measure", measure)
    monkeypatch.setattr(paired, "OUTPUT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["finetuning", "mini-16", "mini-32"])
    case = finetuning.CASES["mini-16"].title
    for what, device in ((case, "CPU"), ("another case", "CPU"), (case, "GPU")):
        paired.write_lines("finetuning", [{"what": what, "device": device, "before": True}])
    with pytest.raises(StudyError, match="too slow"):
        finetuning.main()
    table = pd.read_csv(tmp_path / "finetuning.csv")
    assert table[["what", "device"]].values.tolist() == [["another case", "CPU"], [case, "GPU"], [case, "CPU"]]
    assert table["before"].tolist()[:2] == [True, True] and pd.isna(table["before"].iloc[2])
