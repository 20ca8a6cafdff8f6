"""Which MCP sessions of a run their servers have forgotten.

A server that has restarted knows its old sessions no more. Over streamable HTTP it answers 404 to whatever names one,
and a client has to initialise again (Model Context Protocol, "Transports: session management"). A pipe has no session
but the connection itself; there a server that has not been initialised refuses every request until it has been.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from flakestorm.core.call import Call, header
from flakestorm.core.pipeline import Flow
from flakestorm.core.site import Site
from flakestorm.wire.mcp.protocol import read
from flakestorm.wire.mcp.reply import forgotten

__all__ = ["Sessions"]


class Sessions:
    """The forgotten sessions of one run; `stage` stands in the server's place."""

    def __init__(self) -> None:
        self._lost: dict[str, Callable[[Site], None]] = {}
        self._lock = threading.Lock()

    def lose(self, call: Call, again: Callable[[Site], None]) -> bool:
        """The server forgets the session that this call belongs to.

        Args:
            call: an MCP call.
            again: is told of each later call that is refused for it.

        Returns:
            Whether there was a session to forget: over HTTP, the call must name one.
        """
        key = _key(call)
        if key:
            with self._lock:
                self._lost.setdefault(key, again)
        return bool(key)

    def forgot(self, call: Call) -> bool:
        """Whether this call belongs to a forgotten session. An `initialize` on a pipe begins a new one there."""
        if not self._lost or call.kind != "mcp":
            return False
        key = _key(call)
        if key not in self._lost:
            return False
        message = read(call.body)
        if message is None or message.method != "initialize":
            return True
        with self._lock:
            self._lost.pop(key, None)
        return False

    def stage(self, call: Call) -> Flow | Call:
        """Answers calls of forgotten sessions as their server would; others go inward."""
        return self._refused(call) if self.forgot(call) else call

    def _refused(self, call: Call) -> Flow:
        if call.site is not None:
            self._lost[_key(call)](call.site)
        return forgotten(call)
        yield call  # never: the server's place is taken


def _key(call: Call) -> str:
    """What tells the sessions of a run apart; empty for a call that belongs to none. Each pipe has a lane."""
    return f"{call.url} {call.lane}" if call.method == "CALL" else header(call.headers, "mcp-session-id") or ""
