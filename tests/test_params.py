"""Settings: every file loads, facts stand in one place, and faults are named."""

import pytest

from lib import datasets, params, paths, results
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
    cells = results.read_published(table.paper, table.table)
    printed = {name: set(cells[name]) for name in ("row", "column", "metric")}
    assert set(table.rows) <= printed["row"]
    assert set(table.columns) <= printed["column"]
    assert set(table.metrics) == printed["metric"]
    assert printed["row"] <= set(table.rows) | set(table.not_run)
    assert printed["column"] <= set(table.columns) | set(table.not_run)
    assert set(table.rows.values()) <= set(datasets.DATASETS)
    for model in (table.columns | table.ours_only).values():
        params.load("models", model)
    params.load("protocols", table.protocol)
    assert (paths.NOTEBOOKS / f"{table.notebook}.ipynb").exists()


def test_claims_with_a_test_exist_and_name_columns():
    claims = set(results.read_claims()["claim"])
    for claim, test in params.claim_tests().items():
        table = params.load("tables", test.table)
        assert claim in claims
        assert {test.better, test.than} <= set(table.columns | table.ours_only)
        assert test.metric in table.metrics


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: x\ncorpora: [a]\nalgorithm: wordpiece\ncased: yes please\ndiffers: ''", "cased: .*got 'yes please'"),
        ("title: x\ncorpora: [a]\nalgorithm: bpe\ncased: true\ndiffers: ''", "algorithm: .*'wordpiece'"),
        ("title: x", "corpora: Field required"),
        ("title: x\ncorpora: [a]\nalgorithm: wordpiece\ncased: true\ndiffers: ''\ncase: 1", "case: Extra inputs"),
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
