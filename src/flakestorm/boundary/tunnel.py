"""Opaque tunnels: what an agent sends through CONNECT that the gateway does not look into, carried through as it is.

That is TLS where the extra `mitm` is not installed, and with it what is neither TLS nor HTTP. That a tunnel was opened
is recorded, so nothing an agent does is silently missing from its tape; what passes inside is not, and cannot be.
Faults that refuse, reset or delay act when the tunnel is opened.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit

from aiohttp import web

from flakestorm.boundary.outward import Outward
from flakestorm.core.call import Call, Reply
from flakestorm.errors import CallFailed

__all__ = ["ESTABLISHED", "Tunnel"]

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
"""What a client is told when its tunnel is open."""

_READ_BYTES = 64 * 1024
_HIGH_WATER_BYTES = 1024 * 1024


class Tunnel:
    """One connection to an upstream, and the bytes that pass in both directions.

    It plays the part of a payload parser for aiohttp's server: after CONNECT the server hands it every byte that
    comes from the client.

    Args:
        request: the CONNECT.
        outward: how the upstream is reached.
        told: whether the client has been told already that the tunnel is open; it is then not being read from.
    """

    def __init__(self, request: web.BaseRequest, outward: Outward | None = None, *, told: bool = False) -> None:
        self._request, self._outward, self._told = request, outward or Outward(), told
        self._upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._draining: asyncio.Task[None] | None = None

    @property
    def opened(self) -> bool:
        return self._upstream is not None

    async def send(self, call: Call) -> Reply:
        """Connect to where the call's URL says (`SCHEME://HOST:PORT`).

        Raises:
            CallFailed: nobody listens there, or it did not answer.
        """
        authority = call.url.partition("://")[2].rstrip("/")
        host, _, port = authority.rpartition(":")
        try:
            self._upstream = await _open(host.strip("[]"), int(port), self._outward)
        except TimeoutError as error:
            raise CallFailed("timeout", f"{authority} did not answer: {error}") from error
        except (OSError, EOFError, OverflowError, ValueError) as error:
            raise CallFailed("refused", f"{authority} cannot be reached: {error}") from error
        return Reply(200, reason="Connection established")

    async def carry(self) -> None:
        """Pass bytes both ways until one side ends; then close the other."""
        client = self._request.transport
        if self._upstream is None or client is None:
            return
        reader, _ = self._upstream
        if not self._told:
            client.write(ESTABLISHED)
        self._request.protocol.set_parser(self)  # type: ignore[arg-type]  # aiohttp types it as its websocket reader
        if self._told:
            client.resume_reading()
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


async def _open(host: str, port: int, outward: Outward) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to an upstream, through a proxy where there is one.

    Raises:
        OSError: it cannot be had, or the proxy says no.
        EOFError: the proxy broke off.
        ValueError: the proxy cannot be used.
    """
    proxy = outward.proxies.to("https", host, port)
    if proxy is None:
        return await asyncio.open_connection(host, port)
    parts = urlsplit(proxy.url)
    secure = parts.scheme == "https"
    reader, writer = await asyncio.open_connection(
        parts.hostname,
        parts.port or (443 if secure else 80),
        ssl=(outward.trust.context() or True) if secure else None,
    )
    try:
        authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
        if proxy.authorization:
            lines.append(f"Proxy-Authorization: {proxy.authorization}")
        writer.write("\r\n".join([*lines, "", ""]).encode())
        status = (await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")[0].decode("latin-1")
        if status.split(" ")[1:2] != ["200"]:
            raise ConnectionRefusedError(f"the proxy {parts.hostname} says {status[:200]}")
    except BaseException:
        writer.close()
        raise
    return reader, writer
