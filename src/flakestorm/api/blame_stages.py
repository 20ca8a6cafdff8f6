"""The stages of a continuation: what is put in an event's place, and who looks at the live world."""

from __future__ import annotations

from flakestorm.core.call import Call
from flakestorm.core.pipeline import Flow, Interceptor
from flakestorm.core.site import Site
from flakestorm.errors import CallFailed
from flakestorm.tape.model import Exchange
from flakestorm.tape.serving import served

__all__ = ["Watch", "at_first", "giving_world"]

_NO_MODEL = frozenset({401, 403, 404, 407, 429})


class Watch:
    """Looks at what the live world says, to tell a world that is not there from one that answers.

    Args:
        answered: kinds and names of calls that had a reply in the recorded run.
    """

    def __init__(self, answered: set[tuple[str, str]]) -> None:
        self._answered = answered
        self.trouble = ""
        """Why the world of this run was none; empty if it was one."""
        self.drawing: object = None
        """The run's draws, which are kept as long as this is."""

    def stage(self, call: Call) -> Flow:
        """Lets a call pass and notes what becomes of it."""
        try:
            reply = yield call
        except Exception as error:
            if call.kind == "llm" or (_refused(error) and (call.kind, call.name) in self._answered):
                said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
                self.trouble = f"{_named(call)} could not be reached live: {said}"
            raise
        if reply is None:
            raise AssertionError("a call is answered by a reply")
        if call.kind == "llm":
            no_model = reply.status in _NO_MODEL or reply.status >= 500
            self.trouble = (
                f"there is no live model: {_named(call)} answers with status {reply.status}" if no_model else ""
            )
        return reply


def _refused(error: Exception) -> bool:
    """Whether nobody was there; in this process it is the client's own exception."""
    how = error.how if isinstance(error, CallFailed) else f"{type(error).__name__} {error}".lower()
    return "refused" in how or "connecterror" in how or "getaddrinfo" in how


def _named(call: Call) -> str:
    return str(call.site or f"{call.kind}/{call.name}")


def giving_world(exchange: Exchange) -> Interceptor:
    """Answers with what the world had said."""
    world = exchange.world

    def stage(call: Call) -> Flow:
        if world is None:
            raise AssertionError("only an exchange that a fault changed has a world of its own")
        return served(world, lambda _: [])
        yield call

    return stage


def at_first(change: Interceptor, site: Site, then: Interceptor) -> Interceptor:
    """The change for the call at the first site, and the other stage for all others."""

    def stage(call: Call) -> Flow | Call:
        return change(call) if call.site == site else then(call)

    return stage
