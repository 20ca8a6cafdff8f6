"""The gateway's front door: who is turned away before there is a request.

HTTP/2 is refused by name, where aiohttp's server would complain of it as a parser does. And a client that never ends
the head of its request, or never stops adding to it, does not hold a connection or memory for ever.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from aiohttp import web

from flakestorm.boundary.http2 import PREFACE, refusal

__all__ = ["HEAD_BYTES", "HEAD_S", "REFUSED", "Door", "Doors"]

HEAD_S = 60.0
"""How long a client may take for the head of a request, from its first byte or from the connection's beginning."""

HEAD_BYTES = 1024 * 1024
"""How long a head may be, all its fields together."""

REFUSED = "flakestorm gateway: HTTP/2 is not supported here; use HTTP/1.1, or the call cannot be recorded or broken"

_SLOW = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

_log = logging.getLogger("flakestorm.boundary")


class Door(web.RequestHandler):
    """One connection.

    `peer` is its client's address, None where there is none.
    """

    __slots__ = ("_head_bytes", "_head_s", "_late", "_opened", "peer")

    def __init__(self, *args: Any, head_s: float = HEAD_S, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._head_s, self._head_bytes, self._opened = head_s, 0, False
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.peer = transport.get_extra_info("peername")  # asks the operating system each time
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._opened:
            self._opened = True
            if data.startswith(PREFACE) and self.transport is not None:
                _log.warning("%s", REFUSED)
                self.transport.write(refusal(REFUSED))
                self.force_close()
                return
        super().data_received(data)
        if self._messages or self._current_request is not None:  # a head is here; what follows it has limits of its own
            self._arrived()
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES:
            self._turn_away(_LONG)
        elif self._late is None:
            self._wait()

    def _wait(self) -> None:
        self._late = self._loop.call_later(self._head_s, self._turn_away, _SLOW)

    def _arrived(self) -> None:
        self._head_bytes = 0
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _turn_away(self, words: bytes) -> None:
        self._arrived()
        if self.transport is not None and self._current_request is None:
            self.transport.write(words)
            self.force_close()


class Doors(web.Server):
    """Makes a `Door` for each connection.

    Args:
        head_s: see `HEAD_S`.
    """

    def __init__(self, handler: Any, *, head_s: float = HEAD_S, **settings: Any) -> None:
        super().__init__(handler, **settings)
        self._head_s = head_s

    def __call__(self) -> Door:
        return Door(self, loop=self._loop, head_s=self._head_s, **self._kwargs)
