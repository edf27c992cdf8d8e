"""Public weights in place of pretraining: small stand-ins fill the tables; missing and damaged ones are named."""

import json

import pandas as pd
import pytest
import yaml
from conftest import TINY, Study, jobs_started
from small_encoders import FAMILIES, SIZE, make

from lib.errors import StudyError
from lib.modeling import loading
from lib.running import workload
from lib.running.plan import Plan
from lib.study import open_study, params, paths
from lib.study.encoders import find_model

KINDS = {"bert-general": "bert", "biobert-1m": "bert", "electra-small-plus": "electra"}
MISSING, DAMAGED = "biobert-pubmed-pmc", "electra-small-plus"
ENCODERS = ["modernbert", "medcpt"]  # of a panel; the second is not there
WANTED = ("lee-4", "ozyurt-4", "33")


def repository(model: str) -> str:
    return params.load("models", model).released


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A folder of stand-ins for public weights by the repository's name: one is not there, one is cut off."""
    folder = tmp_path_factory.mktemp("released")
    for model, kind in KINDS.items():
        make(folder / repository(model), kind, FAMILIES[kind])
    make(folder / params.load("encoders", ENCODERS[0]).released, "modernbert", FAMILIES["modernbert"])
    file = folder / repository(DAMAGED) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RELEASED", str(folder))
        yield folder


@pytest.fixture(scope="module")
def study(weights, tmp_path_factory):
    """A study at a smoke scale of public weights, on one dataset, after a run that failed and one that went on."""
    scale = yaml.safe_load(TINY) | {"weights": "released", "models": [], "seeds": [1]}
    scale["panels"] = [{"protocol": "gu-long", "models": ENCODERS, "datasets": ["ncbi-disease"]}]
    scale["substitutes"] = params.load("scales", "released").substitutes.model_dump()
    scale["pretraining"]["recipe"] = None
    scale["finetuning"] = {"epochs": [1], "batch_size": [16], "learning_rate": [1e-3]}
    made = Study(tmp_path_factory.mktemp("study") / "study")
    made.copy(yaml.safe_dump(scale))
    made.first_output = made.run_without_report(*WANTED, fails=True)
    make(weights / repository(DAMAGED), KINDS[DAMAGED], FAMILIES[KINDS[DAMAGED]])
    made.second_output = made.run(*WANTED)
    return made


def test_tables_are_filled_from_public_weights_and_a_run_goes_on_where_it_failed(study):
    output = study.first_output
    cost = next(line for line in output.splitlines() if "public weights" in line)
    assert cost.startswith("4 models with public weights, about 0.6 GB in $RELEASED; 5 trainings")
    assert output.index(cost) < output.index(" start ") and "23_pretrain" not in output
    failed = [line for line in output.splitlines() if "FAILED" in line]
    assert len(failed) == 1 and f"30_finetune_words--{DAMAGED}--ozyurt--tagging" in failed[0]
    assert sum("30_finetune" in line for line in study.second_output.splitlines() if " start " in line) == 1
    for key, model, missing in (("lee-4", "BERT (Wiki+Books)", "Random initialisation"),
                                ("lee-4", "BioBERT (+PubMed)", "BioBERT (+PubMed+PMC)"),
                                ("ozyurt-4", "ELECTRA Small++", "Bio-ELECTRA++")):  # fmt: skip
        table = pd.read_csv(study.outputs / "tables" / f"{key}.csv")
        named = table[["row", "column"]].eq(model).any(axis=1)
        assert table.loc[named, "ours"].notna().any(), (key, model)
        assert table.loc[table[["row", "column"]].eq(missing).any(axis=1), "ours"].isna().all(), (key, missing)
    page = (study.outputs / "report" / "40_biobert--lee-4.html").read_text()
    assert f"{repository('biobert-1m')}, of $RELEASED" in page and f"no folder {repository(MISSING)} in" in page


