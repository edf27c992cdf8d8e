"""What is committed under outputs/laptop: it follows from its records, and holds no text of the real data."""

import itertools
import re

import nbformat
import pandas as pd
import pytest

from lib import compare, corpora, datasets, params, paths, results

SCALE = "laptop"
COMMITTED = [
    p for p in paths.output(SCALE).rglob("*") if p.suffix in (".ipynb", ".html", ".csv", ".json", ".md", ".js")
]
NOT_FOR_READERS = re.compile(r"<[^>]+>")

pytestmark = pytest.mark.skipif(not paths.table(SCALE, "lee-4").exists(), reason="nothing is committed at this scale")


def read_text(path) -> str:
    """The text of a file as a reader sees it."""
    if path.suffix != ".ipynb":
        return NOT_FOR_READERS.sub(" ", path.read_text(encoding="utf-8"))
    return " ".join(str(value) for cell in nbformat.read(path, 4).cells for value in (cell.source, cell.get("outputs")))


def test_tables_follow_from_the_committed_results(real_data):
    for key in params.keys("tables"):
        committed = pd.read_csv(paths.table(SCALE, key), keep_default_na=False, na_values=[""])
        rebuilt = compare.build_table(key, SCALE)
        columns = ["row", "column", "metric", "published", "ours", "ours_std", "n_seeds", "verdict"]
        pd.testing.assert_frame_equal(committed[columns], rebuilt[columns], check_dtype=False)


def test_the_scoreboard_follows_from_the_committed_results(real_data):
    committed = pd.read_csv(paths.table(SCALE, "claims"), keep_default_na=False, na_values=[""])
    rebuilt = compare.judge_claims(SCALE)
    pd.testing.assert_frame_equal(committed, rebuilt, check_dtype=False)


def test_every_number_traces_to_a_record():
    runs = results.gather(SCALE)
    assert len(runs) and runs.notna().all(axis=None)
    assert runs["commit"].str.fullmatch(r"[0-9a-f]{12}").all()  # made from committed code


def test_no_text_of_the_real_data(real_data):
    sentences = [
        sentence.words
        for key in datasets.DATASETS
        if datasets.is_at_hand(key, SCALE)
        for split in datasets.SPLITS
        for sentence in datasets.load(key, split, SCALE)
    ]
    for key in params.keys("corpora"):
        for source, file in corpora.source_files(params.load("corpora", key), SCALE):
            documents = itertools.islice(corpora.READERS[source.reader](file), 500)
            sentences += [document.text.split()[:15] for document in documents]
    known = corpora.TestSentences(sentences)
    assert len(known.starts) > 50_000
    for path in COMMITTED:
        assert not known.are_in(read_text(path)), path


def test_no_path_of_a_machine():
    for path in COMMITTED:
        assert not re.search(r"(?<![\w.])/(home|root|tmp|work|Users)/", path.read_text(encoding="utf-8")), path
