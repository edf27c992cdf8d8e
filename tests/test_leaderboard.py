"""Result files that people exchange, and the page that compares them with printed scores and baselines."""

import json
from types import SimpleNamespace

import made_runs
import numpy as np
import pandas as pd
import pytest
from conftest import each
from notebook_code import definitions

from lib import artefacts
from lib.benchmarks import registry
from lib.errors import StudyError
from lib.running import cli, runner
from lib.study import leaderboard, open_study, parsing, paths, result_files, results, scores, show

PRINTED = pd.DataFrame([["gu-pubmedbert", "ddi", "PubMedBERT", "gu-6", 82.0]], columns=scores.PRINTED)


@pytest.fixture
def study(own_outputs, monkeypatch):
    """Scale smoke with one encoder that ran on two datasets, and baselines of one of them."""
    monkeypatch.setattr(scores, "list_registered_scores", lambda study, papers: PRINTED)
    write("ddi", [60.0, 61.0, 65.0])
    write("biosses", [float("nan"), 10.0, 20.0])
    baselines = [{"dataset": "ddi", "metric": "f1", "kind": "chance", "score": 10.75}]
    results.write_csv(paths.table("smoke", "baselines"), baselines)
    return open_study("smoke")


def write(dataset: str, values: list[float]) -> None:
    name, inputs = registry.lookup(dataset).main_score, {"train 1": "aa", "test 1": "bb", "reader": "r", "model": "w"}
    facts = {"collapsed": "", "seconds": 2, "tokens": 10, "FLOPs": 5, "instances": {"train": 9, "test": 4},
             "inputs": inputs, "body parameters": 1000, "jackknife": [1.0, min(values), 3.0], "device": "a CPU",
             "commit": "c", "versions": {}}  # fmt: skip
    runs = [
        run | {"settings": {"epochs": 3, "seed": run["seed"]}} for run in made_runs.make_runs(values, name, **facts)
    ]
    made_runs.write_result(("bert-general", dataset, "gu"), runs, score=name)


def read_written(study) -> tuple:
    (path,) = result_files.write_result_file(study, "bert-general", "gu", ["ddi", "biosses", "gad"])
    return path, json.loads(path.read_text())


def test_a_result_file_can_be_written_and_read(study):
    path, content = read_written(study)
    result_file = result_files.read_result_file(path)
    assert result_file == parsing.check_settings("it", content, result_files.ResultFile)
    model = result_file.model
    assert (model.source, model.revision, model.n_parameters) == ("pretrained at scale smoke", "w", 1000)
    ddi, biosses = result_file.results  # and none for GAD, which has not been run
    assert (ddi.task_type, ddi.main_score, ddi.mean, ddi.std) == ("RelationClassification", "f1", 62.0, 2.65)
    assert ddi.interval == pytest.approx([62 - 4.303 * 1.5275, 62 + 4.303 * 1.5275], abs=0.01)
    assert ddi.settings == {"epochs": 3} and ddi.baselines == {"chance": 10.75}
    (first_run, *_) = leaderboard.make_runs(SimpleNamespace(content=result_file), "a", biosses)
    assert np.isnan(first_run["jackknife"]).tolist() == [False, True, False]  # undefined ones are written as null
    assert biosses.task_type == "STS" and biosses.mean is biosses.interval is biosses.scores[0].main_score is None
    assert result_files.write_result_file(study, "nobody", "gu", ["ddi"]) == []
    assert path.parent != paths.evaluations("smoke")  # JSON files there are targets of the command line


def test_every_field_is_documented():
    text = (paths.ROOT / result_files.DESCRIBED).read_text(encoding="utf-8")
    parts = (result_files.ResultFile, result_files.ModelEntry, result_files.Task, result_files.Data, result_files.Score)
    names = {name for part in parts for name in part.model_fields}
    assert len(names) > 30 and {name for name in names if f"`{name}`" not in text} == set()


@each(
    ("change", "message"),
    [
        (lambda c: c.pop("schema_version"), "not a result file .docs/results_format.md.; take it out"),
        (lambda c: c.update(schema_version=2), "schema_version: 2, but this version of the study reads 1"),
        (lambda c: c.update(protocol="gus"), "unknown protocol 'gus': did you mean"),
        (lambda c: c.update(texts=["a patient"]), "texts: Extra inputs are not permitted"),
        (lambda c: c["model"].update(name="<b>"), "model.name: .*pattern"),
        (lambda c: c["model"].update(name="chance"), "model.name: a baseline is called 'chance'"),
        (lambda c: c["results"][0].update(mean=70.0), "results, ddi, mean: 70.00, but its scores have 62.00"),
        (lambda c: c["results"][0].update(main_score="recall"), "ddi, main_score: 'recall', but here it is 'f1'"),
        (lambda c: c["results"][0]["scores"][0].update(seed=2), "a seed and fold stand twice"),
        (lambda c: c["results"].append(c["results"][0]), "results, ddi: 2 times"),
    ],
)
def test_a_faulty_file_is_refused(study, change, message):
    path, content = read_written(study)
    change(content)
    artefacts.write_json(path, content)
    with pytest.raises(StudyError, match=f"bert-general--gu.json: .*{message}"):
        result_files.read_result_file(path)


