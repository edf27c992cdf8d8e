"""Tests of baselines: by hand, on small datasets and on the made-up ones."""

import sys
from dataclasses import replace

import pytest
from conftest import each
from notebook_code import definitions

from lib.benchmarks import baseline_scores, baselines, frequent_words, questions, registry
from lib.benchmarks.baselines import CHANCE, NO_PRETRAINING
from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Labelled, Mention, Pair, Question, Relation, Sentence
from lib.errors import StudyError
from lib.study import open_study

TAGGING = Dataset("tags", "Tags", "tagging", "", "entity-f1", list, {})
TRAIN = [
    Sentence(["Heart", "failure", "and", "cold"], ["B-D", "I-D", "O", "B-D"]),
    Sentence(["Failure", "of", "cold", "cold"], ["O", "O", "O", "O"]),
    Sentence(["heart"], ["B-D"]),
]


def by(method: str) -> baselines.Baseline:
    return next(baseline for baseline in baselines.BASELINES if baseline.method == method)


def test_each_word_gets_its_most_frequent_tag():
    (tags,) = baselines.tag_by_word(TAGGING, TRAIN, [[Sentence(["heart", "Failure", "cold", "new"], ["O"] * 4)]])
    assert tags == [["B-D", "O", "O", "O"]]


def test_the_dictionary_takes_the_longest_entry_and_leaves_out_words_that_are_rarely_entities():
    words = ["Cold", "HEART", "FAILURE", "heart", "failure", "of", "heart"]
    (tags,) = baselines.tag_by_dictionary(TAGGING, TRAIN, [[Sentence(words, ["O"] * 7)]])
    assert tags == [["O", "B-D", "I-D", "B-D", "I-D", "O", "B-D"]]  # cold is an entity in one of three


def test_features_of_a_word():
    first, second = baselines.token_features(["IL-22", "helps"])
    assert {"w=IL-22", "l=il-22", "s=AA-00", "c=A-0", "p2=il", "e3=-22", "t=^il", "digit", "hyphen", "capitals",
            "1=helps", "1e=lps", "-1=edge", "0,1=il-22 helps"} <= set(first)  # fmt: skip
    assert "capital" not in second and "-1,0=il-22 helps" in second


def test_a_crf_learns_from_the_ends_of_words():
    pytest.importorskip("pycrfsuite", reason="python-crfsuite is pinned for Python 3.11 on Linux alone")
    stems = [f"{a}{b}" for a in "bcdfg" for b in "aeiou"]
    train = [Sentence(["some", f"{stem}itis", "here"], ["O", "B-D", "O"]) for stem in stems]
    train += [Sentence(["some", f"{stem}ol", "here"], ["O", "O", "O"]) for stem in stems]
    test = [Sentence(["some", "xyitis", "here"], ["O", "B-D", "O"]), Sentence(["some", "xyol", "here"], ["O"] * 3)]
    predicted, point = baselines.run_baseline(by("CRF"), TAGGING, train, [], test)
    assert predicted == [sentence.tags for sentence in test] and point in by("CRF").points
    pico = Dataset("pico", "Pico", "pico", "", "pico-macro-f1", list, {}, overlapping=True)
    combined = {"O": "O", "B-D": "I-INT|I-PAR"}
    train, test = (
        [Sentence(example.words, [combined[tag] for tag in example.tags]) for example in split]
        for split in (train, test)
    )
    assert baselines.tag_by_crf(pico, train, [test], l2=0.1) == [[example.tags for example in test]]


def test_too_few_instances_are_refused():
    with pytest.raises(StudyError, match="^Tags: 1 training instances are too few for CRF$"):
        baselines.run_baseline(by("CRF"), TAGGING, TRAIN[:1], [], TRAIN)
    dataset, relations = SETS["relations"]
    with pytest.raises(StudyError, match="^R: 0 training instances are too few for best constant answer$"):
        baselines.run_baseline(by("best constant answer"), dataset, [], [], relations)
    dataset = Dataset("q", "Q", "questions", "", "bioasq-factoid", list, {})
    unanswered = [Question(number, "Which?", ("A text.",), (), ()) for number in "123"]
    with pytest.raises(StudyError, match="^Q: no question to choose on has an answer"):
        baselines.run_baseline(by("most frequent words of the passages"), dataset, unanswered, [], unanswered)


