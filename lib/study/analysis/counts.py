"""How many instances a dataset has, beside the papers' counts; where they differ, the rule of counting that agrees."""

import csv
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from itertools import chain

import numpy as np
import pandas as pd

from lib.benchmarks import chemprot, datasets, metrics, registry
from lib.benchmarks.instances import Instance, Pair, Relation, Sentence
from lib.corpora import cleaning
from lib.errors import unknown
from lib.study import downloads, open_study, params, results

NEGATIVE = ("false", "0", "DDI-false")


def words(sentences: Iterable[Sentence]) -> int:
    return sum(len(sentence.words) for sentence in sentences)


def count_mentions(sentences: Iterable[Sentence]) -> int:
    """Mentions, counted as B tags. PICO's tags have no B and no mentions: of them count_element_words counts words."""
    return sum(tag[0] == "B" for sentence in sentences for tag in sentence.tags)


def count_element_words(sentences: Iterable[Sentence]) -> Counter[str]:
    """How many words each PICO element has; a word of two elements counts in both."""
    return Counter(element for sentence in sentences for tag in sentence.tags for element in metrics.elements(tag))


def distinct(found: Iterable[Relation | Pair]) -> int:
    """Different texts with a label."""
    return len({(*instance.inputs, instance.label) for instance in found})


def csv_rows(sentences: Iterable[Sentence], blank: bool) -> int:
    """The rows of a tagged file as a CSV reader returns them, quotes understood; `blank`: empty rows count too.

    The blank line at the end of the file counts for nothing.
    """
    csv.field_size_limit(sys.maxsize)
    lines = chain.from_iterable([*map("{}\t{}\n".format, s.words, s.tags), "\n"] for s in sentences)
    rows = list(csv.reader(lines, delimiter="\t"))
    return len(rows) - 1 if blank else sum(bool(row) for row in rows)


def fifths(found: Iterable[Relation]) -> tuple[int, int, int]:
    """Distinct rows divided as scikit-learn's train_test_split does twice, a fifth each: train, dev, test."""
    total = distinct(found)
    dev = math.ceil(total / 5)
    test = math.ceil((total - dev) / 5)
    return total - dev - test, dev, test


COUNTS: dict[str, Callable[[list], int]] = {
    "instances": len,
    "sentences": len,
    "sentences less one": lambda found: len(found) - 1,
    "entities": count_mentions,
    "words": words,
    "words in elements": lambda found: count_element_words(found).total(),
    "positive relations": lambda found: sum(relation.label not in NEGATIVE for relation in found),
    "rows of a CSV reader": lambda found: csv_rows(found, blank=False),
    "lines of a CSV reader": lambda found: csv_rows(found, blank=True),
    "distinct rows after two fifths": lambda found: fifths(found)[0],
    "a fifth of the distinct rows": lambda found: fifths(found)[1],
    "a fifth of the rest of the distinct rows": lambda found: fifths(found)[2],
    "questions": lambda found: len({question.id for question in found}),
    "passages": lambda found: sum(len(question.passages) for question in found),
}


@cache
def count(key: str, split: str, rule: str, scale: str) -> int:
    """The count of one split by one rule, of the first fold where a set has several; of `all` splits together."""
    if rule not in COUNTS:
        raise unknown("rule of counting", rule, COUNTS)
    dataset = open_study(scale).dataset(key)
    return COUNTS[rule](list(chain.from_iterable(map(dataset.load, dataset.files if split == "all" else [split]))))


