"""What vocabularies make of words: terms, all of MeSH, frequent and rare words, whole inputs."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from tokenizers import Tokenizer, normalizers

from lib.benchmarks import datasets
from lib.errors import StudyError
from lib.study import open_study, params, results
from lib.study.analysis import texts
from lib.vocabularies.loading import MARKS
from lib.vocabularies.training import all_cores
from lib.vocabularies.words import tokens_of_words

WORD = re.compile(r"[^\W\d_]{3,}")  # of letters; shorter ones are mostly symbols and units
BINS = (1, 10, 100, 1_000, 10_000, 100_000)  # ranks of words by frequency, where a bin begins


def show_pieces(term: str, tokenizer) -> str:
    """A term's pieces joined by `-`, as the papers print them; ✓ when it is kept whole."""
    pieces = [piece for token in tokenizer.tokenize(term) if (piece := MARKS.sub("", token))]
    return "✓" if len(pieces) == 1 else "-".join(pieces)


def build_terms(key: str, scale: str) -> pd.DataFrame:
    """A table of terms: for each printed cell, the pieces that the named vocabulary makes, and whether they agree.

    A term printed as cut, without its pieces, agrees with any cut. Capitals do not count: PubMedBERT's authors
    print `Rec-A` for an uncased vocabulary.
    """
    table = params.load("tables", key)
    terms = results.read_terms()
    terms = terms[(terms["paper"] == table.paper) & terms["table"].isin([table.table, "text"])]
    lines = []
    for cell in terms.to_dict("records"):
        line = {"paper": cell["paper"], "table": cell["table"], "row": cell["term"], "column": cell["vocabulary"]}
        line |= {"metric": "pieces", "published_std": np.nan, "ours_std": np.nan, "n_seeds": 0, "verdict": "n/a"}
        line["published"] = "✓" if cell["whole_word"] == "1" else cell["pieces"] or "cut"
        vocabulary = table.columns.get(cell["vocabulary"])
        note = table.not_run.get(cell["vocabulary"]) or open_study(scale).vocabulary(vocabulary).why_not
        if note:
            lines.append(line | {"ours": None, "note": note})
            continue
        ours = show_pieces(cell["term"], open_study(scale).vocabulary(vocabulary).tokenizer())
        agrees = ours != "✓" if line["published"] == "cut" else ours.lower() == line["published"].lower()
        lines.append(line | {"ours": ours, "verdict": "agrees" if agrees else "differs", "note": vocabulary})
    for vocabulary in table.ours_only:
        for term in dict.fromkeys(terms["term"]):
            ours = show_pieces(term, open_study(scale).vocabulary(vocabulary).tokenizer())
            lines.append(
                {"paper": table.paper, "table": table.table, "row": term, "column": vocabulary, "metric": "pieces",
                 "ours": ours, "n_seeds": 0, "verdict": "n/a", "note": "not in the paper"}
            )  # fmt: skip
    return pd.DataFrame(lines, columns=results.COLUMNS)


def count_pieces(words: Iterable[str], tokenizer) -> dict[str, int]:
    """The number of pieces of each distinct word; a word of no known piece counts as one."""
    return {word: len(ids) for word, ids in tokens_of_words(tokenizer, words).items()}


def mean_pieces(words: Sequence[str], tokenizer) -> float:
    """Mean number of pieces of a word, over all its occurrences."""
    pieces = count_pieces(words, tokenizer)
    return sum(pieces[word] for word in words) / len(words)


def pieces_in_entities(keys: list[str], dataset_keys: list[str], scale: str) -> pd.DataFrame:
    """Mean pieces of a word inside the gold entities of each training set, under each vocabulary."""
    tokenizers = {key: open_study(scale).vocabulary(key).tokenizer() for key in keys}
    rows = []
    for dataset in dataset_keys:
        sentences = open_study(scale).dataset(dataset).load("train")
        words = [w for s in sentences for w, tag in zip(s.words, s.tags, strict=True) if tag != "O"]
        rows.append({"dataset": dataset} | {key: mean_pieces(words, tok) for key, tok in tokenizers.items()})
    return pd.DataFrame(rows)


