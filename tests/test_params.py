"""Tests of settings: every file loads, each fact has one place, and errors name the fault."""

import shutil

import pytest
from conftest import change_settings, each
from golden import write, write_files

from lib.benchmarks import datasets
from lib.benchmarks.registry import DATASETS
from lib.corpora import readers
from lib.errors import StudyError
from lib.study import open_study, params, parsing, paths, results
from lib.study.published import find_run
from lib.study.settings import FinetuningBudget, Protocol, VocabularySettings


def test_every_file_loads_and_no_key_holds_the_separator_of_keys():
    for kind in params.KINDS:
        assert [params.load(kind, key) for key in params.keys(kind)]
        assert all("--" not in key for key in params.keys(kind))


def test_panels_name_what_is_registered():
    for scale in params.keys("scales"):
        for panel in params.load("scales", scale).panels:
            assert set(panel.models) <= {*params.keys("models"), *params.keys("encoders"), *params.BASELINES}
            assert set(panel.datasets) <= set(DATASETS) and panel.protocol in params.keys("protocols")


def test_panels_have_each_run_once_for_each_pretraining():
    models, sets = ["pubmedbert", "bert-general"], ["bc2gm", "ddi"]
    panel = params.Panel(protocol="gu", models=models, datasets=sets)
    changes = {"models": ["pubmedbert"], "panels": [panel, panel], "pretrainings": 2}
    budget = params.load("scales", "laptop").model_copy(update=changes)
    names = [*models, "pubmedbert.2", "bert-general.2"]
    assert budget.panel_runs() == [(name, key, "gu") for key in sets for name in names]
    assert budget.list_models() == ["pubmedbert", "pubmedbert.2"] and all(params.is_model(name) for name in names)


def test_a_scale_may_change_more_of_one_family():
    budget = FinetuningBudget(epochs=[3], batch_size=[16], families={"relations": {"batch_size": [4]}})
    assert budget.list_changes("relations") == {"epochs": [3], "batch_size": [4]}
    assert budget.list_changes("tagging") == {"epochs": [3], "batch_size": [16]}
    for family, batch_size in (("tagging", [16]), ("relations", [4])):
        assert params.load_finetuning("gu", "gad", family, "laptop").batch_size == batch_size


@each("key", params.keys("tables"))
def test_tables_name_registered_keys(key):
    """The datasets, models and protocols of scores are looked up when jobs are planned (test_plan.py)."""
    table, vocabularies = params.load("tables", key), set(params.keys("vocabularies"))
    assert (paths.NOTEBOOKS / f"{table.notebook}.ipynb").exists()
    match table.kind:
        case "terms":
            assert {*table.columns.values(), *table.ours_only} <= vocabularies
        case "lengths":
            assert set(table.rows.values()) <= set(DATASETS)
            assert {column.vocabulary for column in table.columns.values()} <= vocabularies
        case "times":
            assert set(table.rows.values()) <= set(params.keys("models"))
        case "counts":
            assert set(table.rows.values()) <= set(DATASETS) and set(table.columns.values()) <= set(datasets.SPLITS)
        case "corpora":
            for row in table.rows.values():
                corpus = params.load("corpora", row.corpus)
                assert set(row.sources) <= {*corpus.sources, *corpus.samples}
        case "scores":
            for cell in results.read_published(table.paper, table.table).to_dict("records"):
                if not {cell["row"], cell["column"]} & set(table.not_run):
                    run = find_run(table, cell["row"], cell["column"])
                    assert run.model and run.protocol and bool(run.dataset) != bool(run.mean_of)
        case "curves":
            score_tables = [params.load("tables", name) for name in table.of]
            assert set(table.rows) <= {row for scores in score_tables for row in scores.rows}
            assert set(table.of.values()) <= {"", *(metric for scores in score_tables for metric in scores.metrics)}