def build_counts(key: str, scale: str) -> pd.DataFrame:
    """A table of dataset sizes: ours, by the row's rule, beside the printed cells.

    A cell `agrees` when both are equal, is `explained` when another stated way of counting gives the printed number,
    and else `differs`; on made-up data there is no verdict.
    """
    table = params.load("tables", key)
    made_up = params.load("scales", scale).made_up
    cells = results.read_published(table.paper, table.table)
    lines = []
    for cell in cells.to_dict("records"):
        line = {name: cell[name] for name in ("paper", "table", "row", "column", "metric")}
        line |= {"published": cell["value"], "published_std": np.nan, "ours": np.nan, "ours_std": np.nan, "n_seeds": 0}
        line |= {"verdict": "n/a", "note": table.not_run.get(cell["row"], "")}
        if not line["note"]:
            row, column = table.rows[cell["row"]], cell["column"]
            split = row.splits.get(column, table.columns[column])
            row_sum = cells[cells["row"] == cell["row"]]["value"].sum()
            line |= judge_count(row, column, split, cell["value"], row_sum, scale)
            if made_up:
                line |= {"verdict": "n/a", "note": results.MADE_UP}
        lines.append(line)
    return pd.DataFrame(lines, columns=results.COLUMNS)


def judge_count(row: params.CountRow, column: str, split: str, published: float, row_sum: float, scale: str) -> dict:
    """Our count for one cell, its verdict and note."""
    reason = why_not(row.dataset, split, scale)
    ours = np.nan if reason else count(row.dataset, split, row.count, scale)
    if ours == published:
        return {"ours": ours, "verdict": "agrees", "note": ""}
    for other, wanted in ((row.otherwise.get(column), published), (row.sum_of, row_sum)):
        if other is None:
            continue
        dataset, part = other.dataset or row.dataset, other.split or ("all" if other is row.sum_of else split)
        if not why_not(dataset, part, scale) and count(dataset, part, other.count or row.count, scale) == wanted:
            return {"ours": ours, "verdict": "explained", "note": other.why}
    if reason:
        return {"ours": ours, "verdict": "n/a", "note": reason}
    remark = row.remarks.get(column, "no rule found that gives it")
    return {"ours": ours, "verdict": "differs", "note": f"{ours - published:+.0f}; {remark}"}


def why_not(key: str, split: str, scale: str) -> str:
    """Why a split, or `all`, cannot be counted, or an empty string when it can."""
    if split == "all":
        return open_study(scale).why_missing(key)
    dataset = open_study(scale).dataset(key)
    return dataset.missing.get(split, "") if split in dataset.files else f"{dataset.title} has no {split} split here"


def list_rules(key: str) -> pd.DataFrame:
    """What is counted for each row of a table, and the other ways of counting."""
    table = params.load("tables", key)
    lines = []
    for name, row in table.rows.items():
        lines.append({"row": name, "column": "all", "dataset": row.dataset, "split": "", "count": row.count, "why": ""})
        others = row.otherwise | ({"their sum": row.sum_of} if row.sum_of else {})
        for column, other in others.items():
            lines.append({"row": name, "column": column, "dataset": other.dataset or row.dataset,
                          "split": other.split, "count": other.count or row.count, "why": other.why})  # fmt: skip
    return pd.DataFrame(lines)


def describe_counts(cells: pd.DataFrame, scale: str) -> str:
    """How many printed counts are ours, explained, or not, in sentences (Markdown)."""
    if params.load("scales", scale).made_up:
        return f"The data are made up: none of the {len(cells)} printed counts is judged."
    tally = cells["verdict"].value_counts()
    lines = [f"- Of {len(cells)} printed counts {tally.get('agrees', 0)} are ours, {tally.get('explained', 0)} are "
             f"explained, {tally.get('differs', 0)} differ, and {tally.get('n/a', 0)} cannot be tried."]  # fmt: skip
    for cell in cells[cells["verdict"] == "differs"].to_dict("records"):
        lines.append(f"- {cell['row']}, {cell['column']}: {cell['published']:.0f} printed, {cell['ours']:.0f} here.")
    return "\n".join(lines)


def list_datasets(scale: str) -> pd.DataFrame:
    """Every registered dataset: what it asks, how it is scored, who may have it, and whether it is at hand."""
    groups = downloads.load()
    names = named_in_papers()
    return pd.DataFrame(
        {
            "key": key,
            "dataset": dataset.title,
            "task": dataset.family,
            "to be found": dataset.labels,
            "metric": dataset.metric,
            "splits": ", ".join(dataset.files) + (f" in {dataset.folds} folds" if dataset.folds > 1 else ""),
            "access": dataset.access,
            "licence": groups[dataset.group].licence(),
            "in the papers": "; ".join(names.get(key, ())),
            "scores in": ", ".join(dataset.results),
            "state": open_study(scale).why_missing(key) or "at hand",
        }
        for key, dataset in registry.DATASETS.items()
    )


