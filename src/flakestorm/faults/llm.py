"""Faults of models: slow to answer, over their limits, cut off, silent or babbling.

They act on the reply of a model call (kind `llm`). What they mean is spelled by the call's wire, so it is valid bytes
for that provider's own SDK, whole or streamed; of a protocol that no wire understands only `timeout` can be played,
and the others do not fire. An error the model's provider really answered with is left as it is.
"""

from __future__ import annotations

import string

from flakestorm.config.model import LlmFault
from flakestorm.core.call import Call, Sleep
from flakestorm.core.choices import Choices
from flakestorm.core.pipeline import Flow, Interceptor
from flakestorm.errors import CallFailed
from flakestorm.faults.base import Scene, inward, llm_faults
from flakestorm.wire.base import Edit, Failure
from flakestorm.wire.classify import wire_of

__all__ = ["ARGUMENTS", "empty", "garbage", "rate_limit", "timeout", "truncated_response"]

ARGUMENTS = {
    "timeout": "delay_ms",
    "rate_limit": "retry_after_ms",
    "truncated_response": "max_tokens",
}
"""Which setting ARG stands for in the one-line form `MODE:ARG`; a mode that is not here takes no ARG."""

_TIMEOUT_MS = 30_000
_RETRY_AFTER_MS = 50
_MAX_TOKENS = 20


@llm_faults.add("timeout")
def timeout(spec: LlmFault, scene: Scene) -> Interceptor:
    """The model does not answer: `delay_ms` (30000) pass, or as long as the agent waits; then the call fails."""
    delay_ms = _TIMEOUT_MS if spec.delay_ms is None else spec.delay_ms

    def stage(_call: Call) -> Flow:
        scene.fired(f"no answer within {delay_ms} ms")
        yield Sleep(delay_ms / 1000)
        raise CallFailed("timeout", f"no answer within {delay_ms} ms", injected=True)

    return stage


@llm_faults.add("rate_limit")
def rate_limit(spec: LlmFault, scene: Scene) -> Interceptor:
    """The provider's own 429, asking to come back after `retry_after_ms` (50); the model is not asked."""
    retry_after_ms = _RETRY_AFTER_MS if spec.retry_after_ms is None else spec.retry_after_ms
    failure = Failure("rate_limit", spec.error_code, spec.message or "", retry_after_ms)

    def stage(call: Call) -> Flow:
        wire = wire_of(call.wire)
        if wire is None:
            return (yield from inward(call))
        reply = wire.failure(failure, call)
        scene.fired(f"{reply.status}, retry after {retry_after_ms} ms")
        return reply

    return stage


@llm_faults.add("truncated_response")
def truncated_response(spec: LlmFault, scene: Scene) -> Interceptor:
    """The answer ends after `max_tokens` (20), and its finish reason says so. Shorter answers are left alone."""
    max_tokens = _MAX_TOKENS if spec.max_tokens is None else spec.max_tokens
    cut = Edit(max_tokens=max_tokens, finish="length", on_change=lambda: scene.fired(f"cut after {max_tokens} tokens"))
    return _edited(cut)


@llm_faults.add("empty")
def empty(_spec: LlmFault, scene: Scene) -> Interceptor:
    """The model says nothing and asks for no tool, and calls that a normal end."""
    silence = Edit(
        text=lambda _: "", drop_tool_calls=True, finish="stop", on_change=lambda: scene.fired("answer left empty")
    )
    return _edited(silence)


@llm_faults.add("garbage")
def garbage(_spec: LlmFault, scene: Scene) -> Interceptor:
    """The words of the answer are noise of the same length; tool calls and the protocol around them stay valid."""
    noise = Edit(text=lambda text: _noise(text, scene.choices), on_change=lambda: scene.fired("text replaced by noise"))
    return _edited(noise)


def _edited(edit: Edit) -> Interceptor:
    def stage(call: Call) -> Flow:
        reply = yield from inward(call)
        wire = wire_of(call.wire)
        return reply if wire is None else wire.edit(reply, edit)

    return stage


def _noise(text: str, choices: Choices) -> str:
    """Other characters in place of all but white space, so the layout survives and no sense does."""
    signs = string.ascii_letters + string.digits + string.punctuation
    noise = choices.stream("noise").choices(signs, k=len(text))
    return "".join(sign if sign.isspace() else other for sign, other in zip(text, noise, strict=True))
