"""Tests of registered models: settings are those that the papers print, and comparisons are fair."""

import re

import pytest
from conftest import change_settings, each

from lib.errors import StudyError
from lib.study import open_study, params
from lib.study.published import list_lines
from lib.training import optimizers

MODELS = params.keys("models")
SCALES = {key: params.load("scales", key) for key in params.keys("scales")}
RECIPES = [key for key, one in SCALES.items() if one.pretraining.recipe]
HALVES = {key for key in MODELS if key.endswith("-half") and key != "pubmedbert-half"}
POINTS = {key for key in MODELS if "-steps-" in key or "-text-" in key}  # points of curves


def chain(key: str) -> list[str]:
    """Return a model and the models that it continues, in reverse order of training."""
    keys = [key]
    while initial := params.load("models", keys[-1]).initial:
        assert initial not in keys, f"{key} continues itself"
        keys.append(initial)
    return keys


def total_share(key: str) -> float:
    return sum(params.load("models", model).share for model in chain(key))


def rows_seen(key: str) -> int:
    """Return the published number of training sequences of a model and the models that it continues."""
    phases = [phase for model in chain(key) for phase in params.load("models", model).published.phases]
    return sum(phase.steps * phase.batch_size for phase in phases)


def settings_that_differ(one: str, other: str) -> set[str]:
    """Return the names of settings in which two models differ, apart from descriptive ones."""
    descriptive = dict.fromkeys(params.TOLD - {"parameters", "not_run"}, True) | {"published": {"source"}}
    first, second = (params.load("models", key).model_dump(exclude=descriptive) for key in (one, other))
    return {name for name in first if first[name] != second[name]}


@each("key", MODELS)
def test_chains_end_and_keep_one_body(key):
    bodies = {(params.load("models", model).architecture, params.load("models", model).size) for model in chain(key)}
    assert len(bodies) == 1
    for scale in params.keys("scales"):
        assert len({params.load_pretraining(model, scale).positions for model in chain(key)}) == 1


def test_no_key_of_a_model_is_used_for_anything_else_that_is_made():
    """The command line takes any key, so a key must be unique; published vocabularies are not made here."""
    trained = {key for key in params.keys("vocabularies") if not params.load("vocabularies", key).file}
    assert not set(MODELS) & {*trained, *params.keys("tables"), *params.keys("corpora")}


@each(
    ("key", "expected"),  # steps, batch and steps of warm-up of each phase
    [
        ("bert-general", [(900_000, 256, 10_000), (100_000, 256, 0)]),  # lee 4.1: 1,000,000; gu, footnote 7
        ("biobert-pubmed-pmc", [(470_000, 256, 10_000)]),  # lee 4.1: 200,000 and 270,000
        ("oubiobert", [(7_038, 65_536, 2_001), (1_563, 32_768, 200)]),
        ("bioalbert-large4", [(270_000, 256, 3_125)]),  # naseem, table 4 and text
        ("bio-electra-plus", [(1_800_000, 64, 0)]),  # ozyurt 2.1
        ("pubmedbert-pmc-longer", [(90_000, 8192, 10_000), (10_000, 8192, 0)]),
        ("pubmedbert-half", [(28_125, 8192, 3_125), (3_125, 8192, 0)]),  # gu 2.5: 62,500 in full
    ],
)
def test_steps_batches_and_warmups_are_those_of_the_papers(key, expected):
    phases = params.load("models", key).published.phases
    assert [(phase.steps, phase.batch_size, round(phase.warmup * phase.steps)) for phase in phases] == expected


@each(
    ("key", "step", "rate"),
    [
        ("bert-general", 9_999, 1e-4), ("bert-general", 500_000, 5e-5),
        ("bert-general", 950_000, 5e-6),  # Google's code: 1e-4 times the share of the steps left
        ("pubmedbert", 60_000, 6e-4 * 2_500 / 56_250), ("pubmedbert-pmc-longer", 95_000, 6e-4 * 5_000 / 90_000),
    ],
)  # fmt: skip
def test_learning_rates_are_those_of_the_whole_schedule(key, step, rate):
    first, second = params.load("models", key).published.phases
    phase, step = (first, step) if step < first.steps else (second, step - first.steps)
    assert optimizers.rate(phase, step) == pytest.approx(rate, rel=0.01)


def test_published_compute_is_that_of_table_9_of_gu():
    models = ("pubmedbert", "pubmedbert-general-first", "pubmedbert-general-vocabulary", "pubmedbert-word-piece",
              "pubmedbert-general-vocabulary-word-piece", "pubmedbert-pmc", "pubmedbert-adversarial")  # fmt: skip
    assert {rows_seen(key) for key in models} == {2 * rows_seen("bert-uncased")}  # "twice as long as original BERT"
    assert rows_seen("pubmedbert-half") == rows_seen("bert-uncased")
    assert rows_seen("pubmedbert-pmc-longer") * 10 == rows_seen("pubmedbert-pmc") * 16  # "60% longer"


def test_below_paper_scale_compared_models_see_equally_many_pieces():
    unequal = {"pubmedbert-half": 0.5, "pubmedbert-pmc-longer": 1.6, "bio-electra-plus": 2.0, "clinicalbert": 1.25,
               "bluebert-pubmed-mimic": 1.25}  # fmt: skip
    compared = set(MODELS) - {"bert-random", "small-encoder"} - HALVES - POINTS
    assert {key: total_share(key) for key in compared if total_share(key) != 1} == unequal


