"""The settings of params/: the registered keys of each kind, and what is in force in pretraining and fine-tuning."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from lib.corpora.rules import Cleaning, Selection
from lib.errors import StudyError, unknown
from lib.finetuning.protocol import SEARCHED, FinetuningSettings
from lib.places import show_path
from lib.pretraining.plan import Pretraining
from lib.study import paths
from lib.study.papers import AnyTable, CurveTable, Paper, Run, ScoreTable, build_table  # noqa: F401 - for callers
from lib.study.parsing import check_settings, parse_yaml, read_yaml, show_place
from lib.study.settings import (  # noqa: F401 - for callers
    BASELINES,
    CorpusSettings,
    ModelSettings,
    Panel,
    PhaseBudget,
    Protocol,
    PublishedEncoder,
    RunKey,
    Scale,
    SourceSettings,
    VocabularySettings,
    name_model,
)
from lib.training.optimization import Optimization, Phase

if TYPE_CHECKING:
    from lib.study import Study

KINDS = {
    "scales": Scale,
    "sources": SourceSettings,
    "selections": Selection,
    "cleaning": Cleaning,
    "corpora": CorpusSettings,
    "vocabularies": VocabularySettings,
    "models": ModelSettings,
    "encoders": PublishedEncoder,
    "protocols": Protocol,
    "tables": AnyTable,
}
FOLDERS = ("scales", "models")  # kinds with a file for each key
SINGULAR = {"corpora": "corpus", "vocabularies": "vocabulary"}
LIKE = ("scales", "models", "corpora")  # kinds whose settings may build on those of a `like` key
# Settings that are not taken over from a `like` key.
OWN = ("title", "papers", "released", "revision", "unreleased", "differs")
# Settings of a model that only pages use.
TOLD = {"title", "papers", "published", "released", "revision", "as_released", "unreleased", "parameters", "not_run",
        "differs"}  # fmt: skip
NO_WEIGHTS = "no public weights of it are known"


@dataclass(frozen=True)
class Place:
    """The location of one key's settings: a file of its own, or a place inside the file of its kind."""

    path: Path
    inside: tuple[str, ...] = ()  # the keys that lead there

    def __str__(self) -> str:
        return ", ".join((show_path(self.path), *self.inside))

    @property
    def where(self) -> str:
        """The location as errors name it, with its line."""
        return show_place(self.path, *self.inside) if self.inside else str(self)

    @property
    def content(self):
        data = parse_yaml(self.path)
        for key in self.inside:
            data = data[key]
        return data


def list_entries(kind: str) -> dict[str, Place]:
    """Return the registered keys of a kind, sorted, each with its location."""
    if kind == "tables":  # a paper's tables are in its file, by number
        entries = {}
        for path in (paths.PARAMS / "papers").glob("*.yaml"):
            for number in read_yaml(path, Paper).tables:
                entries[f"{path.stem}-{number}"] = Place(path, ("tables", number))
    elif kind in FOLDERS:
        folder = paths.PARAMS / kind
        return list_files(folder, folder.stat().st_mtime_ns)
    else:
        path = paths.PARAMS / f"{kind}.yaml"
        entries = {key: Place(path, (key,)) for key in read_yaml(path, dict[str, dict])}
    return dict(sorted(entries.items()))


@cache
def list_files(folder: Path, changed: int) -> dict[str, Place]:
    """Return the keys of a folder, sorted, each with its file.

    `changed`: the folder's modification time, so that a changed folder is listed again.
    """
    return dict(sorted((path.stem, Place(path)) for path in folder.glob("*.yaml")))


def keys(kind: str) -> list[str]:
    """List the registered keys of a kind."""
    return list(list_entries(kind))


def locate_settings(kind: str, key: str) -> Place:
    """Return the location of one key's settings. Raises StudyError with the nearest names if the key is unknown."""
    entries = list_entries(kind)
    if key not in entries:
        raise unknown(SINGULAR.get(kind, kind.removesuffix("s")), key, entries)
    return entries[key]


