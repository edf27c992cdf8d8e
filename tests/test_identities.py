"""Tests of what makes an artefact stale: its version, resolved settings and data, but never where code stands."""

import json
from pathlib import Path

import pytest
from conftest import each

from lib import artefacts, provenance
from lib.finetuning import finetuning
from lib.pretraining import pretraining
from lib.study import classifiers, open_study, params, paths, state
from lib.training import training
from tools import stamp

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


def test_a_model_is_done_again_for_all_that_its_weights_follow_from():
    """Job and record share one dictionary; only the record has the settings resolved on a machine."""
    by_machine = {"precision", "processes", "epsilon"}
    for scale in ("smoke", "laptop", "paper"):
        for key in params.load("scales", scale).list_models():
            model = open_study(scale).model(key)
            settled = pretraining.settle_settings(model.plan, model.machine, model.seed, 1)
            weights = params.identify_weights(key, scale)
            assert settled | weights == weights | {name: settled[name] for name in by_machine}, (scale, key)
            assert weights.items() <= state.pretraining_state(open_study(scale), key).items(), (scale, key)


def test_committed_vocabularies_follow_from_the_settings_in_force():
    records = sorted(paths.output("record").glob("*/vocabularies/*/record.json"))
    for path in records:
        vocabulary = open_study(path.parts[-4]).vocabulary(path.parent.name)
        assert json.loads(path.read_text())["settings"] == vocabulary.recipe, path
        assert vocabulary.recipe.items() <= state.vocabulary_state(vocabulary.study, vocabulary.key).items()
    assert records


def test_the_complement_of_a_selection_is_made_again_when_that_one_changes():
    corpus = open_study("laptop").corpus("pubmed-other")
    assert corpus.recipe["selection"]["complement"]["each_of"] == [["C"]]


def test_an_identity_follows_from_all_of_its_parts_and_refuses_what_json_cannot_hold():
    parts = {"stage": "tokens", "version": 1, "settings": {"a": 1, "b": [2]}, "inputs": {"corpus": "x"}}
    first = provenance.identify(**parts)
    assert first == provenance.identify(**parts | {"settings": {"b": [2], "a": 1}})
    for change in ({"stage": "corpora"}, {"version": 2}, {"settings": {"a": 1, "b": [3]}}, {"inputs": {"corpus": "y"}}):
        assert provenance.identify(**parts | change)["fingerprint"] != first["fingerprint"]
    with pytest.raises(TypeError, match="not JSON serializable"):
        provenance.identify(**parts | {"settings": {"a": Path("x")}})


@each(("native", "auto"), [(True, "bfloat16"), (False, "float32")])
def test_precision_is_said_as_it_was_resolved(monkeypatch, native, auto):
    monkeypatch.setattr(training, "computes_in_bfloat16", lambda: native)
    assert (training.resolve("auto"), training.resolve("float32")) == (auto, "float32")


def test_what_an_optimizer_computes_with_is_part_of_a_runs_settings():
    settings = open_study("laptop").protocol("gu", "ncbi-disease")
    final = finetuning.resolve_settings(settings, settings.candidates()[0])
    assert (final["optimizer"], final["betas"], final["clip"], final["epsilon"]) == ("adamw", [0.9, 0.999], 1.0, 1e-6)


def test_a_setting_that_came_later_is_known_only_where_it_is_used():
    settings = open_study("laptop").protocol("gu", "ncbi-disease")
    used = {"head_rate": 10.0, "crf_rate": 100.0, "layer_decay": 0.8}
    assert not used.keys() & finetuning.resolve_settings(settings, {}).keys()
    assert finetuning.resolve_settings(settings.model_copy(update=used), {}).items() >= used.items()


def test_a_key_of_results_that_has_another_name_since_is_renamed_and_nothing_else(tmp_path):
    results, runs = tmp_path / "results.json", [{"settings": {"setting": 1}, "scores": {"f1": 70.0}}]
    artefacts.write_json(results, {"model": "a", "setting": "gu", "runs": runs})
    assert stamp.rename_keys(results)
    assert results.read_text() == artefacts.to_lines({"model": "a", "protocol": "gu", "runs": runs})
    assert not stamp.rename_keys(results)


STATES = """
from unittest.mock import patch
from lib.finetuning import finetuning
from lib.pretraining import embeddings, tokens
from lib.pretraining.plan import Pretraining
from lib.study import open_study, params

def state():
    return open_study("smoke").model("bert-general").identity["fingerprint"]

plan = params.load_pretraining("bert-general", "smoke")
before, found = state(), []
with patch.object(params, "load_pretraining", lambda *_: plan.model_copy(update={"betas": [0.9, 0.999]})):
    found.append(state())
for owner, name in ((Pretraining, "version"), *((module, "VERSION") for module in (tokens, embeddings, finetuning))):
    with patch.object(owner, name, 0):
        found.append(state())
print([one != before for one in found])
"""


def test_a_model_is_stale_when_its_settings_or_what_it_is_made_of_change_and_then_alone(study):
    assert study.run_code(STATES).strip() == "[True, True, True, True, False]"
