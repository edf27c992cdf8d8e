"""Tests of metrics: against hand counts and scikit-learn."""

import math

import pytest
from conftest import each
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities
from sklearn import metrics as sklearn_metrics
from sklearn.preprocessing import MultiLabelBinarizer

from lib.benchmarks import answer_metrics, metrics

few = settings(max_examples=20, deadline=None)


def three(precision, recall, f1):
    return {"precision": pytest.approx(precision), "recall": pytest.approx(recall), "f1": pytest.approx(f1)}


# --- tags ---


def test_entities_counted_by_hand():
    gold = [["B-D", "I-D", "O", "B-D"], ["O", "B-D"]]
    predicted = [["B-D", "I-D", "O", "O"], ["B-D", "B-D"]]  # 3 gold, 3 predicted, 2 right
    assert metrics.entity_scores(gold, predicted) == three(200 / 3, 200 / 3, 200 / 3) | {"gold entities": 3}
    sets = metrics.entity_sets(gold), metrics.entity_sets(predicted)
    assert sets[0] == [{("D", 0, 1), ("D", 3, 3)}, {("D", 1, 1)}]
    assert metrics.strict_spans(*sets) == three(200 / 3, 200 / 3, 200 / 3)
    assert metrics.entity_sets([["I", "O"]]) == [{("entity", 0, 0)}]  # tags without types


