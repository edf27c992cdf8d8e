"""Settings of encoders."""

from pydantic import Field

from lib.settings import Settings


class Body(Settings):
    """The size of a Transformer encoder."""

    layers: int = Field(gt=0)
    hidden: int = Field(gt=0)
    heads: int = Field(gt=0)
    intermediate: int = Field(gt=0)
    embedding: int = Field(gt=0)  # embedding width of ALBERT and ELECTRA; BERT's is `hidden`
