"""Tests of registered models: every model of the papers is there with its printed settings; comparisons are fair."""

import re

import pytest
from conftest import each
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import StudyError
from lib.study import open_study, params, results
from lib.study.published import find_run, list_lines
from lib.training import optimizers

MODELS = params.keys("models")
SCALES = {key: params.load("scales", key) for key in params.keys("scales")}
RECIPES = [key for key, one in SCALES.items() if one.pretraining.recipe]
HALVES = {key for key in MODELS if key.endswith("-half") and key != "pubmedbert-half"}
POINTS = {key for key in MODELS if "-steps-" in key or "-text-" in key}  # points of curves
UNPRINTED = {"bio-electra-masked", "pubmedbert-cased"}  # mentioned in a paper without a score
OURS = {"bert-random", "small-encoder", *UNPRINTED, *HALVES, *POINTS}


def list_printed() -> set[tuple[str, str]]:
    """List (paper, model) for every model that a paper's tables of scores and times print."""
    printed = set()
    for table in params.load_tables().values():
        paper = table.paper.split("-")[0]
        if table.kind == "times":
            printed |= {(paper, model) for model in table.rows.values()}
        if table.kind == "scores":
            for cell in results.read_published(table.paper, table.table).to_dict("records"):
                if not {cell["row"], cell["column"]} & set(table.not_run):
                    printed.add((paper, find_run(table, cell["row"], cell["column"]).model))
    return {(paper, model) for paper, model in printed if model not in params.BASELINES}


def chain(key: str) -> list[str]:
    """Return a model and the models that it continues, in reverse order of training."""
    keys = [key]
    while initial := params.load("models", keys[-1]).initial:
        assert initial not in keys, f"{key} continues itself"
        keys.append(initial)
    return keys


def total_share(key: str) -> float:
    return sum(params.load("models", model).share for model in chain(key))


def steps_by_batch(key: str) -> list[tuple[int, int]]:
    return [(phase.steps, phase.batch_size) for phase in params.load("models", key).published.phases]


def rows_seen(key: str) -> int:
    """Return the published number of training sequences of a model and the models that it continues."""
    return sum(steps * batch for model in chain(key) for steps, batch in steps_by_batch(model))


def settings_that_differ(one: str, other: str) -> set[str]:
    """Return the names of settings in which two models differ, apart from descriptive ones."""
    descriptive = dict.fromkeys(params.TOLD - {"parameters", "not_run"}, True) | {"published": {"source"}}
    first, second = (params.load("models", key).model_dump(exclude=descriptive) for key in (one, other))
    return {name for name in first if first[name] != second[name]}


def test_the_registered_models_are_those_that_papers_print_and_our_own():
    printed = list_printed()
    assert set(MODELS) == {model for _, model in printed} | OURS | {"albert-base", "albert-large"}  # in a figure
    assert [(paper, key) for paper, key in printed if paper not in params.load("models", key).papers] == []


@each("key", MODELS)
def test_models_name_registered_parts(key):
    model = params.load("models", key)
    assert set(model.papers) <= {"lee", "gu", "wada", "naseem", "ozyurt"}
    assert bool(model.papers) != (key in OURS)
    languages = {"ja" if corpus.startswith("ja-") else "en" for corpus in model.corpora}
    assert languages <= {params.load("vocabularies", model.vocabulary).language}
    assert all(params.load("corpora", corpus) for corpus in model.corpora)
    assert bool(model.corpora) != bool(model.not_run or key == "bert-random")
    assert not model.released or model.released.count("/") == 1
    assert model.published.source and model.differs


@each("key", MODELS)
def test_chains_end_and_keep_one_body(key):
    bodies = {(params.load("models", model).architecture, params.load("models", model).size) for model in chain(key)}
    assert len(bodies) == 1
    for scale in params.keys("scales"):
        assert len({params.load_pretraining(model, scale).positions for model in chain(key)}) == 1


def test_a_model_shares_its_key_with_nothing_else_that_is_made():
    """The command line takes any key, so a key must be unique; published vocabularies are not made here."""
    trained = {key for key in params.keys("vocabularies") if not params.load("vocabularies", key).file}
    assert not set(MODELS) & {*trained, *params.keys("tables"), *params.keys("corpora")}


