"""Schemas of the files in params/: scales, and the settings of the science.

Budget (how much compute) lives in params/scales/, science (what is computed) everywhere else.
"""

from typing import Literal

from pydantic import Field, PositiveInt, model_validator

from lib.finetuning.protocol import Numbers
from lib.modeling.shape import Body
from lib.pretraining.plan import Architecture, Mixing, Pairs, Start, Unit, check_together
from lib.settings import Settings, added
from lib.training.optimization import Optimization, Phase, Stretch


class PhaseBudget(Stretch):
    """A phase whose number of steps follows from a token budget."""

    share: float = Field(gt=0, le=1)  # share of a model's tokens


class Recipe(Optimization):
    """A scale's pretraining recipe, shared by all its models so that they are comparable."""

    tokens: int = Field(gt=0)  # a model trains on its `share` of them
    start: Start  # how models with `start: skip-gram` are initialized; everything else is random
    masked_share: float | None = Field(default=None, gt=0, lt=1)  # replaces a model's own, unless that is a rising list
    phases: list[PhaseBudget] = Field(min_length=1)


class PublishedRecipe(Optimization):
    """The pretraining recipe of a paper, or of the implementation that it names; used at scale `paper`."""

    phases: list[Phase] = Field(min_length=1)
    duplicates: int | None = None  # maskings of each text, reused in turn; None: a new masking every time
    source: str  # section of the paper, and the source of what it leaves out


class PretrainingBudget(Settings):
    recipe: Recipe | None  # None: each model's own, as published
    micro_batch: int = Field(gt=0)  # tokens in memory at once on each device
    compile: bool  # by torch; see lib/training/optimization.py
    workers: int = Field(ge=0)  # processes that prepare batches; 0: the training process itself
    held_out_blocks: int = Field(gt=0)
    evaluations: int = Field(gt=0)  # of the held-out loss, spread evenly over a phase


Family = Literal[
    "tagging", "pico", "relations", "similarity", "inference", "documents", "answers", "questions", "ranking"
]


class Changes(Settings):
    """A scale's changes to a protocol; lists are candidates, chosen on the development set."""

    epochs: Numbers | None = None
    batch_size: Numbers | None = None
    learning_rate: list[float] | None = Field(default=None, min_length=1)
    min_steps: int | None = Field(default=None, gt=0)  # small datasets get more epochs
    train_instances: int | None = Field(default=None, gt=0)  # a cap; None: all
    folds: int | None = Field(default=None, gt=0)  # only the first ones of a dataset with several; None: all
    trials: int | None = Field(default=None, gt=1)  # only for protocols that search


class FinetuningBudget(Changes):
    """A scale's changes to every protocol: for all tasks, and for single families."""

    first_candidate: bool = False  # take a protocol's first candidate and search nothing
    families: dict[Family, Changes] = {}

    def list_changes(self, family: str) -> dict:
        """Return the changes for a family: the shared ones, overridden by the family's own."""
        family_changes = self.families.get(family, Changes())
        shared = self.model_dump(exclude_none=True, include=set(Changes.model_fields))
        return shared | family_changes.model_dump(exclude_none=True)


# Classifiers of lib/study/classifiers.py: used like model keys, but not pretrained.
BASELINES = ("tfidf-svm", "cnn", "bilstm")
BASELINES_VERSION = 1  # raised when the same settings and examples give other scores


class Substitutes(Settings):
    """Substitutes for models and protocols that tables and claims name, so that one run serves several of them."""

    # A model in place of another differs only in published steps, which the scale's recipe replaces. An encoder takes a
    # model's place in tables of one model only.
    models: dict[str, str] = {}
    protocols: dict[str, str] = {}  # hardly differ under the scale's budget


RunKey = tuple[str, str, str]  # model, dataset and protocol


def name_model(key: str, seed: int) -> str:
    """Return a model's name in files and tables: its key, plus the pretraining seed unless that is 1."""
    return key if seed == 1 else f"{key}.{seed}"


class Panel(Settings):
    """Models that are fine-tuned on the same datasets under one protocol."""

    protocol: str
    models: list[str]
    datasets: list[str]


class Scale(Settings):
    title: str
    made_up: bool  # the data are generated, so no number is a finding
    text: Literal["samples", "full"]  # which sources the corpora are built from
    first_files: dict[str, PositiveInt] = {}  # source -> number of files to read, first by name; others: all
    # pretrained: every model is pretrained; as the papers: except those whose public weights the papers use; released:
    # none is pretrained, so only models with public weights are available
    weights: Literal["pretrained", "as the papers", "released"] = "pretrained"
    bodies: dict[Literal["small", "base", "large"], Body]
    vocabulary_size: int | None = Field(gt=0)  # at most; None: the papers' sizes
    sequence_length: int = Field(gt=8)
    precision: Literal["float32", "auto"]  # auto: bfloat16 if the device supports it
    threads: int = Field(gt=0)  # per notebook; in the budget because sums depend on it
    processes: int | None = Field(default=1, gt=0)  # per pretraining; None: one per GPU
    seeds: list[int] = Field(min_length=1)
    datasets: list[str] | None = None  # None: every dataset at hand
    shown_corpora: list[str] | None = None  # compared on pages; None: all that can be built
    shown_vocabularies: list[str] | None = None  # compared on pages; None: all that are available
    tables: list[str] | None = None  # published tables that the whole study makes; None: all
    models: list[str] = []  # pretrained and compared, in addition to those that tables need
    pretrainings: int = Field(default=1, gt=0)  # of each model, here and in the panels, by seeds 1, 2, ...
    substitutes: Substitutes = Substitutes()
    panels: list[Panel] = []  # fine-tuned in addition
    target: str = ""  # the model, as printed in a paper's tables, whose scores the panels aim for
    compared: list[str] | None = None  # models that get all of a table's cells; None: all. Others: by panels
    pretraining: PretrainingBudget
    finetuning: FinetuningBudget

    def list_models(self) -> list[str]:
        """List the names of `models`, each followed by its other pretrainings."""
        return [name_model(key, seed) for key in self.models for seed in range(1, self.pretrainings + 1)]

    def panel_runs(self) -> list[RunKey]:
        """List model, dataset and protocol of every panel run once, whether or not it can be made.

        Each dataset comes with all models, one pretraining seed after another.
        """
        seeds = range(1, self.pretrainings + 1)
        runs = [(name_model(model, seed), dataset, panel.protocol) for panel in self.panels
                for dataset in panel.datasets for seed in seeds for model in panel.models]  # fmt: skip
        return list(dict.fromkeys(runs))  # panels may share runs


