"""Tests that params/ and the registry agree with the papers' tables of models, datasets and settings."""

import csv
import re

from lib.benchmarks import registry
from lib.study import open_study, params, paths
from lib.study.papers import read_paper

TEXTS = {"Wiki": "wiki-books", "Books": "wiki-books", "Wikipedia": "wiki-books", "BooksCorpus": "wiki-books",
         "PubMed": "pubmed", "PMC": "pmc", "MIMIC-III": "mimic"}  # fmt: skip
FAMILIES = {
    "NER": "tagging", "PICO": "pico", "Relation Extraction": "relations", "Sentence Similarity": "similarity",
    "Document Classification": "documents", "Question Answering": "answers", "Sentence similarity": "similarity",
    "Named-entity recognition": "tagging", "Relation-extraction": "relations", "Document classification": "documents",
    "Inference": "inference",
}  # fmt: skip
METRICS = {"Pearson": {"pearson"}, "micro F1": {"relation-micro-f1"}, "accuracy": {"accuracy"},
           "F1": {"entity-f1", "strict-span-f1", "example-f1"}}  # fmt: skip


def read(paper: str, table: str) -> dict[str, dict[str, str]]:
    """Return a printed table: row -> column -> value."""
    cells: dict = {}
    with (paths.PUBLISHED / "definitions.csv").open(encoding="utf-8", newline="") as file:
        for record in csv.DictReader(file):
            if (record["paper"], record["table"]) == (paper, table):
                cells.setdefault(record["row"], {})[record["column"]] = record["value"]
    return cells


def names(paper: str) -> dict:
    return read_paper(paths.PARAMS / f"papers/{paper}.yaml").names


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def texts_of(printed: str) -> list[str]:
    """Return the corpora of a printed combination, in order, even where BioALBERT's table lacks a plus sign."""
    parts = re.findall(r"Wikipedia|Wiki|BooksCorpus|Books|PubMed|PMC|MIMIC-III", printed)
    return list(dict.fromkeys(TEXTS[part] for part in parts))


def corpora_of(model: str) -> list[str]:
    """Return the corpora that a model and the one it continues are pretrained on, without the suffix of a paper."""
    keys = " and ".join(params.list_texts(model)).split(" and ")
    return [key.removesuffix("-naseem") for key in keys]


def test_biobert_table_2():
    models = {
        "Wiki + Books": "BERT (Wiki+Books)", "Wiki + Books + PubMed": "BioBERT (+PubMed)",
        "Wiki + Books + PMC": "BioBERT (+PMC)", "Wiki + Books + PubMed + PMC": "BioBERT (+PubMed+PMC)",
    }  # fmt: skip
    for printed, name in models.items():
        assert printed in read("lee-biobert", "2")
        assert corpora_of(names("lee")[name].model) == texts_of(printed)


def test_pubmedbert_tables_2_and_4():
    rows, blurb = read("gu-pubmedbert", "2"), params.load("tables", "gu-6").rows
    assert [row for row, cells in rows.items() if cells["BLURB"] == "✓"] == list(rows)
    assert set(rows) == {name for name, run in blurb.items() if run.dataset}
    families = {registry.lookup(run.dataset).family for run in blurb.values() if run.dataset}
    assert {FAMILIES[task] for task in read("gu-pubmedbert", "4")} == families


def test_oubiobert_tables_3_and_5():
    printed_names = names("wada")
    assert all(printed_names[cells["Name"]].model for cells in read("wada-oubiobert", "3").values())
    datasets = {"Named-entity recognition": "bc5cdr-chem", "Relation-extraction": "ddi"}
    for row, cells in read("wada-oubiobert", "5").items():
        dataset = datasets.get(row) or printed_names[row].dataset
        assert open_study("paper").protocol("wada", dataset).epochs == numbers(cells["Number of epochs"]), row


def test_oubiobert_table_4():
    rows, printed_names = read("wada-oubiobert", "4"), names("wada")
    for row, cells in rows.items():
        dataset = registry.lookup(printed_names[row].dataset)
        assert dataset.family == FAMILIES[cells["Task"]] and dataset.metric in METRICS[cells["Metrics"]], row
    for domain in ("Clinical", "Biomedical"):
        ours = [printed_names[row].dataset for row, cells in rows.items() if cells["Domain"] == domain]
        assert printed_names[domain.lower()].mean_of == [ours]


def test_bioalbert_table_1():
    rows, printed_names = read("naseem-bioalbert", "1"), names("naseem")
    assert {cells["BioALBERT"] for cells in rows.values()} == {"✓"}
    theirs = {run.dataset for run in params.load("tables", "naseem-7").rows.values() if run.dataset}
    ours = {printed_names[row].dataset for row in rows}
    assert ours == theirs and len(rows) == len(theirs) == 20


def test_bioalbert_table_3():
    """The table holds for base models; the text gives other numbers for large ones."""
    printed = {row: cells["value"] for row, cells in read("naseem-bioalbert", "3").items()}
    model, body = params.load("models", "bioalbert-base1"), params.load("scales", "paper").bodies["base"]
    (phase,) = model.published.phases
    assert [body.heads, body.layers, body.hidden, body.embedding] == [
        int(printed[row]) for row in ("Attention Heads", "No. of Layers", "Size of Hidden Layer", "Size of Embedding")
    ]
    assert [phase.batch_size, phase.length, phase.max_predictions] == [
        int(printed[row])
        for row in ("Training Batch Size", "Maximum Sentence Length", "Maximum Predictions per Sentence")
    ]
    assert (model.architecture, model.published.optimizer) == ("albert", printed["Optimizer Used"].lower())
    assert round(phase.warmup * phase.steps) == int(printed["Warm-up Steps"].replace(",", ""))
    assert params.load("vocabularies", model.vocabulary).size // 1000 == int(printed["Size of Vocabulary"][:-1])


def test_large_bioalberts_say_where_they_depart_from_table_3():
    printed = {row: cells["value"] for row, cells in read("naseem-bioalbert", "3").items()}
    batch = f"{int(printed['Training Batch Size']):,}"
    layers, heads = printed["No. of Layers"], printed["Attention Heads"]
    units = printed["Size of Hidden Layer"]
    stated = f"gives all models batches of {batch}, {layers} layers, {heads} heads and {units} units"
    for number in "1234":
        assert stated in params.load("models", f"bioalbert-large{number}").differs


def test_bioalbert_table_4():
    for row, printed in read("naseem-bioalbert", "4").items():
        model = names("naseem")[row].model
        steps, texts = printed["Number of training steps"], printed["Combination of corpus used for training"]
        phases = params.load("models", model).published.phases
        assert sum(phase.steps for phase in phases) == 1000 * int(steps[:-1]), row
        assert corpora_of(model) == texts_of(texts), row


def test_bioalbert_table_5():
    """The warm-up is the exception: the text has 512 steps."""
    printed = {row: cells["value"] for row, cells in read("naseem-bioalbert", "5").items()}
    settings = open_study("paper").protocol("naseem", "ddi")
    assert settings.batch_size == [int(printed["Training Batch Size"])]
    assert settings.learning_rate == [float(printed["Learning Rate"])]
    assert settings.steps == 1000 * int(printed["Training Steps"][:-1])
    assert settings.optimization().optimizer == printed["Optimizer used"].lower()
    assert printed["Warm-up Steps"] in params.load("protocols", "naseem").differs
