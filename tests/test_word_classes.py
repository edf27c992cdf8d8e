"""Word classes from unlabelled text, and a CRF that uses them."""

import pytest

from lib.benchmarks import baselines, word_classes
from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Sentence
from lib.errors import StudyError

DRUGS, PLACES = ("Abacin", "Befalol", "Cedrine", "Dolan", "Ezetin"), ("Aarau", "Bern", "Chur", "Davos", "Eger")
TEXTS = [f"{drug} was given by mouth\n{place} is a city of people" for drug in DRUGS for place in PLACES] * 200


@pytest.fixture(scope="module")
def classes():
    return word_classes.make_classes(TEXTS)


def test_words_with_similar_neighbours_share_a_class(classes, monkeypatch):
    assert len(classes["abacin"]) == len(word_classes.SIZES) and classes["abacin"][0].startswith("100:")
    monkeypatch.setattr(word_classes, "SIZES", (2,))
    two = word_classes.make_classes(TEXTS)
    assert len({two[name.lower()][0] for name in DRUGS}) == len({two[name.lower()][0] for name in PLACES}) == 1
    assert two["abacin"] != two["aarau"] and two == word_classes.make_classes(TEXTS)


def test_a_crf_tags_words_known_from_unlabelled_text_alone(monkeypatch):
    pytest.importorskip("pycrfsuite", reason="python-crfsuite is pinned for Python 3.11 on Linux alone")
    classes = {name.lower(): ["2:0"] for name in DRUGS} | {name.lower(): ["2:1"] for name in PLACES}
    dataset = Dataset("tags", "Tags", "tagging", "", "entity-f1", list, {})
    train = [Sentence([name], ["B-D"]) for name in DRUGS[:4]] + [Sentence([name], ["O"]) for name in PLACES[:4]]
    test = [Sentence(["Ezetin"], ["B-D"]), Sentence(["Eger"], ["O"])]
    with_fingerprint = word_classes.WordClasses(classes, "a fingerprint")
    *_, method = baselines.list_baselines("tagging", with_fingerprint)
    assert (method.kind, method.text) == (baselines.UNLABELLED, "a fingerprint")
    assert method.predict(dataset, train, [test], l2=0.1) == [[sentence.tags for sentence in test]]
    assert {"0k=2:0", "1k=2:1"} <= {*baselines.token_features(["Dolan", "Bern"], classes)[0]}


def test_classes_are_cached_until_the_text_changes(tmp_path, monkeypatch):
    first = word_classes.keep_classes(tmp_path / "kept", TEXTS, "one")
    monkeypatch.setattr(word_classes, "make_classes", lambda texts: {"a": ["1:0"]})
    assert word_classes.keep_classes(tmp_path / "kept", [], "one") == first
    assert word_classes.keep_classes(tmp_path / "kept", [], "two").by_word == {"a": ["1:0"]}


def test_too_little_text_is_refused():
    with pytest.raises(StudyError, match="0 words stand 5 times or more"):
        word_classes.make_classes(["a b c"])
