"""Comparisons of models, printed scores and baselines on many datasets, and means over datasets."""

from types import SimpleNamespace

import pandas as pd
import pytest
from made_runs import make_runs, write_result
from notebook_code import definitions

from lib.benchmarks import registry
from lib.study import figures, open_study, params, paths, results, scores

BLURB = ["bc5cdr-chem", "bc5cdr-disease", "ncbi-disease", "bc2gm", "jnlpba", "ebm-pico", "chemprot", "ddi", "gad",
         "biosses", "hoc", "pubmedqa", "bioasq-7b-yesno"]  # fmt: skip


def write(dataset: str, values: list[float], collapsed: str = "") -> None:
    name = registry.lookup(dataset).main_score
    runs = make_runs(values, name, collapsed=collapsed, tokens=10, seconds=2, FLOPs=5)
    write_result(("m", dataset, "gu"), runs, score=name)


def tabulate(*datasets: str, protocol: str = "gu", scale: str = "smoke") -> pd.DataFrame:
    return scores.tabulate_runs(open_study(scale), [("m", key, protocol) for key in datasets])


def test_a_line_has_mean_interval_and_cost_or_why_it_is_missing(own_outputs):
    write("ddi", [60.0, 70.0], collapsed="one answer only")
    first, second = tabulate("ddi", "gad").to_dict("records")
    assert (first["ours"], first["ours_std"], first["n_seeds"], first["collapsed"]) == (65.0, 7.07, 2, 2)
    assert (first["tokens"], first["seconds"], first["FLOPs"]) == (20, 4, 10)
    assert first["low"] == pytest.approx(65 - 12.706 * 5, abs=0.01) and first["high"] == pytest.approx(128.53, abs=0.01)
    assert second["n_seeds"] == 0 and second["note"] and pd.isna(second["low"])


def test_references_are_the_best_printed_score_and_the_best_baselines(own_outputs):
    rows = [("ddi", "chance", 10.75), ("ddi", "without pretraining", 57.0), ("ddi", "without pretraining", 57.68),
            ("gad", "chance", 68.96), ("squad", None, None)]  # fmt: skip
    results.write_csv(
        paths.table("laptop", "baselines"), pd.DataFrame(rows, columns=["dataset", "kind", "score"]).assign(metric="f1")
    )
    runs = tabulate("ddi", "gad", "bioasq-reranker", scale="laptop")
    table = scores.references(open_study("laptop"), runs).set_index("dataset")
    assert table.loc["ddi", ["chance", "without_pretraining", "published", "whose", "table"]].tolist() == [
        10.75, 57.68, 82.36, "PubMedBERT uncased", "gu-6",
    ]  # fmt: skip
    assert pd.isna(table.loc["gad", "without_pretraining"]) and pd.isna(table.loc["bioasq-reranker", "published"])
    assert scores.references(open_study("paper"), runs)["chance"].notna().any()  # those on real data, at any scale
    assert scores.references(open_study("smoke"), runs)["chance"].isna().all()
    assert scores.references(open_study("smoke"), runs[:0]).empty  # a scale without planned runs


def test_the_blurb_score_is_the_mean_over_task_types_and_needs_all_datasets(own_outputs):
    values = {"bc5cdr-chem": 90.0, "bc2gm": 80.0, "biosses": 95.0}
    for key, value in values.items():
        write(key, [value])
    (part,) = scores.totals(open_study(), tabulate(*BLURB)).to_dict("records")
    assert (part["mean"], part["sets"], part["of"]) == ("BLURB score (gu-6)", 3, 13) and pd.isna(part["ours"])
    missing = part["missing"].split(", ")
    assert sorted([*missing, *values]) == sorted(BLURB)
    for key in missing:
        write(key, [70.0])
    (whole,) = scores.totals(open_study(), tabulate(*BLURB)).to_dict("records")
    # datasets: 5 of entities, 1 of PICO, 3 of relations, 1 of similarity, 1 of documents, 2 of answers
    expected = [(90 + 70 + 70 + 80 + 70) / 5, 70, 70, 95, 70, 70]
    assert whole["ours"] == pytest.approx(sum(expected) / 6) and whole["missing"] == ""


def test_pretrainings_of_a_model_are_compared_with_their_losses(own_outputs):
    for model, value in {"pubmedbert": 70.0, "pubmedbert.2": 72.0, "bert-general": 60.0}.items():
        write_result((model, "bc2gm", "gu"), make_runs([value], instances={"train": 9}), "weekend")
    losses = {"pubmedbert": 3.5, "pubmedbert.2": 3.25, "bert-general-half": 6.0}
    rows = [{"model": model, "held-out loss": loss} for model, loss in losses.items()]
    results.write_csv(paths.table("weekend", "pretrained"), rows)
    table = scores.compare_pretrainings(open_study("weekend"))
    assert table.to_dict("records") == [
        {"model": "bert-general-half", "BC2GM, gu": "", "held-out loss": "6.00"},
        {"model": "pubmedbert", "BC2GM, gu": "71.00 ± 1.41 (2)", "held-out loss": "3.50, 3.25"},
    ]


