"""The blocks that plan faults: `chaos`, the scenarios of a chaos matrix, and the faults in them."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from flakestorm.config.base import Count, Milliseconds, Probability, Strict, words
from flakestorm.config.vocabulary import CONTEXT_ATTACKS, LLM_MODES, TOOL_MODES

__all__ = ["Chaos", "ContextAttack", "Fault", "LlmFault", "Scenario", "ToolFault"]


class Fault(Strict, frozen=True, kw_only=True):
    """What every fault has: which calls it is for, and when it fires.

    Triggers combine: a call must satisfy all that are given. Occurrences count the calls that the fault's own filter
    matches, from 1.
    """

    match_url: Annotated[
        str | None, Meta(description="glob on the URL of the agent's call, e.g. https://api.example.com/*")
    ] = None
    probability: Annotated[
        Probability | None, Meta(description="chance of firing on each matching call; default 1")
    ] = None
    after_calls: Annotated[
        Count | None, Meta(description="the first N matching calls succeed; the fault fires from call N+1 on")
    ] = None
    calls: Annotated[
        list[Annotated[int, Meta(ge=1)]] | None,
        Meta(description="fire on exactly these matching calls, counted from 1, e.g. [1, 3]"),
    ] = None
    times: Annotated[Annotated[int, Meta(ge=1)] | None, Meta(description="fire at most this often in one run")] = None
    site: Annotated[
        str | None, Meta(description="fire at this call only: kind/name#occurrence, e.g. tool/search#2")
    ] = None
    draws: Annotated[
        str | None,
        Meta(
            description="make the random choices of an earlier run, as the line that does it again names them: "
            "SEED/SCENARIO/PROMPT/TRIAL/FAULT"
        ),
    ] = None

    @property
    def transient(self) -> bool:
        """Whether an agent that tries again can get past it: it fires at some calls and not at others."""
        sometimes = self.probability is not None and 0 < self.probability < 1
        return sometimes or self.times is not None or self.calls is not None or self.site is not None


class ToolFault(Fault, frozen=True, kw_only=True):
    """Breaks a tool's call or its result."""

    tool: Annotated[str, Meta(description="name or glob of the tool; * is every tool, MCP and unnamed HTTP call")] = "*"
    mode: Annotated[
        str, Meta(description="what happens to the call or its result", extra_json_schema=words(TOOL_MODES))
    ]
    where: Annotated[
        Literal["call", "result"] | None,
        Meta(
            description="call: intercept the tool's own request; result: rewrite its result on the way to the model; "
            "default: call where it can be seen, else result"
        ),
    ] = None
    delay_ms: Annotated[
        Milliseconds | None,
        Meta(description="how long to wait, in milliseconds (timeout, timeout_after_commit: 30000, slow: 5000)"),
    ] = None
    error_code: Annotated[
        Annotated[int, Meta(ge=400, le=599)] | None,
        Meta(description="HTTP status of modes error and flap; default 503"),
    ] = None
    message: Annotated[str | None, Meta(description="text of the error")] = None
    payload: Annotated[
        str | None,
        Meta(
            description="what malicious_response puts in place of the tool's result, and what tool_poisoning instructs"
        ),
    ] = None

    @property
    def transient(self) -> bool:
        """As for any fault; `flap` lets every other call through."""
        return self.mode == "flap" or super().transient


_FORMS = {
    "bad_tool_call": ("invalid_json", "unknown_tool", "missing_argument"),
    "content_filter": ("answer", "prompt"),
}


