"""The stages of a continuation: what is put in an event's place, and who looks at the live world."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from flakestorm.core.call import Call, with_header, without_headers
from flakestorm.core.pipeline import Flow, Interceptor
from flakestorm.core.site import Site
from flakestorm.errors import CallFailed, Misuse
from flakestorm.tape.model import Exchange
from flakestorm.tape.serving import served
from flakestorm.wire.context import Addition, added, conversation
from flakestorm.wire.encoding import decode_body
from flakestorm.wire.other_model import with_model

__all__ = ["Mending", "Watch", "at_first", "giving_world"]

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


@dataclass(frozen=True, slots=True)
class Mending:
    """What to try at a model call that is blamed, to see what would help.

    Args:
        model: the name of another model of the same provider.
        prompt: a text that is added to the system prompt of this one call.
    """

    model: str = ""
    prompt: str = ""

    def changes(self, exchange: Exchange) -> dict[str, Interceptor]:
        """The changes of this call, by what they are called in a report; those that it cannot be given are left out."""
        asked, found = Call(exchange.method, exchange.url, exchange.headers, exchange.body), dict[str, Interceptor]()
        with suppress(Misuse):
            if self.model:
                with_model(asked, self.model)
                found[f"model {self.model}"] = lambda call: with_model(call, self.model)
        if self.prompt and conversation(exchange.wire, decode_body(exchange.body, exchange.headers)) is not None:
            found["edited prompt"] = lambda call: _told(call, exchange.wire, self.prompt)
        return found


def _told(call: Call, wire: str, text: str) -> Call:
    """The call with this text behind its system prompt."""
    body = added(wire, decode_body(call.body, call.headers), [Addition(text)])
    headers = without_headers(call.headers, "content-encoding", "content-length")
    return replace(call, body=body, headers=with_header(headers, "content-length", str(len(body))))
