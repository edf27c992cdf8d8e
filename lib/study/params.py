"""Settings: YAML files, checked on load. A directory listing is the registry of its kind.

Budget (how much compute) lives in params/scales/, science (what is computed) everywhere else.
"""

import re
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, TypeAdapter, ValidationError, model_validator

from lib.corpora.settings import Cleaning, Selection
from lib.errors import StudyError, unknown
from lib.finetuning.settings import FinetuningSettings, Numbers
from lib.modeling.settings import Body
from lib.places import show_path
from lib.pretraining.settings import Architecture, Mixing, Pairs, Pretraining, Start, Unit
from lib.settings import Settings
from lib.study import paths
from lib.training.settings import Optimization, Phase


class PhaseBudget(Settings):
    """A phase whose steps follow from a budget of pieces."""

    length: int = Field(gt=8)
    batch_size: int = Field(gt=0)
    learning_rate: float = Field(gt=0)
    warmup: float = Field(ge=0, lt=1)
    end: float = Field(default=0.0, ge=0, lt=1)
    share: float = Field(gt=0, le=1)  # of a model's pieces


class Recipe(Optimization):
    """How a scale pretrains every model, so that all are alike."""

    tokens: int = Field(gt=0)  # pieces; a model trains on its `share` of them
    start: Start  # what a model whose file says `start: skip-gram` starts with; all else is random
    masked_share: float | None = Field(default=None, gt=0, lt=1)  # in place of a model's own, unless that one rises
    phases: list[PhaseBudget] = Field(min_length=1)


class PublishedRecipe(Optimization):
    """How a paper, or the implementation that it names, pretrains a model: what the scale `paper` does."""

    phases: list[Phase] = Field(min_length=1)
    duplicates: int | None = None  # so many masks of one text, then the same again; None: always new ones
    source: str  # section of the paper, and where what it does not say is taken from


class PretrainingBudget(Settings):
    recipe: Recipe | None  # None: each model's own, as published
    micro_batch: int = Field(gt=0)  # pieces in memory at once on each device
    compile: bool  # by torch: worth it from about ten minutes of training
    workers: int = Field(ge=0)  # processes that prepare batches; 0: the training process itself
    held_out_blocks: int = Field(gt=0)
    evaluations: int = Field(gt=0)  # of the held-out loss, spread evenly over a phase


Family = Literal[
    "tagging", "pico", "relations", "similarity", "inference", "documents", "answers", "questions", "ranking"
]


class Changes(Settings):
    """What a scale changes of a protocol; lists are candidates, chosen between on the development set."""

    epochs: Numbers | None = None
    batch_size: Numbers | None = None
    learning_rate: list[float] | None = Field(default=None, min_length=1)
    min_steps: int | None = Field(default=None, gt=0)  # small sets are gone through more often
    train_instances: int | None = Field(default=None, gt=0)  # a cap; None: all
    folds: int | None = Field(default=None, gt=0)  # the first ones of a set that has several; None: all
    trials: int | None = Field(default=None, gt=1)  # of a protocol that searches


class FinetuningBudget(Changes):
    """What a scale changes for all, and for a family of tasks."""

    families: dict[Family, Changes] = {}

    def list_changes(self, family: str) -> dict:
        """What is changed for a family, its own word last."""
        own = self.families.get(family, Changes())
        return self.model_dump(exclude_none=True, exclude={"families"}) | own.model_dump(exclude_none=True)


# Of lib/study/analysis/baselines.py: they stand where models do, and are not pretrained.
BASELINES = ("tfidf-svm", "cnn", "bilstm")


class Instead(Settings):
    """What a scale runs in place of what tables and claims name, so that one run serves several of them."""

    models: dict[str, str] = {}  # that differ in their published steps alone, which the scale's recipe replaces
    protocols: dict[str, str] = {}  # of which the scale's budget leaves little


RunKey = tuple[str, str, str]  # model, dataset and protocol
Place = tuple[str, str, str]  # row, column and metric of a cell, as printed


class Panel(Settings):
    """Models that are fine-tuned on the same datasets under one protocol."""

    protocol: str
    models: list[str]
    datasets: list[str]


