"""The settings in force: how a model is pretrained, how it is fine-tuned on a dataset."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lib.errors import StudyError, unknown
from lib.finetuning.protocol import FinetuningSettings
from lib.pretraining.plan import Pretraining
from lib.study import paths
from lib.study.keys import KINDS, explain, find_kind, is_model, keys, load, load_tables, name_model, split_seed  # noqa: F401  # noqa: F401
from lib.study.papers import CurveTable, Run, ScoreTable  # noqa: F401 - callers take schemas and keys from here
from lib.study.parsing import check_settings
from lib.study.settings import BASELINES, Panel, PhaseBudget, RunKey, Scale  # noqa: F401
from lib.training.optimization import Optimization, Phase

if TYPE_CHECKING:
    from lib.study import Study

# Of a model, on pages alone.
TOLD = {"title", "papers", "published", "released", "revision", "as_released", "unreleased", "parameters", "not_run",
        "differs"}  # fmt: skip

NO_WEIGHTS = "no public weights of it are known"


@dataclass(frozen=True)
class Registered:
    """What is registered under a key, at a scale; StudyError with the nearest names for no such key."""

    kind: ClassVar[str]
    key: str
    study: "Study"

    def __post_init__(self):
        load(self.kind, self.key)

    @property
    def settings(self):
        """As the schema of its kind in KINDS has them."""
        return load(self.kind, self.key)


def finetuning_layers(key: str, dataset: str, family: str, scale: str) -> list[tuple[str, dict]]:
    """What says how a dataset is fine-tuned on, the last word last: where each comes from, and what it sets."""
    protocol, budget = load("protocols", key), load("scales", scale)
    layers = finetuning_layers(protocol.like, dataset, family, scale)[:-1] if protocol.like else []
    here = f"params/protocols.yaml, {key}"
    for settings in (protocol.all, protocol.families.get(family, {}), protocol.datasets.get(dataset, {})):
        layers.append((here, settings))
    changes = budget.finetuning.list_changes(family)
    so_far = {}
    for _, settings in layers:
        so_far |= settings
    # What is searched is the protocol's; a budget limits the trials, or chooses among candidates of its own.
    apart = ("epochs", "batch_size", "learning_rate", "min_steps") if "trials" in so_far else ("trials",)
    changes = {name: value for name, value in changes.items() if name not in apart}
    if budget.sequence_length < so_far.get("max_length", 0):
        changes["max_length"] = budget.sequence_length
    if so_far.get("train_instances") and so_far["train_instances"] < changes.get("train_instances", 0):
        del changes["train_instances"]  # the smaller of two caps holds both
    if budget.finetuning.first_candidate:
        chosen = so_far | changes
        changes |= {name: chosen[name][:1] for name in ("epochs", "batch_size", "learning_rate") if name in chosen}
        changes["trials"] = None
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
    origin = {}
    for where, layer in finetuning_layers(key, dataset, family, scale):
        origin |= dict.fromkeys(layer, where)
    found = load_finetuning(key, dataset, family, scale).model_dump()
    return [{"setting": name, "value": str(value), "from": origin.get(name, "")} for name, value in found.items()]


def is_released(key: str, scale: str) -> bool:
    """Whether a model's weights at a scale are its public ones, or would be: nothing of it is pretrained."""
    weights, kind = load("scales", scale).weights, find_kind(key)
    if kind != "models":
        return kind == "encoders"
    return weights == "released" or weights == "as the papers" and load("models", key).as_released


def why_no_weights(key: str, scale: str) -> str:
    """Why a model cannot be had at a scale, neither pretrained nor released, or an empty string when it can.

    Empty too for what is no registered model: somebody's encoder, or a classifier.
    """
    if not (kind := find_kind(key)):
        return ""
    model = load(kind, key)
    if not is_released(key, scale):
        return model.not_run
    if not model.released:
        return model.unreleased or NO_WEIGHTS
    folder = paths.released(model.released)
    return f"no folder {model.released} in $RELEASED" if folder and not folder.is_dir() else ""


def say_released(key: str) -> str:
    """Where a model's public weights lie and at which revision; that none was looked up, or that there are none."""
    model = load(find_kind(key), key)
    if not model.released:
        return model.unreleased or NO_WEIGHTS
    if model.released.startswith("./"):
        return f"{model.released} of this repository"
    where = "of $RELEASED" if paths.released(model.released) else model.revision or "revision unverified: the newest"
    return f"{model.released}, {where}"


def identify_weights(key: str, scale: str) -> dict:
    """All settings that a model's weights follow from but for what its machine decides: in its record, and what its
    job is done again for."""
    from lib.pretraining import embeddings  # here, as tokenizers take a while

    model, budget = load("models", key), load("scales", scale)
    return (
        model.model_dump(exclude=TOLD)
        | load_pretraining(key, scale).model_dump(exclude={"core"})
        | budget.pretraining.model_dump(include={"compile", "micro_batch", "held_out_blocks", "evaluations"})
        | {"threads": budget.threads, "seed": list_seeds(key, scale)[0]}
        | {"made of": embeddings.list_versions()}
    )


def list_seeds(model: str, scale: str) -> list[int]:
    """The scale's seeds; of a model's second pretraining and each further one all are one more."""
    return [seed + split_seed(model)[1] - 1 for seed in load("scales", scale).seeds]
