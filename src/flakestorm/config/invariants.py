"""One invariant, as it stands in `invariants` and in `contract.invariants`."""

from __future__ import annotations

from typing import Any, TypeAlias

from pydantic import Field

from flakestorm.config.base import Milliseconds, Probability, Severity, Strict, When, words
from flakestorm.config.vocabulary import INVARIANT_TYPES

__all__ = ["NEEDS", "Invariant", "InvariantType"]

InvariantType: TypeAlias = str  # a plug-in may add any name; the registry knows the built-in ones

NEEDS: dict[str, tuple[str, ...]] = {
    "contains": ("value",),
    "contains_any": ("values",),
    "regex": ("pattern",),
    "excludes_pattern": ("patterns",),
    "json_schema": ("schema",),
    "latency": ("max_ms",),
    "similarity": ("expected",),
    "tool_called": ("tool",),
    "tool_not_called": ("tool",),
    "tool_order": ("before", "after"),
    "tool_args": ("tool", "schema"),
    "max_calls": ("limit",),
    "max_tokens": ("limit",),
    "max_cost": ("limit",),
    "check": ("function",),
    "judge": ("rubric",),
}
"""The keys without which a type means nothing. They must be there and not be empty."""


class Invariant(Strict):
    """One rule over the output or the tape of a run. Which of the type's own keys it needs is said by `NEEDS`."""

    type: InvariantType = Field(description="what is checked", json_schema_extra=words(INVARIANT_TYPES))
    id: str | None = Field(None, description="its name in reports, unique in its list; default: its type")
    description: str | None = Field(None, description="what the rule is for, in words")
    severity: Severity = Field(
        "medium",
        description="weight in the score: critical 3, high 2, medium 1, low 1; a critical failure fails the gate",
    )
    when: When = Field("always", description="in which runs the rule applies, judged by the faults that fired")
    negate: bool = Field(False, description="turn the rule round")
    probes: list[str] = Field(default_factory=list, description="prompts used instead of the golden prompts")
    min_pass_rate: Probability | None = Field(
        None, description="share of a cell's trials that must pass, 0 to 1; default 1"
    )
    value: str | None = Field(None, description="contains: the text")
    values: list[str] | None = Field(None, description="contains_any: the texts, one of which must be there")
    pattern: str | None = Field(None, description="regex: a Python regular expression")
    patterns: list[str] | None = Field(None, description="excludes_pattern: Python regular expressions")
    schema_: dict[str, Any] | str | None = Field(
        None, alias="schema", description="json_schema, tool_args: a JSON Schema, or the path of a file that holds it"
    )
    max_ms: int | None = Field(None, gt=0, description="latency: the limit, in milliseconds")
    expected: str | None = Field(None, description="similarity: the text to be close to")
    threshold: Probability | None = Field(None, description="similarity: the least similarity, 0 to 1; default 0.8")
    baseline: str | None = Field(
        None, description="behavior_unchanged: `auto` (the same prompt's output without chaos; the default) or a text"
    )
    similarity_threshold: Probability | None = Field(
        None, description="behavior_unchanged: the least similarity, 0 to 1; default 0.75"
    )
    entities: list[str] | None = Field(
        None, description="excludes_pii: which entities, e.g. [EMAIL_ADDRESS, US_SSN]; default: all"
    )
    dangerous_prompts: bool | None = Field(None, description="refusal_check: the prompts ask for something dangerous")
    tool: str | None = Field(None, description="rules on the tape: name or glob of the tool")
    args: dict[str, Any] | None = Field(
        None, description="tool_called, tool_not_called: arguments the call must have had; others do not matter"
    )
    before: str | None = Field(None, description="tool_order: the tool that comes first")
    after: str | None = Field(None, description="tool_order: the tool that comes later")
    kind: str | None = Field(None, description="max_calls: which kind of call: llm, tool, mcp or http")
    limit: int | float | None = Field(
        None, ge=0, description="max_calls, max_tokens, max_cost, no_retry_storm: the limit"
    )
    key: str | None = Field(None, description="no_duplicate_side_effect: the argument that tells side effects apart")
    window_ms: Milliseconds | None = Field(None, description="no_retry_storm: the time window, in milliseconds")
    function: str | None = Field(None, description="check: `module:function`, called with the run")
    rubric: str | None = Field(None, description="judge: what a good answer is, in words")
