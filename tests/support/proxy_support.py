"""A forward proxy as companies have one: the only way out, and it writes down who went through."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

__all__ = ["Proxied", "forward_proxy"]


@dataclass
class Proxied:
    """What a proxy saw.

    Args:
        port: of the one upstream that every name leads to.
        answer: a status line to refuse everything with; empty to let it through.

    `heads` are the request heads it got, one per connection, as lines.
    """

    port: int
    answer: str = ""
    url: str = ""
    heads: list[list[str]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head.decode().split("\r\n")[:-2])
            if self.answer:
                writer.write(f"{self.answer}\r\nContent-Length: 0\r\n\r\n".encode())
            else:
                up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.port)
                if head.startswith(b"CONNECT "):
                    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                else:
                    scheme_and_host = head.split(b" ", 2)[1].split(b"/", 3)
                    up_writer.write(head.replace(b"/".join(scheme_and_host[:3]), b"", 1))
                await asyncio.gather(_pump(reader, up_writer), _pump(up_reader, writer))
        writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def forward_proxy(port: int, *, answer: str = "") -> AsyncIterator[Proxied]:
    """A proxy on loopback; yields what it sees, with its `url`."""
    proxied = Proxied(port, answer)
    async with await asyncio.start_server(proxied.serve, "127.0.0.1", 0) as server:
        proxied.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield proxied
