"""Two models on the same instances: counts and McNemar's test by hand, and what is shown of text."""

import dataclasses
import io
import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lib import artefacts
from lib.benchmarks import registry
from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Labelled, Sentence
from lib.errors import StudyError
from lib.study import paths
from lib.study.analysis import facts, pages, samples

ONE = facts.Comparison(general="g", biomedical="b", protocol="gu", datasets=["ncbi-disease", "hoc"])
TAGS = [["O", "B-Disease", "I-Disease"], ["O", "O", "O"], ["B-Disease", "O", "O"], ["O", "B-Disease", "O"]]
SAID = {
    "g": [["O", "B-Disease", "O"], ["O", "O", "O"], ["B-Disease", "O", "O"], ["O", "O", "O"]],
    "b": [["O", "I-Disease", "I-Disease"], ["O", "O", "O"], ["O", "O", "O"], ["B-Disease", "O", "O"]],
}  # an I that begins an entity counts as B


@pytest.fixture
def outputs(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "output", lambda scale, *parts: tmp_path.joinpath(scale, *parts))
    monkeypatch.setattr(samples, "choose", lambda scale: ONE)
    return tmp_path


def write_run(model: str, dataset: str, gold: list, predicted: list, seeds=(1,), fingerprint: str = "f") -> None:
    runs = [{"seed": seed, "fold": 1, "fingerprint": "f"} for seed in seeds]
    result = {"model": model, "dataset": dataset, "setting": "gu", "runs": runs}
    artefacts.write_json(paths.results("smoke", model, dataset, "gu"), result)
    for seed in seeds:
        path = paths.predictions("smoke", model, dataset, "gu", str(seed))
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.table({"gold": gold, "predicted": predicted})
        pq.write_table(table.replace_schema_metadata({"record": json.dumps({"fingerprint": fingerprint})}), path)


@pytest.mark.parametrize(("one", "other", "p"), [(0, 0, 1), (5, 0, 2 / 2**5), (1, 9, 2 * 11 / 2**10), (4, 4, 1)])
def test_mcnemar_by_hand(one, other, p):
    assert samples.compute_mcnemar(one, other) == pytest.approx(p)
    assert samples.compute_mcnemar(other, one) == pytest.approx(p)


def test_the_four_counts():
    right = [(True, True)] * 4 + [(True, False)] * 3 + [(False, True)] * 2 + [(False, False)]
    assert samples.count_right(right) == {"both": 4, "only general": 3, "only biomedical": 2, "neither": 1}
    assert samples.count_right([]) == dict.fromkeys(samples.COUNTS, 0)


def test_an_instance_is_right_as_a_whole():
    assert samples.judge("ncbi-disease", TAGS, SAID["g"]) == [False, True, True, False]
    assert samples.judge("ncbi-disease", TAGS, SAID["b"]) == [True, True, False, False]
    assert samples.judge("hoc", [["a", "b"], []], [["b", "a"], ["a"]]) == [True, False]
    with pytest.raises(ValueError, match="2 gold instances, 1 predicted"):
        samples.judge("hoc", [["a"], []], [["a"]])


def test_a_line_a_dataset_and_seed_or_the_reason(outputs):
    for model in "gb":
        write_run(model, "ncbi-disease", TAGS, SAID[model], seeds=(1, 2))
    write_run("g", "hoc", [["a"]], [["a"]])
    table = samples.build("smoke")
    assert table["seed"].tolist()[:2] == [1, 2] and len(table) == 3
    line = table.iloc[0]
    assert line[["instances", *samples.COUNTS]].tolist() == [4, 1, 1, 1, 1] and line["p"] == 1
    assert table.iloc[2]["dataset"] == "hoc" and "not been made" in table.iloc[2]["note"]
    said = samples.describe(table, samples.look_up("smoke"), "smoke")
    assert "ncbi-disease: b alone has 25.0% of the instances right, g alone 25.0%, both 25.0%" in said
    assert "hoc: n/a, the run failed" in said


def test_p_is_corrected_for_the_number_of_rows(outputs):
    gold = [["a"]] * 10
    write_run("g", "hoc", gold, [["b"]] * 10, seeds=(1, 2))
    write_run("b", "hoc", gold, gold, seeds=(2, 1, 3))
    table = samples.build("smoke").dropna(subset="p")
    assert table["p"].tolist() == pytest.approx([2 * 2 / 2**10] * 2)
    assert "clearly ahead in 2" in samples.describe(table, samples.look_up("smoke"), "smoke")


