"""Settings of pretraining."""

from typing import Literal

from lib.modeling.settings import Body
from lib.training.settings import Optimization, Phase

Start = list[Literal["word vectors", "piece counts", "position waves"]]  # of embeddings, output bias, positions


class Pretraining(Optimization):
    """How a model is pretrained at a scale."""

    body: Body
    vocabulary: str
    positions: int  # the longest input that the body can take
    start: Start  # empty: random weights
    masked_share: float | list[float]
    phases: list[Phase]  # none: the weights stay as they start
    duplicates: int | None
