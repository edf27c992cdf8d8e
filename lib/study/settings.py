"""What the files of params/ say: scales and the science, each kind with its schema.

Budget (how much compute) lives in params/scales/, science (what is computed) everywhere else.
"""

from typing import Literal

from pydantic import Field, PositiveInt, model_validator

from lib.finetuning.protocol import Numbers
from lib.modeling.shape import Body
from lib.pretraining.plan import Architecture, Mixing, Pairs, Start, Unit
from lib.settings import Settings, added
from lib.training.optimization import Optimization, Phase, Stretch


class PhaseBudget(Stretch):
    """A phase whose steps follow from a budget of pieces."""

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
    compile: bool  # by torch, as lib/training/optimization.py says
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

    first_candidate: bool = False  # of those that a protocol chooses between, and nothing is searched
    families: dict[Family, Changes] = {}

    def list_changes(self, family: str) -> dict:
        """What is changed for a family, its own word last."""
        own = self.families.get(family, Changes())
        shared = self.model_dump(exclude_none=True, include=set(Changes.model_fields))
        return shared | own.model_dump(exclude_none=True)


# Of lib/study/classifiers.py: they stand where models do, and are not pretrained.
BASELINES = ("tfidf-svm", "cnn", "bilstm")
BASELINES_VERSION = 1  # raised when the same settings and examples give other scores


class Substitutes(Settings):
    """What a scale runs in place of what tables and claims name, so that one run serves several of them."""

    models: dict[str, str] = {}  # that differ in their published steps alone, which the scale's recipe replaces
    protocols: dict[str, str] = {}  # of which the scale's budget leaves little


RunKey = tuple[str, str, str]  # model, dataset and protocol


def name_model(key: str, seed: int) -> str:
    """A model's name in files and tables: its key, and the seed of its pretraining where it is not the first."""
    return key if seed == 1 else f"{key}.{seed}"


class Panel(Settings):
    """Models that are fine-tuned on the same datasets under one protocol."""

    protocol: str
    models: list[str]
    datasets: list[str]


class Scale(Settings):
    title: str
    made_up: bool  # the data are generated, and no number is a finding
    text: Literal["samples", "full"]  # which sources the corpora are made of
    first_files: dict[str, PositiveInt] = {}  # how many of a source's files are read, by name; of other sources all
    # pretrained: every model is; as the papers: but for those whose public weights the papers take; released: none is,
    # and only those with public weights are there
    weights: Literal["pretrained", "as the papers", "released"] = "pretrained"
    bodies: dict[Literal["small", "base", "large"], Body]
    vocabulary_size: int | None = Field(gt=0)  # at most; None: as the papers have it
    sequence_length: int = Field(gt=8)
    precision: Literal["float32", "auto"]  # auto: bfloat16 where the device computes in it
    threads: int = Field(gt=0)  # of one notebook; part of the budget, since sums depend on it
    processes: int | None = Field(default=1, gt=0)  # that pretrain one model; None: one for each GPU
    seeds: list[int] = Field(min_length=1)
    datasets: list[str] | None = None  # None: every dataset that is present
    shown_corpora: list[str] | None = None  # that pages set beside each other; None: all that can be built
    shown_vocabularies: list[str] | None = None  # likewise; None: all that can be had
    tables: list[str] | None = None  # published ones that the whole study makes; None: all
    models: list[str] = []  # pretrained and shown beside each other, besides those that tables need
    pretrainings: int = Field(default=1, gt=0)  # of each model and of those of the panels, by their seeds
    substitutes: Substitutes = Substitutes()
    panels: list[Panel] = []  # what is fine-tuned besides
    target: str = ""  # the model, as a paper's tables name it, whose printed scores the panels are to reach
    compared: list[str] | None = None  # the models whose every cell of a table is filled; None: all. Others: by panels
    pretraining: PretrainingBudget
    finetuning: FinetuningBudget

    def list_models(self) -> list[str]:
        """The names in files of `models`, one after the other with all its pretrainings."""
        return [name_model(key, seed) for key in self.models for seed in range(1, self.pretrainings + 1)]

    def panel_runs(self) -> list[RunKey]:
        """Model, dataset and protocol of every run of the panels, whether or not it can be made.

        Each set with all models, pretraining after pretraining.
        """
        seeds = range(1, self.pretrainings + 1)
        return [(name_model(model, seed), key, panel.protocol) for panel in self.panels for key in panel.datasets
                for seed in seeds for model in panel.models]  # fmt: skip