@given(st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"])))
def test_entities_are_those_that_seqeval_scores(tags):
    assert metrics.entity_sets([tags]) == [set(get_entities(tags))]


@each(
    ("gold", "predicted", "key", "value"),
    [
        ([["B-D", "I-D", "O"]], [["B-D", "O", "O"]], "f1", 0),  # both ends and the type must agree
        ([["B-D", "O"]], [["B-C", "O"]], "f1", 0),
        ([["O", "B-D", "I-D"]], [["O", "I-D", "I-D"]], "f1", 100),  # an I without a B begins an entity
        ([["B", "I", "O", "B"]], [["B", "I", "O", "O"]], "recall", 50),  # tags without types
        ([["O"]], [["O"]], "f1", 0),
    ],
)
def test_entities_of_a_sentence(gold, predicted, key, value):
    assert metrics.entity_scores(gold, predicted)[key] == value


def test_words_with_and_without_o():
    gold = [["B-D", "I-D", "O", "O", "O"], ["O", "B-D", "O"]]
    predicted = [["B-D", "O", "O", "O", "B-D"], ["O", "I-D", "O"]]
    # 8 words, 5 right: one B-D and four O. Without O: 3 gold, 3 predicted, 1 right.
    assert metrics.token_scores(gold, predicted, outside=True) == three(62.5, 62.5, 62.5)
    assert metrics.token_scores(gold, predicted, outside=False) == three(100 / 3, 100 / 3, 100 / 3)
    assert metrics.token_scores([["O", "O"]], [["O", "O"]], outside=False) == three(0, 0, 0)


def test_pico_counted_by_hand():
    gold = [["I-PAR", "I-INT|I-PAR", "O"], ["I-INT", "I-OUT", "I-OUT"]]
    predicted = [["I-PAR", "I-INT", "I-INT"], ["I-INT", "O", "I-OUT"]]
    # participants: 2 gold, 1 predicted, 1 right; interventions: 2, 3, 2; outcomes: 2, 1, 1
    class_f1 = {"participants": 200 / 3, "interventions": 80, "outcomes": 200 / 3}
    scores = metrics.pico_scores(gold, predicted)
    assert scores.pop("f1") == pytest.approx((200 / 3 + 80 + 200 / 3) / 3)
    assert scores == {f"f1 ({name})": pytest.approx(value) for name, value in class_f1.items()}
    scores = metrics.pico_scores([["I-INT|I-PAR"]], [["I-PAR|I-INT"]])  # joint tags match in any order; no outcome
    assert [scores[f"f1 ({name})"] for name in ("participants", "interventions", "outcomes")] == [100, 100, 0]


# --- mentions, labels, values ---


def test_mentions_in_parts_need_every_part():
    whole, parts = (("D", (0, 4)),), (("D", (0, 4), (9, 12)),)
    gold = [{whole, parts}, {whole}]
    # 1 right of 2 predicted, of 3 gold
    assert metrics.strict_spans(gold, [{parts}, {(("D", (0, 4), (9, 11)),)}]) == three(50, 100 / 3, 40)
    assert metrics.strict_spans([[whole], []], [[], [whole]])["f1"] == 0  # a mention belongs to its document
    assert metrics.strict_spans([[whole]], [[whole, whole]])["precision"] == 100
    # Parts that alternate are joined as far as tags can say.
    assert metrics.mention_sets([["B-D", "O", "I-D"]]) == [{("D", 0, 2)}]
    assert metrics.mention_sets([["B-D", "B-D", "I-D", "I-D"]]) == [{("D", 0), ("D", 1, 2, 3)}]  # for 0, 2 and 1, 3


def test_relations_and_answers_counted_by_hand():
    gold = ["false", "false", "up", "up", "down", "down"]
    predicted = ["false", "up", "up", "down", "down", "false"]  # 4 predicted, 4 gold, 2 right
    assert metrics.relation_scores(gold, predicted) == three(50, 50, 50)
    assert metrics.relation_scores(gold, predicted, negative=None)["f1"] == pytest.approx(50)  # 3 of 6
    assert metrics.relation_scores(["false", "up"], ["false", "false"]) == three(0, 0, 0)
    scores = metrics.answer_class_scores(["yes", "yes", "yes", "no"], ["yes", "yes", "no", "no"])
    assert (scores["recall (yes)"], scores["precision (no)"]) == (pytest.approx(200 / 3), 50)
    assert (scores["f1 (yes)"], scores["f1 (no)"]) == (pytest.approx(80), pytest.approx(200 / 3))


def test_pearson_counted_by_hand():
    # deviations -1 0 1 and -1 1 0: 1 / sqrt(2 * 2)
    assert metrics.pearson([1, 2, 3], [0, 2, 1]) == pytest.approx(50)
    assert metrics.pearson([1, 2, 3], [3, 2, 1]) == pytest.approx(-100)
    undefined = ([1, 2, 3], [2, 2, 2]), ([2.5, 2.5], [1, 2]), ([1], [1]), ([1, 2, 3], [1, 2, math.nan])
    assert all(math.isnan(metrics.pearson(gold, predicted)) for gold, predicted in undefined)


def test_nearly_constant_predictions_have_no_correlation():
    gold, noise = [0.4, 1.0, 2.2, 3.0, 3.8], [3, -2, 1, 0, -4]
    for size in (1e-6, 1e-3, 4e-3):  # noise of up to one step of bfloat16, which is 0.0156 at 2.2
        assert math.isnan(metrics.pearson(gold, [2.2 + size * value for value in noise])), size
    weak = [2.2 + 0.02 * value for value in gold]  # varies 2% as much as gold, and correlates with it
    assert metrics.pearson(gold, weak) == pytest.approx(100)
    assert metrics.pearson(gold, [1e-4 * value for value in gold]) == pytest.approx(100)
    years = [2001, 2005, 2009, 2013]  # gold may differ by less than a bfloat16 step
    assert metrics.pearson(years, years) == pytest.approx(100)
    assert math.isnan(metrics.pearson(years, [2007, 2007, 2007, 2007.01]))
    assert math.isnan(metrics.pearson([1e6, 1e6], [1, 2]))


def test_labels_of_documents_counted_by_hand():
    gold, predicted = [{"a", "b"}, {"c"}, set()], [{"a"}, {"a", "c"}, {"b"}]
    assert metrics.multilabel_scores(gold, predicted) == three(50, 200 / 3, 400 / 7)  # 4 predicted, 3 gold, 2 right
    # precision 1, 1/2, 0 and recall 1/2, 1, 0: both means are 1/2
    assert metrics.example_scores(gold, predicted) == three(50, 50, 50)
    gold, predicted = [{"a", "b", "c", "d"}, {"a"}], [{"a"}, {"a"}]
    scores = metrics.example_scores(gold, predicted)  # precision 1 and 1, recall 1/4 and 1; F1 of the means
    assert scores == three(100, 62.5, 200 * 0.625 / 1.625)
    # Documents without labels, on either side or both.
    for gold, predicted, expected in (({"a"}, set(), 0), (set(), {"a"}, 0), (set(), set(), 100)):
        assert metrics.example_scores([gold], [predicted]) == three(expected, expected, expected)


# --- answers ---


def test_factoid_counted_by_hand():
    gold = [["BRCA1", "breast cancer 1"], ["p53"], ["TNF"], ["IL-2"], ["IL-6"]]
    predicted = [["brca1", "x"], ["x", "y", "P53"], ["a", "b", "c", "d", "e", "TNF"], [], ["a", "b", "c", "d", "IL-6"]]
    scores = answer_metrics.bioasq_factoid(gold, predicted)  # ranks 1, 3, none in five, none, 5
    assert scores == {
        "strict accuracy": 20, "lenient accuracy": 60, "mrr": pytest.approx(100 * (1 + 1 / 3 + 1 / 5) / 5),
    }  # fmt: skip
    assert answer_metrics.bioasq_factoid([["p53"], []], [["p53"], ["x"]])["strict accuracy"] == 50  # no gold answer
    assert answer_metrics.bioasq_factoid([["p53"]], [["the p53", "p-53"]])["lenient accuracy"] == 0  # no normalisation


def test_squad_counted_by_hand():
    gold = [["the BRCA1 gene"], ["in 1999", "1999"], ["alpha beta"], ["x"]]
    predicted = ["BRCA1 gene!", "year 1999", "beta", "y"]
    # exact; 2*1/(2+1) for the second answer beats 2*1/(2+2); 1 shared word of 1 and 2; none
    scores = answer_metrics.squad_scores(gold, predicted)
    assert scores == {"exact match": 25, "f1": pytest.approx(100 * (1 + 2 / 3 + 2 / 3 + 0) / 4)}
    repeated = answer_metrics.squad_scores([["x", "a1 a1 b", "b"]], ["a1 a1 b b"])  # 3 shared of 3 and 4; 1 of 1 and 4
    assert repeated == {"exact match": 0, "f1": pytest.approx(600 / 7)}
    assert answer_metrics.normalise_answer("  The An-swer,\tof a  (Theory) ") == "answer of theory"
    scores = answer_metrics.squad_scores([["the"]], ["A."])  # both become empty: equal, but without a shared word
    assert scores == {"exact match": 100, "f1": 0}


def test_ranking_counted_by_hand():
    labels, groups = [0, 1, 1, 0, 0, 1], ["q", "q", "q", "r", "r", "s"]
    scores = [0.9, 0.1, 0.5, 0.3, 0.2, 0.1]  # first right answer: rank 2 in q, none in r, rank 1 in s
    assert answer_metrics.ranking_scores(labels, scores, groups) == {"mrr": pytest.approx(100 * (1 / 2 + 0 + 1) / 3)}
    tied = answer_metrics.ranking_scores([0, 0, 1], [0.5, 0.5, 0.5], "qqq")  # ties keep their order
    assert tied == {"mrr": pytest.approx(100 / 3)}


# --- against scikit-learn ---


def sides(pairs):
    return [list(side) for side in zip(*pairs, strict=True)]


def sklearn_rates(gold, predicted, **how):
    values = sklearn_metrics.precision_recall_fscore_support(gold, predicted, zero_division=0, **how)
    return three(*(100 * float(value) for value in values[:3]))


types = st.sampled_from(["false", "up", "down"])
subsets = st.sets(st.sampled_from("abcd"))


@given(st.lists(st.tuples(types, types), min_size=1))
@few
def test_classes_equal_sklearn(pairs):
    gold, predicted = sides([*pairs, ("false", "false")])
    expected = sklearn_rates(gold, predicted, labels=["up", "down"], average="micro")
    assert metrics.relation_scores(gold, predicted) == expected
    answers = [["yes" if label == "up" else "no" for label in side] for side in (gold, predicted)]
    expected = sklearn_rates(*answers, labels=["yes"], average="micro")
    assert metrics.binary_scores(*answers, positive="yes") == expected
    assert metrics.answer_class_scores(*answers).items() >= {f"{key} (yes)": expected[key] for key in expected}.items()
    assert metrics.accuracy(*answers) == pytest.approx(100 * sklearn_metrics.accuracy_score(*answers))


@given(st.lists(st.tuples(subsets, subsets), min_size=1))
@few
def test_labels_of_documents_equal_sklearn(pairs):
    gold, predicted = sides(pairs)
    binarizer = MultiLabelBinarizer(classes=list("abcd")).fit(gold)
    expected = sklearn_rates(binarizer.transform(gold), binarizer.transform(predicted), average="micro")
    assert metrics.multilabel_scores(gold, predicted) == metrics.strict_spans(gold, predicted) == expected
    gold = [labels | {"a"} for labels in gold]  # because sklearn scores documents without labels differently
    expected = sklearn_rates(binarizer.transform(gold), binarizer.transform(predicted), average="samples")
    scores = metrics.example_scores(gold, predicted)
    assert (scores["precision"], scores["recall"]) == (expected["precision"], expected["recall"])


# --- properties of every metric ---

# The metric, a gold instance and its correct prediction.
EVERY = [
    (metrics.entity_scores, ["B-D"], ["B-D"]),
    (lambda gold, predicted: metrics.token_scores(gold, predicted, outside=True), ["B-D"], ["B-D"]),
    (metrics.pico_scores, ["I-INT", "I-PAR", "I-OUT"], ["I-INT", "I-PAR", "I-OUT"]),
    (metrics.strict_spans, {"a"}, {"a"}),
    (lambda gold, predicted: metrics.relation_scores(gold, predicted, negative=None), "up", "up"),
    (metrics.binary_scores, "1", "1"),
    (lambda gold, predicted: {"accuracy": metrics.accuracy(gold, predicted)}, "up", "up"),
    (metrics.multilabel_scores, {"a"}, {"a"}),
    (metrics.example_scores, {"a"}, {"a"}),
    (answer_metrics.bioasq_factoid, ["a", "b c"], ["b c"]),
    (answer_metrics.squad_scores, ["x", "b c"], "b c"),
]


@each(("function", "gold", "right"), EVERY)
def test_right_predictions_score_100_and_unequal_or_no_instances_are_refused(function, gold, right):
    scores = function([gold, gold], [right, right])
    assert {value for key, value in scores.items() if key != "gold entities"} == {100}
    with pytest.raises(ValueError, match="2 gold instances, 1 predicted"):
        function([gold, gold], [right])
    with pytest.raises(ValueError, match="0 gold instances"):
        function([], [])


@each(
    ("call", "message"),
    [
        (lambda: metrics.entity_scores([["O", "O"]], [["O"]]), "2 gold tags has 1"),
        (lambda: metrics.entity_scores([["secret", "O", "BB-D"]], [["O", "O", "O"]]), "2 labels are not of B, I, O"),
        (lambda: metrics.pico_scores([["I-secret"]], [["I-INT|I-secret"]]), "2 labels are not of PAR, INT, OUT"),
        (lambda: metrics.answer_class_scores(["yes"], ["secret"]), "1 labels are not of yes, no"),
        (lambda: metrics.binary_scores([0, 1], ["secret", 0], positive=1), "3 labels in 2 instances"),
        (lambda: metrics.binary_scores(["0", "secret"], ["0", "0"], positive=1), "2 labels in 2 instances"),
        (lambda: answer_metrics.bioasq_factoid([[], []], [["secret"], ["b"]]), "none of 2 questions has a gold answer"),
        (lambda: answer_metrics.squad_scores([[]], ["secret"]), "1 of 1 questions have no gold answer"),
        (lambda: answer_metrics.ranking_scores(["secret", 1], [0.1, 0.2], "qq"), "1 labels are not of 0, 1"),
        (lambda: answer_metrics.ranking_scores([0, 1], [0.1, math.nan], "qq"), "1 of 2 scores are nan"),
        (lambda: metrics.pearson([1.0, 2.0], [1.0]), "2 gold instances, 1 predicted"),
    ],
)
def test_wrong_input_is_refused_with_counts_and_no_text(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "secret" not in str(error.value)


# --- totals ---


def test_totals_by_hand():
    scores = {"a": 80.0, "b": 60.0, "c": 100.0}
    assert metrics.benchmark_total(scores, {"x": ["a", "b"], "y": ["c"]}) == 85  # (70 + 100) / 2
    assert math.isnan(metrics.benchmark_total({"a": math.nan, "b": 1.0}, {"x": ["a", "b"]}))
