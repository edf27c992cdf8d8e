"""Settings of fine-tuning."""

from itertools import product
from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from lib.settings import Settings, added
from lib.training.optimization import Optimization

VERSION = 2  # raised when the same settings, examples and weights give other scores: sequences, heads, loop, metrics
SEARCHED = ("epochs", "batch_size", "learning_rate")  # settings whose candidates the development set decides between
Numbers = Annotated[list[PositiveInt], Field(min_length=1)]


class FinetuningSettings(Settings):
    """Settings for fine-tuning an encoder on a dataset. Lists are candidates; the development set decides.

    A setting for one family of datasets changes nothing in others.
    """

    epochs: Numbers
    batch_size: Numbers
    learning_rate: list[PositiveFloat] = Field(min_length=1)
    warmup: float = Field(ge=0, lt=1)  # share of the steps
    weight_decay: float = Field(ge=0)
    dropout: float = Field(ge=0, lt=1)
    max_length: int = Field(gt=8)  # tokens
    runs: int | None = Field(default=None, gt=0)  # with different seeds; None: all seeds of the scale
    steps: int | None = Field(default=None, gt=0)  # total, in place of epochs
    min_steps: int | None = Field(default=None, gt=0)
    train_instances: int | None = Field(default=None, gt=0)
    folds: int | None = Field(default=None, gt=0)
    head: Literal["linear", "biLSTM", "CRF"] = "linear"  # CRF: for tagging; linear elsewhere
    characters: bool = added(False)  # for tagging: the head also reads each word's letters
    scheme: Literal["BIO", "BIOUL", "IO"] = "BIO"  # of tags
    mentions: Literal["dummies", "markers", "original"] = "dummies"  # for relations: how the text is written
    encoding: Literal["first token", "mentions", "starts"] = "first token"  # for relations: [CLS] or mentions
    weighted: bool = False  # for texts of one class: weight classes by their inverse frequency in the loss
    first_on: str | None = None  # the dataset on which the model is fine-tuned first
    head_rate: float = added(1.0, gt=0)  # factor on the learning rate of the head
    crf_rate: float = added(1.0, gt=0)  # factor on the learning rate of a CRF
    layer_decay: float = added(1.0, gt=0, le=1)  # factor on the learning rate from each layer to the one below
    trials: int | None = Field(default=None, gt=1)  # of Optuna among the candidates; None: try all

    @model_validator(mode="after")
    def check(self):
        if self.encoding == "starts" and self.mentions != "markers":
            raise ValueError("encoding 'starts' is that of start markers: it goes with mentions 'markers'")
        return self

    def optimization(self) -> Optimization:
        """Return AdamW with the parameters of BERT's code, and bias correction as in the scripts of transformers.

        BERT's, ALBERT's and ELECTRA's code has no bias correction. Its step t is (1 - 0.9^t) / sqrt(1 - 0.999^t) times
        as long: 3.2 to 6.6 times in the first hundred.
        """
        return Optimization(optimizer="adamw", weight_decay=self.weight_decay, betas=[0.9, 0.999], dropout=self.dropout)

    def candidates(self) -> list[dict]:
        """List all combinations of the settings to choose from."""
        combinations = product(*(getattr(self, name) for name in SEARCHED))
        return [dict(zip(SEARCHED, values, strict=True)) for values in combinations]

    def one_run(self) -> "FinetuningSettings":
        """Return these settings reduced to their first candidate and one run, so that nothing is searched."""
        first = {name: [value] for name, value in self.candidates()[0].items()}
        return self.model_copy(update=first | {"trials": None, "runs": 1})

    def count_epochs(self, candidate: dict, sequences: int) -> int:
        """Return a candidate's epochs, or as many as `min_steps` need if that is more."""
        in_epoch = -(-sequences // candidate["batch_size"])
        return max(candidate["epochs"], -(-(self.min_steps or 0) // in_epoch))


def describe_settings(candidate: dict) -> str:
    """Describe a candidate's settings in words."""
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in candidate.items())
