"""Writing a reply to the agent's connection, exactly as it is.

aiohttp's own response classes add Date, Server and Content-Type and re-order what they are given, so the status line,
the header fields and the chunk framing are written here. Head and first chunk leave in one segment when the chunk is
already there, and the head leaves alone as soon as it is not: a stream's headers never wait for its first event. A
reply that is all here needs neither a watch on its first chunk nor a generator around its only one.

When a reply breaks in its middle (`CallFailed`, by a fault or by the world), what was emitted still arrives, and the
connection is cut.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from http import HTTPStatus

import orjson
from aiohttp import web

from flakestorm.boundary.asked import Asked
from flakestorm.boundary.patience import Patience
from flakestorm.core.call import Reply, Tap, header, with_header
from flakestorm.core.stream import apump, only_taps
from flakestorm.errors import CallFailed

__all__ = ["CLOSED", "KEPT", "Delivery", "deliver", "error_reply", "relocated", "reset"]

_log = logging.getLogger("flakestorm.boundary")

_FORBIDDEN = str.maketrans({"\r": " ", "\n": " ", "\0": " "})


class _Delivered(web.StreamResponse):
    """Tells aiohttp's server that the reply is already on the wire, and whether the connection may stay open."""

    def __init__(self, *, keep: bool) -> None:
        super().__init__()
        self._keep = keep

    @property
    def keep_alive(self) -> bool:
        return self._keep

    async def prepare(self, _request: web.BaseRequest) -> None:
        return None

    async def write_eof(self, _data: bytes | bytearray | memoryview = b"") -> None:
        return None


KEPT = _Delivered(keep=True)
CLOSED = _Delivered(keep=False)


class Delivery:
    """One reply on its way to one client.

    Args:
        request: whose connection it goes to.
        reply: status, reason and headers to send; its body is not read here.
    """

    def __init__(self, request: Asked, reply: Reply) -> None:
        self._request = request
        self._bodiless = request.method == "HEAD" or reply.status in (204, 304) or reply.status < 200
        length = header(reply.headers, "content-length")
        self._left = int(length) if length is not None and length.isascii() and length.isdigit() else None
        modern = request.version >= (1, 1)
        self._chunked = self._left is None and not self._bodiless and modern
        # Without a length or chunks the end of the body is the end of the connection.
        self.keep = request.keep_alive and (self._chunked or self._left is not None or self._bodiless)
        self.begun = False
        self._head: bytes = self._spell(reply, modern)

    def _spell(self, reply: Reply, modern: bool) -> bytes:
        reason = reply.reason or _phrase(reply.status)
        lines = [f"HTTP/1.1 {reply.status} {reason}"]
        for name, value in reply.headers:
            if self._left is not None or len(name) != 14 or name.lower() != "content-length":
                lines.append(f"{name}: {value}")
        if self._chunked:
            lines.append("Transfer-Encoding: chunked")
        if not self.keep:
            lines.append("Connection: close")
        elif not modern:
            lines.append("Connection: keep-alive")
        head = "\r\n".join(lines)
        if (
            head.count("\n") >= len(lines) or head.count("\r") >= len(lines) or "\0" in head
        ):  # a value tries to start a line of its own
            head = "\r\n".join(line.translate(_FORBIDDEN) for line in lines)
        return head.encode() + b"\r\n\r\n"

    @property
    def closed_by_end(self) -> bool:
        """Whether only the end of the connection marks the end of the body, so that a cut cannot be seen by length."""
        return self._left is None and not self._chunked and not self._bodiless

    async def run(self, chunks: AsyncIterator[bytes]) -> web.StreamResponse:
        """Send the head and every chunk.

        Returns:
            Whether the connection is kept, in the form the server wants it.

        Raises:
            ConnectionResetError: the client has gone.
        """
        handle = asyncio.get_running_loop().call_soon(self._flush)
        try:
            async for chunk in chunks:
                if chunk and not self._bodiless:
                    self._write(self._frame(chunk))
                    await self._request.writer.drain()
        finally:
            handle.cancel()
        return self._end()

    async def whole(self, body: bytes, taps: Sequence[Tap] = ()) -> web.StreamResponse:
        """As `run`, for a body that is here, and what watches it pass."""
        try:
            if body:
                for tap in taps:
                    tap.chunk(body)
                if not self._bodiless:
                    self._write(self._frame(body))
                    if self._request.protocol.writing_paused:
                        await self._request.writer.drain()
        except BaseException:
            for tap in taps:
                tap.end(GeneratorExit())  # as where the reader of a stream leaves
            raise
        for tap in taps:
            tap.end(None)
        return self._end()

    def _end(self) -> web.StreamResponse:
        if self._left and not self._bodiless:
            return self.cut()  # the world promised more than it sent; the client must be able to see that
        if self._chunked or not self.begun:
            self._write(b"0\r\n\r\n" if self._chunked else b"")
        return KEPT if self.keep else CLOSED

    def cut(self) -> web.StreamResponse:
        """End the connection in the middle of the body: what was emitted still arrives, the end of the body never."""
        if self.closed_by_end:
            reset(self._request)
        elif self._request.transport is not None:
            self._flush()
            self._request.transport.close()
        return CLOSED

    def _frame(self, chunk: bytes) -> bytes:
        if self._chunked:
            return b"%x\r\n%b\r\n" % (len(chunk), chunk)
        if self._left is not None:
            chunk = chunk[: self._left]
            self._left -= len(chunk)
        return chunk

    def _flush(self) -> None:
        if not self.begun and self._request.transport is not None:
            self.begun = True
            self._request.transport.write(self._head)

    def _write(self, data: bytes) -> None:
        transport = self._request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client has gone")
        if not self.begun:
            self.begun, data = True, self._head + data
        if data:
            transport.write(data)


