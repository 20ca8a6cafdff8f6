"""The gateway's front door: where aiohttp's server would complain of HTTP/2 as a parser does, it is refused by name."""

from __future__ import annotations

import asyncio
import logging

from aiohttp import web

from flakestorm.boundary.http2 import PREFACE, refusal

__all__ = ["REFUSED", "Door", "Doors"]

REFUSED = "flakestorm gateway: HTTP/2 is not supported here; use HTTP/1.1, or the call cannot be recorded or broken"

_log = logging.getLogger("flakestorm.boundary")


class Door(web.RequestHandler):
    """One connection.

    `peer` is its client's address, None where there is none.
    """

    __slots__ = ("_opened", "peer")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.peer = transport.get_extra_info("peername")  # asks the operating system each time
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if not hasattr(self, "_opened"):
            self._opened = True
            if data.startswith(PREFACE) and self.transport is not None:
                _log.warning("%s", REFUSED)
                self.transport.write(refusal(REFUSED))
                self.force_close()
                return
        super().data_received(data)


class Doors(web.Server):
    """Makes a `Door` for each connection."""

    def __call__(self) -> Door:
        return Door(self, loop=self._loop, **self._kwargs)
