"""What vocabularies make of words: the printed cells, MeSH, frequency, input lengths."""

import pandas as pd
import pytest

from lib.benchmarks.datasets import Dataset
from lib.study import open_study, params, results
from lib.study.analysis import pieces, texts
from lib.study.vocabularies import Vocabulary
from lib.study.vocabularies import load as load_registered
from lib.vocabularies.loading import load_wordpiece
from lib.vocabularies.training import train_wordpiece

WORDS = ["Aspirin and naloxone reduce the risk of thrombosis", "the risk of aspirin is low"] * 20


@pytest.fixture
def tokenizer(tmp_path):
    train_wordpiece(lambda: WORDS, 80, cased=False).save_model(str(tmp_path))
    return load_wordpiece(tmp_path / "vocab.txt", cased=False)


def test_pieces_are_shown_as_the_papers_print_them(tokenizer):
    assert pieces.show_pieces("Risk", tokenizer) == "✓"
    assert pieces.show_pieces("riskthe", tokenizer).startswith("risk-")
    assert pieces.show_pieces("ab", tokenizer).count("-") == 1


def test_marks_of_spaces_are_no_pieces():
    class Fixed:
        def tokenize(self, term):
            return ["\u2581", "nal", "oxone"]

    assert pieces.show_pieces("naloxone", Fixed()) == "nal-oxone"


def test_a_word_counts_at_least_one_piece(tokenizer):
    counts = pieces.count_pieces(["risk", "risk", "ΩΩ", "\u200b"], tokenizer)
    assert counts == {"risk": 1, "ΩΩ": 1, "\u200b": 1}
    assert pieces.mean_pieces(["risk", "the", "ab"], tokenizer) == pytest.approx(4 / 3)


@pytest.mark.parametrize(("table", "printed", "tried"), [("gu-1", 53, 53), ("wada-1", 62, 42), ("ozyurt-text", 2, 1)])
def test_every_printed_cell_whose_vocabulary_is_at_hand_comes_out(real_data, monkeypatch, table, printed, tried):
    settings = params.load("tables", table).model_copy(update={"ours_only": []})
    load = params.load
    monkeypatch.setattr(params, "load", lambda kind, key: settings if kind == "tables" else load(kind, key))
    load_registered.cache_clear()
    cells = pieces.build_terms(table, "laptop")
    assert list(cells.columns) == results.COLUMNS
    assert len(cells) == printed
    assert (cells["verdict"] == "agrees").sum() == tried
    # BERT's vocabulary has BR, so that the split of BRCA1 that Ozyurt prints, B-R-CA-1, cannot be BERT's.
    odd = cells[cells["verdict"] != "agrees"]
    assert (odd["note"].str.contains("not found in public") | (odd["ours"] == "BR-CA-1")).all()
    load_registered.cache_clear()


def test_a_wrong_vocabulary_does_not_agree(real_data, monkeypatch):
    settings = params.load("tables", "gu-1").model_copy(
        update={"ours_only": [], "columns": dict.fromkeys(("BERT", "SciBERT", "PubMedBERT"), "bio-electra")}
    )
    load = params.load
    monkeypatch.setattr(params, "load", lambda kind, key: settings if kind == "tables" else load(kind, key))
    cells = pieces.build_terms("gu-1", "laptop")
    assert (cells["verdict"] == "differs").sum() > 15


@pytest.fixture
def two_vocabularies(monkeypatch, tokenizer):
    """Every vocabulary of gu-8 is the small one, and instances are made up for one set."""
    monkeypatch.setattr(Vocabulary, "tokenizer", lambda self: tokenizer)
    monkeypatch.setattr(Vocabulary, "why_not", "")
    found = {"train": ["risk of", "", "the"], "dev": ["risk"], "test": ["aspirin is low", "risk"]}
    settings = params.load("tables", "gu-8").model_copy(update={"rows": {"BIOSSES": "biosses"}})
    load = params.load
    monkeypatch.setattr(params, "load", lambda kind, key: settings if kind == "tables" else load(kind, key))
    monkeypatch.setattr(Dataset, "missing", {})
    monkeypatch.setattr(texts, "inputs", lambda key, split, scale: found[split])
    cells = pd.DataFrame(
        {"paper": "gu-pubmedbert", "table": "8", "row": "BIOSSES", "metric": "m", "std": None,
         "column": ["Wiki+Books vocab", "PubMed vocab"], "value": [1.3, 9.9]}
    )  # fmt: skip
    monkeypatch.setattr(pieces.results, "read_published", lambda *_: cells)


def test_lengths_are_means_over_all_instances_and_empty_ones_count(two_vocabularies):
    lengths = pieces.input_lengths("gu-8", "laptop")
    assert lengths["Wiki+Books vocab"].tolist() == [2, 0, 1, 1, 3, 1]
    cells = pieces.build_lengths("gu-8", "laptop", lengths)
    assert cells["ours"].tolist() == [1.333, 1.333]
    assert cells["verdict"].tolist() == ["agrees", "differs"]
    assert "6 instances of train, dev, test" in cells["note"][0]
    tried = pieces.try_protocols("gu-8", lengths).set_index("protocol")["reached"]
    assert tried.iloc[0] == 1
    assert tried["with [CLS] and [SEP]"] == 0 and tried["the train split alone"] == 0


def test_a_row_without_all_its_splits_is_shown_and_not_judged(two_vocabularies, monkeypatch):
    monkeypatch.setattr(Dataset, "missing", {"train": "no file"})
    lengths = pieces.input_lengths("gu-8", "laptop")
    assert set(lengths["split"]) == {"dev", "test"}
    cells = pieces.build_lengths("gu-8", "laptop", lengths)
    assert (cells["verdict"] == "n/a").all() and cells["ours"].notna().all()
    assert cells["note"].str.contains("train split is not at hand").all()
    assert pieces.try_protocols("gu-8", lengths)["cells"].eq(0).all()


def test_counting_lengths_leaves_the_tokenizer_as_it_was(tokenizer, monkeypatch):
    monkeypatch.setattr(Vocabulary, "tokenizer", lambda self: tokenizer)
    before = tokenizer.backend_tokenizer.to_str()
    column = params.LengthColumn(vocabulary="bert-cased", strip_accents=False)
    pieces.count_lengths(["Risk", "risk of"], column, "laptop")
    assert tokenizer.backend_tokenizer.to_str() == before


def test_mesh_terms_by_branch(smoke_data, tokenizer, monkeypatch):
    monkeypatch.setattr(Vocabulary, "tokenizer", lambda self: tokenizer)
    table = pieces.compare_on_mesh(["bert-cased"], "smoke")
    assert set(table["branch"]) == {"diseases", "chemicals and drugs", "procedures", "organisms"}
    assert (table["pieces per term"] >= 1).all() and table["words kept whole"].between(0, 1).all()
    assert len(pieces.mesh_words("smoke")) > 100


def test_all_of_mesh(real_data):
    sizes = {branch: len(names) for branch, names in open_study("laptop").mesh.names_by_branch().items()}
    assert list(sizes) == ["anatomy", "organisms", "diseases", "chemicals and drugs", "procedures"]
    assert 4_000 < sizes["diseases"] < 6_000 and sum(sizes.values()) > 20_000
