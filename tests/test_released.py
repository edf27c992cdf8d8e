"""Public weights in place of pretraining: small stand-ins fill the tables; what is missing or damaged is said."""

import json

import pandas as pd
import pytest
import yaml
from conftest import TINY, Study
from small_encoders import FAMILIES, make

from lib.errors import StudyError
from lib.modeling import loading
from lib.study import open_study, params, paths, workload
from lib.study.encoders import find_model
from lib.study.plan import Plan

KINDS = {"FacebookAI/roberta-base": "roberta", "google/electra-small-discriminator": "electra",
         "monologg/biobert_v1.0_pubmed_pmc": "albert", "answerdotai/ModernBERT-base": "modernbert"}  # fmt: skip
MISSING, DAMAGED = "clinicalbert", "scibert-uncased"
ENCODERS = ["modernbert", "medcpt"]  # of a panel; the second is not there
WANTED = ("lee-4", "gu-6", "ozyurt-4", "33")


def repository(model: str) -> str:
    return params.load("models", model).released


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A folder of stand-ins for public weights by the repository's name: one is not there, one is cut off."""
    folder = tmp_path_factory.mktemp("released")
    names = {repository(key) for key in params.keys("models")} | {params.load("encoders", ENCODERS[0]).released}
    for name in names - {"", repository(MISSING)}:
        kind = KINDS.get(name, "bert")
        make(folder / name, kind, FAMILIES[kind])
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
    file = weights / repository(DAMAGED) / "model.safetensors"
    file.write_bytes((weights / repository("bert-uncased") / "model.safetensors").read_bytes())
    made.second_output = made.run(*WANTED)
    return made


def test_tables_are_filled_from_public_weights_and_a_run_goes_on_where_it_failed(study):
    output = study.first_output
    said = next(line for line in output.splitlines() if "public weights" in line)
    assert said.startswith("11 models with public weights, about 0.6 GB in $RELEASED; 14 trainings")
    assert output.index(said) < output.index(" start ") and "23_pretrain" not in output
    failed = [line for line in output.splitlines() if "FAILED" in line]
    assert len(failed) == 1 and f"30_finetune_words--{DAMAGED}--gu--tagging" in failed[0]
    assert sum("30_finetune" in line for line in study.second_output.splitlines() if " start " in line) == 1
    for key, model, missing in (("lee-4", "BERT (Wiki+Books)", "Random initialisation"),
                                ("lee-4", "BioBERT (+PubMed)", "BioBERT (+PMC)"),
                                ("gu-6", "SciBERT uncased", "ClinicalBERT cased"),
                                ("ozyurt-4", "ELECTRA Small++", "Bio-ELECTRA++")):  # fmt: skip
        table = pd.read_csv(study.outputs / "tables" / f"{key}.csv")
        named = table[["row", "column"]].eq(model).any(axis=1)
        assert table.loc[named, "ours"].notna().any(), (key, model)
        assert table.loc[table[["row", "column"]].eq(missing).any(axis=1), "ours"].isna().all(), (key, missing)
    page = (study.outputs / "report" / "50_blurb.html").read_text()
    assert f"{repository('pubmedbert')}, of $RELEASED" in page and f"no folder {repository(MISSING)} in" in page
    result = study.run_code(
        "from lib.study import results; print(results.read_result('smoke', 'roberta', 'ncbi-disease', 'gu')['weights'])"
    )
    assert result.strip() == "FacebookAI/roberta-base, of $RELEASED"


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
    body = scale["bodies"]["base"]
    size = {"hidden_size": body["hidden"], "num_hidden_layers": body["layers"], "num_attention_heads": body["heads"],
            "intermediate_size": body["intermediate"], "max_position_embeddings": 32}  # fmt: skip
    start = tmp_path / "weights" / repository("bert-general")
    make(start, "bert", size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RELEASED", str(tmp_path / "weights"))
        output = made.run_without_report("bert-general-pubmed")
    notebooks = [line.split()[2] for line in output.splitlines() if line[8:15] == " start "]
    assert [name for name in notebooks if not name.startswith(("10", "documents", "texts"))] == [
        "23_pretrain--bert-general-pubmed"
    ]
    made_of = made.outputs / "models" / "bert-general-pubmed"
    ours, theirs = (json.loads((folder / "tokenizer.json").read_text())["model"] for folder in (made_of, start))
    assert ours["vocab"] == theirs["vocab"]
    record = json.loads((made_of / "record.json").read_text())
    assert record["inputs"]["initial weights"] == loading.fingerprint_folder(start, "")


def test_what_a_scale_takes_is_planned_so():
    taken = {key for key in params.keys("models") if params.is_released(key, "paper")}
    assert {"bert-general", "bert-general-half", "roberta", "clinicalbert", "scibert-uncased", "biobert-1m"} <= taken
    assert not {"pubmedbert", "bert-general-pubmed", "biobert-pubmed-pmc", "oubiobert", "bio-electra"} & taken
    assert not any(params.is_released(key, "laptop") for key in taken)
    plan = Plan("paper", ["bert-general-pubmed"])
    assert plan.jobs["pretrain"] == [("bert-general-pubmed",)] and not plan.jobs["vocabulary"]
    assert plan.registered("pubmedbert") and not plan.registered("roberta")
    assert not Plan("released", ["gu-6"]).registered("pubmedbert")


def test_public_weights_are_those_of_a_revision_where_one_is_known(monkeypatch):
    monkeypatch.delenv("RELEASED", raising=False)
    found, known = find_model(open_study("released"), "bert-general"), params.load("models", "bert-general").revision
    assert (found.source, found.revision) == ("google-bert/bert-base-cased", known) and known
    unverified = find_model(open_study("released"), "albert-base")
    assert unverified.revision == "main" and "revision unverified" in params.describe_weights("albert-base")
    with pytest.raises(StudyError, match="'bio-electra': its weights were released outside the hub"):
        find_model(open_study("released"), "bio-electra")
    assert params.why_no_weights("bio-electra-masked", "released") == params.NO_WEIGHTS  # it is not the released one


def test_the_encoder_that_ships_is_read_where_it_lies(weights):
    found = find_model(open_study("laptop"), "encoder-14m")
    assert found.source == str(paths.ROOT / "model" / "encoder-14m") and found.fingerprint
    assert params.describe_weights("encoder-14m") == "./model/encoder-14m of this repository"


def test_quick_has_one_seed_and_one_candidate_of_the_papers_settings():
    whole, quick = (params.load_finetuning("gu", "ncbi-disease", "tagging", f"released{one}") for one in ("", "-quick"))
    assert len(quick.candidates()) == 1 < len(whole.candidates()) and quick.candidates()[0] in whole.candidates()
    assert workload.count_trainings(open_study("released-quick"), "ncbi-disease", "gu") == 1
