"""`Passage`: the right of one agent instance to pass the gateway, and the run its calls belong to just now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from flakestorm.boundary.providers import Upstreams
from flakestorm.core.call import Headers
from flakestorm.core.pipeline import Interceptor, chain
from flakestorm.errors import Misuse

__all__ = ["Crosses", "Passage", "Posted"]

_untouched = chain()


class Crosses(Protocol):
    """What the gateway needs of a run's line."""

    @property
    def pipeline(self) -> Interceptor: ...


class Posted(Protocol):
    """What the gateway needs of an MCP session."""

    def posted(self, body: bytes, headers: Headers) -> None: ...


@dataclass(slots=True, eq=False)
class Passage:
    """One agent instance's right to pass.

    Args:
        token: unguessable; part of every URL the instance is given.
        upstreams: where each provider's calls really go, by the provider's name.

    `sessions` holds the agent's open MCP sessions of the HTTP+SSE transport, by the URL their requests are posted to.
    """

    token: str
    upstreams: Upstreams = field(default_factory=dict)
    sessions: dict[str, Posted] = field(default_factory=dict, init=False)
    _line: Crosses | None = field(default=None, init=False)
    _lanes: dict[object, str] = field(default_factory=dict, init=False)

    @contextmanager
    def bind(self, line: Crosses) -> Iterator[None]:
        """While entered, requests that arrive cross on this line; others pass untouched and unrecorded.

        A request belongs to the line it arrived on, also when it ends later.

        Raises:
            Misuse: the passage is bound already; one instance serves one run at a time.
        """
        if self._line is not None:
            raise Misuse(f"{self._line!r} is still bound to this agent instance; one instance serves one run at a time")
        self._line, self._lanes = line, {}
        try:
            yield
        finally:
            self._line = None

    @property
    def pipeline(self) -> Interceptor:
        return _untouched if self._line is None else self._line.pipeline

    def lane(self, connection: object) -> str:
        """The label of a connection: numbered from 1 by first appearance on this line."""
        return self._lanes.setdefault(connection, str(len(self._lanes) + 1))
