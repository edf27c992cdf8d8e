"""Tests of what makes an artefact stale: its version, resolved settings and data, but never where code stands."""

import json
from pathlib import Path

import pytest

from lib import provenance
from lib.finetuning import finetuning
from lib.pretraining import embeddings, pretraining, tokens
from lib.pretraining.plan import Pretraining
from lib.running.runnable import Runnable
from lib.running.stages import STAGES
from lib.study import classifiers, open_study, params, paths
from lib.study.corpora import Corpus
from lib.study.vocabularies import Vocabulary

CHOSEN = ("epochs", "batch_size", "learning_rate")
COMMITTED = sorted(paths.output("record").glob("*/results/*.json"))


def test_every_committed_run_has_the_identity_that_its_settings_give():
    """Protocol settings are resolved as of now: a changed setting would make a run stale, and fails here."""
    faults = []
    for path in COMMITTED:
        result = json.loads(path.read_text())
        if result["model"] in classifiers.SPACES:
            continue
        settings = open_study(result["scale"]).protocol(result["protocol"], result["dataset"])
        threads = params.load("scales", result["scale"]).threads
        for run in result["runs"]:
            recorded = run["settings"]
            expected = finetuning.resolve_settings(settings, {name: recorded[name] for name in CHOSEN})
            expected |= {"seed": run["seed"], "fold": run["fold"], "split": "test", "threads": threads}
            expected |= {"precision": run["device"].rpartition(", ")[2]}
            identity = provenance.identify("fine-tuning", run["version"], expected, run["inputs"])
            faults += [
                f"{path.name}, seed {run['seed']}: {key}" for key, value in identity.items() if run[key] != value
            ]
    assert len(COMMITTED) > 90 and not faults


def test_a_model_is_stale_when_anything_that_decides_its_weights_changes():
    """Job and record share one dictionary; only the record has the settings resolved on a machine."""
    by_machine = {"precision", "processes", "epsilon"}
    for scale in ("smoke", "paper"):
        runnable = Runnable(scale)
        for key in runnable.study.budget.list_models():
            model = runnable.study.model(key)
            settled = pretraining.settle_settings(model.plan, model.machine, model.seed, 1)
            weights = params.identify_weights(key, scale)
            assert settled | weights == weights | {name: settled[name] for name in by_machine}, (scale, key)
            assert weights.items() <= STAGES["pretrain"].state(runnable, key).items(), (scale, key)


def test_committed_vocabularies_have_the_settings_in_force():
    records = sorted(paths.output("record").glob("*/vocabularies/*/record.json"))
    for path in records:
        runnable = Runnable(path.parts[-4])
        vocabulary = runnable.study.vocabulary(path.parent.name)
        assert json.loads(path.read_text())["settings"] == vocabulary.recipe, path
        assert vocabulary.recipe.items() <= STAGES["vocabulary"].state(runnable, vocabulary.key).items()
    assert records


def test_an_identity_depends_on_each_of_its_parts():
    parts = {"stage": "tokens", "version": 1, "settings": {"a": 1, "b": [2]}, "inputs": {"corpus": "x"}}
    first = provenance.identify(**parts)
    assert first == provenance.identify(**parts | {"settings": {"b": [2], "a": 1}})
    for change in ({"stage": "corpora"}, {"version": 2}, {"settings": {"a": 1, "b": [3]}}, {"inputs": {"corpus": "y"}}):
        assert provenance.identify(**parts | change)["fingerprint"] != first["fingerprint"]
    with pytest.raises(TypeError, match="not JSON serializable"):
        provenance.identify(**parts | {"settings": {"a": Path("x")}})


def test_the_settings_of_a_run_include_its_optimizer_and_newer_settings_only_if_used():
    settings = open_study("laptop").protocol("gu", "ncbi-disease")
    final = finetuning.resolve_settings(settings, settings.candidates()[0])
    assert (final["optimizer"], final["betas"], final["clip"], final["epsilon"]) == ("adamw", [0.9, 0.999], 1.0, 1e-6)
    used = {"head_rate": 10.0, "crf_rate": 100.0, "layer_decay": 0.8}
    assert not used.keys() & final.keys()
    assert finetuning.resolve_settings(settings.model_copy(update=used), {}).items() >= used.items()


def test_a_model_is_stale_when_its_settings_or_stages_change_but_not_for_fine_tuning(monkeypatch):
    monkeypatch.setattr(Vocabulary, "fingerprint", "vocabulary")
    monkeypatch.setattr(Corpus, "record", {"content": "text"})

    def find_identity() -> str:
        return open_study("smoke").model("bert-general").identity["fingerprint"]

    before = find_identity()
    changed = params.load_pretraining("bert-general", "smoke").model_copy(update={"betas": [0.9, 0.9]})
    with monkeypatch.context() as patch:
        patch.setattr(params, "load_pretraining", lambda *_: changed)
        assert find_identity() != before
    for owner, name in ((Pretraining, "version"), (tokens, "VERSION"), (embeddings, "VERSION")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, 0)
            assert find_identity() != before, owner
    monkeypatch.setattr(finetuning, "VERSION", 0)
    assert find_identity() == before
