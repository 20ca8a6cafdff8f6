"""The block `replays`: incidents to be replayed, and where more of them come from."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from flakestorm.config.base import Milliseconds, Strict

__all__ = [
    "LangSmithFilter",
    "LangSmithProject",
    "LangSmithRun",
    "ReplaySession",
    "Replays",
    "ToolResponse",
    "TraceFile",
]


class ToolResponse(Strict):
    """A tool's recorded reply in a replay session."""

    tool: str = Field(description="the tool's name")
    response: Any = Field(None, description="what it said: text or any JSON value")
    status: int | None = Field(None, description="HTTP status; 0 for a call that broke")
    latency_ms: Milliseconds | None = Field(None, description="how long it took, in milliseconds")


class ReplaySession(Strict):
    """An incident: its input, what its tools said, and the contract it must now meet."""

    id: str = Field("", description="the session's name in reports")
    name: str | None = Field(None, description="what happened, in a few words")
    source: str | None = Field("manual", description="where the incident was seen")
    captured_at: str | None = Field(None, description="when, e.g. 2026-01-31T10:00:00Z")
    input: str = Field("", description="what the agent was asked")
    context: list[dict[str, Any]] = Field(default_factory=list, description="the conversation before the input")
    tool_responses: list[ToolResponse] = Field(default_factory=list, description="what the tools said, in order")
    expected_failure: str | None = Field(None, description="what the agent did wrong")
    contract: str = Field("default", description="name of the contract the agent must now meet, or a file's path")
    file: str | None = Field(None, description="file that holds the session; used instead of the other keys")

    @model_validator(mode="after")
    def _source(self) -> ReplaySession:
        if not self.file and not (self.id and self.input):
            raise ValueError("a replay session needs either 'file', or 'id' and 'input'")
        return self


class LangSmithFilter(Strict):
    """Which runs of a LangSmith project to take."""

    status: Literal["error", "warning", "all"] = Field("error", description="runs that ended like this")
    date_range: str | None = Field(None, description="how far back, e.g. last_7_days")
    min_latency_ms: Milliseconds | None = Field(None, description="runs that took at least this long, in milliseconds")


class LangSmithProject(Strict):
    """Runs of a LangSmith project as sessions."""

    type: Literal["langsmith"]
    project: str = Field(description="the project's name")
    filter: LangSmithFilter | None = Field(None, description="which of its runs; default: those with an error")
    auto_import: bool = Field(False, description="fetch the runs again for every replay")


class LangSmithRun(Strict):
    """One LangSmith run as a session."""

    type: Literal["langsmith_run"]
    run_id: str = Field(description="the run's id")


class TraceFile(Strict):
    """Runs in an exported trace file as sessions."""

    type: Literal["otel", "langfuse"]
    file: str = Field(description="path of the export")


class Replays(Strict):
    """Replay sessions and where more come from."""

    sessions: list[ReplaySession] = Field(default_factory=list, description="incidents")
    sources: list[Annotated[LangSmithProject | LangSmithRun | TraceFile, Field(discriminator="type")]] = Field(
        default_factory=list, description="where more incidents come from"
    )
