"""Tests of fine-tuning for every family, end to end: ten examples learnt by heart, shuffled labels, records of runs."""

import math
import random
import re
from dataclasses import replace

import pytest
import torch
from conftest import change_settings, each, keep_calls, outputs_in
from golden import write
from transformers import BertTokenizer

from lib.benchmarks import baseline_scores, tabular
from lib.benchmarks.datasets import TRAIN_TEST, Dataset, by_split, hold_out
from lib.benchmarks.instances import Question
from lib.corpora import cleaning
from lib.errors import StudyError
from lib.finetuning import finetuning, predictions, runs
from lib.finetuning.protocol import FinetuningSettings
from lib.modeling import loading, models
from lib.modeling.shape import Body
from lib.study import open_study, params, paths, results, show
from lib.study.study import Study
from lib.training import optimizers, training
from lib.vocabularies.learning import train_wordpiece

BODY = Body(layers=2, hidden=64, heads=2, intermediate=128, embedding=32)
DATASETS = [  # one of each family and reader of answers, in its real format
    "ncbi-disease", "ebm-pico", "ddi", "biosses", "mednli", "hoc", "jmed-smdis", "bioasq-7b-factoid",
    "bioasq-reranker",
]  # fmt: skip
SETTINGS = {"epochs": [60], "batch_size": [4], "learning_rate": [2.0e-3], "dropout": 0.0, "max_length": 96,
            "train_instances": None, "folds": 1, "first_on": None, "min_steps": 200}  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Return a folder with a small random encoder and a vocabulary learnt from the made-up data of DATASETS."""
    top = tmp_path_factory.mktemp("outputs")
    with outputs_in(top):
        params.load.cache_clear()
        texts = [
            cleaning.segment_japanese(text) if dataset.language == "ja" else text
            for dataset in map(open_study("smoke").dataset, DATASETS)
            for split in dataset.splits
            for instance in dataset.load(split)
            for text in instance.inputs
        ]
        train_wordpiece(lambda: texts, 1500, cased=False).save_model(str(top))
        tokenizer = BertTokenizer(vocab=str(top / "vocab.txt"), strip_accents=False)
        torch.manual_seed(0)
        models.build_model("bert", BODY, len(tokenizer), 96, 0.0).save_pretrained(top / "tiny")
        tokenizer.save_pretrained(top / "tiny")
    return top


@pytest.fixture
def encoder(home, smoke_data):
    """Open the small encoder, with an output folder of the test's own."""
    return open_study("smoke").encoder(str(home / "tiny"))


def set_up(monkeypatch, key: str, instances: dict | None = None, seeds=(1,), **changes) -> None:
    """Patch fine-tuning to use the settings of these tests and, if given, `instances` (split -> instances)."""
    settings = open_study("smoke").protocol("gu", key).model_copy(update=SETTINGS | changes)
    monkeypatch.setattr(Study, "protocol", lambda *_: settings)
    change_settings(monkeypatch, "scales", "smoke", seeds=list(seeds))
    if instances:
        monkeypatch.setattr(Dataset, "load", lambda _, split, fold=1: instances[split])


def take(key: str, n: int) -> list:
    """Return the first `n` training instances of a dataset; of questions, those with an answer span."""
    instances = open_study("smoke").dataset(key).load("train")
    if isinstance(instances[0], Question):
        return [question for question in instances if question.spans][:n]
    return instances[:n]


@pytest.mark.parametrize("key", DATASETS)
def test_ten_examples_are_learnt_by_heart(encoder, monkeypatch, key):
    examples = take(key, 10)
    steps = 1200 if key == "hoc" else 200  # because it has ten labels at once
    set_up(monkeypatch, key, dict.fromkeys(("train", "test"), examples), min_steps=steps)
    result = open_study("smoke").finetune(encoder.source, key, "gu")
    (run,) = result["runs"]
    assert run["scores"][result["main score"]] == pytest.approx(100, abs=0.5), run["scores"]
    assert run["collapsed"] == "" and run["instances"] == {"train": 10, "test": 10}
    assert (3 <= len(run["jackknife"]) <= 10) == (key not in ("ebm-pico", "ddi", "bioasq-reranker"))  # two documents
    work = open_study("smoke").finetuning(encoder.source, key, "gu")
    assert ("f1_seen" in run) == (work.dataset.metric == "entity-f1") and run.get("f1_seen", 100) > 99.5
    assert work.dataset.score(*work.read_predictions(run)) == run["scores"]


