"""The blocks that plan faults: `chaos`, the scenarios of a chaos matrix, and the faults in them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from flakestorm.config.base import Count, Milliseconds, Probability, Strict, words
from flakestorm.config.vocabulary import CONTEXT_ATTACKS, LLM_MODES, TOOL_MODES

__all__ = ["Chaos", "ContextAttack", "Fault", "LlmFault", "Scenario", "ToolFault"]


class Fault(Strict):
    """What every fault has: which calls it is for, and when it fires.

    Triggers combine: a call must satisfy all that are given. Occurrences count the calls that the fault's own filter
    matches, from 1.
    """

    match_url: str | None = Field(
        None, description="glob on the URL of the agent's call, e.g. https://api.example.com/*"
    )
    probability: Probability | None = Field(None, description="chance of firing on each matching call; default 1")
    after_calls: Count | None = Field(
        None, description="the first N matching calls succeed; the fault fires from call N+1 on"
    )
    calls: list[Annotated[int, Field(ge=1)]] | None = Field(
        None, description="fire on exactly these matching calls, counted from 1, e.g. [1, 3]"
    )
    times: Annotated[int, Field(ge=1)] | None = Field(None, description="fire at most this often in one run")
    site: str | None = Field(None, description="fire at this call only: kind/name#occurrence, e.g. tool/search#2")


class ToolFault(Fault):
    """Breaks a tool's call or its result."""

    tool: str = Field("*", description="name or glob of the tool; * is every tool, MCP and unnamed HTTP call")
    mode: str = Field(description="what happens to the call or its result", json_schema_extra=words(TOOL_MODES))
    where: Literal["call", "result"] | None = Field(
        None,
        description="call: intercept the tool's own request; result: rewrite its result on the way to the model; "
        "default: call where it can be seen, else result",
    )
    delay_ms: Milliseconds | None = Field(
        None, description="how long to wait, in milliseconds (timeout: 30000, slow: 5000)"
    )
    error_code: int | None = Field(None, ge=400, le=599, description="HTTP status of mode error; default 503")
    message: str | None = Field(None, description="text of the error")
    payload: str | None = Field(None, description="what malicious_response puts in place of the tool's result")


class LlmFault(Fault):
    """Breaks a model's reply. `model` narrows it to models of this name (a glob)."""

    mode: str = Field(description="what happens to the model's reply", json_schema_extra=words(LLM_MODES))
    model: str = Field("*", description="name or glob of the model")
    delay_ms: Milliseconds | None = Field(None, description="mode timeout: how long to wait, in milliseconds")
    max_tokens: Count | None = Field(None, description="mode truncated_response: how many tokens are left")
    retry_after_ms: Milliseconds | None = Field(
        None, description="mode rate_limit: what the reply says about retrying, in milliseconds; default 50"
    )
    message: str | None = Field(None, description="text of the error")
    error_code: int | None = Field(None, ge=400, le=599, description="HTTP status of modes that answer with an error")
    drift_type: (
        Literal["json_field_rename", "verbosity_shift", "format_change", "refusal_rephrase", "tone_shift"] | None
    ) = Field(None, description="mode response_drift: how the reply differs from what the model used to say")
    severity: Literal["subtle", "moderate", "significant"] | None = Field(
        None, description="mode response_drift: how much changes"
    )
    direction: Literal["expand", "compress"] | None = Field(
        None, description="drift verbosity_shift: longer or shorter replies"
    )
    factor: float | None = Field(None, gt=0, description="drift verbosity_shift: by which factor")
    after_events: Count | None = Field(None, description="mode stream_cut: how many events arrive before the cut")
    first_token_ms: Milliseconds | None = Field(
        None, description="mode slow_stream: delay of the first token, in milliseconds"
    )
    per_chunk_ms: Milliseconds | None = Field(
        None, description="mode slow_stream: delay of each further chunk, in milliseconds"
    )


class ContextAttack(Fault):
    """Hostile text in what the model is told."""

    type: str = Field(description="how the text gets there", json_schema_extra=words(CONTEXT_ATTACKS))
    enabled: bool = Field(True, description="false leaves the attack out")
    tool: str = Field("*", description="name or glob of the tool whose result carries the text")
    inject_tokens: Count | None = Field(None, description="overflow: how many tokens to add")
    payloads: list[str] | None = Field(None, description="texts to choose from; default: a built-in list")
    payload: str | None = Field(None, description="the text")
    trigger_probability: Probability | None = Field(None, description="chance of firing on each matching call")
    inject_at: str | None = Field(None, description="where in the conversation the text goes")
    strategy: Literal["prepend", "append", "replace"] | None = Field(
        None, description="memory_poisoning: how the text joins what is there"
    )


class Chaos(Strict):
    """Faults, in three lists. `context_attacks` may also be a mapping keyed by type."""

    tool_faults: list[ToolFault] = Field(default_factory=list, description="faults of the agent's tools")
    llm_faults: list[LlmFault] = Field(default_factory=list, description="faults of the agent's model")
    context_attacks: list[ContextAttack] = Field(
        default_factory=list, description="hostile text in what the model is told: a list, or a mapping keyed by type"
    )

    @field_validator("context_attacks", mode="before")
    @classmethod
    def _by_type(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return [_attack(kind, keys) for kind, keys in value.items()]


def _attack(kind: str, keys: Any) -> Any:
    """One entry of the mapping form: `{overflow: {inject_tokens: 9}}`, `{overflow: }` or `{overflow: false}`."""
    if keys is None or isinstance(keys, bool):
        return {"type": kind, "enabled": keys is not False}
    return {"type": kind, **keys} if isinstance(keys, dict) else keys


class Scenario(Chaos):
    """A named schedule in a chaos matrix; one without faults is the control."""

    name: str = Field(min_length=1, description="the scenario's name in reports")

    @property
    def chaos(self) -> bool:
        """Whether this scenario plans any fault."""
        return bool(self.tool_faults or self.llm_faults or [a for a in self.context_attacks if a.enabled])
