"""Settings in force: how a model is pretrained, how a dataset is fine-tuned on; the tests of claims."""

from functools import cache
from typing import Annotated, Literal

from pydantic import Field, model_validator

from lib.errors import StudyError, unknown
from lib.finetuning.settings import FinetuningSettings
from lib.pretraining.settings import Pretraining
from lib.settings import Settings
from lib.study import paths
from lib.study.papers import (  # noqa: F401 - callers take schemas and keys from here
    Count,
    CountRow,
    CountTable,
    CurveTable,
    LengthColumn,
    Run,
    ScoreTable,
)
from lib.study.parsing import check_settings, read_yaml
from lib.study.registry import KINDS, explain, is_model, keys, load, name_model, split_seed  # noqa: F401
from lib.study.settings import (  # noqa: F401
    BASELINES,
    Corpus,
    FinetuningBudget,
    Instead,
    Model,
    Panel,
    PhaseBudget,
    Place,
    Protocol,
    RunKey,
    Scale,
    Vocabulary,
)
from lib.training.settings import Optimization, Phase

Two = Field(min_length=2, max_length=2)


class Part(Settings):
    """One comparison: columns or rows of a table of scores in pairs, or runs in pairs on some datasets."""

    table: str = ""
    pairs: list[
        Annotated[list[str], Two]
    ] = []  # the better, and what it is better than; all pairs together are one comparison
    metric: str = ""  # as printed; empty: every one of the table
    only: list[str] = []  # the rows, or columns, over which the pairs are compared; empty: all
    runs: list[Annotated[list[Run], Two]] = []  # in place of a table and its pairs, on
    datasets: list[str] = []
    relation: Literal["beats", "as good as", "equals"] = "beats"
    margin: float = Field(default=0, ge=0)  # points, of "as good as" and "equals"

    @model_validator(mode="after")
    def check(self):
        if bool(self.table) != bool(self.pairs) or bool(self.runs) != bool(self.datasets) or self.table and self.runs:
            raise ValueError("give a table and its pairs, or runs and their datasets")
        if (self.relation == "beats") != (self.margin == 0):
            raise ValueError("a margin goes with 'as good as' and 'equals'")
        return self


class PairedTest(Settings):
    """Paired comparisons, over datasets and seeds: the claim holds when each part does."""

    kind: Literal["paired"]
    parts: list[Part] = Field(min_length=1)
    ahead: int = Field(default=0, ge=0)  # the sets of its one part on which the better has to be ahead; 0: their mean
    same_weights: bool = False  # both sides fine-tune one pretrained model; else the claim is about recipes
    untested: str = ""  # what else the claim says

    @model_validator(mode="after")
    def check(self):
        if self.ahead and len(self.parts) > 1:
            raise ValueError("ahead counts the sets of one part")
        return self


class Trend(Settings):
    """The curves of one figure that has an axis."""

    table: str
    only: list[str] = []  # the curves that count; empty: all


class TrendTest(Settings):
    """Whether curves rise along the logarithm of their axis: the claim holds when each part does."""

    kind: Literal["trend"]
    parts: list[Trend] = Field(min_length=1)
    falls: bool = False  # the claim is that they fall
    untested: str = ""  # what else the claim says


class CellsTest(Settings):
    """Whether every printed cell of a table of terms comes out."""

    kind: Literal["cells"]
    table: str


class ShorterTest(Settings):
    """Whether inputs are shorter with the vocabulary of one column than with that of another, on every row."""

    kind: Literal["shorter"]
    table: str
    better: str
    than: str


class WholeTest(Settings):
    """Whether one vocabulary keeps more words of MeSH terms whole than another of the same size."""

    kind: Literal["whole"]
    better: str
    than: str


class SharesTest(Settings):
    """Whether simultaneous pretraining shows more core text and more pairs of documents than split files do."""

    kind: Literal["shares"]


class SizesTest(Settings):
    """Whether models built as described have as many parameters as printed."""

    kind: Literal["sizes"]
    printed: dict[str, int]  # model -> millions


