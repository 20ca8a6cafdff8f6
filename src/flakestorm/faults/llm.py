"""Faults of a model's provider: over its limits, overloaded, or failing.

Each is the error which that provider documents (status, body, request id, headers), so its own SDK raises its own
exception, and retries as it would. An error is answered in the model's place, and the request never gets through. With
`after_events` it comes in the middle of a stream instead: the model is asked, that many events reach the agent, then
the error as the provider sends it there, and the end. A whole reply has no middle, so that form does not fire on it.

Of a protocol that no wire understands the errors are not known, so these faults do not fire there. Embeddings are not
streamed, and Gemini's array (what it streams to those who do not ask for events) has no known form for an error; there
`after_events` never fires.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from flakestorm.config.model import LlmFault
from flakestorm.core.call import Call, Chunks, Reply, without_headers
from flakestorm.core.pipeline import Flow, Interceptor
from flakestorm.faults.base import Scene, inward, llm_faults
from flakestorm.faults.replies import UNKNOWN, reached, unchangeable
from flakestorm.wire.base import Failure, Wire
from flakestorm.wire.encoding import decoded
from flakestorm.wire.protocols import wire_of
from flakestorm.wire.streaming import WHOLE, Frames, by_frame, counted

__all__ = ["overloaded", "rate_limit", "server_error"]

_RETRY_AFTER_MS = 50


@llm_faults.add("rate_limit")
def rate_limit(spec: LlmFault, scene: Scene) -> Interceptor:
    """The provider's own 429, asking to come back after `retry_after_ms` (50)."""
    return _failing("rate_limit", spec, scene, _RETRY_AFTER_MS if spec.retry_after_ms is None else spec.retry_after_ms)


@llm_faults.add("overloaded")
def overloaded(spec: LlmFault, scene: Scene) -> Interceptor:
    """The provider has too much to do: Anthropic's 529 `overloaded_error`, the 503 of all others.

    It says nothing about when to come back unless `retry_after_ms` is given.
    """
    return _failing("overloaded", spec, scene, spec.retry_after_ms)


@llm_faults.add("server_error")
def server_error(spec: LlmFault, scene: Scene) -> Interceptor:
    """The provider's own 500, or `error_code`."""
    return _failing("server_error", spec, scene, spec.retry_after_ms)


def _failing(
    kind: Literal["rate_limit", "overloaded", "server_error"], spec: LlmFault, scene: Scene, retry_after_ms: int | None
) -> Interceptor:
    failure = Failure(kind, spec.error_code, spec.message or "", retry_after_ms)

    def stage(call: Call) -> Flow:
        wire = wire_of(call.wire)
        if wire is None:
            scene.idle(UNKNOWN)
            return (yield from inward(call))
        if spec.after_events is not None:
            return _midway((yield from inward(call)), failure, spec.after_events, call, wire, scene)
        reply = wire.failure(failure, call)
        wait = "" if retry_after_ms is None else f", retry after {retry_after_ms} ms"
        scene.fired(f"{reply.status}{wait}")
        return reply

    return stage


def _midway(reply: Reply, failure: Failure, events: int, call: Call, wire: Wire, scene: Scene) -> Reply:
    """The reply, its stream ended by an error after so many events."""
    last, plain = wire.failure_event(failure, call, after=events), decoded(reply)
    if last is None or plain is None or plain.status >= 400:
        scene.idle(unchangeable(reply, call))
        return reply

    def break_off(frames: Frames) -> Chunks:
        if (yield from reached(events, frames, scene)):
            scene.fired(f"{failure.kind} after {counted(events)}")
            yield last

    open_ended = replace(plain, headers=without_headers(plain.headers, "content-length"))
    return by_frame(open_ended, wire.framing, break_off, document=lambda: scene.idle(WHOLE))