class LlmFault(Fault, frozen=True, kw_only=True):
    """Breaks a model's reply. `model` narrows it to models of this name (a glob)."""

    mode: Annotated[str, Meta(description="what happens to the model's reply", extra_json_schema=words(LLM_MODES))]
    model: Annotated[str, Meta(description="name or glob of the model")] = "*"
    delay_ms: Annotated[
        Milliseconds | None, Meta(description="mode timeout: how long to wait, in milliseconds; default 8000")
    ] = None
    max_tokens: Annotated[
        Count | None, Meta(description="how many tokens are left; mode truncated_response: 20, mode content_filter: 0")
    ] = None
    retry_after_ms: Annotated[
        Milliseconds | None,
        Meta(
            description="what the error says about retrying, in milliseconds; mode rate_limit: 50, modes overloaded "
            "and server_error: nothing"
        ),
    ] = None
    message: Annotated[str | None, Meta(description="text of the error, or of the refusal")] = None
    error_code: Annotated[
        Annotated[int, Meta(ge=400, le=599)] | None, Meta(description="HTTP status of modes that answer with an error")
    ] = None
    drift_type: Annotated[
        Literal["json_field_rename", "verbosity_shift", "format_change", "refusal_rephrase", "tone_shift"] | None,
        Meta(description="mode response_drift: how the reply differs from what the model used to say"),
    ] = None
    severity: Annotated[
        Literal["subtle", "moderate", "significant"] | None, Meta(description="mode response_drift: how much changes")
    ] = None
    direction: Annotated[
        Literal["expand", "compress"] | None, Meta(description="drift verbosity_shift: longer or shorter replies")
    ] = None
    factor: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="drift verbosity_shift: by which factor")
    ] = None
    after_events: Annotated[
        Count | None,
        Meta(
            description="mode stream_cut: how many events arrive before the cut; default 3. Modes that answer with an "
            "error: let it come in the middle of a stream, after so many events"
        ),
    ] = None
    first_token_ms: Annotated[
        Milliseconds | None,
        Meta(description="mode slow_stream: delay of the first event, in milliseconds; default 2000"),
    ] = None
    per_chunk_ms: Annotated[
        Milliseconds | None,
        Meta(description="mode slow_stream: delay of each further event, in milliseconds; default 100"),
    ] = None
    form: Annotated[
        Literal["invalid_json", "unknown_tool", "missing_argument", "answer", "prompt"] | None,
        Meta(
            description="mode bad_tool_call: invalid_json, unknown_tool or missing_argument, by default one chosen by "
            "the seed; mode content_filter: what is stopped, prompt or answer, by default the prompt at Azure, else "
            "the answer"
        ),
    ] = None

    def __post_init__(self) -> None:
        forms = _FORMS.get(self.mode)
        if self.form is not None and forms is not None and self.form not in forms:
            raise ValueError(f"the mode {self.mode} has the forms {', '.join(forms)}, not {self.form}")


class ContextAttack(Fault, frozen=True, kw_only=True):
    """Hostile text in what the model is told."""

    KEYED: ClassVar[str] = "type"

    type: Annotated[str, Meta(description="how the text gets there", extra_json_schema=words(CONTEXT_ATTACKS))]
    enabled: Annotated[bool, Meta(description="false leaves the attack out")] = True
    tool: Annotated[
        str, Meta(description="indirect_injection: name or glob of the tool whose result carries the text")
    ] = "*"
    where: Annotated[
        Literal["call", "result"] | None,
        Meta(
            description="indirect_injection: call: in the reply to the tool's own request; result: in its result on "
            "its way to the model; default: call where it can be seen, else result"
        ),
    ] = None
    inject_tokens: Annotated[Count | None, Meta(description="overflow: how many tokens to add; default 8000")] = None
    payloads: Annotated[list[str] | None, Meta(description="texts to choose from; default: a built-in list")] = None
    payload: Annotated[str | None, Meta(description="the text")] = None
    trigger_probability: Annotated[Probability | None, Meta(description="chance of firing on each matching call")] = (
        None
    )
    inject_at: Annotated[
        str | None,
        Meta(
            description="where the text goes: conversation (the newest message; the default), step_N (the same, with "
            "the N-th model call), system (the system prompt) or, of memory_poisoning only, input (what the agent is "
            "asked)"
        ),
    ] = None
    strategy: Annotated[
        Literal["prepend", "append", "replace"] | None,
        Meta(
            description="how the text joins what is there; default: append (memory_poisoning, conflicting_context) or "
            "prepend (overflow, injection_via_context)"
        ),
    ] = None


class Chaos(Strict, frozen=True, kw_only=True):
    """Faults, in three lists. `context_attacks` may also be a mapping keyed by type."""

    tool_faults: Annotated[list[ToolFault], Meta(description="faults of the agent's tools")] = []
    llm_faults: Annotated[list[LlmFault], Meta(description="faults of the agent's model")] = []
    context_attacks: Annotated[
        list[ContextAttack],
        Meta(description="hostile text in what the model is told: a list, or a mapping keyed by type"),
    ] = []


class Scenario(Chaos, frozen=True, kw_only=True):
    """A named schedule in a chaos matrix; one without faults is the control."""

    name: Annotated[Annotated[str, Meta(min_length=1)], Meta(description="the scenario's name in reports")]

    @property
    def chaos(self) -> bool:
        """Whether this scenario plans any fault."""
        return bool(self.tool_faults or self.llm_faults or [a for a in self.context_attacks if a.enabled])
