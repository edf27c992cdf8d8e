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


def test_a_word_has_the_tag_that_it_has_most_often():
    (tags,) = baselines.tag_by_word(TAGGING, TRAIN, [[Sentence(["heart", "Failure", "cold", "new"], ["O"] * 4)]])
    assert tags == [["B-D", "O", "O", "O"]]


def test_the_dictionary_takes_the_longest_entry_and_leaves_out_what_is_rarely_an_entity():
    words = ["Cold", "HEART", "FAILURE", "heart", "failure", "of", "heart"]
    (tags,) = baselines.tag_by_dictionary(TAGGING, TRAIN, [[Sentence(words, ["O"] * 7)]])
    assert tags == [["O", "B-D", "I-D", "B-D", "I-D", "O", "B-D"]]  # cold is an entity in one of three


def test_what_is_seen_of_a_word():
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


@pytest.mark.parametrize("number", [0, 1])
def test_too_few_instances_are_refused_in_a_line(number):
    pytest.importorskip("pycrfsuite", reason="python-crfsuite is pinned for Python 3.11 on Linux alone")
    with pytest.raises(StudyError, match=f"^Tags: {number} training instances are too few for CRF$"):
        baselines.run_baseline(by("CRF"), TAGGING, TRAIN[:number], [], TRAIN)
    for method in baselines.list_baselines("relations"):
        if number == 0 or len(method.points) > 1:
            with pytest.raises(StudyError, match=f"^R: {number} training instances are too few for {method.method}$"):
                dataset, relations = SETS["relations"]
                baselines.run_baseline(method, dataset, relations[:number], [], relations)
    with pytest.raises(StudyError, match="^a CRF needs a sentence to learn from"):
        baselines.tag_by_crf(TAGGING, [Sentence([], [])] * number, [TRAIN], l2=1.0)
    dataset = Dataset("q", "Q", "questions", "", "bioasq-factoid", list, {})
    unanswered = [Question(str(n), "Which?", ("A text.",), (), ()) for n in range(2 * number + 2)]
    with pytest.raises(StudyError, match="^Q: no question to choose on has an answer"):
        baselines.run_baseline(by("most frequent words of the passages"), dataset, unanswered, [], unanswered)


def test_without_its_library_a_crf_is_a_reason(monkeypatch):
    monkeypatch.setitem(sys.modules, "pycrfsuite", None)
    with pytest.raises(StudyError, match="^a CRF needs python-crfsuite, which is pinned for"):
        baselines.tag_by_crf(TAGGING, TRAIN, [TRAIN], l2=1.0)


def make_relation(number: int, verb: str, label: str) -> Relation:
    text = f"drug{number} {verb} gene{number} ."
    first, second = f"drug{number}", f"gene{number}"
    spans = [(text.index(name), text.index(name) + len(name)) for name in (first, second)]
    mentions = (Mention("", kind, *span) for kind, span in zip(("DRUG", "GENE"), spans, strict=True))
    return Relation(str(number), text, *mentions, label)


SETS = {
    "relations": (
        Dataset("r", "R", "relations", "", "relation-micro-f1", list, {}),
        [make_relation(n, verb, label) for n in range(30) for verb, label in (("blocks", "x"), ("sees", "false"))],
    ),
    "answers": (
        Dataset("a", "A", "answers", "", "accuracy", list, {}),
        [Pair(str(n), f"Is {n} so?", text, text[:2].strip()) for n in range(30) for text in ("ye it is", "no it isnt")],
    ),
    "documents": (
        Dataset("d", "D", "documents", "", "multilabel-micro-f1", list, {}),
        [
            Labelled(f"{n}{i}", (f"{n} words", *(f"about {label} now" for label in labels)), labels)
            for n in range(30)
            for i, labels in enumerate([(), ("cats",), ("cats", "dogs")])
        ],
    ),
}  # fmt: skip


@each("family", SETS)
def test_an_svm_learns_what_a_constant_answer_cannot(family):
    dataset, examples = SETS[family]
    train, test = examples[:48], examples[48:]
    scores = {}
    for method in baselines.list_baselines(family):
        predicted, _ = baselines.run_baseline(method, dataset, train, [], test)
        scores[method.kind] = dataset.score(test, predicted)[dataset.main_score]
    assert scores[NO_PRETRAINING] == 100 > scores[CHANCE]


@each("labels", [("cats",), ()])
def test_an_svm_of_one_label_or_none_predicts_it(labels):
    dataset, _ = SETS["documents"]
    train = [Labelled(str(n), ("about cats now",) if n % 2 else ("words",), labels if n % 2 else ()) for n in range(20)]
    for method in baselines.list_baselines("documents"):
        if method.kind == NO_PRETRAINING:
            assert method.predict(dataset, train, [train[:2]], C=1.0, balanced=False) == [[(), labels]]


def test_documents_are_known_by_parts_of_words_that_are_new():
    stems = [f"{a}{b}" for a in "bcdfg" for b in "aeiou"]
    ends = {"itis": ("disease",), "olol": ("drug",), "era": ()}
    train = [Labelled(f"{stem}{end}", (f"of {stem}{end} here",), labels)
             for stem in stems for end, labels in ends.items()]  # fmt: skip
    test = [Labelled(end, (f"of xy{end} here",), labels) for end, labels in ends.items()]
    dataset = Dataset("docs", "Documents", "documents", "", "label-f1", list, {})
    words, letters = (item for item in baselines.list_baselines("documents") if item.kind == NO_PRETRAINING)
    gold = [item.gold for item in test]
    assert letters.predict(dataset, train, [test], C=1.0, balanced=True) == [gold]
    assert words.predict(dataset, train, [test], C=1.0, balanced=True) != [gold]