@each(
    ("key", "expected"),
    [
        ("bert-general", [(900_000, 256), (100_000, 256)]),  # lee 4.1: 1,000,000; gu, footnote 7
        ("bert-general-pubmed", [(200_000, 256)]),  # lee 4.1
        ("biobert-pmc", [(270_000, 256)]),
        ("biobert-pubmed-pmc", [(470_000, 256)]),
        ("medbert-ja", [(125_000, 2048)]),  # wada 4.1
        ("medbert-en", [(125_000, 2048)]),
        ("bert-uncased-pubmed-small", [(25_000, 2048)]),
        ("oubiobert", [(7_038, 65_536), (1_563, 32_768)]),
        ("bioalbert-base1", [(200_000, 1024)]),  # naseem, table 4 and text
        ("bioalbert-base2", [(470_000, 1024)]),
        ("bioalbert-base4", [(200_000, 1024)]),
        ("bioalbert-large2", [(470_000, 256)]),
        ("bioalbert-large4", [(270_000, 256)]),
        ("bio-electra", [(1_800_000, 64)]),  # ozyurt 2.1
        ("bio-electra-plus", [(1_800_000, 64)]),
    ],
)
def test_published_steps_are_the_papers(key, expected):
    assert steps_by_batch(key) == expected


def test_batches_are_the_papers():
    for key, total in (("pubmedbert", 62_500), ("pubmedbert-pmc-longer", 100_000)):
        assert sum(steps for steps, _ in steps_by_batch(key)) == total
        assert {batch for _, batch in steps_by_batch(key)} == {8192}
    for key in ("bert-general-pubmed", "biobert-pmc", "biobert-pubmed-pmc"):
        (phase,) = params.load("models", key).published.phases
        assert phase.length * phase.batch_size == 131_072  # pieces


@each(
    ("key", "warmups"),
    [
        ("bert-general", [10_000, 0]), ("bert-general-pubmed", [10_000]), ("biobert-pmc", [10_000]),
        ("biobert-pubmed-pmc", [10_000]), ("pubmedbert", [6_250, 0]), ("pubmedbert-half", [3_125, 0]),
        ("oubiobert", [2_001, 200]), ("albert-base", [3_125]), ("bioalbert-base2", [3_125]),
        ("bioalbert-large3", [3_125]), ("bio-electra", [10_000]), ("electra-small-plus", [10_000]),
        ("roberta", [24_000]), ("clinicalbert", [10_000]), ("uth-bert", [10_000]), ("tohoku-bert", [10_000]),
    ],
)  # fmt: skip
def test_warmups_are_whole_steps_of_the_papers_and_codes(key, warmups):
    phases = params.load("models", key).published.phases
    assert [round(phase.warmup * phase.steps) for phase in phases] == warmups


def test_one_schedule_over_two_lengths_goes_on_where_it_was():
    two_lengths = {key for key in MODELS if len(params.load("models", key).published.phases) == 2}
    one_schedule = {key for key in two_lengths if params.load("models", key).published.phases[0].end}
    own_schedules = {key for key in MODELS if key.startswith(("oubiobert", "scibert"))}
    assert one_schedule == two_lengths - own_schedules != set()
    for key in one_schedule:
        first, second = params.load("models", key).published.phases
        assert first.learning_rate * first.end == pytest.approx(second.learning_rate, rel=1e-5)
        assert (second.warmup, second.end) == (0, 0)


@each(
    ("key", "step", "rate"),
    [
        ("bert-general", 9_999, 1e-4), ("bert-general", 500_000, 5e-5), ("bert-general", 900_000, 1e-5),
        ("bert-general", 950_000, 5e-6),  # Google's code: 1e-4 times the share of the steps left
        ("pubmedbert", 6_249, 6e-4), ("pubmedbert", 40_000, 6e-4 * 22_500 / 56_250),  # gu 2.5: from 6,250 to 62,500
        ("pubmedbert", 60_000, 6e-4 * 2_500 / 56_250), ("pubmedbert-pmc-longer", 95_000, 6e-4 * 5_000 / 90_000),
    ],
)  # fmt: skip
def test_learning_rates_are_those_of_the_whole_schedule(key, step, rate):
    first, second = params.load("models", key).published.phases
    phase, step = (first, step) if step < first.steps else (second, step - first.steps)
    assert optimizers.rate(phase, step) == pytest.approx(rate, rel=0.01)