class Scale(Settings):
    title: str
    made_up: bool  # the data are generated, and no number is a finding
    text: Literal["samples", "full"]  # which sources the corpora are made of
    bodies: dict[Literal["small", "base", "large"], Body]
    vocabulary_size: int | None = Field(gt=0)  # at most; None: as the papers have it
    sequence_length: int = Field(gt=8)
    precision: Literal["float32", "auto"]  # auto: bfloat16 where the device computes in it
    threads: int = Field(gt=0)  # of one notebook; part of the budget, since sums depend on it
    processes: int | None = Field(default=1, gt=0)  # that pretrain one model; None: one for each GPU
    seeds: list[int] = Field(min_length=1)
    datasets: list[str] | None = None  # None: every dataset that is present
    models: list[str] = []  # pretrained and shown beside each other, besides those that tables need
    instead: Instead = Instead()
    panels: list[Panel] = []  # what is fine-tuned besides
    bar: str = ""  # the model of a paper, as its tables name it, whose printed scores those of the panels are to reach
    compared: list[str] | None = None  # the models whose every cell of a table is filled; None: all. Others: by panels
    pretraining: PretrainingBudget
    finetuning: FinetuningBudget

    def panel_runs(self) -> list[RunKey]:
        """Model, dataset and protocol of every run of the panels, whether or not it can be made."""
        return [
            (model, key, panel.protocol) for panel in self.panels for key in panel.datasets for model in panel.models
        ]


class Source(Settings):
    """Raw files of one format."""

    title: str
    reader: str  # a name in lib/corpora/readers.py
    files: str = Field(pattern=r"^[\w./-]+/[^/]+$")  # a glob below the data folder, with a folder of plain names
    leave_out: dict[str, str] = {}  # file name -> reason
    language: str = ""  # where the reader cannot know it
    access: Literal["public", "credentialed"] = "public"  # credentialed: no text may leave the data folder
    missing: str = "run ./run_all.sh data"  # how to get it


class Corpus(Settings):
    title: str
    papers: list[str]
    sources: list[str]  # of the papers, read at the scales whose text is "full"
    samples: list[str]  # what stands in for them elsewhere; of one PMID the last is kept, of one text the first
    cleaning: str
    selection: str | None = None
    part: float = Field(default=1.0, gt=0, le=1)  # of what would be kept; a larger one holds it
    differs: str


class Vocabulary(Settings):
    """Trained here on `corpora`, or published: a `file` below the data folder."""

    title: str
    cased: bool
    algorithm: Literal["wordpiece", "bpe", "unigram"] = "wordpiece"
    corpora: list[str] = []
    amplify: list[str] = []  # those of the corpora that are repeated until they are as large as the others
    size: int = Field(gt=0)  # a scale may ask for less
    file: str = ""
    language: Literal["en", "ja"] = "en"
    differs: str

    @model_validator(mode="after")
    def check(self):
        if bool(self.file) == bool(self.corpora):
            raise ValueError("give either corpora to train on, or the file of a published vocabulary")
        if not set(self.amplify) <= set(self.corpora) or self.amplify and set(self.amplify) == set(self.corpora):
            raise ValueError("amplify names some of the corpora, and leaves others to measure them by")
        return self


class Model(Settings):
    """What is pretrained on what, to predict what, from which weights."""

    title: str
    papers: list[str]  # that name it
    architecture: Architecture
    size: Literal["small", "base", "large"]
    vocabulary: str
    corpora: list[str]  # empty: not pretrained
    core: list[str] = []  # those of the corpora that are the small, special ones
    mixing: Mixing = "as they are"  # of several corpora
    objective: Literal["masked tokens", "replaced tokens"]
    pairs: Pairs
    masking: Unit
    masked_share: float | list[float]  # a list: of equal parts of the training, one after the other
    adversarial: bool = False
    start: Literal["random", "skip-gram"] = "random"  # skip-gram: as the scale's recipe says, from its own text
    initial: str | None = None  # the model that it continues; with another vocabulary, of its body alone
    share: float = Field(default=1.0, gt=0)  # of the scale's budget of pieces
    part: float = Field(default=1.0, gt=0, le=1)  # of the steps that its share, or what is published, comes to
    published: PublishedRecipe | None = None
    released: str = ""  # the hub name of the published weights
    parameters: float | None = None  # millions, as printed
    not_run: str = ""  # why it cannot be pretrained from what is at hand
    differs: str

    @model_validator(mode="after")
    def check(self):
        shares = self.masked_share if isinstance(self.masked_share, list) else [self.masked_share]
        if not shares or not all(0 < share < 1 for share in shares):
            raise ValueError("masked_share lies between 0 and 1")
        if self.core and (self.core != self.corpora[: len(self.core)] or self.core == self.corpora):
            raise ValueError("core names the first of the corpora, and leaves others as satellites")
        if (self.mixing == "as they are") == bool(self.core):
            raise ValueError("core corpora and a way to mix them go together")
        if (self.architecture == "electra") != (self.objective == "replaced tokens"):
            raise ValueError("ELECTRA, and nothing else, predicts replaced tokens")
        return self


