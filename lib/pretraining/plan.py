"""Settings of pretraining."""

from typing import Literal

from pydantic import model_validator

from lib.modeling.shape import Body
from lib.training.optimization import Optimization, Phase

VERSION = 3  # increased when the same settings and text give different weights: batches, masks, objectives, the loop
Start = list[Literal["word vectors", "token counts", "position waves"]]  # initial embeddings, output bias, positions
Architecture = Literal["bert", "albert", "electra"]
Pairs = Literal["none", "next sentence", "sentence order"]
Unit = Literal["word-piece", "whole-word", "n-gram"]
Mixing = Literal["as they are", "split files", "simultaneous"]


def check_together(settings) -> None:
    """Raise ValueError if `mixing` and `core`, or `architecture`, `pairs` and `adversarial`, do not fit each other."""
    if (settings.mixing == "as they are") == bool(settings.core):
        raise ValueError("core corpora and a way to mix them go together")
    if settings.architecture == "electra" and (settings.pairs != "none" or settings.adversarial):
        raise ValueError("ELECTRA judges no pairs and has no adversarial training: pairs: none, adversarial: false")


class Pretraining(Optimization):
    """Settings of a model's pretraining, whatever its text and vocabulary."""

    architecture: Architecture
    body: Body
    positions: int  # the longest input of the body, in tokens
    phases: list[Phase]  # none: the weights stay at their start
    start: Start = []  # empty: random weights
    masking: Unit = "word-piece"
    masked_share: float | list[float] = 0.15  # a list: for equal parts of the training, in turn
    pairs: Pairs = "none"
    adversarial: bool = False
    mixing: Mixing = "as they are"  # how several corpora are mixed
    core: int = 0  # how many corpora, from the first, are the small, special ones
    duplicates: int | None = None  # how many different masks a text gets before they repeat; None: always new ones

    @model_validator(mode="after")
    def check(self):
        check_together(self)
        return self

    @property
    def version(self) -> int:
        """The version of the code behind the weights: the previous one if the newest left them unchanged."""
        return 2 if self.architecture == "bert" and not self.adversarial else VERSION

    @property
    def embedding_width(self) -> int:
        """The width of the embedding table, which BERT does not factorize."""
        return self.body.hidden if self.architecture == "bert" else self.body.embedding
