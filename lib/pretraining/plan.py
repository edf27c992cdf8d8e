"""Settings of pretraining."""

from typing import Literal

from pydantic import model_validator

from lib.modeling.shape import Body
from lib.training.optimization import Optimization, Phase

VERSION = 3  # raised when the same settings and text give other weights: batches, masks, objectives, the loop
Start = list[Literal["word vectors", "token counts", "position waves"]]  # of embeddings, output bias, positions
Architecture = Literal["bert", "albert", "electra"]
Pairs = Literal["none", "next sentence", "sentence order"]
Unit = Literal["word-piece", "whole-word", "n-gram"]
Mixing = Literal["as they are", "split files", "simultaneous"]


class Pretraining(Optimization):
    """How a model is pretrained, whatever its text and its vocabulary."""

    architecture: Architecture
    body: Body
    positions: int  # the longest input that the body can take
    phases: list[Phase]  # none: the weights stay as they start
    start: Start = []  # empty: random weights
    masking: Unit = "word-piece"
    masked_share: float | list[float] = 0.15  # a list: of equal parts of the training, one after the other
    pairs: Pairs = "none"
    adversarial: bool = False
    mixing: Mixing = "as they are"  # of several corpora
    core: int = 0  # so many of the corpora, the first, are the small, special ones
    duplicates: int | None = None  # so many masks of one text, then the same again; None: always new ones

    @model_validator(mode="after")
    def check(self):
        if (self.mixing == "as they are") == bool(self.core):
            raise ValueError("core corpora and a way to mix them go together")
        if self.architecture == "electra" and (self.pairs != "none" or self.adversarial):
            raise ValueError("ELECTRA judges no pairs and has no adversarial training: pairs: none, adversarial: false")
        return self

    @property
    def version(self) -> int:
        """Of what makes its weights: the newest, or the one before where that changed nothing."""
        return 2 if self.architecture == "bert" and not self.adversarial else VERSION

    @property
    def embedding_width(self) -> int:
        """Of the table of embeddings, which BERT does not factorise."""
        return self.body.hidden if self.architecture == "bert" else self.body.embedding
