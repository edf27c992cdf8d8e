"""Tests of tables of pairs and documents: the real files have the printed counts.

test_formats.py tests that every format is read as written, and the messages about damaged files.
"""

import csv
import gzip
import json
from statistics import fmean

import pytest

from lib.benchmarks import tabular
from lib.benchmarks.instances import Pair
from lib.reading import find_file


def read_votes(path) -> dict[str, dict]:
    """Read the pairs of BIOSSES by id, with the mean score of their five annotators."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return {
        row["sentence_id"]: row | {"mean": fmean(float(row[f"annotator_{name}"]) for name in "abcde")} for row in rows
    }


def read_pubmedqa_original(path) -> set[Pair]:
    """Read all questions of PubMedQA from its original format, with contexts joined by a space."""
    records = json.loads(gzip.decompress(path.read_bytes()))
    return {Pair(id, r["QUESTION"], " ".join(r["CONTEXTS"]), r["final_decision"]) for id, r in records.items()}


def test_biosses_has_the_mean_scores_of_its_annotators(real_data):
    rows = read_votes(real_data / "sts/biosses/annotation_pairs_scores.tsv")
    splits = [tabular.read_biosses(real_data / f"sts/biosses/blurb/{split}.tsv") for split in ("train", "dev", "test")]
    pairs = [pair for split in splits for pair in split]
    assert {pair.id: pair.label for pair in pairs} == pytest.approx({id: row["mean"] for id, row in rows.items()})
    assert len(rows) == len(pairs) == 100
    assert all(rows[pair.id]["sentence_2"].split() == pair.second.split() for pair in pairs)


def test_blurbs_questions_are_those_of_pubmedqa_and_bioasq(real_data):
    """Their sizes are those of gu-3 (test_counting.py)."""
    folder = real_data / "qa/pubmedqa"
    whole = read_pubmedqa_original(folder / "ori_pqal.json.gz")
    splits = [tabular.read_pubmedqa(folder / f"blurb/{split}.jsonl") for split in ("train", "dev", "test")]
    assert set().union(*splits) == whole and len(whole) == 1000
    truth = json.loads((folder / "test_ground_truth.json").read_text())
    assert bool({pair.id: pair.label for pair in splits[2]} == truth)
    folder = real_data / "qa/bioasq-7b-yesno-blurb"
    splits = [tabular.read_yesno(folder / f"{split}.tsv") for split in ("train", "dev", "test")]
    assert [sum(pair.label == "yes" for pair in split) for split in splits] == [552, 62, 94]
    for name, split in zip(("train", "dev", "test"), splits, strict=True):
        ids = (folder / f"splits/{name}_id.tsv").read_text().strip().split(",")
        assert len(ids) == len({pair.id for pair in split} & set(ids))
    (official,) = read_golden(real_data / "qa/bioasq-7b-biobert", "7B_golden.json.gz")
    assert bool({(q["id"], q["exact_answer"]) for q in official} == {(pair.id, pair.label) for pair in splits[2]})


def read_golden(folder, pattern: str) -> list[list[dict]]:
    """Read the yes/no questions of each golden file of BioASQ."""
    contents = [path.read_bytes() for path in sorted(folder.glob(pattern))]
    files = [json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content) for content in contents]
    return [[q for q in file["questions"] if q["type"] == "yesno"] for file in files]


def test_real_sets_of_bio_electra_have_the_printed_counts(real_data):
    splits = [tabular.read_yesno_ideal(real_data / f"qa/bioasq-8b-yesno/{split}.tsv") for split in ("train", "test")]
    assert [len(split) for split in splits] == [728, 128]  # ozyurt, section 3.1
    assert [sum(pair.label == "yes" for pair in split) for split in splits] == [579, 102]
    ranked = tabular.read_candidates(real_data / "qa/bioasq-reranker/test.tsv.gz")
    assert len(ranked) == 9064  # ozyurt, section 3.1
    assert len({pair.group for pair in ranked}) == len({pair.group for pair in ranked if pair.label == "1"}) == 100
    assert sum(pair.label == "1" for pair in ranked) == 117
    assert len(ranked) - len({(pair.group, pair.second) for pair in ranked}) == 73


def test_real_japanese_sets_have_the_counts_of_their_source(real_data):
    folder = real_data / "doccls/jmed-llm"
    for key, size, labels in (("CRADE", 1630, 8), ("RRTNM", 324, 11), ("SMDIS", 15360, 16)):
        documents = tabular.read_jmed(find_file(folder / f"all/{key}.csv"))
        assert (len(documents), len({d.labels for d in documents})) == (size, labels)
        assert len(tabular.read_jmed(folder / f"{key.lower()}.csv")) == 100
