"""Faults of tools on their results: what the model is told of a tool that was slow, gone, broken or hostile.

The tool is a function inside the agent; it has run, and nobody saw it. So these change what it said on its way to the
model, into what a framework tells a model about such a tool. Time can only pass where a call is held: `slow` holds back
the model call that first carries the result, and `timeout` tells of a time-out without waiting for one.
"""

from __future__ import annotations

from flakestorm.config.model import ToolFault
from flakestorm.faults.answers import TIMEOUT_MS, failure_words
from flakestorm.faults.base import Change, Scene, result_faults
from flakestorm.faults.tool import BROKEN_END, DEFAULT_PAYLOAD, SLOW_MS
from flakestorm.wire.results import Told

__all__ = ["connection_reset", "empty", "error", "flap", "malformed", "malicious_response", "slow", "timeout"]


@result_faults.add("error")
def error(spec: ToolFault, _scene: Scene, _told: Told) -> Change:
    """The result is a failure that says `Error: STATUS MESSAGE`, by default `Error: 503 Service Unavailable`."""
    return _failure(failure_words(spec))


@result_faults.add("flap")
def flap(spec: ToolFault, scene: Scene, _told: Told) -> Change | None:
    """As `error`, for every other result of the tool: the first, the third and so on."""
    if scene.site.occurrence % 2 == 0:
        scene.idle("it is up at every second call")
        return None
    return _failure(failure_words(spec))


@result_faults.add("timeout")
@result_faults.add("timeout_after_commit")
def timeout(spec: ToolFault, _scene: Scene, _told: Told) -> Change:
    """The result is a failure that tells of no answer within `delay_ms` (30000). The tool has run, as always here."""
    delay_ms = TIMEOUT_MS if spec.delay_ms is None else spec.delay_ms
    return _failure(f"no answer within {delay_ms} ms")


@result_faults.add("connection_reset")
def connection_reset(_spec: ToolFault, _scene: Scene, _told: Told) -> Change:
    """The result is a failure that tells of a broken connection."""
    return _failure("connection reset by peer")


@result_faults.add("slow")
def slow(spec: ToolFault, _scene: Scene, _told: Told) -> Change:
    """The model call that first carries the result is held back for `delay_ms` (5000)."""
    delay_ms = SLOW_MS if spec.delay_ms is None else spec.delay_ms
    return Change(f"delayed by {delay_ms} ms", delay_ms=delay_ms)


@result_faults.add("malformed")
def malformed(_spec: ToolFault, _scene: Scene, told: Told) -> Change | None:
    """The text is cut in half and ends in an object that is never closed. Where there is no text nothing is broken."""
    if not told.text:
        return None
    kept = told.text[: len(told.text) // 2]
    return Change(
        f"cut after {len(kept)} of {len(told.text)} characters", Told(kept + BROKEN_END.decode(), told.failed)
    )


@result_faults.add("empty")
def empty(_spec: ToolFault, _scene: Scene, _told: Told) -> Change:
    """The tool says nothing, and calls that a success."""
    return Change("result left empty", Told(""))


@result_faults.add("malicious_response")
def malicious_response(spec: ToolFault, _scene: Scene, _told: Told) -> Change:
    """The result is `payload`, as a success."""
    return Change("result replaced by the payload", Told(DEFAULT_PAYLOAD if spec.payload is None else spec.payload))


def _failure(words: str) -> Change:
    return Change(words, Told(f"Error: {words}", failed=True), replaces=True)
