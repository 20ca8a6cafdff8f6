"""The gateway's door for wrapped MCP servers: `flakestorm mcp -- COMMAND` connects here and lends its two pipes.

The wrapper (`mcp_stdio.py`) runs in the agent's world, knows no protocol and passes lines on; what they mean and which
run they belong to is known here. Both directions carry lines, told apart by their first byte::

    c LINE    the client has said this          the client is to be told this
    s LINE    the server has said this          the server is to be told this
    C         the client has ended its input    end the server's input
    S CODE    the server has ended              nothing more comes; end
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

from flakestorm.boundary.asked import Asked
from flakestorm.boundary.delivery import CLOSED
from flakestorm.boundary.mcp_relay import End, Relay
from flakestorm.boundary.passage import Passage
from flakestorm.boundary.patience import Patience

__all__ = ["MAX_LINE_BYTES", "serve"]

MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer message ends the connection."""


class _Frames:
    """The wrapper's lines. It plays the part of a payload parser for aiohttp's server, as `Tunnel` does."""

    def __init__(self) -> None:
        self._reader = asyncio.StreamReader(MAX_LINE_BYTES)

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self._reader.feed_data(data)
        return False, b""

    def feed_eof(self) -> None:
        self._reader.feed_eof()

    async def next(self) -> bytes:
        """The next line without its end; empty when there are no more, or when one is too long."""
        try:
            return (await self._reader.readline()).rstrip(b"\r\n")
        except ValueError:
            return b""


async def serve(request: Asked, name: str, passage: Passage) -> web.StreamResponse:
    """Hold the middle of one wrapped server's connection until the wrapper or the server has gone.

    Args:
        request: the wrapper's.
        name: what the server is called.
        passage: of the instance whose server it is.
    """
    client = request.transport
    if client is None:
        return CLOSED
    frames, place = _Frames(), object()

    async def write(frame: bytes) -> None:
        if client.is_closing():
            raise ConnectionResetError("the wrapper has gone")
        client.write(frame + b"\n")
        await request.writer.drain()

    relay = Relay(
        End(f"stdio://{name}/client", _prefixed(b"c", write)),
        End(f"stdio://{name}", _prefixed(b"s", write)),
        pipeline=lambda: passage.pipeline,
        lane=lambda: passage.lane(place, "wrapped"),
        patience=lambda: Patience(passage.clock, known=False),
    )
    origins = "".join(f"x-flakestorm-origin: {name} {origin}\r\n" for name, origin in passage.upstreams.items())
    request.protocol.set_parser(frames)
    client.write(f"HTTP/1.1 200 OK\r\n{origins}\r\n".encode())
    try:
        while frame := await frames.next():
            kind, line = frame[:1], frame[1:]
            if kind == b"c":
                relay.from_client(line)
            elif kind == b"s":
                relay.from_server(line)
            elif kind == b"C":
                await asyncio.sleep(0)  # what the client has said before is on its way first
                await write(b"C")
            elif kind == b"S":
                await relay.server_gone(f"has ended (exit code {line.decode(errors='replace').strip()})")
                await write(frame)
    except ConnectionError:
        pass
    finally:
        await relay.close()
    return CLOSED


def _prefixed(mark: bytes, write: Callable[[bytes], Awaitable[None]]) -> Callable[[bytes], Awaitable[None]]:
    async def line(text: bytes) -> None:
        await write(mark + text)

    return line
