"""Tests of functions that notebooks define in their cells, by hand."""

import numpy as np
import pandas as pd
from notebook_code import definitions

from lib.benchmarks.instances import Answer, Labelled, Pair, Question, Sentence
from lib.study import agreement, claims


def test_losses_are_compared_on_one_text_vocabulary_and_masking():
    same = {"architecture": "bert", "text": "pubmed", "vocabulary": "pubmed-cased", "masking": "word-piece"}
    changes = [{}, {}, {"text": "wiki-books"}, {"vocabulary": "wiki-books-cased"}, {"masking": "whole-word"},
               {"architecture": "electra"}]  # fmt: skip
    rows = [same | change | {"model": f"m{number}", "held-out loss": number} for number, change in enumerate(changes)]
    (sentence,) = definitions("25_models_side_by_side").compare_losses(pd.DataFrame(rows))
    assert sentence.startswith("On one text (pubmed)") and sentence.endswith("held-out loss: m0 0.00, m1 1.00.")


def test_runs_that_are_no_better_than_a_baseline_are_counted():
    runs = pd.DataFrame({"dataset": ["hoc", "hoc", "gad", "biosses"], "score": [31.18181, 40.0, 70.0, 5.0]})
    baselines = pd.DataFrame({"dataset": ["hoc", "gad"], "score": "f1", "chance": [31.1818, 68.96],
                              "without_pretraining": [56.0, np.nan], "unlabelled_text": np.nan})  # fmt: skip
    runs = runs.assign(**{"score name": "f1"})
    counts = definitions("94_lessons").count_no_better(runs, baselines).set_index("dataset")
    assert counts["runs"].to_dict() == {"gad": 1, "hoc": 2} and counts.loc["hoc", "best of ours"] == 40
    assert counts["no better than chance"].to_dict() == {"gad": 0, "hoc": 1}
    assert counts["no better than best without pretraining"].to_dict() == {"gad": None, "hoc": 2}


def test_a_change_of_the_rule_moves_a_verdict_to_that_before_the_next():
    lessons = definitions("94_lessons", "CHANGES")
    judged = pd.DataFrame({"claim": ["a", "b"], "verdict": ["undecided", "holds"]})
    changes = lessons.list_changes([("1", "one", {"a": "holds"}), ("2", "two", {"a": "fails", "b": "n/a"})], judged)
    assert changes[["claim", "before", "after"]].to_numpy().tolist() == [
        ["a", "holds", "fails"], ["a", "fails", "undecided"], ["b", "n/a", "holds"]
    ]  # fmt: skip
    dates = [date for date, _, _ in lessons.CHANGES]
    keys = {claim for _, _, before in lessons.CHANGES for claim in before}
    assert dates == sorted(dates) and keys <= {claim.key for claim in claims.CLAIMS}


def test_cells_are_counted_by_paper_and_in_all():
    numbers = {name: [0, 0] for name in agreement.VERDICTS} | {"agrees": [2, 0], "below": [0, 1]}
    keys = {"table": ["gu-1", "lee-4"], "paper": ["A", "B"]}
    verdicts = pd.DataFrame(keys | {"printed": [3, 4], "ours beside": [2, 1]} | numbers)
    tally = definitions("04_printed_numbers").tally_cells(verdicts).set_index("paper")
    assert tally["printed"].to_dict() == {"A": 3, "B": 4, "all": 7}
    assert tally.loc["all", "what is counted"] == "2 of 2 agree" and "1 below" in tally.loc["B", "scores of models"]


def test_ranks_are_over_the_rows_that_every_encoder_has_and_of_printed_encoders_alone():
    cells = definitions("50_blurb")
    wide = pd.DataFrame({"a": [80.0, 70.0, 99.0], "b": [81.0, 60.0, np.nan], "c": [10.0, 10.0, 10.0]})
    assert cells.mean_ranks(wide).to_dict() == {"a": 1.5, "b": 1.5, "c": 3.0}
    columns = ["row", "column", "published", "ours", "is_mean"]
    scores = [("x", "a", 80.0, 40.0, False), ("x", "b", 81.0, np.nan, False), ("x", "random", np.nan, 30.0, False),
              ("score", "a", 80.0, np.nan, True)]  # fmt: skip
    printed, ours = cells.pivot_scores(pd.DataFrame(scores, columns=columns))
    assert (list(printed), list(ours)) == (["a", "b"], ["a"])


def test_two_main_effects_and_an_interaction_of_four_scores():
    columns = pd.MultiIndex.from_product([["Wiki+Books", "PubMed"], ["word-piece", "whole-word"]])
    wide = pd.DataFrame([[70.0, 71.0, 74.0, 78.0], [70.0, np.nan, 74.0, 78.0]], columns=columns)
    effects = definitions("51_vocabulary_and_masking").effects_of(wide)
    vocabulary, masking = "PubMed over Wiki+Books vocabulary", "whole-word over word-piece masking"
    assert effects.to_dict("records") == [{vocabulary: 5.5, masking: 2.5, "interaction": 3.0}]


def test_words_of_entities_are_known_from_training_or_new():
    train = [Sentence(["High", "fever", "today"], ["B-D", "I-D", "O"])]
    test = [Sentence(["fever", "or", "gout", "today"], ["B-D", "O", "B-D", "O"])]
    counts = definitions("30_finetune_words").count_found(train, test, [["B-D", "O", "O", "B-D"]])
    assert counts.T.to_dict() == {"in training": {"words": 1, "found": 100}, "new": {"words": 1, "found": 0}}


def test_labels_are_counted_one_by_one_and_answers_compared_as_sets():
    cells = definitions("31_finetune_texts")
    counts = cells.count_labels([("b", "a"), ()], [("a", "b"), ("a",)])
    assert counts.T.to_dict("list") == {"a": [1, 2, 1], "b": [1, 1, 1]}
    assert cells.count_labels(["yes", "no"], ["yes", "yes"]).loc["yes"].tolist() == [1, 2, 1]
    assert [cells.in_words(answer) for answer in (("b", "a"), (), 2.0, "yes")] == ["a, b", "none", "2.00", "yes"]
    assert cells.distance(Labelled("", ("x",), ("b", "a")), ("a", "b")) == 0
    assert cells.distance(Pair("", "x", "y", "yes"), "no") == 1 and cells.distance(Pair("", "x", "y", 4.0), 2.5) == 1.5


def test_the_rank_of_the_first_right_answer():
    question = Question("1", "Which?", ("iron or zinc",), ("Zinc",), ())
    rank = definitions("32_finetune_answers").rank_right
    iron, zinc = Answer(0, 0, 4, 0.6), Answer(0, 8, 12, 0.4)
    assert (rank(question, [iron, zinc]), rank(question, [zinc]), rank(question, [iron])) == ("2", "1", "none")
