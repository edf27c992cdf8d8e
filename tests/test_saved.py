"""Tests of saved fine-tuned models: reloaded, they predict the same, in transformers too where it has the class."""

import shutil

import pytest
from conftest import each, keep_calls
from huggingface_hub import ModelCard
from small_encoders import FAMILIES, make, make_t5
from transformers import AutoConfig, AutoModelForTokenClassification, pipeline

from lib import artefacts
from lib.benchmarks import registry
from lib.benchmarks.datasets import LOWEST
from lib.errors import StudyError
from lib.finetuning import card, finetuning, saved
from lib.finetuning.protocol import FinetuningSettings
from lib.modeling import loading
from lib.study import paths
from lib.training import training
from lib.training.optimization import Machine

SETTINGS = {"epochs": [1], "batch_size": [4], "learning_rate": [2.0e-3], "warmup": 0.1, "weight_decay": 0.0,
            "dropout": 0.1, "max_length": 48, "steps": 3, "train_instances": 12}  # fmt: skip
KINDS = [  # encoder, dataset, choices of the protocol, and the class of transformers that predicts the same, if any
    ("bert", "ncbi-disease", {}, "BertForTokenClassification"),
    ("electra", "ncbi-disease", {"scheme": "BIOUL"}, "ElectraForTokenClassification"),
    ("distilbert", "ncbi-disease", {}, "DistilBertForTokenClassification"),
    ("albert", "ddi", {}, "AlbertForSequenceClassification"),
    ("bert", "ddi", {"mentions": "markers", "weighted": True}, "BertForSequenceClassification"),
    ("roberta", "biosses", {}, "RobertaForSequenceClassification"),
    ("bert", "hoc", {}, "BertForSequenceClassification"),
    ("bert", "mednli", {}, "BertForSequenceClassification"),
    ("bert", "bioasq-7b-factoid", {}, "BertForQuestionAnswering"),
    ("bert", "ncbi-disease", {"head": "CRF"}, ""),
    ("bert", "ncbi-disease", {"head": "biLSTM"}, ""),
    ("bert", "ebm-pico", {}, ""),  # an output layer for each element
    ("bert", "ddi", {"mentions": "markers", "encoding": "starts"}, ""),
    ("electra", "mednli", {}, ""),  # its class in transformers has a layer that ours lacks
    ("t5", "ncbi-disease", {}, "T5ForTokenClassification"),
    ("t5", "ncbi-disease", {"head": "CRF"}, ""),
]


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoders")
    for kind in {kind for kind, *_ in KINDS} - {"t5"}:
        make(folder / kind, kind, FAMILIES[kind])
    make_t5(folder / "t5")
    return folder


def work_on(folder, encoder, key: str, machine: Machine | None = None, **changes) -> finetuning.Finetuning:
    """Return a fine-tuning of a few steps on made-up data."""
    return finetuning.Finetuning(
        loading.load_encoder(encoder), registry.lookup(key).at(paths.MADE_UP), FinetuningSettings(**SETTINGS | changes),
        run_file=lambda run: folder / f"{run}.parquet", search_file=folder / "search",
        machine=machine or Machine(precision="float32"),  # in which a saved model is opened
    )  # fmt: skip


@each(("kind", "key", "choice", "library"), KINDS)
def test_a_saved_model_predicts_the_same_when_opened(encoders, tmp_path, kind, key, choice, library):
    work, folder = work_on(tmp_path, encoders / kind, key, folds=1, **choice), tmp_path / "saved"
    (run,) = work.run([1], folder)["runs"]
    model = saved.load_saved(folder)
    assert model.record["class"] == library and model.record["fingerprint"] == run["fingerprint"]
    instances, predicted = work.read_predictions(run)
    reloaded = model.predict(instances)
    if key == "biosses":
        predicted = pytest.approx(predicted, abs=1e-5)
    if key == "bioasq-7b-factoid":  # its answers also have a probability
        reloaded, predicted = ([[answer[:3] for answer in ranked] for ranked in side] for side in (reloaded, predicted))
    assert reloaded == predicted
    text = (folder / "README.md").read_text()
    if library:
        assert f"It is a `{library}` of transformers" in text
        assert AutoConfig.from_pretrained(folder).architectures == [library]
    else:
        assert "transformers has no class that predicts the same" in text
        with pytest.raises(ValueError, match="opened by lib.finetuning.saved.load_saved"):
            AutoModelForTokenClassification.from_pretrained(folder)


def test_the_pipeline_of_transformers_predicts_the_same_for_pairs(encoders, tmp_path):
    pairs = work_on(tmp_path, encoders / "bert", "mednli")
    (run,) = pairs.run([1], tmp_path / "saved")["runs"]
    instances, predicted = pairs.read_predictions(run)
    texts = [{"text": item.first, "text_pair": item.second} for item in instances[:8]]
    outputs = pipeline("text-classification", str(tmp_path / "saved"))(texts)
    assert [item["label"] for item in outputs] == predicted[:8]


