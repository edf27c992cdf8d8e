"""Turns, shares and days by hand; nothing here says how long anything takes."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch

from lib.study import open_study, params
from lib.study.analysis import figures, timing
from lib.study.corpora import Corpus

BERT, ALBERT, LARGE = "bert-general-pubmed", "bioalbert-base1", "bioalbert-large1"


@pytest.fixture
def measured() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Three repetitions of three models, with simple numbers."""
    seconds = {BERT: [2.0, 4.0, 2.0], ALBERT: [1.0, 1.0, 2.0], LARGE: [8.0, 8.0, 8.0]}
    times = pd.DataFrame(
        {"model": model, "repetition": i, "seconds": value, "device": "1 CPU thread(s), float32"}
        for model, values in seconds.items()
        for i, value in enumerate(values, 1)
    )
    facts = pd.DataFrame({"model": [BERT, ALBERT, LARGE], "architecture": ["bert", "albert", "albert"],
                          "size": ["base", "base", "large"], "parameters": [100, 25, 50], "pieces": [1000] * 3,
                          "FLOPs": [4e9, 3e9, 6e9]})  # fmt: skip
    return times, facts


def test_models_take_turns_and_the_first_round_is_not_counted(monkeypatch):
    done, clock, waits = [], itertools.count(), []
    monkeypatch.setattr(timing.time, "perf_counter", lambda: float(next(clock)))
    works = {"a": lambda: done.append("a"), "b": lambda: (done.append("b"), next(clock))}
    times = timing.interleave(works, 2, lambda: waits.append(len(done)))
    assert "".join(done) == "ba" + "ab" + "ba"
    assert waits == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6]  # before and after each
    assert times.to_dict("list") == {"model": ["a", "b", "b", "a"], "repetition": [1, 1, 2, 2],
                                     "seconds": [1.0, 2.0, 2.0, 1.0]}  # fmt: skip


def test_no_repetition_begins_after_the_limit_once_there_are_enough(monkeypatch):
    clock = itertools.count(step=timing.LIMIT)
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(clock))
    assert len(timing.interleave({"a": lambda: None}, 20)) == timing.FEWEST
    assert len(timing.interleave({"a": lambda: None}, 2)) == 2


def test_a_random_batch_is_one_to_pretrain_on():
    batch = timing.make_batch(40, rows=3, length=16, asked=5)
    assert batch["input_ids"].shape == (3, 16) and timing.SPECIAL <= batch["input_ids"].min() <= 39
    assert all(len(set(row)) == 5 and min(row) > 0 for row in batch["positions"].tolist())
    assert torch.equal(batch["targets"], batch["input_ids"].gather(1, batch["positions"]))
    assert batch["token_types"].tolist() == [[0] * 8 + [1] * 8] * 3
    assert batch["counts"].tolist() == [15, 48, 3] and batch["pair"].shape == (3,)


def test_medians_and_shares_by_hand(measured):
    summary = timing.summarise(*measured).set_index("model")
    assert summary.loc[BERT, ["seconds", "fastest", "slowest", "repetitions"]].tolist() == [2.0, 2.0, 4.0, 3]
    assert (summary.loc[BERT, "pieces a second"], summary.loc[BERT, "GFLOP/s"]) == (500, 2)
    share = timing.compare_pair(*measured, ALBERT, BERT)  # of the repetitions: 1/2, 1/4, 1
    assert share == {"seconds": 0.5, "FLOPs": 0.75, "parameters": 0.25}
    said = timing.describe(*measured, BERT)
    assert "bioalbert-base1: 1 s, 0.50 of the seconds of bert-general-pubmed, with 0.75 of its FLOPs" in said
    assert "from 2 to 4 over 3 repetitions" in said


def test_one_model_of_each_architecture_and_size_is_timed():
    assert timing.list_timed("naseem-8") == [BERT, ALBERT, LARGE]
    assert timing.find_timed("naseem-8", "bioalbert-large4") == LARGE
    assert timing.find_timed("naseem-8", "biobert-pubmed-pmc") == BERT


def test_days_of_our_run_follow_from_the_speed(measured, monkeypatch):
    monkeypatch.setattr(Corpus, "why_not", property(lambda corpus: "no text" if corpus.key == "mimic" else ""))
    lines = timing.build("naseem-8", "laptop", *measured).set_index("row")
    pieces = open_study("laptop").model(LARGE).count_work()["tokens"]
    assert pieces == 976 * 16 * 128  # half of four million, in whole steps
    assert lines.loc["BioALBERT Large1", "ours"] == pytest.approx(8 / 1000 * pieces / 86_400, rel=0.005)
    assert lines.loc["BioALBERT Large1", "published"] == 2.83 and set(lines["verdict"]) == {"n/a"}
    assert np.isnan(lines.loc["BioALBERT Base3", "ours"]) and lines.loc["BioALBERT Base3", "note"] == "no text"
    assert lines["ours"].notna().sum() == 6
    made_up = timing.build("naseem-8", "smoke", *measured)
    assert "made-up data: not a finding" in set(made_up["note"])


def test_printed_days_are_compared_with_each_number_that_is_printed(measured):
    assert timing.list_days("naseem-8") == {"10 days (section 'Results', text)": 10, "23 days (table 8)": 23}
    runs = timing.compare_runs("naseem-8", *measured).set_index("row")
    base, large = runs.loc["BioALBERT Base1"], runs.loc["BioALBERT Large1"]
    assert base["of 23 days (table 8)"] == 3 / 23 and base["of 10 days (section 'Results', text)"] == 0.3
    # As many steps with four times the rows: four times the pieces, whose FLOPs are a little fewer than BERT's.
    assert base["FLOPs of the run"] == pytest.approx(4 * base["FLOPs a piece"])
    assert 0.9 < base["FLOPs a piece"] < 1 < 3 < large["FLOPs a piece"]
    assert (base["seconds, ours"], large["seconds, ours"]) == (0.5, 4.0)
    said = timing.describe_runs(runs.reset_index(), "naseem-8")
    assert "8 models of BioALBERT have 0.12 to 0.20 of the 23 days (table 8) of BioBERT Base1." in said


def test_steps_and_passes_are_timed_on_as_many_pieces():
    times, facts = timing.time_steps("naseem-8", "smoke"), timing.describe_steps("naseem-8", "smoke")
    assert set(facts["pieces"]) == {8 * 64} and facts["model"].tolist() == [BERT, ALBERT, LARGE]
    assert timing.FEWEST <= times["repetition"].max() <= params.load("tables", "naseem-8").repetitions
    assert times.groupby("repetition").size().eq(3).all()
    assert (times["seconds"] > 0).all()
    of = facts.set_index("model")
    assert of.loc[ALBERT, "parameters"] == of.loc[LARGE, "parameters"] < of.loc[BERT, "parameters"]
    assert of.loc[ALBERT, "FLOPs"] < of.loc[BERT, "FLOPs"] < of.loc[LARGE, "FLOPs"]
    pair = ["bert-uncased", "bio-electra"]
    times, facts = timing.time_passes(pair, "smoke", "smoke", 1, 16, 2), timing.describe_passes(pair, "smoke", 1, 16)
    assert set(facts["pieces"]) == {16} and len(times) == 4
    assert len(figures.draw_times(times, "seconds").axes[0].patches) == 2