@pytest.mark.parametrize(
    ("key", "choice"),
    [
        ("ncbi-disease", {"head": "CRF", "scheme": "BIOUL"}),
        ("ddi", {"mentions": "markers", "encoding": "starts"}),
    ],
    ids=str,
)
def test_other_heads_and_inputs_learn(encoder, monkeypatch, key, choice):
    examples = take(key, 10)
    set_up(monkeypatch, key, dict.fromkeys(("train", "test"), examples), **choice)
    (run,) = open_study("smoke").finetune(encoder.source, key, "gu")["runs"]
    assert run["settings"].items() >= choice.items()
    assert run["scores"]["f1"] == pytest.approx(100, abs=0.5)


def test_with_shuffled_labels_a_run_falls_to_chance(encoder, monkeypatch):
    train, test = (open_study("smoke").dataset("ddi").load(split) for split in ("train", "test"))
    labels = random.Random(1).sample([relation.label for relation in train], len(train))
    shuffled = [replace(relation, label=label) for relation, label in zip(train, labels, strict=True)]
    set_up(monkeypatch, "ddi", {"train": shuffled, "test": test}, epochs=[5])
    (run,) = open_study("smoke").finetune(encoder.source, "ddi", "gu")["runs"]
    assert run["scores"]["f1"] < 60


def test_splits_are_checked_first_and_the_test_set_is_used_after_the_choice(encoder, monkeypatch):
    set_up(monkeypatch, "biosses", seeds=(1, 2), epochs=[1, 2], min_steps=None)
    order = keep_calls(monkeypatch, Dataset, "load", lambda dataset, split, *fold: split)
    keep_calls(monkeypatch, finetuning.Finetuning, "fit", lambda *_: "fit", order)
    result = open_study("smoke").finetune(encoder.source, "biosses", "gu")
    checked, used = ["train", "test", "dev"], ["train", "fit", "dev", "fit", "fit", "test", "fit"]
    assert order == checked + used
    assert [run["reads"] for run in result["runs"]] == [["train", "dev", "test"]] * 2
    best = max(result["candidates"], key=lambda tried: tried["dev pearson"])
    assert len(result["candidates"]) == 2
    assert result["chosen on dev"] == {name: best[name] for name in ("epochs", "batch_size", "learning_rate")}

    for path in paths.output("smoke", "predictions").iterdir():
        path.unlink()
    again = open_study("smoke").finetune(encoder.source, "biosses", "gu")
    first, second = ([[row["loss"] for row in run["log"]] for run in one["runs"]] for one in (result, again))
    assert first == second and first[0] != first[1]  # of two seeds


