"""CONNECT tunnels: TLS that the gateway cannot look into, carried through opaquely.

That a tunnel was opened is recorded, so nothing an agent does is silently missing from its tape; what passes inside is
not, and cannot be. Faults that refuse, reset or delay act when the tunnel is opened.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from aiohttp import web

from flakestorm.core.call import Call, Reply
from flakestorm.errors import CallFailed

__all__ = ["Tunnel"]

_READ_BYTES = 64 * 1024
_HIGH_WATER_BYTES = 1024 * 1024


class Tunnel:
    """One connection to an upstream, and the bytes that pass in both directions.

    It plays the part of a payload parser for aiohttp's server: after CONNECT the server hands it every byte that
    comes from the client.
    """

    def __init__(self, request: web.BaseRequest) -> None:
        self._request = request
        self._upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._draining: asyncio.Task[None] | None = None

    @property
    def opened(self) -> bool:
        return self._upstream is not None

    async def send(self, call: Call) -> Reply:
        """Connect to where the call's URL says (`https://HOST:PORT`).

        Raises:
            CallFailed: nobody listens there, or it did not answer.
        """
        authority = call.url.partition("://")[2].rstrip("/")
        host, _, port = authority.rpartition(":")
        try:
            self._upstream = await asyncio.open_connection(host.strip("[]"), int(port))
        except TimeoutError as error:
            raise CallFailed("timeout", f"{authority} did not answer: {error}") from error
        except (OSError, OverflowError, UnicodeError) as error:
            raise CallFailed("refused", f"{authority} cannot be reached: {error}") from error
        return Reply(200, reason="Connection established")

    async def carry(self) -> None:
        """Pass bytes both ways until one side ends; then close the other."""
        client = self._request.transport
        if self._upstream is None or client is None:
            return
        reader, _ = self._upstream
        client.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        self._request.protocol.set_parser(self)  # type: ignore[arg-type]  # aiohttp types it as its websocket reader
        with suppress(OSError):
            while (data := await reader.read(_READ_BYTES)) and not client.is_closing():
                client.write(data)
                await self._request.writer.drain()

    def close(self) -> None:
        """Let go of the upstream."""
        if self._upstream is not None:
            self._upstream[1].close()
        if self._draining is not None:
            self._draining.cancel()

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Bytes from the client; answers whether the client is to be disconnected, and what was left over."""
        if self._upstream is None or (writer := self._upstream[1]).is_closing():
            return True, b""
        writer.write(data)
        client = self._request.transport
        if writer.transport.get_write_buffer_size() > _HIGH_WATER_BYTES and client is not None and not self._draining:
            client.pause_reading()
            self._draining = asyncio.get_running_loop().create_task(self._drain(writer, client))
        return False, b""

    def feed_eof(self) -> None:
        """The client has ended the connection."""
        self.close()

    async def _drain(self, writer: asyncio.StreamWriter, client: asyncio.Transport) -> None:
        with suppress(OSError):
            await writer.drain()
        self._draining = None
        if not client.is_closing():
            client.resume_reading()
