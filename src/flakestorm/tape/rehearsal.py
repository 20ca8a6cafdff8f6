"""A recording in the world's place, addressed by site: what `doctor` plays its runs against.

The n-th call of a tool gets the n-th recorded reply, whatever it asks. So a run that differs goes on, and all of its
differences are found and not only the first. It proves nothing about equality; that is the caller's to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from flakestorm.core.call import Call, Reply
from flakestorm.core.pipeline import Flow, Interceptor
from flakestorm.errors import CallFailed
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.tape.telling import Telling

__all__ = ["rehearsal"]


def rehearsal(
    exchanges: Iterable[Exchange], recall: Callable[[float], None], telling: Telling | None = None
) -> Interceptor:
    """A stage that answers each call with what was recorded at its site, and never asks the world.

    Args:
        exchanges: what was recorded.
        recall: is told when, in the recorded run, each reply began or failed to come, in milliseconds.
        telling: puts the secrets that are known here back into replies.
    """
    telling = telling or Telling()
    known = {exchange.site: exchange for exchange in exchanges}

    def stage(call: Call) -> Flow:
        exchange = None if call.site is None else known.get(call.site)
        if exchange is None:
            raise CallFailed("refused", f"nothing was recorded at {call.site}")
        reply = telling.heard(exchange.reply)
        heard_ms = reply.heard_ms(exchange.t_ms + exchange.duration_ms)
        if heard_ms is not None:
            recall(heard_ms)
        if not reply.status:
            raise CallFailed("timeout" if "timeout" in (reply.error or "").lower() else "reset", reply.error or "")
        return _again(reply)
        yield call  # a flow is a generator, also one that never goes inward

    return stage


def _again(reply: Recorded) -> Reply:
    body = _broken(reply) if reply.end == "broken" else list(reply.chunks) if reply.stream else reply.body
    return Reply(reply.status, reply.headers, body, reason=reply.reason)


def _broken(reply: Recorded) -> Iterable[bytes]:
    yield from reply.chunks
    raise CallFailed("reset", reply.error or "the recorded reply breaks off here")