def make_relations(tmp_path, negatives: str) -> Dataset:
    """Return a dataset of ten drug pairs, the same in each split; pairs whose number is in `negatives` are negative."""
    rows = [f"x{n}\tThe drug @DRUG$ raised the effect of @DRUG$ in case {n}.\t" for n in range(10)]
    labels = ["DDI-false" if str(n) in negatives else "DDI-effect" for n in range(10)]
    for split in TRAIN_TEST:
        lines = [row + label for row, label in zip(rows, labels, strict=True)]
        (tmp_path / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    return Dataset("pairs", "Pairs", "relations", "effects", "relation-micro-f1", tabular.read_ddi_table,
                   by_split(".", splits=TRAIN_TEST), negative="DDI-false").at(tmp_path)  # fmt: skip


QUICK = FinetuningSettings(epochs=[1], batch_size=[4], learning_rate=[2e-3], warmup=0.1, weight_decay=0.0, dropout=0.0,
                           max_length=32)  # fmt: skip


def test_splits_without_a_negative_instance_are_scored(home, tmp_path):
    pairs, encoder = make_relations(tmp_path, negatives="4"), loading.load_encoder(home / "tiny")
    settings = QUICK.model_copy(update={"epochs": [1, 2]})  # the choice is made on one held-out instance
    (run,) = finetuning.finetune(encoder, pairs, settings, [1], tmp_path / "runs")["runs"]
    assert len(run["jackknife"]) == 10 and run["scores"]["recall"] == 100
    test = pairs.load("test")
    assert pairs.score(test[:4], ["DDI-effect"] * 4)["f1"] == 100
    measured = {row["method"]: row["score"] for row in baseline_scores.measure_dataset(pairs, tmp_path / "baselines")}
    assert measured == dict.fromkeys(("best constant answer", "linear SVM"), pytest.approx(200 * 9 / 19, abs=1e-4))
    with pytest.raises(StudyError, match="none of 10 instances has the negative label 'DDI-false': give the dataset"):
        make_relations(tmp_path, negatives="").load("train")


def test_bad_input_is_refused_before_the_first_step(home, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "train", lambda *_, **__: pytest.fail("it was trained"))
    pairs, encoder = make_relations(tmp_path, negatives="45"), loading.load_encoder(home / "tiny")

    def refuse(message, dataset=pairs, seeds=(1,), **changes):
        with pytest.raises(StudyError, match=message):
            finetuning.finetune(encoder, dataset, QUICK.model_copy(update=changes), seeds, tmp_path / "runs")

    refuse("its 'rest' split has no instance: of train,", epochs=[1, 2], train_instances=1)
    refuse("unknown family 'relation': did you mean relations", replace(pairs, family="relation"))
    refuse("no seed: give one for each run", seeds=())
    refuse("fine-tune on squad first, and no such dataset was given", first_on="squad")
    (tmp_path / "test.tsv").write_text("x0\tno columns\n")
    refuse("test.tsv")
    refuse("test.tsv", epochs=[1, 2])


def test_a_training_is_kept_before_it_is_scored_and_is_not_repeated(home, tmp_path, monkeypatch):
    pairs, encoder = make_relations(tmp_path, negatives="45"), loading.load_encoder(home / "tiny")
    arguments = encoder, pairs, QUICK, [1], tmp_path / "runs"
    with monkeypatch.context() as patch:
        patch.setattr(Dataset, "score", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            finetuning.finetune(*arguments)
    monkeypatch.setattr(finetuning.Finetuning, "fit", lambda *_: pytest.fail("it was trained again"))
    (run,) = finetuning.finetune(*arguments)["runs"]
    path, test = tmp_path / "runs" / "1.parquet", pairs.load("test")
    assert runs.read_run(path) == run and len(run["jackknife"]) == 10
    gold, predicted = runs.read_run_predictions(path)
    assert gold == [relation.label for relation in test] and pairs.score(test, predicted) == run["scores"]
    older = {name: value for name, value in run.items() if name != "jackknife"}
    runs.write_run(path, "relations", test, predicted, older)
    assert finetuning.finetune(*arguments)["runs"] == [run]


def test_without_a_development_set_of_its_own_a_tenth_of_training_is_held_out(encoder, monkeypatch):
    set_up(monkeypatch, "gad-biobert", epochs=[1, 2], min_steps=None, folds=2)
    result = open_study("smoke").finetune(encoder.source, "gad-biobert", "gu")
    assert [run["reads"] for run in result["runs"]] == [reads := ["train 1", "test 1"], [*reads, "train 2", "test 2"]]
    assert [run["fold"] for run in result["runs"]] == [1, 2]
    dataset = open_study("smoke").dataset("gad-biobert")
    rest, held_out = hold_out(dataset, dataset.load("train"))
    candidate = runs.read_run(next(paths.output("smoke", "predictions").glob("*try.epochs-1.*.parquet")))
    assert candidate["instances"] == {"rest": len(rest), "held out": len(held_out)}
    seeds = runs.average_folds(result)
    assert seeds[1]["f1"] == pytest.approx(sum(run["scores"]["f1"] for run in result["runs"]) / 2)
    repeats_test = open_study("smoke").finetune(encoder.source, "gad-bioelectra", "gu")
    assert repeats_test["runs"][0]["reads"] == ["train", "test"] and len(repeats_test["candidates"]) == 2


def test_the_first_of_two_datasets_is_trained_on_once_for_all_seeds(encoder, monkeypatch):
    set_up(monkeypatch, "bioasq-7b-factoid", seeds=(1, 2), epochs=[1], min_steps=None, first_on="squad")
    fits = keep_calls(monkeypatch, finetuning.Finetuning, "fit", lambda work, *_: work.dataset.key)
    result = open_study("smoke").finetune(encoder.source, "bioasq-7b-factoid", "gu")
    assert fits == ["squad", "bioasq-7b-factoid", "bioasq-7b-factoid"]
    assert all(run["first on"].startswith("squad, its train split, with epochs 1") for run in result["runs"])
    work = open_study("smoke").finetuning(encoder.source, "bioasq-7b-factoid", "gu")
    before = dict(work.inputs)
    work.first = replace(work.first, settings=work.first.settings.model_copy(update={"dropout": 0.5}))
    del work.inputs  # a cached property
    assert {name for name, value in work.inputs.items() if before[name] != value} == {"first"}
    without_first = open_study("smoke").protocol("gu", "bioasq-7b-factoid").model_copy(update={"first_on": None})
    monkeypatch.setattr(Study, "protocol", lambda *_: without_first)
    again = open_study("smoke").finetune(encoder.source, "bioasq-7b-factoid", "gu")
    assert again["runs"][0]["log"] != result["runs"][0]["log"]


def test_rates_of_head_and_layers_reach_the_optimizer(home, tmp_path, monkeypatch):
    pairs, encoder = make_relations(tmp_path, negatives="4"), loading.load_encoder(home / "tiny")
    calls = keep_calls(monkeypatch, optimizers, "make_optimizer", lambda *given: given[-1])
    settings = QUICK.model_copy(update={"head_rate": 2.0, "layer_decay": 0.5})
    finetuning.finetune(encoder, pairs, settings, [1], tmp_path / "runs")
    shares = calls[-1]
    assert (shares["score.weight"], shares["encoder.embeddings.word_embeddings.weight"]) == (2.0, 0.5**4)


def test_the_documentation_of_own_data_runs(home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-encoder").symlink_to(home / "tiny")
    lines = [f"Iron helps against anaemia in {number} of {number + 9} patients .\n" for number in range(400)]
    (tmp_path / "my-text.txt").write_text("".join(lines))
    for split in TRAIN_TEST:
        write(tmp_path / f"notes/{split}.tsv", "".join(f"Iron\tB\n{number}\tO\n\n" for number in range(12)))
    blocks = re.findall(r"```python\n(.*?)```", (paths.ROOT / "docs/adding.md").read_text(), re.S)
    names = {}
    for block in blocks:
        exec(block, names)
    assert [run["seed"] for run in names["result"]["runs"]] == [1, 2, 3]
    assert len(names["result"]["candidates"]) == 2
    assert len(list((tmp_path / "runs").glob("[123].parquet"))) == 3
    assert (tmp_path / "my-vocabulary" / "tokenizer.json").exists()
    assert names["made"]["log"][-1]["held-out loss"] < math.log(len(names["tokenizer"]))  # a uniform guess
    assert loading.load_encoder(tmp_path / "my-model").max_length == 128


@each(
    ("family", "predicted", "losses", "why"),
    [
        ("tagging", [["O", "O"], ["O"]], [2, 1], "one answer only"),
        ("tagging", [["O", "B"], ["O"]], [2, 1], ""),
        ("relations", ["false"] * 3, [2, 1], "one answer only"),
        ("similarity", [1.50001, 1.50002], [2, 1], "one answer only"),
        ("similarity", [2.4922, 2.5, 2.4844, 2.5], [2, 1], "one answer only"),  # adjacent numbers in bfloat16
        ("similarity", [2.1, 2.5, 2.3], [2, 1], ""),
        ("documents", [("a",), ()], [2, 1.95], "the loss did not fall"),
        ("documents", [("a",), ()], [2, 1.5], ""),
        ("answers", ["yes"], [2, 1], ""),  # one instance is too few to tell
    ],
)
def test_runs_that_learnt_nothing_are_found(family, predicted, losses, why):
    gold = [1.0, 2.0, 3.0, 4.0]  # only numeric predictions are compared with it
    assert predictions.find_collapse(family, gold, predicted, [{"loss": loss} for loss in losses]) == why


def test_runs_that_learnt_nothing_are_left_out_of_a_second_mean():
    one = {"fold": 1, "seconds": 1, "first on": "", "reads": ["train", "test"], "steps": 3}
    one |= dict.fromkeys(("instances", "rows", "cut"), {"train": 1, "test": 1})
    scores = {1: (80.0, ""), 2: (90.0, ""), 3: (10.0, "one answer only")}
    result = {
        "runs": [one | {"seed": seed, "scores": {"f1": f1}, "collapsed": why} for seed, (f1, why) in scores.items()],
        "main score": "f1", "model title": "m", "dataset": "d", "scale": "laptop", "chosen on dev": {"epochs": 1},
        "candidates": [],
    }  # fmt: skip
    means = results.over_seeds(results.list_runs(result)).set_index("over")["f1"]
    assert means["mean"] == 60 and means["mean of runs that did not collapse"] == 85
    text = show.describe_runs(open_study("laptop"), result)
    assert "1 of 3 runs learnt nothing." in text and "The splits were read in this order: train, test." in text