def reset(request: Asked) -> web.StreamResponse:
    """Break the client's connection at once, as a crashed peer does: with a TCP reset."""
    transport = request.transport
    if transport is not None:
        if (sock := transport.get_extra_info("socket")) is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    return CLOSED


def error_reply(status: int, kind: str, message: str, *extra: tuple[str, str]) -> Reply:
    """A reply of the gateway's own: JSON in the shape that provider SDKs print, with its length."""
    body = orjson.dumps({"error": {"message": f"flakestorm gateway: {message}", "type": kind, "code": status}})
    headers = (("Content-Type", "application/json"), ("Content-Length", str(len(body))), *extra)
    return Reply(status, headers, body)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


async def deliver(request: Asked, reply: Reply, patience: Patience | None = None) -> web.StreamResponse:
    """Pump a reply to the client; a break in the middle cuts the connection.

    `patience` is the client's; None for a reply of the gateway's own, in which no time passes.
    """
    delivery = Delivery(request, reply)
    try:
        if isinstance(reply.body, bytes) and only_taps(reply.through):
            return await delivery.whole(reply.body, reply.through)
        async with aclosing(apump(reply, asyncio.sleep if patience is None else _while_reading(patience))) as chunks:
            return await delivery.run(chunks)
    except CallFailed as failure:
        _log.debug("cut the reply to %s: %s", request.method, failure)
    except ConnectionError:
        return CLOSED
    except Exception:
        _log.exception("a transducer failed")
    return delivery.cut()


def _while_reading(patience: Patience) -> Callable[[float], Awaitable[None]]:
    """How time passes in a body: its client had the last bytes just now, and no words can reach it but the body's."""
    patience.fall_silent()

    async def asleep(seconds: float) -> None:
        patience.restart()
        await patience.asleep(seconds)

    return asleep


def relocated(reply: Reply, origin: str, place: str) -> Reply:
    """Keep a redirect within the same upstream on the gateway. Others stay as they are: the client must see that the
    host changes, or it would send its credentials along."""
    location = header(reply.headers, "location") or ""
    if location.startswith("/") and not location.startswith("//"):
        return replace(reply, headers=with_header(reply.headers, "Location", place + location))
    if location == origin or location.startswith((f"{origin}/", f"{origin}?")):
        return replace(reply, headers=with_header(reply.headers, "Location", place + location[len(origin) :]))
    return reply