def test_published_encoders_are_rows_of_the_page_over_all_benchmarks(study):
    lines = pd.read_csv(study.outputs / "tables" / "panels.csv", keep_default_na=False).set_index("model")
    assert lines.loc["modernbert", "ours"]
    assert lines.loc["medcpt", "note"] == "no folder ncbi/MedCPT-Article-Encoder in $RELEASED"
    page = (study.outputs / "report" / "33_all_benchmarks.html").read_text()
    assert "answerdotai/ModernBERT-base, of $RELEASED" in page


def test_at_paper_scale_the_papers_own_models_start_from_public_weights(study, weights, tmp_path):
    """With their vocabulary: nothing is trained before, and the tokenizer is that of the weights."""
    scale = yaml.safe_load(TINY) | {"weights": "as the papers", "panels": [], "models": []}
    made = Study(tmp_path / "study")
    made.copy(yaml.safe_dump(scale))
    start = tmp_path / "weights" / repository("bert-general")
    make(start, "bert", SIZE | {"num_hidden_layers": 1, "max_position_embeddings": 32})  # as in TINY
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RELEASED", str(tmp_path / "weights"))
        started = jobs_started(made.run_without_report("bert-general-pubmed"))
    assert [name for name in started if name[:2].isdigit() and name[:2] != "10"] == ["23_pretrain--bert-general-pubmed"]
    made_of = made.outputs / "models" / "bert-general-pubmed"
    ours, theirs = (json.loads((folder / "tokenizer.json").read_text())["model"] for folder in (made_of, start))
    assert ours["vocab"] == theirs["vocab"]
    record = json.loads((made_of / "record.json").read_text())
    assert record["inputs"]["initial weights"] == loading.fingerprint_folder(start, "")


def test_each_scale_plans_its_released_models():
    taken = {key for key in params.keys("models") if params.is_released(key, "paper")}
    assert {"bert-general", "bert-general-half", "roberta", "clinicalbert", "scibert-uncased", "biobert-1m"} <= taken
    assert not {"pubmedbert", "bert-general-pubmed", "biobert-pubmed-pmc", "oubiobert", "bio-electra"} & taken
    assert not any(params.is_released(key, "laptop") for key in taken)
    plan = Plan("paper", ["bert-general-pubmed"])
    assert plan.jobs["pretrain"] == [("bert-general-pubmed",)] and not plan.jobs["vocabulary"]
    assert plan.runnable.pretrain_jobs("pubmedbert") and not plan.runnable.pretrain_jobs("roberta")
    assert not Plan("released", ["gu-6"]).runnable.pretrain_jobs("pubmedbert")
    whole, quick = (params.load_finetuning("gu", "ncbi-disease", "tagging", f"released{one}") for one in ("", "-quick"))
    assert len(quick.candidates()) == 1 < len(whole.candidates()) and quick.candidates()[0] in whole.candidates()
    assert workload.count_trainings(open_study("released-quick"), "ncbi-disease", "gu") == 1


def test_public_weights_are_those_of_a_revision_where_one_is_known(monkeypatch):
    monkeypatch.delenv("RELEASED", raising=False)
    found, known = find_model(open_study("released"), "bert-general"), params.load("models", "bert-general").revision
    assert (found.source, found.revision) == ("google-bert/bert-base-cased", known) and known
    unverified = find_model(open_study("released"), "albert-base")
    assert unverified.revision == "main" and "revision unverified" in params.describe_weights("albert-base")
    with pytest.raises(StudyError, match="'bio-electra': its weights were released outside the hub"):
        find_model(open_study("released"), "bio-electra")
    assert params.why_no_weights("bio-electra-masked", "released") == params.NO_WEIGHTS  # it is not the released one
    shipped = find_model(open_study("laptop"), "encoder-14m")
    assert shipped.source == str(paths.ROOT / "model" / "encoder-14m") and shipped.fingerprint
    assert params.describe_weights("encoder-14m") == "./model/encoder-14m of this repository"
