"""`Passage`: the right of one agent instance to pass the gateway, and the run its calls belong to just now."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from flakestorm.boundary.outward import Outward
from flakestorm.boundary.providers import Upstreams
from flakestorm.core.call import Headers
from flakestorm.core.clock import Clock
from flakestorm.core.pipeline import Interceptor, chain
from flakestorm.errors import Misuse

if TYPE_CHECKING:  # few runs have virtual draws
    from flakestorm.boundary.draws import Dial, Drawing

__all__ = ["Crosses", "Passage", "Posted"]

_LANES = 4096
_SAID = re.compile(r"([0-9]+-[0-9]+)((?:\.(?:thread|job|task|deep)[0-9]+)*)")
_SAID_LENGTH = 256
_untouched = chain()
_LISTENING = ("GET", "TLS")  # may stay open for as long as the agent lives, without its being at work
_real = Clock(time.monotonic, skips=False)


class Crosses(Protocol):
    """What the gateway needs of a run's line."""

    @property
    def pipeline(self) -> Interceptor: ...
    @property
    def remarks(self) -> list[str]: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def draws(self) -> Drawing | None: ...


class Posted(Protocol):
    """What the gateway needs of an MCP session."""

    def posted(self, body: bytes, headers: Headers) -> None: ...


@dataclass(slots=True, eq=False)
class Passage:
    """One agent instance's right to pass.

    Args:
        token: unguessable; part of every URL the instance is given.
        upstreams: where each provider's calls really go, by the provider's name.
        outward: how the world is reached on its behalf.
        dial: tells its shim which run it is, and about virtual draws, where it has any.

    `ways` counts the calls on any line by the way they came in. `sessions` holds the agent's open MCP sessions of the
    HTTP+SSE transport, by the URL their requests are posted to.
    """

    token: str
    upstreams: Upstreams = field(default_factory=dict)
    outward: Outward = field(default_factory=Outward)
    dial: Dial | None = None
    ways: dict[str, int] = field(default_factory=dict)
    sessions: dict[str, Posted] = field(default_factory=dict, init=False)
    _line: Crosses | None = field(default=None, init=False)
    _lanes: dict[object, str] = field(default_factory=dict, init=False)
    _opened: int = field(default=0, init=False)
    _named: bool = field(default=True, init=False)
    _served: bool = field(default=False, init=False)
    _late: int = field(default=0, init=False)
    _open: int = field(default=0, init=False)
    _listening: int = field(default=0, init=False)
    _changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    @contextmanager
    def bind(self, line: Crosses) -> Iterator[None]:
        """While entered, requests that arrive cross on this line; others pass untouched and unrecorded.

        A request belongs to the line it arrived on, also when it ends later.

        Raises:
            Misuse: the passage is bound already; one instance serves one run at a time.
        """
        if self._line is not None:
            raise Misuse(f"{self._line!r} is still bound to this agent instance; one instance serves one run at a time")
        if self._late:
            line.remarks.append(
                f"this instance of the agent went on calling after its answer in the run before ({self._late} times); "
                "those calls are on no tape, and what they led to may be on this one's"
            )
        self._line, self._lanes, self._opened, self._served, self._late = line, {}, 0, True, 0
        self._named = line.draws is None or line.draws.draws.form > 1
        if line.draws is not None:
            line.draws.show_on(self.dial)
        elif self.dial is not None:
            self.dial.begin(None)
        try:
            yield
        finally:
            self._line = None
            if line.draws is not None:
                line.draws.show_on(None)

    def enter(self, method: str) -> None:
        """A call begins, or a connection that can carry some (`TLS`)."""
        if method in _LISTENING:
            self._listening += 1
        else:
            self._open += 1
            self._late += self._served and self._line is None

    def leave(self, method: str) -> None:
        """It has ended."""
        if method in _LISTENING:
            self._listening -= 1
        else:
            self._open -= 1
        self._changed.set()

    async def settled(self, limit_s: float, *, gone: bool = False) -> bool:
        """Whether no call is under way, or none is when this time has passed.

        Args:
            limit_s: how long to wait for that.
            gone: the agent has ended, so that nothing at all can stay open.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while self._open or (gone and self._listening):
                    self._changed.clear()
                    await self._changed.wait()
        return not self._open

    @property
    def pipeline(self) -> Interceptor:
        return _untouched if self._line is None else self._line.pipeline

    @property
    def clock(self) -> Clock:
        """The time of the run; no time is ever skipped outside one."""
        return _real if self._line is None else self._line.clock

    def lane(self, connection: object, way: str = "", said: str | None = None) -> str:
        """The label of a connection: numbered from 1 by first appearance on this line; or of the lane that the shim
        says a call is made on. That is numbered in the same way where it began by itself, and what was started from
        there has the names that it is told by: `1.job2`.

        Args:
            connection: anything that stays the same for it.
            way: which way a call came in with this question.
            said: what the shim says; see its `descent.py`. What it would not say counts as nothing.

        Of very many connections the oldest are forgotten, so that a line may last for days.
        """
        if way and self._line is not None:
            self.ways[way] = self.ways.get(way, 0) + 1
        within = ""
        if said is not None and self._named and len(said) <= _SAID_LENGTH and (found := _descent(said)) is not None:
            connection, within = found
        label = self._lanes.get(connection)
        if label is None:
            self._opened += 1
            label = self._lanes[connection] = str(self._opened)
            if len(self._lanes) > _LANES:
                del self._lanes[next(iter(self._lanes))]
        return label + within if within else label


@lru_cache(maxsize=1024)  # a lane makes many calls
def _descent(said: str) -> tuple[str, str] | None:
    """What began by itself, and how a lane descends from there."""
    found = _SAID.fullmatch(said)
    return None if found is None else (found[1], found[2])
