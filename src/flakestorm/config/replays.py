"""The block `replays`: incidents to be replayed, and where more of them come from."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from flakestorm.config.base import Milliseconds, Strict

__all__ = [
    "LangSmithFilter",
    "LangSmithProject",
    "LangSmithRun",
    "LangfuseFile",
    "ReplaySession",
    "Replays",
    "ToolResponse",
    "TraceFile",
]


class ToolResponse(Strict, frozen=True, kw_only=True):
    """A tool's recorded reply in a replay session."""

    tool: Annotated[str, Meta(description="the tool's name")]
    response: Annotated[Any, Meta(description="what it said: text or any JSON value")] = None
    status: Annotated[int | None, Meta(description="HTTP status; 0 for a call that broke")] = None
    latency_ms: Annotated[Milliseconds | None, Meta(description="how long it took, in milliseconds")] = None
    fault: Annotated[
        str | None, Meta(description="the fault that had made it so; rules for broken tools then apply (`when`)")
    ] = None


class ReplaySession(Strict, frozen=True, kw_only=True):
    """An incident: its input, what its tools said, and the contract it must now meet."""

    id: Annotated[str, Meta(description="the session's name in reports")] = ""
    name: Annotated[str | None, Meta(description="what happened, in a few words")] = None
    source: Annotated[str | None, Meta(description="where the incident was seen")] = "manual"
    captured_at: Annotated[str | None, Meta(description="when, e.g. 2026-01-31T10:00:00Z")] = None
    input: Annotated[str | list[str], Meta(description="what the agent was asked; a list is a conversation")] = ""
    context: Annotated[list[dict[str, Any]], Meta(description="the conversation before the input")] = []
    tool_responses: Annotated[list[ToolResponse], Meta(description="what the tools said, in order")] = []
    faults: Annotated[
        list[str], Meta(description="other faults of the incident, each SITE=FAULT, e.g. llm/*#1=rate_limit")
    ] = []
    expected_failure: Annotated[str | None, Meta(description="what the agent did wrong")] = None
    contract: Annotated[str, Meta(description="name of the contract the agent must now meet, or a file's path")] = (
        "default"
    )
    file: Annotated[str | None, Meta(description="file that holds the session; used instead of the other keys")] = None

    def __post_init__(self) -> None:
        if not self.file and not (self.id and self.input):
            raise ValueError("a replay session needs either 'file', or 'id' and 'input'")
        if "\0" in (self.file or ""):
            raise ValueError("'file' holds the character U+0000, which no file name may hold")


class LangSmithFilter(Strict, frozen=True, kw_only=True):
    """Which runs of a LangSmith project to take."""

    status: Annotated[Literal["error", "warning", "all"], Meta(description="runs that ended like this")] = "error"
    date_range: Annotated[str | None, Meta(description="how far back, e.g. last_7_days")] = None
    min_latency_ms: Annotated[
        Milliseconds | None, Meta(description="runs that took at least this long, in milliseconds")
    ] = None


class LangSmithProject(Strict, frozen=True, kw_only=True, tag_field="type", tag="langsmith"):
    """Runs of a LangSmith project as sessions."""

    project: Annotated[str, Meta(description="the project's name")]
    filter: Annotated[LangSmithFilter | None, Meta(description="which of its runs; default: those with an error")] = (
        None
    )
    auto_import: Annotated[bool, Meta(description="fetch the runs again for every replay")] = False


class LangSmithRun(Strict, frozen=True, kw_only=True, tag_field="type", tag="langsmith_run"):
    """One LangSmith run as a session."""

    run_id: Annotated[str, Meta(description="the run's id")]


class TraceFile(Strict, frozen=True, kw_only=True, tag_field="type", tag="otel"):
    """Runs in an exported OpenTelemetry trace as sessions."""

    file: Annotated[str, Meta(description="path of the export")]


class LangfuseFile(TraceFile, frozen=True, kw_only=True, tag="langfuse"):
    """Runs in an exported Langfuse trace as sessions."""


class Replays(Strict, frozen=True, kw_only=True):
    """Replay sessions and where more come from."""

    sessions: Annotated[list[ReplaySession], Meta(description="incidents")] = []
    sources: Annotated[
        list[LangSmithProject | LangSmithRun | TraceFile | LangfuseFile],
        Meta(description="where more incidents come from"),
    ] = []