class ShatteredTest(Settings):
    """Whether one vocabulary cuts fewer of the printed words of attention's examples than another, in each example."""

    kind: Literal["shattered"]
    better: str
    than: str


class TimesTest(Settings):
    """How many times as fast one model is as another, by repetitions that were timed in pairs: at least, or about."""

    kind: Literal["times"]
    table: str  # of repetitions
    better: list[str] = Field(min_length=1)  # models, each of which is faster
    than: str
    ratio: float = Field(default=1.0, gt=0)  # what has to be exceeded; with a margin, met
    margin: float = Field(default=0.0, ge=0)


# What a line of the audit follows from: precision and recall; the numbers averaged; two numbers; the cells that a text
# speaks of; the same thing in another table of the paper, or in another paper.
LineKind = Literal["F1", "average", "difference", "text", "two tables", "two papers"]


class AuditedTest(Settings):
    """Whether every printed number of these kinds follows from printed cells, rounding allowed."""

    kind: Literal["audited"]
    paper: str
    lines: list[LineKind]


class DefinitionsTest(Settings):
    """Whether entity F1 is as high as printed, and what counting words in place of entities adds."""

    kind: Literal["definitions"]
    table: str  # whose rows are sets
    column: str  # the model as printed
    over: str  # the column that it is said to gain on
    model: str  # ours
    protocol: str
    margin: float = Field(gt=0)  # points


ClaimTest = Annotated[
    PairedTest
    | TrendTest
    | CellsTest
    | ShorterTest
    | WholeTest
    | SharesTest
    | SizesTest
    | AuditedTest
    | ShatteredTest
    | TimesTest
    | DefinitionsTest,
    Field(discriminator="kind"),
]


class Claims(Settings):
    tests: dict[str, ClaimTest]


def finetuning_layers(key: str, dataset: str, family: str, scale: str) -> list[tuple[str, dict]]:
    """What says how a dataset is fine-tuned on, the last word last: where each comes from, and what it sets."""
    protocol, budget = load("protocols", key), load("scales", scale)
    layers = finetuning_layers(protocol.like, dataset, family, scale)[:-1] if protocol.like else []
    here = f"params/protocols.yaml, {key}"
    for settings in (protocol.all, protocol.families.get(family, {}), protocol.datasets.get(dataset, {})):
        layers.append((here, settings))
    changes = budget.finetuning.list_changes(family)
    so_far = {name: value for _, settings in layers for name, value in settings.items()}
    # What is searched is the protocol's; a budget limits the trials, or chooses among candidates of its own.
    apart = ("epochs", "batch_size", "learning_rate", "min_steps") if "trials" in so_far else ("trials",)
    changes = {name: value for name, value in changes.items() if name not in apart}
    if budget.sequence_length < so_far.get("max_length", 0):
        changes["max_length"] = budget.sequence_length
    if so_far.get("train_instances") and so_far["train_instances"] < changes.get("train_instances", 0):
        del changes["train_instances"]  # the smaller of two caps holds both
    return [*layers, (f"params/scales/{scale}.yaml", changes)]


def load_finetuning(key: str, dataset: str, family: str, scale: str) -> FinetuningSettings:
    """A dataset's settings under a protocol, with what the scale's budget changes of them; StudyError for bad ones.

    Steps that a protocol fixes stand for epochs at every scale; a budget's own epochs take their place.
    """
    merged: dict = {}
    for _, settings in finetuning_layers(key, dataset, family, scale):
        if "epochs" in settings and "steps" not in settings:
            merged.pop("steps", None)
        merged |= settings
    return check_settings(f"params/protocols.yaml, {key}, {dataset}", merged, FinetuningSettings)


def list_texts(model: str) -> list[str]:
    """What a model and those that it continues were pretrained on, the first text first."""
    settings = load("models", model)
    before = list_texts(settings.initial) if settings.initial else []
    return before + ([" and ".join(settings.corpora)] if settings.corpora else [])