def test_square_root_decay_is_of_the_models_trained_with_nvidias_lamb():
    for key in MODELS:
        published = params.load("models", key).published
        nvidia_lamb = published.optimizer == "lamb" and "NVIDIA" in published.source
        assert {phase.decay for phase in published.phases} == {"square root" if nvidia_lamb else "linear"}, key
        assert nvidia_lamb == (published.optimizer == "lamb" and "Google" not in published.source)


@each("key", MODELS)
def test_caps_on_predictions_are_at_most_what_is_masked(key):
    for phase in params.load("models", key).published.phases:
        assert (phase.max_predictions or 0) <= 0.157 * phase.length  # NVIDIA's 20 of 128 and 80 of 512


def test_as_published_the_compute_of_gu_is_what_table_9_says():
    models = ("pubmedbert", "pubmedbert-general-first", "pubmedbert-general-vocabulary", "pubmedbert-word-piece",
              "pubmedbert-general-vocabulary-word-piece", "pubmedbert-pmc", "pubmedbert-adversarial")  # fmt: skip
    assert {rows_seen(key) for key in models} == {2 * rows_seen("bert-uncased")}  # "twice as long as original BERT"
    assert rows_seen("pubmedbert-half") == rows_seen("bert-uncased")
    assert rows_seen("pubmedbert-pmc-longer") * 10 == rows_seen("pubmedbert-pmc") * 16  # "60% longer"


def test_below_paper_scale_compared_models_see_equally_many_pieces():
    unequal = {"pubmedbert-half": 0.5, "pubmedbert-pmc-longer": 1.6, "bio-electra-plus": 2.0, "clinicalbert": 1.25,
               "bluebert-pubmed-mimic": 1.25}  # fmt: skip
    assert {key: total_share(key) for key in MODELS if key not in OURS and total_share(key) != 1} == unequal


@each("point", sorted(POINTS))
def test_a_point_of_a_curve_is_the_whole_but_for_its_place(point):
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
def test_a_half_is_its_whole_but_for_its_share(half):
    assert settings_that_differ(half, half.removesuffix("-half")) == {"share"}
    assert params.load("models", half).share == 0.5


@each(
    ("one", "other", "differing"),
    [
        ("pubmedbert", "pubmedbert-word-piece", {"masking"}),
        ("pubmedbert-general-vocabulary", "pubmedbert-general-vocabulary-word-piece", {"masking"}),
        ("pubmedbert-general-vocabulary", "pubmedbert-general-first", {"vocabulary", "start"}),
        ("pubmedbert", "pubmedbert-half", {"share", "published"}),
        ("pubmedbert", "pubmedbert-pmc", {"corpora"}),
        ("pubmedbert-pmc", "pubmedbert-pmc-longer", {"share", "published"}),
        ("pubmedbert", "pubmedbert-adversarial", {"adversarial"}),
        ("bert-general-pubmed", "biobert-pmc", {"corpora", "published"}),
        ("bert-general-pubmed", "biobert-pubmed-pmc", {"corpora", "published"}),
        ("oubiobert", "oubiobert-plain-vocabulary", {"vocabulary"}),
        ("oubiobert-plain-vocabulary", "oubiobert-neither", {"mixing"}),
        ("medbert-ja", "medbert-ja-plain-vocabulary", {"vocabulary"}),
        ("bioalbert-base1", "bioalbert-base2", {"corpora", "published"}),
        ("bioalbert-base1", "bioalbert-base3", {"corpora"}),
        ("bioalbert-base1", "bioalbert-large1", {"size", "initial", "parameters", "published"}),
        ("bert-general", "bert-uncased", {"vocabulary"}),
        ("pubmedbert", "pubmedbert-cased", {"vocabulary"}),
        ("bio-electra", "bio-electra-masked", {"architecture", "parameters"}),
    ],
)
def test_models_compared_differ_in_what_is_compared(one, other, differing):
    assert settings_that_differ(one, other) == differing


