"""Tests of pretraining, from a model's settings to its folder: each kind of model, kills, and errors."""

import dataclasses
import json
import math
import shutil
import statistics
from pathlib import Path

import numpy as np
import pytest
import yaml
from conftest import Study, finish
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer

from lib import artefacts
from lib.errors import StudyError
from lib.modeling.loading import load_encoder
from lib.modeling.shape import Body
from lib.pretraining import pretraining, tokens
from lib.pretraining.batch_counts import measure_batches
from lib.pretraining.plan import Pretraining
from lib.study import params
from lib.training.optimization import Machine, Phase
from lib.vocabularies.learning import train_vocabulary

MODEL = {
    "title": "Tiny", "papers": ["gu"], "architecture": "bert", "size": "base", "vocabulary": "wiki-books-cased",
    "corpora": ["wiki-books"], "pairs": "none", "masking": "word-piece",
    "masked_share": 0.15, "start": "skip-gram", "differs": "Made up by a test.",
}  # fmt: skip
KINDS = {
    "tiny-pairs": {"pairs": "next sentence", "masking": "whole-word"},
    "tiny-albert": {"architecture": "albert", "pairs": "sentence order", "masking": "n-gram"},
    "tiny-electra": {"architecture": "electra"},
    "tiny-adversarial": {"adversarial": True},
    "tiny-rising": {"masked_share": [0.05, 0.1, 0.15, 0.2, 0.25], "start": "random"},
    "tiny-mixed": {"corpora": ["pubmed", "wiki-books"], "core": ["pubmed"], "mixing": "simultaneous",
                   "pairs": "next sentence"},
    "tiny-continued": {"initial": "tiny-pairs", "corpora": ["pubmed"]},
}  # fmt: skip


@pytest.fixture(scope="module")
def study(finished_study, tmp_path_factory) -> Study:
    """A copy of the finished tiny study, with a model of each kind added."""
    copy = Study(tmp_path_factory.mktemp("pretraining"))
    shutil.copytree(finished_study.folder, copy.folder, dirs_exist_ok=True)
    for key, changes in KINDS.items():
        write_model(copy, key, **changes)
    return copy


def write_model(study: Study, key: str, **changes) -> None:
    (study.folder / f"params/models/{key}.yaml").write_text(yaml.safe_dump(MODEL | changes))


def pretrain(study: Study, model: str, fails: bool = False) -> str:
    """Run the command line of pretraining in a copy of the study; what it printed."""
    return finish(study.start_python("-SP", "lib/running/submit.py", "lib.study.pretrained", "smoke", model), fails)


def result(study: Study, model: str) -> Path:
    return study.outputs / "models" / model


def read_log(study: Study, model: str) -> list[dict]:
    return [json.loads(line) for line in (result(study, model) / "log.jsonl").read_text().splitlines()]


def mean_loss(rows: list[dict]) -> float:
    return statistics.mean(row["loss"] for row in rows)


def test_each_kind_trains_and_loads_with_the_auto_classes(study):
    for model in KINDS:
        pretrain(study, model)
        folder = result(study, model)
        encoder, loading = AutoModel.from_pretrained(folder, output_loading_info=True)
        missing = [name for name in loading["missing_keys"] if "pooler" not in name]
        assert not missing, model
        assert len(AutoTokenizer.from_pretrained(folder)) == encoder.config.vocab_size
        log = read_log(study, model)
        assert log[-1]["held-out loss"] < math.log(400), model  # the loss of uniform guesses
        # The adversarial loss need not fall, because its divergence grows as the model learns.
        assert mean_loss(log[-20:]) < mean_loss(log[:20]) or model == "tiny-adversarial", model
        card, record = (folder / "README.md").read_text(), json.loads((folder / "record.json").read_text())
        for fact in (record["commit"], f"{record['tokens']:,} tokens", f"{log[-1]['held-out loss']:.3f}"):
            assert fact in card, (model, fact)
        assert not list(folder.parent.glob(f".{model}.partial*"))
    assert (result(study, "tiny-electra") / "generator/model.safetensors").exists()


def test_a_continued_model_begins_where_the_other_ended(study):
    pretrain(study, "tiny-pairs")
    write_model(study, "tiny-next", initial="tiny-pairs", corpora=["wiki-books"], pairs="next sentence", share=0.01)
    pretrain(study, "tiny-next")
    assert [row["step"] for row in read_log(study, "tiny-next")] == [1]
    before, after = (load_file(result(study, key) / "model.safetensors") for key in ("tiny-pairs", "tiny-next"))
    for name in before:  # Adam's first step moves no weight by more than the learning rate, apart from decay
        assert (before[name] - after[name]).abs().max() < 1.1 * 3e-3, name


def test_a_second_pretraining_differs_in_its_seed_alone(study):
    write_model(study, "tiny-short", share=0.01)
    for model in ("tiny-short", "tiny-short.2"):
        pretrain(study, model)
    folder, other_folder = (result(study, model) for model in ("tiny-short", "tiny-short.2"))
    first, second = artefacts.read_record(folder), artefacts.read_record(other_folder)
    assert (first["settings"].pop("seed"), second["settings"].pop("seed")) == (1, 2)
    assert first["settings"] == second["settings"] and first["inputs"] == second["inputs"]
    assert (other_folder / "README.md").read_text().startswith("# Tiny, pretraining 2")
    weights, other_weights = (load_file(path / "model.safetensors") for path in (folder, other_folder))
    assert not any(weights[name].equal(other_weights[name]) for name in weights if name.endswith("query.weight"))


