"""Tests of what is committed for scales with real data: it follows from the results and holds no text of the data."""

import itertools
import re

import nbformat
import pandas as pd
from conftest import each
from notebook_code import definitions

from lib.benchmarks import baselines, registry
from lib.corpora import cleaning, leakage, readers
from lib.study import agreement, documents, gains, open_study, params, paths, results, scores, tables, vocabularies

SCALE = "laptop"
# Listed here so that a scale whose record is missing fails instead of being left out.
SCALES = ["laptop", "two-hours", "weekend", "encoder-14m", "choices"]
COMMITTED = [
    path
    for scale in SCALES
    for path in paths.output("record", scale).rglob("*")
    if path.suffix in (".ipynb", ".html", ".csv", ".json", ".md", ".js")
]
# Datasets with the text of another.
SAME_TEXT = {"bc5cdr-disease", "bc5cdr-disease-pubtator", "bc5cdr-chem-pubtator", "jnlpba-biobert"}


def read_text(path) -> str:
    """Return the text of a file as a reader sees it."""
    if path.suffix != ".ipynb":
        return re.sub(r"<[^>]+>", " ", path.read_text(encoding="utf-8"))
    return " ".join(str(value) for cell in nbformat.read(path, 4).cells for value in (cell.source, cell.get("outputs")))


def test_tables_follow_from_the_committed_results(real_data):
    study = open_study(SCALE)
    runs = study.results()
    for key in params.load_tables("scores"):
        committed = pd.read_csv(paths.recorded(paths.table(SCALE, key)), keep_default_na=False, na_values=[""])
        columns = ["row", "column", "metric", "published", "ours", "ours_std", "n_seeds", "verdict"]
        rebuilt = tables.summarize_cells(tables.by_seed(study.published(key), runs))
        pd.testing.assert_frame_equal(committed[columns], rebuilt[columns], check_dtype=False)


def test_two_pages_agree_on_scores_by_chance():
    """For datasets without folds two pages compute the trivial scores, and one of them rounds to two digits."""
    leaks, table = (pd.read_csv(paths.recorded(paths.table(SCALE, name))) for name in ("leaks", "baselines"))
    trivial = leaks[(leaks["finding"] == "most frequent label") & leaks["score"].notna()].set_index("dataset")["score"]
    chance = table[(table["kind"] == baselines.CHANCE) & (table["folds"] == 1)].set_index("dataset")["score"]
    keys = sorted(set(trivial.index) & set(chance.index))
    assert len(keys) > 20 and (trivial[keys] - chance[keys]).abs().max() < 0.0051


@each("scale", SCALES)
def test_panels_follow_from_the_committed_results(real_data, scale):
    committed = pd.read_csv(paths.recorded(paths.table(scale, "panels")), keep_default_na=False, na_values=[""])
    study = open_study(scale)
    rebuilt = scores.tabulate_runs(study, study.budget.panel_runs())[scores.COLUMNS]
    pd.testing.assert_frame_equal(committed, rebuilt, check_dtype=False)


def test_gains_and_counts_of_verdicts_follow_from_the_committed_results(real_data):
    study = open_study(SCALE)
    committed = paths.recorded(paths.table(SCALE, "gains")).read_text(encoding="utf-8")
    assert gains.tabulate_gains(study).to_csv(index=False, lineterminator="\n") == committed
    counted = agreement.count_verdicts(study)
    assert counted["ours beside"].sum() > 0
    assert (counted[list(agreement.VERDICTS)].sum(axis=1) == counted["ours beside"]).all()


@each("scale", SCALES)
def test_every_number_traces_to_a_record(scale):
    runs = results.gather_runs(scale)
    assert len(runs) and runs.notna().all(axis=None)
    assert runs["commit"].str.fullmatch(r"[0-9a-f]{12}").all()  # made from committed code


def test_no_text_of_the_real_data(real_data):
    """Checks all text of datasets with one sentence per instance; of the others, the first instances of each split."""
    sentences = []
    for key, dataset in registry.DATASETS.items():
        if key in SAME_TEXT:
            continue
        single = dataset.family in ("tagging", "pico")
        for split in open_study(SCALE).dataset(key).splits:
            for instance in itertools.islice(open_study(SCALE).dataset(key).load(split), None if single else 300):
                texts = instance.natural
                sentences += texts if single else [s for text in texts for s in cleaning.split_sentences(text)]
    for source in params.keys("sources"):
        for file in documents.list_raw_files(open_study(SCALE), source):
            read = readers.READERS[params.load("sources", source).reader]
            first = itertools.islice(read(documents.raw_file(open_study(SCALE), source, file)), 500)
            sentences += [" ".join(document.text.split()[:15]) for document in first]
    index = leakage.TestSentences(leakage.index_sentences(sentences))
    assert len(index.starts) > 50_000
    for path in COMMITTED:
        assert not index.find(leakage.plain_words(read_text(path))), path


def test_the_committed_terms_are_those_that_the_vocabularies_make(real_data):
    cells, study = definitions("21_medical_terms"), open_study(SCALE)
    tokenizers = {
        vocabulary.key: vocabulary.tokenizer()
        for vocabulary in vocabularies.at_hand(study)
        if vocabulary.settings.language == "en"
    }
    counts = {}
    for table in ("gu-1", "wada-1", "ozyurt-text"):
        filled = cells.fill(table, study, tokenizers).reset_index(drop=True)
        committed = results.read_table(paths.recorded(paths.table(SCALE, table)))
        pd.testing.assert_frame_equal(committed, filled, check_dtype=False)
        counts[table] = (filled["verdict"] == "agrees").sum(), filled["published"].notna().sum()
    assert counts == {"gu-1": (53, 53), "wada-1": (42, 62), "ozyurt-text": (1, 2)}
    wrong = dict.fromkeys(tokenizers, tokenizers["bio-electra"])
    assert (cells.fill("gu-1", study, wrong)["verdict"] == "differs").sum() > 15


def test_no_page_of_a_failed_run_and_no_path_of_a_machine():
    assert COMMITTED
    for path in COMMITTED:
        assert not path.stem.endswith(("--failed", "--interrupted")), path
        assert not re.search(r"(?<![\w.])/(home|root|tmp|work|Users)/", path.read_text(encoding="utf-8")), path