@each("scale", params.keys("scales"))
def test_a_model_in_place_of_another_is_trained_in_the_same_way(scale):
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
def test_paper_scale_is_what_was_published_from_random_weights(key):
    model, resolved = params.load("models", key), params.load_pretraining(key, "paper")
    assert resolved.start == [] and resolved.masked_share == model.masked_share and resolved.positions == 512
    steps = [round(phase.steps * model.part) for phase in model.published.phases]
    assert [phase.steps for phase in resolved.phases] == (steps if model.corpora else [])
    expected = [phase.model_copy(update={"steps": 1}) for phase in (model.published.phases if model.corpora else [])]
    assert [phase.model_copy(update={"steps": 1}) for phase in resolved.phases] == expected
    for name in ("optimizer", "weight_decay", "betas", "clip", "dropout", "duplicates"):
        assert getattr(resolved, name) == getattr(model.published, name)


@each("scale", RECIPES)
def test_a_recipe_is_the_same_for_every_model_but_for_its_share(scale):
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


@each("key", MODELS)
def test_only_unpublished_text_keeps_a_model_from_the_made_up_data(key):
    model = params.load("models", key)
    missing = {corpus for corpus in model.corpora if open_study("smoke").corpus(corpus).why_not}
    assert missing == {"mimic"} & set(model.corpora)
    if params.load("vocabularies", model.vocabulary).file:
        assert model.not_run and "published vocabulary" in model.differs
    else:
        assert not open_study("smoke").vocabulary(model.vocabulary).why_not


# Scales with several pretrainings are left out, because they have the models of a few tables only.
@each("scale", [key for key, settings in SCALES.items() if settings.models and settings.pretrainings == 1])
def test_a_scale_shows_a_model_of_each_kind(scale):
    models = [params.load("models", key) for key in SCALES[scale].models]
    assert {model.architecture for model in models} == {"bert", "albert", "electra"}
    assert {bool(model.initial) for model in models if model.architecture == "bert"} == {True, False}
    assert any(model.mixing == "simultaneous" for model in models)
    assert any(model.adversarial for model in models) or scale != "gpu"  # adversarial training takes twice as long
    assert all(model.corpora for model in models)


def test_smoke_pretrains_for_a_few_hundred_steps_at_most():
    assert max(sum(phase.steps for phase in params.load_pretraining(key, "smoke").phases) for key in MODELS) < 800


@given(
    tokens=st.floats(1, 1e12), share=st.floats(0.01, 1), length=st.integers(9, 512), batch_size=st.integers(1, 70_000)
)
def test_steps_use_up_their_share_of_the_pieces_and_no_more(tokens, share, length, batch_size):
    budget = params.PhaseBudget(length=length, batch_size=batch_size, learning_rate=1e-3, warmup=0.1, share=share)
    phase, pieces = params.give_steps(budget, tokens), length * batch_size
    assert phase.steps == 1 or phase.steps * pieces <= tokens * share + 1
    assert (phase.steps + 1) * pieces > tokens * share - 1


@each("scale", params.keys("scales"))
def test_scales_have_a_body_of_each_size_and_room_for_the_longest_row(scale):
    budget = params.load("scales", scale)
    assert set(budget.bodies) == {"small", "base", "large"}
    assert all(body.hidden % body.heads == 0 and body.embedding <= body.hidden for body in budget.bodies.values())
    longest = max(phase.length for key in MODELS for phase in params.load_pretraining(key, scale).phases)
    assert budget.pretraining.micro_batch >= longest


@each(
    ("kind", "changes", "message"),
    [
        ("models", {"published": None}, "params/models/bert-general.yaml: nothing is published .* scale 'paper'"),
        ("scales", {"bodies": {}}, "params/scales/paper.yaml: bodies has no 'base', which model 'bert-general' needs"),
    ],
)
def test_what_cannot_be_resolved_is_named(kind, changes, message):
    def changed(asked: str, key: str, load=params.load):
        return load(asked, key).model_copy(update=changes if asked == kind else {})

    with pytest.MonkeyPatch.context() as patch, pytest.raises(StudyError, match=message):
        patch.setattr(params, "load", changed)
        params.load_pretraining("bert-general", "paper")
