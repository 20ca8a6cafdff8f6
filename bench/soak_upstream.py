"""A provider that misbehaves as asked: `?soak=KIND` of a request says how its streamed reply goes.

    whole    one JSON document            drip     events for as long as somebody listens
    stream   eleven events, 5 ms apart    reset    two events, then a TCP reset
    slow     64 KiB in 16 pieces, as fast as it is taken; flood: 8 MiB in 512, more than sockets hold

`python -m bench.soak_upstream` prints `{"port": N}` and serves until it is ended.
"""

from __future__ import annotations

import asyncio
import socket
import struct

from bench.upstream import OPENAI_STREAM, OPENAI_WHOLE, STREAM_HEAD, announced, run

NEXT_S, DRIP_S = 0.005, 0.02
SMALL, LARGE = (b"%x\r\n%b\r\n" % (size, b"data: " + b"x" * (size - 8) + b"\n\n") for size in (4096, 16384))


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection; requests come one after the other."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            low = head.lower()
            at = low.index(b"\r\ncontent-length:") + 17
            await reader.readexactly(int(low[at:].split(b"\r\n", 1)[0]))
            kind = low.partition(b"soak=")[2].split(b" ", 1)[0].decode()
            await _KINDS[kind](writer)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def _whole(writer: asyncio.StreamWriter) -> None:
    writer.write(OPENAI_WHOLE)


async def _stream(writer: asyncio.StreamWriter) -> None:
    first, again, last = OPENAI_STREAM
    writer.write(STREAM_HEAD + first)
    for _ in range(9):
        await asyncio.sleep(NEXT_S)
        writer.write(again)
    writer.write(last + b"0\r\n\r\n")


async def _slow(writer: asyncio.StreamWriter, piece: bytes = SMALL, pieces: int = 16) -> None:
    writer.write(STREAM_HEAD)
    for _ in range(pieces):
        writer.write(piece)
        await writer.drain()
    writer.write(b"0\r\n\r\n")


async def _flood(writer: asyncio.StreamWriter) -> None:
    await _slow(writer, LARGE, 512)


async def _drip(writer: asyncio.StreamWriter) -> None:
    first, again, _ = OPENAI_STREAM
    writer.write(STREAM_HEAD + first)
    while not writer.is_closing():
        writer.write(again)
        await writer.drain()
        await asyncio.sleep(DRIP_S)


async def _reset(writer: asyncio.StreamWriter) -> None:
    first, again, _ = OPENAI_STREAM
    writer.write(STREAM_HEAD + first + again)
    await writer.drain()
    await asyncio.sleep(NEXT_S)  # so that what was sent has arrived
    taken: socket.socket = writer.get_extra_info("socket")
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    raise ConnectionResetError


_KINDS = {"whole": _whole, "stream": _stream, "slow": _slow, "flood": _flood, "drip": _drip, "reset": _reset}


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    await announced(server)


if __name__ == "__main__":
    run(main)