def list_setting_layers(kind: str, key: str, below: tuple[Place, ...] = ()) -> list[tuple[Place, dict]]:
    """Return the layers of one key's settings, each with its location; later layers override earlier ones.

    A key that is `like` another has more than one layer. Raises StudyError if the other does not exist or is itself
    `like` this one.
    """
    entry = locate_settings(kind, split_seed(key)[0] if kind == "models" else key)
    content = build_table(entry.path, entry.inside[-1]) if kind == "tables" else entry.content
    if kind not in LIKE or not isinstance(content, dict) or "like" not in content:
        return [(entry, content)]
    other_key = str(content["like"])
    try:
        other = locate_settings(kind, other_key)
    except StudyError as error:
        raise StudyError(f"{entry.where}: like: {error}") from None
    if not isinstance(other.content, dict) or other in (*below, entry):
        raise StudyError(f"{entry.where}: like: '{other_key}' is like this one; name one that says all")
    inherited = [
        (place, {name: value for name, value in layer.items() if name not in OWN})
        for place, layer in list_setting_layers(kind, other_key, (*below, entry))
    ]
    return [*inherited, (entry, {name: value for name, value in content.items() if name != "like"})]


@cache
def load(kind: str, key: str):
    """Return the settings of one key.

    A model pretrained again, such as `pubmedbert.2`, has the settings of its key, but continues a model of its own seed
    and is not the published one. Raises StudyError with the nearest names if the key is unknown, and for settings that
    are not valid.
    """
    layers = list_setting_layers(kind, key)
    content = layers[0][1]
    for _, layer in layers[1:]:
        content = content | layer
    settings = check_settings(layers[-1][0].where, content, KINDS[kind])
    seed = split_seed(key)[1] if kind == "models" else 1
    if seed == 1:
        return settings
    changes = {
        "title": f"{settings.title}, pretraining {seed}",
        "initial": settings.initial and name_model(settings.initial, seed),
        "released": "",
        "as_released": False,
    }
    return settings.model_copy(update=changes)


def load_tables(*kinds: str) -> dict:
    """Load the published tables and figures of some kinds, or of all, by key."""
    tables = {key: load("tables", key) for key in keys("tables")}
    return {key: table for key, table in tables.items() if not kinds or table.kind in kinds}


def split_seed(name: str) -> tuple[str, int]:
    """Split a registered model's name, `pubmedbert.2`, into key and seed; return other names whole, with seed 1."""
    key, dot, seed = name.rpartition(".")
    if dot and re.fullmatch("[2-9]|[1-9][0-9]+", seed) and key in list_entries("models"):
        return key, int(seed)
    return name, 1


def is_model(name: str) -> bool:
    """Return whether a name is a registered model's, with any seed."""
    return split_seed(name)[0] in list_entries("models")


def find_kind(name: str) -> str:
    """Return the kind of a model's name: `models` (which the study pretrains) or `encoders`; else empty."""
    return "models" if is_model(name) else "encoders" if name in keys("encoders") else ""


def explain(kind: str, key: str) -> list[dict]:
    """Return rows `setting, value, from` for a page: each setting of a key, and the file that it comes from.

    A nested setting has a row of its own, named for both levels.
    """
    origin, rows = {}, []
    for entry, content in list_setting_layers(kind, key):
        origin |= dict.fromkeys(content, str(entry))
    for name, content in load(kind, key).model_dump().items():
        for setting, value in flatten_settings(name, content):
            rows.append({"setting": setting, "value": value, "from": origin.get(name, str(entry))})
    return rows