def test_corpora_and_vocabularies_name_registered_keys():
    for key in params.keys("corpora"):
        corpus = params.load("corpora", key)
        assert corpus.cleaning in params.keys("cleaning") and corpus.selection in (None, "", *params.keys("selections"))
        for source in (*corpus.sources, *corpus.samples):
            assert params.load("sources", source).reader in readers.READERS
    for key in params.keys("vocabularies"):
        assert set(params.load("vocabularies", key).corpora) <= set(params.keys("corpora"))


@each(
    ("text", "message"),
    [
        ("title: x\ncorpora: [a]\nsize: 9\ncased: yes please\ndiffers: ''", "cased: .*got 'yes please'"),
        ("title: x", "size: Field required"),
        ("title: x\ncorpora: [a]\nsize: 9\ncased: true\ndiffers: ''\ncase: 1", "case: Extra inputs"),
        ("title: x\nsize: 9\ncased: true\ndiffers: ''", "either corpora to train on, or the file"),
        ("title: x\ncorpora: [a]\namplify: [a]\nsize: 9\ncased: true\ndiffers: ''", "amplify names some of"),
        ("title: [x", "not valid YAML"),
        ("title: x\ntitle: y", "not valid YAML: title twice"),
    ],
)
def test_a_faulty_file_is_refused(tmp_path, text, message):
    path = tmp_path / "v.yaml"
    path.write_text(text)
    with pytest.raises(StudyError, match=f"v.yaml: .*{message}"):
        parsing.read_yaml(path, VocabularySettings)


@pytest.fixture
def settings_folder(tmp_path, monkeypatch):
    """Yield a function that writes models into a temporary params/ folder."""
    monkeypatch.setattr(paths, "PARAMS", tmp_path)
    params.load.cache_clear()

    def write_models(**models):
        write_files(tmp_path / "models", {f"{key}.yaml": text for key, text in models.items()})

    write_models(whole=(paths.ROOT / "params/models/bert-general.yaml").read_text())
    yield write_models
    params.load.cache_clear()


def test_a_model_inherits_the_settings_that_it_does_not_override(settings_folder):
    settings_folder(half="title: Half\nlike: whole\npapers: []\nshare: 0.5\ndiffers: in its share")
    half, whole = params.load("models", "half"), params.load("models", "whole")
    changes = {"title": "Half", "papers": [], "share": 0.5, "differs": "in its share"}
    changes |= {"released": "", "revision": ""}
    assert half == whole.model_copy(update=changes)  # the released weights are those of the other model
    rows = {row["setting"]: row["from"] for row in params.explain("models", "half")}
    assert (rows["share"], rows["vocabulary"], rows["released"]) == ("half.yaml", "whole.yaml", "half.yaml")
    settings_folder(quarter="title: Quarter\nlike: half\npapers: []\ndiffers: in its part\npart: 0.5")
    quarter = params.load("models", "quarter")
    assert (quarter.share, quarter.part, quarter.vocabulary) == (0.5, 0.5, whole.vocabulary)


@each(
    ("old", "new", "message"),
    [
        ("  LINNAEUS: {", "  LINNEUS: {", r"\d+, names, LINNEUS: unknown printed name 'LINNEUS': did you mean LI"),
        ("  LINNAEUS: {dataset: linnaeus}\n", "", "tables, 4: nothing says .* unknown name 'LINNAEUS'"),
        ("LINNAEUS: {dataset: ", "LINNAEUS: {corpus: ", "tables, 4: 'LINNAEUS' says none of model, dataset,"),
        ("    title: BioBERT on nine", "    not_run: {}\n    title: x", "tables, 4, not_run: follows from names"),
        ("    title: BioBERT on nine", "    kind: score\n    title: x", "unknown kind of table 'score': did you mean"),
        ("    title: BioBERT on nine", "    table: x\n    title: x", "tables, 4: published/ has no table x of lee-bio"),
    ],
)
def test_faulty_names_of_a_paper_are_refused(tmp_path, monkeypatch, old, new, message):
    text = (paths.ROOT / "params/papers/lee.yaml").read_text()
    assert old in text
    write(tmp_path / "papers/lee.yaml", text.replace(old, new))
    monkeypatch.setattr(paths, "PARAMS", tmp_path)
    with pytest.raises(StudyError, match=rf"lee.yaml.*{message}"):
        params.load.__wrapped__("tables", "lee-4")