class Protocol(Settings):
    """How one paper fine-tunes: settings for all, for a family, for a dataset; the later ones replace the earlier.

    `like`: another protocol, whose settings come before all of these.
    """

    title: str
    paper: str
    where: str
    like: str | None = None
    all: dict = {}
    families: dict[Family, dict] = {}
    datasets: dict[str, dict] = {}
    differs: str


class Table(Settings):
    """A published table; what fills its cells depends on its kind."""

    title: str
    paper: str
    table: str
    notebook: str
    not_run: dict[str, str] = {}  # a row or column of the paper that we cannot run -> why


class Run(Settings):
    """What a row, a column or all of a table says of the runs behind a cell; together they say everything."""

    model: str = ""
    dataset: str = ""
    mean_of: list[list[str]] = []  # datasets in place of one: the mean over groups of the mean over a group's sets
    protocol: str = ""


class ScoreTable(Table):
    """Scores of fine-tuned models: which runs fill which cell."""

    kind: Literal["scores"]
    all: Run  # of every cell where neither its row nor its column says otherwise
    rows: dict[str, Run]
    columns: dict[str, Run]
    ours_only: dict[str, Run] = {}  # columns of ours without a printed counterpart
    metrics: dict[str, str] = {}  # the paper's metric -> our score, where it is not the dataset's main one
    shown: str = ""  # the metric that is drawn and read first; none where each row has its own


class CurveTable(Table):
    """A figure whose values are not printed: scores of runs that are those of other tables, but for the columns."""

    kind: Literal["curves"]
    of: dict[str, str] = Field(min_length=1)  # tables of scores -> the metric, as printed; empty: each row's own
    rows: list[str] = []  # of these tables; empty: every one that is one dataset
    columns: dict[str, Run]  # what is set besides what the tables set in their column of that name, if they have one
    than: str = ""  # a column of the tables; what is shown is the gain over it, or nothing: the score itself
    axis: Literal["share of the text", "steps", "training instances"] | None = None  # None: a bar for each score
    along: Literal["columns", "rows"] = "columns"  # what the axis runs along: a curve for each row, or for each column
    sizes: str = ""  # the table of counts that prints the training instances
    said: str  # by the paper, of the figure


class Measure(Settings):
    """A number of a corpus's record, in the paper's unit."""

    of: Literal["words", "bytes"]
    unit: float = Field(gt=0)


class CorpusRow(Settings):
    """A corpus of ours, or those of its sources that stand for a row of the paper."""

    corpus: str
    sources: list[str] = []


class CorpusTable(Table):
    """Sizes of corpora."""

    kind: Literal["corpora"]
    rows: dict[str, CorpusRow]
    columns: dict[str, Measure]


class TermTable(Table):
    """Terms, whole or in pieces; the cells are in published/vocabulary_terms.csv."""

    kind: Literal["terms"]
    columns: dict[str, str]  # the paper's vocabulary -> ours
    ours_only: list[str] = []


class LengthColumn(Settings):
    vocabulary: str
    strip_accents: bool


class LengthTable(Table):
    """Mean input lengths in word pieces."""

    kind: Literal["lengths"]
    rows: dict[str, str]  # the paper's row -> dataset
    columns: dict[str, LengthColumn]
    other_vocabularies: dict[str, LengthColumn]  # what was tried in their place