def test_the_best_on_the_development_set_is_saved_and_no_run_is_repeated(encoders, tmp_path, monkeypatch):
    seeds = keep_calls(monkeypatch, finetuning.Finetuning, "fit", lambda *given: given[3])
    scores = {1: 10.0, 2: 30.0, 3: 20.0}
    monkeypatch.setattr(finetuning.Finetuning, "score_on_dev", lambda *_: scores[seeds[-1]])
    earlier = work_on(tmp_path, encoders / "bert", "ncbi-disease").run([1, 2])
    result = work_on(tmp_path, encoders / "bert", "ncbi-disease").run([1, 2, 3], tmp_path / "saved")
    assert seeds == [1, 2, 1, 2, 3]  # earlier runs too, because they had not saved a model
    assert [run["scores"] for run in result["runs"][:2]] == [run["scores"] for run in earlier["runs"]]
    record = artefacts.read_record(tmp_path / "saved")
    assert record["fingerprint"] == result["runs"][1]["fingerprint"] and record["complete"]
    text = (tmp_path / "saved" / "README.md").read_text()
    assert "seed 2, the best of 3 on the development set (f1 30.00)" in text
    assert work_on(tmp_path, encoders / "bert", "ncbi-disease").run([1, 2, 3], tmp_path / "saved") == result
    assert len(seeds) == 5
    (alone,) = work_on(tmp_path, encoders / "bert", "ncbi-disease").run([3], tmp_path / "saved")["runs"]
    assert artefacts.read_record(tmp_path / "saved")["fingerprint"] == alone["fingerprint"]  # best of the given seeds
    with pytest.raises(StudyError, match="something else lies there"):
        work_on(tmp_path, encoders / "electra", "ncbi-disease").run([1], tmp_path / "saved")


@each("changed", [{"threads": 2}, {"precision": "auto"}])
def test_a_model_of_runs_on_another_machine_is_replaced(encoders, tmp_path, monkeypatch, changed):
    monkeypatch.setattr(training, "computes_in_bfloat16", lambda: True)
    monkeypatch.setattr(finetuning.Finetuning, "score_on_dev", lambda *_: 10.0)
    machine = Machine(precision="float32")
    work_on(tmp_path, encoders / "bert", "ncbi-disease", machine).run([1], tmp_path / "saved")
    other = work_on(tmp_path, encoders / "bert", "ncbi-disease", machine.model_copy(update=changed))
    assert not saved.is_complete(tmp_path / "saved", other.identify_saved([1]))
    (run,) = other.run([1], tmp_path / "saved")["runs"]
    assert saved.is_complete(tmp_path / "saved", other.identify_saved([1]))
    record = artefacts.read_record(tmp_path / "saved")
    assert record["fingerprint"] == run["fingerprint"] and list(record["compared"]) == [run["fingerprint"]]


def test_the_card_says_how_the_model_was_chosen():
    choices = {
        0.0: "the only run (f1 0.00 on the development set)",
        LOWEST: "the only run (f1 undefined on the development set)",
        None: "the first: there is no development set to choose on",
    }
    for dev, expected in choices.items():
        assert card.describe_choice({"dev": dev, "compared": {"x": dev}}, "f1") == expected


def test_the_card_has_the_metadata_of_the_hub(encoders, tmp_path):
    work = work_on(tmp_path, encoders / "bert", "ncbi-disease")
    result = work.run([1, 2], tmp_path / "saved", {"protocol": "gu"})
    model_card = ModelCard.load(tmp_path / "saved" / "README.md")
    metrics = {metric.metric_type: metric for metric in model_card.data.eval_results}
    fingerprint = artefacts.read_record(tmp_path / "saved")["fingerprint"]
    best = next(run for run in result["runs"] if run["fingerprint"] == fingerprint)
    assert {name: metric.metric_value for name, metric in metrics.items()} == {
        name: round(value, 2) for name, value in best["scores"].items()
    }
    assert metrics["f1"].metric_args["seeds"] == 2 and metrics["f1"].metric_args["standard deviation"] is not None
    assert metrics["f1"].dataset_type == "ncbi-disease" and metrics["f1"].dataset_args["protocol"] == "gu"
    assert metrics["f1"].dataset_revision == best["inputs"]["test 1"]
    assert str(tmp_path) not in model_card.content and model_card.data.pipeline_tag == "token-classification"
    undefined = {"pearson": [float("nan"), 80.0]}  # a run whose answers are constant has no correlation
    assert "| pearson | 80.00 | n/a | n/a | 2 |" in card.describe_scores({"scores": {"pearson": 80.0}}, undefined)


@pytest.fixture(scope="module")
def tagger(encoders, tmp_path_factory):
    """The folder of a saved tagger, shared by the tests; do not change it."""
    folder = tmp_path_factory.mktemp("tagger")
    work_on(folder, encoders / "bert", "ncbi-disease").run([1], folder / "saved")
    return folder / "saved"


@each(
    ("damage", "message"),
    [
        (shutil.rmtree, "no folder"),
        (lambda folder: (folder / "record.json").unlink(), "no fine-tuned model of ours"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"0" * 9), "damaged, or not whole"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "damaged, or not whole"),
    ],
)
def test_a_folder_without_a_whole_model_is_refused(tagger, tmp_path, damage, message):
    folder = shutil.copytree(tagger, tmp_path / "saved")
    damage(folder)
    with pytest.raises(StudyError, match=message) as error:
        saved.load_saved(folder)
    assert "\n" not in str(error.value)