def test_messages_name_the_line_of_a_setting(tmp_path):
    (tmp_path / "x.yaml").write_text("# a comment\na: {b: 1}\nc:\n  d: 2\n  e: {f: 3}\n")
    assert parsing.show_place(tmp_path / "x.yaml", "c", "e", "f") == "x.yaml, line 5, c, e, f"


def test_a_table_has_the_printed_rows_and_columns_in_their_order():
    table = params.load("tables", "lee-5")
    assert list(table.rows) == ["GAD", "EU-ADR", "CHEMPROT", "Average"]
    assert list(table.not_run) == ["State-of-the-art"] and list(table.metrics) == ["precision", "recall", "F1"]
    assert params.load("tables", "gu-8").rows["EBM PICO"] == "ebm-pico-scibert"  # a table's own entry takes precedence
    assert params.load("tables", "gu-3").rows["EBM PICO"] == "ebm-pico-blurb"


@each(
    ("text", "message"),
    [
        ("title: x\nlike: whol\npapers: []\ndiffers: x", "one.yaml: like: unknown model 'whol': did you mean whole"),
        ("title: x\nlike: round\npapers: []\ndiffers: x", "round.yaml: like: 'one' is like this one"),
        ("like: whole\npapers: []\ndiffers: x", "one.yaml: title: Field required"),  # a title is not inherited
        ("title: x\nlike: whole\npapers: []\ndiffers: x\nmasked_share: 1.5", "masked_share lies between 0 and 1"),
        ("title: x\nlike: whole\npapers: []\ndiffers: x\ncore: [wiki-books]", "core names the first of the corpora"),
    ],
)
def test_a_model_that_inherits_wrongly_is_refused(settings_folder, text, message):
    settings_folder(one=text, round="title: y\nlike: one\npapers: []\ndiffers: y")
    with pytest.raises(StudyError, match=message):
        params.load("models", "one")


def test_protocols_that_are_like_each_other_are_refused(monkeypatch):
    like = {"one": "other", "other": "one"}
    monkeypatch.setattr(params, "load", lambda kind, name: (
        Protocol(title="x", paper="x", where="x", like=like[name], differs="")))  # fmt: skip
    with pytest.raises(StudyError, match="protocols.yaml, other: like: 'one' is like this one"):
        params.list_protocol_layers("one", "ncbi-disease", "tagging")


@each(
    ("text", "message"),
    [
        ("one: {like: to, title: x}\n", r"corpora.yaml, line 2, one: like: unknown corpus 'to': did you mean two"),
        ("one: none\n", "corpora.yaml: one: Input should be a valid dictionary"),
    ],
)
def test_a_faulty_entry_is_refused_with_file_line_and_key(tmp_path, monkeypatch, text, message):
    (tmp_path / "corpora.yaml").write_text(f"# made up\n{text}two: {{title: y}}\n")
    monkeypatch.setattr(paths, "PARAMS", tmp_path)
    with pytest.raises(StudyError, match=message):
        params.load.__wrapped__("corpora", "one")


@each(
    ("key", "scale", "steps"),
    [("bert-general-pubmed-steps-10", "paper", [20_000]),  # steps as in the papers
     ("bio-electra-steps-49", "paper", [880_000]),
     ("bert-general-pubmed", "laptop", [1562, 390]),  # half of 4,000,000 tokens in steps of 1,024: 80% and 20%
     ("bert-general-pubmed-steps-60", "laptop", [937, 234]), ("bert-general-pubmed-text-10", "laptop", [1562, 390])],
)  # fmt: skip
def test_steps_are_a_models_part_of_its_scales(key, scale, steps):
    assert [phase.steps for phase in params.load_pretraining(key, scale).phases] == steps