def load_pretraining(key: str, scale: str) -> Pretraining:
    """How a registered model is pretrained at a scale: the one place where its file and the scale's meet.

    A scale with a recipe trains every model by it: the steps of a phase are the model's share of the pieces over the
    pieces in a step, at least one; the papers' caps on predictions and their duplicates are left out. A scale without
    one takes what is published for the model, from random weights. Either way a model that says so takes a part of the
    steps, with a whole rise and fall of the learning rate. A model that continues another with the same vocabulary has
    that one's weights, and no start of its own. A model without text has no phases.
    StudyError for a model without a published recipe where one is needed, or of a size that the scale has no body for.
    """
    model, budget = load("models", key), load("scales", scale)
    if model.size not in budget.bodies:
        raise StudyError(f"params/scales/{scale}.yaml: bodies has no '{model.size}', which model '{key}' needs")
    as_published = budget.pretraining.recipe is None
    recipe = model.published if as_published else budget.pretraining.recipe
    if recipe is None:
        raise StudyError(f"params/models/{key}.yaml: nothing is published of it, so scale '{scale}' cannot pretrain it")
    if as_published:
        phases = [p.model_copy(update={"steps": max(1, round(p.steps * model.part))}) for p in recipe.phases]
    else:
        phases = [give_steps(phase, recipe.tokens * model.share * model.part) for phase in recipe.phases]
    continued = model.initial and load("models", model.initial).vocabulary == model.vocabulary
    rises = isinstance(model.masked_share, list)
    start = [] if as_published or continued or model.start == "random" else recipe.start
    if model.initial:  # whose body knows its positions
        start = [part for part in start if part != "position waves"]
    return Pretraining(
        **recipe.model_dump(include=set(Optimization.model_fields)),
        architecture=model.architecture,
        body=budget.bodies[model.size],
        positions=max(budget.sequence_length, *(phase.length for phase in phases)),
        start=start,
        masked_share=model.masked_share if as_published or rises else recipe.masked_share or model.masked_share,
        phases=phases if model.corpora else [],
        duplicates=recipe.duplicates if as_published else None,
        masking=model.masking,
        pairs=model.pairs,
        adversarial=model.adversarial,
        mixing=model.mixing,
        core=len(model.core),
    )


def give_steps(phase: PhaseBudget, tokens: float) -> Phase:
    """A phase with the steps that its share of a budget of pieces is worth, at least one."""
    steps = round(tokens * phase.share) // (phase.batch_size * phase.length)
    return Phase(**phase.model_dump(exclude={"share"}), steps=max(1, steps))


@cache
def claim_tests() -> dict[str, ClaimTest]:
    """The tests of the claims that can be decided so far, by claim."""
    return read_yaml(paths.PARAMS / "claims.yaml", Claims).tests


PARAMETER_TYPES = {"str": str, "int": int, "float": (int, float), "bool": bool, "list": list, "dict": dict}


def check_parameter(notebook: str, name: str, value, declared: dict[str, str]) -> None:
    """StudyError for a parameter that a notebook does not have, or of another type than its annotation says.

    `declared`: the type of each parameter, by name. papermill itself only warns of an unknown name.
    """
    if name not in declared:
        raise unknown(f"parameter of {notebook}", name, declared)
    kind = declared[name]
    wrong_bool = isinstance(value, bool) and kind in ("int", "float")
    if kind in PARAMETER_TYPES and (wrong_bool or not isinstance(value, PARAMETER_TYPES[kind])):
        raise StudyError(f"{notebook}: parameter {name} must be {kind}, not {value!r}")


def explain_finetuning(key: str, dataset: str, family: str, scale: str) -> list[dict]:
    """Rows `setting, value, from`: each setting in force on a dataset, and the file that it came from."""
    origin = {name: where for where, layer in finetuning_layers(key, dataset, family, scale) for name in layer}
    found = load_finetuning(key, dataset, family, scale).model_dump()
    return [{"setting": name, "value": str(value), "from": origin.get(name, "")} for name, value in found.items()]
