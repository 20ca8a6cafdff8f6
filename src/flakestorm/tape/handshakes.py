"""MCP sessions that a tape began, begun again with the real server where a run leaves its tape.

A server of the Model Context Protocol answers nobody who has not said `initialize` to it first. In a fork the tape has
answered that, so the server behind it knows of no session: over a pipe it has heard nothing at all, and over streamable
HTTP it never gave out the session id that the agent sends. So the first live call of such a session is preceded by the
agent's own `initialize` and `notifications/initialized`, as it has just made them, and over HTTP the recorded id is
replaced by the new one (Model Context Protocol, "Lifecycle" and "Transports: session management").
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Literal

from flakestorm.core.call import Call, Headers, Reply, Sleep, header, with_header, without_headers
from flakestorm.core.pipeline import Flow, inward
from flakestorm.errors import CallFailed

__all__ = ["Handshakes"]

_SESSION, _RESUMED = "mcp-session-id", "last-event-id"
_BEGIN, _BEGUN = "initialize", "notifications/initialized"
_LOOK_AGAIN_S = 0.02


@dataclass(slots=True, eq=False)
class _Session:
    """A session that the tape began.

    Args:
        hello: the agent's `initialize`.
        begun: its `notifications/initialized`, if it has said that.
        state: what the real server knows of it.
        now: the id that the real server has given out.
    """

    hello: Call
    begun: Call | None = None
    state: Literal["unknown", "asking", "known"] = "unknown"
    now: str = ""


class Handshakes:
    """The sessions of one run that were begun by its tape; `stage` stands right before the world."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[str, ...], _Session] = {}
        self._lock = threading.Lock()

    def served(self, call: Call, headers: Headers) -> None:
        """The tape has answered a call of kind `mcp`.

        Args:
            call: as the agent made it.
            headers: of the recorded reply.
        """
        if call.name == _BEGIN:
            piped = call.method == "CALL"
            recorded = header(headers, _SESSION) or ""
            if piped or recorded:
                with self._lock:
                    self._sessions[(call.url, call.lane) if piped else (recorded,)] = _Session(call)
        elif call.name == _BEGUN and (session := self._of(call)) is not None:
            session.begun = call

    def stage(self, call: Call) -> Flow | Call:
        """Lets a call pass that goes to the world, after the handshake where that is due."""
        if call.kind != "mcp" or not self._sessions:
            return call
        session = self._of(call)
        if session is None:
            return call
        if call.name == _BEGIN:  # a new one, on the same pipe
            with self._lock:
                self._sessions.pop(_place(call), None)
            return call
        return _told(call, session) if session.state == "known" else self._through(call, session)

    def _of(self, call: Call) -> _Session | None:
        return self._sessions.get(_place(call))

    def _through(self, call: Call, session: _Session) -> Flow:
        while True:
            with self._lock:
                if session.state != "asking":
                    mine = session.state == "unknown"
                    if mine:
                        session.state = "asking"
                    break
            yield Sleep(_LOOK_AGAIN_S)
        if mine:
            done = False
            try:
                yield from _greeted(session)
                done = True
            finally:
                session.state = "known" if done else "unknown"
        return (yield from inward(_told(call, session)))


def _place(call: Call) -> tuple[str, ...]:
    """What tells sessions apart: the pipe, or the id."""
    return (call.url, call.lane) if call.method == "CALL" else (header(call.headers, _SESSION) or "",)


def _greeted(session: _Session) -> Generator[Call | Sleep, Reply | None, None]:
    reply = yield from inward(replace(session.hello, site=None))
    if reply.status >= 400:
        raise CallFailed(
            "refused",
            f"the tape began this MCP session, and the real server answers {reply.status} to its initialize",
        )
    session.now = header(reply.headers, _SESSION) or ""
    if session.begun is not None:
        yield from inward(_told(replace(session.begun, site=None), session))


def _told(call: Call, session: _Session) -> Call:
    """The call as the real server is to get it."""
    if call.method == "CALL":
        return call
    headers = without_headers(call.headers, _RESUMED)
    if session.now:
        return replace(call, headers=with_header(headers, _SESSION, session.now))
    return replace(call, headers=without_headers(headers, _SESSION))