def test_folders_are_checked_before_the_page_runs(study, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "run", lambda *given: pytest.fail("the page ran"))
    path, content = read_written(study)
    other = tmp_path / "other"

    def ask(*folders) -> str:
        assert cli.main(["leaderboard", *map(str, folders), "--scale", "smoke"]) == 1
        return capsys.readouterr().err

    assert "no folder other" in ask(path.parent, other)
    other.mkdir()
    assert "other: no result file (*.json) in it" in ask(path.parent, other)
    (other / "x.json").write_text(path.read_text()[:100])
    assert "error: other/x.json: damaged" in ask(other)
    content["results"].pop()
    artefacts.write_json(other / "x.json", content)
    assert "bert-general--gu.json and other/x.json differ, and both are of bert-general" in ask(path.parent, other)
    artefacts.write_json(other / "x.json", content | {"made_up": False})
    assert "x.json: this page is of made-up data, and its scores are on real data" in ask(other)
    (other / "x.json").write_text(path.read_text())
    assert len(result_files.read_folders([path.parent, other], True)) == 1  # the same file twice


def test_sent_encoders_are_joined_with_own_runs_printed_scores_and_baselines(study, tmp_path):
    _, content = read_written(study)
    content["model"] |= {"name": "friend", "revision": "v"}
    artefacts.write_json(tmp_path / "sent/friend.json", content)
    content["model"] |= {"name": "bert-general"}  # other weights under a name that is taken
    artefacts.write_json(tmp_path / "sent/namesake.json", content)
    rows, runs = leaderboard.join(study, result_files.read_folders([tmp_path / "sent"], True))
    ddi = rows[rows["dataset"] == "ddi"].set_index("model")
    encoders = ["friend", "bert-general", "bert-general, this study"]
    kinds = dict.fromkeys(encoders, "encoder") | {"PubMedBERT (gu-6)": "printed", "chance": "baseline"}
    assert ddi["kind"].to_dict() == kinds
    assert ddi["ours"].round(2).tolist() == [62.0, 62.0, 62.0, 82.0, 10.75] and len(runs) == 18
    assert leaderboard.tie(study, rows, runs)["group"].eq("").all()  # made-up data are not compared
    wide = definitions("03_leaderboard", "KINDS").widen(rows.assign(group="a"))
    assert wide["ddi"].tolist()[-2:] == ["82.00 a", "10.75 a"] and wide["kind"].iloc[0] == "encoder"
    own_rows, _ = leaderboard.join(study, [])
    assert own_rows.loc[own_rows["kind"] == "encoder", "model"].unique().tolist() == ["bert-general"]


def make_runs(**values: tuple[float, ...]) -> dict[str, pd.DataFrame]:
    """Return runs by model; their differences do not vary over test documents."""
    return {
        model: pd.DataFrame(
            {"seed": range(len(by_seed)), "fold": 1, "value": by_seed, "jackknife": [(1.0, 1.0, 1.0)] * len(by_seed)}
        )
        for model, by_seed in values.items()
    }


def test_models_that_are_not_apart_share_a_letter():
    """a is above b and c, which tie; d scatters so much that it ties with all."""
    sides = make_runs(b=(80.0, 80.1, 80.2), a=(90.0, 90.1, 90.2), d=(60.0, 70.0, 95.0), c=(79.9, 80.0, 80.1))
    assert leaderboard.name_ties(sides) == {"a": "a", "b": "b", "c": "b", "d": "ab"}
    assert leaderboard.name_ties({"a": sides["a"]}) == {}
    groups = leaderboard.split([frozenset("xyz")], "x", "z")  # y lies between
    assert groups == [frozenset("yz"), frozenset("xy")]
    assert leaderboard.split(groups, "y", "z") == [frozenset("z"), frozenset("xy")]
    assert [leaderboard.name_group(number) for number in (0, 25, 26, 53)] == ["a", "z", "a2", "b3"]


def test_only_runs_on_the_same_revision_of_a_dataset_are_compared():
    fields = {"dataset": "ddi", "protocol": "gu", "scale": "laptop", "revision": "1"}
    sides = make_runs(a=(90.0, 90.1, 90.2), b=(80.0, 80.1, 80.2), few=(85.0, 85.1), other=(70.0, 70.1, 70.2))
    runs = pd.concat([side.assign(model=model, **fields) for model, side in sides.items()])
    runs.loc[runs["model"] == "other", "revision"] = "2"
    rows = runs.drop_duplicates("model").assign(ours=0.0)
    printed = pd.DataFrame([{"dataset": "ddi", "protocol": "gu", "model": "PubMedBERT (gu-6)", "ours": 82.0}])
    real = SimpleNamespace(budget=SimpleNamespace(made_up=False))
    tied = leaderboard.tie(real, pd.concat([rows, printed]), runs)
    assert tied.set_index("model")["group"].to_dict() == {"a": "a", "b": "b", "few": "", "other": "",
                                                          "PubMedBERT (gu-6)": ""}  # fmt: skip


def test_a_sortable_table_escapes_text_and_loads_nothing_from_the_web():
    html = show.sortable([{"model": "<script>alert(1)</script>", "value": 9.5}], "one", ["model"]).data
    assert "<script>alert" not in html and "src=" not in html and '"9.50"' in html.replace("\\", "")
    assert show.is_number(pd.Series(["9.50 ab", "", "100.00"])) and not show.is_number(pd.Series(["gu-6", ""]))
