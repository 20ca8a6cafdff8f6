"""What every block of `flakestorm.yaml` has in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from flakestorm.config.vocabulary import Vocabulary

__all__ = ["Count", "Milliseconds", "Probability", "Severity", "Strict", "When", "words"]

Severity: TypeAlias = Literal["critical", "high", "medium", "low"]
When: TypeAlias = Literal["always", "tool_faults_active", "llm_faults_active", "any_chaos_active", "no_chaos"]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Milliseconds = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]


class Strict(BaseModel):
    """A block of the configuration: unknown keys are errors, and a key without a value has its default.

    YAML reads `tool_faults:` with nothing behind it as null. That is what is left when every entry below it is
    commented out, so it means the same as leaving the key out; a key that is required still needs a value.
    """

    model_config = ConfigDict(
        extra="forbid",
        validate_default=False,
        frozen=True,
        allow_inf_nan=False,
        defer_build=True,  # the validators of a block are made when it is first read, not with every command
    )

    @model_validator(mode="before")
    @classmethod
    def _drop_empty(cls, data: Any) -> Any:
        if not isinstance(data, dict) or None not in data.values():
            return data
        required = {field.alias or name for name, field in cls.model_fields.items() if field.is_required()}
        optional = {field.alias or name for name, field in cls.model_fields.items()} - required
        return {key: value for key, value in data.items() if value is not None or key not in optional}


def words(vocabulary: Vocabulary) -> Callable[[dict[str, Any]], None]:
    """JSON Schema of an open set of words: editors offer the built-in ones, and a plug-in's name is valid too."""

    def extend(schema: dict[str, Any]) -> None:
        kind = schema.pop("type", "string")
        schema["anyOf"] = [{"enum": sorted(vocabulary.words)}, {"type": kind}]

    return extend