def test_a_crf_without_a_sentence_is_refused():
    pytest.importorskip("pycrfsuite", reason="python-crfsuite is pinned for Python 3.11 on Linux alone")
    with pytest.raises(StudyError, match="^a CRF needs a sentence to learn from"):
        baselines.tag_by_crf(TAGGING, [Sentence([], [])], [TRAIN], l2=1.0)


RELATIONS = [
    Relation(
        f"{number}{label}", f"zinc {verb} ferritin .", Mention("", "DRUG", 0, 4), Mention("", "GENE", 12, 20), label
    )
    for number in range(15)
    for verb, label in (("blocks", "x"), ("misses", "false"))
]
ANSWERS = [
    Pair(f"{number}{label}", f"Is {number} so?", f"{label} it is", label)
    for number in range(15)
    for label in ("yes", "no")
]
DOCUMENTS = [
    Labelled(f"{number}{labels}", ("Some words", *(f"about {label} now" for label in labels)), labels)
    for number in range(10)
    for labels in ((), ("cats",), ("cats", "dogs"))
]
SETS = {
    "relations": (Dataset("r", "R", "relations", "", "relation-micro-f1", list, {}), RELATIONS),
    "answers": (Dataset("a", "A", "answers", "", "accuracy", list, {}), ANSWERS),
    "documents": (Dataset("d", "D", "documents", "", "multilabel-micro-f1", list, {}), DOCUMENTS),
}


@each("family", SETS)
def test_an_svm_beats_a_constant_answer(family):
    dataset, examples = SETS[family]
    train, test = examples[:24], examples[24:]
    scores = {}
    for method in baselines.list_baselines(family):
        predicted, _ = baselines.run_baseline(method, dataset, train, [], test)
        scores[method.kind] = dataset.score(test, predicted)[dataset.main_score]
    assert scores[NO_PRETRAINING] == 100 > scores[CHANCE]


@each("labels", [("cats",), ()])
def test_an_svm_of_one_label_or_none_predicts_it(labels):
    dataset = SETS["documents"][0]
    train = [Labelled(str(n), ("about cats now",) if n % 2 else ("words",), labels if n % 2 else ()) for n in range(20)]
    for method in baselines.list_baselines("documents"):
        if method.kind == NO_PRETRAINING:
            assert method.predict(dataset, train, [train[:2]], C=1.0, balanced=False) == [[(), labels]]


def test_letters_help_where_words_are_new():
    stems = [f"{a}{b}" for a in "bcdfg" for b in "aeiou"]
    ends = {"itis": ("disease",), "olol": ("drug",), "era": ()}
    train = [Labelled(f"{stem}{end}", (f"of {stem}{end} here",), labels)
             for stem in stems for end, labels in ends.items()]  # fmt: skip
    test = [Labelled(end, (f"of xy{end} here",), labels) for end, labels in ends.items()]
    dataset = Dataset("docs", "Documents", "documents", "", "label-f1", list, {})
    words, letters = by("linear SVM"), by("linear SVM with letters")
    gold = [item.gold for item in test]
    assert letters.predict(dataset, train, [test], C=1.0, balanced=True) == [gold]
    assert words.predict(dataset, train, [test], C=1.0, balanced=True) != [gold]


def test_the_most_frequent_words_are_the_answers():
    """Question words and function words are excluded; ties go to the first, or with a power to the longer answer."""
    passages = "A target of the kinase Plk4.", "It is in Plk4 kinase, with NEK2 B."
    question = Question("1", "Which kinase?", passages, (), ())

    def answer(method, **point) -> list[str]:
        ((prediction,),) = method(
            Dataset("q", "Q", "questions", "", "bioasq-factoid", list, {}), [], [[question]], **point
        )
        return questions.read_answers(question, prediction)

    assert answer(frequent_words.answer_by_frequency, power=0.0) == ["Plk4", "target", "NEK2", "NEK2 B", "B"]
    assert answer(frequent_words.answer_by_frequency, power=1.5)[0] == "NEK2 B"
    assert answer(frequent_words.answer_in_order) == ["target", "Plk4", "NEK2", "NEK2 B", "B"]


