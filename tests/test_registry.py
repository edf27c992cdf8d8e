"""The registry: every dataset loads on made-up data in all splits and folds; what is missing is named."""

import re
from collections import Counter
from functools import cache

import pytest
from conftest import each
from golden import write

from lib.benchmarks import chemprot, datasets, metrics, registry
from lib.benchmarks.instances import Labelled, Pair, Question, Relation, Sentence
from lib.corpora import cleaning
from lib.errors import StudyError
from lib.running import plan
from lib.study import downloads, open_study, params, paths, published

KEYS = list(registry.DATASETS)
CLASSES = {
    "tagging": Sentence, "pico": Sentence, "relations": Relation, "similarity": Pair, "inference": Pair,
    "documents": Labelled, "answers": Pair, "questions": Question, "ranking": Pair,
}  # fmt: skip
# BLURB's own files that are public; the others are made with its scripts.
PUBLIC = {"chemprot-blurb": ["dev"], "ddi-blurb": ["dev", "test"]}
CREDENTIALED = {"i2b2-2010", "i2b2-2010-relations", "share-clef-2013", "medsts", "mednli", "docclsjp"}


@pytest.fixture
def data(monkeypatch):
    """The folder of made-up data, and a sentence splitter that needs no download."""
    monkeypatch.setattr(chemprot, "load_punkt", lambda: cleaning.split_sentences)
    return paths.data("smoke")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty data folder that the laptop scale reads."""
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    return tmp_path


def load_folds(key: str, split: str) -> list[list]:
    return [open_study("smoke").dataset(key).load(split, fold) for fold in range(1, registry.lookup(key).folds + 1)]


# Made-up data


@each("key", KEYS)
def test_every_set_loads_and_scores_perfect_predictions_100(data, key):
    dataset = open_study("smoke").dataset(key)
    splits = dataset.splits
    assert set(PUBLIC.get(key, dataset.files)) <= set(splits)
    assert (open_study("smoke").why_missing(key) == "") == (splits == list(dataset.files))
    for split in splits:
        for instances in load_folds(key, split):
            assert instances and {type(instance) for instance in instances} == {CLASSES[dataset.family]}
        golds = {instance.gold for instances in load_folds(key, split) for instance in instances}
        assert len(golds) > 1, "nothing to learn"
    if dataset.family != "ranking":
        assert main_score(key, *perfect(key, dataset.load(splits[-1]))) == pytest.approx(100)


@each("key", [key for key in KEYS if registry.DATASETS[key].folds > 1])
def test_folds_test_everything_once(data, key):
    tests, trains = load_folds(key, "test"), load_folds(key, "train")
    whole = Counter(map(text_of, [instance for fold in tests for instance in fold]))
    assert max(Counter(instance.id for fold in tests for instance in fold).values()) <= len(tests)
    for test, train in zip(tests, trains, strict=True):
        assert Counter(map(text_of, test + train)) == whole
        assert not set(map(text_of, test)) & set(map(text_of, train))


def text_of(instance: Relation | Labelled) -> object:
    return instance.text if isinstance(instance, Relation) else instance.sentences


def perfect(key: str, instances: list) -> tuple[list, list]:
    """Return gold labels and all-correct predictions, in the form that the dataset's metric takes."""
    gold = [instance.gold for instance in instances]
    if registry.lookup(key).metric == "strict-span-f1":
        gold = metrics.entity_sets(gold)
    if registry.lookup(key).family != "questions":
        return gold, gold
    gold = [instance.answers for instance in instances]
    if registry.lookup(key).metric == "squad":
        return gold, [answers[0] for answers in gold]
    return gold, [[answers[-1].upper()] for answers in gold]


def main_score(key: str, gold: list, predicted: list) -> float:
    dataset = registry.lookup(key)
    return dataset.score_labels(gold, predicted)[dataset.main_score]


@each(
    ("key", "gold", "predicted", "score"),  # of keys with options of their own; the metrics: test_metrics.py
    [
        ("ddi", ["DDI-false", "DDI-int"], ["DDI-int", "DDI-int"], 200 / 3),  # DDI-false is the negative label
        ("chemprot-scibert", ["A", "B"], ["A", "A"], 50),  # every label counts
    ],
)
def test_scores_by_hand(key, gold, predicted, score):
    assert main_score(key, gold, predicted) == pytest.approx(score)


# The rows


def test_keys_and_titles_are_unique_and_fit_the_graph():
    assert len(KEYS) == len(registry.ROWS) == len({dataset.title for dataset in registry.ROWS})
    assert all(re.fullmatch(plan.KEY, key) for key in KEYS)


@cache
def groups() -> dict[str, downloads.Group]:
    return downloads.load_manifest()


@each("key", KEYS)
def test_every_file_is_in_its_download_group(key):
    """The dataset's download group lists the file or a folder above it, unless it has nothing to download."""
    dataset, group = registry.lookup(key), groups()[registry.lookup(key).group]
    folds = range(1, dataset.folds + 1)
    names = {name.format(fold=fold) for templates in dataset.files.values() for name in templates for fold in folds}
    listed = group.paths()
    assert listed or group.by_hand
    for name in names if listed else ():
        assert any(name in (path, path.removesuffix(".gz")) or name.startswith(f"{path}/") for path in listed), name


def test_access_is_that_of_the_licences():
    access = {dataset.key: dataset.access for dataset in registry.ROWS}
    assert {key for key in KEYS if access[key] == "credentialed"} == CREDENTIALED
    registration = {key for key in KEYS if key.startswith(("chemprot", "bioasq"))}
    assert {key for key in KEYS if access[key] == "registration"} == registration
    assert set(access.values()) == {"public", "registration", "credentialed"}