def test_a_model_that_cannot_be_pretrained_says_why(study):
    write_model(study, "tiny-wrong", not_run="its text is not at hand")
    try:
        assert "cannot be pretrained here: its text is not at hand" in pretrain(study, "tiny-wrong", fails=True)
    finally:
        (study.folder / "params/models/tiny-wrong.yaml").unlink()


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> dict:
    """Arguments that pretrain a model on a user's own text, with nothing registered."""
    folder = tmp_path_factory.mktemp("own")
    texts = [f"Iron helps against anaemia in {number} of {number + 9} patients ." for number in range(400)]
    tokenizer = train_vocabulary(lambda: texts, "wordpiece", 200, cased=True)
    tokens.pack(texts, tokenizer, folder / "packed", hold_out=10)
    plan = Pretraining(
        architecture="bert", body=Body(layers=1, hidden=16, heads=2, intermediate=32, embedding=16), positions=32,
        phases=[Phase(length=32, batch_size=8, steps=20, learning_rate=1e-2, warmup=0.1)], start=["word vectors"],
        optimizer="adamw", weight_decay=0.01, betas=[0.9, 0.98], dropout=0.0,
    )  # fmt: skip
    text, unseen = (tokens.open_packed(folder / "packed", split) for split in tokens.SPLITS)
    return {"plan": plan, "corpora": [text], "tokenizer": tokenizer, "folder": folder / "model", "held_out": [unseen]}


def test_a_finished_model_is_not_trained_again(own, tmp_path):
    pretrained = pretraining.pretrain(**own, evaluations=2)
    assert [row["step"] for row in pretrained["log"] if "held-out loss" in row] == [10, 20]
    assert pretrained["log"][-1]["held-out loss"] < pretrained["log"][0]["loss"]
    written_at = (own["folder"] / "model.safetensors").stat().st_mtime_ns
    assert pretraining.pretrain(**own, evaluations=2) == pretrained
    assert (own["folder"] / "model.safetensors").stat().st_mtime_ns == written_at
    for name in ("record.json", "log.jsonl"):  # without weights, as of a model from another machine
        shutil.copy(own["folder"] / name, tmp_path)
    assert pretraining.find_pretrained(tmp_path, pretrained) is None


def test_without_phases_the_weights_stay_at_their_start(own, tmp_path):
    plan = own["plan"].model_copy(update={"phases": []})
    vectors = np.random.default_rng(1).normal(size=(len(own["tokenizer"]), 16)).astype(np.float32)
    assert pretraining.pretrain(**own | {"plan": plan, "folder": tmp_path / "first"}, vectors=vectors)["log"] == []
    first = load_file(tmp_path / "first/model.safetensors")
    table = "bert.embeddings.word_embeddings.weight"
    assert np.array_equal(first[table], vectors)
    changes = {"plan": plan.model_copy(update={"start": []}), "folder": tmp_path / "second"}
    pretraining.pretrain(**own | changes, seed=2, initial=load_encoder(tmp_path / "first"))
    second = load_file(tmp_path / "second/model.safetensors")
    assert all(first[name].equal(second[name]) for name in first)


def test_electra_masks_and_replaces_chosen_tokens_as_in_the_authors_code(own):
    phase = own["plan"].phases[0].model_copy(update={"batch_size": 128})
    plan = own["plan"].model_copy(update={"architecture": "electra", "phases": [phase]})
    batches = pretraining.make_batches(plan, own["corpora"], own["tokenizer"], 1).parts[0]
    shares = {row["what"]: row["measured"] for row in measure_batches(batches, 20)}
    assert shares["of these, replaced by [MASK]"] == pytest.approx(0.85, abs=0.01)
    assert shares["of these, replaced by a random token"] == 0


def test_the_fingerprint_depends_on_all_that_determines_the_weights(own):
    def find(**changes) -> str:
        defaults = {"machine": Machine(), "seed": 1, "initial": None, "vectors": None, "measuring": {}}
        arguments = own | defaults | changes
        del arguments["folder"]
        return pretraining.describe_run(**arguments)["fingerprint"]

    other_text = dataclasses.replace(own["corpora"][0], ids=own["corpora"][0].ids[::-1])
    dropout = own["plan"].model_copy(update={"dropout": 0.1})
    changes = [{"plan": dropout}, {"corpora": [other_text]}, {"held_out": [other_text]}, {"seed": 2},
               {"machine": Machine(threads=2)}, {"measuring": {"evaluations": 3}},
               {"vectors": np.zeros((9, 16))}, {"vectors": np.ones((9, 16))}]  # fmt: skip
    fingerprints = [find(), *(find(**change) for change in changes)]
    assert len(set(fingerprints)) == len(fingerprints) and find() == fingerprints[0]


def test_contradictory_plans_are_refused(own):
    electra = own["plan"].model_copy(update={"architecture": "electra"})
    for settings in (electra, params.load("models", "bio-electra")):
        for change in ({"pairs": "sentence order"}, {"adversarial": True}):
            with pytest.raises(ValueError, match="ELECTRA judges no pairs and has no adversarial training"):
                type(settings)(**settings.model_dump() | change)
    plan = own["plan"].model_dump()
    with pytest.raises(ValueError, match="core corpora and a way to mix them go together"):
        Pretraining(**plan | {"core": 1})
    mixed = Pretraining(**plan | {"core": 1, "mixing": "simultaneous"})
    with pytest.raises(StudyError, match="the first 1 of 1 corpora are the core: give a satellite after them"):
        pretraining.make_batches(mixed, own["corpora"], own["tokenizer"], 1)