def mesh_words(scale: str) -> list[str]:
    """The distinct words of letters in the names of all MeSH descriptors of the branches at hand."""
    names = (name for terms in open_study(scale).mesh.names_by_branch().values() for name in terms)
    return sorted({word for name in names for word in WORD.findall(name)})


def compare_on_mesh(keys: list[str], scale: str) -> pd.DataFrame:
    """Pieces per term, pieces per word and the share of words kept whole, by branch of MeSH and vocabulary.

    StudyError where there is no MeSH.
    """
    if not (branches := open_study(scale).mesh.names_by_branch()):
        raise StudyError(f"no tables of MeSH at scale '{scale}': run ./run_all.sh {scale} 01")
    rows = []
    for branch, names in branches.items():
        for key in keys:
            tokenizer = open_study(scale).vocabulary(key).tokenizer()
            words = {name: WORD.findall(name) for name in names}
            pieces = count_pieces((word for found in words.values() for word in found), tokenizer)
            every = [pieces[word] for found in words.values() for word in found]
            rows.append(
                {"branch": branch, "vocabulary": key, "size": len(tokenizer), "terms": len(names),
                 "pieces per term": sum(count_pieces(names, tokenizer).values()) / len(names),
                 "pieces per word": np.mean(every), "words kept whole": np.mean(np.array(every) == 1)}
            )  # fmt: skip
    return pd.DataFrame(rows).round(4)


def compare_by_frequency(keys: list[str], corpus: str, scale: str) -> pd.DataFrame:
    """The share of a corpus's distinct words that each vocabulary keeps whole, by rank of frequency."""
    counts = Counter()
    for document in open_study(scale).corpus(corpus).documents():
        counts.update(WORD.findall(document.text))
    ranked = [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))][: BINS[-1] - 1]
    rows = []
    for key in keys:
        pieces = count_pieces(ranked, open_study(scale).vocabulary(key).tokenizer())
        for first, end in zip(BINS, BINS[1:], strict=False):
            words = ranked[first - 1 : end - 1]
            if words:
                rows.append(
                    {"vocabulary": key, "rank from": first, "words": len(words),
                     "least frequent": counts[words[-1]], "kept whole": np.mean([pieces[w] == 1 for w in words])}
                )  # fmt: skip
    return pd.DataFrame(rows).round(4)


def whole_words(better: str, than: str, scale: str) -> list[int]:
    """For each word of MeSH's terms, 1 where only the first vocabulary keeps it whole, -1 where only the second."""
    words = mesh_words(scale)
    one, other = (count_pieces(words, open_study(scale).vocabulary(key).tokenizer()) for key in (better, than))
    return [(one[word] == 1) - (other[word] == 1) for word in words]


def input_lengths(key: str, scale: str) -> pd.DataFrame:
    """Every instance's length in pieces, for a table of input lengths: a row an instance that can be read.

    Columns: row (the paper's), split, text (a hash), and one for each vocabulary of the table, special pieces not
    counted. An empty instance has the length 0.
    """
    table = params.load("tables", key)
    columns = table.columns | table.other_vocabularies
    if any(open_study(scale).vocabulary(column.vocabulary).why_not for column in columns.values()):
        return pd.DataFrame()
    frames = []
    for row, dataset in table.rows.items():
        for split in open_study(scale).dataset(dataset).splits:
            inputs = texts.inputs(dataset, split, scale)
            frame = pd.DataFrame({"row": row, "split": split, "text": [hash(text) for text in inputs]})
            for name, column in columns.items():
                frame[name] = count_lengths(inputs, column, scale)
            frames.append(frame)
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def count_lengths(texts: list[str], column: params.LengthColumn, scale: str) -> list[int]:
    """The number of pieces of each text."""
    cased = params.load("vocabularies", column.vocabulary).cased
    backend = Tokenizer.from_str(open_study(scale).vocabulary(column.vocabulary).tokenizer().backend_tokenizer.to_str())
    backend.normalizer = normalizers.BertNormalizer(lowercase=not cased, strip_accents=column.strip_accents)
    lengths = []
    with all_cores():
        for start in range(0, len(texts), 2000):
            encoded = backend.encode_batch_fast(texts[start : start + 2000], add_special_tokens=False)
            lengths += [len(e.ids) for e in encoded]
    return lengths


