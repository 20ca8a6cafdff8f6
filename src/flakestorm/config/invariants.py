"""One invariant, as it stands in `invariants` and in `contract.invariants`."""

from typing import Annotated, Any, Literal, Self, TypeAlias

from msgspec import Meta, field
from msgspec.structs import replace

from flakestorm.config.base import Milliseconds, Placed, Probability, Severity, Strict, When, words
from flakestorm.config.vocabulary import INVARIANT_TYPES
from flakestorm.core.record import Record

__all__ = ["NEEDS", "Invariant", "InvariantType", "ModelPrice", "Origin"]

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
    "no_duplicate_side_effect": ("tool",),
    "tool_order": ("before", "after"),
    "tool_args": ("tool", "schema"),
    "max_calls": ("limit",),
    "max_tokens": ("limit",),
    "max_cost": ("limit",),
    "check": ("function",),
    "judge": ("rubric",),
}
"""The keys without which a type means nothing. They must be there and not be empty."""


class Origin(Record, frozen=True, eq=False):
    """Where an invariant was written. It is no part of what the invariant says: all origins are equal.

    Args:
        folder: what its own words (a function's module) are relative to.
        file, line: where it stands, if it was read from a file.
    """

    folder: str = "."
    file: str | None = None
    line: int | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Origin)

    def __hash__(self) -> int:
        return hash(Origin)


class ModelPrice(Strict, frozen=True, kw_only=True):
    """What a model costs."""

    input: Annotated[Annotated[float, Meta(ge=0)], Meta(description="US dollars per million tokens that it reads")]
    output: Annotated[Annotated[float, Meta(ge=0)], Meta(description="US dollars per million tokens that it writes")]


class Invariant(Placed, frozen=True, kw_only=True):
    """One rule over the output or the tape of a run. Which of the type's own keys it needs is said by `NEEDS`."""

    type: Annotated[InvariantType, Meta(description="what is checked", extra_json_schema=words(INVARIANT_TYPES))]
    id: Annotated[str | None, Meta(description="its name in reports, unique in its list; default: its type")] = None
    description: Annotated[str | None, Meta(description="what the rule is for, in words")] = None
    severity: Annotated[
        Severity,
        Meta(description="weight in the score: critical 3, high 2, medium 1, low 1; a critical failure fails the gate"),
    ] = "medium"
    when: Annotated[
        When, Meta(description="in which runs the rule applies: by the faults that fired, or by the kind of input")
    ] = "always"
    negate: Annotated[bool, Meta(description="turn the rule round")] = False
    turn: Annotated[
        Annotated[int, Meta(ge=1)] | Literal["last", "every"] | None,
        Meta(
            description="of a conversation, the turn that is judged: a number from 1, last or every; default: the last "
            "answer and the calls of all turns"
        ),
    ] = None
    probes: Annotated[list[str], Meta(description="prompts used instead of the golden prompts")] = []
    min_pass_rate: Annotated[
        Probability | None, Meta(description="share of a cell's trials that must pass, 0 to 1; default 1")
    ] = None
    value: Annotated[str | None, Meta(description="contains: the text")] = None
    values: Annotated[list[str] | None, Meta(description="contains_any: the texts, one of which must be there")] = None
    pattern: Annotated[str | None, Meta(description="regex: a Python regular expression")] = None
    patterns: Annotated[list[str] | None, Meta(description="excludes_pattern: Python regular expressions")] = None
    schema_: Annotated[
        dict[str, Any] | str | None,
        Meta(description="json_schema, tool_args: a JSON Schema, or the path of a file that holds it"),
    ] = field(default=None, name="schema")
    max_ms: Annotated[Annotated[int, Meta(gt=0)] | None, Meta(description="latency: the limit, in milliseconds")] = None
    expected: Annotated[str | None, Meta(description="similarity: the text to be close to")] = None
    threshold: Annotated[
        Probability | None, Meta(description="similarity: the least similarity, 0 to 1; default 0.8")
    ] = None
    baseline: Annotated[
        str | None,
        Meta(description="behavior_unchanged: `auto` (the same prompt's output without chaos; the default) or a text"),
    ] = None
    similarity_threshold: Annotated[
        Probability | None, Meta(description="behavior_unchanged: the least similarity, 0 to 1; default 0.75")
    ] = None
    measure: Annotated[
        Literal["words", "semantic", "model"] | None,
        Meta(
            description="similarity, behavior_unchanged: by words (default); semantic: by meaning, with "
            "sentence-transformers (extra `semantic`); model: by the embeddings of the config's `model`"
        ),
    ] = None
    entities: Annotated[
        list[str] | None, Meta(description="excludes_pii: which entities, e.g. [EMAIL_ADDRESS, US_SSN]; default: all")
    ] = None
    dangerous_prompts: Annotated[
        bool | None, Meta(description="refusal_check: the prompts ask for something dangerous")
    ] = None
    tool: Annotated[str | None, Meta(description="rules on the tape: name or glob of the tool")] = None
    args: Annotated[
        dict[str, Any] | None,
        Meta(description="tool_called, tool_not_called: arguments the call must have had; others do not matter"),
    ] = None
    before: Annotated[str | None, Meta(description="tool_order: the tool that comes first")] = None
    after: Annotated[str | None, Meta(description="tool_order: the tool that comes later")] = None
    kind: Annotated[str | None, Meta(description="max_calls: which kind of call: llm, tool, mcp or http")] = None
    limit: Annotated[
        Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)] | None,
        Meta(description="max_calls, max_tokens, max_cost, no_retry_storm: the limit"),
    ] = None
    prices: Annotated[
        dict[str, ModelPrice] | None,
        Meta(description="max_cost: prices by the model's name, beside and before the built-in ones"),
    ] = None
    key: Annotated[
        str | None,
        Meta(
            description="no_duplicate_side_effect: what tells side effects apart, as a dotted path into the arguments "
            "or the name of a header; default: all arguments"
        ),
    ] = None
    window_ms: Annotated[Milliseconds | None, Meta(description="no_retry_storm: the time window, in milliseconds")] = (
        None
    )
    function: Annotated[str | None, Meta(description="check: `module:function`, called with the run")] = None
    rubric: Annotated[str | None, Meta(description="judge: what a good answer is, in words")] = None
    max_flip_rate: Annotated[
        Probability | None,
        Meta(description="judge: how often it may change its mind before nothing it says counts; default 0.02"),
    ] = None

    @property
    def origin(self) -> Origin:
        """Where it was written."""
        found = vars(self).get("_origin")
        return found if isinstance(found, Origin) else Origin()

    def at(self, origin: Origin) -> Self:
        """The same, written there."""
        placed = replace(self)
        vars(placed)["_origin"] = origin
        return placed

    def probing(self, probes: list[str]) -> Self:
        """The same rule, written where it was, with these probes."""
        return replace(self, probes=probes).at(self.origin)