class Count(Settings):
    """Another way to count a cell: what is not named is as in its row. Split `all` is every split together."""

    count: str = ""  # a name in lib/study/analysis/counts.py
    dataset: str = ""
    split: str = ""
    why: str


class CountRow(Settings):
    dataset: str
    count: str
    splits: dict[str, str] = {}  # column of the paper -> split, where it is not as in the other rows
    otherwise: dict[str, Count] = {}  # column of the paper -> what gives the printed number
    remarks: dict[str, str] = {}  # column of the paper -> what is known of a cell that nothing explains
    sum_of: Count | None = None  # what gives the sum of the row's printed numbers


class CountTable(Table):
    """Sizes of datasets."""

    kind: Literal["counts"]
    columns: dict[str, str]  # the paper's column -> our split
    rows: dict[str, CountRow]


class TimeTable(Table):
    """Days of pretraining, beside the seconds that a step of the same architectures takes on one machine."""

    kind: Literal["times"]
    rows: dict[str, str]  # the paper's row -> model
    beside: str  # the row that the others are compared with
    batch_size: int = Field(gt=0)  # rows in a timed step, the same for all
    repetitions: int = Field(gt=1)

    @model_validator(mode="after")
    def check(self):
        if self.beside not in self.rows:
            raise ValueError("beside names one of the rows")
        return self


AnyTable = Annotated[
    ScoreTable | CurveTable | CorpusTable | TermTable | LengthTable | CountTable | TimeTable,
    Field(discriminator="kind"),
]


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


KINDS = {
    "scales": Scale,
    "sources": Source,
    "selections": Selection,
    "cleaning": Cleaning,
    "corpora": Corpus,
    "vocabularies": Vocabulary,
    "models": Model,
    "protocols": Protocol,
    "tables": AnyTable,
}
SINGULAR = {"corpora": "corpus", "vocabularies": "vocabulary"}
LIKE = ("models", "corpora")  # whose files may say `like`, the key of another: that one's settings stand before theirs
OWN = ("title", "papers", "released", "differs")  # of one alone, whatever is like it


def keys(kind: str) -> list[str]:
    """The registered keys of a kind."""
    return sorted(path.stem for path in (paths.PARAMS / kind).glob("*.yaml"))


def locate(kind: str, key: str) -> Path:
    """The file of one key; StudyError with the nearest names when there is none."""
    if key not in keys(kind):
        raise unknown(SINGULAR.get(kind, kind.removesuffix("s")), key, keys(kind))
    return paths.PARAMS / kind / f"{key}.yaml"


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # the same parser in C, where PyYAML has it
    """YAML that says nothing twice: PyYAML itself takes the last of two equal keys without a word."""

    def construct_mapping(self, node, deep=False):
        found = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        if twice := {key for key in found if found.count(key) > 1}:
            raise yaml.constructor.ConstructorError(None, None, f"{', '.join(sorted(twice))} twice", node.start_mark)
        return super().construct_mapping(node, deep)


def parse_yaml(path: Path):
    """What a YAML file holds; StudyError when it is not there or not YAML."""
    where = show_path(path)
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader)
    except FileNotFoundError:
        raise StudyError(f"{where}: no such file") from None
    except yaml.YAMLError as error:
        raise StudyError(f"{where}: not valid YAML: {error}") from None


def read_yaml(path: Path, schema):
    """One checked YAML file; StudyError names the file, the field and what is wrong with it."""
    return check_settings(show_path(path), parse_yaml(path), schema)


def list_layers(kind: str, key: str) -> list[tuple[Path, dict]]:
    """The files that say the settings of one key, each with what it says, the last word last: two where one is `like`
    another. StudyError when that one does not exist, or is like a third.
    """
    path = locate(kind, split_seed(key)[0] if kind == "models" else key)
    content = parse_yaml(path)
    if kind not in LIKE or not isinstance(content, dict) or "like" not in content:
        return [(path, content)]
    try:
        other = locate(kind, str(content["like"]))
    except StudyError as error:
        raise StudyError(f"{show_path(path)}: like: {error}") from None
    before = parse_yaml(other)
    if not isinstance(before, dict) or "like" in before:
        raise StudyError(f"{show_path(path)}: like: '{other.stem}' is like another itself; name one that says all")
    shared = {name: value for name, value in before.items() if name not in OWN}
    return [(other, shared), (path, {name: value for name, value in content.items() if name != "like"})]