def flatten_settings(name: str, content) -> list[tuple[str, str]]:
    """Return a setting as readable names and values, such as `families, relations, max_length` and `256`."""
    if isinstance(content, list) and any(isinstance(value, dict) for value in content):
        content = {str(number): value for number, value in enumerate(content, 1)}
    if isinstance(content, dict) and content:
        rows = []
        for key, value in content.items():
            rows += flatten_settings(f"{name}, {key}", value)
        return rows
    if content in (None, [], {}, ""):
        return [(name, "none")]
    if isinstance(content, list):
        return [(name, ", ".join(map(str, content)))]
    return [(name, str(content))]


@dataclass(frozen=True)
class Registered:
    """A registered key at a scale. Raises StudyError with the nearest names if there is no such key."""

    kind: ClassVar[str]
    key: str
    study: "Study"

    def __post_init__(self):
        load(self.kind, self.key)

    @property
    def settings(self):
        """The settings of the key, in the schema of its kind in KINDS."""
        return load(self.kind, self.key)


def list_protocol_layers(key: str, dataset: str, family: str, below: tuple[str, ...] = ()) -> list[tuple[str, dict]]:
    """List the layers of a protocol's settings on a dataset, each with its origin; later ones override earlier ones.

    `below`: the protocols that are `like` this one. Raises StudyError if this one is itself `like` one of them.
    """
    protocol, origin = load("protocols", key), f"params/protocols.yaml, {key}"
    if protocol.like in (*below, key):
        raise StudyError(f"{origin}: like: '{protocol.like}' is like this one; name one that says all")
    layers = list_protocol_layers(protocol.like, dataset, family, (*below, key)) if protocol.like else []
    for settings in (protocol.all, protocol.families.get(family, {}), protocol.datasets.get(dataset, {})):
        layers.append((origin, settings))
    return layers


def finetuning_layers(key: str, dataset: str, family: str, scale: str) -> list[tuple[str, dict]]:
    """List the layers of `list_protocol_layers`, and last the changes of the scale's budget."""
    layers, budget = list_protocol_layers(key, dataset, family), load("scales", scale)
    changes = budget.finetuning.list_changes(family)
    merged = {}
    for _, settings in layers:
        merged |= settings
    # A protocol that searches keeps its search space and takes a budget's trials; others take a budget's candidates.
    excluded = (*SEARCHED, "min_steps") if "trials" in merged else ("trials",)
    changes = {name: value for name, value in changes.items() if name not in excluded}
    if budget.sequence_length < merged.get("max_length", 0):
        changes["max_length"] = budget.sequence_length
    if merged.get("train_instances") and merged["train_instances"] < changes.get("train_instances", 0):
        del changes["train_instances"]  # the smaller cap applies
    if budget.finetuning.first_candidate:
        combined = merged | changes
        changes |= {name: combined[name][:1] for name in SEARCHED if name in combined}
        changes["trials"] = None
    return [*layers, (f"params/scales/{scale}.yaml", changes)]


def load_finetuning(key: str, dataset: str, family: str, scale: str) -> FinetuningSettings:
    """Return a dataset's settings under a protocol, with the changes of the scale's budget.

    Steps that a protocol fixes replace epochs at every scale, unless the budget has epochs of its own.
    Raises StudyError if settings are invalid.
    """
    merged: dict = {}
    for _, settings in finetuning_layers(key, dataset, family, scale):
        if "epochs" in settings and "steps" not in settings:
            merged.pop("steps", None)
        merged |= settings
    return check_settings(f"params/protocols.yaml, {key}, {dataset}", merged, FinetuningSettings)


def list_texts(model: str) -> list[str]:
    """List the corpora that a model and those it continues were pretrained on, in order of training."""
    settings = load("models", model)
    earlier_texts = list_texts(settings.initial) if settings.initial else []
    return earlier_texts + ([" and ".join(settings.corpora)] if settings.corpora else [])