def test_similar_texts_score_higher():
    pairs = [Pair("1", "iron helps", "iron helped", 4.0), Pair("2", "iron helps", "a cat", 0.0)]
    ((similar, different),) = baselines.compare_texts(
        Dataset("s", "S", "similarity", "", "pearson", list, {}), [], [pairs]
    )
    assert 0 <= different < similar <= 1


def test_settings_are_chosen_on_the_development_set_or_a_tenth_of_training():
    calls = []

    def predict(dataset, train, parts, guess):
        calls.append((guess, [len(part) for part in parts]))
        return [[guess] * len(part) for part in parts]

    dataset, examples = SETS["answers"]
    yes = [pair for pair in examples if pair.label == "yes"]
    method = baselines.Baseline(NO_PRETRAINING, "guess", ("answers",), predict, ({"guess": "no"}, {"guess": "yes"}))
    assert baselines.run_baseline(method, dataset, examples, yes[:4], examples[:6]) == (["yes"] * 6, {"guess": "yes"})
    assert calls == [("no", [4, 6]), ("yes", [4, 6])]
    calls.clear()
    assert baselines.run_baseline(method, dataset, yes, [], examples[:6]) == (["yes"] * 6, {"guess": "yes"})
    # Chosen on a tenth of the training set, then trained on all of it.
    assert calls == [("no", [2]), ("yes", [2]), ("yes", [6])]


def test_every_family_has_both_kinds_of_baseline_and_is_measured_once(own_outputs, monkeypatch):
    keys = ["ncbi-disease", "ddi", "biosses", "hoc", "pubmedqa", "bioasq-7b-factoid", "bioasq-reranker", "gad"]
    monkeypatch.setattr(registry, "DATASETS", {key: registry.DATASETS[key] for key in keys})
    gather, study = definitions("15_without_pretraining").gather, open_study("smoke")
    table = gather(study)
    assert list(dict.fromkeys(table["dataset"])) == keys[:-1]  # gad is outside the scale's budget
    kinds = table[table["score"].notna()].groupby("dataset")["kind"].agg(set)
    assert kinds["biosses"] == kinds["ddi"] == {CHANCE, NO_PRETRAINING}
    assert table.set_index(["dataset", "kind"]).loc[("biosses", CHANCE), "score"] == 0  # of a constant prediction
    monkeypatch.setattr(baselines, "run_baseline", None)
    assert gather(study).equals(table)


def test_a_missing_score_has_its_reason_which_is_not_kept(tmp_path, monkeypatch):
    dataset = open_study("smoke").dataset("ncbi-disease")
    methods = [baseline.method for baseline in baselines.list_baselines("tagging")]
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pycrfsuite", None)
        notes = {row["method"]: row["note"] for row in baseline_scores.measure_dataset(dataset, tmp_path / "kept")}
    assert notes.pop("CRF").startswith("n/a: a CRF needs python-crfsuite, which is pinned for")
    assert set(notes.values()) == {""}
    rows = baseline_scores.measure_dataset(replace(dataset, files=dataset.files | {"dev": ("none",)}), tmp_path / "dev")
    assert all(row["note"].startswith("n/a: ") and "no " in row["note"] for row in rows)
    pytest.importorskip("pycrfsuite", reason="python-crfsuite is pinned for Python 3.11 on Linux alone")
    rows = baseline_scores.measure_dataset(dataset, tmp_path / "kept")
    assert [row["method"] for row in rows if row["note"] == "" and row["score"] >= 0] == methods
    assert all({*row} == {*baseline_scores.COLUMNS, *baseline_scores.SEEN} for row in rows)


def test_a_limit_keeps_as_many_training_instances(tmp_path):
    dataset = open_study("smoke").dataset("ddi")
    rows = baseline_scores.measure_dataset(dataset, tmp_path, limit=20)
    assert [row["train"] for row in rows] == [20, 20] and len(dataset.load("train")) > 20
