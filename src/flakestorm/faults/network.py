"""Faults of the way to a tool: connections break, replies get lost, requests arrive twice, a service comes and goes.

What matters about them is how often the tool really ran, which its own counter would show: `connection_reset` lets no
request through, `timeout_after_commit` exactly one whose reply nobody gets, `duplicate` two. An agent that takes a lost
reply for a failed call and calls again pays twice.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from flakestorm.config.model import ToolFault
from flakestorm.core.call import PULL, Call, Chunks, Reply, Sleep
from flakestorm.core.pipeline import Flow, Interceptor
from flakestorm.core.stream import pump
from flakestorm.errors import CallFailed, FlakestormError
from flakestorm.faults.answers import TIMEOUT_MS, failure, failure_words
from flakestorm.faults.base import Scene, inward, tool_faults
from flakestorm.wire.mcp.protocol import Mcp, read
from flakestorm.wire.shape import dump

__all__ = ["connection_reset", "duplicate", "flap", "timeout_after_commit"]

RESET = "connection reset by peer"


@tool_faults.add("connection_reset")
def connection_reset(_spec: ToolFault, scene: Scene) -> Interceptor:
    """The connection breaks before the request is sent; the agent's client raises its own error for that."""

    def stage(_call: Call) -> Flow:
        scene.fired(RESET)
        raise CallFailed("reset", RESET, injected=True)
        yield _call  # never reached: nothing is sent

    return stage


@tool_faults.add("timeout_after_commit")
def timeout_after_commit(spec: ToolFault, scene: Scene) -> Interceptor:
    """The tool runs, exactly once, and its reply is lost: nothing comes for `delay_ms` (30000), or for as long as the
    agent waits; then the call fails as one that timed out.

    A stream has been opened by the time the tool runs, so there the agent gets the head of the reply and nothing else.
    A request that never reached the tool is not lost after it, so where the world itself fails this does not fire.
    """
    delay_ms = TIMEOUT_MS if spec.delay_ms is None else spec.delay_ms
    words = f"no answer within {delay_ms} ms"

    def silence(reply: Reply) -> Generator[Sleep, None, None]:
        scene.fired(f"reply {reply.status} lost after the tool ran; {words}")
        yield Sleep(delay_ms / 1000)
        raise CallFailed("timeout", words, injected=True)

    def stage(call: Call) -> Flow:
        reply = yield from inward(call)
        if reply.streamed:

            def lost() -> Chunks:
                while (yield PULL) is not None:
                    pass
                yield from silence(reply)

            return reply.pipe(lost)
        if isinstance(reply.body, bytes):  # read to its end, so that the tape has what the world said
            for _ in pump(reply, _at_once):
                pass
        yield from silence(reply)
        return reply  # never reached: silence ends in a failure

    return stage


@tool_faults.add("duplicate")
def duplicate(_spec: ToolFault, scene: Scene) -> Interceptor:
    """The request is delivered twice, one after the other, and the agent sees one reply: the first.

    A function is called twice with the same arguments. Over MCP the copy goes first and has an id of its own, because
    ids must not come again within a session. A request whose body is produced while it is sent cannot be sent twice.
    """

    def stage(call: Call) -> Flow:
        if call.upload is not None:
            scene.idle("the request's body was streamed by the agent, so there is nothing left to send again")
            return (yield from inward(call))
        message = read(call.body) if call.wire == Mcp.name else None
        if message is not None and message.kind == "request":
            twin = replace(call, body=dump({**message.document, "id": f"{message.document['id']}-again"}))
            again = yield from _delivered(twin)
            reply = yield from inward(call)
        else:
            reply = yield from inward(call)
            again = yield from _delivered(call)
        if again:
            scene.fired("request delivered twice")
        return reply

    return stage


@tool_faults.add("flap")
def flap(spec: ToolFault, scene: Scene) -> Interceptor:
    """The tool comes and goes: its first call of a run fails, its second works, its third fails, and so on.

    It fails as `error` does, with HTTP status `error_code` (503) and `message`. Which call is which is told by its
    site, so `tool/search#3` fails in every run, whatever else the agent does at the same time.
    """

    def stage(call: Call) -> Flow:
        if scene.site.occurrence % 2 == 0:
            scene.idle("it is up at every second call")
            return (yield from inward(call))
        scene.fired(failure_words(spec))
        return failure(spec, call)

    return stage


def _delivered(call: Call) -> Generator[Call | Sleep, Reply | None, bool]:
    """Send a request whose reply nobody wants; whether it got there."""
    try:
        yield from inward(call)
    except FlakestormError as error:
        if not isinstance(error, CallFailed):  # a tape that does not know this call, say; that must be heard
            raise
        return False
    except Exception:  # the client library's own way to say that nobody was reached
        return False
    return True


def _at_once(_seconds: float) -> None:
    """How time passes for a reply that reaches nobody."""