def test_a_protocol_has_the_datasets_that_its_paper_prints_scores_of():
    assert scores.choose_printed_datasets("gu") == BLURB
    assert {"bioasq-8b-factoid", "bioasq-reranker"} <= set(scores.choose_printed_datasets("ozyurt"))
    for protocol in params.keys("protocols"):
        assert scores.choose_printed_datasets(protocol)


@pytest.mark.parametrize(("score", "verdict"), [(78.31, "*not reached*, -0.01"), (78.32, "*reached*, +0.00")])
def test_scores_are_compared_with_the_target_of_their_scale(own_outputs, score, verdict):
    runs = make_runs([score - 1, score, score + 1], collapsed="")
    write_result(("small-encoder", "ncbi-disease", "small-encoder"), runs, "two-hours")
    study = open_study("two-hours")
    sentences = scores.describe_target(study, scores.tabulate_runs(study, study.budget.panel_runs()))
    expected = f"Bio-ELECTRA prints 78.32 (its Table 4); small-encoder {score:.2f} ± 1.00 over 3 seeds, {verdict}."
    assert sentences[0] == f"NCBI-disease, F1: {expected}"
    assert len(sentences) == 5 and all("; small-encoder n/a, " in sentence for sentence in sentences[1:])  # not yet run
    assert scores.describe_target(open_study("smoke"), tabulate("ddi")) == []  # no target


def test_the_page_of_an_encoder_compares_references_with_its_interval():
    page = definitions("02_evaluate")
    assert [page.stand(value, 60, 62) for value in (59.9, 60, 62, 62.1, None)] == ["below", "tie", "tie", "above", ""]


def test_seeds_that_score_alike_are_drawn_without_an_interval():
    third = 100 / 3  # the rounded score lies below the interval, which has no width
    row = pd.DataFrame([{"dataset": "ddi", "ours": 33.33, "low": third, "high": third, "published": 80.0,
                         "without_pretraining": 50.0, "unlabelled_text": None, "chance": 20.0}])  # fmt: skip
    assert figures.scores(row, row).axes


def test_scores_on_seen_and_unseen_names_are_compared_with_baselines(own_outputs):
    runs = make_runs([71.0, 72.0], instances={"train": 9})
    runs = [run | {"f1_seen": 80.0 + run["seed"], "f1_unseen": 50.0 + run["seed"]} for run in runs]
    for model in ("bert-random", "another"):
        write_result((model, "bc2gm", "gu"), runs, "laptop")
    unseen = {"dictionary": 5.0, "CRF": 60.0}
    rows = [(key, method, 60.0, 90.0, f1) for key in ("bc2gm", "s800") for method, f1 in unseen.items()]
    baselines = pd.DataFrame(rows, columns=["dataset", "method", "f1", "f1_seen", "f1_unseen"])
    results.write_csv(paths.table("laptop", "seen"), baselines)
    chosen = pd.DataFrame({"protocol": ["gu"], "dataset": ["bc2gm"], "model": ["bert-random"]})
    list_seen = definitions("33_all_benchmarks").list_seen
    table = list_seen(open_study("laptop"), chosen)
    assert table["method"].tolist() == ["dictionary", "bert-random", "CRF"]  # the best on unseen names last
    assert table.iloc[1].tolist() == ["bc2gm", "gu", "bert-random", 9, 71.5, 81.5, 51.5]
    assert list_seen(open_study("laptop"), chosen.assign(dataset="s800")).empty


def test_models_share_a_rank_unless_they_are_apart():
    """b is below a by more than seeds scatter; c too, unless documents scatter; d's seeds scatter; e ran once."""
    values = {"a": (90.0, 90.1, 90.2), "b": (80.0, 80.1, 80.2), "c": (79.9, 80.0, 80.1), "d": (60.0, 70.0, 95.0),
              "e": (70.0,)}  # fmt: skip
    flat, wide = (1.0, 1.0, 1.0), (-30.0, 0.0, 40.0)

    def rank(**jackknives) -> list:
        rows = pd.DataFrame(
            {"model": model, "dataset": "ddi", "protocol": "gu", "score": "f1", "pretraining": 1, "fold": 1,
             "seed": seed, "value": value, "jackknife": jackknives.get(model, flat)}
            for model, by_seed in values.items() for seed, value in enumerate(by_seed)
        )  # fmt: skip
        study = SimpleNamespace(results=lambda own: rows, budget=SimpleNamespace(made_up=False))
        return scores.rank_lines(study, rows[["protocol", "dataset", "model", "score"]].drop_duplicates())

    assert rank() == [1, 2, 2, 1, None]
    assert rank(c=wide) == [1, 2, 1, 1, None]  # on other documents c might be no worse than a
    assert rank(c=wide, a=()) == [1, 2, 2, 1, None]  # by seeds alone, it is worse