def load_pretraining(key: str, scale: str) -> Pretraining:
    """Return a registered model's pretraining at a scale: the only place where its file and the scale's meet.

    A scale with a recipe trains every model by it. The steps of a phase are then the model's share of the tokens
    divided by the tokens in a step, at least one; the papers' caps on predictions and their duplicates are left out. A
    scale without a recipe uses the model's published one, from random weights. Either way a model's `part` reduces the
    steps, and the learning rate still rises and falls completely. A model that continues another with the same
    vocabulary has that model's weights, and no start of its own. A model without text has no phases.
    Raises StudyError if a published recipe is needed and missing, or if the scale has no body of the model's size.
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
    if model.initial:  # its body has learnt positions
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
    """Return a phase with the number of steps that its share of `tokens` allows, at least one."""
    steps = round(tokens * phase.share) // (phase.batch_size * phase.length)
    return Phase(**phase.model_dump(exclude={"share"}), steps=max(1, steps))


PARAMETER_TYPES = {"str": str, "int": int, "float": (int, float), "bool": bool, "list": list, "dict": dict}


def check_parameter(notebook: str, name: str, value, declared: dict[str, str]) -> None:
    """Raise StudyError if a notebook does not have a parameter, or annotates it with another type.

    `declared`: the type of each parameter, by name. papermill itself only warns about an unknown name.
    """
    if name not in declared:
        raise unknown(f"parameter of {notebook}", name, declared)
    kind = declared[name]
    wrong_bool = isinstance(value, bool) and kind in ("int", "float")
    if kind in PARAMETER_TYPES and (wrong_bool or not isinstance(value, PARAMETER_TYPES[kind])):
        raise StudyError(f"{notebook}: parameter {name} must be {kind}, not {value!r}")


def explain_finetuning(key: str, dataset: str, family: str, scale: str) -> list[dict]:
    """Return rows `setting, value, from`: each setting in force on a dataset, and the file it comes from."""
    origins = {}
    for origin, layer in finetuning_layers(key, dataset, family, scale):
        origins |= dict.fromkeys(layer, origin)
    settings = load_finetuning(key, dataset, family, scale).model_dump()
    return [{"setting": name, "value": str(value), "from": origins.get(name, "")} for name, value in settings.items()]


def is_released(key: str, scale: str) -> bool:
    """Return whether a scale uses a model's public weights, if there are any, instead of pretraining it."""
    weights, kind = load("scales", scale).weights, find_kind(key)
    if kind != "models":
        return kind == "encoders"
    return weights == "released" or weights == "as the papers" and load("models", key).as_released


def why_no_weights(key: str, scale: str) -> str:
    """Return why a scale has no weights for a model, pretrained or released, or an empty string if it has.

    Also empty for names that are not registered: a user's encoder, or a classifier.
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


def describe_weights(key: str) -> str:
    """Describe where a model's public weights are and at which revision, or why there are none."""
    model = load(find_kind(key), key)
    if not model.released:
        return model.unreleased or NO_WEIGHTS
    if model.released.startswith("./"):
        return f"{model.released} of this repository"
    location = "of $RELEASED" if paths.released(model.released) else model.revision or "revision unverified: the newest"
    return f"{model.released}, {location}"


def identify_weights(key: str, scale: str) -> dict:
    """Return all settings that determine a model's weights, except those that its machine decides.

    They are kept in its record; its job reruns when they change.
    """
    from lib.pretraining import embeddings  # imported here because tokenizers takes a while

    model, budget = load("models", key), load("scales", scale)
    return (
        model.model_dump(exclude=TOLD)
        | load_pretraining(key, scale).model_dump(exclude={"core"})
        | budget.pretraining.model_dump(include={"compile", "micro_batch", "held_out_blocks", "evaluations"})
        | {"threads": budget.threads, "seed": list_seeds(key, scale)[0]}
        | {"made of": embeddings.list_versions()}
    )


def list_seeds(model: str, scale: str) -> list[int]:
    """List the scale's seeds, raised by one for each further pretraining of the model."""
    return [seed + split_seed(model)[1] - 1 for seed in load("scales", scale).seeds]
