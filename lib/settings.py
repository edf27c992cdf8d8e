"""The base class of all settings."""

from pydantic import BaseModel, ConfigDict, Field


class Settings(BaseModel):
    """Strict settings: unknown keys, missing keys and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def added(default, **limits):
    """Declare a field that is newer than some records; at its default, it is left out of what identifies a record."""
    return Field(default=default, exclude_if=lambda value: value == default, **limits)