def test_predictions_that_are_gone_or_of_other_instances_are_named(outputs):
    for model in "gb":
        write_run(model, "ncbi-disease", TAGS, SAID[model])
    paths.predictions("smoke", "b", "ncbi-disease", "gu", "1").unlink()
    with pytest.raises(StudyError, match="the predictions are not on this machine"):
        samples.build("smoke")
    write_run("b", "ncbi-disease", TAGS, SAID["b"], fingerprint="another")
    with pytest.raises(StudyError, match=r"b--ncbi-disease--gu--1.parquet: predictions of another run"):
        samples.build("smoke")
    write_run("b", "ncbi-disease", TAGS[::-1], SAID["b"])
    with pytest.raises(StudyError, match="different gold labels"):
        samples.build("smoke")


def test_the_first_comparison_that_a_scale_can_make(monkeypatch):
    first, second = facts.samples().comparisons
    chosen = samples.choose("smoke")
    assert (chosen.general, chosen.biomedical) == (second.general, second.biomedical)
    assert set(chosen.datasets) == {"hoc", "bc5cdr-chem", "ncbi-disease"}
    assert samples.why_not(first.general, "ncbi-disease", "naseem", "smoke").startswith("outside the budget")
    runs = samples.list_runs("smoke")
    assert len(runs) == 6 and ("pubmedbert", "hoc", "gu") in runs
    monkeypatch.setattr(samples, "why_not", lambda *run: "" if run[1] == "s800" else "no")
    assert samples.choose("smoke").datasets == ["s800"] and samples.choose("smoke").general == first.general
    monkeypatch.setattr(samples, "why_not", lambda *run: "no")
    assert samples.choose("smoke") is None and samples.list_runs("smoke") == [] and samples.build("smoke").empty


SENTENCES = [Sentence(["the", "qzword", f"fever{number}"], tags) for number, tags in enumerate(TAGS)]


@pytest.fixture
def differing(outputs, monkeypatch):
    for model in "gb":
        write_run(model, "ncbi-disease", TAGS, SAID[model])
    monkeypatch.setattr(Dataset, "load", lambda _, split, fold: SENTENCES)


def test_instances_that_one_alone_has_right_are_shown_to_a_person(differing):
    found = samples.find_differences("smoke")
    assert [row["instance"] for row in found] == [SENTENCES[0], SENTENCES[2]]
    (shown,) = pd.read_html(io.StringIO(pages.look_at_differences(found, show_text=True).data))
    assert shown.loc[0, ["gold", "g", "b"]].tolist() == ["the [qzword fever0]", "the [qzword] fever0",
                                                         "the [qzword fever0]"]  # fmt: skip
    assert "qzword" not in pages.look_at_differences(found, show_text=False).data


def test_no_text_of_a_restricted_set_is_shown(differing, monkeypatch):
    found = samples.find_differences("smoke")
    dataset = dataclasses.replace(registry.lookup("ncbi-disease"), access="registration")
    monkeypatch.setitem(registry.DATASETS, "ncbi-disease", dataset)
    assert samples.find_differences("smoke") == []
    assert "qzword" not in pages.look_at_differences(found, show_text=True).data
    assert not samples.build("smoke").empty  # counts hold no text


def test_a_printed_sample_is_looked_up(monkeypatch):
    printed = facts.PrintedSample(dataset="X", ours=["bc2gm"], sample="high Fever2, the", better=["fever2", "the"])
    found = {
        "train": [Sentence(["a", "high", "fever2", ",", "the", "end"], ["O", "O", "B", "O", "O", "O"])],
        "dev": [Sentence(["high", "fever"], ["O", "B"])],
        "test": [Labelled("1", ("None.", "A high fever2 - the end."), ("a",))],
    }
    monkeypatch.setattr(Dataset, "missing", {})
    monkeypatch.setattr(Dataset, "load", lambda _, split: found[split])
    line = samples.find_sample(printed, "bc2gm", "laptop")
    assert line["stands in"] == "train, test"
    assert line["of these in an entity"] == "fever2; n/a: labels are of whole documents"
    found["train"], found["test"] = found["dev"], found["dev"]
    assert "not found" in samples.find_sample(printed, "bc2gm", "laptop")["note"]


def test_the_printed_samples_in_the_real_sets(real_data):
    printed = samples.look_up("laptop").set_index("dataset")
    assert printed.loc["jnlpba", "stands in"] == printed.loc["jnlpba-biobert", "stands in"] == "test"
    assert printed.loc["jnlpba-biobert", "of these in an entity"] == "receptors"  # cells are no entities there
    assert printed.loc["hoc-blue", "stands in"] == "train"
    assert printed.loc["share-clef-2013", "sample"] == "withheld"
