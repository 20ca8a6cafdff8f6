"""The gateway's front door: one connection of an agent's, from its first byte to its last.

Plain requests, which are nearly all, are read and answered here, in one task each (`asked.py`). A connection on which
anything else comes is from there on aiohttp's server's. HTTP/2 is refused by name, where a parser would only complain
of it. And a client that never ends the head of its request, or never stops adding to it, does not hold a connection or
memory for ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from flakestorm.boundary.asked import Asked, Reading, Whole
from flakestorm.boundary.http2 import PREFACE, refusal

__all__ = ["HEAD_BYTES", "HEAD_S", "REFUSED", "Answers", "Door", "Doors"]

HEAD_S = 60.0
"""How long a client may take for the head of a request, from its first byte or from the connection's beginning."""

HEAD_BYTES = 1024 * 1024
"""How long a head may be, all its fields together."""

REFUSED = "flakestorm gateway: HTTP/2 is not supported here; use HTTP/1.1, or the call cannot be recorded or broken"

Answers = Callable[[Any], Awaitable[web.StreamResponse]]
"""Answers an `Asked`; what it gives says whether the connection is kept."""

_SLOW = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_FAILED = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_HELD_BYTES = 64 * 1024  # how much of what follows a request is held while that is answered

_log = logging.getLogger("flakestorm.boundary")


class Door(web.RequestHandler):
    """One connection.

    `peer` is its client's address, None where there is none.
    """

    __slots__ = (
        "_answering", "_answers", "_head_bytes", "_head_s", "_held", "_held_bytes", "_late", "_opened", "_quiet_since",
        "_reading", "peer",
    )  # fmt: skip

    def __init__(self, *args: Any, answers: Answers, head_s: float = HEAD_S, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._head_s, self._head_bytes, self._opened = head_s, 0, False
        self._late: asyncio.TimerHandle | None = None
        self._answers = answers
        self._answering: asyncio.Task[None] | None = None  # the request that is being answered here
        self._reading: Reading | None = Reading()  # None where the connection is aiohttp's
        self._held: list[bytes] = []
        self._held_bytes, self._quiet_since = 0, 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.peer = transport.get_extra_info("peername")  # asks the operating system each time
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._arrived()
        super().connection_lost(exc)
        self._reading = None
        if self._answering is not None:
            self._answering.cancel()

    def data_received(self, data: bytes) -> None:
        if not self._opened:
            self._opened = True
            if data.startswith(PREFACE) and self.transport is not None:
                _log.warning("%s", REFUSED)
                self.transport.write(refusal(REFUSED))
                self.force_close()
                return
        if self._reading is None:
            self._leave_to_aiohttp(data)
        elif self._answering is not None:
            self._hold(data)
        else:
            self._read(self._reading, data)

    def _read(self, reading: Reading, data: bytes) -> None:
        if self._force_close or (self._close and not reading.headed):
            return
        came = reading.read(data, self)
        if came is None:
            if reading.headed:
                self._arrived()
            elif self._late is None:
                self._wait()
        elif isinstance(came, Whole):
            self._arrived()
            self._answering = self._loop.create_task(self._answer(came))
        else:
            self._reading = None
            self._leave_to_aiohttp(came)

    async def _answer(self, asked: Asked) -> None:
        keep = False
        try:
            keep = (await self._answers(asked)).keep_alive is True
        except Exception:
            _log.exception("a request could not be answered: %s", asked.method)
            if self.transport is not None:
                self.transport.write(_FAILED)
        finally:
            self._answering = None
            if not keep or self._close:
                self.force_close()
        self._quiet_since = self._loop.time()
        if self._held:
            self._go_on()

    def _hold(self, data: bytes) -> None:
        """Something comes before the answer to what came before it."""
        self._held.append(data)
        self._held_bytes += len(data)
        if self._held_bytes > _HELD_BYTES and self.transport is not None:
            self.transport.pause_reading()

    def _go_on(self) -> None:
        """On with what was held."""
        data, self._held, paused = b"".join(self._held), [], self._held_bytes > _HELD_BYTES
        self._held_bytes = 0
        self.data_received(data)
        if paused and self.transport is not None:
            self.transport.resume_reading()

    def _leave_to_aiohttp(self, data: bytes) -> None:
        super().data_received(data)
        if self._messages or self._current_request is not None:  # a head is here; what follows it has limits of its own
            self._arrived()
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES:
            self._turn_away(_LONG)
        elif self._late is None:
            self._wait()

    def set_parser(self, *args: Any, **settings: Any) -> None:
        """What comes from now on is no HTTP."""
        self._reading = None
        super().set_parser(*args, **settings)
        if self._held:
            self._go_on()

    async def drain(self) -> None:
        """Wait until more may be written to the client."""
        if self.writing_paused:
            await self._drain_helper()

    def let_go(self) -> None:
        """End the connection as soon as nothing is under way on it."""
        # Idle is what waits for a request; aiohttp's own close() would leave it open, and deaf.
        asked = self._answering is not None or (self._reading is not None and self._reading.headed)
        if not asked and self._waiter is not None and not self._waiter.done():
            self.force_close()
        else:
            self.close()

    async def shutdown(self, timeout: float | None = 15.0) -> None:
        """End the connection; what is under way has so many seconds, and then is cancelled."""
        if (answering := self._answering) is not None:
            self._close = True
            await asyncio.wait([answering], timeout=timeout)
            answering.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([answering], timeout=timeout)
        await super().shutdown(timeout)

    def _process_keepalive(self) -> None:
        last = self._loop.time() if self._answering is not None else self._quiet_since
        self._next_keepalive_close_time = max(self._next_keepalive_close_time, last + self._keepalive_timeout)
        super()._process_keepalive()

    def _wait(self) -> None:
        self._late = self._loop.call_later(self._head_s, self._turn_away, _SLOW)

    def _arrived(self) -> None:
        self._head_bytes = 0
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _turn_away(self, words: bytes) -> None:
        self._arrived()
        if self.transport is not None and self._current_request is None and self._answering is None:
            self.transport.write(words)
            self.force_close()

    def log_exception(self, *args: Any, **more: Any) -> None:
        """Only of defects of our own. A request that is no HTTP is its sender's, who is answered 400 with the reason;
        that quotes what was sent, credentials perhaps, so it is not for whoever reads our log."""
        if isinstance(more.get("exc_info"), HttpProcessingError):
            _log.warning("flakestorm gateway: a request that is no HTTP/1.1 was refused (400)")
        else:
            super().log_exception(*args, **more)


class Doors(web.Server):
    """Makes a `Door` for each connection.

    Args:
        handler: answers the requests.
        head_s: see `HEAD_S`.
    """

    def __init__(self, handler: Answers, *, head_s: float = HEAD_S, **settings: Any) -> None:
        super().__init__(handler, **settings)
        self._answers, self._head_s = handler, head_s

    def __call__(self) -> Door:
        return Door(self, loop=self._loop, answers=self._answers, head_s=self._head_s, **self._kwargs)
