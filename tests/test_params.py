"""Settings: every file loads, facts stand in one place, and faults are named."""

import pytest

from lib import counts, datasets, params, paths, readers, results
from lib.errors import StudyError


def test_every_file_loads():
    loaded = [params.load(kind, key) for kind in params.KINDS for key in params.keys(kind)]
    assert len(loaded) >= 12


def test_budget_and_science_are_disjoint():
    def names(schema) -> set[str]:
        found = set(schema.model_fields)
        for field in schema.model_fields.values():
            if isinstance(field.annotation, type) and issubclass(field.annotation, params.Settings):
                found |= names(field.annotation)
        return found - {"title"}

    assert not names(params.Scale) & names(params.Model)


def test_a_key_never_holds_what_joins_keys():
    for kind in params.KINDS:
        assert all("--" not in key for key in params.keys(kind))
    assert all("--" not in key for key in datasets.DATASETS)


@pytest.mark.parametrize("key", params.keys("tables"))
def test_tables_name_printed_cells_and_existing_runs(key):
    table = params.load("tables", key)
    assert (paths.NOTEBOOKS / f"{table.notebook}.ipynb").exists()
    if table.kind == "terms":
        terms = results.read_terms()
        printed = set(terms.loc[terms["paper"] == table.paper, "vocabulary"])
        assert printed == set(table.columns) | set(table.not_run)
        assert {*table.columns.values(), *table.ours_only} <= set(params.keys("vocabularies"))
        return
    cells = results.read_published(table.paper, table.table)
    printed = {name: set(cells[name]) for name in ("row", "column", "metric")}
    if table.kind == "lengths":
        assert set(table.columns) == printed["column"]
        assert set(table.rows) == printed["row"] and set(table.rows.values()) <= set(datasets.DATASETS)
        for column in (table.columns | table.other_vocabularies).values():
            params.load("vocabularies", column.vocabulary)
        return
    assert set(table.rows) <= printed["row"] <= set(table.rows) | set(table.not_run)
    assert set(table.columns) <= printed["column"] <= set(table.columns) | set(table.not_run)
    if table.kind == "corpora":
        for row in table.rows.values():
            corpus = params.load("corpora", row.corpus)
            assert set(row.sources) <= {*corpus.sources, *corpus.samples}
        return
    if table.kind == "counts":
        for row in table.rows.values():
            others = [*row.otherwise.values(), *([row.sum_of] if row.sum_of else [])]
            assert {row.dataset, *(other.dataset or row.dataset for other in others)} <= set(datasets.DATASETS)
            assert {row.count, *(other.count or row.count for other in others)} <= set(counts.COUNTS)
            known = {"all", *datasets.SPLITS}
            assert {*table.columns.values(), *row.splits.values(), *(o.split or "all" for o in others)} <= known
            assert {*row.splits, *row.otherwise, *row.remarks} <= set(table.columns)
            assert all(other.why for other in others)
        return
    assert set(table.metrics) == printed["metric"]
    assert set(table.rows.values()) <= set(datasets.DATASETS)
    for model in (table.columns | table.ours_only).values():
        params.load("models", model)
    params.load("protocols", table.protocol)


def test_claims_with_a_test_exist_and_name_columns():
    claims = set(results.read_claims()["claim"])
    for claim, test in params.claim_tests().items():
        assert claim in claims
        if test.kind == "whole":
            assert {test.better, test.than} <= set(params.keys("vocabularies"))
        if test.kind == "sizes":
            assert set(test.printed) <= set(params.keys("models"))
        if test.kind in ("whole", "shares", "sizes"):
            continue
        table = params.load("tables", test.table)
        if test.kind != "cells":
            assert {test.better, test.than} <= set(table.columns | getattr(table, "ours_only", {}))
        if test.kind == "paired":
            assert test.metric in table.metrics


@pytest.mark.parametrize("key", params.keys("corpora"))
def test_corpora_name_sources_rules_and_selections(key):
    corpus = params.load("corpora", key)
    params.load("cleaning", corpus.cleaning)
    for source in (*corpus.sources, *corpus.samples):
        assert params.load("sources", source).reader in readers.READERS
    if corpus.selection:
        params.load("selections", corpus.selection)


@pytest.mark.parametrize("key", params.keys("vocabularies"))
def test_vocabularies_name_corpora_or_a_file(key):
    vocabulary = params.load("vocabularies", key)
    assert all(params.load("corpora", corpus) for corpus in vocabulary.corpora)
    assert vocabulary.file or vocabulary.corpora


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: x\ncorpora: [a]\nsize: 9\ncased: yes please\ndiffers: ''", "cased: .*got 'yes please'"),
        ("title: x\ncorpora: [a]\nsize: 9\ncased: true\nalgorithm: x\ndiffers: ''", "algorithm: .*'wordpiece'"),
        ("title: x", "size: Field required"),
        ("title: x\ncorpora: [a]\nsize: 9\ncased: true\ndiffers: ''\ncase: 1", "case: Extra inputs"),
        ("title: x\nsize: 9\ncased: true\ndiffers: ''", "either corpora to train on, or the file"),
        ("title: x\ncorpora: [a]\namplify: [a]\nsize: 9\ncased: true\ndiffers: ''", "amplify names some of"),
        ("title: [x", "not valid YAML"),
    ],
)
def test_faults_in_a_file_are_named(tmp_path, text, message):
    path = tmp_path / "v.yaml"
    path.write_text(text)
    with pytest.raises(StudyError, match=f"v.yaml: .*{message}"):
        params.read_yaml(path, params.Vocabulary)


def test_a_number_that_yaml_reads_as_text_is_refused(tmp_path):
    text = (paths.PARAMS / "protocols" / "lee.yaml").read_text().replace("[1.0e-5, 3.0e-5, 5.0e-5]", "[2e-5]")
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(StudyError, match="learning_rate.0: .*valid number.*'2e-5'"):
        params.read_yaml(tmp_path / "p.yaml", params.Protocol)


def test_unknown_keys_name_the_nearest():
    with pytest.raises(StudyError, match="unknown model 'bert-genral': did you mean bert-general"):
        params.load("models", "bert-genral")


def test_paper_scale_keeps_the_papers_protocol():
    protocol = params.load_protocol("lee", "paper")
    assert (protocol.epochs, protocol.batch_size) == ([5, 10, 20], [16, 32, 64])
    assert len(protocol.candidates()) == 27


def test_the_page_says_which_file_a_setting_came_from():
    rows = {row["setting"]: row["from"] for row in params.explain("protocols", "lee", "laptop")}
    assert rows["epochs"] == "params/scales/laptop.yaml"
    assert rows["dropout"] == "params/protocols/lee.yaml"