class SourceSettings(Settings):
    """Raw files of one format."""

    title: str
    reader: str  # a name in lib/corpora/readers.py
    files: str = Field(pattern=r"^[\w./-]+/[^/]+$")  # a glob below the data folder, with a folder of plain names
    leave_out: dict[str, str] = {}  # file name -> reason
    language: str = ""  # where the reader cannot know it
    access: Literal["public", "credentialed"] = "public"  # credentialed: no text may leave the data folder
    missing: str = "run ./run_all.sh data"  # how to get it


class CorpusSettings(Settings):
    title: str
    papers: list[str]
    sources: list[str]  # of the papers, read at the scales whose text is "full"
    samples: list[str]  # what stands in for them elsewhere; of one PMID the last is kept, of one text the first
    cleaning: str
    selection: str | None = None
    part: float = Field(default=1.0, gt=0, le=1)  # of what would be kept; a larger one holds it
    until: str = added("", pattern=r"^\d{4}-\d\d-\d\d$")  # the last day of entry into PubMed, of the papers' sources
    differs: str


class VocabularySettings(Settings):
    """Trained here on `corpora`, or published: a `file` below the data folder."""

    title: str
    cased: bool
    algorithm: Literal["wordpiece", "bpe", "unigram"] = "wordpiece"
    corpora: list[str] = []
    amplify: list[str] = []  # those of the corpora that are repeated until they are as large as the others
    size: int = Field(gt=0)  # a scale may ask for less
    file: str = ""
    comes_with: str = ""  # the model with whose public weights it comes, where a scale takes these
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
    """What is pretrained on what, to predict what, from which weights."""

    title: str
    papers: list[str]  # that name it
    architecture: Architecture
    size: Literal["small", "base", "large"]
    vocabulary: str
    corpora: list[str]  # empty: not pretrained
    core: list[str] = []  # those of the corpora that are the small, special ones
    mixing: Mixing = "as they are"  # of several corpora
    pairs: Pairs
    masking: Unit
    masked_share: float | list[float]  # a list: of equal parts of the training, one after the other
    adversarial: bool = False
    start: Literal["random", "skip-gram"] = "random"  # skip-gram: as the scale's recipe says, from its own text
    initial: str | None = None  # the model that it continues; with another vocabulary, of its body alone
    share: float = Field(default=1.0, gt=0)  # of the scale's budget of pieces
    part: float = Field(default=1.0, gt=0, le=1)  # of the steps that its share, or what is published, comes to
    published: PublishedRecipe | None = None
    released: str = Field(default="", pattern="^([^/]+/[^/]+)?$")  # the hub's name of its public weights
    # Of these, as repositories that pin them have it; empty: none was found, and the newest is taken.
    revision: str = Field(default="", pattern="^([0-9a-f]{40})?$")
    as_released: bool = False  # the papers take its public weights, and none of them pretrains it
    unreleased: str = ""  # why there are none to fetch
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
        if self.architecture == "electra" and (self.pairs != "none" or self.adversarial):
            raise ValueError("ELECTRA judges no pairs and has no adversarial training: pairs: none, adversarial: false")
        return self


class PublishedEncoder(Settings):
    """Public weights that are in none of the papers."""

    title: str
    released: str = Field(pattern=r"^(\./.+|[^/]+/[^/]+)$")  # on the hub, or ./ and a folder of this repository
    revision: str = Field(default="", pattern="^([0-9a-f]{40})?$")  # empty: none was found, and the newest is taken
    size: Literal["base", "large"]  # of the BERT that takes about as long
    parameters: float  # millions, as printed
    source: str  # its paper, and what it was pretrained on


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