class SourceSettings(Settings):
    """Raw files of one format."""

    title: str
    reader: str  # a name in lib/corpora/readers.py
    files: str = Field(pattern=r"^[\w./-]+/[^/]+$")  # a glob below the data folder; no wildcards in folders
    leave_out: dict[str, str] = {}  # file name -> reason
    language: str = ""  # if the reader cannot tell
    access: Literal["public", "credentialed"] = "public"  # credentialed: no text may leave the data folder
    missing: str = "run ./run_all.sh data"  # how to get it


class CorpusSettings(Settings):
    title: str
    papers: list[str]
    sources: list[str]  # the papers' sources, read at scales whose text is "full"
    samples: list[str]  # substitutes at other scales; the last document of a PMID and the first of a text are kept
    cleaning: str
    selection: str | None = None
    part: float = Field(default=1.0, gt=0, le=1)  # of the documents kept; a larger part includes a smaller one
    until: str = added("", pattern=r"^\d{4}-\d\d-\d\d$")  # last day of entry into PubMed, for `sources`
    differs: str


class VocabularySettings(Settings):
    """A vocabulary: trained here on `corpora`, or published as a `file` below the data folder."""

    title: str
    cased: bool
    algorithm: Literal["wordpiece", "bpe", "unigram"] = "wordpiece"
    corpora: list[str] = []
    amplify: list[str] = []  # corpora repeated until they are as large as the others
    size: int = Field(gt=0)  # a scale may set a smaller one
    file: str = ""
    comes_with: str = ""  # the model whose public weights include it, where a scale uses those
    language: Literal["en", "ja"] = "en"
    differs: str

    @model_validator(mode="after")
    def check(self):
        if bool(self.file) == bool(self.corpora):
            raise ValueError("give either corpora to train on, or the file of a published vocabulary")
        if not set(self.amplify) <= set(self.corpora) or self.amplify and set(self.amplify) == set(self.corpora):
            raise ValueError("amplify names some of the corpora, and leaves others to measure them by")
        return self


class ModelSettings(Settings):
    """A model to pretrain: its architecture, text, objective and initial weights."""

    title: str
    papers: list[str]  # papers that name it
    architecture: Architecture
    size: Literal["small", "base", "large"]
    vocabulary: str
    corpora: list[str]  # empty: not pretrained
    core: list[str] = []  # the small, specialized ones among the corpora
    mixing: Mixing = "as they are"  # how several corpora are mixed
    pairs: Pairs
    masking: Unit
    masked_share: float | list[float]  # a list: one value for each equal part of training
    adversarial: bool = False
    start: Literal["random", "skip-gram"] = "random"  # skip-gram: from its own text, as the scale's recipe says
    initial: str | None = None  # the model that it continues; only its body if the vocabularies differ
    share: float = Field(default=1.0, gt=0)  # of the scale's token budget
    part: float = Field(default=1.0, gt=0, le=1)  # of the steps given by its share or published recipe
    published: PublishedRecipe | None = None
    released: str = Field(default="", pattern="^([^/]+/[^/]+)?$")  # name of its public weights on the hub
    # Their revision, from repositories that pin it; empty: none was found, so the newest is used.
    revision: str = Field(default="", pattern="^([0-9a-f]{40})?$")
    as_released: bool = False  # the papers use its public weights; none pretrains it
    unreleased: str = ""  # why there are no public weights
    parameters: float | None = None  # millions, as printed
    not_run: str = ""  # why it cannot be pretrained with the data at hand
    differs: str

    @model_validator(mode="after")
    def check(self):
        shares = self.masked_share if isinstance(self.masked_share, list) else [self.masked_share]
        if not shares or not all(0 < share < 1 for share in shares):
            raise ValueError("masked_share lies between 0 and 1")
        if self.core and (self.core != self.corpora[: len(self.core)] or self.core == self.corpora):
            raise ValueError("core names the first of the corpora, and leaves others as satellites")
        check_together(self)
        return self


class PublishedEncoder(Settings):
    """An encoder with public weights that is in none of the papers."""

    title: str
    released: str = Field(pattern=r"^(\./.+|[^/]+/[^/]+)$")  # on the hub, or ./ and a folder of this repository
    revision: str = Field(default="", pattern="^([0-9a-f]{40})?$")  # empty: none was found, so the newest is used
    size: Literal["base", "large"]  # the BERT size with about the same running time
    parameters: float  # millions, as printed
    source: str  # its paper and pretraining text


class Protocol(Settings):
    """One paper's fine-tuning: settings for all tasks, a family and a dataset, each overriding those before it.

    `like`: another protocol, whose settings are applied first.
    """

    title: str
    paper: str
    where: str
    like: str | None = None
    all: dict = {}
    families: dict[Family, dict] = {}
    datasets: dict[str, dict] = {}
    differs: str