def build_lengths(key: str, scale: str, lengths: pd.DataFrame) -> pd.DataFrame:
    """A table of input lengths: means over the instances of all splits, beside the printed cells."""
    table = params.load("tables", key)
    lines = []
    for cell in results.read_published(table.paper, table.table).to_dict("records"):
        line = {name: cell[name] for name in ("paper", "table", "row", "column", "metric")}
        line |= {"published": cell["value"], "published_std": np.nan, "ours_std": np.nan, "n_seeds": 0}
        missing = open_study(scale).why_missing(table.rows[cell["row"]])
        vocabulary_missing = open_study(scale).vocabulary(table.columns[cell["column"]].vocabulary).why_not
        found = lengths[lengths["row"] == cell["row"]] if len(lengths) else lengths
        if vocabulary_missing or not len(found):
            lines.append(line | {"ours": np.nan, "verdict": "n/a", "note": vocabulary_missing or missing})
            continue
        ours = found[cell["column"]].mean()
        agrees = f"{ours:.1f}" == f"{cell['value']:.1f}"
        note = f"mean of {len(found)} instances of {', '.join(dict.fromkeys(found['split']))}"
        line["verdict"] = "n/a" if missing else "agrees" if agrees else "differs"
        lines.append(line | {"ours": round(ours, 3), "note": note + (f"; {missing}" if missing else "")})
    return pd.DataFrame(lines, columns=results.COLUMNS)


def try_protocols(key: str, lengths: pd.DataFrame) -> pd.DataFrame:
    """How many printed cells each protocol reaches, changing one thing at a time of the one that reaches the most.

    A cell is reached when the mean rounds to the printed decimal. Rows without all their splits are left out.
    """
    table = params.load("tables", key)
    general, medical = table.columns
    whole = lengths[lengths.groupby("row")["split"].transform("nunique") == len(datasets.SPLITS)]
    printed = results.read_published(table.paper, table.table).set_index(["row", "column"])["value"]

    def means(frame: pd.DataFrame, names: tuple[str, str] = (general, medical), more: int = 0) -> pd.DataFrame:
        return frame.groupby("row")[list(names)].mean().set_axis([general, medical], axis=1) + more

    tried = {"all splits, cased general vocabulary, no special pieces": means(whole)}
    for name in table.other_vocabularies:
        side = (name, medical) if name.startswith("BERT") else (general, name)
        tried[f"with {name}"] = means(whole, side)
    tried["with [CLS] and [SEP]"] = means(whole, more=2)
    for split in datasets.SPLITS:
        tried[f"the {split} split alone"] = means(whole[whole["split"] == split])
    tried["each distinct text once"] = means(whole.drop_duplicates(["row", "text"]))
    tried["without empty instances"] = means(whole[whole[general] > 0])
    joined = means(whole)
    # Two sentences of the development set are broken inside a mention ("St." and the name after it).
    sizes = whole.groupby("row").size()
    for row in ("BC5-chem", "BC5-disease"):
        if row in joined.index:
            joined.loc[row] *= sizes[row] / (sizes[row] - 2)
    tried["two broken sentences of BC5CDR joined"] = joined
    rows = []
    for protocol, found in tried.items():
        reached = {
            (row, column): f"{found.loc[row, column]:.1f}" == f"{printed[row, column]:.1f}"
            for row in found.index
            for column in found.columns
        }
        not_reached = [f"{row} ({column})" for (row, column), hit in reached.items() if not hit]
        rows.append({"protocol": protocol, "cells": len(reached), "reached": sum(reached.values()),
                     "not reached": ", ".join(not_reached[:6]) + (" …" if len(not_reached) > 6 else "")})  # fmt: skip
    return pd.DataFrame(rows)