def named_in_papers() -> dict[str, list[str]]:
    """The names that the papers' tables of datasets give to each of ours."""
    found: dict[str, list[str]] = {}
    for key in params.keys("tables"):
        table = params.load("tables", key)
        if table.kind == "counts":
            for name, row in table.rows.items():
                found.setdefault(row.dataset, []).append(f"{key}: {name}")
    return found


def count_datasets(scale: str) -> pd.DataFrame:
    """Every split that is at hand, with the counts that make sense for its task."""
    lines = []
    for dataset in map(open_study(scale).dataset, registry.DATASETS):
        for split in dataset.splits:
            found = dataset.load(split)
            line = {"dataset": dataset.key, "split": split, "fold": 1 if dataset.folds > 1 else ""}
            line |= {"instances": len(found), "counted besides": describe_content(dataset.family, found)}
            lines.append(line)
    return pd.DataFrame(lines)


def list_left_out(scale: str) -> pd.DataFrame:
    """What readers leave out of the files of a split, of each dataset at hand whose reader leaves something out."""
    lines = []
    for dataset in (dataset for dataset in map(open_study(scale).dataset, registry.DATASETS) if dataset.leaves_out):
        for split in dataset.splits:
            dataset.load(split, left_out=(left_out := Counter()))
            lines += [(dataset.key, split, what, number) for what, number in left_out.items()]
    return pd.DataFrame(lines, columns=["dataset", "split", "left out", "count"])


def describe_content(family: str, found: list[Instance]) -> str:
    """What the instances of a split hold, by task."""
    match family:
        case "tagging":
            return f"{count_mentions(found)} entities, {words(found)} words"
        case "pico":
            return f"{COUNTS['words in elements'](found)} words in elements, {words(found)} words"
        case "relations":
            return f"{COUNTS['positive relations'](found)} positive"
        case "questions":
            unanswered = sum(not question.spans for question in found)
            return f"{COUNTS['passages'](found)} passages, {unanswered} questions without an answer in them"
        case "ranking":
            return f"{len({pair.group for pair in found})} questions"
        case "documents":
            return f"{sum(len(document.sentences) for document in found)} sentences"
    return ""


def compare_splitters(scale: str) -> pd.DataFrame:
    """ChemProt's pairs by what cuts its sentences, and how many of BLURB's development pairs each makes.

    A pair is its document, its text with dummies, and its label. Without the corpus, the reason.
    """
    if why := why_not("chemprot", "all", scale):
        return pd.DataFrame([{"splitter": "n/a", "why": why}])
    study = open_study(scale)
    missing = why_not("chemprot-blurb", "dev", scale)
    blurb = [] if missing else study.dataset("chemprot-blurb").load("dev")
    blurb = Counter((pair.document, pair.text, pair.label) for pair in blurb)
    lines = []
    for name, (read, splitter) in {
        "NLTK's punkt": (chemprot.read_chemprot, None),
        "NLTK's punkt, some sentences joined again as BLUE does": (chemprot.read_chemprot_blue, None),
        "sentencex": (chemprot.read_chemprot, cleaning.split_sentences),
        "only title and abstract apart": (chemprot.read_chemprot, lambda text: [text]),
    }.items():
        found = {split: read(*study.dataset("chemprot").paths(split), splitter) for split in datasets.SPLITS}
        dev = Counter((pair.document, pair.dummify().text, pair.label) for pair in found["dev"])
        lines.append(
            {"splitter": name}
            | {split: len(pairs) for split, pairs in found.items()}
            | {"pairs of BLURB's dev file": (dev & blurb).total() if blurb else missing, "of": blurb.total()}
        )
    return pd.DataFrame(lines)
