"""Settings of fine-tuning."""

from itertools import product
from typing import Annotated, Literal

from pydantic import Field, model_validator

from lib.settings import Settings, added
from lib.training.optimization import Optimization

VERSION = 2  # raised when the same settings, examples and weights give other scores: sequences, heads, loop, metrics
Numbers = Annotated[list[int], Field(min_length=1)]


class FinetuningSettings(Settings):
    """How an encoder is fine-tuned on a dataset. Lists are candidates, chosen between on the development set."""

    epochs: Numbers
    batch_size: Numbers
    learning_rate: list[float] = Field(min_length=1)
    warmup: float = Field(ge=0, lt=1)  # share of the steps
    weight_decay: float = Field(ge=0)
    dropout: float = Field(ge=0, lt=1)
    max_length: int = Field(gt=8)  # tokens
    runs: int | None = Field(default=None, gt=0)  # with different seeds; None: as many as the scale has seeds
    steps: int | None = Field(default=None, gt=0)  # in all, in place of epochs
    min_steps: int | None = None
    train_instances: int | None = None
    folds: int | None = None
    head: Literal["linear", "biLSTM", "CRF"] = "linear"
    characters: bool = added(False)  # of entities: the head reads each word's letters beside its state
    scheme: Literal["BIO", "BIOUL", "IO"] = "BIO"  # of tags
    mentions: Literal["dummies", "markers", "original"] = "dummies"  # of relations: how the text is written
    encoding: Literal["first token", "mentions", "starts"] = "first token"  # what stands for a text: [CLS] or mentions
    weighted: bool = False  # classes by the inverse of their frequency
    first_on: str | None = None  # the dataset that the model is fine-tuned on before
    bias_correction: bool = added(True)  # of Adam's moments
    head_rate: float = added(1.0, gt=0)  # times the learning rate: of what stands on the encoder
    crf_rate: float = added(1.0, gt=0)  # the same of a CRF
    layer_decay: float = added(1.0, gt=0, le=1)  # of the learning rate from each layer to the one below
    trials: int | None = Field(default=None, gt=1)  # of Optuna among the candidates; None: all of them are tried

    @model_validator(mode="after")
    def check(self):
        if self.encoding == "starts" and self.mentions != "markers":
            raise ValueError("encoding 'starts' is that of start markers: it goes with mentions 'markers'")
        return self

    def optimization(self) -> Optimization:
        """AdamW with the numbers of BERT's code, and with a correction of the moments' bias, as in the scripts of
        transformers. BERT's, ALBERT's and ELECTRA's code has none (`bias_correction: false`): their first hundred steps
        are 3 to 6.5 times as long.
        """
        return Optimization(optimizer="adamw", weight_decay=self.weight_decay, betas=[0.9, 0.999], dropout=self.dropout,
                            bias_correction=self.bias_correction)  # fmt: skip

    def candidates(self) -> list[dict]:
        """Every combination of the settings to choose between."""
        names = ["epochs", "batch_size", "learning_rate"]
        return [dict(zip(names, values, strict=True)) for values in product(*(getattr(self, n) for n in names))]

    def one_run(self) -> "FinetuningSettings":
        """These settings with the first candidate alone and one run, so that there is nothing to choose."""
        first = {name: [value] for name, value in self.candidates()[0].items()}
        return self.model_copy(update=first | {"trials": None, "runs": 1})

    def count_epochs(self, candidate: dict, sequences: int) -> int:
        """A candidate's epochs, or as many as `min_steps` take where that is more."""
        in_epoch = -(-sequences // candidate["batch_size"])
        return max(candidate["epochs"], -(-(self.min_steps or 0) // in_epoch))


def say_settings(candidate: dict) -> str:
    """A candidate's settings in words."""
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in candidate.items())