@each("point", sorted(POINTS))
def test_a_point_of_a_curve_differs_in_its_place_only(point):
    whole, percent = re.fullmatch(r"([\w-]+)-(?:steps|text)-(\d+)", point).groups()
    settings = params.load("models", point)
    if "-steps-" in point:
        assert settings_that_differ(point, whole) == {"part"} and round(100 * settings.part) == int(percent)
    else:
        assert settings_that_differ(point, whole) == {"corpora"}
        (part_key,), (whole_key,) = settings.corpora, params.load("models", whole).corpora
        part_corpus, whole_corpus = (params.load("corpora", key) for key in (part_key, whole_key))
        assert part_corpus.part == int(percent) / 100 and whole_corpus.part == 1
        descriptive = {"title", "papers", "differs", "part"}
        assert part_corpus.model_dump(exclude=descriptive) == whole_corpus.model_dump(exclude=descriptive)


@each("half", sorted(HALVES))
def test_a_half_differs_in_its_share_only(half):
    assert settings_that_differ(half, half.removesuffix("-half")) == {"share"}
    assert params.load("models", half).share == 0.5


@each(
    ("one", "other", "differing"),
    [
        ("pubmedbert", "pubmedbert-word-piece", {"masking"}),
        ("pubmedbert-general-vocabulary", "pubmedbert-general-first", {"vocabulary", "start"}),
        ("pubmedbert", "pubmedbert-half", {"share", "published"}),
        ("pubmedbert", "pubmedbert-pmc", {"corpora"}),
        ("pubmedbert-pmc", "pubmedbert-pmc-longer", {"share", "published"}),
        ("pubmedbert", "pubmedbert-adversarial", {"adversarial"}),
        ("bert-general-pubmed", "biobert-pubmed-pmc", {"corpora", "published"}),
        ("oubiobert", "oubiobert-plain-vocabulary", {"vocabulary"}),
        ("oubiobert-plain-vocabulary", "oubiobert-neither", {"mixing"}),
        ("bioalbert-base1", "bioalbert-base3", {"corpora"}),
        ("bioalbert-base1", "bioalbert-large1", {"size", "initial", "parameters", "published"}),
        ("pubmedbert", "pubmedbert-cased", {"vocabulary"}),
        ("bio-electra", "bio-electra-masked", {"architecture", "parameters"}),
    ],
)
def test_compared_models_differ_in_what_is_compared_only(one, other, differing):
    assert settings_that_differ(one, other) == differing


@each("scale", params.keys("scales"))
def test_a_substitute_is_trained_like_the_model_it_stands_for(scale):
    budget = params.load("scales", scale)
    assert not budget.substitutes.models or scale in RECIPES or budget.weights == "released"
    for model, substitute in budget.substitutes.models.items():
        if params.is_model(substitute):
            assert settings_that_differ(model, substitute) <= {"published"}
        else:
            scored = {line["model"] for key in budget.tables for line in list_lines(open_study(scale), key)}
            assert scored == {substitute}


@each("scale", RECIPES)
def test_compared_models_get_the_same_start(scale):
    starts = {key: params.load_pretraining(key, scale).start for key in MODELS}
    recipe_start = params.load("scales", scale).pretraining.recipe.start
    assert recipe_start
    for key, start in starts.items():
        model = params.load("models", key)
        continued = model.initial and params.load("models", model.initial).vocabulary == model.vocabulary
        expected = [part for part in recipe_start if part != "position waves"] if model.initial else recipe_start
        assert start == ([] if continued or key == "bert-random" else expected), key


@each("key", MODELS)
def test_scale_paper_pretrains_as_published(key):
    model, resolved = params.load("models", key), params.load_pretraining(key, "paper")
    assert resolved.start == [] and resolved.masked_share == model.masked_share and resolved.positions == 512
    steps = [round(phase.steps * model.part) for phase in model.published.phases]
    assert [phase.steps for phase in resolved.phases] == (steps if model.corpora else [])
    expected = [phase.model_copy(update={"steps": 1}) for phase in (model.published.phases if model.corpora else [])]
    assert [phase.model_copy(update={"steps": 1}) for phase in resolved.phases] == expected
    for name in ("optimizer", "weight_decay", "betas", "clip", "dropout", "duplicates"):
        assert getattr(resolved, name) == getattr(model.published, name)


@each("scale", RECIPES)
def test_a_recipe_is_the_same_for_every_model_except_its_share(scale):
    recipe = params.load("scales", scale).pretraining.recipe
    assert sum(phase.share for phase in recipe.phases) == pytest.approx(1)
    assert len({params.load_pretraining(key, scale).masked_share for key in MODELS}) == 1
    for key in MODELS:
        model, resolved = params.load("models", key), params.load_pretraining(key, scale)
        assert resolved.duplicates is None and resolved.optimizer == recipe.optimizer
        assert all(phase.max_predictions is None for phase in resolved.phases)
        pieces = sum(phase.steps * phase.batch_size * phase.length for phase in resolved.phases)
        expected = recipe.tokens * model.share * model.part if model.corpora else 0
        assert pieces == pytest.approx(expected, rel=0.01, abs=max(p.batch_size * p.length for p in recipe.phases))


@each(
    ("kind", "key", "changes", "message"),
    [
        ("models", "bert-general", {"published": None},
         "params/models/bert-general.yaml: nothing is published .* scale 'paper'"),
        ("scales", "paper", {"bodies": {}},
         "params/scales/paper.yaml: bodies has no 'base', which model 'bert-general' needs"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_resolved_are_refused(kind, key, changes, message):
    with pytest.MonkeyPatch.context() as patch, pytest.raises(StudyError, match=message):
        change_settings(patch, kind, key, **changes)
        params.load_pretraining("bert-general", "paper")
