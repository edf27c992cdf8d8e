"""What all settings have in common."""

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """Strict: unknown keys, missing keys and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