def test_the_words_that_stand_most_often_are_answers():
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


def test_like_texts_are_more_alike():
    pairs = [Pair("1", "iron helps", "iron helped", 4.0), Pair("2", "iron helps", "a cat", 0.0)]
    ((alike, unlike),) = baselines.compare_texts(Dataset("s", "S", "similarity", "", "pearson", list, {}), [], [pairs])
    assert 0 <= unlike < alike <= 1


def test_settings_are_chosen_on_the_development_set_and_the_test_set_is_predicted_once():
    calls = []

    def predict(dataset, train, parts, guess):
        calls.append((guess, [len(part) for part in parts]))
        return [[guess] * len(part) for part in parts]

    dataset, examples = SETS["answers"]
    yes = [pair for pair in examples if pair.label == "ye"]
    method = baselines.Baseline(NO_PRETRAINING, "guess", ("answers",), predict, ({"guess": "no"}, {"guess": "ye"}))
    assert baselines.run_baseline(method, dataset, examples, yes[:4], examples[:6]) == (["ye"] * 6, {"guess": "ye"})
    assert calls == [("no", [4, 6]), ("ye", [4, 6])]
    calls.clear()
    assert baselines.run_baseline(method, dataset, yes, [], examples[:6]) == (["ye"] * 6, {"guess": "ye"})
    # Chosen on a tenth of the training set, then trained on all of it.
    assert calls == [("no", [3]), ("ye", [3]), ("ye", [6])]


def test_made_up_sets_have_both_lines_and_are_measured_once(own_outputs, monkeypatch):
    keys = ["ncbi-disease", "ddi", "biosses", "hoc", "pubmedqa", "bioasq-7b-factoid", "bioasq-reranker", "gad"]
    monkeypatch.setattr(registry, "DATASETS", {key: registry.DATASETS[key] for key in keys})
    gather, study = definitions("15_without_pretraining").gather, open_study("smoke")
    table = gather(study)
    assert list(dict.fromkeys(table["dataset"])) == keys[:-1]  # gad is outside the scale's budget
    kinds = table[table["score"].notna()].groupby("dataset")["kind"].agg(set)
    assert kinds["biosses"] == kinds["ddi"] == {CHANCE, NO_PRETRAINING}
    assert table.set_index(["dataset", "kind"]).loc[("biosses", CHANCE), "score"] == 0  # of a constant prediction
    assert all(baselines.list_baselines(dataset.family) for dataset in registry.DATASETS.values())
    monkeypatch.setattr(baselines, "run_baseline", None)
    assert gather(study).equals(table)


def test_why_there_is_no_score_is_said_and_not_kept(own_outputs, tmp_path, monkeypatch):
    dataset = open_study("smoke").dataset("ncbi-disease")
    methods = [baseline.method for baseline in baselines.list_baselines("tagging")]

    def refuse(*_):
        raise StudyError("nothing to fit with")

    with monkeypatch.context() as patch:
        patch.setattr(baselines, "fit_crf", refuse)
        notes = {row["method"]: row["note"] for row in baseline_scores.measure_dataset(dataset, tmp_path / "kept")}
    assert notes == dict.fromkeys(methods, "") | {"CRF": "n/a: nothing to fit with"}
    rows = baseline_scores.measure_dataset(replace(dataset, files=dataset.files | {"dev": ("none",)}), tmp_path / "dev")
    assert all(row["note"].startswith("n/a: ") and "no " in row["note"] for row in rows)
    rows = baseline_scores.measure_dataset(dataset, tmp_path / "kept")
    assert [row["method"] for row in rows if row["note"] == "" and row["score"] >= 0] == methods
    assert all({*row} == {*baseline_scores.COLUMNS, *baseline_scores.SEEN} for row in rows)


def test_the_first_instances_alone_are_learnt_from_where_so_many_are_asked_for(tmp_path):
    dataset = open_study("smoke").dataset("ddi")
    few, whole = (baseline_scores.measure_dataset(dataset, tmp_path / str(limit), limit=limit) for limit in (20, None))
    assert [row["train"] for row in few] == [20, 20] and whole[0]["train"] == len(dataset.load("train")) > 20
    first = next(baseline for baseline in baselines.list_baselines("relations") if baseline.kind == NO_PRETRAINING)
    predicted, _ = baselines.run_baseline(first, dataset, dataset.load("train")[:20], dataset.load("dev"),
                                          dataset.load("test"))  # fmt: skip
    score = dataset.score(dataset.load("test"), predicted)[dataset.main_score]
    assert next(row["score"] for row in few if row["kind"] == NO_PRETRAINING) == pytest.approx(score, abs=1e-4)


def test_a_development_set_that_is_the_test_set_again_is_known(own_outputs):
    """Only Bio-ELECTRA's GAD has one, although other datasets keep several splits in one file."""
    datasets = map(open_study("smoke").dataset, registry.DATASETS)
    assert [dataset.key for dataset in datasets if {"dev", "test"} <= {*dataset.splits} and dataset.repeats_test] == [
        "gad-bioelectra"
    ]