def check_settings(where: str, content, schema):
    """Settings of a schema; StudyError names the place, the field and what is wrong with it."""
    try:
        return TypeAdapter(schema).validate_python(content)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, e['loc'])) or 'the file'}: {e['msg']}"
            + (f" (got {e['input']!r})" if e["type"] not in ("missing", "extra_forbidden") else "")
            for e in error.errors()
        )
        raise StudyError(f"{where}: {problems}") from None


@cache
def load(kind: str, key: str):
    """The settings of one key; StudyError with the nearest names when there is none, and for what is wrong in it.

    A model pretrained again, `pubmedbert.2`, has those of its key, continues a model of its own seed, and is not the
    published one.
    """
    layers = list_layers(kind, key)
    content = layers[0][1] if len(layers) == 1 else layers[0][1] | layers[1][1]
    settings = check_settings(show_path(layers[-1][0]), content, KINDS[kind])
    seed = split_seed(key)[1] if kind == "models" else 1
    if seed == 1:
        return settings
    initial = settings.initial and name_model(settings.initial, seed)
    again = {"title": f"{settings.title}, pretraining {seed}", "initial": initial, "released": ""}
    return settings.model_copy(update=again)


def name_model(key: str, seed: int = 1) -> str:
    """A model's name in files and tables: its key, and the seed of its pretraining where it is not the first."""
    return key if seed == 1 else f"{key}.{seed}"


def split_seed(name: str) -> tuple[str, int]:
    """Key and seed of a registered model's name, `pubmedbert.2`; any other name is returned whole, with seed 1."""
    key, dot, seed = name.rpartition(".")
    if dot and re.fullmatch("[2-9]|[1-9][0-9]+", seed) and key in keys("models"):
        return key, int(seed)
    return name, 1


def is_model(name: str) -> bool:
    """Whether a name is a registered model's, of whatever seed."""
    return split_seed(name)[0] in keys("models")


def finetuning_layers(key: str, dataset: str, family: str, scale: str) -> list[tuple[str, dict]]:
    """What says how a dataset is fine-tuned on, the last word last: where each comes from, and what it sets."""
    protocol, budget = load("protocols", key), load("scales", scale)
    layers = finetuning_layers(protocol.like, dataset, family, scale)[:-1] if protocol.like else []
    here = f"params/protocols/{key}.yaml"
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
    return check_settings(f"params/protocols/{key}.yaml, {dataset}", merged, FinetuningSettings)


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


def explain(kind: str, key: str) -> list[dict]:
    """Rows `setting, value, from` for a page: each setting of a key, and the file that it came from.

    What stands inside another setting has a row of its own, named for both.
    """
    settings, layers = load(kind, key), list_layers(kind, key)
    origin = {name: show_path(path) for path, content in layers for name in content}
    return [
        {"setting": setting, "value": value, "from": origin.get(name, show_path(layers[-1][0]))}
        for name, content in settings.model_dump().items()
        for setting, value in flatten(name, content)
    ]


def flatten(name: str, content) -> list[tuple[str, str]]:
    """A setting as names and values that a person reads: `families, relations, max_length` and `256`."""
    if isinstance(content, list) and any(isinstance(part, dict) for part in content):
        content = {str(number): part for number, part in enumerate(content, 1)}
    if isinstance(content, dict) and content:
        return [line for inner, part in content.items() for line in flatten(f"{name}, {inner}", part)]
    if content is None or content in ([], {}, ""):
        return [(name, "none")]
    return [(name, ", ".join(map(str, content)) if isinstance(content, list) else str(content))]


def explain_finetuning(key: str, dataset: str, family: str, scale: str) -> list[dict]:
    """Rows `setting, value, from`: each setting in force on a dataset, and the file that it came from."""
    origin = {name: where for where, layer in finetuning_layers(key, dataset, family, scale) for name in layer}
    found = load_finetuning(key, dataset, family, scale).model_dump()
    return [{"setting": name, "value": str(value), "from": origin.get(name, "")} for name, value in found.items()]