def test_the_smaller_of_two_caps_on_training_instances_applies(monkeypatch):
    """At scale laptop the cap is 2,000; scale paper has none."""
    for protocol, laptop, paper in (("lee-300", 300, 300), ("lee", 2000, None)):
        limits = [open_study(s).protocol(protocol, "ncbi-disease").train_instances for s in ("laptop", "paper")]
        assert limits == [laptop, paper]
    assert open_study("paper").protocol("lee-300", "squad").train_instances is None
    larger = {"title": "x", "paper": "x", "where": "x", "like": "lee", "all": {"train_instances": 5000}, "differs": ""}
    load_original = params.load
    monkeypatch.setattr(params, "load", lambda kind, key: (
        Protocol(**larger) if key == "large" else load_original(kind, key)))  # fmt: skip
    assert params.load_finetuning("large", "ncbi-disease", "tagging", "laptop").train_instances == 2000


def test_a_number_that_yaml_reads_as_text_is_refused(tmp_path, monkeypatch):
    shutil.copytree(paths.PARAMS, tmp_path / "params")
    monkeypatch.setattr(paths, "PARAMS", tmp_path / "params")
    params.load.cache_clear()
    path = tmp_path / "params/protocols.yaml"
    path.write_text(path.read_text().replace("[1.0e-5, 3.0e-5, 5.0e-5]", "[2e-5]"))
    with pytest.raises(StudyError, match="protocols.yaml, lee, gad: learning_rate.0: .*valid number.*'2e-5'"):
        params.load_finetuning("lee", "gad", "relations", "paper")
    params.load.cache_clear()


@each("seed", ["0", "1", "02", "two", "2.2"])
def test_only_a_later_pretraining_bears_its_seed(seed):
    with pytest.raises(StudyError, match="unknown model"):
        params.load("models", f"bert-general.{seed}")


@each(
    ("protocol", "dataset", "setting", "value"),
    [
        ("gu", "gad", "max_length", 128),  # section 2.4.2
        ("gu", "biosses", "runs", 10),  # section 2.5
        ("gu", "hoc", "runs", 5),
        ("gu-io", "bc5cdr-chem", "scheme", "IO"),  # otherwise like gu
        ("gu-io", "bc5cdr-chem", "learning_rate", [1e-5, 3e-5, 5e-5]),
        ("ozyurt", "ncbi-disease", "layer_decay", 0.8),  # in ELECTRA's code, not in BERT's
        ("ozyurt-bert", "ncbi-disease", "layer_decay", 1.0),
        ("lee", "bioasq-4b-factoid", "first_on", "squad"),
        ("lee", "squad", "first_on", None),
    ],
)
def test_protocols_have_the_settings_that_the_papers_print(protocol, dataset, setting, value):
    assert getattr(open_study("paper").protocol(protocol, dataset), setting) == value


@each("scale", params.keys("scales"))
@each("protocol", params.keys("protocols"))
def test_every_protocol_has_settings_for_every_dataset(protocol, scale):
    for key in DATASETS:
        assert open_study(scale).protocol(protocol, key).candidates()


def test_a_budgets_epochs_replace_steps_and_small_datasets_are_repeated():
    settings = open_study("laptop").protocol("naseem", "biosses")
    assert settings.steps is None and settings.epochs == [3]
    assert settings.count_epochs({"epochs": 3, "batch_size": 4}, 64) == 25  # 400 steps, 16 in an epoch
    assert settings.count_epochs({"epochs": 3, "batch_size": 4}, 16_000) == 3


def test_start_markers_need_markers(monkeypatch):
    wrong = {"relations": {"mentions": "dummies", "encoding": "starts"}}
    change_settings(monkeypatch, "protocols", "gu-markers-starts", families=wrong)
    with pytest.raises(StudyError, match="encoding 'starts' is that of start markers"):
        open_study("paper").protocol("gu-markers-starts", "ddi")


def test_a_page_shows_the_file_that_a_setting_comes_from():
    rows = {row["setting"]: row["from"] for row in params.explain_finetuning("gu-io", "gad", "relations", "laptop")}
    assert rows["epochs"] == "params/scales/laptop.yaml"
    assert rows["dropout"] == "params/protocols.yaml, gu"
    assert rows["scheme"] == "params/protocols.yaml, gu-io"
