"""What all settings have in common."""

from pydantic import BaseModel, ConfigDict, Field


class Settings(BaseModel):
    """Strict: unknown keys, missing keys and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def added(default, **limits):
    """A field that came when records had been made: what a record is known by leaves it out where it is the default."""
    return Field(default=default, exclude_if=lambda value: value == default, **limits)