# What is not there


@each("key", KEYS)
def test_a_missing_file_is_named_with_the_command_that_fetches_it(folder, key):
    dataset = open_study("laptop").dataset(key)
    missing = dataset.missing
    assert list(missing) == list(dataset.files) and dataset.splits == []
    command = f"; ./run_all.sh data {dataset.group} fetches it or says how to get it"
    for split, reason in missing.items():
        assert reason.startswith(f"{dataset.title}: no $STUDY_DATA/") and reason.endswith(command)
        with pytest.raises(StudyError) as error:
            dataset.load(split)
        assert str(error.value) == reason and str(folder) not in reason
    assert open_study("laptop").why_missing(key) == open_study("laptop").why_not(key) == next(iter(missing.values()))


def test_a_relative_data_folder_is_relative_to_the_repository(monkeypatch):
    monkeypatch.setenv("STUDY_DATA", "../no-such-data")
    assert open_study("laptop").why_missing("bc2gm").startswith("BC2GM: no $STUDY_DATA/ner/bc2gm/train.tsv")


def test_a_dataset_to_be_trained_on_first_is_missed_too(folder):
    for split, files in registry.lookup("bioasq-7b-factoid").files.items():
        for name in files:
            write(folder / name, "{}")
        assert open_study("laptop").dataset("bioasq-7b-factoid").paths(split)
    assert open_study("laptop").why_missing("bioasq-7b-factoid", "lee-no-squad") == ""
    reason = open_study("laptop").why_not("bioasq-7b-factoid", "lee")
    assert reason.startswith("lee fine-tunes on squad first: SQuAD v1.1: no $STUDY_DATA/")
    assert published.find_obstacle(open_study("laptop"), "bert-general", ["bioasq-7b-factoid"], "lee") == reason


def test_a_missing_split_is_named(folder):
    write(folder / "ner/bc2gm/dev.tsv", "An\tO\nulcer\tB\n\n")
    write(folder / "ner/bc2gm/test.tsv.gz", "a\tO\n\n")  # despite its name, not a gzip file
    study = open_study("laptop")
    assert study.dataset("bc2gm").splits == ["dev", "test"]
    assert study.why_missing("bc2gm").startswith("the train split is not at hand: BC2GM: no $STUDY_DATA/")
    assert study.dataset("bc2gm").load("dev") == [Sentence(["An", "ulcer"], ["O", "B"])]
    assert [path.name for path in study.dataset("bc2gm").paths("test")] == ["test.tsv.gz"]
    (folder / "ner/bc2gm/dev.tsv").unlink()
    assert study.why_missing("bc2gm").startswith("the train and dev splits are not at hand: ")
    for fold in range(1, 10):
        write(folder / f"re/euadr/{fold}/train.tsv", "@GENE$ @DISEASE$\t1\n")
    assert re.search(r"no \$STUDY_DATA/re/euadr/10/train\.tsv;", study.dataset("euadr").missing["train"])
    assert len(study.dataset("euadr").load("train", 9)) == 1


def test_a_split_without_instances_is_refused(folder):
    dataset = datasets.Dataset("none", "None", "tagging", "", "entity-f1", lambda path: [], {"train": ("a.tsv",)})
    write(folder / "a.tsv", "")
    with pytest.raises(StudyError, match=r"\$STUDY_DATA/a\.tsv: no instances of the train split$"):
        dataset.at(folder).load("train")


def test_a_damaged_file_of_a_registered_set_says_how_to_get_it_again(folder):
    path = write(folder / "ner/bc2gm/train.tsv", "gene\tB\nalone\n")
    advice = "; to get the file again, move it away: ./run_all.sh data bc2gm fetches it or says how to get it"
    registered = open_study("laptop").dataset("bc2gm")
    at_folder = registered.at(folder)
    for load, end in (
        (lambda: registered.load("train"), advice),
        (lambda: at_folder.load("train"), ""),
        (lambda: list(registered.read(path)), ""),
    ):
        with pytest.raises(StudyError, match=rf"^\$STUDY_DATA/ner/bc2gm/train\.tsv:2: .* found 1 column\(s\){end}$"):
            load()


def test_made_up_data_may_be_missing(own_outputs):
    chosen = params.load("scales", "smoke").datasets
    assert {key for key in KEYS if not open_study("smoke").why_not(key)} == set(chosen)
    assert open_study("smoke").why_not("squad") == "outside the budget of scale 'smoke'"


# Files


def test_files_of_the_registry_are_listed(folder, data):
    assert registry.files(folder) == []
    names = "ner/bc2gm/dev.tsv", "ner/bc2gm/test.tsv.gz", "ner/i2b2-2010/test_data/a.txt", "re/euadr/10/test.tsv"
    expected = [write(folder / name, "x") for name in names]
    write(folder / "ner/bc2gm/README.md", "x")
    assert registry.files(folder) == sorted(expected)
    files = set(registry.files(data))
    for dataset in map(open_study("smoke").dataset, KEYS):
        for split in dataset.splits:
            assert set(datasets.list_data_files(dataset.paths(split))) <= files


# Real data


def test_real_sets_are_whole_or_say_what_is_missing(real_data):
    reasons = {key: open_study("laptop").why_missing(key) for key in KEYS}
    assert all(not reason or "./run_all.sh data " in reason for reason in reasons.values())
    assert sum(not reason for reason in reasons.values()) >= 20
