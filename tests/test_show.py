"""What notebooks display: our scores below the paper's, reference columns, sentences about the frame just shown."""

import re

import numpy as np
import pandas as pd
from test_published import CELLS, RUNS

from lib.study import open_study, show, tables

KNOWN = pd.DataFrame({"dataset": ["ncbi-disease"], "score": ["f1"], "chance": [20.0], "without_pretraining": [84.5],
                      "unlabelled_text": [None]})  # fmt: skip


def rows_of(page) -> list[list[str]]:
    """Return the cells of a page's table as text, row by row."""
    return [
        [re.sub("<.*?>", "", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S)]
        for row in re.findall(r"<tr>(.*?)</tr>", page.data, re.S)
    ]


def fill(cells: pd.DataFrame) -> pd.DataFrame:
    filled = tables.summarize_cells(tables.by_seed(cells, RUNS))
    return filled.merge(tables.baselines(cells, KNOWN), how="left", on=tables.PLACE)


def test_ours_stands_below_the_papers_and_beside_the_baselines():
    rows = rows_of(show.beside(fill(CELLS), CELLS, open_study("laptop"), "F1"))
    assert rows[0] == ["row", "whose", "BERT", "BioBERT", "XLNet", "chance", "best without pretraining"]
    assert rows[1] == ["NCBI", "paper", "80.00", "82.00", "75.00", "", ""]
    assert rows[2] == ["", "ours", "79.00 ± 1.41", "85.00 ± 4.36", "n/a", "20.00", "84.50"]


def test_where_columns_are_datasets_the_baselines_are_rows():
    turned = CELLS[CELLS["dataset"] != "biosses"].rename(columns={"row": "column", "column": "row"})
    rows = rows_of(show.beside(fill(turned), turned, open_study("laptop")))
    assert rows[0] == ["row", "whose", "NCBI, F1", "mean, F1"]
    assert rows[-2:] == [["chance", "", "20.00", ""], ["best without pretraining", "", "84.50", ""]]


def test_rows_keep_their_names_where_the_paper_prints_nothing():
    plotted = CELLS.assign(published=np.nan)
    rows = rows_of(show.beside(fill(plotted), plotted, open_study("laptop"), "F1"))
    assert [row[:2] for row in rows[1:]] == [["NCBI", "ours"], ["mean", "ours"]]


def test_entities_stand_in_brackets_as_conlleval_finds_them():
    words, tags = list("abcdef"), ["I-X", "I-X", "B-X", "I-Y", "O", "I-X|I-Y"]
    assert show.bracket(words, tags) == "[a b] [c] [d] e [f]"
    assert show.bracket(words, tags, kinds=True) == "[a b]X [c]X [d]Y e [f]X+Y"


def test_sentences_say_what_ours_and_the_paper_add_on_the_same_places():
    steps = ["a over b", "a over b", "c over a", "d over a", "e over d", "e over d"]
    effect = pd.DataFrame({"step": steps, "place": ["x", "y", "x", "x", "x", "y"]})
    effect = effect.assign(paper=[1.0, 3.0, np.nan, 1.5, np.nan, np.nan], ours=[-2.0, *[np.nan] * 3, 4.0, -1.0])
    whole = effect.assign(ours=0.0).set_index(["step", "place"])
    assert show.describe_effects(whole)[0].endswith("above zero on 0; the paper prints +2.00 on the same.")
    effect = effect.set_index(["step", "place"])
    first, second, caveat = show.describe_effects(effect)
    assert first == "a over b: -2.00 points on 1 dataset; the paper prints +1.00 on the same, +2.00 on all of its 2."
    assert second == "e over d: +1.50 points on average over 2 datasets, above zero on 1; the paper prints none."
    assert "Verdicts" in caveat
    not_run = "Not run at this scale, with the paper's mean difference in points: c over a (none), d over a (+1.50)."
    assert show.describe_not_run(effect) == [not_run] and show.describe_not_run(effect.dropna(subset="ours")) == []
    assert show.describe_table(effect, fill(CELLS))[-1] == not_run
    (below,) = show.describe_baselines(fill(CELLS))
    assert below.startswith("1 of our 2 scores beats the best baseline without pretraining")
    texts = [show.sentences(open_study(scale), "one", "two").data for scale in ("laptop", "smoke")]
    assert texts[0] == "- one\n- two" and "made up" in texts[1] and "one" not in texts[1]


def test_the_budget_of_a_scale_is_described():
    text = show.describe_budget(open_study("laptop"))
    assert "4 layers" in text and "4.0 million tokens" in text and "2,000 examples" in text and "each other" in text
    assert "each other" not in show.describe_budget(open_study("two-hours"))  # compared with a printed model
    assert [show.describe_budget(open_study(scale)).count(".") for scale in ("paper", "smoke")] == [1, 1]
