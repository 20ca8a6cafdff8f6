"""What came back from the agent under test."""

from __future__ import annotations

from typing import Literal

from flakestorm.core.record import Record

__all__ = ["AgentError", "Answer"]


class AgentError(Record, frozen=True):
    """Why the agent gave no usable output.

    Args:
        kind: `unreachable` (could not be started or reached: the run cannot be judged), `timeout` (no answer in
            `agent.timeout`), `http` (status >= 400), `unreadable` (the body is not what was configured), `crash` (the
            process ended or the callable raised), `error` (the agent itself reported one).
        message: what happened, with the evidence: status, last lines of stderr, exception.
    """

    kind: Literal["unreachable", "timeout", "http", "unreadable", "crash", "error"]
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


class Answer(Record, frozen=True):
    """The agent's answer to one input.

    Args:
        output: its text (objects are rendered as JSON); empty when there is an error.
        error: why there is no output, or None.
        latency_ms: from sending the input to having the whole answer, in milliseconds.
        status: HTTP status or exit code, where there is one.
    """

    output: str = ""
    error: AgentError | None = None
    latency_ms: float = 0.0
    status: int | None = None
